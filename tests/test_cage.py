#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Boxes without namespaces: when they are chosen, what they refuse, what they leave, and that the
end of each process around a call is the end of the call. The attacks on them are those of
tests/attack/suite.py, with CALLBOX_ATTACK_LANDLOCK=1."""

import concurrent.futures
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import harness
from harness import check, equal, for_people, wait_until

SCRATCH = harness.Scratch()
CALLBOX = SCRATCH.install(harness.callbox_path(), "callbox")
UNFENCED = SCRATCH.install(
    os.environ.get("CALLBOX_UNFENCED") or str(harness.REPO / "build" / "tests" / "callbox-unfenced"), "unfenced"
)
ZYGOTE = SCRATCH.install(str(harness.REPO / "build" / "tests" / "zygote"), "zygote")
ROUNDS = 3 if os.environ.get("CALLBOX_SMOKE") else 20


def run(user, *program, options=(), prefix=(), binary=CALLBOX, box="landlock", **more):
    made_of = ("--box", box) if box else ()
    command = [*prefix, binary, "run", "--json", *made_of, *[str(o) for o in options], "--", *program]
    result = harness.execute(harness.as_user(command) if user else command, cwd="/", **more)
    result.report = harness.parse_report(result.out)
    return result


def text(result):
    equal(result.reason, "exited", result.brief())
    return result.stdout


# ---- Which box it is ---------------------------------------------------------------------------

# In a user namespace of its own a host can be as one that allows no more of them.
NO_NAMESPACES = ("unshare", "-U", "--map-root-user", "sh", "-c", 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"', "sh")


@for_people("namespaces are taken where the host has them")
def taken(user):
    for box in (None, "auto", "namespaces"):
        result = run(user, "true", box=box)
        equal(result.guarantee("tree-kill")["by"], "pid namespace")


@for_people("Landlock is taken where namespaces are refused, and the report says so")
def fallen_back(user):
    result = run(user, "echo", "hello", box=None, prefix=NO_NAMESPACES)
    equal(text(result), "hello\n")
    check("subreaper" in result.guarantee("tree-kill")["by"], result.guarantee("tree-kill"))
    check("Landlock" in result.guarantee("files")["by"], result.guarantee("files"))
    for name in ("tree-kill", "files", "network", "syscalls", "privileges", "environment", "memory", "pids"):
        check(result.guarantee(name)["enforced"], name)


# Some hosts allow a user namespace and then no mount in it: that is found out by the box itself.
NO_MOUNTS = (
    sys.executable,
    "-c",
    """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None)
