#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a policy says is what a box is: files, environment, network, system calls, guarantees, and
how a policy file and options go together."""

import json
import os
import pathlib
import re
import socket
import stat
import sys
import tempfile

import harness
from harness import check, equal

SCRATCH = harness.Scratch()
CALLBOX = SCRATCH.install(harness.callbox_path(), "callbox")
PEOPLE = harness.PEOPLE
PYTHON = "/usr/bin/python3"


def callbox(*args, user=False, **more):
    more.setdefault("cwd", "/")
    return harness.callbox(args, user=user, binary=CALLBOX, **more)


def run(*args, user=False, **more):
    """`callbox run` with options, "--" and command in one."""
    return callbox("run", *args, user=user, **more)


def sh(script, *options, user=False, code=0, **more):
    """The output of a shell script in a box."""
    result = run("-q", *options, "--", "sh", "-c", script, user=user, **more)
    equal(result.code, code, f"exit code of {script!r} ({result.brief()})")
    return result.out.decode()


def tree(user, **files):
    """A directory with files: name (with __ for /) → text."""
    directory = SCRATCH.directory(user)
    for name, text in files.items():
        make(directory, name.replace("__", "/"), text, user)
    return directory


def make(directory, name, text, user):
    path = directory / name
    for parent in reversed(path.relative_to(directory).parents):
        if not (directory / parent).exists():
            (directory / parent).mkdir()
            SCRATCH.own(directory / parent, user)
    path.write_text(text)
    SCRATCH.own(path, user)
    return path


def policy_file(policy):
    path = SCRATCH.directory() / "policy.json"
    path.write_text(json.dumps(policy))
    path.chmod(0o644)
    return path


# ---- What every box has ----------------------------------------------------------------------


@harness.for_people("files: without rules there is the system and nothing else")
def nothing_else(user):
    listing = set(sh("ls -A /", user=user).split())
    check(listing <= {"bin", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "opt", "proc", "run", "sbin", "srv", "sys", "tmp", "usr", "var"}, f"/ has {listing}")
    for path in ("/root", "/boot", "/etc/shadow", "/etc/ssh", "/var/log", "/etc/sudoers", "/mnt", "/media", str(SCRATCH.path), "/run/systemd"):
        equal(sh(f"test -e {path} && echo seen; true", user=user), "", path)
    equal(sh("ls -A /home /tmp /dev/shm /run 2>/dev/null | grep -v :$ | tr -d '\\n'", user=user), "", "empty places")
    for path in ("/", "/usr", "/etc", "/home", "/var", "/usr/bin", "/etc/passwd", "/proc/sys/kernel/core_pattern", "/dev"):
        equal(sh(f"(echo x > {path}/new) 2>/dev/null || (test -f {path} && (echo x > {path}) 2>/dev/null) && echo written; true", user=user), "", f"writing to {path}")
    equal(sh("cut -d: -f1 /etc/passwd | paste -sd,; cat /proc/sys/kernel/hostname; test -e /etc/hosts && echo hosts; true", user=user), "root,box,nobody\nbox\n", "own files of /etc")
    equal(sh("grep -c localhost /etc/hosts", "--net", "loopback", user=user), "2\n", "hosts, with a network")


@harness.for_people("files: /dev has what programs need")
def devices(user):
    equal(sh("cd /dev; for d in null zero full random urandom ptmx pts shm fd stdin stdout stderr; do test -e $d || echo missing $d; done; ls | wc -w", user=user).split()[-1], "12", "devices")
    equal(sh("ls -A /sys 2>/dev/null | wc -l", user=user), "0\n", "/sys")


@harness.for_people("--no-system shows nothing of the host")
def no_system(user):
    static = SCRATCH.bin / "static"
    result = run("--no-system", "--", "sh", "-c", "true", user=user)
    equal(result.code, 127, result.brief())
    result = run("--no-system", "--read", static, "--", static, user=user)
    equal(result.code, 0, result.brief())
    seen = set(result.out.decode().split())
    check(not {"usr", "bin", "sbin", "lib", "lib64", "home"} & seen, f"/ has {seen}")


@harness.for_people("files: a part of /etc that is a link is what it leads to")
def linked_parts(user):
    directory = tree(user, elsewhere="nameserver 192.0.2.1\n")
    script = f'mount -t tmpfs none /etc && ln -s {directory}/elsewhere /etc/resolv.conf && exec "$@"'
    prefix = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh")
    for box in ("namespaces", "landlock"):
        for more, seen in (((), True), (("--read", "/etc"), True), (("--hide", directory), False), (("--hide", "/etc/resolv.conf"), False)):
            out = sh("cat /etc/resolv.conf 2>/dev/null; true", "--box", box, "--net", "host", *more, user=user, prefix=prefix)
            equal(out, "nameserver 192.0.2.1\n" if seen else "", f"{box} {more}")


# ---- Rules for files -------------------------------------------------------------------------


@harness.for_people("--read shows a tree read-only")
def read(user):
    directory = tree(user, a="A", sub__b="B")
    equal(sh(f"cd {directory} && cat a sub/b", "--read", directory, user=user), "AB", "content")
    for script in ("echo x > a", "echo x >> a", "echo x > new", "mkdir d", "rm a", "mv a c", "chmod 777 a", "touch a", "ln a l", "ln -s a l", "rmdir sub", "truncate -s 0 a"):
        equal(sh(f"cd {directory} && ({script}) 2>/dev/null && echo done; true", "--read", directory, user=user), "", script)
    equal(sorted(p.name for p in directory.rglob("*")), ["a", "b", "sub"], "files on the host")
    equal((directory / "a").read_text(), "A", "content on the host")


@harness.for_people("--write shows a tree writable, with the owner's files")
def write(user):
    directory = tree(user, a="A", sub__b="B")
    script = "cat a && echo new > n && mkdir d && echo x > d/e && rm a && mv sub/b c && ln -s c l && ln c h && chmod 751 n && mkfifo f && touch -d @5 c && stat -c %u:%g n . "
    equal(sh(f"cd {directory} && {script}", "--write", directory, user=user), "A1000:1000\n1000:1000\n", "inside")
    owner = directory.stat()
    for path in directory.rglob("*"):
        info = path.lstat()
        equal((info.st_uid, info.st_gid), (owner.st_uid, owner.st_gid), f"owner of {path.name} on the host")
    equal(stat.S_IMODE((directory / "n").stat().st_mode), 0o751, "mode")
    equal((directory / "h").read_text(), "B", "content")
    equal((directory / "c").stat().st_mtime, 5, "time")


@harness.for_people("--workspace is writable and where the program starts")
def workspace(user):
    directory = tree(user, a="A")
    equal(sh("pwd; cat a; echo B > b; mkdir d; echo C > d/c; id -u; stat -c %u a b", "--workspace", directory, user=user), f"{directory}\nA1000\n1000\n1000\n", "inside")
    owner = directory.stat()
    for name in ("b", "d", "d/c"):
        info = (directory / name).stat()
        equal((info.st_uid, info.st_gid), (owner.st_uid, owner.st_gid), f"owner of {name} on the host")
    equal(sh("pwd", "--workspace", f"{directory}:/place", user=user), "/place\n", "another place")
    equal(sh("pwd", "--workspace", ".", user=user, cwd=directory), f"{directory}\n", "a relative path")
    equal(sh("pwd", "--workspace", directory, user=user, cwd=directory / "d"), f"{directory}/d\n", "started deeper in it")
    equal(sh("pwd", "--workspace", directory, "--cwd", "/tmp", user=user), "/tmp\n", "--cwd")


@harness.case("a workspace of another owner, run by root, keeps that owner")
def other_owner():
    if not harness.ROOT:
        return
    directory = tree(True, a="A")
    equal(sh("echo B > b; rm a; mkdir d; stat -c %u b d", "--workspace", directory), "1000\n1000\n", "inside")
    for name in ("b", "d"):
        equal((directory / name).stat().st_uid, harness.USER_ID, f"owner of {name}")
    mixed = tree(False, mine="A", theirs="B")
    os.chown(mixed / "theirs", harness.USER_ID, harness.USER_ID)
    (mixed / "theirs").chmod(0o600)
    equal(sh("cat theirs 2>/dev/null || echo refused; echo x > mine && cat mine", "--workspace", mixed), "refused\nx\n", "a file of a third one")
    private = tree(False, secret="S")
    private.chmod(0o700)
    (private / "secret").chmod(0o600)
    equal(sh("cat secret", "--workspace", private), "S", "what only root could read, in root's own workspace")
    equal(sh(f"cat {private}/secret", "--read", private), "S", "shown read-only")


@harness.for_people("PATH:BOX shows a tree at another place")
def mapping(user):
    directory = tree(user, a="A", sub__b="B")
    equal(sh("cat /data/a /data/sub/b; ls -d /tmp/callbox* 2>/dev/null; true", "--read", f"{directory}:/data", user=user), "AB", "read")
    equal(sh("echo C > /opt/deep/er/c; cat /opt/deep/er/c", "--write", f"{directory}:/opt/deep/er", user=user), "C\n", "write, in directories that are made for it")
    equal((directory / "c").read_text(), "C\n", "on the host")
    equal(sh("cat /one", "--read", f"{directory}/a:/one", user=user), "A", "a file")
    equal(sh("cat /x/a /y/a", "--read", f"{directory}:/x", "--read", f"{directory}:/y", user=user), "AA", "twice")
    check(not pathlib.Path("/data").exists() and not pathlib.Path("/one").exists(), "mount points were made on the host")


@harness.for_people("rules for files, not directories")
def file_rules(user):
    directory = tree(user, a="A", b="B", c="C")
    options = ["--read", directory / "a", "--write", directory / "b"]
    equal(sh(f"cd {directory}; ls; cat a b; echo x > b; (echo x > a) 2>/dev/null || echo held; (echo x > new) 2>/dev/null; cat b", *options, user=user), "a\nb\nABheld\nx\n", "inside")
    equal((directory / "b").read_text(), "x\n", "on the host")
    equal(sorted(os.listdir(directory)), ["a", "b", "c"], "files on the host")


@harness.for_people("--hide takes a path out of an allowed tree")
def hide(user):
    directory = tree(user, open="O", secret__key="K", secret__deep__er="D", file="F")
    options = ["--hide", directory / "secret", "--hide", directory / "file"]
    for show in ("--read", "--write", "--workspace"):
        out = sh(f"cd {directory}; cat open; cat secret/key secret/deep/er 2>/dev/null; ls -A secret 2>/dev/null; cat file 2>/dev/null; true", show, directory, *options, user=user)
        equal(out, "O", f"with {show}")
        sh(f"cd {directory}; (echo x > secret/new) 2>/dev/null; (echo x > file) 2>/dev/null; rm -rf secret file 2>/dev/null; mv secret elsewhere 2>/dev/null; true", show, directory, *options, user=user)
        equal((directory / "secret" / "key").read_text(), "K", "the hidden file on the host")
        equal((directory / "file").read_text(), "F", "the hidden file on the host")
        check(not (directory / "secret" / "new").exists(), "a file was made in a hidden directory")
    equal(sh("ls -A /data/secret 2>/dev/null; cat /data/open", "--read", f"{directory}:/data", "--hide", directory / "secret", user=user), "O", "at another place")
    equal(sh("ls /usr/share/doc 2>/dev/null | wc -l", "--hide", "/usr/share/doc", user=user), "0\n", "in the system")
    deep = directory / "secret" / "deep"
    equal(sh(f"cat {directory}/secret/key; ls -A {deep} 2>/dev/null; true", "--read", directory, "--hide", deep, user=user), "K", "deeper")


@harness.for_people("--hide wins over what callbox shows by itself, in both kinds of box")
def hide_implied(user):
    for box in ("namespaces", "landlock"):
        here = ("--box", box, "--net", "host")
        out = sh("cat /etc/alternatives/* /etc/ld.so.cache /etc/services /etc/resolv.conf /etc/ssl/openssl.cnf 2>/dev/null | wc -c; grep -c /root: /etc/passwd 2>/dev/null; ls /etc 2>/dev/null; true", *here, "--hide", "/etc", user=user)
        equal(out.split(), ["0", "0", "group", "hosts", "nsswitch.conf", "passwd"] if box == "namespaces" else ["0"], f"{box}: /etc")
        out = sh("(ls /etc/ssl/certs; cat /etc/ssl/openssl.cnf) 2>/dev/null; ls /etc/alternatives | grep -c .", *here, "--hide", "/etc/ssl", user=user)
        check(out.strip().isdigit() and int(out) > 0, f"{box}: /etc/ssl: {out}")
        out = sh("ls /etc/alternatives 2>/dev/null; cat /etc/ssl/openssl.cnf | wc -l; true", *here, "--hide", "/etc", "--read", "/etc/ssl", user=user)
        check(out.strip().isdigit() and int(out) > 0, f"{box}: a rule shows it again: {out}")
        directory = tree(user, ws__a__f="F", ws__b__f="G")
        work, where = directory / "ws", f"pwd; cat {directory}/ws/a/f {directory}/ws/b/f 2>/dev/null; true"
        for options, start, seen in (
            ((), work, "FG"),
            (("--hide", directory), None, ""),
            (("--hide", work), None, ""),
            (("--hide", "."), None, ""),
            (("--hide", directory, "--read", work), work, "FG"),
            (("--hide", work / "b"), work, "F"),
            (("--read", directory, "--hide", work), None, ""),
        ):
            home, *rest = sh(where, "--box", box, *options, user=user, cwd=work).split("\n", 1)
            equal(rest, [seen], f"{box}: {options}")
            check(home == str(start) if start else home.startswith("/tmp") and not home.startswith(str(directory)), f"{box}: {options}: starts in {home}")
        for path, words in (("/proc", "the box's own"), ("/dev/null", "the box's own"), ("proc", "/proc of its own"), (".", "the whole of /")):
            result = run("--box", box, "--hide", path, "--", "true", user=user)
            equal(result.code, 125, f"{path}: {result.brief()}")
            check(result.err.startswith(b"callbox: --hide: ") and words.encode() in result.err, lambda: f"{path}: {result.err!r}")


@harness.for_people("a rule for /etc, with the box's own files over the host's")
def own_over_shown(user):
    script = "cut -d: -f1 /etc/passwd | paste -sd,; id -un; test -e /etc/profile && echo shown; for f in passwd group; do chmod 666 /etc/$f || rm -f /etc/$f || mv /etc/$f /etc/x || echo x >/etc/$f; done 2>/dev/null; true"
    copy = tree(user, passwd="host", group="host", profile="P", hosts="H")
    before = harness.HostState([copy])
    for options in (("--read", "/etc"), ("--read", f"{copy}:/etc"), ("--write", f"{copy}:/etc")):
        for more in ((), ("--net", "host")):
            equal(sh(script, *options, *more, user=user), "root,box,nobody\nbox\nshown\n", f"{options} {more}")
    equal(before.trees, harness.HostState([copy]).trees, "on the host")
    equal(sh("true", "--write", "/etc", user=user), "", "--write /etc")
    check(sh("cat /etc/passwd", "--box", "landlock", "--read", "/etc", user=user) == pathlib.Path("/etc/passwd").read_text(), "without namespaces it is the host's")
    other = tree(user, passwd="host", some="S")
    equal(sh("ls /etc; grep -c box /etc/passwd", "--read", f"{other}:/etc", user=user), "passwd\nsome\n1\n", "where the host has only one of them")
    equal(sh("cat /etc/passwd", "--read", f"{other}/passwd:/etc/passwd", user=user), "host", "a rule for the file itself")


@harness.for_people("a rule in /var/tmp, which else leads to the box's /tmp")
def var_tmp(user):
    equal(sh("readlink /var/tmp", user=user), "/tmp\n", "without a rule")
    with tempfile.TemporaryDirectory(prefix="callbox-test-", dir="/var/tmp") as place:
        (pathlib.Path(place) / "f").write_text("F")
        os.chmod(place, 0o755)
        equal(sh("pwd; cat f; ls /tmp", user=user, cwd=place), f"{place}\nF", "the current directory")
        equal(sh("echo x >/var/tmp/own/n; ls /var/tmp", "--tmpfs", "/var/tmp/own", user=user), "own\n", "a tmpfs")


@harness.for_people("a place that cannot be had is refused by name, at policy check too")
def no_place(user):
    directory = tree(user, file="F", sub__f="F")
    (directory / "link").symlink_to("sub")
    for place, words in (("/usr/absent", "nothing is created on the host"), ("/lib/absent", "/lib is a symbolic link"), (f"{directory}/file", "is a file in the box"), (f"{directory}/link", "symbolic link"), (f"{directory}/link/f", "symbolic link"), (f"{directory}/file/x", "no such name")):
        result = run("--read", directory, "--tmpfs", place, "--", "echo", "ran", user=user)
        equal((result.code, result.out), (125, b""), f"{place}: {result.brief()}")
        check(result.err.startswith(b"callbox: --tmpfs: ") and place.encode() in result.err and words.encode() in result.err, lambda: f"{place}: {result.err!r}")
        result = callbox("policy", "check", policy_file({"files": {"read": [str(directory)], "tmpfs": [place]}}), user=user)
        check(result.code == 125 and b"files.tmpfs[0]: " in result.err, lambda: f"check of {place}: {result.brief()}")


@harness.for_people("the deeper rule wins: hidden, shown, hidden again")
def specific(user):
    directory = tree(user, top="T", a__x="X", a__b__y="Y", a__b__c__z="Z")
    a, b, c = directory / "a", directory / "a/b", directory / "a/b/c"
    script = f"cd {directory}; cat top; cat a/x 2>/dev/null; cat a/b/y 2>/dev/null; cat a/b/c/z 2>/dev/null; true"
    equal(sh(script, "--read", directory, "--hide", a, user=user), "T", "hidden")
    equal(sh(script, "--read", directory, "--hide", a, "--read", b, user=user), "TYZ", "hidden, shown")
    equal(sh(script, "--read", directory, "--hide", a, "--read", b, "--hide", c, user=user), "TY", "hidden, shown, hidden")
    equal(sh(script, "--hide", c, "--read", b, "--hide", a, "--read", directory, user=user), "TY", "in another order")
    out = sh(f"cd {directory}; (echo n > new) 2>/dev/null || echo held; echo n > a/b/new && cat a/b/new; (echo n > a/b/c/new) 2>/dev/null || echo held",
             "--read", directory, "--write", b, "--read", c, user=user)
    equal(out, "held\nn\nheld\n", "read, write, read")
    equal((b / "new").read_text(), "n\n", "on the host")


@harness.for_people("--tmpfs puts an empty, private place anywhere")
def tmpfs(user):
    directory = tree(user, a="A", sub__b="B")
    equal(sh(f"ls -A {directory}/sub; cat {directory}/a; echo x > {directory}/sub/n && cat {directory}/sub/n", "--read", directory, "--tmpfs", directory / "sub", user=user), "Ax\n", "over a tree")
    equal(os.listdir(directory / "sub"), ["b"], "on the host")
    equal(sh("echo x > /var/cache/n && cat /var/cache/n; ls -A /home/box", "--tmpfs", "/var/cache", "--tmpfs", "/home/box=1M", user=user), "x\n", "beside the system")
    equal(sh("df --output=size -k /s | tail -n 1 | tr -d ' '; df --output=size -k /tmp | tail -n 1 | tr -d ' '", "--tmpfs", "/s=3M", "--tmp-size", "5M", user=user), "3072\n5120\n", "sizes")


@harness.for_people("a rule for a link shows what it leads to, and the link")
def links(user):
    directory = tree(user, real__a="A")
    (directory / "link").symlink_to("real")
    (directory / "file").symlink_to("real/a")
    equal(sh(f"cat {directory}/link/a; readlink {directory}/link", "--read", directory / "link", user=user), f"A{directory}/real\n", "a directory")
    equal(sh(f"cat {directory}/file", "--read", directory / "file", user=user), "A", "a file")
    equal(sh(f"echo x > {directory}/link/n; cat {directory}/real/n", "--write", directory / "link", user=user), "x\n", "writable")
    equal(sh("pwd -P; cat a", "--workspace", directory / "link", user=user), f"{directory}/real\nA", "a workspace")
    outside = tree(user, secret="S")
    (directory / "escape").symlink_to(outside)
    equal(sh(f"cat {directory}/escape/secret 2>/dev/null || echo closed", "--read", directory, user=user), "closed\n", "a link that leads out of a shown tree")
    equal(sh(f"cat {directory}/link/a {directory}/real/a {directory}/file 2>/dev/null; true", "--read", directory, "--hide", directory / "link", user=user), "", "hiding through a link")


@harness.for_people("what is mounted below a shown tree is as read-only as the tree")
def submounts(user):
    equal(sh("test -e /usr/bin/env && (echo x > /usr/bin/new) 2>/dev/null || echo held", user=user), "held\n", "/usr")
    result = run("--", "cat", "/proc/self/mountinfo", user=user)
    for line in result.out.decode().splitlines():
        fields = line.split()
        if not fields[4].startswith("/dev/"):
            check("nosuid" in fields[5] and ("nodev" in fields[5] or fields[4] == "/dev"), f"mount without nosuid or nodev: {line}")


@harness.for_people("nothing is made on the host for a mount point")
def no_traces(user):
    directory = tree(user, a="A", sub__b="B")
    before = harness.HostState([directory])
    sh("true", "--read", directory, "--tmpfs", directory / "sub", "--hide", directory / "a", user=user)
    sh("true", "--write", directory, "--tmpfs", directory / "sub", "--read", f"/usr/share:{directory}/sub/share", user=user)
    for rule in (["--tmpfs", directory / "absent"], ["--read", f"/usr/share:{directory}/absent"], ["--read", f"/etc/hosts:{directory}/sub/absent"]):
        for show in ("--read", "--write", "--workspace"):
            result = run(show, directory, *rule, "--", "echo", "ran", user=user)
            equal((result.code, result.out), (125, b""), f"a place that the host's tree has not ({result.brief()})")
            check(b"nothing is created on the host" in result.err, lambda: f"stderr {result.err!r}")
    equal(before.trees, harness.HostState([directory]).trees, "the tree")


# ---- Environment -----------------------------------------------------------------------------

NAMES = {"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR", "TZ", "SHELL"}


def variables(*options, user=False, **environment):
    environment = {"PATH": "/usr/bin:/bin", **environment}
    result = run("-q", *options, "--", "env", "-0", user=user, env=environment)
    equal(result.code, 0, result.brief())
    return dict(item.split("=", 1) for item in result.out.decode().split("\0") if item)


@harness.for_people("environment: only safe names pass")
def environment(user):
    secrets = {"AWS_SECRET_ACCESS_KEY": "s", "LD_PRELOAD": "", "LD_LIBRARY_PATH": "/x", "PYTHONPATH": "/x", "BASH_ENV": "/x", "ENV": "/x", "NODE_OPTIONS": "--x", "PERL5OPT": "-w",
               "IFS": "x", "GIT_DIR": "/x", "SSH_AUTH_SOCK": "/x", "XDG_RUNTIME_DIR": "/x", "http_proxy": "http://x", "FOO": "1", "GLIBC_TUNABLES": "", "OLDPWD": "/x", "PWD": "/x"}
    seen = variables(user=user, LANG="C.UTF-8", TERM="xterm", TZ="UTC", LC_ALL="C", HOME="/root", USER="root", SHELL="/bin/evil", TMPDIR="/secret", **secrets)
    check(set(seen) <= NAMES, f"passed as well: {sorted(set(seen) - NAMES)}")
    equal({n: seen.get(n) for n in ("LANG", "TERM", "TZ", "LC_ALL", "PATH")}, {"LANG": "C.UTF-8", "TERM": "xterm", "TZ": "UTC", "LC_ALL": "C", "PATH": "/usr/bin:/bin"}, "passed")
    equal({n: seen.get(n) for n in ("HOME", "USER", "LOGNAME", "SHELL", "TMPDIR")}, {"HOME": "/tmp", "USER": "box", "LOGNAME": "box", "SHELL": "/bin/sh", "TMPDIR": "/tmp"}, "own")
    bare = run("--", "/usr/bin/env", user=user, env={}) if not (user and harness.ROOT) else None
    if bare:
        check(b"PATH=/usr" in bare.out, lambda: f"without a PATH: {bare.out!r}")


@harness.for_people("environment: variables are passed and set by name")
def variables_set(user):
    seen = variables("--env", "FOO", "--env", "BAR=b=r", "--env", "EMPTY=", "--env", "MISSING", "--env", "HOME=/elsewhere", "--env", "LANG", "--env=UTF=grün €", user=user, FOO="f o o", LANG="C")
    equal({n: seen.get(n) for n in ("FOO", "BAR", "EMPTY", "MISSING", "HOME", "LANG", "UTF")}, {"FOO": "f o o", "BAR": "b=r", "EMPTY": "", "MISSING": None, "HOME": "/elsewhere", "LANG": "C", "UTF": "grün €"}, "variables")
    path = policy_file({"environment": {"pass": ["FOO"], "set": {"BAR": "policy", "BAZ": "policy"}}})
    seen = variables("--policy", path, "--env", "BAR=option", user=user, FOO="caller")
    equal((seen.get("FOO"), seen.get("BAR"), seen.get("BAZ")), ("caller", "option", "policy"), "of policy and options")
    spec = path.with_name("spec.json")
    spec.write_text(json.dumps({"argv": ["env", "-0"], "environment": {"BAR": "spec", "NEW": "n"}}))
    result = run("--policy", path, "--spec", spec, user=user, env={"PATH": "/usr/bin:/bin", "FOO": "caller"})
    seen = dict(item.split("=", 1) for item in result.out.decode().split("\0") if item)
    equal((seen.get("FOO"), seen.get("BAR"), seen.get("BAZ"), seen.get("NEW")), ("caller", "spec", "policy", "n"), f"with a spec ({result.brief()})")
    equal(len([n for n in result.out.decode().split("\0") if n.startswith("BAR=")]), 1, "how often BAR is there")


@harness.for_people("environment: names that make programs load code are told")
def risky(user):
    for name in ("LD_PRELOAD", "LD_LIBRARY_PATH", "BASH_ENV", "PYTHONPATH", "PYTHONSTARTUP", "NODE_OPTIONS", "PERL5LIB", "RUBYOPT", "JAVA_TOOL_OPTIONS", "GIT_SSH_COMMAND"):
        result = run("--json", "--env", f"{name}=/nonexistent", "--", "/usr/bin/env", user=user)
        check(any(name in w for w in result.report["warnings"]), lambda: f"no warning for {name}: {result.report['warnings']}")
    told = run("--env", "LD_LIBRARY_PATH", "--", "true", user=user, env={"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": "/nonexistent"}, prefix=()) if not (user and harness.ROOT) else None
    if told:
        check(b"warning" in told.err and b"LD_LIBRARY_PATH" in told.err, lambda: f"stderr {told.err!r}")
    equal(run("--json", "--env", "PLAIN=x", "--", "true", user=user).report["warnings"], [], "warnings for a plain name")
    spec = SCRATCH.directory() / "spec.json"
    spec.write_text(json.dumps({"argv": ["true"], "environment": {"LD_PRELOAD": "/nonexistent"}}))
    result = run("--json", "--spec", spec, user=user)
    check(any("LD_PRELOAD" in w for w in result.report["warnings"]), lambda: f"no warning for a spec's LD_PRELOAD: {result.report['warnings']}")


# ---- Network ---------------------------------------------------------------------------------

CONNECT = """
import socket, sys
def attempt(family, address):
    s = socket.socket(family)
    s.settimeout(5)
    try:
        s.connect(address)
        return 'connected'
    except OSError as e:
        return 'refused'
