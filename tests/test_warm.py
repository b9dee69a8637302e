#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Warm boxes: the program has been started before its call and waits for its input. What one call
did is never seen by another, and what cannot be used is not."""

import contextlib
import os
import pathlib
import secrets
import select
import signal
import sys
import time

import harness
import library
from harness import check, equal, execute
from library import RESULT

SCRATCH = harness.Scratch()
CALLBOX = SCRATCH.install(harness.callbox_path(), "callbox")
LIBRARY = library.Library(str(pathlib.Path(harness.callbox_path()).parent / "libcallbox.so"))
SHORT = bool(os.environ.get("CALLBOX_SMOKE"))
SLOW = harness.SLOW
MIB = 1 << 20
FEW = 6

# Says when it was started, what it finds in its world, and leaves traces in all of it.
TRACES = """
import os, socket, subprocess, sys, time
born = time.monotonic_ns()
calls = 0
given = sys.stdin.buffer.read()
calls += 1
found = os.listdir("/tmp") + os.listdir("/dev/shm") + [n for n in os.environ if n.startswith("TRACE")]
found += [p for p in os.listdir("/proc") if p.isdigit() and int(p) > 2]
found += [line for line in subprocess.check_output(["ipcs", "-m"]).splitlines() if line.startswith(b"0x")]
os.environ["TRACE"] = "1"
open("/tmp/trace", "w").write("x")
open("/dev/shm/trace", "w").write("x")
os.system("sleep 1000 & ipcmk -M 4096 >&2")
with socket.socket(socket.AF_UNIX) as place:
    place.bind(chr(0) + "trace")  # fails where another has it
    place.listen()
    if os.fork() == 0:
        time.sleep(1000)  # and keeps it
