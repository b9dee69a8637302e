#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What a model can try by the tools of callbox mcp: the attacks of the hostile review, with the payloads and rows
of tests/attack/suite.py, each made by run_command. A control is the same call, in boxes of a warden that leaves the
fence out. With CALLBOX_ATTACK_LANDLOCK=1 the boxes have no namespaces; their controls are those of the suite."""

import contextlib
import json
import os
import pathlib
import shlex
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "attack"))
import harness  # noqa: E402
import mcp_client  # noqa: E402
import suite  # noqa: E402
import test_user_limits as limits  # noqa: E402
from harness import Result, check, equal, wait_until  # noqa: E402
from mcp_client import bad, good  # noqa: E402
from suite import LANDLOCK, Tools  # noqa: E402
from tooling import ENVIRONMENT, SCRATCH, TALK, manifest  # noqa: E402

harness.CASES.clear()  # those of the suites that lend their parts
BOX = ("--box", "landlock") if LANDLOCK else ()
PYTHON = "/usr/bin/python3"

# Rows of the suite that are tried here, by their number; of S9 some of each kind.
NUMBERS = ("S3", "S4", "S6", "S9", "S10", "S12", "S15", "S16", "S18")
S9_KINDS = ("page-tables", "shared-cut", "memfd-closed", "large-buffers", "shared-late", "proc-files")
# Of these the rows that make no sense here.
NOT_OVER_MCP = {
    "S12 the host opens what a box holds a lease on": "it times the command itself",
    "S18 keys, from the directory in which they are": "the directory of the command; a server shows none by itself",
    "S18 line disciplines and typing, on a terminal of its own": "no call of a tool has a terminal",
}
# Controls that take long are made by one row of their kind; and a box that may send itself what nobody counts ends
# by its limit on memory as often as by the payload.
CONTROLS = {
    "S9": ("memory held as memfd-closed",),
    "S18": ("parts of the kernel that a request loads", "protocols that nobody needs", "names that only a file system sees made"),
}


class Servers:
    """Servers that several rows share, each for one call at a time."""

    made = {}
    lock = threading.Lock()

    @classmethod
    @contextlib.contextmanager
    def get(cls, user, options):
        with cls.lock:
            if (user, options) not in cls.made:
                cls.made[user, options] = (mcp_client.Server(*options, user=user), threading.Lock())
            server, lock = cls.made[user, options]
        with lock:
            yield server

    @classmethod
    def close(cls):
        for server, _ in cls.made.values():
            with server:
                pass


class McpBox(suite.Box):
    """One attempt, by a model: what `callbox run` would be given is a server's, and the payload a command."""

    @contextlib.contextmanager
    def server(self, options, prefix=()):
        options = ("--read", self.bin, *BOX, *(os.fspath(o) for o in options))
        if "--cwd" in options:  # a tool starts in the workspace
            at = options.index("--cwd")
            options = options[:at] + options[at + 2 :]
        if self.without:
            with self.warden(prefix) as path, mcp_client.Server("--warden", path, *options, user=self.user) as server:
                yield server
        elif prefix or any(str(self.dir) in option for option in options):
            with mcp_client.Server(*options, user=self.user, prefix=prefix) as server:
                if LANDLOCK:
                    self.see_refusal(server)
                yield server
        else:
            with Servers.get(self.user, options) as server:
                yield server

    @staticmethod
    def see_refusal(server):
        """A server whose policy cannot be kept here does not start."""
        with contextlib.suppress(BrokenPipeError, harness.Failed):
            server.result("tools/list")
            return
        server.process.wait(10)
        server.readers[1].join(5)
        raise suite.Untried(server.errors.decode())

    @contextlib.contextmanager
    def warden(self, prefix):
        path = str(Tools.scratch.directory(user=self.user) / "open")
        command = [*prefix, Tools.unfenced, "warden", "--socket", path, "--without", f"{self.without},cgroup"]
        process = subprocess.Popen(harness.as_user(command) if self.user else command, stdin=subprocess.DEVNULL, cwd="/")
        try:
            check(wait_until(lambda: os.path.exists(path), 60), "no warden")
            yield path
        finally:
            harness.end(process)

    def ask(self, server, args, program):
        command = "exec " + shlex.join(program if program is not None else self.payload(*args))
        return server.ask("tools/call", {"name": "run_command", "arguments": {"command": command}}, **mcp_client.modern())

    @staticmethod
    def told(server, asked, timeout, began):
        answer = server.answer(asked, timeout)[0]
        check("result" in answer, lambda: f"no result: {answer}")
        report = answer["result"].get("structuredContent")
        return Result([], 0, b"", b"", time.monotonic() - began, report=report)

    def run(self, *args, options=(), timeout=30.0, prefix=(), program=None, **_):
        with self.server(options, prefix) as server:
            return self.told(server, self.ask(server, args, program), timeout, time.monotonic())

    @contextlib.contextmanager
    def start(self, *args, options=(), **_):
        """What a call prints comes with its answer: whether it has begun is seen by its process."""
        with self.server(options) as server:
            asked = self.ask(server, args, None)
            if not wait_until(lambda: harness.processes_with(self.token), 60):
                raise suite.Untried("the payload did not start")
            time.sleep(0.1)

            class Call:
                returncode = None

                def communicate(self, timeout):
                    result = McpBox.told(server, asked, timeout, time.monotonic())
                    self.returncode = result.report["code"] if result.reason == "exited" else -1
                    return result.stdout.encode() or result.brief().encode(), b""

            yield Call()


