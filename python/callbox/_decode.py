# SPDX-License-Identifier: MIT
"""From typed JSON to a value: see _values.py.

What comes out of a box is data, and may be written by whoever has taken over the tool. No class is
looked up by a name that comes with it: dataclasses, Enums and named tuples are made only if the
function's own type hint says that it returns them, and without their constructors. Everything else is
made of types that are named here. Where a class is not known its value is given plainly.
"""

from __future__ import annotations

import base64
import collections
import dataclasses
import datetime
import decimal
import enum
import importlib
import json
import pathlib
import re
import sys
import uuid
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional

from ._encode import TAG, class_key, fields_of
from ._patience import Patience

if TYPE_CHECKING:
    from ._parts import Parts

FLAGS_MAX = 4096  # values of one class
SAME_HASH_MAX = 64  # members of a set; more were made to take forever
VALUES_MAX = 2_000_000  # an object or array counts four
VALUES_PER_BYTE = VALUES_MAX / (16 << 20)


class Hinted:
    """The classes that a result may have, by their names. They come from type hints of this side."""

    def __init__(self, classes: Iterable[type] = ()) -> None:
        self._classes = {class_key(cls): cls for cls in classes}

    def find(self, name: Any) -> Optional[type]:
        return self._classes.get(name) if isinstance(name, str) else None


def _flags(cls: Any, value: int) -> Any:
    """Several flags at once, which have no name of their own. Each such value that was ever made stays
    in the class: a box may add only so many, and none with bits that are no flag's. A class may have
    its own idea of them, which is not asked."""
    known = cls._value2member_map_
    if value not in known:
        standard = [vars(base)["_missing_"] for base in (enum.Flag, enum.IntFlag) if "_missing_" in vars(base)]
        found = next(vars(base)["_missing_"] for base in cls.__mro__ if "_missing_" in vars(base))
        bits = 0
        for member in cls.__members__.values():
            bits |= member.value
        if found not in standard or value < 0 or value & ~bits or len(known) >= FLAGS_MAX:
            return value
    return cls(value)


def _base64(text: Any) -> bytes:
    return base64.b64decode(text, validate=True)


def _unhurried(members: Iterable[Any]) -> List[Any]:
    """Members of a set or keys of a dict, unless they were chosen to have the same hash: to put n of
    those into a set takes the square of n."""
    found = list(members)
    if len(found) > SAME_HASH_MAX:
        most = collections.Counter(map(hash, found)).most_common(1)[0][1]
        if most > SAME_HASH_MAX:
            raise ValueError(f"{most} members of a set or dict have the same hash")
    return found


def _dict(item: Dict[str, Any]) -> Dict[Any, Any]:
    pairs = [(key, value) for key, value in item["value"]]
    _unhurried(key for key, _ in pairs)
    return dict(pairs)


def _zoned(value: Any, item: Dict[str, Any]) -> Any:
    if item.get("fold"):
        value = value.replace(fold=1)
    if item.get("zone"):
        import zoneinfo

        try:
            value = value.replace(tzinfo=zoneinfo.ZoneInfo(item["zone"]))
        except (zoneinfo.ZoneInfoNotFoundError, OSError):
            pass  # the offset is right for this moment
    return value


_PATHS = {None: pathlib.Path, "posix": pathlib.PurePosixPath, "windows": pathlib.PureWindowsPath}

_DECODERS: Dict[str, Callable[[Dict[str, Any]], Any]] = {
    "int": lambda item: int(item["value"], 16),
    "float": lambda item: float(item["value"]),
    "dict": _dict,
    "tuple": lambda item: tuple(item["value"]),
    "set": lambda item: set(_unhurried(item["value"])),
    "frozenset": lambda item: frozenset(_unhurried(item["value"])),
    "datetime": lambda item: _zoned(datetime.datetime.fromisoformat(item["value"]), item),
    "date": lambda item: datetime.date.fromisoformat(item["value"]),
    "time": lambda item: _zoned(datetime.time.fromisoformat(item["value"]), item),
    "timedelta": lambda item: datetime.timedelta(*item["value"]),
    "decimal": lambda item: decimal.Decimal(item["value"]),
    "uuid": lambda item: uuid.UUID(item["value"]),
    "path": lambda item: _PATHS[item.get("pure")](item["value"]),
    "complex": lambda item: complex(*item["value"]),
}


