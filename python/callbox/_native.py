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

__all__ = ["Warden", "default_warden", "native"]


def warden_program() -> Optional[str]:
    """CALLBOX_WARDEN, else the one that was built with this package, else the installed one. None:
    the library looks for it, which knows the first and the last."""
    if os.environ.get("CALLBOX_WARDEN"):
        return None
    built = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "callbox")
    built = os.path.normpath(built)
    return built if os.path.isfile(built) and os.access(built, os.X_OK) else None


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
