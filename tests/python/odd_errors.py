# SPDX-License-Identifier: MIT
"""Errors that cannot be told as others can, for test_newcomer.py."""


class Odd(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


def fail() -> int:
    raise Odd
