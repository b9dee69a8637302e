# SPDX-License-Identifier: MIT
"""From typed JSON to a value: see _values.py.

What comes out of a box is data, and may be written by whoever has taken over the tool. No class is
looked up by a name that comes with it: dataclasses, Enums and named tuples are made only if the
function's own type hint says that it returns them, and without their constructors. Everything else is
made of types that are named here. Where no hint names a class its value is given plainly, and a note says
so; what a hint does name is given as that, or refused.
"""

from __future__ import annotations

import base64
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import json
import json.scanner  # type: ignore[import]
import pathlib
import uuid
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Optional

from . import _arrays, _standard, _zones
from ._encode import TAG, class_key, fields_of, is_model
from ._members import Members
from ._native import native
from ._patience import Patience

if TYPE_CHECKING:
    from ._parts import Parts

FLAGS_MAX = 4096  # values of one class
VALUES_MAX = 2_000_000  # an object or array counts four
VALUES_PER_BYTE = VALUES_MAX / (16 << 20)
DEPTH_MAX = 1000  # arrays and objects within each other
DIGITS_MAX = 4300  # of a number; to read more of them takes the square of how many there are
PATH_MAX = 64 * 1024  # characters; a path is kept in its parts
SAID_MAX = 500  # characters of a complaint, which may quote
NOTES_MAX = 16
NAME_MAX = 100  # characters of the name of a class, in a note


class Hinted:
    """The classes that a result may have, by their names. They come from type hints of this side."""

    def __init__(self, classes: Iterable[type] = ()) -> None:
        self._classes = {class_key(cls): cls for cls in classes}
        if any(issubclass(cls, _zones.TIMES) for cls in self._classes.values()):
            _zones.load()  # now: not when a box asks for one

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
            raise _cannot(cls)
    return cls(value)


def _a(name: str) -> str:
    return f"an {name}" if name[0] in "AEIOUaeiou" else f"a {name}"


def _cannot(cls: type) -> ValueError:
    return ValueError(f"{_a(cls.__qualname__)}, which the return hint names, cannot be made of what came")


def _base64(text: Any) -> bytes:
    return base64.b64decode(text, validate=True)


def _zoned(value: Any, item: Dict[str, Any]) -> Any:
    if item.get("fold"):
        value = value.replace(fold=1)
    return _zones.put(value, item["zone"]) if item.get("zone") else value


def _text(item: Dict[str, Any]) -> str:
    value = item["value"]
    if not isinstance(value, str):
        raise ValueError(f"a {item[TAG]} must be a text")
    return value


def _path(item: Dict[str, Any]) -> Any:
    value = _text(item)
    if len(value) > PATH_MAX:
        raise ValueError(f"a path has more than {PATH_MAX} characters")
    return _PATHS[item.get("pure")](value)


def _complex(item: Dict[str, Any]) -> complex:
    real, imaginary = item["value"]
    return complex(float(real), float(imaginary))


def _fraction(item: Dict[str, Any]) -> Any:
    """As it was written, in lowest terms: to find them takes the square of the digits."""
    above, below = _standard.integers(item["value"], 2)
    if below <= 0:
        raise ValueError("a fraction has no denominator")
    made: Any = object.__new__(fractions.Fraction)
    made._numerator, made._denominator = above, below
    return made


_PATHS = {None: pathlib.Path, "posix": pathlib.PurePosixPath, "windows": pathlib.PureWindowsPath}

_DECODERS: Dict[str, Callable[[Dict[str, Any]], Any]] = {
    "int": lambda item: int(_text(item), 16),
    "float": lambda item: float(_text(item)),
    "tuple": lambda item: tuple(item["value"]),
    "datetime": lambda item: _zoned(datetime.datetime.fromisoformat(item["value"]), item),
    "date": lambda item: datetime.date.fromisoformat(item["value"]),
    "time": lambda item: _zoned(datetime.time.fromisoformat(item["value"]), item),
    "timedelta": lambda item: datetime.timedelta(*item["value"]),
    "decimal": lambda item: decimal.Decimal(_text(item)),
    "uuid": lambda item: uuid.UUID(_text(item)),
    "path": _path,
    "complex": _complex,
    "deque": _standard.read_deque,
    "fraction": _fraction,
    "range": _standard.read_range,
    "slice": _standard.read_slice,
}


