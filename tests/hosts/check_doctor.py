#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What callbox doctor says of this host, against what is found without it. Run on any host, by anyone.

With --show the last lines are a JSON object for the table of hosts."""

import ctypes
import json
import os
import pathlib
import platform
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness  # noqa: E402
from harness import check, equal  # noqa: E402

LIBC = ctypes.CDLL(None, use_errno=True)
NAMESPACES = (0x10000000, 0x00020000, 0x20000000, 0x40000000, 0x08000000, 0x04000000, 0x02000000)
LANDLOCK_CREATE_RULESET, VERSION = 444, 1
NEEDS = {"memory": ["--memory", "100M"], "pids": ["--processes", "20"], "cpu": ["--cpu", "20"]}
BOXES = ["namespaces", "landlock"]
SCRATCH = harness.Scratch()
CALLBOX = SCRATCH.install(harness.callbox_path(), "callbox")


def callbox(*args, **more):
    return harness.callbox(list(args), binary=CALLBOX, cwd="/", timeout=120, **more)


def doctor():
    result = callbox("doctor", "--json")
    check(result.report, result.brief)
    return result


def guarantees(report):
    return {item["name"]: item for item in report["guarantees"]}


def kinds():
    """The kinds of box that this build knows, as options."""
    known = b"--box" in callbox("run", "--help").out
    return {name: ["--box", name] for name in BOXES} if known else {"namespaces": []}


# ---- Probes of our own ---------------------------------------------------------------------------


def may_unshare():
    """Are all kinds of namespaces to be had, below a user namespace?"""
    pid = os.fork()
    if pid == 0:
        os._exit(any(LIBC.unshare(flag) != 0 for flag in NAMESPACES))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def landlock_abi():
    return max(LIBC.syscall(LANDLOCK_CREATE_RULESET, None, 0, VERSION), 0)


def is_filtered():
    text = pathlib.Path("/proc/self/status").read_text()
    return next(line.split()[1] for line in text.splitlines() if line.startswith("Seccomp:")) == "2"


def own_group():
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        if line.startswith("0::"):
            return pathlib.Path("/sys/fs/cgroup" + line[3:].rstrip("/"))
    return None


def may_make_group():
    """A group beside or below our own, with the controllers in it."""
    own = own_group()
    for place in (own, own.parent) if own else ():
        new = place / "probe-of-a-test"
        try:
            new.mkdir()
        except OSError:
            continue
        has = (new / "memory.max").exists() and (new / "pids.max").exists()
        new.rmdir()
        if has:
            return True
    return False


# ---- Facts -------------------------------------------------------------------------------------


@harness.case("facts: the kernel, the user, the filter, the namespaces and Landlock are as found here")
def facts():
    host = doctor().report["host"]
    found = {"kernel": platform.release(), "machine": platform.machine(), "uid": os.geteuid(),
             "root": os.geteuid() == 0, "seccomp_filtered": is_filtered(), "landlock_abi": landlock_abi(),
             "user_namespaces": may_unshare()}
    equal({name: host[name] for name in found}, found, "the facts")


@harness.case("facts: a control group is claimed where one can be made, and only there")
def groups():
    item = guarantees(doctor().report)["cgroup"]
    if item["enforced"]:
        equal(callbox("run", "--require", "cgroup", "--", "true").code, 0, "a call in a group")
        return
    check(not may_make_group() or os.path.exists("/run/systemd/system"), f"a group can be made, but: {item['cause']}")
    check(item["cause"] and item["fix"], f"{item}")


# ---- Guarantees --------------------------------------------------------------------------------


@harness.case("verdict: doctor's exit code says whether a call with the default policy runs")
def verdict():
    result = doctor()
    equal(result.code, 0 if result.report["ok"] else 1, "the exit code")
    missing = [i["name"] for i in result.report["guarantees"] if i["required"] and not i["enforced"]]
    equal(result.report["ok"], not missing, f"ok (missing: {missing})")
    run = callbox("run", "--", "true")
    equal(run.code, 0 if result.report["ok"] else 125, f"the exit code of a call ({run.brief()})")


@harness.case("verdict: what is enforced is had on demand, and the report says the same of it")
def enforced():
    for name, item in guarantees(doctor().report).items():
        if not item["enforced"]:
            continue
        result = callbox("run", "--json", "--require", name, *NEEDS.get(name, []), "--", "true")
        equal(result.reason, "exited", f"a call that requires {name} ({result.brief()})")
        equal((result.guarantee(name)["enforced"], result.guarantee(name)["by"]), (True, item["by"]), name)


@harness.case("verdict: what is missing is refused on demand, with the cause and a fix")
def missing():
    for name, item in guarantees(doctor().report).items():
        if item["enforced"]:
            continue
        check(item["cause"] and item["fix"], f"{name} has no cause or no fix")
        result = callbox("run", "--json", "--require", name, *NEEDS.get(name, []), "--", "true")
        equal((result.code, result.reason), (125, "setup"), f"a call that requires {name} ({result.brief()})")
        error = result.report["error"]
        check(error["text"] and error["hint"], f"{name}: {error}")


@harness.case("verdict: best effort runs with what there is, and says what is missing")
def best_effort():
    result = callbox("run", "--json", "--best-effort", "--", "true")
    if result.reason == "setup":  # no kind of box can be made
        check(not doctor().report["ok"], result.brief)
        return
    equal(result.reason, "exited", result.brief())
    told = guarantees(doctor().report)
    for item in result.report["guarantees"]:
        if item["enforced"]:
            check(told[item["name"]]["enforced"] or item["name"] in NEEDS, f"{item['name']} is claimed by the report alone")


# ---- For the table -----------------------------------------------------------------------------


def show():
    result = doctor()
    report = {"host": result.report["host"], "ok": result.report["ok"],
              "guarantees": {n: {k: i[k] for k in ("enforced", "by", "cause", "fix")}
                             for n, i in guarantees(result.report).items()}, "boxes": {}}
    for name, options in kinds().items():
        run = callbox("run", "--json", *options, "--", "true")
        error = (run.report or {}).get("error") or {}
        report["boxes"][name] = {"runs": run.reason == "exited", "error": error,
                                 "guarantees": (run.report or {}).get("guarantees", [])}
    print("SHOW " + json.dumps(report))


if __name__ == "__main__":
    try:
        if "--show" in sys.argv:
            show()
            sys.argv.remove("--show")
        code = harness.main(workers=1)
    finally:
        SCRATCH.remove()
    sys.exit(code)
