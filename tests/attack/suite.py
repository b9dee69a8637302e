#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The attack suite: every case by root and by an ordinary user, each beside a control.

    tests/attack/suite.py [NAME...]        names are substrings or patterns: A1, "B2*", user, control

TABLE below lists the attacks. A row says which sub-command of the payload is run with which
options, how the outcome is judged, and which fence the control leaves out; with it left out the
same attack has to succeed, which shows that the test can fail. Controls are run by
build/tests/callbox-unfenced alone, whose boxes are unprivileged ids in namespaces of their own,
never on the bare host, and every attack is written to do no harm where it succeeds.

An attack is judged by what the payload says (HELD or BROKEN, see payload.h), by the report, and
from outside: who survives, when the call is back, what is left on the host.

With CALLBOX_ATTACK_PREPARED=1 every attack, but not its control, meets a box that a warden has
prepared: one warden for root and one for the user serve the whole suite, so that what one call
leaks into the next is found as well. With CALLBOX_ATTACK_FORKED=1 that box is one that was forked from
a zygote (zygote.c).

With CALLBOX_ATTACK_LANDLOCK=1 the boxes have no namespaces; CALLBOX_ATTACK_ABI=N has them made as on a
kernel with that version of Landlock. The payload knows such a box by its TMPDIR and does not take names for
files. Controls are those that a row names for it (caged_without), inside namespaces of their own.

Binaries: CALLBOX, CALLBOX_UNFENCED, CALLBOX_PAYLOAD, or those below build/; a payload that is not
there is compiled.
"""

import base64
import concurrent.futures
import contextlib
import ctypes
import dataclasses
import fcntl
import json
import os
import pathlib
import pty
import re
import resource
import secrets
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import termios
import threading
import time
import unicodedata

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness  # noqa: E402
from harness import Failed, Result, Skip, check, wait_until  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
SECRET = "callbox-secret"  # in every file that must not be read
GRANTED = "callbox-granted"
SETTLE = 1.0  # seconds within which a finished call's last process must be gone from the host
GRACE = 1.0  # seconds that a call may come back after its deadline, on a busy machine
BOTH = ("root", "user")
FORKED = bool(os.environ.get("CALLBOX_ATTACK_FORKED"))
PREPARED = bool(os.environ.get("CALLBOX_ATTACK_PREPARED")) or FORKED
LANDLOCK = bool(os.environ.get("CALLBOX_ATTACK_LANDLOCK"))
ABI = os.environ.get("CALLBOX_ATTACK_ABI")  # by the unfenced build, with all its fences
if ABI:
    os.environ["CALLBOX_LANDLOCK_ABI"] = ABI
QUICK = bool(os.environ.get("CALLBOX_ATTACK_QUICK"))
CONTROLS = os.environ.get("CALLBOX_ATTACK_CONTROLS") != "0"  # where they are made elsewhere
# A filter around the suite, a container's, refuses calls before those of boxes see them.
FILTERED = "Seccomp:\t2" in pathlib.Path("/proc/self/status").read_text()
# Can the suite make a host of its own for some attacks, one that lacks something?
NESTS = subprocess.run(["unshare", "-Ur", "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0

# Numbers of the list of attacks that have no row in TABLE, each with its reason.
NOT_HERE = {
    "X8": "the program /proc/self/exe is callbox itself, run like any other program: in the box,"
    " with no more rights than that",
    "C45": "a descriptor handed in on purpose: the command has no option for it",
    "E56": "a mount point below a symbolic link of a shown tree is refused when the box is made"
    " (test_policy.py); the root itself is always the box's own tmpfs",
    "E58": "custom roots do not exist",
    "E59": "masks lie on the box's own fresh /proc, where the payload has no time to replace them",
    "E67": "copying results out is the host's; the command copies nothing",
    "E68": "copying results out is the host's; the command opens nothing in a workspace",
    "F86": "callbox writes to the host's /proc before it has mounts of its own",
    "G97": "out of scope by the list itself",
    "H104": "aarch64",
    "J123": "no option grants a socket",
    "J124": "no network allow-list yet",
    "K128-138": "no network allow-list yet",
    "L141": "init holds six descriptors of its own, which nobody else can add to; a program whose"
    " own table is full gets EMFILE (test_limits.py); R168 runs callbox with few descriptors",
    "M148": "function calls: not a command run",
    "M151": "the library",
    "N153-157": "copy-on-write is not built",
    "O160": "sessions are not built",
    "P162-164": "protected names are tried as E65",
}

# Numbers that cannot be tried on a box that is forked, each with its reason.
NOT_FORKED = {
    "X4": "its zygote waits for stdin before it becomes the payload",
    "X24": "its zygote waits for stdin before it becomes the payload",
    "M150": "200 programs would be 200 zygotes; those of one are tried in test_zygote.py",
    "X29": "forked boxes are lent no network",
    "X30": "forked boxes are lent no network",
    "H110 (a call that the policy allows)": "where it is ptrace, nothing is forked",
}

# Numbers whose property a box without namespaces does not have, each with its reason (docs/security.md).
NOT_LANDLOCK = {
    "S21-23": "nothing is forked there",
    "S9 (sockets in flight)": "they are seen in a network of the box's own; here the descriptors in flight bound them (docs/security.md)",
    "B23": "its /tmp is a directory of the host's, without a limit on its size; there is no /dev/shm",
    "B24 (inodes without end)": "its /tmp is a directory of the host's",
    "B22 (memory held as tmpfs)": "its /tmp is a directory of the host's",
    "E73": "names, sizes and times of what is not shown can be seen",
    "E76 (odd names in paths)": "nothing can be shown at another place",
    "F81": "the numbers and names of the host's processes can be seen",
    "F83": "/proc is the host's; what is for root alone stays closed",
    "J120 (services of the host with a private loopback)": "a loopback of its own is refused",
    "J127": "there are no sockets but local ones",
    "Q167": "the arguments of the host's processes can be seen, their environment cannot",
    "X29": "it has no network that could be lent",
    "X30 (a view of its network, handed to the host's listener)": "it has no network",
    "X30 (a view of its network, handed to who connects)": "it has no network",
}

# Cases that cannot be tried on some hosts, each with its reason.
SKIPS = {
    "B32": "needs a control group of callbox's own and swap; without them memory is sampled",
    "E66": "needs a file system that ignores case (tmpfs with casefold)",
    "E60": "needs mounts of the suite's own, which a host without namespaces refuses",
    "L142": "a container's filter refuses the calls before callbox could count them",
}


# ---- What is attacked --------------------------------------------------------------------------


class Tools:
    """The binaries, copied to where every id can run them."""

    scratch = None
    callbox = unfenced = payload = zygote = empty = None
    wardens = {}  # prepared mode: who -> (process, socket)
    mark = "cb" + secrets.token_hex(3)  # in the names of the copies: what is left shows whose it is

    @classmethod
    def set_up(cls):
        os.umask(0o022)
        cls.scratch = harness.Scratch("callbox-attack-")
        built = harness.REPO / "build"
        callbox = harness.callbox_path()
        unfenced = os.environ.get("CALLBOX_UNFENCED") or str(built / "tests" / "callbox-unfenced")
        payload = os.environ.get("CALLBOX_PAYLOAD") or str(built / "tests" / "payload")
        for path in (callbox, unfenced):
            if not os.access(path, os.X_OK):
                raise SystemExit(f"{path} is missing: build first")
        cls.callbox = cls.scratch.install(callbox, f"{cls.mark}-callbox")
        cls.unfenced = cls.scratch.install(unfenced, f"{cls.mark}-open")
        if os.access(payload, os.X_OK):
            cls.payload = cls.scratch.install(payload, f"{cls.mark}-payload")
        else:
            cls.payload = str(cls.scratch.bin / f"{cls.mark}-payload")
            sources = sorted(str(p) for p in HERE.glob("payload*.c"))
            command = ["cc", "-std=gnu17", "-O1", "-static", "-o", cls.payload, *sources]
            subprocess.run(command, check=True)
        if FORKED:
            cls.zygote = cls.scratch.install(str(built / "tests" / "zygote"), "prepared-zygote")
        cls.empty = cls.scratch.directory(name="empty")
        if not harness.ROOT:
            print("run by an ordinary user: the part for root is left out", flush=True)
        if PREPARED:
            binary = cls.scratch.install(callbox, "prepared-callbox")
            for who, user in harness.PEOPLE:
                cls.start_warden(binary, who, user)

    @classmethod
    def start_warden(cls, binary, who, user):
        path = str(cls.scratch.directory(user=user) / "warden")
        command = [binary, "warden", "--socket", path]
        command = harness.as_user(command) if user else command
        cls.wardens[who] = (subprocess.Popen(command, stdin=subprocess.DEVNULL, cwd="/"), path)
        if not wait_until(lambda: os.path.exists(path), 10):
            raise SystemExit(f"no warden for {who}")

    @classmethod
    def tear_down(cls):
        for process, _ in cls.wardens.values():
            harness.end(process)
        if cls.scratch:
            cls.scratch.remove()


class Box:
    """One attempt: as whom, with which binary, and a directory of its own."""

    def __init__(self, who, without=None, alone=False):
        self.alone = alone  # no other attempt runs at the same time
        self.who = who
        self.user = who == "user"
        self.without = without
        self.binary = Tools.unfenced if without or ABI else Tools.callbox
        self.token = "attack-" + secrets.token_hex(6)
        self.dir = Tools.scratch.directory(user=self.user)
        self.bin = str(Tools.scratch.bin)
        self.started = []

    # -- files of the host --

    def directory(self, name, mode=0o755):
        path = self.dir / name
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(mode)
        harness.Scratch.own(path, self.user)
        return path

    def file(self, name, text=SECRET, mode=0o644):
        path = self.dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
        path.chmod(mode)
        for part in (path, *path.parents):
            if part == self.dir:
                break
            harness.Scratch.own(part, self.user)
        return path

    # -- running --

    def payload(self, *args):
        return [Tools.payload, args[0], self.token, *[os.fspath(a) for a in args[1:]]]

    def command(self, args, options=(), mode=("--json",), prefix=(), program=None):
        # Where there is a control group, it would hold what the missing fence does not.
        own = ["--without", f"{self.without},cgroup"] if self.without else []
        binary, zygote = [*prefix, self.binary], []
        if self.through_warden(options, prefix):
            own = ["--warden", Tools.wardens[self.who][1]]
            if FORKED and program is None:
                binary, zygote = ["env", "CALLBOX_FORKED=1", Tools.unfenced], [Tools.zygote]
        read = ["--read", self.bin, *(["--box", "landlock"] if LANDLOCK else [])]
        command = [*binary, "run", *own, *mode, *read]
        command += [os.fspath(o) for o in options]
        command += ["--", *zygote, *(program if program is not None else self.payload(*args))]
        command = harness.as_user(command) if self.user else command
        # In other boxes the control has namespaces by itself; survivors are to be seen from outside.
        if LANDLOCK and self.without and self.without != "tree-kill":
            command = ["unshare", "--fork", "--pid", "--mount-proc", "--ipc", "--uts", "--net", "--", *command]
        return command

    def through_warden(self, options, prefix):
        """A terminal of its own and a callbox that is watched or held down need one of their own."""
        return PREPARED and not self.without and not prefix and "-t" not in options

    def run(self, *args, options=(), timeout=15.0, mode=("--json",), prefix=(), program=None, **more):
        """Run a sub-command of the payload (or `program`) and take the report, if there is one."""
        more.setdefault("cwd", str(Tools.empty))
        if "--timeout" not in options:
            options = ("--timeout", "12", *options)
        command = self.command(args, options, mode, prefix, program)
        result = harness.execute(command, timeout=timeout, **more)
        if "--json" in mode:
            try:
                result.report = harness.parse_report(result.out)
            except ValueError as error:
                raise Failed(f"the report is not valid JSON ({error}): {result.brief()}")
        return result

    @contextlib.contextmanager
    def start(self, *args, options=(), mode=("-q",), ready=True, **more):
        """Start a sub-command with its output streamed; waits for its READY line."""
        more.setdefault("cwd", str(Tools.empty))
        more.setdefault("stdin", subprocess.DEVNULL)
        if "--timeout" not in options:
            options = ("--timeout", "12", *options)
        process = subprocess.Popen(
            self.command(args, options, mode),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **more,
        )
        try:
            if ready:
                line = read_line(process.stdout, 10)
                if line != b"READY\n":
                    harness.end(process)
                    error = process.stderr.read().decode("utf-8", "replace")
                    raise Untried(f"the payload said {line!r} instead of READY; {error!r}")
            yield process
        finally:
            harness.end(process)
            process.stdout.close()
            process.stderr.close()

    def survivors(self, seconds=SETTLE):
        """Processes of this attempt that are on the host after it is over."""
        mark = Tools.mark if self.alone else self.token

        def left():
            # A zygote that has just been started has not taken its arguments off its command line yet.
            return harness.processes_with(mark, but=Tools.zygote)

        # One that forks all the time can be missed by one look; and one that waited for a call which never
        # came, and dies with its box, may be seen at it.
        if wait_until(lambda: not any(left() for _ in range(4)), seconds):
            return set()
        return left() or {0}

    def clean_up(self):
        harness.kill_marked(self.token)


class Untried(Exception):
    """The attack did not come to a verdict, for whatever reason: never a pass."""


def read_line(stream, seconds):
    """A line from an unbuffered pipe, with a deadline."""
    line = b""
    deadline = time.monotonic() + seconds * harness.SLOW
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([stream], [], [], max(0, deadline - time.monotonic()))
        if not ready:
            break
        byte = os.read(stream.fileno(), 1)
        if not byte:
            break
        line += byte
    return line


# ---- Judges: None where the box held, or a sentence on how it broke ----------------------------


def by_payload(box, result):
    """The payload's own verdict; anything that keeps it from giving one is a failure."""
    lines = [l for l in result.stdout.splitlines() if l.startswith(("HELD", "BROKEN", "UNTRIED"))]
    line = lines[-1] if lines else ""
    if result.report is not None:
        if result.reason == "exited" and result.report["code"] == 42:
            return line or "BROKEN without a word"
        if result.reason == "exited" and result.report["code"] == 0 and line.startswith("HELD"):
            return None
    elif result.code in (0, 42):
        return None if result.code == 0 and line.startswith("HELD") else (line or "BROKEN")
    raise Untried(result.brief())


def ended_by(*reasons, within=None, or_held=False, dead=True):
    """The report's reason is one of these, in time, and nothing of the tree is left."""

    def judge(box, result):
        if result.report is None:
            raise Untried(result.brief())
        if result.reason == "setup":
            raise Untried(result.brief())
        if result.reason not in reasons:
            if or_held and by_payload(box, result) is None:
                return None
            return f"reason {result.reason}, not {' or '.join(reasons)}: {result.brief()}"
        grace = 4 * GRACE if ABI else GRACE  # an old kernel lets a storm be ended by speed alone
        if within is not None and result.seconds > (within + grace) * harness.SLOW:
            return f"back after {result.seconds:.2f} s, {within} s were given"
        left = box.survivors() if dead else set()
        return f"{len(left)} processes survive the call" if left else None

    return judge


def returns_alone(box, result):
    """The call ended by main's exit, at once, and took everything along."""
    if result.report is None or result.reason == "setup":
        raise Untried(result.brief())
    if result.reason != "exited" or result.report["code"] != 0:
        return f"the call did not end as it should: {result.brief()}"
    if result.seconds > 5 * harness.SLOW:
        return f"back after {result.seconds:.2f} s although main had exited"
    left = box.survivors()
    return f"{len(left)} processes survive the call" if left else None


def memory_ended(box, result):
    """Ended for its memory, or refused it; the peak is reported."""
    problem = ended_by("memory", or_held=True)(box, result)
    if problem is None and not result.report["usage"]["memory_peak"]:
        return "no peak of memory is reported"
    return problem


