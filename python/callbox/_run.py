# SPDX-License-Identifier: MIT
"""Calls of programs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Sequence, Union

from ._drive import Listeners, OnBytes, afinish, content_bytes, finish, its_turn
from ._drive import limits_to_spec, listeners_of, policy_for, start_within, to_bytes, variable
from ._error import CallboxError
from ._native import Warden, default_warden
from ._policy import Policy
from ._report import Report

if TYPE_CHECKING:
    from ._callbox import Call

Program = Union[str, Sequence[Union[str, bytes, "os.PathLike[str]"]]]


def _start(
    program: Program,
    listeners: Listeners,
    *,
    policy: Optional[Policy],
    input: Union[None, str, bytes],
    timeout: Optional[float],
    cwd: Union[None, str, "os.PathLike[str]"],
    environment: Optional[Mapping[str, str]],
    limits: Optional[Mapping[str, Any]],
    call_id: str,
    explain: bool,
    warden: Optional[Warden],
) -> Call:
    spec: Dict[str, Any] = {**listeners.modes(), **limits_to_spec(limits, timeout)}
    checked = policy_for(policy, timeout)
    if isinstance(program, str):
        spec["shell"] = to_bytes(program)
    elif isinstance(program, bytes):
        raise TypeError("a program is a shell text (str) or a list of arguments")
    else:
        spec["argv"] = tuple(to_bytes(word, f"argument {n}") for n, word in enumerate(program))
    if input is not None:
        spec["input"] = content_bytes(input, "input")
    if cwd is not None:
        spec["cwd"] = to_bytes(cwd, "cwd")
    if environment:
        spec["environment"] = tuple(variable(*item) for item in environment.items())
    if call_id:
        spec["id"] = to_bytes(call_id)
    if explain:
        spec["explain"] = 1
    start = (warden or default_warden())._native.start
    call: Call = start_within(timeout, start, checked._for_use(), spec)
    return call


def _check(report: Report) -> Report:
    """A call that could not be set up is no result of the program's."""
    if report.reason != "setup":
        return report
    error = report.json.get("error") or {}
    raise CallboxError(
        error.get("text") or report.text, error.get("where") or "", error.get("hint") or ""
    )


def run(
    program: Program,
    *,
    policy: Optional[Policy] = None,
    input: Union[None, str, bytes] = None,
    timeout: Optional[float] = None,
    cwd: Union[None, str, "os.PathLike[str]"] = None,
    environment: Optional[Mapping[str, str]] = None,
    limits: Optional[Mapping[str, Any]] = None,
    call_id: str = "",
    explain: bool = False,
    on_output: Optional[OnBytes] = None,
    on_errors: Optional[OnBytes] = None,
    warden: Optional[Warden] = None,
) -> Report:
    """Run a program in a box of its own: a list of arguments, or text for a shell.

    Waits for its end; Ctrl-C ends it. `limits` and `timeout` (seconds) can only tighten the policy.
    `on_output` and `on_errors` are called with pieces of stdout and stderr as they come. Raises
    CallboxError where the call cannot be set up; a program that fails is a Report.
    """
    listeners = listeners_of(on_output, on_errors)
    call = _start(
        program,
        listeners,
        policy=policy,
        input=input,
        timeout=timeout,
        cwd=cwd,
        environment=environment,
        limits=limits,
        call_id=call_id,
        explain=explain,
        warden=warden,
    )
    return _check(finish(call, listeners, Report))


async def arun(
    program: Program,
    *,
    policy: Optional[Policy] = None,
    input: Union[None, str, bytes] = None,
    timeout: Optional[float] = None,
    cwd: Union[None, str, "os.PathLike[str]"] = None,
    environment: Optional[Mapping[str, str]] = None,
    limits: Optional[Mapping[str, Any]] = None,
    call_id: str = "",
    explain: bool = False,
    on_output: Optional[OnBytes] = None,
    on_errors: Optional[OnBytes] = None,
    warden: Optional[Warden] = None,
) -> Report:
    """As run(), on the running event loop and without a thread. Cancelling it ends the call."""
    listeners = listeners_of(on_output, on_errors)
    await its_turn()
    call = _start(
        program,
        listeners,
        policy=policy,
        input=input,
        timeout=timeout,
        cwd=cwd,
        environment=environment,
        limits=limits,
        call_id=call_id,
        explain=explain,
        warden=warden,
    )
    return _check(await afinish(call, listeners, Report))
