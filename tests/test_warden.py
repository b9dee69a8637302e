#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The warden process: who may attach, whose turn it is, what one call can see of another, and what
becomes of clients that talk nonsense."""

import array
import concurrent.futures
import contextlib
import os
import pathlib
import random
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import time

import harness
import library
from harness import Failed, check, equal

SCRATCH = harness.Scratch()
CALLBOX = SCRATCH.install(harness.callbox_path(), "callbox")
LIBRARY = library.Library(str(pathlib.Path(harness.callbox_path()).parent / "libcallbox.so"))
SLOW = harness.SLOW


def SharedWarden(*options, **more):
    return library.SharedWarden(SCRATCH, CALLBOX, *options, **more)


def own_warden(**options):
    return LIBRARY.warden(program=CALLBOX, **options)


# ---- Who may attach ----------------------------------------------------------------------------


@harness.for_people("a shared warden serves one program after the other")
def shared(user):
    with SharedWarden(user=user) as warden:
        for number in range(5):
            result = warden.run("sh", "-c", f"echo {number}; exit {number}", user=user)
            equal((result.out, result.code), (f"{number}\n".encode(), number), "output and code")
        result = warden.run("id", "-u", options=["--json"], user=user)
        equal(result.report["reason"], "exited", "reason")
        equal(warden.run("cat", user=user, data=b"x" * 300000).out, b"x" * 300000, "input")
        result = warden.run("sleep", "100", options=["--timeout", "0.2"], user=user)
        equal(result.code, 124, "timeout")


@harness.case("only its own user and root may attach")
def credentials():
    if not harness.ROOT:
        return
    with SharedWarden() as warden:
        os.chmod(warden.directory, 0o755)
        equal(warden.run("true", user=True).code, 125, "the socket's mode")
        os.chmod(warden.path, 0o666)
        result = warden.run("true", user=True)
        equal(result.code, 125, "credentials")
        check(b"ended before it answered" in result.err, f"the text: {result.err}")
        equal(warden.run("true").code, 0, "root itself")
    with SharedWarden(user=True) as warden:
        equal(warden.run("true").code, 0, "root at a user's warden")
        result = warden.run("sh", "-c", "cat /proc/self/uid_map")
        check(str(harness.USER_ID).encode() in result.out, f"the box is the warden's user: {result.out}")


@harness.case("one warden at a path; a socket left behind is replaced; SIGTERM ends all")
def lifetime():
    with SharedWarden() as warden:
        second = harness.callbox(["warden", "--socket", warden.path], binary=CALLBOX)
        equal(second.code, 125, "a second warden")
        check(b"another warden listens" in second.err, f"the text: {second.err}")
        equal(warden.run("true").code, 0, "the first still serves")
        caller = subprocess.Popen([CALLBOX, "run", "--warden", warden.path, "--", "sh", "-c", "echo up; sleep 1000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        equal(caller.stdout.readline(), b"up\n", "the call runs")
        warden.process.terminate()
        equal(warden.process.wait(20 * SLOW), 0, "exit code of the warden")
        out, err = caller.communicate(timeout=20 * SLOW)
        equal(caller.returncode, 137, f"exit code of the call: {err}")
        check(b"cancelled" in err, f"the text: {err}")
        check(not os.path.exists(warden.path), "the socket is left")
    with SharedWarden() as warden:
        equal(warden.run("true").code, 0, "a call")  # by now no child of it holds the socket
        warden.process.kill()
        warden.process.wait()
        check(os.path.exists(warden.path), "a killed warden leaves its socket")
        again = subprocess.Popen([CALLBOX, "warden", "--socket", warden.path], stdin=subprocess.DEVNULL)
        try:
            check(harness.wait_until(lambda: warden.run("true").code == 0, 10 * SLOW), "the new warden does not serve")
        finally:
            again.terminate()
            equal(again.wait(20 * SLOW), 0, "exit code")


@harness.case("wrong options are answered with the right ones")
def options():
    for args, text in (
        ([], b"--socket"),
        (["--socket"], b"needs a path"),
        (["--socket", "x" * 200], b"too long"),
        (["--socket", "/nonexistent/socket"], b"cannot listen"),
        (["--socket", "/tmp/x", "--calls", "many"], b"needs a number"),
        (["--socket", "/tmp/x", "--calls", "-1"], b"needs a number"),
        (["--socket", "/tmp/x", "--calls", "+1"], b"needs a number"),
        (["--socket", "/tmp/x", "--calls", " 1"], b"needs a number"),
        (["--frobnicate"], b"no option"),
    ):
        result = harness.callbox(["warden", *args], binary=CALLBOX)
        equal(result.code, 125, f"exit code for {args}")
        check(text in result.err, f"the text for {args}: {result.err}")
    result = harness.callbox(["run", "--warden", "/tmp/x", "-t", "--", "true"], binary=CALLBOX)
    check(b"cannot be used with --warden" in result.err, f"the text: {result.err}")


HELLO = struct.pack("=IIQQ", 1, 0, 8, 1)


@harness.for_people("a box cannot give orders to the warden whose socket lies in its workspace")
def order_from_box(user):
    with SharedWarden(user=user) as warden:
        script = (
            "import socket, sys\n"
            f"for n in range(50):\n"
            "  s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
            "  s.settimeout(20)\n"
            "  try:\n"
            f"    s.connect({warden.path!r}); s.send({HELLO!r}); answer = s.recv(100)\n"
            "  except OSError: answer = b''\n"
            "  if answer: print('answered'); break\n"
            "else: print('refused')\n"
        )
        outside = harness.execute(harness.as_user([sys.executable, "-c", script]) if user else [sys.executable, "-c", script])
        equal(outside.out, b"answered\n", f"the same outside of a box: {outside.err}")
        inside = warden.run("python3", "-c", script, options=["--workspace", str(warden.directory)], user=user)
        equal(inside.out, b"refused\n", f"inside: {inside.err}")


# That the warden itself turns it away is test_inputs.py's, with init's fence left out.
@harness.for_people("nor one without namespaces, whose init connects it to no such listener, however often it tries")
def order_from_cage(user):
    with SharedWarden(user=user) as warden:
        script = (
            "import os, socket, time\n"
            "end, tries, kid = time.monotonic() + 3, 0, os.fork()\n"
            "while time.monotonic() < end:\n"
            "  s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
            "  s.settimeout(20)\n"
            "  try:\n"
            f"    s.connect({warden.path!r}); tries += 1; s.send({HELLO!r}); answer = s.recv(100)\n"
            "  except OSError: answer = b''\n"
            "  s.close()\n"
            "  if answer: print('answered', flush=True); break\n"
            "if kid: os.waitpid(kid, 0)\n"
            "print('tried' if tries else 'never connected', flush=True)\n"
        )
        inside = warden.run("python3", "-c", script, options=["--box", "landlock", "--workspace", str(warden.directory)], user=user)
        equal(set(inside.out.splitlines()), {b"never connected"}, f"inside: {inside.err}")


@harness.for_people("a box that listens in the place of a warden is not taken for one")
def impostor(user):
    directory = harness.Scratch.directory(SCRATCH, user=user)
    script = (
        "import socket\n"
        "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
        "s.bind('warden'); s.listen(); print('listening', flush=True)\n"
        "print(s.accept()[0].recv(100), flush=True)\n"
    )
    for box in (["--box", "namespaces"], ["--box", "landlock"], None):
        inside = [CALLBOX, "run", "-q", "--timeout", "20", *box, "--workspace", str(directory), "--"] if box else []
        command = [*inside, "/usr/bin/python3", "-c", script]
        listener = subprocess.Popen(harness.as_user(command) if user else command, cwd=directory, stdout=subprocess.PIPE)
        try:
            equal(listener.stdout.readline(), b"listening\n")
            command = [CALLBOX, "run", "--warden", str(directory / "warden"), "--", "true"]
            result = harness.execute(harness.as_user(command) if user else command)
            told = b"is no warden of this user" in result.err
            heard = listener.stdout.readline()
            # Without a box around it, it is somebody of the same user: who is told everything.
            equal((told, heard == b"b''\n"), (bool(box), bool(box)), f"{box}: {result.err} {heard}")
        finally:
            harness.end(listener)
            listener.stdout.close()
            (directory / "warden").unlink()


@harness.case("a warden that comes after another one keeps its socket")
def successor():
    for number in range(8):
        with SharedWarden() as first:
            caller = subprocess.Popen([CALLBOX, "run", "--warden", first.path, "--", "sh", "-c", "echo up; sleep 1000"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
            caller.stdout.readline()
            first.process.terminate()
            harness.wait_until(lambda: not first.listens(), 10 * SLOW, 0.0005)
            time.sleep(number / 1000)
            second = subprocess.Popen([CALLBOX, "warden", "--socket", first.path], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            caller.wait(20 * SLOW)
            caller.stdout.close()
            first.process.wait(20 * SLOW)
            try:
                if second.poll() is None:  # it may have found the first one still there
                    check(harness.wait_until(first.listens, 10 * SLOW), "its socket is gone")
            finally:
                harness.end(second)


# ---- Whose turn it is --------------------------------------------------------------------------


def finished_order(calls, seconds=60):
    """The ids of calls in the order of their ends."""
    order, waiting, deadline = [], dict(calls), time.monotonic() + seconds * SLOW
    while waiting:
        ready, _, _ = select.select(list(waiting.values()), [], [], max(0, deadline - time.monotonic()))
        if not ready:
            raise Failed(f"calls do not end: {sorted(waiting)}")
        for name in [n for n, call in waiting.items() if call in ready]:
            if waiting[name].step()[0] == library.EVENT_ENDED:
                order.append(name)
                del waiting[name]
    return order


@harness.case("calls beyond the bound wait in order, and beyond the queue are refused")
def queue():
    policy = LIBRARY.policy()
    warden = own_warden(calls=1, queue=5)
    calls = {n: warden.start(policy, ["sleep", "0.1"], id=str(n)) for n in range(9)}
    order = finished_order(calls)
    reports = {n: call.wait() for n, call in calls.items()}
    refused = [n for n in calls if reports[n]["reason"] == "setup"]
    served = [n for n in order if n not in refused]
    equal(served, sorted(served), "the order")
    check(1 <= len(served) <= 7 and refused == list(range(len(served), 9)), f"served {served}, refused {refused}")
    check(len(served) >= 5, f"only {served} were served")
    for n in refused:
        equal(reports[n]["error"].code, -11, "EAGAIN")
        check("queue is full" in reports[n]["text"] and reports[n]["error"].hint, reports[n]["text"])
    for call in calls.values():
        call.free()
    equal(warden.run(policy, ["true"])["code"], 0, "the next call")
    warden.close()


@harness.case("a client with a thousand calls does not make another one wait for them")
def fairness():
    policy = LIBRARY.policy()
    with SharedWarden("--calls", "4", "--queue", "2000") as shared_warden:
        many, few = LIBRARY.warden(socket=shared_warden.path), LIBRARY.warden(socket=shared_warden.path)
        equal(many.pid, few.pid, "one warden")
        few.run(policy, ["true"])
        calls = {n: many.start(policy, ["sleep", "0.03"]) for n in range(400)}
        for _ in range(10):
            equal(few.run(policy, ["true"])["code"], 0, "a call of the other client")
        ended = 0
        while select.select(list(calls.values()), [], [], 0)[0]:
            done = [n for n, call in calls.items() if select.select([call], [], [], 0)[0]]
            for n in done:
                calls.pop(n).free()
            ended += len(done)
            if not done:
                break
        check(ended < 300, f"{ended} of 400 calls came before 10 of another client")
        for call in calls.values():
            call.free()
        many.close()
        equal(few.run(policy, ["true"])["code"], 0, "after the other has gone")
        few.close()


@harness.case("a reader who does not read holds up nobody else")
def backpressure():
    policy = LIBRARY.policy()
    warden = own_warden()
    flood = warden.start(policy, ["yes"], output_mode=library.EVENTS)
    time.sleep(0.3)
    for _ in range(20):
        equal(warden.run(policy, ["echo", "x"])["output"], b"x\n", "a call beside it")
    memory = int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{warden.pid}/status").read_text())[1])
    check(memory < 16 * 1024, f"the warden holds {memory} KiB")
    total = 0
    while total < 1 << 20:
        select.select([flood], [], [], 20 * SLOW)
        kind, data = flood.step()
        equal(kind, library.EVENT_OUTPUT, "an event")
        check(data == b"y\n" * (len(data) // 2) or data.strip(b"y\n") == b"", "its data")
        total += len(data)
    flood.kill()
    flood.kill()
    report = flood.wait()
    equal(report["reason"], "cancelled", "reason")
    flood.free()
    warden.close()


@harness.case("a call that is over but for output that nobody reads ends when it is killed, or its client leaves")
def unread_end():
    policy, (read, write) = LIBRARY.policy(), os.pipe()
    with SharedWarden() as shared_warden:
        warden = LIBRARY.warden(socket=shared_warden.path)
        for leave in (False, True):
            token = f"unread-{os.getpid()}-{random.getrandbits(32):x}"
            call = warden.start(policy, ["sh", "-c", "echo $1 >&2; head -c 100000 /dev/zero", "sh", token], output_mode=library.TO_FD, output_fd=write, errors_mode=library.EVENTS)
            select.select([call], [], [], 20 * SLOW)
            equal(call.step()[1].strip(), token.encode(), "what it says")
            check(harness.wait_until(lambda token=token: not harness.processes_with(token), 20 * SLOW), "the program does not end")
            time.sleep(0.3 * SLOW)
            if leave:
                warden.close()
            else:
                call.kill()
            check(select.select([call], [], [], 20 * SLOW)[0], "it does not end")
            report = call.wait()
            equal(report["reason"], "exited", "the end")
            check("did not read" in str(report["json"]["warnings"]), f"the warnings: {report['json']['warnings']}")
            call.free()
            os.read(read, 1 << 20)
    os.close(read)
    os.close(write)


@harness.case("a policy whose maker hangs holds up nobody else")
def slow_maker():
    slow, quick = LIBRARY.policy({"limits": {"wall": 20}}), LIBRARY.policy()
    with SharedWarden() as shared_warden:
        one, other = LIBRARY.warden(socket=shared_warden.path), LIBRARY.warden(socket=shared_warden.path)
        equal(other.run(quick, ["true"])["code"], 0, "a first call")
        equal(one.run(slow, ["true"])["code"], 0, "a first call of the other")
        stopped = children(children(shared_warden.process.pid)[0])[-1]  # of the policy that came last
        os.kill(stopped, signal.SIGSTOP)
        try:
            waiting = [one.start(slow, ["true"]) for _ in range(40)]
            began = time.monotonic()
            for _ in range(20):
                equal(other.run(quick, ["true"])["code"], 0, "a call beside it")
            check(time.monotonic() - began < 8 * SLOW, "it waits for the other's maker")
        finally:
            os.kill(stopped, signal.SIGCONT)
        for call in waiting:
            equal(call.wait()["code"], 0, "a call that waited")
            call.free()
        one.close()
        other.close()


@harness.case("calls that wait for a box when the directory of their policy is replaced are told so; a policy made anew sees it")
def outdated_while_waiting():
    shown = SCRATCH.directory(False) / "shown"
    shown.mkdir()
    (shown / "f").write_text("old")
    policy = LIBRARY.policy({"files": {"read": [str(shown)]}})
    warden = own_warden()
    equal(warden.run(policy, ["cat", str(shown / "f")])["output"], b"old", "before")
    stopped = children(children(warden.pid)[0])[-1]
    os.kill(stopped, signal.SIGSTOP)
    try:
        calls = [warden.start(policy, ["cat", str(shown / "f")]) for _ in range(5)]
        shown.rename(shown.with_name("away"))
        shown.mkdir()
        (shown / "f").write_text("new")
        calls.append(warden.start(policy, ["cat", str(shown / "f")]))
        anew = warden.start(LIBRARY.policy({"files": {"read": [str(shown)]}}), ["cat", str(shown / "f")])
        time.sleep(0.1)
    finally:
        os.kill(stopped, signal.SIGCONT)
    reports = [call.wait() for call in calls]
    # A policy keeps what its paths first led to: what has come into its place is not shown in its stead.
    for report in reports:
        if report["code"] != 0 or report["output"] != b"old":
            equal(report["reason"], "setup", f"the end: {report['text']}")
            check("is now another one" in report["text"], report["text"])
    equal(reports[-1]["reason"], "setup", "the last one")
    equal(anew.wait()["output"], b"new", "what the new policy shows")
    for call in [*calls, anew]:
        call.free()
    warden.close()


def limit_descriptors(pid, most):
    """From now on a process gets no higher number; returns what puts it back."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, before[1]))
    return lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def name_of(pid):
    with contextlib.suppress(OSError):  # it may have gone meanwhile
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def stop_makers(warden):
    found = [pid for pid in descendants(warden.pid) if name_of(pid) in ("callbox-maker", "callbox-mould")]
    for pid in found:
        os.kill(pid, signal.SIGSTOP)
    return found


