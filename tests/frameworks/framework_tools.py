# SPDX-License-Identifier: MIT
"""Tools that the agents of real packages are given."""

import os
import pathlib


def where_am_i(x: int) -> dict:
    """Double a number, and tell what can be seen from here."""
    print("chatter")
    return {
        "double": x * 2,
        "pid": os.getpid(),
        "secret": os.environ.get("CALLBOX_TEST_SECRET"),
        "shadow": pathlib.Path("/etc/shadow").exists(),
    }


def fails(how: str) -> str:
    """Fail."""
    raise ValueError(how)


def sleeps(seconds: float) -> None:
    """Wait."""
    import time

    time.sleep(seconds)


async def later(x: int) -> int:
    """Add one, later."""
    return x + 1


def writes(path: str) -> str:
    """Write a file."""
    pathlib.Path(path).write_text("written")
    return pathlib.Path(path).read_text()
