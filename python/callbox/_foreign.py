# SPDX-License-Identifier: MIT
"""Tools that were written for other frameworks, as they are: the decorated functions of jeevesagent and
loomflow, the tool classes of OpenJarvis, the function classes of Calute and Xerxes. They are known by
their looks. Where a framework is not installed, stand-ins for what a file of tools imports of it let the
file be loaded all the same. This runs in a box."""

from __future__ import annotations

import abc
import importlib.abc
import importlib.machinery
import inspect
import sys
import types
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

NAMED = ("name", "description", "input_schema", "fn")


class Foreign(NamedTuple):
    """`given`: what it says of itself, in the words of Tool(); `run` takes the arguments as they are in
    JSON, and is None where `function` is called by its type hints."""

    function: Callable[..., Any]
    given: Dict[str, Any]
    run: Optional[Callable[[Dict[str, Any]], Any]] = None


class Failed(Exception):
    """A tool says that it has failed; its text is all there is to say."""


class Unfit(Exception):
    """It is meant as a tool, and cannot be one."""


# ---- jeevesagent, loomflow ----


def _jeeves(thing: Any) -> Optional[Foreign]:
    if isinstance(thing, type) or not all(hasattr(thing, name) for name in NAMED) or not callable(thing.fn):
        return None
    given: Dict[str, Any] = {"name": thing.name, "description": thing.description}
    if thing.input_schema:
        given["input_schema"] = thing.input_schema
    if getattr(thing, "destructive", False):
        given["annotations"] = {"destructiveHint": True}

    def run(arguments: Dict[str, Any]) -> Any:
        from .compat._jeeves_types import coerce

        return thing.fn(**coerce(thing, arguments))

    return Foreign(thing.fn, given, run)


# ---- OpenJarvis ----


def _jarvis(thing: Any) -> Optional[Foreign]:
    """A class that can be made without arguments, or an object of one."""
    cls = thing if isinstance(thing, type) else type(thing)
    if not isinstance(inspect.getattr_static(cls, "spec", None), property) or not callable(
        getattr(cls, "execute", None)
    ):
        return None
    if inspect.isabstract(cls):
        return None
    try:
        made = thing() if isinstance(thing, type) else thing
        spec = made.spec
    except Exception as error:  # what it does when it is made is its own affair
        raise Unfit(f"it cannot be made: {type(error).__name__}: {error}") from error
    if not isinstance(getattr(spec, "name", None), str):
        return None
    parameters = getattr(spec, "parameters", None) or {}

    def run(arguments: Dict[str, Any]) -> Any:
        return made.execute(**arguments)

    given = {
        "name": spec.name,
        "description": getattr(spec, "description", ""),
        "input_schema": {"type": "object", **parameters},
    }
    return Foreign(made.execute, given, run)


def read_result(result: Any) -> Any:
    """What a tool of OpenJarvis returns is its content, or says that it has failed."""
    if not all(hasattr(result, name) for name in ("tool_name", "content", "success")):
        return result
    if not result.success:
        raise Failed(str(result.content))
    return result.content


# ---- Calute, Xerxes ----


def _calute(thing: Any) -> Optional[Foreign]:
    """AgentBaseFn is a metaclass, which their own tools are subclasses of; it may be named as a metaclass
    too. Its static_call is abstract: a class that has that one is no tool."""
    if not isinstance(thing, type) or inspect.isabstract(thing):
        return None
    call = inspect.getattr_static(thing, "static_call", None)
    if call is None or getattr(call, "__isabstractmethod__", False):
        return None
    if not isinstance(call, staticmethod):
        raise Unfit("its static_call is to be a @staticmethod")
    function: Any = getattr(thing, "static_call")
    return Foreign(function, {"name": thing.__name__})


def look(thing: Any) -> Optional[Foreign]:
    """None: it is no tool of another framework."""
    for kind in (_jeeves, _jarvis, _calute):
        found = kind(thing)
        if found is not None:
            return found
    return None


# ---- Stand-ins ----


class BaseTool(abc.ABC):
    tool_id = ""
    is_local = True

    @property
    @abc.abstractmethod
    def spec(self) -> Any: ...

    @abc.abstractmethod
    def execute(self, **params: Any) -> Any: ...


class ToolRegistry:
    @classmethod
    def register(cls, key: str) -> Callable[[Any], Any]:
        return lambda thing: thing


class AgentBaseFn(abc.ABCMeta):
    @staticmethod
    @abc.abstractmethod
    def static_call(*args: Any, **named: Any) -> Any: ...


def _jeeves_names() -> Dict[str, Any]:
    from .compat import _jeeves_types

    return {name: getattr(_jeeves_types, name) for name in ("Tool", "ToolDef", "ToolResult", "tool")}


def _jarvis_names() -> Dict[str, Any]:
    from .compat._openjarvis_types import ToolResult, ToolSpec

    return {cls.__name__: cls for cls in (BaseTool, ToolRegistry, ToolResult, ToolSpec)}


def _calute_names() -> Dict[str, Any]:
    return {"AgentBaseFn": AgentBaseFn}


FRAMEWORKS: Dict[str, Callable[[], Dict[str, Any]]] = {
    "jeevesagent": _jeeves_names,
    "loomflow": _jeeves_names,
    "openjarvis": _jarvis_names,
    "calute": _calute_names,
    "xerxes": _calute_names,
}


def _is_wanted_of_a_module() -> bool:
    """Whether this looks for something to be imported *from* a module, which may be no module at all."""
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        if frame.f_code.co_name == "_handle_fromlist":
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Asked last: for frameworks that are not installed, and whatever is imported from below them."""

    def __init__(self) -> None:
        self.missing: List[str] = []

    def find_spec(self, name: str, path: Optional[Sequence[str]], target: Any = None) -> Any:
        top = name.partition(".")[0]
        if top not in FRAMEWORKS or (name != top and top not in self.missing):
            return None
        if name == top:
            self.missing.append(top)
        elif name.count(".") > 1 and _is_wanted_of_a_module():
            return None  # a part that is not there, for which a tool may have another way
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: Any) -> Any:
        return None

    def exec_module(self, module: types.ModuleType) -> None:
        top = module.__name__.partition(".")[0]
        vars(module).update(FRAMEWORKS[top]())

        def missing(name: str) -> Any:
            raise AttributeError(
                f"{top} is not installed; callbox stands in for {', '.join(FRAMEWORKS[top]())} of it, "
                f"not for {name}"
            )

        setattr(module, "__getattr__", missing)


def stand_in() -> None:
    sys.meta_path.append(StandIns())
