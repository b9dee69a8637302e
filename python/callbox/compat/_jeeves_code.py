# SPDX-License-Identifier: MIT
"""The code executor of loomflow: source text, run by an interpreter in a box."""

from __future__ import annotations

import dataclasses
import os
import sys
import tempfile
from typing import Any, Dict, List, Mapping, Optional, Protocol, Sequence, Tuple, Union
from typing import runtime_checkable

from .._error import CallboxError
from .._inputs import writable
from .._installed import spelled, trees_of, trees_on
from .._interpreter import add_to_policy
from .._late import asyncio
from .._policy import Policy
from .._run import arun
from . import _scratch
from ._calls import Outcome, policy_with, wall
from ._trio import on_asyncio

ENVIRONMENT = (
    "PATH HOME LANG LC_ALL LC_CTYPE TERM TMPDIR USER LOGNAME SHELL TZ SYSTEMROOT SYSTEMDRIVE COMSPEC "
    "PATHEXT WINDIR TEMP TMP USERPROFILE USERNAME"
).split()
# A box has these of its own, or has the caller's anyway.
ALWAYS = frozenset("PATH LANG LC_ALL LC_CTYPE TERM TZ HOME TMPDIR USER LOGNAME SHELL".split())
# These are the box's own, also where somebody passes on all that the agent has.
OF_THE_BOX = ("HOME", "TMPDIR", "USER", "LOGNAME", "SHELL")
OUT = "out"
PYTHON, SHELLS = "python", ("bash", "sh", "shell")
MAIN = {PYTHON: "/run/callbox/main.py", **dict.fromkeys(SHELLS, "/run/callbox/main.sh")}


@dataclasses.dataclass
class ExecResult:
    stdout: str
    stderr: str
    returncode: int
    timed_out: bool = False
    artifacts: Dict[str, bytes] = dataclasses.field(default_factory=dict)


@runtime_checkable
class CodeExecutor(Protocol):
    async def run(
        self,
        code: str,
        *,
        language: str = "python",
        timeout_s: float = 30.0,
        files: Optional[Mapping[str, bytes]] = None,
        env: Optional[Mapping[str, str]] = None,
    ) -> Any: ...


def _cut(head: _scratch.Head) -> str:
    text = head.end()
    return f"{text}\n... (truncated, {head.more} more chars)" if head.more else text


