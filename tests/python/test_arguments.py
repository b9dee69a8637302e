# SPDX-License-Identifier: MIT
"""Arguments on their way into a box."""

import asyncio
import dataclasses
import datetime
import decimal
import enum
import math
import pathlib
import types
import uuid
from typing import Any

import pytest

from callbox import Toolbox, _arguments


def length(text: str) -> int:
    return len(text)


def same(value: Any) -> Any:
    return value


@pytest.fixture(scope="module")
def tools():
    return Toolbox([length, same])


@pytest.mark.parametrize("letter, count", [("é", 6_000_000), ("𝄞", 3_000_000)])
def test_16_MB_are_those_of_the_text(tools, letter, count):
    assert tools.call_sync("length", {"text": letter * count}).output == count
    assert asyncio.run(tools.call("length", {"text": letter * count})).output == count


def test_texts_arrive_as_they_are(tools):
    text = "é\u2028\0\\\"\n𝄞\x7f"
    assert tools.call_sync("same", {"value": {"é": [text]}}).output == {"é": [text]}
    assert tools.call_sync("same", types.MappingProxyType({"value": (1, True, None)})).output == [1, True, None]


class Color(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Point:
    x: int


class Own:
    pass


@pytest.mark.parametrize(
    "value, kind, instead",
    [
        (datetime.datetime(2026, 1, 1), "datetime.datetime", "its isoformat()"),
        (datetime.date(2026, 1, 1), "datetime.date", "its isoformat()"),
        (datetime.timedelta(1), "datetime.timedelta", "its total_seconds()"),
        (b"x", "bytes", "base64.b64encode() of it, as a text"),
        ({1}, "set", "list() of it"),
        (decimal.Decimal(1), "decimal.Decimal", "str() of it"),
        (uuid.UUID(int=1), "uuid.UUID", "str() of it"),
        (pathlib.PurePosixPath("a"), "pathlib.PurePosixPath", "str() of it"),
        (Color.RED, "test_arguments.Color", "its value"),
        (Point(1), "test_arguments.Point", "dataclasses.asdict() of it"),
        (types.MappingProxyType({}), "mappingproxy", "dict() of it"),
        (Own(), "test_arguments.Own", "numbers, texts, lists and dicts"),
    ],
)
def test_what_to_pass_instead(tools, value, kind, instead):
    if kind.startswith("pathlib"):
        kind = f"{type(value).__module__}.PurePosixPath"  # which has moved
    said = f"is of the type {kind}, which JSON does not have; pass {instead}"
    with pytest.raises(TypeError) as raised:
        tools.call_sync("same", {"value": value})
    assert str(raised.value) == f"arguments['value'] {said}"
    with pytest.raises(TypeError) as raised:
        asyncio.run(tools.call("same", {"value": ["x" * _arguments.LARGE, {"deep": (1, value)}]}))
    assert str(raised.value) == f"arguments['value'][1]['deep'][1] {said}"


@pytest.mark.parametrize(
    "value, says",
    [
        ("\udc80", "arguments['value'] has half of a surrogate pair in it"),
        ({"\udc80": 1}, "arguments['value'], the key '\\udc80' has half of a surrogate pair in it"),
        (math.nan, "arguments['value'] is nan, which JSON does not have"),
        ([math.inf], "arguments['value'][0] is inf, which JSON does not have"),
    ],
)
def test_values_that_JSON_does_not_have(tools, value, says):
    with pytest.raises(ValueError) as raised:
        tools.call_sync("same", {"value": value})
    assert str(raised.value).startswith(says)


def test_arguments_that_cannot_end_or_are_none(tools):
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested too deep, or hold themselves"):
        tools.call_sync("same", {"value": endless})
    with pytest.raises(TypeError, match=r"arguments\['value'\], the key \(1, 2\) must be a text"):
        tools.call_sync("same", {"value": {(1, 2): 3}})
    with pytest.raises(TypeError, match="arguments must be a dict, not list"):
        tools.call_sync("same", [1])
