# SPDX-License-Identifier: MIT
"""Time zones that a result may name. Nothing is looked for because a box named it: a zone is one of those
that were loaded before, when a function said in its hints that it returns times, or it stays a name."""

from __future__ import annotations

import datetime
import os
import threading
import zoneinfo
from typing import Any, Dict, List, Tuple

NAME_MAX = 255  # characters
TIMES = (datetime.datetime, datetime.time)

known: Dict[str, datetime.tzinfo] = {}
_lock = threading.Lock()
_loaded = False


def _roots() -> List[str]:
    """Where the rules of zones are, as it is when this module is loaded; those of the package tzdata where
    the system has none."""
    found = [path for path in zoneinfo.TZPATH if os.path.isdir(path)]
    if found:
        return found
    try:
        import tzdata  # type: ignore[import]
    except ImportError:
        return []
    return [os.path.join(os.path.dirname(tzdata.__file__ or ""), "zoneinfo")]


_ROOTS = _roots()
_SYSTEM = any(path in zoneinfo.TZPATH for path in _ROOTS)


def _names(root: str) -> List[Tuple[str, str]]:
    """Each zone, with its file."""
    found = []
    for folder, folders, files in os.walk(root):
        if folder == root:
            folders[:] = [name for name in folders if name not in ("posix", "right")]
        paths = [os.path.join(folder, name) for name in files]
        found += [(os.path.relpath(path, root), path) for path in paths]
    return found


def _read(name: str, path: str) -> None:
    if name not in known:
        try:
            with open(path, "rb") as stream:
                made = zoneinfo.ZoneInfo.from_file(stream, key=name)
            # It is there, so that nothing else is asked for it; and it is that which others have.
            known[name] = zoneinfo.ZoneInfo(name) if _SYSTEM else made
        except (OSError, ValueError):
            pass  # there are other files beside


def load() -> None:
    """Of all zones that this host knows."""
    global _loaded
    with _lock:
        if not _loaded:
            for root in _ROOTS:
                for name, path in _names(root):
                    _read(name, path)
            _loaded = True


def put(value: Any, name: Any) -> Any:
    """A time, in its zone. One that is not known has the offset which is right for this moment, and its
    name; a time of day without a date has no such offset, and stays without a zone."""
    if not isinstance(name, str) or len(name) > NAME_MAX:
        raise ValueError("the name of a time zone is none")
    zone = known.get(name)
    if isinstance(value, datetime.datetime):
        offset = value.utcoffset()
        if offset is None:
            raise ValueError("a time in a zone has no offset")
        zone = zone or datetime.timezone(offset, name)
    return value if zone is None else value.replace(tzinfo=zone)


for _root in _ROOTS:
    _read("UTC", os.path.join(_root, "UTC"))
