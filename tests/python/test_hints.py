# SPDX-License-Identifier: MIT
"""Type hints that are less plain than others."""

import dataclasses
from dataclasses import InitVar

import odd_hints
import pytest

from callbox import CallboxError, Tool, Toolbox
from callbox._convert import bind


@pytest.fixture(scope="module")
def tools():
    return Toolbox([odd_hints.returns_unknown, odd_hints.size, odd_hints.other])


def test_a_return_hint_that_cannot_be_resolved_is_none(tools):
    schema = Tool(odd_hints.returns_unknown).describe()["inputSchema"]
    assert schema["properties"] == {"n": {"type": "integer"}}
    assert tools.call_sync("returns_unknown", {"n": 1}).output == 2
    assert tools.call_sync("returns_unknown", {"n": "1"}).mistakes


def test_a_hint_of_a_parameter_that_cannot_be_resolved_is_refused():
    with pytest.raises(CallboxError, match="name 'Unknown' is not defined"):
        Tool(odd_hints.takes_unknown).describe()


def test_variables_of_init_are_passed(tools):
    schema = Tool(odd_hints.size).describe()["inputSchema"]["$defs"]
    assert schema["Area"]["required"] == ["width"]
    assert list(schema["Area"]["properties"]) == ["width", "unit", "size"]
    assert list(schema["Named"]["properties"]) == ["width", "unit", "size", "name"]
    assert schema["Area"]["properties"]["width"] == {"type": "integer"}
    assert tools.call_sync("size", {"area": {"width": 3}}).output == [9, None, None]
    given = {"area": {"width": 3, "unit": "m"}, "named": {"width": 2, "name": "x"}}
    assert tools.call_sync("size", given).output == [9, "m", 4]
    assert "width" in tools.call_sync("size", {"area": {}}).mistakes[0].text


def test_variables_of_init_that_are_no_texts():
    @dataclasses.dataclass
    class Area:
        width: InitVar[int]
        size: int = 0

        def __post_init__(self, width):
            self.size = width * width

    def size(area: Area) -> int:
        return area.size

    schema = Tool(size).describe()["inputSchema"]["$defs"]["Area"]
    assert schema["required"] == ["width"] and schema["properties"]["width"] == {"type": "integer"}
    _, named = bind(size, {"area": {"width": 3}})
    assert size(**named) == 9


def test_flags_are_passed_as_they_come_back(tools):
    assert Tool(odd_hints.other).describe()["inputSchema"]["properties"]["rights"] == {
        "type": "integer",
        "minimum": 0,
        "maximum": 7,
        "description": "the sum of READ (1), WRITE (2), RUN (4)",
        "default": 5,
    }
    rights = odd_hints.Rights
    first = tools.call_sync("other").output
    assert first == rights.WRITE
    back = tools.call_sync("other", {"rights": first.value}).output
    assert back == rights.READ | rights.RUN
    assert tools.call_sync("other", {"rights": back.value}).output == rights.WRITE
    assert tools.call_sync("other", {"rights": 0}).output == rights.READ | rights.WRITE | rights.RUN
    assert tools.call_sync("other", {"rights": 64}).mistakes[0].path == "/rights"
    with pytest.raises(ValueError, match="64 is none of Rights: 1, 2, 4"):
        bind(odd_hints.other, {"rights": 64})
