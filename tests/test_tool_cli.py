#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""callbox tool: list, call, check and schema, as root and as an ordinary user; the example tools; and
whether schema/manifest.schema.json and the loader agree."""

import json
import os
import re
import shutil
import socket
import sys

import jsonschema

import harness
import tooling
from harness import REPO, case, check, equal, for_people
from tooling import CALLBOX, ENVIRONMENT, OBJECT, SCRATCH, manifest

MANIFESTS = jsonschema.Draft202012Validator(json.loads((REPO / "schema" / "manifest.schema.json").read_text()))
REPORTS = jsonschema.Draft202012Validator(json.loads((REPO / "schema" / "report.schema.json").read_text()))
STRING = {"type": "string"}


def tool(*words, user=False, **options):
    options.setdefault("env", ENVIRONMENT)
    options.setdefault("cwd", "/")
    return harness.callbox(["tool", *words], user=user, binary=CALLBOX, json_report="--json" in words, **options)


def folder_of(*manifests, user=False, **files):
    """A folder with these tools, each in the file of its name."""
    folder = SCRATCH.directory(user)
    for item in manifests:
        (folder / f"{item['name']}.json").write_text(json.dumps(item))
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


TOOLS = [
    manifest("hello", ["echo", "hello {who}"], {"who": STRING}, description="Greet somebody.\nSecond line."),
    manifest("fail", ["sh", "-c", "echo why >&2; exit 4"], description="Fail."),
    manifest("number", ["echo", "42"], run={"command": ["echo", "42"], "output": "json"}),
    manifest("steps", run={"shell": "echo '{\"progress\": 1, \"total\": 2, \"message\": \"one\"}'; echo '{\"progress\": 2}';"
                                    "echo '{\"log\": \"l\\u001b[1mog\", \"level\": \"warning\"}'; echo '{\"result\": [1]}'", "output": "json-lines"}),
    manifest("slow", ["sleep", "60"], policy={"limits": {"wall": 20}}),
    manifest("kill", ["unshare", "-U", "true"], policy={"syscalls": {"on_denied": "kill"}}),
    manifest("cat", ["cat", "{path}"], {"path": STRING}),
    manifest("raw", ["printf", "no newline"]),
    manifest("both", run={"shell": "echo '{\"text\": \"for reading\"}'; echo '{\"result\": [1]}'", "output": "json-lines"}),
    manifest("nul", run={"command": ["printf", "%s", '"a\\u0000b"'], "output": "json"}),
    manifest("upper", run={"object": OBJECT, "function": "object_upper"}),
]  # fmt: skip


# ---- list ----------------------------------------------------------------------------------------


@for_people("list prints the tools in order, by a query in any case, whole as JSON")
def lists(user):
    folder = folder_of(*TOOLS, user=user)
    names = sorted(item["name"] for item in TOOLS)
    done = tool("list", "--tools", folder, user=user)
    equal((done.code, done.err), (0, b""), "exit code and stderr")
    lines = done.out.decode().splitlines()
    equal([line.split()[0] for line in lines], names, "the names")
    equal([line for line in lines if "Greet" in line], ["hello   Greet somebody."], "a line")
    equal(tool("list", "--tools", folder, "GREET", user=user).out.decode().split()[0], "hello", "by description")
    equal(tool("list", "FAI", "--tools", folder, user=user).out.decode().split()[0], "fail", "by name")
    done = tool("list", "--tools", folder, "nothing at all", user=user)
    equal((done.code, done.out), (0, b""), "what is found by nothing")
    whole = tool("list", "--json", "--tools", folder, user=user).report
    equal([item["name"] for item in whole], names, "the names as JSON")
    equal(sorted(whole[2]), ["description", "inputSchema", "name"], "the members of one")
    equal(tool("list", "--json", "--tools", folder, "nothing at all").report, [], "nothing as JSON")


@for_people("a broken manifest is left out with a word on stderr")
def left_out(user):
    folder = folder_of(TOOLS[0], TOOLS[1], user=user, broken_json="{")
    for words in (["list"], ["call", "hello", '{"who": "x"}']):
        done = tool(*words, "--tools", folder, user=user)
        equal(done.code, 0, "exit code")
        check(b"broken.json is left out: " in done.err and b"(see callbox tool check)" in done.err, f"stderr is {done.err!r}")


# ---- call ----------------------------------------------------------------------------------------


@for_people("call prints the result and tells by its exit code what came of it")
def calls(user):
    folder = folder_of(*TOOLS, user=user)

    def call(*words, **options):
        return tool("call", "--tools", folder, *words, user=user, **options)

    cases = [
        (["hello", '{"who": "you"}'], 0, b"hello you\n", ""), (["number"], 0, b"42\n", ""), (["raw"], 0, b"no newline\n", ""), (["nul"], 0, "a\ufffdb\n".encode(), ""), (["both"], 0, b"for reading\n", ""),
        (["upper", '{"a": "b"}'], 0, b'{"A":"B"}\n', "1 of 1: done"), (["fail"], 1, b"", "callbox: fail: exit code 4: why"),
        (["hello"], 2, b"", "callbox: hello: the arguments are wrong: "), (["hello", '{"who": 5}'], 2, b"", "/who must be a string"),
        (["hello", "{"], 2, b"", "is not JSON"), (["nobody"], 2, b"", "callbox: nobody: unknown tool: nobody"), (["kill"], 3, b"", "unshare"),
        (["slow", "--timeout", "0.3"], 1, b"", "0.3"), (["slow", "--timeout", "21"], 125, b"", "callbox: --timeout: a call may only tighten"),
        (["slow", "--timeout", "x"], 125, b"", "--timeout"), (["slow", "--memory", "2T"], 125, b"", "callbox: --memory: a call may only tighten"),
        (["slow", "--cpu", "none"], 125, b"", "callbox: --cpu: a call can only tighten"), (["hello", "{}", "more"], 125, b"", "one word too many"), ([], 125, b"", "needs the name of a tool"),
        (["--wrong", "hello"], 125, b"", "no option"), (["hello", "--call-id"], 125, b"", "--call-id"), (["hello", "--call-id", ""], 125, b"", "id"),
        (["--", "hello", '{"who": "--dashes"}'], 0, b"hello --dashes\n", ""), (["hello", '{"who": "-"}', "--warden", "/nonexistent"], 125, b"", "--warden: cannot reach a warden at /nonexistent"),
    ]  # fmt: skip
    for words, code, out, err in cases:
        done = call(*words)
        equal((done.code, done.out), (code, out), f"exit code and stdout of {words} ({done.err!r})")
        check(err in done.err.decode() and (err or not done.err), lambda done=done, words=words: f"stderr of {words} is {done.err!r}")


@for_people("call --json prints a report with the result, the id and the mistakes")
def reports(user):
    folder = folder_of(*TOOLS, user=user)
    done = tool("call", "--tools", folder, "hello", '{"who": "you"}', "--call-id", "c1", "--json", user=user)
    equal((done.code, done.err, done.report["id"], done.report["reason"]), (0, b"", "c1", "exited"), "what came of it")
    equal(done.report["tool"], {"name": "hello", "ok": True, "denied": False, "output": "hello you\n"}, "the tool")
    wrong = tool("call", "--tools", folder, "hello", '{"who": 1, "x": 2}', "--json", "--call-id", "c2", user=user)
    equal((wrong.code, wrong.report["id"], wrong.report["reason"]), (2, "c2", "setup"), "of bad arguments")
    equal([(m["path"], m["keyword"]) for m in wrong.report["tool"]["mistakes"]], [("/who", "type")], "the mistakes")
    unknown = tool("call", "--tools", folder, "nobody", "--json", user=user)
    equal((unknown.code, unknown.report["tool"]["error"]), (2, "unknown tool: nobody"), "of an unknown tool")
    failed = tool("call", "--tools", folder, "fail", "--json", user=user)
    equal((failed.code, failed.report["tool"]["error"], failed.report["stderr"]["text"]), (1, "exit code 4: why", "why\n"), "of a failure")
    denied = tool("call", "--tools", folder, "kill", "--json", "--explain", user=user)
    equal((denied.code, denied.report["tool"]["denied"], "unshare" in denied.report["tool"]["reason"]), (3, True, True), "of a denial")
    for item in (done, wrong, unknown, failed, denied):
        mistakes = sorted(REPORTS.iter_errors(item.report), key=str)
        check(not mistakes, lambda mistakes=mistakes: f"not valid: {mistakes[0].message[:300]}")


@case("arguments come on stdin, be it a pipe, a file, a socket or nothing")
def stdin():
    folder = folder_of(*TOOLS)
    call = ["call", "--tools", folder, "hello", "-"]
    equal(tool(*call, data=b'{"who": "pipe"}').out, b"hello pipe\n", "from a pipe")
    (folder / "arguments").write_text('{"who": "file"}')
    with open(folder / "arguments", "rb") as stream:
        equal(tool(*call, stdin=stream).out, b"hello file\n", "from a file")
    with open(folder / "arguments", "rb") as stream:  # that the user could not open
        os.chmod(folder / "arguments", 0o600)
        equal(tool(*call, stdin=stream, user=True).out, b"hello file\n", "from a file of another user")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b'{"who": "socket"}')
        ours.shutdown(socket.SHUT_WR)
        equal(tool(*call, stdin=theirs).out, b"hello socket\n", "from a socket")
    done = tool(*call, data=b'{"who": "x"}\x00more')
    equal((done.code, b"NUL" in done.err), (125, True), "with a NUL")
    equal(tool(*call, data=b"").code, 2, "with nothing")
    done = tool(*call, data=b" " * (17 << 20))
    equal((done.code, done.out), (125, b""), "with too much")


@case("progress and log lines go to stderr as they come, made harmless, and not with --quiet or --json")
def progress():
    folder = folder_of(*TOOLS)
    done = tool("call", "--tools", folder, "steps")
    equal((done.out, done.err), (b"[1]\n", b"1 of 2: one\n2\nwarning: l?[1mog\n"), "stdout and stderr")
    for quiet in ("--quiet", "-q", "--json"):
        equal(tool("call", "--tools", folder, "steps", quiet).err, b"", f"stderr with {quiet}")


@for_people("options of callbox run make the policy of tools that have none")
def options(user):
    folder, shown = folder_of(*TOOLS, user=user), SCRATCH.directory(user)
    (shown / "text").write_text("shown\n")
    arguments = json.dumps({"path": str(shown / "text")})
    equal(tool("call", "--tools", folder, "cat", arguments, user=user).code, 1, "without an option")
    equal(tool("call", "--tools", folder, "--read", shown, "cat", arguments, user=user).out, b"shown\n", "with --read")
    policy = SCRATCH.directory(user) / "policy.json"
    policy.write_text(json.dumps({"files": {"read": [str(shown)]}, "limits": {"wall": 100}}))
    equal(tool("call", "--tools", folder, "--policy", policy, "cat", arguments, "--timeout", "90", user=user).out, b"shown\n", "with --policy")
    size = manifest("size", run={"shell": "df --output=size --block-size=1M /tmp | tail -n 1"})
    equal(tool("call", "--tools", folder_of(size, user=user), "--tmp-size", "8M", "size", user=user).out.strip(), b"8", "with --tmp-size")


@case("a warden that is lost is told apart from a tool that failed")
def lost():
    folder = folder_of(manifest("t", ["sh", "-c", "sleep 30"]))
    shared = SCRATCH.directory() / "socket"
    warden = harness.subprocess.Popen([CALLBOX, "warden", "--socket", str(shared)], stdout=harness.subprocess.DEVNULL, stderr=harness.subprocess.DEVNULL)
    try:
        check(harness.wait_until(shared.exists, 20), "the warden does not listen")
        call = harness.subprocess.Popen([CALLBOX, "tool", "call", "--tools", str(folder), "--warden", str(shared), "t"], stdout=-1, stderr=-1)
        harness.wait_until(lambda: harness.programs("sleep\x0030"), 20)
        warden.kill()
        out, err = call.communicate(timeout=30 * harness.SLOW)
        equal((call.returncode, out), (125, b""), f"exit code and stdout ({err!r})")
    finally:
        harness.end(warden)


def listens(path):
    """The socket is there a moment before somebody listens to it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as stream:
        return stream.connect_ex(str(path)) == 0


