#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""callbox doctor: its lines are proven, its probes can fail, its words name the fix."""

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

import harness
from harness import ROOT, Skip, case, check, equal

GUARANTEES = ["tree-kill", "files", "network", "syscalls", "privileges", "environment", "memory",
              "pids", "cpu", "landlock", "cgroup"]
OPTIONAL = {"landlock", "cgroup"}
SANITIZED = b"__asan_init" in open(harness.callbox_path(), "rb").read()
SKIPS = {}
if SANITIZED:
    SKIPS["probes:"] = "a sanitizer reserves more memory than the limits of a box allow"

scratch = None
binary = unfenced = None


def before():
    global scratch, binary, unfenced
    scratch = harness.Scratch()
    binary = scratch.install(harness.callbox_path(), "callbox")
    source = os.environ.get("CALLBOX_UNFENCED") or str(
        harness.REPO / "build" / "tests" / "callbox-unfenced")
    unfenced = scratch.install(source, "callbox-unfenced") if os.path.exists(source) else None


def after():
    scratch.remove()


def doctor(*args, user=False, program=None, prefix=(), **options):
    return harness.callbox(["doctor", *args], user=user, binary=program or binary, prefix=prefix,
                           **options)


def by_name(result):
    check(result.report, lambda: f"no report: {result.brief()}")
    return {item["name"]: item for item in result.report["guarantees"]}


def for_both(function):
    """As whoever runs the suite, and as an ordinary user."""
    function(False)
    if ROOT:
        function(True)


def needs_probes():
    if SANITIZED:
        raise Skip("sanitizer")


# ---- A schema, as far as ours go --------------------------------------------------------------

TYPES = {"string": str, "boolean": bool, "integer": int, "array": list, "object": dict,
         "null": type(None)}


def is_type(value, name):
    return isinstance(value, TYPES[name]) and not (name == "integer" and value in (True, False)
                                                   and isinstance(value, bool))


def mistakes(value, schema, at="$"):
    known = {"$schema", "$id", "title", "description", "type", "enum", "const", "minimum",
             "minLength", "minItems", "maxItems", "items", "properties", "required",
             "additionalProperties", "if", "then", "else"}
    if set(schema) - known:
        yield f"{at}: the schema uses {set(schema) - known}"
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(is_type(value, t) for t in types):
        yield f"{at}: {value!r} is no {types}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r} is none of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{at}: {value!r} is not {schema['const']!r}"
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{at}: {value!r} is too small"
    if isinstance(value, (str, list)):
        least = schema.get("minLength" if isinstance(value, str) else "minItems", 0)
        if not least <= len(value) <= schema.get("maxItems", len(value)):
            yield f"{at}: wrong length of {value!r}"
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from mistakes(item, schema.get("items", {}), f"{at}[{i}]")
    if isinstance(value, dict):
        for key in schema.get("required", []):
            if key not in value:
                yield f"{at}: {key} is missing"
        for key, item in value.items():
            if key in schema.get("properties", {}):
                yield from mistakes(item, schema["properties"][key], f"{at}.{key}")
            elif schema.get("additionalProperties") is False:
                yield f"{at}: {key} is unknown"
    if "if" in schema:
        branch = "else" if list(mistakes(value, schema["if"], at)) else "then"
        yield from mistakes(value, schema.get(branch, {}), at)


def check_schema(report):
    schema = json.loads((harness.REPO / "schema" / "doctor.schema.json").read_text())
    found = list(mistakes(report, schema))
    check(not found, lambda: "; ".join(found))
    equal([item["name"] for item in report["guarantees"]], GUARANTEES, "the list of guarantees")


# ---- What it says -----------------------------------------------------------------------------


