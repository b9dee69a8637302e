#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""callbox wrap: a foreign server's bytes pass untouched, and its box goes with its client."""

import contextlib
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import harness
from harness import Skip, case, check, equal, for_people, wait_until

SCRATCH = harness.Scratch()
CALLBOX = SCRATCH.install(harness.callbox_path(), "callbox")

SKIPS = {"a server outlives the 30 seconds of other calls": "takes longer than a short run should"}

# A server as small as can be: a request a line, an answer a line; how it behaves at the end of
# its input is its first argument.
SERVER = r"""
import hashlib, json, os, signal, sys, time
mode = sys.argv[1] if len(sys.argv) > 1 else "good"
if mode == "deaf":
    time.sleep(1000)
if mode in ("stubborn", "brood"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if mode == "brood":
    for _ in range(3):
        if os.fork() == 0:
            os.setsid()
            time.sleep(1000)
if mode == "flood":
    while True:
        sys.stdout.buffer.write(b"x" * 65536)
def look(path):
    try:
        if os.path.isdir(path):
            return sorted(os.listdir(path))
        with open(path, "rb") as stream:
            return stream.read(100).decode("latin-1")
    except OSError as error:
        return type(error).__name__
for line in sys.stdin.buffer:
    request = json.loads(line)
    params = request.get("params", {})
    answer = {"echo": lambda: params["text"],
              "length": lambda: [len(line), hashlib.sha256(line).hexdigest()],
              "big": lambda: "b" * params["n"],
              "look": lambda: look(params["path"]),
              "environment": lambda: dict(os.environ),
              "complain": lambda: sys.stderr.write("complaint\n") and None,
              "exit": lambda: os._exit(params["code"])}[request["method"]]()
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": answer}) + "\n")
    sys.stdout.flush()
if mode in ("stubborn", "brood"):
    time.sleep(1000)
"""
PLACE = SCRATCH.directory(name="server")
SCRIPT = PLACE / "server.py"
SCRIPT.write_text(SERVER)


class Client:
    """A client of a wrapped server; pipes as a shell makes them, or sockets as Node makes them."""

    number = 0

    def __init__(self, *options, mode="good", user=False, sockets=False, environment=None, command=None):
        Client.number += 1
        self.token = f"wrapped-{os.getpid()}-{Client.number}"
        line = [CALLBOX, "wrap", "--read", str(PLACE), *map(str, options), "--",
                *(command or ["python3", str(SCRIPT), mode, self.token])]
        ours, theirs = zip(*(socket.socketpair() for _ in range(2))) if sockets else ((), ())
        self.process = subprocess.Popen(
            harness.as_user(line) if user else line, cwd="/", stderr=subprocess.PIPE,
            stdin=theirs[0] if sockets else subprocess.PIPE,
            stdout=theirs[1] if sockets else subprocess.PIPE,
            env={**os.environ, **(environment or {})})
        for end in theirs:
            end.close()
        self.ours = ours
        self.input = ours[0].makefile("wb") if sockets else self.process.stdin
        self.output = ours[1].makefile("rb") if sockets else self.process.stdout
        self.id = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        harness.end(self.process)
        for stream in (self.input, self.output, self.process.stderr, *self.ours):
            with contextlib.suppress(OSError, ValueError):
                stream.close()
        harness.kill_marked(self.token)

    def send(self, method, **params):
        self.id += 1
        self.input.write(json.dumps({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params}).encode() + b"\n")
        self.input.flush()

    def receive(self):
        line = self.output.readline()
        check(line, lambda: f"no answer; stderr: {self.process.stderr.read()}")
        return json.loads(line)

    def ask(self, method, **params):
        self.send(method, **params)
        answer = self.receive()
        equal(answer["id"], self.id, "id")
        return answer["result"]

    def hang_up(self):
        self.input.close()
        if self.ours:
            with contextlib.suppress(OSError):
                self.ours[0].shutdown(socket.SHUT_WR)

    def code(self, seconds=20):
        return self.process.wait(timeout=seconds * harness.SLOW)

    def nothing_left(self, seconds=10):
        check(wait_until(lambda: not harness.processes_with(self.token), seconds),
              lambda: f"left behind: {harness.processes_with(self.token)}")


