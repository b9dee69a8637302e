# SPDX-License-Identifier: MIT
"""The process in the box: it loads what it can, waits for its call, runs it, and ends.

It is started by _start.py, in isolated mode, as `python3 -I -B _start.py CONFIG [FILE...]`, before there
is a call. On stdin comes a line that says what is to be run, then its arguments as JSON. What comes
of it goes to the result channel as frames (_channel.py); what is printed is printed.

Where CALLBOX_FORK_FD is set it is a zygote: once it has loaded everything, it forks itself into the
box of each call. What it has loaded from files that may change is looked at again before a call."""

from __future__ import annotations

import importlib
import inspect
import io
import itertools
import json
import os
import struct
import sys
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

CALLBOX_BOX = True  # see __init__.py
HERE = os.path.dirname(os.path.abspath(__file__))
TEXT_MAX = 64 * 1024  # characters of an error
FIRST_READ = 4096  # bytes: what the pipe holds
READ_MAX = 64 * 1024
TOUCHED_MAX = 256  # functions
TIMES = 16  # until Python has adapted itself
DECODER = json.JSONDecoder()

# What a call needs of the package, found once rather than by each.
_channel: Any = None
_convert: Any = None
_encode: Any = None
_left: Any = None
_once: Any = None
_hosted: Any = None  # where the tools are those of a file


def find_own() -> None:
    """This package, wherever it lies: the interpreter may have another version of it, or none, and what
    lies beside this one is not for tools."""
    from importlib.util import module_from_spec, spec_from_file_location

    place = os.path.join(HERE, "__init__.py")
    spec = spec_from_file_location("callbox", place, submodule_search_locations=[HERE])
    assert spec is not None and spec.loader is not None
    sys.modules["callbox"] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules["callbox"])


start: Optional[str] = None  # where a call begins; "": in the box's own place; None: where its box does


def set_path(config: Dict[str, Any]) -> None:
    global start
    start = config.get("start")
    if "hosted" in config:
        find_own()
        return
    sys.path[:] = config["path"]
    above = os.path.dirname(HERE)
    if above not in sys.path:
        sys.path.append(above)


def load_own() -> None:
    """What a call may need of the package."""
    global _channel, _convert, _encode, _left, _once
    load = importlib.import_module("callbox._late").load
    _channel = load("callbox._channel")
    _channel.boxed = True
    _convert = load("callbox._convert")
    _encode = load("callbox._encode")
    _left = load("callbox._left")
    _once = load("callbox._once")
    load("traceback")


def prepare(config: Dict[str, Any]) -> Optional[BaseException]:
    """All that is the same for every call. A module that cannot be loaded is the call's error."""
    global _hosted
    load_own()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # so that it can be followed
    if "hosted" in config:
        _hosted = importlib.import_module("callbox._hosted")
        _hosted.set_path(config["path"])
        _hosted.load(config)
        return None
    try:
        for name in (*config.get("also", ()), config["module"]):
            importlib.import_module(name)
    except BaseException as error:  # whatever it is, the call has to hear of it
        return error
    return None


# ---- The zygote ----

INSTALLED = ("site-packages", "dist-packages")
LOOK_EVERY = 1.0  # seconds; at files that only an installer changes
# Libraries that start threads of their own when they are loaded; a process that forks has one.
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")

Facts = Dict[str, Tuple[int, ...]]


def facts_of(path: str) -> Tuple[int, ...]:
    try:
        st = os.stat(path)
    except OSError:
        return ()
    return (st.st_dev, st.st_ino, st.st_size, st.st_mtime_ns, st.st_ctime_ns)


def loaded() -> Tuple[Facts, Facts]:
    """The files of modules: those that somebody may be working on, and those that were installed."""
    folders = [entry for entry in sys.path if os.path.basename(entry) in INSTALLED]
    folders.append(os.path.dirname(os.__file__))
    roots = tuple(os.path.join(folder, "") for folder in folders)
    own: Facts = {}
    installed: Facts = {}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and not file.startswith(HERE):
            (installed if file.startswith(roots) else own)[file] = facts_of(file)
    return own, installed


def changed(files: Facts) -> bool:
    return any(facts_of(path) != facts for path, facts in files.items())


def get_ready(name: str, ahead: List[str]) -> None:
    """What a call would do first of all."""
    for other in ahead:
        importlib.import_module(other)
    from callbox import _serve

    learn(_serve)
    module = sys.modules.get(name)
    if module is not None:
        learn(module)
        # It is as large as all the rest, and what is larger takes longer to fork and to end.
        if any(inspect.iscoroutinefunction(function) for function in list(vars(module).values())):
            importlib.import_module("asyncio")


# By the line that asks for it.
learned: Dict[bytes, Callable[..., Any]] = {}