def denied(*names):
    """The payload's verdict, and a record of each of these calls in the report."""

    def judge(box, result):
        problem = by_payload(box, result)
        if problem:
            return problem
        missing = [n for n in names if not result.denial(n)]
        if missing and not FILTERED:
            raise Untried(f"held, but the report has no denial of {', '.join(missing)}")
        return None

    return judge


# ---- The table ---------------------------------------------------------------------------------


@dataclasses.dataclass
class Attack:
    number: str
    title: str
    payload: str = None  # the sub-command
    args: object = ()  # its arguments, or a function of the box that gives them
    options: object = ()  # options of run, likewise
    judge: object = by_payload
    attempt: object = None  # a function of the box in place of all the above
    without: str = None  # the fences that the control leaves out
    no_control: str = None  # why there is no control
    control_args: object = None  # other arguments for the control
    control_options: object = None  # the control is a laxer policy instead of a missing fence
    control_who: tuple = BOTH
    caged_without: str = None  # the fences that the control of a box without namespaces leaves out
    alone: bool = False
    who: tuple = BOTH
    more: dict = dataclasses.field(default_factory=dict)  # further arguments of Box.run

    def perform(self, box, control=False):
        if self.attempt:
            return self.attempt(box)
        args = self.control_args if control and self.control_args is not None else self.args
        options = self.options
        if control and self.control_options is not None:
            options = self.control_options
        args = args(box) if callable(args) else args
        options = options(box) if callable(options) else options
        return self.judge(box, box.run(self.payload, *args, options=tuple(options), **self.more))


TABLE = []


def attack(number, title, payload=None, **more):
    TABLE.append(Attack(number, title, payload, **more))


def attempt(number, title, **more):
    """A row whose attempt is the function below it."""

    def register(function):
        TABLE.append(Attack(number, title, attempt=function, **more))
        return function

    return register


# ---- A. Lifetime and kill ----------------------------------------------------------------------

attack(
    "A1",
    "setsid, double fork, main exits",
    "A1-double-fork",
    judge=returns_alone,
    caged_without="tree-kill", without="pid,root,tree-kill",
    alone=True,
)
attack(
    "A2",
    "ignores every signal and loops",
    "A2-deaf",
    options=("--timeout", "0.5"),
    judge=ended_by("timeout", within=0.5),
    without="deadline",
    alone=True,
)
attack(
    "A3",
    "stops itself and its group",
    "A3-stopped",
    options=("--timeout", "0.6"),
    judge=ended_by("timeout", within=0.6),
    without="deadline",
    alone=True,
)


def may_give_ids():
    """Has root the rights to give its boxes another id than its own?"""
    line = next(l for l in pathlib.Path("/proc/self/status").read_text().splitlines() if l.startswith("CapEff"))
    return bool(int(line.split()[1], 16) >> 21 & 1)


def few_processes(box, result):
    """The number of processes stayed at the limit, and the call's end took them all."""
    problem = ended_by("pids", or_held=True)(box, result)
    peak = (result.report or {}).get("usage", {}).get("processes_peak", 0)
    # The kernel's bound lies a little above the limit. It holds for no box of the host's own root, as
    # one without CAP_SYS_ADMIN has them: there init counts, and has ended the call by then.
    if problem is None and peak > 46 and not LANDLOCK and not (box.who == "root" and not may_give_ids()):
        return f"{peak} processes at a time"
    left = box.survivors()
    return problem or (f"{len(left)} processes survive" if left else None)


attack(
    "A4",
    "fork bomb",
    "A4-fork-bomb",
    args=("46",),
    options=("--processes", "32"),
    judge=few_processes,
    without="rlimits,watch",
    alone=True,
)
attack(
    "A5",
    "forks in a tight loop while it is killed",
    "A5-fork-chain",
    options=("--timeout", "0.5"),
    judge=ended_by("timeout", "pids", within=0.5),
    without="pid,root,tree-kill",
    alone=True,
)


def held_pipe(stream):
    def judge(box, result):
        problem = returns_alone(box, result)
        if problem is None and "complete" not in getattr(result, stream):
            return f"the output before the end is lost: {result.brief()}"
        return problem

    return judge


attack(
    "A6",
    "a background process holds stdout",
    "A6-hold-stdout",
    judge=held_pipe("stdout"),
    without="pid,root,tree-kill",
    alone=True,
)
attack(
    "A7",
    "a background process holds stderr",
    "A7-hold-stderr",
    judge=held_pipe("stderr"),
    without="pid,root,tree-kill",
    alone=True,
)


@attempt("A9", "callbox is killed with SIGKILL", without="pid,root,tree-kill", alone=True)
def a9(box):
    with box.start("A9-wait-for-kill") as process:
        os.kill(process.pid, signal.SIGKILL)
        process.wait(timeout=5)
        left = box.survivors()
        return f"{len(left)} processes outlive callbox" if left else None


@attempt(
    "A10",
    "the thread that started callbox ends",
    no_control="no fence: the mistake would be PR_SET_PDEATHSIG alone, which is per thread",
)
def a10(box):
    found = []
    command = box.command(("sleep", "700"), ("--timeout", "10"))

    def spawn():
        found.append(
            subprocess.Popen(
                command,
                cwd=Tools.empty,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        )

    thread = threading.Thread(target=spawn)
    thread.start()
    thread.join()
    out, err = found[0].communicate(timeout=15)
    result = Result(command, found[0].returncode, out, err, 0, report=harness.parse_report(out))
    return by_payload(box, result)


@attempt(
    "A11",
    "the caller ignores or blocks SIGCHLD",
    no_control="no fence: the exit status travels by pidfd and not by SIGCHLD",
)
def a11(box):
    for script in (
        'trap "" CHLD; exec "$@"',
        'trap "" CHLD HUP INT TERM PIPE USR1 USR2; exec "$@"',
    ):
        result = box.run("exit", "7", prefix=("sh", "-c", script, "sh"))
        if result.reason != "exited" or result.report["code"] != 7 or result.code != 7:
            return f"the exit code 7 is lost: {result.brief()}"
    return None


def init_unharmed(box, result):
    """HELD, and the call ended as exited: its init lived on and its report is whole."""
    if result.report is None or result.reason == "setup":
        raise Untried(result.brief())
    if "HELD" not in result.stdout and "UNTRIED" not in result.stdout:
        return f"the init was harmed: {result.brief()}"
    return by_payload(box, result)


attack(
    "A12",
    "signals and ptrace against init",
    "A12-attack-init",
    judge=init_unharmed,
    caged_without="landlock,syscalls", without="pid,root,landlock,syscalls",
)
attack(
    "A14",
    "an uninterruptible wait for a stopped vfork child",
    "A14-vfork-stopped",
    options=("--timeout", "0.6"),
    judge=ended_by("timeout", within=0.6),
    without="deadline",
    alone=True,
)
attack(
    "A15",
    "a vfork child that never execs",
    "A15-vfork-no-exec",
    options=("--timeout", "0.6"),
    judge=ended_by("timeout", within=0.6),
    without="deadline",
    alone=True,
)
attack(
    "A16",
    "the deadline falls into an exec",
    "A16-exec-loop",
    options=("--timeout", "0.5"),
    judge=ended_by("timeout", within=0.5),
    without="deadline",
    alone=True,
)


@attempt(
    "A17",
    "a signal to a pid that may be another's by now",
    no_control="which process a signal names is callbox's own choice, no fence",
)
def a17(box):
    log = box.directory("log", 0o777) / "trace"
    trace = ("strace", "-f", "-qq", "-o", str(log), "-e", "trace=kill,tkill,tgkill,execve")
    result = box.run("A2-deaf", "3000", options=("--timeout", "0.3"), prefix=trace, timeout=30)
    if result.reason != "timeout":
        raise Untried(result.brief())
    # Signals by pid are safe only from init to its own, unreaped children and to all (-1).
    first = log.read_text().split(None, 1)[0]
    for line in log.read_text().splitlines():
        sent = re.match(r"(\d+) +(?:t|tg)?kill\((-?\d+)", line)
        if sent and sent[1] == first and int(sent[2]) > 0:
            return f"callbox signals by pid: {line}"
    return None


attack(
    "A19",
    "a subreaper and its orphans",
    "A19-subreaper",
    judge=returns_alone,
    caged_without="tree-kill", without="pid,root,tree-kill",
    alone=True,
)

# ---- B. Resources ------------------------------------------------------------------------------

attack(
    "B20",
    "three times the memory limit in one process",
    "B20-memory",
    args=("300",),
    options=("--memory", "96M"),
    judge=memory_ended,
    caged_without="rlimits,watch", without="rlimits,watch",
)
attack(
    "B21",
    "the same spread over 20 processes",
    "B21-memory-spread",
    args=("20", "15"),
    options=("--memory", "96M"),
    judge=memory_ended,
    without="rlimits,watch",
)
for kind, amount in (
    ("memfd-mapped", "240"),
    ("memfd-written", "240"),
    ("sysv", "240"),
    ("tmpfs", "240"),
    ("headless", "240"),
    ("sysv-many", "240"),
    ("messages", "160"),
    ("semaphores", "240"),
):
    attack(
        "B22",
        f"memory held as {kind}",
        "B22-indirect",
        args=(kind, amount),
        options=("--memory", "64M", *(() if LANDLOCK else ("--tmp-size", "128M"))),
        judge=memory_ended,
        without="rlimits,watch",
    )
# S9: memory of the host that no page table shows; each was held under --memory 64M before it was counted.
for kind, amount, fence in (
    ("page-tables", "240", "watch"),
    ("upper-tables", "240", "watch"),
    ("page-tables-spread", "240", "watch"),
    ("shared-cut", "240", "watch"),
    ("shared-left", "240", "watch"),
    ("zero-device", "240", "watch,landlock"),
    ("memfd-closed", "240", "watch"),
    ("secret", "240", "watch,syscalls"),
    ("closed-peers", "240", "watch"),
    ("backlog", "240", "watch"),
    ("large-buffers", "240", "watch"),
    ("huge-pieces", "240", "watch,syscalls"),
    ("areas", "240", "watch"),
    ("watches", "160", "watch"),
    ("descriptors", "240", "watch"),
    ("rules", "2", "watch,syscalls"),
    *(() if LANDLOCK else (("undo", "60", "watch"), ("nested", "200", "watch"))),
):
    attack(
        "S9",
        f"memory held as {kind}",
        "S9-memory",
        args=(kind, amount),
        options=("--memory", "64M"),
        judge=memory_ended,
        without=f"rlimits,{fence}",
    )
for kind, amount in (
    ("memfd-path", "240"),
    ("memfd-link", "240"),
    ("memfd-openat2", "240"),
    ("memfd-sealed", "240"),
    ("named-pipes", "24"),
):
    attack(
        "S9",
        f"memory held as {kind}",
        "S9-files",
        args=(kind, amount),
        options=("--memory", "64M" if kind.startswith("memfd") else "12M"),
        judge=memory_ended,
        without="rlimits,watch",
    )
for kind, amount, fence in (
    ("shared-late", "120", "watch"),
    ("domains", "150", "watch,syscalls"),
    ("socket-filters", "6", "watch,syscalls"),
    ("thread-filters", "20", "watch"),
    ("proc-files", "80", "watch"),
):
    attack(
        "S9",
        f"memory held as {kind}",
        "S9-behind",
        args=(kind, amount),
        options=("--memory", "64M"),
        judge=memory_ended,
        without=f"rlimits,{fence}",
    )
# Small things in large numbers, sockets and texts that nobody has open, and processes that init may not look into.
for kind, amount, options in (
    ("inherited-areas", "120", ()),
    ("orphaned-areas", "120", ()),
    ("lock-texts", "80", ()),
    ("texts-sent", "88", ()),
    ("hidden-areas", "160", ()),
    ("hidden-pipes", "16", ("--memory", "12M")),
    *(
        ()
        if LANDLOCK
        else (
            ("empty-messages", "160", ()),
            ("undo-sets", "16", ("--memory", "14M")),
            ("unaccepted", "100", ("--net", "loopback")),
            ("sources", "120", ()),
            ("sources-sent", "80", ()),
        )
    ),
):
    attack(
        "S9",
        f"memory held as {kind}",
        "S9-small",
        args=(kind, amount),
        options=(*(() if "--memory" in options else ("--memory", "64M")), *options),
        judge=memory_ended,
        without="rlimits,watch",
    )
if not LANDLOCK:
    attack(
        "S9",
        "memory held as file-locks",
        "S9-behind",
        args=("file-locks", "30"),
        options=("--memory", "64M"),
        judge=memory_ended,
        alone=True,  # the kernel goes through the locks of all boxes to tell of those of one
        without="rlimits,watch",
    )
for kind in ("sockets", "in-flight", "shared-dropped"):
    attack(
        "B22",
        f"memory held as {kind}",
        "B22-indirect",
        args=(kind, "200"),
        options=("--memory", "64M"),
        judge=memory_ended,
        without="rlimits,watch",
    )
attack(
    "B22",
    "memory held as in-thread",
    "B22-indirect",
    args=("in-thread", "240"),
    options=("--memory", "64M"),
    # The table of its own is refused; the thread's process still holds the memory.
    judge=lambda box, result: None if result.reason in ("memory", "exited") and result.code != 42 else result.brief(),
    without="syscalls,rlimits,watch",
)
attack(
    "B22",
    "memory held in pipes",
    "B22-indirect",
    args=("pipes", "160"),
    options=("--memory", "64M"),
    judge=memory_ended,
    no_control="the kernel keeps a quota of 64 MiB for the pipes of a user by itself",
)
attack(
    "B23",
    "fills /tmp and /dev/shm",
    "B23-tmpfs",
    args=("32",),
    options=("--tmp-size", "8M"),
    control_options=("--tmp-size", "64M"),
)
attack(
    "B24",
    "sparse files and fallocate beyond the limit",
    "B24-file-size",
    args=("8",),
    options=lambda box: ("--file-size", "4M", "--workspace", box.directory("w")),
    without="rlimits",
)
attack(
    "B24",
    "inodes without end",
    "B24-inodes",
    no_control="the cap is part of the mount of the private /tmp, which has no substitute",
)


def flooded(size):
    def judge(box, result):
        out = (result.report or {}).get("stdout")
        if not out or result.reason != "exited":
            raise Untried(result.brief())
        total = size * 1024 * 1024 + 10
        if result.report["code"] != 7:
            return f"the exit code is lost: {result.report['code']}"
        if out["bytes"] != total:
            return f"{out['bytes']} bytes are counted, {total} were written"
        if not out["truncated"] or len(out["text"]) > 110 * 1024:
            return f"{len(out['text'])} characters are kept, truncated is {out['truncated']}"
        if not out["text"].startswith("HEAD\n") or not out["text"].endswith("TAIL\n"):
            return "head and tail are not kept"
        return None

    return judge


attack(
    "B25",
    "a flood of output",
    "B25-flood",
    args=("128",),
    judge=flooded(128),
    no_control="the bound lies in the reader's buffer, not in a fence",
)
attack(
    "B25",
    "a flood beyond the output limit",
    "B25-flood",
    args=("64",),
    options=("--output", "1M"),
    judge=ended_by("output"),
    control_options=(),
)


@attempt("B26", "bytes of all values", no_control="a property of the report, no fence")
def b26_bytes(box):
    out = box.run("B26-bytes").report["stdout"]
    if out["bytes"] != 1024 or base64.b64decode(out.get("base64", "")) != bytes(range(256)) * 4:
        return f"the bytes did not arrive: {out}"
    return None


@attempt("B26", "one line of 256 MiB", no_control="a property of the report, no fence")
def b26_line(box):
    out = box.run("B26-line", "256", timeout=30).report["stdout"]
    if out["bytes"] != 256 * 1024 * 1024 or not out["truncated"]:
        return f"{out['bytes']} bytes, truncated {out['truncated']}"
    kept = base64.b64decode(out["base64"]) if "base64" in out else b""
    if not kept.startswith(b"A\0\xffB") or len(kept) > 110 * 1024:
        return f"{len(kept)} bytes are kept and begin {kept[:8]!r}"
    return None


@attempt("B27", "the caller does not read", without="deadline", alone=True)
def b27(box):
    with box.start("B27-unread", options=("--timeout", "0.7"), ready=False) as process:
        deadline = time.monotonic() + (0.7 + GRACE) * harness.SLOW
        status = pathlib.Path(f"/proc/{process.pid}/status")
        wait_until(lambda: len(harness.processes_with(box.token)) > 1, 5)
        gone = wait_until(
            lambda: not (harness.processes_with(box.token) - {process.pid}),
            max(0, deadline - time.monotonic()),
        )
        text = status.read_text() if status.exists() else ""
        peak = re.search(r"VmHWM:\s+(\d+)", text)
        if not gone:
            return "the payload outlives its deadline while nobody reads"
        if peak and int(peak[1]) > 64 * 1024:
            return f"callbox takes {peak[1]} KiB while nobody reads"
        process.stdout.read()
        code = process.wait(timeout=10)
        return None if code == 124 else f"exit {code} instead of 124"


def cpu_ended(box, result):
    problem = ended_by("cpu")(box, result)
    usage = (result.report or {}).get("usage", {})
    total = usage.get("cpu_user_ms", 0) + usage.get("cpu_system_ms", 0)
    if problem is None and not 500 <= total <= 3000:
        return f"{total} ms of cpu time are reported, the limit is 1 s"
    return problem


attack(
    "B28",
    "16 threads burn cpu time",
    "B28-threads",
    args=("2000",),
    options=("--cpu", "1"),
    judge=cpu_ended,
    without="rlimits,watch",
    alone=True,
)
attack(
    "B28",
    "many short children burn cpu time",
    "B28-children",
    args=("2000",),
    options=("--cpu", "1"),
    judge=cpu_ended,
    without="rlimits,watch",
    alone=True,
)


# Whoever ignores SIGCHLD has children that nobody waits for, whose time the kernel adds to nobody's.
# The last is found by chance, where init does not need the only processor for that.
for kind in ("ignored", "flagged", "handled", "toggled", "inherited", "adopted", *(("masked",) if os.cpu_count() > 1 else ())):
    attack(
        "B28",
        f"children that nobody waits for burn cpu time ({kind})",
        "B28-unwaited",
        args=(kind, "8000"),
        options=("--cpu", "1"),
        judge=cpu_ended,
        control_args=(kind, "1500"),
        without="rlimits,watch",
        alone=True,
    )


@attempt("B30", "crashes for a core file", without="rlimits", alone=True)
def b30(box):
    work = box.directory("w", 0o777)
    before = resource.getrlimit(resource.RLIMIT_CORE)
    unlimited = resource.RLIM_INFINITY
    if harness.ROOT:
        resource.setrlimit(resource.RLIMIT_CORE, (unlimited, unlimited))
    try:
        result = box.run("B30-core", options=("--workspace", work))
    finally:
        if harness.ROOT:
            resource.setrlimit(resource.RLIMIT_CORE, before)
    if result.reason == "exited":
        return by_payload(box, result)
    if result.report.get("signal") != "SIGABRT" or "HELD" not in result.stdout:
        raise Untried(result.brief())
    left = os.listdir(work)
    return f"left in the workspace: {left}" if left else None


attack("B31", "locked memory, aio, descriptors, keys", "B31-quotas", without="rlimits,syscalls")


@attempt("B32", "swap", no_control="needs a control group")
def b32(box):
    result = box.run("R169-fences")
    group = result.guarantee("cgroup")
    if not group or not group["enforced"]:
        raise Skip("no control group")
    raise Skip("no swap to look at")


attack("B33", "cgroup files in sight", "B33-cgroup-files", without="root")
attack("B34", "mounts a cgroup tree", "B34-cgroup-mount", without="syscalls,privileges,landlock")
attack("B35", "raises its limits", "B35-raise-limits", without="rlimits")


@attempt("B36", "odd timeouts", no_control="numbers, no fence", alone=True)
def b36(box):
    for value in ("0", "-1", "nan", "inf", "1e400", "", "1s2", "0x", " "):
        result = box.run("exit", "0", options=("--timeout", value))
        if result.code != 125:
            return f"--timeout {value!r}: {result.brief()}"
    for value in ("1e-9", "0.000001"):
        result = box.run("sleep", "3000", options=("--timeout", value))
        if result.reason != "timeout" or result.seconds > 1 * harness.SLOW:
            return f"--timeout {value}: {result.brief()}, {result.seconds:.2f} s"
    for value in ("1e9", "9223372036", "1e18", "1e300"):
        result = box.run("sleep", "20", options=("--timeout", value))
        if result.code not in (0, 125):
            return f"--timeout {value}: {result.brief()}"
    return None


# ---- C. Inherited descriptors ------------------------------------------------------------------


@attempt("C37", "descriptors of the caller", without="descriptors")
def c37(box):
    secret = box.file("secret")
    fds = [os.open(secret, os.O_RDWR)]
    try:
        fds += [fcntl.fcntl(fds[0], fcntl.F_DUPFD, at) for at in (7, 20, 50, 200, 900)]
        return by_payload(box, box.run("C37-inherited", pass_fds=fds))
    finally:
        for fd in fds:
            os.close(fd)


@attempt("C39", "a start directory behind a descriptor, or deleted", no_control="set-up, no fence")
def c39(box):
    fd = os.open(box.dir, os.O_RDONLY | os.O_DIRECTORY)
    try:
        # callbox has descriptors of its own at these numbers, of directories of the host too
        for where in (f"/proc/self/fd/{fd}", f"/dev/fd/{fd}", *[f"/proc/self/fd/{n}" for n in range(3, 40)]):
            result = box.run("exit", "0", options=("--cwd", where), pass_fds=[fd])
            if result.code != 125 or result.reason != "setup":
                return f"--cwd {where}: {result.brief()}"
    finally:
        os.close(fd)
    gone = box.directory("gone")
    script = f'cd "{gone}" && rmdir "{gone}" && exec "$@"'
    result = box.run("C40-cwd", prefix=("sh", "-c", script, "sh"))
    if result.code == 125:
        return None
    return by_payload(box, result)


@attempt("C40", "a current directory out of reach", no_control="set-up, no fence")
def c40(box):
    work = box.directory("w")
    for options, more in (
        ((), {}),
        (("--workspace", work), {}),
        (("--read", work, "--cwd", work), {}),
        (("--cwd", "/"), {}),
        ((), {"cwd": str(box.dir)}),
        ((), {"cwd": "/"}),
    ):
        problem = by_payload(box, box.run("C40-cwd", options=options, **more))
        if problem:
            return f"{options} {more}: {problem}"
    return None


@attempt("C41", "stdin, stdout or stderr closed by the caller", no_control="set-up, no fence")
def c41(box):
    for closed in ("<&-", "<&- >&-", "<&- 2>&-", "<&- >&- 2>&-"):
        report = box.directory("r", 0o777) / "report.json"
        result = box.run(
            "C41-standard",
            mode=("--report", str(report)),
            prefix=("sh", "-c", f'exec "$@" {closed}', "sh"),
        )
        if result.code == 125:
            continue  # refused: as good
        if result.code != 0:
            return f"{closed}: {result.brief()}"
        if harness.parse_report(report.read_text())["code"] != 0:
            return f"{closed}: {report.read_text()}"
        report.unlink()
    return None


@attempt("C42", "descriptors of callbox itself", without="descriptors")
def c42(box):
    fd = os.open("/dev/null", os.O_RDONLY)
    try:
        for options in ((), ("--explain",), ("--workspace", box.directory("w"))):
            problem = by_payload(box, box.run("C42-internal", options=options, pass_fds=[fd]))
            if problem:
                return problem
        return None
    finally:
        os.close(fd)


attack("C44", "takes descriptors by pidfd", "C44-pidfd-getfd", without="syscalls")

# ---- D. Terminal -------------------------------------------------------------------------------


class Terminal:
    """A pty that is the controlling terminal of a callbox; collects what appears on it."""

    def __init__(self):
        self.master, self.slave = pty.openpty()
        self.output = b""

    def close(self):
        os.close(self.master)
        os.close(self.slave)

    def run(self, box, *args, options=(), timeout=15):
        """Run to the end; the output is what the terminal showed."""
        process = subprocess.Popen(
            box.command(args, ("--timeout", "10", *options), mode=("-q",), prefix=()),
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            cwd=Tools.empty,
            preexec_fn=self.take,
        )
        deadline = time.monotonic() + timeout * harness.SLOW
        while process.poll() is None and time.monotonic() < deadline:
            self.pump(0.05)
        if process.poll() is None:
            harness.end(process)
            raise Failed(f"no answer on a terminal after {timeout} s: {self.output[-300:]!r}")
        self.pump(0.1)
        return Result([], process.returncode, self.output, b"", 0)

    def take(self):
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)

    def pump(self, seconds):
        while select.select([self.master], [], [], seconds)[0]:
            self.output += os.read(self.master, 65536)
            seconds = 0

    def pending(self):
        """Input that waits to be read on the terminal: nobody has typed any."""
        attributes = termios.tcgetattr(self.slave)
        attributes[3] &= ~termios.ICANON
        termios.tcsetattr(self.slave, termios.TCSANOW, attributes)
        found = b""
        while select.select([self.slave], [], [], 0.05)[0]:
            found += os.read(self.slave, 4096)
        return found


