# SPDX-License-Identifier: MIT
"""Functions as tools."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, TypeVar, Union, overload

from ._error import CallboxError
from ._late import Late

if TYPE_CHECKING:
    from ._policy import Policy

F = TypeVar("F", bound=Callable[..., Any])

MARK = "__callbox_tool__"

_schema: Any = Late(f"{__package__}._schema")  # a box that only marks tools does without


def _name_of(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None) or type(function).__name__
    return str(name)


def _docstring_of(function: Any) -> Optional[str]:
    """That of what is called; of an object, that of its class if its method has none."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function) or isinstance(function, type):
        return getattr(function, "__doc__", None)
    return type(function).__call__.__doc__ or type(function).__doc__


class Tool:
    """A function, and what is said of it. `description` and `input_schema` come from the docstring
    and the type hints unless they are given."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: Optional[str] = None,
        title: Optional[str] = None,
        description: Optional[str] = None,
        input_schema: Optional[Dict[str, Any]] = None,
        output_schema: Optional[Dict[str, Any]] = None,
        annotations: Optional[Dict[str, Any]] = None,
        policy: Optional[Policy] = None,
        calls: int = 0,
    ) -> None:
        if not callable(function):
            raise TypeError(f"a tool is a callable, not {function!r}")
        for key, value in (("name", name), ("title", title), ("description", description)):
            if value is not None and not isinstance(value, str):
                raise TypeError(f"{key} must be a text, not {type(value).__name__}: {value!r}")
        self.function = function
        self.name = name or _name_of(function)
        if self.name == "<lambda>":
            raise CallboxError("a lambda has no name", "name", 'give it one: Tool(function, name="double")')
        self.title = title
        self.given_description = description
        self.given_schema = input_schema
        self.output_schema = output_schema
        self.annotations = annotations
        self.policy = policy
        self.calls = calls

    def describe(self) -> Dict[str, Any]:
        """The members of MCP: name, description, inputSchema ..."""
        description, parameters = _schema.read_docstring(_docstring_of(self.function))
        try:
            schema = self.given_schema or _schema.schema_of(self.function, parameters)
        except CallboxError as error:
            where = f"{self.name}({error.where})" if error.where else self.name
            raise CallboxError(error.text, where, error.hint) from None
        document: Dict[str, Any] = {"name": self.name, "inputSchema": schema}
        if self.given_description is not None:
            description = self.given_description
        for key, value in (
            ("title", self.title),
            ("description", description),
            ("outputSchema", self.output_schema),
            ("annotations", self.annotations),
        ):
            if value:
                document[key] = value
        return document

    @classmethod
    def of(cls, thing: Union[Tool, Callable[..., Any]]) -> Tool:
        """Of a Tool, a decorated function, or a plain one."""
        if isinstance(thing, Tool):
            return thing
        given = getattr(thing, MARK, None)
        return cls(thing, **given) if isinstance(given, dict) else cls(thing)


@overload
def tool(function: F) -> F: ...


@overload
def tool(
    *,
    name: Optional[str] = None,
    title: Optional[str] = None,
    description: Optional[str] = None,
    input_schema: Optional[Dict[str, Any]] = None,
    output_schema: Optional[Dict[str, Any]] = None,
    annotations: Optional[Dict[str, Any]] = None,
    policy: Optional[Policy] = None,
    calls: int = 0,
) -> Callable[[F], F]: ...


def tool(function: Optional[F] = None, **given: Any) -> Any:
    """Mark a function as a tool, with or without particulars. It stays the function that it is: it
    can be called, tested and imported as before, and a Toolbox runs it in a box."""

    def mark(function: F) -> F:
        Tool(function, **given)  # complains of what is unknown where it was written
        setattr(function, MARK, given)
        return function

    return mark if function is None else mark(function)
