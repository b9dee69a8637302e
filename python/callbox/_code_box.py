# SPDX-License-Identifier: MIT
"""Source text, run in the box: see _code.py for the other side."""

from __future__ import annotations

import ast
import base64
import inspect
import linecache
import os
import stat
import sys
import tempfile
from typing import Any, Dict, List, Tuple

from . import _serve, _values

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
    tree = ast.parse(code, NAME)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    loops: List[Any] = []
    value = None

    def run(part: Any, mode: str) -> Any:
        compiled = compile(part, NAME, mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result = eval(compiled, names)
        if compiled.co_flags & inspect.CO_COROUTINE:
            import asyncio

            if not loops:
                loops.append(asyncio.new_event_loop())
            result = loops[0].run_until_complete(result)
        return result

    run(tree, "exec")
    if isinstance(last, ast.Expr):
        value = run(ast.Expression(last.value), "eval")
    return value


def _artifacts(limit: int) -> Tuple[Dict[str, bytes], List[str]]:
    """The plain files under ./out, and the names of those for which there was no room."""
    found: Dict[str, bytes] = {}
    left: List[str] = []
    for folder, _, names in sorted(os.walk("out")):
        for name in sorted(names):
            path = os.path.join(folder, name)
            shown = os.path.relpath(path, "out")
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


def run(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """What is told of it; an error of the code is a part of that."""
    code = arguments["code"]
    told: Dict[str, Any] = {"result": None, "text": "", "error": None, "traceback": ""}
    place = tempfile.mkdtemp(prefix="code-")
    os.chdir(place)
    os.mkdir("out")
    sys.path.insert(0, place)
    _write_files(arguments["files"])
    linecache.cache[NAME] = (len(code), None, code.splitlines(True), NAME)
    try:
        names = {"__name__": "__main__", **_values.loads(arguments["inputs"])}
        value = _evaluate(code, names)
        if value is not None:
            text = repr(value)
            told["text"] = text if len(text) <= TEXT_MAX else text[:TEXT_MAX] + "..."
            try:
                _values.pack(value)
                told["result"] = value
            except _values.NotAValue:
                pass  # its text has to do
    except BaseException as error:
        told["error"] = _serve.explain(error)
        told["traceback"] = _serve.own_frames(error)
    os.chdir(place)
    told["artifacts"], told["left_out"] = _artifacts(arguments["artifact_bytes"])
    return told
