# SPDX-License-Identifier: MIT
"""Functions of an agent, called in boxes. The drop-ins are this, and their own words for what came
of a call.

There is one toolbox for each set of calls, with one entry for each module that functions come from:
its boxes have the module loaded before there is a call. How many calls run at once is bounded; the
time of a call begins when its box does."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import os
import signal
import struct
import sys
import threading
import weakref
from typing import TYPE_CHECKING, Any, AsyncIterator, Callable, Dict, List, Mapping
from typing import Optional, Set, Tuple

from .. import _channel, _eager, _kinds
from .._drive import Listeners, afinish, finish, to_bytes
from .._error import CallboxError
from .._interpreter import Start, Surroundings, add_to_policy, program, serve
from .._late import Late, asyncio
from .._native import native
from .._places import shows_too_much
from .._policy import Policy
from .._report import Report
from .._toolbox import UNREADABLE, Result, Toolbox, Typed
from . import _box
from ._hints import hint_for
from ._pack import NotSendable, Packed, Place, is_plain, pack, place_of
from ._trio import on_asyncio

if TYPE_CHECKING:
    from .. import _values
    from .._callbox import Call, Event
else:
    _values = Late(f"{_channel.__package__}._values")

log = logging.getLogger("callbox.compat")

OnReport = Callable[[str, str, Report], Any]

SERVER = os.path.realpath(_box.__file__)
ALSO = [_box.__name__]
AHEAD = ["pickle"]
LINE = json.dumps({"name": f"{_box.__name__}:{_box.call.__name__}"})
RESULT_MAX = "256M"
WALL_MAX = 1e9  # seconds; a longer time is as good as none
FROM_FD = 1  # CBX_FROM_FD
FRAMES = (_channel.RESULT, _channel.TEXT, _channel.ERROR, _channel.DONE)
FRAMES_MAX = 1_000_000
SAID_ROOM = 1 << 20  # bytes that come besides a result: what was raised, and where
WARNED_MAX = 1000  # warnings; a box chooses some of their words
STDERR_MAX = 1000  # characters of it, in an error
SAID_MAX = 2000  # characters of what a tool has printed, in a log
ENDED = "the function ended its process instead of returning"  # as libcallbox says it


@dataclasses.dataclass
class Outcome:
    """`state`: "returned", with a value; "raised", with the name of the exception's class and its
    text; "unsendable", "unreadable" (its result is none that can leave a box, or was none), "timeout", "denied",
    "unmade" (there was no box) or "ended", with a text that says why or how."""

    state: str
    value: Any = None
    kind: str = ""
    text: str = ""
    traceback: str = ""
    report: Optional[Report] = None
    notes: List[str] = dataclasses.field(default_factory=list)  # of a value that is not quite what was returned

    @property
    def status(self) -> int:
        """As subprocess has it: below 0 for a signal."""
        if self.report is None or self.report.reason not in ("exited", "signaled"):
            return -int(signal.SIGKILL)
        if self.report.signal:
            found = signal.Signals.__members__.get(self.report.signal, signal.SIGKILL)
            return -int(found)
        return self.report.code or 0

    @property
    def said(self) -> str:
        """The end of what a tool has written to stderr."""
        return self.report.stderr.strip()[-STDERR_MAX:] if self.report else ""

    @property
    def how(self) -> str:
        """Of a process that has failed what it said, which is the contract; else why it was ended, too."""
        if self.said and self.report and self.report.reason == "exited" and self.report.code:
            return self.said
        return " ".join(filter(None, (self.text, "" if self.said in self.text else self.said)))

    @property
    def milliseconds(self) -> Optional[float]:
        if self.report is None or self.report.reason == "setup":
            return None
        return (self.report.setup_time + self.report.run_time) * 1000


def policy_with(base: Optional[Policy], change: Callable[[Dict[str, Any]], None]) -> Policy:
    """A policy, after a change of its JSON form. The default one, unless there is a base, keeps larger
    results than others: ancestors had no bound."""
    if base is not None and not isinstance(base, Policy):
        raise TypeError(f"policy must be a callbox.Policy, not {base!r}")
    base = base or Policy(limits={"result": RESULT_MAX})
    if _channel.boxed:
        return base
    document = base.to_dict()
    change(document)
    return base._with(document)


def wall(seconds: float) -> float:
    return min(seconds, WALL_MAX)


# ---- What came of it ----


def _said_by_box(error: str, traceback: str, report: Report) -> Outcome:
    """An exception, as _serve.py tells of it."""
    kind, _, text = error.partition(": ")
    if kind == "NotAValue":
        return Outcome("unreadable", text=text, report=report)
    return Outcome("raised", kind=kind, text=text, traceback=traceback, report=report)


def _not_set_up(report: Report) -> Outcome:
    told = report.json.get("error") or {}
    error = CallboxError(told.get("text") or report.text, told.get("where") or "", told.get("hint") or "")
    return Outcome("unmade", text=f"its box could not be made: {error}", report=report)


def outcome_of(result: Result) -> Outcome:
    report = result.report
    if result.ok:
        return Outcome("returned", value=result.output, report=report, notes=result.notes)
    if report.reason == "setup":
        return _not_set_up(report)
    if report.reason == "timeout":
        return Outcome("timeout", text=report.text, report=report)
    if result.denied:
        return Outcome("denied", text=result.reason or "", report=report)
    if result.unreadable:
        return Outcome("unreadable", text=result.error or "", report=report)
    if result.traceback and result.error:
        return _said_by_box(result.error, result.traceback, report)
    return Outcome("ended", text=result.error or report.text, report=report)


class _Channel(Listeners):
    """What comes on the result channel of a call that was not made through a toolbox: nothing is kept of
    more than a result may have."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self.data = bytearray()
        self.room = limit + SAID_ROOM

    def tell(self, event: Event) -> None:
        if event[0] == native.EVENT_RESULT:
            self.room -= len(event[1])
            self.data += event[1]
            if self.room < 0:
                self.data.clear()

    def frames(self) -> Dict[int, bytes]:
        """The last of each kind that counts, as far as they are whole; none where there are too many."""
        found: Dict[int, Tuple[int, int]] = {}
        at, number = 0, 0
        while at + 8 <= len(self.data) and number <= FRAMES_MAX:
            length, kind = struct.unpack_from("=II", self.data, at)
            at, number = at + 8 + length, number + 1
            if at > len(self.data):
                break
            if kind in FRAMES:
                found[kind] = (at - length, at)
        if number > FRAMES_MAX:
            return {}
        return {kind: bytes(self.data[begin:end]) for kind, (begin, end) in found.items()}


