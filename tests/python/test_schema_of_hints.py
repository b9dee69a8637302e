# SPDX-License-Identifier: MIT
"""Schemas of type hints and docstrings, with nothing started."""

import dataclasses
import enum
import sys
from typing import Any, Dict, List, NewType, Optional, Sequence, Tuple, TypedDict, Union

import pytest
from typing_extensions import Annotated, NotRequired

from callbox import CallboxError, Tool
from callbox._convert import bind
from callbox._schema import read_docstring

Id = NewType("Id", int)


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Shape(enum.Enum):
    ROUND = object()


class Entry(TypedDict):
    name: str
    size: NotRequired[int]


@dataclasses.dataclass
class Tree:
    value: int
    left: "Optional[Tree]" = None


CASES = [
    (Any, {}),
    (Id, {"type": "integer"}),
    (Optional[str], {"anyOf": [{"type": "string"}, {"type": "null"}]}),
    (Union[int, List[str]], {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]}),
    (Sequence[float], {"type": "array", "items": {"type": "number"}}),
    (list, {"type": "array", "items": {}}),
    (dict, {"type": "object", "additionalProperties": {}}),
    (Dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
    (Tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
    (Level, {"enum": [1, 2]}),
    (Shape, {"enum": ["ROUND"]}),
    (Annotated[int, "how many", {"minimum": 1}], {"type": "integer", "description": "how many", "minimum": 1}),
]


def schema_of(hint):
    def function(x):
        pass

    function.__annotations__["x"] = hint
    return Tool(function).describe()["inputSchema"]


@pytest.mark.parametrize("hint, expected", CASES, ids=str)
def test_hints(hint, expected):
    assert schema_of(hint)["properties"]["x"] == expected


@pytest.mark.skipif(sys.version_info < (3, 10), reason="X | Y is new in 3.10")
def test_unions_by_a_bar():
    assert schema_of(int | None)["properties"]["x"] == {"anyOf": [{"type": "integer"}, {"type": "null"}]}


def test_classes_may_hold_themselves():
    schema = schema_of(Tree)
    assert schema["properties"]["x"] == {"$ref": "#/$defs/Tree"}
    assert schema["$defs"]["Tree"] == {
        "type": "object",
        "properties": {
            "value": {"type": "integer"},
            "left": {"anyOf": [{"$ref": "#/$defs/Tree"}, {"type": "null"}], "default": None},
        },
        "required": ["value"],
        "additionalProperties": False,
    }
    entry = schema_of(Entry)["$defs"]["Entry"]
    assert entry["required"] == ["name"] and set(entry["properties"]) == {"name", "size"}


def test_models_of_pydantic():
    pydantic = pytest.importorskip("pydantic")

    class Inner(pydantic.BaseModel):
        n: int

    class Outer(pydantic.BaseModel):
        inner: Inner
        names: List[str] = []

    def function(x: Outer):
        return x

    function.__annotations__["x"] = Outer
    schema = schema_of(Outer)
    assert schema["$defs"]["Outer"]["properties"]["inner"]["$ref"] == "#/$defs/Inner"
    assert schema["$defs"]["Inner"]["required"] == ["n"]
    _, named = bind(function, {"x": {"inner": {"n": 3}}})
    assert named["x"] == Outer(inner=Inner(n=3))


def test_docstrings():
    text = """Do it
    all.

    Not this.

    Args:
        a: first, with: a colon
        *rest: more
            of it

    Returns:
        b: not a parameter
    """
    assert read_docstring(text) == ("Do it all.", {"a": "first, with: a colon", "rest": "more of it"})
    assert read_docstring("Do.\n\n:param int a: one\n:param b: two\n:returns: c") == ("Do.", {"a": "one", "b": "two"})
    assert read_docstring(None) == ("", {})


def test_what_has_no_json_is_named():
    with pytest.raises(CallboxError, match=r"function\(x\[...\]\)"):
        schema_of(List[complex])

    def lost(x: "Nowhere"):  # noqa: F821
        pass

    with pytest.raises(CallboxError, match="Nowhere"):
        Tool(lost).describe()
