# SPDX-License-Identifier: MIT
"""What the suites of the toolbox share: the build's programs in a scratch directory, toolboxes, manifests."""

import contextlib
import json
import os
import pathlib

import harness
import library
from harness import REPO, check, equal

BUILD = pathlib.Path(os.environ.get("CALLBOX_BUILD") or REPO / "build")
SCRATCH = harness.Scratch()
CALLBOX = SCRATCH.install(harness.callbox_path(), "callbox")
SERVER = SCRATCH.install(BUILD / "callbox-functions")
FUNCTIONS = SCRATCH.install(BUILD / "tests" / "functions")
OBJECT = SCRATCH.install(BUILD / "tests" / "object.so")
SCRATCH.install(BUILD / "libcallbox.so.0", "libcallbox.so.0")
SCRATCH.install_python(BUILD)
LIBRARY = library.Library(str(SCRATCH.bin / "libcallbox.so.0"))
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/nonexistent",
               "LD_LIBRARY_PATH": str(SCRATCH.bin), "CALLBOX_WARDEN": CALLBOX, "CALLBOX_FUNCTIONS": SERVER,
               "SECRET_OF_THE_AGENT": "secret-4711"}  # fmt: skip


def manifest(name="t", command=None, properties=None, **more):
    """A manifest of a command whose properties are all required."""
    properties = properties or {}
    found = {"name": name, "inputSchema": {"type": "object", "properties": properties, "required": sorted(properties)}}
    run = more.pop("run", None)
    found["run"] = run if run is not None else {"command": command or ["true"]}
    found.update(more)
    return {key: value for key, value in found.items() if value is not None}


@contextlib.contextmanager
def warden(**options):
    options.setdefault("program", CALLBOX)
    opened = LIBRARY.warden(**options)
    try:
        yield opened
    finally:
        opened.close()


@contextlib.contextmanager
def toolbox(*manifests, policy=None, options=None, **more):
    """A toolbox with these tools, on a warden of its own."""
    with warden(**(options or {"prepared": 2})) as opened:
        box = library.Toolbox(opened, policy, server=SERVER, **more)
        try:
            for item in manifests:
                box.add(item)
            yield box
        finally:
            box.close()


def good(report, what="the call"):
    """Its result, of a call that must have gone well."""
    tool = report["tool"]
    check(tool["ok"] and tool["error"] is None and not tool["denied"], lambda: f"{what} failed: {tool} {report['errors'][-300:]!r}")
    return tool["output"]


def bad(report, text, reason="exited"):
    """A call that must have failed, with this in its error."""
    tool = report["tool"]
    check(not tool["ok"] and not tool["denied"] and tool["output"] is None, lambda: f"it did not fail: {tool}")
    check(text in (tool["error"] or ""), lambda: f"the error is {tool['error']!r}, without {text!r}")
    equal(report["reason"], reason, "the reason")
    return tool


def refused(report, text, mistakes=None):
    """A call that there was no box for."""
    tool = bad(report, text, "setup")
    equal((report["setup_time"], report["run_time"], tool["duration"]), (0, 0, 0), "the time that its box took")
    check(report["error"] is not None and report["started_at"] > 0, lambda: f"the report is incomplete: {report}")
    if mistakes is not None:
        equal([item[0] for item in report["mistakes"]], mistakes, "where the mistakes are")
    return tool


def functions(lines, *options, user=False, timeout=60.0, env=None):
    """Calls of C functions, all at once: what the agent of tests/tool prints for each."""
    text = "".join(f"{name} {arguments if isinstance(arguments, str) else json.dumps(arguments)}\n" for name, arguments in lines)
    command = [FUNCTIONS, "call", *options]
    done = harness.execute(harness.as_user(command) if user else command, timeout=timeout, data=text.encode(),
                           env={**ENVIRONMENT, **(env or {})}, cwd="/")
    equal((done.code, done.err.decode("utf-8", "replace")[:500]), (0, ""), "the agent's exit code and stderr")
    found = [json.loads(line) for line in done.out.splitlines()]
    equal(len(found), len(lines), "the number of reports")
    return found


def function(name, arguments, *options, **more):
    return functions([(name, arguments)], *options, **more)[0]

# In a box: talk to a warden for so many seconds (S7).
TALK = """
import socket, struct, sys, time
end, won, tries = time.time() + float(sys.argv[2]), 0, 0
while time.time() < end and not won:
    tries += 1
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        s.connect(sys.argv[1])
        s.send(struct.pack("=IIQQ", 1, 0, 8, 5))
        won += bool(s.recv(100))
    except OSError:
        pass
    s.close()
print("WON" if won else "held", tries)
"""
