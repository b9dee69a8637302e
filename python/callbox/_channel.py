# SPDX-License-Identifier: MIT
"""What a function in a box can say besides its result: frames on the result channel, as
callbox-manifest(5) has them. Outside of a box there is nobody to tell, and nothing happens."""

from __future__ import annotations

import os
import struct
import threading
from typing import Any, List, Optional

RESULT, TEXT, ERROR, PROGRESS, LOG, DONE, DATA = range(7)
LEVELS = ("debug", "info", "warning", "error")


class Channel:
    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.lock = threading.Lock()

    def send(self, kind: int, *parts: Any) -> None:
        """A frame in one piece, between those of other threads. Parts are buffers."""
        head = struct.pack("=II", sum(memoryview(part).nbytes for part in parts), kind)
        with self.lock:
            for part in (head, *parts):
                rest = memoryview(part)
                rest = rest.cast("B") if rest.nbytes else memoryview(b"")
                while rest:
                    rest = rest[os.write(self.fd, rest) :]

    def send_result(self, parts: List[Any]) -> None:
        """What belongs to a result goes before it."""
        for part in parts[1:]:
            self.send(DATA, part)
        self.send(RESULT, parts[0])


current: Optional[Channel] = None
boxed = False  # this interpreter was started in a box, by _serve.py


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def progress(done: float, total: float = 0, text: str = "") -> None:
    """Tell whoever follows this call that so much is done; total 0: not known."""
    if current:
        current.send(PROGRESS, struct.pack("=dd", done, total), _encode(text))


def log(text: str, level: str = "info") -> None:
    """A line for the log of whoever follows this call."""
    if level not in LEVELS:
        raise ValueError(f"level must be one of {', '.join(LEVELS)}, not {level!r}")
    if current:
        current.send(LOG, struct.pack("=I", LEVELS.index(level)), _encode(text))