print(attempt(socket.AF_INET, ('127.0.0.1', int(sys.argv[1]))), attempt(socket.AF_INET, ('198.51.100.1', 9)) if len(sys.argv) < 3 else '-',
      len(socket.if_nameindex()))
a = socket.socket()
try:
    a.bind(('127.0.0.1', 0)); a.listen(); b = socket.create_connection(a.getsockname(), 5); print('own loopback')
except OSError: print('no loopback')
"""


@harness.for_people("network: none, loopback and host")
def network(user):
    listener = socket.create_server(("127.0.0.1", 0))
    try:
        port = str(listener.getsockname()[1])
        for options, wanted in (([], "refused refused 1\nno loopback\n"), (["--net", "none"], "refused refused 1\nno loopback\n"), (["--net", "loopback"], "refused refused 1\nown loopback\n")):
            result = run("-q", *options, "--", PYTHON, "-c", CONNECT, port, user=user)
            equal(result.out.decode(), wanted, f"with {options} ({result.brief()})")
        result = run("-q", "--net", "host", "--", PYTHON, "-c", CONNECT, port, "local", user=user)
        equal(result.out.decode(), f"connected - {len(socket.if_nameindex())}\nown loopback\n", f"with --net host ({result.brief()})")
    finally:
        listener.close()


@harness.for_people("network: abstract sockets of the host are out of reach")
def abstract(user):
    name = f"\0callbox-test-{os.getpid()}-{user}"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(name)
    listener.listen()
    try:
        script = f"import socket\ns = socket.socket(socket.AF_UNIX)\ntry: s.connect({name!r}); print('connected')\nexcept OSError: print('refused')"
        for options in ([], ["--net", "loopback"], ["--net", "host"]):
            result = run("-q", *options, "--", PYTHON, "-c", script, user=user)
            equal(result.out, b"refused\n", f"with {options} ({result.brief()})")
    finally:
        listener.close()


@harness.for_people("network: a socket in a shown directory can be reached where it is writable")
def unix_socket(user):
    directory = tree(user)
    path = directory / "socket"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    path.chmod(0o777)
    SCRATCH.own(path, user)
    listener.listen()
    try:
        script = f"import socket\ns = socket.socket(socket.AF_UNIX)\ntry: s.connect('{path}'); print('connected')\nexcept OSError as e: print('refused')"
        equal(run("-q", "--", PYTHON, "-c", script, user=user).out, b"refused\n", "not shown")
        equal(run("-q", "--write", directory, "--", PYTHON, "-c", script, user=user).out, b"connected\n", "shown")
    finally:
        listener.close()


# ---- System calls ----------------------------------------------------------------------------


def errno_of(call, *options, user=False):
    script = f"import ctypes, os\nl = ctypes.CDLL(None, use_errno=True)\nr = {call}\nprint(ctypes.get_errno() if r == -1 else 'fine')"
    result = run("--json", *options, "--", PYTHON, "-c", script, user=user)
    return result.stdout.strip() if result.reason == "exited" else result.reason


@harness.for_people("syscalls: allow, deny and what follows a denied one")
def syscalls(user):
    ptrace = "l.ptrace(0, 0, 0, 0)"  # PTRACE_TRACEME
    equal(errno_of(ptrace, user=user), "1", "ptrace")
    equal(errno_of(ptrace, "--allow-syscall", "ptrace", user=user), "fine", "ptrace, allowed")
    equal(errno_of(ptrace, "--on-denied", "kill", user=user), "denied", "ptrace with --on-denied kill")
    equal(errno_of(ptrace, "--on-denied", "kill", "--allow-syscall", "ptrace", user=user), "fine", "allowed, with --on-denied kill")
    equal(errno_of("l.syscall(110)", "--deny-syscall", "getppid", user=user), "1", "getppid, denied")
    equal(errno_of("l.syscall(110)", "--deny-syscall", "getppid", "--on-denied", "kill", user=user), "denied", "getppid, denied, kill")
    equal(errno_of("l.syscall(110)", user=user), "fine", "getppid")
    path = policy_file({"syscalls": {"deny": ["getppid"], "allow": ["ptrace"]}})
    equal(errno_of("l.syscall(110)", "--policy", path, user=user), "1", "denied by a policy")
    equal(errno_of(ptrace, "--policy", path, user=user), "fine", "allowed by a policy")
    equal(errno_of("l.syscall(435, 0, 0)", user=user), "38", "clone3")
    equal(errno_of("l.syscall(9999)", user=user), "38", "a call that does not exist")
    equal(errno_of("l.syscall(425, 8, 0)", user=user), "1", "io_uring_setup")
    killed = run("--on-denied", "kill", "--", PYTHON, "-c", "import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)", user=user)
    equal(killed.code, 137, killed.brief())
    check(re.search(rb"callbox: denied: ", killed.err), lambda: f"stderr {killed.err!r}")


NEVER = ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3")


@harness.for_people("syscalls: a call whose refusal is a fence cannot be allowed")
def never_allowed(user):
    attributes = ("setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr")
    directory = SCRATCH.directory(user)
    for options, names in (
        ((), NEVER),
        (("--workspace", directory), (*NEVER, "openat2")),
        (("--read", directory), (*NEVER, "openat2")),
        (("--box", "landlock"), (*NEVER, "openat2", "socket", *attributes)),
        (("--box", "landlock", "--net", "host"), (*NEVER, "openat2", *attributes)),
    ):
        for name in names:
            result = run("--json", *options, "--allow-syscall", "read", "--allow-syscall", name, "--", "touch", directory / "ran", user=user, cwd="/")
            equal((result.code, result.reason), (125, "setup"), f"{options} {name}: {result.brief()}")
            error = result.report["error"]
            equal(error["where"], "--allow-syscall", f"{options} {name}")
            check(f"{name} cannot be allowed: " in error["text"], error)
            check("--net host" in error["hint"] if name == "socket" else error["hint"] == "", error)
    path = policy_file({"box": "landlock", "syscalls": {"allow": ["socket"]}})
    result = run("--json", "--policy", path, "--", "true", user=user, cwd="/")
    equal((result.code, result.report["error"]["where"]), (125, "syscalls.allow[0]"), result.brief())
    check(not (directory / "ran").exists(), "something ran")


SENDER = """
import ctypes, os, socket, sys
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
    try: socket.socket(socket.AF_UNIX, kind).sendto(b'x', sys.argv[1])
    except OSError: pass
    try: socket.socketpair(socket.AF_UNIX, kind)[0].sendto(b'x', sys.argv[1])
    except OSError: pass
