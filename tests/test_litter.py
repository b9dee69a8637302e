#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""1 000 calls in a row, ended in every way there is, leave the host as it was: its processes,
mounts, cgroups, /tmp, /dev/shm, descriptors, keyrings, namespaces and the workspace."""

import concurrent.futures
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

import harness
from harness import Failed, equal

SCRATCH = harness.Scratch()
CALLBOX = SCRATCH.install(harness.callbox_path(), "callbox")
PEOPLE = harness.PEOPLE
CALLS = 60 if os.environ.get("CALLBOX_SMOKE") else 1000
TOKEN = f"litter-{os.getpid()}"

KEYS = pathlib.Path("/proc/keys")
# Files that others who work on the host put into /tmp meanwhile; a box would leave no such name.
FOREIGN = re.compile(r"^/tmp/[^/]+\.(log|txt|md|json|py|c|sh|out) is left, owner 0$")


class Litter(harness.HostState):
    """The host's state, with the keys of those who run boxes."""

    def __init__(self, directories):
        super().__init__(directories)
        self.keys = set()
        if KEYS.exists():
            for line in KEYS.read_text().splitlines():
                fields = line.split()
                if int(fields[5]) in (harness.USER_ID, *harness.BOX_IDS):
                    self.keys.add((fields[0], fields[5]))

    def left(self, later):
        # SysV objects are not looked at: no call here makes any, others on the host may.
        found = [line for line in self.diff(later, marks=(TOKEN, CALLBOX)) if not FOREIGN.match(line) and not line.startswith("SysV")]
        return found + [f"key {key} of {uid} is left" for key, uid in later.keys - self.keys]


def command(args, user):
    whole = [CALLBOX, "run", *args]
    return harness.as_user(whole) if user else whole


def start(args, user, **more):
    return subprocess.Popen(command(args, user), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", **more)


def wait(process, codes):
    try:
        code = process.wait(60 * harness.SLOW)
    except subprocess.TimeoutExpired:
        harness.end(process)
        raise Failed(f"a call does not end: {process.args}")
    if codes is not None and code not in codes:
        raise Failed(f"exit code {code}, not one of {codes}: {process.args}")


def kill_after(process, seconds, number=signal.SIGKILL):
    time.sleep(seconds)
    process.send_signal(number)


def kinds(user, workspace, rng):
    """One function for each kind of call; each runs it and checks its end."""

    def plain(args, codes):
        wait(start(args, user), codes)

    def killed(args, low, high, number=signal.SIGKILL, codes=None):
        process = start(args, user)
        kill_after(process, rng.uniform(low, high), number)
        wait(process, codes)

    script = f": {TOKEN}; (setsid sleep 3600 &); sleep 3600 & echo x > /tmp/f; echo x > /dev/shm/f; "
    return [
        lambda: plain(["--", "true", TOKEN], {0}),
        lambda: plain(["--json", "--", "sh", "-c", script + "exit 3"], {3}),
        lambda: plain(["-q", "--", "sh", "-c", script + "kill -9 $$"], {137}),
        lambda: plain(["-q", "--timeout", "0.05", "--", "sh", "-c", script + "sleep 3600"], {124}),
        lambda: plain(["--workspace", workspace, "--", "sh", "-c", f": {TOKEN}; echo x > f$$ && rm f$$; mkdir .vscode 2>/dev/null; true"], {0}),
        lambda: plain(["--net", "loopback", "--", "sh", "-c", script + "true"], {0}),
        lambda: plain(["--net", "host", "--", "true", TOKEN], {0}),
        lambda: plain(["--", f"frobnicate-{TOKEN}"], {127}),
        lambda: plain(["--read", f"/nonexistent/{TOKEN}", "--", "true"], {125}),
        lambda: plain(["--cwd", f"/nonexistent/{TOKEN}", "--", "true"], {125}),
        lambda: plain(["--memory", "5X", "--", "true", TOKEN], {125}),
        lambda: plain(["-q", "--output", "1000", "--", "yes", TOKEN], {137}),
        lambda: plain(["--tmpfs", "/scratch", "--read", "/usr/share:/data", "--hide", "/usr/share/doc", "--", "true", TOKEN], {0}),
        lambda: killed(["--", "sh", "-c", script + "sleep 3600"], 0.02, 0.06),
        lambda: killed(["--", "sleep", "3600", "0", TOKEN], 0.0, 0.01),  # in the middle of the set-up
        lambda: killed(["--workspace", workspace, "--", "sh", "-c", script + "sleep 3600"], 0.0, 0.03),
        lambda: killed(["-q", "--", "sh", "-c", script + "sleep 3600"], 0.02, 0.05, signal.SIGTERM),
    ]


def settle(before, directories, seconds=10):
    """The kernel takes boxes apart after their calls have ended; wait for that."""
    last = []

    def clean():
        last[:] = before.left(Litter(directories))
        return not last

    harness.wait_until(clean, seconds, 0.1)
    return list(last)


@harness.case(f"{CALLS} calls, killed ones among them, leave the host as it was", alone=True)
def litter():
    workspaces = {user: SCRATCH.directory(user) for _, user in PEOPLE}
    for user, directory in workspaces.items():
        (directory / "keep").write_text("K")
        SCRATCH.own(directory / "keep", user)
    directories = list(workspaces.values())
    for _, user in PEOPLE:  # what the first call of a host may set up for good is not litter
        wait(start(["--", "true"], user), {0})
    before = Litter(directories)

    def one(number):
        rng = random.Random(number)
        _, user = PEOPLE[number % len(PEOPLE)]
        every = kinds(user, workspaces[user], rng)
        every[number // len(PEOPLE) % len(every)]()

    failures = []
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for future in concurrent.futures.as_completed([pool.submit(one, n) for n in range(CALLS)]):
            if future.exception():
                failures.append(str(future.exception()))
    left = settle(before, directories)
    equal(failures[:3], [], f"{len(failures)} calls went wrong")
    harness.kill_marked(TOKEN)
    equal(left, [], "what is left")


@harness.case("no device of the host comes to belong to a box", alone=True)
def devices():
    for _, user in PEOPLE:
        for stdin in (["--stdin", "none"], ["--stdin", "/dev/null"], ["--stdin", "/dev/zero"], []):
            wait(start([*stdin, "--", "true"], user), {0})
    owners = {entry.path: entry.stat(follow_symlinks=False).st_uid for entry in os.scandir("/dev")}
    equal({path: uid for path, uid in owners.items() if uid == harness.USER_ID or uid in harness.BOX_IDS}, {}, "devices of boxes")


@harness.case("descriptors of callbox do not grow within a call", alone=True)
def descriptors():
    """A call with much input, output and many signals holds as many descriptors as at its start."""
    process = subprocess.Popen([CALLBOX, "run", "--timeout", "60", "--", "cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")
    try:
        count = []
        for _ in range(3):
            for _ in range(200):
                process.stdin.write(b"line\n")
                process.stdin.flush()
                equal(process.stdout.readline(), b"line\n", "echo")
                if process.poll() is None:
                    process.send_signal(signal.SIGWINCH)
            count.append(len(os.listdir(f"/proc/{process.pid}/fd")))
        equal(count[0], count[-1], f"descriptors {count}")
        process.stdin.close()
        equal(process.wait(20), 0, "exit code")
    finally:
        harness.end(process)
        process.stdout.close()


if __name__ == "__main__":
    try:
        sys.exit(harness.main())
    finally:
        SCRATCH.remove()
