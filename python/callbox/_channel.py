# SPDX-License-Identifier: MIT
"""What a function in a box can say besides its result: frames on the result channel, as
callbox-manifest(5) has them. Outside of a box there is nobody to tell, and nothing happens."""

from __future__ import annotations

import os
import struct
import threading
from typing import Any, List, Optional, Tuple

RESULT, TEXT, ERROR, PROGRESS, LOG, DONE, DATA = range(7)
SMALL = 4096  # bytes
LEVELS = ("debug", "info", "warning", "error")


class Channel:
    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.lock = threading.Lock()

    def send(self, kind: int, *parts: Any) -> None:
        """A frame in one piece, between those of other threads. Parts are buffers."""
        self.send_all([(kind, *parts)])

    def send_all(self, frames: List[Tuple[Any, ...]]) -> None:
        """Frames, each a kind and its parts; small ones at once, as each write wakes who reads."""
        small = b""
        with self.lock:
            for kind, *parts in frames:
                sizes = [memoryview(part).nbytes for part in parts]
                small += struct.pack("=II", sum(sizes), kind)
                for part, size in zip(parts, sizes):
                    if size <= SMALL:
                        small += part
                        continue
                    self._write(small)
                    self._write(part)
                    small = b""
            self._write(small)

    def _write(self, part: Any) -> None:
        rest = memoryview(part)
        rest = rest.cast("B") if rest.nbytes else memoryview(b"")
        while rest:
            rest = rest[os.write(self.fd, rest) :]


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