def on_terminal(*args, options=()):
    def attempt_it(box):
        terminal = Terminal()
        try:
            result = terminal.run(box, *args, options=options)
            problem = by_payload(box, result)
            return problem or (f"typed: {found!r}" if (found := terminal.pending()) else None)
        finally:
            terminal.close()

    return attempt_it


attack(
    "D47",
    "pushes input into the caller's terminal",
    attempt=on_terminal("D47-push"),
    without="session,syscalls,landlock",
    alone=True,
)
attack(
    "D48",
    "pastes on the console",
    attempt=on_terminal("D48-paste"),
    no_control="only a text console answers it; a pty says ENOTTY by itself",
    alone=True,
)


@attempt("D50", "escape sequences in the output", no_control="text, no fence")
def d50(box):
    raw = box.run("D50-escapes").report["stdout"]
    text = base64.b64decode(raw["base64"]).decode() if "base64" in raw else raw["text"]
    if not text.startswith("\x1b]0;title\x07"):
        return f"the report does not carry the bytes: {raw}"
    result = box.run("D50-escapes", mode=("--sanitize",))
    if b"\x1b" in result.out or b"\x07" in result.out or b"\xc2\x9b" in result.out:
        return f"--sanitize lets through {result.out!r}"
    return None if b"plain" in result.out else f"--sanitize eats {result.out!r}"


attack(
    "D51",
    "takes the caller's terminal",
    attempt=on_terminal("D51-steal"),
    without="session,landlock",
    alone=True,
)
attack(
    "D52",
    "terminals of others, with a private pty",
    attempt=on_terminal("D52-others", options=("-t",)),
    without="root",
    alone=True,
)


@attempt("D52", "leaves the terminal as it was", no_control="set-up, no fence", alone=True)
def d52_restored(box):
    terminal = Terminal()
    try:
        before = termios.tcgetattr(terminal.slave)
        result = terminal.run(box, "D52-raw", options=("-t", "--timeout", "0.5"))
        if result.code != 124:
            raise Untried(f"exit {result.code}: {result.out[-200:]!r}")
        after = termios.tcgetattr(terminal.slave)
        return None if before == after else f"the terminal was {before}, is {after}"
    finally:
        terminal.close()


# ---- E. Files ----------------------------------------------------------------------------------

HOME_FILES = (".ssh/id_ed25519", ".aws/credentials", ".config/gh/hosts.yml", ".netrc", ".gnupg/key")


def fake_home(box):
    return box.directory("home"), [box.file(f"home/{name}") for name in HOME_FILES]


@attempt("E53", "secrets of the home directory and the host", caged_without="landlock", without="root")
def e53(box):
    home, files = fake_home(box)
    more = ["/root", "/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/machine-id"]
    more += ["/var/lib/dpkg", "/etc/ssl/private", "/etc/ssh", "/boot", "/srv", "/mnt"]
    env = dict(os.environ, HOME=str(home))
    return by_payload(box, box.run("E53-absent", *files, *more, env=env))


@attempt("E53", "started in the home directory, or above it", without="root")
def e53_cwd(box):
    home, files = fake_home(box)
    for where in (home, box.dir):
        env = dict(os.environ, HOME=str(home))
        problem = by_payload(box, box.run("E53-absent", *files, env=env, cwd=str(where)))
        if problem:
            return f"in {where}: {problem}"
    return None


attack("E54", "ways around the root", "E54-around-root", args=lambda b: [b.file("s")], caged_without="landlock", without="root")
attack(
    "E55",
    "escape by chroot",
    "E55-chroot",
    args=lambda box: [box.file("s")],
    without="syscalls,privileges",
)


@attempt("E57", "the source of a bind is swapped", no_control="a race, no fence")
def e57(box):
    """In each run the box shows one of both places as a whole, or refuses."""
    places = [box.directory("one"), box.directory("two")]
    for place in places:
        (place / "name").write_text(f"{GRANTED} {place.name}\n")
        hooks = place / ".git" / "hooks"
        hooks.mkdir(parents=True)
        for path in (place / "name", place / ".git", hooks):
            harness.Scratch.own(path, box.user)
    link, spare = box.dir / "link", box.dir / "spare"
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            for place in places:
                with contextlib.suppress(OSError):
                    os.symlink(place, spare)
                    os.rename(spare, link)

    os.symlink(places[0], link)
    thread = threading.Thread(target=swap)
    thread.start()
    seen = {}
    try:
        for _ in range(10 if QUICK else 25):
            result = box.run(
                "echo", program=["/bin/sh", "-c", "cat name; : 2>&1 >.git/hooks/x; ls -a .git/hooks"],
                options=("--workspace", f"{link}"),
            )
            if result.code == 125:
                seen["refused"] = seen.get("refused", 0) + 1
                continue
            first = result.stdout.splitlines()[:1]
            if not first or not first[0].startswith(GRANTED):
                return f"neither place was seen: {result.brief()}"
            seen[first[0]] = seen.get(first[0], 0) + 1
    finally:
        stop.set()
        thread.join()
    for place in places:
        if os.listdir(place / ".git" / "hooks"):
            return f"a hook was made in {place}"
    return None


@attempt("E60", "mounts below a read-only grant", without="readonly,landlock")
def e60(box):
    if not NESTS:
        raise Skip("no mounts of the suite's own")
    place = box.directory("granted", 0o777)
    sub = box.directory("granted/sub", 0o777)
    script = f'mount -t tmpfs -o mode=0777 none "{sub}" && : >"{sub}/f" && chmod 666 "{sub}/f"'
    ids = str(harness.USER_ID if harness.ROOT and box.user else os.getuid())
    if box.user or not may_give_ids():  # a mount namespace of its own, then back to the own id
        again = f'exec unshare -U --map-user={ids} --map-group={ids} "$@"'
        prefix = ("unshare", "-Urm", "sh", "-c", f"{script} && {again}", "sh")
    else:
        prefix = ("unshare", "-m", "--propagation", "private", "sh", "-c", f'{script} && exec "$@"', "sh")
    args = (place, sub, sub / "f")
    return by_payload(box, box.run("E60-read-only", *args, options=("--read", place), prefix=prefix))


attack("E61", "remounts and binds over", "E61-remount", without="syscalls,privileges,landlock")


