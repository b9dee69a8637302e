# SPDX-License-Identifier: MIT
"""Values as typed JSON, between a box and its caller.

None, bool, int, float, str, list and dict are what they are. Other known types are an object with a
tag: {"$callbox": "bytes", "value": "aGk="}. A dict that has such a key itself is tagged too, so there
is no doubt. Anything else is refused.

What comes out of a box is data. Classes are looked up among those that are loaded here already, never
imported, and made without their constructors; only what a set or a dict asks of its members (hash,
equality) is theirs. Where a class is not there its value is given plainly.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import json
import math
import pathlib
import sys
import uuid
from typing import Any, Callable, Dict, List, Optional, Tuple

TAG = "$callbox"
INT_MAX = 2**63


class NotAValue(TypeError):
    """Of a type that has no form here."""


def _tagged(tag: str, value: Any, **more: Any) -> Dict[str, Any]:
    return {TAG: tag, "value": value, **more}


# ---- From a value to JSON ----


def _name_of(cls: type) -> str:
    return f"{cls.__module__}:{cls.__qualname__}"


def _encode_text(value: str) -> Any:
    try:
        value.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which JSON cannot hold
        raw = value.encode("utf-8", "surrogatepass")
        return _tagged("text", base64.b64encode(raw).decode())
    return str(value)


def _encode_int(value: int) -> Any:
    value = int(value)
    return value if -INT_MAX <= value < INT_MAX else _tagged("int", hex(value))


def _encode_float(value: float) -> Any:
    value = float(value)
    return value if math.isfinite(value) else _tagged("float", repr(value))


def _encode_dict(value: Dict[Any, Any], path: str) -> Any:
    plain = all(type(key) is str for key in value) and TAG not in value
    if plain and not any(isinstance(_encode_text(key), dict) for key in value):
        return {key: encode(item, f"{path}[{key!r}]") for key, item in value.items()}
    pairs = [
        [encode(key, f"a key of {path}"), encode(item, f"{path}[{key!r}]")]
        for key, item in value.items()
    ]
    return _tagged("dict", pairs)


def _encode_many(value: Any, path: str) -> Any:
    return [encode(item, f"{path}[{number}]") for number, item in enumerate(value)]


def _encode_datetime(value: datetime.datetime) -> Any:
    more: Dict[str, Any] = {"fold": 1} if value.fold else {}
    zone = getattr(value.tzinfo, "key", None)
    if isinstance(zone, str):
        more["zone"] = zone
    return _tagged("datetime", value.isoformat(), **more)


def fields_of(cls: Any) -> List[Any]:
    """As dataclasses.fields, which does not know those of a class that was sent by value."""
    return [
        field
        for field in cls.__dataclass_fields__.values()
        if getattr(field._field_type, "name", "") == "_FIELD"
    ]


def _encode_dataclass(value: Any, path: str) -> Any:
    fields = {
        field.name: encode(getattr(value, field.name), f"{path}.{field.name}")
        for field in fields_of(type(value))
    }
    return _tagged("dataclass", fields, type=_name_of(type(value)))


def _encode_model(value: Any, path: str) -> Any:
    """A model of pydantic is the dict of its fields."""
    dump = getattr(value, "model_dump", None) or value.dict
    return encode(dump(), path)


def _is_model(value: Any) -> bool:
    return hasattr(type(value), "model_json_schema") or (
        hasattr(type(value), "__fields__") and hasattr(type(value), "parse_obj")
    )


# In this order: a datetime is a date, a bool an int.
_ENCODERS: Tuple[Tuple[Any, Callable[[Any, str], Any]], ...] = (
    ((bool, type(None)), lambda value, path: value),
    (
        enum.Enum,
        lambda value, path: _tagged(
            "enum", encode(value.value, path), type=_name_of(type(value)), name=value.name
        ),
    ),
    (str, lambda value, path: _encode_text(value)),
    (int, lambda value, path: _encode_int(value)),
    (float, lambda value, path: _encode_float(value)),
    (list, _encode_many),
    (dict, _encode_dict),
    (tuple, lambda value, path: _tagged("tuple", _encode_many(value, path))),
    (set, lambda value, path: _tagged("set", _encode_many(value, path))),
    (frozenset, lambda value, path: _tagged("frozenset", _encode_many(value, path))),
    (
        (bytes, bytearray, memoryview),
        lambda value, path: _tagged("bytes", base64.b64encode(value).decode()),
    ),
    (datetime.datetime, lambda value, path: _encode_datetime(value)),
    (datetime.date, lambda value, path: _tagged("date", value.isoformat())),
    (datetime.time, lambda value, path: _tagged("time", value.isoformat())),
    (
        datetime.timedelta,
        lambda value, path: _tagged("timedelta", [value.days, value.seconds, value.microseconds]),
    ),
    (decimal.Decimal, lambda value, path: _tagged("decimal", str(value))),
    (uuid.UUID, lambda value, path: _tagged("uuid", str(value))),
    (pathlib.PurePath, lambda value, path: _tagged("path", _encode_text(str(value)))),
    (
        complex,
        lambda value, path: _tagged(
            "complex", [_encode_float(value.real), _encode_float(value.imag)]
        ),
    ),
)


def encode(value: Any, path: str = "the result") -> Any:
    """What json.dumps takes. `path` is how the value is called in a complaint."""
    for types, encoder in _ENCODERS:
        if isinstance(value, types):
            return encoder(value, path)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _encode_dataclass(value, path)
    if _is_model(value):
        return _encode_model(value, path)
    name = type(value).__qualname__
    if type(value).__module__ != "builtins":
        name = f"{type(value).__module__}.{name}"
    raise NotAValue(
        f"{path} is of the type {name}, which cannot leave the box; return numbers, strings, lists, "
        f"dicts, dataclasses ... instead"
    )


def dumps(value: Any, path: str = "the result") -> str:
    try:
        return json.dumps(encode(value, path), allow_nan=False, separators=(",", ":"))
    except RecursionError:
        raise NotAValue(f"{path} is nested too deep, or holds itself") from None


# ---- And back ----


def _loaded_class(name: Any) -> Optional[type]:
    """A class by its name, if its module is loaded. Nothing is imported for it."""
    module_name, _, qualname = str(name).partition(":")
    found: Any = sys.modules.get(module_name)
    for part in qualname.split("."):
        found = vars(found).get(part) if hasattr(found, "__dict__") else None
    return found if isinstance(found, type) and found.__qualname__ == qualname else None


def _decode_enum(item: Dict[str, Any]) -> Any:
    cls = _loaded_class(item["type"])
    if cls is None or not issubclass(cls, enum.Enum):
        return item["value"]
    member = cls.__members__.get(item["name"])
    if member is None and issubclass(cls, enum.Flag) and type(item["value"]) is int:
        # Several flags at once have no name of their own; a class may have its own idea of them.
        standard = [base.__dict__["_missing_"] for base in (enum.Flag, enum.IntFlag) if "_missing_" in vars(base)]
        found = next(vars(base)["_missing_"] for base in cls.__mro__ if "_missing_" in vars(base))
        if found in standard:
            return cls(item["value"])
    return item["value"] if member is None else member


def _decode_dataclass(item: Dict[str, Any]) -> Any:
    """Made without __init__ and __post_init__, which may do anything with values from a box."""
    cls, values = _loaded_class(item["type"]), item["value"]
    if not isinstance(values, dict):
        raise ValueError("the fields of a dataclass must be an object")
    if cls is None or not dataclasses.is_dataclass(cls) or hasattr(cls, "__del__"):
        return values
    names = {field.name for field in fields_of(cls)}
    if names != set(values):
        return values
    made: Any = object.__new__(cls)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return made


def _decode_datetime(item: Dict[str, Any]) -> datetime.datetime:
    value = datetime.datetime.fromisoformat(item["value"])
    if item.get("fold"):
        value = value.replace(fold=1)
    if item.get("zone"):
        try:
            import zoneinfo

            value = value.replace(tzinfo=zoneinfo.ZoneInfo(item["zone"]))
        except (zoneinfo.ZoneInfoNotFoundError, OSError):
            pass  # the offset is right for this moment
    return value


def _decode_base64(text: Any) -> bytes:
    return base64.b64decode(text, validate=True)


_DECODERS: Dict[str, Callable[[Dict[str, Any]], Any]] = {
    "text": lambda item: _decode_base64(item["value"]).decode("utf-8", "surrogatepass"),
    "int": lambda item: int(item["value"], 16),
    "float": lambda item: float(item["value"]),
    "dict": lambda item: {key: value for key, value in item["value"]},
    "tuple": lambda item: tuple(item["value"]),
    "set": lambda item: set(item["value"]),
    "frozenset": lambda item: frozenset(item["value"]),
    "bytes": lambda item: _decode_base64(item["value"]),
    "datetime": _decode_datetime,
    "date": lambda item: datetime.date.fromisoformat(item["value"]),
    "time": lambda item: datetime.time.fromisoformat(item["value"]),
    "timedelta": lambda item: datetime.timedelta(*item["value"]),
    "decimal": lambda item: decimal.Decimal(item["value"]),
    "uuid": lambda item: uuid.UUID(item["value"]),
    "path": lambda item: pathlib.Path(item["value"]),
    "complex": lambda item: complex(*item["value"]),
    "enum": _decode_enum,
    "dataclass": _decode_dataclass,
}


def _decode(item: Dict[str, Any]) -> Any:
    if TAG not in item:
        return item
    decoder = _DECODERS.get(item[TAG]) if isinstance(item[TAG], str) else None
    if decoder is None:
        raise ValueError(f"the tag {item[TAG]!r} is unknown")
    return decoder(item)


def loads(text: str) -> Any:
    """Raises ValueError for what encode() would not have written."""
    try:
        return json.loads(text, object_hook=_decode)
    except ValueError:
        raise
    except (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
