# SPDX-License-Identifier: MIT
"""Type hints taken apart, for the schema of a parameter and for the value that it gets."""

from __future__ import annotations

import collections
import collections.abc
import dataclasses
import datetime
import enum
import inspect
import sys
import types
import typing
from typing import Any, Callable, Dict, List, Literal, Optional, Tuple, Union

if sys.version_info >= (3, 14):
    import annotationlib

UnionType: Any = getattr(types, "UnionType", Union)  # X | Y, since Python 3.10
NoneType = type(None)

LISTS = (
    list,
    collections.abc.Sequence,
    collections.abc.MutableSequence,
    collections.abc.Iterable,
    collections.abc.Collection,
    collections.deque,
)
SETS = (set, frozenset, collections.abc.Set, collections.abc.MutableSet)
DICTS = (
    dict,
    collections.abc.Mapping,
    collections.abc.MutableMapping,
    collections.OrderedDict,
    collections.defaultdict,
)
STANDARD = ("builtins", "collections", "datetime", "decimal", "fractions", "pathlib", "pathlib._local", "typing", "uuid")
DERIVED_FROM = (
    str, int, float, complex, bytes, bytearray, list, dict, tuple, set, frozenset, collections.deque,
    datetime.date, datetime.time, datetime.timedelta,
)  # fmt: skip
DERIVED_IN = ("decimal", "pathlib", "pathlib._local", "uuid")  # which somebody has loaded who derives from theirs
LITERAL_STRING = getattr(typing, "LiteralString", str)


def bare(hint: Any) -> Tuple[Any, List[Any]]:
    """Without Annotated, Required and the like, NewType, TypeVar and aliases; and what Annotated
    says."""
    notes: List[Any] = []
    while True:
        origin = typing.get_origin(hint)
        if hasattr(hint, "__metadata__"):
            notes += hint.__metadata__
            hint = hint.__origin__
        elif getattr(origin, "_name", "") in ("Required", "NotRequired", "ReadOnly", "Final"):
            hint = hint.__args__[0]
        elif isinstance(hint, dataclasses.InitVar):
            hint = hint.type
        elif hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":  # type X = ..., since Python 3.12
            hint = hint.__value__
        elif hint is LITERAL_STRING:
            hint = str
            return hint, notes
        elif isinstance(hint, typing.TypeVar):
            if hint.__constraints__:
                hint = Union[hint.__constraints__]
            else:
                hint = hint.__bound__ if hint.__bound__ is not None else Any
        else:
            return hint, notes


def words(hint: Any) -> str:
    """A hint, or a value of a Literal, as somebody would write it."""
    if isinstance(hint, enum.Enum):
        return repr(hint.value)
    if not isinstance(hint, (str, int, bytes)):
        hint, _ = bare(hint)
    if hint is None or hint is NoneType:
        return "None"
    if isinstance(hint, type) and not typing.get_args(hint):
        return hint.__qualname__
    if is_union(hint):
        return " | ".join(words(arm) for arm in typing.get_args(hint))
    return repr(hint).replace("typing.", "")


def is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (Union, UnionType)


def is_literal(hint: Any) -> bool:
    return typing.get_origin(hint) is Literal


def is_enum(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, enum.Enum)


def is_typed_dict(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, dict) and hasattr(hint, "__total__")


