# SPDX-License-Identifier: MIT
"""The types of jeevesagent and loomflow, for where neither is installed: the same names, fields and
texts."""

from __future__ import annotations

import contextvars
import dataclasses
import datetime
import functools
import hashlib
import inspect
import json
import uuid
from typing import Any, AsyncIterator, Callable, Dict, Iterable, List, Mapping, Optional, Tuple, Union

from .. import _convert, _kinds, _schema
from .._error import CallboxError
from .._late import asyncio
from ._trio import running

SIMPLE = {str: "string", int: "integer", float: "number", bool: "boolean"}


class ConfigError(Exception):
    """What was given to a constructor does not fit together."""


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.timezone.utc)


@dataclasses.dataclass(frozen=True)
class ToolDef:
    name: str
    description: str
    input_schema: Dict[str, Any] = dataclasses.field(default_factory=dict)
    server: Optional[str] = None
    destructive: bool = False


@dataclasses.dataclass
class ToolCall:
    tool: str
    args: Dict[str, Any] = dataclasses.field(default_factory=dict)
    tool_def: Optional[ToolDef] = None
    destructive: bool = False
    id: str = dataclasses.field(default_factory=lambda: f"tcall_{uuid.uuid4().hex}")

    def is_destructive(self) -> bool:
        return self.destructive or bool(self.tool_def and self.tool_def.destructive)

    def idempotency_key(self) -> str:
        """The same for calls of the same tool with the same arguments."""
        text = json.dumps([self.tool, self.args], sort_keys=True, default=repr)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclasses.dataclass
class ToolResult:
    call_id: str
    ok: bool
    output: Any = None
    error: Optional[str] = None
    denied: bool = False
    reason: Optional[str] = None
    duration_ms: Optional[float] = None
    started_at: datetime.datetime = dataclasses.field(default_factory=_now)

    @classmethod
    def success(cls, call_id: str, output: Any) -> ToolResult:
        return cls(call_id=call_id, ok=True, output=output)

    @classmethod
    def error_(cls, call_id: str, message: str) -> ToolResult:
        return cls(call_id=call_id, ok=False, error=message)

    @classmethod
    def denied_(cls, call_id: str, reason: str) -> ToolResult:
        return cls(call_id=call_id, ok=False, denied=True, reason=reason)


@dataclasses.dataclass
class ToolEvent:
    """kind: "added", "removed" or "updated"."""

    kind: str
    tool: str
    server: Optional[str] = None
    at: datetime.datetime = dataclasses.field(default_factory=_now)


# ---- Tools ----


class _Adapter:
    """Makes of a JSON value what a type hint says; ValueError where it cannot be."""

    def __init__(self, hint: Any) -> None:
        self.hint = hint

    def validate_python(self, value: Any) -> Any:
        if isinstance(self.hint, type) and isinstance(value, self.hint):
            return value
        return _convert.convert(value, self.hint)


@dataclasses.dataclass
class Tool:
    name: str
    description: str
    fn: Callable[..., Any]
    input_schema: Dict[str, Any] = dataclasses.field(default_factory=dict)
    destructive: bool = False
    param_adapters: Dict[str, Any] = dataclasses.field(default_factory=dict)

    def to_def(self) -> ToolDef:
        return ToolDef(self.name, self.description, self.input_schema, None, self.destructive)

    async def execute(self, args: Mapping[str, Any]) -> Any:
        """Here, in this process: an async function is awaited, another runs in a thread."""
        if inspect.iscoroutinefunction(self.fn) or inspect.iscoroutinefunction(
            getattr(self.fn, "__call__", None)
        ):
            return await self.fn(**args)
        context = contextvars.copy_context()
        work = functools.partial(context.run, functools.partial(self.fn, **args))
        trio = running()
        if trio is not None:
            result = await trio.to_thread.run_sync(work)
        else:
            result = await asyncio.get_running_loop().run_in_executor(None, work)
        return await result if inspect.isawaitable(result) else result


