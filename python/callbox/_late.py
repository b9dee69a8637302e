# SPDX-License-Identifier: MIT
"""Modules that are loaded when they are first needed, from where they were before there was a box.

An import looks for a module along sys.path, where a box may have left one of that name by then. What this
package needs later is therefore looked for in the standard library alone, and in what was installed when
the package was loaded; so is what that imports in turn. No box can write there (_inputs.py)."""

from __future__ import annotations

import _thread
import importlib.machinery
import os
import sys
from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio as asyncio
    import concurrent.futures.thread as _threads
    import datetime as datetime
    import decimal as decimal
    import difflib as difflib
    import pathlib as pathlib
    import uuid as uuid
    from typing import Any, Dict, List, Optional, Tuple

# This interpreter was started in a box: see _start.py.
boxed = hasattr(sys.modules.get("__main__"), "CALLBOX_BOX")

FINDERS: Tuple[Any, ...] = (importlib.machinery.BuiltinImporter, importlib.machinery.FrozenImporter)
PathFinder = importlib.machinery.PathFinder

INSTALLED = ("site-packages", "dist-packages")
OTHERS = ("typing_extensions", "tzdata")  # that are not of the standard library


def _library() -> List[str]:
    """Where the standard library is: its modules, and what is compiled."""
    places = [os.path.dirname(os.__file__)]
    own = tuple(os.path.join(prefix, "") for prefix in (sys.base_exec_prefix, sys.exec_prefix) if prefix)
    return places + [path for path in sys.path if os.path.basename(path) == "lib-dynload" and path.startswith(own)]


LIBRARY = _library()
_known: Dict[str, Any] = {}  # of OTHERS


def places() -> List[str]:
    """From which something may be loaded that is not yet."""
    others = [os.path.dirname(spec.origin) for spec in _known.values()]
    return [*LIBRARY, *others, os.path.dirname(os.path.abspath(__file__))]


def _look_for_others() -> None:
    """Where they are now. What is not where one installs it may be within a box's reach, and is loaded."""
    for name in OTHERS:
        spec = PathFinder.find_spec(name)
        if spec is None or spec.loader is None or not spec.origin or sys.modules.get(name, spec) is None:
            continue
        if any(f"/{folder}/" in spec.origin for folder in INSTALLED):
            _known[name] = spec
        elif name not in sys.modules:
            try:
                import_module(name)
            except Exception:  # of no use
                pass


def _find(name: str) -> Any:
    for finder in FINDERS:
        spec = finder.find_spec(name)
        if spec is not None:
            return spec
    spec = PathFinder.find_spec(name, LIBRARY)
    if spec is not None and spec.loader is not None:
        return spec
    return _known.get(name)


_loading: Dict[int, int] = {}  # threads that load something, and how deep within each other


class _Finder:
    """For imports of threads that load something from here; for all others it is not there."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        if path is not None or _thread.get_ident() not in _loading:
            return None  # what is in a package is looked for there
        spec = _find(name)
        if spec is not None:
            return spec
        finders: List[Any] = list(sys.meta_path)
        for finder in finders:  # a program in one file has its own
            if finder is not PathFinder and finder is not _Finder and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, None)
                if spec is not None:
                    return spec
        if boxed:  # where nothing is to be lost, and others are not known
            return None
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def load(name: str) -> Any:
    """A module, by its whole name."""
    me = _thread.get_ident()
    finders: List[Any] = sys.meta_path
    if finders[:1] != [_Finder]:
        finders.insert(0, _Finder)
    _loading[me] = _loading.get(me, 0) + 1
    try:
        return import_module(name)
    finally:
        _loading[me] -= 1
        if _loading[me] == 0:
            del _loading[me]


class Late:
    """A module that is loaded when something of it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: Optional[Any] = None

    def __getattr__(self, name: str) -> Any:
        if self._module is None:
            self._module = load(self._name)
        return getattr(self._module, name)


if TYPE_CHECKING:
    threads = _threads
else:
    asyncio = Late("asyncio")
    datetime = Late("datetime")
    decimal = Late("decimal")
    difflib = Late("difflib")
    pathlib = Late("pathlib")
    threads = Late("concurrent.futures.thread")
    uuid = Late("uuid")

if not boxed:
    _look_for_others()