steps = [(0x20, 0, 0, 0), (0x15, 2, 0, 165), (0x15, 1, 0, 442), (0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x50001)]
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
program = Program(len(steps), ctypes.addressof(code))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(program)) == 0
os.execv(sys.argv[1], sys.argv[1:])
""",
)


@for_people("also where a namespace is allowed and no mount in it; the input is that of the second box")
def mounts_refused(user):
    result = run(user, "cat", box=None, prefix=NO_MOUNTS, data=b"hello\n")
    equal(text(result), "hello\n")
    check("Landlock" in result.guarantee("files")["by"], result.guarantee("files"))
    check("error" not in result.report, result.report)
    result = run(user, "true", box="namespaces", prefix=NO_MOUNTS)
    equal((result.code, result.reason), (125, "setup"))


@for_people("a box of namespaces that was asked for is refused there, with the fix")
def refused(user):
    result = run(user, "true", box="namespaces", prefix=NO_NAMESPACES)
    equal((result.code, result.reason), (125, "setup"))
    check("user.max_user_namespaces" in result.report["error"]["hint"], result.report["error"])


@for_people("the key of a policy means the same as the option")
def key(user):
    policy = SCRATCH.directory(user=user) / "policy.json"
    policy.write_text(json.dumps({"box": "landlock"}))
    policy.chmod(0o644)
    result = run(user, "true", box=None, options=("--policy", policy))
    check("Landlock" in result.guarantee("files")["by"], result.brief())
    policy.write_text(json.dumps({"box": "landlok"}))
    result = run(user, "true", box=None, options=("--policy", policy))
    check("landlock" in result.report["error"]["text"], result.report["error"])


@for_people("what only namespaces can do is refused, with the reason and the way to it")
def only_namespaces(user):
    place = SCRATCH.directory(user=user)
    (place / "secret").write_text("x")
    for options, words in (
        (("--net", "loopback"), "net namespace"),
        (("--tmpfs", "/elsewhere"), "without namespaces"),
        (("--read", f"{place}:/elsewhere"), "without namespaces"),
        (("--write", place, "--hide", place / "secret"), "without namespaces"),
    ):
        result = run(user, "true", options=options)
        equal((result.code, result.reason), (125, "setup"), options)
        check(words in result.report["error"]["text"], result.report["error"])
        check("--box landlock" in result.report["error"]["hint"], result.report["error"])
        elsewhere = run(user, "true", options=options, box=None, prefix=NO_NAMESPACES)
        check("max_user_namespaces" in elsewhere.report["error"]["hint"], elsewhere.report["error"])


@for_people("a size of /tmp is refused with --box landlock, and warned of where the host has chosen that box")
def no_tmp_size(user):
    policy = SCRATCH.directory(user=user) / "policy.json"
    policy.write_text(json.dumps({"limits": {"tmp_size": "1M"}}))
    policy.chmod(0o644)
    for options, where in ((("--tmp-size", "1M"), "--tmp-size"), (("--policy", policy), "limits.tmp_size")):
        result = run(user, "true", options=options)
        equal((result.code, result.reason, result.report["error"]["where"]), (125, "setup", where), options)
        check("without namespaces" in result.report["error"]["text"] and "--box landlock" in result.report["error"]["hint"], result.report["error"])
        elsewhere = run(user, "true", options=options, box=None, prefix=NO_NAMESPACES)
        equal((elsewhere.code, [w for w in elsewhere.report["warnings"] if "tmp_size" in w][:1] != []), (0, True), f"{options}: {elsewhere.report['warnings']}")
    shown = harness.callbox(["policy", "show", "--box", "landlock"], binary=CALLBOX, user=user, cwd="/")
    policy.write_bytes(shown.out)
    equal((run(user, "true", options=("--policy", policy)).report["warnings"], run(user, "true", box=None, prefix=NO_NAMESPACES).report["warnings"]), ([], []), "of the default")


@for_people("without Landlock as well nothing runs, but by --best-effort")
def nothing_left(user):
    env = {**os.environ, "CALLBOX_LANDLOCK_ABI": "0"}
    result = run(user, "true", binary=UNFENCED, env=env)
    equal((result.code, result.reason), (125, "setup"))
    check('"files"' in result.report["error"]["text"], result.report["error"])
    check("lsm=" in result.report["error"]["hint"], result.report["error"])
    result = run(user, "true", binary=UNFENCED, env=env, options=("--best-effort",))
    equal(result.reason, "exited")
    check(not result.guarantee("files")["enforced"], result.guarantee("files"))
    check(result.guarantee("tree-kill")["enforced"], result.guarantee("tree-kill"))


@for_people("a call that a policy allows is allowed here too")
def allowed(user):
    watch = "import ctypes; l = ctypes.CDLL(None, use_errno=True); l.inotify_add_watch(-1, b'/', 1); print(ctypes.get_errno())"
    equal(text(run(user, "/usr/bin/python3", "-c", watch)), "1\n")  # EPERM
    equal(text(run(user, "/usr/bin/python3", "-c", watch, options=("--allow-syscall", "inotify_add_watch"))), "9\n")  # EBADF
    equal(text(run(user, "sh", "-c", "stty -a <&2; echo on", options=("--allow-syscall", "ioctl"))), "on\n")


@for_people("local sockets reach who is in the box, and nobody on the host")
def sockets(user):
    place = SCRATCH.directory(user=user)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(place / "host"))
    listener.listen()
    os.chmod(place / "host", 0o777)
    script = f"""