@attempt("E63", "hard link out of a read-only grant", without="root,protect")
def e63(box):
    box.directory("r", 0o777)
    work = box.directory("w", 0o777)
    source = box.file("r/file", mode=0o666)
    options = ("--read", source.parent, "--workspace", work)
    return by_payload(box, box.run("E63-hard-link", source, work / "link", options=options))


@attempt("E63", "hard link to a protected file", no_control="as E65", caged_without="protect")
def e63_kept(box):
    work = box.directory("w")
    kept = box.file("w/.envrc", GRANTED)
    return by_payload(box, box.run("E63-hard-link", kept, work / "link", options=("--workspace", work)))


@attempt("E63", "hard link to a file that is read-only in a workspace", no_control="as E65", caged_without="protect")
def e63_read_only(box):
    work = box.directory("w")
    box.directory("w/r")
    kept = box.file("w/r/file", GRANTED)
    options = ("--workspace", work, "--read", kept.parent)
    return by_payload(box, box.run("E63-hard-link", kept, work / "link", options=options))


PROTECTED = (".git/hooks", ".git/config", ".vscode", ".envrc", ".mcp.json", ".bashrc", ".claude")


def protected_after(box, work, problem):
    """Whatever the payload thinks: what does the host find under the protected names?"""
    for name in PROTECTED:
        path = work / name
        if path.is_symlink() or (path.is_file() and "evil" in path.read_text()):
            return f"{name} holds what the payload wrote; {problem}"
        if path.is_dir() and any((path / n).exists() for n in ("evil", "x")):
            return f"{name} holds a file of the payload; {problem}"
        if path.exists() and not path.is_dir() and not path.is_file():
            return f"{name} is a special file; {problem}"
    return problem


@attempt("E65", "protected names that do not exist yet", without="protect")
def e65_absent(box):
    work = box.directory("w", 0o777)
    result = box.run("E65-protected", *PROTECTED, options=("--workspace", work))
    problem = protected_after(box, work, by_payload(box, result))
    made = [n for n in PROTECTED if (work / n).exists() or (work / n).is_symlink()]
    return problem or (f"made on the host: {made}" if made else None)


@attempt("E65", "protected names that exist", without="protect")
def e65_present(box):
    work = box.directory("w", 0o777)
    for name in (".git/config", ".envrc", ".mcp.json", ".bashrc"):
        box.file(f"w/{name}", GRANTED, mode=0o666)
    for name in (".git", ".git/hooks", ".vscode"):
        box.directory(f"w/{name}", 0o777)
    before = harness.HostState._tree(work)
    result = box.run("E65-protected", *PROTECTED, options=("--workspace", work))
    problem = protected_after(box, work, by_payload(box, result))
    after = harness.HostState._tree(work)
    lost = [n for n in before if n not in after or after[n] != before[n]]
    lost = [n for n in lost if not n.endswith("/.git")]  # its own size may change
    return problem or (f"changed on the host: {lost}" if lost else None)


@attempt("E65", "a repository below the top of a workspace, or the workspace itself", without="protect")
def e65_nested(box):
    work = box.directory("w", 0o777)
    box.directory("w/sub", 0o777)
    box.directory("w/sub/deeper", 0o777)
    names = ("sub/.git", "sub/deeper/.git", "HEAD")
    problem = by_payload(box, box.run("E65-protected", *names, options=("--workspace", work)))
    made = [n for n in names if (work / n).exists() or (work / n).is_symlink()]
    return problem or (f"made on the host: {made}" if made else None)


@attempt("E65", "a protected name behind a path that changes", without="protect")
def e65_race(box):
    work = box.directory("w", 0o777)
    problem = by_payload(box, box.run("E65-race", ".envrc", options=("--workspace", work)))
    found = (work / ".envrc").exists() or (work / ".envrc").is_symlink()
    return problem or (".envrc exists on the host" if found else None)


@attempt("E66", "protected names in other letters", who=("root",), no_control="as E65")
def e66(box):
    work = box.directory("w", 0o777)
    script = f'mount -t tmpfs -o casefold,mode=0777 none "{work}" 2>&1'
    prefix = ("unshare", "-m", "--propagation", "private", "sh", "-c")
    if subprocess.run([*prefix, script], stdout=subprocess.DEVNULL).returncode != 0:
        raise Skip("no casefold")
    inner = f'{script} && mkdir "{work}/d" && chmod 777 "{work}/d" && chattr +F "{work}/d" && exec "$@"'
    names = (".GIT/hooks", ".Envrc", ".VSCODE", ".MCP.json")
    options = ("--workspace", work / "d")
    return by_payload(box, box.run("E65-protected", *names, options=options, prefix=(*prefix, inner, "sh")))

# ---- S3, S4, S6: what is kept and hidden, while the host works ---------------------------------


def replaced(box, name, text="by the host"):
    """As editors and git save: a new file, renamed over the old one."""
    box.file(f"{name}.new", text, mode=0o666)
    os.rename(box.dir / f"{name}.new", box.dir / name)


def made_again(box, name, text="by the host"):
    (box.dir / name).unlink()
    box.file(name, text, mode=0o666)


def backed_up(box, name, text="by the host"):
    os.rename(box.dir / name, box.dir / f"{name}~")
    box.file(name, text, mode=0o666)


def directory_replaced(box, name, text="by the host"):
    shutil.rmtree(box.dir / name)
    box.directory(name, 0o777)
    box.file(f"{name}/f", text, mode=0o666)


def directory_moved(box, name, inner):
    """The parent is moved, what was in it is replaced there, and there is a new one."""
    os.rename(box.dir / name, box.dir / f"{name}2")
    replaced(box, f"{name}2/{inner}")
    box.directory(name, 0o777)
    box.file(f"{name}/{inner}", "by the host", mode=0o666)


def hooks_replaced(box):
    os.rename(box.dir / "w/.git", box.dir / "w/.git2")
    directory_replaced(box, "w/.git2/hooks")


KEPT_WHILE = {
    "a protected file is renamed over": (lambda box: replaced(box, "w/.git/config"), (".git/config",)),
    "a protected file is removed and made again": (lambda box: made_again(box, "w/.envrc"), (".envrc",)),
    "a protected file is moved to a backup and made": (lambda box: backed_up(box, "w/.envrc"), (".envrc",)),
    "a protected file comes to be": (lambda box: box.file("w/.bashrc", "by the host", mode=0o666), (".bashrc",)),
    "a protected directory comes to be": (lambda box: box.file("w/.vscode/tasks.json", "x", mode=0o666), (".vscode", ".vscode/tasks.json")),
    "a protected directory is removed and made again": (lambda box: directory_replaced(box, "w/.git/hooks"), (".git/hooks", ".git/hooks/f")),
    "the directory above protected names is moved": (lambda box: directory_moved(box, "w/.git", "config"), (".git2/config", ".git2/hooks", ".git/config")),
    "... and they are replaced there": (hooks_replaced, (".git2/hooks", ".git2/hooks/f")),
    "what a protected link leads to is renamed over": (lambda box: replaced(box, "w/tools/claude"), ("tools/claude", ".mcp.json")),
    "a held file is renamed over": (lambda box: replaced(box, "w/deep/policy.json"), ("deep/policy.json",)),
    "a held file comes to be": (lambda box: box.file("w/deep/later.json", "x", mode=0o666), ("deep/later.json",)),
    "the directory above held files is moved": (lambda box: directory_moved(box, "w/deep", "policy.json"), ("deep2/policy.json", "deep2/later.json", "deep/policy.json")),
    "a read-only directory is removed and made again": (lambda box: directory_replaced(box, "w/ci/scripts"), ("ci/scripts", "ci/scripts/f")),
}


def kept_place(box):
    """A workspace with something of each kind that is kept, open to everyone as far as modes go."""
    work = box.directory("w", 0o777)
    for name in (".git", ".git/hooks", "tools", "deep", "ci", "ci/scripts"):
        box.directory(f"w/{name}", 0o777)
    for name in (".git/config", ".git/hooks/f", ".envrc", "tools/claude", "deep/policy.json", "ci/scripts/deploy"):
        box.file(f"w/{name}", GRANTED, mode=0o666)
    (work / ".mcp.json").symlink_to("tools/claude")
    return work, ("--hold", work / "deep/policy.json", "--hold", work / "deep/later.json", "--read", work / "ci/scripts")


def beside_host(box, case, deed, args, options):
    """Start the payload, do the deed on the host, and say go."""
    with box.start(case, *args, options=options) as process:
        deed(box)
        args[0].write_text("")
        out = process.communicate(timeout=30)[0]
    return by_payload(box, Result([], process.returncode, out, b"", 0))


def kept_while(title, deed, names):
    @attempt("S3", title, without="protect,landlock", caged_without="protect")
    def row(box):
        work, options = kept_place(box)
        args = (work / "go", work / "own", *(work / name for name in names))
        return beside_host(box, "S3-change", deed, args, ("--workspace", work, *options))


for _title, (_deed, _names) in KEPT_WHILE.items():
    kept_while(_title, _deed, _names)


@attempt("S3", "a protected file that is renamed over again and again", without="protect,landlock", caged_without="protect")
def s3_race(box):
    work, options = kept_place(box)
    stop = threading.Event()

    def write():
        while not stop.wait(0.001):
            replaced(box, "w/.git/config")

    thread = threading.Thread(target=write)
    try:
        return beside_host(box, "S3-race", lambda _: thread.start(), (work / "go", work / ".git/config"), ("--workspace", work, *options))
    finally:
        stop.set()
        thread.join()


@attempt("S3", "another name of what is kept", without="protect,landlock", caged_without="protect")
def s3_names(box):
    work, options = kept_place(box)
    for number, name in enumerate((".git/config", ".git/hooks/f", "deep/policy.json", "ci/scripts/deploy")):
        os.link(work / name, work / f"name{number}")
    args = (work / "go", *(work / f"name{number}" for number in range(4)))
    return beside_host(box, "S3-contents", lambda _: None, args, ("--workspace", work, *options))


@attempt("S6", "a held file in a writable tree that is no workspace", without="protect,landlock", caged_without="protect")
def s6_write(box):
    work, options = kept_place(box)
    args = (work / "go", work / "own", work / "deep/policy.json", work / "deep/later.json")
    return beside_host(box, "S3-change", lambda _: replaced(box, "w/deep/policy.json"), args, ("--write", work, *options))


HIDDEN_WHILE = {
    "a hidden file is renamed over": (lambda box: replaced(box, "d/.env", SECRET), (".env",)),
    "a hidden file is removed and made again": (lambda box: made_again(box, "d/.env", SECRET), (".env",)),
    "a hidden file is moved to a backup and made": (lambda box: backed_up(box, "d/.env", SECRET), (".env", ".env~")),
    "a hidden directory is removed and made again": (lambda box: directory_replaced(box, "d/sub/private", SECRET), ("sub/private", "sub/private/f")),
    "the directory above a hidden one is moved, and that replaced": (
        lambda box: (os.rename(box.dir / "d/sub", box.dir / "d/sub2"), directory_replaced(box, "d/sub2/private", SECRET)),
        ("sub2/private", "sub2/private/f"),
    ),
    "another name of a hidden file": (lambda box: os.link(box.dir / "d/.env", box.dir / "d/name"), ("name",)),
}


def hidden_place(box):
    box.directory("d", 0o777)
    box.file("d/open", GRANTED)
    box.file("d/.env", mode=0o666)
    box.directory("d/sub", 0o777)
    box.directory("d/sub/private", 0o777)
    box.file("d/sub/private/f", mode=0o666)
    return box.dir / "d"


def hidden_while(title, deed, names, writable):
    kind = "--workspace" if writable else "--read"
    control = {} if writable else {"caged_without": "landlock"}

    @attempt("S3", title + (" in a workspace" if writable else ""), without="hide,protect,landlock", **control)
    def row(box):
        place = hidden_place(box)
        go = box.dir / "d/go"
        options = (kind, place, "--hide", place / ".env", "--hide", place / "sub/private")
        args = (go, place / "open", *(place / name for name in names))
        return beside_host(box, "S3-read", deed, args, options)


for _title, (_deed, _names) in HIDDEN_WHILE.items():
    hidden_while(_title, _deed, _names, False)
    hidden_while(_title, _deed, _names, True)


@attempt("S3", "a hidden socket that is made again in a workspace", without="hide,protect,landlock")
def s3_socket(box):
    place = hidden_place(box)
    path = place / "s"
    listeners = []

    def listen():
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listeners.append(listener)
        listener.bind(str(path))
        listener.listen()
        path.chmod(0o777)
        harness.Scratch.own(path, box.user)

    listen()
    try:
        args = (place / "go", place / "open", path)
        return beside_host(box, "S3-read", lambda _: listen(), args, ("--workspace", place, "--hide", path))
    finally:
        for listener in listeners:
            listener.close()


S4_PLACES = {
    "a protected name that is a link": (".git/hooks", "../tools/hooks", "tools/hooks/pre-commit"),
    "... by an absolute path": (".git/hooks", "{work}/tools/hooks", "tools/hooks/pre-commit"),
    "... by several links": (".envrc", "one", "a/b/envrc"),
    "a read-only place two levels down": (None, None, "ci/deep/scripts/deploy"),
    "a held place two levels down": (None, None, "held/deep/file"),
}


def parents_of(title, name, target, place):
    @attempt("S4", title, without="protect,landlock", caged_without="protect")
    def row(box):
        work = box.directory("w", 0o777)
        box.directory("w/.git", 0o777)
        for part in reversed(pathlib.PurePath(place).parents[:-1]):
            box.directory(f"w/{part}", 0o777)
        kept = box.file(f"w/{place}", GRANTED, mode=0o666)
        if name:
            (work / name).symlink_to(target.format(work=work))
        if target == "one":
            (work / "one").symlink_to("a/two")
            (work / "a/two").symlink_to("b/envrc")
        options = ("--workspace", work, "--read", work / "ci/deep/scripts") if place.startswith("ci/") else ("--workspace", work)
        options += ("--hold", work / "held/deep/file")
        links = [work / n for n in (name, "one" if target == "one" else None, "a/two" if target == "one" else None) if n]
        problem = by_payload(box, box.run("S4-parents", work, kept, *links, options=options))
        found = work / (name or place) / ("pre-commit" if name == ".git/hooks" else "")
        return problem or (None if found.exists() and GRANTED in found.read_text() else "the host finds another file")


for _title, (_name, _target, _place) in S4_PLACES.items():
    parents_of(_title, _name, _target, _place)


@attempt("E71", "hidden places inside granted ones", without="root,hide")
def e71(box):
    box.file("d/open", GRANTED)
    box.file("d/private")
    box.file("d/a/x")
    box.file("d/a/b/y", GRANTED)
    box.file("d/a/b/c/z")
    base = box.dir / "d"
    options = ("--read", base, "--hide", base / "private", "--hide", base / "a")
    options += ("--read", base / "a/b", "--hide", base / "a/b/c")
    views = ("+open", "-private", "-a/x", "+a/b/y", "-a/b/c/z")
    args = [f"{v[0]}{base}/{v[1:]}" for v in views]
    return by_payload(box, box.run("E71-view", *args, options=options))


@attempt("E72", "a hidden place as scratch space", without="root,protect,hide")
def e72(box):
    work = box.directory("w", 0o777)
    hidden = box.directory("w/private", 0o777)
    box.file("w/private/f", mode=0o666)
    options = ("--workspace", work, "--hide", hidden)
    problem = by_payload(box, box.run("E72-hidden-writable", hidden, options=options))
    left = [n for n in os.listdir(hidden) if n != "f"]
    return problem or (f"made on the host: {left}" if left else None)


