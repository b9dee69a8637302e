#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the kernel keeps for a user as a whole: the worst boxes leave him enough of it (S11)."""

import contextlib
import json
import os
import subprocess
import sys

import harness
import library
from harness import check, equal

SCRATCH = harness.Scratch()
CALLBOX = SCRATCH.install(harness.callbox_path(), "callbox")
UNFENCED = SCRATCH.install(os.environ["CALLBOX_UNFENCED"], "callbox-unfenced")
ZYGOTE = SCRATCH.install(os.path.join(os.path.dirname(os.environ["CALLBOX_UNFENCED"]), "zygote"), "zygote")
PYTHON = "/usr/bin/python3"
SLACK = 20.0 * harness.SLOW

# In a box: take all there is of one kind, say how much, and keep it until stdin ends.
HOARD = """
import array, ctypes, errno, fcntl, os, signal, socket, sys, tempfile
libc, keep, n = ctypes.CDLL(None, use_errno=True), [], 0
kind = sys.argv[1]
def send(fds):
    keep.append(socket.socketpair())
    keep[-1][0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
def take_pipes():
    # Where one process may have no more descriptors, another one goes on.
    n = 0
    try:
        while True:
            keep.append(os.pipe())
            n += 1
    except OSError as error:
        return n, error.errno == errno.EMFILE
try:
    while n < 8000:
        if kind == "notices":
            if libc.inotify_init() < 0: break
        elif kind == "flight":
            send([0] * 253)
            n += 252
        elif kind == "terminals":
            keep.append(os.posix_openpt(os.O_RDWR) if hasattr(os, "posix_openpt") else os.open("/dev/ptmx", os.O_RDWR))
        elif kind == "signals":
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN})
            if libc.sigqueue(os.getpid(), signal.SIGRTMIN, None) < 0: break
        elif kind == "timers":
            if libc.timer_create(1, None, ctypes.byref(ctypes.c_void_p())) < 0: break
        elif kind == "queues":
            queue = libc.mq_open(b"/q%d" % n, os.O_CREAT | os.O_RDWR, 0o600, None)
            if queue < 0: break
        elif kind == "pipes":
            down, up = os.pipe()
            for i in range(8):
                more = os.fork()
                if more == 0:
                    os.write(up, b"%d %d\\n" % take_pipes())
                    signal.pause()
                made, again = map(int, os.read(down, 64).split())
                n += made
                if not again: break
            break
        elif kind == "pipes in flight":
            pipes = [os.pipe() for i in range(253)]
            try: send([end for end, _ in pipes])
            except OSError: # some more, of which a box may have so many
                for pipe in pipes[80:]: [os.close(end) for end in pipe]
                break
            for pipe in pipes: [os.close(end) for end in pipe]
            n += 252
        elif kind == "named pipes":
            name = os.path.join(tempfile.gettempdir(), str(n))
            os.mkfifo(name)
            keep.append(os.open(name, os.O_RDWR | os.O_NONBLOCK))
        elif kind == "leases":
            keep.append(tempfile.TemporaryFile())
            fcntl.fcntl(keep[-1], fcntl.F_SETLEASE, fcntl.F_WRLCK)
        elif kind == "keys":
            if libc.syscall(248, b"user", b"callbox%d" % n, b"x", 1, -3) < 0: break
        elif kind == "namespaces":
            if libc.unshare(0x10000000) < 0: break
        n += 1
except OSError:
    pass
print(n, flush=True)
sys.stdin.read()
"""

# On the host, as the same user, with the limit that most programs have.
LOOK = """
import array, ctypes, fcntl, json, os, pty, resource, signal, socket, tempfile
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, hard), min(1024, hard)))
libc, found = ctypes.CDLL(None, use_errno=True), {}
def attempt(name, function):
    try: found[name] = bool(function())
    except OSError: found[name] = False
def flight():
    a, b = socket.socketpair()
    return a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])
def lease():
    with tempfile.TemporaryFile() as file: return fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK) == 0
def queue():
    name = b"/callbox-look-%d" % os.getpid()
    return libc.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, None) >= 0 and libc.mq_unlink(name) == 0
def namespace():
    child = os.fork()
    if child == 0: os._exit(libc.unshare(0x10000000) != 0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
attempt("notices", lambda: libc.inotify_init() >= 0)
attempt("flight", flight)
attempt("terminals", pty.openpty)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN})
attempt("signals", lambda: all(libc.sigqueue(os.getpid(), signal.SIGRTMIN, None) == 0 for i in range(64)))
attempt("timers", lambda: all(libc.timer_create(1, None, ctypes.byref(ctypes.c_void_p())) == 0 for i in range(64)))
attempt("pipes", lambda: all(fcntl.fcntl(os.pipe()[1], 1032) == 65536 for i in range(32)))
attempt("leases", lease)
attempt("queues", queue)
attempt("namespaces", namespace)
attempt("keys", lambda: libc.syscall(248, b"user", b"callbox-look", b"x", 1, -1) >= 0)
print(json.dumps(found))
"""