Classes = Tuple[type, ...]


def _outcome_of_large(report: Report, frames: Dict[int, bytes], classes: Classes) -> Outcome:
    """Of a call with a large request."""
    if report.reason == "setup":
        return _not_set_up(report)
    if report.reason == "timeout":
        return Outcome("timeout", text=report.text, report=report)
    if _channel.ERROR in frames:
        traceback = frames.get(_channel.TEXT, b"").decode("utf-8", "replace")
        return _said_by_box(frames[_channel.ERROR].decode("utf-8", "replace"), traceback, report)
    if _channel.DONE in frames and _channel.RESULT in frames and report.ok:
        notes: List[str] = []
        try:
            text = frames[_channel.RESULT].decode()
            value = _values.loads(text, None, _values.Hinted(classes), limit=len(text), notes=notes)
        except ValueError as wrong:
            return Outcome("unreadable", text=f"{UNREADABLE}: {wrong}", report=report)
        return Outcome("returned", value=value, report=report, notes=notes)
    if report.json.get("result", {}).get("truncated"):
        return Outcome("ended", text="its result is too large (limits.result)", report=report)
    said = "" if report.ok else f": {report.text}"
    return Outcome("ended", text=f"{ENDED}{said}", report=report)


# ---- Calls ----


def _start_of(place: Place) -> Tuple[Start, str]:
    """How an interpreter is started that has loaded a module and this side of it, and its CONFIG."""
    start = serve(place.module, LINE, place.file)
    at = next(number for number, word in enumerate(start.argv) if word.startswith("{"))
    config = json.dumps({**json.loads(start.argv[at]), "also": ALSO, "ahead": AHEAD}, sort_keys=True)
    return start._replace(argv=[*start.argv[:at], config, *start.argv[at + 1 :]]), config


