# SPDX-License-Identifier: MIT
"""A toolbox: Python functions and manifests, each call in a box of its own.

The registry, the check of arguments and results, and the bounds on calls are those of libcallbox
(libcallbox-tools(3)). A Python function is a manifest whose server is an interpreter that has been
started ahead (_interpreter.py)."""

from __future__ import annotations

import collections
import json
import os
import reprlib
import sys
import threading
from typing import TYPE_CHECKING, Any, Callable, Deque, Dict, Iterable, List, Mapping, NamedTuple
from typing import Optional, Tuple, Union

from . import _channel, _eager, _kinds
from ._arguments import LARGE, is_large, to_json
from ._drive import Listeners, OnBytes, OnLog, OnProgress, afinish, aside, finish
from ._drive import checked_policy, its_turn, limits_to_spec, listeners_of, size_of, start_within, to_bytes
from ._error import CallboxError
from ._interpreter import Surroundings, find_modules, start_of
from ._interpreter import program as interpreter
from ._late import Late, datetime
from ._native import Warden, default_warden, functions_program, native
from ._policy import Policy
from ._report import Report
from ._tool import Tool

if TYPE_CHECKING:
    from . import _values
    from ._callbox import Call, RawReport
else:
    _values = Late(f"{__package__}._values")

CHANGES_MAX = 4096


class Mistake(NamedTuple):
    """In the arguments, or in a result that breaks the tool's own promise."""

    path: str
    keyword: str
    text: str


class Change(NamedTuple):
    """kind: "added", "removed", "updated" or "broken"; text says what is wrong with a manifest."""

    kind: str
    tool: str
    file: str
    text: str


class Typed(NamedTuple):
    """How the result of a function is read: the classes it may have, and its bytes at most."""

    hinted: Optional[_values.Hinted]
    limit: int

    @classmethod
    def of(cls, policy: Mapping[str, Any], classes: Iterable[type] = ()) -> Typed:
        """By an effective policy, in which sizes are numbers or have a unit: "16M"."""
        size = size_of(str(policy["limits"]["result"])) or 0
        found = tuple(classes)
        return cls(_values.Hinted(found) if found else None, int(size))


class _Short(reprlib.Repr):
    """Of a large value only so much as is shown. asyncio asks for the repr of what a task returns."""

    def repr_bytes(self, value: Any, level: int) -> str:
        return repr(value[:40]) + ("..." if len(value) > 40 else "")

    repr_bytearray = repr_bytes

    def repr_int(self, value: Any, level: int) -> str:
        bits = value.bit_length()
        return repr(value) if bits <= 256 else f"<int of {bits} bits>"  # Python prints no more than so many

    def repr_instance(self, value: Any, level: int) -> str:
        small = value is None or isinstance(value, (bool, float, complex, datetime.date, os.PathLike))
        return repr(value) if small else f"{type(value).__name__}(...)"


NOTHING = (False, None, False, None, None)
UNREADABLE = "its result is none that callbox knows"


class Result:
    """What came of the call of a tool. `ok`: it did what it promises, and `output` is its result.
    Else `error` says why not; or it was `denied` something, and `reason` says what. `traceback` is
    that of a Python function, from its own code on. `notes` say what of `output` is not of the class that
    the function returned."""

    def __init__(
        self, name: str, call_id: str, report: Report, typed: Optional[Typed] = None, *, patient: bool = False
    ) -> None:
        self.tool = name
        self.call_id = call_id
        self.report = report
        self.ok, self.error, self.denied, self.reason, text = report._told or NOTHING
        self.output: Any = None
        self.text: str = text or ""
        self.traceback = ""
        self.notes: List[str] = []
        self.unreadable = False  # its result, which it says itself is one
        self.mistakes: List[Mistake] = []
        if not self.ok and report._told:
            self.mistakes = [
                Mistake(item["path"], item["keyword"], item["text"])
                for item in report.json["tool"].get("mistakes") or []
            ]
        if typed and self.error is not None:
            self.text, self.traceback = "", self.text
        if self.ok:
            self._read_output(report, typed, patient)
        report._output = None
        report._parts.close()

    def _read_output(self, report: Report, typed: Optional[Typed], patient: bool) -> None:
        parts = report._parts
        text = report._output
        try:
            if len(parts):
                text = parts.text(0)
            if text is not None:
                self.output = _values.loads(
                    text,
                    parts,
                    typed.hinted if typed else None,
                    typed=typed is not None,
                    patient=patient and len(text) > LARGE,
                    limit=typed.limit if typed else 0,
                    notes=self.notes,
                )
        except (ValueError, RecursionError) as error:
            self.ok, self.unreadable = False, True
            self.error = f"{UNREADABLE}: {error}"

    @property
    def stdout(self) -> str:
        return self.report.stdout

    @property
    def stderr(self) -> str:
        return self.report.stderr

    @property
    def duration(self) -> float:
        """Seconds, from the start of the box to its end."""
        return self.report.setup_time + self.report.run_time

    def __repr__(self) -> str:
        said = f"ok, {_Short().repr(self.output)}" if self.ok else self.error or self.reason
        return f"<Result of {self.tool}: {said}>"


