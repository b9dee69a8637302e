# SPDX-License-Identifier: MIT
"""A directory of the host that a box may fill: put files into it, and take files out that may be
anything."""

from __future__ import annotations

import codecs
import errno
import io
import itertools
import logging
import os
import stat
from typing import Dict, Iterator, List, Mapping, Optional, Tuple, Union

from .._error import CallboxError

log = logging.getLogger("callbox.compat")

ENTRIES_MAX = 100_000
DEPTH_MAX = 64
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

Known = Dict[str, Tuple[int, int]]


class Head:
    r"""The beginning of a stream as text, with \n for every end of a line, and how much more there
    was, in characters or, `as_bytes`, in bytes. Nothing else is kept."""

    def __init__(self, most: int, as_bytes: bool = False) -> None:
        self.most = most
        self.as_bytes = as_bytes
        self.more = 0
        self._kept: List[str] = []
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._decoder = io.IncrementalNewlineDecoder(decoder, translate=True)

    def add(self, data: bytes) -> None:
        if self.as_bytes and self.more:
            self.more += len(data)
        else:
            self._take(self._decoder.decode(data))

    def _take(self, text: str) -> None:
        if self.as_bytes:
            raw = text.encode()
            kept = raw[: self.most].decode("utf-8", "ignore")  # never half a character
            size, all_of_it = len(kept.encode()), len(raw)
        else:
            kept = text[: self.most]
            size, all_of_it = len(kept), len(text)
        self._kept.append(kept)
        self.more += all_of_it - size
        self.most = 0 if self.more else self.most - size

    def end(self) -> str:
        self._take(self._decoder.decode(b"", True))
        return "".join(self._kept)


def check_names(files: Mapping[str, Union[str, bytes]]) -> None:
    for name in files:
        parts = name.replace("\\", "/").split("/")
        if not name or "\0" in name or os.path.isabs(name) or ".." in parts:
            raise _escapes(name)


def check_protected(files: Mapping[str, Union[str, bytes]], protect: List[str]) -> None:
    """Of names in a directory that is not a scratch one: none that a box could not write there either."""
    for name in files:
        parts = [part for part in name.casefold().split("/") if part not in ("", ".")]
        for entry in protect:
            anywhere, words = entry.startswith("**/"), entry.casefold().replace("**/", "").split("/")
            starts = range(len(parts)) if anywhere else (0,)
            if any(parts[at : at + len(words)] == words for at in starts):
                raise ValueError(f"files key {name!r} is protected: the host would run what it says ({entry})")


def _escapes(name: str) -> ValueError:
    return ValueError(
        f"files key {name!r} escapes the scratch directory (absolute paths and '..' are not allowed)"
    )


def _write(at: int, parts: List[str], content: bytes) -> None:
    """Below a directory. An earlier call may have left links in it, which are not followed."""
    if len(parts) > 1:
        try:
            os.mkdir(parts[0], dir_fd=at)
        except FileExistsError:
            pass
        below = os.open(parts[0], os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
        try:
            _write(below, parts[1:], content)
        finally:
            os.close(below)
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(parts[0], flags, 0o644, dir_fd=at), "wb") as stream:
        stream.write(content)


def put(at: int, files: Mapping[str, Union[str, bytes]]) -> None:
    """Into the directory that is open."""
    for name, content in files.items():
        raw = content.encode() if isinstance(content, str) else content
        parts = [part for part in name.split("/") if part not in ("", ".")]
        try:
            _write(at, parts, raw)
        except (IndexError, OSError) as error:
            if isinstance(error, OSError) and error.errno not in (errno.ELOOP, errno.ENOTDIR):
                raise
            raise _escapes(name) from None


def make_folder(at: int, name: str) -> None:
    """In the directory that is open. A link that a box has left in its place is removed."""
    try:
        os.mkdir(name, dir_fd=at)
    except FileExistsError:
        facts = os.stat(name, dir_fd=at, follow_symlinks=False)
        if stat.S_ISLNK(facts.st_mode):
            os.unlink(name, dir_fd=at)
            os.mkdir(name, dir_fd=at)
        elif not stat.S_ISDIR(facts.st_mode):
            raise CallboxError("it is a file, where a directory has to be", name, "remove it") from None


