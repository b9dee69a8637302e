# SPDX-License-Identifier: MIT
"""Calls from a program that runs on trio, by itself or under anyio. Boxes are waited for by an asyncio loop, so
that there is one on a thread of its own for such a program, which is started when it is first needed."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, Coroutine, Optional, TypeVar

from .._late import asyncio

T = TypeVar("T")

_lock = threading.Lock()
_loop: Optional[asyncio.AbstractEventLoop] = None


def _forget() -> None:
    global _lock, _loop
    _lock, _loop = threading.Lock(), None


os.register_at_fork(after_in_child=_forget)


def _asyncio_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="callbox-asyncio", daemon=True).start()
        return _loop


def running() -> Any:
    """trio, if it is what runs here."""
    trio = sys.modules.get("trio")
    try:
        return trio if trio is not None and trio.lowlevel.in_trio_run() else None
    except AttributeError:  # one that is older than 0.23, or only half loaded
        return trio if _has_token(trio) else None


def _has_token(trio: Any) -> bool:
    try:
        trio.lowlevel.current_trio_token()
    except Exception:
        return False
    return True


class _Work:
    """A coroutine on the other loop. Whoever waits for it is told when it has ended, however it has."""

    def __init__(self, trio: Any, coroutine: Coroutine[Any, Any, Any]) -> None:
        self.ended = trio.Event()
        self.task: Optional[asyncio.Task[Any]] = None
        self._finished = trio.RunFinishedError
        self._token = trio.lowlevel.current_trio_token()
        self._loop = _asyncio_loop()
        self._loop.call_soon_threadsafe(self._start, coroutine)

    def _start(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self.task = self._loop.create_task(coroutine)
        self.task.add_done_callback(self._tell)

    def _tell(self, _: Any) -> None:
        try:
            self._token.run_sync_soon(self.ended.set)
        except self._finished:
            pass  # nobody waits any more

    def _cancel(self) -> None:
        if self.task is not None:
            self.task.cancel()

    def cancel(self) -> None:
        self._loop.call_soon_threadsafe(self._cancel)  # after _start


async def on_asyncio(coroutine: Coroutine[Any, Any, T]) -> T:
    """Its result, whichever loop runs here. Cancelling it cancels the coroutine, and waits for its end."""
    trio = running()
    if trio is None:
        return await coroutine
    work = _Work(trio, coroutine)
    try:
        await work.ended.wait()
    except BaseException:
        work.cancel()
        with trio.CancelScope(shield=True):
            await work.ended.wait()
        raise
    assert work.task is not None
    return work.task.result()  # type: ignore[no-any-return]
