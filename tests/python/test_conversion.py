# SPDX-License-Identifier: MIT
"""What is said of arguments that a schema lets pass, but the type hints do not. Nothing is started."""

import collections
import dataclasses
import datetime
import decimal
import enum
import uuid
from typing import DefaultDict, Dict, List, Literal, Optional, Union

import pytest
from typing_extensions import Annotated

from callbox._convert import bind


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Shape(enum.Enum):
    ROUND = (1, 2)


def complaint(hint, value):
    def function(given):
        pass

    function.__annotations__["given"] = hint
    with pytest.raises(ValueError) as raised:
        bind(function, {"given": value})
    text = str(raised.value)
    assert text.startswith("the argument 'given': ") and "<class" not in text and "typing." not in text
    return text[len("the argument 'given': ") :]


PLAIN = [
    (decimal.Decimal, "abc", "'abc' is no decimal number"),
    (uuid.UUID, "abc", "'abc' is no UUID"),
    (datetime.date, "2026-13-01", "'2026-13-01' is no date such as 2026-03-01"),
    (datetime.datetime, "noon", "'noon' is no time and date such as 2026-03-01T12:30:00"),
    (datetime.datetime, "", "'' is no time and date such as 2026-03-01T12:30:00"),
    (datetime.time, "noon", "'noon' is no time such as 12:30:00"),
    (datetime.timedelta, 1e300, "1e+300 is no number of seconds"),
    (bytes, "%", "'%' is no base64"),
    (Color, "green", "'green' is none of Color: 'red', 'blue'"),
    (Color, ["red"], "['red'] is none of Color: 'red', 'blue'"),
    (Shape, "SQUARE", "'SQUARE' is none of Shape: ROUND"),
    (int, "x", "'x' is no int"),
    (Literal["a", 1], "b", "'b' is none of: 'a', 1"),
    (Literal[Color.RED], "b", "'b' is none of: 'red'"),
]


@pytest.mark.parametrize("hint, value, says", PLAIN)
def test_the_reason_is_told_in_plain_words(hint, value, says):
    assert complaint(hint, value) == says
    assert complaint(Optional[hint], value) == says
    assert complaint(Union[None, Annotated[hint, "a note"]], value) == says
    assert complaint(List[Optional[hint]], [None, value]) == says


def test_members_of_a_union_are_named():
    assert complaint(Union[int, datetime.date, None], "x") == "'x' is none of: int, date, None"
    hint = Union[List[int], Dict[str, Color], Annotated[uuid.UUID, "a note"], Literal["a"]]
    assert complaint(hint, "x") == f"'x' is none of: List[int], Dict[str, {__name__}.Color], UUID, Literal['a']"
    assert complaint(Union[List[Union[int, str]], uuid.UUID], 1.5) == "1.5 is none of: List[Union[int, str]], UUID"


def test_a_large_value_is_not_told_in_full():
    assert len(complaint(uuid.UUID, "x" * 100_000)) < 200
    assert len(complaint(Union[int, uuid.UUID], list(range(100_000)))) < 200


def test_the_reason_of_a_model_is_told():
    pydantic = pytest.importorskip("pydantic")
    validator = getattr(pydantic, "field_validator", None) or pydantic.validator

    class Order(pydantic.BaseModel):
        count: int

        @validator("count")
        @classmethod
        def check(cls, value):
            if value % 2:
                raise ValueError("only pairs are sold")
            return value

    assert "only pairs are sold" in complaint(Optional[Order], {"count": 3})


def test_the_reason_of_a_dataclass_is_told():
    @dataclasses.dataclass
    class Order:
        count: int

        def __post_init__(self):
            if self.count % 2:
                raise ValueError("only pairs are sold")

    assert complaint(Optional[Order], {"count": 3}) == "only pairs are sold"


def given(hint, value):
    def function(given):
        pass

    function.__annotations__["given"] = hint
    args, named = bind(function, {"given": value})
    return named["given"]


def test_a_default_dict_has_its_default():
    made = given(DefaultDict[str, int], {"a": 1})
    assert type(made) is collections.defaultdict and made == {"a": 1}
    made["b"] += 1
    assert made == {"a": 1, "b": 1}
    made = given(DefaultDict[str, List[int]], {})
    made["a"].append(1)
    assert made == {"a": [1]}
    made = given(DefaultDict[str, DefaultDict[str, Annotated[float, "a note"]]], {"a": {"b": 1}})
    made["c"]["d"] += 1
    assert made == {"a": {"b": 1.0}, "c": {"d": 1.0}}
    made = given(DefaultDict[str, Color], {"a": "red"})
    assert made == {"a": Color.RED} and made.default_factory is None
    assert given(collections.defaultdict, {"a": 1}).default_factory is None
