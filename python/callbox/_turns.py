# SPDX-License-Identifier: MIT
"""Turns of an event loop. Each start and each end of a call takes a part of a millisecond, and where many
come at once the loop has other work too: only so many are done in one turn, in their order."""

from __future__ import annotations

import collections
import weakref
from typing import Any, Deque, MutableMapping, Tuple

from ._late import asyncio

MOST = 16  # starts and ends in one turn


class Turns:
    def __init__(self) -> None:
        self._done = 0  # in this turn
        self._waiting: Deque[Tuple[asyncio.Future[Any], Any]] = collections.deque()

    def _count(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._done == 0:
            loop.call_soon(self._next)
        self._done += 1

    def _next(self) -> None:
        self._done = 0
        while self._waiting and self._done < MOST:
            future, value = self._waiting.popleft()
            if not future.done():  # it may have been cancelled
                self._count(future.get_loop())
                future.set_result(value)

    def settle(self, future: asyncio.Future[Any], value: Any) -> None:
        """Set the result of a future, now or in a later turn."""
        if self._done < MOST and not self._waiting:
            self._count(future.get_loop())
            future.set_result(value)
        else:
            self._waiting.append((future, value))

    async def wait(self) -> None:
        """Until it is one's turn, which may be at once."""
        loop = asyncio.get_running_loop()
        if self._done < MOST and not self._waiting:
            self._count(loop)
        else:
            future: asyncio.Future[Any] = loop.create_future()
            self._waiting.append((future, None))
            await future


_turns: MutableMapping[asyncio.AbstractEventLoop, Turns] = weakref.WeakKeyDictionary()


def turns_of(loop: asyncio.AbstractEventLoop) -> Turns:
    found = _turns.get(loop)
    if found is None:
        found = _turns[loop] = Turns()
    return found
