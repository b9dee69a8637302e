#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Boxes that are copied from a mould: that they are like any other, have nothing in common that can be
written, and show the host as it is now; and what becomes of a mould that dies."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

import harness
import library
from harness import check, equal

SCRATCH = harness.Scratch()
CALLBOX = SCRATCH.install(harness.callbox_path(), "callbox")
UNFENCED = SCRATCH.install(os.environ.get("CALLBOX_UNFENCED") or str(harness.REPO / "build" / "tests" / "callbox-unfenced"), "unfenced")
SLOW = harness.SLOW


def SharedWarden(*options, binary=CALLBOX, **more):
    return library.SharedWarden(SCRATCH, binary, *options, **more)


def below(warden):
    """The processes below a warden, with their names and their parents' names."""
    found, todo = {}, [(warden.process.pid, "callbox")]
    while todo:
        parent, name = todo.pop()
        with contextlib.suppress(OSError):
            for pid in pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
                found[int(pid)] = (pathlib.Path(f"/proc/{pid}/comm").read_text().strip(), name)
                todo.append((int(pid), found[int(pid)][0]))
    return found


def moulds(warden):
    return [pid for pid, names in below(warden).items() if names == ("callbox-mould", "callbox-maker")]


# ---- What a box of a mould is ------------------------------------------------------------------


def nested(user):
    """Trees in trees, in file systems of the box's own, behind what is hidden: whatever can be in another."""
    top = SCRATCH.directory(user)
    work, other = top / "work", top / "other"
    for directory in ("secret/shown", "scratch", "data", ".git"):
        (work / directory).mkdir(parents=True)
    other.mkdir()
    for path in (work / "secret/closed", work / "secret/shown/open", work / "hidden", work / ".git/config", other / "file"):
        path.write_text(path.name)
    if user:
        for path in (top, *top.rglob("*")):
            os.chown(path, harness.USER_ID, harness.USER_ID)
    options = ["--workspace", work, "--hide", work / "secret", "--read", work / "secret/shown", "--hide", work / "hidden"]
    options += ["--tmpfs", work / "scratch", "--read", f"{other}:{work}/scratch/inner", "--read", f"{other}:{work}/data"]
    options += ["--tmpfs", "/own", "--write", f"{other}:/own/other", "--tmpfs", "/own/deep/er", "--read", f"{other}/file:/tmp/file"]
    options += ["--read", f"{work}:/own/both", "--write", f"{other}:/own/both/data"]
    return work, other, options


@harness.for_people("a box from a mould shows and allows what one that was built alone does")
def same_as_alone(user):
    work, other, options = nested(user)
    look = (
        f"find / -xdev -printf '%p %y %m %l\\n' 2>&1 | sort; find {work} /own /tmp /dev -printf '%p %y %m %l\\n' 2>&1 | sort; "
        f"cat {work}/secret/shown/open {work}/data/file /own/other/file /tmp/file {work}/secret/closed {work}/hidden 2>&1; "
        f"for d in / /etc /dev /run /usr /var /proc /tmp /dev/shm /own /own/deep /own/deep/er /own/other /own/both /own/both/data {work} {work}/.git {work}/secret "
        f"{work}/secret/shown {work}/scratch {work}/scratch/inner {work}/data; do touch $d/trace 2>&1 && rm $d/trace && echo $d; done; "
        "awk '{ top[$5] = $6 } END { for (path in top) print path, top[path] }' /proc/self/mountinfo | sort; stat -f -c %T /proc; cat /proc/cmdline /proc/keys 2>&1"
    )
    alone = harness.callbox(["run", *options, "--", "sh", "-c", look], binary=CALLBOX, user=user, cwd="/")
    check(b"open" in alone.out and b"/own/deep/er\n" in alone.out, f"alone: {alone.out[-3000:]} {alone.err}")
    compare(user, options, look)
    look = "find /tmp | sort; touch /tmp/trace && rm /tmp/trace; df --output=source,target /tmp | tail -1; awk '$5 == \"/tmp\" { flags = $6 } END { print flags }' /proc/self/mountinfo"
    for kind in ("--write", "--read"):  # over the place of a file system of the box's own
        compare(user, [kind, f"{other}:/tmp"], look)