import os, socket
own = socket.socket(socket.AF_UNIX); own.bind(os.environ["TMPDIR"] + "/s"); own.listen()
socket.socket(socket.AF_UNIX).connect(os.environ["TMPDIR"] + "/s")
for path in ({str(place / "host")!r}, "\\0name"):
    try:
        socket.socket(socket.AF_UNIX).connect(path); print("reached", path)
    except OSError as error:
        print(error.errno)
"""
    try:
        result = run(user, "/usr/bin/python3", "-c", script, options=("--read", place))
        equal(text(result), "13\n1\n", result.brief())
    finally:
        listener.close()


# A container's filter refuses pidfd_getfd, by which init would take the program's socket.
CONTAINER = (str(pathlib.Path(harness.callbox_path()).parent / "tests" / "cage"), "--mark", "/.dockerenv", "--")
IN_CONTAINER = """
import asyncio, os, shutil, socket, threading
from multiprocessing import get_context
path = os.environ["TMPDIR"] + "/s"

async def serve():
    async def handle(reader, writer):
        writer.write(b"heard " + await reader.readline())
        await writer.drain()
        writer.close()
    async with await asyncio.start_unix_server(handle, path):
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(b"hello\\n")
        print((await reader.readline()).decode().strip())

asyncio.run(serve())
first = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
first.bind(path + "2")
first.listen()
second = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
os.set_inheritable(second.fileno(), True)
second.settimeout(5)
second.connect(path + "2")
second.send(b"a record")
print(first.accept()[0].recv(99).decode(), os.get_inheritable(second.fileno()), os.get_blocking(second.fileno()))
for way in "fork", "spawn", "forkserver":
    with get_context(way).Pool(2) as pool:
        print(sum(pool.map(abs, [-1, -2])))
with get_context("fork").Manager() as manager:
    print(manager.list([1, 2]))
shutil.copy2("/etc/alternatives/README", path + "3")
os.fchmod(os.open(path + "3", os.O_RDONLY), 0o640)
print(oct(os.stat(path + "3").st_mode & 0o777), int(os.stat(path + "3").st_mtime) == int(os.stat("/etc/alternatives/README").st_mtime))
"""


@harness.case("what ordinary programs do with sockets and files goes on in a container", alone=True)
def container():
    if not harness.ROOT:
        raise harness.Skip("a container is made by root")
    with tempfile.TemporaryDirectory(prefix="callbox-test-", dir="/var/tmp") as place:  # it has a /tmp of its own
        binary = shutil.copy(harness.callbox_path(), place)
        result = run(False, "/usr/bin/python3", "-c", IN_CONTAINER, options=("--processes", "100"), prefix=CONTAINER, box=None,
                     binary=binary, timeout=60)
    equal(text(result), "heard hello\na record True False\n3\n3\n3\n[1, 2]\n0o640 True\n")
    check("subreaper" in result.guarantee("tree-kill")["by"], result.guarantee("tree-kill"))


@for_people("shared memory is the box's own")
def shared(user):
    name = f"callbox-{os.getpid()}-{int(user)}"
    script = f"""
import subprocess, sys
from multiprocessing import shared_memory
own = shared_memory.SharedMemory(create=True, size=99, name="{name}")
own.buf[:4] = b"here"
print(subprocess.run([sys.executable, "-c", "import os; print(os.pread(os.open('/dev/shm/{name}', os.O_RDONLY | os.O_NOFOLLOW), 4, 0))"],
                     stdout=subprocess.PIPE).stdout.decode().strip())
