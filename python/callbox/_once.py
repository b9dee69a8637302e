# SPDX-License-Identifier: MIT
"""An interpreter in a box, for one call: the first ones, while a zygote gets ready, and those of programs
that cannot be forked. Somebody waits for all that it loads: so plain arguments and results are read and
written here, with nothing but what has been loaded already, and everything else is left to _serve.py."""

from __future__ import annotations

import os
import sys

from . import _channel, _late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, List, Optional, Tuple

FIRST_READ = 4096  # bytes: what the pipe holds
READ_MAX = 64 * 1024
GIVEN = 4  # descriptors: stdin, stdout, stderr, the result channel
TAG = "$callbox"
TEXT_MAX = 64 * 1024  # characters, of which longer ones go beside the result
DEPTH_MAX = 16
INT_MAX = 2**63
VARIADIC = 0x04 | 0x08  # of the flags of a code: *args, **kwargs
PLAIN: Dict[str, Any] = {"int": int, "str": str, "bool": bool, "float": float, "list": list, "dict": dict, "object": object}
ANY = ("Any", "typing.Any")


# ---- JSON ----


class _How:
    """What the scanner of JSON asks its decoder for."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": -float("inf")}.__getitem__
    memo: Dict[str, str] = {}


try:
    # Both are those of json, which loads regular expressions for its errors.
    import _json

    _quoted: Any = getattr(_json, "encode_basestring")
    _scan: Any = getattr(_json, "make_scanner")(_How)
except (ImportError, AttributeError, TypeError):
    _quoted = _scan = None


def read(text: str) -> Any:
    if _scan is None:
        import json

        return json.loads(text)
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        end = -1
    if end != len(text):
        raise ValueError("it is no JSON, or has more after it")
    return value


class _NotPlain(Exception):
    pass


def _written(value: Any, depth: int) -> str:
    kind = type(value)
    if value is None or kind is bool:
        return {None: "null", True: "true", False: "false"}[value]
    if kind is int and -INT_MAX <= value < INT_MAX or kind is float and value - value == 0:
        return repr(value)
    if kind is str and len(value) < TEXT_MAX:
        return str(_quoted(value))
    if depth == DEPTH_MAX:
        raise _NotPlain
    if kind is list:
        return "[" + ",".join([_written(item, depth + 1) for item in value]) + "]"
    if kind is dict and TAG not in value:
        pairs = [f"{_name(key)}:{_written(item, depth + 1)}" for key, item in value.items()]
        return "{" + ",".join(pairs) + "}"
    raise _NotPlain


def _name(key: Any) -> str:
    if type(key) is not str:
        raise _NotPlain
    return _written(key, DEPTH_MAX)


def write(value: Any) -> Optional[bytes]:
    """A result as _encode.py would write it; None: it has to."""
    if _quoted is None:
        return None
    try:
        return _written(value, 0).encode()
    except (_NotPlain, UnicodeEncodeError):
        return None


# ---- The call ----


def takes(function: Any, arguments: Dict[str, Any]) -> bool:
    """Whether it takes the arguments by name and as they are; what _convert.py does otherwise."""
    code = getattr(function, "__code__", None)
    if type(function) is not type(takes) or hasattr(function, "__wrapped__") or code is None:
        return False
    if code.co_flags & VARIADIC or code.co_posonlyargcount:
        return False
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    try:
        hints = function.__annotations__
    except Exception:  # of Python 3.14, which reads them now
        return False
    return all(name in names and _fits(value, hints.get(name, object), function) for name, value in arguments.items())


def _fits(value: Any, hint: Any, function: Any) -> bool:
    if type(hint) is str:  # as it is written
        if hint in function.__globals__ or hint in ANY:
            return hint in ANY
        hint = PLAIN.get(hint)
    if hint is object or hint is getattr(sys.modules.get("typing"), "Any", object):
        return True
    return any(hint is kind and type(value) is kind for kind in PLAIN.values())


def _rest() -> Any:
    """All that there is for a call."""
    found = _late.load(f"{__package__}._serve")
    found.load_own()
    return found


def call(line: bytes, arguments: Dict[str, Any]) -> List[Any]:
    """The result: typed JSON, and the parts that lie beside it."""
    asked = read(line.decode())
    if "name" not in asked:
        found: List[Any] = _rest().call(line, arguments)
        return found
    module, _, qualname = asked["name"].partition(":")
    __import__(module)
    function: Any = sys.modules[module]
    for part in qualname.split("."):
        function = getattr(function, part)
    if not takes(function, arguments):
        args, named = _rest().bind(function, arguments)
    else:
        args, named = [], arguments
    result = function(*args, **named)
    text = write(result)
    if text is not None:
        return [text]
    packed: List[Any] = _rest().pack(result)
    return packed


def read_request() -> Tuple[bytes, Any]:
    """As _serve.py does."""
    request = os.read(0, FIRST_READ)
    if request.endswith(b"}"):
        line, _, arguments = request.partition(b"\n")
        try:
            return line, read(arguments.decode())
        except ValueError:
            pass
    pieces = [request]
    while pieces[-1]:
        pieces.append(os.read(0, READ_MAX))
    line, _, arguments = b"".join(pieces).partition(b"\n")
    return line, read(arguments.decode())


def outcome(trouble: Optional[BaseException]) -> Tuple[List[Tuple[Any, ...]], int]:
    """Of the call: frames for the result channel, and the exit code."""
    try:
        line, arguments = read_request()
        if trouble is not None:
            raise trouble
        result, *beside = call(line, arguments)
        return [*((_channel.DATA, part) for part in beside), (_channel.RESULT, result)], 0
    except BaseException as error:  # SystemExit too: it is no end of the call that was meant
        return _rest().told(error), 1


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass  # the tool has closed or replaced it


def end() -> None:
    """What an interpreter does when it ends, where there is anything to do."""
    import atexit

    count: Callable[[], int] = getattr(atexit, "_ncallbacks")
    if count() > 0:
        _rest()._left.run_exits(0)
    _flush()
    # From Linux 6.2 on the first says how many are open.
    if (os.stat("/proc/self/fd").st_size or len(os.listdir("/proc/self/fd")) - 1) > GIVEN:
        _rest()._left.flush_files(False)


class _Aside:
    """Keeps the streams of the call from what is being loaded, as a zygote does: it is to read nothing of the
    request, and what it prints is in no result."""

    def __enter__(self) -> None:
        nowhere = os.open(os.devnull, os.O_RDWR)
        self.kept = [os.dup(fd) for fd in range(3)]
        for fd in range(3):
            os.dup2(nowhere, fd)
        os.close(nowhere)

    def __exit__(self, *_: Any) -> None:
        _flush()
        for fd, kept in enumerate(self.kept):
            os.dup2(kept, fd)
            os.close(kept)


def load(config: Dict[str, Any]) -> Optional[BaseException]:
    try:
        for name in (*config.get("also", ()), config["module"]):
            __import__(name)
    except BaseException as error:  # whatever it is, the call has to hear of it
        return error
    return None


def enter(start: Optional[str]) -> None:
    """Go to where the call begins; "": to the box's own place; None: where its box does. What cannot be
    entered is not: the box has begun somewhere."""
    own = (os.environ.get("TMPDIR", ""), os.environ.get("HOME", ""), "/tmp")
    for place in () if start is None else (start,) if start else filter(None, own):
        try:
            return os.chdir(place)
        except OSError:
            pass


def main() -> int:
    config = read(sys.argv[1])
    sys.argv[:] = [""]
    above = sys.path.pop()  # _start.py
    sys.path[:] = config["path"]
    if above not in sys.path:
        sys.path.append(above)
    channel = _channel.Channel(int(os.environ.pop("CALLBOX_RESULT_FD", "3")))
    os.set_inheritable(channel.fd, False)  # not for what the tool starts
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)  # so that it can be followed
    with _Aside():
        trouble = load(config)
    _channel.current = channel
    enter(config.get("start"))
    frames, code = outcome(trouble)
    end()
    channel.send_all([*frames, (_channel.DONE, code.to_bytes(4, sys.byteorder))])
    return code