@attempt("E73", "what stat and inotify tell of a hidden file", without="root")
def e73(box):
    box.file("d/open", GRANTED)
    hidden = box.file("d/private", SECRET * 7, mode=0o666)
    info = os.stat(hidden)
    stop = threading.Event()

    def write():
        while not stop.wait(0.05):
            with open(hidden, "r+") as stream:
                stream.write(SECRET)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        args = (hidden, str(info.st_size), str(info.st_ino))
        options = ("--read", box.dir / "d", "--hide", hidden)
        return by_payload(box, box.run("E73-metadata", *args, options=options))
    finally:
        stop.set()
        thread.join()


@attempt("E76", "odd names in paths", no_control="names, no fence")
def e76(box):
    policy = box.dir / "policy.json"
    for name in ("a,b", "a:b", "a\nb", "a\\b", "a=b,ro", "a b", "%s%n", "-x", "\u00fc", "x" * 250):
        place = box.dir / name
        place.mkdir()
        (place / "f").write_text(GRANTED)
        harness.Scratch.own(place, box.user)
        text = {"files": {"read": [str(place), {"host": str(place), "box": f"/in/{name}"}, box.bin]}}
        policy.write_text(json.dumps(text))
        policy.chmod(0o644)
        args = (f"+{place}/f", f"+/in/{name}/f")
        problem = by_payload(box, box.run("E71-view", *args, options=("--policy", policy)))
        if problem:
            return f"{name!r}: {problem}"
    deep = "/".join(["d"] * 5000)
    for options in (
        ("--read", f"/{deep}"),
        ("--read", "/" + "x" * 5000),
        ("--workspace", f"{box.dir}/{'y' * 300}"),
        ("--tmpfs", f"/{deep}"),
        ("--read", "relative\0name"[:8]),
    ):
        result = box.run("exit", "0", options=options)
        if result.code != 125 or not (result.report or {}).get("error"):
            return f"{one(options)}: {result.brief()}"
    return None


def one(value):
    return harness.one_line(str(value), 80)


@attempt("E76", "options of mount in a tmpfs path", no_control="names, no fence")
def e76_tmpfs(box):
    """A comma in the path stays a part of the path; the size stays the size."""
    program = ["/bin/sh", "-c", 'df -B1 --output=size "$0" | tail -1', "/s,size=512M"]
    result = box.run("", program=program, options=("--tmpfs", "/s,size=512M=8M"))
    if result.code == 125:
        return None
    return None if result.stdout.split() == [str(8 << 20)] else f"the size: {result.brief()}"


@attempt("E77", "arguments that look like options", no_control="parsing, no fence")
def e77(box):
    given = ("--net", "host", "--workspace", "/", "--json", "-t")
    problem = by_payload(box, box.run("E77-arguments", *given))
    if problem:
        return problem
    # without the "--" that ends callbox's options
    command = [c for c in box.command(("E77-arguments", *given), ("--timeout", "5")) if c != "--"]
    if box.user and harness.ROOT:  # setpriv wants its own
        command.insert(command.index("run") - 1 - 2 * FORKED, "--")
    result = harness.execute(command, cwd=Tools.empty)
    result.report = harness.parse_report(result.out)
    problem = by_payload(box, result)
    if problem:
        return f"without --: {problem}"
    for name in ("--json", "--net=host", "-t", "--help", "--version"):
        result = box.run("", program=[name])
        if result.code != 127 or result.reason != "setup":
            return f"program {name}: {result.brief()}"
    return None


attack("E78", "starts programs by other roads", "E78-other-roads", without="syscalls,privileges")


def left_and_found(box):
    """Two boxes at a time: one leaves things, the other looks for them."""
    name = f"cbx-{secrets.token_hex(5)}"
    key = str(0x40000000 + secrets.randbelow(1 << 29))
    with box.start("O159-leave", name, key):
        return by_payload(box, box.run("O159-find", name, key))


attack(
    "E79",
    "/tmp and /dev/shm of another box",
    attempt=left_and_found,
    without="root",
    alone=True,
)


@attempt("E80", "what many calls leave on the host", no_control="it would litter the host", alone=True)
def e80(box):
    runs = int(os.environ.get("CALLBOX_ATTACK_RUNS", "40" if QUICK else "150"))
    work = box.directory("w", 0o777)
    before = harness.HostState([box.dir])
    marks = (Tools.mark,)
    for i in range(runs):
        options = ("--workspace", work) if i % 3 == 0 else ()
        if i % 25 == 1:
            result = box.run("A2-deaf", "3000", options=("--timeout", "0.05", *options))
            check(result.reason == "timeout", result.brief)
        elif i % 25 == 2:
            with box.start("A9-wait-for-kill", options=options) as process:
                os.kill(process.pid, signal.SIGKILL)
        elif i % 25 == 3:
            with box.start("A9-wait-for-kill", options=options) as process:
                process.terminate()
                time.sleep(0.05)
                process.terminate()  # the first one is passed on, the second ends the call
                process.wait(timeout=10)
        elif i % 25 == 4:
            result = box.run("", program=["/nonexistent/program"], options=options)
            check(result.code == 127, result.brief)
        elif i % 25 == 5:
            result = box.run("exit", "0", options=("--workspace", "/nonexistent"))
            check(result.code == 125, result.brief)
        else:
            result = box.run("exit", str(i % 100), options=options)
            check(result.report["code"] == i % 100, result.brief)
    found = []

    def clean():
        found[:] = before.diff(harness.HostState([box.dir]), marks)
        return not found

    wait_until(clean, 3, pause=0.1)
    return "; ".join(found) or None


# ---- F. /proc, /sys, /dev ----------------------------------------------------------------------

attack("F81", "pids of the host", "F81-pids", without="pid,root,watch")
attack("F82", "settings of the kernel", "F82-kernel-settings", caged_without="landlock", without="readonly,masks,landlock")
attack("F83", "files of /proc and /sys that tell too much", "F83-masked", without="masks,root")
attack("F85", "its own ids and attributes", "F85-self", without="readonly,masks,landlock")
attack("F87", "devices", "F87-devices", without="root")
attack("F89", "writes to /sys", "F89-sys", without="root")

# ---- G. Namespaces and privilege ---------------------------------------------------------------

attack("G90", "new namespaces", "G90-namespaces", without="syscalls,privileges")
attack("G91", "enters namespaces", "G91-setns", judge=denied("setns"), without="syscalls,privileges")
attack("G92", "root inside, then mounts", "G92-root-inside", without="syscalls,privileges,landlock")
attack("G93", "capabilities, no_new_privs, securebits", "G93-capabilities", without="privileges")
attack("G95", "limits of namespaces", "G95-settings", without="readonly,masks,privileges,landlock")


@attempt("G98", "IPC objects and abstract sockets of the host", without="net,ipc,landlock", alone=True)
def g98(box):
    libc = ctypes.CDLL(None, use_errno=True)
    name = f"cbx-{secrets.token_hex(5)}"
    key = 0x40000000 + secrets.randbelow(1 << 29)
    listener = socket.socket(socket.AF_UNIX)
    shm = libc.shmget(key, 4096, 0o1666)
    try:
        listener.bind("\0" + name)
        listener.listen(8)
        check(shm >= 0, "no shared memory on the host")
        return by_payload(box, box.run("G98-ipc", name, str(key), "/" + name))
    finally:
        listener.close()
        libc.shmctl(shm, 0, None)  # IPC_RMID


@attempt("G99", "sets the host's name", without="syscalls,privileges")
def g99(box):
    before = socket.gethostname()
    problem = by_payload(box, box.run("G99-hostname"))
    after = socket.gethostname()
    return problem or (f"the host is called {after} now" if after != before else None)


attack(
    "G100",
    "sets the clock",
    "G100-clock",
    judge=denied("clock_settime", "settimeofday", "adjtimex", "clock_adjtime"),
    without="syscalls",
)

# ---- H. The ABI of seccomp ---------------------------------------------------------------------

attack(
    "H101",
    "x32 numbers",
    "H101-x32",
    no_control="a kernel without x32 answers ENOSYS by itself",
)
attack("H102", "32-bit entries and programs", "H102-entry32", without="syscalls")
attack("H103", "multiplexed 32-bit calls", "H103-multiplexers", without="syscalls")
attack("H105", "clone3", "H105-clone3", without="syscalls")
attack(
    "H107",
    "numbers of the future",
    "H107-unknown",
    no_control="the kernel answers ENOSYS by itself",
)
attack("H109", "the filter after exec, fork, threads, setuid", "H109-survives", without="syscalls")
attack("H110", "a denied call gives EPERM", "H110-denied", judge=denied("ptrace"), without="syscalls")
attack(
    "H110",
    "a denied call ends the call where the policy says so",
    "H110-denied",
    options=("--on-denied", "kill"),
    judge=ended_by("denied"),
    without="syscalls",
)
attack(
    "H110",
    "a call that the policy denies",
    "H110-deny-more",
    options=("--deny-syscall", "sysinfo"),
    judge=denied("sysinfo"),
    without="syscalls",
)
attack(
    "H110",
    "a call that the policy allows",
    "H110-denied",
    args=("ESRCH",),
    options=("--allow-syscall", "ptrace"),
    control_options=(),
)

# ---- I. The surface of system calls ------------------------------------------------------------

attack(
    "I111",
    "io_uring",
    "I111-io-uring",
    judge=denied("io_uring_setup", "io_uring_enter", "io_uring_register"),
    without="syscalls",
)
attack(
    "I112",
    "dangerous calls",
    "I112-dangerous",
    judge=denied(
        "bpf", "perf_event_open", "userfaultfd", "kexec_load", "init_module", "finit_module",
        "delete_module", "keyctl", "add_key", "request_key", "ptrace", "process_vm_readv",
        "process_vm_writev", "kcmp", "pidfd_getfd", "process_madvise", "quotactl", "acct",
        "swapon", "swapoff", "reboot", "syslog", "open_by_handle_at", "fanotify_init",
    ),
    without="syscalls,privileges",
)  # fmt: skip
attack(
    "I113",
    "the mount calls, old and new",
    "I113-mount-api",
    judge=denied(
        "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr",
        "mount", "umount2", "pivot_root",
    ),
    without="syscalls,privileges",
)  # fmt: skip
attack("I114", "personalities", "I114-personality", without="syscalls")
attack("I115", "calls of the architecture", "I115-arch", without="syscalls")
attack(
    "I116",
    "filters of its own on top",
    "I116-own-filters",
    without="syscalls",
)
attack("I116", "calls that are allowed weaken nothing", "I116-harmless", without="syscalls")

# ---- J. Sockets and network --------------------------------------------------------------------

attack("J118", "socket families", "J118-families", control_args=("16",), without="syscalls")


@contextlib.contextmanager
def host_listener(kind=socket.SOCK_STREAM, address="127.0.0.1"):
    with socket.socket(socket.AF_INET, kind) as listener:
        listener.bind((address, 0))
        if kind == socket.SOCK_STREAM:
            listener.listen(32)
        yield listener