TAKEN = ("notices", "flight", "terminals", "signals", "timers", "queues")
PIPES = ("pipes", "pipes in flight", "named pipes")  # who leaves the user too few is ended
REFUSED = ("leases", "keys", "namespaces")
NOT_CAGED = ("notices", "terminals", "queues")  # a box without namespaces has none of them
PERHAPS = ("queues",)  # not where root runs it
ALWAYS = {"notices", "flight", "terminals", "signals", "timers", "pipes", "leases"}  # that every host has


def look(user):
    """What the user lacks."""
    command = [PYTHON, "-c", LOOK]
    done = subprocess.run(harness.as_user(command) if user else command, capture_output=True, text=True, timeout=SLACK, cwd="/")
    return {name for name, fine in json.loads(done.stdout).items() if not fine}


class Hoarders:
    """Boxes that have all they can get of one kind."""

    def __init__(self, n, kind, user, *options, binary=CALLBOX, zygote=()):
        command = [*binary] if isinstance(binary, list) else [binary]
        command += ["run", "--timeout", "60", *options, "--", *zygote, PYTHON, "-c", HOARD, kind]
        command = harness.as_user(command) if user else command
        self.boxes = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd="/") for _ in range(n)]

    def __enter__(self):
        if self.boxes[0].args[-5] == ZYGOTE:  # it waits for its input
            for box in self.boxes:
                box.stdin.write("\n")
                box.stdin.flush()
        self.taken = [int(box.stdout.readline() or -1) for box in self.boxes]
        return self

    def __exit__(self, *error):
        for box in self.boxes:
            with contextlib.suppress(BrokenPipeError):
                box.stdin.close()
            box.wait(SLACK)
            box.stdout.close()


def starts(user):
    """A further box, by a caller with the usual limit."""
    command = ["sh", "-c", 'ulimit -Sn 1024; exec "$0" run -- echo ok', CALLBOX]
    return subprocess.run(harness.as_user(command) if user else command, capture_output=True, text=True, timeout=SLACK, cwd="/").stdout


def leave_enough(user, numbers, *options, caged=False, **more):
    lacks = look(user)
    check(not lacks & ALWAYS, f"without any box the user lacks {sorted(lacks)}")
    for kind in TAKEN + PIPES + REFUSED:
        for n in numbers:
            with Hoarders(n, kind, user, *options, **more) as boxes:
                if kind in PIPES:
                    check(harness.wait_until(lambda: not look(user) - lacks, SLACK), f"{n} boxes with {kind}: the user stays without")
                elif kind in REFUSED or (caged and kind in NOT_CAGED):
                    equal(boxes.taken, [0] * n, f"{kind}: taken")
                else:
                    check(min(boxes.taken) >= 0 and (max(boxes.taken) > 0 or kind in PERHAPS), f"{kind}: taken {boxes.taken}")
                equal(look(user) - lacks, set(), f"{n} boxes with {kind}: the user lacks")
                equal(starts(user), "ok\n", f"{n} boxes with {kind}: another one")


@harness.for_people("one box and eight leave the user what he needs")
def single(user):
    leave_enough(user, (1, 8))


@harness.for_people("... and so do boxes without namespaces")
def caged(user):
    leave_enough(user, (4,), "--box", "landlock", caged=True)


@harness.for_people("... and boxes of a warden, of both kinds")
def prepared(user):
    with library.SharedWarden(SCRATCH, CALLBOX, user=user) as warden:
        leave_enough(user, (4,), "--warden", warden.path)
        leave_enough(user, (4,), "--warden", warden.path, "--box", "landlock", caged=True)