@harness.case("a call whose descriptors do not reach its box is not run with others")
def descriptors_lost():
    if not harness.ROOT:
        return  # an ordinary user cannot look into a box at all
    warden, policy = own_warden(), LIBRARY.policy()
    equal(warden.run(policy, ["cat"], input=b"x")["output"], b"x", "before")

    def waiting():  # in boxes that are ready, with streams for a call without input
        found = set()
        for pid in descendants(warden.pid):
            with contextlib.suppress(OSError):
                ids = re.search(r"NSpid:(.*)", pathlib.Path(f"/proc/{pid}/status").read_text())[1].split()
                streams = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in (1, 2)]
                if len(ids) > 1 and ids[-1] != "1" and all(stream.startswith("pipe:") for stream in streams):
                    found.add(pid)
        return found

    check(harness.wait_until(waiting, 20 * SLOW), "no box waits")
    for _ in range(10):  # more of them may still be made
        for pid in waiting():
            limit_descriptors(pid, 3)
        time.sleep(0.1)
    report = warden.run(policy, ["cat"], input=b"x")
    equal(report["reason"], "setup", f"the end: {report['text']}, {report['errors']}")
    warden.close()


@harness.case("where there is no maker to be had, all who wait for a box are told", alone=True)
def no_other_maker():
    warden, policy = own_warden(prepared=library.NONE), LIBRARY.policy()
    for _ in range(2):
        equal(warden.run(policy, ["true"])["code"], 0, "before")
    makers = stop_makers(warden)
    calls = [warden.start(policy, ["true"]) for _ in range(5)]
    time.sleep(0.3 * SLOW)
    limit_descriptors(warden.pid, 3)
    for pid in makers:
        os.kill(pid, signal.SIGKILL)
    for call in calls:
        report = call.wait()
        equal(report["reason"], "setup", "the end")
        check("a maker of boxes" in str(report["error"]), f"why: {report['error']}")
        call.free()
    warden.close()