@case("probes: every required guarantee is proven here")
def _():
    needs_probes()

    def attempt(user):
        result = doctor("--json", user=user)
        found = by_name(result)
        missing = [f"{n}: {found[n]['cause']}" for n in GUARANTEES
                   if n not in OPTIONAL and not found[n]["enforced"]]
        check(not missing, lambda: "; ".join(missing))
        equal(result.code, 0, "the exit code")
        equal(result.report["ok"], True, "ok")
        equal({n for n in GUARANTEES if not found[n]["required"]}, OPTIONAL, "what is optional")
        equal(result.err, b"", "stderr")
        equal(result.report["host"]["root"], ROOT and not user, "root")
        equal(result.report["host"]["kernel"], os.uname().release, "the kernel")

    for_both(attempt)


@case("the JSON form keeps its schema")
def _():
    for_both(lambda user: check_schema(doctor("--json", user=user).report))


@case("probes: the text has a line for each guarantee and fits into 100 columns")
def _():
    needs_probes()
    result = doctor()
    lines = result.out.decode().splitlines()
    for name in GUARANTEES:
        own = [line for line in lines if line[2:4] in ("ok", "--", "NO") and
               line[6:].split(" ")[0] == name]
        equal(len(own), 1, f"the number of lines for {name}")
    check(max(map(len, lines)) <= 100, "a line is longer than 100 columns")
    check("\033" not in result.out.decode(), "colours without a terminal")