def learn(module: Any) -> None:
    """Read the signatures of a module's functions, and how they are asked for."""
    _convert.learn(module)
    for name, thing in list(vars(module).items()):
        if inspect.isfunction(thing) and thing in _convert.known:
            learned[json.dumps({"name": f"{module.__name__}:{name}"}).encode()] = thing


class Forked(NamedTuple):
    opened: bool  # there are files that were opened before
    hurried: bool  # it is waited for


def has_threads() -> bool:
    return len(os.listdir("/proc/self/task")) > 1


def fork(fd: int, files: Facts, installed: Facts, draws: Any) -> Forked:
    """Returns in the box of a call, in a process of its own, each time that there is one."""
    import gc
    import time

    from callbox import _zygote

    if has_threads():
        os._exit(1)  # without it, then
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    try:
        get_used(files)
        gc.collect()
        left = _left.Left(draws, {0, 1, 2, fd})
        gc.freeze()
        _zygote.open(fd)
    except (OSError, _left.CannotFork):
        os._exit(1)  # without it, as well: it has something that calls would share, or not find
    retired, looked = False, time.monotonic()
    try:
        while not _zygote.fork():
            stale = changed(files)
            if not stale and time.monotonic() - looked > LOOK_EVERY:
                stale, looked = changed(installed), time.monotonic()
            if stale and not retired:
                retired = True
                _zygote.retire()
    except OSError:
        os._exit(0)  # it is not needed any more
    left.renew()
    return Forked(bool(left.opened), _zygote.hurried())


REHEARSED = (
    b"""{"name": "callbox._serve:echo"}
{"text": "text", "number": 1, "more": [1.5, true, null, {"a": []}]}""",
    b"""{"name": "callbox._serve:count"}
{"number": 1, "more": 2}""",
)


def echo(text: str, number: int, more: List[Any]) -> Dict[str, Any]:
    return {"text": text, "number": number, "more": more}


def count(number: int, more: int) -> int:
    return number + more


def rehearse(channel: Any, files: Facts) -> None:
    """Do all that a call does, before there is one, with requests of one's own and nobody to tell.
    Memory that is shared with the zygote is copied when it is first written to, and programs are mapped
    as they are run: both would take longer than the call."""
    fds = (0, channel.fd)
    own = [os.dup(fd) for fd in fds]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, channel.fd)
    for request in REHEARSED:
        there, end = os.pipe()
        os.write(end, request)
        os.close(end)
        os.dup2(there, 0)
        os.close(there)
        wait_for_request()
        changed(files)
        answer(None, channel, None)
    for _, function in itertools.islice(learned.items(), TOUCHED_MAX):
        getattr(function, "__code__")
    for fd, kept in zip(fds, own):
        os.dup2(kept, fd, inheritable=fd == 0)
    for fd in (*own, nowhere):
        os.close(fd)


def get_used(files: Facts) -> None:
    """Python adapts what it runs to what it finds there, and writes that down, after some times."""
    fd = os.open(os.devnull, os.O_WRONLY)
    for _ in range(TIMES):
        rehearse(_channel.Channel(fd), files)
    os.close(fd)


def start_anew(fd: int, arguments: List[str]) -> None:
    """The files are not what was loaded, and nothing has been read from stdin yet: begin again, in the
    same box."""
    os.environ["CALLBOX_RESULT_FD"] = str(fd)
    os.set_inheritable(fd, True)
    os.execv(sys.executable, [sys.executable, "-I", "-B", os.path.join(HERE, "_start.py"), *arguments])


def wait_for_request(milliseconds: int = -1) -> bool:
    import select

    poll = select.poll()
    poll.register(0, select.POLLIN)
    return bool(poll.poll(milliseconds))


# ---- A call ----


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


def wait_for(result: Any) -> Any:
    import asyncio

    async def wait() -> Any:
        return await result

    return asyncio.run(wait())


def call(line: bytes, arguments: Dict[str, Any]) -> List[Any]:
    """The result: typed JSON, and the parts that lie beside it."""
    function = learned.get(line)
    if function is None:
        asked = json.loads(line)
        if _hosted is not None:
            answered: List[Any] = _hosted.answer(asked, arguments, wait_for)
            return answered
        if "code" in asked:
            from callbox import _code_box

            packed: List[Any] = _encode.pack(_code_box.run(arguments))
            return packed
        function = find(asked)
    args, named = bind(function, arguments)
    return pack(function(*args, **named))


def bind(function: Callable[..., Any], arguments: Dict[str, Any]) -> Tuple[List[Any], Dict[str, Any]]:
    bound: Tuple[List[Any], Dict[str, Any]] = _convert.bind(function, arguments)
    return bound


def pack(result: Any) -> List[Any]:
    """Of what a function has returned, once that is there."""
    # Of a type that was never seen, inspect would have to learn whether it is awaitable.
    if type(result) not in _encode.EXACT and (
        hasattr(type(result), "__await__") or (inspect.isgenerator(result) and inspect.isawaitable(result))
    ):
        result = wait_for(result)
    packed: List[Any] = _encode.pack(result)
    return packed


