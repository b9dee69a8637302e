#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The guard: init makes the calls of a workspace as the kernel would, and nothing gets by it."""

import os
import subprocess
import sys
import time

import harness
from harness import check, equal

SCRATCH = harness.Scratch()
CALLBOX = SCRATCH.install(harness.callbox_path(), "callbox")
PEOPLE = harness.PEOPLE

# One line for each call: what it was and what came of it. Run in a directory that is written to
# directly and in a workspace, where init makes the calls, the lines must be the same.
DIFFERENTIAL = r"""
import errno, os, socket, stat, threading
def tell(what, call, *args, **more):
    try:
        result = call(*args, **more)
        if isinstance(result, int) and result > 2:
            os.close(result)
        result = "ok"
    except OSError as error:
        result = errno.errorcode.get(error.errno, error.errno)
    print(what, result, sorted(os.listdir(".")))
W, C, X = os.O_WRONLY, os.O_CREAT, os.O_EXCL
tell("open before there is another umask", os.open, "u0", W | C, 0o666)
if os.fork() == 0:
    os.umask(0o077)
    os.mkdir("u1", 0o777)
    os._exit(0)
os.wait()
os.mkdir("u2", 0o777)
here = os.open(".", os.O_RDONLY)
thread = threading.Thread(target=os.mkdir, args=("u3", 0o770), kwargs={"dir_fd": here})
thread.start()
thread.join()
print([oct(os.stat(name).st_mode) for name in ("u0", "u1", "u2", "u3")])
tell("below a file that is open", os.mkdir, "x", dir_fd=os.open("u0", W))
tell("below nothing that is open", os.mkdir, "x", dir_fd=99)
os.dup2(os.open("u2", os.O_RDONLY), here)
tell("below what took a descriptor's place", os.mkdir, "x", dir_fd=here)
print(os.listdir("u2"))
tell("chmod of no descriptor", os.fchmod, -100, 0o700)
tell("chmod of the directory", os.chmod, ".", os.stat(".").st_mode & 0o777)
tell("chmod of a file's directory", os.chmod, "u0/.", 0o700)
tell("chmod above", os.chmod, "u2/..", os.stat(".").st_mode & 0o777)
os.umask(0o027)
tell("open new", os.open, "a", W | C, 0o666)
print(oct(os.stat("a").st_mode))
tell("open again", os.open, "a", W | C)
tell("open exclusively", os.open, "a", W | C | X)
tell("open a directory", os.open, ".", W | C)
tell("open with a slash", os.open, "new/", W | C)
tell("open in nothing", os.open, "none/new", W | C)
tell("mkdir", os.mkdir, "d", 0o777)
print(oct(os.stat("d").st_mode))
tell("mkdir with a slash", os.mkdir, "e/")
tell("mkdir again", os.mkdir, "d")
tell("mkdir below a file", os.mkdir, "a/x")
tell("open relative to a descriptor", os.open, "f", W | C, dir_fd=os.open("d", os.O_RDONLY))
tell("symlink", os.symlink, "a", "link")
tell("symlink with a slash", os.symlink, "a", "x/")
tell("open through a link", os.open, "link", W | C)
tell("open a link, not following", os.open, "link", W | C | os.O_NOFOLLOW)
tell("open a link with a slash", os.open, "link/", W | C)
os.symlink("made", "dangling")
tell("open through a dangling link", os.open, "dangling", W | C)
tell("open a dangling link exclusively", os.open, "dangling", W | C | X)
os.symlink("loop", "loop")
tell("open a loop", os.open, "loop", W | C)
tell("link", os.link, "a", "hard")
tell("link to a slash", os.link, "a", "x/")
tell("link from a slash", os.link, "a/", "x")
tell("link again", os.link, "a", "hard")
tell("rename", os.rename, "hard", "harder")
tell("rename to a slash", os.rename, "harder", "missing/")
tell("rename a directory to a slash", os.rename, "e", "ee/")
tell("rename over a directory", os.rename, "harder", "d")
tell("rename a directory over a file", os.rename, "d", "a")
tell("rename nothing", os.rename, "nothing", "something")
tell("rename dot", os.rename, ".", "x")
tell("mkfifo", os.mkfifo, "fifo")
tell("mknod of a device", os.mknod, "dev", stat.S_IFCHR | 0o600, os.makedev(1, 3))
tell("a long name", os.open, "n" * 256, W | C)
tell("an empty name", os.open, "", W | C)
tell("through /proc/self/cwd", os.open, "/proc/self/cwd/viacwd", W | C)
tell("through /proc/self/fd", os.open, f"/proc/self/fd/{os.open('.', os.O_RDONLY)}/viafd", W | C)
tell("the output again", os.open, "/dev/stdout", W | C)
tell("the output by /dev/fd", os.open, "/dev/fd/1", W | C)
tell("a tmpfs", os.open, "/tmp/file", W | C)
tell("a read-only tree", os.open, "/usr/file", W | C)
tell("bind", socket.socket(socket.AF_UNIX).bind, "socket")
tell("bind again", socket.socket(socket.AF_UNIX).bind, "socket")
tell("bind in nothing", socket.socket(socket.AF_UNIX).bind, "none/socket")
a = os.open("a", os.O_RDWR)
for name in ("a", "d", "d/f", "link", "none", "none/x", "a/x", "d/..", ".", "/proc/self/status", "/dev/null", "/usr/bin/env", "/etc/passwd", f"/proc/self/fd/{a}"):
    for flags in (os.O_RDONLY, W, os.O_RDWR | os.O_APPEND, os.O_TRUNC, os.O_DIRECTORY, os.O_NOFOLLOW, os.O_PATH, os.O_TMPFILE | W):
        tell(f"open {name if '/fd/' not in name else 'again'} {flags:#x}", os.open, name, flags)
for name in ("a", "d", "link", "none", "/usr/bin/env", f"/proc/self/fd/{a}"):
    which = name if "/fd/" not in name else "by descriptor"
    tell(f"chmod {which}", os.chmod, name, 0o700)
    tell(f"chown {which}", os.chown, name, -1, -1)
    tell(f"utime {which}", os.utime, name, (1, 1))
    tell(f"utime now {which}", os.utime, name)
    tell(f"truncate {which}", os.truncate, name, 3)
    tell(f"setxattr {which}", os.setxattr, name, "user.x", b"y")
    tell(f"removexattr {which}", os.removexattr, name, "user.x")
tell("lutime", os.utime, "link", (1, 1), follow_symlinks=False)
tell("fchmod", os.fchmod, a, 0o640)
tell("futime", os.utime, a, (2, 2))
tell("fsetxattr", os.setxattr, a, "user.x", b"y" * 1000)
tell("ftruncate", os.ftruncate, a, 7)
print(os.stat("a").st_size, oct(os.stat("a").st_mode), os.stat("a").st_atime)
memory = os.memfd_create("m")
tell("fchmod of memory", os.fchmod, memory, 0o600)
tell("unlink", os.unlink, "a")
gone = os.open("gone", os.O_RDWR | C)
os.unlink("gone")
tell("fchmod of what is gone", os.fchmod, gone, 0o600)
tell("open what is gone", os.open, f"/proc/self/fd/{gone}", W)
tell("unlink again", os.unlink, "a")
tell("unlink a directory", os.unlink, "d")
tell("unlink with a slash", os.unlink, "harder/")
tell("rmdir that is not empty", os.rmdir, "d")
tell("rmdir of a file", os.rmdir, "harder")
tell("unlink in a directory", os.unlink, "f", dir_fd=os.open("d", os.O_RDONLY))
tell("rmdir", os.rmdir, "d")
tell("rmdir dot", os.rmdir, ".")
"""