# ---- What passes ---------------------------------------------------------------------------------


@for_people("a server answers, and ends with its client")
def answers(user):
    with Client(user=user) as client:
        equal(client.ask("echo", text="grüß dich\n\0"), "grüß dich\n\0", "echo")
        client.hang_up()
        equal(client.code(), 0, "exit code")
        equal(client.process.stderr.read(), b"", "stderr")
        client.nothing_left()


@case("the same over sockets")
def over_sockets():
    with Client(sockets=True) as client:
        equal(client.ask("echo", text="a"), "a", "echo")
        client.hang_up()
        equal(client.code(), 0, "exit code")
        client.nothing_left()


def messages(sockets):
    with Client(sockets=sockets) as client:
        text = "m" * (5 << 20)
        client.id += 1
        line = json.dumps({"id": client.id, "method": "length", "params": {"text": text}}).encode() + b"\n"
        writer = threading.Thread(target=lambda: (client.input.write(line), client.input.flush()))
        writer.start()
        equal(client.receive()["result"], [len(line), hashlib.sha256(line).hexdigest()], "what came in")
        writer.join()
        equal(client.ask("big", n=20 << 20), "b" * (20 << 20), "what came out")
        for number in range(300):
            equal(client.ask("echo", text=str(number)), str(number), "echo")


for kind, value in (("pipes", False), ("sockets", True)):
    harness.add(f"messages of megabytes, and many small ones, over {kind}", lambda value=value: messages(value))


@case("many requests at once are answered in order")
def pipelined():
    with Client() as client:
        count = 2000
        writer = threading.Thread(target=lambda: [client.send("echo", text="t" * 500) for _ in range(count)])
        writer.start()
        equal([client.receive()["id"] for _ in range(count)], list(range(1, count + 1)), "ids")
        writer.join()


@case("bytes are not looked at")
def raw_bytes():
    data = bytes(range(256)) * 4096
    result = harness.callbox(["wrap", "--", "cat"], binary=CALLBOX, data=data, cwd="/")
    equal(result.code, 0, "exit code")
    check(result.out == data, f"{len(result.out)} bytes came back, not the {len(data)} that went in")


@case("stderr goes to stderr")
def errors():
    with Client() as client:
        client.ask("complain")
        client.hang_up()
        equal(client.code(), 0, "exit code")
        equal(client.process.stderr.read(), b"complaint\n", "stderr")


@case("a server outlives the 30 seconds of other calls")
def no_limit():
    if os.environ.get("CALLBOX_SMOKE"):
        raise Skip("takes longer than a short run should")
    with Client("--report", SCRATCH.path / "report.json") as client:
        client.ask("echo", text="a")
        time.sleep(31)
        equal(client.ask("echo", text="b"), "b", "echo after 31 seconds")
        client.hang_up()
        equal(client.code(), 0, "exit code")
    report = json.loads((SCRATCH.path / "report.json").read_text())
    equal((report["reason"], report["code"]), ("exited", 0), "reason and code in the report")


@case("a limit of time that is asked for holds")
def time_limit():
    with Client("--timeout", "0.5") as client:
        equal(client.code(), 124, "exit code")


@case("a policy file's limit of time holds")
def policy_limit():
    path = SCRATCH.path / "policy.json"
    path.write_text(json.dumps({"limits": {"wall": 0.5}, "files": {"read": [str(PLACE)]}}))
    with Client("--policy", path) as client:
        equal(client.code(), 124, "exit code")


# ---- The end -------------------------------------------------------------------------------------


@for_people("a server that ignores the end of its input is ended")
def stubborn(user):
    with Client("--grace", "0.3", mode="stubborn", user=user) as client:
        client.ask("echo", text="a")
        client.hang_up()
        equal(client.code(), 137, "exit code")
        client.nothing_left()