libc = ctypes.CDLL(None, use_errno=True)
address = b'\\1\\0' + os.fsencode(sys.argv[1]) + b'\\0'
fd = libc.syscall(41, ctypes.c_ulong(1 << 32 | 1), 2, 0)  # the kernel does not look at the upper half
libc.syscall(44, fd, b'x', 1, 0, address, len(address))
for family in (16, 38, 40):  # netlink, kernel crypto, vsock
    fd = libc.socket(family, 5 if family == 38 else 3 if family == 16 else 1, 15 if family == 16 else 0)
    print(family, ctypes.get_errno() if fd < 0 else 0)
"""


@harness.for_people("syscalls: where sockets are allowed, local ones keep their conditions, and vsock is none of them")
def sockets_allowed(user):
    directory = SCRATCH.directory(user)
    host = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    host.bind(str(directory / "host"))
    (directory / "host").chmod(0o777)
    host.setblocking(False)
    for tree in (("--read", directory), ("--box", "landlock", "--net", "host", "--write", directory)):
        for options in ((), ("--allow-syscall", "socket"), ("--allow-syscall", "socket", "--allow-syscall", "socketpair")):
            result = run("--json", *tree, *options, "--", PYTHON, "-c", SENDER, directory / "host", user=user, cwd="/")
            equal(result.code, 0, result.brief())
            try:
                check(not host.recv(1), f"{tree} {options}: a datagram reached a socket of the host")
            except BlockingIOError:
                pass
            families = dict(line.split() for line in result.stdout.splitlines())
            equal(families["40"], "97", f"{tree} {options}: vsock")
            if options:
                check(families["16"] != "97" and families["38"] in ("0", "97"), lambda: f"{tree} {options}: {families}")
                check(any(w.startswith("socket is allowed: ") for w in result.report["warnings"]), lambda: result.report["warnings"])
            else:
                equal((families["16"], families["38"]), ("97", "97"), f"{tree}: families")
    host.close()


def named_calls():
    """Every call that the tables or the code name."""
    source = pathlib.Path(__file__).resolve().parent.parent / "src" / "policy"
    text = (source / "syscalls_table.h").read_text() + (source / "syscalls_named.c").read_text()
    names = set(re.findall(r'"([a-z_0-9]{2,})"', text)) | {"personality", "clone", "close_range", "unshare", "open", "openat", "openat2"}
    return sorted(names)


@harness.case("syscalls: naming any call leaves a box that works, with a warning where it gives something up")
def each_allowed():
    names = named_calls()
    check(len(names) > 300, f"only {len(names)} names")
    workspace = SCRATCH.directory()
    for options in ((), ("--workspace", workspace), ("--box", "landlock"), ("--explain",)):
        plain = run("--json", *options, "--", "true", cwd="/").report["warnings"]
        for name in names:
            result = run("--json", *options, "--allow-syscall", name, "--", "true", cwd="/")
            if result.reason == "setup":
                error = result.report["error"]
                equal(error["where"], "--allow-syscall", f"{name} {options}: {error}")
                check(f"{name} cannot be allowed: " in error["text"] or "no system call named" in error["text"], lambda: f"{name} {options}: {error}")
                continue
            equal((result.code, result.reason), (0, "exited"), f"{name} {options}: {result.brief()}")
            warnings = [w for w in result.report["warnings"] if w not in plain]
            if name in ("read", "kill", "mkdir", "connect"):
                equal(warnings, [], f"{name} {options}")
            if name in ("bpf", "ptrace", "keyctl", "userfaultfd", "perf_event_open", "mount", "setns", "unshare", "clone", "process_vm_writev", "open_tree", "acct"):
                check(len(warnings) == 1 and warnings[0].startswith(f"{name} is allowed: "), lambda: f"{name} {options}: {warnings}")
            if name in ("openat", "prlimit64", "socketpair", "close_range"):
                check(len(warnings) == 1 and warnings[0].startswith(f"allowing {name} changes nothing: "), lambda: f"{name} {options}: {warnings}")


@harness.for_people("syscalls: no thread gets descriptors of its own, where init would not count what they hold, whatever is allowed")
def tables_allowed(user):
    script = "import ctypes, threading\nl = ctypes.CDLL(None, use_errno=True)\nl.unshare(0x400); print(ctypes.get_errno()); ctypes.set_errno(0)\n"
    script += "l.syscall(436, 1000, 1000, 2); print(ctypes.get_errno()); ctypes.set_errno(0)\n"
    script += "l.syscall(56, 0x10000 | 0x800 | 0x100, 0, 0, 0, 0); print(ctypes.get_errno()); ctypes.set_errno(0)\n"  # a thread without CLONE_FILES
    script += "l.unshare(0x10000000); print(ctypes.get_errno())\nt = threading.Thread(target=print, args=('thread',)); t.start(); t.join()"
    allow = [word for name in ("clone", "unshare", "close_range") for word in ("--allow-syscall", name)]
    for options in ([], allow):
        result = run("--json", *options, "--", PYTHON, "-c", script, user=user)
        equal(result.code, 0, result.brief())
        lines = result.stdout.split()
        equal((lines[:3], lines[-1]), (["1", "1", "1"], "thread"), f"{options}")
        denied = {d["what"]: d["count"] for d in result.report["denials"]}
        equal(denied, {"unshare": 1 if options else 2, "close_range": 1, "clone": 1}, f"denials with {options}")


@harness.for_people("syscalls: a mode with a set-id bit is for the policy to allow, but by no call that makes names in a workspace")
def modes_allowed(user):
    script = "import os\nos.umask(0)\nopen('a', 'w').close()\nfor f in (lambda: os.chmod('a', 0o4700), lambda: os.close(os.open('b', os.O_CREAT, 0o4700)),"
    script += " lambda: os.mknod('c', 0o104700)):\n    try: f(); print('made')\n    except OSError as e: print(e.errno)"
    allow = [word for name in ("chmod", "fchmodat", "openat", "mknod", "mknodat") for word in ("--allow-syscall", name)]
    for options, wanted in (([], "1\n1\n1\n"), (allow, "made\n1\n1\n")):
        directory = SCRATCH.directory(user)
        result = run("--json", "--workspace", directory, "--cwd", directory, *options, "--", PYTHON, "-c", script, user=user, cwd="/")
        equal((result.code, result.stdout), (0, wanted), f"{options}: {result.brief()}")
        check(bool(options) == any("chmod is allowed: " in w for w in result.report["warnings"]), lambda: result.report["warnings"])


@harness.for_people("syscalls: a denied call ends the program at once, every time")
def denied_at_once(user):
    for _ in range(25):  # also when it comes together with init's look at the tree
        result = run("--json", "--timeout", "25", "--on-denied", "kill", "--", "perl", "-e", "select undef, undef, undef, rand 0.02; syscall 101, 0, 0, 0, 0", user=user)
        equal((result.reason, result.code), ("denied", 137), f"end ({result.brief()})")


# ---- Guarantees ------------------------------------------------------------------------------


@harness.for_people("require: what the host has is enforced, what it has not stops the call")
def require(user):
    base = run("--json", "--", "true", user=user)
    # The memory controller of cgroup v1 is used where it is asked for, and is root's alone.
    v1 = not user and os.path.exists("/sys/fs/cgroup/memory/cgroup.procs")
    for name in ("landlock", "cgroup", "files", "memory"):
        result = run("--json", "--require", name, "--", "echo", "ran", user=user)
        if base.guarantee(name)["enforced"] or (name == "cgroup" and v1 and result.code == 0):
            equal((result.code, result.guarantee(name)["enforced"]), (0, True), f"{name}: {result.brief()}")
            continue
        equal((result.code, result.reason), (125, "setup"), f"{name}: {result.brief()}")
        check(name in result.report["error"]["text"] and result.report["error"]["hint"], lambda: f"{result.report['error']}")
        equal(result.report["error"]["where"], "--require", "where")
        plain = run("--require", name, "--", "echo", "ran", user=user)
        equal((plain.code, plain.out), (125, b""), plain.brief())
        # best effort lets the others go, not the one that is asked for by name
        equal(run("--best-effort", "--require", name, "--", "true", user=user).code, 125, "with --best-effort")
    equal(run("--best-effort", "--", "true", user=user).code, 0, "--best-effort alone")
    path = policy_file({"require": ["files"], "best_effort": True})
    equal(run("--policy", path, "--", "true", user=user).code, 0, "of a policy")


# ---- Policy file and options -----------------------------------------------------------------


def shown(*args, cwd="/"):
    result = callbox("policy", "show", *args, cwd=cwd)
    equal(result.code, 0, f"exit code of policy show {args} ({result.brief()})")
    return harness.parse_report(result.out)


@harness.case("options and a policy file go together: lists grow, values give way")
def merge():
    path = policy_file({"files": {"read": ["/usr/share"], "hide": ["/usr/share/doc"], "tmpfs": ["/a"]}, "network": "loopback", "environment": {"pass": ["A"], "set": {"B": "1", "C": "1"}},
                        "limits": {"wall": 5, "memory": "64M"}, "syscalls": {"deny": ["getppid"]}, "require": ["landlock"]})
    both = shown("--read", "/usr/lib", "--hide", "/usr/lib/x", "--tmpfs", "/b=1M", "--net", "none", "--env", "D", "--env", "B=2", "--timeout", "7", "--deny-syscall", "getpgrp", "--require", "cgroup", path)
    equal(sorted(both["files"]["read"]), ["/usr/lib", "/usr/share"], "read")
    equal(sorted(both["files"]["hide"]), ["/usr/lib/x", "/usr/share/doc"], "hide")
    equal(len(both["files"]["tmpfs"]), 2, "tmpfs")
    equal((both["network"], both["limits"]["wall"], both["limits"]["memory"]), ("none", 7, "64M"), "values")
    equal((sorted(both["environment"]["pass"]), both["environment"]["set"]), (["A", "D"], {"B": "2", "C": "1"}), "environment")
    equal(sorted(both["syscalls"]["deny"]), ["getpgrp", "getppid"], "syscalls")
    check({"landlock", "cgroup", "files"} <= set(both["require"]), f"require is {both['require']}")
    equal(shown("--policy", path), shown(path), "both spellings")
    equal(shown("--memory=none", path)["limits"]["memory"], None, "none")
    equal(shown("--memory", "1.5M")["limits"]["memory"], "1536K", "a fraction")


@harness.case("an option that is wrong beside a policy file is named, and an entry of the file too")
def blame():
    path = policy_file({"files": {"read": ["/usr/share"]}})
    result = run("--json", "--policy", path, "--read", "/nonexistent/x", "--", "true")
    equal(result.report["error"]["where"], "--read", "where")
    path = policy_file({"files": {"read": ["/usr/share", "/nonexistent/y"]}})
    result = run("--json", "--policy", path, "--read", "/usr/lib", "--", "true")
    equal(result.report["error"]["where"], "files.read[1]", "where")


@harness.for_people("with a policy file, nothing of the current directory is shown")
def policy_alone(user):
    directory = tree(user, a="A")
    path = policy_file({})
    equal(sh("pwd; ls -A", "--policy", path, user=user, cwd=directory), "/tmp\n", "with a policy")
    equal(sh("pwd; cat a", user=user, cwd=directory), f"{directory}\nA", "without")
    equal(sh("pwd; ls -A", "--cwd", "/tmp", user=user, cwd=directory), "/tmp\n", "with --cwd")
    for home in (directory, directory / "deeper"):
        out = run("-q", "--", "sh", "-c", f"test -e {directory}/a && echo seen; pwd", user=user, cwd=directory, env={**os.environ, "HOME": str(home)})
        equal(out.out, b"/tmp\n", "in the home directory")


def on_host(script, own=True):
    """What stands before a command that is to see another host: mounts of its own, in a user namespace too where `own`."""
    ids = ("--user", "--map-root-user") if own else ()
    return ("unshare", *ids, "--mount", "sh", "-c", f'{script} && exec "$@"', "sh")


def shown_here(where, user, home=None, script="true", own=True):
    """What a program sees of a directory, and of the file "key" in it, where nobody speaks of it."""
    environment = {name: value for name, value in os.environ.items() if name != "HOME"}
    environment.update({"HOME": str(home)} if home else {})
    box = ("run", "-q", "--", "sh", "-c", "pwd; cat key 2>/dev/null; true")
    command = [*on_host(f"{script} && cd {where}", own), CALLBOX, *box]
    result = harness.execute(harness.as_user(command) if user else command, cwd="/", env=environment)
    equal(result.code, 0, result.brief())
    return result.out.decode()


@harness.for_people("a home is not shown by itself, whatever it is called")
def homes(user):
    home = tree(user, key="K", project__key="P")
    links = SCRATCH.directory(user)
    (links / "me").symlink_to(home)
    (links / "all").symlink_to(home.parent)
    for name in (f"{home}/", f"{home}/./", links / "me", links / "me/project", links / "all" / home.name, f"/{home}"):
        equal(shown_here(home, user, name), "/tmp\n", f"HOME={name}")
        if not str(name).endswith("project"):
            equal(shown_here(home / "project", user, name), f"{home}/project\nP", f"a project, HOME={name}")
    equal(shown_here(home, user), f"{home}\nK", "a directory that is nobody's home")

    passwd = links / "passwd"
    for uid, name in ((0, home), (0, links / "me"), (4321, home), (4321, home / "project")):
        passwd.write_text(f"root:x:0:0:root:/root:/bin/sh\n\nbroken\nme:x:{uid}:{uid}:me,,,:{name}:/bin/sh\n")
        script = f"mount --bind {passwd} /etc/passwd"
        for other in (None, "/nonexistent"):
            equal(shown_here(home, user, other, script), "/tmp\n", f"HOME={other}, {uid} at {name}")
    equal(shown_here(home / "project", user, script=script), "/tmp\n", "a home in a home")
    line, long = f"me:x:4321:4321::{home}:/bin/sh", "n:x:1:1:" + "g" * 9000 + ":/n:/n\n"
    for before in ("", "x" * 4090 + "\n", long, *("n:x:1:1::/n:/n\n" * 300 + "n" * more + "\n" for more in range(0, 60, 13))):
        passwd.write_text(before + line)
        equal(shown_here(home, user, script=script), "/tmp\n", f"after {len(before)} bytes")
    passwd.write_text(long)
    equal(shown_here(home, user, script=script), f"{home}\nK", "of a file without an entry")

    users = "mount -t tmpfs none /home && mkdir /home/me && echo -n K >/home/me/key"
    equal(shown_here("/home/me", user, script=users), "/tmp\n", "just below /home")
    users += " && mkdir /home/me/project && echo -n P >/home/me/project/key"
    equal(shown_here("/home/me/project", user, script=users), "/home/me/project\nP", "a project below /home")
    (home / "me").mkdir()
    (home / "me/key").write_text("K")
    harness.Scratch.own(home / "me", user)
    equal(shown_here(home / "me", user, script=f"mount --bind {home} /home"), "/tmp\n", "where /home is elsewhere as well")
    equal(shown_here(home, user, script=f"mount --bind {home} /home"), "/tmp\n", "/home by another name")

    (home / "project/.ssh").mkdir()
    equal(shown_here(home / "project", user), "/tmp\n", "with an .ssh in it")


if harness.ROOT:

    @harness.case("root does not show the home of somebody else by itself")
    def other_home():
        home = tree(True, key="K")
        home.chmod(0o700)
        (home / "key").chmod(0o600)
        link, passwd = SCRATCH.path / "other-home", SCRATCH.path / "other-passwd"
        link.symlink_to(home)
        equal(shown_here(home, False, "/root", own=False), f"{home}\nK", "before it was a home")
        for name in (home, link):
            passwd.write_text(f"root:x:0:0:root:/root:/bin/sh\nother:x:{harness.USER_ID}:{harness.USER_ID}::{name}:/bin/sh\n")
            equal(shown_here(home, False, "/root", f"mount --bind {passwd} /etc/passwd", own=False), "/tmp\n", f"at {name}")


@harness.for_people("policy check refuses what run refuses here, and warns as it does")
def check_as_run(user):
    for policy, options in (
        ({}, ()), ({}, ("--require", "cgroup")), ({"require": ["cgroup"]}, ()), ({}, ("--cpus", "1")), ({"limits": {"cpus": 0.5}}, ()),
        ({}, ("--cpus", "1", "--best-effort")), ({"limits": {"cpus": 0.5}, "best_effort": True}, ()), ({}, ("--require", "landlock")),
    ):
        path = policy_file(policy)
        tried = run(*options, "--policy", path, "--", "true", user=user)
        told = callbox("policy", "check", *options, path, user=user)
        equal((told.code, told.err), (tried.code, tried.err if tried.code else b""), f"{policy} {options} ({tried.brief()})")
        warnings = [line.removeprefix("callbox: ") for line in tried.err.decode().splitlines() if "warning: " in line]
        equal([line for line in told.out.decode().splitlines() if "warning: " in line], warnings, f"warnings of {policy} {options}")


@harness.case("policy check says what is wrong, or that it is good")
def policy_check():
    good = policy_file({"files": {"read": ["/usr/share"]}, "environment": {"set": {"LD_PRELOAD": "x"}}})
    result = callbox("policy", "check", good)
    equal(result.code, 0, result.brief())
    check(b"good" in result.out and b"LD_PRELOAD" in result.out, lambda: f"stdout {result.out!r}")
    bad = policy_file({"files": {"read": ["/nonexistent/data"]}})
    result = callbox("policy", "check", bad)
    equal((result.code, result.out), (125, b""), result.brief())
    check(b"files.read[0]" in result.err and b"does not exist" in result.err, lambda: f"stderr {result.err!r}")


@harness.case("policy show of a policy runs as the policy itself")
def show_runs():
    directory = tree(False, a="A", hidden__b="B")
    options = ["--read", directory, "--hide", directory / "hidden", "--env", "X=1", "--memory", "200M"]
    path = SCRATCH.directory() / "shown.json"
    path.write_bytes(callbox("policy", "show", *options).out)
    script = f"cat {directory}/a; ls {directory}/hidden; echo $X"
    equal(sh(script, "--policy", path), sh(script, *options), "what it prints")


# ---- Protected names -------------------------------------------------------------------------

DEFAULT = harness.parse_report(harness.callbox(["policy", "show"], binary=CALLBOX, cwd="/").out)["files"]["protect"]
EXISTING = {".git/config": "[core]\n", ".git/hooks/pre-commit": "#!/bin/sh\n", ".envrc": "export A=1\n", ".vscode/tasks.json": "{}\n", ".mcp.json": "{}\n"}


@harness.for_people("protected: what exists is read-only, beside it all is writable")
def protected_existing(user):
    directory = tree(user, plain="P")
    for name, text in EXISTING.items():
        make(directory, name, text, user)
    before = harness.HostState([directory]).trees
    attempts = []
    for name in EXISTING:
        attempts += [f"echo x > {name}", f"echo x >> {name}", f"rm -f {name}", f"mv {name} moved", f"chmod 777 {name}", f"truncate -s 0 {name}", f"cp plain {name}",
                     f"mv -f plain {name}", f"ln -f plain {name}", f"sed -i s/./y/ {name}", f"touch -d @1 {name}", f"dd if=plain of={name} conv=notrunc"]
    attempts += ["echo x > .git/hooks/new", "rm -rf .git/hooks", "mv .git/hooks .git/h", "mv .git gone", "rm -rf .vscode", "mv .vscode v", "mkdir .vscode/sub", "ln -s /tmp .vscode/link",
                 "mv .envrc /tmp/x", "chmod 000 .vscode"]
    script = "\n".join(f"({a}) >/dev/null 2>&1 && echo 'done: {a}'" for a in attempts) + "\ntrue"
    equal(sh(script, "--workspace", directory, user=user), "", "what could be done")
    equal(harness.HostState([directory]).trees, before, "the tree on the host")
    equal(sh("cat .envrc .git/config; echo new > .git/index && echo q > other && rm plain && ls -A", "--workspace", directory, user=user),
          "export A=1\n[core]\n.envrc\n.git\n.mcp.json\n.vscode\nother\n", "what is allowed")


# Ways to bring a name into being. `n` is the name, `w` the workspace; each is tried for itself.
CREATE = r"""
import ctypes, os, socket, stat, sys, tempfile
libc = ctypes.CDLL(None, use_errno=True)
w, n, kind = sys.argv[1], sys.argv[2], sys.argv[3]
os.chdir(w)
parent, base = os.path.split(n)
def call(number, *args):
    if libc.syscall(number, *args) < 0: raise OSError(ctypes.get_errno(), 'syscall')
