# SPDX-License-Identifier: MIT
"""The tools of a Python file or module that a manifest or `--python-tools` names: found, described and
called. This runs in a box: nothing of the file is ever loaded outside of one. What it says is read as
what any box says (src/tool/python_describe.c)."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import types
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from . import _convert, _foreign, _plain
from ._error import CallboxError
from ._tool import MARK, Tool

NAMES_MAX = 1000  # of a module, that are looked at
TRACE_LINES = 8  # of a traceback, that an error has at its end
TRACE_MAX = 2000  # characters of those
TAKEN = "_tools"  # added to the name of a file that is that of another module


class Hosted(NamedTuple):
    """A tool: `key` is what it is called in the module."""

    key: str
    tool: Tool
    run: Callable[[Dict[str, Any]], Any]


class Module(NamedTuple):
    """What was loaded; or why it was not."""

    found: Optional[types.ModuleType]
    trouble: Optional[BaseException]
    file: Optional[str]


loaded = Module(None, None, None)
known: Dict[str, Hosted] = {}


# ---- Loading ----


def set_path(more: List[str]) -> None:
    """Before what is installed, but after Python's own library: nothing takes the place of that."""
    installed = ("site-packages", "dist-packages")
    names = [os.path.basename(entry) for entry in sys.path]
    at = next((n for n, name in enumerate(names) if name in installed), len(names))
    sys.path[at:at] = more


def _load_file(name: str, file: str) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{os.path.basename(file)} has no ending that Python knows: it must be .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _is_taken(name: str) -> bool:
    """As a file random.py would take the place of that of Python."""
    if name in sys.modules or name in sys.builtin_module_names:
        return True
    return name in getattr(sys, "stdlib_module_names", ())


def load(config: Dict[str, Any]) -> None:
    """A module that cannot be loaded is the answer to whatever is asked of it. Its name is known to
    config afterwards."""
    global loaded
    file = config["hosted"].get("file")
    _foreign.stand_in()
    if file and _is_taken(config["module"]):
        config["module"] += TAKEN
    try:
        found = _load_file(config["module"], file) if file else importlib.import_module(config["module"])
        loaded = Module(found, None, file)
    except BaseException as error:  # SystemExit too
        loaded = Module(None, error, file)


# ---- Finding ----


def _by_hints(function: Callable[..., Any]) -> Callable[[Dict[str, Any]], Any]:
    def run(arguments: Dict[str, Any]) -> Any:
        args, named = _convert.bind(function, arguments)
        return function(*args, **named)

    return run


def _is_marked(thing: Any) -> bool:
    return isinstance(thing, Tool) or isinstance(getattr(thing, MARK, None), dict)


def make(key: str, thing: Any) -> Optional[Hosted]:
    """None: it cannot be called."""
    if _is_marked(thing):
        tool = Tool.of(thing)
        return Hosted(key, tool, _by_hints(tool.function))
    foreign = _foreign.look(thing)
    if foreign is not None:
        tool = Tool(foreign.function, **foreign.given)
        return Hosted(key, tool, foreign.run or _by_hints(foreign.function))
    if not callable(thing):
        return None
    return Hosted(key, Tool(thing, name=key.rpartition(".")[2]), _by_hints(thing))


def find(key: str) -> Hosted:
    """By its name in the module."""
    hosted = known.get(key)
    if hosted is not None:
        return hosted
    if loaded.trouble is not None:  # it is listed as it was when it could be loaded
        where = os.path.basename(loaded.file) if loaded.file else "its module"
        text = f"{where} cannot be loaded: {_trouble(loaded.trouble)['text']}"
        raise _foreign.Failed(f"{text} (its tools fail until it can)") from loaded.trouble
    thing: Any = loaded.found
    for part in key.split("."):
        thing = getattr(thing, part)
    hosted = make(key, thing)
    if hosted is None:
        raise TypeError(f"{key} is no function")
    known[key] = hosted
    return hosted


def _is_tool(thing: Any, module: types.ModuleType) -> bool:
    """Somebody has made it one: by a decorator, or as a class of its own."""
    if isinstance(thing, types.ModuleType):
        return False
    if _is_marked(thing):
        return True
    if isinstance(thing, type) and thing.__module__ != module.__name__:
        return False
    return not inspect.isroutine(thing) and _foreign.look(thing) is not None


def _why_not(thing: Any) -> str:
    """Why a public function is no tool; empty: it is one."""
    if inspect.isgeneratorfunction(thing) or inspect.isasyncgenfunction(thing):
        return "it yields, and a tool returns its result"
    if not getattr(thing, "__annotations__", None) and not inspect.getdoc(thing):
        return "it has neither type hints nor a docstring"
    return ""


def _is_function(name: str, thing: Any, module: types.ModuleType) -> bool:
    """A public one, that is defined here."""
    if name.startswith("_") or type(thing) is not types.FunctionType:
        return False
    return bool(inspect.unwrap(thing).__module__ == module.__name__)


class Chosen(NamedTuple):
    """`left`: by name, why they are left out, and whether somebody has marked them as tools."""

    tools: List[Hosted]
    left: List[Dict[str, Any]]
    marked: bool