class Toolbox:
    """Tools by name. `policy` is that of tools that have none of their own; `manifests` a directory
    of manifests (*.json) to load and follow; `modules` are loaded before there is a call, for functions
    that are not in a module which imports them; `calls` bounds the calls that run at once. It may be
    used from many threads. In a box, where the module of a tool is loaded again, it stays empty."""

    def __init__(
        self,
        tools: Iterable[Union[Tool, Callable[..., Any]]] = (),
        *,
        policy: Optional[Policy] = None,
        manifests: Union[None, str, "os.PathLike[str]"] = None,
        policies: Union[None, str, "os.PathLike[str]"] = None,
        modules: Iterable[str] = (),
        calls: int = 0,
        warden: Optional[Warden] = None,
    ) -> None:
        self.policy = checked_policy(policy) or Policy()
        self._typed: Dict[str, Typed] = {}
        self._around: Dict[str, Tuple[Dict[str, Any], Surroundings]] = {}
        self._changes: Deque[Change] = collections.deque(maxlen=CHANGES_MAX)
        self._lock = threading.Lock()
        self._follows = False  # a directory
        self._has_changed = False
        if _channel.boxed:
            return
        if policies is not None or manifests is not None:
            _eager.load(_eager.ALL)  # what those let boxes write to is not looked at
        self._modules = find_modules(modules)
        self._warden = warden or default_warden()
        self._native = native.Toolbox(
            self._warden._native,
            policy=self.policy._for_use(),
            policies=None if policies is None else os.fspath(policies),
            calls=calls,
            server=functions_program(),
            python=interpreter() if sys.executable else None,
        )
        for item in tools:
            self.add(item)
        if manifests is not None:
            self.load(manifests)

    # ---- Tools ----

    def add(self, thing: Union[Tool, Callable[..., Any], Mapping[str, Any]]) -> None:
        """Add a function, a Tool, or a manifest as a dict; one of the same name is replaced."""
        if _channel.boxed:
            return
        self._has_changed = True
        if isinstance(thing, Mapping):
            _eager.load(_eager.ALL)
            self._native.add(json.dumps(thing))
            self._typed.pop(thing["name"], None)
            self._around.pop(thing["name"], None)
            return
        item = Tool.of(thing)
        policy = checked_policy(item.policy) or self.policy
        start = start_of(item.function, item.name, self._modules, policy._workspace() or "")
        around = Surroundings(policy, start.show)
        manifest: Dict[str, Any] = {**item.describe(), "run": start.run()}
        if item.calls:
            manifest["calls"] = item.calls
        try:
            self._add(manifest, around)
        except CallboxError as error:
            where = f"{item.name}: {error.where}" if error.where else item.name
            raise CallboxError(error.text, where, error.hint, error.code) from None
        self._typed[item.name] = Typed.of(around.policy.to_dict(), _kinds.result_classes(item.function))

    def _add(self, manifest: Dict[str, Any], around: Surroundings) -> None:
        """With a policy that is kept as its surroundings ask for."""
        self._native.add(json.dumps(manifest), around.native)
        self._around[manifest["name"]] = (manifest, around)
        self._has_changed = True

    def _look_around(self, name: str) -> None:
        """Before a call: the policy of its tool, as it has to be now."""
        known = self._around.get(name)
        if known is None or known[1].is_current():
            return
        with self._lock:
            manifest, around = known
            if around.look():
                self._add(manifest, around)

    def load(self, directory: Union[str, "os.PathLike[str]"]) -> None:
        """Add every manifest of a directory, and follow its changes."""
        self._look()
        _eager.load(_eager.ALL)
        self._follows = True
        self._native.load(os.fspath(directory))

    def remove(self, name: str) -> bool:
        """Whether there was one."""
        self._look()
        self._typed.pop(name, None)
        self._around.pop(name, None)
        self._has_changed = True
        return bool(self._native.remove(name))

    def list_tools(self, query: Optional[str] = None) -> List[Dict[str, Any]]:
        """Those whose name or description holds the query, in the shape of MCP."""
        self._look()
        tools: List[Dict[str, Any]] = json.loads(self._native.list(query))
        return tools

    def changes(self) -> List[Change]:
        """What has changed since the last time, also in the directories that were loaded."""
        self._look()
        found: List[Change] = []
        while self._changes:
            found.append(self._changes.popleft())
        return found

    def _look(self) -> None:
        if _channel.boxed:
            raise CallboxError("there are no boxes in a box", "toolbox")
        with self._lock:
            self._has_changed = False
            while True:
                event = self._native.step()
                if event is None:
                    return
                kind, name, file, text = event
                if file and kind in ("added", "updated"):  # then it is no function any more
                    self._typed.pop(name, None)
                    self._around.pop(name, None)
                self._changes.append(Change(kind, name, file, text or ""))

    # ---- Calls ----

    def _start(
        self,
        name: str,
        arguments: Optional[Mapping[str, Any]],
        call_id: str,
        timeout: Optional[float],
        limits: Optional[Mapping[str, Any]],
        explain: bool,
        listeners: Listeners,
        patient: bool = False,
    ) -> Call:
        spec: Dict[str, Any] = {**listeners.modes(), **limits_to_spec(limits, timeout), "raw": 1}
        if call_id:
            spec["id"] = to_bytes(call_id)
        if explain:
            spec["explain"] = 1
        if self._follows or self._has_changed or _channel.boxed:
            self._look()
        self._look_around(name)
        text = to_json({} if arguments is None else arguments, patient)
        call: Call = start_within(timeout, self._native.start, name, text, spec)
        _eager.load(_eager.RESULT)
        return call

    async def call(
        self,
        name: str,
        arguments: Optional[Mapping[str, Any]] = None,
        *,
        call_id: str = "",
        timeout: Optional[float] = None,
        limits: Optional[Mapping[str, Any]] = None,
        explain: bool = False,
        on_progress: Optional[OnProgress] = None,
        on_log: Optional[OnLog] = None,
        on_output: Optional[OnBytes] = None,
        on_errors: Optional[OnBytes] = None,
    ) -> Result:
        """Call a tool. Whatever comes of it is a Result: also an unknown tool, and arguments that
        are wrong. Cancelling the task ends the call."""
        listeners = listeners_of(on_output, on_errors, on_progress, on_log)
        typed = self._typed.get(name)
        particulars = (name, arguments, call_id, timeout, limits, explain, listeners)
        if is_large(arguments):  # the loop goes on while they are written and checked
            call = await aside(self._start, *particulars, True)
        else:
            await its_turn()
            call = self._start(*particulars)

        def make(raw: RawReport) -> Result:
            return Result(name, call_id, Report(raw), typed, patient=True)

        return await afinish(call, listeners, make)

    def call_sync(
        self,
        name: str,
        arguments: Optional[Mapping[str, Any]] = None,
        *,
        call_id: str = "",
        timeout: Optional[float] = None,
        limits: Optional[Mapping[str, Any]] = None,
        explain: bool = False,
        on_progress: Optional[OnProgress] = None,
        on_log: Optional[OnLog] = None,
        on_output: Optional[OnBytes] = None,
        on_errors: Optional[OnBytes] = None,
    ) -> Result:
        """The same, waiting for the end."""
        listeners = listeners_of(on_output, on_errors, on_progress, on_log)
        typed = self._typed.get(name)
        call = self._start(name, arguments, call_id, timeout, limits, explain, listeners)
        return finish(call, listeners, lambda raw: Result(name, call_id, Report(raw), typed))