own.unlink()
"""
    outside = pathlib.Path("/dev/shm") / name
    outside.write_text("the host's")
    try:
        os.chmod(outside, 0o666)
        equal(text(run(user, "/usr/bin/python3", "-c", script)), "b'here'\n")
        equal(outside.read_text(), "the host's")
    finally:
        outside.unlink()


# ---- Files -------------------------------------------------------------------------------------


@for_people("a hidden file and a hidden directory in a tree that is shown")
def hidden(user):
    place = SCRATCH.directory(user=user)
    for name in ("open", "secret", "d/inside", "d/private", "e/other"):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(f"{name}\n")
    script = f"cd {place}; cat open secret d/inside d/private e/other; ls d"
    result = run(user, "sh", "-c", script, options=("--read", place, "--hide", place / "secret", "--hide", place / "d/private"))
    equal(result.stdout.split(), ["open", "d/inside", "e/other", "inside", "private"])
    result = run(user, "sh", "-c", f"ls {place}/d; cat {place}/d/inside {place}/open", options=("--read", place, "--hide", place / "d"))
    equal(result.stdout, "open\n")
    # What every box is shown is hidden as well.
    for options in ((), ("--read", "/etc")):
        script = "head -c1 /etc/profile; head -c1 /etc/passwd; head -c4 /etc/group"
        options += ("--hide", "/etc/profile", "--hide", "/etc/passwd")
        equal(run(user, "sh", "-c", script, options=options).stdout, "root")


@for_people("a workspace can be worked in, by the tools that there are")
def workspace(user):
    place = SCRATCH.directory(user=user)
    script = """set -e
        mkdir -p a/b; echo x >a/b/f; mv a/b/f a/f; ln a/f a/g; ln -s f a/h; chmod +x a/f; test -x a/f
        touch -d 2001-01-01 a/f; cp -p a/f c; test "$(stat -c %Y c)" = "$(stat -c %Y a/f)"
        tar cf t.tar a; mkdir out; tar xf t.tar -C out; rm -r a; truncate -s 100 c; test -s c
        (sleep 60 & kill $!; wait $! 2>/dev/null || true); mkfifo p; (echo y >p &) ; cat p
        test "$HOME" = "$TMPDIR"; echo z >"$TMPDIR/z"; cat "$TMPDIR/z"; ls"""
    result = run(user, "sh", "-c", script, options=("--workspace", place))
    equal(result.stdout.split(), ["y", "z", "c", "out", "p", "t.tar"], result.brief())


@for_people("protected names hold, whether they are there or not")
def protected(user):
    place = SCRATCH.directory(user=user)
    (place / ".git").mkdir()
    (place / ".git/config").write_text("kept\n")
    for path in (place / ".git", place / ".git/config"):
        harness.Scratch.own(path, user)
    script = """echo x >.git/config; echo x >>.git/config; rm -f .git/config; mv .git g; : >.envrc; mkdir .git/hooks
        exec 3<.git/config; echo x >/proc/self/fd/3; chmod 777 .git/config; truncate -s 0 .git/config; true"""
    result = run(user, "sh", "-c", script, options=("--workspace", place))
    equal((place / ".git/config").read_text(), "kept\n")
    equal(sorted(p.name for p in place.iterdir()), [".git"])
    check(any(d["kind"] == "protected" for d in result.report["denials"]), result.report["denials"])


# ---- The end -----------------------------------------------------------------------------------


def tree(pid):
    """Keeper and init of the box that this process has made."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
    keeper = int(children.read_text().split()[0])
    return keeper, int(pathlib.Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()[0])


@contextlib.contextmanager
def living(user, mark):
    script = f"setsid sleep 300.{mark} & (sleep 301.{mark} &) ; sleep 302.{mark}"
    command = [CALLBOX, "run", "--box", "landlock", "--", "sh", "-c", script]
    process = subprocess.Popen(harness.as_user(command) if user else command, cwd="/", stderr=subprocess.DEVNULL)
    try:
        check(wait_until(lambda: len(harness.processes_with(f".{mark}")) >= 4, 10), "the box does not start")
        yield process
    finally:
        harness.end(process)


