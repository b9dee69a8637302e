# SPDX-License-Identifier: MIT
"""Schemas of type hints and docstrings, with nothing started."""

import collections
import dataclasses
import datetime
import decimal
import enum
import functools
import json
import pathlib
import sys
from typing import Any, Deque, Dict, List, Literal, NewType, Optional, OrderedDict, Sequence, Tuple, TypedDict, TypeVar
from typing import Union

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


@dataclasses.dataclass
class Described:
    """A thing.

    Attributes:
        name: what it is called
    """

    name: str
    sizes: List[int] = dataclasses.field(default_factory=list)


T = TypeVar("T", int, str)

CASES = [
    (Tuple[()], {"type": "array", "minItems": 0, "maxItems": 0}),
    (Tuple[int, str], {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2}),
    (T, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    (Deque[int], {"type": "array", "items": {"type": "integer"}}),
    (OrderedDict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    (Dict[Id, int], {"type": "object", "propertyNames": {"pattern": "^-?[0-9]+$"}, "additionalProperties": {"type": "integer"}}),
    (Dict[datetime.date, int], {"type": "object", "propertyNames": {"format": "date"}, "additionalProperties": {"type": "integer"}}),
    (Dict[Literal["a", "b"], int], {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": {"type": "integer"}}),
    (bytearray, {"type": "string", "contentEncoding": "base64"}),
    (pathlib.Path, {"type": "string"}),
    (Literal["a", 1, None, Level.LOW], {"enum": ["a", 1, None, 1]}),
    (Optional[Annotated[Id, "an id"]], {"anyOf": [{"type": "integer", "description": "an id"}, {"type": "null"}]}),
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
    assert schema["$defs"]["Outer"]["properties"]["inner"]["$ref"] == "#/$defs/Outer.Inner"
    assert schema["$defs"]["Outer.Inner"]["required"] == ["n"]
    _, named = bind(function, {"x": {"inner": {"n": 3}}})
    assert named["x"] == Outer(inner=Inner(n=3))


def test_records_say_what_their_docstring_says():
    schema = schema_of(Described)["$defs"]["Described"]
    assert schema["description"] == "A thing."
    assert schema["properties"]["name"] == {"type": "string", "description": "what it is called"}
    assert "description" not in schema_of(Tree)["$defs"]["Tree"]


def test_defaults_are_shown_where_json_has_them():
    def function(
        a=1, b=float("inf"), c=float("nan"), d=None, e=Level.LOW, f=Shape.ROUND, g=pathlib.Path("/x"), h=(1, [2]),
        i={"k": 1}, j={1: 2}, k=b"hi", m=datetime.date(2026, 1, 2), n=decimal.Decimal("1.5"), o=object(), p=..., q=[object()],
    ): ...  # fmt: skip

    schema = Tool(function).describe()["inputSchema"]
    shown = {name: item["default"] for name, item in schema["properties"].items() if "default" in item}
    assert shown == {
        "a": 1, "d": None, "e": 1, "f": "ROUND", "g": "/x", "h": [1, [2]], "i": {"k": 1}, "k": "aGk=",
        "m": "2026-01-02", "n": "1.5",
    }  # fmt: skip
    assert "required" not in schema
    json.dumps(schema, allow_nan=False)


def test_every_kind_of_parameter():
    def function(a: int, b: int = 2, /, c: int = 3, *more: int, d: int, e: int = None, **rest: float):
        return a, b, c, more, d, e, rest

    schema = Tool(function).describe()["inputSchema"]
    assert schema["required"] == ["a", "d"]
    assert schema["properties"]["more"] == {"type": "array", "items": {"type": "integer"}}
    assert schema["properties"]["e"]["anyOf"] == [{"type": "integer"}, {"type": "null"}]
    assert schema["additionalProperties"] == {"type": "number"}

    def call(arguments):
        args, named = bind(function, arguments)
        return function(*args, **named)

    assert call({"a": 1, "d": 4}) == (1, 2, 3, (), 4, None, {})
    assert call({"d": 4, "more": [7, 8], "a": 1}) == (1, 2, 3, (7, 8), 4, None, {})
    assert call({"a": 1, "c": 5, "d": 4, "e": None, "x": 1}) == (1, 2, 5, (), 4, None, {"x": 1.0})
    assert call({"a": 1, "b": 6, "more": [], "d": 4}) == (1, 6, 3, (), 4, None, {})
    with pytest.raises(ValueError, match="'more'"):
        call({"a": 1, "d": 4, "more": ["x"]})


def test_methods_partials_and_objects():
    class Thing:
        """A thing."""

        def method(self, a: int):
            """Do."""

        @classmethod
        def of(cls, b: int): ...

        def __call__(self, c: int): ...

    def names(tool):
        return list(tool["inputSchema"]["properties"]), tool.get("description")

    assert names(Tool(Thing().method).describe()) == (["a"], "Do.")
    assert names(Tool(Thing.of).describe()) == (["b"], None)
    assert names(Tool(Thing()).describe()) == (["c"], "A thing.")
    assert names(Tool(functools.partial(Thing().method, 1)).describe()) == ([], "Do.")
    with pytest.raises(CallboxError, match="a method without its object"):
        Tool(Thing.method).describe()


def test_arguments_become_what_the_hints_say():
    def function(
        tree: Tree, level: Level, shape: Shape, path: pathlib.Path, entry: Entry, id: Id, when: Dict[datetime.date, Level],
        queue: Deque[int], either: Union[Tree, int, None], rows: List[Tuple[Level, pathlib.Path]], raw: bytearray,
    ): ...  # fmt: skip

    _, named = bind(function, {
        "tree": {"value": 1, "left": {"value": 2}}, "level": 2, "shape": "ROUND", "path": "/a", "entry": {"name": "n"},
        "id": 3, "when": {"2026-01-02": 1}, "queue": [1], "either": {"value": 3}, "rows": [[1, "b"]], "raw": "aGk=",
    })  # fmt: skip
    assert named == {
        "tree": Tree(1, Tree(2)), "level": Level.HIGH, "shape": Shape.ROUND, "path": pathlib.Path("/a"),
        "entry": {"name": "n"}, "id": 3, "when": {datetime.date(2026, 1, 2): Level.LOW}, "queue": collections.deque([1]),
        "either": Tree(3), "rows": [(Level.LOW, pathlib.Path("b"))], "raw": bytearray(b"hi"),
    }  # fmt: skip
    for name, value in (("tree", {"value": "x"}), ("level", 3), ("shape", "SQUARE"), ("rows", [[1]]), ("when", {"x": 1})):
        with pytest.raises(ValueError, match=f"the argument '{name}'"):
            bind(function, {name: value})


def test_docstrings_of_numpy():
    text = """Do it.

    Parameters
    ----------
    a : int
        The first
        of them.

        And more.
    b, c : str, optional
        Both.
    *rest
        Others.

    Returns
    -------
    d : int
        Not a parameter.

    Other Parameters
    ----------------
    e
        The last.
    """
    said = {"a": "The first of them. And more.", "b": "Both.", "c": "Both.", "rest": "Others.", "e": "The last."}
    assert read_docstring(text) == ("Do it.", said)


def test_docstrings_of_google_and_rest():
    text = """Args:
        a (Dict[str, int], optional): one: two
            three

        b: four

    Keyword Args:
        c: five

    Raises:
        KeyError: not a parameter
    """
    assert read_docstring(text) == ("", {"a": "one: two three", "b": "four", "c": "five"})
    text = """Do
    it.
    :param Dict[str, int] a: one
        two
    :arg b: three
    :type b: int
    :keyword c: four
    :raises ValueError: five
    """
    assert read_docstring(text) == ("Do it.", {"a": "one two", "b": "three", "c": "four"})


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
