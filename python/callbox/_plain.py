# SPDX-License-Identifier: MIT
"""From a value to JSON as anybody reads it: for callers that know nothing of Python. What the type hints
of a function promise (result_schema_of in _schema.py) has this form."""

from __future__ import annotations

import base64
import collections
import dataclasses
import datetime
import decimal
import enum
import json
import math
import pathlib
import sys
import uuid
from typing import Any, Callable, Dict, Tuple

from . import _kinds as kinds
from ._encode import Attribute, Encoder, NotAValue, Place, fields_of, type_name

_MANY = (list, tuple, set, frozenset, collections.deque)
_TEXTS = (decimal.Decimal, uuid.UUID, pathlib.PurePath)


class Plain(Encoder):
    """Without tags: what JSON has no form of is refused, with the place where it is."""

    def __init__(self) -> None:
        super().__init__("result", attach=False)

    def text(self, value: str, place: Place) -> Any:
        return value.encode("utf-8", "backslashreplace").decode()  # half a surrogate pair has no JSON

    def real(self, value: float, place: Place) -> Any:
        if not math.isfinite(value):
            raise self.refuse(place, f"{value!r} is no number of JSON; return None or a text instead")
        return float(value)

    def member(self, value: enum.Enum, place: Place) -> Any:
        if kinds.enum_by_value(type(value)):
            return self.encode(value.value, place)
        return value.name

    def key(self, value: Any, place: Place) -> str:
        value = value.value if isinstance(value, enum.Enum) and kinds.enum_by_value(type(value)) else value
        if isinstance(value, enum.Enum):
            return value.name
        if isinstance(value, str):
            return str(self.text(value, place))
        if isinstance(value, (datetime.date, datetime.time)):
            return value.isoformat()
        if isinstance(value, (int, *_TEXTS)) and not isinstance(value, bool):
            return str(value)
        raise self.refuse(place, f"a JSON object has no key such as {value!r:.60}; make it a text")

    def mapping(self, value: Dict[Any, Any], place: Place) -> Any:
        return {self.key(key, place): self.encode(item, (place, key)) for key, item in value.items()}

    def fields(self, names: Any, value: Any, place: Place) -> Dict[str, Any]:
        return {name: self.encode(getattr(value, name), (place, Attribute(name))) for name in names}

    def record(self, value: Any, place: Place) -> Any:
        cls = type(value)
        if dataclasses.is_dataclass(cls):
            return self.fields([field.name for field in fields_of(cls)], value, place)
        if hasattr(cls, "model_json_schema"):
            return self.encode(value.model_dump(mode="json"), place)
        if kinds.is_model(cls):
            return json.loads(value.json())
        name = type_name(cls)
        article = "an" if name[0] in "aeiouAEIOU" else "a"
        raise self.refuse_type(place, f"{article} {name}", "numbers, strings, lists, dicts, dataclasses ...")

    def encode(self, value: Any, place: Place) -> Any:
        method = _EXACT.get(type(value)) or _method_of(value)
        return method(self, value, place)


_Method = Callable[[Plain, Any, Place], Any]

# In this order: a datetime is a date, a bool an int.
_METHODS: Tuple[Tuple[Any, _Method], ...] = (
    ((bool, type(None)), lambda self, value, place: value),
    (enum.Enum, Plain.member),
    (str, Plain.text),
    (int, lambda self, value, place: int(value)),
    (float, Plain.real),
    (dict, Plain.mapping),
    (_MANY, Plain.many),
    (
        (bytes, bytearray, memoryview),
        lambda self, value, place: base64.b64encode(value).decode(),
    ),
    ((datetime.date, datetime.time), lambda self, value, place: value.isoformat()),
    (datetime.timedelta, lambda self, value, place: value.total_seconds()),
    (_TEXTS, lambda self, value, place: self.text(str(value), place)),
)
_EXACT: Dict[type, _Method] = {
    cls: method
    for types, method in _METHODS
    for cls in (types if isinstance(types, tuple) else (types,))
    if cls not in (enum.Enum, pathlib.PurePath)
}


def _method_of(value: Any) -> _Method:
    numpy = sys.modules.get("numpy")
    if numpy and isinstance(value, (numpy.ndarray, numpy.generic)):
        return lambda self, value, place: self.encode(value.tolist(), place)
    if isinstance(value, tuple) and hasattr(type(value), "_fields"):
        return lambda self, value, place: self.fields(type(value)._fields, value, place)
    for types, method in _METHODS:
        if isinstance(value, types):
            return method
    return Plain.record


_JSON = json.JSONEncoder(allow_nan=False, separators=(",", ":"), ensure_ascii=False)


def dumps(value: Any) -> bytes:
    try:
        return _JSON.encode(Plain().encode(value, ())).encode()
    except RecursionError:
        raise NotAValue("result is nested too deep, or holds itself") from None
