# SPDX-License-Identifier: MIT
"""The schema of a function's arguments, from its type hints and its docstring."""

from __future__ import annotations

import datetime
import decimal
import inspect
import json
import pathlib
import re
import textwrap
import typing
import uuid
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _kinds as kinds
from ._error import CallboxError

PLAIN: Dict[Any, Dict[str, Any]] = {
    Any: {},
    inspect.Parameter.empty: {},
    object: {},
    kinds.NoneType: {"type": "null"},
    None: {"type": "null"},
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bytes: {"type": "string", "contentEncoding": "base64"},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.time: {"type": "string", "format": "time"},
    datetime.timedelta: {"type": "number", "description": "seconds"},
    decimal.Decimal: {"type": ["string", "number"]},
    uuid.UUID: {"type": "string", "format": "uuid"},
    pathlib.Path: {"type": "string"},
    pathlib.PurePath: {"type": "string"},
    pathlib.PurePosixPath: {"type": "string"},
    pathlib.PosixPath: {"type": "string"},
}


class _Maker:
    """Schemas of types; classes are described once, under $defs, so they may name each other."""

    def __init__(self) -> None:
        self.definitions: Dict[str, Any] = {}
        self.names: Dict[Any, str] = {}

    def make(self, hint: Any, where: str) -> Dict[str, Any]:
        hint, notes = kinds.bare(hint)
        schema = self.make_bare(hint, where)
        for note in notes:
            if isinstance(note, str):
                schema = {**schema, "description": note}
            elif isinstance(note, dict):
                schema = {**schema, **note}
            elif isinstance(getattr(note, "description", None), str):
                schema = {**schema, "description": note.description}
        return schema

    def make_bare(self, hint: Any, where: str) -> Dict[str, Any]:
        try:
            if hint in PLAIN:
                return dict(PLAIN[hint])
        except TypeError:
            pass  # not hashable, so none of them
        if kinds.is_union(hint):
            return {"anyOf": [self.make(arm, where) for arm in typing.get_args(hint)]}
        if kinds.is_literal(hint):
            values = typing.get_args(hint)
            return {"enum": [self.literal(value, where) for value in values]}
        if kinds.is_enum(hint):
            by_value = kinds.enum_by_value(hint)
            return {"enum": [member.value if by_value else member.name for member in hint]}
        if kinds.is_model(hint):
            return self.define(hint, lambda: self.model(hint))
        if kinds.is_typed_dict(hint) or kinds.is_named_tuple(hint) or kinds.is_dataclass(hint):
            return self.define(hint, lambda: self.record(hint, where))
        kind = kinds.container(hint)
        if kind:
            return self.container(kind, hint, where)
        raise CallboxError(
            f"there is no JSON for the type {getattr(hint, '__qualname__', hint)!s}",
            where,
            "take str, int, float, bool, list, dict, an Enum, a dataclass ..., or give input_schema",
        )

    def literal(self, value: Any, where: str) -> Any:
        if value is None or isinstance(value, (str, int)) and not kinds.is_enum(type(value)):
            return value
        if kinds.is_enum(type(value)):
            return value.value if kinds.enum_by_value(type(value)) else value.name
        raise CallboxError(f"there is no JSON for the literal {value!r}", where)

    def container(self, kind: Any, hint: Any, where: str) -> Dict[str, Any]:
        args = typing.get_args(hint)
        if kind is dict:
            key, value = args or (str, Any)
            key, _ = kinds.bare(key)
            schema: Dict[str, Any] = {"type": "object"}
            if key is int:
                schema["propertyNames"] = {"pattern": "^-?[0-9]+$"}
            elif kinds.is_literal(key) or kinds.is_enum(key):
                schema["propertyNames"] = self.make(key, where)
            elif key not in (str, Any):
                raise CallboxError(f"a JSON object has no keys of the type {key!r}", where)
            return {**schema, "additionalProperties": self.make(value, f"{where}[...]")}
        if kind is tuple and args and args[-1] is not Ellipsis:
            args = () if args == ((),) else args
            items = [self.make(arg, f"{where}[{n}]") for n, arg in enumerate(args)]
            prefix = {"prefixItems": items} if items else {}
            return {"type": "array", **prefix, "minItems": len(items), "maxItems": len(items)}
        item = self.make(args[0], f"{where}[...]") if args else {}
        schema = {"type": "array", "items": item}
        return {**schema, "uniqueItems": True} if kind is set else schema

    def define(self, hint: Any, make: Callable[[], Dict[str, Any]]) -> Dict[str, Any]:
        if hint not in self.names:
            name = base = re.sub(r"[^A-Za-z0-9_.-]", "_", hint.__name__)
            number = 2
            while name in self.definitions:
                name, number = f"{base}_{number}", number + 1
            self.names[hint] = name
            self.definitions[name] = {}  # its place is taken while it is made
            self.definitions[name] = make()
        return {"$ref": f"#/$defs/{self.names[hint]}"}

    def record(self, hint: Any, where: str) -> Dict[str, Any]:
        hints, required, defaults = kinds.fields_of(hint)
        properties = {
            name: _with_default(self.make(item, f"{where}.{name}"), defaults, name)
            for name, item in hints.items()
        }
        schema = {"type": "object", "properties": properties, "additionalProperties": False}
        return {**schema, "required": required} if required else schema

    def model(self, hint: Any) -> Dict[str, Any]:
        template = "#/$defs/{model}"
        if hasattr(hint, "model_json_schema"):
            schema = hint.model_json_schema(ref_template=template)
        else:
            schema = json.loads(hint.schema_json(ref_template=template))
        for key in ("$defs", "definitions"):
            self.definitions.update(schema.pop(key, {}))
        return dict(schema)


