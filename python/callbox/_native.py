# SPDX-License-Identifier: MIT
"""The extension, and the warden that a program has unless it opens one of its own."""

from __future__ import annotations

import importlib
import os
import threading
from typing import Any, Optional

from . import _channel
from ._error import CallboxError

# In a box, where the module of a tool is loaded again, there is nothing to be started with it.
native: Any = None
if not _channel.boxed:
    native = importlib.import_module("._callbox", __package__)

__all__ = ["Warden", "default_warden", "functions_program", "native"]


HERE = os.path.dirname(os.path.abspath(__file__))


def own_program(name: str, variable: str) -> Optional[str]:
    """One that came with this package: in a wheel, or from the same build. None where the environment
    names another, or there is none: the library looks for it, which knows the installed ones."""
    if os.environ.get(variable):
        return None
    for folder in (os.path.join(HERE, "bin"), os.path.normpath(os.path.join(HERE, "..", ".."))):
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def warden_program() -> Optional[str]:
    return own_program("callbox", "CALLBOX_WARDEN")


def functions_program() -> Optional[str]:
    """What serves functions of shared objects, which manifests name."""
    return own_program("callbox-functions", "CALLBOX_FUNCTIONS")


class Warden:
    """A connection to a warden, which makes, keeps ready and ends boxes. `socket` attaches to a
    shared one. Usable from many threads; a forked child opens its own."""

    def __init__(
        self,
        *,
        program: Optional[str] = None,
        socket: Optional[str] = None,
        calls: int = 0,
        queue: int = 0,
        prepared: int = 0,
    ) -> None:
        if _channel.boxed:
            raise CallboxError("there are no boxes in a box", "warden")
        self._native = native.Warden(
            program=program or warden_program(),
            socket=socket,
            calls=calls,
            queue=queue,
            prepared=prepared,
        )

    @property
    def pid(self) -> int:
        return int(self._native.pid())

    def close(self) -> None:
        """End every call that still runs, and the connection."""
        self._native.close()

    def __enter__(self) -> Warden:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


_default: Optional[Warden] = None
_lock = threading.Lock()


def _forget() -> None:
    """In a child: what the parent opened is not ours, and its lock may have been held."""
    global _default, _lock
    _default = None
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_forget)


def default_warden() -> Warden:
    """The one of this process, started when it is first asked for."""
    global _default
    with _lock:
        if _default is None:
            _default = Warden()
        return _default