def run(*args, user=False, **more):
    return harness.callbox(["run", *args], binary=CALLBOX, user=user, **more)


for name, user_ in PEOPLE:

    @harness.case(f"calls that init makes end as the kernel's own, as {name}")
    def differential(user=user_):
        lines = []
        for option in ("--write", "--workspace", "--hide"):
            directory = SCRATCH.directory(user=user)
            (directory / ".env").write_text("hidden")
            harness.Scratch.own(directory / ".env", user)
            options = ["--workspace", str(directory), "--hide", str(directory / ".env")] if option == "--hide" else [option, str(directory)]
            result = run("-q", "--cwd", str(directory), *options, "--",
                         "/usr/bin/python3", "-c", DIFFERENTIAL, user=user)
            equal(result.code, 0, result.brief())
            lines.append(result.out.decode().splitlines())
        check(len(lines[0]) > 200, f"only {len(lines[0])} lines")
        for plain, guarded, hiding in zip(*lines):
            equal(guarded, plain, "by init")
            equal(hiding, plain, "by init, with something hidden")
        equal([len(l) for l in lines], [len(lines[0])] * 3, "lines")

    @harness.case(f"what the host saves beside a hidden file can be read, and a script needs no #!, as {name}")
    def saved_beside(user=user_):
        directory = SCRATCH.directory(user=user)
        for file, text in ((".env", "hidden"), ("notes", "old"), ("script", "read x; cat notes; cat .env")):
            (directory / file).write_text(text + "\n")
            (directory / file).chmod(0o755)
            harness.Scratch.own(directory / file, user)
        command = [CALLBOX, "run", "-q", "--cwd", str(directory), "--read", str(directory), "--hide", str(directory / ".env"), "--", "./script"]
        command = harness.as_user(command) if user else command
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            time.sleep(0.3)
            for file in ("notes", ".env"):
                (directory / "new").write_text("saved\n")
                os.rename(directory / "new", directory / file)
            out, error = process.communicate(b"go\n", timeout=20)
        equal(out, b"saved\n", f"{error}")

    @harness.case(f"ordinary bash works in a workspace, as {name}")
    def bash(user=user_):
        directory = SCRATCH.directory(user=user)
        script = "echo one | tee >(cat >two); sleep 0.3; cat two; exec 3>three; echo x >/dev/fd/3; cat three"
        result = run("-q", "--workspace", str(directory), "--", "bash", "-c", script, user=user)
        equal(result.out, b"one\none\nx\n", result.brief())

    DENIED = {
        "connect": "import socket; s=socket.socket(); s.bind(('127.0.0.1',0)); s.listen();"
        " socket.socket().connect(s.getsockname())",
        "mkdir": "import os; os.mkdir('/tmp/made')",
        "symlink": "import os; os.symlink('x', '/tmp/made')",
        "rename": "import os; open('/tmp/a', 'w').close(); os.rename('/tmp/a', '/tmp/b')",
        "bind": "import socket; socket.socket().bind(('127.0.0.1', 0))",
        "readlink": "import os; os.readlink('/bin')",
    }

    @harness.case(f"a call that the policy denies is made by nobody, as {name}")
    def denied(user=user_):
        directory = SCRATCH.directory(user=user)
        for call, script in DENIED.items():
            for extra in ([], ["--workspace", str(directory)], ["--explain"]):
                options = [*extra, "--net", "loopback", "--deny-syscall", call, "--json"]
                program = ["--", "/usr/bin/python3", "-S", "-c", script]
                result = run(*options, *program, user=user)
                found = {d["what"] for d in result.report["denials"] if d["kind"] == "syscall"}
                check(call in found, f"{call} {extra}: {result.brief()}")
                check(call == "readlink" or result.report["code"] != 0, f"{call} {extra} worked")
                result = run("--on-denied", "kill", *options, *program, user=user)
                equal(result.reason, "denied", f"{call} {extra} with kill: {result.brief()}")

    @harness.case(f"a program cannot name itself into init's descriptors, as {name}")
    def spoofed(user=user_):
        directory = SCRATCH.directory(user=user)
        script = (
            "import ctypes, socket\n"
            "libc = ctypes.CDLL(None, use_errno=True)\n"
            "libc.prctl(15, b'Tgid:1', 0, 0, 0)\n"
            "for fd in range(3, 64):\n"
            "    path = b'/tmp/spoof%d' % fd\n"
            "    name = (1).to_bytes(2, 'little') + path.ljust(108, b'\\0')\n"
            "    if libc.bind(fd, name, len(name)) == 0: print('bound', fd)\n"
        )
        result = run("-q", "--workspace", str(directory), "--", "/usr/bin/python3", "-c", script, user=user)
        equal((result.code, result.out), (0, b""), result.brief())


