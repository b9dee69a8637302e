#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a box refuses is told with the line of a policy that allows it; and that line does.

Each row is a program that is refused something. It is run once to see what the report says, and again
under the same policy with the lines that the report gave: then it must work, and nothing be refused."""

import json
import os
import socket
import stat
import sys

import harness
from harness import case, check, equal, for_people

SCRATCH = harness.Scratch()
CALLBOX = SCRATCH.install(harness.callbox_path(), "callbox")
PYTHON = "/usr/bin/python3"


def python(line):
    return [PYTHON, "-S", "-c", "import os, socket\n" + line]


def merged(policy, part):
    """A policy with one more line in it. A list is added to, but for that of protected names, which is whole."""
    result = dict(policy)
    for key, value in part.items():
        if isinstance(value, dict):
            result[key] = merged(result.get(key, {}), value)
        elif isinstance(value, list) and key != "protect":
            if key == "write" and "read" in result:  # two rules for one path are refused, with that advice
                result["read"] = [item for item in result["read"] if item not in value]
            result[key] = result.get(key, []) + [item for item in value if item not in result.get(key, [])]
        else:
            result[key] = value
    return result


def run(policy, command, cwd, user, explain=True):
    file = SCRATCH.directory(user) / "policy.json"
    file.write_text(json.dumps(policy))
    options = ["run", "--json", *(["--explain"] if explain else []), "--policy", str(file), "--cwd", str(cwd), "--", *command]
    result = harness.callbox(options, binary=CALLBOX, user=user, json_report=True, cwd="/")
    for denial in result.report["denials"]:
        check(bool(denial["allow"]) == bool(denial["policy"]) != bool(denial.get("note")), lambda: f"neither an option nor a note, or both: {denial}")
    return result


@for_people("what root may read and the box's user may not, by its mode")
def closed_by_mode(user):
    place = SCRATCH.directory(user)
    for name, mode in (("open", 0o644), ("key", 0o600), ("run", 0o700), ("d/inside", 0o644), ("hidden", 0o600)):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text("#!/bin/sh\necho ran\n")
        (place / name).chmod(mode)
        SCRATCH.own(place / name, user)
    SCRATCH.own(place / "d", user)
    (place / "d").chmod(0o700)
    programs = (("key", ["cat", "key"]), ("run", ["sh", "-c", "./run || exec ./run"]), ("d", ["cat", "d/inside"]), ("d", ["sh", "-c", "cd d && cat inside"]))
    for box in ("namespaces", "landlock"):
        for name, command in programs:
            policy = {"box": box, "files": {"read": [str(place)]}}
            result = run(policy, command, place, user)
            found = [d for d in result.report["denials"] if d["errno"] == "EACCES"]
            if user or not harness.ROOT:  # the box is the owner
                equal((found, result.report["code"]), ([], 0), f"{box} {command}: {result.brief()}")
                continue
            equal([d["what"] for d in found], [str(place / name)], f"{box} {command}: {result.report}")
            check("mode" in found[0]["allow"] and found[0]["allow"].startswith(f"--read {place / name} "), found)
            again = run(merged(policy, json.loads("{" + found[0]["policy"] + "}")), command, place, user)
            equal((again.report["code"], again.report["denials"]), (0, []), f"{box} {command}, allowed: {again.report}")
        result = run({"box": box, "files": {"read": [str(place)]}}, [str(place / "run")], place, user)
        if harness.ROOT and not user:  # nothing of it runs, so it is the error that tells
            check(result.code == 126 and f"--read {place}/run" in result.report["error"]["hint"], result.report["error"])
        for command in (["cat", "open"], ["sh", "-c", "ls -l key d >&2; test -e key; true"], ["sh", "-c", "cat hidden; ./open; true"]):
            result = run({"box": box, "files": {"read": [str(place)], "hide": [str(place / "hidden")]}}, command, place, user)
            found = [d for d in result.report["denials"] if "mode" in d["allow"]]
            expected = [] if user or not harness.ROOT or "ls" not in command[-1] else [str(place / "d")]
            equal([d["what"] for d in found], expected, f"{box} {command}: {result.report}")


class Place:
    """What the programs work on: a workspace, something beside it that is not shown, something that is read-only."""

    def __init__(self, user):
        self.top = SCRATCH.directory(user)
        self.work, self.other, self.shown = (self.top / name for name in ("work", "other", "shown"))
        for directory in (self.work, self.other, self.shown):
            directory.mkdir()
            SCRATCH.own(directory, user)
        for path in (self.other / "secret", self.shown / "file", self.shown / "second"):
            path.write_text("x\n")
            SCRATCH.own(path, user)
        (self.work / "to-secret").symlink_to(self.other / "secret")
        (self.work / "to-shown").symlink_to(self.shown / "file")
        (self.work / "to-new").symlink_to(self.shown / "new")
        self.policy = {"files": {"workspace": str(self.work), "read": [str(self.shown)]}}


UDP = "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"
# name, command, kind, errno, what (of the place), what the line begins with
ROWS = [
    ("a file by its path", ["cat", "{other}/secret"], "file", "ENOENT", "{other}/secret", '"files": {"read"'),
    ("a file by a relative path that leaves the box", ["cat", "../other/secret"], "file", "ENOENT", "{other}/secret", '"files": {"read"'),
    ("a file by a path through a directory that is not there", ["cat", "../other/../other/secret"], "file", "ENOENT", "{other}", '"files": {"read"'),
    ("a file through a link", ["cat", "to-secret"], "file", "ENOENT", "{other}/secret", '"files": {"read"'),
    ("writing to a file that is read-only", ["sh", "-c", "echo x >{shown}/file"], "file", "EROFS", "{shown}/file", '"files": {"write"'),
    ("writing through a link to what is read-only", ["sh", "-c", "echo x >to-shown"], "file", "EROFS", "{shown}/file", '"files": {"write"'),
    ("making a file through a link", ["sh", "-c", "echo x >to-new"], "file", "EROFS", "{shown}/new", '"files": {"write"'),
    ("chmod", ["chmod", "600", "{shown}/file"], "file", "EROFS", "{shown}/file", '"files": {"write"'),
    ("chmod of what is open", python("os.fchmod(os.open('{shown}/file', os.O_RDONLY), 0o600)"), "file", "EROFS", "{shown}/file", '"files": {"write"'),
    ("touch", ["touch", "{shown}/file"], "file", "EROFS", "{shown}/file", '"files": {"write"'),
    ("times of what is open", python("os.utime(os.open('{shown}/file', os.O_RDONLY))"), "file", "EROFS", "{shown}/file", '"files": {"write"'),
    ("a link to be made", ["ln", "-s", "x", "{shown}/link"], "file", "EROFS", "{shown}/link", '"files": {"write"'),
    ("a directory to be made", ["mkdir", "{shown}/new"], "file", "EROFS", "{shown}/new", '"files": {"write"'),
    ("a directory to be made where nothing is shown", ["mkdir", "{other}/new"], "file", "ENOENT", "{other}/new", '"files": {"write"'),
    ("something to be removed where nothing is shown", python("os.unlink('{other}/secret')"), "file", "ENOENT", "{other}/secret", '"files": {"write": ["{other}"]'),
    ("something to be removed that is read-only", ["rm", "{shown}/file"], "file", "EROFS", "{shown}/file", '"files": {"write": ["{shown}"]'),
    ("something to be moved onto what is read-only", python("os.rename('{shown}/second', '{shown}/file')"), "file", "EROFS", "{shown}/file",
     '"files": {"write": ["{shown}"]'),
    ("a socket bound in a directory that is read-only", python("socket.socket(socket.AF_UNIX).bind('{shown}/s')"), "file", "EROFS", "{shown}/s", '"files": {"write"'),
    ("a datagram to the loopback", python(UDP + ".sendto(b'x', ('127.0.0.1', 9))"), "connect", "ENETUNREACH", "127.0.0.1:9", '"network": "loopback"'),
    ("a datagram to the loopback, IPv6", python("socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).sendto(b'x', ('::1', 9))"),
     "connect", "ENETUNREACH", "[0000:0000:0000:0000:0000:0000:0000:0001]:9", '"network": "loopback"'),
    ("a full /tmp", ["dd", "if=/dev/zero", "of=/tmp/x", "bs=1M", "count=65"], "space", "ENOSPC", "/tmp", '"limits": {"tmp_size": "128M"}'),
    ("a full /tmp that was tidied up", ["sh", "-c", "dd if=/dev/zero of=/tmp/x bs=1M count=65; r=$?; rm /tmp/x; exit $r"], "space", "ENOSPC", "/tmp",
     '"limits": {"tmp_size": "128M"}'),
    ("a full /dev/shm", ["dd", "if=/dev/zero", "of=/dev/shm/x", "bs=1M", "count=65"], "space", "ENOSPC", "/dev/shm", '"limits": {"tmp_size": "128M"}'),
    ("a protected name", ["mkdir", ".vscode"], "protected", "EPERM", "{work}/.vscode", '"files": {"protect": ['),
    ("a system call", python("import ctypes\nl = ctypes.CDLL(None, use_errno=True)\nos._exit(l.syscall(250, 0, -3, 0) == -1 and ctypes.get_errno() == 1)"),
     "syscall", "EPERM", "keyctl", '"syscalls": {"allow": ["keyctl"]}'),
]  # fmt: skip


def add_rows(user):
    for name, command, kind, errno, what, line in ROWS:

        def row(command=command, kind=kind, errno=errno, what=what, line=line):
            place = Place(user)
            words = [word.replace("{other}", str(place.other)).replace("{shown}", str(place.shown)) for word in command]
            wanted = what.replace("{other}", str(place.other)).replace("{shown}", str(place.shown)).replace("{work}", str(place.work))
            first = run(place.policy, words, place.work, user)
            check(first.report["code"] not in (0, None), lambda: f"it worked at first: {first.brief()}")
            found = [d for d in first.report["denials"] if d["kind"] == kind and d["what"] == wanted]
            check(found, lambda: f"{kind} {wanted} is not in {first.report['denials']}")
            equal(found[0]["errno"], errno, "the errno")
            start = line.replace("{other}", str(place.other)).replace("{shown}", str(place.shown))
            check(found[0]["policy"].startswith(start), lambda: f"the line is {found[0]['policy']}")
            policy = place.policy
            for denial in first.report["denials"]:
                check(denial["policy"] and denial["allow"], lambda: f"nothing allows {denial}")
                policy = merged(policy, json.loads("{" + denial["policy"] + "}"))
            second = run(policy, words, place.work, user)
            equal(second.report["code"], 0, f"the code under {policy} ({second.brief()})")
            equal([d for d in second.report["denials"] if d["kind"] == kind], [], f"denials under {policy}")

        harness.add(f"{name} is refused with the line that allows it, as {'user' if user else 'root'}", row)


for _user in [False, True] if harness.ROOT else [False]:
    add_rows(_user)


@for_people("many that are alike are one, with the line that allows all of them")
def many(user):
    place = Place(user)
    for number in range(40):
        (place.other / f"f{number}").write_text("x\n")
    script = f"for i in $(seq 0 39); do cat {place.other}/f$i; touch {place.shown}/n$i; done; exit 3"
    result = run(place.policy, ["sh", "-c", script], place.work, user)
    found = {(d["what"], d["errno"]): d for d in result.report["denials"] if d["kind"] == "file"}
    equal(set(found), {(f"{place.other}/*", "ENOENT"), (f"{place.shown}/*", "EROFS")}, "the denials")
    equal([d["count"] for d in found.values()][0] >= 40, True, "how often")
    equal(found[f"{place.other}/*", "ENOENT"]["policy"], f'"files": {{"read": ["{place.other}"]}}', "the line")
    equal(found[f"{place.shown}/*", "EROFS"]["policy"], f'"files": {{"write": ["{place.shown}"]}}', "the line")
    equal(result.report["warnings"], [], "warnings")
    ports = "for p in range(1, 60):\n    try: socket.socket().connect(('10.1.1.1', p))\n    except OSError: pass"
    result = run(place.policy, python(ports), place.work, user)
    equal([(d["kind"], d["what"], d["count"], d["policy"]) for d in result.report["denials"]], [("connect", "10.1.1.1:*", 59, '"network": "host"')], "addresses")
    # Few are told one by one.
    result = run(place.policy, ["sh", "-c", f"cat {place.other}/f1 {place.other}/f2"], place.work, user)
    equal(sorted(d["what"] for d in result.report["denials"]), [f"{place.other}/f1", f"{place.other}/f2"], "two of them")


@for_people("what is not there on the host either, and what works, is not told; nor does it crowd out what is refused")
def quiet(user):
    place = Place(user)
    script = ("i=0; while [ $i -lt 300 ]; do i=$((i+1)); [ -e /usr/lib/nothing$i ]; [ -e nothing$i ]; rm -f /usr/share/nothing$i; done; "
              f"ln -s nowhere dangling; ls -l dangling >/dev/null; [ -L dangling ]; cat {place.other}/secret")  # fmt: skip
    result = run(place.policy, ["sh", "-c", script], place.work, user)
    equal([d["what"] for d in result.report["denials"] if not d["what"].startswith("/etc/")], [f"{place.other}/secret"], "the denials")
    equal(result.report["warnings"], [], "warnings")
    result = run(place.policy, [PYTHON, "-c", "import json, socket, ssl, asyncio; print(1)"], place.work, user)
    equal([d for d in result.report["denials"] if d["kind"] == "file" and d["what"].startswith(("/usr", str(place.top)))], [], "denials of a program that works")


@for_people("addresses that cannot be bound are told; a port below 1024 is allowed by nothing")
def bound(user):
    place = Place(user)
    policy = {**place.policy, "network": "loopback"}
    script = "for a in (('10.1.2.3', 8000), ('127.0.0.1', 80)):\n    try: socket.socket().bind(a)\n    except OSError: pass\nsocket.socket().bind(('127.0.0.1', 8080))"
    result = run(policy, python(script), place.work, user)
    equal(result.report["code"], 0, result.brief())
    equal([(d["kind"], d["what"], d["errno"], d["policy"]) for d in result.report["denials"]],
          [("bind", "10.1.2.3:8000", "EADDRNOTAVAIL", '"network": "host"'), ("bind", "127.0.0.1:80", "EACCES", "")], "the denials")  # fmt: skip
    check("1024" in result.report["denials"][1]["note"], result.report["denials"])


@for_people("a socket of the host's that is not shown, or not to be talked to, is told with the line that allows it")
def host_socket(user):
    place = Place(user)
    (place.other / "deeper").mkdir()
    SCRATCH.own(place.other / "deeper", user)
    servers = [socket.socket(socket.AF_UNIX) for _ in range(2)]
    for server, path in zip(servers, (place.other / "deeper" / "agent", place.shown / "agent")):
        server.bind(str(path))
        server.listen()
        SCRATCH.own(path, user)
        path.chmod(0o666)
    (place.work / "to-agent").symlink_to(place.other / "deeper" / "agent")
    missing, shown = str(place.other / "deeper" / "agent"), str(place.shown / "agent")
    rows = [(place.policy, missing, missing), (place.policy, "../other/deeper/agent", missing), (place.policy, "to-agent", missing),
            ({"files": {"read": [str(place.work)]}}, missing, missing), (place.policy, shown, shown)]  # fmt: skip
    for box in ("namespaces", "landlock"):
        for policy, said, meant in rows:
            connect = python(f"socket.socket(socket.AF_UNIX).connect('{said}')")
            result = run({**policy, "box": box}, connect, place.work, user)
            [denial] = [d for d in result.report["denials"] if d["kind"] == "connect"]
            errno = "ENOENT" if box == "namespaces" and meant == missing else "EACCES"
            equal((denial["what"], denial["errno"], denial["count"]), (meant, errno, 1), f"{box} {said}")
            check(denial["allow"].startswith(f"--write {meant} (") and "service" in denial["allow"], denial)
            again = run(merged({**policy, "box": box}, json.loads("{" + denial["policy"] + "}")), connect, place.work, user)
            equal((again.report["code"], again.report["denials"]), (0, []), f"{box} {said}, allowed: {again.brief()}")
        for said in (str(place.other / "nothing"), str(place.other / "secret"), str(place.work / "nothing"), "/nothing/at/all"):
            result = run({**place.policy, "box": box}, python(f"socket.socket(socket.AF_UNIX).connect('{said}')"), place.work, user)
            found = [d for d in result.report["denials"] if d["kind"] == "connect" and d["errno"] == "ENOENT"]
            equal(found, [], f"{box}: no socket of the host's at {said}")
    for server in servers:
        server.close()


@for_people("what the policy hides is told as that, by its own name, in both kinds of box; and nothing of what is in it")
def hidden(user):
    place = Place(user)
    for name in ("vault", "vault/inside", "part", "part/again"):
        (place.shown / name).mkdir()
    for name in ("key", "vault/inside/key", "vault/key", "part/key", "part/again/open"):
        (place.shown / name).write_text("#!/bin/sh\necho x\n")
        (place.shown / name).chmod(0o755)
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(place.shown / "vault" / "agent"))
    server.listen()
    for path in place.shown.rglob("*"):
        SCRATCH.own(path, user)
    policy = {"files": {"read": [str(place.shown)], "hide": [str(place.shown / name) for name in ("key", "vault", "part")]}}
    policy["files"]["read"].append(str(place.shown / "part" / "again"))
    agent = [PYTHON, "-SI", "-c", "import socket; socket.socket(socket.AF_UNIX).connect('vault/agent')"]  # lists no directory of ours
    # command, what is told in a box of namespaces, and in one without
    rows = [
        (["cat", "key"], ["key"], ["key"]), (["sh", "-c", "./key; exit 3"], ["key"], ["key"]), (["sh", "-c", "echo x >>key"], ["key"], ["key"]),
        (["sh", "-c", "cat key; ! chmod 600 key; ! rm -f key; cat key; echo x >key"], ["key"], ["key"]),
        (["cat", "vault/key"], ["vault"], ["vault"]), (["cat", "vault/inside/key"], ["vault"], ["vault"]), (["ls", "vault"], ["vault"], ["vault"]),
        (["mkdir", "vault/new"], ["vault"], ["vault"]), (["cat", "vault/nothing"], ["vault"], []), (["rm", "vault/key"], ["vault"], ["vault"]),
        (["cat", "part/key"], ["part"], ["part"]), (["cat", "part/nothing"], ["part"], []), (agent, ["vault"], ["vault"]),
        (["ls", "-l", "key"], [], []), (["cat", "part/again/open"], [], []), (["ls", "part/again"], [], []),
    ]  # fmt: skip
    for command, *wanted in rows:
        for box, names in zip(("namespaces", "landlock"), wanted):
            result = run({**policy, "box": box}, command, place.shown, user)
            found = [d for d in result.report["denials"] if d["what"].startswith(str(place.shown))]
            equal([d["what"] for d in found], [str(place.shown / name) for name in names], f"{box} {command}: {result.brief()}")
            for denial in found:
                equal((denial["allow"], denial["policy"], denial["note"]), ("", "", "hidden by the policy"), f"{box} {command}")
    # Whether something is there below what is hidden is nobody's to know.
    told = [run(policy, ["cat", f"part/{name}"], place.shown, user).report["denials"] for name in ("key", "nothing")]
    equal(told[0], told[1], "what is there and what is not")
    # What is not hidden is told as ever.
    for box in ("namespaces", "landlock"):
        result = run({**policy, "box": box}, ["rm", "-f", "second"], place.shown, user)
        found = [(d["what"], d["allow"]) for d in result.report["denials"] if d["what"].startswith(str(place.shown))]
        equal(found, [(str(place.shown / "second"), f"--write {place.shown}")], f"{box}: what is read-only")
    # Landlock could not let the names be listed and keep those of a directory in it.
    result = run({**policy, "box": "landlock"}, ["ls", "."], place.shown, user)
    [denial] = [d for d in result.report["denials"] if d["what"] == str(place.shown)]
    check(denial["allow"] == "" and "a directory in it is hidden" in denial["note"], denial)
    server.close()


@for_people("a tmpfs of the policy's own that is full is told with its own size")
def own_tmpfs(user):
    place = Place(user)
    policy = merged(place.policy, {"files": {"tmpfs": [{"path": "/scratch", "size": "1M"}]}})
    result = run(policy, ["dd", "if=/dev/zero", "of=/scratch/x", "bs=100K", "count=20"], place.work, user)
    equal([(d["what"], d["policy"]) for d in result.report["denials"] if d["kind"] == "space"],
          [("/scratch", '"files": {"tmpfs": [{"path": "/scratch", "size": "2M"}]}')], "the denial")  # fmt: skip


@for_people("--explain changes nothing of what works: modes, links, sockets, times, attributes")
def unchanged(user):
    place = Place(user)
    script = """
