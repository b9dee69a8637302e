# SPDX-License-Identifier: MIT
"""What a function in a box can say besides its result: frames on the result channel, as
callbox-manifest(5) has them. Outside of a box there is nobody to tell, and nothing happens."""

from __future__ import annotations

import math
import os
import struct
import time
from _thread import allocate_lock

from . import _late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List, Optional, Tuple

RESULT, TEXT, ERROR, PROGRESS, LOG, DONE, DATA = range(7)
SMALL = 4096  # bytes
LEVELS = ("debug", "info", "warning", "error")
HEAD = struct.Struct("=II")
PROGRESS_RATE = 100  # of frames that tell of progress: at once, and then in each second


class Channel:
    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.lock = allocate_lock()
        self.may_send = float(PROGRESS_RATE)
        self.counted_at = time.monotonic()
        self.complete = False  # what was last sent of progress
        self.kept = b""  # progress that was not sent

    def send(self, kind: int, *parts: Any) -> None:
        """A frame in one piece, between those of other threads. Parts are buffers."""
        self.send_all([(kind, *parts)])

    def send_all(self, frames: List[Tuple[Any, ...]]) -> None:
        """Frames, each a kind and its parts; small ones at once, as each write wakes who reads."""
        small = b""
        with self.lock:
            if self.kept and any(frame[0] == DONE for frame in frames):
                small, self.kept = self.kept, b""
            for kind, *parts in frames:
                sizes = [len(part) if type(part) is bytes else memoryview(part).nbytes for part in parts]
                small += HEAD.pack(sum(sizes), kind)
                for part, size in zip(parts, sizes):
                    if size <= SMALL:
                        small += part
                        continue
                    self._write(small)
                    self._write(part)
                    small = b""
            self._write(small)

    def send_progress(self, done: float, total: float, text: bytes) -> None:
        """A loop may tell of each of its steps. What comes too fast is kept, and replaced by what follows;
        the end of a known total is told at once, and what is kept at the end of the call."""
        frame = struct.pack("=IIdd", 16 + len(text), PROGRESS, done, total) + text
        complete = total > 0 and done >= total
        with self.lock:
            now = time.monotonic()
            more = (now - self.counted_at) * PROGRESS_RATE
            self.may_send, self.counted_at = min(PROGRESS_RATE, self.may_send + more), now
            if self.may_send < 1 and not (complete and not self.complete):
                self.kept = frame
                return
            self.may_send = max(0, self.may_send - 1)
            self.complete = complete
            self.kept = b""
            self._write(frame)

    def _write(self, part: Any) -> None:
        rest = memoryview(part)
        rest = rest.cast("B") if rest.nbytes else memoryview(b"")
        while rest:
            rest = rest[os.write(self.fd, rest) :]


current: Optional[Channel] = None
boxed = _late.boxed


def _encode(text: object) -> bytes:
    return str(text).encode("utf-8", "backslashreplace")


def _amount(name: str, value: Any) -> float:
    if not hasattr(type(value), "__float__") and not hasattr(type(value), "__index__"):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}: {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not 0 <= number < math.inf:
        raise ValueError(f"{name} must be a finite number, 0 or above, not {number!r}")
    return number


def progress(done: float, total: Optional[float] = None, text: str = "") -> None:
    """Tell whoever follows this call that so much is done; total None or 0: not known."""
    amounts = _amount("done", done), 0.0 if total is None else _amount("total", total)
    if current:
        current.send_progress(*amounts, _encode(text))


def log(text: object, level: str = "info") -> None:
    """A line for the log of whoever follows this call."""
    if level not in LEVELS:
        raise ValueError(f"level must be one of {', '.join(LEVELS)}, not {level!r}")
    if current:
        current.send(LOG, struct.pack("=I", LEVELS.index(level)), _encode(text))
