# SPDX-License-Identifier: MIT
"""Two tools of OpenJarvis that run what a model writes, with a box behind them. They do not use its
subprocess sandbox there.

    from callbox.compat.openjarvis_tools import CodeInterpreterTool, ShellExecTool

Where OpenJarvis is installed they are its own classes with another execute()."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, Optional, Tuple, Union

from .._error import CallboxError
from .._installed import trees_of
from .._interpreter import add_to_policy, program
from .._policy import Policy
from .._run import run
from . import _openjarvis_types, _real
from ._calls import WALL_MAX, policy_with, wall
from ._scratch import Head
from .openjarvis import SandboxResult, _directory, _environment, _policy, _start, _tell, in_box

__all__ = ["CodeInterpreterTool", "ShellExecTool", "ToolResult"]

OUTPUT_MAX = 102_400
CODE_OUTPUT_MAX = 10_000
SECONDS = 30
TIMEOUT_MAX = 300
SAID_MAX = 500  # characters of what a model gave, in an error
NO_ENTRY = "could not enter the start directory"
WORD_MAX = 100_000  # of code that is still a word of a command


_ShellBase: Any = _real.find("openjarvis.tools.shell_exec", "ShellExecTool", _openjarvis_types)
_CodeBase: Any = _real.find("openjarvis.tools.code_interpreter", "CodeInterpreterTool", _openjarvis_types)
ToolResult: Any = _real.find("openjarvis.tools.shell_exec", "ToolResult", _openjarvis_types)


def _wall(policy: Policy) -> Any:
    """Seconds."""
    seconds = policy.to_dict()["limits"]["wall"]
    return WALL_MAX if seconds is None else seconds


class ShellExecTool(_ShellBase):  # type: ignore[misc]
    """What a model may ask for stays within what the application has allowed. `workspace` is a directory
    of the host that commands may change, and in which they start; `policy` says what else they may see
    and reach, and for how long. A model's `working_dir` is looked up in the box, from the start on: it
    never shows more of the host. Its `env_passthrough` gets what is in `allow_env`, which is empty; its
    `timeout` is 300 at most, and no more than a policy has."""

    def __init__(
        self,
        *args: Any,
        policy: Optional[Policy] = None,
        workspace: Union[None, str, "os.PathLike[str]"] = None,
        allow_env: Iterable[str] = (),
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self._policy = policy
        self._most = TIMEOUT_MAX if policy is None else min(TIMEOUT_MAX, _wall(policy))
        self._place = None if workspace is None else _directory(os.fspath(workspace))
        self._allow_env = frozenset(allow_env)

    def _said(self, content: str, success: bool, **metadata: Any) -> Any:
        return ToolResult(
            tool_name="shell_exec", content=content, success=success, metadata=metadata
        )

    def _choose(self, working_dir: str) -> Tuple[Policy, Optional[str]]:
        made = _policy(self._policy, self._place, self._most, os.environ.get("PATH", ""))
        start = self._place or made._workspace() or _start(made, None)
        return made, os.path.join(start or "/tmp", working_dir) if working_dir else start

    def _environment(self, asked: Any) -> Dict[str, str]:
        names = asked if isinstance(asked, (list, tuple)) else ()
        allowed = [name for name in names if isinstance(name, str) and name in self._allow_env]
        return _environment(allowed, None)

    def execute(self, **params: Any) -> Any:
        command, place = params.get("command") or "", params.get("working_dir") or None
        if not command:
            return self._said("No command provided.", False)
        if not isinstance(command, str):
            return self._said(f"command must be a text, not {command!r}"[:SAID_MAX], False)
        if place is not None and (not isinstance(place, str) or "\0" in place):
            return self._said(f"Working directory does not exist: {place!r}"[:SAID_MAX], False)
        timeout = max(min(1, self._most), min(self._most, _seconds(params.get("timeout"))))
        done = in_box(
            command,
            timeout,
            lambda: self._choose(place or ""),
            self._environment(params.get("env_passthrough")),
            OUTPUT_MAX,
        )
        facts = {"returncode": done.returncode, "timeout_used": timeout, "working_dir": place}
        if done.timed_out:
            return self._said(f"Command timed out after {timeout} seconds.", False, **facts)
        if done.reason == "setup":
            missing = _no_entry(done.stderr, place)
            return self._said(missing, False) if missing else self._said(f"OS error: {done.stderr}", False, **facts)
        return self._said(_streams(done) or "(no output)", done.returncode == 0, **facts)


def _seconds(asked: Any) -> int:
    """Whole ones, also of a text; what is no number is the default."""
    try:
        return int(asked)
    except OverflowError:
        return TIMEOUT_MAX if asked > 0 else 0
    except (TypeError, ValueError):
        return SECONDS


def _no_entry(error: str, place: Optional[str]) -> str:
    """The words that OpenJarvis has for a directory, where it is that which the box could not enter."""
    if not place or NO_ENTRY not in error:
        return ""
    what = "is not a directory" if "Not a directory" in error else "does not exist"
    return f"Working directory {what}: {place}"[:SAID_MAX]


def _streams(done: SandboxResult) -> str:
    parts = []
    if done.stdout:
        cut = "\n... (stdout truncated)" if done.stdout_more else ""
        parts.append(f"=== STDOUT ===\n{done.stdout}{cut}")
    if done.stderr:
        cut = "\n... (stderr truncated)" if done.stderr_more else ""
        parts.append(f"=== STDERR ===\n{done.stderr}{cut}")
    return "\n".join(parts)


class CodeInterpreterTool(_CodeBase):  # type: ignore[misc]
    """No text is looked for in the code: the box is what holds. `timeout` (seconds) and `max_output`
    (characters) are the application's; a policy may only shorten the time."""

    def __init__(
        self,
        timeout: Optional[float] = SECONDS,
        max_output: int = CODE_OUTPUT_MAX,
        *,
        policy: Optional[Policy] = None,
    ) -> None:
        super().__init__(timeout, max_output)
        seconds = WALL_MAX if timeout is None else timeout
        self._seconds = seconds if policy is None else min(seconds, _wall(policy))
        self._most = max(0, max_output)

        def change(document: Dict[str, Any]) -> None:
            document["limits"]["wall"] = wall(self._seconds) if self._seconds > 0 else SECONDS

        self._policy = add_to_policy(policy_with(policy, change), trees_of(program()))

    def _said(self, content: str, success: bool, **metadata: Any) -> Any:
        return ToolResult(
            tool_name="code_interpreter", content=content, success=success, metadata=metadata
        )

    def execute(self, **params: Any) -> Any:
        code = params.get("code") or ""
        if not code:
            return self._said("No code provided.", False)
        if not isinstance(code, str):
            return self._said(f"code must be a text, not {code!r}"[:SAID_MAX], False)
        late = f"Execution timed out after {self._seconds} seconds."
        if not self._seconds > 0:
            return self._said(late, False, returncode=-1)
        output, errors = Head(self._most), Head(self._most)
        short = len(code.encode("utf-8", "replace")) < WORD_MAX
        try:
            report = run(
                [program(), "-I", "-B", *(("-c", code) if short else ("-",))],
                input=None if short else code,
                policy=self._policy,
                on_output=output.add,
                on_errors=errors.add,
            )
        except (CallboxError, ValueError) as error:
            return self._said(f"Execution error: {error}", False)
        done = _tell(report, output, errors)
        if done.timed_out:
            return self._said(late, False, returncode=done.returncode)
        content = "\n".join(filter(None, (done.stdout, done.stderr)))
        if done.truncated or len(content) > self._most:
            content = content[: self._most] + "\n... (output truncated)"
        return self._said(content or "(no output)", done.returncode == 0, returncode=done.returncode)
