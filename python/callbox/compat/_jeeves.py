# SPDX-License-Identifier: MIT
"""The sandboxes of jeevesagent and loomflow: tool hosts that wrap one. jeevesagent.py and loomflow.py
say with which types."""

from __future__ import annotations

import os
import pathlib
from typing import Any, AsyncIterator, Dict, Iterable, List, Mapping, NamedTuple, Optional
from typing import Tuple, Type

from .._policy import Policy
from . import _jeeves_types as own
from ._calls import Calls, OnReport, Outcome, policy_with, wall
from ._jeeves_paths import PathCheck, PathLike, resolve_roots, spelled_roots


class Types(NamedTuple):
    """Of the package that the results go to."""

    ToolResult: Any = own.ToolResult
    ConfigError: Type[Exception] = own.ConfigError
    hosts: Tuple[Any, ...] = (own.InProcessToolHost,)


class NoSandbox:
    """Passes everything on."""

    types = Types()

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    @property
    def inner(self) -> Any:
        return self._inner

    def register(self, tool: Any) -> Any:
        return self._inner.register(tool)

    async def list_tools(self, *, query: Optional[str] = None) -> List[Any]:
        found: List[Any] = await self._inner.list_tools(query=query)
        return found

    async def call(self, tool: str, args: Mapping[str, Any], *, call_id: str = "") -> Any:
        return await self._inner.call(tool, args, call_id=call_id)

    def watch(self) -> AsyncIterator[Any]:
        events: AsyncIterator[Any] = self._inner.watch()
        return events


class FilesystemSandbox(NoSandbox):
    """Refuses calls whose arguments name paths outside of `roots`. It looks at arguments only: what
    the tool then does is up to the inner host."""

    def __init__(
        self,
        inner: Any,
        *,
        roots: Iterable[PathLike],
        path_args: Optional[Iterable[str]] = None,
        auto_detect: bool = True,
        base: Optional[PathLike] = None,
    ) -> None:
        super().__init__(inner)
        self._roots = resolve_roots(roots)
        if not self._roots:
            raise ValueError("FilesystemSandbox requires at least one allowed root")
        self._check = PathCheck(self._roots, path_args, auto_detect, base)

    @property
    def roots(self) -> Tuple[pathlib.Path, ...]:
        return self._roots

    async def call(self, tool: str, args: Mapping[str, Any], *, call_id: str = "") -> Any:
        refused = self._check.refuse(args)
        if refused:
            return self.types.ToolResult.denied_(call_id, f"FilesystemSandbox: {refused}")
        return await super().call(tool, args, call_id=call_id)


class _Boxed(NoSandbox):
    """Each call of the inner host's tools in a box."""

    name = ""

    def _open(self, policy: Policy, timeout: float, calls: int, on_report: Optional[OnReport]) -> None:
        self._timeout = timeout
        self._calls = Calls(policy, calls=calls, on_report=on_report)

    def _check_inner(self, what: str, why: str) -> None:
        if not isinstance(self._inner, self.types.hosts):
            raise self.types.ConfigError(
                f"{what} wraps InProcessToolHost only ({why}). Got {type(self._inner).__name__}."
            )

    @property
    def policy(self) -> Policy:
        """What the box of a call may see, reach and use."""
        return self._calls.policy

    async def call(self, tool: str, args: Mapping[str, Any], *, call_id: str = "") -> Any:
        """Whatever comes of the call is a ToolResult. Cancelling it ends the call."""
        found = self._inner.get(tool)
        if found is None:
            return self.types.ToolResult.error_(call_id, f"unknown tool: {tool}")
        given = own.coerce(found, args or {})
        told = await self._calls.acall(tool, found.fn, given, call_id)
        result = self._result(tool, call_id, told)
        if told.report is not None and told.milliseconds is not None:
            result.duration_ms, result.started_at = told.milliseconds, told.report.started_at
        return result

    def _result(self, tool: str, call_id: str, told: Outcome) -> Any:
        make = self.types.ToolResult
        if told.state == "returned":
            result = make.success(call_id, told.value)
            if told.notes:
                result.reason = "; ".join(told.notes)
            return result
        if told.state == "denied":
            return make.denied_(call_id, f"{self.name}: {told.text}")
        if told.state == "timeout":
            return make.error_(call_id, f"{self.name}: tool exceeded {self._timeout}s")
        if told.state == "raised":
            return make.error_(call_id, f"{self.name}: tool raised {told.kind}: {told.text}")
        if told.state == "unsendable":
            return make.error_(call_id, f"{self.name}: {self._unsendable(tool, told)}")
        return make.error_(call_id, f"{self.name}: {self._ended(told)}")

    def _unsendable(self, tool: str, told: Outcome) -> str:
        raise NotImplementedError

    def _ended(self, told: Outcome) -> str:
        raise NotImplementedError