class _Decoder:
    def __init__(self, parts: Optional[Parts], hinted: Hinted, characters: int, notes: List[str]) -> None:
        self.notes = notes
        self.parts = parts
        self.hinted = hinted
        self.used = bytearray(len(parts) if parts else 0)
        self.members = Members(characters)
        self.own = {
            "dict": self.dict,
            "set": self.set,
            "frozenset": self.frozenset,
            "bytes": self.bytes,
            "bytearray": self.bytearray,
            "text": self.text,
            "numpy": self.array,
            "enum": self.enum,
            "dataclass": self.dataclass,
            "namedtuple": self.namedtuple,
            "derived": self.derived,
            "counter": self.counter,
            "ordereddict": self.ordereddict,
            "defaultdict": self.defaultdict,
            "exception": self.exception,
        }

    def __call__(self, item: Dict[str, Any]) -> Any:
        if TAG not in item:
            return item
        tag = item[TAG]
        decoder = self.own.get(tag) or _DECODERS.get(tag) if isinstance(tag, str) else None
        if decoder is None:
            raise ValueError(f"the tag {tag!r} is unknown" if isinstance(tag, str) else "a tag is no text")
        return decoder(item)

    def part_of(self, item: Dict[str, Any]) -> Optional[int]:
        """The number of a part that is there; each is used once, or a few bytes could ask for a lot."""
        if "part" not in item:
            return None
        part = item["part"]
        if type(part) is not int or not self.parts or not 0 < part < len(self.parts):
            raise ValueError("there is no such part")  # its number may be as long as the result
        if self.used[part]:
            raise ValueError(f"the part {part} is used twice")
        self.used[part] = 1
        return part

    def dict(self, item: Dict[str, Any]) -> Any:
        return self.members.dict_of(item["value"])

    def set(self, item: Dict[str, Any]) -> Any:
        return self.members.set_of(item["value"])

    def frozenset(self, item: Dict[str, Any]) -> Any:
        return frozenset(self.members.set_of(item["value"]))

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

    def note(self, text: str) -> None:
        """Of what came back as something else. There are not many kinds of that in an honest result."""
        if len(self.notes) < NOTES_MAX and text not in self.notes:
            self.notes.append(text)

    def note_class(self, item: Dict[str, Any], plain: str) -> None:
        name = item["type"].replace(":", ".", 1) if isinstance(item["type"], str) else "?"
        self.note(f"{name[:NAME_MAX]!a} came back as {plain}, as the return hint does not name it")

    def array(self, item: Dict[str, Any]) -> Any:
        return _arrays.decode(item, self.parts, self.part_of(item), self.note)

    def enum(self, item: Dict[str, Any]) -> Any:
        cls = self.hinted.find(item["type"])
        value, name = item["value"], item["name"]
        if cls is None:
            self.note_class(item, "its value")
            return value
        member = None
        if issubclass(cls, enum.Enum):
            member = cls.__members__.get(name) if isinstance(name, str) else None
            if member is None and issubclass(cls, enum.Flag) and type(value) is int:
                return _flags(cls, value)
        if member is None:
            raise _cannot(cls)
        return member

    def dataclass(self, item: Dict[str, Any]) -> Any:
        """Made without __init__ and __post_init__, which may do anything with values from a box."""
        cls, values = self.hinted.find(item["type"]), item["value"]
        if not isinstance(values, dict):
            raise ValueError("the fields of a dataclass must be an object")
        if cls is None:
            self.note_class(item, "a dict")
            return values
        own_new = getattr(cls, "__new__") is not getattr(object, "__new__")
        if own_new or not dataclasses.is_dataclass(cls) or hasattr(cls, "__del__"):
            raise _cannot(cls)
        if {field.name for field in fields_of(cls)} != set(values):
            raise _cannot(cls)
        made: Any = object.__new__(cls)
        for name, value in values.items():
            object.__setattr__(made, name, value)
        return made

    def namedtuple(self, item: Dict[str, Any]) -> Any:
        cls: Any = self.hinted.find(item["type"])
        values = tuple(item["value"])
        if cls is None:
            self.note_class(item, "a tuple")
            return values
        fields = getattr(cls, "_fields", None)
        if fields is None or not issubclass(cls, tuple) or len(fields) != len(values) or hasattr(cls, "__del__"):
            raise _cannot(cls)
        return tuple.__new__(cls, values)

    def derived(self, item: Dict[str, Any]) -> Any:
        """Of a class that is more than a known one, and does not say what else it has."""
        cls = self.hinted.find(item["type"])
        if cls is not None and not is_model(cls):
            raise _cannot(cls)
        value = item["value"]
        what = _a(type(value).__name__)
        if cls is None:
            self.note_class(item, what)
        else:
            self.note(f"{cls.__qualname__!a} came back as {what}: a model is made by its own code alone")
        return value

    def counter(self, item: Dict[str, Any]) -> Any:
        return self.members.dict_of(item["value"], collections.Counter())

    def ordereddict(self, item: Dict[str, Any]) -> Any:
        return self.members.dict_of(item["value"], collections.OrderedDict())

    def defaultdict(self, item: Dict[str, Any]) -> Any:
        factory = _standard.factory_of(item)
        if factory is None and item.get("factory") is not None:
            self.note("a defaultdict came back without its default_factory, which is code")
        return self.members.dict_of(item["value"], collections.defaultdict(factory))

    def exception(self, item: Dict[str, Any]) -> Any:
        cls = self.hinted.find(item["type"]) if "type" in item else None
        made = _standard.read_exception(item, cls)
        if "type" in item and cls is None:
            self.note_class(item, _a(type(made).__name__))
        return made