os.write(os.open("/proc/self/fd/0", os.O_WRONLY | os.O_NONBLOCK), b"for the next one")
print(born, calls, len(found), os.getpid(), given.decode())
"""


@contextlib.contextmanager
def warden_of(user=False, **options):
    """A connection to a warden of root's or of the user's."""
    with library.SharedWarden(SCRATCH, CALLBOX, *options.pop("options", ()), user=user) as shared:
        warden = LIBRARY.warden(socket=shared.path)
        try:
            yield warden
        finally:
            warden.close()


def marked(program="cat"):
    """A program that waits for its input, and how its command line begins, to be found by."""
    mark = secrets.token_hex(8)
    return ["sh", "-c", program, mark], f"sh\0-c\0{program}\0{mark}"


def waiting(line, again, n=1):
    """The processes of the host in which it has been started ahead; `n` of them have to come. On a
    busy machine a pool may think that nobody uses it: `again` is a call that shows it the contrary."""
    for _ in range(20):
        if harness.wait_until(lambda: len(harness.programs(line)) >= n, 1):
            return harness.programs(line)
        again()
    raise harness.Failed(f"{n} of it do not wait")


def parent(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def exited(report, code=0):
    equal((report["reason"], report["code"]), ("exited", code), f"the end: {report['text']}")
    return report


def run(warden, policy, argv, text=b"", **spec):
    return exited(warden.run(policy, argv, warm=1, input=text, **spec))


# ---- Each call has its own ---------------------------------------------------------------------


@harness.for_people("programs are started ahead, and no two calls share anything")
def apart(user):
    argv = ["python3", "-c", TRACES]
    born, ahead = set(), 0
    with warden_of(user) as warden:
        policy = LIBRARY.policy({})
        for n in range(FEW * 3):
            if n:
                waiting(f"python3\0-c\0{TRACES}", lambda: run(warden, policy, argv))
            before = time.monotonic_ns()
            words = run(warden, policy, argv, b"%d" % n)["output"].split()
            equal(words[1:], [b"1", b"0", b"2", b"%d" % n], "calls, traces, pid, input")
            born.add(words[0])
            ahead += int(words[0]) < before
    equal(len(born), FEW * 3, "processes")
    check(ahead >= FEW * 2, f"only {ahead} were started ahead")


@harness.case("calls with another argv, environment, directory or result channel do not meet")
def keys():
    report = "cat; echo $NAME; pwd; [ -e /proc/self/fd/3 ] && echo channel; true"
    with warden_of() as warden:
        policy = LIBRARY.policy({})
        for n in range(FEW):
            for argv in (["sh", "-c", report], ["sh", "-c", report + " "]):
                for name in ("a", "b"):
                    for cwd in ("/", "/tmp"):
                        for mode in (0, RESULT):
                            out = run(warden, policy, argv, b"%d\n" % n, environment=[f"NAME={name}"], cwd=cwd, result_mode=mode)["output"]
                            equal(out.decode().split(), [str(n), name, cwd] + ["channel"] * mode, "what it was started with")


@harness.case("input of every size and kind reaches a program that waits, and what it leaves is counted")
def inputs():
    argv, line = marked()
    with warden_of() as warden:
        policy = LIBRARY.policy({"limits": {"capture": "4M"}})

        def again():
            run(warden, policy, argv)

        for size in (0, 1, 4095, 4096, 4097, 70000, 3_000_000):
            data = bytes(i * 7 % 251 for i in range(size))
            check(run(warden, policy, argv, data)["output"] == data, f"{size} bytes")
            waiting(line, again)
            read, write = os.pipe()
            call = warden.start(policy, argv, warm=1, input_mode=1, input_fd=read)
            os.close(read)
            if os.fork() == 0:
                with open(write, "wb") as out:
                    out.write(data)
                os._exit(0)
            os.close(write)
            check(exited(call.wait())["output"] == data, f"{size} bytes from a pipe")
            call.free()
            os.wait()
            waiting(line, again)
        # `head` reads a line through a pipe of one page, and leaves the rest.
        argv, line = marked("read x; echo $x")
        for _ in range(3):
            out = run(warden, policy, argv, b"one\ntwo\n")
            equal(out["output"], b"one\n", "the first line")
            equal(out["json"]["usage"]["bytes_in"], 4, "bytes that were read")
            waiting(line, again)


@harness.case("many calls, 32 at once, each with its own answer")
def many():
    total = 200 if SHORT else 2000
    calls, argv = {}, ["sh", "-c", 'read x; echo "$x" >&3; ls /tmp; echo x > /tmp/x']
    with warden_of() as warden:
        policy = LIBRARY.policy({})
        for n in range(total + 32):
            if n >= 32:
                call = calls.pop(n - 32)
                report = exited(call.wait())
                equal((report["result"], report["output"]), (b"%d\n" % (n - 32), b""), "result and output")
                call.free()
            if n < total:
                calls[n] = warden.start(policy, argv, warm=1, input=b"%d\n" % n, result_mode=RESULT)
    equal(calls, {}, "calls that are left")


# ---- What is not used --------------------------------------------------------------------------


@harness.case("a program that was killed while it waited is not used")
def killed():
    argv, line = marked()
    with warden_of() as warden:
        policy = LIBRARY.policy({})

        def again():
            run(warden, policy, argv)

        run(warden, policy, argv)
        for n in range(FEW):
            boxes = set()
            for pid in waiting(line, again):
                with contextlib.suppress(OSError):
                    boxes.add(parent(pid))
                    os.kill(pid, signal.SIGKILL)
            check(harness.wait_until(lambda boxes=boxes: not boxes & harness.process_table().keys(), 20), "a box stays")
            equal(run(warden, policy, argv, b"%d" % n)["output"], b"%d" % n, "output")


@harness.case("a first call does not wait for a zygote where that is asked for, and later ones are forked")
def later():
    program = SCRATCH.install(str(pathlib.Path(harness.callbox_path()).parent / "tests" / "zygote"), f"zygote-{secrets.token_hex(4)}")
    policy, argv = LIBRARY.policy({"files": {"read": [program]}}), [program, "/bin/echo", "forked"]
    for warm, first in ((2, b"forked\n"), (3, b"UNTRIED this box was not forked\n")):
        warden = LIBRARY.warden(program=CALLBOX)
        equal(warden.run(policy, argv, warm=warm)["output"], first, "the first call")
        check(harness.wait_until(lambda warden=warden, warm=warm: warden.run(policy, argv, warm=warm)["output"] == b"forked\n", 20 * SLOW), "nothing is forked")
        calls = [warden.start(policy, argv, warm=warm) for _ in range(4)]
        equal({call.wait()["output"] for call in calls}, {b"forked\n"}, "calls after that")
        for call in calls:
            call.free()
        warden.close()


@harness.case("a zygote that keeps the sockets of its boxes delays no end, and keeps no warden alive")
def hoarder():
    program = SCRATCH.install(str(pathlib.Path(harness.callbox_path()).parent / "tests" / "hoarder"), f"hoarder-{secrets.token_hex(4)}")
    warden, policy = LIBRARY.warden(program=CALLBOX), LIBRARY.policy({"files": {"read": [program]}})
    pid = warden.pid
    for _ in range(FEW):
        call = warden.start(policy, [program], warm=2, output_mode=library.EVENTS)
        heard = b""
        while b"\n" not in heard:
            select.select([call], [], [], 20 * SLOW)
            heard += call.step()[1]
        equal(heard, b"forked\n", "what the program says")
        call.kill()
        report = call.wait()
        equal((report["reason"], report["json"]["warnings"]), ("cancelled", []), "the end")
        call.free()
    warden.close()
    check(harness.wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 20 * SLOW), "the warden stays")
    check(harness.wait_until(lambda: not harness.programs(program), 20 * SLOW), "a box stays")


@harness.case("programs that do not wait, write at once or cannot be started end as they do without")
def impatient():
    with warden_of() as warden:
        policy = LIBRARY.policy({})
        for n in range(FEW):
            run(warden, policy, ["true"])
            equal(warden.run(policy, ["sh", "-c", "exit 3"], warm=1)["code"], 3, "code")
            equal(run(warden, policy, ["sh", "-c", "echo early; cat"], b"%d" % n)["output"], b"early\n%d" % n, "output")
            equal(run(warden, policy, ["sh", "-c", "echo early >&3; cat"], b"%d" % n, result_mode=RESULT)["result"], b"early\n", "result")
            missing = warden.run(policy, ["/nonexistent/tool"], warm=1)
            equal((missing["reason"], missing["error"].where), ("setup", "program"), "a program that is not there")
            huge = warden.run(policy, ["cat", "x" * 1_200_000], warm=1)
            equal((huge["reason"], huge["error"].where), ("setup", "argv"), "arguments that are too long")
            time.sleep(0.05)  # whatever was started ahead is over


@harness.case("a program that has written something before its call is not used")
def early():
    mark = secrets.token_hex(8)
    argv, line = ["sh", "-c", f"date +%s%N; exec sh -c cat {mark}"], f"sh\0-c\0cat\0{mark}"
    with warden_of() as warden:
        policy = LIBRARY.policy({})
        run(warden, policy, argv)
        for _ in range(FEW):
            waiting(line, lambda: run(warden, policy, argv))
            before = time.time_ns()
            check(int(run(warden, policy, argv)["output"]) >= before, "it was started before its call")


def write_tool(path, text):
    path.write_text(f"#!/bin/sh\ncat\necho {text}\n", encoding="ascii")
    path.chmod(0o755)


@harness.for_people("a program that was replaced or changed is not used")
def replaced(user):
    place = SCRATCH.directory(user)
    link = SCRATCH.directory(user)
    write_tool(place / "tool", "0")
    (link / "link").symlink_to(place / "tool")
    argvs = {
        "itself": [str(place / "tool")],
        "a script": ["/bin/sh", str(place / "tool")],
        "elsewhere in the box": ["/tools/tool"],
    }
    rules = {"files": {"read": [str(place), {"host": str(place), "box": "/tools"}]}}
    with warden_of(user) as warden:
        policy = LIBRARY.policy(rules)
        for n in range(FEW):
            for how, argv in argvs.items():
                equal(run(warden, policy, argv, b"in\n")["output"].split(), [b"in", b"%d" % n], f"{how}, started anew or not")
            # Whatever is going to be started ahead has been.
            for how, argv in argvs.items():
                line = "/bin/sh\0" + argv[-1]
                waiting(line, lambda argv=argv: run(warden, policy, argv))
                equal(run(warden, policy, argv, b"in\n")["output"].split(), [b"in", b"%d" % n], f"{how}, ahead")
                waiting(line, lambda argv=argv: run(warden, policy, argv))
            if n % 2:  # another file
                write_tool(place / "new", str(n + 1))
                os.replace(place / "new", place / "tool")
            else:  # the same, with other bytes
                write_tool(place / "tool", str(n + 1))


@harness.case("a workspace that was replaced is not seen but by a policy that is made anew")
def workspace_replaced():
    place = SCRATCH.directory(False)
    argv, line = marked("cat; cat note")
    with warden_of() as warden:
        before = None

        def again():
            run(warden, policy, argv, cwd=str(place / "w"))

        for n in range(4):
            (place / "w").mkdir()
            (place / "w" / "note").write_text(f"{n}\n")
            policy = LIBRARY.policy({"files": {"workspace": str(place / "w")}})
            if before:  # it keeps the directory that it was made for
                report = warden.run(before, argv, cwd=str(place / "w"))
                check(report["reason"] == "setup" and "is now another one" in report["text"], report["text"])
            before = policy
            for _ in range(2):
                equal(run(warden, policy, argv, cwd=str(place / "w"))["output"], b"%d\n" % n, "the note")
                waiting(line, again)
            (place / "w").rename(place / f"old{n}")


# ---- Limits and clocks -------------------------------------------------------------------------


@harness.case("clocks count from the call, not from the start of the program")
def clocks():
    argv, line = marked()
    with warden_of() as warden:
        policy = LIBRARY.policy({"limits": {"wall": 1.0}})

        def again():
            run(warden, policy, argv)

        for _ in range(20):
            again()
            pids = waiting(line, again)
            time.sleep(1.3)  # longer than the limit, shorter than an idle pool keeps its boxes
            pids &= harness.programs(line)
            before = time.time_ns()
            report = run(warden, policy, argv, b"x")
            if len(pids - harness.programs(line)) == 1:
                break
        check(len(pids - harness.programs(line)) == 1, "none of those that waited was used")
        check(report["started_at"] >= before, "started_at is before the call")
        equal(report["setup_time"], 0, "setup_time")
        check(report["run_time"] < 1e9 * SLOW, f"run_time is {report['run_time']}")
        waiting(line, again)
        read, write = os.pipe()
        report = warden.run(policy, argv, warm=1, input_mode=1, input_fd=read)
        equal(report["reason"], "timeout", "a call without an end")
        check(report["run_time"] >= 1e9, f"run_time is {report['run_time']}")
        waiting(line, again)
        report = warden.run(policy, argv, warm=1, input_mode=1, input_fd=read, wall_limit=0.2)
        equal(report["reason"], "timeout", "with a tighter limit")
        check(2e8 <= report["run_time"] < 1e9 * SLOW, f"run_time is {report['run_time']}")
        os.close(read)
        os.close(write)


@harness.case("limits that only a box can keep are kept by one that is started anew")
def tighter():
    grow = "import sys, resource; sys.stdin.read(); print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], flush=True); x = bytearray(200 << 20); print(len(x), flush=True); import time; time.sleep(0.5)"
    line = f"python3\0-c\0{grow}"
    with warden_of() as warden:
        policy = LIBRARY.policy({"limits": {"memory": "512M", "open_files": 64}})
        for _ in range(2):
            equal(run(warden, policy, ["python3", "-c", grow])["output"].split(), [b"64", b"%d" % (200 << 20)], "the policy's")
            kept = waiting(line, lambda: run(warden, policy, ["python3", "-c", grow]))
            report = warden.run(policy, ["python3", "-c", grow], warm=1, memory_limit=100 * MIB)
            equal(report["reason"], "memory", "memory")
            report = warden.run(policy, ["python3", "-c", grow], warm=1, open_files_limit=32)
            equal(report["output"].split()[0], b"32", "open files")
            check(kept & harness.programs(line), "those that wait were used")
        report = warden.run(policy, ["cat"], warm=1, input=b"x" * 5000, capture_limit=10, output_limit=5000)
        equal(len(report["output"]), 10, "what the warden keeps itself")


@harness.case("a program that takes too much before its call is ended, and its call as well")
def greedy():
    mark = secrets.token_hex(8)
    argv = ["python3", "-c", f"x = bytearray(300 << 20); import sys; sys.stdin.read(); '{mark}'"]
    line = "python3\0-c\0" + argv[2]
    with warden_of() as warden:
        policy = LIBRARY.policy({"limits": {"memory": "64M"}})
        for _ in range(3):
            equal(warden.run(policy, argv, warm=1)["reason"], "memory", "reason")
            check(harness.wait_until(lambda: not harness.programs(line), 20), "it stays")


# ---- What they cost ----------------------------------------------------------------------------


def processor_time(pids):
    """Nanoseconds that each of them, and the init above it, has run."""
    times = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for one in (pid, parent(pid)):
                times[one] = int(pathlib.Path(f"/proc/{one}/schedstat").read_text().split()[0])
    return times


@harness.case("programs that wait cost no processor time", alone=True)
def idle():
    argv, line = marked()
    with warden_of() as warden:
        policy = LIBRARY.policy({})

        def again():
            run(warden, policy, argv)

        run(warden, policy, argv)
        # Until they have come to rest; then for half a second nothing may happen at all.
        for _ in range(20):
            pids = waiting(line, again, 2)
            before = processor_time(pids)
            time.sleep(0.5)
            after = processor_time(pids)
            if len(after) >= 4 and before == after:
                return
        check(False, f"they run: {before} {after}")


@harness.case("boxes that nobody uses go, and those in use do not pile up")
def shrink():
    argv, line = marked()
    with warden_of(options=["--prepared", "3"]) as warden:
        policy = LIBRARY.policy({})
        for n in range(40):
            equal(run(warden, policy, argv, b"%d" % n)["output"], b"%d" % n, "output")
            check(len(harness.programs(line)) <= 3, "more wait than may")
        check(harness.wait_until(lambda: not harness.programs(line), 40), "they do not go")
        equal(run(warden, policy, argv, b"again")["output"], b"again", "output")
    check(harness.wait_until(lambda: not harness.programs(line), 20), "they outlive their warden")


@harness.case("without prepared boxes a warm call is a plain one")
def none_prepared():
    argv, line = marked()
    with warden_of(options=["--prepared", "none"]) as warden:
        policy = LIBRARY.policy({})
        for n in range(FEW):
            equal(run(warden, policy, argv, b"%d" % n)["output"], b"%d" % n, "output")
            equal(len(harness.programs(line)), 0, "programs that wait")


# ---- Bounds ------------------------------------------------------------------------------------


@harness.case("bounds: order, fairness, cancelling, and long queues (tests/api/bounds.c)")
def bounds():
    program = SCRATCH.install(pathlib.Path(harness.callbox_path()).parent / "tests" / "bounds", "bounds")
    done = execute([program, str(SCRATCH.directory(False))], timeout=120, env={"PATH": "/usr/bin:/bin", "CALLBOX_WARDEN": CALLBOX}, cwd="/")
    equal((done.code, done.out.split(b"\n")[-2:]), (0, [b"ok", b""]), f"bounds: {done.out.decode()} {done.err.decode()}")


if __name__ == "__main__":
    os.chdir("/")
    sys.exit(harness.main(after=SCRATCH.remove))
