#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What goes in and out of a box: streams, capture, truncation, stdin, terminals and signals."""

import base64
import contextlib
import errno
import fcntl
import hashlib
import json
import os
import pty
import random
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
import uuid

import harness
from harness import Failed, check, equal

SCRATCH = harness.Scratch()
CALLBOX = SCRATCH.install(harness.callbox_path(), "callbox")
SLACK = 4.0 * harness.SLOW
PYTHON = "/usr/bin/python3"


def box(*args, user=False, **more):
    more.setdefault("cwd", "/")
    return harness.callbox(["run", *args], user=user, binary=CALLBOX, **more)


def shell(script, user=False, program="sh", **more):
    """A script of the caller's shell, in which $CB is callbox."""
    more.setdefault("cwd", "/")
    command = [program, "-c", script]
    return harness.execute(harness.as_user(command) if user else command, env={**os.environ, "CB": CALLBOX}, **more)


def good(result, out, err=b"", code=0):
    equal((result.code, result.out), (code, out if isinstance(out, bytes) else out.encode()), f"exit code and stdout ({result.brief()})")
    if err is not None:
        equal(result.err, err, "stderr")


def data_file(data, user=False):
    path = SCRATCH.directory(user) / "data"
    path.write_bytes(data)
    path.chmod(0o644)
    return path


def printer(data):
    """A command that writes these bytes."""
    return [PYTHON, "-c", f"import os; os.write(1, bytes.fromhex('{data.hex()}'))"]


# ---- Streaming -------------------------------------------------------------------------------


@harness.for_people("stdout and stderr are streamed apart")
def apart(user):
    good(box("--", "sh", "-c", "echo out; echo err >&2", user=user), "out\n", b"err\n")
    good(box("--", "sh", "-c", "echo err >&2; exit 3", user=user), "", b"err\n", 3)


@harness.for_people("50 MB of random bytes pass unchanged")
def exact(user):
    size = (5 if os.environ.get("CALLBOX_SMOKE") else 50) * 1_000_000
    data = random.Random(3).randbytes(size)
    path = data_file(data)
    with open(path, "rb") as source:  # in as a file, out as a pipe
        result = box("--timeout", "110", "--", "cat", user=user, stdin=source, timeout=120)
    equal(result.code, 0, result.brief())
    equal(hashlib.sha256(result.out).hexdigest(), hashlib.sha256(data).hexdigest(), "the sum of stdout")
    piped = shell(f'cat {path} | "$CB" run --timeout 110 -- cat | sha256sum | cut -c 1-64', user, timeout=120)
    good(piped, hashlib.sha256(data).hexdigest() + "\n")
    target = SCRATCH.directory(user) / "copy"  # out as a file
    filed = shell(f'"$CB" run --timeout 110 --read {path} -- cat {path} > {target}', user, timeout=120)
    good(filed, "")
    check(target.read_bytes() == data, "the copy in a file differs")
    path.unlink()
    target.unlink()