@harness.for_people("... and boxes that are forked from a zygote")
def forked(user):
    with library.SharedWarden(SCRATCH, CALLBOX, user=user) as warden:
        leave_enough(user, (4,), "--warden", warden.path, "--read", os.path.dirname(ZYGOTE),
                     binary=["env", "CALLBOX_FORKED=1", UNFENCED], zygote=[ZYGOTE])  # fmt: skip


@harness.for_people("control: with a higher limit a box takes all descriptors in flight")
def control_flight(user):
    with Hoarders(1, "flight", user, "--open-files", "1200"):
        # Root's boxes have other ids than root, and root no such limit.
        equal(look(user) & {"flight"}, {"flight"} if user else set(), "passing a descriptor")
        equal(starts(user), "ok\n", "another box, by a caller who raises his limit")


@harness.for_people("control: a box whose pipes nobody counts takes all pages for pipes")
def control_pipes(user):
    for kind, n in zip(PIPES, (1, 1, 2)):
        with Hoarders(n, kind, user, "--without", "watch,cgroup", "--memory", "4G", binary=UNFENCED):
            equal(look(user) & {"pipes"}, {"pipes"} if user else set(), f"{kind}: what the user lacks")


HONEST = """
import os, socket, subprocess
for i in range(3000):
    for end in os.pipe(): os.close(end)
a, b = socket.socketpair()
socket.send_fds(a, [b"x"], [0])
for i in range(20): subprocess.run(["true"], capture_output=True, check=True)
keep = [os.pipe() for i in range(300)]
print("fine", flush=True)
"""


@harness.for_people("a box has many pipes, and is ended when its user is short of them")
def pipes_of_one(user):
    for kind in ("namespaces", "landlock"):

        def run(script, *more):
            return harness.callbox(["run", "--json", "--box", kind, "--", PYTHON, "-c", script, *more], binary=CALLBOX, user=user, cwd="/", data=b"")

        done = run(HONEST)
        equal((done.report["reason"], done.report["code"], done.report["denials"]), ("exited", 0, []), done.brief())
        done = run(HOARD.replace("sys.stdin.read()", "signal.pause()"), "pipes")
        equal(done.report["reason"], "memory", done.brief())
        check("so many pipes" in done.report["text"], f"the text: {done.report['text']}")
        equal([(d["kind"], d["what"], d["errno"]) for d in done.report["denials"]], [("space", "pipes", "ENFILE")], "denials")


@harness.case("boxes of root's do not share a host id")
def ids_differ():
    if not harness.ROOT:
        return
    for kind in ("namespaces", "landlock"):
        with Hoarders(4, "flight", False, "--box", kind) as boxes:
            check(min(boxes.taken) > 700, f"one keeps another from passing any: {boxes.taken}")


# In a box: 32 processes that watch an eighth of what their user may, which is twice a box's share.
WATCH = """
import os, select, signal
for i in range(5): os.fork()
files = [os.eventfd(0) for i in range(350)]
sets, part = [], int(open("/proc/sys/fs/epoll/max_user_watches").read()) // 8 // 32
try:
    while len(sets) * len(files) < part:
        sets.append(select.epoll())
        for file in files: sets[-1].register(file)
except OSError:
    pass
signal.pause()
"""


def watches_left(user):
    """Can a process of this user still watch something?"""
    command = [PYTHON, "-c", "import os, select; select.epoll().register(os.eventfd(0)); print('ok')"]
    return subprocess.run(harness.as_user(command) if user else command, capture_output=True, text=True, timeout=SLACK, cwd="/").stdout == "ok\n"


@harness.for_people("boxes that take all watches of epoll are ended, with namespaces and without")
def watches(user):
    for kind in ("namespaces", "landlock"):
        command = [CALLBOX, "run", "--timeout", "15", "--json", "--box", kind, "--", PYTHON, "-c", WATCH]
        command = harness.as_user(command) if user else command
        boxes = [subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, cwd="/") for _ in range(2)]
        reasons = [json.loads(box.communicate(timeout=60 * harness.SLOW)[0])["reason"] for box in boxes]
        equal(reasons, ["memory", "memory"], f"{kind}: why they were ended")
        check(watches_left(user), f"{kind}: the user may watch nothing")


if __name__ == "__main__":
    with contextlib.ExitStack() as stack:
        stack.callback(SCRATCH.remove)
        sys.exit(harness.main(workers=1))