def host_addresses():
    """Addresses of the host itself beside loopback."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))  # asks for a route, sends nothing
            return [probe.getsockname()[0]]
    except OSError:
        return []


@attempt("J120", "services of the host without a network", without="net,landlock")
def j120(box):
    with host_listener(address="0.0.0.0") as listener:
        port = listener.getsockname()[1]
        return by_payload(box, box.run("J120-reach", str(port), *host_addresses()))


@attempt("J120", "services of the host with a private loopback", without="net,landlock")
def j120_loopback(box):
    with host_listener(address="0.0.0.0") as listener:
        port = listener.getsockname()[1]
        args = ("J120-private-loopback", str(port), *host_addresses())
        return by_payload(box, box.run(*args, options=("--net", "loopback")))


@contextlib.contextmanager
def unix_listener(path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        os.chmod(path, 0o777)
        listener.listen(32)
        yield listener


@attempt("J121", "UNIX sockets of the host", without="root")
def j121(box):
    with unix_listener(box.directory("s", 0o777) / "agent.sock") as listener:
        return by_payload(box, box.run("J121-unix", listener.getsockname()))


@attempt("J121", "a UNIX socket in a read-only grant", without="root")
def j121_bind(box):
    place = box.directory("s", 0o777)
    with unix_listener(place / "agent.sock") as listener:
        return by_payload(box, box.run("J121-unix", listener.getsockname(), options=("--read", place)))


@attempt("J121", "a datagram to a read-only grant, where the policy allows sockets", without="syscalls,landlock")
def j121_datagram(box):
    place = box.directory("s", 0o777)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(place / "log.sock"))
        os.chmod(place / "log.sock", 0o777)
        options = ("--read", place, "--allow-syscall", "socket", "--allow-syscall", "socketpair", *(("--net", "host") if LANDLOCK else ()))
        return by_payload(box, box.run("J121-datagram", place / "log.sock", options=options))


@attempt("J121", "UNIX sockets of the host, with its network", no_control="as J121 above: the network is no fence around paths")
def j121_online(box):
    place, work = box.directory("s", 0o777), box.directory("w")
    with unix_listener(place / "agent.sock") as listener:
        options = ("--net", "host", "--read", place, "--workspace", work)
        return by_payload(box, box.run("J121-unix", listener.getsockname(), options=options))


attack("J125", "netlink families", "J125-netlink", without="syscalls")
attack("J126", "administers its network", "J126-administer", without="syscalls,privileges")


@attempt("J127", "a port opened in the box", without="net,landlock")
def j127(box):
    with host_listener() as probe:
        port = probe.getsockname()[1]
    with box.start("J127-bind", str(port), "1500"):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            return None
        return "the host reaches a port of the box"


# ---- L. The notifier ---------------------------------------------------------------------------


@attempt("L139", "a path that changes while it is looked at", without="root")
def l139(box):
    granted, secret = box.file("d/granted", GRANTED), box.file("secret")
    options = ("--read", granted.parent, "--explain")
    return by_payload(box, box.run("L139-rewrite", granted, secret, options=options))


def children_of(pid):
    with contextlib.suppress(OSError):
        return [int(c) for c in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


@attempt("L140", "init is stopped, then killed, while a call is held", without="syscalls", alone=True)
def l140(box):
    with box.start("L140-insist") as process:
        children = children_of(process.pid)
        if not children:
            out = process.communicate(timeout=10)[0].decode()
            return out if "BROKEN" in out else None
        init = children[0]
        with contextlib.suppress(ProcessLookupError):  # in the control it is over by now
            time.sleep(0.2)
            os.kill(init, signal.SIGSTOP)
            time.sleep(0.3)
            os.kill(init, signal.SIGKILL)
        out, err = process.communicate(timeout=10)
        if b"BROKEN" in out:
            return out.decode()
        left = box.survivors()
        if left:
            return f"{len(left)} processes outlive init"
        return None if process.returncode else "exit 0 after init was killed"


def coalesced(box, result):
    problem = ended_by("timeout", within=1)(box, result)
    record = result.denial("mount")
    if problem:
        return problem
    if FILTERED:
        raise Skip("refused before it could be counted")
    if not record or record["count"] < 100:
        return f"no record of the flood: {result.report['denials']}"
    return None if len(result.report["denials"]) < 5 else "one record for each call"


attack(
    "L142",
    "a flood of refused calls",
    "L142-flood",
    options=("--timeout", "1"),
    judge=coalesced,
    without="syscalls",
    alone=True,
)
attack(
    "L143",
    "signals during calls",
    "L143-interrupted",
    no_control="never trapping close and fork is a choice of the filter, not a fence",
)

# ---- M. The result -----------------------------------------------------------------------------


@attempt("M145", "a forged report on every descriptor", no_control="no fence: there is no such descriptor")
def m145(box):
    result = box.run("M145-forge")
    report = result.report
    if report["reason"] != "exited" or report["code"] != 5 or result.code != 5:
        return f"the report was forged: {result.brief()}"
    return None if '"forged"' in report["stdout"]["text"] else "the output is lost"


@attempt("M146", "exit codes that look like ends by callbox", no_control="no fence")
def m146(box):
    for code in (124, 125, 126, 127, 137, 143, 255):
        result = box.run("exit", str(code))
        if result.reason != "exited" or result.report["code"] != code or result.code != code:
            return f"exit {code}: {result.brief()}"
    return None


@attempt("M150", "200 calls at a time", no_control="no fence", alone=True)
def m150(box):
    count = 60 if QUICK else 200
    running = []
    for i in range(count):
        command = box.command(("echo", f"call-{i}-{box.token}"), ("--timeout", "60"))
        running.append(
            subprocess.Popen(
                command, cwd=Tools.empty, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )  # fmt: skip
        )
    problem = None
    for i, process in enumerate(running):
        out, err = process.communicate(timeout=90)
        report = harness.parse_report(out) or {}
        text = report.get("stdout", {}).get("text")
        if problem is None and text != f"call-{i}-{box.token}\n":
            problem = f"call {i}: {one(out[:300])} {one(err[:200])}"
    return problem or (f"{left} are left" if (left := box.survivors(3)) else None)


# ---- O. Between boxes --------------------------------------------------------------------------

attack(
    "O159",
    "IPC between two boxes",
    attempt=left_and_found,
    without="ipc,net,landlock",
    alone=True,
)

# ---- Q. Environment ----------------------------------------------------------------------------

SAFE_NAMES = set("PATH HOME USER LOGNAME LANG LC_ALL LC_CTYPE TERM TMPDIR TZ SHELL PWD".split())
HOSTILE = {
    "API_TOKEN": SECRET, "OPENAI_API_KEY": SECRET, "AWS_SECRET_ACCESS_KEY": SECRET,
    "SSH_AUTH_SOCK": "/tmp/x", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/x", "XDG_RUNTIME_DIR": "/x",
    "LD_BIND_NOW": "1", "LD_LIBRARY_PATH": "/nonexistent", "PYTHONPATH": "/x", "NODE_OPTIONS": "-x",
    "BASH_ENV": "/x", "ENV": "/x", "GIT_SSH_COMMAND": "x", "PERL5LIB": "/x", "PERL5OPT": "-x",
    "http_proxy": "http://user:pass@x", "HTTPS_PROXY": "http://x", "ATTACK_SECRET": SECRET,
    "GLIBC_TUNABLES": "glibc.malloc.check=0", "MALLOC_CHECK_": "0", "IFS": "x", "CDPATH": "/",
    "BASH_FUNC_ls%%": "() { echo pwned; }", "odd name": "x", "SHELLOPTS": "xtrace",
}  # fmt: skip


@attempt("Q165", "the caller's environment", without="environment")
def q165(box):
    env = dict(os.environ, **HOSTILE)
    text = box.run("Q165-environment", env=env).stdout
    names = {line.split("=", 1)[0] for line in text.splitlines() if "=" in line}
    check("PATH" in names, f"no environment at all: {text!r}")
    extra = names - SAFE_NAMES - ({"GIT_CONFIG_NOSYSTEM"} if LANDLOCK else set())
    if extra or SECRET in text:
        return f"passed on: {sorted(extra)}"
    return None


@attempt("Q167", "arguments and environment of callbox by /proc", without="pid,root,landlock,watch")
def q167(box):
    marker = f"mark{secrets.token_hex(6)}"
    hidden = box.file(f"{marker}/private")
    options = ("--read", hidden.parent, "--hide", hidden)
    env = dict(os.environ, ATTACK_SECRET=marker)
    return by_payload(box, box.run("Q167-arguments", marker[::-1], options=options, env=env))


# ---- R. Degradation and truth ------------------------------------------------------------------


def whole_or_refused(box, result):
    """Either every fence stands, and the report says so, or the call is refused with a reason."""
    report = result.report
    if report is None:
        return f"no report: {result.brief()}"
    if result.code == 125:
        error = report.get("error") or {}
        if report["reason"] != "setup" or not error.get("text"):
            return f"refused without a reason: {result.brief()}"
        return "the payload ran" if report.get("stdout", {}).get("text") else None
    problem = by_payload(box, result)
    if problem:
        return problem
    needed = {"tree-kill", "files", "network", "syscalls", "privileges", "environment", "memory", "pids"}
    false = [n for n in needed if not (result.guarantee(n) or {}).get("enforced")]
    return f"ran without {', '.join(false)}" if false else None


CAGES = (
    "container no-namespaces no-mount-api no-openat2 no-clone3 no-pidfd no-close-range no-landlock"
    " no-seccomp no-setsid no-prlimit no-capset no-sethostname"
).split()


@attempt("R168", "hosts that lack what a box needs", no_control="the cage is the control")
def r168(box):
    problems = []
    env = dict(os.environ, ATTACK_SECRET=SECRET)
    for cage in CAGES:
        prefix = (Tools.payload, "cage", box.token, cage)
        try:
            result = box.run("R169-fences", prefix=prefix, env=env, options=("--timeout", "4"), timeout=8)
        except Failed as failure:
            problems.append(f"{cage}: {one(failure)}")
            continue
        problem = whole_or_refused(box, result)
        landlock = result.guarantee("landlock")
        if cage == "no-landlock" and landlock and landlock["enforced"]:
            problem = "landlock is said to be enforced"
        if problem:
            problems.append(f"{cage}: {problem}")
    for name, script in () if not NESTS else (
        ("user namespaces off", 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"'),
        ("root of a user namespace", 'exec "$@"'),
    ):
        prefix = ("unshare", "-Ur", "sh", "-c", script, "sh")
        problem = whole_or_refused(box, box.run("R169-fences", prefix=prefix, env=env))
        if problem:
            problems.append(f"{name}: {problem}")
    return "; ".join(problems) or None


@attempt("R168", "a caller with few descriptors and other tight limits", no_control="limits, no fence")
def r168_limits(box):
    problems = []
    env = dict(os.environ, ATTACK_SECRET=SECRET)
    limits = [f"--nofile={n}" for n in range(3, 40)] + ["--fsize=0", "--nproc=1", "--as=60000000"]
    limits += ["--data=4000000", "--stack=131072", "--memlock=0", "--msgqueue=0", "--sigpending=0"]
    for limit in limits:
        result = box.run("R169-fences", prefix=("prlimit", limit), env=env)
        if result.report is None and result.code in (125, 126, 127):
            continue  # prlimit itself, or no descriptor for the report
        problem = whole_or_refused(box, result)
        if problem:
            problems.append(f"{limit}: {problem}")
    return "; ".join(problems) or None


@attempt("R169", "the report against a probe", without="syscalls,privileges")
def r169(box):
    result = box.run("R169-fences", env=dict(os.environ, ATTACK_SECRET=SECRET))
    names = [g["name"] for g in result.report["guarantees"]]
    all_names = "tree-kill files network syscalls privileges environment memory pids cpu landlock cgroup"
    if set(names) != set(all_names.split()) or len(names) != len(set(names)):
        return f"the guarantees are {names}"
    if not all(g["by"] for g in result.report["guarantees"]):
        return "a guarantee does not say by what"
    return whole_or_refused(box, result)


# Calls of the C library's own start; a program that cannot make them may die of it.
START_CALLS = set("brk mmap munmap mprotect arch_prctl set_tid_address set_robust_list rseq".split())
NEVER = set("execve exit exit_group rt_sigreturn restart_syscall vfork fork".split())
# strace turns a failed call into number -1, which the filter hands to init: a wait for each other that
# no real failure makes.
NEVER |= set("sendmsg futex wait4 rt_sigprocmask rt_sigaction getpid getuid geteuid getgid getegid gettid getppid".split())
# What a call may really fail with, where that is not EPERM; those that wait are interrupted.
ERRORS = {"mmap": "ENOMEM", "clone3": "EAGAIN", "clone": "EAGAIN", "dup3": "EMFILE", "pipe2": "EMFILE",
          "socketpair": "EMFILE", "openat": "EMFILE", "openat2": "EMFILE", "close": "EIO",
          "sendmsg": "ENOMEM", "epoll_ctl": "ENOSPC", "epoll_create1": "EMFILE", "read": "EINTR",
          "write": "EINTR", "recvmsg": "EINTR", "recvfrom": "EINTR", "poll": "EINTR",
          "ppoll": "EINTR", "epoll_wait": "EINTR", "epoll_pwait": "EINTR", "wait4": "EINTR",
          "waitid": "EINTR"}  # fmt: skip


def calls_of_set_up(box):
    """The system calls between the start of callbox and that of the payload, with their number
    in the process that makes the most of each."""
    log = box.directory("log", 0o777) / "trace"
    options = ("--workspace", box.directory("w", 0o777))
    trace = ("strace", "-f", "-qq", "-o", str(log))
    result = box.run("R169-fences", options=options, prefix=trace, timeout=30)
    if by_payload(box, result):
        raise Untried(result.brief())
    counts, running = {}, set()
    for line in log.read_text(errors="replace").splitlines():
        found = re.match(r"(\d+) +(\w+)\(", line)
        if not found:
            continue
        pid, name = found.groups()
        if name == "execve" and f'execve("{Tools.payload}"' in line:
            running.add(pid)
        if pid not in running and name not in NEVER:
            counts[(name, pid)] = counts.get((name, pid), 0) + 1
    most = {}
    for (name, _), count in counts.items():
        most[name] = max(most.get(name, 0), count)
    return most


@attempt(
    "R170",
    "each step of the set-up fails once",
    no_control="the fault is the control: without it the payload runs",
    alone=True,
)
def r170(box):
    if not shutil.which("strace"):
        raise Skip("strace is not installed")
    problems, tried, hung = [], 0, []
    options = ("--workspace", box.dir / "w")
    env = dict(os.environ, ATTACK_SECRET=SECRET)
    jobs = []
    for name, count in sorted(calls_of_set_up(box).items()):
        places = {1, 2, 3, count // 2, count} if not QUICK else {1, count}
        jobs += [(name, when) for when in sorted(places) if 0 < when <= count]
    before = harness.HostState([box.dir / "w"])

    def inject(job):
        name, when = job
        fault = f"inject={name}:error={ERRORS.get(name, 'EPERM')}:when={when}"
        prefix = ("strace", "-f", "-qq", "-o", "/dev/null", "-e", fault)
        try:
            result = box.run(
                "R169-fences", options=("--timeout", "4", *options), prefix=prefix, timeout=10, env=env
            )
        except Failed:
            hung.append(job)
            return f"{name} {when}: no answer"
        ran = "HELD" in result.out.decode("utf-8", "replace")
        if "BROKEN" in result.out.decode("utf-8", "replace"):
            return f"{name} {when}: {result.brief()}"
        if name in START_CALLS and not ran:
            return None
        if result.report is None:
            if ran or result.code == 0:
                return f"{name} {when}: {result.brief()}"
            said = result.err.strip() and result.code == 125
            return None if said else f"{name} {when}: no word, {result.brief()}"
        if result.code == 125:
            error = result.report.get("error") or {}
            return None if error.get("text") else f"{name} {when}: no reason, {result.brief()}"
        if result.reason == "exited" and (ran or result.report["code"] == 3):
            return None  # the call was of no consequence, or the payload itself was hit
        if LANDLOCK and name == "write" and result.reason == "exited":
            return None  # nothing of the set-up depends on the first one, so it was the payload's
        if name == "ioctl" and result.reason == "timeout":
            return None  # an answer of the notifier was lost: the caller waits until the deadline
        return f"{name} {when}: {result.brief()}"

    with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
        for outcome in pool.map(inject, jobs):
            tried += 1
            if outcome:
                problems.append(outcome)
    left = []
    if hung:  # what these leave is told by them
        harness.kill_marked(Tools.mark)
    if LANDLOCK:  # whose removal failed goes with the next
        problem = by_payload(box, box.run("R169-fences", options=options))
        problems += [problem] if problem else []

    def clean():
        left[:] = before.diff(harness.HostState([box.dir / "w"]), (Tools.mark,))
        left[:] = [l for l in left if not l.startswith("descriptors")]
        return not left

    wait_until(clean, 3, pause=0.1)
    problems += left
    check(tried > 20, f"only {tried} faults could be tried")
    return "; ".join(problems) or None


# ---- X. Beyond the list ------------------------------------------------------------------------


@attempt("X1", "reopens stdin for writing", no_control="no fence: stdin is never the caller's file")
def x1(box):
    given = box.file("input", mode=0o666)
    problem = by_payload(box, box.run("X1-stdin-reopen", options=("--stdin", given)))
    if problem:
        return f"--stdin: {problem}"
    with open(given, "rb") as stream:
        problem = by_payload(box, box.run("X1-stdin-reopen", stdin=stream))
    return f"redirected: {problem}" if problem else None


@attempt("X2", "a directory of the host as stdin", no_control="no fence: stdin is passed by a pipe")
def x2(box):
    box.file("secret")
    place = box.directory("place")
    fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY)
    try:
        result = box.run("X2-stdin-directory", "../secret", stdin=fd)
    finally:
        os.close(fd)
    return None if result.code == 125 else by_payload(box, result)


@attempt("X3", "reads back the file that stdout goes to", no_control="no fence: output is passed by a pipe")
def x3(box):
    log = box.file("log", mode=0o666)
    with open(log, "a+b") as stream:
        result = box.run("X3-stdout-file", mode=("-q",), stdout=stream, stderr=subprocess.PIPE)
    if SECRET not in log.read_text():
        return "the older content of the log is gone"
    return None if result.code == 0 else f"exit {result.code}"


@attempt("X4", "a socket of the host as stdin", no_control="no fence: stdin is passed by a pipe")
def x4(box):
    with host_listener(socket.SOCK_DGRAM) as listener, host_listener(socket.SOCK_DGRAM) as given:
        port = str(listener.getsockname()[1])
        problem = by_payload(box, box.run("X4-stdin-socket", port, stdin=given.fileno()))
        got = select.select([listener], [], [], 0.1)[0]
        return "a datagram left the box" if got else problem


attack("X5", "limits and priority of init", "X5-limit-init", without="syscalls")
attack(
    "X5",
    "limits of init, where the policy names the call",
    "X5-limit-init",
    options=("--allow-syscall", "prlimit64"),
    no_control="as X5 above",
)
attack(
    "X6",
    "starves init before the deadline",
    "X6-starve-init",
    args=("6000",),
    options=("--timeout", "1"),
    judge=ended_by("timeout", within=1),
    without="deadline",
    alone=True,
)
attack(
    "X7",
    "memory and descriptors of init by /proc",
    "X7-init-memory",
    no_control="init is closed to others (PR_SET_DUMPABLE) in the test build too",
)


@attempt("X9", "callbox inside a box", no_control="no fence")
def x9(box):
    inner = [Tools.callbox, "run", "--json", "--", Tools.payload, "R169-fences", box.token]
    result = box.run("", program=inner)
    if result.reason != "exited" or result.report["code"] != 125:
        return f"the inner callbox: {result.brief()}"
    return None


@attempt("X10", "its directory is moved out of the workspace", without="root,protect")
def x10(box):
    work = box.directory("w", 0o777)
    box.directory("w/in", 0o777)
    away = box.directory("away", 0o777)
    secret = box.file("secret")
    options = ("--workspace", work)
    with box.start("X10-moved-out", work / "in", "../../secret", options=options) as process:
        os.rename(work / "in", away / "in")
        out = process.communicate(timeout=10)[0]
        check(secret.exists(), "the secret is gone")
    return by_payload(box, Result([], process.returncode, out, b"", 0))


@attempt("X11", "the workspace is swapped for a link while it is used", without="root,protect")
def x11(box):
    work = box.directory("w", 0o777)
    box.file("w/name", GRANTED)
    elsewhere = box.file("elsewhere/name").parent
    with box.start("X11-swapped", "name", work / "name", options=("--workspace", work)) as process:
        os.rename(work, box.dir / "was")
        os.symlink(elsewhere, work)
        out = process.communicate(timeout=10)[0]
    return by_payload(box, Result([], process.returncode, out, b"", 0))


@attempt("X12", "everything but the content of a read-only file", without="readonly,landlock")
def x12(box):
    box.directory("d", 0o777)
    given = box.file("d/file", mode=0o666)
    before = os.stat(given)
    options = ("--read", given.parent)
    problem = by_payload(box, box.run("X12-read-only-metadata", given, options=options))
    after = os.stat(given)
    same = (before.st_mode, before.st_mtime_ns, before.st_ctime_ns) == (
        after.st_mode, after.st_mtime_ns, after.st_ctime_ns)  # fmt: skip
    return problem or (None if same else "the file was changed")


@attempt("X13", "set-id programs left in the workspace", without="syscalls")
def x13(box):
    # Who looks at the calls differs: init in a guarded box and with --explain, else the filter alone.
    for number, options in enumerate((("--workspace",), ("--write",), ("--explain", "--workspace"), ("--explain", "--write"))):
        work = box.directory(f"w{number}", 0o777)
        problem = by_payload(box, box.run("X13-set-id", options=(*options, work, "--cwd", work)))
        for name in os.listdir(work):
            info = os.lstat(work / name)
            if info.st_mode & (stat.S_ISUID | stat.S_ISGID):
                return f"{options}: {name} has mode {info.st_mode & 0o7777:o} and owner {info.st_uid} on the host"
        if problem:
            return f"{options}: {problem}"
    return None


@attempt("X14", "flags of the caller's pipes", no_control="no fence: they are not the caller's pipes")
def x14(box):
    read_in, write_in = os.pipe()
    read_out, write_out = os.pipe()
    try:
        before = [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in (read_in, write_out)]
        process = subprocess.Popen(
            box.command(("X14-nonblock",), ("--timeout", "5"), mode=("-q",)),
            stdin=read_in, stdout=write_out, stderr=write_out, cwd=Tools.empty,
        )  # fmt: skip
        os.close(write_in)
        write_in = -1
        code = process.wait(timeout=10)
        after = [fcntl.fcntl(fd, fcntl.F_GETFL) for fd in (read_in, write_out)]
        check(code == 0, f"exit {code}")
        return None if before == after else f"flags were {before}, are {after}"
    finally:
        for fd in (read_in, write_in, read_out, write_out):
            if fd >= 0:
                os.close(fd)


@attempt(
    "X15",
    "signals to the caller's process group",
    without="session,landlock",
    control_who=("user",),
)
def x15(box):
    script = 'trap "echo HIT" WINCH; "$@" >/dev/null; sleep 0.05; :'
    prefix = ("setsid", "-w", "sh", "-c", script, "sh")
    result = box.run("X15-group-signal", mode=("-q",), prefix=prefix)
    return "a process of the caller got a signal" if b"HIT" in result.out else None


@attempt("X16", "main's first thread ends before the others", no_control="no fence")
def x16(box):
    result = box.run("X16-leader-exit")
    return None if result.report["code"] == 9 else f"9 was to be the code: {result.brief()}"


@attempt("X17", "exec from another thread", no_control="no fence")
def x17(box):
    result = box.run("X17-thread-exec")
    return None if result.report["code"] == 9 else f"9 was to be the code: {result.brief()}"


@attempt("X18", "denials of 20000 kinds", no_control="a bound on the report, no fence")
def x18(box):
    result = box.run("X18-many-denials", "20000", timeout=30)
    check(result.reason == "exited", result.brief)
    if len(result.report["denials"]) > 1000 or len(result.out) > 1 << 20:
        return f"{len(result.report['denials'])} denials, {len(result.out)} bytes of report"
    return None


@attempt("X19", "paths that forge lines in what --explain tells", no_control="text, no fence")
def x19(box):
    place = box.directory("hidden")
    names = [f"{place}/a\x1b]0;pwned\x07b", f"{place}/c\ncallbox: all is well", f"{place}/\udcff\udcfe"]
    for name in names:
        with open(name, "w") as stream:
            stream.write(SECRET)
    args = [os.fsencode(n) for n in names]
    command = box.command(("X19-explain",), ("--explain", "--timeout", "5"), mode=())
    result = harness.execute([*command, *args], cwd=Tools.empty)
    check(result.code == 0, result.brief)
    if b"\x1b" in result.err or b"\x07" in result.err or b"\ncallbox: all is well" in result.err:
        return f"--explain prints {result.err!r}"
    command = box.command(("X19-explain",), ("--explain", "--timeout", "5"))
    result = harness.execute([*command, *args], cwd=Tools.empty)
    harness.parse_report(result.out)
    return None


@attempt("X19", "50000 paths with --explain", no_control="a bound on the report, no fence")
def x19_many(box):
    options = ("--explain", "--timeout", "20")
    result = box.run("X19-explain", "50000", box.dir, options=options, timeout=40)
    check(result.reason in ("exited", "timeout"), result.brief)
    if len(result.out) > 1 << 20:
        return f"a report of {len(result.out)} bytes"
    return None


@attempt("X20", "the report's file becomes a link", no_control="held by callbox; test_inputs.py has the controls of what is held")
def x20(box):
    work = box.directory("w", 0o777)
    victim = box.file("victim", mode=0o644)
    report = work / "report.json"
    result = box.run(
        "X20-report-link", report, victim,
        options=("--workspace", work), mode=("--report", str(report)),
    )  # fmt: skip
    by_payload(box, result)
    return None if victim.read_text() == SECRET + "\n" else "another file was overwritten"


@attempt("X21", "a rename around a hidden place", without="root,protect,hide")
def x21(box):
    work = box.directory("w", 0o777)
    box.directory("w/a", 0o777)
    hidden = box.directory("w/a/private", 0o777)
    box.file("w/a/private/f", mode=0o666)
    options = ("--workspace", work, "--hide", hidden)
    args = (work / "a", work / "b", work / "b/private/f")
    return by_payload(box, box.run("X21-rename-hidden", *args, options=options))


@attempt("X21", "a hidden place named by a link", without="root,hide")
def x21_link(box):
    box.file("d/private/f")
    box.file("d/open", GRANTED)
    os.symlink("private", box.dir / "d/link")
    base = box.dir / "d"
    options = ("--read", base, "--hide", base / "link")
    result = box.run("E71-view", f"+{base}/open", f"-{base}/private/f", f"-{base}/link/f", options=options)
    return None if result.code == 125 else by_payload(box, result)


@attempt("X22", "kills everything it sees", no_control="no fence: the reason is the kernel's")
def x22(box):
    result = box.run("X22-kill-all")
    if result.reason != "signaled" or result.report["signal"] != "SIGKILL":
        return f"a kill by the program itself: {result.brief()}"
    return None


attack(
    "X23",
    "overwrites callbox by way of init",
    "X23-own-binary",
    args=("/proc/1/exe",),
    no_control="init is closed to others (PR_SET_DUMPABLE) in the test build too",
)


@attempt("X24", "stdin that is never read", no_control="no fence", alone=True)
def x24(box):
    result = box.run("exit", "0", stdin=open("/dev/zero", "rb"))
    if result.reason != "exited" or result.seconds > 5 * harness.SLOW:
        return f"endless stdin: {result.brief()}, {result.seconds:.2f} s"
    read, write = os.pipe()
    try:
        result = box.run("exit", "0", stdin=read)  # the writing end stays open
    finally:
        os.close(read)
        os.close(write)
    if result.reason != "exited" or result.seconds > 5 * harness.SLOW:
        return f"silent stdin: {result.brief()}, {result.seconds:.2f} s"
    return None


@attempt("X25", "nobody reads the output any more", no_control="no fence", alone=True)
def x25(box):
    with box.start("B27-unread", ready=False, options=("--timeout", "8")) as process:
        check(os.read(process.stdout.fileno(), 4096), "no output")
        process.stdout.close()
        process.stdout = open(os.devnull, "rb")
        process.wait(timeout=10)
        left = box.survivors()
        return f"{len(left)} processes are left" if left else None


@attempt("X26", "signals to callbox, which the program ignores", no_control="no fence", alone=True)
def x26(box):
    """A signal is passed on; the program has some seconds to go. A second one ends the call."""
    for number, times in (("SIGTERM", 1), ("SIGINT", 2), ("SIGHUP", 2), ("SIGQUIT", 2), ("SIGALRM", 1)):
        with box.start("A9-wait-for-kill", options=("--timeout", "20")) as process:
            for _ in range(times):
                os.kill(process.pid, getattr(signal, number))
                time.sleep(0.05)
            try:
                process.wait(timeout=8 * harness.SLOW)
            except subprocess.TimeoutExpired:
                return f"{number} does not end the call"
            left = box.survivors()
            if left:
                return f"{number}: {len(left)} processes are left"
    return None


@attempt("X27", "files that never end or never open", no_control="no fence", alone=True)
def x27(box):
    fifo = box.directory("d") / "fifo"
    os.mkfifo(fifo, 0o777)
    os.chmod(fifo, 0o777)
    for options in (("--policy", "/dev/zero"), ("--spec", "/dev/zero"), ("--policy", "/")):
        result = box.run("exit", "0", options=options)
        if result.code != 125:
            return f"{options}: {result.brief()}"
    result = box.run("", program=[str(fifo)], options=("--read", fifo.parent))
    return None if result.code in (125, 126) else f"a fifo as program: {result.brief()}"


@attempt("X28", "init as a deputy: what it opens on behalf of a program", no_control="as X7")
def x28(box):
    work = box.directory("w", 0o777)
    env = dict(os.environ, ATTACK_SECRET=SECRET)
    return by_payload(box, box.run("X28-deputy", options=("--workspace", work), env=env))


@attempt("X29", "what an earlier box has left in its network", without="net,landlock", alone=True)
def x29(box):
    """Boxes of one policy come after each other in the same net namespaces, where a warden lends them."""
    options = ("--read", box.directory("own"))
    networks = []
    for _ in range(5):
        for kind in ("network", "local"):
            problem = by_payload(box, box.run("X29-leave", kind, options=options))
            if problem:
                return problem
        for more in ((), (), (), ("key",)):
            result = box.run("X29-look", *more, options=options)
            problem = by_payload(box, result)
            if problem:
                return problem
            networks += re.findall(r"net:\[\d+\]", result.stdout)
    if box.through_warden(options, ()) and len(set(networks)) == len(networks):
        raise Untried(f"no network was lent a second time: {networks}")
    return None


def receive_view(connection):
    connection.settimeout(10)
    return socket.recv_fds(connection, 1, 1)[1][0]


def later_names(box, options, view):
    """Is the name of a later box seen in a view that was handed out before?"""
    for i in range(24):
        name = f"later-{box.token}-{i}"
        with box.start("X30-name", name, options=options, stdin=subprocess.PIPE) as process:
            os.lseek(view, 0, os.SEEK_SET)  # it comes in pieces, on a host with many sockets in several
            seen = name.encode() in b"".join(iter(lambda: os.read(view, 1 << 16), b""))
            process.stdin.close()
            process.wait(timeout=10)
        if seen:
            return "a later box is seen in a view that an earlier one has handed out"
    return None


@attempt("X30", "a view of its network, handed to the host's listener", without="net,landlock", alone=True)
def x30_connect(box):
    work = box.directory("w", 0o777)
    options = ("--workspace", work)
    with unix_listener(work / "s") as listener:
        result = box.run("X30-hand", work / "s", options=options)
        if by_payload(box, result) is not None:
            return result.brief()
        listener.settimeout(10)
        connection, _ = listener.accept()
        with connection:
            view = receive_view(connection)
    try:
        return later_names(box, options, view)
    finally:
        os.close(view)


@attempt("X30", "a view of its network, handed to who connects", without="net,landlock", alone=True)
def x30_serve(box):
    work = box.directory("w", 0o777)
    options = ("--workspace", work)
    with box.start("X30-hand", work / "s", "serve", options=options) as process:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(work / "s"))
            view = receive_view(connection)
        process.wait(timeout=10)
    try:
        return later_names(box, options, view)
    finally:
        os.close(view)


# ---- What a box without namespaces has to withstand --------------------------------------------


def owned_by_box(box, *paths, known=LANDLOCK):
    """Let them belong to whom the box is on the host: only then is something to be kept. Without namespaces a box of
    root's is the owner of what is shown to nobody else."""
    if known:
        paths[0].parent.chmod(0o700)
        paths = (*paths, paths[0].parent)
    for path in paths:
        harness.Scratch.own(path, box.user)
        if harness.ROOT and not box.user:
            os.chown(path, harness.BOX_ID, harness.BOX_ID)


