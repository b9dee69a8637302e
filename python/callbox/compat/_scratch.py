# SPDX-License-Identifier: MIT
"""A directory of the host that a box may fill: put files into it, and take files out that may be
anything."""

from __future__ import annotations

import codecs
import errno
import io
import os
import stat
from typing import Dict, Iterator, List, Mapping, Tuple, Union

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


def put(place: str, files: Mapping[str, Union[str, bytes]]) -> None:
    at = os.open(place, os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name, content in files.items():
            raw = content.encode() if isinstance(content, str) else content
            parts = [part for part in name.split("/") if part not in ("", ".")]
            try:
                _write(at, parts, raw)
            except (IndexError, OSError) as error:
                if isinstance(error, OSError) and error.errno not in (errno.ELOOP, errno.ENOTDIR):
                    raise
                raise _escapes(name) from None
    finally:
        os.close(at)


def _files(place: str) -> Iterator[Tuple[str, str, int]]:
    """Name from the place on, name in its folder, descriptor of that. A link in place of the place
    itself is not followed either."""
    for folder, _, names, at in os.fwalk(place):
        for name in names:
            yield os.path.relpath(os.path.join(folder, name), place), name, at


def look(place: str) -> Known:
    """What is there, and when it was changed."""
    known: Known = {}
    for path, name, at in _files(place):
        facts = os.stat(name, dir_fd=at, follow_symlinks=False)
        known[path] = (facts.st_mtime_ns, facts.st_size)
    return known


def take(place: str, before: Known, most: int) -> Dict[str, bytes]:
    """Plain files that are new or changed, up to so many bytes together. A program that is not
    trusted has made them: links are not followed, and pipes not waited for. It has ended."""
    found: Dict[str, bytes] = {}
    for path, name, at in _files(place):
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
