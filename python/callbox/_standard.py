# SPDX-License-Identifier: MIT
"""More types of Python's own library as typed JSON, both sides: see _values.py. What is read is made of the
types that are named here, and their own constructors are all that is run."""

from __future__ import annotations

import builtins
import collections
import sys
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Tuple

if TYPE_CHECKING:
    from ._encode import Encoder, Place

RANGE_BITS = 4096  # of a number in a range: its length is a quotient
NOTES = "__notes__"  # since Python 3.11, of an exception
KEPT = ("name", "path", NOTES)  # of what an exception has besides its arguments

# What makes the values that a defaultdict lacks.
FACTORIES: Dict[str, Any] = {
    cls.__qualname__: cls
    for cls in (
        bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset,
        collections.deque, collections.Counter, collections.OrderedDict,
    )
}  # fmt: skip
EXCEPTIONS: Dict[str, Any] = {
    name: cls for name, cls in vars(builtins).items() if isinstance(cls, type) and issubclass(cls, BaseException)
}

# ---- To JSON ----


def _pairs(encoder: Encoder, value: Dict[Any, Any], place: Place) -> List[List[Any]]:
    return [[encoder.encode(key, (place, key)), encoder.encode(item, (place, key))] for key, item in value.items()]


def _deque(encoder: Encoder, value: Any, place: Place) -> Any:
    return encoder.tagged("deque", encoder.many(value, place), maxlen=value.maxlen)


def _counter(encoder: Encoder, value: Any, place: Place) -> Any:
    return encoder.tagged("counter", _pairs(encoder, value, place))


def _ordered(encoder: Encoder, value: Any, place: Place) -> Any:
    return encoder.tagged("ordereddict", _pairs(encoder, value, place))


def _default(encoder: Encoder, value: Any, place: Place) -> Any:
    factory = value.default_factory
    name = next((name for name, known in FACTORIES.items() if known is factory), None)
    more = {"factory": name} if name or factory is None else {"factory": "?"}
    return encoder.tagged("defaultdict", _pairs(encoder, value, place), **more)


def fraction(encoder: Encoder, value: Any, place: Place) -> Any:
    return encoder.tagged("fraction", encoder.many((value.numerator, value.denominator), place))


def _range(encoder: Encoder, value: Any, place: Place) -> Any:
    numbers = (value.start, value.stop, value.step)
    if any(number.bit_length() > RANGE_BITS for number in numbers):
        raise encoder.refuse_type(place, "a range with such numbers", "its start, stop and step")
    return encoder.tagged("range", encoder.many(numbers, place))


def _slice(encoder: Encoder, value: Any, place: Place) -> Any:
    return encoder.tagged("slice", encoder.many((value.start, value.stop, value.step), place))


def exception(encoder: Encoder, value: BaseException, place: Place) -> Any:
    """By the nearest class that every Python has, and its own name if that is another."""
    cls = type(value)
    base = next(base for base in cls.__mro__ if EXCEPTIONS.get(base.__qualname__) is base)
    if cls is base:  # those say how they are made: an OSError has its file besides its arguments
        made: Any = value.__reduce__()
        args, state = made[1], made[2] if len(made) > 2 else {}
        more = {name: encoder.encode(state[name], (place, name)) for name in KEPT if state.get(name) is not None}
        return encoder.tagged("exception", encoder.many(args, place), base=base.__qualname__, more=more)
    more = {str(name): encoder.encode(item, (place, name)) for name, item in vars(value).items()}
    name = f"{cls.__module__}:{cls.__qualname__}"
    return encoder.tagged("exception", encoder.many(value.args, place), base=base.__qualname__, type=name, more=more)


ENCODERS: Tuple[Tuple[Any, Callable[[Encoder, Any, Place], Any]], ...] = (
    (collections.deque, _deque),
    (collections.Counter, _counter),
    (collections.OrderedDict, _ordered),
    (collections.defaultdict, _default),
    (range, _range),
    (slice, _slice),
)

# ---- From JSON ----


def integers(given: Any, count: int) -> List[int]:
    if not isinstance(given, list) or len(given) != count or any(type(number) is not int for number in given):
        raise ValueError(f"these are not {count} whole numbers")
    return given


def read_deque(item: Dict[str, Any]) -> Any:
    most = item.get("maxlen")
    if most is not None and (type(most) is not int or not 0 <= most <= sys.maxsize):
        raise ValueError("the length of a deque is none")
    if not isinstance(item["value"], list):
        raise ValueError("the items of a deque must be an array")
    return collections.deque(item["value"], most)


def read_range(item: Dict[str, Any]) -> range:
    numbers = integers(item["value"], 3)
    if any(number.bit_length() > RANGE_BITS for number in numbers):
        raise ValueError("the numbers of a range are too large")
    return range(*numbers)


def read_slice(item: Dict[str, Any]) -> slice:
    start, stop, step = item["value"]
    return slice(start, stop, step)


def factory_of(item: Dict[str, Any]) -> Optional[Any]:
    name = item.get("factory")
    return FACTORIES.get(name) if isinstance(name, str) else None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or isinstance(value, list) and all(isinstance(line, str) for line in value)


def read_exception(item: Dict[str, Any], cls: Optional[type]) -> Any:
    """`cls`: its own class, if a hint names it; it is made without its constructor then."""
    base: Any = EXCEPTIONS.get(item["base"]) if isinstance(item["base"], str) else None
    args, more = item["value"], item["more"]
    if base is None or not isinstance(args, list) or not isinstance(more, dict):
        raise ValueError("an exception is none that is known")
    if cls is None:
        made = base(*args)
        for name in KEPT:
            if "type" not in item and _is_text(more.get(name)):
                setattr(made, name, more[name])
        return made
    if not issubclass(cls, base) or hasattr(cls, "__del__") or getattr(cls, "__new__") is not base.__new__:
        raise ValueError(f"a {cls.__qualname__} cannot be made of it")
    made = base.__new__(cls, *args)
    made.args = tuple(args)
    vars(made).update(more)
    return made
