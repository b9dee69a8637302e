# SPDX-License-Identifier: MIT
"""From a value to typed JSON: see _values.py."""

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
from typing import Any, Callable, Dict, List, Tuple

from . import _arrays, _standard

TAG = "$callbox"
INT_MAX = 2**63
PART_MIN = 64 * 1024  # bytes; what is smaller is written into the JSON
PART_MAX = 2**32 - 1
PARTS_MAX = 64 * 1024

# Where a value is: () or (where its holder is, the step from there). Made into words only for a
# complaint: there may be millions of values.
Place = Tuple[Any, ...]


class NotAValue(TypeError):
    """Of a type that has no form here."""


class Attribute(str):
    """A step by a name, rather than by a key."""


def _words(name: str, place: Place) -> str:
    steps: List[str] = []
    while place:
        place, step = place
        steps.append(f".{step}" if isinstance(step, Attribute) else f"[{step!r}]")
    return name + "".join(reversed(steps))


def type_name(cls: type) -> str:
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def class_key(cls: type) -> str:
    """How a class is named in a result."""
    return f"{cls.__module__}:{cls.__qualname__}"


def fields_of(cls: Any) -> List[Any]:
    """As dataclasses.fields, which does not know those of a class that was sent by value."""
    return [
        field
        for field in cls.__dataclass_fields__.values()
        if getattr(field._field_type, "name", "") == "_FIELD"
    ]


def _tagged(tag: str, value: Any, **more: Any) -> Dict[str, Any]:
    return {TAG: tag, "value": value, **more}


def is_model(cls: type) -> bool:
    return hasattr(cls, "model_json_schema") or (
        hasattr(cls, "__fields__") and hasattr(cls, "parse_obj")
    )


def _zone(value: Any) -> Dict[str, Any]:
    more: Dict[str, Any] = {"fold": 1} if value.fold else {}
    key = getattr(value.tzinfo, "key", None)
    return {**more, "zone": key} if isinstance(key, str) else more


class Encoder:
    """`attach`: large bytes become parts. `inward`: the value goes into a box, rather than out of it."""

    def __init__(self, name: str, attach: bool, inward: bool = False) -> None:
        self.name = name
        self.attach = attach
        self.inward = inward
        self.parts: List[Any] = []

    def refuse(self, place: Place, what: str) -> NotAValue:
        return NotAValue(f"{_words(self.name, place)}: {what}")

    def refuse_type(self, place: Place, what: str, instead: str) -> NotAValue:
        said = "cannot go into the box; give" if self.inward else "cannot leave the box; return"
        return self.refuse(place, f"{what} {said} {instead}")

    def tagged(self, tag: str, value: Any, **more: Any) -> Dict[str, Any]:
        return _tagged(tag, value, **more)

    def raw(self, tag: str, data: Any, place: Place, **more: Any) -> Any:
        """Bytes as such, or as base64. `data` is a buffer."""
        length = memoryview(data).nbytes
        if length < PART_MIN or not self.attach or len(self.parts) == PARTS_MAX - 1:
            return _tagged(tag, base64.b64encode(data).decode(), **more)
        if length > PART_MAX:
            raise self.refuse(place, f"{length} bytes are too many in one piece, {PART_MAX} is the most")
        self.parts.append(data)
        return {TAG: tag, "part": len(self.parts), **more}

    def text(self, value: str, place: Place) -> Any:
        if len(value) < PART_MIN or not self.attach:
            try:
                value.encode()
                return str(value)
            except UnicodeEncodeError:
                pass  # half a surrogate pair, which JSON cannot hold
        return self.raw("text", value.encode("utf-8", "surrogatepass"), place)

    def integer(self, value: int, place: Place) -> Any:
        value = int(value)
        return value if -INT_MAX <= value < INT_MAX else _tagged("int", hex(value))

    def real(self, value: float, place: Place) -> Any:
        value = float(value)
        return value if math.isfinite(value) else _tagged("float", repr(value))

    def many(self, value: Any, place: Place) -> Any:
        return [self.encode(item, (place, number)) for number, item in enumerate(value)]

    def mapping(self, value: Dict[Any, Any], place: Place) -> Any:
        plain: Dict[str, Any] = {}
        for key, item in value.items():
            if type(key) is not str or key == TAG or len(key) >= PART_MIN:
                break
            plain[key] = self.encode(item, (place, key))
        else:
            try:
                "".join(plain).encode()
                return plain
            except UnicodeEncodeError:
                pass
        pairs = [
            [self.encode(key, (place, Attribute("keys()"))), self.encode(item, (place, key))]
            for key, item in value.items()
        ]
        return _tagged("dict", pairs)

    def row(self, value: Tuple[Any, ...], place: Place) -> Any:
        cls = type(value)
        if hasattr(cls, "_fields"):
            items = [
                self.encode(item, (place, Attribute(name))) for name, item in zip(cls._fields, value)
            ]
            return _tagged("namedtuple", items, type=class_key(cls))
        return _tagged("tuple", self.many(value, place))

    def path(self, value: pathlib.PurePath, place: Place) -> Any:
        more = {}
        if isinstance(value, pathlib.PureWindowsPath):
            more = {"pure": "windows"}
        elif not isinstance(value, pathlib.Path):
            more = {"pure": "posix"}
        return _tagged("path", self.text(str(value), place), **more)

    def record(self, value: Any, place: Place) -> Any:
        """Of a dataclass the fields, of a model of pydantic what it dumps."""
        cls = type(value)
        if dataclasses.is_dataclass(cls):
            fields = {
                field.name: self.encode(getattr(value, field.name), (place, Attribute(field.name)))
                for field in fields_of(cls)
            }
            return _tagged("dataclass", fields, type=class_key(cls))
        if is_model(cls):
            dump = getattr(value, "model_dump", None) or value.dict
            return _tagged("derived", self.encode(dump(), place), type=class_key(cls))
        name = type_name(cls)
        article = "an" if name[0] in "aeiouAEIOU" else "a"
        instead = "numbers, strings, lists, dicts, dataclasses ... instead"
        raise self.refuse_type(place, f"{article} {name}", instead)

    def member(self, value: enum.Enum, place: Place) -> Any:
        inner = self.encode(value.value, (place, Attribute("value")))
        return _tagged("enum", inner, type=class_key(type(value)), name=value.name)

    def derived(self, value: Any, place: Place) -> Any:
        """As what it is besides its own class."""
        method = next(method for types, method in _ENCODERS if isinstance(value, types))
        inner = method(self, value, place)
        # These say themselves of which class they are.
        same = isinstance(value, enum.Enum) or type(value) in PATHS or hasattr(type(value), "_fields")
        return inner if same else _tagged("derived", inner, type=class_key(type(value)))

    def array(self, value: Any, place: Place) -> Any:
        return _arrays.encode(self, value, place)

    def encode(self, value: Any, place: Place) -> Any:
        """What json.dumps takes."""
        encoder = EXACT.get(type(value))
        if encoder is None:
            encoder = _encoder_of(value)
        return encoder(self, value, place)