def is_named_tuple(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields")


def is_dataclass(hint: Any) -> bool:
    return isinstance(hint, type) and dataclasses.is_dataclass(hint)


def is_model(hint: Any) -> bool:
    """A model of pydantic, version 1 or 2; known by its looks, so that it need not be installed."""
    return isinstance(hint, type) and (
        hasattr(hint, "model_json_schema")
        or (hasattr(hint, "__fields__") and hasattr(hint, "parse_obj"))
    )


def container(hint: Any) -> Any:
    """list for List[int], Sequence, list ...; likewise dict, set and tuple; None for others."""
    origin = typing.get_origin(hint) or hint
    for kind, members in ((list, LISTS), (set, SETS), (dict, DICTS), (tuple, (tuple,))):
        if any(origin is member for member in members):
            return kind
    return None


def is_empty_tuple(hint: Any) -> bool:
    """Tuple[()], which is not Tuple."""
    return typing.get_origin(hint) is tuple and getattr(hint, "__args__", None) in ((), ((),))


def is_flag(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, enum.Flag)


def all_flags(cls: Any) -> int:
    bits = 0
    for member in cls.__members__.values():
        bits |= member.value
    return bits


def enum_by_value(cls: Any) -> bool:
    """Whether members are known by their values; else by their names."""
    return all(isinstance(member.value, (str, int, float)) for member in cls)


def hints_of(thing: Any) -> Dict[str, Any]:
    """With Annotated; NameError where a name in them is not to be found."""
    try:
        return typing.get_type_hints(thing, include_extras=True)
    except TypeError:
        if sys.version_info >= (3, 11) or not is_dataclass(thing):
            raise
        return _hints_with_init_vars(thing)


def _hints_with_init_vars(cls: Any) -> Dict[str, Any]:
    """Of a dataclass. Python before 3.11 does not take an InitVar for a type that is written as a text."""
    found: Dict[str, Any] = {}
    fields = cls.__dataclass_fields__
    for base in reversed(cls.__mro__):
        names, own = vars(sys.modules.get(base.__module__, typing)), dict(vars(base))
        given = {n: h for n, h in own.get("__annotations__", {}).items() if is_field(fields.get(n))}
        for name, hint in given.items():
            if isinstance(hint, str) and is_init_var(fields[name]):
                given[name] = eval(hint, dict(names), own)
        holder = types.SimpleNamespace(__annotations__=given)
        found.update(typing.get_type_hints(holder, names, own, include_extras=True))
    return found


def _kind_of_field(field: Any) -> str:
    return str(getattr(getattr(field, "_field_type", None), "name", ""))


def is_init_var(field: Any) -> bool:
    return _kind_of_field(field) == "_FIELD_INITVAR"


def is_field(field: Any) -> bool:
    """What a dataclass is made of; not its ClassVars."""
    return _kind_of_field(field) in ("_FIELD", "_FIELD_INITVAR")


def parameter_hints_of(thing: Any) -> Dict[str, Any]:
    """Without that of what is returned, where it cannot be resolved: it may be there for a checker of
    types alone."""
    try:
        return hints_of(thing)
    except NameError:
        given = dict(_annotations(thing))
        if "return" not in given:
            raise
        del given["return"]
        kept = ("__globals__", "__type_params__")
        more = {name: getattr(thing, name) for name in kept if hasattr(thing, name)}
        return hints_of(types.SimpleNamespace(__annotations__=given, **more))


def _annotations(thing: Any) -> Dict[str, Any]:
    """As they are written. Since Python 3.14 they are made when somebody asks for them."""
    if sys.version_info >= (3, 14):
        found = annotationlib.get_annotations(thing, format=annotationlib.Format.FORWARDREF)
    else:
        found = thing.__annotations__
    return dict(found)


def typed_dict_required(hint: Any, hints: Dict[str, Any]) -> List[str]:
    """Python before 3.11 does not look into Required and NotRequired of other packages."""
    required = []
    for name, item in hints.items():
        marked = getattr(typing.get_origin(item), "_name", "")
        if marked == "Required" or (marked != "NotRequired" and name in hint.__required_keys__):
            required.append(name)
    return required


def fields_of(hint: Any) -> Tuple[Dict[str, Any], List[str], Dict[str, Any]]:
    """Of a dataclass, TypedDict or NamedTuple: hints, names that are required, defaults."""
    hints = hints_of(hint)
    if is_typed_dict(hint):
        return hints, typed_dict_required(hint, hints), {}
    if is_named_tuple(hint):
        defaults = dict(hint._field_defaults)
        hints = {name: hints.get(name, Any) for name in hint._fields}
        return hints, [name for name in hints if name not in defaults], defaults
    fields = [field for field in hint.__dataclass_fields__.values() if is_field(field) and field.init]
    missing = dataclasses.MISSING
    required = [f.name for f in fields if f.default is missing and f.default_factory is missing]
    defaults = {f.name: f.default for f in fields if f.default is not missing}
    return {f.name: hints[f.name] for f in fields}, required, defaults


def classes_of(hint: Any) -> List[type]:
    """The dataclasses, Enums, named tuples, exceptions, times and classes that are derived from others, of which
    a hint speaks, however deep."""
    found: List[type] = []
    seen: List[Any] = []
    left = [hint]
    while left:
        hint, _ = bare(left.pop())
        if any(hint is known for known in seen):
            continue
        seen.append(hint)
        left += [arg for arg in typing.get_args(hint) if not isinstance(arg, (str, int, bytes))]
        if is_enum(hint) or isinstance(hint, type) and issubclass(hint, (datetime.datetime, datetime.time)):
            found.append(hint)
        elif is_typed_dict(hint) or is_named_tuple(hint) or is_dataclass(hint):
            if not is_typed_dict(hint):
                found.append(hint)
            left += hints_of(hint).values()
        elif is_enum(type(hint)):  # a Literal of a member
            found.append(type(hint))
        elif isinstance(hint, type) and (issubclass(hint, BaseException) or _is_derived(hint)):
            found.append(hint)
    return found


def _is_derived(cls: type) -> bool:
    """From something that a result can have; or a model, which comes as a dict."""
    if cls.__module__ in STANDARD:
        return False
    return issubclass(cls, DERIVED_FROM) or any(base.__module__ in DERIVED_IN for base in cls.__mro__) or is_model(cls)


def result_classes(function: Callable[..., Any]) -> List[type]:
    """Those that a function says it returns; none where its hints cannot be read."""
    try:
        return classes_of(hints_of(described(function)).get("return", Any))
    except (NameError, TypeError, ValueError, AttributeError):
        return []


def described(function: Callable[..., Any]) -> Any:
    """What has the signature and the hints of a callable: itself, a method, what is wrapped."""
    function = inspect.unwrap(function)
    while hasattr(function, "func"):  # functools.partial
        function = inspect.unwrap(function.func)
    if inspect.isroutine(function) or isinstance(function, type):
        return function
    return inspect.unwrap(type(function).__call__)


def parameters_of(function: Callable[..., Any]) -> Dict[str, inspect.Parameter]:
    """With their hints resolved. `x: int = None` may be None, whatever the Python."""
    hints = parameter_hints_of(described(function))
    found = {}
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints.get(name, Any)
        if parameter.default is None and bare(hint)[0] not in (Any, object):
            hint = Optional[hint]
        found[name] = parameter.replace(annotation=hint)
    return found


def is_unbound(function: Any, parameters: Dict[str, inspect.Parameter]) -> bool:
    """Whether it is a method without its object: nobody could give it that."""
    outer, _, _ = getattr(function, "__qualname__", "").rpartition(".")
    first = next(iter(parameters), "")
    return bool(outer) and not outer.endswith("<locals>") and first in ("self", "cls")


if sys.version_info < (3, 9):
    raise ImportError("callbox needs Python 3.9 or newer")
