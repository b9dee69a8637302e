# SPDX-License-Identifier: MIT
"""Source text, run in the box: see _code.py for the other side."""

from __future__ import annotations

import ast
import atexit
import base64
import gc
import inspect
import linecache
import os
import stat
import sys
import tempfile
import threading
import traceback
import types
from typing import Any, Dict, List, Tuple

from . import _left, _names, _serve, _values

NAME = "<code>"
TEXT_MAX = 10_000  # characters of a repr


def _write_files(files: Dict[str, str]) -> None:
    for name, content in files.items():
        folder = os.path.dirname(name)
        if folder:
            os.makedirs(folder, exist_ok=True)
        with open(name, "wb") as stream:
            stream.write(base64.b64decode(content))


def _evaluate(code: str, names: Dict[str, Any]) -> Any:
    """All of it, and the value of the last line where that is an expression. `await` may be used."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    # Not by ast.parse, which would be a frame in the traceback of a SyntaxError; and without what this
    # file imports from __future__.
    tree: Any = compile(code, NAME, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    loops: List[Any] = []

    def run(part: Any, mode: str) -> Any:
        compiled = compile(part, NAME, mode, flags, dont_inherit=True)
        result = eval(compiled, names)
        if compiled.co_flags & inspect.CO_COROUTINE:
            import asyncio

            if not loops:
                loops.append(asyncio.new_event_loop())
            result = loops[0].run_until_complete(result)
        return result

    try:
        run(tree, "exec")
        return run(ast.Expression(last.value), "eval") if isinstance(last, ast.Expr) else None
    finally:
        for loop in loops:
            _end_loop(loop)


def _end_loop(loop: Any) -> None:
    """As asyncio.run does: what still runs on it is cancelled, and may see to itself."""
    import asyncio

    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True) if tasks else asyncio.sleep(0))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


# ---- The end, as that of an interpreter ----


def _wait_and_say_goodbye() -> None:
    """Threads that are no daemons end, then the functions of atexit are called."""
    for end in (getattr(threading, "_shutdown"), getattr(atexit, "_run_exitfuncs")):
        try:
            end()
        except BaseException:
            traceback.print_exc()


def _drop_names(place: str) -> None:
    """The names of the code, and of modules that it brought along, are let go, so that files are closed
    that nobody has closed. What is still there then, as it is known elsewhere, loses its names."""
    own = set()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name == "__main__" or isinstance(file, str) and file.startswith(place + os.sep):
            own.add(id(vars(module)))
            del sys.modules[name]
    del module
    gc.collect()
    if threading.active_count() == 1:  # else daemons go on, and would complain
        for thing in gc.get_objects():
            if type(thing) is dict and id(thing) in own:
                thing.clear()
        gc.collect()


def _end(place: str) -> None:
    _wait_and_say_goodbye()
    _drop_names(place)
    _left.flush_files(False)


def _artifacts(limit: int) -> Tuple[Dict[str, bytes], List[str]]:
    """The plain files under ./out, and the names of those for which there was no room."""
    found: Dict[str, bytes] = {}
    left: List[str] = []
    for folder, _, names in sorted(os.walk("out")):
        for name in sorted(names):
            path = os.path.join(folder, name)
            shown = os.path.relpath(path, "out")
            if _names.why_not(shown) or len(found) == _names.COUNT_MAX:
                left.append(shown)
                continue
            try:
                fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            except OSError:
                left.append(shown)
                continue
            with open(fd, "rb") as stream:
                facts = os.fstat(fd)
                if not stat.S_ISREG(facts.st_mode) or facts.st_size > limit:
                    left.append(shown)
                    continue
                content = stream.read(limit + 1)
            limit -= len(content)
            found[shown] = content
    return found, left


def _text_of(value: Any) -> str:
    """As the interpreter would print it."""
    try:
        text = repr(value)
    except ValueError:
        if type(value) is not int:
            raise
        return f"<int of {value.bit_length()} bits>"  # too long for Python to print
    return text if len(text) <= TEXT_MAX else text[:TEXT_MAX] + "..."


def _is_success(error: BaseException) -> bool:
    """sys.exit(), and sys.exit(0)."""
    if not isinstance(error, SystemExit):
        return False
    return error.code is None or isinstance(error.code, int) and error.code == 0


def _run(code: str, inputs: str) -> Dict[str, Any]:
    told: Dict[str, Any] = {"result": None, "text": "", "error": None, "traceback": ""}
    try:
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        vars(main).update(__builtins__=__builtins__, **_values.loads(inputs))
        value = _evaluate(code, vars(main))
        if value is not None:
            told["text"] = _text_of(value)
            try:
                _values.pack(value)
                told["result"] = value
            except _values.NotAValue:
                pass  # its text has to do
    except BaseException as error:
        if not _is_success(error):
            told["error"] = _serve.explain(error)
            told["traceback"] = _serve.own_frames(error)
    return told


def run(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """What is told of it; an error of the code is a part of that."""
    code = arguments["code"]
    place = os.path.realpath(tempfile.mkdtemp(prefix="code-"))
    os.chdir(place)
    os.mkdir("out")
    sys.path.insert(0, place)
    _write_files(arguments["files"])
    linecache.cache[NAME] = (len(code), None, code.splitlines(True), NAME)
    server = sys.modules["__main__"]
    told = _run(code, arguments["inputs"])
    _end(place)
    sys.modules["__main__"] = server
    told["artifacts"], told["left_out"] = {}, []
    try:
        os.chdir(place)
    except OSError:
        return told  # the code has removed it
    told["artifacts"], told["left_out"] = _artifacts(arguments["artifact_bytes"])
    return told
