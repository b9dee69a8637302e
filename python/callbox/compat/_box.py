# SPDX-License-Identifier: MIT
"""The side of _calls.py that is in the box: finds the function, calls it with the arguments as they
were, and nothing else.

A small request comes as the argument of call(), through _serve.py. A large one does not fit there: it
comes on stdin as a pickle, to this file as a program, with the same words as _serve.py has. Pickles go
into the box only."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Tuple

CALLBOX_BOX = True  # see callbox/_late.py
PLAIN = (type(None), bool, int, float, str, list, dict, tuple, bytes)


def _find(name: str) -> Callable[..., Any]:
    import importlib

    module, _, qualname = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    function: Callable[..., Any] = found
    return function


def _enter(cwd: str) -> None:
    """Where the agent is, if that can be seen from here: relative paths then mean the same."""
    try:
        os.chdir(cwd)
    except OSError:
        pass


def _unpack(packed: Any) -> Tuple[Any, Dict[str, Any]]:
    """See _in_pieces() in _pack.py."""
    function, args, joined = packed
    for name in joined:
        args[name] = "".join(args[name])
    return function, args


def _plain(value: Any) -> Any:
    """As a result would be that has been JSON: no tuples and sets, keys are text."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    return value


async def _wait(result: Any) -> Any:
    return await result


def _is_awaitable(value: Any) -> bool:
    import inspect

    return inspect.isawaitable(value)


def _run(function: Callable[..., Any], args: Dict[str, Any], as_json: bool) -> Any:
    result = function(**args)
    if type(result) not in PLAIN and _is_awaitable(result):
        import asyncio  # most tools do without, and it is as large as all the rest

        result = asyncio.run(_wait(result))
    return _plain(result) if as_json else result


def call(request: Any) -> Any:
    """Called by _serve.py."""
    _enter(request["cwd"])
    if "pickle" in request:
        import base64
        import pickle

        function, args = _unpack(pickle.loads(base64.b64decode(request["pickle"])))
    else:
        function, args = None, request["args"]
    if function is None:
        function = _find(request["name"])
    return _run(function, args, request["json"])


def main() -> int:
    import json
    import pickle
    import struct

    above = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.path.append(above)
    from callbox import _channel, _serve, _values

    fd = int(os.environ.pop("CALLBOX_RESULT_FD"))
    os.set_inheritable(fd, False)
    config, request = json.loads(sys.argv[1]), json.loads(sys.argv[2])
    _serve.set_path(config)
    trouble = _serve.prepare(config)
    sys.argv[:] = [""]
    channel = _channel.current = _channel.Channel(fd)
    code = 0
    try:
        if trouble is not None:
            raise trouble
        _enter(request["cwd"])
        function, args = _unpack(pickle.load(sys.stdin.buffer))
        if function is None:
            function = _find(request["name"])
        result = _values.dumps(_run(function, args, request["json"]))
        channel.send(_channel.RESULT, result.encode())
    except BaseException as error:  # SystemExit too, as in _serve.py
        code = 1
        channel.send(_channel.ERROR, _serve.explain(error).encode("utf-8", "backslashreplace"))
        channel.send(_channel.TEXT, _serve.own_frames(error).encode("utf-8", "backslashreplace"))
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass
    channel.send(_channel.DONE, struct.pack("=i", code))
    return code


if __name__ == "__main__":
    os._exit(main())
