# SPDX-License-Identifier: MIT
"""The process in the box: it loads what it can, waits for its call, runs it, and ends.

It is started by path, in isolated mode, as `python3 -I -B _serve.py CONFIG [FILE...]`, before there
is a call. On stdin comes a line that says what is to be run, then its arguments as JSON. What comes
of it goes to the result channel as frames (_channel.py); what is printed is printed."""

from __future__ import annotations

import importlib
import io
import json
import os
import struct
import sys
from typing import Any, Callable, Dict, Optional

HERE = os.path.dirname(os.path.abspath(__file__))


def prepare(config: Dict[str, Any]) -> Optional[BaseException]:
    """All that is the same for every call. A module that cannot be loaded is the call's error."""
    sys.path[:] = config["path"]
    above = os.path.dirname(HERE)
    if above not in sys.path:
        sys.path.append(above)
    setattr(importlib.import_module("callbox._channel"), "boxed", True)
    for name in ("callbox._convert", "callbox._values", "asyncio", "traceback"):
        importlib.import_module(name)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # so that it can be followed
    try:
        importlib.import_module(config["module"])
    except BaseException as error:  # whatever it is, the call has to hear of it
        return error
    return None


def find(line: Dict[str, Any]) -> Callable[..., Any]:
    if "value" in line:
        import base64

        import pickle

        loaded: Callable[..., Any] = pickle.loads(base64.b64decode(line["value"]))
        return loaded
    module, _, qualname = line["name"].partition(":")
    found: Any = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    if not callable(found):
        raise TypeError(f"{module}.{qualname} is no function")
    function: Callable[..., Any] = found
    return function


def call(line: Dict[str, Any], arguments: Dict[str, Any]) -> str:
    """The result, as typed JSON."""
    import inspect

    from callbox import _convert, _values

    if "code" in line:
        from callbox import _code_box

        return _values.dumps(_code_box.run(arguments))
    function = find(line)
    args, named = _convert.bind(function, arguments)
    result = function(*args, **named)
    if inspect.isawaitable(result):
        import asyncio

        async def wait() -> Any:
            return await result

        result = asyncio.run(wait())
    return _values.dumps(result)


def explain(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def own_frames(error: BaseException) -> str:
    """The traceback from where the tool's own code begins."""
    import asyncio
    import traceback

    others = (HERE, os.path.dirname(asyncio.__file__), os.path.dirname(importlib.__file__), "<frozen ")
    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename.startswith(others):
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace))


def main() -> int:
    fd = int(os.environ.pop("CALLBOX_RESULT_FD"))
    os.set_inheritable(fd, False)  # not for what the tool starts
    trouble = prepare(json.loads(sys.argv[1]))
    sys.argv[:] = [""]

    from callbox import _channel

    channel = _channel.current = _channel.Channel(fd)
    request = sys.stdin.buffer.read()
    line, _, arguments = request.partition(b"\n")
    code = 0
    try:
        if trouble is not None:
            raise trouble
        result = call(json.loads(line), json.loads(arguments))
        channel.send(_channel.RESULT, result.encode())
    except BaseException as error:  # SystemExit too: it is no end of the call that was meant
        code = 1
        channel.send(_channel.ERROR, explain(error).encode("utf-8", "backslashreplace"))
        channel.send(_channel.TEXT, own_frames(error).encode("utf-8", "backslashreplace"))
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass  # the tool has closed or replaced it
    channel.send(_channel.DONE, struct.pack("=i", code))
    return code


if __name__ == "__main__":
    os._exit(main())  # threads of the tool's end with it
