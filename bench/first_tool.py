# SPDX-License-Identifier: MIT
"""The tool of first.py, in a module of its own, as tools are."""


def add(a: int, b: int) -> int:
    return a + b


def answer(queue, a, b):
    """In a process that had to import what a framework has imported."""
    import anyio  # noqa: F401
    import pydantic  # noqa: F401

    queue.put(add(a, b))
