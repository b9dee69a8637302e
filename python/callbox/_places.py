# SPDX-License-Identifier: MIT
"""Directories that are too much to be shown to a tool because something of the program lies there."""

from __future__ import annotations

import functools
import os
from typing import FrozenSet, List

from ._inputs import is_in

NEVER = ("/proc", "/dev", "/sys")
TOPS = ("/", "/home", "/root", "/etc", "/var", "/srv", "/opt", "/mnt", "/media", "/run", "/tmp", "/boot")
HOMES = "/home"
PEOPLE = 1000  # the first user id of somebody who is no service

# Keys, tokens and passwords, wherever they are; and in a home what holds those of many programs.
KEYS = frozenset((".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".pki"))
KEYS_OF_HOME = (".config", ".mozilla", ".thunderbird", ".local/share/keyrings", ".local/share/kwalletd")


@functools.lru_cache(maxsize=None)
def _homes_of_others() -> FrozenSet[str]:
    """By /etc/passwd: of root and of people. A service may have its program where its home is."""
    found = set()
    try:
        with open("/etc/passwd", "rb") as stream:
            lines = stream.read().split(b"\n")
    except OSError:
        return frozenset()
    for line in lines:
        fields = line.split(b":")
        if len(fields) > 5 and fields[2].isdigit() and (int(fields[2]) == 0 or int(fields[2]) >= PEOPLE):
            found.add(os.fsdecode(fields[5]))
    return frozenset(home.rstrip("/") for home in found if home.startswith("/") and home.count("/") > 0)


def _homes() -> List[str]:
    own = os.path.expanduser("~")
    homes = {own, os.path.realpath(own), *_homes_of_others()}
    return [home for home in homes if home not in ("", "/", "/nonexistent")]


def is_top(path: str) -> bool:
    """A home, what is above one, or another place that holds what belongs to many."""
    if path in TOPS or any(is_in(path, tree) for tree in NEVER):
        return True
    return os.path.dirname(path) == HOMES or any(is_in(home, path) for home in _homes())


def shows_too_much(path: str) -> bool:
    """The same, and places of keys. `path` has no links in it."""
    if is_top(path) or not KEYS.isdisjoint(path.split("/")):
        return True
    if os.path.isdir(os.path.join(path, ".ssh")):
        return True  # a home, whoever keeps the list of users
    return any(is_in(path, os.path.join(home, name)) for home in _homes() for name in KEYS_OF_HOME)