def perform(row, who, without=None):
    box = McpBox(who, without)
    try:
        return row.perform(box, control=bool(without))
    except suite.Untried as untried:
        if LANDLOCK and "without namespaces" in str(untried):
            return None  # refused, with the reason
        raise harness.Failed(f"not tried: {untried}")
    finally:
        box.clean_up()


def is_chosen(row):
    if row.number not in NUMBERS or f"{row.number} {row.title}" in NOT_OVER_MCP:
        return False
    return row.number != "S9" or row.title.removeprefix("memory held as ") in S9_KINDS


def held(row, who):
    problem = perform(row, who)
    check(problem is None, problem)


def broken(row, who):
    check(perform(row, who, row.without) is not None, "the attack fails without its fence too: it proves nothing")


def register():
    for row in filter(is_chosen, suite.TABLE):
        for who, _ in harness.PEOPLE:
            if who not in row.who:
                continue
            harness.add(f"{row.number} {row.title} [{who}]", lambda row=row, who=who: held(row, who), row.alone)
            if row.without and not LANDLOCK and row.title in CONTROLS.get(row.number, (row.title,)):
                harness.add(f"{row.number} {row.title} [{who}, control without {row.without}]", lambda row=row, who=who: broken(row, who))


# ---- What the suite of a single call cannot try ------------------------------------------------


def for_people(name, alone=False):
    return harness.for_people(name, alone)


def place(user, *directories):
    top = SCRATCH.directory(user)
    for name in directories:
        (top / name).mkdir(parents=True)
        for part in (top / name, *(top / name).relative_to(top).parents):
            SCRATCH.own(top / part, user)
    return top


def put(path, text, user):
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    SCRATCH.own(path, user)
    return path


def command(server, text):
    return server.call("run_command", {"command": text})


SWAPS = {
    "the path itself": ("out", "mv out old && ln -s {victim} out"),
    "a directory above": ("a/out", "mv a b && mkdir {victim}/out; ln -s {victim} a"),
    "a link in the link's place": ("out", "mv out old && ln -s {victim} x && ln -s x out"),
}