@case("what it has started ends with it")
def brood():
    with Client("--grace", "0.2", mode="brood") as client:
        client.ask("echo", text="a")
        check(len(harness.processes_with(client.token)) >= 4, "it has started nothing")
        client.hang_up()
        client.code()
        client.nothing_left()


@case("a server that reads nothing does not hide the end of its input")
def deaf():
    for sockets in (False, True):
        with Client("--grace", "0.3", mode="deaf", sockets=sockets) as client:
            client.input.write(b"x" * 20000)  # more than the box takes
            client.input.flush()
            client.hang_up()
            equal(client.code(), 137, "exit code")
            client.nothing_left()


@case("a slow server gets all that was written before the end")
def slow():
    script = "import sys, time\nn = 0\nfor line in sys.stdin:\n    time.sleep(0.1)\n    n += 1\nprint(n)"
    result = harness.callbox(["wrap", "--grace", "1", "--", "python3", "-c", script], binary=CALLBOX,
                             data=b"x" * 2000 + b"\n" + (b"y" * 2000 + b"\n") * 24, cwd="/")
    equal((result.code, result.out), (0, b"25\n"), "exit code and output")


@case("a file as input ends as well")
def file_input():
    path = SCRATCH.path / "input"
    path.write_bytes(b'{"id": 1, "method": "echo", "params": {"text": "a"}}\n')
    for mode, code in (("good", 0), ("stubborn", 137)):
        with open(path, "rb") as stream:
            result = harness.callbox(["wrap", "--grace", "0.3", "--read", PLACE, "--", "python3", SCRIPT, mode],
                                     binary=CALLBOX, stdin=stream, cwd="/")
        equal(result.code, code, f"exit code of the {mode} one")
        equal(json.loads(result.out)["result"], "a", "answer")


@case("when nobody reads the answers the box is ended at once")
def unread():
    for sockets in (False, True):
        with Client("--grace", "1000", mode="stubborn", sockets=sockets) as client:
            client.ask("echo", text="a")
            client.output.close()
            for end in client.ours[1:]:
                end.close()
            equal(client.code(), 137, "exit code")
            client.nothing_left()


@case("a client that is killed takes the box along")
def killed_client():
    for mode in ("good", "stubborn", "brood", "flood"):
        with Client(command=["true"]) as marks:
            token = marks.token + "-k"
            marks.code()
        # The client is a process of its own, which holds the other ends of the pipes.
        client = subprocess.Popen(
            [sys.executable, "-c",
             "import subprocess, sys, time\n"
             "server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd='/')\n"
             "print(server.stdout.read(1) if 'flood' in sys.argv else server.pid, flush=True)\n"
             "time.sleep(1000)",
             CALLBOX, "wrap", "--read", str(PLACE), "--", "python3", str(SCRIPT), mode, token],
            stdout=subprocess.PIPE)
        try:
            client.stdout.readline()
            check(wait_until(lambda token=token: harness.programs(f"python3\0{SCRIPT}\0{mode}\0{token}"), 20),
                  "the server did not start")
        finally:
            harness.end(client)
            client.stdout.close()
        check(wait_until(lambda token=token: not harness.processes_with(token), 15),
              lambda token=token, mode=mode: f"the {mode} one stays: {harness.processes_with(token)}")


@case("callbox that is killed takes the box along")
def killed_callbox():
    with Client(mode="brood") as client:
        client.ask("echo", text="a")
        client.process.kill()
        client.nothing_left()


@case("a request to go is the server's; a second one ends it")
def signals():
    with Client() as client:
        client.ask("echo", text="a")
        client.process.send_signal(signal.SIGTERM)
        equal(client.code(), 143, "exit code")
    with Client(mode="stubborn") as client:
        client.ask("echo", text="a")
        client.process.send_signal(signal.SIGTERM)
        equal(client.ask("echo", text="b"), "b", "echo after SIGTERM")
        client.process.send_signal(signal.SIGTERM)
        equal(client.code(), 137, "exit code")
        client.nothing_left()