@case("--warden calls tools in boxes of a warden that runs, also functions")
def shared_warden():
    folder = folder_of(*TOOLS)
    path = SCRATCH.directory() / "socket"
    warden = harness.subprocess.Popen([CALLBOX, "warden", "--socket", str(path)], stdout=harness.subprocess.DEVNULL, stderr=harness.subprocess.DEVNULL)
    try:
        check(harness.wait_until(lambda: listens(path), 20), "the warden does not listen")
        for _ in range(3):
            equal(tool("call", "--tools", folder, "--warden", path, "hello", '{"who": "you"}').out, b"hello you\n", "a command")
            equal(tool("call", "--tools", folder, "--warden", path, "upper", '{"a": 1}').out, b'{"A":1}\n', "a function")
    finally:
        warden.terminate()
        harness.end(warden)


@case("CALLBOX_FUNCTIONS names the server of functions, whatever lies beside callbox")
def named_server():
    folder = folder_of(TOOLS[-1])
    equal(TOOLS[-1]["name"], "upper", "the tool with a function")
    for value, code in (("/nonexistent/server", 2), ("", 0), (tooling.SERVER, 0)):
        env = ENVIRONMENT | {"CALLBOX_FUNCTIONS": value}
        equal(tool("call", "--tools", folder, "upper", '{"a": 1}', env=env).code, code, f"exit code of call with {value!r}")
        done = tool("check", folder, env=env)
        equal((done.code, b"/nonexistent/server" in done.out), (int(code > 0), code > 0), f"check with {value!r}")
    env = {key: text for key, text in ENVIRONMENT.items() if key != "CALLBOX_FUNCTIONS"}
    equal(tool("call", "--tools", folder, "upper", '{"a": 1}', env=env).code, 0, "exit code without it")


