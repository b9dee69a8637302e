#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Bad input: a clear error that names the option or the JSON path, exit 125, nothing run or left.

Every row is tried twice, plain and with --json; both must tell the same place, and the program,
which would print "ran", must not have been started.
"""

import json
import os
import re
import sys

import harness
from harness import check, equal

SCRATCH = harness.Scratch()
CALLBOX = SCRATCH.install(harness.callbox_path(), "callbox")
PEOPLE = harness.PEOPLE
PROGRAM = ["--", "echo", "ran"]
DIRECTORY = SCRATCH.directory()


def callbox(*args, user=False, **more):
    more.setdefault("cwd", "/")
    return harness.callbox(args, user=user, binary=CALLBOX, **more)


def refused(args, where, text, hint=None, code=125, program=PROGRAM, user=False, **more):
    """Run it both ways; `where` is the exact place, `text` and `hint` are patterns."""
    plain = callbox("run", *args, *program, user=user, **more)
    equal(plain.code, code, f"exit code ({plain.brief()})")
    equal(plain.out, b"", "stdout")
    message = plain.err.decode("utf-8", "strict")
    check(message.startswith("callbox: "), lambda: f"stderr does not begin with callbox: {message!r}")
    check(len(message) < 2000, "the message is too long to be read")
    check(re.search(text, message), lambda: f"stderr {message!r} does not match {text!r}")
    if where:
        check(f"callbox: {where}: " in message, lambda: f"stderr {message!r} does not name {where!r}")
    if hint:
        check(re.search(hint, message), lambda: f"stderr {message!r} has no hint {hint!r}")

    told = callbox("run", "--json", *args, *program, user=user, json_report=True, **more)
    equal(told.code, code, f"exit code with --json ({told.brief()})")
    check(told.report, "no report with --json")
    equal(told.reason, "setup", "reason")
    error = told.report.get("error") or {}
    equal(error.get("where"), where, "error.where")
    check(re.search(text, error.get("text", "")), lambda: f"error.text {error.get('text')!r} does not match {text!r}")
    check("ran" not in (told.report.get("stdout") or {}).get("text", ""), "the program was run")
    return plain


NUMBER = 0


def row(name, args, where, text, hint=None, **more):
    harness.add(name, lambda: refused(args, where, text, hint, **more))


def policy_row(name, policy, where, text, hint=None):
    """A policy as JSON, or as text where it is not even that."""
    global NUMBER
    NUMBER += 1
    path = SCRATCH.path / f"policy-{NUMBER}.json"
    data = policy if isinstance(policy, bytes) else (policy if isinstance(policy, str) else json.dumps(policy)).encode()
    path.write_bytes(data)

    def both():
        refused(["--policy", path], where, text, hint)
        for verb in ("check", "show"):
            if verb == "show" and where in BOUND_TO_HOST:
                continue
            result = callbox("policy", verb, path)
            equal(result.code, 125, f"exit code of policy {verb} ({result.brief()})")
            equal(result.out, b"", f"stdout of policy {verb}")
            check(re.search(text, result.err.decode()), lambda: f"policy {verb} says {result.err!r}")

    harness.add(f"policy: {name}", both)


# What only the host can tell: `policy show` does not look there.
BOUND_TO_HOST = {"syscalls.allow[0]", "files.read[0]", "files.workspace", "files.hide[0]", "files.write[0]"}


# ---- The command line ------------------------------------------------------------------------

row("an unknown option", ["--frobnicate"], "", 'no option "--frobnicate"', "--help")
row("an unknown short option", ["-x"], "", 'no option "-x"')
row("an option cut short", ["--work", "/tmp"], "", 'no option "--work"')
row("a switch with a value", ["--quiet=yes"], "", 'no option "--quiet=yes"')
row("an option without its value", ["--timeout"], "--timeout", "needs a value", program=[])
row("an option without its path", ["--read"], "--read", "needs a value", program=[])
row("a call option without its value", ["--cwd"], "--cwd", "needs a value", program=[])
row("no program", [], "", "no program", "PROGRAM", program=[])
row("no program after --", [], "", "no program", program=["--"])
row("an empty program", [], "", "no program", program=["--", ""])
row("a relative --cwd", ["--cwd", "somewhere"], "--cwd", "absolute")
row("a missing --cwd", ["--cwd", "/nonexistent/directory"], "--cwd", "/nonexistent/directory")
row("a file as --cwd", ["--cwd", "/etc/passwd"], "--cwd", "/etc/passwd")
row("a hidden --cwd", ["--cwd", "/root/x"], "--cwd", "/root/x")
row("a missing --stdin", ["--stdin", "/nonexistent/input"], "--stdin", "/nonexistent/input.*No such file")
row("a --warden that is not there", ["--warden", "/nonexistent/w"], "--warden", "cannot reach a warden at /nonexistent/w", "callbox warden --socket /nonexistent/w")
row("a --warden that is too long", ["--warden", "/" + "w" * 200], "--warden", "too long")
row("a directory as --stdin", ["--stdin", "/usr"], "--stdin", "directory")

row("--timeout no number", ["--timeout", "soon"], "--timeout", '"soon" is no number')
row("--timeout empty", ["--timeout="], "--timeout", "no number")
row("--timeout 0", ["--timeout", "0"], "--timeout", "more than 0")
row("--timeout negative", ["--timeout", "-1"], "--timeout", "no number")
row("--timeout NaN", ["--timeout", "nan"], "--timeout", "number")
row("--timeout infinite", ["--timeout", "inf"], "--timeout", "number|at most")
row("--timeout huge", ["--timeout", "1" + "0" * 100], "--timeout", "at most")
row("--timeout beyond all", ["--timeout", "9" * 400], "--timeout", "no number|at most")
row("--timeout none", ["--timeout", "none"], "--timeout", "no number")
row("--timeout with a unit", ["--timeout", "5s"], "--timeout", '"5s" is no number')
row("--cpu negative", ["--cpu", "-0.5"], "--cpu", "no number")
row("--memory no size", ["--memory", "lots"], "--memory", '"lots" is not a size', "256M")
row("--memory empty", ["--memory", ""], "--memory", "is not a size")
row("--memory negative", ["--memory", "-1"], "--memory", "is not a size|at least")
row("--memory with a wrong unit", ["--memory", "5X"], "--memory", '"5X" is not a size')
row("--memory too small", ["--memory", "1K"], "--memory", "at least 1M")
row("--memory too large", ["--memory", "99999999T"], "--memory", "at most")
row("--memory overflowing", ["--memory", "99999999999999999999999999"], "--memory", "at most")
row("--memory with a fraction of bytes", ["--memory", "1.5"], "--memory", "is not a size")
row("--processes 0", ["--processes", "0"], "--processes", "at least 1")
row("--processes negative", ["--processes", "-5"], "--processes", "no whole number")
for option, word in (("--timeout", "number of seconds"), ("--cpu", "number of seconds"), ("--cpus", "number of processors"),
                     ("--processes", "whole number"), ("--open-files", "whole number"), ("--memory", "not a size"),
                     ("--tmp-size", "not a size"), ("--output", "not a size")):
    for number in ("0x10", " 5", "5 ", "+5", "-5", "5e", "5e+", "5e1e1", ".", ".e5", "5..", "5,5", "0b1", "1_000", "\u0665", "5\n", ""):
        row(f"{option} {number!r}", [f"{option}={number}"], option, word)
    if word not in ("number of seconds", "number of processors"):
        for number in (".5", "5."):
            row(f"{option} {number!r}", [f"{option}={number}"], option, word)
row("--timeout too small for a number", ["--timeout", "1e-400"], "--timeout", "more than 0")
row("--processes no number", ["--processes", "many"], "--processes", "no whole number")
row("--processes a fraction", ["--processes", "1.5"], "--processes", "no whole number")
row("--processes huge", ["--processes", "99999999999999999999"], "--processes", "no whole number|at most")
row("--open-files too few", ["--open-files", "3"], "--open-files", "at least 8")
row("--open-files too many", ["--open-files", "99999999"], "--open-files", "at most")
row("--file-size no size", ["--file-size", "1Q"], "--file-size", "is not a size")
row("--tmp-size 0", ["--tmp-size", "0"], "--tmp-size", "at least")
row("--tmp-size none", ["--tmp-size", "none"], "--tmp-size", "is not a size")
row("--capture too large", ["--capture", "2G"], "--capture", "at most 1G")
row("--output 0", ["--output", "0"], "--output", "at least")

row("--read of nothing", ["--read", "/nonexistent/data"], "--read", "/nonexistent/data does not exist", "create it")
row("--read empty", ["--read", ""], "--read", "empty")
row("--read of /", ["--read", "/"], "--read", "root")
row("--read of /proc", ["--read", "/proc"], "--read", "/proc")
row("--read of a part of /proc", ["--read", "/proc/1/root"], "--read", "/proc")
row("--read of /dev", ["--read", "/dev"], "--read", "/dev")
row("--read around to /", ["--read", "/tmp/.."], "--read", "/")
row("--read into /proc of the box", ["--read", "/usr:/proc/x"], "--read", "/proc")
row("--read to dots in the box", ["--read", "/usr:/a/../b"], "--read", "\\.\\.")
row("--read to the root of the box", ["--read", "/usr:/"], "--read", "root")
row("--read too long", ["--read", "/" + "x" * 5000], "--read", "longer than")
row("--read of a link to nowhere", ["--read", SCRATCH.path / "dangling"], "--read", "does not exist")
row("--write of nothing", ["--write", "/nonexistent/data"], "--write", "does not exist")
row("--hide of nothing", ["--hide", "/nonexistent/data"], "--hide", "does not exist")
row("--hide of /", ["--hide", "/"], "--hide", "root")
row("--workspace of nothing", ["--workspace", "/nonexistent/work"], "--workspace", "does not exist")
row("--workspace a file", ["--workspace", SCRATCH.path / "file"], "--workspace", "is no directory")
row("--tmpfs relative", ["--tmpfs", "scratch"], "--tmpfs", "absolute")
row("--tmpfs without a size after =", ["--tmpfs", "/scratch="], "--tmpfs", "is not a size")
row("--tmpfs with a bad size", ["--tmpfs", "/scratch=much"], "--tmpfs", "is not a size")
row("--tmpfs in /dev", ["--tmpfs", "/dev/x"], "--tmpfs", "/dev")
row("--protect absolute", ["--workspace", DIRECTORY, "--protect", "/etc"], "--protect", '"/etc" is absolute')
row("--protect upwards", ["--workspace", DIRECTORY, "--protect", "../x"], "--protect", "\\.\\.")
row("--unprotect of what is not protected", ["--workspace", DIRECTORY, "--unprotect", "nothing"], "--unprotect", "not protected")
row("two rules for one place", ["--read", DIRECTORY, "--write", DIRECTORY], "--write", "--read and --write both speak for", "keep one")
row("a rule against hide", ["--read", DIRECTORY, "--hide", DIRECTORY], "--hide", "--read and --hide both speak for")
row("--net unknown", ["--net", "internet"], "--net", '"internet" is not known', "none, loopback, host")
row("--net nearly right", ["--net", "loopbak"], "--net", 'did you mean "loopback"')
row("--env without a name", ["--env", "=x"], "--env", "no name|not a name")
row("--env with a digit first", ["--env", "1A=x"], "--env", "not a name")
row("--env with a dash", ["--env", "A-B=x"], "--env", "not a name")
row("--env with a blank", ["--env", "A B"], "--env", "not a name")
row("--env empty", ["--env", ""], "--env", "not a name")
row("--env both passed and set", ["--env", "HELLO", "--env", "HELLO=x"], "--env", '"HELLO" is both set and passed on')
row("--env not UTF-8", [b"--env", b"A=\xff\xfe"], "--env", "UTF-8")
row("--read not UTF-8", [b"--read", b"/tmp/\xff"], "--read", "UTF-8")
row("--allow-syscall unknown", ["--allow-syscall", "frobnicate"], "--allow-syscall", "frobnicate")
row("--deny-syscall nearly right", ["--deny-syscall", "pttrace"], "--deny-syscall", "ptrace")
row("--allow-syscall and --deny-syscall", ["--allow-syscall", "ptrace", "--deny-syscall", "ptrace"], "--deny-syscall", "ptrace")
row("--on-denied unknown", ["--on-denied", "shout"], "--on-denied", '"shout" is not known', "errno, kill")
row("--require unknown", ["--require", "luck"], "--require", '"luck" is not known')
row("--policy twice", ["--policy", "/a", "--policy", "/b"], "--policy", "twice")
row("--policy of nothing", ["--policy", "/nonexistent/policy"], "--policy", "/nonexistent/policy.*No such file")
row("--policy a directory", ["--policy", "/usr"], "--policy", "directory")
row("--spec of nothing", ["--spec", "/nonexistent/spec"], "--spec", "/nonexistent/spec.*No such file")


# ---- Policies --------------------------------------------------------------------------------

policy_row("10 MB", b'{"files": {"read": [' + b'"/usr",' * 1_500_000 + b'"/usr"]}}', "--policy", "larger than 1 MiB")
policy_row("endless blanks", b" " * 2_000_000, "--policy", "larger than 1 MiB")
policy_row("empty", b"", "", "is empty")
policy_row("blanks", b"  \n ", "", "not JSON")
policy_row("no JSON", b"files: read", "", "line 1, is not JSON")
policy_row("cut off", b'{"files": {"read": ["/usr"', "files.read[0]", "not JSON")
policy_row("rubbish after the end", b'{} {}', "", "not JSON")
policy_row("comments", b'{} // fine', "", "not JSON")
policy_row("bytes that are no text", b"\xff\xfe\x00", "", "UTF-8|not JSON")
policy_row("a NUL byte", b'{"network": "no\x00ne"}', "network", "not JSON|NUL|control")
policy_row("a NUL in a string", b'{"network": "no\\u0000ne"}', "network", "NUL")
policy_row("a NUL in a key", b'{"net\\u0000work": "none"}', '["net\\u0000work"]', "NUL")
policy_row("a NUL in a path", b'{"files": {"read": ["/usr\\u0000/x"]}}', "files.read[0]", "NUL")
policy_row("half a surrogate", b'{"network": "\\ud800"}', "network", "not JSON|UTF|Unicode|surrogate")
policy_row("deep arrays", b"[" * 100_000, "", "nested more than")
policy_row("deep objects", b'{"a":' * 1000 + b"1" + b"}" * 1000, "", "nested more than")
policy_row("a key twice", b'{"network": "none", "network": "host"}', "network", "given twice")
policy_row("a deeper key twice", b'{"limits": {"cpu": 1, "cpu": 2}}', "limits.cpu", "given twice")
policy_row("NaN", b'{"limits": {"wall": NaN}}', "limits.wall", "not JSON")
policy_row("Infinity", b'{"limits": {"wall": Infinity}}', "limits.wall", "not JSON")
policy_row("a number beyond all", b'{"limits": {"wall": 1e999}}', "limits.wall", "out of range|not JSON")
policy_row("an integer beyond all", b'{"limits": {"memory": 99999999999999999999999}}', "limits.memory", "out of range|not JSON|big integer")
policy_row("an array", [], "", "a JSON object")
policy_row("a string", '"none"', "", "a JSON object")
policy_row("null", "null", "", "a JSON object")
policy_row("an unknown key", {"netwrok": "none"}, "netwrok", 'did you mean "network"')
policy_row("another tool's key", {"filesystem": {}}, "filesystem", 'did you mean "files"')
policy_row("a key of another section", {"timeout": 5}, "timeout", "wall")
policy_row("an unknown key without a likeness", {"zzzzqqq": 1}, "zzzzqqq", "not known|no such|unknown")
policy_row("an unknown key deeper", {"limits": {"memmory": 1}}, "limits.memmory", "memory")
policy_row("an unknown key in a rule", {"files": {"read": [{"host": "/usr", "bx": "/a"}]}}, "files.read[0].bx", "box")
policy_row("a future version", {"version": 2}, "version", "must be 1")
policy_row("a version in words", {"version": "1"}, "version", "whole number")
policy_row("system in words", {"system": "yes"}, "system", "true or false")
policy_row("files a list", {"files": ["/usr"]}, "files", "an object")
policy_row("read a string", {"files": {"read": "/usr"}}, "files.read", "an array")
policy_row("read of a number", {"files": {"read": ["/usr", 5]}}, "files.read[1]", "a string")
policy_row("read of null", {"files": {"read": [None]}}, "files.read[0]", "a string")
policy_row("read without a host", {"files": {"read": [{"box": "/x"}]}}, "files.read[0]", '"host"')
policy_row("read empty", {"files": {"read": [""]}}, "files.read[0]", "empty")
policy_row("read of nothing", {"files": {"read": ["/nonexistent/data"]}}, "files.read[0]", "does not exist")
policy_row("workspace of nothing", {"files": {"workspace": "/nonexistent/work"}}, "files.workspace", "does not exist")
policy_row("workspaces", {"files": {"workspace": ["/usr"]}}, "files.workspace", "string|object")
policy_row("a relative place", {"files": {"read": [{"host": "/usr", "box": "x"}]}}, "files.read[0].box", "absolute")
policy_row("tmpfs without a path", {"files": {"tmpfs": [{"size": "1M"}]}}, "files.tmpfs[0]", '"path"')
policy_row("tmpfs with a bad size", {"files": {"tmpfs": [{"path": "/x", "size": "1Z"}]}}, "files.tmpfs[0].size", "not a size")
policy_row("tmpfs of no size", {"files": {"tmpfs": [{"path": "/x", "size": 0}]}}, "files.tmpfs[0].size", "at least")
policy_row("protect of a number", {"files": {"protect": [1]}}, "files.protect[0]", "a string")
policy_row("contradicting rules", {"files": {"read": ["/usr/share"], "hide": ["/usr/share"]}}, "files.hide[0]", "both speak for")
policy_row("contradicting rules spelled apart", {"files": {"read": ["/usr/share/"], "write": ["/usr//share/."]}}, "files.write[0]", "both speak for")
policy_row("network a boolean", {"network": True}, "network", "a string")
policy_row("network unknown", {"network": "all"}, "network", "not known")
policy_row("environment a list", {"environment": ["A=1"]}, "environment", "an object")
policy_row("a variable set to a number", {"environment": {"set": {"A": 1}}}, "environment.set.A", "a string")
policy_row("a variable with a bad name", {"environment": {"set": {"A=B": "1"}}}, 'environment.set["A=B"]', "not a name")
policy_row("a variable without a name", {"environment": {"set": {"": "1"}}}, 'environment.set[""]', "not a name")
policy_row("a variable with a NUL", b'{"environment": {"set": {"A": "x\\u0000y"}}}', "environment.set.A", "NUL")
policy_row("a variable both passed and set", {"environment": {"pass": ["A"], "set": {"A": "1"}}}, "environment.set.A", "both set and passed on")
policy_row("a variable too long", {"environment": {"set": {"A": "x" * 131071}}}, "environment.set.A", "longer")
policy_row("pass with a value", {"environment": {"pass": ["A=1"]}}, "environment.pass[0]", "not a name")
policy_row("wall null", {"limits": {"wall": None}}, "limits.wall", "cannot be without a limit")
policy_row("wall 0", {"limits": {"wall": 0}}, "limits.wall", "more than 0")
policy_row("wall negative", {"limits": {"wall": -1}}, "limits.wall", "more than 0")
policy_row("wall in words", {"limits": {"wall": "30"}}, "limits.wall", "number of seconds")
policy_row("memory negative", {"limits": {"memory": -5}}, "limits.memory", "at least", "no limit")
policy_row("memory a fraction", {"limits": {"memory": 1e6}}, "limits.memory", "a size")
policy_row("memory true", {"limits": {"memory": True}}, "limits.memory", "a size")
policy_row("memory huge", {"limits": {"memory": 2**62}}, "limits.memory", "at most")
policy_row("processes a fraction", {"limits": {"processes": 1.5}}, "limits.processes", "whole number")
policy_row("processes 0", {"limits": {"processes": 0}}, "limits.processes", "at least 1")
policy_row("processes in words", {"limits": {"processes": "12"}}, "limits.processes", "whole number")
policy_row("open_files 7", {"limits": {"open_files": 7}}, "limits.open_files", "at least 8")
policy_row("capture null", {"limits": {"capture": None}}, "limits.capture", "cannot be without a limit")
policy_row("an unknown syscall", {"syscalls": {"allow": ["frobnicate"]}}, "syscalls.allow[0]", "frobnicate")
policy_row("a syscall allowed and denied", {"syscalls": {"allow": ["ptrace"], "deny": ["ptrace"]}}, "syscalls.deny[0]", "ptrace")
policy_row("on_denied unknown", {"syscalls": {"on_denied": "panic"}}, "syscalls.on_denied", "not known")
policy_row("require unknown", {"require": ["files", "wings"]}, "require[1]", "not known")
policy_row("best_effort a number", {"best_effort": 1}, "best_effort", "true or false")


# ---- Specs -----------------------------------------------------------------------------------


def spec_row(name, spec, where, text, program=(), options=()):
    global NUMBER
    NUMBER += 1
    path = SCRATCH.path / f"spec-{NUMBER}.json"
    path.write_bytes(spec if isinstance(spec, bytes) else json.dumps(spec).encode())
    harness.add(f"spec: {name}", lambda: refused([*options, "--spec", path], where, text, program=list(program)))


RUN = ["echo", "ran"]
spec_row("empty", b"", "", "is empty")
spec_row("no JSON", b"argv", "", "not JSON")
spec_row("an array", [], "", "an object")
spec_row("2 MB", json.dumps({"argv": ["echo", "x" * 2_000_000]}).encode(), "--spec", "larger than 1 MiB")
spec_row("without argv", {"cwd": "/tmp"}, "", "no program")
spec_row("argv empty", {"argv": []}, "argv", "name a program")
spec_row("argv a string", {"argv": "echo ran"}, "argv", "an array")
spec_row("argv with a number", {"argv": ["echo", 1]}, "argv[1]", "a string")
spec_row("argv with a NUL", b'{"argv": ["echo", "r\\u0000an"]}', "argv[1]", "NUL")
spec_row("an empty program", {"argv": [""]}, "", "no program")
spec_row("an unknown key", {"argv": RUN, "args": []}, "args", "argv")
spec_row("a key twice", b'{"argv": ["echo"], "argv": ["ran"]}', "argv", "given twice")
spec_row("cwd relative", {"argv": RUN, "cwd": "x"}, "cwd", "absolute")
spec_row("cwd a number", {"argv": RUN, "cwd": 5}, "cwd", "a string")
spec_row("stdin a string", {"argv": RUN, "stdin": "text"}, "stdin", "an object")
spec_row("stdin both", {"argv": RUN, "stdin": {"file": "/dev/null", "text": ""}}, "stdin", "either")
spec_row("stdin neither", {"argv": RUN, "stdin": {}}, "stdin", "either")
spec_row("stdin of a missing file", {"argv": RUN, "stdin": {"file": "/nonexistent/in"}}, "stdin.file", "/nonexistent/in")
spec_row("environment a list", {"argv": RUN, "environment": []}, "environment", "an object")
spec_row("a variable a number", {"argv": RUN, "environment": {"A": 1}}, "environment.A", "a string")
spec_row("a variable with a bad name", {"argv": RUN, "environment": {"A B": "1"}}, 'environment["A B"]', "name")
spec_row("limits a number", {"argv": RUN, "limits": 1}, "limits", "an object")
spec_row("limits unknown", {"argv": RUN, "limits": {"wal": 1}}, "limits.wal", "wall")
spec_row("limits loosened", {"argv": RUN, "limits": {"wall": 31}}, "limits.wall", "only tighten")
spec_row("limits taken away", {"argv": RUN, "limits": {"memory": None}}, "limits.memory", "only tighten")
spec_row("limits beyond an option", {"argv": RUN, "limits": {"memory": "300M"}}, "limits.memory", "only tighten.*256M", options=["--memory", "256M"])
spec_row("tty in words", {"argv": RUN, "tty": "yes"}, "tty", "true or false")
spec_row("id a number", {"argv": RUN, "id": 7}, "id", "a string")
spec_row("id empty", {"argv": RUN, "id": ""}, "id", "empty|at least")


# ---- Programs that cannot be executed --------------------------------------------------------


@harness.case("a program that is nowhere: 127")
def not_found():
    refused([], "program", "cannot execute frobnicate", code=127, program=["--", "frobnicate"])
    refused([], "program", "cannot execute /nonexistent/prog", code=127, program=["--", "/nonexistent/prog"])
    refused([], "program", "cannot execute", code=127, program=["--", "/etc/passwd/prog"])


@harness.case("a program that only the host has: 127, with the option that shows it")
def not_shown():
    path = SCRATCH.bin / "tool"
    path.write_text("#!/bin/sh\necho ran\n")
    path.chmod(0o755)
    refused([], "program", "cannot execute", f"--read", code=127, program=["--", path])
    environment = {**os.environ, "PATH": f"{SCRATCH.bin}:/usr/bin:/bin"}
    refused([], "program", "cannot execute tool", f"--read {SCRATCH.bin}", code=127, program=["--", "tool"], env=environment)
    result = callbox("run", "--read", SCRATCH.bin, "--", "tool", env=environment)
    equal((result.code, result.out), (0, b"ran\n"), "with the option")


@harness.case("a program whose interpreter is missing: 127, with a hint at it")
def no_interpreter():
    path = SCRATCH.bin / "orphan"
    path.write_text("#!/nonexistent/interpreter\n")
    path.chmod(0o755)
    refused(["--read", SCRATCH.bin], "program", "cannot execute", "interpreter", code=127, program=["--", path])


@harness.case("a file that is not executable: 126")
def not_executable():
    path = SCRATCH.bin / "plain"
    path.write_text("echo ran\n")
    path.chmod(0o644)
    refused(["--read", SCRATCH.bin], "program", "Permission denied", code=126, program=["--", path])
    refused([], "program", "Permission denied", code=126, program=["--", "/usr"])
    path.chmod(0o755)
    path.write_bytes(b"\x7fELFrubbish")
    refused(["--read", SCRATCH.bin], "program", "Exec format error", code=126, program=["--", path])


@harness.for_people("a script without a #! line is run by the shell, as env does it")
def without_interpreter(user):
    directory = SCRATCH.directory()
    path = directory / "script"
    path.write_text('echo "$0: $# $1"\nexit 7\n')
    path.chmod(0o755)
    (directory / "empty").write_text("")
    (directory / "empty").chmod(0o755)
    for box in ("namespaces", "landlock"):
        options = ["run", "--box", box, "--read", directory, "--env", f"PATH={directory}:/usr/bin"]
        for name in (path, "script"):
            result = harness.callbox([*options, "--", name, "a b", ""], user=user, binary=CALLBOX, cwd="/")
            equal((result.code, result.out.decode()), (7, f"{path}: 2 a b\n"), f"{box} {name}: {result.brief()}")
        result = harness.callbox([*options, "--", "empty"], user=user, binary=CALLBOX, cwd="/")
        equal(result.code, 0, result.brief())
    refused(["--no-system", "--read", directory], "program", "Exec format error", "/bin/sh", code=126, program=["--", path])


@harness.for_people("a directory as the program: it is said that it is one")
def directory_as_program(user):
    for box in ("namespaces", "landlock"):
        refused(["--box", box], "program", "/tmp: Permission denied", "/tmp is a directory", code=126, program=["--", "/tmp"], user=user)
        refused(["--box", box, "--read", DIRECTORY], "program", "Permission denied", f"{DIRECTORY} is a directory", code=126, program=["--", str(DIRECTORY)], user=user)
    refused([], "program", "No such file", f"{DIRECTORY} is a directory", code=127, program=["--", str(DIRECTORY)], user=user)


@harness.case("a program that is found but not executable on PATH: 126")
def not_executable_on_path():
    directory = SCRATCH.directory()
    (directory / "dull").write_text("#!/bin/sh\necho ran\n")
    refused(["--read", directory, "--env", f"PATH={directory}:/usr/bin"], "program", "Permission denied", code=126, program=["--", "dull"])


# ---- Very many arguments ---------------------------------------------------------------------


@harness.case("200 000 arguments")
def many_arguments():
    refused([], "argv", "arguments", program=["--", "echo", *["x"] * 200_000])


@harness.case("one argument of 130 000 bytes passes, all of them within the limit")
def long_argument():
    result = callbox("run", "--", "sh", "-c", "echo ${#1} $#", "sh", "x" * 130_000, *["y"] * 1000)
    equal((result.code, result.out), (0, b"130000 1001\n"), result.brief())


@harness.case("3 MB of arguments")
def large_arguments():
    # more than a box takes; the kernel lets the caller start it
    words = ["x" * 100_000] * 15
    refused([], "argv", "argument", program=["--", "echo", *words])


@harness.case("spec: 200 000 arguments")
def many_spec_arguments():
    path = SCRATCH.path / "many.json"
    path.write_text(json.dumps({"argv": ["echo", *[""] * 200_000]}, separators=(",", ":")))
    refused(["--spec", path], "argv", "arguments", program=[])


# ---- Verbs -----------------------------------------------------------------------------------


def verb_row(name, args, code, out, err):
    def function():
        result = callbox(*args, json_report=False)
        equal(result.code, code, f"exit code ({result.brief()})")
        for stream, pattern in ((result.out, out), (result.err, err)):
            text = stream.decode()
            check(re.search(pattern, text) if pattern else not text, lambda: f"{text!r} does not match {pattern!r}")

    harness.add(name, function)


verb_row("no verb", [], 125, "", "Usage: callbox")
verb_row("an unknown verb", ["fly"], 125, "", 'no verb "fly"')
verb_row("--help", ["--help"], 0, "Usage: callbox", "")
verb_row("--version", ["--version"], 0, r"^callbox \d+\.\d+", "")
verb_row("run --help", ["run", "--help"], 0, "--workspace", "")
verb_row("run -h after options", ["run", "--json", "-h"], 0, "--workspace", "")
for verb in ("run", "doctor", "mcp", "policy", "tool", "warden", "wrap"):
    verb_row(f"help {verb}", ["help", verb], 0, f"^Usage: callbox {verb}", "")
verb_row("help of an unknown verb", ["help", "fly"], 125, "", 'no verb "fly"')
verb_row("help --help", ["help", "--help"], 0, "^Usage: callbox VERB", "")
verb_row("policy alone", ["policy"], 125, "", "check FILE")
verb_row("policy with an unknown verb", ["policy", "burn"], 125, "", "check FILE")
verb_row("policy check without a file", ["policy", "check"], 125, "", "needs a file")
verb_row("policy check of nothing", ["policy", "check", "/nonexistent/p"], 125, "", "^callbox: cannot read /nonexistent/p")
verb_row("policy check of nothing by name", ["policy", "check", "--policy", "/nonexistent/p"], 125, "", "^callbox: --policy: cannot read /nonexistent/p")
(SCRATCH.path / "empty.json").write_text("{}")
verb_row("policy check with an option", ["policy", "check", "--read", "/nonexistent/d", SCRATCH.path / "empty.json"], 125, "", "^callbox: --read: .*does not exist")
verb_row("policy show with an unknown option", ["policy", "show", "--frob"], 125, "", "--frob")
verb_row("policy show with an option of run", ["policy", "show", "--json"], 125, "", "--json")
verb_row("policy show of two files", ["policy", "show", "/a", "/b"], 125, "", "only one file")
verb_row("policy schema with more", ["policy", "schema", "x"], 125, "", ".")
verb_row("policy --help", ["policy", "--help"], 0, "callbox policy check", "")
verb_row("doctor with an unknown option", ["doctor", "--frob"], 125, "", "--frob")


@harness.case("help fits a screen")
def short_help():
    for args in (["--help"], *([verb, "--help"] for verb in ("run", "doctor", "mcp", "policy", "tool", "warden", "wrap"))):
        result = callbox(*args)
        equal(result.code, 0, f"exit code of {args} ({result.brief()})")
        lines = result.out.decode().splitlines()
        check(len(lines) <= 50, f"{args} has {len(lines)} lines")
        check(all(len(line) <= 80 for line in lines), f"{args} has a line that is too wide")


@harness.case("--report is written for a mistake on the command line, as --json is printed")
def report_of_mistake():
    path = SCRATCH.path / "report-of-mistake"
    for args in (["--frob"], ["--timeout", "soon"], ["-t", "--json"]):
        path.unlink(missing_ok=True)
        result = callbox("run", "--report", path, *args, *PROGRAM)
        equal((result.code, json.loads(path.read_text())["reason"]), (125, "setup"), f"{args} ({result.brief()})")
    result = callbox("run", "--report", "/nonexistent/r", "--frob", *PROGRAM)
    check(result.code == 125 and b"--frob" in result.err, result.brief)


@harness.case("a place of the current directory that an option speaks for is not shown as well")
def named_here():
    for option in ("--tmpfs", "--read", "--hide"):
        result = callbox("run", option, DIRECTORY, *PROGRAM, cwd=DIRECTORY)
        equal(result.code, 0, f"{option} ({result.brief()})")


@harness.for_people("a program that fails is told that the current directory is not shown, if it was told a name in it")
def not_shown_here(user):
    home = SCRATCH.directory(user)
    (home / "script.py").write_text("print('ran')")
    (home / "two words").write_text("")
    policy = SCRATCH.directory() / "policy.json"
    policy.write_text("{}")

    def warned(*args, options=(), where=home, told=home):
        found = []
        for more in (("--json",), ()):
            result = callbox("run", *more, *options, "--", *args, user=user, cwd=where, env={**os.environ, "HOME": str(told)}, json_report=bool(more))
            text = "\n".join(result.report["warnings"]) if more else result.err.decode()
            found.append("the current directory" in text)
            check(not found[-1] or f"the current directory, {where}, is not shown" in text, lambda: text)
            check(not found[-1] or "add --read ., or --workspace ." in text or where == "/", lambda: text)
        equal(found[0], found[1], "with --json and without")
        return found[0] and (re.search('so "([^"]*)" is not there', text) or [0, True])[1]

    equal(warned("python3", "script.py"), "script.py", "a script")
    equal(warned("sh", "-c", "python3 script.py >/dev/null; exit 3"), "script.py", "a line for a shell")
    equal(warned("cat", "two words"), "two words", "a name of two words")
    equal(warned("sh", "-c", "exit 1", "--file=./script.py"), "./script.py", "a name in an option")
    equal(warned("python3", "script.py", options=("--policy", policy), told="/"), "script.py", "with a policy file")
    equal(warned("sh", "-c", "exit 1", "usr", where="/"), "usr", "in /")
    equal(warned("true", options=("--explain",)), True, "--explain")
    for args, options in (
        (["true", "script.py"], ()), (["sh", "-c", "exit 1", "/usr"], ()), (["false"], ()), (["false", "missing.py"], ()),
        (["false", "script.py"], ("--read", ".")), (["false", "script.py"], ("--read", home.parent)), (["false", "script.py"], ("--hide", ".")),
        (["false", "script.py"], ("--cwd", "/tmp")), (["false", "script.py"], ("--workspace", ".")), (["false", "script.py"], ("--policy", policy, "--read", ".")),
        (["false", "script.py"], ("--policy", policy, "--cwd", "/tmp")), (["true"], ("--explain", "--policy", policy)),
    ):
        equal(warned(*args, options=options), False, f"{options} {args}")
    equal(warned("false", "script.py", told="/nonexistent"), False, "where it is shown")
    equal(warned("false", "bin", where="/usr"), False, "in the system")
    result = callbox("run", "-q", "--", "python3", "script.py", user=user, cwd=home, env={**os.environ, "HOME": str(home)})
    check(b"callbox" not in result.err, lambda: f"quiet: {result.err!r}")


@harness.case("numbers of seconds as other programs and the policy file take them")
def numbers():
    for number, value in ((".5", 0.5), ("5.", 5), ("5.e1", 50), (".5E-1", 0.05), ("5e-324", 5e-324), ("1e-310", 1e-310), ("00.250", 0.25)):
        for option, key in (("--timeout", "wall"), ("--cpu", "cpu")):
            result = callbox("policy", "show", option, number)
            equal(result.code, 0, f"{option} {number} ({result.brief()})")
            equal(json.loads(result.out)["limits"][key], value, f"{option} {number}")
    equal(callbox("run", "--timeout", "5e-324", "--", "sleep", "9").code, 124, "of no time")
    equal(callbox("run", "--timeout", "5.", *PROGRAM).out, b"ran\n", "of 5.")


@harness.case("--json with a terminal")
def json_terminal():
    for args in (["-t", "--json"], ["--json", "--tty"]):
        result = callbox("run", *args, *PROGRAM, json_report=True)
        equal((result.code, result.reason, result.report["error"]["where"]), (125, "setup", "--tty"), "what it says")


# ---- Files that cannot be read ---------------------------------------------------------------


@harness.case("a policy, a spec or an input that the caller may not read")
def unreadable():
    path = SCRATCH.path / "secret.json"
    path.write_text("{}")
    path.chmod(0o600)
    if not harness.ROOT:
        path.chmod(0)
    for option in ("--policy", "--spec", "--stdin"):
        refused([option, path], option, f"{path}.*Permission denied", user=True)


@harness.case("a path that the caller may not reach")
def unreachable():
    directory = SCRATCH.directory(mode=0o700)
    if not harness.ROOT:
        directory.chmod(0)
    try:
        refused(["--read", directory / "x"], "--read", "cannot be reached|does not exist|Permission", user=True)
    finally:
        directory.chmod(0o700)  # or it could not be removed


@harness.case("a fifo as policy does not hang it")
def fifo():
    path = SCRATCH.path / "fifo"
    os.mkfifo(path)
    refused(["--policy", path], "", "is empty", timeout=20)


@harness.case("--report to a place that cannot be written")
def bad_report():
    result = callbox("run", "--report", "/nonexistent/report", "--", "echo", "ran")
    equal(result.code, 125, result.brief())
    check(b"--report" in result.err and b"/nonexistent/report" in result.err, lambda: f"stderr {result.err!r}")
    equal(result.out, b"", "stdout (the program must not run when its report cannot be written)")


@harness.case("an error is the same for root and user")
def people():
    for _, user in PEOPLE:
        refused(["--memory", "5X"], "--memory", "is not a size", user=user)
        refused([], "program", "cannot execute", code=127, program=["--", "frobnicate"], user=user)


@harness.case("-q does not silence an error of callbox itself")
def quiet():
    result = callbox("run", "-q", "--memory", "5X", "--", "echo", "ran")
    equal((result.code, result.out), (125, b""), result.brief())
    check(b"--memory" in result.err, lambda: f"stderr {result.err!r}")


# ---- Nothing is left -------------------------------------------------------------------------


@harness.case("nothing is left of what was refused", alone=True)
def nothing_left():
    before = harness.HostState([DIRECTORY])
    for args in (["--frob"], ["--memory", "5X"], ["--read", "/nonexistent"], ["--cwd", "/nonexistent"],
                 ["--workspace", "/usr/bin/env"], ["--workspace", DIRECTORY, "--cwd", "/nonexistent"]):
        for user in (False, True):
            callbox("run", *args, "--", "echo", "ran", user=user)
    callbox("run", "--workspace", DIRECTORY, "--", "frobnicate")
    harness.wait_until(lambda: not before.diff(harness.HostState([DIRECTORY]), marks=(CALLBOX,)), 5)
    equal(before.diff(harness.HostState([DIRECTORY]), marks=(CALLBOX,)), [], "what is left")


if __name__ == "__main__":
    (SCRATCH.path / "file").write_text("")
    (SCRATCH.path / "dangling").symlink_to("/nonexistent/target")
    try:
        sys.exit(harness.main())
    finally:
        SCRATCH.remove()