class _Patient(json.JSONDecoder):
    """Slower, but other threads run meanwhile: the fast one keeps the interpreter for itself."""

    def __init__(self, **how: Any) -> None:
        patience = Patience()
        super().__init__(parse_int=patience.integer, parse_float=patience.real, **how)
        scanner: Any = json.scanner
        self.scan_once = scanner.py_make_scanner(self)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


SMALL = 4096  # characters; their depth and digits are bounded by that
_PLAIN = json.JSONDecoder(parse_constant=_no_constant)


def _check_text(text: str, most: float) -> None:
    """Before it is read: a few bytes of JSON can be many objects of Python. In a box, which has what it
    reads from its caller, there is nothing to be afraid of."""
    if native is None:
        return
    values, depth, digits = native.measure(text.encode("utf-8", "surrogatepass"))
    if values > most:
        raise ValueError(f"it has more than {most:.0f} values, which a larger limits.result allows")
    if depth > DEPTH_MAX:
        raise ValueError(f"it is nested more than {DEPTH_MAX} deep")
    if digits > DIGITS_MAX:
        raise ValueError(f"it has a number of more than {DIGITS_MAX} digits")


def loads(
    text: str,
    parts: Optional[Parts] = None,
    hinted: Optional[Hinted] = None,
    *,
    typed: bool = True,
    patient: bool = False,
    limit: int = 0,
    notes: Optional[List[str]] = None,
) -> Any:
    """Raises ValueError for what encode() would not have written. `typed` False: tags are nothing
    special. `limit`: the bytes that a result may have, which bound its values. `notes` gets a text for each
    kind of value that came back as something else."""
    small = len(text) <= SMALL
    try:
        if small and "$" not in text and "\\" not in text:
            return _PLAIN.decode(text)  # there is no tag in it
        if not small:
            _check_text(text, max(VALUES_MAX, limit * VALUES_PER_BYTE))
        noted = [] if notes is None else notes
        hook = _Decoder(parts, hinted or Hinted(), len(text), noted) if typed else None
        decoder: Any = _Patient if patient else json.JSONDecoder
        return decoder(object_hook=hook, parse_constant=_no_constant).decode(text)
    except Exception as error:  # whatever a value, or a class of the caller's, has to say to it
        said = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
        raise ValueError(said[:SAID_MAX]) from None
