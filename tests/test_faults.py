#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What goes wrong around a call: kill -9 of every process that has to do with it, every system call
on the way to its program made to fail, and a warden that gets no memory, descriptors or processes.

A short version by default; `--full` is the long one of `make soak`: 1 000 deaths, and every system
call with every error.
"""

import concurrent.futures
import errno
import json
import os
import random
import re
import subprocess
import sys
import tempfile

import harness
from harness import check, equal

FULL = "--full" in sys.argv
SMOKE = bool(os.environ.get("CALLBOX_SMOKE"))
ROUNDS = 1000 if FULL else 14 if SMOKE else 63
BUILD = os.environ.get("CALLBOX_BUILD") or str(harness.REPO / "build")

SCRATCH = harness.Scratch()
CALLBOX = SCRATCH.install(harness.callbox_path(), "callbox")
WORKER = SCRATCH.install(os.path.join(BUILD, "tests", "worker"))
SECRET = SCRATCH.path / "secret"
SECRET.write_text("not for a box\n")

# The programs find the library beside the build's own; the copies are told where it is.
SCRATCH.install(os.path.join(BUILD, "libcallbox.so.0"), "libcallbox.so.0")
KILL = SCRATCH.install(os.path.join(BUILD, "tests", "kill"))
STARVE = SCRATCH.install(os.path.join(BUILD, "tests", "starve"))
INJECT = SCRATCH.install(os.path.join(BUILD, "tests", "inject"))
ENVIRONMENT = {**os.environ, "CALLBOX_WARDEN": CALLBOX, "LD_LIBRARY_PATH": str(SCRATCH.bin)}


def run(command, user, timeout, **more):
    whole = harness.as_user(command) if user else command
    return harness.execute(whole, timeout=timeout, env=ENVIRONMENT, cwd="/", **more)


def good(command, user, timeout):
    result = run(command, user, timeout)
    said = result.out.decode("utf-8", "replace") + result.err.decode("utf-8", "replace")
    if FULL:
        print(said, end="", flush=True)
    equal(result.code, 0, f"exit code ({said.strip()[-1500:]})")


# ---- Deaths ------------------------------------------------------------------------------------


@harness.for_people("every process that has to do with a call is killed", alone=True)
def deaths(user):
    """No box survives, each call is reported once, and the next one works."""
    rounds = ROUNDS // len(harness.PEOPLE)
    good([KILL, WORKER, str(rounds), "1" if user else "2"], user, 120 + 10 * rounds)


# ---- System calls on the way to the program ------------------------------------------------------

ERRORS = [errno.EPERM, errno.ENOMEM, errno.EINVAL, errno.EINTR, errno.ENOSYS, errno.EMFILE]
FAILED = re.compile(r"^failed (\d+) (\d+) (\S+)$", re.M)
# Before main the C library cannot go on without these, and ends the command in its own words.
BY_LIBC = {"brk", "arch_prctl", "mprotect", "set_tid_address", "prlimit64", "mmap"}


# The same program in a box: of `callbox run` itself, and of a warden, by way of nursery and maker.
TOOLS = SCRATCH.path / "tools"
TOOLS.mkdir()
(TOOLS / "worker.json").write_text(json.dumps({
    "name": "worker", "inputSchema": {"type": "object"}, "run": {"command": [WORKER, "fences", str(SECRET)]},
    "policy": {"box": "namespaces", "files": {"read": [WORKER]}, "limits": {"wall": 10}}}))
WAYS = {
    "callbox run": [CALLBOX, "run", "--box", "namespaces", "--timeout", "10", "--read", WORKER, "--", WORKER, "fences", str(SECRET)],
    "a warden": [CALLBOX, "tool", "call", "--tools", str(TOOLS), "worker"],
}


def traced(way, user, fault=()):
    """A call in which one system call is made to fail; the result, and the injector's log."""
    with tempfile.TemporaryDirectory(prefix="callbox-test-", dir="/tmp") as place:
        harness.Scratch.own(place, user)
        log = os.path.join(place, "log")
        result = run([INJECT, "--log", log, "--again", "yes", *fault, *WAYS[way]], user, 60)
        with open(log, encoding="utf-8") as stream:
            return result, stream.read()


def verdict(result, log):
    """What is wrong about a call of which something failed; None where nothing is."""
    what = FAILED.search(log)
    name = what.group(3) if what else "nothing"
    said = result.err.decode("utf-8", "replace").strip()
    ran = b"the program ran" in result.out
    if b"missing: " in result.out:
        return f"{name}: the program ran unfenced: {harness.one_line(result.out)}"
    if "left " in log:
        return f"{name}: {harness.one_line(log[log.index('left '):])}"
    if ran or (what and what.group(1) == "0" and int(what.group(2)) < 20 and name in BY_LIBC):
        return None
    if name == "brk":  # the kernel never answers it with an error: libc takes one for an address
        return None
    if result.code not in (1, 2, 125, 126):
        return f"{name}: exit code {result.code} without the program: {said!r}"
    if not re.search(r"callbox: \S+ .*\S+", said):
        return f"{name}: no step named: {said!r}"
    return None