def _schema_of(fn: Callable[..., Any]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """JSON Schema of the parameters, and what makes values of those that are more than text or
    numbers."""
    try:
        parameters = _kinds.parameters_of(fn)
    except (NameError, TypeError, ValueError):  # hints that cannot be read
        parameters = dict(inspect.signature(fn).parameters)
    properties: Dict[str, Any] = {}
    adapters: Dict[str, Any] = {}
    required: List[str] = []
    maker = _schema._Maker()
    for name, parameter in parameters.items():
        if name in ("self", "cls") or parameter.kind in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        ):
            continue
        hint, _ = _kinds.bare(parameter.annotation)
        if hint in (Any, parameter.empty) or isinstance(hint, str):
            properties[name] = {"type": "string"}
        elif isinstance(hint, type) and hint in SIMPLE:
            properties[name] = {"type": SIMPLE[hint]}
        else:
            try:
                properties[name] = maker.make(parameter.annotation, name)
                adapters[name] = _Adapter(parameter.annotation)
            except CallboxError:  # JSON has nothing for it; it is given as it is
                properties[name] = {"type": "string"}
        if parameter.default is parameter.empty:
            required.append(name)
    schema: Dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    if maker.definitions:
        schema["$defs"] = maker.definitions
    return schema, adapters


def _make(
    fn: Callable[..., Any], name: Optional[str], description: Optional[str], destructive: bool
) -> Tool:
    if description is None:
        description = (inspect.getdoc(fn) or "").strip().split("\n")[0].strip()
    schema, adapters = _schema_of(fn)
    name = name or getattr(fn, "__name__", None) or type(fn).__name__
    return Tool(name, description, fn, schema, destructive, adapters)


def tool(
    fn: Optional[Callable[..., Any]] = None,
    *,
    name: Optional[str] = None,
    description: Optional[str] = None,
    destructive: bool = False,
) -> Any:
    """A Tool of a function, as a decorator with or without particulars."""

    def decorate(fn: Callable[..., Any]) -> Tool:
        return _make(fn, name, description, destructive)

    return decorate if fn is None else decorate(fn)


def _from_text(text: str, wanted: Any) -> Any:
    """A text where the schema wants a number or a truth value, as models like to write them."""
    word = text.strip()
    try:
        if wanted == "integer":
            return int(word)
        if wanted == "number":
            return float(word)
    except ValueError:
        return text
    if wanted == "boolean" and word.lower() in ("true", "false"):
        return word.lower() == "true"
    return text


def coerce(tool: Any, args: Mapping[str, Any]) -> Dict[str, Any]:
    """The arguments as the tool's schema has them, as far as they can be made so; what a tool cannot
    use it says itself."""
    properties = (getattr(tool, "input_schema", None) or {}).get("properties") or {}
    adapters = getattr(tool, "param_adapters", None) or {}
    made: Dict[str, Any] = {}
    for name, value in args.items():
        if name in adapters:
            try:
                value = adapters[name].validate_python(value)
            except Exception:  # of whatever kind: pydantic has its own
                pass
        elif isinstance(value, str) and isinstance(properties.get(name), Mapping):
            value = _from_text(value, properties[name].get("type"))
        made[name] = value
    return made


class InProcessToolHost:
    """Tools by name, run in this process."""

    def __init__(self, tools: Optional[Iterable[Union[Tool, Callable[..., Any]]]] = None) -> None:
        self._tools: Dict[str, Tool] = {}
        for item in tools or ():
            self.register(item)

    def register(self, item: Union[Tool, Callable[..., Any]]) -> Tool:
        made = item if isinstance(item, Tool) else _make(item, None, None, False)
        self._tools[made.name] = made
        return made

    def unregister(self, name: str) -> bool:
        return self._tools.pop(name, None) is not None

    def get(self, name: str) -> Optional[Tool]:
        return self._tools.get(name)

    async def list_tools(self, *, query: Optional[str] = None) -> List[ToolDef]:
        wanted = (query or "").lower()
        return [
            item.to_def()
            for item in self._tools.values()
            if wanted in item.name.lower() or wanted in item.description.lower()
        ]

    async def call(self, tool: str, args: Mapping[str, Any], *, call_id: str = "") -> ToolResult:
        found = self._tools.get(tool)
        if found is None:
            return ToolResult.error_(call_id, f"unknown tool: {tool}")
        try:
            return ToolResult.success(call_id, await found.execute(coerce(found, args)))
        except Exception as error:
            return ToolResult.error_(call_id, str(error))

    async def watch(self) -> AsyncIterator[ToolEvent]:
        nothing: List[ToolEvent] = []
        for event in nothing:
            yield event
