# SPDX-License-Identifier: MIT
"""The parts in which the result of a function comes: its JSON, and bytes that lie beside it.

A large result comes in a file of memory. It is read once, to where it is needed: what has been read
is all that this process has of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, List

if TYPE_CHECKING:
    from ._callbox import RawPart

READ_MAX = 1 << 30  # at once; the kernel gives no more than 2 GiB


class Parts:
    def __init__(self, parts: List[RawPart], fd: int = -1) -> None:
        self._parts = parts
        self._fd = fd

    def __len__(self) -> int:
        return len(self._parts)

    def length(self, index: int) -> int:
        part = self._parts[index]
        return len(part) if isinstance(part, bytes) else part[1]

    def total(self) -> int:
        return sum(self.length(index) for index in range(len(self._parts)))

    def read_into(self, index: int, buffer: Any) -> None:
        """Fill a buffer of exactly the part's length."""
        part = self._parts[index]
        with memoryview(buffer).cast("B") as view:
            if isinstance(part, bytes):
                view[:] = part
                return
            at, length = part
            done = 0
            while done < length:
                n = os.preadv(self._fd, [view[done : done + READ_MAX]], at + done)
                if n == 0:
                    raise ValueError("its result was cut off")
                done += n

    def bytes(self, index: int) -> bytes:
        part = self._parts[index]
        if isinstance(part, bytes):
            return part
        at, length = part
        if length <= READ_MAX:
            read = os.pread(self._fd, length, at)  # to its place at once
            if len(read) == length:
                return read
        room = bytearray(length)
        self.read_into(index, room)
        return bytes(room)

    def text(self, index: int) -> str:
        return self.bytes(index).decode("utf-8", "surrogatepass")

    def close(self) -> None:
        fd, self._fd, self._parts = self._fd, -1, []
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        if self._fd >= 0:
            self.close()