def text(path): return ctypes.c_char_p(path.encode())
def parents(path):
    if os.path.dirname(path): os.makedirs(os.path.dirname(path), exist_ok=True)
def spare(directory=False):
    name = 'spare%d' % spare.n; spare.n += 1
    if directory: os.mkdir(name)
    else: open(name, 'w').close()
    return name
spare.n = 0
def how_openat2(path):
    how = (ctypes.c_uint64 * 3)(os.O_CREAT | os.O_WRONLY, 0o644, 0); call(437, -100, text(path), ctypes.byref(how), 24)
def bind(path):
    s = socket.socket(socket.AF_UNIX); s.bind(path)
def tmpfile_link(path):
    fd = os.open('.', os.O_TMPFILE | os.O_RDWR, 0o644); os.link('/proc/self/fd/%d' % fd, path, follow_symlinks=True)
def by_dirfd(path):
    fd = os.open(os.path.dirname(path) or '.', os.O_PATH | os.O_DIRECTORY); os.close(os.open(os.path.basename(path), os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=fd))
def via_link(path):
    os.symlink(os.path.abspath(os.path.dirname(path) or '.'), 'via'); open('via/' + os.path.basename(path), 'w').close()
def via_dangling(path):
    os.symlink(os.path.abspath(path), 'dangling'); open('dangling', 'w').close()