def base(user):
    return pathlib.Path(f"/tmp/callbox-{harness.USER_ID if user and harness.ROOT else os.getuid()}")


def abandoned(user):
    """Directories that nobody holds; others may run boxes at the same time."""
    found = []
    for path in base(user).iterdir() if base(user).exists() else ():
        with contextlib.suppress(OSError):
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
                found.append(path)
            finally:
                os.close(fd)
    return found


OPENER = """
import os, sys, time
os.mkfifo(sys.argv[1])
opener = os.fork()
if opener == 0:
    os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
time.sleep(0.05)
os.kill(opener, 9)
os.wait()
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    try:
        os.open("/proc/1/environ", os.O_RDONLY | os.O_CREAT)
    except OSError:
        pass
os._exit(0)
"""


@for_people("what init opens for a program, and is never opened, does not keep the call", alone=True)
def opened_for_ever(user):
    """Many at once: main has to end between two looks of a busy init at its processes."""
    place = SCRATCH.directory(user=user)
    options = ("--workspace", place, "--timeout", 10)

    def once(number):
        fifo, seconds = str(place / f"fifo-{number}"), str(number % 16 / 80)
        return run(user, "/usr/bin/python3", "-IS", "-c", OPENER, fifo, seconds, options=options)

    with concurrent.futures.ThreadPoolExecutor(12) as crowd:
        for result in crowd.map(once, range(5 * ROUNDS)):
            equal(result.reason, "exited", result.brief())


