# SPDX-License-Identifier: MIT
"""The schema of a function's arguments, from its type hints and its docstring."""

from __future__ import annotations

import base64
import inspect
import json
import math
import re
import sys
import textwrap
import typing
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _kinds as kinds
from ._error import CallboxError
from ._late import datetime, decimal, pathlib, uuid

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
    bytearray: {"type": "string", "contentEncoding": "base64"},
}
# Of modules that whoever has such a hint has loaded.
OF_MODULES: Dict[str, Dict[str, Dict[str, Any]]] = {
    "datetime": {
        "datetime": {"type": "string", "format": "date-time"},
        "date": {"type": "string", "format": "date"},
        "time": {"type": "string", "format": "time"},
        "timedelta": {"type": "number", "description": "seconds"},
    },
    "decimal": {"Decimal": {"type": ["string", "number"]}},
    "uuid": {"UUID": {"type": "string", "format": "uuid"}},
    "pathlib": dict.fromkeys(("Path", "PurePath", "PurePosixPath", "PosixPath"), {"type": "string"}),
}


def _plain(hint: Any) -> Optional[Dict[str, Any]]:
    try:
        if hint in PLAIN:
            return PLAIN[hint]
    except TypeError:
        return None  # not hashable, so none of them
    for name, classes in OF_MODULES.items():
        module = sys.modules.get(name)
        for known, schema in classes.items():
            if module is not None and getattr(module, known, None) is hint:
                return schema
    return None


DEFAULT_ITEMS = 100  # of a list or dict that is shown as a default


class _Maker:
    """Schemas of types; classes are described once, under $defs, so they may name each other. `result`:
    of what is returned, which may be more than the class says."""

    def __init__(self, result: bool = False) -> None:
        self.result = result
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
        plain = _plain(hint)
        if plain is not None:
            return dict(plain)
        if kinds.is_union(hint):
            return {"anyOf": [self.make(arm, where) for arm in typing.get_args(hint)]}
        if kinds.is_literal(hint):
            values = typing.get_args(hint)
            return {"enum": [self.literal(value, where) for value in values]}
        if kinds.is_flag(hint):
            return _flags(hint)
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
                name = _plain(key) or {}
                if name.get("type") != "string":
                    raise CallboxError(f"a JSON object has no keys of the type {key!r}", where)
                if "format" in name:
                    schema["propertyNames"] = {"format": name["format"]}
            return {**schema, "additionalProperties": self.make(value, f"{where}[...]")}
        if kinds.is_empty_tuple(hint) or kind is tuple and args and args[-1] is not Ellipsis:
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
        said, described = read_docstring(_own_docstring(hint))
        properties = {}
        for name, item in hints.items():
            made = self.make(item, f"{where}.{name}")
            if name in described:
                made = {**made, "description": described[name]}
            properties[name] = _with_default(made, defaults, name)
        schema: Dict[str, Any] = {"type": "object", "properties": properties}
        if not self.result:
            schema["additionalProperties"] = False
        if said:
            schema["description"] = said
        return {**schema, "required": required} if required else schema

    def model(self, hint: Any) -> Dict[str, Any]:
        # What it refers to, itself among it, has names of its own: others may have the same.
        own = self.names[hint]
        template = f"#/$defs/{own}.{{model}}"
        if hasattr(hint, "model_json_schema"):
            mode = "serialization" if self.result else "validation"
            schema = hint.model_json_schema(ref_template=template, mode=mode)
        else:
            schema = json.loads(hint.schema_json(ref_template=template))
        for key in ("$defs", "definitions"):
            for name, definition in schema.pop(key, {}).items():
                self.definitions[f"{own}.{name}"] = definition
        return dict(schema)


def _flags(hint: Any) -> Dict[str, Any]:
    """Any of them together, as one number."""
    known = {name: member.value for name, member in hint.__members__.items()}
    said = "the sum of " + ", ".join(f"{name} ({value})" for name, value in known.items())
    return {"type": "integer", "minimum": 0, "maximum": kinds.all_flags(hint), "description": said}


def _own_docstring(cls: type) -> Optional[str]:
    """What somebody wrote, rather than what dataclasses and typing make up."""
    text = vars(cls).get("__doc__")
    return None if not text or text.startswith(cls.__name__ + "(") else text


_NOTHING = inspect.Parameter.empty