def whole_parent(path):
    top = path.split('/')[0]
    if top == path: os.mkdir('made'); os.rename('made', top)
    else: os.makedirs('made/' + os.path.dirname(os.path.relpath(path, top))); open('made/' + os.path.relpath(path, top), 'w').close(); os.rename('made', top)
def exchange(path):
    s = spare(); call(316, -100, text(s), -100, text(path), 2)
def swap_parent(path):
    top = path.split('/')[0]; os.mkdir('made'); os.makedirs('made/' + os.path.relpath(path, top)) if top != path else None; call(316, -100, text('made'), -100, text(top), 2)
def thread_race(path):
    import threading
    # the name is changed while the call is being judged
    room = ctypes.create_string_buffer(b'harmless' + bytes(4080)); stop = []
    def flip():
        while not stop:
            ctypes.memmove(room, path.encode() + b'\0', len(path) + 1); ctypes.memmove(room, b'harmless\0', 9)
    t = threading.Thread(target=flip); t.start()
    try:
        for i in range(300):
            fd = libc.syscall(257, -100, room, os.O_CREAT | os.O_WRONLY, 0o644)
            if fd >= 0: os.close(fd)
    finally: stop.append(1); t.join()
    if not os.path.lexists(path): raise OSError(1, 'did not get there')
