# SPDX-License-Identifier: MIT
"""Arguments, which are JSON, become what the function's type hints say. This runs in the box."""

from __future__ import annotations

import base64
import collections
import datetime
import decimal
import inspect
import pathlib
import typing
import uuid
from typing import Any, Callable, Dict, List, Tuple

from . import _kinds as kinds


def _plain(*types: Any) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not isinstance(value, types) or isinstance(value, bool) and bool not in types:
            raise ValueError(f"{value!r} is no {types[0].__name__}")
        return value

    return check


def _integer(value: Any) -> int:
    """JSON does not tell 3.0 from 3."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(_plain(int)(value))


def _moment(value: Any) -> datetime.datetime:
    text = _plain(str)(value)
    return datetime.datetime.fromisoformat(text[:-1] + "+00:00" if text[-1:] in "zZ" else text)


_string = _plain(str)

PLAIN: Dict[Any, Callable[[Any], Any]] = {
    Any: lambda value: value,
    inspect.Parameter.empty: lambda value: value,
    object: lambda value: value,
    kinds.NoneType: _plain(kinds.NoneType),
    None: _plain(kinds.NoneType),
    str: _string,
    bool: _plain(bool),
    int: _integer,
    float: lambda value: float(_plain(float, int)(value)),
    bytes: lambda value: base64.b64decode(_string(value), validate=True),
    bytearray: lambda value: bytearray(base64.b64decode(_string(value), validate=True)),
    datetime.datetime: _moment,
    datetime.date: lambda value: datetime.date.fromisoformat(_string(value)),
    datetime.time: lambda value: datetime.time.fromisoformat(_string(value)),
    datetime.timedelta: lambda value: datetime.timedelta(seconds=_plain(float, int)(value)),
    decimal.Decimal: lambda value: decimal.Decimal(str(_plain(str, int, float)(value))),
    uuid.UUID: lambda value: uuid.UUID(_string(value)),
    pathlib.Path: lambda value: pathlib.Path(_string(value)),
    pathlib.PurePath: lambda value: pathlib.PurePath(_string(value)),
    pathlib.PurePosixPath: lambda value: pathlib.PurePosixPath(_string(value)),
    pathlib.PosixPath: lambda value: pathlib.PosixPath(_string(value)),
}

WRONG = (ArithmeticError, KeyError, TypeError, ValueError)


def convert(value: Any, hint: Any) -> Any:
    """ValueError and its like where the value is not what the hint says."""
    hint, _ = kinds.bare(hint)
    try:
        plain = PLAIN.get(hint)
    except TypeError:
        plain = None  # not hashable, so none of them
    if plain:
        return plain(value)
    if kinds.is_union(hint):
        return _first(value, typing.get_args(hint))
    if kinds.is_literal(hint):
        return _literal(value, typing.get_args(hint))
    if kinds.is_enum(hint):
        return hint(value) if kinds.enum_by_value(hint) else hint[value]
    if kinds.is_model(hint):
        make = getattr(hint, "model_validate", None) or hint.parse_obj
        return make(value)
    if kinds.is_typed_dict(hint) or kinds.is_named_tuple(hint) or kinds.is_dataclass(hint):
        return _record(value, hint)
    kind = kinds.container(hint)
    return _container(value, kind, hint) if kind else value


def _first(value: Any, arms: Tuple[Any, ...]) -> Any:
    """The arm that has exactly this type, else the first into which it can be made."""
    for arm in arms:
        if type(value) is kinds.bare(arm)[0]:
            return value
    for arm in arms:
        try:
            return convert(value, arm)
        except WRONG:
            pass
    raise ValueError(f"{value!r} is none of {arms}")


def _literal(value: Any, choices: Tuple[Any, ...]) -> Any:
    for choice in choices:
        if kinds.is_enum(type(choice)):
            if value in (choice.value, choice.name):
                return choice
        elif value == choice and isinstance(value, bool) == isinstance(choice, bool):
            return choice
    raise ValueError(f"{value!r} is none of {choices}")


def _record(value: Any, hint: Any) -> Any:
    hints, _, _ = kinds.fields_of(hint)
    fields = {name: convert(item, hints[name]) for name, item in _plain(dict)(value).items()}
    return fields if kinds.is_typed_dict(hint) else hint(**fields)


def _as_hinted(hint: Any, made: Any) -> Any:
    """Those that are neither list nor dict, but made of one."""
    origin = typing.get_origin(hint) or hint
    if origin in (collections.deque, collections.OrderedDict):
        return origin(made)
    return collections.defaultdict(None, made) if origin is collections.defaultdict else made


def _container(value: Any, kind: Any, hint: Any) -> Any:
    args = typing.get_args(hint)
    if kind is dict:
        key, item = args or (str, Any)
        bare_key, _ = kinds.bare(key)
        return _as_hinted(hint, {
            int(name) if bare_key is int else convert(name, key): convert(each, item)
            for name, each in _plain(dict)(value).items()
        })
    items = _plain(list)(value)
    if kinds.is_empty_tuple(hint) or kind is tuple and args and args[-1] is not Ellipsis:
        args = () if args == ((),) else args
        if len(items) != len(args):
            raise ValueError(f"{len(args)} items are needed, not {len(items)}")
        return tuple(convert(each, arg) for each, arg in zip(items, args))
    made = [convert(each, args[0]) for each in items] if args else items
    if kind is tuple:
        return tuple(made)
    if kind is list:
        return _as_hinted(hint, made)
    if kind is set:
        frozen = (typing.get_origin(hint) or hint) is frozenset
        return frozenset(made) if frozen else set(made)
    return made


# Of functions that are likely to be called: read before there is a call.
known: Dict[Callable[..., Any], Dict[str, inspect.Parameter]] = {}


def learn(module: Any) -> None:
    """Read the signatures of a module's functions."""
    for function in list(vars(module).values()):
        if inspect.isfunction(function) and function.__module__ == module.__name__:
            try:
                known[function] = kinds.parameters_of(function)
            except Exception:
                pass  # it is an error only of its own call