@harness.case("a box that cannot be had leaves nobody waiting for it, whoever is told", alone=True)
def told_another():
    program = SCRATCH.install(str(pathlib.Path(harness.callbox_path()).parent / "tests" / "zygote"), f"zygote-{random.getrandbits(32):x}")
    warden, policy = own_warden(prepared=library.NONE), LIBRARY.policy({"files": {"read": [program]}})
    argv = [program, "/bin/echo", "forked"]
    check(harness.wait_until(lambda: warden.run(policy, argv, warm=2)["output"] == b"forked\n", 20 * SLOW), "it is not forked")
    check(harness.wait_until(lambda: len(harness.programs(program)) == 1, 20 * SLOW), "the zygote is not alone")
    zygotes = harness.programs(program)
    for pid in zygotes:
        os.kill(pid, signal.SIGSTOP)
    forked = warden.start(policy, argv, warm=2)
    makers = stop_makers(warden)
    fresh = warden.start(policy, argv, warm=2, open_files_limit=64)  # which only a box of its own keeps
    time.sleep(0.3 * SLOW)
    put_back = limit_descriptors(warden.pid, 3)
    for pid in makers:
        os.kill(pid, signal.SIGCONT)
    check(select.select([forked, fresh], [], [], 20 * SLOW)[0], "nobody is told")
    put_back()

    def given_up():  # after a while a zygote that does not answer is replaced
        return not zygotes <= harness.process_table().keys()

    check(harness.wait_until(lambda: select.select([fresh], [], [], 0)[0] or given_up(), 20 * SLOW), "it waits")
    check(not given_up(), "it waits as long as for the zygote of others")
    for call in (forked, fresh):
        call.kill()
        call.wait()
        call.free()
    warden.close()


