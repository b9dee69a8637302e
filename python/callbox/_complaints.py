# SPDX-License-Identifier: MIT
"""What is said of arguments that cannot be JSON."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import math
import pathlib
import uuid
from typing import Any, Mapping, Optional, Tuple

from ._encode import type_name

# What to pass instead, in this order: a datetime is a date.
_INSTEAD: Tuple[Tuple[Any, str], ...] = (
    (enum.Enum, "its value"),
    ((datetime.date, datetime.time), "its isoformat()"),
    (datetime.timedelta, "its total_seconds()"),
    ((bytes, bytearray, memoryview), "base64.b64encode() of it, as a text"),
    ((set, frozenset, collections.deque), "list() of it"),
    ((decimal.Decimal, uuid.UUID, pathlib.PurePath), "str() of it"),
    (Mapping, "dict() of it"),
)


def _instead(value: Any) -> str:
    for types, advice in _INSTEAD:
        if isinstance(value, types):
            return advice
    if dataclasses.is_dataclass(value):
        return "dataclasses.asdict() of it"
    for method, call in (("model_dump", "model_dump(mode='json')"), ("tolist", "tolist()")):
        if hasattr(type(value), method):
            return f"its {call}"
    return "numbers, texts, lists and dicts"


Wrong = Tuple[str, str, type]  # where it is, what is said of it, as which error


def _in_dict(value: Mapping[Any, Any], where: str) -> Optional[Wrong]:
    for key, item in value.items():
        if not isinstance(key, (str, int, float)) and key is not None:
            return f"{where}, the key {key!r}", "must be a text", TypeError
        wrong = _find(key, f"{where}, the key {key!r}") or _find(item, f"{where}[{key!r}]")
        if wrong:
            return wrong
    return None


def _find(value: Any, where: str) -> Optional[Wrong]:
    """The first that cannot be JSON."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return where, "has half of a surrogate pair in it, which is no text in JSON", ValueError
    elif isinstance(value, int):
        try:
            int.__repr__(value)
        except ValueError:
            return where, f"is a number of {value.bit_length()} bits; pass hex() of it", ValueError
    elif isinstance(value, float):
        if not math.isfinite(value):
            return where, f"is {float(value)!r}, which JSON does not have; pass None, or a text", ValueError
    elif isinstance(value, dict):
        return _in_dict(value, where)
    elif isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            wrong = _find(item, f"{where}[{number}]")
            if wrong:
                return wrong
    elif value is not None:
        said = f"is of the type {type_name(type(value))}, which JSON does not have; pass {_instead(value)}"
        return where, said, TypeError
    return None


def complaint(arguments: Mapping[str, Any], error: Exception) -> Exception:
    try:
        wrong = _find(arguments, "arguments")
    except RecursionError:
        return ValueError("the arguments are nested too deep, or hold themselves")
    if wrong is None:
        return error
    where, said, kind = wrong
    made: Exception = kind(f"{where} {said}")
    return made