def child(path):
    pid = os.fork()
    if pid == 0:
        try: open(path, 'w').close(); os._exit(0)
        except OSError: os._exit(1)
    if os.waitpid(pid, 0)[1]: raise OSError(1, 'child')
def grandchild_in_shell(path):
    if os.system('sh -c "echo x > %s" 2>/dev/null' % path): raise OSError(1, 'shell')
def chdir_parent(path):
    os.chdir(os.path.dirname(path) or '.'); open(os.path.basename(path), 'w').close()
def fchdir_proc(path):
    open('/proc/self/cwd/' + path, 'w').close()
def proc_root(path):
    open('/proc/self/root' + os.path.abspath(path), 'w').close()
def proc_fd(path):
    fd = os.open(os.path.dirname(path) or '.', os.O_RDONLY); open('/proc/self/fd/%d/%s' % (fd, os.path.basename(path)), 'w').close()
def copy_tree(path):
    import shutil
    os.makedirs('from/' + (os.path.dirname(path) or '.'), exist_ok=True); open('from/' + path, 'w').close(); shutil.copytree('from', '.', dirs_exist_ok=True)
def move_out_and_in(path):
    top = path.split('/')[0]
    if top == path: raise OSError(1, 'no parent')
    os.makedirs(top, exist_ok=True); os.rename(top, 'away'); os.makedirs(os.path.dirname('away/' + os.path.relpath(path, top)), exist_ok=True)
    open('away/' + os.path.relpath(path, top), 'w').close(); os.rename('away', top)
