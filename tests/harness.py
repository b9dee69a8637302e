# SPDX-License-Identifier: MIT
"""What all Python test suites of callbox share: cases, verdict lines, bounded runs, the host's state.

A suite registers functions with @case("name"), or calls add(), and ends with
`sys.exit(harness.main())`. Each case prints one line as it ends:

    ok - NAME
    not ok - NAME: WHY
    skipped - NAME: REASON

and the last line is `N passed, N failed`. A case that raises Skip counts as a failure unless its
name (or its first word) stands in the suite's list of skips, with a reason. Arguments of the
suite are substrings or shell patterns of the names to run; `--list` prints the names.

Cases run in a small pool; those marked alone=True run one by one after all others, because they
measure time or look at the whole host.
"""

import concurrent.futures
import contextlib
import dataclasses
import fcntl
import fnmatch
import json
import os
import pathlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
import traceback

REPO = pathlib.Path(__file__).resolve().parent.parent
USER_ID = 64001  # the ordinary user that tests make for themselves; needs no entry in /etc/passwd
BOX_ID = 0x70000000  # the host id of a box that root runs in the test build
BOX_IDS = range(BOX_ID, BOX_ID + 0x10000)  # and of any
ROOT = os.geteuid() == 0
SLOW = float(os.environ.get("CALLBOX_TEST_SLACK", "1"))  # multiplies every allowance of time


def callbox_path():
    return os.environ.get("CALLBOX") or str(REPO / "build" / "callbox")


# ---- Cases and verdicts ----------------------------------------------------------------------


class Skip(Exception):
    """The case cannot be tried here; a failure unless the suite lists it with a reason."""


class Failed(AssertionError):
    pass


@dataclasses.dataclass
class Case:
    name: str
    function: object
    alone: bool = False


CASES = []
_print_lock = threading.Lock()


def add(name, function, alone=False):
    CASES.append(Case(name, function, alone))


def case(name, alone=False):
    def register(function):
        add(name, function, alone)
        return function

    return register


# Who runs a case: root and the ordinary user, or the latter alone where there is no root.
PEOPLE = [("root", False), ("user", True)] if ROOT else [("user", True)]


def for_people(name, alone=False):
    """Register a case once for each of them; the function is told whether it is the user."""

    def register(function):
        for who, user in PEOPLE:
            add(f"{name}, as {who}", lambda user=user: function(user), alone)
        return function

    return register


def check(condition, why):
    if not condition:
        raise Failed(why() if callable(why) else why)


def equal(got, wanted, what="value"):
    check(got == wanted, lambda: f"{what} is {got!r}, not {wanted!r}")


def one_line(text, limit=600):
    text = re.sub(r"[\x00-\x1f\x7f]+", " ", str(text)).strip()
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _say(line):
    with _print_lock:
        print(line, flush=True)


def _run_case(item, skips):
    """Run one case and print its line; the outcome is "passed", "failed" or "skipped"."""
    try:
        item.function()
    except Skip as skip:
        reason = skips.get(item.name) or skips.get(item.name.split()[0])
        if reason:
            _say(f"skipped - {item.name}: {one_line(reason)}")
            return "skipped"
        _say(f"not ok - {item.name}: skipped ({one_line(skip)}) and not on the list of skips")
        return "failed"
    except (Failed, subprocess.TimeoutExpired) as failure:
        _say(f"not ok - {item.name}: {one_line(failure, 3000)}")
        return "failed"
    except Exception as error:  # a fault of the test itself; the trace tells where
        where = traceback.extract_tb(error.__traceback__)[-1]
        _say(
            f"not ok - {item.name}: {type(error).__name__}: {one_line(error)}"
            f" ({os.path.basename(where.filename)}:{where.lineno})"
        )
        return "failed"
    _say(f"ok - {item.name}")
    return "passed"


def wanted(name, patterns):
    return not patterns or any(p in name or fnmatch.fnmatch(name, p) for p in patterns)