@case("wrong verbs and words are told what there is")
def usage():
    for words, text in (([], "list, call, check or schema"), (["lst"], "list, call, check or schema"), (["list"], "--tools"),
                        (["list", "--tools", "/nonexistent"], "/nonexistent"), (["list", "--tools", "/", "a", "b"], "too many"),
                        (["check"], "needs a folder"), (["check", "/nonexistent"], "/nonexistent"), (["schema", "x"], "list, call")):  # fmt: skip
        done = tool(*words)
        equal((done.code, done.out), (125, b""), f"exit code and stdout of {words}")
        check(text in done.err.decode(), f"stderr of {words} is {done.err!r}")
    for words in (["--help"], ["call", "-h"]):
        done = tool(*words)
        check(done.code == 0 and done.out.startswith(b"Usage: callbox tool list") and not done.err, f"{words}: {done.brief()}")
    equal(json.loads(tool("schema").out), MANIFESTS.schema, "what schema prints")
    done = tool("check", SCRATCH.directory())
    check(done.code == 125 and b"no manifests" in done.err, done.brief())


@case("what cannot be printed is no success")
def full():
    folder = folder_of(*TOOLS)
    for words in (["list", "--tools", folder], ["list", "--json", "--tools", folder], ["check", folder], ["check", "--json", folder], ["schema"],
                  ["--help"], ["call", "--tools", folder, "number"], ["call", "--tools", folder, "number", "--json"]):  # fmt: skip
        with open("/dev/full", "wb") as stream:
            done = harness.execute([CALLBOX, "tool", *map(str, words)], env=ENVIRONMENT, cwd="/", stdout=stream)
        check(done.code == 125 and b"No space left" in done.err, f"{words}: {done.brief()}")