import array, stat
os.umask(0)
open('a', 'w').close(); os.chmod('a', 0o641); print(oct(os.stat('a').st_mode))
os.fchmod(os.open('a', os.O_RDONLY), 0o600); print(oct(os.stat('a').st_mode))
os.utime('a', (1, 2)); print(os.stat('a').st_mtime)
os.symlink('a', 'l'); os.utime('l', (3, 4), follow_symlinks=False); print(os.lstat('l').st_mtime, os.stat('l').st_mtime)
os.link('a', 'h'); os.mkdir('d'); os.rmdir('d'); os.mkfifo('f'); os.rename('h', 'i'); os.unlink('i')
print(sorted(os.listdir('.')))
try: os.chmod('a', 0o4755)
except OSError as e: print(e.errno)
s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); c = socket.create_connection(s.getsockname()); print(len(s.accept()))
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(('127.0.0.1', 0)); u.sendto(b'hello', u.getsockname()); print(u.recv(9))
a, b = socket.socketpair(); a.send(b'x'); a.sendall(b'y'); print(b.recv(9))
x = socket.socket(socket.AF_UNIX); x.bind('sock'); print(stat.S_ISSOCK(os.stat('sock').st_mode))
"""
    wanted = None
    for policy in ({**place.policy, "network": "loopback"}, {"files": {"write": [str(place.work)]}, "network": "loopback"}):
        for explain in (False, True):
            for name in os.listdir(place.work):
                if not name.startswith("to-"):
                    os.unlink(place.work / name)
            result = run(policy, python(script), place.work, user, explain)
            equal(result.report["code"], 0, result.brief())
            wanted = wanted or result.stdout
            equal(result.stdout, wanted, f"what it prints, explain {explain}, {policy}")


@for_people("each protected name is told, with the option that allows it")
def protected_names(user):
    place = Place(user)
    names = [".envrc", ".bashrc", ".vscode", ".zshrc", ".gitconfig", ".husky", ".idea", ".zed", ".exrc", ".vimrc", ".mcp.json", ".githooks"]
    result = run(place.policy, ["sh", "-c", "for n in %s; do mkdir $n; mkdir $n; done" % " ".join(names)], place.work, user)
    found = {d["what"]: (d["allow"], d["count"]) for d in result.report["denials"]}
    equal(found, {f"{place.work}/{name}": (f"--unprotect {name}", 2) for name in names}, "the denials")
    options = [word for allow, _ in found.values() for word in allow.split()]
    script = ["sh", "-c", "mkdir " + " ".join(names)]
    result = harness.callbox(["run", "--json", "--workspace", str(place.work), "--cwd", str(place.work), *options, "--", *script],
                             binary=CALLBOX, user=user, json_report=True, cwd="/")  # fmt: skip
    equal((result.report["code"], result.report["denials"]), (0, []), result.brief())
    result = run(place.policy, ["sh", "-c", "mkdir -p sub && mkdir sub/.git; mkdir .git"], place.work, user)
    found = {d["what"]: d["allow"] for d in result.report["denials"]}
    equal(found, {f"{place.work}/sub/.git": "--unprotect '**/.git'", f"{place.work}/.git": "--unprotect .git"}, "repositories")


CALLS = "import ctypes, os\nl = ctypes.CDLL(None, use_errno=True)\nfor n in %s: l.syscall(n, 0, 0, 0, 0)\n"


@for_people("what nothing allows, or nothing that could be recommended, is told without a line but with the reason")
def without_line(user):
    place = Place(user)
    rows = [
        ({}, ["touch", "/1"], "/1", "root directory"),
        ({"box": "landlock"}, ["ls", "/"], "/", "root directory"),
        ({}, python(CALLS % "[425]"), "io_uring_setup", "fall back"),
        ({}, python("import ctypes\nctypes.CDLL(None).unshare(0x10000000)"), "unshare", "privilege"),
        ({}, python("os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o4700)"), "openat", "set-user-id"),
        ({"syscalls": {"allow": ["socket"]}}, python("socket.socket(40, socket.SOCK_STREAM)"), "socket", "vsock"),
        ({}, python(CALLS % "[999]"), "#999", "libseccomp"),
        ({}, python(CALLS % "[0x40000000 + 39]"), "x32:getpid", "64-bit"),
        ({"network": "host"}, python("socket.socket(socket.AF_UNIX).connect('\\0name')"), "an abstract socket", "with a path"),
        ({"box": "landlock"}, python("socket.socket(socket.AF_UNIX).connect('\\0name')"), "an abstract socket", "with a path"),
        ({"box": "landlock"}, python("socket.socket(socket.AF_UNIX).bind('\\0name')"), "an abstract socket", "with a path"),
    ]
    if not user:
        rows.append(({}, ["touch", "/usr/x"], "/usr/x", "the host's system"))
    for policy, command, what, reason in rows:
        result = run({**place.policy, **policy}, command, place.work, user)
        found = [d for d in result.report["denials"] if d["what"] == what]
        check(len(found) == 1, lambda: f"{what}: {result.report['denials']} ({result.brief()})")
        equal((found[0]["allow"], found[0]["policy"]), ("", ""), f"what allows {what}")
        check(reason in found[0]["note"], found)
        equal([d for d in result.report["denials"] if "--write / " in d["allow"] + " " or "--read / " in d["allow"] + " "], [], "the root")


@for_people("a call that is newer than the library that makes filters has its name")
def new_calls(user):
    place = Place(user)
    result = run(place.policy, python(CALLS % "[457, 458, 467, 470]"), place.work, user)
    equal({d["what"] for d in result.report["denials"]}, {"statmount", "listmount", "open_tree_attr", "listns"}, "the denials")
    older = run(place.policy, python(CALLS % "[435, 437]"), place.work, user)
    equal(older.report["denials"], [], "clone3 and openat2, for which there are older calls")
    for denial in result.report["denials"]:  # where the library knows it, it can be allowed
        check("libseccomp" in denial.get("note", "libseccomp"), denial)


@for_people("a call that the policy denies is allowed by its list without that call")
def denied_by_name(user):
    place = Place(user)
    policy = {**place.policy, "syscalls": {"deny": ["getcwd", "getppid"]}}
    result = run(policy, ["/bin/pwd"], place.work, user)
    [denial] = [d for d in result.report["denials"] if d["kind"] == "syscall"]
    equal((denial["what"], denial["allow"]), ("getcwd", "no --deny-syscall getcwd (the policy itself denies it)"), "the denial")
    equal(json.loads("{" + denial["policy"] + "}"), {"syscalls": {"deny": ["getppid"]}}, "the line")


@for_people("a hint at a dangerous call says what is given up; one at the network of a box without namespaces is no call")
def dangerous(user):
    place = Place(user)
    result = run(place.policy, python(CALLS % "[101, 250, 321, 323]"), place.work, user)
    for denial in result.report["denials"]:
        check(denial["allow"].startswith(f"--allow-syscall {denial['what']} (") and denial["allow"].endswith(")"), denial)
    equal({d["what"] for d in result.report["denials"]}, {"ptrace", "keyctl", "bpf", "userfaultfd"}, "the denials")
    result = run({**place.policy, "box": "landlock"}, python("socket.socket()"), place.work, user)
    [denial] = [d for d in result.report["denials"] if d["what"] == "socket"]
    equal((denial["allow"], denial["policy"]), ("--net host", '"network": "host"'), "the hint")


@case("a program that is not on the PATH of the box is not said to be missing in it")
def other_path():
    spec = SCRATCH.directory() / "spec.json"
    spec.write_text(json.dumps({"argv": ["env"], "environment": {"PATH": "/nonexist"}}))
    for options in (["--env", "PATH=/nonexist", "--", "env"], ["--spec", str(spec)]):
        result = harness.callbox(["run", "--json", *options], binary=CALLBOX, json_report=True, cwd="/")
        equal(result.reason, "setup", result.brief())
        hint = result.report["error"]["hint"]
        check("not on the PATH" in hint and "--read" not in hint, lambda: f"{options}: {hint}")


@case("no set-id bit is set whoever looks at the call")
def set_id():
    script = """
