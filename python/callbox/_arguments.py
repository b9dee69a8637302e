# SPDX-License-Identifier: MIT
"""Arguments on their way to a tool, which are JSON; and what is said of those that cannot be."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import json
import math
import pathlib
import uuid
from typing import Any, Mapping, Optional, Tuple

from . import _patience
from ._encode import type_name

LARGE = 128 * 1024  # bytes of arguments or of a report: too much for an event loop


def is_large(value: Any) -> bool:
    """Whether it would keep an event loop from its other work to make JSON of it. A quick look."""
    rest, size = [value], 0
    while rest:
        item = rest.pop()
        if isinstance(item, (str, bytes)):
            size += len(item)
        elif isinstance(item, Mapping):
            size += 8 * len(item)
            if size <= LARGE:
                rest += item.keys()
                rest += item.values()
        elif isinstance(item, (list, tuple)):
            size += 8 * len(item)
            if size <= LARGE:
                rest += item
        if size > LARGE:
            return True
    return False


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def to_json(arguments: Mapping[str, Any], patient: bool) -> str:
    """`patient`: in small steps, between which other threads run. As it is, rather than escaped, which
    would take up to six times the room."""
    if not isinstance(arguments, Mapping):
        raise TypeError(f"arguments must be a dict, not {type(arguments).__name__}")
    given = dict(arguments)
    try:
        text = _patience.write(_ENCODER, given) if patient else _ENCODER.encode(given)
        if not text.isascii():
            text.encode()  # no halves of surrogate pairs
        return text
    except (TypeError, ValueError, RecursionError) as error:
        raise _complaint(given, error) from None


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


def _complaint(arguments: Mapping[str, Any], error: Exception) -> Exception:
    try:
        wrong = _find(arguments, "arguments")
    except RecursionError:
        return ValueError("the arguments are nested too deep, or hold themselves")
    if wrong is None:
        return error
    where, said, kind = wrong
    made: Exception = kind(f"{where} {said}")
    return made