# ---- check ---------------------------------------------------------------------------------------

PARTS = {"name": "t", "inputSchema": {"type": "object", "properties": {"s": STRING, "l": {"type": "array"}, "o": {"type": "object"}, "n": {"type": ["string", "null"]},
         "opt": STRING, "any": {}}, "required": ["s", "l", "o", "n", "any"]}}  # fmt: skip


def command(*elements, **more):
    return PARTS | {"run": {"command": ["true", *elements], **more}}


def run(value):
    return PARTS | {"run": value}


GOOD = {
    "least": manifest(), "everything": command("{s}", {"each": "l"}, {"json": "o"}, {"json": "any"}, {"when": "opt", "then": ["{opt}"]},
    {"value": "x{s}", "dash": True}, "{{}}", arguments="both", output="json-lines", success=[0, 255]) | {"title": "T", "description": "d",
    "outputSchema": True, "annotations": {"title": "x", "readOnlyHint": True}, "icons": [], "_meta": {}, "$schema": "x", "applyDefaults": True,
    "calls": 1, "policy": {"limits": {"wall": 5}}}, "shell": run({"shell": "true"}), "parameters": run({"shell": "true", "parameters": ["{s}"], "output": "json"}),
    "server": run({"server": ["/usr/bin/python3", "-I", "s.py"], "function": "module f"}),
    "object": run({"object": OBJECT, "function": "object_upper"}), "file": run({"command": [{"file": "/bin/true"}]}), "nullable": command({"when": "n", "then": ["{n}"]}),
    "long name": manifest("x" * 128), "most calls": manifest(calls=100000),
}  # fmt: skip

