#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Control groups where systemd keeps them: run in an emulated machine with systemd, by its root.

Nothing that systemd has not handed over is divided; a warden asks for a scope of its own; the units
that are shipped work."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness  # noqa: E402
from harness import USER_ID, check, equal, wait_until  # noqa: E402

TREE = pathlib.Path("/sys/fs/cgroup")
CALLBOX = "/usr/local/bin/callbox"
UNITS = pathlib.Path(harness.callbox_path()).parent / "packaging" / "systemd"
SCRATCH = harness.Scratch()
RUNTIME = f"/run/user/{USER_ID}"
EAT = "b = b'x' * (300 << 20)"


def as_agent(command):
    return ["setpriv", "--reuid", str(USER_ID), "--regid", str(USER_ID), "--clear-groups", "--", "env", f"XDG_RUNTIME_DIR={RUNTIME}",
            "HOME=/home/agent", *command]


def started(user):
    return as_agent if user else (lambda command: command)


def run(command, **more):
    result = harness.execute(command, timeout=60, cwd="/", **more)
    if "--json" in command:
        result.report = harness.parse_report(result.out)
        check(result.report, result.brief)
    return result


def before():
    os.makedirs(os.path.dirname(CALLBOX), exist_ok=True)
    shutil.copy(harness.callbox_path(), CALLBOX)
    os.chmod(CALLBOX, 0o755)
    for name, place in (("callbox.service", "user"), ("callbox@.service", "system")):
        target = pathlib.Path("/etc/systemd", place)
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(UNITS / name, target)
    subprocess.run(["systemctl", "daemon-reload"], check=True, timeout=60)
    if subprocess.run(["systemctl", "start", f"user@{USER_ID}.service"], check=False, timeout=120).returncode != 0:
        # The cases of the user will fail, with this as the reason.
        subprocess.run(["systemctl", "status", "--no-pager", "--full", f"user@{USER_ID}", f"user-runtime-dir@{USER_ID}", "dbus",
                        "systemd-logind"], check=False, timeout=60)


def after():
    SCRATCH.remove()


def groups():
    """Groups that callbox has made, and scopes that it was given."""
    return sorted(os.path.join(base, name) for base, names, _ in os.walk(TREE) for name in names
                  if re.match(r"callbox-(box-|warden|\d+\.scope)", name))


def each(name):
    def register(function):
        for who, user in (("root", False), ("a user", True)):

            def attempt(user=user):
                function(user)
                check(wait_until(lambda: not groups(), 10), lambda: f"left behind: {groups()}")

            harness.add(f"{name}, as {who}", attempt)
        return function

    return register


@each("a unit that was not handed over is not divided; the fix of the refusal works")
def refused(user):
    start = started(user)
    result = run(start([CALLBOX, "run", "--json", "--require", "cgroup", "--", "true"]))
    equal(result.code, 125, result.brief())
    error = result.report["error"]
    check("systemd" in error["text"] if not user else "not its own" in error["text"], f"{error}")
    fix = re.search(r"systemd-run (.*?)callbox run", error["hint"]).group(1).split()
    if user and "--user" not in fix:
        fix.insert(0, "--user")
    result = run(start(["systemd-run", "--quiet", *fix, CALLBOX, "run", "--json", "--require", "cgroup", "--cpus", "0.5", "--", "true"]))
    equal((result.code, result.reason), (0, "exited"), result.brief())


@contextlib.contextmanager
def warden(user):
    path = str(SCRATCH.directory(user=user) / "socket")
    process = subprocess.Popen(started(user)([CALLBOX, "warden", "--socket", path]), stdin=subprocess.DEVNULL)
    try:
        check(wait_until(lambda: os.path.exists(path), 20), "no warden")
        yield process, path
    finally:
        harness.end(process)


def call(path, user, *args):
    return run(started(user)([CALLBOX, "run", "--warden", path, "--json", *args]))


@each("a warden asks for a scope, and has one as long as it lives")
def scope(user):
    with warden(user) as (process, path):
        result = call(path, user, "--require", "cgroup", "--", "true")
        equal(result.reason, "exited", result.brief())
        own = pathlib.Path(f"/proc/{process.pid}/cgroup").read_text().strip()
        check(own.endswith(f"callbox-{process.pid}.scope/callbox-warden"), f"the warden is in {own}")
        check(("user@" in own) == user, f"the warden is in {own}")
        process.terminate()
        equal(process.wait(30), 0, "its exit code")


@each("a warden that is killed leaves neither a group nor a scope")
def killed(user):
    with warden(user) as (process, path):
        equal(call(path, user, "--", "true").reason, "exited", "a call")
        process.send_signal(signal.SIGKILL)
        process.wait(30)


@each("the unit that is shipped serves calls, and outlives one that is out of memory")
def unit(user):
    manage = as_agent(["systemctl", "--user"]) if user else ["systemctl"]
    name = "callbox" if user else "callbox@root"
    path = f"{RUNTIME}/callbox/socket" if user else "/run/callbox-root/socket"
    subprocess.run([*manage, "start", name], check=True, timeout=60)
    try:
        check(wait_until(lambda: os.path.exists(path), 20), "no socket")
        result = call(path, user, "--require", "cgroup", "--memory", "64M", "--", "/usr/bin/python3", "-c", EAT)
        equal(result.reason, "memory", result.brief())
        result = call(path, user, "--require", "cgroup", "--cpus", "0.5", "--", "true")
        equal(result.reason, "exited", result.brief())
        state = run([*manage, "show", "-p", "NRestarts,SubState", name]).out.decode()
        check("SubState=running" in state and "NRestarts=0" in state, f"the unit is {state}")
    finally:
        subprocess.run([*manage, "stop", name], check=True, timeout=60)


if __name__ == "__main__":
    harness.CASES.sort(key=lambda case: case.name.endswith("a user"))
    sys.exit(harness.main(workers=1, before=before, after=after))