@for_people("a slow reader gets all that a program has written, however long its box takes to go", alone=True)
def slow_to_go(user):
    mark = f"reader-{os.getpid()}-{int(user)}"
    command = [CALLBOX, "run", "--box", "landlock", "--", "sh", "-c", "read line; head -c 100000 /dev/zero", mark]
    process = subprocess.Popen(harness.as_user(command) if user else command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")
    try:
        check(wait_until(lambda: harness.programs(f"sh\0-c\0read line; head -c 100000 /dev/zero\0{mark}"), 10), "the box does not start")
        keeper, _ = tree(process.pid)
        os.kill(keeper, signal.SIGSTOP)
        process.stdin.write(b"\n")
        process.stdin.close()
        time.sleep(3)  # by then it was asked to go
        os.kill(keeper, signal.SIGCONT)
        time.sleep(3)  # and by then it must have gone
        equal(len(process.stdout.read()), 100000, "bytes")
        equal(process.wait(20 * harness.SLOW), 0, "exit code")
    finally:
        harness.end(process)
        process.stdout.close()


@for_people("the end of keeper, init or caller is the end of all", alone=True)
def deaths(user):
    for number in range(ROUNDS):
        for who in ("caller", "keeper", "init"):
            mark = f"{os.getpid()}{int(user)}{number}"
            with living(user, mark) as process:
                keeper, init = tree(process.pid)
                os.kill({"caller": process.pid, "keeper": keeper, "init": init}[who], signal.SIGKILL)
                process.wait(timeout=10)
                check(wait_until(lambda: not harness.processes_with(f".{mark}"), 5), f"{who}: somebody is left")
    equal(run(user, "true").code, 0)  # what a keeper has left goes with the next box
    check(wait_until(lambda: not abandoned(user), 5), "a directory is left")


@for_people("what is left in its directory goes, however deep and closed", alone=True)
def emptied(user):
    script = """cd "$TMPDIR"; i=0; while [ $i -lt 300 ]; do mkdir -p d/e; echo x >d/f; cd d; i=$((i+1)); done
        cd "$TMPDIR"; mkdir closed; : >closed/f; chmod 0 closed; ln -s /usr link; mkfifo p"""
    result = run(user, "sh", "-c", script)
    equal(result.reason, "exited", result.brief())
    check(wait_until(lambda: not abandoned(user), 5), "a directory is left")
    check(os.path.isdir("/usr/bin"), "a link was followed")
    # A name that nobody could guess is used where all others are taken: it goes as well.
    odd = pathlib.Path(f"{base(user)}-4000000000")
    (odd / "left" / "deep").mkdir(parents=True)
    odd.chmod(0o711)
    for path in (odd, odd / "left", odd / "left" / "deep") if user and harness.ROOT else ():
        os.chown(path, harness.USER_ID, harness.USER_ID)
    equal(run(user, "true").code, 0)
    check(wait_until(lambda: not odd.exists(), 5), "what a killed keeper has left is still there")


@for_people("nothing is left in /tmp, whoever comes and goes at the same time")
def nothing_left_in_tmp(user):
    rounds, at_once = (2, 4) if os.environ.get("CALLBOX_SMOKE") else (10, 8)
    name = base(user)
    squat = f"for i in '' -1 -2 -3 -4 -5 -6 -7 -8 -9 -10 -11 -12 -13 -14 -15; do : >{name}$i; done"
    many = f"i=0; while [ $i -lt {rounds} ]; do i=$((i+1)); j=0; all=; while [ $j -lt {at_once} ]; do j=$((j+1)); \"$@\" & all=\"$all $!\"; done; for p in $all; do wait $p || echo failed; done; done"
    with tempfile.TemporaryDirectory(prefix="callbox-test-", dir="/var/tmp") as place:
        os.chmod(place, 0o755)
        binary = shutil.copy(CALLBOX, place)
        for script, left in (('"$@"', []), (many, []), (f'{squat}; "$@"; for i in {name}*; do test -f $i && rm $i; done', [])):
            command = ["unshare", "-U", "--map-root-user", "-m", "sh", "-c", f"mount -t tmpfs none /tmp && cd / && {script}; ls -A /tmp", "sh"]
            command += [binary, "run", "--box", "landlock", "--", "sh", "-c", "echo x >$TMPDIR/x && test -s $TMPDIR/x"]
            result = harness.execute(harness.as_user(command) if user else command, cwd="/", timeout=120)
            equal((result.out.decode().split(), result.code), (left, 0), f"{script}: {result.brief()}")


@for_people("who holds the lock of the directory above for ever does not keep boxes for ever", alone=True)
def locked(user):
    mark = f"{os.getpid()}{int(user)}8"
    with living(user, mark):
        held = os.open(base(user), os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(held, fcntl.LOCK_EX)
            result = run(user, "true", timeout=60)
            equal((result.reason, result.report["error"]["where"]), ("setup", ""), result.brief())
        finally:
            os.close(held)
        equal(run(user, "true").reason, "exited")


@for_people("a directory whose box lives is not taken for one that was left", alone=True)
def kept(user):
    mark = f"{os.getpid()}{int(user)}9"
    with living(user, mark):
        pid = min(harness.processes_with(f"302.{mark}") - harness.processes_with("landlock"))
        variables = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        own = next(v[7:] for v in variables if v.startswith(b"TMPDIR="))
        for _ in range(5):
            equal(run(user, "true").code, 0)
        check(os.path.isdir(own), "it was removed")


# ---- Limits ------------------------------------------------------------------------------------

MANY = """
import mmap, os, sys, time
shared, each, count = int(sys.argv[1]) << 20, int(sys.argv[2]) << 20, int(sys.argv[3])
common = bytearray(os.urandom(1) * shared)
ready, done = os.pipe(), os.pipe()
for _ in range(count):
    if os.fork() == 0:
        own = bytearray(b"x" * each)
        os.write(ready[1], b".")
        os.read(done[0], 1)
        os._exit(0)
for _ in range(count):
    os.read(ready[0], 1)
time.sleep(0.2)
print("all there")
os.write(done[1], b"x" * count)
"""


@for_people("memory of 50 processes: shared pages count once, own ones all", alone=True)
def memory(user):
    python = ("/usr/bin/python3", "-c", MANY)
    options = ("--memory", "512M", "--processes", "100")
    result = run(user, *python, "20", "0", "50", options=options)  # 20 MB in each, the same
    equal(text(result), "all there\n")
    result = run(user, *python, "0", "40", "50", options=options)  # 40 MB in each, its own
    equal(result.reason, "memory", result.brief())
    # It was seen not long after it was crossed: far from the 2 GB that it would have come to.
    check(result.report["usage"]["memory_peak"] < 900 << 20, result.report["usage"])


# One after the other, and the time at which all have more than a number of megabytes.
IN_TURN = """
import os, sys, time
each, limit = int(sys.argv[1]) << 20, int(sys.argv[2]) << 20
ready = os.pipe()
for number in range(50):
    if os.fork() == 0:
        own = bytearray(each)
        own[::4096] = b"x" * len(own[::4096])
        os.write(ready[1], b".")
        time.sleep(60)
    os.read(ready[0], 1)
    if number * each <= limit < (number + 1) * each:
        print(time.monotonic(), flush=True)
"""


@for_people("a tree that has too much memory is ended at once", alone=True)
def crossed(user):
    late = []
    for _ in range(10):
        result = run(user, "/usr/bin/python3", "-c", IN_TURN, "40", "512", options=("--memory", "512M", "--processes", "100"))
        equal(result.reason, "memory", result.brief())
        # Nothing was written: it was ended while the last page was touched.
        late.append(time.monotonic() - float(result.stdout or "inf"))
        if late[-1] < 0.1:
            return
    check(min(late) < 0.1 * harness.SLOW, f"ended {min(late):.3f} s after it had too much, at best")


@for_people("processes and processor time have their limits", alone=True)
def limits(user):
    result = run(user, "sh", "-c", "while :; do sleep 5 & done", options=("--processes", "20"))
    equal(result.reason, "pids", result.brief())
    result = run(user, "sh", "-c", "while :; do :; done", options=("--cpu", "0.3"))
    equal(result.reason, "cpu", result.brief())
    result = run(user, "sleep", "9", options=("--timeout", "0.2"))
    equal(result.reason, "timeout", result.brief())


# ---- Wardens -----------------------------------------------------------------------------------


@contextlib.contextmanager
def warden(user):
    path = str(SCRATCH.directory(user=user) / "warden")
    command = [CALLBOX, "warden", "--socket", path]
    process = subprocess.Popen(harness.as_user(command) if user else command, cwd="/", stdin=subprocess.DEVNULL)
    try:
        check(wait_until(lambda: os.path.exists(path), 10), "no warden")
        yield path
    finally:
        harness.end(process)


@for_people("a warden keeps such boxes ready, and leaves nothing of them", alone=True)
def prepared(user):
    with warden(user) as path:
        for number in range(ROUNDS * 2):
            result = run(user, "sh", "-c", f'echo {number} >"$TMPDIR/f"; cat "$TMPDIR/f"; ls -A "$TMPDIR"', options=("--warden", path))
            equal(result.stdout, f"{number}\nf\n")
    check(wait_until(lambda: not abandoned(user), 5), "a directory is left")


@for_people("a program that would be forked from a zygote is started in each box", alone=True)
def not_forked(user):
    env = {**os.environ, "CALLBOX_FORKED": "1"}
    with warden(user) as path:
        for number in range(5):
            options = ("--warden", path, "--read", str(SCRATCH.bin))
            result = run(user, ZYGOTE, "/bin/true", str(number), options=options, binary=UNFENCED, env=env)
            equal(text(result), "UNTRIED this box was not forked\n")


if __name__ == "__main__":
    sys.exit(harness.main(after=SCRATCH.remove))
