# SPDX-License-Identifier: MIT
"""From the start of a call to its report: waiting for it, or letting an event loop do so."""

from __future__ import annotations

import inspect
import math
import os
import re
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional, TypeVar

from . import _eager
from ._arguments import LARGE
from ._error import CallboxError, no_policy
from ._late import asyncio, threads
from ._native import native
from ._policy import Policy
from ._turns import turns_of

if TYPE_CHECKING:
    from ._callbox import Call, Event, RawReport

OnBytes = Callable[[bytes], Any]
OnProgress = Callable[[float, float, str], Any]
OnLog = Callable[[str, str], Any]

AT_ONCE = 0.005  # seconds before the loop gets a turn
SIZES = ("memory", "file_size", "output", "capture", "result")  # limits that are bytes

T = TypeVar("T")


def _check_listener(name: str, listener: Any) -> None:
    if listener is None:
        return
    if not callable(listener):
        raise TypeError(f"{name} must be a function, not {type(listener).__name__}: {listener!r}")
    if inspect.iscoroutinefunction(listener) or inspect.iscoroutinefunction(type(listener).__call__):
        raise TypeError(
            f"{name} is an async function, which nobody would wait for; give a plain one, which may start a task"
        )


class Listeners:
    """Who is told of what, while the call runs."""

    def __init__(
        self,
        on_output: Optional[OnBytes] = None,
        on_errors: Optional[OnBytes] = None,
        on_progress: Optional[OnProgress] = None,
        on_log: Optional[OnLog] = None,
    ) -> None:
        for name, listener in (
            ("on_output", on_output),
            ("on_errors", on_errors),
            ("on_progress", on_progress),
            ("on_log", on_log),
        ):
            _check_listener(name, listener)
        self.on_output = on_output
        self.on_errors = on_errors
        self.on_progress = on_progress
        self.on_log = on_log

    def modes(self) -> Dict[str, Any]:
        """The part of a spec that asks for the events."""
        spec: Dict[str, Any] = {}
        if self.on_output:
            spec["output_mode"] = native.EVENTS
        if self.on_errors:
            spec["errors_mode"] = native.EVENTS
        if self.on_progress or self.on_log:
            spec["result_mode"] = native.RESULT_EVENTS
        return spec

    def tell(self, event: Event) -> None:
        kind, data, done, total, level = event
        if kind == native.EVENT_OUTPUT and self.on_output:
            self.on_output(data)
        elif kind == native.EVENT_ERRORS and self.on_errors:
            self.on_errors(data)
        elif kind == native.EVENT_PROGRESS and self.on_progress:
            self.on_progress(done, total, data.decode("utf-8", "replace"))
        elif kind == native.EVENT_LOG and self.on_log:
            self.on_log(level or "info", data.decode("utf-8", "replace"))


_NOBODY = Listeners()


def listeners_of(
    on_output: Optional[OnBytes],
    on_errors: Optional[OnBytes],
    on_progress: Optional[OnProgress] = None,
    on_log: Optional[OnLog] = None,
) -> Listeners:
    if on_output is None and on_errors is None and on_progress is None and on_log is None:
        return _NOBODY
    return Listeners(on_output, on_errors, on_progress, on_log)


_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)([KMGT]?)")


def size_of(text: str) -> Optional[float]:
    """Bytes of "64K", "256M" or "1.5G", as policies write them; None: it is no size."""
    found = _SIZE.fullmatch(text)
    return float(found[1]) * 1024 ** (" KMGT".index(found[2] or " ")) if found else None


def _above_zero(what: str, value: Any, size: bool = False) -> Any:
    number = size_of(value) if size and isinstance(value, str) else value
    if not isinstance(number, (int, float)) or isinstance(number, bool) or not 0 < number < math.inf:
        wanted = 'a number above 0, or a size such as "256M"' if size else "a finite number above 0"
        raise ValueError(f"{what} must be {wanted}, not {value!r}")
    return int(number) if isinstance(value, str) else number


def limits_to_spec(limits: Optional[Mapping[str, Any]], timeout: Optional[float]) -> Dict[str, Any]:
    """Limits that tighten the policy's; a call has no other ones."""
    if not limits and timeout is None:
        return {}
    names = {
        "wall": "wall_limit",
        "cpu": "cpu_limit",
        "cpus": "cpus_limit",
        "memory": "memory_limit",
        "processes": "process_limit",
        "file_size": "file_size_limit",
        "open_files": "open_files_limit",
        "output": "output_limit",
        "capture": "capture_limit",
        "result": "result_limit",
    }
    spec: Dict[str, Any] = {}
    for name, value in (limits or {}).items():
        if name not in names:
            raise TypeError(f"there is no limit {name!r}; there are: {', '.join(names)}")
        spec[names[name]] = _above_zero(f"the limit {name}", value, name in SIZES)
    if timeout is not None:
        spec["wall_limit"] = _above_zero("timeout", timeout)
    return spec