# What a schema can say as well: manifest, and where the loader finds the mistake.
BAD = {
    "no object": ([], ""), "no name": ({k: v for k, v in manifest().items() if k != "name"}, "name"), "a name with a space": (manifest("a b"), "name"),
    "an empty name": (manifest(""), "name"), "a long name": (manifest("x" * 129), "name"), "a name that is a number": (manifest() | {"name": 1}, "name"),
    "a name with a slash": (manifest("a/b"), "name"), "a title that is none": (manifest(title=1), "title"), "a description that is none": (manifest(description=[]), "description"),
    "no inputSchema": ({"name": "t", "run": {"command": ["true"]}}, "inputSchema"), "an inputSchema that is none": (manifest() | {"inputSchema": True}, "inputSchema"),
    "an inputSchema without type": (manifest() | {"inputSchema": {}}, "inputSchema.type"), "one of another type": (manifest() | {"inputSchema": {"type": "array"}}, "inputSchema.type"),
    "an outputSchema that is none": (manifest(outputSchema=1), "outputSchema"), "annotations that are none": (manifest(annotations=[]), "annotations"),
    "an unknown hint": (manifest(annotations={"readonlyHint": True}), "annotations.readonlyHint"), "a hint that is none": (manifest(annotations={"readOnlyHint": 1}), "annotations.readOnlyHint"),
    "a hint that is no title": (manifest(annotations={"title": 1}), "annotations.title"), "icons that are none": (manifest(icons={}), "icons"), "a _meta that is none": (manifest(_meta=[]), "_meta"),
    "an unknown key": (manifest(colour=1), "colour"), "applyDefaults that is none": (manifest(applyDefaults=1), "applyDefaults"), "no calls": (manifest(calls=0), "calls"),
    "too many calls": (manifest(calls=100001), "calls"), "calls that are none": (manifest(calls="1"), "calls"), "calls in part": (manifest(calls=1.5), "calls"),
    "a policy that is none": (manifest(policy=1), "policy"), "a policy with a path": (manifest(policy="a/b"), "policy"), "a hidden policy": (manifest(policy=".a"), "policy"),
    "a policy without a name": (manifest(policy=""), "policy"), "no run": ({k: v for k, v in manifest().items() if k != "run"}, "run"), "a run that is none": (run([]), "run"),
    "an empty run": (run({}), "run"), "an unknown run": (run({"program": "x"}), "run"), "a command that is none": (run({"command": "true"}), "run.command"),
    "an empty command": (run({"command": []}), "run.command"), "an unknown key of run": (command(outptu="json"), "run.outptu"), "two kinds": (run({"command": ["true"], "shell": "true"}), "run.shell"),
    "parameters of a command": (command(parameters=[]), "run.parameters"), "output that is none": (command(output="xml"), "run.output"), "arguments that are none": (command(arguments="x"), "run.arguments"),
    "success that is none": (command(success=0), "run.success"), "no success": (command(success=[]), "run.success"), "too much success": (command(success=list(range(17))), "run.success"),
    "success beyond 255": (command(success=[256]), "run.success[0]"), "success below 0": (command(success=[0, -1]), "run.success[1]"), "an element that is a number": (command(1), "run.command[1]"),
    "an element that is a list": (command([]), "run.command[1]"), "an element of no kind": (command({}), "run.command[1]"), "an element of an unknown kind": (command({"vlaue": "x"}), "run.command[1]"),
    "an element with more": (command({"value": "x", "more": 1}), "run.command[1].more"), "an element of two kinds": (command({"value": "x", "each": "l"}), "run.command[1].each"),
    "a dash that is none": (command({"value": "x", "dash": 1}), "run.command[1].dash"), "a dash of a file": (command({"file": "/bin/true", "dash": True}), "run.command[1].dash"),
    "a value that is none": (command({"value": 1}), "run.command[1].value"), "each of a number": (command({"each": 1}), "run.command[1].each"),
    "when without then": (command({"when": "s"}), "run.command[1].then"), "then that is none": (command({"when": "s", "then": "x"}), "run.command[1].then"),
    "too many elements": (command(*["x"] * 1024), "run.command"), "a shell that is none": (run({"shell": 1}), "run.shell"), "parameters that are none": (run({"shell": "true", "parameters": "x"}), "run.parameters"),
    "a server that is none": (run({"server": "x", "function": "f"}), "run.server"), "an empty server": (run({"server": [], "function": "f"}), "run.server"),
    "a server without a program": (run({"server": [""], "function": "f"}), "run.server"), "a server with a number": (run({"server": ["x", 1], "function": "f"}), "run.server[1]"),
    "a server without a function": (run({"server": ["x"]}), "run.function"), "a function of two lines": (run({"server": ["x"], "function": "a\nb"}), "run.function"),
    "output of a server": (run({"server": ["x"], "function": "f", "output": "json"}), "run.output"),
    "no function": (run({"object": OBJECT}), "run.function"), "a function that is none": (run({"object": OBJECT, "function": 1}), "run.function"),
    "a function with a space": (run({"object": OBJECT, "function": "a b"}), "run.function"), "an object that is none": (run({"object": 1, "function": "f"}), "run.object"),
}  # fmt: skip

