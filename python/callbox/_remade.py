# SPDX-License-Identifier: MIT
"""Functions and classes that were sent by value (_by_value.py), made anew in a box. Each is made empty, so
that it can speak of itself, and then filled."""

from __future__ import annotations

import builtins
import functools
import marshal
import types
import typing
from typing import Any, Dict, List, Mapping, Tuple

_namespaces: Dict[str, Dict[str, Any]] = {}


def namespace(key: str, module: str) -> Dict[str, Any]:
    """The globals of functions that had the same."""
    return _namespaces.setdefault(key, {"__name__": module, "__builtins__": builtins})


def cell() -> Any:
    return types.CellType()


def fill_cell(made: Any, state: Tuple[Any]) -> None:
    made.cell_contents = state[0]


def code(raw: bytes) -> Any:
    return marshal.loads(raw)


def function(of: Any, names: Dict[str, Any], cells: Any) -> Any:
    return types.FunctionType(of, names, None, None, cells)


def fill_function(made: Any, state: Tuple[Dict[str, Any], Mapping[str, Any], Mapping[str, Any]]) -> None:
    names, own, attributes = state
    made.__globals__.update(names)
    for name, value in own.items():
        setattr(made, name, value)
    vars(made).update(attributes)


def empty_class(meta: Any, name: str, bases: Tuple[Any, ...], given: Dict[str, Any]) -> Any:
    return types.new_class(name, bases, {"metaclass": meta}, lambda members: members.update(given))


def fill_class(made: Any, state: Mapping[str, Any]) -> None:
    for name, value in state.items():
        type.__setattr__(made, name, value)


def cached(function: Any, how: Dict[str, Any]) -> Any:
    return functools.lru_cache(**how)(function)


def cached_property(function: Any, name: str) -> Any:
    made = functools.cached_property(function)
    made.attrname = name
    return made


def view(of: Dict[Any, Any]) -> Any:
    return types.MappingProxyType(of)


def type_variable(name: str, constraints: Tuple[Any, ...], bound: Any) -> Any:
    make: Any = typing.TypeVar
    return make(name, *constraints, bound=bound)


def enum_class(
    meta: Any, name: str, bases: Tuple[Any, ...], given: Dict[str, Any], members: List[Tuple[str, Any]]
) -> Any:
    own = meta.__prepare__(name, bases)
    for key, value in [*given.items(), *members]:
        own[key] = value
    return meta(name, bases, own)