def compare(user, options, look):
    """What a call finds in boxes of a mould, beside one that is made alone."""
    alone = harness.callbox(["run", *options, "--", "sh", "-c", look], binary=CALLBOX, user=user, cwd="/")
    ours = [line for line in alone.out.decode().splitlines() if not line.startswith("/proc/whole ")]
    with SharedWarden(user=user) as warden:
        for number in range(4):
            result = warden.run("sh", "-c", look, options=options, user=user)
            theirs = [line for line in result.out.decode().splitlines() if not line.startswith("/proc/whole ")]
            check(ours == theirs, lambda: f"call {number}: {[line for line in ours + theirs if (line in ours) != (line in theirs)][:20]}")


@harness.for_people("boxes of one mould have nothing in common that can be written")
def nothing_shared(user):
    options = ["--tmpfs", "/own", "--tmpfs", "/own/deep"]
    leave = (
        "for d in /tmp /dev/shm /own /own/deep; do echo leak >$d/leak || exit 1; done; "
        "for p in / /etc /dev /dev/pts /run /usr /var /proc /etc/passwd; do chmod 777 $p && exit 2; touch $p/leak && exit 3; done 2>/dev/null; "
        "echo leak >/etc/passwd; exec 9</etc/passwd; grep -c -E ' (shared|master):' /proc/self/mountinfo; ls /dev/pts; sleep 0.3; echo done"
    )
    look = "ls -A /tmp /dev/shm /own /own/deep /etc /run /; cat /etc/passwd; ls -A / /var /dev"
    with SharedWarden(user=user) as warden:
        before = warden.run("sh", "-c", look, options=options, user=user).out
        check(b"leak" not in before and b"box" in before, f"the first: {before}")
        command = [CALLBOX, "run", "--warden", warden.path, *options, "--", "sh", "-c", leave]
        running = [subprocess.Popen(harness.as_user(command) if user else command, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for _ in range(4)]
        equal(warden.run("sh", "-c", look, options=options, user=user).out, before, "beside them")
        for process in running:
            equal(process.communicate(timeout=20 * SLOW)[0], b"0\nptmx\ndone\n", "what may and may not be written")
        equal(warden.run("sh", "-c", look, options=options, user=user).out, before, "after them")


@harness.for_people("what a mould hides or covers stays so, whatever is done to its name on the host")
def replaced(user):
    work, other, options = nested(user)
    look = f"cat {work}/hidden; ls {work}/secret; cat {work}/data/file; touch {work}/data/trace {work}/.git/trace; cat {work}/scratch/inner/file"

    def remake():
        os.unlink(work / "hidden")
        (work / "hidden").write_text("hidden")

    def rename_over():
        (work / "new").write_text("hidden")
        os.rename(work / "new", work / "hidden")

    def remake_directories():
        for name in ("data", "scratch"):
            os.rmdir(work / name)
            os.mkdir(work / name)

    def move_directories():
        for name in ("data", "scratch", ".git", "secret"):
            os.rename(work / name, work / f"{name}-before")
            shutil.copytree(work / f"{name}-before", work / name)

    with SharedWarden(user=user) as warden:
        before = warden.run("sh", "-c", look, options=options, user=user)
        equal(before.out, b"filefile", f"the first: {before.err}")
        for change in (remake, remake, rename_over, remake_directories, move_directories):
            for number in range(4):
                result = warden.run("sh", "-c", look, options=options, user=user)
                equal((result.out, result.err), (before.out, before.err), f"before {change.__name__}, call {number}")
            change()
            if user:
                for path in work.rglob("*"):
                    os.chown(path, harness.USER_ID, harness.USER_ID)
            for number in range(4):
                result = warden.run("sh", "-c", look, options=options, user=user)
                equal((result.out, result.err), (before.out, before.err), f"after {change.__name__}, call {number}")


@harness.for_people("the box's own files over those of a rule stay so in a mould")
def own_replaced(user):
    etc = SCRATCH.directory(user)
    options, look = ["--read", f"{etc}:/etc"], "cat /etc/passwd /etc/group 2>/dev/null; chmod 666 /etc/passwd 2>/dev/null && echo changed"

    def rename_over(name):
        (etc / "new").write_text("host")
        os.rename(etc / "new", etc / name)

    rename_over("passwd")
    with SharedWarden(user=user) as warden:
        for change in ("passwd", "passwd", "group", "group"):
            for number in range(4):
                result = warden.run("sh", "-c", look, options=options, user=user)
                check(b"host" not in result.out and b"changed" not in result.out and b"box" in result.out, f"before {change}, call {number}: {result.out}")
            rename_over(change)


def host_held(warden):
    """What of the host's tree the moulds of a warden and their waiting boxes hold; those under way may."""
    found = []
    try:
        pids = [pid for pid, (name, _) in below(warden).items() if name == "callbox-mould"]
        if len(pids) < 3:
            found.append(f"no mould, init and main: {pids}")
        for pid in pids:
            found += [f"{name} of {pid}" for name in ("root", "cwd") if os.stat(f"/proc/{pid}/{name}/.").st_dev == os.stat("/").st_dev]
            for fd in os.listdir(f"/proc/{pid}/fd"):
                path = f"/proc/{pid}/fd/{fd}"
                link = os.readlink(path)
                # The first three are the warden's; a mould has networks that it lends; a /proc is one that is
                # mounted nowhere, or the box's own.
                if int(fd) > 2 and not re.match("socket:|pipe:|anon_inode:|net:|/[0-9]+/net/sockstat", link) and not os.path.exists(f"{path}/loadavg"):
                    found.append(f"{link} by {pid}")
    except OSError as error:  # gone meanwhile
        found.append(str(error))
    return found


@harness.for_people("neither a mould nor a box that waits holds anything of the host's tree")
def host_descriptors(user):
    if not harness.ROOT:
        return  # only root may look
    _, _, options = nested(user)
    with SharedWarden(user=user) as warden:
        for _ in range(3):
            equal(warden.run("true", options=options, user=user).code, 0, "a call")
        check(harness.wait_until(lambda: not host_held(warden), 10 * SLOW), lambda: host_held(warden))


@harness.case("a box shows the mounts that the host has now, and no mould holds on to one that is gone")
def host_mounts():
    if not harness.ROOT:
        return
    work = SCRATCH.directory(False)
    (work / "inner").mkdir()
    with SharedWarden(prefix=["unshare", "--mount", "--propagation", "private"]) as warden:

        def on_host(*command):
            subprocess.run(["nsenter", "--target", str(warden.process.pid), "--mount", *command], check=True)

        def seen():
            found = {warden.run("ls", f"{work}/inner", options=["--read", work]).out for _ in range(6)}
            return found.pop() if len(found) == 1 else found

        equal(seen(), b"", "before")
        for _ in range(2):
            on_host("mount", "-t", "tmpfs", "none", f"{work}/inner")
            on_host("touch", f"{work}/inner/there")
            harness.wait_until(lambda: seen() == b"there\n", 10 * SLOW)
            equal(seen(), b"there\n", "with the mount")
            on_host("umount", f"{work}/inner")
            harness.wait_until(lambda: seen() == b"", 10 * SLOW)
            equal(seen(), b"", "without it")


# Tries to let others wait who open what all boxes of a mould have.
LEASE = r"""
import fcntl, os, sys
taken = []
for top, _, names in os.walk("/etc"):
    for path in [os.path.join(top, name) for name in names]:
        for kind in (fcntl.F_WRLCK, fcntl.F_RDLCK):
            try:
                taken.append(os.open(path, os.O_RDONLY))
                fcntl.fcntl(taken[-1], fcntl.F_SETLEASE, kind)
                if kind == fcntl.F_WRLCK:
                    print(path, flush=True)
                break
            except OSError:
                pass
print("begun", flush=True)
sys.stdin.read()
"""


@harness.for_people("no box of a mould can make another one wait by a lease")
def leases(user):
    with SharedWarden(user=user) as warden:
        for _ in range(3):
            equal(warden.run("true", user=user).code, 0, "a call")
        command = [CALLBOX, "run", "--warden", warden.path, "--", "python3", "-c", LEASE]
        running = subprocess.Popen(harness.as_user(command) if user else command, cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        equal(running.stdout.readline(), b"begun\n", "the leases that it could take")
        equal(warden.run("sh", "-c", "cat /etc/* >/dev/null 2>&1; echo read", options=["--timeout", "20"], user=user).out, b"read\n", "what another one opens")
        running.communicate(timeout=20 * SLOW)


# ---- What a box could do that had every capability -----------------------------------------------

# Takes away what is mounted over the mould's mounts, and tries what is below.
UNCOVER = r"""
import ctypes, errno, json, os
libc = ctypes.CDLL(None, use_errno=True)
REMOUNT, BIND, DETACH, RECURSIVE = 32, 4096, 2, 16384

def outcome(call, *arguments):
    return 0 if call(*arguments) == 0 else errno.errorcode[ctypes.get_errno()]

def away(path):
    return outcome(libc.umount2, path, DETACH)

def write(path):
    try:
        with open(path, "w") as file:
            file.write("leak")
        return 0
    except OSError as error:
        return errno.errorcode[error.errno]

def names(path):
    try:
        return sorted(os.listdir(path))
    except OSError as error:
        return errno.errorcode[error.errno]

os.chdir("/")
found = {
    "tmp": away(b"/tmp"), "own": away(b"/own"), "shm": away(b"/dev/shm"), "proc": away(b"/proc"),
    "tmp again": away(b"/tmp"), "own again": away(b"/own"), "proc again": away(b"/proc"), "usr": away(b"/usr"), "null": away(b"/dev/null"),
    "writable root": outcome(libc.mount, None, b"/", None, REMOUNT | BIND, None),
    "writable own": outcome(libc.mount, None, b"/own", None, REMOUNT | BIND, None),
    "uncovered": outcome(libc.mount, b"/", b"/tmp", None, BIND, None),
    "in own": names("/own"), "in proc": names("/proc"), "whole": names("/proc/whole"),
    "leak": write("/own/leak"), "leak in tmp": write("/tmp/leak"), "leak in shm": write("/dev/shm/leak"), "leak in root": write("/leak"),
}
print(json.dumps(found))
"""


def uncover(user, without):
    with SharedWarden("--without", f"privileges,syscalls,landlock{without}", binary=UNFENCED, user=user) as warden:
        found = []
        for _ in range(4):  # the first one is made without a mould
            result = warden.run("python3", "-c", UNCOVER, options=["--tmpfs", "/own"], user=user)
            check(result.code == 0, lambda: f"{result.out} {result.err}")
            found.append(json.loads(result.out))
        return found[2:]


@harness.for_people("with every capability a box can take its own mounts away, but not the mould's, and write to none of those")
def uncovered(user):
    for found in uncover(user, ""):
        for mine in ("tmp", "own", "shm", "proc"):
            equal(found[mine], 0, f"taking away the box's own {mine}")
        for theirs in ("tmp again", "own again", "proc again", "usr", "null"):
            equal(found[theirs], "EINVAL", f"taking away the mould's {theirs}")
        equal((found["writable root"], found["writable own"]), ("EPERM", "EPERM"), "making them writable")
        equal(found["uncovered"], "EINVAL", "binding them without what covers them")
        equal(found["in own"], [], "what is in the mould's own")
        check(found["in proc"] in ([], "EACCES"), f"what is below /proc: {found['in proc']}")
        check(found["whole"] in ("ENOENT", "EACCES"), f"the whole /proc: {found['whole']}")
        for leak in ("leak", "leak in tmp", "leak in shm", "leak in root"):
            equal(found[leak], "EROFS", leak)


@harness.for_people("control: where a mould is not sealed, one box finds what another has left")
def control(user):
    found = uncover(user, ",mould")
    equal((found[0]["leak"], found[1]["in own"]), (0, ["leak"]), "what one leaves and the next one finds")


# ---- Ends ----------------------------------------------------------------------------------------


@harness.for_people("a mould that is killed takes no box along, and calls go on")
def killed(user):
    with SharedWarden(user=user) as warden:
        for _ in range(3):
            equal(warden.run("true", user=user).code, 0, "a call")
        command = [CALLBOX, "run", "--warden", warden.path, "--", "sh", "-c", "echo begun; read line; echo ended"]
        running = subprocess.Popen(harness.as_user(command) if user else command, cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        equal(running.stdout.readline(), b"begun\n", "a call under way")
        for _ in range(5):
            check(harness.wait_until(lambda: moulds(warden), 10 * SLOW), "there is a mould")
            for pid in moulds(warden):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for _ in range(6):
                equal(warden.run("true", user=user).code, 0, "a call after its mould was killed")
        equal(running.communicate(b"\n", timeout=20 * SLOW)[0], b"ended\n", "the call under way")


if __name__ == "__main__":
    try:
        sys.exit(harness.main())
    finally:
        SCRATCH.remove()