@harness.case("a call whose warden has died is over, however long others wait for a new one", alone=True)
def over_at_once():
    with SharedWarden() as shared_warden, concurrent.futures.ThreadPoolExecutor(2) as threads:
        warden, policy, asked = LIBRARY.warden(socket=shared_warden.path), LIBRARY.policy(), []
        pid = warden.pid
        first = threads.submit(warden.run, policy, ["sleep", "1000"])
        check(harness.wait_until(lambda: "sleep" in map(name_of, descendants(pid)), 20 * SLOW), "the call does not run")

        def ask_on():
            with contextlib.suppress(library.CallboxError):
                while True:
                    asked.append(warden.start(policy, ["true", "x" * 20000]))

        os.kill(pid, signal.SIGSTOP)
        second = threads.submit(ask_on)
        more = -1
        while len(asked) != more:  # until it waits for the warden
            more = len(asked)
            time.sleep(0.5 * SLOW)
        os.unlink(shared_warden.path)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
            silent.bind(shared_warden.path)
            silent.listen()
            os.kill(pid, signal.SIGKILL)
            concurrent.futures.wait([first, second], return_when=concurrent.futures.FIRST_COMPLETED)
            check(first.done() and not second.done(), "it waits for the other's answer")
        equal(first.result()["reason"], "internal", "the end")
        second.result()
        for call in asked:
            call.free()
        warden.close()