def choose() -> Chosen:
    """The tools of the module: what is marked as one, else every public function that is defined in it."""
    module = loaded.found
    assert module is not None
    names = [str(name) for name in getattr(module, "__all__", vars(module))][:NAMES_MAX]
    things = {name: vars(module).get(name) for name in names if not name.startswith("__")}
    tools: List[Hosted] = []
    left: List[Dict[str, Any]] = []
    marked: List[str] = []

    def leave(name: str, why: str, wanted: bool) -> None:
        left.append({"name": name, "why": why, "marked": wanted})

    def add(name: str, thing: Any, wanted: bool) -> None:
        try:
            hosted = make(name, thing)
            assert hosted is not None
            tools.append(hosted)
        except Exception as error:  # what a class of a tool does when it is made is its own affair
            leave(name, _words(error), wanted)

    for name, thing in things.items():
        try:
            if _is_tool(thing, module):
                marked.append(name)
        except Exception as error:
            leave(name, _words(error), isinstance(error, _foreign.Unfit))
    for name in marked:
        add(name, things[name], True)
    taken = [hosted.tool.function for hosted in tools]
    for name, thing in things.items():
        if name in marked or not _is_function(name, thing, module) or any(thing is other for other in taken):
            continue
        why = _why_not(thing)
        if not marked and not why:
            add(name, thing, False)
        elif not marked or not why:
            leave(name, why or "others are marked as tools, and it is not", False)
    return Chosen(tools, left, bool(marked))


# ---- Describing ----


def _words(error: BaseException) -> str:
    if isinstance(error, (CallboxError, _foreign.Unfit)):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _describe(hosted: Hosted) -> Dict[str, Any]:
    from ._schema import result_schema_of

    document = hosted.tool.describe()
    if "outputSchema" not in document and hosted.run.__qualname__.startswith(_by_hints.__name__):
        schema = result_schema_of(hosted.tool.function)
        if schema is not None:
            document["outputSchema"] = schema
    document["function"] = hosted.key
    if hosted.tool.calls:
        document["calls"] = hosted.tool.calls
    if hosted.tool.policy is not None:
        document["policy"] = True
    return document


def _trouble(error: BaseException) -> Dict[str, Any]:
    """Why the module could not be loaded, for whoever has written it."""
    if isinstance(error, SyntaxError) and error.filename == loaded.file:
        return {"text": f"line {error.lineno}: {type(error).__name__}: {error.msg}", "source": error.text or ""}
    if isinstance(error, ModuleNotFoundError) and error.name:
        return {"text": f"there is no module {error.name!r}", "missing": error.name}
    if isinstance(error, SystemExit):
        return {"text": f"it ends the interpreter while it is loaded: {_words(error)}"}
    lines = [frame for frame in _frames(error) if frame.filename == loaded.file]
    where = f"line {lines[-1].lineno}: " if lines else ""
    return {"text": f"{where}{_words(error)}"}


def _frames(error: BaseException) -> Any:
    import traceback

    return traceback.extract_tb(error.__traceback__)


def _not_there(key: str) -> Dict[str, Any]:
    import difflib

    names = [name for name, thing in vars(loaded.found).items() if callable(thing) and name[:2] != "__"]
    near = difflib.get_close_matches(key, names, 1)
    return {"text": f"there is no function {key!r} in it", "nearest": near[0] if near else ""}


def describe(key: Optional[str]) -> Dict[str, Any]:
    """Of one tool, or of all that there are."""
    if loaded.trouble is not None:
        return {"error": _trouble(loaded.trouble)}
    if key is not None:
        try:
            hosted = find(key)
        except AttributeError:
            return {"error": _not_there(key)}
        except Exception as error:
            return {"error": {"text": _words(error)}}
        chosen = Chosen([hosted], [], True)
    else:
        chosen = choose()
    tools: List[Dict[str, Any]] = []
    left: List[Dict[str, Any]] = []
    for hosted in chosen.tools:
        try:
            tools.append(_describe(hosted))
        except Exception as error:
            left.append({"name": hosted.key, "why": _words(error), "marked": chosen.marked})
    return {"tools": tools, "left": left + chosen.left}


# ---- Calling ----


def answer(asked: Dict[str, Any], arguments: Dict[str, Any], wait: Callable[[Any], Any]) -> List[Any]:
    """To a request: the result as JSON."""
    if "describe" in asked:
        return [_plain.dumps(describe(asked["describe"]))]
    result = find(asked["hosted"]).run(arguments)
    if inspect.isawaitable(result):
        result = wait(result)
    return [_plain.dumps(_foreign.read_result(result))]


def explain(error: BaseException, said: str, trace: str) -> str:
    """An error with the end of its traceback, which is all that a caller is told. `said` is the error in
    one line, `trace` what Python prints."""
    if isinstance(error, _foreign.Failed):
        return str(error)
    lines = [line for line in trace.splitlines() if line.startswith(" ")]
    tail = "\n".join(lines[-TRACE_LINES:])[-TRACE_MAX:]
    return f"{said}\n{tail}" if tail else said
