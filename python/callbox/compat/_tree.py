# SPDX-License-Identifier: MIT
"""Processes of the host, with all that they have started."""

from __future__ import annotations

import logging
import os
import signal
import time
from typing import Dict, NamedTuple, Set

log = logging.getLogger("callbox.compat")

GRACE = 0.1  # seconds for those that were asked to end
ROUNDS_MAX = 50


class Process(NamedTuple):
    parent: int
    group: int
    session: int
    started: int


def _read(pid: int) -> Process:
    """Raises OSError or ValueError for one that is gone; a zombie is."""
    with open(f"/proc/{pid}/stat", "rb") as stream:
        # The name is in brackets, and may have brackets in it.
        words = stream.read().rpartition(b")")[2].split()
    if words[0] in (b"Z", b"X"):
        raise ValueError("it is dead")
    return Process(int(words[1]), int(words[2]), int(words[3]), int(words[19]))


def _table() -> Dict[int, Process]:
    found: Dict[int, Process] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                found[int(name)] = _read(int(name))
            except (OSError, ValueError, IndexError):
                pass
    return found


def _send(pid: int, started: int, number: int) -> None:
    """To this process, and to none that has got its number since."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if _read(pid).started == started:
            signal.pidfd_send_signal(fd, number)
    except (OSError, ValueError, IndexError) as error:
        log.debug("signal %d to process %d: %s", number, pid, error)
    finally:
        os.close(fd)


class _Family:
    """A process, its descendants, and members of its group and session. This process is never one of
    them, nor are those of its own group that are no descendants."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.known: Dict[int, int] = {}  # when each was started
        self.groups: Set[int] = set()
        self.sessions: Set[int] = set()
        table = _table()
        head = table.get(pid)
        if head is None:
            return
        self.group = head.group
        if head.group != os.getpgrp() and head.group > 1:
            self.groups.add(head.group)
        if head.session == pid:
            self.sessions.add(pid)
        self.grow(table)

    def _belongs(self, pid: int, process: Process) -> bool:
        if pid in (os.getpid(), 1):
            return False
        return (
            pid == self.pid
            or process.parent in self.known
            or process.group in self.groups
            or process.session in self.sessions
        )

    def grow(self, table: Dict[int, Process]) -> None:
        """Take in those that have come; forget those that are gone."""
        self.known = {
            pid: started
            for pid, started in self.known.items()
            if pid in table and table[pid].started == started
        }
        while True:
            more = {
                pid: process.started
                for pid, process in table.items()
                if pid not in self.known and self._belongs(pid, process)
            }
            if not more:
                return
            self.known.update(more)


def kill_tree(pid: int) -> None:
    """SIGTERM to its group, SIGKILL to itself, and to the others when they are still there a moment
    later. Never raises for one that is gone."""
    if pid <= 1 or pid == os.getpid():
        log.debug("process %d is not one to be killed", pid)
        return
    family = _Family(pid)
    if not family.known:
        log.debug("there is no process %d", pid)
        return
    for member, started in family.known.items():
        if member != pid:
            _send(member, started, signal.SIGTERM)
    if pid in family.known:
        _send(pid, family.known[pid], signal.SIGTERM)
        _send(pid, family.known[pid], signal.SIGKILL)
    begin = time.monotonic()
    for _ in range(ROUNDS_MAX):
        family.grow(_table())
        if not family.known:
            return
        if time.monotonic() - begin < GRACE:
            time.sleep(GRACE / 10)
            continue
        # Stopped first, so that none starts another while the rest is being killed.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for member, started in family.known.items():
                _send(member, started, number)