@harness.case("a second reader of the caller's pipe does not hold up the deadline")
def shared_pipe():
    read, write = os.pipe()
    os.write(write, b"hi\n")
    process = subprocess.Popen([CALLBOX, "run", "-q", "--timeout", "1", "--", "sh", "-c", "sleep 0.3; cat"],
                               stdin=read, stdout=subprocess.DEVNULL)
    time.sleep(0.15)
    os.read(read, 10)
    equal(process.wait(timeout=20), 124, "exit code")
    os.close(read)
    os.close(write)


@harness.case("output that the caller's device refuses is not lost in silence")
def full_device():
    with open("/dev/full", "wb") as full:
        result = subprocess.run([CALLBOX, "run", "--", "echo", "hi"], stdout=full,
                                stderr=subprocess.PIPE, timeout=30)
    equal(result.returncode, 125, "exit code")
    check(b"could not be written: No space left on device" in result.stderr, result.stderr)


@harness.case("a rule beside a hidden directory leaves open what is shown below it")
def hidden_neighbour():
    directory = SCRATCH.directory()
    for part in ("b/d", "b-c"):
        (directory / part).mkdir(parents=True)
    (directory / "b/d/file").write_text("shown\n")
    (directory / "b/secret").write_text("hidden\n")
    options = ["--read", directory, "--hide", directory / "b", "--read", directory / "b/d",
               "--read", directory / "b-c"]
    script = f"cat {directory}/b/d/file; cat {directory}/b/secret 2>/dev/null; ls {directory}/b 2>/dev/null; true"
    result = run("-q", *map(str, options), "--", "sh", "-c", script)
    equal(result.out, b"shown\n", result.brief())


