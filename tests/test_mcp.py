#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""callbox mcp on stdio: both eras, tools of its own and of a folder, errors, hostile input, cancellation,
progress, changes, and its end."""

import contextlib
import json
import os
import re
import signal
import sys
import threading
import time

import harness
from harness import case, check, equal, for_people, wait_until
from mcp_client import LEGACY, META, MODERN, Server, bad, folder_of, good, modern, text_of
from tooling import CALLBOX, SCRATCH, manifest

STRING = {"type": "string"}
LINES = {"output": "json-lines"}


def said(*messages):
    """A shell that prints these messages."""
    return {"shell": "cat <<'END'\n" + "\n".join(json.dumps(message) for message in messages) + "\nEND", **LINES}


TOOLS = [
    manifest("hello", ["echo", "hello {who}"], {"who": STRING}, title="Hello", annotations={"readOnlyHint": True}),
    manifest("sum", run={"shell": "echo 42", "output": "json"}, outputSchema={"type": "integer"}),
    manifest("point", run={"shell": "echo '{\"x\": 1}'", "output": "json"},
             outputSchema={"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}),
    manifest("broken_promise", run={"shell": "echo '{}'", "output": "json"},
             outputSchema={"type": "object", "required": ["x"]}),
    manifest("list", run={"shell": "echo '[1, 2]'", "output": "json"}),
    manifest("steps", run=said({"progress": 0, "total": 10}, {"progress": 5, "message": "half"}, {"progress": 5}, {"progress": 4},
                               {"log": "a line", "level": "warning"}, {"log": "detail", "level": "debug"},
                               {"progress": 10, "total": 10}, {"result": "done"})),
    manifest("kill", ["unshare", "-U", "true"], policy={"syscalls": {"on_denied": "kill"}}),
]  # fmt: skip


# ---- Both eras -----------------------------------------------------------------------------------


@for_people("2026-07-28: discover, list and call, without a handshake")
def modern_era(user):
    with Server("--tools", folder_of(*TOOLS, user=user), user=user) as server:
        found = server.result("server/discover")
        equal((found["resultType"], found["cacheScope"]), ("complete", "public"), "what discover says")
        check(found["ttlMs"] >= 0 and found["supportedVersions"][0] == MODERN, lambda: str(found))
        check("tools" in found["capabilities"] and META + "tasks" in found["capabilities"]["extensions"], lambda: str(found))
        equal(found["_meta"][META + "serverInfo"]["name"], "callbox", "the server's name")
        listed = server.result("tools/list")
        names = [tool["name"] for tool in listed["tools"]]
        equal(names, sorted([tool["name"] for tool in TOOLS] + ["run_command", "run_python"]), "the tools, in order")
        check(listed["ttlMs"] >= 0 and listed["cacheScope"] in ("public", "private"), lambda: str(listed)[:300])
        hello = listed["tools"][names.index("hello")]
        equal((hello["title"], hello["annotations"]), ("Hello", {"readOnlyHint": True}), "title and annotations")
        equal(server.result("tools/list")["tools"], listed["tools"], "the list, asked for again")
        called = server.call("hello", {"who": "you"})
        equal((good(called), called["resultType"]), ("hello you\n", "complete"), "the call")
        equal(called["structuredContent"]["reason"], "exited", "the report")


@for_people("2025-11-25 and older: handshake, ping, list and call")
def legacy_era(user):
    for version, agreed in [("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"), ("2025-03-26", "2025-03-26"),
                            ("2024-11-05", "2024-11-05"), ("1999-01-01", LEGACY), (MODERN, LEGACY)]:  # fmt: skip
        with Server("--tools", folder_of(TOOLS[0], user=user), user=user) as server:
            equal(server.old("ping")[0]["result"], {}, "a ping before the handshake")
            found = server.greet(version)
            equal((found["protocolVersion"], found["serverInfo"]["name"]), (agreed, "callbox"), "what initialize says")
            check(found["capabilities"]["tools"]["listChanged"], lambda: str(found))
            listed = server.old("tools/list")[0]["result"]
            check("resultType" not in listed and "ttlMs" not in listed, "members of the newer era")
            result, _ = server.old_call("hello", {"who": "you"})
            equal(good(result), "hello you\n", "the call")
            # Era by request: the same process answers both.
            equal(good(server.call("hello", {"who": "me"})), "hello me\n", "a modern call in between")
            equal(server.old("server/discover")[0]["error"]["code"], -32601, "a method of the other era")


@case("what a request of 2026-07-28 must have is asked for, with the codes of the protocol")
def meta_checks():
    with Server() as server:

        def code(method, params):
            id = server.ask(method, params)
            return server.answer(id)[0]["error"]

        equal(code("tools/list", {})["code"], -32602, "no _meta")
        equal(code("server/discover", {"_meta": {}})["code"], -32602, "an empty _meta")
        equal(code("tools/list", {"_meta": {META + "protocolVersion": MODERN}})["code"], -32602, "no capabilities")
        equal(code("tools/list", {"_meta": {**modern(), META + "clientCapabilities": 1}})["code"], -32602, "wrong capabilities")
        equal(code("tools/list", {"_meta": {**modern(), META + "protocolVersion": 1}})["code"], -32602, "a number as version")
        error = code("tools/list", {"_meta": {**modern(), META + "protocolVersion": "2030-01-01"}})
        equal((error["code"], error["data"]["requested"], MODERN in error["data"]["supported"]), (-32022, "2030-01-01", True), "a version")
        equal(server.error("no/such")["code"], -32601, "an unknown method")
        for method in ("ping", "initialize", "logging/setLevel", "tasks/list", "tasks/result", "resources/list"):
            equal(server.error(method)["code"], -32601, f"{method}")
        equal(server.error("tools/call", {"name": "nope"})["code"], -32602, "an unknown tool")
        equal(server.error("tools/call", {"name": 3})["code"], -32602, "a name that is none")
        equal(server.error("tools/call", {"name": "run_command\0x"})["code"], -32602, "a name with a NUL behind it")
        equal(server.error("tools/call", {"name": "run_command", "arguments": []})["code"], -32602, "arguments that are none")
        equal(server.error("tools/list", {"cursor": "nonsense"})["code"], -32602, "a cursor")


# ---- Results -------------------------------------------------------------------------------------


@case("results: structured where the tool's is, the report where it is not, an error where a promise is broken")
def structured():
    with Server("--tools", folder_of(*TOOLS)) as server:
        equal(server.call("sum")["structuredContent"], 42, "a number")
        equal(text_of(server.call("sum")), "42", "and its text")
        equal(server.call("list")["structuredContent"], [1, 2], "a list")
        equal(server.call("point")["structuredContent"], {"x": 1}, "an object")
        broken = server.call("broken_promise")
        check("structuredContent" not in broken and "broke its own promise" in bad(broken), lambda: str(broken)[:500])
        equal(broken["_meta"]["callbox/report"]["reason"], "exited", "the report beside it")
        report = server.call("hello", {"who": "x"})["structuredContent"]
        equal((report["code"], report["stdout"]["text"], report["tool"]["ok"]), (0, "hello x\n", True), "the report")
        server.greet()
        listed = {tool["name"]: tool for tool in server.old("tools/list")[0]["result"]["tools"]}
        check("outputSchema" in listed["point"] and "outputSchema" not in listed["sum"], "schemas that the older era knows")
        equal(server.old_call("point")[0]["structuredContent"], {"x": 1}, "an object, older era")
        equal(server.old_call("sum")[0]["structuredContent"]["tool"]["output"], 42, "a number, older era: in the report")


@for_people("a failed call says why, what was on stderr, what was refused and what would allow it")
def failures(user):
    folder = folder_of(*TOOLS, user=user)
    with Server("--tools", folder, "--capture", "20K", user=user) as server:
        result = server.call("run_command", {"command": "echo out; echo why >&2; cat /etc/shadow; exit 3"})
        text = bad(result)
        for part in ("exit code 3", "stderr:\nwhy", "stdout:\nout", '"files": {"read": ["/etc/shadow"]}', "--read /etc/shadow"):
            check(part in text, lambda: f"{part!r} is not in {text!r}")
        equal(result["structuredContent"]["code"], 3, "the code in the report")
        check(result["structuredContent"]["denials"], "denials in the report")
        text = bad(server.call("run_command", {"command": "sleep 60", "timeout": 0.3}))
        check("0.3 s" in text, lambda: text)
        text = bad(server.call("run_command", {"command": "kill -9 $$"}))
        check("signal" in text.lower() or "SIGKILL" in text, lambda: text)
        text = bad(server.call("kill"))
        check("was ended" in text and "unshare" in text, lambda: text)
        text = good(server.call("run_command", {"command": "head -c 100000 /dev/zero | tr '\\0' x"}))
        check("left out" in text and len(text) < 40000, lambda: text[-300:])
        result = server.call("run_command", {"command": 3, "cwdd": "."})
        text = bad(result)
        check("/command" in text and "cwdd" in text, lambda: f"all mistakes: {text}")
        equal(len(result["structuredContent"]["tool"]["mistakes"]), 2, "the mistakes in the report")


BOXES = {"namespaces": r"is in (/run/callbox/output/\S+) for .*?; on the host it is (\S+)\.\]", "landlock": r"is in ((\S+)) for .*?, and on the host\.\]"}


@for_people("output that is too long for an answer is kept whole, where boxes of both kinds and the host can read it, until the end")
def kept(user):
    for box, told in BOXES.items():
        # Without mounts root's boxes, which are somebody else, get there by a path that nobody can guess.
        runtime = SCRATCH.directory(user)
        with Server("--files", "--box", box, user=user, env={"XDG_RUNTIME_DIR": str(runtime)}) as server:
            good(server.call("run_command", {"command": "echo short"}))
            equal([path for path in runtime.rglob("*") if path.is_file()], [], "what is short is not kept")
            text = good(server.call("run_command", {"command": "seq 1 100000; seq 1 50000 >&2"}))
            found = re.findall(told, text)
            equal(len(found), 2, f"the places in {text[-600:]!r}")
            shown, held = zip(*found)
            wanted = "".join(f"{i}\n" for i in range(1, 100001))
            equal(open(held[0]).read(), wanted, "stdout on the host")
            equal(good(server.call("run_command", {"command": f"sed -n '50000,50001p' {shown[0]}; wc -l <{shown[1]}"})), "50000\n50001\n50000\n", "in a box")
            check("99999" in good(server.call("read_file", {"path": shown[0], "first": 99999})), "for read_file")
            check(shown[0] in server.result("server/discover")["instructions"] or os.path.dirname(shown[0]) in server.result("server/discover")["instructions"], "the instructions")
            for change in (f"echo x >>{shown[0]}", f"rm {shown[0]}", f"mv {os.path.dirname(shown[0])} /tmp"):
                bad(server.call("run_command", {"command": change}))
            outer = os.stat(runtime.glob("*").__next__()).st_mode & 0o077
            equal(outer, 0o011 if box == "landlock" and not user else 0, "what others of the host may do there")
            if outer:  # ... who cannot list it, where the name is
                equal(len(os.path.basename(os.path.dirname(held[0]))), len("output-") + 16, "what they would have to guess")
            text = bad(server.call("run_command", {"command": "seq 1 100000; exit 9"}))
            check("exit code 9" in text and re.findall(told, text), lambda: text[-500:])
        equal(list(runtime.iterdir()), [], "what is left")


@for_people("all that needs no namespaces is served without them")
def without_namespaces(user):
    workspace = SCRATCH.directory(user)
    tools = folder_of(manifest("hello", ["echo", "hello {who}"], {"who": STRING}), manifest("own", ["pwd"], policy={"box": "landlock"}), user=user)
    with Server("--box", "landlock", "--workspace", workspace, "--files", "--tools", tools, user=user) as server:
        equal(good(server.call("run_command", {"command": "pwd; echo more >made; cat", "stdin": "in\n"})), f"{workspace}\nin\n", "a command")
        equal(good(server.call("run_python", {"code": "print(open('made').read()); 6 * 7"})), "more\n\n42", "code")
        good(server.call("write_file", {"path": "new", "content": "a line\n"}))
        check("a line" in good(server.call("read_file", {"path": "new"})), "a file")
        check("made" in good(server.call("list_files")) and "new" in good(server.call("search_files", {"pattern": "a line"})), "files")
        equal(good(server.call("hello", {"who": "you"})), "hello you\n", "a tool of a folder")
        good(server.call("own"))
        text = bad(server.call("run_command", {"command": "sleep 60", "timeout": 0.3}))
        check("0.3 s" in text, lambda: text)
        text = bad(server.call("run_command", {"command": "echo x >.envrc"}))
        check(".envrc" in text and not (workspace / ".envrc").exists(), lambda: text)
        bad(server.call("run_command", {"command": f"ls {workspace.parent}"}))
    # What needs them is told when it starts, with the way to get them.
    other = Server("--box", "landlock", "--read", f"{workspace}:/elsewhere", user=user)
    other.process.wait(20)
    other.readers[1].join(5)
    check(b"cannot be shown as /elsewhere without namespaces" in other.errors and b"take --box landlock" in other.errors, lambda: str(other.errors))


def keepers(server):
    """The process that removes what is kept when its server cannot."""
    with open(f"/proc/{server.process.pid}/task/{server.process.pid}/children") as stream:
        return [int(pid) for pid in stream.read().split() if open(f"/proc/{pid}/comm").read() == "callbox-keep\n"]


@for_people("what is kept goes with a server that is killed, and with one that is killed together with all that it started")
def kept_after_kill(user):
    runtime = SCRATCH.directory(user)

    def fill():
        server = Server(user=user, env={"XDG_RUNTIME_DIR": str(runtime)})
        text = good(server.call("run_command", {"command": "seq 1 100000"}))
        server.told, held = re.search(BOXES["namespaces"], text).groups()  # nobody can list what is there
        check(os.path.exists(held) and held.startswith(f"{runtime}/"), "nothing is kept")
        return server

    def kill(*pids):
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)  # so that none sees another end
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    server = fill()
    server.process.kill()
    server.process.wait(20)
    check(wait_until(lambda: not list(runtime.iterdir()), 10), lambda: f"left: {list(runtime.rglob('*'))}")
    server = fill()
    watching = keepers(server)
    equal(len(watching), 1, "processes that watch")
    kill(*watching, server.process.pid)
    server.process.wait(20)
    left = list(runtime.iterdir())
    equal(len(left), 1, "what nobody could remove")
    with fill() as first, fill() as second:
        held = list(runtime.iterdir())
        check(left[0] not in held and len(held) == 2, lambda: f"a new server removes what nobody has, and that alone: {left} {held}")
        for server in (first, second):
            good(server.call("run_command", {"command": f"ls {server.told}"}))
    equal(list(runtime.iterdir()), [], "what is left")


# ---- Tools that come along -----------------------------------------------------------------------


@for_people("run_command and run_python work in the workspace and nowhere else")
def builtin(user):
    workspace = SCRATCH.directory(user)
    with Server("--workspace", workspace, user=user) as server:
        text = good(server.call("run_command", {"command": "pwd; echo more >made; echo err >&2"}))
        equal(text, f"{workspace}\n[stderr]\nerr\n", "the output")
        equal((workspace / "made").read_text(), "more\n", "the file")
        equal(good(server.call("run_command", {"command": "cat; pwd", "stdin": "in\n", "cwd": "/usr"})), "in\n/usr\n", "stdin and cwd")
        equal(good(server.call("run_command", {"command": "-x() { echo odd; }; -x"})), "odd\n", "a command that begins with a dash")
        check("nowhere" in bad(server.call("run_command", {"command": "true", "cwd": "nowhere"})), "a directory that is not there")
        bad(server.call("run_command", {"command": "touch /usr/made"}))
        bad(server.call("run_command", {"command": "cat /proc/1/environ | grep -z SECRET"}))
        equal(good(server.call("run_python", {"code": "print('hi')\nx = 20\nx + 1"})), "hi\n21", "a value")
        equal(good(server.call("run_python", {"code": "x = 1"})), "", "no value")
        equal(good(server.call("run_python", {"code": ""})), "", "nothing at all")
        equal(good(server.call("run_python", {"code": "open('made').read()"})), "'more\\n'", "a file of the workspace")
        result = server.call("run_python", {"code": "'\\ud800'"})
        equal(good(result), "'\\ud800'", "half a surrogate pair")
        equal(server.call("run_python", {"code": "6 * 7"})["structuredContent"]["tool"]["output"], {"result": "42"}, "structured")
        text = bad(server.call("run_python", {"code": "def f():\n    return 1 / 0\nf()"}))
        check("line 2, in f" in text and "return 1 / 0" in text and "ZeroDivisionError" in text, lambda: text)
        check("SyntaxError" in bad(server.call("run_python", {"code": "1 +"})), "a mistake in the text")
        check("exit code 7" in bad(server.call("run_python", {"code": "import sys; sys.exit(7)"})), "an exit code")
        check("SystemExit" not in good(server.call("run_python", {"code": "import sys; print(1); sys.exit()"})), "an exit that is well")


@for_people("--files: read, write, list and search in the workspace")
def files(user):
    workspace = SCRATCH.directory(user)
    with Server("--workspace", workspace, "--files", user=user) as server:
        good(server.call("write_file", {"path": "a/b.txt", "content": "one\ntwo\n"}))
        good(server.call("write_file", {"path": "a/b.txt", "content": "three", "append": True}))
        equal((workspace / "a" / "b.txt").read_text(), "one\ntwo\nthree", "what was written")
        equal(good(server.call("read_file", {"path": "a/b.txt"})), "one\ntwo\nthree", "all of it")
        equal(good(server.call("read_file", {"path": "a/b.txt", "first": 2, "lines": 1})), "two\n[lines 2 to 2 of 3; go on with first 3]", "a part")
        result = server.call("read_file", {"path": "a/b.txt", "first": 9})
        equal((good(result), result["structuredContent"]["last"]), ("[lines 9 to 8 of 3]", 8), "beyond the end")
        (workspace / "bin").write_bytes(b"a\0b")
        (workspace / "latin").write_bytes(b"caf\xe9\n")
        (workspace / ".dot").write_text("two\n")
        check("no text" in bad(server.call("read_file", {"path": "bin"})), "a file that is no text")
        equal(good(server.call("read_file", {"path": "latin"})), "caf�\n", "bytes that are no UTF-8")
        check("directory" in bad(server.call("read_file", {"path": "a"})), "a directory")
        check("No such file" in bad(server.call("read_file", {"path": "nothing"})), "a file that is not there")
        equal(server.call("list_files", {"depth": 2})["structuredContent"]["files"], ["a/", "a/b.txt", "bin", "latin"], "the files")
        equal(server.call("list_files", {"hidden": True, "limit": 1})["structuredContent"], {"files": [".dot"], "more": True}, "one")
        equal(good(server.call("search_files", {"pattern": "^t[wh]"})), "a/b.txt:2: two\na/b.txt:3: three\n", "what was found")
        equal(good(server.call("search_files", {"pattern": "TWO", "ignore_case": True, "names": "*.txt"})), "a/b.txt:2: two\n", "by name")
        equal(good(server.call("search_files", {"pattern": "nothing"})), "Nothing was found.\n", "nothing")
        bad(server.call("search_files", {"pattern": "["}))
        (workspace / "link").symlink_to("/etc")
        check("passwd" not in str(server.call("list_files", {"depth": 5})), "a link that was followed")


# ---- Lists ---------------------------------------------------------------------------------------


@case("tools/list comes in pages that fit together, while tools go and come")
def pages():
    names = [f"tool{i:03}" for i in range(250)]
    folder = folder_of(*[manifest(name) for name in names])
    with Server("--tools", folder, "--no-builtin") as server:
        found, cursor = [], None
        for _ in range(10):
            listed = server.result("tools/list", {"cursor": cursor} if cursor else {})
            found += [tool["name"] for tool in listed["tools"]]
            cursor = listed.get("nextCursor")
            if not cursor:
                break
            gone = folder / f"{found[-1]}.json"  # the one that the cursor stands at
            gone.unlink()
            check(wait_until(lambda: "error" in server.request("tools/call", {"name": found[-1]}), 10), "it stays")
        equal(found, names, "all tools")


@for_people("a change in the folder is told to whoever wants to know, and to nobody else")
def changes(user):
    folder = folder_of(TOOLS[0], user=user)
    with Server("--tools", folder, user=user) as server:
        equal(server.error("subscriptions/listen", {})["code"], -32602, "a filter that is missing")
        quiet = server.ask("subscriptions/listen", {"notifications": {}}, **modern())
        first = server.read()
        equal(first["params"], {"_meta": {META + "subscriptionId": quiet}, "notifications": {}}, "who wants nothing")
        id = server.ask("subscriptions/listen", {"notifications": {"toolsListChanged": True, "promptsListChanged": True}}, id="sub", **modern())
        first = server.read()
        equal((first["method"], first["params"]), ("notifications/subscriptions/acknowledged",
              {"_meta": {META + "subscriptionId": id}, "notifications": {"toolsListChanged": True}}), "what is agreed on")  # fmt: skip
        (folder / "new.json").write_text(json.dumps(manifest("new", ["echo", "new"])))
        told = server.read()
        equal((told["method"], told["params"]["_meta"]), ("notifications/tools/list_changed", {META + "subscriptionId": "sub"}), "the change")
        equal(good(server.call("new")), "new\n", "the new tool")
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "sub"}})
        (folder / "new.json").unlink()
        check(wait_until(lambda: "error" in server.request("tools/call", {"name": "new"}), 10), "the tool stays")
        check(not server.kept, "something was sent to a subscription that is over")
        server.greet()
        (folder / "hello.json").write_text(json.dumps(manifest("hello", ["echo", "changed"])))
        equal(server.read(), {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}, "the older era is told unasked")
        (folder / "bad.json").write_text("{")
        server.process.send_signal(signal.SIGTERM)
        equal(server.answer(quiet)[0]["result"]["_meta"][META + "subscriptionId"], quiet, "the end of who wanted nothing")
        server.process.wait(timeout=20)


@case("SIGTERM and SIGINT answer what is open and end every box", alone=True)
def signals():
    for number in (signal.SIGTERM, signal.SIGINT):
        mark = f"3{os.getpid()}{number}"
        with Server() as server:
            listening = server.ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, **modern())
            server.read()
            calling = server.ask("tools/call", {"name": "run_command", "arguments": {"command": f"sleep {mark}"}}, **modern())
            check(wait_until(lambda: harness.programs(f"sleep\0{mark}"), 10), "the box did not start")
            server.process.send_signal(number)
            equal(server.answer(listening)[0]["result"]["_meta"][META + "subscriptionId"], listening, "the subscription's end")
            equal(server.answer(calling)[0]["error"]["code"], -32603, "the call's end")
            equal(server.process.wait(timeout=20), 0, "the exit code")
            check(wait_until(lambda: not harness.programs(f"sleep\0{mark}"), 5), "the box lives on")


# ---- While it runs -------------------------------------------------------------------------------


def numbers(messages):
    return [message["params"]["progress"] for message in messages if message["method"] == "notifications/progress"]


@case("progress and log lines come where they were asked for, with numbers that grow")
def progress():
    with Server("--tools", folder_of(*TOOLS)) as server:

        def call(name, arguments=None, **meta):
            return server.answer(server.ask("tools/call", {"name": name, "arguments": arguments or {}}, **modern(**meta)))

        equal(call("steps")[1], [], "nobody asked")
        answer, before = call("steps", progressToken="t")
        equal(numbers(before), [0, 5, 10], "the progress of the tool")
        equal([m["params"]["progressToken"] for m in before], ["t"] * 3, "the token")
        equal((before[0]["params"]["total"], before[1]["params"]["message"]), (10, "half"), "total and message")
        answer, before = call("steps", **{META + "logLevel": "info"})
        equal([(m["method"], m["params"]) for m in before],
              [("notifications/message", {"level": "warning", "logger": "steps", "data": "a line"})], "the log")  # fmt: skip
        answer, before = call("run_command", {"command": "for i in 1 2 3; do echo line $i; sleep 0.3; done"}, progressToken=7)
        check(len(before) >= 2, lambda: f"live output: {before}")
        equal("".join(m["params"]["message"] for m in before), good(answer["result"]), "the output, in pieces")
        grown = numbers(before)
        check(all(a < b for a, b in zip(grown, grown[1:])), lambda: f"numbers: {grown}")
        answer, before = call("run_command", {"command": "yes caf\u00e9 | head -c 3000000", "timeout": 20}, progressToken=8)
        check(len(before) < 500 and all(len(m["params"]["message"]) <= 5000 for m in before), lambda: f"a flood: {len(before)} messages")
        check(not any("\ufffd" in m["params"]["message"][:-1] for m in before), "a character was cut")
        server.greet()
        result, before = server.old_call("steps", progressToken="old")
        equal(numbers(before), [0, 5, 10], "the older era")
        equal(len([m for m in before if m["method"] == "notifications/message"]), 1, "log lines of the older era, from info on")
        equal(server.old("logging/setLevel", {"level": "debug"})[0]["result"], {}, "a level")
        _, before = server.old_call("steps")
        equal(len(before), 2, "log lines, from debug on")
        equal(server.old("logging/setLevel", {"level": "loud"})[0]["error"]["code"], -32602, "no level")


@for_people("a cancelled call is killed with its tree, and nothing more is sent for it")
def cancelled(user):
    mark = f"4{os.getpid()}{int(user)}"
    with Server(user=user) as server:
        for era in (modern(progressToken="p"), None):
            if era is None:
                server.greet()
            id = server.ask("tools/call", {"name": "run_command", "arguments": {"command": f"sleep {mark} & setsid sleep {mark} & wait"}}, **(era or {}))
            check(wait_until(lambda: len(harness.programs(f"sleep\0{mark}")) == 2, 10), "the processes did not start")
            server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id, "reason": "enough"}})
            check(wait_until(lambda: not harness.programs(f"sleep\0{mark}"), 5), "the processes live on")
            answer = server.answer(server.ask("tools/list", {}, **modern()))
            check("result" in answer[0] and not answer[1] and not server.kept, lambda: f"something was sent: {answer[1]} {server.kept}")
        for params in ({"requestId": 4711}, {"requestId": None}, {}, {"requestId": {"a": 1}}):
            server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        good(server.call("run_command", {"command": "true"}))


@case("many calls run at once, and a slow one delays none")
def many():
    with Server() as server:
        slow = server.ask("tools/call", {"name": "run_command", "arguments": {"command": "sleep 25"}}, **modern())
        ids = [server.ask("tools/call", {"name": "run_command", "arguments": {"command": f"echo {i}"}}, **modern()) for i in range(100)]
        for i, id in enumerate(ids):
            equal(good(server.answer(id)[0]["result"]), f"{i}\n", f"call {i}")
        check(not any(message.get("id") == slow for message in server.kept), "the slow one was waited for")


@case("ids of requests under way are not used twice, and there is a bound on requests", alone=True)
def bounds():
    with Server() as server:
        listen = {"notifications": {"toolsListChanged": True}}
        server.ask("subscriptions/listen", listen, id="x", **modern())
        server.read()
        server.ask("tools/list", id="x", **modern())
        equal(server.read()["error"]["code"], -32600, "an id that is in use")
        for i in range(1100):
            server.ask("subscriptions/listen", listen, id=f"s{i}", **modern())
        found = [server.read() for _ in range(1100)]
        refused = [message["id"] for message in found if "error" in message]
        equal(refused, [f"s{i}" for i in range(1023, 1100)], "those that are too many")


# ---- Hostile input -------------------------------------------------------------------------------


@case("hostile input is answered with the codes of JSON-RPC, and the server goes on")
def hostile():
    deep = b'{"jsonrpc":"2.0","id":1,"method":"x","params":' + b'{"a":' * 3000 + b"1" + b"}" * 3000 + b"}"
    lines = [
        (b"garbage", -32700), (b"{", -32700), (b"\xff\xfe", -32700), (b"\x00", -32700), (b'{"a":1}{"b":2}', -32700),
        (b"[]", -32600), (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600), (b"3", -32600), (b'"ping"', -32600), (b"null", -32600),
        (deep, -32700), (b"[" * 100000, -32700),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', -32700),
        (b'{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"ping"}', -32700),
        (b'{"jsonrpc":"2.0","id":1e999,"method":"ping"}', -32700),
        (b'{"jsonrpc":"2.0","id":"' + b"x" * 2000 + b'","method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600), (b'{"id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600), (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":3}', -32600), (b'{"jsonrpc":"2.0","id":1,"method":"ping\\u0000"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":3}}', -32602),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', -32700),
    ]  # fmt: skip
    with Server() as server:
        for line, code in lines:
            server.write(line + b"\n")
            answer = server.read()
            equal(answer.get("error", {}).get("code"), code, f"the code for {line[:80]!r}")
            check("id" not in answer or answer["id"] == 1, lambda: f"the id of {answer}")
        # Nothing at all is said to these.
        for line in (b"", b"   ", b"\r", b'{"jsonrpc":"2.0","method":"no/such"}', b'{"jsonrpc":"2.0","id":9,"result":{}}',
                     b'{"jsonrpc":"2.0","id":"callbox-1","error":{"code":1,"message":"x"}}', b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}'):  # fmt: skip
            server.write(line + b"\n")
        server.write(b'{"jsonrpc":"2.0","id":"last","method":"ping"}\r\n')
        equal(server.read(), {"jsonrpc": "2.0", "id": "last", "result": {}}, "what comes next")
        # In pieces, and two in one.
        for byte in b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n':
            server.write(bytes([byte]))
        equal(server.read()["id"], 1.5, "a message in pieces")
        server.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n{"jsonrpc":"2.0","id":2,"method":"ping"}\n')
        equal([server.read()["id"], server.read()["id"]], [1, 2], "two at once")


@case("a line without end is refused once, costs no more than its bound, and the next one is answered", alone=True)
def endless():
    with Server() as server:
        for _ in range(60):
            server.write(b"x" * (1 << 20))
        equal(server.read()["error"]["code"], -32700, "the line that is too long")
        server.write(b'\n{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        equal(server.read()["id"], 1, "the next line")
        status = open(f"/proc/{server.process.pid}/status").read()
        peak = int(status.split("VmHWM:")[1].split()[0])
        check(peak < 128 * 1024, lambda: f"{peak} KiB were held")


@case("a client that does not read is waited for, and loses no answer")
def not_reading():
    server = Server()
    with server:
        big = {"name": "run_command", "arguments": {"command": "head -c 90000 /dev/zero | tr '\\0' y"}}
        pause = threading.Event()
        original = server.lines.put

        def slow_put(line):  # the reader stops after the first line until it is told to go on
            original(line)
            pause.wait(timeout=30)

        server.lines.put = slow_put
        ids = [server.ask("tools/call", big, **modern(progressToken=i)) for i in range(60)]
        time.sleep(0.5)
        pause.set()
        for id in ids:
            check(len(good(server.answer(id, timeout=60)[0]["result"])) == 90000, "an answer is not whole")


@for_people("a tool cannot forge a message, whatever it prints or writes to")
def forged(user):
    line = '{"jsonrpc":"2.0","id":1,"result":{"forged":true}}'
    script = f"echo '{line}'; echo '{line}' >&2; for f in 0 1 2 3 4 5 6 7 8; do echo '{line}' >&$f; done 2>/dev/null; " \
             f"for p in /proc/[0-9]*/fd/*; do echo '{line}' >$p; done 2>/dev/null; printf '\\n\\n{line}\\n\\r{line}\\r\\u2028'; exit 0"  # fmt: skip
    tools = [manifest("shell", run={"shell": script}), manifest("lines", run={"shell": script, **LINES}), manifest("json", run={"shell": script, "output": "json"})]
    with Server("--tools", folder_of(*tools, user=user), user=user) as server:
        for name in ("shell", "lines", "json"):
            answer, before = server.answer(server.ask("tools/call", {"name": name}, **modern(progressToken="p")))
            check("forged" not in answer["result"] and all("method" in message for message in before), lambda: f"{name}: {answer}")
            check(all(message["params"]["progressToken"] == "p" for message in before), "a message of the tool's own")
        check(not server.kept, lambda: f"forged: {server.kept}")


# ---- Its end -------------------------------------------------------------------------------------


def time_to_end(user, mark, options):
    """Seconds from the end of stdin until neither the server nor any of its eight boxes is there."""
    server = Server(*options, user=user)
    with server:
        for _ in range(8):
            server.ask("tools/call", {"name": "run_command", "arguments": {"command": f"trap '' TERM HUP; sleep {mark}"}}, **modern())
        check(wait_until(lambda: len(harness.programs(f"sleep\0{mark}")) == 8, 10), "the boxes did not start")
        boxes = harness.programs(f"sleep\0{mark}")
        began = time.monotonic()
        server.process.stdin.close()
        # A look at all processes of the host takes longer than the end does.
        check(wait_until(lambda: server.process.poll() is not None and not any(is_there(pid) for pid in boxes), 5, 0.0005), "something lives on")
        took = time.monotonic() - began
        check(not harness.programs(f"sleep\0{mark}"), "a box lives on")
        equal(server.process.returncode, 0, "the exit code")
        equal(server.read(), None, "nothing more is said")
    return took


def is_there(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as stream:
        return stream.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    return False


@for_people("the end of stdin ends the server and every box within 100 ms", alone=True)
def ends(user):
    mark = f"5{os.getpid()}{int(user)}"
    for options in ([], ["--audit", str(SCRATCH.directory(user) / "log")]):
        # Whoever shares the machine can hold up any round, but not the best of several.
        took = [time_to_end(user, mark, options) for _ in range(5)]
        check(min(took) <= 0.1 * harness.SLOW, lambda: f"{options}: it took {min(took):.3f} s at best")
        check(max(took) <= 2 * harness.SLOW, lambda: f"{options}: it took {max(took):.3f} s")


@case("answers are out before the server ends with its stdin, from a pipe and from a file")
def flushes():
    text = "".join(json.dumps({"jsonrpc": "2.0", "id": i, "method": "tools/list", "params": {"_meta": modern()}}) + "\n" for i in range(50))
    file = SCRATCH.path / "requests"
    file.write_text(text)
    for source in ({"data": text.encode()}, {"data": text.rstrip().encode()}, {"stdin": open(file, "rb")}):
        done = harness.callbox(["mcp"], cwd="/", **source)
        equal((done.code, done.err), (0, b""), "exit code and stderr")
        equal([json.loads(line)["id"] for line in done.out.splitlines()], list(range(50)), "the answers")


def wardens():
    found = set()
    for pid in harness.programs("callbox\0warden\0--connection"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/exe") == CALLBOX:
                found.add(pid)
    return found


@case("a warden that dies fails its calls, and the next call has a new one", alone=True)
def warden_dies():
    before = wardens()
    with Server() as server:
        good(server.call("run_command", {"command": "true"}))
        id = server.ask("tools/call", {"name": "run_command", "arguments": {"command": "sleep 30"}}, **modern())
        time.sleep(0.3)
        killed = wardens() - before
        for pid in killed:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        equal(server.answer(id)[0]["error"]["code"], -32603, "the call")
        check(wait_until(lambda: not wardens() & killed, 10), "the warden lives on")
        good(server.call("run_command", {"command": "true"}))


@case("what is wrong with the options is told, and nothing is served")
def options():
    for words, part in [(["--nope"], "--nope"), (["word"], "word"), (["--tools", "/nowhere"], "--tools"), (["--timeout", "x"], "--timeout"),
                        (["--workspace", "/nowhere"], "--workspace"), (["--memory", "lots"], "--memory")]:  # fmt: skip
        done = harness.callbox(["mcp", *words], cwd="/", data=b"")
        check(done.code == 125 and part.encode() in done.err and done.out == b"", lambda: done.brief())
    done = harness.callbox(["mcp", "--help"])
    check(done.code == 0 and b"--files" in done.out and b"--workspace" in done.out, lambda: done.brief())


if __name__ == "__main__":
    sys.exit(harness.main(after=SCRATCH.remove))
