# SPDX-License-Identifier: MIT
"""Functions and classes that a box cannot import, as a pickle with their code in it: those of a script, closures
and lambdas. _remade.py is the other side, which has the same Python."""

from __future__ import annotations

import dataclasses
import enum
import functools
import importlib
import io
import marshal
import os
import pickle
import sys
import types
import typing
from typing import Any, Dict, Iterator, List, Tuple

from . import _remade
from ._tool import MARK

_FUNCTION = ("__defaults__", "__kwdefaults__", "__doc__", "__module__", "__name__", "__qualname__")
_NOT_OF_A_CLASS = ("__dict__", "__weakref__", "__module__", "__qualname__", "__slots__", "_abc_impl")
_HEAP = 1 << 9  # of a class that is not of C
_DESCRIPTORS = (types.MemberDescriptorType, types.GetSetDescriptorType)
_SENTINELS = {
    id(value): name
    for name, value in vars(dataclasses).items()
    if type(value).__module__ == "dataclasses" and type(value).__name__.startswith(("_MISSING", "_FIELD_BASE", "_HAS", "_KW"))
}

Reduced = Tuple[Any, ...]


def _names_in(code: Any) -> Iterator[str]:
    yield from code.co_names
    for item in code.co_consts:
        if isinstance(item, types.CodeType):
            yield from _names_in(item)


def _annotations(thing: Any) -> Dict[str, Any]:
    """Its own, with what their texts mean here, as far as that is known: a box has no main program to ask."""
    own: Dict[str, Any] = {}
    try:
        own = dict(vars(thing).get("__annotations__") or {} if isinstance(thing, type) else thing.__annotations__)
        found = typing.get_type_hints(thing, include_extras=True)
    except Exception:  # they may speak of what is not there, or is there for a checker of types alone
        return own
    return {name: found.get(name, hint) for name, hint in own.items()}


def _globals_of(function: Any) -> Dict[str, Any]:
    """Those that it speaks of."""
    wanted = sorted(set(_names_in(function.__code__)))
    return {name: function.__globals__[name] for name in wanted if name in function.__globals__}


def _is_found(thing: Any) -> bool:
    """Whether a box can import it by its name."""
    module = sys.modules.get(thing.__module__ or "")
    if module is None or module.__name__ == "__main__" or getattr(module, "__spec__", None) is None:
        return False
    found: Any = module
    for part in getattr(thing, "__qualname__", thing.__name__).split("."):
        found = getattr(found, part, None)
    return found is thing


class Pickler(pickle.Pickler):
    def __init__(self, file: Any, protocol: int = pickle.HIGHEST_PROTOCOL) -> None:
        super().__init__(file, protocol)
        self._own = os.urandom(8).hex()

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, types.FunctionType):
            return NotImplemented if _is_found(thing) else self._function(thing)
        if isinstance(thing, type):
            of_python = thing.__flags__ & _HEAP and not _is_found(thing)
            return _class(thing) if of_python else NotImplemented
        if isinstance(thing, types.ModuleType):
            if thing.__name__ == "__main__":
                raise pickle.PicklingError("the main program is a module that a box does not run again")
            return importlib.import_module, (thing.__name__,)
        if isinstance(thing, types.CodeType):
            return _remade.code, (marshal.dumps(thing),)
        if isinstance(thing, types.CellType):
            return _cell(thing)
        if isinstance(thing, property):
            return property, (thing.fget, thing.fset, thing.fdel, thing.__doc__)
        if isinstance(thing, (classmethod, staticmethod)):
            return type(thing), (thing.__func__,)
        if isinstance(thing, functools._lru_cache_wrapper) and not _is_found(thing):
            return _remade.cached, (thing.__wrapped__, getattr(thing, "cache_parameters")())
        if isinstance(thing, functools.cached_property):
            return _remade.cached_property, (thing.func, thing.attrname)
        if isinstance(thing, types.MappingProxyType):
            return _remade.view, (dict(thing),)
        if isinstance(thing, typing.TypeVar) and not _is_found(thing):
            return _remade.type_variable, (thing.__name__, thing.__constraints__, thing.__bound__)
        if hasattr(thing, "__supertype__") and not _is_found(thing):
            return typing.NewType, (thing.__name__, thing.__supertype__)
        if id(thing) in _SENTINELS:
            return getattr, (dataclasses, _SENTINELS[id(thing)])
        return NotImplemented

    def _function(self, function: Any) -> Reduced:
        own = {name: getattr(function, name) for name in _FUNCTION}
        own["__annotations__"] = _annotations(function)
        attributes = {name: value for name, value in vars(function).items() if name != MARK}
        names = _Namespace(f"{self._own}.{id(function.__globals__)}", str(function.__module__))
        state = (_globals_of(function), own, attributes)
        args = (function.__code__, names, function.__closure__)
        return _remade.function, args, state, None, None, _remade.fill_function


class _Namespace:
    """Stands for the globals of a function, which are not sent as a whole."""

    def __init__(self, key: str, module: str) -> None:
        self._args = (key, module)

    def __reduce__(self) -> Reduced:
        return _remade.namespace, self._args


def _cell(cell: Any) -> Reduced:
    try:
        state = (cell.cell_contents,)
    except ValueError:
        return _remade.cell, ()  # nothing was ever put into it
    return _remade.cell, (), state, None, None, _remade.fill_cell


def _class(cls: Any) -> Reduced:
    if issubclass(cls, enum.Enum):
        return _enum(cls)
    members = {
        name: value
        for name, value in vars(cls).items()
        if name not in _NOT_OF_A_CLASS and not isinstance(value, _DESCRIPTORS)
    }
    members.pop("__annotate__", None)
    members.pop("__annotate_func__", None)  # as Python 3.14 makes them
    members["__annotations__"] = _annotations(cls)
    given = {"__module__": cls.__module__, "__qualname__": cls.__qualname__}
    if "__slots__" in vars(cls):
        given["__slots__"] = vars(cls)["__slots__"]
    args = (type(cls), cls.__name__, cls.__bases__, given)
    return _remade.empty_class, args, members, None, None, _remade.fill_class


def _is_of(cls: Any, value: Any) -> bool:
    """Whether it is a method that is written in the class, rather than one that its metaclass has put there."""
    function = getattr(value, "fget", None) or getattr(value, "__func__", value)
    named = getattr(function, "__qualname__", "")
    return isinstance(function, types.FunctionType) and named.startswith(f"{cls.__qualname__}.")


def _enum(cls: Any) -> Reduced:
    given = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    given.update({name: value for name, value in vars(cls).items() if _is_of(cls, value)})
    members: List[Tuple[str, Any]] = [(name, member.value) for name, member in cls.__members__.items()]
    return _remade.enum_class, (type(cls), cls.__name__, cls.__bases__, given, members)


def dumps(thing: Any, protocol: int = pickle.HIGHEST_PROTOCOL) -> bytes:
    file = io.BytesIO()
    Pickler(file, protocol).dump(thing)
    return file.getvalue()