class Calls:
    """`calls`: how many run at once; 0: four for each processor, at least eight."""

    def __init__(
        self,
        policy: Policy,
        *,
        calls: int = 0,
        as_json: bool = False,
        on_report: Optional[OnReport] = None,
    ) -> None:
        self.policy = policy
        self.bound = calls or max(8, 4 * (os.cpu_count() or 1))
        self.as_json = as_json
        self.on_report = on_report
        self._place = None if _channel.boxed else policy._workspace()
        self._network = "" if _channel.boxed else str(policy.to_dict()["network"])
        self._limit = 0 if _channel.boxed else Typed.of(policy.to_dict()).limit
        self._warned: Set[Tuple[str, str]] = set()
        self._renew()

    def _renew(self) -> None:
        """Nothing yet. In a forked child what the parent had is of no use, nor its lock."""
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._box: Optional[Toolbox] = None
        self._entries: Dict[Tuple[Any, ...], str] = {}
        self._hinted: weakref.WeakKeyDictionary[Any, Classes] = weakref.WeakKeyDictionary()
        self._slots = threading.BoundedSemaphore(self.bound)
        self._loop_slots: weakref.WeakKeyDictionary[Any, asyncio.Semaphore] = weakref.WeakKeyDictionary()

    def _classes(self, function: Callable[..., Any]) -> Classes:
        """Those that its result may have, by its hints."""
        try:
            if function not in self._hinted:
                self._hinted[function] = tuple(_kinds.result_classes(function))
            return self._hinted[function]
        except TypeError:  # there are no weak references to it, or no hash of it
            return tuple(_kinds.result_classes(function))

    def _key(self, place: Place, classes: Classes) -> Tuple[Any, ...]:
        return (place.module, place.file, classes, *sys.path)

    def _known(self, place: Place, classes: Classes) -> Optional[Tuple[Toolbox, str]]:
        """The entry for a module, with the search path of now, if there is one."""
        if self._pid != os.getpid():
            self._renew()
        entry = self._entries.get(self._key(place, classes))
        return (self._box, entry) if self._box and entry else None

    def _enter(self, place: Place, classes: Classes) -> Tuple[Toolbox, str]:
        """The same; it is made where there is none."""
        known = self._known(place, classes)
        if known:
            return known
        with self._lock:
            key = self._key(place, classes)
            if self._box is None:
                self._box = Toolbox(policy=self.policy)
            if key not in self._entries:
                name = f"calls-{len(self._entries)}"
                start, _ = _start_of(place)
                around = Surroundings(self.policy, start.show)
                manifest = {"name": name, "inputSchema": {"type": "object"}, "run": start.run()}
                self._box._add(manifest, around)
                self._box._typed[name] = Typed.of(around.policy.to_dict(), classes)
                self._entries[key] = name
            return self._box, self._entries[key]

    def _request(self, packed: Packed) -> Dict[str, Any]:
        """A call starts in the workspace; without one where the agent is, if that can be seen."""
        try:
            cwd = self._place or os.getcwd()
        except OSError:  # it was removed
            cwd = "/tmp"
        return {**packed.part, "cwd": cwd, "json": self.as_json}

    def _start_large(self, place: Place, packed: Packed, call_id: str) -> Call:
        """With its request on stdin. The toolbox has bounds for arguments that are JSON."""
        assert packed.file is not None
        with packed.file as file:
            box, _ = self._enter(place, ())
            start, config = _start_of(place)
            words = [program(), "-I", "-B", SERVER, config]
            spec: Dict[str, Any] = {
                "argv": tuple(to_bytes(word) for word in (*words, json.dumps(self._request(packed)))),
                "input_mode": FROM_FD,
                "input_fd": file.fileno(),
                "result_mode": native.RESULT_EVENTS,
            }
            if call_id:
                spec["id"] = to_bytes(call_id)
            policy = add_to_policy(self.policy, start.show)
            call: Call = box._warden._native.start(policy._for_use(), spec)
            _eager.load(_eager.RESULT)
            return call

    def _tell(self, name: str, function: Callable[..., Any], call_id: str, outcome: Outcome) -> Outcome:
        report = outcome.report
        if report is None:
            return outcome
        for stream, said in (("stdout", report.stdout), ("stderr", report.stderr)):
            if said and log.isEnabledFor(logging.DEBUG):
                log.debug("tool %s wrote to %s: %r", name, stream, said[:SAID_MAX])
        for note in outcome.notes:
            self._warn(name, note, f"{name!r} returned something else: {note}")
        if outcome.state == "raised":
            self._hint(name, function, outcome.text)
        if self.on_report:
            self.on_report(name, call_id, report)
        return outcome

    def _hint(self, name: str, function: Callable[..., Any], text: str) -> None:
        file = place_of(function).file
        alone = file is not None and shows_too_much(os.path.dirname(os.path.realpath(file)))
        hint = hint_for(text, self._network, alone)
        if hint:
            self._warn(name, hint[0], f"{name} failed in its box: {hint[1]}")

    def _warn(self, name: str, kind: str, text: str) -> None:
        """Once for each tool and kind."""
        if (name, kind) not in self._warned and len(self._warned) < WARNED_MAX:
            self._warned.add((name, kind))
            log.warning("tool %s (docs/migrating.md)", text)

    def call(
        self, name: str, function: Callable[..., Any], arguments: Mapping[str, Any], call_id: str = ""
    ) -> Outcome:
        """Waits for the end. Ctrl-C ends the call, and is raised."""
        call_id = _good_id(call_id)
        with self._slots:
            try:
                place, classes = place_of(function), self._classes(function)
                packed = pack(place, function, arguments, is_plain(arguments))
                if packed.file:
                    call = self._start_large(place, packed, call_id)
                    channel = _Channel(self._limit)
                    report = finish(call, channel, Report)
                    outcome = _outcome_of_large(report, channel.frames(), classes)
                else:
                    box, entry = self._enter(place, classes)
                    request = {"request": self._request(packed)}
                    outcome = outcome_of(box.call_sync(entry, request, call_id=call_id))
            except NotSendable as error:
                outcome = Outcome("unsendable", text=str(error))
            except CallboxError as error:
                outcome = Outcome("unmade", text=f"its box could not be made: {error}")
        return self._tell(name, function, call_id, outcome)

    @contextlib.asynccontextmanager
    async def _slot(self) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        slots = self._loop_slots.get(loop)
        if slots is None:
            slots = self._loop_slots[loop] = asyncio.Semaphore(self.bound)
        async with slots:
            yield

    async def acall(
        self, name: str, function: Callable[..., Any], arguments: Mapping[str, Any], call_id: str = ""
    ) -> Outcome:
        """On the running event loop, trio's too. Cancelling it ends the call. What may take long is done in a
        thread: the first call for a module, and making a pickle."""
        outcome = await on_asyncio(self._acall_slotted(function, arguments, _good_id(call_id)))
        return self._tell(name, function, _good_id(call_id), outcome)

    async def _acall_slotted(
        self, function: Callable[..., Any], arguments: Mapping[str, Any], call_id: str
    ) -> Outcome:
        async with self._slot():
            try:
                return await self._acall(function, arguments, call_id)
            except NotSendable as error:
                return Outcome("unsendable", text=str(error))
            except CallboxError as error:
                return Outcome("unmade", text=f"its box could not be made: {error}")

    async def _acall(
        self, function: Callable[..., Any], arguments: Mapping[str, Any], call_id: str
    ) -> Outcome:
        place, classes, plain = place_of(function), self._classes(function), is_plain(arguments)
        if place.name and plain:
            packed = pack(place, function, arguments, plain)
        else:
            packed = await asyncio.to_thread(pack, place, function, arguments, plain)
        if packed.file:
            # The thread closes the file, so that nobody who is cancelled takes it away from there.
            call = await asyncio.to_thread(self._start_large, place, packed, call_id)
            channel = _Channel(self._limit)
            report = await afinish(call, channel, Report)
            return await asyncio.to_thread(
                lambda: _outcome_of_large(report, channel.frames(), classes)
            )
        known = self._known(place, classes)
        box, entry = known if known else await asyncio.to_thread(self._enter, place, classes)
        return outcome_of(await box.call(entry, {"request": self._request(packed)}, call_id=call_id))


def _good_id(call_id: str) -> str:
    """An id that a report can carry; others are the caller's own affair."""
    text = str(call_id)
    return text if text.isprintable() and text.isascii() and len(text) <= 128 else ""


__all__ = ["Calls", "OnReport", "Outcome", "log", "policy_with", "wall"]