def _parameters(function: Callable[..., Any]) -> Dict[str, inspect.Parameter]:
    found = known.get(function) if inspect.isfunction(function) else None
    return kinds.parameters_of(function) if found is None else found


def bind(function: Callable[..., Any], arguments: Dict[str, Any]) -> Tuple[List[Any], Dict[str, Any]]:
    """The arguments with which the function is called: by position where its signature asks for it,
    the rest by name. A hint that cannot be read is none."""
    try:
        parameters = _parameters(function)
    except (NameError, TypeError, ValueError):
        return [], arguments
    rest = next((p for p in parameters.values() if p.kind is p.VAR_KEYWORD), None)
    named: Dict[str, Any] = {}
    for name, value in arguments.items():
        parameter = parameters.get(name)
        if parameter is None or parameter is rest:
            parameter = rest
        try:
            named[name] = value if parameter is None else _convert_one(value, parameter)
        except WRONG as error:
            raise ValueError(f"the argument {name!r}: {error}") from error
    return _by_position(parameters, named), named


def _convert_one(value: Any, parameter: inspect.Parameter) -> Any:
    if parameter.kind is parameter.VAR_POSITIONAL:
        return [convert(item, parameter.annotation) for item in _plain(list)(value)]
    return convert(value, parameter.annotation)


def _by_position(parameters: Dict[str, inspect.Parameter], named: Dict[str, Any]) -> List[Any]:
    """Takes out of `named` what cannot go by name: what is positional alone, and all that stands
    before more values of *args."""
    more = next((p.name for p in parameters.values() if p.kind is p.VAR_POSITIONAL), None)
    extra: List[Any] = named.pop(more, []) if more else []
    args: List[Any] = []
    for name, parameter in parameters.items():
        by_name = parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        if parameter.kind is not parameter.POSITIONAL_ONLY and not (by_name and extra):
            break
        if name in named:
            args.append(named.pop(name))
        elif extra or any(
            later.name in named for later in parameters.values() if later.kind is later.POSITIONAL_ONLY
        ):
            if parameter.default is parameter.empty:
                raise ValueError(f"the argument {name!r} is missing")
            args.append(parameter.default)
        else:
            break  # what follows has a default too
    return args + extra