def on_terminal(columns, **environment):
    """The output of doctor on a terminal so wide."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | environment
    process = subprocess.Popen([binary, "doctor"], stdin=subprocess.DEVNULL, stdout=child,
                               stderr=child, env=env)
    os.close(child)
    text, deadline = b"", time.monotonic() + 30 * harness.SLOW
    with contextlib.suppress(OSError):
        while time.monotonic() < deadline:
            if select.select([parent], [], [], 1)[0]:
                piece = os.read(parent, 65536)
                if not piece:
                    break
                text += piece
    os.close(parent)
    harness.end(process)
    return text.decode()


@case("a terminal of 80 columns is kept to, colours can be switched off")
def _():
    text = on_terminal(80, TERM="xterm", NO_COLOR="1")
    check("tree-kill" in text and "\033" not in text, lambda: f"no plain text: {text!r}")
    check(max(map(len, text.splitlines())) <= 80, lambda: f"too wide: {text!r}")
    check("\033[" in on_terminal(120, TERM="xterm"), "no colours on a terminal")
    check("\033[" not in on_terminal(120, TERM="dumb"), "colours on a dumb terminal")


@case("--help fits a screen and exits with 0")
def _():
    result = doctor("--help")
    equal(result.code, 0, "the exit code")
    lines = result.out.decode().splitlines()
    check(len(lines) <= 24 and max(map(len, lines)) <= 80, "the help does not fit")
    for name in GUARANTEES:
        check(any(name in line for line in lines), f"{name} is not explained")


@case("an unknown option or argument is refused with 125")
def _():
    for wrong in ("--jsn", "-x", "files", "--probe", "--without"):
        result = doctor(wrong)
        equal(result.code, 125, f"the exit code of {wrong}")
        check(wrong.encode() in result.err and b"--help" in result.err, result.brief)
        equal(result.out, b"", "stdout")
    result = doctor("--probe", "memory", "/nonexistent")
    equal(result.code, 125, "the exit code of a probe outside of a box")


@case("an output that cannot be written is told")
def _():
    for args in ((), ("--json",)):
        with open("/dev/full", "wb") as full:
            result = doctor(*args, stdout=full, json_report=False)
        equal(result.code, 125, "the exit code")
        check(b"cannot write" in result.err, result.brief)


# ---- Each probe can fail ----------------------------------------------------------------------

# A fence left out, and the guarantees that must then be found missing. All others still hold.
CONTROLS = {
    "root": {"files"},
    "readonly": {"files"},
    "net": {"network"},
    "syscalls": {"syscalls"},
    "privileges": {"privileges"},
    "environment": {"environment"},
    "watch": {"memory", "pids", "cpu"},
    "landlock": {"landlock"},
    "pid": {"tree-kill"},
}


def control(fence, names):
    def attempt():
        needs_probes()
        check(unfenced, "there is no unfenced build")
        result = doctor("--json", "--without", fence, user=True, program=unfenced)
        found = by_name(result)
        check_schema(result.report)
        for name in names:
            check(not found[name]["enforced"], f"{name} is claimed without its fence")
        equal(result.code, 0 if names <= OPTIONAL else 1, "the exit code")

    harness.add(f"probes: without the fence {fence}, {', '.join(sorted(names))} is found missing",
                attempt)


for fence_, names_ in CONTROLS.items():
    control(fence_, names_)


# ---- Hosts where there is no box --------------------------------------------------------------


def check_refused(result, cause, fix):
    check_schema(result.report)
    equal(result.code, 1, "the exit code")
    for name, item in by_name(result).items():
        check(not item["enforced"], f"{name} is claimed where no box can be made")
    first = by_name(result)["tree-kill"]
    check(cause in first["cause"], lambda: f"the cause is {first['cause']!r}")
    check(fix in first["fix"], lambda: f"the fix is {first['fix']!r}")
    equal(result.report["host"]["user_namespaces"], False, "user_namespaces")


@case("user namespaces switched off: the sysctl is named")
def _():
    # The setting belongs to a user namespace of the test's own, not to the host.
    off = "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$@\""
    prefix = ("unshare", "--user", "--map-root-user", "sh", "-c", off, "sh")
    result = doctor("--json", user=True, prefix=prefix)
    check_schema(result.report)
    equal(result.report["host"]["user_namespaces"], False, "user_namespaces")
    found = [o for o in result.report["host"]["obstacles"] if "user.max_user_namespaces is 0" in o["cause"]]
    check(found and "sysctl -w user.max_user_namespaces=" in found[0]["fix"], lambda: f"{result.report['host']}")
    text = doctor(user=True, prefix=prefix).out.decode()
    equal(text.count("sysctl -w"), 1, "how often the text tells the same fix")
    if result.report["host"]["landlock_abi"] == 0:
        check_refused(result, "user.max_user_namespaces is 0", "sysctl -w user.max_user_namespaces=")
        check("missing, as tree-kill" in text, lambda: f"the text is {text!r}")
        return
    # Then boxes are made of Landlock, and their guarantees are proven as any other's.
    equal(result.code, 0, "the exit code")
    for name in GUARANTEES:
        check(by_name(result)[name]["enforced"] or name in OPTIONAL, lambda: f"{by_name(result)[name]}")
    check("subreaper" in by_name(result)["tree-kill"]["by"], lambda: f"{by_name(result)['tree-kill']}")


@case("probes: under a seccomp filter that refuses namespaces: the filter is named")
def _():
    needs_probes()
    prefix = (binary, "run", "--read", str(scratch.bin), "--")
    result = doctor("--json", user=True, prefix=prefix)
    check_refused(result, "a seccomp filter of whoever started callbox", "start callbox without it")
    equal(result.report["host"]["seccomp_filtered"], True, "seccomp_filtered")


# ---- What it leaves ---------------------------------------------------------------------------


def leftovers():
    return {name for name in os.listdir("/tmp") if name.startswith("callbox-doctor-")}


@case("nothing is left behind, and it is quick", alone=True)
def _():
    def attempt(user):
        earlier = harness.HostState()
        result = doctor(user=user)
        check(result.seconds < 3 * harness.SLOW, f"it took {result.seconds:.1f} s")
        left = earlier.diff(harness.HostState(), marks=(str(scratch.bin),))
        check(not left, lambda: "; ".join(left))

    for_both(attempt)


@case("nothing is left behind by an interrupted one", alone=True)
def _():
    earlier = leftovers()
    process = subprocess.Popen([binary, "doctor"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    started = harness.wait_until(lambda: leftovers() - earlier or process.poll() is not None, 10)
    check(started is not True, "it was over before it could be interrupted")
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=10 * harness.SLOW)
    equal(process.returncode, 128 + signal.SIGTERM, "the exit code")
    equal(err, b"", "stderr")
    equal(leftovers() - earlier, set(), "what is left in /tmp")


if __name__ == "__main__":
    sys.exit(harness.main(skips=SKIPS, before=before, after=after))