_Method = Callable[[Encoder, Any, Place], Any]

PATHS = (pathlib.PosixPath, pathlib.PurePosixPath, pathlib.WindowsPath, pathlib.PureWindowsPath)

# In this order: a datetime is a date, a bool an int, a Counter a dict.
_ENCODERS: Tuple[Tuple[Any, _Method], ...] = (
    *_standard.ENCODERS,
    ((bool, type(None)), lambda self, value, place: value),
    (enum.Enum, Encoder.member),
    (str, Encoder.text),
    (int, Encoder.integer),
    (float, Encoder.real),
    (list, Encoder.many),
    (dict, Encoder.mapping),
    (tuple, Encoder.row),
    (set, lambda self, value, place: _tagged("set", self.many(value, place))),
    (frozenset, lambda self, value, place: _tagged("frozenset", self.many(value, place))),
    (bytes, lambda self, value, place: self.raw("bytes", value, place)),
    (bytearray, lambda self, value, place: self.raw("bytearray", value, place)),
    (
        memoryview,
        lambda self, value, place: _tagged(
            "derived", self.raw("bytes", value.tobytes(), place), type=class_key(memoryview)
        ),
    ),
    (
        datetime.datetime,
        lambda self, value, place: _tagged("datetime", value.isoformat(), **_zone(value)),
    ),
    (datetime.date, lambda self, value, place: _tagged("date", value.isoformat())),
    (datetime.time, lambda self, value, place: _tagged("time", value.isoformat(), **_zone(value))),
    (
        datetime.timedelta,
        lambda self, value, place: _tagged(
            "timedelta", [value.days, value.seconds, value.microseconds]
        ),
    ),
    (decimal.Decimal, lambda self, value, place: _tagged("decimal", str(value))),
    (uuid.UUID, lambda self, value, place: _tagged("uuid", str(value))),
    (pathlib.PurePath, Encoder.path),
    (
        complex,
        lambda self, value, place: _tagged(
            "complex", [self.real(value.real, place), self.real(value.imag, place)]
        ),
    ),
)
EXACT: Dict[type, _Method] = {
    cls: method
    for types, method in _ENCODERS
    for cls in (types if isinstance(types, tuple) else (types,))
}


def _encoder_of(value: Any) -> _Method:
    """Of a type that is derived from a known one, or of its own kind."""
    numpy = sys.modules.get("numpy")
    # Some of its scalars are floats or complex numbers as well; what it has of text is only text.
    if numpy and isinstance(value, (numpy.ndarray, numpy.generic)):
        if not isinstance(value, (str, bytes)):
            return Encoder.array
    if isinstance(value, BaseException):
        return _standard.exception
    fractions = sys.modules.get("fractions")  # or there would be none
    if fractions and isinstance(value, fractions.Fraction):
        return _standard.fraction
    if any(isinstance(value, types) for types, _ in _ENCODERS):
        return Encoder.derived
    return Encoder.record


_JSON = json.JSONEncoder(allow_nan=False, separators=(",", ":"), ensure_ascii=False)


def _encode(encoder: Encoder, value: Any) -> str:
    try:
        return _JSON.encode(encoder.encode(value, ()))
    except RecursionError:
        raise NotAValue(f"{encoder.name} is nested too deep, or holds itself") from None


def dumps(value: Any, name: str = "result", inward: bool = False) -> str:
    """All of it as JSON. `name` is how the value is called in a complaint."""
    return _encode(Encoder(name, attach=False, inward=inward), value)


def pack(value: Any, name: str = "result") -> List[Any]:
    """The JSON, and the parts that it speaks of: buffers."""
    if type(value) is int and -INT_MAX <= value < INT_MAX:
        return [b"%d" % value]  # what many answer with
    encoder = Encoder(name, attach=True)
    return [_encode(encoder, value).encode(), *encoder.parts]