@case("a server that floods is held back by a client that does not read, and by nothing else")
def flood():
    with Client("--grace", "0.2", mode="flood") as client:
        for _ in range(64):
            equal(len(client.output.read(1 << 20)), 1 << 20, "what was read")
        client.hang_up()
        client.output.close()
        client.code()
        client.nothing_left()


# ---- What the server sees ------------------------------------------------------------------------


@for_people("keys of the home, secrets of the environment and other projects are not there")
def secrets(user):
    home = SCRATCH.directory(user)
    for name in (".ssh/id_ed25519", ".aws/credentials", ".npmrc", "project/.env"):
        path = home / name
        path.parent.mkdir(exist_ok=True)
        SCRATCH.own(path.parent, user)
        path.write_text("secret")
        SCRATCH.own(path, user)
    environment = {"HOME": str(home), "API_TOKEN": "secret", "SSH_AUTH_SOCK": "/tmp/agent", "WANTED": "given"}
    with Client("--env", "WANTED", user=user, environment=environment) as client:
        for name in (".ssh", ".ssh/id_ed25519", ".aws/credentials", ".npmrc", "project/.env", ""):
            equal(client.ask("look", path=f"{home}/{name}"), "FileNotFoundError", name)
        for path in ("/etc/shadow", "/root/.ssh", f"/proc/{client.process.pid}/environ"):
            check(client.ask("look", path=path) in ("FileNotFoundError", "PermissionError"), path)
        seen = client.ask("environment")
        check("secret" not in json.dumps(seen), f"it sees {seen}")
        equal(seen["WANTED"], "given", "a variable that is passed on")
        line = client.ask("look", path="/proc/1/cmdline")
        check("wrap" not in line, f"it sees callbox's own command line: {line!r}")


@case("there is no network")
def network():
    listener = socket.create_server(("127.0.0.1", 0))
    script = f"import socket; socket.create_connection(('127.0.0.1', {listener.getsockname()[1]}), 5)"
    result = harness.callbox(["wrap", "--", "python3", "-c", script], binary=CALLBOX, cwd="/")
    check(result.code == 1 and b"OSError" in result.err, result.brief())
    equal(harness.callbox(["wrap", "--net", "host", "--", "python3", "-c", script], binary=CALLBOX, cwd="/").code, 0,
          "exit code with --net host")
    listener.close()


# ---- Mistakes ------------------------------------------------------------------------------------


@case("a failure says what to do")
def mistakes():
    hidden = SCRATCH.directory() / "settings.json"
    hidden.write_text("{}")
    for args, code, words in (
        (["wrap"], 125, ["no server to run", "callbox wrap [OPTIONS]"]),
        (["wrap", "--wrong", "--", "cat"], 125, ["no option", "callbox wrap --help"]),
        (["wrap", "--grace", "-1", "--", "cat"], 125, ["--grace", "from 0 to 3600"]),
        (["wrap", "--grace", "nan", "--", "cat"], 125, ["--grace"]),
        (["wrap", "--cwd", "here", "--", "cat"], 125, ["--cwd"]),
        (["wrap", "--report", "/nowhere/at/all", "--", "cat"], 125, ["--report"]),
        (["wrap", "--", "no-such-server"], 127, ["no-such-server"]),
        (["wrap", "--", PLACE / "server.py"], 127, ["--read"]),
        (["wrap", "--", "python3", "-c", "exit(3)"], 3, ["ended with code 3", "--explain"]),
        (["wrap", "--explain", "--", "python3", "-c", f"open('{hidden}')"], 1,
         ["ended with code 1", f"refused: file {hidden} (ENOENT, 1 time); allow it with --read {hidden}"]),
    ):
        SCRIPT.chmod(0o755)
        result = harness.callbox(args, binary=CALLBOX, cwd="/")
        equal(result.code, code, f"exit code of {args}")
        for word in words:
            check(word in result.stderr, f"{args} does not say {word!r}: {result.stderr}")
        equal(result.out, b"", "stdout")


