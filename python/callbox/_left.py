# SPDX-License-Identifier: MIT
"""What loading a module leaves behind besides memory: files, descriptors, generators of random numbers.

A call is forked into a box with file systems of its own, in which nothing is open. What the module has
made there while it was loaded is made anew for each call, so that it finds what it would find in an
interpreter of its own, and one call's is never another's."""

from __future__ import annotations

import atexit
import fcntl
import gc
import io
import os
import random
import re
import stat
import sys
import weakref
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Set, Tuple

BYTES_MAX = 16 << 20
ENTRIES_MAX = 4096
GIVEN = 4  # descriptors: stdin, stdout, stderr, the result channel
OWN = 96  # bits; a seed of more was drawn from the system
STREAM = io.IOBase.__mro__[1]  # of all files; the class above asks its registry first


class CannotFork(Exception):
    """Something that cannot be made anew."""


# ---- Files ----


class File(NamedTuple):
    path: str
    mode: int
    times: Tuple[int, int]
    content: Any  # bytes, the target of a link, or None of a directory


def _places() -> Iterator[str]:
    """Where a box keeps files in memory."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            mount, _, kind = line.partition(" - ")
            point, options = mount.split()[4:6]
            path = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), point)
            if kind.startswith("tmpfs ") and options.startswith("rw") and not path.startswith("/proc/"):
                yield path


def _below(directory: str, device: int) -> Iterator[Tuple[str, os.stat_result]]:
    """All that lies in this file system, from the top down; not what is mounted in it."""
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        st = os.lstat(path)
        if st.st_dev != device:
            continue
        yield path, st
        if stat.S_ISDIR(st.st_mode):
            yield from _below(path, device)


def _content(path: str, mode: int) -> Any:
    if stat.S_ISLNK(mode):
        return os.readlink(path)
    if stat.S_ISDIR(mode):
        return None
    if not stat.S_ISREG(mode):
        raise CannotFork(path)
    with open(path, "rb") as stream:
        return stream.read(BYTES_MAX + 1)


def _files() -> List[File]:
    found: List[File] = []
    size = 0
    for place in _places():
        for path, st in _below(place, os.lstat(place).st_dev):
            content = _content(path, st.st_mode)
            size += len(content or "")
            if size > BYTES_MAX or len(found) == ENTRIES_MAX:
                raise CannotFork(path)
            found.append(File(path, st.st_mode, (st.st_atime_ns, st.st_mtime_ns), content))
    return found


def _make(file: File) -> None:
    if stat.S_ISLNK(file.mode):
        os.symlink(file.content, file.path)
        return
    if file.content is None:
        os.makedirs(file.path, exist_ok=True)
    else:
        with open(file.path, "wb") as stream:
            stream.write(file.content)
    os.chmod(file.path, stat.S_IMODE(file.mode))
    os.utime(file.path, ns=file.times)


# ---- Descriptors ----


class Opened(NamedTuple):
    fd: int
    path: str
    flags: int
    at: int
    inheritable: bool


def _opened(known: Set[int]) -> List[Opened]:
    found: List[Opened] = []
    for fd in sorted(int(name) for name in os.listdir("/proc/self/fd")):
        if fd in known:
            continue
        try:
            mode = os.fstat(fd).st_mode
        except OSError:
            continue  # it was that of the listing
        path = os.readlink(f"/proc/self/fd/{fd}")
        plain = stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISCHR(mode)
        if not plain or not path.startswith("/") or not os.path.exists(path):
            raise CannotFork(path)  # a socket, a pipe, a file without a name
        flags = fcntl.fcntl(fd, fcntl.F_GETFL) & ~(os.O_CREAT | os.O_EXCL | os.O_TRUNC)
        at = os.lseek(fd, 0, os.SEEK_CUR) if stat.S_ISREG(mode) else 0
        found.append(Opened(fd, path, flags, at, os.get_inheritable(fd)))
    return found


def _open(opened: Opened) -> None:
    try:
        fd = os.open(opened.path, opened.flags)
        os.lseek(fd, opened.at, os.SEEK_SET) if opened.at else None
    except OSError:
        fd = os.open(os.devnull, os.O_RDWR)  # at least nothing else gets its number
    if fd == opened.fd:
        os.set_inheritable(fd, opened.inheritable)
        return
    os.dup2(fd, opened.fd, opened.inheritable)
    os.close(fd)


# ---- Random numbers ----


class Draws:
    """Generators that were seeded by the system are seeded anew; not those with a seed of their own.
    Entered while modules are loaded."""

    def __init__(self) -> None:
        self._ours: List[weakref.ref[random.Random]] = []
        self._numpy: List[Any] = []
        self._seed: Callable[..., None] = random.Random.seed

    def __enter__(self) -> None:
        original = self._seed

        def seed(generator: random.Random, a: Any = None, *more: Any, **named: Any) -> None:
            original(generator, a, *more, **named)
            self._ours = [known for known in self._ours if known() is not generator]
            if a is None:
                self._ours.append(weakref.ref(generator))

        setattr(random.Random, "seed", seed)

    def __exit__(self, *_: Any) -> None:
        setattr(random.Random, "seed", self._seed)
        bits: Any = getattr(sys.modules.get("numpy.random"), "BitGenerator", None)
        for thing in gc.get_objects() if bits else ():
            if issubclass(type(thing), bits):
                sequence = getattr(thing, "seed_seq", None) or getattr(thing, "_seed_seq", None)
                entropy = getattr(sequence, "entropy", None)
                if isinstance(entropy, int) and entropy.bit_length() > OWN:
                    self._numpy.append(thing)

    def renew(self) -> None:
        for known in self._ours:
            generator = known()
            if generator is not None:
                generator.seed()
        for thing in self._numpy:
            thing.state = type(thing)().state
        numpy = sys.modules.get("numpy.random")
        if numpy:
            numpy.seed()  # that of the module; Python's own has seen to itself


# ---- Functions of atexit ----

# What the standard library registers as it is loaded; each has nothing to do as long as ...
_QUIET = {("logging", "shutdown"), ("weakref", "finalize._exitfunc")}
# Waits for processes, which end with the call.
_WAITS = ("multiprocessing.util", "_exit_function")


class Exits:
    """Functions that are called at the end. Entered while modules are loaded: that there is nothing to do
    then has not to be found out by each call."""

    def __init__(self) -> None:
        self._known: List[Tuple[str, str]] = []
        self._register: Any = atexit.register
        self.quiet = 0  # so many are there that may have nothing to do

    def __enter__(self) -> None:
        def register(function: Any, *args: Any, **named: Any) -> Any:
            name = getattr(function, "__qualname__", "")
            self._known.append((getattr(function, "__module__", ""), name))
            return self._register(function, *args, **named)

        setattr(atexit, "register", register)

    def __exit__(self, *_: Any) -> None:
        setattr(atexit, "register", self._register)
        if all(known in _QUIET or known == _WAITS for known in self._known):
            self.quiet = _count_exits()


def _count_exits() -> int:
    return int(getattr(atexit, "_ncallbacks")())


def _has_loose_ends() -> bool:
    """... there is nothing that would be finalized, and no handler of logs but that of last resort."""
    logging = sys.modules.get("logging")
    if getattr(weakref.finalize, "_registry", True):
        return True
    return logging is not None and len(getattr(logging, "_handlerList", "..")) > 1


def _nothing_to_do(quiet: int) -> bool:
    return _count_exits() <= quiet and not _has_loose_ends()


def run_exits(quiet: int) -> None:
    """As an interpreter does at its end, but that nobody waits for processes."""
    try:
        if _nothing_to_do(quiet):
            return
        waits = getattr(sys.modules.get(_WAITS[0]), _WAITS[1], None)
        if waits:
            atexit.unregister(waits)
        getattr(atexit, "_run_exitfuncs")()
    except BaseException:
        pass  # what they raise has been printed


# ---- All of it ----


class Left:
    """Taken in the zygote, once everything is loaded; raises CannotFork."""

    def __init__(self, draws: Draws, known: Set[int]) -> None:
        self.draws = draws
        self.files = _files()
        self.opened = _opened(known)

    def renew(self) -> None:
        """In the process of a call."""
        for file in self.files:
            try:
                _make(file)
            except OSError:
                pass  # what is mounted there comes with the box
        for opened in self.opened:
            _open(opened)
        self.draws.renew()


def rehearse_end() -> None:
    _nothing_to_do(0)
    _count_files()


def _count_files() -> int:
    # From Linux 6.2 on this says how many are open.
    return os.stat("/proc/self/fd").st_size or len(os.listdir("/proc/self/fd")) - 1


def flush_files(left: bool) -> None:
    """Write what lies in the buffers of files that were never closed. `left`: among what was loaded
    before the fork there are some as well."""
    if _count_files() <= GIVEN:
        return
    if left:
        gc.unfreeze()
    for thing in gc.get_objects():
        if issubclass(type(thing), STREAM):
            try:
                if not thing.closed:
                    thing.flush()
            except Exception:
                pass  # it cannot be written