ways = {
    'open': lambda p: open(p, 'w').close(),
    'creat': lambda p: call(85, text(p), 0o644),
    'open the old call': lambda p: call(2, text(p), os.O_CREAT | os.O_RDWR, 0o644),
    'open exclusively': lambda p: os.close(os.open(p, os.O_CREAT | os.O_EXCL | os.O_WRONLY)),
    'open read-only with O_CREAT': lambda p: os.close(os.open(p, os.O_CREAT | os.O_RDONLY)),
    'openat2': how_openat2,
    'absolute path': lambda p: open(os.path.join(w, p), 'w').close(),
    'dots and slashes': lambda p: open('./' + os.path.join(os.path.dirname(p), '.', '', os.path.basename(p)), 'w').close(),
    'up and down': lambda p: open('../' + os.path.basename(w) + '/' + p, 'w').close(),
    'dirfd': by_dirfd, 'chdir': chdir_parent, 'via a linked directory': via_link, 'via a dangling link': via_dangling,
    '/proc/self/cwd': fchdir_proc, '/proc/self/root': proc_root, '/proc/self/fd': proc_fd,
    'mkdir': os.mkdir, 'mkdir with a slash': lambda p: os.mkdir(p + '/'), 'mkdir the old call': lambda p: call(83, text(p), 0o755),
    'mknod a file': lambda p: os.mknod(p, stat.S_IFREG | 0o644), 'mkfifo': os.mkfifo, 'bind a socket': bind,
    'symlink': lambda p: os.symlink('/nonexistent', p), 'symlink to a file': lambda p: os.symlink(os.path.abspath(spare()), p),
    'link': lambda p: os.link(spare(), p), 'link an open file': tmpfile_link,
    'rename a file': lambda p: os.rename(spare(), p), 'rename a directory': lambda p: os.rename(spare(True), p), 'rename the old call': lambda p: call(82, text(spare()), text(p)),
    'renameat2': lambda p: call(316, -100, text(spare()), -100, text(p), 1), 'exchange': exchange,
    'rename a parent into place': whole_parent, 'exchange a parent': swap_parent, 'move the parent out and in': move_out_and_in,
    'change the name meanwhile': thread_race, 'from a child': child, 'from a shell': grandchild_in_shell, 'copy a tree': copy_tree,
}
if kind == 'list':
    print('\n'.join(ways)); sys.exit()