def _to_json(value: Any) -> Any:
    """A default as an argument would say it; _NOTHING where there is no such."""
    if value is None or type(value) in (str, int, bool):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else _NOTHING
    if kinds.is_enum(type(value)):
        return _to_json(value.value) if kinds.enum_by_value(type(value)) else value.name
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        return value.total_seconds()
    if isinstance(value, (decimal.Decimal, uuid.UUID, pathlib.PurePath)):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if type(value) in (list, tuple, dict) and len(value) <= DEFAULT_ITEMS:
        pairs = value.items() if type(value) is dict else enumerate(value)
        made = {key: _to_json(item) for key, item in pairs}
        if any(item is _NOTHING for item in made.values()):
            return _NOTHING
        if type(value) is dict:
            return made if all(type(key) is str for key in made) else _NOTHING
        return list(made.values())
    return _NOTHING


def _with_default(schema: Dict[str, Any], defaults: Dict[str, Any], name: str) -> Dict[str, Any]:
    """Only what JSON has is shown; the function knows its own defaults."""
    value = _to_json(defaults.get(name, _NOTHING))
    return schema if value is _NOTHING else {**schema, "default": value}


# ---- Docstrings ----

_SECTION = r"Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters|Attributes"
_GOOGLE = re.compile(rf"^(?:{_SECTION}):[ \t]*\n((?:[ \t]+.*\n?|[ \t]*\n)*)", re.M)
_GOOGLE_ENTRY = re.compile(r"^\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:\s*(.*(?:\n[ \t]+.*|\n(?=[ \t]*\n[ \t]))*)", re.M)
_NUMPY = re.compile(rf"^(?:{_SECTION})\n-{{3,}}[ \t]*\n((?:(?!.*\n-{{3,}}).*\n?)*)", re.M)
_NUMPY_ENTRY = re.compile(r"^(\*{0,2}\w+(?:,[ \t]*\*{0,2}\w+)*)[ \t]*(?::.*)?\n((?:[ \t]+.*\n?|[ \t]*\n(?=[ \t]+\S))+)", re.M)
_FIELD = re.compile(r"^:(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:\n]*\s)?\*{0,2}(\w+):\s*(.*(?:\n[ \t]+.*)*)", re.M)
_END_OF_FIRST = re.compile(rf"\n\s*\n|\n(?=(?:{_SECTION}):|(?:{_SECTION})\n-{{3,}}|:\w+[^:\n]*:)")


def read_docstring(text: Optional[str]) -> Tuple[str, Dict[str, str]]:
    """The first paragraph, and what is said of parameters: in the style of Google ("Args:"), of NumPy
    (a "Parameters" that is underlined) or of reST (":param name:")."""
    text = inspect.cleandoc(text or "")
    first = "" if re.match(rf":param|(?:{_SECTION})(?::|\n-)", text) else _END_OF_FIRST.split(text, maxsplit=1)[0]
    described: Dict[str, str] = {}
    for section in _GOOGLE.findall(text):
        for name, said in _GOOGLE_ENTRY.findall(textwrap.dedent(section)):
            described[name] = " ".join(said.split())
    for section in _NUMPY.findall(text):
        for names, said in _NUMPY_ENTRY.findall(section + "\n"):
            for name in re.findall(r"\w+", names):
                described[name] = " ".join(said.split())
    for name, said in _FIELD.findall(text):
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
    if kinds.is_unbound(function, parameters):
        raise CallboxError(
            "it is a method without its object", "", "give that of an object: Tool(thing.method)"
        )
    maker = _Maker()
    properties: Dict[str, Any] = {}
    required: List[str] = []
    schema: Dict[str, Any] = {"type": "object", "properties": properties}
    for name, parameter in parameters.items():
        item = maker.make(parameter.annotation, name)
        if parameter.kind is parameter.VAR_KEYWORD:
            schema["additionalProperties"] = item
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            item = {"type": "array", "items": item}
        elif parameter.default is parameter.empty:
            required.append(name)
        if name in descriptions:
            item = {**item, "description": descriptions[name]}
        properties[name] = _with_default(item, {name: parameter.default}, name)
    if required:
        schema["required"] = required
    schema.setdefault("additionalProperties", False)
    if maker.definitions:
        schema["$defs"] = maker.definitions
    return schema


def result_schema_of(function: Callable[..., Any]) -> Optional[Dict[str, Any]]:
    """The outputSchema of a function, in the form that _plain.py gives its results; None: its type hints
    promise nothing that JSON could say."""
    try:
        hint = kinds.hints_of(kinds.described(function)).get("return", Any)
    except (NameError, TypeError, ValueError, AttributeError):
        return None
    if hint is None or hint is kinds.NoneType:
        return None
    maker = _Maker(result=True)
    try:
        schema = maker.make(hint, "return")
    except CallboxError:
        return None
    if "$ref" in schema and maker.definitions[maker.names[kinds.bare(hint)[0]]].get("type") == "object":
        schema = {"type": "object", **schema}  # clients of MCP look for it there
    if maker.definitions:
        schema = {**schema, "$defs": maker.definitions}
    return schema or None