import ctypes
os.umask(0)
l = ctypes.CDLL(None, use_errno=True)
open('p', 'w').close()
for name, make in (('open', lambda: os.close(os.open('o', os.O_CREAT | os.O_WRONLY, 0o4755))), ('chmod', lambda: os.chmod('p', 0o2755)),
                   ('nameless', lambda: l.linkat(-100, b'/proc/self/fd/%d' % os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o4755), -100, b'n', 0x400)),
                   ('openat2', lambda: l.syscall(437, -100, b'q', (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, 0o4755, 0), 24)),
                   ('creat', lambda: l.syscall(85, b'c', 0o4755)), ('mknod', lambda: l.mknod(b'm', 0o104755, 0))):
    try: make()
    except OSError: pass
fd = os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o640); print(oct(os.fstat(fd).st_mode))
"""
    for options in (["--workspace"], ["--write"]):
        for explain in ([], ["--explain"]):
            directory = SCRATCH.directory()
            result = harness.callbox(["run", *explain, *options, str(directory), "--cwd", str(directory), "--", *python(script)], binary=CALLBOX, cwd="/")
            check(b"0o100640" in result.out, lambda: f"a file without a name and with a plain mode: {result.brief()}")
            for entry in directory.iterdir():
                check(not entry.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID), lambda: f"{options} {explain}: {entry.name} has mode {entry.lstat().st_mode:o}")


if __name__ == "__main__":
    sys.exit(harness.main(after=SCRATCH.remove))