def _seconds(timeout_seconds: float) -> float:
    if not timeout_seconds > 0:
        raise ValueError("timeout_seconds must be positive")
    return timeout_seconds


class SubprocessSandbox(_Boxed):
    """Runs each call in a box of its own. `policy` says what tools may see and reach beyond the
    system and the modules that they are made of; `calls` bounds how many run at once; `on_report` is
    told of each call: (tool, call_id, Report)."""

    name = "SubprocessSandbox"

    def __init__(
        self,
        inner: Any,
        *,
        timeout_seconds: float = 30.0,
        policy: Optional[Policy] = None,
        calls: int = 0,
        on_report: Optional[OnReport] = None,
    ) -> None:
        super().__init__(inner)
        _seconds(timeout_seconds)
        self._check_inner(self.name, "it needs access to the registered Tool.fn callable")
        made = policy_with(policy, lambda document: _set_wall(document, timeout_seconds))
        self._open(made, timeout_seconds, calls, on_report)

    @property
    def timeout_seconds(self) -> float:
        return self._timeout

    def _unsendable(self, tool: str, told: Outcome) -> str:
        return (
            f"tool {tool!r} or its arguments are not picklable ({told.text}). Use a module-level "
            f"function and primitive args."
        )

    def _ended(self, told: Outcome) -> str:
        return f"subprocess exited without producing a result: {told.text}"


def _set_wall(document: Dict[str, Any], seconds: float) -> None:
    document["limits"]["wall"] = wall(seconds)


class OSSandbox(_Boxed):
    """The same, with directories that a call may change, and the network where it is allowed."""

    name = "OSSandbox"

    def __init__(
        self,
        inner: Any,
        *,
        roots: Iterable[PathLike],
        allow_network: bool = False,
        timeout_seconds: float = 30.0,
        path_args: Optional[Iterable[str]] = None,
        env: Optional[Mapping[str, str]] = None,
        policy: Optional[Policy] = None,
        calls: int = 0,
        on_report: Optional[OnReport] = None,
    ) -> None:
        super().__init__(inner)
        roots = [roots] if isinstance(roots, (str, os.PathLike)) else list(roots)
        self._roots = resolve_roots(roots)
        if not self._roots:
            raise ValueError("OSSandbox requires at least one writable root")
        _seconds(timeout_seconds)
        self._check_inner(
            "OSSandbox kernel mode", "it ships the registered Tool.fn to a sandboxed child"
        )
        self._paths = PathCheck(spelled_roots(roots), path_args, False, self._roots[0], resolved=False)

        def change(document: Dict[str, Any]) -> None:
            _set_wall(document, timeout_seconds)
            files = document["files"]
            known = {rule["host"] if isinstance(rule, dict) else rule for rule in files["write"]}
            more = [str(root) for root in dict.fromkeys(self._roots) if str(root) not in known]
            if more and files.get("workspace") is None:
                files["workspace"] = more.pop(0)  # in which some names are protected
            files["write"] += more
            if allow_network:
                document["network"] = "host"
            document["environment"]["set"].update(env or {})

        self._open(policy_with(policy, change), timeout_seconds, calls, on_report)

    @property
    def roots(self) -> Tuple[pathlib.Path, ...]:
        return self._roots

    @property
    def timeout_seconds(self) -> float:
        return self._timeout

    @property
    def mode(self) -> str:
        """The word for a sandbox that Linux enforces. A box that cannot be had is an error, so it is
        never "degraded"."""
        return "bubblewrap"

    async def call(self, tool: str, args: Mapping[str, Any], *, call_id: str = "") -> Any:
        refused = self._paths.refuse(args or {})
        if refused:
            return self.types.ToolResult.denied_(call_id, f"OSSandbox: {refused}")
        return await super().call(tool, args, call_id=call_id)

    def _unsendable(self, tool: str, told: Outcome) -> str:
        return f"tool or args not picklable ({told.text})"

    def _ended(self, told: Outcome) -> str:
        status = told.status
        if status == 0 or told.state in ("unreadable", "unmade"):
            return f"child produced no result: {told.text}"
        return f"sandboxed child exited {status}: {told.how}"