@case("--quiet leaves stderr to the server")
def quiet():
    result = harness.callbox(["wrap", "-q", "--", "sh", "-c", "echo words >&2; exit 3"], binary=CALLBOX, cwd="/")
    equal((result.code, result.err), (3, b"words\n"), "exit code and stderr")


# ---- npx -----------------------------------------------------------------------------------------


def package(tree, name, programs, text, spec=None):
    """What npm makes of a package whose programs are shell scripts."""
    folder = tree / "node_modules" / name
    folder.mkdir(parents=True)
    (tree / "node_modules" / ".bin").mkdir(exist_ok=True)
    (folder / "package.json").write_text(json.dumps({"name": name, "bin": programs}))
    (folder / "main").write_text(f"#!/bin/sh\necho {text} \"$@\"\n")
    (folder / "main").chmod(0o755)
    for program in programs if isinstance(programs, dict) else [name.split("/")[-1]]:
        (tree / "node_modules" / ".bin" / program).symlink_to(f"../{name}/main")
    if spec:
        (tree / "package.json").write_text(json.dumps({"_npx": {"packages": [spec]}}))


def npx(home, *args, options=(), cwd="/"):
    return harness.callbox(["wrap", *options, "--", "npx", *args], binary=CALLBOX, cwd=cwd,
                           env={**os.environ, "HOME": str(home), "npm_config_cache": str(home / ".npm")})


@case("npx runs what it has fetched, without a network and without its cache")
def npx_cache():
    home = SCRATCH.directory()
    cache = home / ".npm" / "_npx"
    package(cache / "a", "@scope/server", {"the-server": "main"}, "scoped", "@scope/server")
    package(cache / "b", "plain", "main", "plain", "plain")
    package(cache / "c", "plain", "main", "pinned", "plain@1.2.3")
    package(cache / "d", "many", {"one": "main", "many": "main"}, "many", "many")
    package(cache / "e", "unclear", {"one": "main", "two": "main"}, "unclear", "unclear")
    package(cache / "f", "evil", {".evil": "main"}, "evil", "evil")
    (cache / "broken").mkdir()
    (cache / "broken" / "package.json").write_text("{")
    for args, out in (
        (["-y", "@scope/server", "a b", "--flag"], b"scoped a b --flag\n"),
        (["plain"], b"plain\n"),
        (["--yes", "plain@1.2.3", "x"], b"pinned x\n"),
        (["--", "many"], b"many\n"),
    ):
        result = npx(home, *args)
        equal((result.code, result.out), (0, out), f"{args} ({result.brief()})")
    for args in (["-y", "absent"], ["plain@2"], ["unclear"], ["evil"], ["@scope/other"]):
        result = npx(home, *args)
        equal(result.code, 125, f"exit code of {args}")
        check("npx -y --package=" in result.stderr and "--net host" in result.stderr, result.stderr)
    # Nothing else of the cache or the home is shown.
    (cache / "b" / "node_modules" / "plain" / "main").write_text(f"#!/bin/sh\nls {cache}/b {cache} {home}\n")
    seen = npx(home, "plain", options=["--cwd", "/tmp"]).out.decode()
    check("_npx" in seen and "package.json" not in seen and not re.search(r"^[acd]$", seen, re.M), seen)


@case("npx prefers the packages of the current directory")
def npx_local():
    home = SCRATCH.directory()
    place = SCRATCH.directory()
    package(home / ".npm" / "_npx" / "a", "server", "main", "cached", "server")
    package(place, "server", "main", "local")
    equal(npx(home, "server", cwd=place).out, b"local\n", "output")
    equal(npx(home, "server", options=["--workspace", place], cwd=place).out, b"local\n", "output in a workspace")
    equal(npx(home, "server", cwd="/").out, b"cached\n", "output elsewhere")


if __name__ == "__main__":
    sys.exit(harness.main(skips=SKIPS, after=SCRATCH.remove))