# What only the loader can know, because it is in another part of the manifest, in another file, or in a text.
ONLY_LOADER = {
    "a schema with a mistake": (manifest() | {"inputSchema": {"type": "object", "minProperties": -1}}, "inputSchema.minProperties"),
    "a pattern that is none": (manifest() | {"inputSchema": {"type": "object", "properties": {"a": {"pattern": "("}}}}, "inputSchema.properties.a.pattern"),
    "a reference to nowhere": (manifest() | {"inputSchema": {"type": "object", "$ref": "#/$defs/x"}}, 'inputSchema["$ref"]'),
    "an outputSchema with a mistake": (manifest(outputSchema={"type": "strin"}), "outputSchema.type"),
    "a placeholder of nothing": (command("{x}"), "run.command[1]"), "a placeholder without a name": (command("{}"), "run.command[1]"), "an open brace": (command("{s"), "run.command[1]"),
    "a brace that ends nothing": (command("s}"), "run.command[1]"), "a placeholder of an array": (command("{l}"), "run.command[1]"), "a placeholder of an object": (command("{o}"), "run.command[1]"),
    "a placeholder of any type": (command("{any}"), "run.command[1]"), "a placeholder that may be missing": (command("{opt}"), "run.command[1]"), "one that may be null": (command("{n}"), "run.command[1]"),
    "each of a string": (command({"each": "s"}), "run.command[1].each"), "each of nothing": (command({"each": "x"}), "run.command[1].each"), "json of nothing": (command({"json": "x"}), "run.command[1].json"),
    "when of nothing": (command({"when": "x", "then": []}), "run.command[1].when"), "a program that the call chooses": (run({"command": ["{s}"]}), "run.command"),
    "a program that may be missing": (run({"command": [{"when": "s", "then": ["true"]}]}), "run.command"), "an empty program": (run({"command": [""]}), "run.command"),
    "a file that is not there": (command({"file": "missing"}), "run.command[1].file"), "a file that is a folder": (command({"file": "/"}), "run.command[1].file"),
    "when within when, too deep": (command({"when": "s", "then": [{"when": "s", "then": [{"when": "s", "then": [{"when": "s", "then": [{"when": "s", "then": []}]}]}]}]}),
                                   "run.command[1].then[0].then[0].then[0].then[0].then"),
    "text too long for a command line": (command("x" * 200000), "run.command[1]"), "a shell text too long for one": (run({"shell": "x" * 200000}), "run.shell"),
    "an object that is not there": (run({"object": "missing.so", "function": "f"}), "run.object"), "an object that is none": (run({"object": "/etc/passwd", "function": "f"}), "run.object"),
    "a policy with a mistake": (manifest(policy={"limits": {"wal": 1}}), "policy.limits.wal"), "a policy that is not there": (manifest(policy="missing"), "policy"),
    "a policy that the host cannot keep": (manifest(policy={"files": {"read": ["/nonexistent/at/all"]}}), "policy.files.read[0]"),
    "a program that the host does not have": (run({"command": ["no-such-program-at-all"]}), "run.command[0]"),
    "a whole number with a point": (manifest(calls=2.0), "calls"), "a function name that is too long": (run({"object": OBJECT, "function": "f" * 256}), "run.function"),
}  # fmt: skip


def checked(folder, *words, **options):
    done = tool("check", "--json", folder, *words, **options)
    return done.code, {os.path.basename(item["file"]): item for item in done.report}


def check_table(table, broken):
    folder = SCRATCH.directory()
    for number, (value, *_) in enumerate((item if isinstance(item, tuple) else (item,)) for item in table.values()):
        if isinstance(value, dict) and value.get("name") == "t":
            value = value | {"name": f"t{number}"}
        (folder / f"{number:03}.json").write_text(json.dumps(value))
    code, found = checked(folder)
    equal((code, len(found)), (int(broken), len(table)), "exit code, and files")
    return [found[f"{number:03}.json"] for number in range(len(table))]


@case("good manifests are good to the schema and to the loader")
def good_manifests():
    for (name, value), found in zip(GOOD.items(), check_table(GOOD, False)):
        equal((name, found["mistakes"], sorted(map(str, MANIFESTS.iter_errors(value)))), (name, [], []), "the mistakes")


@case("every kind of mistake is found by the schema and, with its place, by the loader")
def bad_manifests():
    for (name, (value, where)), found in zip(BAD.items(), check_table(BAD, True)):
        check(not MANIFESTS.is_valid(value), f"the schema takes {name}")
        check(where in [m["where"] for m in found["mistakes"]], lambda name=name, found=found, where=where: f"{name}: not at {where!r} but {found['mistakes']}")
        check(all(m["text"] for m in found["mistakes"]), f"{name}: no text")


@case("what only the loader can know, it finds, with its place")
def only_loader():
    for (name, (value, where)), found in zip(ONLY_LOADER.items(), check_table(ONLY_LOADER, True)):
        check(where in [m["where"] for m in found["mistakes"]], lambda name=name, found=found, where=where: f"{name}: not at {where!r} but {found['mistakes']}")
        if name != "a function name that is too long":
            check(MANIFESTS.is_valid(value), f"the schema knows of {name}: it belongs into the other table")