@harness.case("a request that is too large is refused alone", alone=True)
def too_large():
    policy = LIBRARY.policy()
    warden = own_warden()
    innocent = warden.start(policy, ["sh", "-c", "echo up; sleep 1000"], output_mode=library.EVENTS)
    select.select([innocent], [], [], 20 * SLOW)
    equal(innocent.step()[1], b"up\n", "a call that runs")
    before = os.environ.get("TERM")
    os.environ["TERM"] = "x" * (5 << 20)
    try:
        warden.run(policy, ["true"])
        raise Failed("it was not refused")
    except library.CallboxError as error:
        equal(error.code, -7, f"E2BIG: {error}")
    finally:
        os.environ.pop("TERM")
        if before is not None:
            os.environ["TERM"] = before
    equal(warden.run(policy, ["true"])["code"], 0, "the next call")
    equal(innocent.step()[0], library.EVENT_NONE, "the call that runs")
    innocent.kill()
    equal(innocent.wait()["reason"], "cancelled", "its end")
    innocent.free()
    warden.close()


@harness.case("a caller's limit on the size of files is an error, not its end")
def file_size_limit():
    script = (
        f"import sys; sys.path.insert(0, {str(harness.REPO / 'tests')!r}); import library, resource\n"
        f"l = library.Library({LIBRARY.c._name!r}); w = l.warden(program={CALLBOX!r}); p = l.policy()\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))\n"
        "try: w.run(p, ['cat'], input=b'x' * 100000)\n"
        "except library.CallboxError as error: print(error.where, error.code)\n"
        "print(w.run(p, ['cat'], input=b'fits')['output'])\n"
    )
    result = harness.execute([sys.executable, "-c", script])
    equal((result.out, result.code), (b"input -27\nb'fits'\n", 0), f"what it says: {result.err}")


@harness.case("freeing a call ends it, and closing a warden too, though a forked child has the sockets", alone=True)
def forked():
    token = f"forked-{os.getpid()}-{random.getrandbits(32):x}"
    policy = LIBRARY.policy()
    for close_warden in (False, True):
        warden = own_warden()
        pid, call = warden.pid, warden.start(policy, ["sh", "-c", "echo up; sleep 1000", token], output_mode=library.EVENTS)
        select.select([call], [], [], 20 * SLOW)
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        try:
            if not close_warden:
                call.free()
                check(harness.wait_until(lambda: not harness.processes_with(token), 10 * SLOW), "the call goes on")
            warden.close()
            check(harness.wait_until(lambda: not harness.processes_with(token), 10 * SLOW), "the call goes on")
            check(harness.wait_until(lambda: not os.path.exists(f"/proc/{pid}/maps"), 10 * SLOW), "the warden goes on")
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        call.free()


@harness.case("what is no struct, or not there, is refused and harms nothing")
def nothing_there():
    policy = LIBRARY.policy()
    warden = own_warden()
    call = LIBRARY.c.cbx_start
    spec = library.Spec(size=library.ctypes.sizeof(library.Spec), argv=library.strings(["true"]))
    found = library.c_void_p()
    for arguments in ((None, policy, library.byref(spec)), (warden.handle, None, library.byref(spec)), (warden.handle, policy, None)):
        error = LIBRARY.error()
        equal(call(*arguments, library.byref(found), library.byref(error)), -22, "EINVAL")
        check(b"NULL" in error.text, f"the text: {error.text}")
    wild = library.Report(size=0x5A5A5A5A5A5A5A5A)
    equal(LIBRARY.c.cbx_run(warden.handle, policy, library.byref(spec), library.byref(wild), None), -22, "a wild size")
    for name, value in (("output_mode", library.TO_FD), ("input_mode", 1)):
        try:
            warden.run(policy, ["true"], **{name: value, name.replace("mode", "fd"): 9999})
            raise Failed("a bad descriptor is taken")
        except library.CallboxError as error:
            equal(error.where, name.replace("mode", "fd"), str(error))
    warden.close()


