#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The result channel: descriptor 3 of a program, captured apart from what it prints."""

import json
import os
import pathlib
import select
import sys

import jsonschema

import harness
import library
from harness import check, equal
from library import EVENT_ENDED, EVENT_NONE, EVENT_RESULT, RESULT, RESULT_EVENTS

SCRATCH = harness.Scratch()
CALLBOX = SCRATCH.install(harness.callbox_path(), "callbox")
LIBRARY = library.Library(str(pathlib.Path(harness.callbox_path()).parent / "libcallbox.so"))
SCHEMA = json.loads((harness.REPO / "schema" / "report.schema.json").read_text(encoding="utf-8"))
SLOW = harness.SLOW

MIB = 1 << 20

# Each descriptor that a shell has, without opening one to look.
DESCRIPTORS = "for i in 0 1 2 3 4 5 6 7 8 9 10 11 12 19 20; do [ -e /proc/self/fd/$i ] && echo $i; done; true"


def numbers(length):
    """What `seq -w` prints, cut off: no two places of it look alike."""
    return b"".join(b"%07d\n" % n for n in range(1, length // 8 + 2))[:length]


def write_numbers(length):
    return ["sh", "-c", f"seq -f %07.0f {length // 8 + 1} | head -c {length} >&3"]


def run(argv, limits=None, **spec):
    warden = LIBRARY.warden(program=CALLBOX)
    try:
        report = warden.run(LIBRARY.policy({"limits": limits} if limits else {}), argv, **spec)
        jsonschema.validate(report["json"], SCHEMA)
        return report
    finally:
        warden.close()


def exited(report, code=0):
    equal((report["reason"], report["code"]), ("exited", code), f"the end: {report['text']}")
    return report


def bounded(length, limit):
    report = exited(run(write_numbers(length), result_mode=RESULT, result_limit=limit))
    whole = numbers(length)
    equal(report["result_total"], length, "total")
    equal(report["result_omitted"], max(0, length - limit), "omitted")
    kept = whole if length <= limit else whole[: limit - limit // 2] + whole[len(whole) - limit // 2 :]
    check(report["result"] == kept, "other bytes are kept")
    equal((report["output"], report["errors"]), (b"", b""), "output")
    member = report["json"]["result"]
    equal((member["bytes"], member["omitted"], member["truncated"]), (length, max(0, length - limit), length > limit), "JSON")


for size in (0, 1, 70000, 99999, 100000, 100001, 250000):
    harness.add(f"{size} bytes of result with a limit of 100000", lambda size=size: bounded(size, 100000))

# What is larger than 256 KiB goes into a file; and where it is cut, its tail goes round there.
for size in (262143, 262144, 262145, 499999, 500001, 1000000, 1000001, 1500000, 2345678):
    harness.add(f"{size} bytes of result with a limit of 1000000", lambda size=size: bounded(size, 1000000))


def peak(pid):
    """The most memory that a process has ever had, in bytes."""
    with open(f"/proc/{pid}/status", encoding="ascii") as stream:
        return int(next(line for line in stream if line.startswith("VmHWM:")).split()[1]) * 1024


@harness.case("the warden does not grow by a large result")
def warden_memory():
    warden = LIBRARY.warden(program=CALLBOX)
    try:
        policy = LIBRARY.policy({"limits": {"result": "256M"}})
        argv = ["sh", "-c", "head -c ${0}000000 /dev/zero >&3"]
        exited(warden.run(policy, argv + ["1"], result_mode=RESULT))
        before = peak(warden.pid)
        report = exited(warden.run(policy, argv + ["128"], result_mode=RESULT))
        equal((report["result_total"], report["result_omitted"]), (128_000_000, 0), "bytes")
        grown = peak(warden.pid) - before
        check(grown < 8 * MIB, f"the warden grew by {grown} bytes")
    finally:
        warden.close()


@harness.case("a flood of 64 MB is counted, and head and tail of 16 MiB are kept")
def flood():
    size = 64_000_000
    report = exited(run(["sh", "-c", f"head -c {size // 2} /dev/zero | tr '\\0' a >&3; head -c {size // 2} /dev/zero | tr '\\0' z >&3"], result_mode=RESULT))
    equal((report["result_total"], report["result_omitted"]), (size, size - 16 * MIB), "bytes")
    check(report["result"] == b"a" * 8 * MIB + b"z" * 8 * MIB, "head and tail")


@harness.case("limits.result is the policy's, and a spec can only tighten it")
def policy_limit():
    report = exited(run(write_numbers(5000), {"result": "1K"}, result_mode=RESULT))
    equal((len(report["result"]), report["result_omitted"]), (1024, 3976), "kept, omitted")
    report = exited(run(write_numbers(5000), {"result": 0}, result_mode=RESULT))
    equal((report["result"], report["result_omitted"]), (b"", 5000), "kept, omitted")
    try:
        run(["true"], {"result": "1K"}, result_mode=RESULT, result_limit=1025)
        check(False, "it was loosened")
    except library.CallboxError as error:
        equal((error.where, "tighten" in str(error)), ("result", True), "where and text")


@harness.case("it counts towards no other limit and is passed on as it is")
def apart():
    report = exited(run(["sh", "-c", "head -c 100000 /dev/zero >&3; printf out; printf err >&2"], {"output": "1K", "capture": 10}, result_mode=RESULT))
    equal((report["output"], report["errors"], report["result"] == b"\0" * 100000), (b"out", b"err", True), "streams")
    equal(report["json"]["usage"]["bytes_out"], 6, "bytes_out")
    report = exited(run(["sh", "-c", "printf '\\033[2J' >&3"], result_mode=RESULT, sanitize=1))
    equal(report["result"], b"\033[2J", "a result that is sanitized")


@harness.for_people("a program has the descriptors 0 to 2, and 3 only for a result")
def descriptors(user):
    policy = LIBRARY.policy({})
    with library.SharedWarden(SCRATCH, CALLBOX, user=user) as shared:
        warden = LIBRARY.warden(socket=shared.path)
        for _ in range(3):  # made on demand, and prepared
            plain = exited(warden.run(policy, ["sh", "-c", DESCRIPTORS + "; echo ${CALLBOX_RESULT_FD-none}"]))
            equal(plain["output"].split(), [b"0", b"1", b"2", b"none"], "without")
            check("result" not in plain["json"], "a result without a channel")
            given = exited(warden.run(policy, ["sh", "-c", DESCRIPTORS + "; env | grep -c RESULT_FD; echo $CALLBOX_RESULT_FD; echo x >/dev/fd/3"],
                                      environment=["CALLBOX_RESULT_FD=9"], result_mode=RESULT))
            equal(given["output"].split(), [b"0", b"1", b"2", b"3", b"1", b"3"], "with")
            equal(given["result"], b"x\n", "written by its path")
        warden.close()


@harness.case("a grandchild that holds the channel does not delay the end")
def grandchild():
    report = exited(run(["sh", "-c", "sleep 1000 & echo done >&3; exit 7"], {"wall": 100}, result_mode=RESULT), 7)
    equal(report["result"], b"done\n", "result")


@harness.case("what was written before a forced end is in the report")
def forced():
    report = run(["sh", "-c", "echo partial >&3; sleep 1000"], result_mode=RESULT, wall_limit=0.5)
    equal((report["reason"], report["result"]), ("timeout", b"partial\n"), "the end")


@harness.case("a program that closes the channel, or never uses it, ends as any other")
def closed():
    equal(exited(run(["sh", "-c", "exec 3>&-; echo x"], result_mode=RESULT))["output"], b"x\n", "output")
    equal(exited(run(["true"], result_mode=RESULT))["json"]["result"]["bytes"], 0, "an empty result")


@harness.case("a result comes as events; a caller that takes none makes the program wait, and nobody else")
def events():
    workspace = SCRATCH.directory(False)
    warden = LIBRARY.warden(program=CALLBOX)
    policy = LIBRARY.policy({"files": {"workspace": str(workspace)}})
    size = 8 * MIB
    call = warden.start(policy, ["sh", "-c", f"cd {workspace}; : > begun; head -c {size} /dev/zero | tr '\\0' x >&3; : > written"], result_mode=RESULT_EVENTS)
    try:
        check(harness.wait_until((workspace / "begun").exists, 20 * SLOW), "it did not begin")
        for n in range(30):
            equal(exited(warden.run(policy, ["echo", str(n)]))["output"], b"%d\n" % n, "another call")
        check(not (workspace / "written").exists(), "nobody took the result, and it was all written")
        taken, kind = 0, EVENT_NONE
        while kind != EVENT_ENDED:
            kind, data = call.step()
            if kind == EVENT_RESULT:
                check(data == b"x" * len(data), "other bytes")
                taken += len(data)
            elif kind == EVENT_NONE:
                check(select.select([call], [], [], 30 * SLOW)[0], "no event")
            else:
                equal(kind, EVENT_ENDED, "kind")
        equal(taken, size, "bytes as events")
        report = exited(call.wait())
        equal((report["result_total"], report["result"] == b"x" * size), (size, True), "the report")
        check((workspace / "written").exists(), "it did not go on")
    finally:
        call.free()
        warden.close()


if __name__ == "__main__":
    os.chdir("/")
    sys.exit(harness.main(after=SCRATCH.remove))