@for_people("S5 what a tool's policy names in the workspace is no link that another tool has made")
def swapped(user):
    for what, (name, swap) in SWAPS.items():
        top = place(user, f"ws/{name}", "victim")
        path = top / "ws" / name
        policy = {**({"box": "landlock"} if LANDLOCK else {}), "files": {"write": [str(path)]}}
        tools = mcp_client.folder_of(manifest("report", ["touch", f"{path}/f"], policy=policy), user=user)
        with mcp_client.Server("--workspace", top / "ws", "--tools", tools, *BOX, user=user) as server:
            good(server.call("report"))
            check((path / "f").exists(), "before")
            command(server, swap.format(victim=top / "victim"))
            server.call("report")
            server.call("report")
        equal([str(p) for p in (top / "victim").rglob("f")], [], f"what the victim has: {what}")


CHANGES = {
    "written": "cat wide.json >callbox.json",
    "moved over": "mv wide.json callbox.json",
    "removed and made anew": "rm -f callbox.json; cp wide.json callbox.json",
    "linked": "ln -sf wide.json callbox.json",
    "linked hard": "ln -f wide.json callbox.json",
    "by a helper": f"{PYTHON} -c \"import os; os.replace('wide.json', 'callbox.json')\"",
}


@for_people("S6 a server's policy in its workspace is not the model's to change for the next server")
def policy(user):
    top = place(user, "ws", "victim")
    ws = top / "ws"
    box = {"box": "landlock"} if LANDLOCK else {}
    mine = put(ws / "callbox.json", {**box, "files": {"workspace": str(ws)}}, user).read_text()
    put(ws / "wide.json", {**box, "files": {"workspace": str(ws), "write": [str(top / "victim")]}, "network": "host"}, user)
    with mcp_client.Server("--policy", ws / "callbox.json", user=user) as server:
        for how, change in CHANGES.items():
            command(server, change)
            equal((ws / "callbox.json").is_symlink(), False, how)
            equal((ws / "callbox.json").read_text(), mine, f"the policy, {how}")
        good(command(server, "echo ok >mine"))
    with mcp_client.Server("--policy", ws / "callbox.json", user=user) as server:
        command(server, f"echo escaped >{top}/victim/f")
    equal(os.listdir(top / "victim"), [], "what the next server lets write")
    # Control: what is no policy of the server's is the model's to change.
    with mcp_client.Server("--workspace", ws, *BOX, user=user) as server:
        good(command(server, CHANGES["written"]))


@for_people("S7 the warden of a server, with its socket in the workspace, is no way out of a box", alone=True)
def warden(user):
    top = place(user, "ws")
    put(top / "ws/talk.py", TALK, user)
    path = top / "ws/w.sock"
    line = [Tools.callbox, "warden", "--socket", str(path)]
    process = subprocess.Popen(harness.as_user(line) if user else line, env=ENVIRONMENT, cwd="/")
    try:
        check(wait_until(path.exists, 60), "no warden")
        with mcp_client.Server("--workspace", top / "ws", "--warden", path, *BOX, user=user) as server:
            asked = [server.ask("tools/call", {"name": "run_command", "arguments": {"command": f"{PYTHON} talk.py w.sock 1.5"}}, **mcp_client.modern())
                     for _ in range(3)]  # fmt: skip
            for one in asked:
                text = good(server.answer(one)[0]["result"])
                check(text.startswith("held"), text)
            command(server, "rm -f w.sock; mv w.sock x; ln -sf y w.sock")
            check(path.is_socket(), "it was replaced")
    finally:
        harness.end(process)
    # Control: talk.py says so where somebody answers.
    answer = subprocess.run(
        [PYTHON, "-c", "import socket, subprocess, sys, threading\ns = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\ns.bind('\\0' + sys.argv[2]); s.listen()\n"
         "def serve():\n    peer = s.accept()[0]\n    peer.recv(100)\n    peer.send(b'x')\nthreading.Thread(target=serve, daemon=True).start()\n"
         "print(subprocess.run([sys.executable, '-c', sys.argv[1].replace('sys.argv[1]', repr('\\0' + sys.argv[2])), '', '5'], stdout=subprocess.PIPE, text=True).stdout)",
         TALK, f"callbox-holes-{os.getpid()}-{user}"], stdout=subprocess.PIPE, text=True, timeout=30, check=True).stdout  # fmt: skip
    check(answer.startswith("WON"), answer)