def content_bytes(content: Any, what: str) -> bytes:
    """Of a text or of bytes, and of nothing else: bytes(3) are three zeros."""
    if isinstance(content, str):
        return content.encode()
    if not isinstance(content, (bytes, bytearray, memoryview)):
        raise TypeError(f"{what} must be str or bytes, not {type(content).__name__}")
    return bytes(content)


def checked_policy(policy: Any) -> Any:
    if policy is not None and not isinstance(policy, Policy):
        raise no_policy(policy)
    return policy


WALL = 30  # seconds that a policy gives unless it says otherwise


def policy_for(policy: Any, timeout: Optional[float]) -> Policy:
    """The policy of a call. Where there is none nobody has bounded the time yet, so the call may say.
    Boxes are kept ready for a policy, and so there are not as many of them as there are timeouts."""
    checked_policy(policy)
    if policy is not None:
        given: Policy = policy
        return given
    if timeout is None or _above_zero("timeout", timeout) <= WALL:
        return Policy()
    return Policy(limits={"wall": WALL * 2 ** math.ceil(math.log2(timeout / WALL))})


_LOOSER = "a call may only tighten its policy"


def start_within(timeout: Optional[float], start: Callable[..., T], *arguments: Any) -> T:
    """Start a call. A limit that its policy does not allow is named as the caller has named it."""
    try:
        return start(*arguments)
    except CallboxError as error:
        if not error.text.startswith(_LOOSER):
            raise
        named = "timeout" if error.where == "wall" and timeout is not None else f"limits.{error.where}"
        value = timeout if named == "timeout" else "..."
        hint = f"give the policy limits={{{error.where!r}: {value}}}"
        raise CallboxError(error.text, named, hint, error.code) from None


def to_bytes(text: Any, what: str = "it") -> bytes:
    if not isinstance(text, (str, bytes, os.PathLike)):
        raise TypeError(f"{what} must be a text or a path, not {type(text).__name__}: {text!r}")
    return os.fsencode(text)


def variable(name: Any, value: Any) -> bytes:
    """Of the environment: NAME=VALUE."""
    if not isinstance(name, str) or "=" in name:
        raise ValueError(f"{name!r} is no name of an environment variable")
    return to_bytes(name) + b"=" + to_bytes(value, f"the environment variable {name}")


_helper: Optional[threads.ThreadPoolExecutor] = None


def _forget() -> None:
    global _helper
    _helper = None


os.register_at_fork(after_in_child=_forget)


def _running_loop() -> asyncio.AbstractEventLoop:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "calls that are awaited need the event loop of asyncio; on another, as trio has it, make those "
            "that are not (run, run_python, call_sync) in a thread: trio.to_thread.run_sync(run, ...)"
        ) from None


async def aside(function: Callable[..., T], *arguments: Any) -> T:
    """Work that would keep an event loop too long, by one thread for all: more of them would contend
    with the loop for the interpreter."""
    global _helper
    if _helper is None:
        _helper = threads.ThreadPoolExecutor(1, "callbox")
    return await _running_loop().run_in_executor(_helper, function, *arguments)


def finish(call: Call, listeners: Listeners, make: Callable[[RawReport], T]) -> T:
    """Wait for the end. Whatever is raised meanwhile, as by Ctrl-C, ends the call."""
    try:
        _eager.load(_eager.REPORT)
        while True:
            event = call.wait()
            if event[0] == native.EVENT_ENDED:
                return make(call.report())
            listeners.tell(event)
    finally:
        call.close()


class _Watch:
    """What an event loop calls when a call has something to tell."""

    def __init__(self, call: Call, listeners: Listeners) -> None:
        self.call = call
        self.fd = call.fileno()
        self.listeners = listeners
        self.loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[float] = self.loop.create_future()  # bytes of the report
        self.over = False
        self.loop.add_reader(self.fd, self.look)

    def close(self) -> None:
        if not self.over:
            self.over = True
            self.loop.remove_reader(self.fd)

    def look(self) -> None:
        if self.over:
            return
        until = time.monotonic() + AT_ONCE
        try:
            while time.monotonic() < until:
                event = self.call.step()
                if event is None:
                    return
                if event[0] == native.EVENT_ENDED:
                    self.close()
                    if not self.ended.done():
                        turns_of(self.loop).settle(self.ended, event[3])
                    return
                self.listeners.tell(event)
        except Exception as error:
            self.close()
            if not self.ended.done():
                self.ended.set_exception(error)
            return
        self.loop.call_soon(self.look)  # there may be more that the descriptor does not tell of


async def its_turn() -> None:
    """To start a call: where many are started at once, the loop goes on between them."""
    await turns_of(_running_loop()).wait()


async def afinish(call: Call, listeners: Listeners, make: Callable[[RawReport], T]) -> T:
    """The same on the running loop, by the call's descriptor. Cancelling it ends the call. A large
    report is read by another thread: the loop goes on meanwhile."""
    watch = _Watch(call, listeners)
    try:
        _eager.load(_eager.REPORT + _eager.LOOP)
        size = await watch.ended
    except BaseException:
        watch.close()
        call.close()
        raise

    def take() -> T:
        try:
            return make(call.report())
        finally:
            call.close()

    return await aside(take) if size > LARGE else take()
