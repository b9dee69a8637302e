#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Control groups on a host with nothing but cgroup v2: run in an emulated machine, by its root.

Each case is tried by root in the root of the tree, and by a user in a subtree that is the user's own.
What must be left of a call is nothing, however it ended."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness  # noqa: E402
from harness import USER_ID, check, equal, wait_until  # noqa: E402

TREE = pathlib.Path("/sys/fs/cgroup")
OWN = TREE / "agent"  # handed to the user as a whole
MIB = 1 << 20
SCRATCH = harness.Scratch()
CALLBOX = SCRATCH.install(harness.callbox_path(), "callbox")
TESTS = pathlib.Path(os.environ["CALLBOX_PAYLOAD"]).parent
PYTHON = "/usr/bin/python3"
EAT = "b = b'x' * ({} << 20); print(len(b))"
BOMB = "import os\nwhile True:\n try: os.fork()\n except OSError: pass"


def make_group(path, user=False):
    path.mkdir(exist_ok=True)
    if user:
        for part in (path, *[path / name for name in ("cgroup.procs", "cgroup.subtree_control", "cgroup.threads")]):
            os.chown(part, USER_ID, USER_ID)
    return path


def before():
    (TREE / "cgroup.subtree_control").write_text("+cpu +memory +pids")
    pathlib.Path("/proc/sys/vm/overcommit_memory").write_text("1")  # 4 GiB, on a small machine
    make_group(OWN, user=True)
    (OWN / "cgroup.subtree_control").write_text("+cpu +memory +pids")


def after():
    SCRATCH.remove()


def inside(group, command):
    """The command, started in a group."""
    return ["sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh", *command]


_number = 0


@contextlib.contextmanager
def place(user):
    """How callbox is to be started, and the group in which boxes will then be."""
    global _number
    if not user:
        yield (lambda command: command), TREE
        return
    _number += 1
    group = make_group(OWN / f"alone{_number}", user=True)
    try:
        yield (lambda command: inside(group, harness.as_user(command))), group
    finally:
        check(wait_until(lambda: removed(group), 5), lambda: f"{group} cannot be removed: {left(group)}")


def removed(group):
    with contextlib.suppress(OSError):
        group.rmdir()
    return not group.exists()


def left(group):
    """Groups below this one that callbox has made."""
    return sorted(os.path.join(base, name) for base, names, _ in os.walk(group) for name in names
                  if name.startswith("callbox-"))


def run(start, *args, timeout=60, **more):
    result = harness.execute(start([CALLBOX, "run", "--json", *args]), timeout=timeout, **more)
    result.report = harness.parse_report(result.out)
    check(result.report, result.brief)
    return result


def with_groups(name, alone=False):
    def register(function):
        for who, user in (("root", False), ("a user with a subtree", True)):

            def attempt(user=user):
                with place(user) as (start, group):
                    function(start, group)
                    check(wait_until(lambda: not left(group), 5), lambda: f"left behind: {left(group)}")

            harness.add(f"{name}, as {who}", attempt, alone)
        return function

    return register


# ---- Limits ------------------------------------------------------------------------------------