def explain(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = "(its text cannot be had)"
    return shorten(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def shorten(text: str) -> str:
    """What a model or a log can take, with its beginning and its end."""
    more = len(text) - TEXT_MAX
    half = TEXT_MAX // 2
    return text if more <= 0 else f"{text[:half]} [... {more} more characters ...] {text[-half:]}"


def own_frames(error: BaseException) -> str:
    """The traceback from where the tool's own code begins."""
    import traceback

    library = os.path.dirname(importlib.__file__)
    others = (HERE, os.path.join(os.path.dirname(library), "asyncio"), library, "<frozen ")
    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename.startswith(others):
        trace = trace.tb_next
    return shorten("".join(traceback.format_exception(type(error), error, trace)))


class Ending(NamedTuple):
    """What is to be known of the modules that were loaded when the call ends."""

    opened: bool = False  # some file is open since then
    quiet: int = 0  # functions of atexit that may have nothing to do


class Loaded(NamedTuple):
    trouble: Optional[BaseException]
    files: Optional[Facts]  # from which it was loaded; None: it was not forked
    ending: Ending
    hurried: bool = False


def load() -> Loaded:
    """Get ready for calls. Returns in a process for one call, whatever it took."""
    fd = os.environ.pop("CALLBOX_FORK_FD", None)
    config = json.loads(sys.argv[1])
    set_path(config)
    if fd is None:
        return Loaded(prepare(config), None, Ending())

    from callbox import _left

    threads = {name: os.environ.get(name) for name in ONE_THREAD}
    os.environ.update({name: "1" for name in ONE_THREAD})
    draws, exits = _left.Draws(), _left.Exits()
    with draws, exits:
        trouble = prepare(config)
        get_ready(config["module"], config.get("ahead", []))
    for name, value in threads.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    files, installed = loaded()
    forked = fork(int(fd), files, installed, draws)
    return Loaded(trouble, files, Ending(forked.opened, exits.quiet), forked.hurried)


def read_request() -> Tuple[bytes, Any]:
    """What is to be run, and its arguments. They are an object, and no beginning of one is one as well:
    what can be read is whole, and nobody has to wait for the end of the input."""
    request = os.read(0, FIRST_READ)
    if request.endswith(b"}"):
        line, _, arguments = request.partition(b"\n")
        try:
            return line, DECODER.decode(arguments.decode())
        except ValueError:
            pass
    pieces = [request]
    while pieces[-1]:
        pieces.append(os.read(0, READ_MAX))
    line, _, arguments = b"".join(pieces).partition(b"\n")
    return line, DECODER.decode(arguments.decode())


def outcome(trouble: Optional[BaseException]) -> Tuple[List[Tuple[Any, ...]], int]:
    """Of the call: frames for the result channel, and the exit code."""
    try:
        line, arguments = read_request()
        if trouble is not None:
            raise trouble
        result, *beside = call(line, arguments)
        return [*((_channel.DATA, part) for part in beside), (_channel.RESULT, result)], 0
    except BaseException as error:  # SystemExit too: it is no end of the call that was meant
        return told(error), 1


def told(error: BaseException) -> List[Tuple[Any, ...]]:
    """The frames that tell of it."""
    said, frames = explain(error), own_frames(error)
    if _hosted is not None:
        said = _hosted.explain(error, said, frames)
    texts = ((_channel.ERROR, said), (_channel.TEXT, frames))
    return [(kind, text.encode("utf-8", "backslashreplace")) for kind, text in texts]


def answer(trouble: Optional[BaseException], channel: Any, ending: Optional[Ending]) -> int:
    """`ending` None: it is a rehearsal, and the module does not end."""
    frames, code = outcome(trouble)
    if ending:
        _left.run_exits(ending.quiet)
    else:
        _left.rehearse_end()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass  # the tool has closed or replaced it
    if ending:
        _left.flush_files(ending.opened)
    channel.send_all([*frames, (_channel.DONE, struct.pack("=i", code))])
    return code


def main() -> int:
    trouble, files, ending, hurried = load()
    channel = _channel.current = _channel.Channel(int(os.environ.pop("CALLBOX_RESULT_FD", "3")))
    os.set_inheritable(channel.fd, False)  # not for what the tool starts
    arguments = sys.argv[1:]
    sys.argv[:] = [""]
    if files is not None:
        if not hurried and not wait_for_request(0):  # else the call itself is next
            rehearse(channel, files)
        wait_for_request()
        if changed(files):
            start_anew(channel.fd, arguments)
    _once.enter(start)
    return answer(trouble, channel, ending)


if __name__ == "__main__":
    os._exit(main())  # threads of the tool's end with it