# ---- What one call can see of another ----------------------------------------------------------


@harness.for_people("nothing of one call is there in the next")
def leaks(user):
    """Whatever a box can be left with: files, SysV and POSIX objects, keys, processes, the hostname."""
    leave = (
        "echo leak >/tmp/leak; echo leak >/dev/shm/leak; mkdir -p /tmp/d; (setsid sleep 1000 &); "
        "python3 -c 'import ctypes; c = ctypes.CDLL(None); print(c.shmget(4711, 4096, 0o1666), c.semget(4711, 1, 0o1666), c.msgget(4711, 0o1666))'; "
        "echo started"
    )
    look = (
        "ls -A /tmp /dev/shm | grep -v ':$' | grep -v '^$'; "
        "python3 -c 'import ctypes; c = ctypes.CDLL(None); print(c.shmget(4711, 4096, 0), c.semget(4711, 1, 0), c.msgget(4711, 0))'; "
        "python3 -c 'import os; print(sum(p.isdigit() for p in os.listdir(\"/proc\")))'"
    )
    with SharedWarden(user=user) as warden:
        before = warden.run("sh", "-c", look, user=user).out
        for _ in range(6):
            check(b"started" in warden.run("sh", "-c", leave, user=user).out, "the call that leaves things")
            equal(warden.run("sh", "-c", look, user=user).out, before, "what the next one finds")


def children(pid):
    return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def descendants(pid):
    found, todo = [], [pid]
    while todo:
        parent = todo.pop()
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{parent}/task"):
                children = pathlib.Path(f"/proc/{parent}/task/{task}/children").read_text().split()
                found += map(int, children)
                todo += map(int, children)
    return found


def memory_has(pid, needles):
    """Which of these are in the memory of a process."""
    found = set()
    try:
        maps = pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines()
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            for line in maps:
                if "[v" in line or " r" not in line:
                    continue
                start, end = (int(n, 16) for n in line.split()[0].split("-"))
                try:
                    memory.seek(start)
                    data = memory.read(end - start)
                except (OSError, OverflowError, ValueError):
                    continue
                found |= {n for n in needles if n in data}
    except OSError:
        pass
    return found


@harness.case("no init holds anything of another call in its memory")
def memory():
    if not harness.ROOT:
        return  # an ordinary user cannot look into a box at all
    secrets = {kind: f"secret-{kind}-{random.getrandbits(64):x}" for kind in ("argument", "variable", "input", "output")}
    needles = {text.encode() for text in secrets.values()}
    policy = LIBRARY.policy()
    warden = own_warden()
    call = warden.start(
        policy, ["sh", "-c", "read line; echo $line; sleep 1000", secrets["argument"]],
        environment=[f"SECRET={secrets['variable']}"], input=f"{secrets['input']}\n".encode() + secrets["output"].encode(),
        output_mode=library.EVENTS,
    )  # fmt: skip
    select.select([call], [], [], 20 * SLOW)
    check(secrets["input"].encode() in call.step()[1], "the secrets are there")
    for _ in range(3):  # boxes that are made while the warden knows them
        warden.run(policy, ["true"])
    other = warden.start(policy, ["sleep", "1000"])
    check(memory_has(warden.pid, needles), "the warden itself does not hold them: this look finds nothing")
    holders, looked = {}, 0
    for pid in descendants(warden.pid):
        name = ""
        with contextlib.suppress(OSError):  # it may have gone meanwhile
            name = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
        if name.startswith("callbox"):
            looked += 1
            held = memory_has(pid, needles)
            if held:
                holders[pid] = (name, held)
    check(looked >= 4, f"only {looked} processes were looked at")
    # Its own init has its own arguments and variables, in the page that it shares with the warden.
    own = [pid for pid, (_, held) in holders.items() if held <= {secrets["argument"].encode(), secrets["variable"].encode()}]
    check(len(own) <= 1 and len(holders) == len(own), f"held by {holders}")
    for one in (call, other):
        one.kill()
        one.free()
    warden.close()


@harness.for_people("a box that was prepared for a directory which is not there any more is not used")
def replaced(user):
    with SharedWarden(user=user) as warden:
        workspace = SCRATCH.directory(user) / "work"
        for number in range(6):
            workspace.mkdir()
            (workspace / "which").write_text(f"{number}\n")
            for path in (workspace, workspace / "which"):
                SCRATCH.own(path, user)
            for _ in range(2):
                result = warden.run("cat", str(workspace / "which"), options=["--workspace", str(workspace)], user=user)
                equal(result.out, f"{number}\n".encode(), f"what the box shows: {result.err}")
            workspace.rename(workspace.with_name(f"old{number}"))
        result = warden.run("true", options=["--workspace", str(workspace)], user=user)
        equal(result.code, 125, "a workspace that is gone")
        check(b"does not exist" in result.err, f"the text: {result.err}")