def failing_calls(way, share, user):
    """The program runs with every fence, or not at all; then the message names a step."""
    result, log = traced(way, user)
    equal((result.code, b"missing" in result.out), (0, False), f"clean run ({result.brief()})")
    counts = {int(k): int(n) for k, n in re.findall(r"^calls (\d+) (\d+)$", log, re.M)}
    check(len(counts) >= 3, f"processes seen: {counts}")
    places = [(k, n) for k, calls in sorted(counts.items()) for n in range(1, calls + 3)]
    rng = random.Random(3)
    todo = [(place, e) for place in places for e in (ERRORS if FULL else [rng.choice(ERRORS[:4])])]
    if not FULL:
        todo = rng.sample(todo, len(todo) // (20 if SMOKE else share))
    wrong, hit = [], set()

    def one(item):
        (process, call), error = item
        fault = ["--process", str(process), "--call", str(call), "--error", str(error)]
        result, log = traced(way, user, fault)
        hit.update(name for _, _, name in FAILED.findall(log))
        why = verdict(result, log)
        if why:
            wrong.append(f"process {process}, call {call}, {errno.errorcode[error]}: {why}")

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(one, item) for item in todo]:
            future.result()
    check(SMOKE or len(hit) > 40, f"only these calls failed: {sorted(hit)}")
    if FULL:
        print(f"{len(todo)} faults in {len(hit)} system calls", flush=True)
    check(not wrong, lambda: f"{len(wrong)} of {len(todo)}: " + " | ".join(wrong[:12]))


# Of the longer way every fourth, chosen at random; `make soak` has them all.
for _way, _share in (("callbox run", 1), ("a warden", 4)):
    for _who, _user in harness.PEOPLE:
        harness.add(f"every system call on the way to the program fails in turn, by {_way}, as {_who}",
                    lambda w=_way, s=_share, u=_user: failing_calls(w, s, u), alone=True)


# ---- A warden in need -----------------------------------------------------------------------------

# Which processes of a warden are held short of what (tests/faults/starve.c).
LIMITS = [
    "descriptors of the warden",
    "no descriptor for the warden",
    "descriptors of the makers",
    "memory of the warden",
    "memory of the makers",
    "room in files",
]
# Each fails whenever it is made, or every so many times, in all processes of a warden.
CALLS = [
    ("clone3", errno.EAGAIN, 1),
    ("clone", errno.EAGAIN, 1),
    ("clone", errno.EAGAIN, 3),
    ("socketpair", errno.EMFILE, 1),
    ("socketpair", errno.EMFILE, 3),
    ("pipe2", errno.EMFILE, 1),
    ("pipe2", errno.EMFILE, 4),
    ("memfd_create", errno.EMFILE, 1),
    ("memfd_create", errno.ENOMEM, 3),
    ("ftruncate", errno.ENOSPC, 1),
    ("mmap", errno.ENOMEM, 1),
    ("mmap", errno.ENOMEM, 2),
    ("epoll_ctl", errno.ENOMEM, 1),
    ("epoll_ctl", errno.ENOSPC, 3),
    ("epoll_ctl", errno.ENOSPC, 7),
    ("openat", errno.EMFILE, 1),
    ("openat", errno.ENFILE, 5),
    ("sendmsg", errno.ENOBUFS, 2),
    ("fcntl", errno.EMFILE, 1),
    ("seccomp", errno.ENOMEM, 1),
    ("open_tree", errno.ENOMEM, 1),
]


def starving(name, arguments, user, log=None):
    result = run([STARVE, WORKER, *arguments], user, 240)
    said = result.out.decode("utf-8", "replace").strip()
    equal(result.code, 0, f"{name}: exit code ({said[-1500:]})")
    check(log or not said.startswith("0 of"), f"{name}: no call was refused: nothing was tested")
    if FULL:
        print(f"{name}: {said[:200]}", flush=True)


def starve_by_limit(name, user):
    starving(name, [name], user)


def starve_by_call(name, error, every, user):
    with tempfile.TemporaryDirectory(prefix="callbox-test-", dir="/tmp") as place:
        harness.Scratch.own(place, user)
        log = os.path.join(place, "log")
        starving(name, [name, str(error), str(every), INJECT, log], user, log)
        with open(log, encoding="utf-8") as stream:
            check(name in stream.read(), f"{name} was never made: nothing was tested")


def add_needs():
    people = harness.PEOPLE if FULL or not harness.ROOT else harness.PEOPLE[:1]
    for name in LIMITS:
        for who, user in people:
            harness.add(f"a warden in need: {name}, as {who}", lambda n=name, u=user: starve_by_limit(n, u))
    # The kernel does not count root's processes.
    harness.add("a warden in need: processes, as user", lambda: starve_by_limit("processes", True))
    for name, error, every in CALLS if not SMOKE else CALLS[::4]:
        for who, user in people:
            label = f"a warden in need: {name} says {errno.errorcode[error]}" + (f" every {every} times" if every > 1 else "")
            harness.add(f"{label}, as {who}", lambda n=name, e=error, v=every, u=user: starve_by_call(n, e, v, u))


add_needs()


if __name__ == "__main__":
    try:
        sys.exit(harness.main(workers=2))
    finally:
        SCRATCH.remove()
