# SPDX-License-Identifier: MIT
"""The subprocess sandbox of OpenJarvis, with a box behind it.

    from callbox.compat.openjarvis import run_sandboxed
"""

from __future__ import annotations

import dataclasses
import os
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from .._error import CallboxError
from .._inputs import is_in, refuse_links, writable, written
from .._installed import trees_of, trees_on
from .._interpreter import add_to_policy, program
from .._places import NEVER, shows_too_much
from .._policy import Policy
from .._report import Report
from .._run import run
from . import _real
from ._calls import Outcome, policy_with, wall
from ._scratch import Head
from ._tree import kill_tree

__all__ = ["SandboxResult", "build_safe_env", "kill_process_tree", "run_sandboxed"]

_SAFE_ENV_VARS = ("PATH", "HOME", "USER", "LANG", "TERM", "SHELL", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ")
# A box has these of its own: what they name on the host is not in it.
_OF_THE_BOX = ("HOME", "USER", "SHELL", "TMPDIR")
_WALL = 30.0
LOOK_EVERY = 1.0  # seconds

_slots: Dict[str, Any] = {"slots": True} if sys.version_info >= (3, 10) else {}


@dataclasses.dataclass(**_slots)
class _Own:
    stdout: str = ""
    stderr: str = ""
    returncode: int = -1
    timed_out: bool = False
    killed: bool = False


_Base: Any = getattr(_real.module("openjarvis.security.subprocess_sandbox"), "SandboxResult", _Own)


@dataclasses.dataclass(**_slots)
class SandboxResult(_Base):  # type: ignore[misc]
    """The fields that it has in OpenJarvis, and more: what a command that ran out of time had
    written, how many bytes of each stream are missing, and why the command ended."""

    partial_stdout: str = ""
    partial_stderr: str = ""
    stdout_more: int = 0
    stderr_more: int = 0
    reason: str = ""

    @property
    def truncated(self) -> bool:
        return bool(self.stdout_more or self.stderr_more)


def build_safe_env(
    passthrough: Optional[List[str]] = None, extra: Optional[Dict[str, str]] = None
) -> Dict[str, str]:
    """Harmless variables and those in `passthrough`, as far as they are set, and `extra`."""
    names = (*_SAFE_ENV_VARS, *(passthrough or ()))
    made = {name: os.environ[name] for name in names if name in os.environ}
    made.update(extra or {})
    return made


def kill_process_tree(pid: int) -> None:
    """End a process of the host, and all that it has started. Never this one."""
    kill_tree(pid)


_policies: Dict[Tuple[Any, ...], Policy] = {}


def _here() -> Optional[str]:
    try:
        return os.path.realpath(os.getcwd())
    except OSError:  # it was removed
        return None


def _policy(base: Optional[Policy], place: Optional[str], timeout: float, path: str) -> Policy:
    """Kept, so that boxes can be ready for it: a call names its own time, where it is shorter. `path`: of
    the command, whose interpreters it can start."""
    seconds = max(wall(timeout), _WALL)
    here = None if place else _here()
    key = (base, place, here, seconds, *_trees(path, [place] if place else []))
    if key not in _policies:

        def change(document: Dict[str, Any]) -> None:
            document["limits"]["wall"] = seconds
            files = document["files"]
            if place is not None and not _is_of_the_box(place):
                files["workspace"] = place
            elif here and not files.get("workspace") and not shows_too_much(here):
                files["read"].append(here)

        if len(_policies) > 100:
            _policies.clear()
        made = policy_with(base, change)
        _policies[key] = add_to_policy(made, _trees(path, writable(made.to_dict()["files"])))
    return _policies[key]


_found: Dict[Tuple[Any, ...], Tuple[float, List[str]]] = {}


def _trees(path: str, writes: List[str]) -> List[str]:
    """Of interpreters: this one, as commands are made with sys.executable, and those of the PATH. What only an
    installer changes is looked for once in a while; what boxes may write is asked for by each call."""
    key = (path, sys.executable, *writes, None, *written())
    now = time.monotonic()
    if key not in _found or now - _found[key][0] > LOOK_EVERY:
        if len(_found) > 100:
            _found.clear()
        _found[key] = (now, [*trees_of(program()), *trees_on(path, writes)])
    return _found[key][1]


def _is_of_the_box(place: str) -> bool:
    """Where a box has its own whatever the host has; a command may start there all the same."""
    return place == "/" or any(is_in(place, tree) for tree in NEVER)


def _environment(passthrough: Optional[List[str]], extra: Optional[Dict[str, str]]) -> Dict[str, str]:
    made = build_safe_env(passthrough, extra)
    named = {*(passthrough or ()), *(extra or {})}
    return {name: value for name, value in made.items() if name in named or name not in _OF_THE_BOX}


def _directory(working_dir: Optional[str]) -> Optional[str]:
    if not working_dir:
        return None
    place = refuse_links(os.path.expanduser(working_dir), "working_dir")
    os.scandir(place).close()  # raises what is wrong with it
    return place


def _tell(report: Report, output: Head, errors: Head) -> SandboxResult:
    stdout, stderr = output.end(), errors.end()
    more: Dict[str, Any] = {
        "stdout_more": output.more,
        "stderr_more": errors.more,
        "reason": report.reason,
    }
    if report.reason == "timeout":
        return SandboxResult(
            stdout="(timed out)",
            timed_out=True,
            killed=True,
            partial_stdout=stdout,
            partial_stderr=stderr,
            **more,
        )
    killed = report.reason not in ("exited", "signaled")
    if killed:
        stderr += f"Execution error: {report.text}"
    status = Outcome("ended", report=report).status
    return SandboxResult(stdout=stdout, stderr=stderr, returncode=status, killed=killed, **more)


def run_sandboxed(
    command: str,
    *,
    timeout: float = 30.0,
    working_dir: Optional[str] = None,
    env_passthrough: Optional[List[str]] = None,
    env_extra: Optional[Dict[str, str]] = None,
    max_output_bytes: int = 102400,
    policy: Optional[Policy] = None,
) -> SandboxResult:
    """Run a text by /bin/sh in a box, and wait for its end; Ctrl-C ends it. It may change files in
    `working_dir`; without one it starts in the current directory, which it may read. The interpreter of this
    program is shown, and those of its PATH: virtual environments and those of pyenv. `policy` says what else it may see and
    reach."""

    environment = _environment(env_passthrough, env_extra)

    def choose() -> Tuple[Policy, Optional[str]]:
        place = _directory(working_dir)
        seconds = wall(float("inf") if timeout is None else timeout)
        made = _policy(policy, place, seconds, environment.get("PATH", ""))
        return made, _start(made, place)

    return in_box(command, timeout, choose, environment, max_output_bytes)


def in_box(
    command: str,
    timeout: float,
    choose: Callable[[], Tuple[Policy, Optional[str]]],
    environment: Dict[str, str],
    max_output_bytes: int,
) -> SandboxResult:
    """`choose` says with which policy, and where it starts, which is looked up in the box."""
    output, errors = Head(max_output_bytes, as_bytes=True), Head(max_output_bytes, as_bytes=True)
    timeout = wall(float("inf") if timeout is None else timeout)
    if not timeout > 0:
        return SandboxResult(stdout="(timed out)", timed_out=True, killed=True, reason="timeout")
    if not isinstance(command, str):
        raise TypeError(f"command must be text for a shell, not {command!r}")
    if "\0" in command:
        return SandboxResult(stderr="Execution error: the command has a NUL in it", reason="setup")
    try:
        made, start = choose()
        report = run(
            command,
            policy=made,
            timeout=timeout,
            cwd=start,
            environment=environment,
            on_output=output.add,
            on_errors=errors.add,
        )
    except (CallboxError, OSError, ValueError) as error:
        return SandboxResult(stderr=f"Execution error: {error}", reason="setup")
    return _tell(report, output, errors)


def _start(policy: Policy, place: Optional[str]) -> Optional[str]:
    """Where it starts."""
    if place is not None:
        return place
    here = _here()
    files = policy.to_dict()["files"]
    return here if here in files["read"] and not files.get("workspace") else None