@case("text that is no manifest is told what it is")
def no_manifests():
    texts = {"": "empty", "{": "is not JSON", '{"name": "a", "name": "b"}': "given twice", "[" * 100: "nested more than 64 deep", "\x00": "is not JSON",
             " " * 1100000: "", '{"name": "a\\u0000b"}': "NUL", '{"name": "\\ud800"}': "is not JSON"}  # fmt: skip
    folder = SCRATCH.directory()
    for number, text in enumerate(texts):
        (folder / f"{number}.json").write_text(text)
    code, found = checked(folder)
    equal(code, 1, "exit code")
    for number, (text, said) in enumerate(texts.items()):
        mistakes = found[f"{number}.json"]["mistakes"]
        check(len(mistakes) == 1 and said in mistakes[0]["text"], f"{text[:20]!r}: {mistakes}")
    folder = SCRATCH.directory()
    os.mkfifo(folder / "pipe.json")
    (folder / "folder.json").mkdir()
    os.symlink("nowhere", folder / "link.json")
    code, found = checked(folder)
    equal((code, {name: item["mistakes"][0]["text"] for name, item in found.items()}),
          (1, {"folder.json": "cannot be read: it is no regular file", "link.json": "cannot be read: No such file or directory",
               "pipe.json": "cannot be read: it is no regular file"}), "of what is no file")  # fmt: skip


MANY = {"name": "a b", "titel": "x", "foo": 1, "inputSchema": {"type": "object", "properties": {"x": {"type": "strin"}}, "required": "x"},
        "annotations": {"readOnlyHint": 1, "bogus": True, "title": 3}, "calls": 0, "applyDefaults": "yes",
        "run": {"command": ["a", {"value": "{y}", "dsh": 1, "z": 2}, "}", 3], "outptu": "json", "output": "jsn", "bar": 2, "success": [300, "a", 0]},
        "policy": {"limits": {"memory": "x", "bogus": 1}, "network": "nowhere"}}  # fmt: skip
PLACES = ["annotations.bogus", "annotations.readOnlyHint", "annotations.title", "applyDefaults", "calls", "foo", "inputSchema.properties.x.type", "inputSchema.required", "name",
          "policy.limits.bogus", "policy.limits.memory", "policy.network", "run.bar", "run.command[1].dsh", "run.command[1].value", "run.command[1].z", "run.command[2]", "run.command[3]",
          "run.outptu", "run.output", "run.success[0]", "run.success[1]", "titel"]  # fmt: skip


@for_people("several mistakes in one file are all told, each with file, place, sentence and fix")
def many_mistakes(user):
    folder = SCRATCH.directory(user)
    (folder / "many.json").write_text(json.dumps(MANY))
    (folder / "good.json").write_text(json.dumps(manifest("good")))
    code, found = checked(folder, user=user)
    equal((code, found["good.json"]["mistakes"], found["good.json"]["tool"]), (1, [], "good"), "of the good one")
    equal(sorted(m["where"] for m in found["many.json"]["mistakes"]), PLACES, "the places")
    hints = {m["where"]: m["hint"] for m in found["many.json"]["mistakes"]}
    for where in ("titel", "name", "run.outptu", "run.output", "run.command[2]", "policy.limits.memory", "inputSchema.properties.x.type"):
        check(hints[where], f"no fix for {where}")
    lines = tool("check", folder, user=user)
    equal((lines.code, lines.err), (1, b""), "exit code and stderr")
    text = lines.out.decode()
    check(f"{folder}/good.json: good: good\n" in text, text[:300])
    equal(sorted(re.findall(rf"^{folder}/many.json: (\S+): \S", text, re.M)), PLACES, "the places in lines")
    check("    to fix it: " in text and 'did you mean "title"?' in text, text[:500])
    equal(tool("check", folder / "many.json", user=user).out.decode().splitlines()[0].split(": ")[0], f"{folder}/many.json", "of one file")
    equal(tool("check", folder / "good.json", user=user).code, 0, "of one that is good")


@case("a type that is wrong hides no other mistake of an inputSchema, and makes none up")
def wrong_type():
    schema = {"properties": {"s": STRING | {"minLength": -1}, "p": {"pattern": "("}}, "required": ["s"]}
    types = [{}, {"type": "objekt"}, {"type": ["object"]}, {"type": 1}]
    found = check_table({str(more): manifest() | {"inputSchema": schema | more, "run": {"command": ["true", "{s}"]}} for more in types}, True)
    for more, item in zip(types, found):
        equal((more, [m["where"] for m in item["mistakes"]]),
              (more, ["inputSchema.type", "inputSchema.properties.s.minLength", "inputSchema.properties.p.pattern"]), "the places")  # fmt: skip
    text = check_table({"x": manifest(outputSchema=1)}, True)[0]["mistakes"][0]["text"]
    equal(text, "must be an object, true or false, not a number", "what an outputSchema may be")


