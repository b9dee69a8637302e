# SPDX-License-Identifier: MIT
"""Paths in the arguments of a call: which arguments are paths, and whether they stay inside of some
directories. It looks before the tool does, and no more: OSSandbox is the one that holds."""

from __future__ import annotations

import os
import pathlib
from typing import Any, FrozenSet, Iterable, Iterator, Mapping, Optional, Tuple, Union

from .._inputs import is_in

NAMES = frozenset(
    "path file filename filepath directory dir folder src source dst destination target".split()
)
# After _ - or . in a name: output_file, log-dir.
SUFFIXES = frozenset(
    "path paths file files filename filenames directory directories dir dirs folder folders source "
    "destination target targets".split()
)
DEPTH_MAX = 16
PATH_MAX = 4096

PathLike = Union[str, "os.PathLike[str]"]


def resolve_roots(roots: Iterable[PathLike]) -> Tuple[pathlib.Path, ...]:
    if isinstance(roots, (str, os.PathLike)):
        roots = [roots]
    return tuple(pathlib.Path(root).expanduser().resolve() for root in roots)


def _is_named_path(name: str) -> bool:
    word = name.lower()
    for mark in "-.":
        word = word.replace(mark, "_")
    return word in NAMES or word.rpartition("_")[2] in SUFFIXES


def _texts(value: Any, depth: int = 0) -> Iterator[Tuple[Optional[str], str]]:
    """Every text in a value, with the name that it has in a dict within it."""
    if isinstance(value, (str, os.PathLike)):
        yield None, os.fsdecode(value)
    elif isinstance(value, bytes):
        yield None, os.fsdecode(value)
    elif depth < DEPTH_MAX and isinstance(value, Mapping):
        for name, item in value.items():
            for inner, text in _texts(item, depth + 1):
                yield inner or str(name), text
    elif depth < DEPTH_MAX and isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from _texts(item, depth + 1)


def _too_deep(value: Any, depth: int = 0) -> bool:
    if not isinstance(value, (Mapping, list, tuple, set, frozenset)):
        return False
    if depth >= DEPTH_MAX:
        return True
    items = value.values() if isinstance(value, Mapping) else value
    return any(_too_deep(item, depth + 1) for item in items)


def spelled_roots(roots: Iterable[PathLike]) -> Tuple[pathlib.Path, ...]:
    """As they are named, and what that leads to."""
    if isinstance(roots, (str, os.PathLike)):
        roots = [roots]
    given = list(roots)
    named = [pathlib.Path(os.path.abspath(os.path.expanduser(os.fspath(root)))) for root in given]
    return (*resolve_roots(given), *named)


def _by_text(base: str, text: str) -> str:
    """Without a look at the host, whose files are none of a tool's business."""
    if text == "~" or text.startswith("~/"):
        text = os.path.expanduser("~") + text[1:]
    elif text.startswith("~"):
        return ""  # which users there are is none either
    return os.path.normpath(os.path.join(base, text))


def _names(path_args: Iterable[str]) -> FrozenSet[str]:
    return frozenset([path_args] if isinstance(path_args, str) else path_args)


class PathCheck:
    """`path_args`: exactly these are paths, and none is guessed. `resolved`: links are followed, for a tool that will follow them on the host. For one in a box they
    are not: which are there is nothing that a refusal may tell."""

    def __init__(
        self,
        roots: Tuple[pathlib.Path, ...],
        path_args: Optional[Iterable[str]],
        auto_detect: bool,
        base: Optional[PathLike] = None,
        resolved: bool = True,
    ) -> None:
        self.resolved = resolved
        self.roots = roots
        self.path_args: Optional[FrozenSet[str]] = None if path_args is None else _names(path_args)
        self.auto_detect = auto_detect
        self.base = base

    def _is_inside(self, text: str) -> bool:
        base = os.fspath(self.base or os.getcwd())
        if "\0" in text:
            return False
        if not self.resolved or len(text) > PATH_MAX:
            # The kernel takes no path that is so long, and to look it up would take long.
            path = _by_text(base, text)
        else:
            try:
                path = str((pathlib.Path(base) / pathlib.Path(text).expanduser()).resolve())
            except (OSError, RuntimeError, ValueError):  # a loop, no such user, a NUL
                return False
        return any(is_in(path, str(root)) for root in self.roots)

    def _is_path(self, name: str, text: str) -> bool:
        if self.path_args is not None:
            return name in self.path_args
        return self.auto_detect and (_is_named_path(name) or "/" in text or "\\" in text)

    def _is_looked_at(self, name: str) -> bool:
        return self.auto_detect if self.path_args is None else name in self.path_args

    def refuse(self, args: Mapping[str, Any]) -> Optional[str]:
        """Why the call is refused; None: it is not."""
        for name, value in args.items():
            if self._is_looked_at(name) and _too_deep(value):
                return f"argument {name!r} is nested too deep to be checked"
            for inner, text in _texts(value):
                wanted = self._is_path(name, text) or (inner and self._is_path(inner, text))
                if wanted and not self._is_inside(text):
                    return f"argument {name!r} resolves outside the allowed roots ({text!r})"
        return None