@harness.for_people("a protected name that comes to be while a box waits is protected in it")
def protected_later(user):
    with SharedWarden(user=user) as warden:
        workspace = SCRATCH.directory(user)
        options = ["-q", "--workspace", str(workspace)]
        equal(warden.run("true", options=options, user=user).code, 0, "a first call")
        (workspace / ".envrc").write_text("safe\n")
        SCRATCH.own(workspace / ".envrc", user)
        warden.run("sh", "-c", f"echo evil >>{workspace}/.envrc", options=options, user=user)
        equal((workspace / ".envrc").read_text(), "safe\n", "the file")


# ---- Nonsense ----------------------------------------------------------------------------------


def hello(path):
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    peer.connect(path)
    peer.send(struct.pack("=IIQQ", 1, 0, 8, 1))
    peer.settimeout(20 * SLOW)
    check(peer.recv(1000), "no answer to a greeting")
    return peer


@harness.case("clients that talk nonsense harm only themselves")
def nonsense():
    rng = random.Random(3)
    with SharedWarden() as warden:
        client = LIBRARY.warden(socket=warden.path)
        policy = LIBRARY.policy()
        busy = client.start(policy, ["sh", "-c", "echo up; sleep 1000"], output_mode=library.EVENTS)
        select.select([busy], [], [], 20 * SLOW)
        for number in range(300):
            peer = hello(warden.path) if number % 3 else socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with peer:
                if not number % 3:
                    peer.connect(warden.path)
                for _ in range(rng.randint(1, 4)):
                    length = rng.choice([0, 1, 8, 16, 100, 5000])
                    body = rng.randbytes(length) if rng.random() < 0.5 else struct.pack(f"={length // 8}Q", *[rng.choice([0, 1, 2, 8, 2**32, 2**64 - 1]) for _ in range(length // 8)])
                    claimed = len(body) if rng.random() < 0.7 else rng.choice([0, 2**63, len(body) + 1, 2**20])
                    header = struct.pack("=IIQ", rng.choice(list(range(15)) + [2**31]), rng.choice([0, 0, 1, 7]), claimed)
                    fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(rng.randint(0, 3))]
                    if rng.random() < 0.3:
                        fds.append(os.memfd_create("nonsense"))
                        os.write(fds[-1], body)
                    try:
                        peer.sendmsg([header + (b"" if rng.random() < 0.1 else body)], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])
                    except OSError:
                        pass  # it has been turned away
                    for fd in fds:
                        os.close(fd)
        equal(client.run(policy, ["echo", "fine"])["output"], b"fine\n", "another client")
        equal(busy.step()[1] or b"up\n", b"up\n", "the call that was running")
        busy.kill()
        equal(busy.wait()["reason"], "cancelled", "its end")
        busy.free()
        client.close()
        count = len(os.listdir(f"/proc/{warden.process.pid}/fd"))
        check(count < 120, f"{count} descriptors are open")
        equal(warden.process.poll(), None, "the warden")


def number(*values):
    return struct.pack(f"={len(values)}Q", *values)


def text(value):
    return number(2**64 - 1) if value is None else number(len(value)) + value + b"\0"


class Wire:
    """A client that says what it likes: the messages of src/warden/wire.h."""

    POLICY, START, KILL, REPORT = 2, 5, 6, 11

    def __init__(self, path):
        self.connection = hello(path)
        policy = number(1) + text(b"{}") + text(b"/") + number(0) + number(0) + number(0) + number(0) + number(0) + number(0)
        self.say(self.connection, self.POLICY, policy)

    def say(self, to, kind, body, fds=()):
        with contextlib.suppress(BrokenPipeError):  # who said nonsense before is not listened to
            to.sendmsg([struct.pack("=IIQ", kind, 0, len(body)) + body], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])

    def start(self, line, again, *argv, fds=(), mode=library.CAPTURE):
        words = number(len(argv)) + b"".join(text(word) for word in argv)
        body = number(line, int(again)) + number(1) + text(None) + words + number(0) + text(None) + number(0) + text(b"") + number(mode, 0, 0, 0)
        body += number(*[0] * 11) + number(0, 0, 0, 0)
        self.say(self.connection, self.START, body, fds)

    def open(self, line, *argv, **more):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(20 * SLOW)
        with theirs:
            self.start(line, False, *argv, fds=[theirs.fileno()], **more)
        return ours

    def said(self, peer):
        """The kind of the next message, or None at the end."""
        try:
            data = peer.recv(100000)
        except ConnectionResetError:  # it left something unread
            data = b""
        return struct.unpack("=I", data[:4])[0] if data else None