def _with_default(schema: Dict[str, Any], defaults: Dict[str, Any], name: str) -> Dict[str, Any]:
    """Only what JSON has is shown; the function knows its own defaults."""
    value = defaults.get(name, inspect.Parameter.empty)
    plain = value is None or type(value) in (str, int, float, bool)
    return {**schema, "default": value} if plain and value == value else schema


# ---- Docstrings ----


def read_docstring(text: Optional[str]) -> Tuple[str, Dict[str, str]]:
    """The first paragraph, and what an "Args:" section or ":param name:" say of parameters."""
    text = inspect.cleandoc(text or "")
    first = re.split(r"\n\s*\n|\n(?=Args:|Arguments:|Parameters:|:param )", text, maxsplit=1)[0]
    described: Dict[str, str] = {}
    section = re.search(r"^(?:Args|Arguments|Parameters):\s*\n((?:[ \t]+.*\n?|\s*\n)*)", text, re.M)
    if section:
        entry = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*(?:\n[ \t]+.*)*)", re.M)
        for name, said in entry.findall(textwrap.dedent(section.group(1))):
            described[name] = " ".join(said.split())
    for name, said in re.findall(r"^:param (?:\w+ )?(\w+):\s*(.*(?:\n[ \t]+.*)*)", text, re.M):
        described[name] = " ".join(said.split())
    return " ".join(first.split()), described


def schema_of(function: Callable[..., Any], descriptions: Dict[str, str]) -> Dict[str, Any]:
    """The inputSchema of a function."""
    try:
        parameters = kinds.parameters_of(function)
    except NameError as error:
        raise CallboxError(
            f"its type hints cannot be read: {error}", "", "import the type, or give input_schema"
        ) from None
    except (TypeError, ValueError) as error:
        raise CallboxError(f"it has no signature: {error}", "", "give input_schema") from None
    maker = _Maker()
    properties: Dict[str, Any] = {}
    required: List[str] = []
    schema: Dict[str, Any] = {"type": "object", "properties": properties}
    for name, parameter in parameters.items():
        item = maker.make(parameter.annotation, name)
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            schema["additionalProperties"] = item
            continue
        if name in descriptions:
            item = {**item, "description": descriptions[name]}
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
        properties[name] = _with_default(item, {name: parameter.default}, name)
    if required:
        schema["required"] = required
    schema.setdefault("additionalProperties", False)
    if maker.definitions:
        schema["$defs"] = maker.definitions
    return schema
