# SPDX-License-Identifier: MIT
"""Source text in a box: the code interpreter of an agent. _code_box.py is the other side."""

from __future__ import annotations

import base64
import keyword
import os
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple, Union

from . import _values
from ._drive import OnBytes, content_bytes, policy_for
from ._error import CallboxError
from ._interpreter import Surroundings, find_modules, library_path, serve
from ._names import checked_artifacts, checked_left_out, plain_text, why_not
from ._native import Warden
from ._policy import Policy
from ._report import Report
from ._toolbox import Result, Toolbox, Typed

ARTIFACT_BYTES = 8 << 20
MAYBE_TEXT = (str, type(None))
TOLD: Dict[str, Any] = {
    "result": object,
    "text": MAYBE_TEXT,
    "error": MAYBE_TEXT,
    "traceback": MAYBE_TEXT,
    "artifacts": (dict, type(None)),
    "left_out": (list, type(None)),
}
NAME = "python"


class CodeResult:
    """`result` is the value of the last expression, `text` the same as the interpreter would print
    it: there is no result, but a text, of a value that cannot leave the box. `artifacts` are the
    files that the code has written to ./out, by their names; `left_out` names those for which there
    was no room. `error` says why it failed, `traceback` where; `notes` what of the result is plainer than it was."""

    def __init__(self, told: Result) -> None:
        self.report: Report = told.report
        self.result: Any = None
        self.text = ""
        self.error: Optional[str] = None if told.ok else plain_text(told.error or told.reason or "")
        self.traceback: str = plain_text(told.traceback)
        self.artifacts: Dict[str, bytes] = {}
        self.left_out: List[str] = []
        self.notes = told.notes
        if told.ok:
            try:
                self._read(told.output)
            except ValueError as error:
                self.error = f"its result is none that callbox knows: {error}"
        self.ok = told.ok and self.error is None

    def _read(self, given: Any) -> None:
        """What code says of itself: it can say anything, by writing to the result channel on its own."""
        if not isinstance(given, dict) or not given.keys() <= TOLD.keys():
            raise ValueError("it is not what is told of code")
        for name, types in TOLD.items():
            if not isinstance(given.get(name), types):
                raise ValueError(f"its {name} cannot be one")
        artifacts = checked_artifacts(given.get("artifacts") or {})
        left_out = checked_left_out(given.get("left_out") or [])
        self.result = given.get("result")
        self.error = plain_text(given["error"]) if given.get("error") is not None else None
        self.text, self.traceback = plain_text(given.get("text") or ""), plain_text(given.get("traceback") or "")
        self.artifacts, self.left_out = artifacts, left_out

    @property
    def stdout(self) -> str:
        return self.report.stdout

    @property
    def stderr(self) -> str:
        return self.report.stderr

    def __repr__(self) -> str:
        return f"<CodeResult {self.text if self.ok else self.error}>"


def _files(files: Mapping[str, Union[str, bytes]]) -> Dict[str, str]:
    """Names stay below the directory in which the code runs."""
    given = {}
    for name, content in files.items():
        plain = os.path.normpath(name) if name else ""
        if why_not(plain):
            raise CallboxError(
                "the name leads out of the directory of the code", f"files[{name!r}]", "name it file.txt"
            )
        raw = content_bytes(content, f"files[{name!r}]")
        given[plain] = base64.b64encode(raw).decode()
    return given


def _inputs(inputs: Mapping[str, Any]) -> str:
    """As typed JSON. Their names are variables of the code."""
    for name in inputs:
        if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
            raise ValueError(f"inputs: {name!r} cannot be the name of a variable")
    try:
        return _values.dumps(dict(inputs), "inputs", inward=True)
    except _values.NotAValue as error:
        where, _, text = str(error).partition(": ")
        raise CallboxError(text, where) from None


def _prepare(
    code: str,
    inputs: Optional[Mapping[str, Any]],
    files: Optional[Mapping[str, Union[str, bytes]]],
    policy: Optional[Policy],
    timeout: Optional[float],
    artifact_bytes: int,
    modules: Iterable[str],
    warden: Optional[Warden],
) -> Tuple[Toolbox, Dict[str, Any]]:
    if not isinstance(code, str):
        raise TypeError(f"code must be a text, not {type(code).__name__}")
    given = _inputs(inputs or {})
    # Code that somebody else has written finds what is installed, not what the program has beside it.
    path = library_path()
    found = find_modules(modules, path)
    start = serve("callbox._code_box", '{"code": true}', path=path, modules=found)
    box = Toolbox(policy=policy_for(policy, timeout), warden=warden)
    around = Surroundings(box.policy, start.show)
    box._add({"name": NAME, "inputSchema": {"type": "object"}, "run": start.run()}, around)
    box._typed[NAME] = Typed.of(around.policy.to_dict())
    arguments = {
        "code": code,
        "inputs": given,
        "files": _files(files or {}),
        "artifact_bytes": artifact_bytes,
    }
    return box, arguments


def run_python(
    code: str,
    inputs: Optional[Mapping[str, Any]] = None,
    files: Optional[Mapping[str, Union[str, bytes]]] = None,
    *,
    policy: Optional[Policy] = None,
    timeout: Optional[float] = None,
    limits: Optional[Mapping[str, Any]] = None,
    artifact_bytes: int = ARTIFACT_BYTES,
    modules: Iterable[str] = (),
    on_output: Optional[OnBytes] = None,
    on_errors: Optional[OnBytes] = None,
    warden: Optional[Warden] = None,
) -> CodeResult:
    """Run source text in a box. `inputs` are variables that it finds, `files` are written into the
    empty directory in which it starts, and what it writes to ./out comes back. `modules` are loaded
    before there is a call."""
    box, arguments = _prepare(code, inputs, files, policy, timeout, artifact_bytes, modules, warden)
    return CodeResult(
        box.call_sync(
            NAME,
            arguments,
            timeout=timeout,
            limits=limits,
            on_output=on_output,
            on_errors=on_errors,
        )
    )


async def arun_python(
    code: str,
    inputs: Optional[Mapping[str, Any]] = None,
    files: Optional[Mapping[str, Union[str, bytes]]] = None,
    *,
    policy: Optional[Policy] = None,
    timeout: Optional[float] = None,
    limits: Optional[Mapping[str, Any]] = None,
    artifact_bytes: int = ARTIFACT_BYTES,
    modules: Iterable[str] = (),
    on_output: Optional[OnBytes] = None,
    on_errors: Optional[OnBytes] = None,
    warden: Optional[Warden] = None,
) -> CodeResult:
    """As run_python(), on the running event loop. Cancelling it ends the call."""
    box, arguments = _prepare(code, inputs, files, policy, timeout, artifact_bytes, modules, warden)
    return CodeResult(
        await box.call(
            NAME,
            arguments,
            timeout=timeout,
            limits=limits,
            on_output=on_output,
            on_errors=on_errors,
        )
    )