@harness.case("a line serves one call after the other, and nonsense on it ends what said it")
def lines():
    with SharedWarden() as warden:
        peer = Wire(warden.path)
        line = peer.open(3, b"/bin/true")
        equal(peer.said(line), Wire.REPORT, "the first answer on a line")
        for _ in range(5):
            peer.start(3, True, b"/bin/true")
            equal(peer.said(line), Wire.REPORT, "the next answer")
        own = peer.open(0, b"/bin/true")
        equal((peer.said(own), peer.said(own)), (Wire.REPORT, None), "a socket of the call's own")
        events = peer.open(6, b"/bin/echo", b"x", mode=library.EVENTS)
        equal(peer.said(events), Wire.REPORT, "a line for a call with events, which is refused before it says any")
        fresh = peer.open(3, b"/bin/true")  # in place of the first
        equal((peer.said(line), peer.said(fresh)), (None, Wire.REPORT), "a line that was opened anew")

        peer.say(fresh, Wire.KILL, b"")  # there is nothing to be killed
        equal(peer.said(fresh), None, "a line on which something was said between calls")
        equal(warden.run("echo", "fine").out, b"fine\n", "another client")
        for number_of_none in (5, 3):  # never opened, and closed: whoever has its other end sees that
            peer.start(number_of_none, True, b"/bin/true")
        own = peer.open(0, b"/bin/true")
        equal(peer.said(own), Wire.REPORT, "the connection after calls on lines that are not there")
        spoilt = {
            "a line that is in use": lambda: [peer.open(4, b"/bin/sleep", b"1000"), peer.start(4, True, b"/bin/true")],
            "one in use, with a socket": lambda: [peer.open(4, b"/bin/sleep", b"1000"), peer.open(4, b"/bin/true")],
            "no number of one": lambda: peer.start(0, True, b"/bin/true"),
            "a number too high": lambda: peer.open(9, b"/bin/true"),
        }
        counts = []
        for _ in range(12):
            for title, spoil in spoilt.items():
                kept = spoil()
                equal(peer.said(peer.connection), None, title)
                del kept
                peer = Wire(warden.path)
            counts.append(len(os.listdir(f"/proc/{warden.process.pid}/fd")))
        # Meanwhile boxes are made ahead, which hold some.
        check(counts[-1] < counts[0] + 40 + 16 * 4, f"so many descriptors are open: {counts}")
        equal(warden.run("echo", "fine").out, b"fine\n", "another client")


def own_sockets():
    paths = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
    return sorted(os.readlink(path) for path in paths if os.path.lexists(path) and os.readlink(path).startswith("socket:"))


@harness.case("calls one after the other make no sockets, and outlive their warden", alone=True)
def lines_of_library():
    warden, policy = LIBRARY.warden(program=CALLBOX), LIBRARY.policy()
    warden.run(policy, ["true"])
    before = own_sockets()
    for n in range(20):
        equal(warden.run(policy, ["echo", str(n)])["output"], f"{n}\n".encode(), "the output")
    equal(own_sockets(), before, "the sockets of this process")
    other = warden.start(policy, ["sh", "-c", "read line; echo $line"], input=b"here\n")
    for size in (10000, 20000, 100000):  # on a line, too large for one, in a file
        equal(len(warden.run(policy, ["sh", "-c", 'printf %s "$1"', "sh", "x" * size])["output"]), size, "a long argument")
    equal(warden.run(policy, ["true"] + ["x"] * 300000)["reason"], "setup", "more arguments than a warden reads")
    equal(warden.run(policy, ["echo", "next"])["output"], b"next\n", "the call after it")
    equal(other.wait()["output"], b"here\n", "a call that was under way")
    other.free()
    for _ in range(3):
        pid = warden.pid
        os.kill(pid, signal.SIGKILL)
        check(harness.wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 10 * SLOW), "the warden is still there")
        equal(warden.run(policy, ["echo", "again"])["output"], b"again\n", "a call after the warden's death")
    with concurrent.futures.ThreadPoolExecutor(12) as threads:  # more than there are lines
        reports = list(threads.map(lambda n: warden.run(policy, ["echo", str(n)])["output"], range(100)))
    equal(reports, [f"{n}\n".encode() for n in range(100)], "calls of many threads")
    warden.close()


@harness.case("an agent that dies takes its calls along, and its warden")
def agent_dies():
    token = f"agent-{os.getpid()}-{random.getrandbits(32):x}"
    quoted = f"{token[:8]!r} + {token[8:]!r}"  # the agent's own command line does not hold it
    script = (
        f"import sys; sys.path.insert(0, {str(harness.REPO / 'tests')!r}); import library, time\n"
        f"l = library.Library({LIBRARY.c._name!r}); w = l.warden(program={CALLBOX!r}); p = l.policy()\n"
        f"calls = [w.start(p, ['sh', '-c', 'echo up; sleep 1000', {quoted}], output_mode=library.EVENTS) for _ in range(5)]\n"
        "import select\n"
        "for c in calls: select.select([c], [], [])\n"
        "print(w.pid, flush=True); time.sleep(1000)\n"
    )
    forking = "import os\nif os.fork() == 0: time.sleep(30); os._exit(0)\n"  # holds every socket of the agent's
    for number, extra in ((signal.SIGKILL, ""), (signal.SIGTERM, ""), (signal.SIGKILL, forking)):
        agent = subprocess.Popen([sys.executable, "-c", script.replace("print(", f"{extra}print(")], stdout=subprocess.PIPE, start_new_session=True)
        pid = int(agent.stdout.readline())
        check(harness.processes_with(token), "the calls run")
        agent.send_signal(number)
        agent.wait()
        gone = lambda: not harness.processes_with(token) and not os.path.exists(f"/proc/{pid}/maps")  # noqa: E731
        check(harness.wait_until(gone, 10 * SLOW), "something outlives the agent")
        with contextlib.suppress(ProcessLookupError):
            os.killpg(agent.pid, signal.SIGKILL)
        agent.stdout.close()


if __name__ == "__main__":
    try:
        sys.exit(harness.main())
    finally:
        SCRATCH.remove()
