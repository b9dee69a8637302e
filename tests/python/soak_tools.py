# SPDX-License-Identifier: MIT
"""Tools of soak_calls.py."""

import dataclasses
import os
import signal
import sys
import time
from typing import Any, Dict, List


@dataclasses.dataclass
class Pair:
    left: int
    right: str


def add(a: int, b: int) -> int:
    return a + b


def pair(n: int) -> Pair:
    return Pair(n, str(n))


def echo(data: bytes) -> bytes:
    print(len(data))
    return data


def count(items: List[int]) -> Dict[str, Any]:
    return {"sum": sum(items), "n": len(items)}


def numbers(n: int, first: int) -> List[int]:
    return list(range(first, first + n))


def fails(how: str, n: int) -> None:
    if how == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "exit":
        os._exit(n % 100 + 1)
    if how == "memory":
        sys.stdout.write("x" * 100_000)
        os.kill(os.getpid(), signal.SIGKILL)
    raise KeyError(n)


def sleeps(seconds: float) -> str:
    time.sleep(seconds)
    return "slept"