# What code may write on the channel of its result, in place of a result: text that starts anew at each quote, what is
# deep, what is long. The first number is the length of the frame, the second, 0, says that it is a result.
FRAMES = {
    "quotes without an end": "b'\"' + b'\\\\\"' * (n // 2)",
    "brackets": "b'[' * n",
    "objects": "b'{\"a\":' * (n // 5)",
    "one long number": "b'1' * n",
    "keys that are the same": "b'{' + b','.join([b'\"k\":1'] * (n // 6)) + b'}'",
    "texts": "b'[' + b','.join([b'\"\\\\u0041\"'] * (n // 9)) + b']'",
}


@for_people("S8 a result that is long to read keeps nobody waiting")
def slow_result(user):
    with mcp_client.Server(*BOX, user=user) as server:
        for what, body in FRAMES.items():
            took = []
            for n in (100000, 400000):
                code = f"import os, struct\nn = {n}\nbody = {body}\ndata = struct.pack('=II', len(body), 0) + body\nwhile data:\n    data = data[os.write(3, data):]\nos._exit(0)"
                began = time.monotonic()
                result = server.call("run_python", {"code": code})
                took.append(time.monotonic() - began)
                check(len(json.dumps(result)) < 1 << 20, f"{what}: an answer of {len(json.dumps(result))} bytes")
            check(took[1] < 2 * harness.SLOW + 8 * took[0], f"{what}: {took} s")
            equal(good(server.call("run_python", {"code": "print(6 * 7)"})), "42\n", f"{what}: the next call")


@for_people("S11 calls that take all they can leave the user what he needs, and the server its next call", alone=True)
def hoard(user):
    kinds = ("notices", "flight", "terminals", "signals")
    token = f"hoard-{os.getpid()}-{user}"
    text = limits.HOARD.replace("sys.stdin.read()", "import time; time.sleep(3)")
    with mcp_client.Server("--timeout", "20", *BOX, user=user) as server:
        asked = [server.ask("tools/call", {"name": "run_command", "arguments": {"command": "exec " + shlex.join([PYTHON, "-c", text, kind, token])}}, **mcp_client.modern())
                 for kind in (*kinds, *kinds)]  # fmt: skip
        check(wait_until(lambda: len(harness.processes_with(token)) >= len(kinds), 10), "they did not start")
        time.sleep(0.7)
        equal(limits.look(user) & limits.ALWAYS, set(), "the user lacks")
        equal(good(command(server, "echo ok")), "ok\n", "another call")
        taken = 0
        for one in asked:
            result = server.answer(one)[0]["result"]
            said = mcp_client.text_of(result)
            # What waits in them counts as memory.
            check("limits.memory" in said if result["isError"] else int(said) >= 0, lambda said=said: said)
            taken += result["isError"] or int(said) > 0
        # Without namespaces some kinds are refused.
        check(taken >= (1 if BOX else len(kinds)), f"they took nothing: {taken}")


@for_people("S13 output that is kept is written where no call can put a link")
def kept(user):
    top = place(user, "ws", "run")
    victim = put(top / "victim", "as it was", user)
    with mcp_client.Server("--workspace", top / "ws", *BOX, user=user, env={"XDG_RUNTIME_DIR": str(top / "run")}) as server:
        shown = good(command(server, "seq 1 100000")).split(" is in ")[1].split(" for run_command")[0]
        following = shown.replace("mcp-1", "mcp-3")
        bad(command(server, f"ln -s {victim} {following}"))
        good(command(server, "seq 1 100000"))
        bad(command(server, f"echo x >{shown}"))
        bad(command(server, f"rm {shown}"))
    equal(victim.read_text(), "as it was", "what a link led to")


if __name__ == "__main__":
    suite.withdraw()
    register()
    harness.CASES.sort(key=lambda case: case.alone)
    code = harness.main(workers=4, before=Tools.set_up, after=lambda: (Servers.close(), Tools.tear_down(), SCRATCH.remove(), limits.SCRATCH.remove()))
    sys.exit(code)
