#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the kernel keeps for a user as a whole: the worst boxes leave him enough of it (S11)."""

import json
import subprocess
import sys

import harness
from harness import check, equal

SCRATCH = harness.Scratch()
CALLBOX = SCRATCH.install(harness.callbox_path(), "callbox")
PYTHON = "/usr/bin/python3"
SLACK = 10.0 * harness.SLOW

# In a box: take all there is of one kind, say how much, and keep it until stdin ends.
HOARD = """
import array, ctypes, os, signal, socket, sys
libc, keep, n = ctypes.CDLL(None, use_errno=True), [], 0
kind = sys.argv[1]
try:
    while True:
        if kind == "notices":
            if libc.inotify_init() < 0: break
        elif kind == "flight":
            keep.append(socket.socketpair())
            keep[-1][0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 253))])
            n += 252
        elif kind == "terminals":
            keep.append(os.posix_openpt(os.O_RDWR) if hasattr(os, "posix_openpt") else os.open("/dev/ptmx", os.O_RDWR))
        elif kind == "signals":
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN})
            if libc.sigqueue(os.getpid(), signal.SIGRTMIN, None) < 0: break
        n += 1
except OSError:
    pass
print(n, flush=True)
sys.stdin.read()
"""

# On the host, as the same user, with the limit that most programs have.
LOOK = """
import array, ctypes, fcntl, json, os, pty, resource, signal, socket
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, hard), min(1024, hard)))
libc, found = ctypes.CDLL(None, use_errno=True), {}
found["notices"] = libc.inotify_init() >= 0
a, b = socket.socketpair()
try:
    a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])
    found["flight"] = True
except OSError:
    found["flight"] = False
try:
    pty.openpty()
    found["terminals"] = True
except OSError:
    found["terminals"] = False
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN})
found["signals"] = all(libc.sigqueue(os.getpid(), signal.SIGRTMIN, None) == 0 for i in range(64))
print(json.dumps(found))
"""


def look(user):
    command = [PYTHON, "-c", LOOK]
    done = subprocess.run(harness.as_user(command) if user else command, capture_output=True, text=True, timeout=SLACK, cwd="/")
    return json.loads(done.stdout)


class Hoarders:
    """Boxes that have all they can get of one kind."""

    def __init__(self, n, kind, user, *options):
        command = [CALLBOX, "run", "--timeout", "60", *options, "--", PYTHON, "-c", HOARD, kind]
        command = harness.as_user(command) if user else command
        self.boxes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/") for _ in range(n)]

    def __enter__(self):
        self.taken = [int(box.stdout.readline() or -1) for box in self.boxes]
        return self

    def __exit__(self, *error):
        for box in self.boxes:
            box.stdin.close()
            box.wait(SLACK)
            box.stdout.close()


def starts(user):
    """A further box, by a caller with the usual limit."""
    command = ["sh", "-c", 'ulimit -Sn 1024; exec "$0" run -- echo ok', CALLBOX]
    return subprocess.run(harness.as_user(command) if user else command, capture_output=True, text=True, timeout=SLACK, cwd="/").stdout


@harness.for_people("one box, two and eight leave the user what he needs")
def leave_enough(user):
    for kind in ("notices", "flight", "terminals", "signals"):
        for n in (1, 2, 8):
            with Hoarders(n, kind, user) as boxes:
                check(min(boxes.taken) >= 0 and max(boxes.taken) > 0, f"{kind}: taken {boxes.taken}")
                equal([name for name, fine in look(user).items() if not fine], [], f"{n} boxes with {kind}: the user lacks")
                equal(starts(user), "ok\n", f"{n} boxes with {kind}: another one")


@harness.for_people("control: with a higher limit a box takes all descriptors in flight")
def control(user):
    if not user:  # root's boxes have other ids than root, and root no such limit
        with Hoarders(1, "flight", user, "--open-files", "1200"):
            return equal(look(user)["flight"], True, "passing a descriptor")
    with Hoarders(1, "flight", user, "--open-files", "1200"):
        equal(look(user)["flight"], False, "passing a descriptor")
        equal(starts(user), "ok\n", "another box, by a caller who raises his limit")


@harness.case("boxes of root's do not share a host id")
def ids_differ():
    if not harness.ROOT:
        return
    with Hoarders(4, "flight", False) as boxes:
        check(min(boxes.taken) > 700, f"one keeps another from passing any: {boxes.taken}")


if __name__ == "__main__":
    try:
        sys.exit(harness.main(workers=1))
    finally:
        SCRATCH.remove()