try:
    if kind not in ('rename a parent into place', 'exchange a parent', 'move the parent out and in', 'copy a tree'):
        parents(n)  # the directories above are not protected themselves
except OSError:
    print('no parent'); sys.exit()
try:
    ways[kind](n)
    print('made')
except OSError as e:
    print('refused', e.errno)
"""


def ways():
    result = harness.execute([PYTHON, "-c", CREATE, "/tmp", "x", "list"])
    return result.out.decode().splitlines()


def protected_absent(way, user):
    for name in (".envrc", ".vscode", ".git/hooks", ".git/config"):
        directory = tree(user, plain="P")
        result = run("--json", "--workspace", directory, "--", PYTHON, "-c", CREATE, directory, name, way, user=user)
        equal(result.code, 0, f"{way} of {name}: {result.brief()}")
        left = [n for n in DEFAULT if os.path.lexists(directory / n)]
        equal(left, [], f"protected names on the host after {way!r} of {name} (inside: {result.stdout.strip()})")
        check(not result.stdout.startswith("made"), f"{way} of {name} succeeded inside")


for _way in ways():
    for _who, _user in PEOPLE:
        harness.add(f"protected: absent names cannot be made by: {_way}, as {_who}", lambda way=_way, user=_user: protected_absent(way, user))


@harness.for_people("protected: every default name is held, and nothing is made on the host")
def protected_all(user):
    directory = tree(user, plain="P")
    before = harness.HostState([directory]).trees
    script = "import os, sys\nfor n in sys.argv[1:]:\n    if '/' in n: continue\n    for f in (os.mkdir, lambda p: open(p, 'w').close(), lambda p: os.symlink('x', p)):\n        try: f(n); print('made', n)\n        except OSError: pass"
    result = run("-q", "--workspace", directory, "--", PYTHON, "-c", script, *DEFAULT, user=user)
    equal((result.code, result.out), (0, b""), f"what was made ({result.brief()})")
    equal(harness.HostState([directory]).trees, before, "the tree on the host")
    equal(sh("ls -A", "--workspace", directory, user=user), "plain\n", "what is seen inside")
    equal(sh("cat .envrc 2>/dev/null || echo absent; test -e .vscode || echo absent", "--workspace", directory, user=user), "absent\nabsent\n", "absent names inside")


@harness.for_people("protected: names that are like them are free")
def protected_free(user):
    directory = tree(user, plain="P")
    script = "echo x > .envrc2 && mkdir sub && echo x > vscode && mkdir -p a/b && echo x > a/b/c && mv a z && ln -s plain l && ln plain h && rm plain && mkfifo f && ls -A | paste -sd,"
    equal(sh(script, "--workspace", directory, user=user), ".envrc2,f,h,l,sub,vscode,z\n", "names")
    owner = directory.stat()
    for path in directory.rglob("*"):
        equal((path.lstat().st_uid, path.lstat().st_gid), (owner.st_uid, owner.st_gid), f"owner of {path.name}")
    # outside the workspace nothing is protected
    equal(sh("cd /tmp && mkdir .vscode && echo x > .envrc && ls -A | grep '^[.]' | paste -sd,", "--workspace", directory, user=user), ".envrc,.vscode\n", "in /tmp")
    other = tree(user)
    equal(sh(f"echo x > {other}/.envrc && cat {other}/.envrc", "--workspace", directory, "--write", other, user=user), "x\n", "in a tree of --write")


@harness.for_people("--protect adds a name, --unprotect takes one away")
def protect_options(user):
    directory = tree(user, keep="K", d__keep="K")
    script = "(echo x > keep) 2>/dev/null || echo held; (echo x > d/absent) 2>/dev/null || echo held; (echo x > .envrc) 2>/dev/null || echo held; (echo x > d/other) && echo free"
    equal(sh(script, "--workspace", directory, "--protect", "keep", "--protect", "d/absent", user=user), "held\nheld\nheld\nfree\n", "--protect")
    equal((directory / "keep").read_text(), "K", "on the host")
    equal(sh("echo x > .envrc && cat .envrc; mkdir .vscode 2>/dev/null || echo held", "--workspace", directory, "--unprotect", ".envrc", user=user), "x\nheld\n", "--unprotect")
    equal((directory / ".envrc").read_text(), "x\n", "on the host")
    result = run("-q", "--workspace", directory, "--unprotect", ".git", "--", "sh", "-c", "git init -q . && echo fine", user=user)
    equal(result.out, b"fine\n", f"git init with --unprotect .git ({result.brief()})")
    script = "(mkdir d/.git) 2>/dev/null || echo held; (mkdir -p d/e/.GIT) 2>/dev/null || echo held; mkdir -p d/e/.gitx && echo free"
    equal(sh(script, "--workspace", directory, user=user), "held\nheld\nfree\n", "at every depth")
    script = "mkdir d/.git && echo free; (echo x > .git/config) 2>/dev/null || echo held"
    equal(sh(script, "--workspace", directory, "--unprotect", "**/.git", user=user), "free\nheld\n", "--unprotect '**/.git'")
    equal(sh("echo x > d/.git/config && mv d/.git/config d/x && echo free", "--workspace", directory, user=user), "free\n", "in a repository below that is there")
    equal(sh("(mkdir a d/a d/b) 2>/dev/null; ls -d a d/a d/b 2>/dev/null; true", "--workspace", directory, "--protect", "**/a", user=user), "d/b\n", "--protect '**/a'")
    result = run("--workspace", directory, "--protect", "**/a/b", "--", "true", user=user)
    equal(result.code, 125, f"--protect '**/a/b' ({result.brief()})")
    path = policy_file({"files": {"protect": ["only"]}})
    equal(sh("(echo x > only) 2>/dev/null || echo held; mkdir .idea && echo free", "--policy", path, "--workspace", directory, user=user), "held\nfree\n", "a list in a policy takes the default's place")
    path = policy_file({"files": {"protect": []}})
    equal(sh("mkdir .zed && echo free", "--policy", path, "--workspace", directory, user=user), "free\n", "an empty list")


@harness.for_people("protected: a workspace at another place, by a link, and in a worktree of git")
def protected_places(user):
    directory = tree(user, plain="P")
    equal(sh("(echo x > /place/.envrc) 2>/dev/null || echo held; cd /place && (mkdir .vscode) 2>/dev/null || echo held", "--workspace", f"{directory}:/place", user=user), "held\nheld\n", "at another place")
    link = tree(user) / "link"
    link.symlink_to(directory)
    equal(sh(f"(echo x > {link}/.envrc) 2>/dev/null || echo held; (mkdir .vscode) 2>/dev/null || echo held", "--workspace", link, user=user), "held\nheld\n", "by a link")
    equal(os.listdir(directory), ["plain"], "on the host")
    make(directory, ".git", "gitdir: /elsewhere\n", user)
    equal(sh("(echo x > .git) 2>/dev/null || echo held; (rm -f .git) 2>/dev/null; (mv .git g) 2>/dev/null; cat .git; echo x > f && cat f", "--workspace", directory, user=user), "held\ngitdir: /elsewhere\nx\n", "a .git that is a file")
    equal((directory / ".git").read_text(), "gitdir: /elsewhere\n", "on the host")


@harness.for_people("protected: ordinary work in a workspace is not slowed to a crawl")
def protected_work(user):
    directory = tree(user)
    script = "for i in $(seq 300); do echo $i > f$i; done; mkdir d; mv f* d; ls d | wc -l; rm -r d"
    equal(sh(script, "--workspace", directory, user=user), "300\n", "files")
    equal(os.listdir(directory), [], "on the host")


STATIC_C = r"""
#include <dirent.h>
#include <stdio.h>
int main(void)
{
        DIR *d = opendir("/");
        struct dirent *e;
        while ((e = readdir(d)))
                if (e->d_name[0] != '.')
                        puts(e->d_name);
        return 0;
}
"""

if __name__ == "__main__":
    (SCRATCH.path / "static.c").write_text(STATIC_C)
    built = harness.execute(["gcc", "-static", "-o", SCRATCH.bin / "static", SCRATCH.path / "static.c"])
    (SCRATCH.bin / "static").chmod(0o755)
    try:
        sys.exit(harness.main())
    finally:
        SCRATCH.remove()