@with_groups("4 GiB under 256 MiB end with reason memory, the peak is told, others go on")
def memory(start, group):
    with subprocess.Popen(start([CALLBOX, "run", "--", "cat"]) if group == TREE else [CALLBOX, "run", "--", "cat"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        result = run(start, "--memory", "256M", "--timeout", "55", "--", PYTHON, "-c", EAT.format(4096))
        equal(result.reason, "memory", f"reason ({result.brief()})")
        peak = result.report["usage"]["memory_peak"]
        check(200 * MIB <= peak <= 257 * MIB, f"the peak is {peak}")
        equal(result.guarantee("memory")["by"], "cgroup memory.max", "kept by")
        equal(other.communicate(b"alive", timeout=20)[0], b"alive", "what a call beside it says")


@with_groups("memory within the limit is had, and its peak is exact")
def enough(start, group):
    result = run(start, "--memory", "256M", "--", PYTHON, "-c", EAT.format(100))
    equal((result.reason, result.stdout), ("exited", f"{100 * MIB}\n"), result.brief())
    peak = result.report["usage"]["memory_peak"]
    check(100 * MIB <= peak <= 140 * MIB, f"the peak is {peak}")


@with_groups("nothing is swapped out to get round the limit")
def swap(start, group):
    check(len(pathlib.Path("/proc/swaps").read_text().splitlines()) > 1, "this machine has no swap")
    result = run(start, "--memory", "64M", "--", PYTHON, "-c", EAT.format(160))
    equal(result.reason, "memory", result.brief())


@with_groups("a fork bomb ends with reason pids")
def bomb(start, group):
    result = run(start, "--processes", "40", "--timeout", "50", "--", PYTHON, "-c", BOMB)
    equal(result.reason, "pids", result.brief())
    check(result.report["usage"]["processes_peak"] >= 40, "the peak of processes")


@with_groups("a share of the processors halves the speed of a busy loop", alone=True)
def share(start, group):
    loop = ("import time\nt = time.monotonic(); n = 0\nwhile time.monotonic() - t < 2:\n n += 1\n"
            " for _ in range(5000): pass\nprint(n, time.process_time())")

    def speed(*options):
        result = run(start, *options, "--", PYTHON, "-c", loop)
        equal(result.reason, "exited", result.brief())
        rounds, used = result.stdout.split()
        return int(rounds), float(used)

    # An emulated processor has no steady speed: in turn, and the middle one of several.
    pairs = [(speed(), speed("--cpus", "0.5")) for _ in range(5)]
    used = sorted(half[1] / whole[1] for whole, half in pairs)[2]
    ratio = sorted(half[0] / whole[0] for whole, half in pairs)[2]
    print(f"half a processor: {used:.3f} of the processor time, {ratio:.3f} of the speed", flush=True)
    check(0.45 <= used <= 0.55, f"half a processor gave {used:.3f} of the processor time")
    check(0.45 <= ratio <= 0.55, f"half a processor gave {ratio:.3f} of the speed")


@with_groups("a program that kills itself is told apart from one out of memory")
def killed(start, group):
    result = run(start, "--memory", "64M", "--", "sh", "-c", "kill -9 $$")
    equal((result.reason, result.report["signal"]), ("signaled", "SIGKILL"), result.brief())
    result = run(start, "--memory", "256M", "--timeout", "1", "--", PYTHON, "-c", EAT.format(64) + "\nimport time; time.sleep(60)")
    equal(result.reason, "timeout", result.brief())


@harness.case("memory that runs out above the call is not the call's fault")
def above():
    small = make_group(TREE / "small")
    (small / "memory.max").write_text(str(96 * MIB))
    (small / "memory.swap.max").write_text("0")
    result = run(lambda c: inside(small, c), "--memory", "512M", "--", PYTHON, "-c", EAT.format(300))
    equal(result.reason, "internal", result.brief())
    check("the host ran out of memory" in result.report["error"]["text"], result.brief())
    check(wait_until(lambda: removed(small), 5), lambda: f"left behind: {left(small)}")


# ---- Prepared boxes ----------------------------------------------------------------------------


@contextlib.contextmanager
def warden(start, user_directory):
    path = str(SCRATCH.directory(user=user_directory) / "socket")
    process = subprocess.Popen(start([CALLBOX, "warden", "--socket", path]), stdin=subprocess.DEVNULL)
    try:
        check(wait_until(lambda: os.path.exists(path), 20), "no warden")
        yield process, path
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        harness.end(process)


def call(path, *args, env=None, user=False, program=CALLBOX):
    command = [program, "run", "--warden", path, "--json", *args]
    result = harness.execute(harness.as_user(command) if user else command, timeout=60, env=env)
    result.report = harness.parse_report(result.out)
    check(result.report, result.brief)
    return result


def boxes(group):
    """Processes in each group of a box."""
    found = {}
    for path in group.glob("callbox-box-*"):
        with contextlib.suppress(OSError):
            found[path.name] = len((path / "cgroup.procs").read_text().split())
    return found


@with_groups("a prepared box has its group ahead and its limits with its call")
def prepared(start, group):
    with warden(start, group != TREE) as (process, path):
        for _ in range(3):
            equal(call(path, "--", "true", user=group != TREE).reason, "exited", "a call")
        check(wait_until(lambda: any(n >= 2 for n in boxes(group).values()), 10), lambda: f"no box waits: {boxes(group)}")
        result = call(path, "--", PYTHON, "-c", EAT.format(100), user=group != TREE)
        equal(result.reason, "exited", result.brief())
        spec = SCRATCH.directory() / "spec.json"
        spec.write_text(json.dumps({"argv": [PYTHON, "-c", EAT.format(100)], "limits": {"memory": "64M"}}))
        result = call(path, "--spec", str(spec), user=group != TREE)
        equal(result.reason, "memory", result.brief())
        check(result.report["usage"]["memory_peak"] <= 65 * MIB, "the peak")
    check(wait_until(lambda: not left(group), 5), lambda: f"left behind: {left(group)}")


@with_groups("a box that was forked from a zygote has a group of its own")
def forked(start, group):
    zygote = SCRATCH.install(str(TESTS / "zygote"))
    opened = SCRATCH.install(str(TESTS / "callbox-unfenced"))
    env = {**os.environ, "CALLBOX_FORKED": "1"}
    user = group != TREE
    with warden(start, user) as (process, path):
        for size, reason in ((20, "exited"), (300, "memory")):
            result = call(path, "--memory", "128M", "--read", str(SCRATCH.bin), "--", zygote, PYTHON, "-c", EAT.format(size), env=env, user=user, program=opened)
            equal(result.reason, reason, result.brief())
            equal(result.guarantee("cgroup")["enforced"], True, "a group")
        own = pathlib.Path(f"/proc/{process.pid}/cgroup").read_text().strip()
        for pid in harness.programs(zygote):
            with contextlib.suppress(OSError):
                check(pathlib.Path(f"/proc/{pid}/cgroup").read_text().strip() != own, "a zygote is in the group of its warden")


# ---- The end -----------------------------------------------------------------------------------


@with_groups("a warden that is killed leaves no group behind")
def murdered(start, group):
    user = group != TREE
    with warden(start, user) as (process, path):
        runner = subprocess.Popen([CALLBOX, "run", "--warden", path, "--", "sleep", "1000"], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        check(wait_until(lambda: any(n >= 2 for n in boxes(group).values()), 20), "no box")
        process.send_signal(signal.SIGKILL)
        process.wait(20)
        runner.wait(20)
        check(wait_until(lambda: not left(group), 10), lambda: f"left behind: {left(group)}")


@with_groups("what a killed run leaves behind, the next one takes away")
def cleaned(start, group):
    process = subprocess.Popen(start([CALLBOX, "run", "--", "sleep", "1000"]), stdin=subprocess.DEVNULL)
    check(wait_until(lambda: any(n >= 2 for n in boxes(group).values()), 20), "no box")
    process.send_signal(signal.SIGKILL)
    process.wait(20)
    check(wait_until(lambda: not any(boxes(group).values()), 10), "the box is still alive")
    if group == TREE:
        equal(run(start, "--", "true").reason, "exited", "the next call")
    else:  # nobody can be in the group itself any more; beside it one can
        beside = make_group(group / "beside", user=True)
        result = run(lambda c: inside(beside, harness.as_user(c)), "--", "true")
        equal(result.guarantee("cgroup")["enforced"], True, "a group for the next call")
        check(wait_until(lambda: removed(beside), 5), "the group beside")


@with_groups("many calls at once leave nothing")
def many(start, group):
    with warden(start, group != TREE) as (process, path):
        started = [subprocess.Popen([CALLBOX, "run", "--warden", path, "--", "sh", "-c", "sleep 0.1; sleep 100 & exit 3"],
                                    stdin=subprocess.DEVNULL) for _ in range(20)]
        equal({p.wait(60) for p in started}, {3}, "exit codes")


# ---- Where there is none -----------------------------------------------------------------------


def refused(start, *args):
    result = run(start, *args, "--", "true")
    equal((result.code, result.reason), (125, "setup"), result.brief())
    return result.report["error"]


def told(start):
    """What doctor says of the missing group: cause and fix."""
    result = harness.execute(start([CALLBOX, "doctor", "--json"]), timeout=60)
    report = json.loads(result.out)
    found = {g["name"]: g for g in report["guarantees"]}["cgroup"]
    return found["enforced"], found["cause"], found["fix"]


@harness.case("a user in root's group: refused where one is asked for, and told how to get one")
def foreign():
    error = refused(harness.as_user, "--require", "cgroup")
    check("is not its own" in error["text"] and "chown -R USER" in error["hint"], f"{error}")
    error = refused(harness.as_user, "--cpus", "0.5")
    check(error["where"] == "--cpus" and "is not its own" in error["text"], f"{error}")
    result = run(harness.as_user, "--cpus", "0.5", "--best-effort", "--", "true")
    equal((result.reason, result.guarantee("cpu")["enforced"]), ("exited", False), "best effort")
    enforced, cause, fix = told(harness.as_user)
    check(not enforced and "is not its own" in cause and "chown -R USER" in fix, f"{cause}; {fix}")
    # The fix, as it is written.
    script = fix.split("as root: ")[1].split(", and")[0].replace("USER", str(USER_ID))
    subprocess.run(["sh", "-ec", script], check=True)
    group = TREE / "callbox"
    equal(told(lambda c: inside(group, harness.as_user(c)))[0], True, "what doctor says after the fix")
    check(wait_until(lambda: removed(group), 5), "the group")


@harness.case("a group with others in it: told apart, and the fix works")
def crowded():
    group = make_group(OWN / "crowd", user=True)
    sleeper = subprocess.Popen(inside(group, harness.as_user(["sleep", "1000"])))
    try:
        check(wait_until(lambda: (group / "cgroup.procs").read_text().strip(), 10), "nobody is in it")
        # The group above is the user's as well, and could be divided instead: not here.
        for name in ("", "cgroup.procs", "cgroup.subtree_control"):
            os.chown(OWN / name, 0, 0)
        enforced, cause, fix = told(lambda c: inside(group, harness.as_user(c)))
        check(not enforced and "other processes live" in cause, f"{enforced} {cause}")
        script = fix.split("one below it: ")[1].replace("CGROUP", str(group))
        subprocess.run(harness.as_user(["sh", "-ec", script]), check=True)
        equal(told(lambda c: inside(group / "all", harness.as_user(c)))[0], True, "what doctor says after the fix")
        equal((group / "all" / "cgroup.procs").read_text().split(), [str(sleeper.pid)], "who was moved, by us")
    finally:
        make_group(OWN, user=True)
        harness.end(sleeper)
        for path in (group / "all", group):
            check(wait_until(lambda path=path: removed(path), 5), f"{path}")


@harness.case("a group without controllers: told apart, and the fix works")
def poor():
    above = make_group(TREE / "poor")
    group = make_group(above / "own", user=True)
    start = lambda c: inside(group, harness.as_user(c))  # noqa: E731
    enforced, cause, fix = told(start)
    check(not enforced and "have not been handed down" in cause, f"{enforced} {cause}")
    script = fix.split("as root: ")[1].split(" in each")[0].replace("CGROUP", str(above))
    subprocess.run(["sh", "-ec", script], check=True)
    equal(told(start)[0], True, "what doctor says after the fix")
    for path in (group, above):
        check(wait_until(lambda path=path: removed(path), 5), f"{path}")


@harness.case("a read-only tree: told apart, and the fix works")
def read_only():
    def start(command, also=":"):
        script = f'mount --bind {TREE} {TREE} && mount -o remount,bind,ro {TREE} && {also} && exec "$@"'
        return ["unshare", "--mount", "sh", "-c", script, "sh", *command]

    enforced, cause, fix = told(start)
    check(not enforced and "read-only" in cause, f"{enforced} {cause}")
    command = fix.split("as root in it: ")[1].replace("-o remount,rw", "-o remount,bind,rw")
    equal(told(lambda c: start(c, also=command))[0], True, "what doctor says after the fix")


@harness.case("no cgroup file system: told apart")
def unmounted():
    start = lambda c: ["unshare", "--mount", "sh", "-c", f'umount -l {TREE}; exec "$@"', "sh", *c]  # noqa: E731
    enforced, cause, fix = told(start)
    check(not enforced and "no cgroup file system" in cause and "mount -t cgroup2" in fix, f"{enforced} {cause}")


if __name__ == "__main__":
    began = time.monotonic()
    code = harness.main(workers=1, before=before, after=after)
    print(f"in {time.monotonic() - began:.0f} s", file=sys.stderr)
    sys.exit(code)
