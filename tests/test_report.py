#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The documents that callbox prints are what its JSON Schemas say, for every kind of end; the
numbers in a report are plausible; and what the schemas refuse, callbox refuses as well."""

import datetime
import json
import os
import signal
import subprocess
import sys
import time
import uuid

import jsonschema

import harness
from harness import check, equal

SCRATCH = harness.Scratch()
CALLBOX = SCRATCH.install(harness.callbox_path(), "callbox")
PEOPLE = harness.PEOPLE
SCHEMAS = {name: json.loads((harness.REPO / "schema" / f"{name}.schema.json").read_text()) for name in ("policy", "report", "spec")}
VALIDATORS = {name: jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker()) for name, schema in SCHEMAS.items()}
PYTHON = "/usr/bin/python3"
GUARANTEES = ["tree-kill", "files", "network", "syscalls", "privileges", "environment", "memory", "pids", "cpu", "landlock", "cgroup"]


def callbox(*args, user=False, **more):
    more.setdefault("cwd", "/")
    return harness.callbox(args, user=user, binary=CALLBOX, **more)


def valid(name, document):
    mistakes = sorted(VALIDATORS[name].iter_errors(document), key=str)
    check(not mistakes, lambda: f"{name} is not valid at {'/'.join(map(str, mistakes[0].absolute_path))}: {mistakes[0].message[:300]}")
    return document


def is_valid(name, document):
    return VALIDATORS[name].is_valid(document)


def run(*command, options=(), user=False, **more):
    result = callbox("run", "--json", *options, "--", *command, user=user, **more)
    valid("report", result.report)
    return result


@harness.case("the schemas themselves are valid")
def schemas():
    for schema in SCHEMAS.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    printed = callbox("policy", "schema")
    equal(json.loads(printed.out), SCHEMAS["policy"], "policy schema")


# ---- Reports ---------------------------------------------------------------------------------

ENDS = [
    ("exit 0", ["true"], [], "exited", 0, None),
    ("exit 3", ["sh", "-c", "echo out; echo err >&2; exit 3"], [], "exited", 3, None),
    ("exit 255", ["sh", "-c", "exit 255"], [], "exited", 255, None),
    ("signal", ["sh", "-c", "kill -SEGV $$"], [], "signaled", None, "SIGSEGV"),
    ("real-time signal", [PYTHON, "-c", "import os; os.kill(os.getpid(), 40)"], [], "signaled", None, None),
    ("timeout", ["sleep", "60"], ["--timeout", "0.2"], "timeout", None, None),
    ("cpu", ["sh", "-c", "while :; do :; done"], ["--cpu", "0.2"], "cpu", None, None),
    ("memory", ["sh", "-c", "cat /dev/zero > /tmp/x; sleep 30"], ["--memory", "32M"], "memory", None, None),
    ("processes", [PYTHON, "-c", "import os, time\ntry:\n    while os.fork(): pass\nexcept OSError: pass\ntime.sleep(30)"], ["--processes", "6"], "pids", None, None),
    ("output", ["yes"], ["--output", "1000"], "output", None, None),
    ("denied", [PYTHON, "-c", "import ctypes; ctypes.CDLL(None).unshare(0x10000000)"], ["--on-denied", "kill"], "denied", None, None),
    ("bytes that are no text", ["head", "-c", "1000", "/dev/urandom"], [], "exited", 0, None),
    ("truncated", ["seq", "100000"], ["--capture", "999"], "exited", 0, None),
    ("nothing kept", ["seq", "10"], ["--capture", "0"], "exited", 0, None),
    ("warning", ["true"], ["--env", "LD_PRELOAD=x"], "exited", None, None),
    ("explained", ["cat", "/etc/shadow"], ["--explain"], "exited", 1, None),
    ("everything allowed", ["true"], ["--net", "host", "--memory", "none", "--processes", "none"], "exited", 0, None),
    ("best effort", ["true"], ["--best-effort"], "exited", 0, None),
    ("not found", ["frobnicate"], [], "setup", None, None),
    ("not executable", ["/usr"], [], "setup", None, None),
    ("bad directory", ["true"], ["--cwd", "/nonexistent"], "setup", None, None),
    ("bad option", ["true"], ["--frob"], "setup", None, None),
    ("bad value", ["true"], ["--memory", "x"], "setup", None, None),
    ("bad path", ["true"], ["--read", "/nonexistent"], "setup", None, None),
    ("strange text", ["true"], ["--read", "/nonexistent/\t\"\\\n\u2028é"], "setup", None, None),
]


def one_end(command, options, reason, code, name, user):
    result = run(*command, options=options, user=user)
    report = result.report
    equal(report["reason"], reason, f"reason ({result.brief()})")
    if reason == "exited":
        check(isinstance(report["code"], int) and report["signal"] is None, lambda: f"{report}")
        equal(report["code"], result.code, "code and exit code")
    else:
        equal(report["code"], None, "code")
    if code is not None:
        equal(report["code"], code, "code")
    if reason == "signaled":
        check(report["signal"], "no signal")
    elif reason != "exited":
        equal(report["signal"], None, "signal")
    if name:
        equal(report["signal"], name, "signal")
    equal("error" in report, reason in ("setup", "internal"), "an error in the report")
    check("\n" not in report["text"], lambda: f"text {report['text']!r} has more than a line")
    equal(report["denials"] != [] and report["denials"][0]["kind"] in ("syscall", "file"), reason == "denied" or "--explain" in options, "denials")
    if reason not in ("setup", "internal"):
        equal([g["name"] for g in report["guarantees"]], GUARANTEES, "guarantees")


for _name, _command, _options, _reason, _code, _signal in ENDS:
    for _who, _user in PEOPLE:
        harness.add(f"report: {_name}, as {_who}",
                    lambda c=_command, o=_options, r=_reason, k=_code, s=_signal, u=_user: one_end(c, o, r, k, s, u))


@harness.for_people("report: a signal that anybody can send is not taken for the limit it stands for")
def sent_signal(user):
    for command in (["sh", "-c", "kill -XFSZ $$"], ["sh", "-c", "head -c 9000 /dev/zero >/tmp/f; kill -XFSZ $$"]):
        report = run(*command, options=["--file-size", "1M"], user=user).report
        equal(report["text"], "the program was killed by SIGXFSZ, as when it makes a file larger than it may (--file-size)", "text")
    equal(run("sh", "-c", "kill -XFSZ $$", options=["--file-size", "none"], user=user).report["text"], "the program was killed by SIGXFSZ", "without a limit")


@harness.for_people("report: cancelled")
def cancelled(user):
    mark = f"5{uuid.uuid4().int % 10**8:08d}"
    command = [CALLBOX, "run", "--json", "--", "sh", "-c", f"trap '' TERM; echo on; sleep {mark}"]
    process = subprocess.Popen(harness.as_user(command) if user else command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd="/")
    try:
        check(harness.wait_until(lambda: harness.programs(f"sleep\0{mark}\0"), 15), "the program did not start")
        process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=20 * harness.SLOW)
    finally:
        harness.end(process)
        process.stdout.close()
    report = valid("report", harness.parse_report(out))
    equal((report["reason"], report["stdout"]["text"]), ("cancelled", "on\n"), "end")


@harness.for_people("report: of a streamed call, in a file")
def in_file(user):
    path = SCRATCH.directory(user) / "report"
    callbox("run", "--report", path, "--", "sh", "-c", "echo x; exit 2", user=user)
    report = valid("report", harness.parse_report(path.read_bytes()))
    equal((report["code"], report["usage"]["bytes_out"]), (2, 2), "the report")
    callbox("run", "--report", path, "--frob", user=user)
    valid("report", harness.parse_report(path.read_bytes()))


@harness.for_people("report: one line, ending in a newline, where it is not for a terminal")
def one_line(user):
    out = callbox("run", "--json", "--", "echo", "a", user=user).out
    check(out.endswith(b"}\n") and out.count(b"\n") == 1, lambda: f"{out!r}")


@harness.for_people("report: ids")
def ids(user):
    spec = SCRATCH.directory() / "spec.json"
    for name in ("call-1", "Ünïcode ✓", "x" * 200, "with \"quotes\" and \\"):
        spec.write_text(json.dumps({"argv": ["true"], "id": name}))
        result = callbox("run", "--json", "--spec", spec, user=user)
        equal(valid("report", result.report)["id"], name, "id")
    check("id" not in run("true", user=user).report, "an id that was not given")
    spec.write_text(json.dumps({"argv": ["frobnicate"], "id": "failed"}))
    result = callbox("run", "--json", "--spec", spec, user=user)
    equal((result.code, valid("report", result.report).get("id")), (127, "failed"), "the id of a call that could not be run")
    spec.write_text(json.dumps({"argv": ["sleep", "60"], "id": "late", "limits": {"wall": 0.1}}))
    result = callbox("run", "--json", "--spec", spec, user=user)
    equal((result.reason, valid("report", result.report).get("id")), ("timeout", "late"), "the id of a call that was ended")


# ---- Numbers ---------------------------------------------------------------------------------


@harness.for_people("usage: processor time")
def usage_cpu(user):
    report = run(PYTHON, "-c", "import time\ne = time.process_time() + 0.5\nwhile time.process_time() < e: pass", user=user).report
    used = report["usage"]["cpu_user_ms"] + report["usage"]["cpu_system_ms"]
    check(480 <= used <= 2000, f"{used} ms for half a second")
    report = run("sleep", "0.3", user=user).report
    used = report["usage"]["cpu_user_ms"] + report["usage"]["cpu_system_ms"]
    check(used < 200, f"{used} ms for a sleep")
    report = run("sh", "-c", f"{PYTHON} -c 'import time\ne = time.process_time() + 0.3\nwhile time.process_time() < e: pass' & wait", user=user).report
    used = report["usage"]["cpu_user_ms"] + report["usage"]["cpu_system_ms"]
    check(used >= 280, f"{used} ms although a child used 300")


@harness.for_people("usage: memory")
def usage_memory(user):
    small = run("true", user=user).report["usage"]["memory_peak"]
    check(100 << 10 <= small <= 30 << 20, f"{small} bytes for true")
    big = run(PYTHON, "-c", "import time\nb = bytearray(100 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1\ntime.sleep(0.3)", user=user).report["usage"]["memory_peak"]
    check(100 << 20 <= big <= 180 << 20, f"{big} bytes for 100 MiB")


@harness.for_people("usage: processes")
def usage_processes(user):
    equal(run("sleep", "0.2", user=user).report["usage"]["processes_peak"], 1, "one process")
    many = run("sh", "-c", "for i in 1 2 3 4 5 6 7; do sleep 1 & done; wait", user=user).report["usage"]["processes_peak"]
    equal(many, 8, "a shell and seven children")
    threads = run(PYTHON, "-c", "import threading, time\nfor i in range(9): threading.Thread(target=time.sleep, args=(1,)).start()", user=user).report["usage"]["processes_peak"]
    equal(threads, 10, "ten threads")


@harness.for_people("usage: bytes in and out")
def usage_bytes(user):
    report = run("sh", "-c", "cat; echo error >&2", user=user, data=b"x" * 12345).report
    equal((report["usage"]["bytes_in"], report["usage"]["bytes_out"], report["stdout"]["bytes"], report["stderr"]["bytes"]), (12345, 12351, 12345, 6), "bytes")
    report = run("head", "-c", "10", user=user, data=b"x" * 100).report
    check(10 <= report["usage"]["bytes_in"] <= 100, lambda: f"{report['usage']}")


@harness.for_people("time: setup, run and the date")
def times(user):
    before = datetime.datetime.now(datetime.timezone.utc)
    report = run("sleep", "0.5", user=user).report
    after = datetime.datetime.now(datetime.timezone.utc)
    started = datetime.datetime.fromisoformat(report["started_at"].replace("Z", "+00:00"))
    second = datetime.timedelta(seconds=1)
    check(before - second <= started <= after + second, f"started at {started}, between {before} and {after}")
    total = (after - before).total_seconds() * 1000
    check(499 <= report["time"]["run_ms"] <= total, f"{report['time']} of {total} ms")
    check(0 < report["time"]["setup_ms"] <= total, f"{report['time']} of {total} ms")
    check(report["time"]["setup_ms"] + report["time"]["run_ms"] <= total, f"{report['time']} of {total} ms")
    failed = callbox("run", "--json", "--memory", "x", "--", "true", user=user).report
    started = datetime.datetime.fromisoformat(failed["started_at"].replace("Z", "+00:00"))
    check(before - second <= started, f"a refused call was started at {started}")


# ---- Denials and guarantees ------------------------------------------------------------------

PTRACE = "import ctypes\nl = ctypes.CDLL(None, use_errno=True)\nfor i in range(3): l.ptrace(0, 0, 0, 0)\nl.unshare(0x10000000)\nprint(ctypes.get_errno())"


@harness.for_people("denials: system calls are counted by name, with the option that allows them")
def denials(user):
    result = run(PYTHON, "-c", PTRACE, user=user)
    equal((result.code, result.stdout), (0, "1\n"), result.brief())
    denial = result.denial("ptrace")
    equal(denial, {"kind": "syscall", "what": "ptrace", "errno": "EPERM", "count": 3,
                   "allow": "--allow-syscall ptrace (processes in the box may look into and change one another)",
                   "policy": '"syscalls": {"allow": ["ptrace"]}'}, "the denial")
    equal(result.denial("unshare")["count"], 1, "unshare")
    sockets = run(PYTHON, "-c", "import socket\ntry: socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\nexcept OSError as e: print(e.errno)", user=user)
    equal(sockets.stdout, "97\n", "errno of a socket family")
    equal(sockets.denial("socket")["errno"], "EAFNOSUPPORT", "the denial")
    unknown = run(PYTHON, "-c", "import ctypes\nl = ctypes.CDLL(None, use_errno=True)\nl.syscall(9999); print(ctypes.get_errno())", user=user)
    equal(unknown.stdout, "38\n", "errno of a call that does not exist")
    equal(run("true", user=user).report["denials"], [], "denials of true")
    equal(run(PYTHON, "-c", "import threading; t = threading.Thread(target=print, args=('x',)); t.start(); t.join()", user=user).report["denials"], [], "denials of a thread")
    killed = run(PYTHON, "-c", PTRACE, options=["--on-denied", "kill"], user=user)
    equal((killed.reason, killed.code), ("denied", 137), killed.brief())
    equal(killed.denial("ptrace")["count"], 1, "the denial that ended it")


@harness.for_people("denials: --explain names files, and prints what allows them")
def explain(user):
    directory = SCRATCH.directory(user)
    secret = directory / "secret"
    secret.write_text("x")
    shown = SCRATCH.directory(user)
    old, new = shown / "old", shown / "new"
    old.write_text("x")
    SCRATCH.own(old, user)
    command = ["sh", "-c", f"cat {secret}; cat /nonexistent/at/all; echo x > {old}; echo x > {new}; true"]
    result = run(*command, options=["--explain", "--read", shown], user=user)
    denial = result.denial(str(secret))
    check(denial, lambda: f"denials are {result.report['denials']}")
    equal((denial["kind"], denial["errno"], denial["allow"]), ("file", "ENOENT", f"--read {secret}"), "the denial")
    check(not result.denial("/nonexistent/at/all"), "a file that the host has not either")
    for path in (old, new):
        written = result.denial(str(path))
        check(written, lambda: f"no denial for {path}: {result.report['denials']}")
        equal((written["kind"], written["errno"]), ("file", "EROFS"), "the denied write")
        check("--write" in written["allow"], lambda: f"{written}")
    plain = callbox("run", "--explain", "--", *command, user=user)
    check(f"--read {secret}" in plain.err.decode(), lambda: f"stderr is {plain.err!r}")
    silent = callbox("run", "--", *command, user=user)
    check(b"callbox: " not in silent.err, lambda: f"stderr without --explain is {silent.err!r}")
    connect = run(PYTHON, "-c", "import socket\ns = socket.socket()\ntry: s.connect(('127.0.0.1', 9))\nexcept OSError: pass", options=["--explain"], user=user)
    found = [d for d in connect.report["denials"] if d["kind"] == "connect"]
    check(found and "127.0.0.1" in found[0]["what"] and "9" in found[0]["what"], lambda: f"denials are {connect.report['denials']}")
    check("--net" in found[0]["allow"], lambda: f"{found}")


@harness.for_people("denials: protected names are told without being asked")
def protected(user):
    directory = SCRATCH.directory(user)
    result = run("sh", "-c", "echo x > .envrc; mkdir .vscode; true", options=["--workspace", directory], user=user)
    equal(os.listdir(directory), [], "files on the host")
    found = {d["what"]: d for d in result.report["denials"] if d["kind"] == "protected"}
    check(any(".envrc" in what for what in found), lambda: f"denials are {result.report['denials']}")
    check(any("--unprotect .envrc" == d["allow"] for d in found.values()), lambda: f"denials are {found}")
    plain = callbox("run", "--workspace", directory, "--", "sh", "-c", "echo x > .envrc; true", user=user)
    check(b".envrc" in plain.err and b"--unprotect .envrc" in plain.err, lambda: f"stderr is {plain.err!r}")


@harness.for_people("guarantees: all that are enforced are named, with the means")
def guarantees(user):
    result = run("true", user=user)
    for name in GUARANTEES:
        item = result.guarantee(name)
        check(item and item["by"], f"{name} is missing")
        if name not in ("cpu", "landlock", "cgroup"):
            check(item["enforced"], f"{name} is not enforced: {item['by']}")
    equal(result.guarantee("cpu")["enforced"], False, "cpu, not asked for")
    equal(run("true", options=["--cpu", "5"], user=user).guarantee("cpu")["enforced"], True, "cpu, asked for")
    equal(run("true", options=["--net", "host"], user=user).guarantee("network")["enforced"], False, "network of the host")
    equal(run("true", options=["--processes", "none"], user=user).guarantee("pids")["enforced"], False, "processes without a limit")
    spec = SCRATCH.directory() / "spec"
    spec.write_text(json.dumps({"argv": ["true"], "limits": {"cpu": 5}}))
    equal(callbox("run", "--json", "--spec", spec, user=user).guarantee("cpu")["enforced"], True, "cpu, asked for in a spec")


# ---- Policies --------------------------------------------------------------------------------

SHOWN = [
    [],
    ["--workspace", "/srv/x", "--read", "/usr/share", "--read", "/a:/b", "--write", "/c", "--hide", "/usr/share/doc"],
    ["--tmpfs", "/scratch=5M", "--tmpfs", "/plain", "--no-system", "--protect", "extra", "--unprotect", ".vscode"],
    ["--net", "host", "--env", "A=1", "--env", "B", "--timeout", "0.25", "--cpu", "3", "--memory", "1.5G"],
    ["--memory", "none", "--processes", "none", "--file-size", "none", "--open-files", "none", "--output", "none", "--cpu", "none"],
    ["--output", "5", "--capture", "0", "--tmp-size", "4097", "--file-size", "1"],
    ["--allow-syscall", "ptrace", "--deny-syscall", "socket", "--on-denied", "kill", "--require", "landlock", "--best-effort"],
]


@harness.case("policy show is valid, complete and shows itself again")
def show():
    for options in SHOWN:
        result = callbox("policy", "show", *options)
        equal(result.code, 0, f"exit code with {options} ({result.brief()})")
        policy = valid("policy", harness.parse_report(result.out))
        check(set(policy) == set(SCHEMAS["policy"]["properties"]), f"its keys are {sorted(policy)}")
        check(set(policy["limits"]) == set(SCHEMAS["policy"]["$defs"]["limits"]["properties"]), f"its limits are {sorted(policy['limits'])}")
        path = SCRATCH.directory() / "policy.json"
        path.write_bytes(result.out)
        again = callbox("policy", "show", path)
        equal((again.code, again.out), (0, result.out), f"shown again with {options}")


@harness.case("defaults of the schema are those of the program")
def defaults():
    policy = harness.parse_report(callbox("policy", "show").out)
    schema = SCHEMAS["policy"]
    for key, part in schema["properties"].items():
        if "default" in part:
            equal(policy[key], part["default"], key)
    for key, part in schema["$defs"]["limits"]["properties"].items():
        equal(policy["limits"][key], part["default"], f"limits.{key}")
    equal(policy["syscalls"]["on_denied"], schema["properties"]["syscalls"]["properties"]["on_denied"]["default"], "on_denied")
    equal(policy["require"], [g for g in GUARANTEES if g not in ("landlock", "cgroup")], "require")


# Documents on both sides of the line: the schema and the program must draw it at the same place.
POLICIES = [
    ({}, True), ({"version": 1}, True), ({"version": 2}, False), ([], False), ({"x": 1}, False),
    ({"system": False}, True), ({"system": 0}, False),
    ({"files": {"read": ["/usr", {"host": "/usr/share", "box": "/b"}]}}, True), ({"files": {"read": ["/usr", {"box": "/b"}]}}, False),
    ({"files": {"read": [{"host": "/usr", "box": "b"}]}}, False), ({"files": {"read": [{"host": "/usr", "box": "/proc/x"}]}}, False),
    ({"files": {"read": [{"host": "/usr", "box": "/a/../b"}]}}, False), ({"files": {"read": [{"host": "/usr", "box": "/"}]}}, False),
    ({"files": {"read": ["/proc"]}}, False), ({"files": {"read": [""]}}, False), ({"files": {"read": "x"}}, False),
    ({"files": {"tmpfs": ["/a", {"path": "/b", "size": "1M"}, {"path": "/c", "size": 4096}]}}, True), ({"files": {"tmpfs": [{"size": 1}]}}, False),
    ({"files": {"tmpfs": ["a"]}}, False), ({"files": {"protect": ["a/b", ".c"]}}, True), ({"files": {"protect": ["/a"]}}, False), ({"files": {"protect": ["a/../b"]}}, False),
    ({"network": "loopback"}, True), ({"network": "LOOPBACK"}, False),
    ({"environment": {"pass": ["A", "_b1"], "set": {"C": ""}}}, True), ({"environment": {"pass": ["1A"]}}, False), ({"environment": {"set": {"A-": "x"}}}, False),
    ({"environment": {"set": {"A": None}}}, False),
    ({"limits": {"wall": 0.001}}, True), ({"limits": {"wall": 0}}, False), ({"limits": {"wall": None}}, False), ({"limits": {"wall": 1e9}}, True), ({"limits": {"wall": 1.1e9}}, False),
    ({"limits": {"cpus": 0.01}}, True), ({"limits": {"cpus": None}}, True), ({"limits": {"cpus": 0}}, False), ({"limits": {"cpus": 8193}}, False),
    ({"limits": {"cpu": None, "memory": None, "processes": None, "file_size": None, "open_files": None, "output": None}}, True),
    ({"limits": {"memory": "1.5g"}}, True), ({"limits": {"memory": "64MiB"}}, True), ({"limits": {"memory": "64 M"}}, False), ({"limits": {"memory": ""}}, False),
    ({"limits": {"memory": "1.5"}}, False), ({"limits": {"memory": -1}}, False), ({"limits": {"memory": 1.5}}, False), ({"limits": {"tmp_size": None}}, False),
    ({"limits": {"processes": 1}}, True), ({"limits": {"processes": 0}}, False), ({"limits": {"processes": "1"}}, False), ({"limits": {"open_files": 8}}, True), ({"limits": {"open_files": 7}}, False),
    ({"syscalls": {"allow": ["ptrace"], "deny": ["socket"], "on_denied": "kill"}}, True), ({"syscalls": {"on_denied": "log"}}, False), ({"syscalls": {"allow": ["Ptrace"]}}, False),
    ({"require": ["landlock"], "best_effort": True}, True), ({"require": ["x"]}, False), ({"best_effort": "yes"}, False),
]


@harness.case("policies: the schema and the program agree")
def agree():
    path = SCRATCH.directory() / "policy.json"
    for policy, wanted in POLICIES:
        path.write_text(json.dumps(policy))
        equal(is_valid("policy", policy), wanted, f"what the schema says to {policy}")
        result = callbox("policy", "show", path)  # not check, which asks the host as well
        equal(result.code, 0 if wanted else 125, f"what policy show says to {policy} ({result.brief()})")


SPECS = [
    ({"argv": ["true"]}, True), ({}, False), ({"argv": []}, False), ({"argv": "true"}, False), ({"argv": ["true", 1]}, False), ({"argv": ["true"], "x": 1}, False),
    ({"argv": ["true"], "cwd": "/tmp"}, True), ({"argv": ["true"], "cwd": "tmp"}, False),
    ({"argv": ["true"], "stdin": None}, True), ({"argv": ["true"], "stdin": {"text": "x"}}, True), ({"argv": ["true"], "stdin": {"file": "/dev/null"}}, True),
    ({"argv": ["true"], "stdin": {}}, False), ({"argv": ["true"], "stdin": {"text": "x", "file": "/dev/null"}}, False), ({"argv": ["true"], "stdin": "x"}, False),
    ({"argv": ["true"], "stdin": {"file": ""}}, False),
    ({"argv": ["true"], "environment": {"A": "1"}}, True), ({"argv": ["true"], "environment": {"A B": "1"}}, False), ({"argv": ["true"], "environment": {"A": 1}}, False),
    ({"argv": ["true"], "limits": {"wall": 5, "memory": "64M", "processes": 20, "capture": 10}}, True), ({"argv": ["true"], "limits": {"wall": 0}}, False), ({"argv": ["true"], "limits": {"foo": 0}}, False),
    ({"argv": ["true"], "id": "a"}, True), ({"argv": ["true"], "id": ""}, False), ({"argv": ["true"], "id": 1}, False), ({"argv": ["true"], "tty": "no"}, False), ({"argv": ["true"], "tty": False}, True),
]


@harness.case("specs: the schema and the program agree")
def specs():
    path = SCRATCH.directory() / "spec.json"
    wrong = []
    for spec, wanted in SPECS:
        path.write_text(json.dumps(spec))
        equal(is_valid("spec", spec), wanted, f"what the schema says to {spec}")
        result = callbox("run", "--json", "--spec", path)
        valid("report", result.report)
        if (result.code == 0) != wanted or (result.code == 125) == wanted:
            wrong.append(f"{spec}: exit {result.code}")
    equal(wrong, [], "specs on which they differ")


@harness.case("examples are valid policies and specs")
def examples():
    for path in sorted((harness.REPO / "examples").glob("*.json")):
        document = json.loads(path.read_text())
        valid("spec" if "argv" in document else "policy", document)


if __name__ == "__main__":
    try:
        sys.exit(harness.main())
    finally:
        SCRATCH.remove()
