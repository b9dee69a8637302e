# SPDX-License-Identifier: MIT
"""Two tools of OpenJarvis that run what a model writes, with a box behind them. They do not use its
subprocess sandbox there.

    from callbox.compat.openjarvis_tools import CodeInterpreterTool, ShellExecTool

Where OpenJarvis is installed they are its own classes with another execute()."""

from __future__ import annotations

import dataclasses
import os
import sys
from typing import Any, Dict, Iterable, List, Optional

from .._error import CallboxError
from .._interpreter import add_to_policy
from .._policy import Policy
from .._run import run
from . import _real
from ._calls import interpreter_trees, policy_with
from ._scratch import Head
from .openjarvis import SandboxResult, _tell, run_sandboxed

__all__ = ["CodeInterpreterTool", "ShellExecTool", "ToolResult"]

OUTPUT_MAX = 102_400
CODE_OUTPUT_MAX = 10_000
CODE_SECONDS = 30
WORD_MAX = 100_000  # of code that is still a word of a command


@dataclasses.dataclass
class _Result:
    tool_name: str
    content: str
    success: bool = True
    usage: Dict[str, Any] = dataclasses.field(default_factory=dict)
    cost_usd: float = 0.0
    latency_seconds: float = 0.0
    metadata: Dict[str, Any] = dataclasses.field(default_factory=dict)


class _Plain:
    def __init__(self, *_: Any, **__: Any) -> None:
        pass


_shell: Any = _real.module("openjarvis.tools.shell_exec")
_code: Any = _real.module("openjarvis.tools.code_interpreter")
_ShellBase: Any = getattr(_shell, "ShellExecTool", _Plain)
_CodeBase: Any = getattr(_code, "CodeInterpreterTool", _Plain)
ToolResult: Any = getattr(_shell, "ToolResult", _Result)


class ShellExecTool(_ShellBase):  # type: ignore[misc]
    """A model may ask for variables of the agent's by `env_passthrough`: it gets those that are in
    `allow_env`, which is empty."""

    def __init__(
        self, *args: Any, policy: Optional[Policy] = None, allow_env: Iterable[str] = (), **more: Any
    ) -> None:
        super().__init__(*args, **more)
        self._policy = policy
        self._allow_env = frozenset(allow_env)

    def _said(self, content: str, success: bool, **metadata: Any) -> Any:
        return ToolResult(
            tool_name="shell_exec", content=content, success=success, metadata=metadata
        )

    def execute(self, **params: Any) -> Any:
        command, place = params.get("command") or "", params.get("working_dir") or None
        if not command:
            return self._said("No command provided.", False)
        if place is not None and not os.path.exists(place):
            return self._said(f"Working directory does not exist: {place}", False)
        if place is not None and not os.path.isdir(place):
            return self._said(f"Working directory is not a directory: {place}", False)
        asked_for = params.get("timeout") or 30
        try:
            timeout = max(1, min(300, asked_for))
        except TypeError:
            return self._said(f"timeout must be a number of seconds, not {asked_for!r}", False)
        asked: List[str] = list(params.get("env_passthrough") or ())
        done = run_sandboxed(
            command,
            timeout=timeout,
            working_dir=place,
            env_passthrough=[name for name in asked if name in self._allow_env],
            max_output_bytes=OUTPUT_MAX,
            policy=self._policy,
        )
        facts = {"returncode": done.returncode, "timeout_used": timeout, "working_dir": place}
        if done.timed_out:
            return self._said(f"Command timed out after {timeout} seconds.", False, **facts)
        if done.reason == "setup":
            return self._said(f"OS error: {done.stderr}", False, **facts)
        return self._said(_streams(done) or "(no output)", done.returncode == 0, **facts)


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
    """No text is looked for in the code: the box is what holds."""

    def __init__(self, *args: Any, policy: Optional[Policy] = None, **more: Any) -> None:
        super().__init__(*args, **more)
        shown = interpreter_trees(sys.executable)

        def change(document: Dict[str, Any]) -> None:
            document["limits"]["wall"] = CODE_SECONDS

        made = policy_with(policy, change)
        self._policy = Policy.from_json(add_to_policy(made, shown))

    def _said(self, content: str, success: bool, **metadata: Any) -> Any:
        return ToolResult(
            tool_name="code_interpreter", content=content, success=success, metadata=metadata
        )

    def execute(self, **params: Any) -> Any:
        code = params.get("code") or ""
        if not code:
            return self._said("No code provided.", False)
        output, errors = Head(CODE_OUTPUT_MAX), Head(CODE_OUTPUT_MAX)
        short = len(code.encode("utf-8", "replace")) < WORD_MAX
        try:
            report = run(
                [sys.executable, "-I", "-B", *(("-c", code) if short else ("-",))],
                input=None if short else code,
                policy=self._policy,
                on_output=output.add,
                on_errors=errors.add,
            )
        except (CallboxError, ValueError) as error:
            return self._said(f"Execution error: {error}", False)
        done = _tell(report, output, errors)
        if done.timed_out:
            text = f"Execution timed out after {CODE_SECONDS} seconds."
            return self._said(text, False, returncode=done.returncode)
        content = done.stdout + done.stderr
        if done.truncated or len(content) > CODE_OUTPUT_MAX:
            content = content[:CODE_OUTPUT_MAX] + "\n... (output truncated)"
        return self._said(content or "(no output)", done.returncode == 0, returncode=done.returncode)