def as_known(box):
    """Options by which the box's id on the host is known."""
    if not LANDLOCK:
        return ()
    shown = box.file("known/file", GRANTED)
    owned_by_box(box, shown)
    return ("--read", shown.parent)


@attempt("E74", "mode, owner and times of a readable file", without="root,readonly", caged_without="syscalls")
def e74(box):
    shown = box.file("r/file", GRANTED)
    owned_by_box(box, shown)
    return by_payload(box, box.run("E74-attributes", shown, options=("--read", shown.parent)))


@attempt(
    "E75",
    "contents of a readable file, past Landlock",
    without="root,readonly,landlock,syscalls",
    caged_without="syscalls,landlock",
)
def e75(box):
    shown, empty = box.file("r/file", GRANTED), box.dir / "r" / "empty"
    empty.touch()
    owned_by_box(box, shown, empty)
    result = box.run("E75-contents", shown, empty, options=("--read", shown.parent))
    return by_payload(box, result) or (None if empty.exists() else "a file is gone")


@attempt("E75", "contents of a readable file beside a workspace", no_control="as E75 above")
def e75_beside(box):
    shown, empty, work = box.file("r/file", GRANTED), box.dir / "r" / "empty", box.directory("w")
    empty.touch()
    owned_by_box(box, shown, empty, known=False)  # the box is who has the workspace
    result = box.run("E75-contents", shown, empty, options=("--read", shown.parent, "--workspace", work))
    return by_payload(box, result) or (None if empty.exists() else "a file is gone")


@attempt("E75", "a protected file of a workspace", no_control="as E65", caged_without="protect")
def e75_kept(box):
    work = box.directory("w")
    kept, empty = box.file("w/.envrc", GRANTED), box.file("w/.mcp.json", GRANTED)
    result = box.run("E75-contents", kept, empty, options=("--workspace", work))
    return by_payload(box, result) or (None if empty.exists() else "a file is gone")


@attempt(
    "X40",
    "a process of the same user",
    no_control="it would have to be in the box's own namespaces; without any, see below",
)
def x40(box):
    # As the user whom the box is: that of the caller, or root's stand-in.
    ids = harness.USER_ID if box.user and harness.ROOT else os.getuid() if box.user else harness.BOX_ID
    command = ["sleep", "20"]
    if harness.ROOT:
        command = ["setpriv", f"--reuid={ids}", f"--regid={ids}", "--clear-groups", *command]
    outsider = subprocess.Popen(command)
    try:
        if LANDLOCK or not box.without:
            return by_payload(box, box.run("X40-outsider", str(outsider.pid), options=as_known(box)))
    finally:
        harness.end(outsider)


@attempt(
    "X40",
    "a process of the same user, beside it",
    no_control="its control is that of a box without namespaces",
    caged_without="syscalls,landlock",
)
def x40_beside(box):
    """The same in one command, which a control runs in namespaces of its own."""
    ids = harness.USER_ID if box.user and harness.ROOT else os.getuid() if box.user else harness.BOX_ID
    drop = f"setpriv --reuid={ids} --regid={ids} --clear-groups" if harness.ROOT else ""
    command = box.command(("X40-outsider", "PID"), ("--timeout", "10", *as_known(box)))
    wrapped = command[: command.index("--") + 1] if command[0] == "unshare" else []
    inner = " ".join(f'"$outsider"' if part == "PID" else f"'{part}'" for part in command[len(wrapped) :])
    script = f"{drop} sleep 20 & outsider=$!; {inner}; code=$?; kill $outsider; exit $code"
    result = harness.execute([*wrapped, "sh", "-c", script], cwd=Tools.empty, timeout=20)
    result.report = harness.parse_report(result.out)
    return by_payload(box, result)