@harness.for_people("who opens a pipe for a program that was killed is not left")
def killed_in_opening(user):
    place = SCRATCH.directory(user=user)
    script = ("import os, signal, time\nos.mkfifo('p')\n"
              "for _ in range(100):\n"
              "  pid = os.fork()\n"
              "  if pid == 0: os.open('p', os.O_WRONLY); os._exit(0)\n"
              "  time.sleep(0.005); os.kill(pid, 9); os.waitpid(pid, 0)\n"
              "print('done')\n")
    result = run("-q", "--processes", "24", "--workspace", str(place), "--", "python3", "-c", script, user=user)
    equal(result.out, b"done\n", result.brief())


# ---- The host works meanwhile ----

UNFENCED = SCRATCH.install(os.environ.get("CALLBOX_UNFENCED") or str(harness.REPO / "build/tests/callbox-unfenced"), "callbox-unfenced")

# Tries to get at what is kept, says what it got, before and after what the host does.
TRIES = """
import os, sys
def tried(name, call):
    try:
        call()
        print(name, flush=True)
    except OSError:
        pass
{begin}
print("ready", flush=True)
sys.stdin.readline()
{tries}
print("done", flush=True)
"""


def while_the_host(begin, tries, act, user, options, control=False):
    """What a program in a box got hold of after the host has done something."""
    place = SCRATCH.directory(user=user)
    for part in ("ws/.git/hooks", "ws/sub", "out"):
        (place / part).mkdir(parents=True)
    for name, text in (("ws/.git/config", "[core]\n"), ("ws/.envrc", "old\n"), ("ws/sub/.env", "old\n")):
        (place / name).write_text(text)
    for path in (place, *place.rglob("*")):
        harness.Scratch.own(path, user)
    fences = ["--without", "protect,hide"] if control else []
    command = [UNFENCED if control else CALLBOX, "run", "-q", "--timeout", "30", *fences, *options, "--workspace", str(place / "ws"), "--", "python3", "-c",
               TRIES.format(begin=begin, tries=tries)]
    process = subprocess.Popen(harness.as_user(command) if user else command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               cwd=place / "ws")
    before, line = b"", process.stdout.readline()
    while line not in (b"ready\n", b""):
        before, line = before + line, process.stdout.readline()
    act(place)
    out, _ = process.communicate(b"\n", timeout=60)
    check(out.endswith(b"done\n"), f"it came to its end: {before + out}")
    return (before + out).decode().splitlines()[:-1]