class SubprocessExecutor:
    """Runs code by `python -I`, or by /bin/sh, in an empty directory, or in `cwd`. New and changed files in
    ./out come back, also from a call that ran out of time."""

    result_type: Any = ExecResult

    def __init__(
        self,
        python: str = sys.executable,
        *,
        cwd: Union[None, str, "os.PathLike[str]"] = None,
        env_allowlist: Sequence[str] = tuple(ENVIRONMENT),
        max_output_chars: int = 100_000,
        max_artifact_bytes: int = 16_000_000,
        policy: Optional[Policy] = None,
    ) -> None:
        self._python = spelled(python) if os.path.dirname(python) else python
        self._trees = trees_of(self._python)
        self._cwd = None if cwd is None else _scratch.Directory(os.fspath(cwd))
        self._allowed = tuple(env_allowlist)
        self._output = max_output_chars
        self._artifacts = max_artifact_bytes
        self._policy = policy
        self._pinned: Optional[Policy] = None
        if self._cwd is not None and os.path.isdir(self._cwd.path):
            self._base(self._cwd.path)

    def _base(self, place: str) -> Policy:
        """With its workspace. Where that is the same for all, what is there first holds for all."""

        def change(document: Dict[str, Any]) -> None:
            document["files"]["workspace"] = place

        made = self._pinned or policy_with(self._policy, change)
        if self._cwd is not None:
            self._pinned = made
        return made

    def _policy_for(self, place: str, main: str, language: str, timeout: float) -> Policy:
        def change(document: Dict[str, Any]) -> None:
            document["limits"]["wall"] = wall(timeout)
            document["files"]["read"].append({"host": main, "box": MAIN[language]})
            known = {*document["environment"]["pass"], *document["environment"]["set"], *ALWAYS}
            document["environment"]["pass"] += [name for name in self._allowed if name not in known]

        made = policy_with(self._base(place), change)
        return add_to_policy(made, [*self._trees, *self._trees_for(made, language)])

    def _trees_for(self, policy: Policy, language: str) -> List[str]:
        """What a shell may start of the agent's PATH."""
        path = os.environ.get("PATH", "") if language != PYTHON and "PATH" in self._allowed else ""
        return trees_on(path, writable(policy.to_dict()["files"])) if path else []

    def _words(self, language: str) -> List[str]:
        return [self._python, "-I", "-B", MAIN[PYTHON]] if language == PYTHON else ["/bin/sh", MAIN[language]]

    def _environment(self, env: Mapping[str, str]) -> Dict[str, str]:
        same = [name for name in OF_THE_BOX if env.get(name) == os.environ.get(name)]
        return {name: value for name, value in env.items() if name not in same}

    async def run(
        self,
        code: str,
        *,
        language: str = "python",
        timeout_s: float = 30.0,
        files: Optional[Mapping[str, bytes]] = None,
        env: Optional[Mapping[str, str]] = None,
    ) -> Any:
        if language not in MAIN:
            known = ", ".join(repr(name) for name in MAIN)
            raise ValueError(f"SubprocessExecutor does not run the language {language!r}, only: {known}")
        if not timeout_s > 0:
            raise ValueError("timeout_s must be positive")
        _scratch.check_names(files or {})
        if files and self._cwd is not None:
            protect = (self._policy or Policy()).to_dict()["files"]["protect"]
            _scratch.check_protected(files, protect)
        return await on_asyncio(self._run_in_room(code, language, timeout_s, files or {}, env or {}))

    async def _run_in_room(self, code: str, *particulars: Any) -> Any:
        room = await asyncio.to_thread(tempfile.mkdtemp, prefix="callbox-code-")
        try:
            return await self._run(room, code, *particulars)
        finally:
            await asyncio.to_thread(_scratch.remove, room)

    def _prepare(self, room: str, code: str, files: Mapping[str, bytes]) -> Tuple[str, int]:
        """The directory in which the code starts, and its descriptor."""
        top = _scratch.Directory(room).open()
        try:
            _scratch.put(top, {"main": code})
        finally:
            os.close(top)
        place = self._cwd or _scratch.Directory(os.path.join(room, "work"))
        at = place.open()
        try:
            if self._cwd is not None:
                self._base(place.path)
            _scratch.make_folder(at, OUT)
            _scratch.put(at, files)  # raises for names that lead elsewhere
        except BaseException:
            os.close(at)
            raise
        return place.path, at

    async def _run(
        self,
        room: str,
        code: str,
        language: str,
        timeout_s: float,
        files: Mapping[str, bytes],
        env: Mapping[str, str],
    ) -> Any:
        try:
            place, at = await asyncio.to_thread(self._prepare, room, code, files)
        except CallboxError as error:
            return self.result_type(stdout="", stderr=f"ERROR: {error}", returncode=-1)
        try:
            return await self._run_in(place, at, room, language, timeout_s, env)
        finally:
            os.close(at)

    async def _run_in(
        self, place: str, at: int, room: str, language: str, timeout_s: float, env: Mapping[str, str]
    ) -> Any:
        before = await asyncio.to_thread(_scratch.look, at, OUT)
        output, errors = _scratch.Head(self._output), _scratch.Head(self._output)
        try:
            report = await arun(
                self._words(language),
                policy=self._policy_for(place, os.path.join(room, "main"), language, timeout_s),
                cwd=place,
                environment=self._environment(env),
                on_output=output.add,
                on_errors=errors.add,
            )
        except CallboxError as error:
            return self.result_type(stdout="", stderr=f"ERROR: {error}", returncode=-1)
        found = await asyncio.to_thread(_scratch.take, at, OUT, before, self._artifacts)
        told = Outcome("ended", report=report)
        stderr = _cut(errors)
        if report.reason == "timeout":
            stderr = f"ERROR: process killed after {timeout_s:.1f}s timeout"
        elif report.reason not in ("exited", "signaled"):
            stderr += f"ERROR: {report.text}"
        return self.result_type(
            stdout=_cut(output),
            stderr=stderr,
            returncode=-1 if report.reason == "timeout" else told.status,
            timed_out=report.reason == "timeout",
            artifacts=found,
        )