@harness.for_people("output comes as it is written, not at the end")
def live(user):
    command = [CALLBOX, "run", "--", "sh", "-c", "echo first; read x; echo second"]
    process = subprocess.Popen(harness.as_user(command) if user else command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")
    try:
        ready, _, _ = select.select([process.stdout], [], [], 10 * harness.SLOW)
        check(ready, "nothing came while the program waits")
        equal(os.read(process.stdout.fileno(), 100), b"first\n", "the first line")
        process.stdin.write(b"\n")
        process.stdin.flush()
        equal(process.stdout.read(), b"second\n", "the second line")
        equal(process.wait(10), 0, "exit code")
    finally:
        harness.end(process)
        process.stdin.close()
        process.stdout.close()


@harness.for_people("a reader that goes away ends the program")
def reader_gone(user):
    result = shell('"$CB" run -q --timeout 25 -- yes | head -n 1', user, timeout=30)
    good(result, "y\n", None)
    check(result.seconds < 10 * harness.SLOW, f"back after {result.seconds:.1f} s")
    result = shell('("$CB" run -q --timeout 25 -- yes; echo $? >&2) | head -n 1', user, timeout=30)
    equal((result.out, result.err), (b"y\n", b"141\n"), "exit code as of SIGPIPE")
    result = shell('("$CB" run -q -- sh -c "trap \'\' PIPE; while echo y; do :; done 2>/dev/null; exit 9"; echo $? >&2) | head -n 1', user)
    equal((result.out, result.err), (b"y\n", b"9\n"), "a program that handles it")


@harness.for_people("closed descriptors of the caller do no harm")
def closed(user):
    result = shell('"$CB" run -- cat <&-; echo $?', user)
    good(result, "0\n", None)
    result = shell('"$CB" run -- sh -c "echo out; echo err >&2" >&-; echo "code $?"', user)
    check(result.out.startswith(b"code "), lambda: f"stdout {result.out!r}")
    check(b"out" not in result.err, lambda: f"stdout went to stderr: {result.err!r}")
    result = shell('"$CB" run -- sh -c "echo out; echo err >&2" 2>&-; echo "code $?"', user)
    check(b"out\n" in result.out and b"err" not in result.out, lambda: f"stdout {result.out!r}")
    result = shell('"$CB" run -- sh -c "cat; echo out; echo err >&2" <&- >&- 2>&-; echo "code $?"', user)
    check(result.out.startswith(b"code "), lambda: f"stdout {result.out!r}")
    result = shell('"$CB" run --json -- sh -c "cat; echo out; echo err >&2" <&- 2>&-', user)
    report = harness.parse_report(result.out)
    equal((report["stdout"]["text"], report["stderr"]["text"], report["code"]), ("out\n", "err\n", 0), "captured")
    # no descriptor of the caller is in the box, whatever its number
    result = shell('"$CB" run -- sh -c "ls /proc/self/fd | wc -l" 5</etc/hostname 77</etc/hostname', user)
    good(result, "4\n")


@harness.for_people("full targets: an error of the caller's disk does not hang it")
def full(user):
    result = shell('"$CB" run -q --timeout 20 -- yes > /dev/full; echo "code $?"', user, timeout=25)
    check(result.out.startswith(b"code ") and result.seconds < 15 * harness.SLOW, lambda: f"{result.out!r} after {result.seconds:.1f} s")
    for script, options, code in (("echo x", "", 125), ("echo x; exit 3", "", 3), ("exit 3", "--json", 125)):
        result = shell(f'"$CB" run {options} -- sh -c "{script}; :" > /dev/full; echo "code $?"', user, timeout=25)
        equal(result.out, f"code {code}\n".encode(), f"{script} {options}")
        check(b"could not be written" in result.err or b"cannot write" in result.err, result.brief)


@harness.case("a caller that does not read does not make it miss the deadline")
def not_reading():
    for options in ((), ("--report", str(SCRATCH.path / "unread.json"))):
        process = subprocess.Popen([CALLBOX, "run", "-q", "--timeout", "0.7", *options, "--", "yes"], stdout=subprocess.PIPE, cwd="/")
        try:
            began = time.monotonic()
            equal(process.wait(0.7 + 2 * SLACK), 124, "exit code")
            check(time.monotonic() - began < 0.7 + SLACK, "late")
            equal(os.read(process.stdout.fileno(), 4), b"y\ny\n", "what lay in the pipe")
        finally:
            harness.end(process)
            process.stdout.close()
    report = json.loads((SCRATCH.path / "unread.json").read_text())
    equal(report["reason"], "timeout", "reason")
    check(any("did not read" in w for w in report["warnings"]), lambda: f"warnings {report['warnings']}")


@harness.case("a call whose program has ended can be ended, though nobody reads its output")
def not_reading_the_end():
    for pause in (0.3, 2.5):  # after the second there is nothing left that a warden looks at
        process = subprocess.Popen([CALLBOX, "run", "--", "head", "-c", "100000", "/dev/zero"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/")
        try:
            time.sleep(pause * harness.SLOW)
            process.terminate()
            equal(process.wait(20 * SLACK), 0, "exit code")
            check(b"did not read" in process.stderr.read(), "no warning")
        finally:
            harness.end(process)
            process.stdout.close()
            process.stderr.close()


@harness.case("a slow reader gets every byte of a program that ended")
def slow_reader():
    result = shell('"$CB" run -- seq 200000 | (sleep 1; sha256sum)')
    wanted = hashlib.sha256("".join(f"{i}\n" for i in range(1, 200001)).encode()).hexdigest()
    good(result, wanted + "  -\n")


# ---- Capture ---------------------------------------------------------------------------------


@harness.for_people("capture keeps head and tail and counts the rest")
def capture(user):
    data = bytes(random.Random(4).choices(b"abcdefghijklmnopqrstuvwxyz", k=300_001))
    path = data_file(data)
    for size in (0, 1, 2, 3, 7, 1000, 4096, 99_999, 300_000, 300_001, 300_002, 1_000_000):
        result = box("--json", "--capture", str(size), "--read", path, "--", "cat", path, user=user)
        stream = result.report["stdout"]
        head, tail = size - size // 2, size // 2
        if size >= len(data):
            wanted, omitted = data.decode(), 0
        else:
            omitted = len(data) - size
            kept = data[:head], data[len(data) - tail:] if tail else b""
            wanted = f"{kept[0].decode()}\n[... {omitted} bytes omitted ...]\n{kept[1].decode()}"
        equal((stream["bytes"], stream["truncated"], stream["omitted"]), (len(data), omitted > 0, omitted), f"numbers at {size}")
        check(stream["text"] == wanted, f"text at {size} is {stream['text'][:80]!r}..., not {wanted[:80]!r}...")
        check("base64" not in stream, "base64 of plain text")
        equal(result.report["usage"]["bytes_out"], len(data), "bytes_out")


@harness.for_people("capture keeps 100 KiB of each stream by default")
def capture_default(user):
    for size, omitted in ((102_400, 0), (102_401, 1), (1_000_000, 897_600)):
        result = box("--json", "--", "sh", "-c", f"head -c {size} /dev/zero | tr '\\0' a; head -c {size} /dev/zero | tr '\\0' b >&2", user=user)
        for name, letter in (("stdout", "a"), ("stderr", "b")):
            stream = result.report[name]
            equal((stream["bytes"], stream["omitted"], stream["truncated"]), (size, omitted, omitted > 0), f"{name} of {size}")
            equal(stream["text"].split("\n")[0].count(letter), 51_200 if omitted else size, "the head")


@harness.for_people("captured bytes that are not UTF-8 come as base64 as well")
def invalid(user):
    cases = [(b"\xff\xfe", True), (b"a\x00b", True), ("grüße €𝄞\n".encode(), False), ("é".encode()[:1], True),
             (b"\xed\xa0\x80", True), (b"\xf4\x90\x80\x80", True), (b"\xc0\xaf", True), (b"\xe2\x82", True),
             (b"\x1b[31mred\x1b[0m \x07\x7f", False), (b'"\\/\b\f\r\t', False), ("\u2028\ufeff\uffff".encode(), False), (b"", False)]
    for data, encoded in cases:
        stream = box("--json", "--", *printer(data), user=user).report["stdout"]
        equal(stream["bytes"], len(data), f"bytes of {data!r}")
        equal("base64" in stream, encoded, f"base64 of {data!r} ({stream})")
        if encoded:
            equal(base64.b64decode(stream["base64"], validate=True), data, "base64")
            check("\ufffd" in stream["text"], lambda: f"text {stream['text']!r}")
        else:
            equal(stream["text"], data.decode(), "text")
    data = bytes(range(256)) * 40
    stream = box("--json", "--", *printer(data), user=user).report["stdout"]
    equal(base64.b64decode(stream["base64"]), data, "all bytes")
    # a cut through a character: head and tail are told byte for byte
    data = "€".encode() * 100
    stream = box("--json", "--capture", "100", "--", *printer(data), user=user).report["stdout"]
    equal(stream["omitted"], 200, "omitted")
    equal(base64.b64decode(stream["base64"]), data[:50] + data[-50:], "head and tail")


@harness.for_people("--report writes the report to a file while output is streamed")
def report_file(user):
    path = SCRATCH.directory(user) / "report.json"
    result = box("--report", path, "--", "sh", "-c", "echo out; echo err >&2; exit 4", user=user)
    good(result, "out\n", b"err\n", 4)
    report = harness.parse_report(path.read_bytes())
    equal((report["reason"], report["code"], report["usage"]["bytes_out"]), ("exited", 4, 8), "the report")
    result = box("--report", path, "--memory", "5X", "--", "true", user=user)
    equal(result.code, 125, result.brief())
    equal(harness.parse_report(path.read_bytes())["error"]["where"], "--memory", "the report of a refusal")
    both = box("--json", "--report", path, "--", "echo", "x", user=user)
    equal(both.report, harness.parse_report(path.read_bytes()), "both reports")
    good(shell(f'"$CB" run --report /dev/fd/3 -- echo out 3> {path}', user), "out\n")
    equal(harness.parse_report(path.read_bytes())["reason"], "exited", "a report to a descriptor")


@harness.for_people("-q silences callbox, not the program")
def quiet(user):
    for command, code in ((["sh", "-c", "echo e >&2; kill -9 $$"], 137), (["sh", "-c", "echo e >&2; exit 3"], 3)):
        result = box("-q", "--", *command, user=user)
        equal((result.code, result.err), (code, b"e\n"), "with -q")
    result = box("--env", "LD_PRELOAD=", "--", "true", user=user)
    check(b"LD_PRELOAD" in result.err, lambda: f"no warning: {result.err!r}")
    equal(box("--quiet", "--env", "LD_PRELOAD=", "--", "true", user=user).err, b"", "with --quiet")


@harness.for_people("--sanitize lets nothing through that steers a terminal")
def sanitize(user):
    data = b"a\x1b[31m\x07\x08\r\x7f\tb\n\xc2\x9b2J \xc2\xa9 \xe2\x82\xac\n"
    result = box("--sanitize", "--", *printer(data), user=user)
    equal(len(result.out), len(data), "length")
    equal(result.out, b"a?[31m????\tb\n??2J \xc2\xa9 \xe2\x82\xac\n", "sanitized")
    equal(box("--", *printer(data), user=user).out, data, "without it")
    kept = box("--json", "--sanitize", "--", *printer(data), user=user).report["stdout"]
    equal((kept["text"], kept["bytes"], kept["truncated"]), (result.out.decode(), len(data), False), "what a report keeps")
    equal(box("--sanitize", "--", *printer(b"a\xc2"), user=user).out, b"a?", "half a character at the end")
    equal(box("--json", "--sanitize", "--", *printer(b"a\xc2"), user=user).report["stdout"]["bytes"], 2, "bytes with half a character")
    split = box("--sanitize", "--", PYTHON, "-c", "import os, time\nfor b in b'x\\xc2\\x9b\\xe2\\x82\\xac\\x1by': os.write(1, bytes([b])); time.sleep(0.02)", user=user)
    equal(split.out, b"x??\xe2\x82\xac?y", "byte by byte")
    tricks = "a\u202eb\u2028c\u2066d\u200be\ufefff\U000e0041g\u200dh\u061ci \u0601 \u20ac\u00adj"
    shown = "a???b???c???d???e???f????g\u200dh??i \u0601 \u20ac??j"
    equal(box("--sanitize", "--", *printer(tricks.encode()), user=user).out.decode(), shown, "what is not seen")
    slow = f"import os, time\nfor b in {tricks.encode()!r}: os.write(1, bytes([b])); time.sleep(0.01)"
    equal(box("--sanitize", "--", PYTHON, "-c", slow, user=user).out.decode(), shown, "what is not seen, byte by byte")
    equal(box("--sanitize", "--", *printer(b"a\xe2\x80"), user=user).out, b"a??", "two thirds of a character at the end")
    equal(box("--sanitize", "--", *printer(b"caf\xe9"), user=user).out, b"caf\xe9", "what is no UTF-8")
    big = box("--sanitize", "--", "sh", "-c", "yes 'abc\x1b' | head -c 400000", user=user)
    check(b"\x1b" not in big.out and len(big.out) == 400000, "a big output is not clean or not whole")


# ---- stdin -----------------------------------------------------------------------------------


@harness.for_people("stdin is passed on from a file, a pipe and a socket")
def stdin_kinds(user):
    data = random.Random(5).randbytes(300_000)
    wanted = hashlib.sha256(data).hexdigest() + "  -\n"
    path = data_file(data)
    with open(path, "rb") as source:
        good(box("--", "sha256sum", user=user, stdin=source), wanted)
        source.seek(100_000)  # from where the caller's descriptor stands
        good(box("--", "wc", "-c", user=user, stdin=source), "200000\n")
    good(box("--", "sha256sum", user=user, data=data), wanted)
    ours, theirs = socket.socketpair()
    sender = threading.Thread(target=lambda: (ours.sendall(data), ours.shutdown(socket.SHUT_WR)))
    sender.start()
    good(box("--", "sha256sum", user=user, stdin=theirs), wanted)
    sender.join()
    ours.close()
    theirs.close()
    result = box("--json", "--", "wc", "-c", user=user, data=data)
    equal((result.stdout, result.report["usage"]["bytes_in"]), ("300000\n", 300_000), "bytes_in")
    good(box("--", "cat", user=user, data=b""), "")
    good(box("--", "cat", user=user, stdin=subprocess.DEVNULL), "")


@harness.for_people("input that was not read stays with the caller: a file")
def unread_file(user):
    path = data_file(b"".join(b"line %d\n" % i for i in range(1, 3001)))
    good(shell(f'("$CB" run -- head -c 5; cat | head -c 9) < {path}', user), "line 1\nline 2\n")
    good(shell(f'("$CB" run -- true; wc -l) < {path}', user), "3000\n")
    good(shell(f'("$CB" run -- sh -c "read a; read b; echo \\$b"; read c; echo $c) < {path}', user), "line 2\nline 3\n")
    good(shell(f'n=0; while read -r l; do "$CB" run -- true; n=$((n+1)); done < {data_file(b"x" + chr(10).encode() + b"y" + chr(10).encode() + b"z" + chr(10).encode())}; echo $n', user), "3\n")
    big = data_file(bytes(1_000_000))
    good(shell(f'("$CB" run -- head -c 123456 | wc -c; cat | wc -c) < {big}', user), "123456\n876544\n")


@harness.for_people("input that was not read stays with the caller: a pipe")
def unread_pipe(user):
    lines = "printf 'line %d\\n' $(seq 3000)"
    good(shell(f'{lines} | ("$CB" run -- head -c 5; head -c 9)', user, "bash"), "line 1\nline 2\n", None)
    good(shell(f'{lines} | ("$CB" run -- true; wc -l)', user, "bash"), "3000\n", None)
    good(shell('seq 5 | while read -r l; do "$CB" run -- true; echo $l; done', user), "1\n2\n3\n4\n5\n")
    good(shell('head -c 1000000 /dev/zero | ("$CB" run -- head -c 123456 | wc -c; cat | wc -c)', user), "123456\n876544\n", None)
    good(shell('seq 3 | ("$CB" run -- sh -c "read x; echo got \\$x"; "$CB" run -- sh -c "read x; echo got \\$x"; cat)', user), "got 1\ngot 2\n3\n")


@harness.for_people("input that was not read stays with the caller: a socket")
def unread_socket(user):
    ours, theirs = socket.socketpair()
    ours.sendall(b"first second third")
    ours.shutdown(socket.SHUT_WR)
    good(box("--", "head", "-c", "6", user=user, stdin=theirs), "first ")
    equal(theirs.recv(100), b"second third", "what is left")
    ours.close()
    theirs.close()


@harness.for_people("a program that ends does not wait for input that never comes")
def open_pipe(user):
    reader, writer = os.pipe()
    try:
        result = box("--", "echo", "done", user=user, stdin=reader)
        good(result, "done\n")
        check(result.seconds < SLACK, f"back after {result.seconds:.1f} s")
        late = box("--json", "--timeout", "0.4", "--", "cat", user=user, stdin=reader)
        equal(late.reason, "timeout", late.brief())
    finally:
        os.close(reader)
        os.close(writer)


@harness.for_people("--stdin takes a file, or nothing")
def stdin_option(user):
    path = data_file(b"from the file\n")
    good(box("--stdin", path, "--", "cat", user=user, data=b"from the pipe"), "from the file\n")
    good(box("--stdin", "none", "--", "cat", user=user, data=b"from the pipe"), "")
    good(shell(f'("$CB" run --stdin none -- cat; cat) < {path}', user), "from the file\n")
    spec = path.with_name("spec")
    for stdin, out in (({"text": "from the spec €"}, "from the spec €"), ({"text": ""}, ""), (None, ""), ({"file": str(path)}, "from the file\n")):
        spec.write_text(json.dumps({"argv": ["cat"], "stdin": stdin}))
        good(box("--spec", spec, user=user, data=b"from the pipe"), out)
        other = data_file(b"from the option\n")
        good(box("--spec", spec, "--stdin", other, user=user, data=b"from the pipe"), "from the option\n")
        good(box("--spec", spec, "--stdin", "none", user=user, data=b"from the pipe"), "")
    spec.write_text(json.dumps({"argv": ["cat"], "stdin": {"file": "none"}}))  # a file's name, no word
    check(b"stdin.file: cannot open none" in box("--spec", spec, user=user).err, "a file that is called none")
    text = "x" * 500_000
    spec.write_text(json.dumps({"argv": ["wc", "-c"], "stdin": {"text": text}}))
    good(box("--spec", spec, user=user), "500000\n")


@harness.for_people("a program that does not read its input does not block")
def ignored_input(user):
    result = box("--", "sleep", "0.1", user=user, data=bytes(2_000_000))
    good(result, "")


# ---- Terminals -------------------------------------------------------------------------------


class Terminal:
    """callbox in a terminal of our own, as if somebody sat there."""

    def __init__(self, args, user=False, rows=24, columns=80):
        command = [CALLBOX, "run", *args]
        self.master, slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.master)

        def take():
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(harness.as_user(command) if user else command, stdin=slave, stdout=slave, stderr=slave,
                                        cwd="/", start_new_session=True, preexec_fn=take)
        os.close(slave)
        self.text = b""

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, data):
        os.write(self.master, data)

    def until(self, pattern, seconds=15):
        """Read until the pattern is there; a failure shows what came instead."""
        deadline = time.monotonic() + seconds * harness.SLOW
        while not re.search(pattern, self.text):
            ready, _, _ = select.select([self.master], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise Failed(f"{pattern!r} did not come, only {self.text[-300:]!r}")
            try:
                data = os.read(self.master, 65536)
            except OSError as error:
                if error.errno != errno.EIO:
                    raise
                data = b""
            if not data:
                check(re.search(pattern, self.text), lambda: f"{pattern!r} did not come before the end, only {self.text[-300:]!r}")
                return
            self.text += data

    def end(self, seconds=15):
        """The exit code."""
        deadline = time.monotonic() + seconds * harness.SLOW
        while self.process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                if select.select([self.master], [], [], 0.02)[0]:
                    self.text += os.read(self.master, 65536)
        check(self.process.poll() is not None, lambda: f"it does not end; it wrote {self.text[-300:]!r}")
        with contextlib.suppress(OSError):
            while select.select([self.master], [], [], 0)[0]:
                data = os.read(self.master, 65536)
                if not data:
                    break
                self.text += data
        code = self.process.returncode
        return code if code >= 0 else 128 - code

    def __enter__(self):
        return self

    def __exit__(self, *_):
        harness.end(self.process)
        os.close(self.master)


@harness.for_people("a terminal on stdin is never passed on without -t")
def terminal_not_passed(user):
    with Terminal(["--", "sh", "-c", "test -t 0 && echo tty0; test -t 1 && echo tty1; cat; echo end; tty"], user) as terminal:
        terminal.until(rb"not a tty")
        equal(terminal.end(), 1, "exit code")
        check(b"tty0" not in terminal.text and b"tty1" not in terminal.text, lambda: f"it saw a terminal: {terminal.text!r}")
    with Terminal(["--", "sh", "-c", "(exec 3<>/dev/tty) && echo reached || echo none"], user) as terminal:
        terminal.until(rb"none|reached")
        check(b"reached" not in terminal.text, "the caller's terminal was reached")
        terminal.end()


@harness.for_people("-t gives a terminal of its own")
def tty(user):
    with Terminal(["-t", "--", "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && echo yes; tty; stty size; exec 3<>/dev/tty && echo reached; exit 7"], user, 33, 101) as terminal:
        terminal.until(rb"reached")
        equal(terminal.end(), 7, f"exit code ({terminal.text!r})")
        equal(terminal.text.replace(b"\r\n", b"\n"), b"yes\n/dev/pts/0\n33 101\nreached\n", "what came")
        equal(termios.tcgetattr(terminal.master), terminal.before, "the terminal's settings afterwards")


@harness.for_people("-t: what is typed reaches the program, echoed by its terminal")
def typed(user):
    with Terminal(["-t", "--", "sh", "-c", "echo ready; read x; echo got $x; cat; echo end"], user) as terminal:
        terminal.until(rb"ready\r\n")
        terminal.type(b"hello\n")
        terminal.until(rb"hello\r\ngot hello\r\n")
        terminal.type(b"line\n\x04")
        terminal.until(rb"line\r\nline\r\nend\r\n")
        equal(terminal.end(), 0, "exit code")


@harness.for_people("-t: the size of the window is passed on, and SIGWINCH with it")
def window(user):
    script = ("import signal, os\ndef tell(*_): os.write(1, b'size %d %d\\n' % os.get_terminal_size())\n"
              "signal.signal(signal.SIGWINCH, tell)\ntell()\nwhile True: signal.pause()")
    with Terminal(["-t", "--", PYTHON, "-c", script], user, 24, 80) as terminal:
        terminal.until(rb"size 80 24\r\n")
        terminal.resize(50, 132)
        terminal.until(rb"size 132 50\r\n")
        terminal.type(b"\x03")
        code = terminal.end()
        check(code in (1, 130), f"exit code {code}")


@harness.for_people("-t: control-C and control-D go to the program")
def control(user):
    with Terminal(["-t", "--", "sh", "-c", "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.02; done"], user) as terminal:
        terminal.until(rb"ready")
        terminal.type(b"\x03")
        terminal.until(rb"caught")
        equal(terminal.end(), 5, "exit code")
    with Terminal(["-t", "-q", "--", "sh", "-c", "echo ready; exec sleep 30"], user) as terminal:
        terminal.until(rb"ready")
        terminal.type(b"\x03")
        equal(terminal.end(), 130, "exit code as of SIGINT")
    with Terminal(["-t", "--", "sh", "-c", "echo ready; exec cat"], user) as terminal:
        terminal.until(rb"ready")
        terminal.type(b"\x04")
        equal(terminal.end(), 0, "exit code at the end of input")


@harness.for_people("-t: a shell with jobs works")
def job_control(user):
    with Terminal(["-t", "--env", "PS1=prompt> ", "--", "bash", "--norc", "-i"], user) as terminal:
        terminal.until(rb"prompt> ")
        check(b"no job control" not in terminal.text, lambda: f"it says {terminal.text!r}")
        terminal.type(b"sleep 50 &\n")
        terminal.until(rb"\[1\] \d+")
        terminal.type(b"kill %1; wait; echo d''one\n")
        terminal.until(rb"done")
        terminal.type(b"exit 9\n")
        equal(terminal.end(), 9, "exit code")


@harness.for_people("-t: a timeout ends it and the terminal is as before")
def tty_timeout(user):
    with Terminal(["-t", "--timeout", "0.6", "--", "sh", "-c", "stty raw -echo; echo on; sleep 60"], user) as terminal:
        equal(terminal.end(), 124, "exit code")
        check(b"callbox: timeout" in terminal.text, lambda: f"it wrote {terminal.text!r}")
        equal(termios.tcgetattr(terminal.master), terminal.before, "the terminal's settings afterwards")


@harness.for_people("-t: there is no limit on wall time unless one is named")
def tty_no_timeout(user):
    path = SCRATCH.directory() / "call.json"
    path.write_text(json.dumps({"limits": {"wall": 3000}}))  # may only tighten: tells what the limit was
    refused = box("--spec", path, "--", "true", user=user)
    check(refused.code == 125 and b"allows 30 seconds" in refused.err, refused.brief)
    equal(box("-t", "--spec", path, "--", "true", user=user).code, 0, "exit code with -t")
    limited = box("-t", "--timeout", "20", "--spec", path, "--", "true", user=user)
    check(limited.code == 125 and b"allows 20 seconds" in limited.err, limited.brief)
    policy = path.with_name("policy.json")
    policy.write_text(json.dumps({"limits": {"wall": 0.3}}))
    equal(box("-t", "--policy", policy, "--", "sleep", "60", user=user).code, 124, "exit code with a policy's limit")


@harness.for_people("-t: a program that closes its terminal is not hung up")
def tty_closed(user):
    with Terminal(["-t", "--", "sh", "-c", "exec <&- >&- 2>&-; sleep 0.3; exit 4"], user) as terminal:
        equal(terminal.end(), 4, f"exit code ({terminal.text!r})")


@harness.for_people("-t without a terminal reads its input to the end")
def tty_from_pipe(user):
    result = box("-t", "--", "sh", "-c", "read x; echo got $x; test -t 0 && echo tty; cat", user=user, data=b"word\n", timeout=20)
    equal(result.code, 0, result.brief())
    check(b"got word\r\n" in result.out and b"tty\r\n" in result.out, lambda: f"stdout {result.out!r}")


@harness.for_people("-t: much output passes whole")
def tty_output(user):
    result = box("-t", "--", "sh", "-c", "stty -opost; seq 100000", user=user)
    equal(hashlib.sha256(result.out).hexdigest(), hashlib.sha256("".join(f"{i}\n" for i in range(1, 100001)).encode()).hexdigest(), "the sum")


# ---- Signals ---------------------------------------------------------------------------------


def start(*args, user=False, **more):
    command = [CALLBOX, "run", *args]
    more.setdefault("stdout", subprocess.PIPE)
    more.setdefault("stderr", subprocess.PIPE)
    return subprocess.Popen(harness.as_user(command) if user else command, stdin=subprocess.DEVNULL, cwd="/", **more)


def new_mark():
    """Seconds so odd that a sleep of that many is known by its command line."""
    return f"6{uuid.uuid4().int % 10**8:08d}"


def await_mark(mark, number=1):
    """Wait for the sleep itself: callbox, which carries the same words on its command line, is not yet ready for a signal."""
    check(harness.wait_until(lambda: len(harness.programs(f"sleep\0{mark}\0")) >= number, 15), "the program did not start")


def line(process, wanted):
    got = process.stdout.readline()
    equal(got, wanted, "line")


def finish(process, seconds=15):
    try:
        out, err = process.communicate(timeout=seconds * harness.SLOW)
    except subprocess.TimeoutExpired:
        harness.end(process)
        process.communicate()
        raise Failed("callbox does not end")
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    return code, out, err


@harness.for_people("signals to callbox are passed on to the program")
def signals(user):
    for name, number in (("TERM", signal.SIGTERM), ("INT", signal.SIGINT), ("HUP", signal.SIGHUP), ("QUIT", signal.SIGQUIT),
                         ("USR1", signal.SIGUSR1), ("USR2", signal.SIGUSR2)):
        process = start("--", "sh", "-c", f"trap 'echo got {name}; exit 6' {name}; echo ready; while :; do sleep 0.02; done", user=user)
        try:
            line(process, b"ready\n")
            process.send_signal(number)
            code, out, err = finish(process)
            equal((code, out), (6, f"got {name}\n".encode()), f"after SIG{name}")
            check(err in (b"", b"Quit\n", b"Hangup\n"), f"what the shell says of its command is {err!r}")
        finally:
            harness.end(process)


@harness.for_people("what a terminal sends reaches a shell and the command that it waits for")
def group_signal(user):
    for number in (signal.SIGINT, signal.SIGHUP):  # bash itself ignores SIGQUIT
        mark = new_mark()
        process = start("--timeout", "60", "--", "bash", "-c", f"for i in 1 2 3; do sleep {mark}; done; echo end", user=user)
        try:
            await_mark(mark)
            process.send_signal(number)
            code, out, _ = finish(process)
            equal((code, out), (128 + number, b""), f"after signal {number}")
        finally:
            harness.end(process)


@harness.for_people("a signal that the program does not handle ends it, and is told")
def fatal_signal(user):
    mark = new_mark()
    process = start("--json", "--", "sleep", mark, user=user)
    try:
        await_mark(mark)
        process.send_signal(signal.SIGTERM)
        code, out, _ = finish(process)
    finally:
        harness.end(process)
    report = harness.parse_report(out)
    equal((code, report["reason"], report["signal"]), (143, "signaled", "SIGTERM"), "end")


@harness.for_people("a second signal cancels a program that ignores the first")
def second_signal(user):
    mark = new_mark()
    process = start("--json", "--timeout", "60", "--", "sh", "-c", f"trap '' TERM INT; echo ready; sleep {mark}", user=user)
    try:
        await_mark(mark)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        equal(process.poll(), None, "after the first signal")
        process.send_signal(signal.SIGTERM)
        code, out, _ = finish(process)
        report = harness.parse_report(out)
        equal((code, report["reason"], report["stdout"]["text"]), (137, "cancelled", "ready\n"), "end")
    finally:
        harness.end(process)


@harness.for_people("SIGTERM cancels in the end what does not go by itself")
def term_grace(user):
    mark = new_mark()
    process = start("--json", "--timeout", "60", "--", "sh", "-c", f"trap '' TERM; sleep {mark}; true", user=user)
    try:
        await_mark(mark)
        process.send_signal(signal.SIGTERM)
        code, out, _ = finish(process, 25)
        equal((code, harness.parse_report(out)["reason"]), (137, "cancelled"), "end")
    finally:
        harness.end(process)


@harness.for_people("SIGKILL of callbox leaves nothing")
def killed(user):
    for options in ((), ("--json",), ("--net", "host")):
        mark = new_mark()
        process = start(*options, "--", "sh", "-c", f"(setsid sleep {mark} &); trap '' TERM HUP INT; sleep {mark}", user=user)
        try:
            await_mark(mark, 2)
            process.kill()
            process.wait()
            check(harness.wait_until(lambda: not harness.processes_with(mark), 10), "processes are left")
        finally:
            harness.end(process)
            process.stdout.close()
            process.stderr.close()
            harness.kill_marked(mark)


@harness.for_people("SIGSTOP and SIGCONT of callbox do no harm")
def stopped(user):
    process = start("--timeout", "30", "--", "sh", "-c", "echo ready; sleep 0.3; echo done", user=user)
    try:
        line(process, b"ready\n")
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.6)
        process.send_signal(signal.SIGCONT)
        equal(finish(process), (0, b"done\n", b""), "end")
    finally:
        harness.end(process)


@harness.for_people("signals that the caller ignores or blocks are as usual in the box")
def fresh_signals(user):
    result = shell('trap "" TERM INT HUP PIPE; "$CB" run -- grep -E "^Sig(Ign|Blk)" /proc/self/status', user)
    good(result, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n")


if __name__ == "__main__":
    try:
        sys.exit(harness.main())
    finally:
        SCRATCH.remove()