class _Decoder:
    def __init__(self, parts: Optional[Parts], hinted: Hinted) -> None:
        self.parts = parts
        self.hinted = hinted
        self.used: Dict[int, bool] = {}
        self.own = {
            "bytes": self.bytes,
            "bytearray": self.bytearray,
            "text": self.text,
            "numpy": self.array,
            "enum": self.enum,
            "dataclass": self.dataclass,
            "namedtuple": self.namedtuple,
        }

    def __call__(self, item: Dict[str, Any]) -> Any:
        if TAG not in item:
            return item
        tag = item[TAG]
        decoder = self.own.get(tag) or _DECODERS.get(tag) if isinstance(tag, str) else None
        if decoder is None:
            raise ValueError(f"the tag {tag!r} is unknown")
        return decoder(item)

    def part_of(self, item: Dict[str, Any]) -> Optional[int]:
        """The number of a part that is there; each is used once, or a few bytes could ask for a lot."""
        if "part" not in item:
            return None
        part = item["part"]
        if type(part) is not int or not self.parts or not 0 < part < len(self.parts):
            raise ValueError(f"there is no part {part!r}")
        if self.used.setdefault(part, False):
            raise ValueError(f"the part {part} is used twice")
        self.used[part] = True
        return part

    def bytes(self, item: Dict[str, Any]) -> bytes:
        part = self.part_of(item)
        return _base64(item["value"]) if part is None or not self.parts else self.parts.bytes(part)

    def bytearray(self, item: Dict[str, Any]) -> bytearray:
        part = self.part_of(item)
        if part is None or not self.parts:
            return bytearray(_base64(item["value"]))
        room = bytearray(self.parts.length(part))
        self.parts.read_into(part, room)
        return room

    def text(self, item: Dict[str, Any]) -> str:
        part = self.part_of(item)
        if part is None or not self.parts:
            return _base64(item["value"]).decode("utf-8", "surrogatepass")
        return self.parts.text(part)

    def array(self, item: Dict[str, Any]) -> Any:
        from . import _arrays

        return _arrays.decode(item, self.parts, self.part_of(item))

    def enum(self, item: Dict[str, Any]) -> Any:
        cls = self.hinted.find(item["type"])
        value = item["value"]
        if cls is None or not issubclass(cls, enum.Enum):
            return value
        name = item["name"]
        member = cls.__members__.get(name) if isinstance(name, str) else None
        if member is None and issubclass(cls, enum.Flag) and type(value) is int:
            return _flags(cls, value)
        return value if member is None else member

    def dataclass(self, item: Dict[str, Any]) -> Any:
        """Made without __init__ and __post_init__, which may do anything with values from a box."""
        cls, values = self.hinted.find(item["type"]), item["value"]
        if not isinstance(values, dict):
            raise ValueError("the fields of a dataclass must be an object")
        if cls is None or not dataclasses.is_dataclass(cls) or hasattr(cls, "__del__"):
            return values
        own_new = getattr(cls, "__new__") is not getattr(object, "__new__")
        if own_new or {field.name for field in fields_of(cls)} != set(values):
            return values
        made: Any = object.__new__(cls)
        for name, value in values.items():
            object.__setattr__(made, name, value)
        return made

    def namedtuple(self, item: Dict[str, Any]) -> Any:
        cls: Any = self.hinted.find(item["type"])
        values = tuple(item["value"])
        fields = getattr(cls, "_fields", None)
        if fields is None or not issubclass(cls, tuple) or len(fields) != len(values):
            return values
        return values if hasattr(cls, "__del__") else tuple.__new__(cls, values)


class _Patient(json.JSONDecoder):
    """Slower, but other threads run meanwhile: the fast one keeps the interpreter for itself."""

    def __init__(self, **how: Any) -> None:
        patience = Patience()
        super().__init__(parse_int=patience.integer, parse_float=patience.real, **how)
        scanner: Any = importlib.import_module("json.scanner")
        self.scan_once = scanner.py_make_scanner(self)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


SMALL = 4096  # characters
_PLAIN = json.JSONDecoder(parse_constant=_no_constant)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


def _count(text: str) -> int:
    return text.count(",") + 4 * (text.count("[") + text.count("{"))


def _check_text(text: str, most: float) -> None:
    """A few bytes of JSON can be many objects of Python."""
    if _count(text) > most and _count(_STRING.sub('""', text)) > most:
        raise ValueError(f"it has more than {most:.0f} values, which a larger limits.result allows")
    if sys.version_info < (3, 11) and re.search(r"[0-9]{4301}", text):
        raise ValueError("it has a number of more than 4300 digits")


def loads(
    text: str,
    parts: Optional[Parts] = None,
    hinted: Optional[Hinted] = None,
    *,
    typed: bool = True,
    patient: bool = False,
    limit: int = 0,
) -> Any:
    """Raises ValueError for what encode() would not have written. `typed` False: tags are nothing
    special. `limit`: the bytes that a result may have, which bound its values."""
    if len(text) <= SMALL and "$" not in text and "\\" not in text:
        try:
            return _PLAIN.decode(text)  # there is no tag in it
        except RecursionError as error:
            raise ValueError(f"RecursionError: {error}") from None
    hook = _Decoder(parts, hinted or Hinted()) if typed else None
    decoder: Any = _Patient if patient else json.JSONDecoder
    try:
        _check_text(text, max(VALUES_MAX, limit * VALUES_PER_BYTE))
        return decoder(object_hook=hook, parse_constant=_no_constant).decode(text)
    except ValueError:
        raise
    except (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
