# SPDX-License-Identifier: MIT
"""Arguments, which are JSON, become what the function's type hints say. This runs in the box."""

from __future__ import annotations

import base64
import collections
import datetime
import decimal
import inspect
import pathlib
import reprlib
import typing
import uuid
from typing import Any, Callable, Dict, List, Tuple

from . import _kinds as kinds


def _shown(value: Any) -> str:
    """In a complaint."""
    return _SHORT.repr(value)


_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 100


def _plain(*types: Any) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not isinstance(value, types) or isinstance(value, bool) and bool not in types:
            raise ValueError(f"{_shown(value)} is no {kinds.words(types[0])}")
        return value

    return check


def _made(make: Callable[[Any], Any], what: str, *types: Any) -> Callable[[Any], Any]:
    """Of a text, or of what else is among the types. `what`: a complaint in plain words."""
    check = _plain(*types or (str,))

    def convert_plain(value: Any) -> Any:
        try:
            return make(check(value))
        except (ArithmeticError, ValueError):
            raise ValueError(f"{_shown(value)} is no {what}") from None

    return convert_plain


_whole_number = _plain(int)


def _integer(value: Any) -> int:
    """JSON does not tell 3.0 from 3."""
    if type(value) is int:
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return int(_whole_number(value))


_number = _plain(float, int)


def _real(value: Any) -> float:
    return value if type(value) is float else float(_number(value))


def _moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text[:-1] + "+00:00" if text[-1:] in ("z", "Z") else text)


def _base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


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
    float: _real,
    bytes: _made(_base64, "base64"),
    bytearray: _made(lambda text: bytearray(_base64(text)), "base64"),
    datetime.datetime: _made(_moment, "time and date such as 2026-03-01T12:30:00"),
    datetime.date: _made(datetime.date.fromisoformat, "date such as 2026-03-01"),
    datetime.time: _made(datetime.time.fromisoformat, "time such as 12:30:00"),
    datetime.timedelta: _made(lambda n: datetime.timedelta(seconds=n), "number of seconds", float, int),
    decimal.Decimal: _made(lambda n: decimal.Decimal(str(n)), "decimal number", str, int, float),
    uuid.UUID: _made(uuid.UUID, "UUID"),
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
        return _member(value, hint)
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
    others = [arm for arm in arms if kinds.bare(arm)[0] not in (None, kinds.NoneType)]
    if len(others) == 1 and value is not None:
        return convert(value, others[0])  # which has its own reasons to complain
    for arm in arms:
        try:
            return convert(value, arm)
        except WRONG:
            pass
    raise ValueError(f"{_shown(value)} is none of: {', '.join(kinds.words(arm) for arm in arms)}")


def _member(value: Any, hint: Any) -> Any:
    by_value = kinds.enum_by_value(hint)
    try:
        if kinds.is_flag(hint) and _integer(value) & ~kinds.all_flags(hint):
            raise ValueError("it has bits that are no flag's")
        return hint(value) if by_value else hint[value]
    except (KeyError, TypeError, ValueError):
        known = ", ".join(repr(member.value) if by_value else member.name for member in hint)
        raise ValueError(f"{_shown(value)} is none of {hint.__qualname__}: {known}") from None


def _literal(value: Any, choices: Tuple[Any, ...]) -> Any:
    for choice in choices:
        if kinds.is_enum(type(choice)):
            if value in (choice.value, choice.name):
                return choice
        elif value == choice and isinstance(value, bool) == isinstance(choice, bool):
            return choice
    raise ValueError(f"{_shown(value)} is none of: {', '.join(kinds.words(choice) for choice in choices)}")


def _record(value: Any, hint: Any) -> Any:
    hints, _, _ = kinds.fields_of(hint)
    fields = {name: convert(item, hints[name]) for name, item in _plain(dict)(value).items()}
    return fields if kinds.is_typed_dict(hint) else hint(**fields)


EMPTY = (bool, int, float, str, bytes, list, dict, set, tuple, collections.deque, collections.OrderedDict)


def _factory(hint: Any) -> Any:
    """What makes the values that a defaultdict lacks; None: its hint does not say."""
    hint, _ = kinds.bare(hint)
    origin = typing.get_origin(hint) or hint
    if origin is collections.defaultdict:
        return lambda: _as_hinted(hint, {})
    return origin if any(origin is known for known in EMPTY) else None


def _as_hinted(hint: Any, made: Any) -> Any:
    """Those that are neither list nor dict, but made of one."""
    origin = typing.get_origin(hint) or hint
    if origin in (collections.deque, collections.OrderedDict):
        return origin(made)
    if origin is collections.defaultdict:
        _, item = typing.get_args(hint) or (str, Any)
        return collections.defaultdict(_factory(item), made)
    return made


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
# Of those that take plain values by name: how each is made.
simple: Dict[Callable[..., Any], Dict[str, Callable[[Any], Any]]] = {}


def _simple(parameters: Dict[str, inspect.Parameter]) -> Dict[str, Callable[[Any], Any]]:
    """Of all parameters, or of none."""
    found = {}
    for name, parameter in parameters.items():
        hint, _ = kinds.bare(parameter.annotation)
        by_name = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        if not by_name or not isinstance(hint, type) or hint not in PLAIN:
            return {}
        found[name] = PLAIN[hint]
    return found


def learn(module: Any) -> None:
    """Read the signatures of a module's functions."""
    for function in list(vars(module).values()):
        if inspect.isfunction(function) and function.__module__ == module.__name__:
            try:
                known[function] = kinds.parameters_of(function)
                simple[function] = _simple(known[function])
            except Exception:
                pass  # it is an error only of its own call


def _parameters(function: Callable[..., Any]) -> Dict[str, inspect.Parameter]:
    found = known.get(function) if inspect.isfunction(function) else None
    return kinds.parameters_of(function) if found is None else found


def bind(function: Callable[..., Any], arguments: Dict[str, Any]) -> Tuple[List[Any], Dict[str, Any]]:
    """The arguments with which the function is called: by position where its signature asks for it,
    the rest by name. A hint that cannot be read is none."""
    if inspect.isfunction(function) and function in simple:
        plain = simple[function]
        try:
            return [], {name: plain[name](value) for name, value in arguments.items()}
        except WRONG:
            pass  # is told of below
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