def move_out(place):
    """As an editor and git save, and then the directories leave the workspace."""
    for name in ("ws/sub/.env", "ws/.git/config"):
        (place / "out/new").write_text("new\n")
        os.chmod(place / "out/new", 0o666)
        os.replace(place / "out/new", place / name)
    os.rename(place / "ws/.git/hooks", place / "out/hooks")
    os.mkdir(place / "ws/.git/hooks")
    os.chmod(place / "ws/.git/hooks", 0o777)
    for name in ("sub", ".git"):
        os.rename(place / "ws" / name, place / "out" / name)


MOVED_BEGIN = "sub, git = os.open('sub', os.O_PATH), os.open('.git', os.O_PATH)"
MOVED = """
tried("read", lambda: os.open(".env", os.O_RDONLY, dir_fd=sub))
tried("write", lambda: os.open("config", os.O_WRONLY, dir_fd=git))
tried("make", lambda: os.open("hooks/pre-commit", os.O_WRONLY | os.O_CREAT, dir_fd=git))
tried("move", lambda: os.rename("config", "config.x", src_dir_fd=git, dst_dir_fd=git))
os.fchdir(git)
tried("write here", lambda: os.open("config", os.O_WRONLY))
tried("mode", lambda: os.chmod("config", 0o600))
"""


@harness.for_people("S3: what the host replaces and then moves out of the tree stays kept and hidden")
def moved_out(user):
    options = ["--hide", "sub/.env"]
    equal(while_the_host(MOVED_BEGIN, MOVED, move_out, user, options), [], "what it got")


@harness.case("S3: without the fences, all of that is got")
def moved_out_control():
    found = while_the_host(MOVED_BEGIN, MOVED, move_out, True, ["--hide", "sub/.env"], control=True)
    check({"read", "write", "make"} <= set(found), f"got {found}")


# Names under which the host writes what it then renames.
DRAFTS = (".envrc.tmp", ".envrc~", ".envrc.lock", ".envrc.4711", "..envrc.swp", ".#.envrc", ".ENVRC.new", ".git/config.lock")
DRAFT_BEGIN = "for name in {names!r}:\n    tried(name, lambda: held.append(os.open(name, os.O_RDWR | os.O_CREAT)))"


def drafts(user, options):
    begin = "held = []\n" + DRAFT_BEGIN.format(names=DRAFTS)
    tries = "tried('later', lambda: os.open('.envrc.part', os.O_WRONLY))\nfor fd in held: print('held')"

    def save(place):
        (place / "ws/.envrc.part").write_text("host's\n")
        os.chmod(place / "ws/.envrc.part", 0o666)

    equal(while_the_host(begin, tries, save, user, options), [], "what it got")


for _box in ("namespaces", "landlock"):
    harness.for_people(f"S3: nor are the names open under which editors and git write what becomes a kept file ({_box})")(
        lambda user, box=_box: drafts(user, ["--box", box]))


@harness.case("S3: without the fence, they are")
def drafts_control():
    begin = "held = []\n" + DRAFT_BEGIN.format(names=DRAFTS)
    found = while_the_host(begin, "", lambda place: None, True, [], control=True)
    equal(sorted(found), sorted(DRAFTS), "what it got")


if __name__ == "__main__":
    sys.exit(harness.main(after=SCRATCH.remove))
