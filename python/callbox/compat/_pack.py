# SPDX-License-Identifier: MIT
"""A function and its arguments, made ready to be sent into a box.

A function that a box can import is sent by its name; others by value. Arguments that are plain JSON are sent as that. Others are pickled, into a file in memory
and off the event loop: each piece that is written lets other threads run, so that an agent is not
held up by one large argument."""

from __future__ import annotations

import base64
import io
import math
import os
import pickle
import sys
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

from .._interpreter import REMADE, why_not_by_name
from .._late import Late

if TYPE_CHECKING:
    from .. import _by_value
else:
    _by_value = Late("callbox._by_value")

PLAIN_NODES = 2000  # looked at on the event loop
PLAIN_CHARACTERS = 64 * 1024
PIECE = 256 * 1024  # characters
INLINE_MAX = 512 * 1024  # bytes of a pickle that still goes the short way
# Under these names decorators keep the function that their own object stands for.
KEPT_AS = ("fn", "func", "function", "__wrapped__")


class NotSendable(Exception):
    """Neither by name nor by value; the text says why."""


class Place(NamedTuple):
    """Where a box finds a function: a module to load ahead, its file, and the function's name in
    it; no name: it is sent by value."""

    module: str
    file: Optional[str]
    name: Optional[str]


class Packed(NamedTuple):
    """Either a part of a request, or a descriptor with a pickle in it."""

    part: Dict[str, Any]
    file: Optional[io.FileIO]


def _file_of(module: Any) -> Optional[str]:
    file = getattr(module, "__file__", None)
    return file if file and os.path.exists(file) else None


def _kept_name(function: Any) -> Optional[str]:
    """The name of a function that stands behind a decorator's object, which has taken its place."""
    qualname, name = getattr(function, "__qualname__", None), getattr(function, "__module__", None)
    if not qualname or not name or name == "__main__" or "<" in qualname:
        return None
    module: Any = sys.modules.get(name)
    if _file_of(module) is None:
        return None
    found = module
    for part in qualname.split("."):
        found = getattr(found, part, None)
    for kept in KEPT_AS:
        if getattr(found, kept, None) is function:
            return f"{name}:{qualname}.{kept}"
    return None


def place_of(function: Callable[..., Any]) -> Place:
    name = getattr(function, "__module__", "")
    if not why_not_by_name(function):
        return Place(name, _file_of(sys.modules[name]), f"{name}:{function.__qualname__}")
    kept = _kept_name(function)
    if kept:
        return Place(name, _file_of(sys.modules[name]), kept)
    # The class of a method or of a callable object has to be imported in any case.
    owner = getattr(function, "__self__", function)
    home = (owner if isinstance(owner, type) else type(owner)).__module__
    file = _file_of(sys.modules.get(home)) if home != "__main__" else None
    return Place(home, file, None) if file else Place(REMADE, None, None)


# ---- Arguments ----


def _is_plain_leaf(value: Any) -> bool:
    kind = type(value)
    if kind is str:
        return bool(value.isascii()) or not any("\ud800" <= c <= "\udfff" for c in value)
    if kind is int:
        return bool(-(2**63) <= value < 2**63)
    return value is None or kind is bool or (kind is float and math.isfinite(value))


def is_plain(value: Any) -> bool:
    """Whether JSON gives it back as it is, and it is small. It costs little to ask."""
    nodes, characters = 0, 0
    rest: List[Any] = [value]
    while rest:
        item = rest.pop()
        nodes += 1
        if type(item) is dict:
            if any(type(key) is not str for key in item):
                return False
            rest += [*item, *item.values()] if len(item) <= PLAIN_NODES else ()
            nodes += len(item)
        elif type(item) is list:
            rest += item if len(item) <= PLAIN_NODES else ()
            nodes += len(item)
        else:
            characters += len(item) if type(item) is str else 0
            if characters > PLAIN_CHARACTERS or not _is_plain_leaf(item):
                return False
        if nodes > PLAIN_NODES:
            return False
    return True


def _pickled(thing: Any, by_value: bool) -> io.FileIO:
    """In a file in memory. Whatever a pickler raises, it is a thing that cannot be sent."""
    file = io.FileIO(os.memfd_create("callbox-arguments", os.MFD_CLOEXEC), "w+")
    # Plain arguments need no more than pickle, which is faster; classes of the main program do.
    for maker in (_by_value.Pickler,) if by_value else (pickle.Pickler, _by_value.Pickler):
        file.seek(0)
        file.truncate()
        try:
            maker(file, protocol=pickle.HIGHEST_PROTOCOL).dump(thing)
        except Exception as error:
            why = f"{error}" or type(error).__name__
            continue
        if maker is pickle.Pickler and _speaks_of_main(file):
            why = "it is of the main program, which a box does not run again"
            continue
        file.seek(0)
        return file
    file.close()
    raise NotSendable(why)


def _in_pieces(arguments: Mapping[str, Any]) -> Tuple[Dict[str, Any], List[str]]:
    """Long texts as lists of shorter ones, and the names of those: pickle copies a text as a whole, and
    lets no other thread run meanwhile."""
    args = dict(arguments)
    joined = [name for name, value in args.items() if type(value) is str and len(value) > PIECE]
    for name in joined:
        text = args[name]
        args[name] = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
    return args, joined


def _speaks_of_main(file: io.FileIO) -> bool:
    """By reference: what a box could not find. Large data in it is not looked at."""
    file.seek(0)
    head = file.read(INLINE_MAX)
    return b"\x08__main__" in head or b"c__main__\n" in head


def pack(
    place: Place, function: Callable[..., Any], arguments: Mapping[str, Any], plain: bool
) -> Packed:
    """`plain`: what is_plain() said of the arguments. Raises NotSendable."""
    if place.name and plain:
        return Packed({"name": place.name, "args": arguments}, None)
    args, joined = _in_pieces(arguments)
    file = _pickled((None if place.name else function, args, joined), place.name is None)
    part: Dict[str, Any] = {"name": place.name} if place.name else {}
    if os.fstat(file.fileno()).st_size > INLINE_MAX:
        return Packed(part, file)
    with file:
        raw = file.read()
    return Packed({**part, "pickle": base64.b64encode(raw).decode()}, None)