@case("two files with one name, and policies by name, are checked together")
def together():
    folder = SCRATCH.directory()
    (folder / "policies").mkdir()
    (folder / "policies" / "p.json").write_text("{}")
    for name in ("a", "b"):
        (folder / f"{name}.json").write_text(json.dumps(manifest("same", policy="p")))
    code, found = checked(folder)
    equal((code, found["a.json"]["mistakes"], [m["where"] for m in found["b.json"]["mistakes"]]), (1, [], ["name"]), "the mistakes")
    check("a.json" in found["b.json"]["mistakes"][0]["text"], found["b.json"]["mistakes"][0]["text"])
    other = SCRATCH.directory()
    code, found = checked(folder, "--policies", other)
    equal([m["where"] for m in found["a.json"]["mistakes"]], ["policy"], "with another folder of policies")


@case("the manifests that the loader takes are those that can be called")
def loader_is_one():
    """check and the toolbox read alike: what one refuses the other leaves out."""
    folder = folder_of(*[value | {"name": f"t{i}"} for i, value in enumerate(GOOD.values())])
    equal([item["name"] for item in tool("list", "--json", "--tools", folder).report], sorted(f"t{i}" for i in range(len(GOOD))), "the good ones")
    folder = SCRATCH.directory()
    broken = [value for value, _ in [*BAD.values(), *[item for name, item in ONLY_LOADER.items() if "host" not in name]]]
    for number, value in enumerate(broken):
        (folder / f"{number}.json").write_text(json.dumps(value | {"name": f"t{number}"} if isinstance(value, dict) and value.get("name") == "t" else value))
    done = tool("list", "--json", "--tools", folder)
    equal((done.report, done.err.count(b"is left out")), ([], len(broken)), "the bad ones")


# ---- The example tools -----------------------------------------------------------------------------


@for_people("the example tools are good, and do what they say")
def examples(user):
    tools = SCRATCH.directory(user) / "tools"
    shutil.copytree(REPO / "examples" / "tools", tools)
    for path in [tools, *tools.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    place = SCRATCH.directory(user)  # not where the manifests are: one of the tools may write there
    code, found = checked(tools, user=user, cwd=place)
    equal((code, [item["mistakes"] for item in found.values()]), (0, [[]] * len(found)), "the mistakes")
    check(len(found) >= 5, f"only {sorted(found)}")
    above = SCRATCH.directory(user)  # as in a checkout
    shutil.copytree(tools, above / "examples/tools")
    code, found = checked("examples/tools", user=user, cwd=above)
    equal((code, [item["mistakes"] for item in found.values()]), (0, [[]] * len(found)), "the mistakes where a newcomer stands")
    (place / "a.txt").write_text("one two two three three three\n")
    SCRATCH.own(place / "a.txt", user)

    def call(name, arguments, code=0):
        done = tool("call", "--tools", tools, name, json.dumps(arguments), user=user, cwd=place, timeout=60)
        equal(done.code, code, f"exit code of {name} ({done.err!r})")
        return done.out.decode()

    words = json.loads(call("word_count", {"path": "a.txt", "top": 2}))
    equal(words, {"words": 6, "top": [{"word": "three", "count": 3}, {"word": "two", "count": 2}]}, "word_count")
    equal(call("search_text", {"pattern": "TWO", "ignore_case": True, "files": "*.txt"}), "./a.txt:1:one two two three three three\n", "search_text")
    equal(call("search_text", {"pattern": "nothing"}), "", "search_text of nothing")
    equal(call("run_python", {"code": "print(6 * 7)"}), "42\n", "run_python")
    equal(call("run_python", {"code": "-c"}, 1), "", "run_python of what is no Python")
    equal(list(json.loads(call("checksum_files", {"paths": ["a.txt"]}))), ["a.txt"], "checksum_files")
    equal(json.loads(call("replace_text", {"path": "a.txt", "old": "one", "new": "ONE"}))["replaced"], 1, "replace_text")
    equal((place / "a.txt").read_text(), "ONE two two three three three\n", "what was replaced")
    equal(call("run_c", {"source": "#include <stdio.h>\nint main(void) { puts(\"hi\"); return 0; }\n"}), "hi\n", "run_c")
    for value in found.values():
        manifest_text = json.loads((tools / os.path.basename(value["file"])).read_text())
        check(MANIFESTS.is_valid(manifest_text), f"{value['file']} is not what the schema says")


if __name__ == "__main__":
    sys.exit(harness.main(after=SCRATCH.remove))