class Directory:
    """One of the host, by what was there first: at once, if there was something, else when it is made. A
    link is followed now and never again: boxes may write to what is above it."""

    def __init__(self, path: str) -> None:
        self.path = os.path.realpath(path)
        self._known: Optional[Tuple[int, int]] = None
        try:
            os.close(self.open(make=False))
        except (OSError, CallboxError):
            pass

    def open(self, make: bool = True) -> int:
        """Its descriptor."""
        try:
            at = _open_direct(self.path, make and self._known is None)
            facts = os.fstat(at)
        except OSError as error:
            text = f"cannot open it, and no link is followed that came later: {error.strerror}"
            raise CallboxError(text, self.path) from None
        if self._known not in (None, (facts.st_dev, facts.st_ino)):
            os.close(at)
            hint = "if that is meant, start anew: what was there first is what is used"
            raise CallboxError("it is another directory than before", self.path, hint)
        self._known = (facts.st_dev, facts.st_ino)
        return at


def _open_direct(path: str, make: bool) -> int:
    """Name by name, none of which is a link."""
    at = os.open("/", DIRECTORY)
    for name in filter(None, path.split("/")):
        try:
            try:
                below = os.open(name, DIRECTORY, dir_fd=at)
            except FileNotFoundError:
                if not make:
                    raise
                os.mkdir(name, dir_fd=at)
                below = os.open(name, DIRECTORY, dir_fd=at)
        finally:
            os.close(at)
        at = below
    return at


def _walk(at: int, above: str, counter: Iterator[int]) -> Iterator[Tuple[str, str, int]]:
    with os.scandir(at) as entries:
        for entry in entries:
            path = os.path.join(above, entry.name)
            if next(counter) > ENTRIES_MAX:
                return
            if not entry.is_dir(follow_symlinks=False):
                yield path, entry.name, at
            elif path.count("/") < DEPTH_MAX:
                below = os.open(entry.name, DIRECTORY, dir_fd=at)
                try:
                    yield from _walk(below, path, counter)
                finally:
                    os.close(below)


def _files(within: int, place: str) -> Iterator[Tuple[str, str, int]]:
    """Name from the place on, name in its folder, descriptor of that; so many, and so deep, at most. A
    link in place of the place itself is not followed either."""
    try:
        at = os.open(place, DIRECTORY, dir_fd=within)
    except OSError:
        return
    try:
        yield from _walk(at, "", itertools.count(1))
    finally:
        os.close(at)


def remove(place: str) -> None:
    """With all that is in it, however deep: each directory is taken up to the top before it is emptied.
    Whoever could have moved something meanwhile has ended."""
    try:
        top = os.open(place, DIRECTORY)
    except OSError:
        return
    try:
        while _empty(top):
            pass
        os.rmdir(place)
    except OSError as error:
        log.warning("cannot remove %r: %s", place, error)
    finally:
        os.close(top)


def _empty(top: int) -> bool:
    """Take the directories in the top apart, by one level. Whether there were any."""
    own = os.urandom(8).hex()  # names that a box cannot have taken
    count = itertools.count()
    found = False
    for name in os.listdir(top):
        if not stat.S_ISDIR(os.stat(name, dir_fd=top, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=top)
            continue
        found = True
        os.chmod(name, 0o700, dir_fd=top)
        at = os.open(name, DIRECTORY, dir_fd=top)
        try:
            for inner in os.listdir(at):
                if stat.S_ISDIR(os.stat(inner, dir_fd=at, follow_symlinks=False).st_mode):
                    os.chmod(inner, 0o700, dir_fd=at)
                    os.rename(inner, f".{own}.{next(count)}", src_dir_fd=at, dst_dir_fd=top)
                else:
                    os.unlink(inner, dir_fd=at)
        finally:
            os.close(at)
        os.rmdir(name, dir_fd=top)
    return found


def look(within: int, place: str) -> Known:
    """What is there, and when it was changed."""
    known: Known = {}
    for path, name, at in _files(within, place):
        try:
            facts = os.stat(name, dir_fd=at, follow_symlinks=False)
        except OSError:
            continue
        known[path] = (facts.st_mtime_ns, facts.st_size)
    return known


def take(within: int, place: str, before: Known, most: int) -> Dict[str, bytes]:
    """Plain files that are new or changed, up to so many bytes together. A program that is not
    trusted has made them: links are not followed, and pipes not waited for. It has ended."""
    found: Dict[str, bytes] = {}
    for path, name, at in _files(within, place):
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            fd = os.open(name, flags, dir_fd=at)
        except OSError:
            continue
        with open(fd, "rb") as stream:
            facts = os.fstat(fd)
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > most:
                continue
            if before.get(path) == (facts.st_mtime_ns, facts.st_size):
                continue
            content = stream.read(most + 1)
        if len(content) <= most:
            most -= len(content)
            found[path] = content
    return found