def main(argv=None, workers=4, skips=None, before=None, after=None):
    """Run the registered cases; returns the exit status of the suite."""
    argv = sys.argv[1:] if argv is None else argv
    patterns = [a for a in argv if not a.startswith("--")]
    chosen = [c for c in CASES if wanted(c.name, patterns)]
    if "--list" in argv:
        for item in chosen:
            print(item.name)
        return 0
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    failures = []
    try:
        if before:
            before()
        times = {}

        def timed(item):
            began = time.monotonic()
            outcome = _run_case(item, skips or {})
            times[item.name] = time.monotonic() - began
            return outcome

        together = [c for c in chosen if not c.alone]
        with concurrent.futures.ThreadPoolExecutor(max_workers=workers) as pool:
            outcomes = list(pool.map(timed, together))
        alone = [c for c in chosen if c.alone]
        outcomes += [timed(c) for c in alone]
        if "--times" in argv:  # the slowest, for whoever wants the suite to be faster
            for name in sorted(times, key=times.get, reverse=True)[:40]:
                _say(f"{times[name]:7.2f} s  {name}")
        for item, outcome in zip(together + alone, outcomes):
            counts[outcome] += 1
            if outcome == "failed":
                failures.append(item.name)
    finally:
        if after:
            after()
    if not chosen:
        _say("not ok - no case has such a name")
        counts["failed"] += 1
    for name in failures:
        _say(f"failed: {name}")
    if counts["skipped"]:
        _say(f"{counts['skipped']} skipped, each with its reason above")
    _say(f"{counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] else 0


# ---- Running callbox -------------------------------------------------------------------------


def as_user(command):
    """The command as the ordinary user; as it is when the suite itself is run by one."""
    if not ROOT:
        return list(command)
    ids = str(USER_ID)
    return ["setpriv", "--reuid", ids, "--regid", ids, "--clear-groups", "--", *command]


@dataclasses.dataclass
class Result:
    command: list
    code: int  # as of the shell: 128 + n where the command was killed by signal n
    out: bytes
    err: bytes
    seconds: float
    peak_kib: int = 0  # the most memory that callbox or a child it waited for has held
    report: dict = None

    @property
    def reason(self):
        return (self.report or {}).get("reason")

    @property
    def stdout(self):
        """The program's own output, be it in the report or streamed."""
        stream = (self.report or {}).get("stdout")
        return stream["text"] if stream else self.out.decode("utf-8", "replace")

    @property
    def stderr(self):
        stream = (self.report or {}).get("stderr")
        return stream["text"] if stream else self.err.decode("utf-8", "replace")

    def guarantee(self, name):
        for item in (self.report or {}).get("guarantees", []):
            if item["name"] == name:
                return item
        return None

    def denial(self, what):
        for item in (self.report or {}).get("denials", []):
            if item["what"] == what or item["what"].split("(")[0] == what:
                return item
        return None

    def brief(self):
        """What happened, in one line, for the text of a failure."""
        report = self.report or {}
        text = f"exit {self.code}"
        if report:
            text += f", reason {report.get('reason')}, code {report.get('code')}"
            if report.get("error"):
                text += f", error {report['error'].get('where')}: {report['error'].get('text')}"
            elif report.get("text"):
                text += f" ({report['text']})"
        out, err = self.stdout.strip()[-200:], self.stderr.strip()[-200:]
        text += f"; stdout {out!r}" if out else ""
        text += f"; stderr {err!r}" if err else ""
        if self.report is not None and self.err.strip():
            text += f"; callbox says {self.err.decode('utf-8', 'replace').strip()[-200:]!r}"
        return text


def end(process):
    """Kill a process that the suite started and reap it."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=5)


def execute(command, timeout=30.0, data=None, **options):
    """Run a command, bounded in time, and collect its output and its peak of memory.

    `data` is its stdin as bytes; other options are those of Popen. Raises Failed where the
    command did not come back in time.
    """
    if data is not None:
        options["stdin"] = subprocess.PIPE
    options.setdefault("stdin", subprocess.DEVNULL)
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    began = time.monotonic()
    process = subprocess.Popen(command, **options)
    try:
        out, err = process.communicate(data, timeout=timeout * SLOW)
    except subprocess.TimeoutExpired:
        end(process)
        raise Failed(f"no answer after {timeout * SLOW:g} s: {one_line(' '.join(command), 300)}")
    seconds = time.monotonic() - began
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    return Result(list(command), code, out or b"", err or b"", seconds)


def parse_report(text):
    """The report in the text, or None where there is none. Duplicate keys are a fault."""

    def no_duplicates(pairs):
        keys = [key for key, _ in pairs]
        if len(keys) != len(set(keys)):
            raise ValueError(f"a key stands twice in {keys}")
        return dict(pairs)

    if isinstance(text, bytes):
        text = text.decode("utf-8")  # a report is valid UTF-8 or it is broken
    return json.loads(text, object_pairs_hook=no_duplicates) if text.strip() else None


def callbox(args, json_report=None, user=False, binary=None, prefix=(), **options):
    """Run `callbox ARGS...`; with --json among the arguments the report is parsed.

    user=True runs it as the ordinary user; `prefix` stands before the command (strace, unshare).
    """
    command = [*prefix, binary or callbox_path(), *[os.fspath(a) for a in args]]
    result = execute(as_user(command) if user else command, **options)
    own = args[: args.index("--")] if "--" in args else args
    if json_report is None:
        json_report = "--json" in own
    if json_report:
        try:
            result.report = parse_report(result.out)
        except ValueError as error:
            raise Failed(f"the report is not valid JSON ({error}): {result.brief()}")
    return result


def run(*command, options=(), **more):
    """The short form: `callbox run --json OPTIONS -- COMMAND`."""
    return callbox(["run", "--json", *options, "--", *command], **more)


# ---- Scratch directories ---------------------------------------------------------------------


class Scratch:
    """A directory below /tmp that every id can reach, with copies of the binaries in bin/.

    The checkout may lie below a directory that the ordinary user cannot enter.
    """

    def __init__(self, label="callbox-test-"):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix=label, dir="/tmp"))
        self.path.chmod(0o755)
        self.bin = self.path / "bin"
        self.bin.mkdir()
        self.bin.chmod(0o755)
        self._number = 0
        self._lock = threading.Lock()

    def install(self, source, name=None):
        target = self.bin / (name or os.path.basename(source))
        shutil.copyfile(source, target)
        target.chmod(0o755)
        return str(target)

    def install_python(self, build):
        """What runs Python functions in boxes, beside the programs as in a build; one that has no package
        has at least its sources."""
        source = pathlib.Path(build) / "python" / "callbox"
        shutil.copytree(source if source.is_dir() else REPO / "python" / "callbox", self.bin / "python" / "callbox",
                        ignore=shutil.ignore_patterns("__pycache__", "*.p"))  # fmt: skip

    def directory(self, user=False, mode=0o755, name=None):
        """A new, empty directory that belongs to root or to the ordinary user."""
        with self._lock:
            self._number += 1
            path = self.path / (name or f"d{self._number}")
        path.mkdir()
        path.chmod(mode)
        self.own(path, user)
        return path

    @staticmethod
    def own(path, user):
        if user and ROOT:
            os.chown(path, USER_ID, USER_ID)

    def remove(self):
        def writable(function, path, _):
            os.chmod(os.path.dirname(path), 0o700)
            function(path)

        shutil.rmtree(self.path, onerror=writable)


# ---- Processes of the host -------------------------------------------------------------------


def process_table():
    """pid → (start time, comm, state, command line) of every process that can be seen."""
    table = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            text = pathlib.Path("/proc", name, "stat").read_text(errors="replace")
            comm = text[text.index("(") + 1 : text.rindex(")")]
            fields = text[text.rindex(")") + 2 :].split()
            line = pathlib.Path("/proc", name, "cmdline").read_bytes()
            table[int(name)] = (int(fields[19]), comm, fields[0], line)
    return table


def processes_with(token, but=None):
    """Living processes, but not this one nor those of a program, whose name or command line holds the token."""
    mark = token.encode()
    found = set()
    for pid, (_, comm, state, line) in process_table().items():
        if but and line.startswith(but.encode()):
            continue
        if (mark in line or token in comm) and state not in "ZX" and pid != os.getpid():
            found.add(pid)
    return found


def programs(line):
    """Living processes whose command line begins so: the program itself, not one that was told to start it."""
    return {pid for pid, entry in process_table().items() if entry[3].startswith(line.encode()) and entry[2] not in "ZX"}


def wait_until(condition, seconds, pause=0.005):
    """Wait for a condition with a deadline; returns its last value."""
    deadline = time.monotonic() + seconds * SLOW
    while True:
        value = condition()
        if value or time.monotonic() > deadline:
            return value
        time.sleep(pause)


def kill_marked(token):
    """Kill what a test has left behind, known by the token on its command line."""
    for _ in range(50):
        left = processes_with(token)
        if not left:
            return
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


# ---- The state of the host -------------------------------------------------------------------

# Names in /tmp that others (compilers, editors, shells) make while a suite runs.
FOREIGN_TMP = re.compile(r"^(cc[A-Za-z0-9]{6}|tmp|bash|callbox-(test|attack)-|hsperfdata|systemd-)")


class HostState:
    """What a call could leave behind on the host; compare two with diff()."""

    def __init__(self, directories=()):
        self.processes = process_table()
        self.mounts = pathlib.Path("/proc/self/mountinfo").read_text()
        self.cgroups = self._cgroups()
        self.tmp = self._listing("/tmp")
        self.shm = self._listing("/dev/shm")
        self.ipc = {
            name: pathlib.Path("/proc/sysvipc", name).read_text().count("\n")
            for name in ("shm", "sem", "msg")
            if os.path.exists(f"/proc/sysvipc/{name}")
        }
        self.namespaces = self._namespaces()
        self.fds = set(os.listdir("/proc/self/fd"))
        self.trees = {str(d): self._tree(d) for d in directories}

    @staticmethod
    def _cgroups():
        """Those of callbox with processes in them that nobody holds: who lives has a lock on his, and an empty
        one goes when groups are looked for next."""
        found = set()
        for base, names, _ in os.walk("/sys/fs/cgroup"):
            for path in (os.path.join(base, name) for name in names if "callbox" in name or "cbx" in name):
                with contextlib.suppress(OSError):
                    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
                    try:
                        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        if pathlib.Path(path, "cgroup.procs").read_text():
                            found.add(path)
                    finally:
                        os.close(fd)
        return found

    @staticmethod
    def _listing(path):
        found = {}
        with contextlib.suppress(OSError):
            for entry in os.scandir(path):
                with contextlib.suppress(OSError):
                    found[entry.name] = entry.stat(follow_symlinks=False).st_uid
        return found

    @staticmethod
    def _namespaces():
        """Network namespaces that a process of ours is in: a leak shows as one too many."""
        found = set()
        for name in os.listdir("/proc"):
            if name.isdigit():
                with contextlib.suppress(OSError):
                    found.add(os.readlink(f"/proc/{name}/ns/net"))
        return found

    @staticmethod
    def _tree(path):
        found = {}
        for base, directories, files in os.walk(path):
            for name in directories + files:
                full = os.path.join(base, name)
                info = os.lstat(full)
                link = os.readlink(full) if stat.S_ISLNK(info.st_mode) else ""
                found[full] = (info.st_mode, info.st_uid, info.st_gid, info.st_size, link)
        return found

    def diff(self, later, marks=("callbox",)):
        """What `later` has that this one has not, as sentences; an empty list is clean.

        Processes count when their name or command line holds one of the marks, or, dead and
        unreaped, when they are named so: other programs come and go on a host meanwhile.
        """
        found = []
        for pid, (start, comm, state, line) in later.processes.items():
            if self.processes.get(pid, (None,))[0] == start or pid == os.getpid():
                continue
            if any(m in comm or m.encode() in line for m in marks):
                found.append(f"process {pid} ({comm}, state {state}) is left")
        if self.mounts != later.mounts:
            old = set(self.mounts.splitlines())
            found += [f"mount: {m}" for m in later.mounts.splitlines() if m not in old] or [
                "a mount of the host is gone"
            ]
        found += [f"cgroup {path} is left" for path in sorted(later.cgroups - self.cgroups)]
        for where, old, new in (("/tmp", self.tmp, later.tmp), ("/dev/shm", self.shm, later.shm)):
            for name in sorted(set(new) - set(old)):
                ours = new[name] == USER_ID or new[name] in BOX_IDS or not FOREIGN_TMP.match(name)
                if ours and not name.startswith(("callbox-test-", "callbox-attack-")):
                    found.append(f"{where}/{name} is left, owner {new[name]}")
        for name, count in later.ipc.items():
            if count > self.ipc.get(name, 0):
                found.append(f"SysV {name} objects are left")
        extra = later.fds - self.fds
        if extra:
            found.append(f"descriptors {sorted(extra)} of the suite are left open")
        for path, tree in later.trees.items():
            old = self.trees.get(path, {})
            for name in sorted(set(tree) | set(old)):
                if tree.get(name) != old.get(name):
                    found.append(f"{name}: was {old.get(name)}, is {tree.get(name)}")
        return found
