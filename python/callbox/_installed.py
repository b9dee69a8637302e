# SPDX-License-Identifier: MIT
"""Interpreters of the host, and what has to be shown of it so that they can be run in a box."""

from __future__ import annotations

import os
import sys
from typing import Iterable, Iterator, List, Tuple

from ._inputs import is_in, written
from ._places import is_top

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32")
LINKS_MAX = 40  # as the kernel has it
VENV = "pyvenv.cfg"
VENV_MAX = 4096  # bytes of it that are looked at


def spelled(python: str) -> str:
    """By the name that lets it find its virtual environment, in a directory that is really there: a box may
    not have those that `..` and links lead through."""
    folder, name = os.path.split(python)
    return os.path.join(os.path.realpath(folder), name)


def _links(python: str, writable: Tuple[str, ...]) -> Iterator[str]:
    """The path, and each that it leads to."""
    for _ in range(LINKS_MAX):
        python = spelled(python)
        if any(is_in(python, tree) for tree in writable):
            return
        yield python
        try:
            python = os.path.join(os.path.dirname(python), os.readlink(python))
        except OSError:
            return


def _has_library(tree: str) -> bool:
    for name in ("lib", "lib64"):
        try:
            found = os.listdir(os.path.join(tree, name))
        except OSError:
            continue
        if any(n.startswith("python3") and os.path.isfile(os.path.join(tree, name, n, "os.py")) for n in found):
            return True
    return False


def _homes(tree: str) -> List[str]:
    """Of a virtual environment: where the interpreter is that it was made of."""
    try:
        with open(os.path.join(tree, VENV), encoding="utf-8", errors="replace") as stream:
            lines = stream.read(VENV_MAX).splitlines()
    except OSError:
        return []
    pairs = [line.partition("=") for line in lines]
    return [value.strip() for name, _, value in pairs if name.strip() == "home" and value.strip()]


def _prefixes() -> List[str]:
    given = (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix)
    return [os.path.realpath(prefix) for prefix in given]


def _tree(folder: str) -> List[str]:
    """The installation or virtual environment that a directory of programs belongs to, if to one."""
    above = os.path.dirname(folder)
    return [above] if os.path.isfile(os.path.join(above, VENV)) or _has_library(above) else []


def trees_of(python: str, writable: Tuple[str, ...] = ()) -> List[str]:
    """Of an interpreter, by its path. Nothing that lies in `writable` is asked."""
    if not os.path.dirname(python):
        return []  # a box looks it up
    found = _prefixes() if sys.executable and spelled(python) == spelled(sys.executable) else []
    for place in _links(python, writable):
        trees = _tree(os.path.dirname(place))
        found += trees or [place]
        for home in (home for tree in trees for home in _homes(tree)):
            found += _tree(os.path.realpath(home))
    return [tree for tree in dict.fromkeys(found) if not is_top(tree)]


def _in_folder(folder: str, writable: Tuple[str, ...]) -> List[str]:
    """Of the interpreters in a directory; of pyenv, whose programs choose one, all that it has."""
    above = os.path.dirname(folder)
    if os.path.basename(folder) == "shims" and os.path.isdir(os.path.join(above, "versions")):
        return [] if is_top(above) else [above]
    pythons = (os.path.join(folder, name) for name in ("python3", "python"))
    first = next((python for python in pythons if os.access(python, os.X_OK)), None)
    return trees_of(first, writable) if first and _tree(folder) else []


def trees_on(path: str, writable: Iterable[str] = ()) -> List[str]:
    """Of the interpreters in the directories of a PATH, for boxes that may write to some directories. There
    they could say themselves what is to be shown, so that only the interpreter that runs here is one."""
    trees = (*writable, *written())
    found: List[str] = []
    for entry in path.split(os.pathsep):
        folder = os.path.realpath(entry) if os.path.isabs(entry) else ""
        if not folder or any(is_in(folder, tree) for tree in SYSTEM):
            continue
        if any(is_in(folder, tree) for tree in trees):
            found += _prefixes() if is_in(folder, os.path.realpath(sys.prefix)) else []
        else:
            found += _in_folder(folder, trees)
    return [tree for tree in dict.fromkeys(found) if not is_top(tree)]
