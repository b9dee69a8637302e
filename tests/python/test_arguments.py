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
from typing import Any, List, Optional

import pytest

from callbox import Tool, Toolbox, _arguments


def length(text: str) -> int:
    return len(text)


def same(value: Any) -> Any:
    return value


def double(number: int, more: Optional[List[int]] = None) -> List[int]:
    return [2 * number, *(2 * each for each in more or [])]


def small(number: int, text: str = "") -> int:
    return number


SMALL = {
    "type": "object",
    "properties": {"number": {"type": "integer", "maximum": 2**53}, "text": {"type": "string"}},
    "required": ["number"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def tools():
    return Toolbox([length, same, double, Tool(small, input_schema=SMALL)])


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


@pytest.mark.parametrize(
    "number", [2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64 + 1, 10**30 + 1, 10**308 + 7, -(10**4000) - 9]
)
def test_integers_arrive_as_they_are_however_long(tools, number):
    assert tools.call_sync("double", {"number": number}).output == [2 * number]
    assert tools.call_sync("double", {"number": 1, "more": [number, -7]}).output == [2, 2 * number, -14]
    assert tools.call_sync("same", {"value": {'"1\\': [number, "2" * 30, 1.5]}}).output == {'"1\\': [number, "2" * 30, 1.5]}
    assert asyncio.run(tools.call("double", {"number": number})).output == [2 * number]


@pytest.mark.parametrize("arguments, says", [
    ({"number": 2**64}, "/number must be at most"),
    ({"number": -(2**64), "text": 2**64}, "/text must be a string"),
    ({"number": -(2**64), "more": 2**64}, "more"),
    ({"number": 2**53 + 1, "text": "1" * 30}, "/number must be at most"),
])
def test_long_integers_are_checked_as_others_are(tools, arguments, says):
    result = tools.call_sync("small", arguments)
    assert not result.ok and says in result.error, result.error


def test_where_one_is_long_the_others_are_checked_exactly(tools):
    tool = Tool(double, name="bounded", input_schema={
        "type": "object",
        "properties": {
            "number": {"type": "integer", "maximum": 2**53},
            "more": {"type": "array", "items": {"type": "integer"}},
        },
    })  # fmt: skip
    box = Toolbox([tool])
    assert box.call_sync("bounded", {"number": 2**53, "more": [2**70]}).output == [2**54, 2**71]
    assert "/number" in box.call_sync("bounded", {"number": 2**53 + 1, "more": [2**70]}).error


def test_a_command_gets_no_integer_that_others_could_not_read():
    box = Toolbox()
    box.add({
        "name": "show",
        "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        "run": {"command": ["echo", "{n}"]},
    })  # fmt: skip
    assert box.call_sync("show", {"n": 2**63 - 1}).text.strip() == str(2**63 - 1)
    assert "out of range" in box.call_sync("show", {"n": 2**63}).error


@pytest.mark.parametrize("text", ["}" * 100_000, "}\n" * 5000, "{}" * 3000, '"}' * 5000])
def test_what_looks_like_an_end_is_none(tools, text):
    assert tools.call_sync("length", {"text": text}).output == len(text)