@attempt("X41", "watches places that are not shown", without="root", caged_without="syscalls")
def x41(box):
    hidden = box.file("private/file")
    return by_payload(box, box.run("X41-watching", hidden, hidden.parent, "/root", "/home"))


@attempt("X42", "what ordinary programs do goes on", no_control="not an attack")
def x42(box):
    for options in ((), ("--workspace", box.directory("w"))):
        problem = by_payload(box, box.run("X42-ordinary", options=options))
        if problem:
            return problem
    return None


@attempt("X44", "files opened with every flag", no_control="init has to live through it, no fence")
def x44(box):
    return by_payload(box, box.run("X44-flags", options=("--workspace", box.directory("w"))))


# ---- S21 to S23. Who holds the memory of a forked call -----------------------------------------


def on_holder(name, without=""):
    """An attack that a process makes itself which a zygote has forked, for a warden of its own. `without`: a
    second fence, which has to be out of the way."""

    def attempt_it(box):
        forker = Tools.scratch.install(str(harness.REPO / "build" / "tests" / "zygote"), f"{box.token}-forker")
        path = str(Tools.scratch.directory(user=box.user) / "warden")
        command = [Tools.unfenced, "warden", "--socket", path]
        warden = subprocess.Popen(harness.as_user(command) if box.user else command, stdin=subprocess.DEVNULL, cwd="/")
        try:
            if not wait_until(lambda: os.path.exists(path), 10):
                raise Untried("no warden")
            left_out = ",".join(filter(None, (box.without, without)))
            command = ["env", "CALLBOX_FORKED=1", Tools.unfenced, "run", "--warden", path, "--json", "--read", box.bin, "--timeout", "12"]
            command += ["--", forker, f"@{name}", *([left_out] if left_out else [])]
            command = harness.as_user(command) if box.user else command
            result = None
            for _ in range(5):  # until the zygote is there
                result = harness.execute(command, timeout=15.0, cwd=str(Tools.empty))
                result.report = harness.parse_report(result.out)
                if "was not forked" not in result.stdout:
                    break
            return by_payload(box, result)
        finally:
            harness.end(warden)

    return attempt_it


for holder_name, holder_title in (
    ("holder-cpu", "a processor that no limit counts"),
    ("holder-memory", "memory that nobody looks at"),
    ("holder-directory", "a directory that calls have in common"),
):
    attempt("S21-23", f"{holder_title}, from who holds its memory", without="holder,landlock")(on_holder(holder_name))
    attempt("S21-23", f"{holder_title}, without Landlock", without="holder")(on_holder(holder_name, "landlock"))


for way in ("setsid", "double-fork", "stopped", "storm", "reaper"):

    def x43(box, way=way):
        for _ in range(int(os.environ.get("CALLBOX_ATTACK_CLINGING", "5" if QUICK else "20"))):
            result = box.run("X43-clinging", way)
            if result.reason not in ("exited", "pids"):
                raise Untried(result.brief())
            left = box.survivors()
            if left:
                return f"{len(left)} processes survive the call"
        return None

    attempt(
        "X43",
        f"a tree that clings to life: {way}",
        without=None if way == "storm" else "pid,root,tree-kill,watch",
        caged_without=None if way == "storm" else "tree-kill",
        no_control="nobody could end it" if way == "storm" else None,
        alone=True,
    )(x43)


# ---- S: calls that are many in one, devices, attributes, names that make a repository ----------


@attempt("S12", "leases, notices and delegations on what is read-only", without="syscalls", caged_without="syscalls")
def s12(box):
    shown = box.file("r/file", GRANTED)
    shown.parent.chmod(0o700)  # then the box is its owner, whoever runs it
    if LANDLOCK:
        owned_by_box(box, shown)
    return by_payload(box, box.run("S12-lease", shown, shown.parent, options=("--read", shown.parent)))


@attempt("S12", "the host opens what a box holds a lease on", without="syscalls", caged_without="syscalls")
def s12_wait(box):
    """From outside: is a read-only file's owner kept waiting?"""
    shown = box.file("r/file", GRANTED)
    shown.parent.chmod(0o700)
    if LANDLOCK:
        owned_by_box(box, shown)
    script = "import fcntl, os, signal, sys, time; signal.signal(signal.SIGIO, signal.SIG_IGN)\n"
    script += "fd = os.open(sys.argv[1], os.O_RDONLY)\ntry: fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)\nexcept OSError: pass\n"
    script += "print('READY', flush=True); time.sleep(2)"
    command = box.command((), ("--timeout", "6", "--read", shown.parent), mode=("-q",), program=["/usr/bin/python3", "-c", script, str(shown)])
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=Tools.empty)
    try:
        if read_line(process.stdout, 10) != b"READY\n":
            raise Untried("it was not begun")
        begun = time.monotonic()
        with contextlib.suppress(BlockingIOError):
            os.close(os.open(shown, os.O_RDONLY | os.O_NONBLOCK))
            return None
        return f"the host had to wait ({time.monotonic() - begun:.3f} s so far)"
    finally:
        harness.end(process)
        process.stdout.close()


attack("S18", "line disciplines and typing, on a terminal of its own", "S18-terminal", without="syscalls", caged_without="syscalls,landlock")
attack("S18", "parts of the kernel that a request loads", "S18-modules", without="syscalls", caged_without="syscalls")
attack("S18", "protocols that nobody needs", "S18-sockets", without="syscalls", caged_without="syscalls")
attack("S18", "the same with a network", "S18-sockets", options=("--net", "host"), without="syscalls", caged_without="syscalls")
attack("S18", "local datagrams by another name", "S18-local", without="syscalls", caged_without="syscalls")


@attempt("S18", "names that only a file system sees made", without="syscalls", caged_without="syscalls")
def s18_subvolumes(box):
    result = box.run("S18-subvolumes", box.directory("w"), options=("--workspace", box.dir / "w"))
    count = (result.denial("ioctl") or {"count": 0})["count"] if by_payload(box, result) is None else 0
    return None if count == 20 or FILTERED else f"{count} of 20 requests were refused"


def turned_names(box, work):
    return box.run("S15-names", "a\u202eb/.git", "c\u2028d\u2066/.git", "e\u200b\ufeff\U000e0041/.git", options=("--workspace", work, "--cwd", work))


@attempt("S18", "refused names that look like others", no_control="that they were there is looked at by their parents on the host")
def s18_text(box):
    work = box.directory("w", 0o777)
    result = turned_names(box, work)
    if sorted(os.listdir(work)) != sorted(("a\u202eb", "c\u2028d\u2066", "e\u200b\ufeff\U000e0041")) or by_payload(box, result):
        raise Untried(result.brief())
    told = json.dumps({**result.report, "stdout": ""}, ensure_ascii=False) + result.err.decode()
    found = sorted({f"U+{ord(c):04X}" for c in told if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c != "\n"})
    if len([d for d in result.report["denials"] if d["kind"] == "protected"]) != 3:
        raise Untried(result.brief())
    return f"the report has {found} in it" if found else None


@attempt("S18", "keys, from the directory in which they are", no_control="a directory beside it, with the same file, is shown")
def s18_here(box):
    home = box.directory("home")
    elsewhere = {**os.environ, "HOME": str(home)}
    read = ["cat", "file"]
    for name in ("plain", "plain/sub", "keys", "conf", ".ssh", ".ssh/old", ".gnupg", ".aws", ".kube", ".config", ".config/gh", ".docker", ".password-store", ".mozilla", ".local/share/keyrings"):
        box.file(f"home/{name}/file")
    box.file("far/keys/file")
    box.file("far/.ssh/file")
    (home / ".azure").symlink_to("../far/keys")

    def shows(place, environment=elsewhere):
        result = box.run(program=read, options=("--timeout", "5"), cwd=str(place), env=environment)
        return SECRET in result.stdout

    if not shows(home / "plain") or not shows(home / "plain" / "sub") or not shows(home / "keys"):
        raise Untried("what is no place of keys is not shown either")
    places = [home / n for n in (".ssh", ".ssh/old", ".gnupg", ".aws", ".kube", ".config", ".config/gh", ".docker", ".password-store", ".mozilla", ".local/share/keyrings")]
    shown = [str(p) for p in (*places, box.dir / "far" / "keys", box.dir / "far" / ".ssh") if shows(p)]
    moved = {**elsewhere, "XDG_CONFIG_HOME": str(home / "conf"), "GNUPGHOME": str(home / "keys")}
    shown += [str(p) for p in (home / "conf", home / "keys") if shows(p, moved)]
    return f"shown by themselves: {shown}" if shown else None


LESS = ("setpriv", "--inh-caps=-sys_admin", "--bounding-set=-sys_admin")  # root in a container


@attempt("S10", "nodes and files that root owns, by root without CAP_SYS_ADMIN", who=("root",), without="readonly")
def s10(box):
    return by_payload(box, box.run("S10-nodes", prefix=LESS))


@attempt("S10", "nodes and files of the box's own view", no_control="as above: else the box owns none of them")
def s10_any(box):
    for options in ((), ("--workspace", box.directory("w"))):
        problem = by_payload(box, box.run("S10-nodes", options=options))
        if problem:
            return problem
    return None


@attempt("S16", "extended attributes of what is not shown", without="root", caged_without="syscalls")
def s16(box):
    hidden = box.file("private/file")
    os.setxattr(hidden, "user.attack", b"https://host.example/?token=" + SECRET.encode())
    return by_payload(box, box.run("S16-attributes", hidden))


def repository(box):
    """A workspace with a repository, as git leaves one."""
    work = box.directory("w", 0o777)
    for name in (".git", ".git/objects", ".git/refs", ".git/refs/heads", ".git/refs/remotes", ".git/refs/remotes/origin", ".git/logs", ".git/hidden"):
        box.directory(f"w/{name}", 0o777)
    box.file("w/.git/HEAD", "ref: refs/heads/main", mode=0o666)
    box.file("w/.git/logs/HEAD", "0" * 40 + " " + "1" * 40 + " a <a> 0 +0000", mode=0o666)
    box.file("w/.git/refs/remotes/origin/HEAD", "ref: refs/remotes/origin/main", mode=0o666)
    return work


@attempt("S15", "a directory below the top becomes a repository", without="protect", caged_without="protect")
def s15_repository(box):
    work = repository(box)
    problem = by_payload(box, box.run("S15-repository", options=("--workspace", work)))
    made = [str(p) for p in work.rglob("HEAD") if p.parent.name not in (".git", "logs", "origin")]
    return problem or (f"made on the host: {made}" if made else None)


attempt("S15", "other spellings of protected names", without="protect", caged_without="protect")(
    lambda box: by_payload(box, box.run("S15-spellings", options=("--workspace", box.directory("w", 0o777))))
)

# Of each program one, and those of the finding.
EXECUTED = (
    "opencode.json .crush.json crush.json .kiro/settings/mcp.json .roo/mcp.json .amazonq/mcp.json .qwen/settings.json .junie/mcp/mcp.json"
    " .vs/mcp.json .continue/config.yaml .factory/mcp.json .kilocode/mcp.json .trae/mcp.json .amp/settings.json .augment/settings.json"
    " lefthook-local.yml lefthook.yaml lefthook.toml lefthook.json .lefthook.json .lefthook-local.toml .lintstagedrc.js lint-staged.config.mjs .huskyrc.js"
    " .helix/languages.toml .dir-locals-2.el .lazy.lua .pryrc .iex.exs .erlang .perldb .rdbgrc .byebugrc startup.m .ocamlinit .autoenv .autoenv.zsh mise.toml"
    " .jj/repo/config.toml sub/.jj/x .sl/config sub/.hg/hgrc .bzr/branch/branch.conf _darcs/prefs/defaults .tmux.conf .screenrc .emacs.d/init.el .vim/x"
    " .oh-my-zsh/x .bash_completion .pam_environment .gnupg/gpg-agent.conf .local/bin/ls .local/lib/python3/x.pth .config/nvim/init.lua"
).split()


@attempt("S15", "names that are executed by whoever opens, enters or commits", without="protect", caged_without="protect")
def s15_names(box):
    work = box.directory("w", 0o777)
    problem = by_payload(box, box.run("S15-names", *EXECUTED, options=("--workspace", work)))
    return problem or (f"made on the host: {os.listdir(work)}" if set(os.listdir(work)) - {"sub"} else None)


@attempt("S15", "a directory with a repository in it, from elsewhere", no_control="elsewhere it is on another file system", caged_without="protect")
def s15_brought(box):
    work = box.directory("w", 0o777)
    problem = by_payload(box, box.run("S15-brought", options=("--workspace", work)))
    made = [str(p) for p in work.rglob(".git")]
    return problem or (f"made on the host: {made}" if made else None)


# ---- Turning the table into cases --------------------------------------------------------------


def fenced(row, who):
    def run_it():
        box = Box(who, alone=row.alone)
        try:
            problem = row.perform(box)
        except Untried as untried:
            if LANDLOCK and re.search(r"without namespaces|needs a net namespace", str(untried)):
                return  # refused, with the reason
            raise Failed(f"not tried: {untried}")
        finally:
            box.clean_up()
        check(problem is None, problem)

    return run_it


def control(row, who):
    def run_it():
        box = Box(who, row.caged_without if LANDLOCK else row.without)
        try:
            problem = row.perform(box, control=True)
        except Untried as untried:
            raise Failed(f"the control came to no verdict: {untried}")
        finally:
            box.clean_up()
        check(problem is not None, "the attack fails without its fence too: it proves nothing")

    return run_it


def register():
    present = [w for w in BOTH if w == "user" or harness.ROOT]
    for row in TABLE:
        if FORKED and {row.number, f"{row.number} ({row.title})"} & set(NOT_FORKED):
            continue
        if LANDLOCK and {row.number, f"{row.number} ({row.title})"} & set(NOT_LANDLOCK):
            continue
        has_control = row.without is not None or row.control_options is not None
        assert has_control != (row.no_control is not None), f"{row.number}: a control or a reason"
        for who in present:
            if who not in row.who:
                continue
            name = f"{row.number} {row.title} [{who}]"
            harness.add(name, fenced(row, who), row.alone)
            without = row.caged_without if LANDLOCK else row.without
            if LANDLOCK and not (without and harness.ROOT and not ABI):
                continue
            if (has_control or LANDLOCK) and CONTROLS and not PREPARED and who in row.control_who:
                left_out = f"without {without}" if without else "laxer policy"
                alone = row.alone and row.number.startswith("D")  # a control measures no time
                harness.add(f"{name[:-1]}, control {left_out}]", control(row, who), alone)


def withdraw():
    """What is tried on boxes without namespaces has the host before it: let that be another one."""
    if not (LANDLOCK and harness.ROOT) or os.environ.get("CALLBOX_ATTACK_WITHDRAWN"):
        return
    os.environ["CALLBOX_ATTACK_WITHDRAWN"] = "1"
    inside = ["sh", "-c", '"$@"; exit $?', "sh", sys.executable, *sys.argv]  # which reaps
    os.execvp("unshare", ["unshare", "--fork", "--kill-child", "--pid", "--mount-proc", "--ipc", "--uts", *inside])


if __name__ == "__main__":
    withdraw()
    register()
    if "--not-here" in sys.argv:
        for number, reason in {**NOT_HERE, **(NOT_FORKED if FORKED else {}), **(NOT_LANDLOCK if LANDLOCK else {})}.items():
            print(f"{number}: {reason}")
        sys.exit(0)
    sys.exit(harness.main(workers=4, skips=SKIPS, before=Tools.set_up, after=Tools.tear_down))
