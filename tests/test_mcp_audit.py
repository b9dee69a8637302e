#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""callbox mcp --audit: a line of one shape for whatever becomes of a call, and hashes that can be compared."""

import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import threading

import harness
import jsonschema
import mcp_client
import mcp_http
from harness import case, check, equal, wait_until
from mcp_client import FORMS, TASKS, folder_of
from mcp_http import META, MODERN, SCRATCH, Server, modern_request
from tooling import manifest

SCHEMA = json.loads((harness.REPO / "schema" / "audit.schema.json").read_text())


def new_mark():
    return f"mark-{secrets.token_hex(6)}"


def lines_of(log):
    """All lines, each of which must be as the schema says."""
    found = [harness.parse_report(line) for line in log.read_text().split("\n")[:-1]]
    for line in found:
        jsonschema.validate(line, SCHEMA)
    return found


def await_lines(log, count):
    check(wait_until(lambda: log.read_text().count("\n") >= count, 20), lambda: f"the log has {log.read_text().count(chr(10))} lines, not {count}: {log.read_text()[-600:]!r}")
    found = lines_of(log)
    equal(len(found), count, "lines")
    return found


def wardens():
    found = set()
    for pid in harness.programs("callbox\0warden\0--connection"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/exe") == mcp_client.CALLBOX:
                found.add(pid)
    return found


def parent_of(pid):
    with open(f"/proc/{pid}/stat") as stream:
        return int(stream.read().rsplit(")", 1)[1].split()[1])


def new_log():
    return SCRATCH.directory() / "audit.jsonl"


@case("a line for each call, without its arguments, and a new file after SIGHUP")
def calls():
    log = new_log()
    with Server("--audit", log) as server, server.client() as client:
        equal(log.stat().st_mode & 0o777, 0o600, "mode of the log")
        client.call("echo", {"text": "a secret argument"})
        client.call("fail")
        client.call("refused")
        client.call("echo", {"wrong": "another secret"})
        echo, fail, refused, wrong = await_lines(log, 4)
        equal(len({line["id"] for line in lines_of(log)}), 4, "different ids")
        equal((echo["outcome"], echo["reason"], echo["code"], echo["signal"], echo["error"]), ("ok", "exited", 0, None, None), "echo")
        check(echo["usage"]["memory_peak"] > 0 and echo["usage"]["bytes_out"] == 17, echo)
        equal(echo["transport"], "http", "transport")
        equal((fail["outcome"], fail["code"]), ("error", 3), "fail")
        check(isinstance(refused["denials"], list), refused)
        equal((wrong["outcome"], wrong["reason"], wrong["usage"], wrong["policy"]), ("refused", "setup", None, echo["policy"]), "wrong arguments")
        check("wrong" in wrong["error"] and "secret" not in log.read_text(), "arguments are in the log")
        os.rename(log, f"{log}.1")
        server.process.send_signal(signal.SIGHUP)
        check(wait_until(log.exists, 10), "there is no new log")
        client.call("true")
        equal([line["tool"] for line in await_lines(log, 1)], ["true"], "the new log")


@case("a cancelled call is told of with what it used and was refused, whoever cancelled it", alone=True)
def cancelled():
    log = new_log()
    tools = folder_of(manifest("busy", run={"shell": "cat /etc/shadow; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo out; exec sleep \"$1\"",
                                            "parameters": ["{mark}"]}, properties={"mark": {"type": "string"}}),
                      manifest("task", run={"shell": "cat /etc/shadow; echo out; exec sleep \"$1\"", "parameters": ["{mark}"]},
                               properties={"mark": {"type": "string"}}, task={}))  # fmt: skip

    def expect(line, tool):
        equal((line["tool"], line["outcome"], line["reason"]), (tool, "cancelled", "cancelled"), "the line")
        check(re.fullmatch(r"[0-9a-f]{16}", line["policy"]), line)
        check(line["usage"] and line["usage"]["run_seconds"] > 0 and line["usage"]["bytes_out"] >= 4, lambda: f"usage: {line}")
        check(any(item["what"] == "/etc/shadow" for item in line["denials"]), lambda: f"denials: {line}")

    marks = [f"9{os.getpid()}{number}" for number in range(6)]

    def begin(server, number, tool="busy", **meta):
        id = server.ask("tools/call", {"name": tool, "arguments": {"mark": marks[number]}}, **mcp_client.modern(**meta))
        check(wait_until(lambda: harness.programs(f"sleep\0{marks[number]}"), 20), "the call did not begin")
        return id

    with mcp_client.Server("--tools", tools, "--no-builtin", "--audit", log) as server:
        id = begin(server, 0)
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
        expect(await_lines(log, 1)[0], "busy")
        id = begin(server, 1, "task", capabilities=TASKS)
        task = server.answer(id)[0]["result"]["taskId"]
        server.result("tasks/cancel", {"taskId": task}, capabilities=TASKS)
        expect(await_lines(log, 2)[1], "task")
        begin(server, 2)
        begin(server, 3)
        server.close()  # both are ended with the server
        for line in await_lines(log, 4)[2:]:
            expect(line, "busy")
    with Server("--audit", log, folder=tools) as server:
        with server.socket() as sock:
            sock.sendall(modern_request(server, params={"name": "busy", "arguments": {"mark": marks[4]}}))
            check(wait_until(lambda: harness.programs(f"sleep\0{marks[4]}"), 20), "the call did not begin")
        expect(await_lines(log, 5)[4], "busy")
        with server.socket() as sock:
            sock.sendall(modern_request(server, params={"name": "busy", "arguments": {"mark": marks[5]}}))
            check(wait_until(lambda: harness.programs(f"sleep\0{marks[5]}"), 20), "the call did not begin")
            server.stop()
        expect(await_lines(log, 6)[5], "busy")


@case("a server that waits for the report of a cancelled call answers others meanwhile", alone=True)
def cancelled_does_not_hold():
    log = new_log()
    mark = f"8{os.getpid()}"
    before = wardens()
    with mcp_client.Server("--audit", log) as server:
        id = server.ask("tools/call", {"name": "run_command", "arguments": {"command": f"sleep {mark}"}}, **mcp_client.modern())
        check(wait_until(lambda: harness.programs(f"sleep\0{mark}"), 20), "the call did not begin")
        ours = wardens() - before
        warden = [pid for pid in ours if parent_of(pid) not in ours]  # the others are inits of its boxes
        equal(len(warden), 1, "wardens of the server")
        os.kill(warden[0], signal.SIGSTOP)  # so that no report comes
        try:
            server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
            for _ in range(5):
                server.result("tools/list")
            line = await_lines(log, 1)[0]  # after a bound
        finally:
            os.kill(warden[0], signal.SIGCONT)
        equal((line["outcome"], line["reason"], line["usage"], line["denials"]), ("cancelled", "cancelled", None, []), "the line")


@case("calls that were not made have a line as well: unknown, wrong, asked, declined, refused")
def not_made():
    log = new_log()
    asking = manifest("asking", ["true"], ask={"message": "May it?"})
    tools = folder_of(manifest("hello", ["echo", "{who}"], {"who": {"type": "string"}}), asking, manifest("late", ["true"], task={"required": True}))
    with mcp_client.Server("--tools", tools, "--no-builtin", "--audit", log) as server:
        hashes = {}

        def expect(what, tool, outcome, reason, part):
            line = await_lines(log, expect.count + 1)[-1]
            expect.count += 1
            equal((line["tool"], line["outcome"], line["reason"], line["usage"], line["denials"]), (tool, outcome, reason, None, []), what)
            check(line["error"] is None if part is None else part in (line["error"] or ""), lambda: f"{what}: the error is {line['error']!r}")
            if tool in ("hello", "asking", "late"):
                check(line["policy"], lambda: f"{what}: no policy in {line}")
                hashes.setdefault(tool, set()).add(line["policy"])
            else:
                equal(line["policy"], None, f"{what}: the policy")

        expect.count = 0
        server.error("tools/call", {"name": "nope"})
        expect("an unknown tool", "nope", "refused", "setup", "Unknown tool: nope")
        server.error("tools/call", {"name": "x" * 5000})
        expect("a long name", "x" * 512, "refused", "setup", "Unknown tool")
        server.error("tools/call", {"name": 3})
        expect("no name", None, "refused", "setup", "name")
        server.error("tools/call", {"name": "hello", "arguments": [1]})
        expect("arguments that are no object", "hello", "refused", "setup", "object")
        server.call("hello", {"nonsense": 1})
        expect("arguments that break the schema", "hello", "refused", "setup", "wrong")
        server.error("tools/call", {"name": "late"})
        expect("a task, and a client that knows none", "late", "refused", "setup", "task")
        server.error("tools/call", {"name": "asking"})
        expect("a client that cannot ask", "asking", "refused", "setup", "asking")
        asked = server.call("asking", capabilities=FORMS)
        equal(asked["resultType"], "input_required", "it asks")
        expect("it asks", "asking", "asked", None, None)
        server.result("tools/call", {"name": "asking", "arguments": {}, "requestState": asked["requestState"],
                                     "inputResponses": {"approval": {"action": "decline"}}}, capabilities=FORMS)  # fmt: skip
        expect("it was declined", "asking", "declined", "setup", "did not allow")
        server.error("tools/call", {"name": "asking", "requestState": "forged"}, capabilities=FORMS)
        expect("a state that was forged", "asking", "refused", "setup", "")
        server.answer(server.ask("tools/call", {"name": "hello"}))  # of no era
        expect("a request without what it must have", "hello", "refused", "setup", "_meta")
        equal({tool: len(found) for tool, found in hashes.items()}, {"hello": 1, "asking": 1, "late": 1}, "hashes of each tool")
        equal(len({line["id"] for line in lines_of(log)}), expect.count, "different ids")


@case("the hash of a policy is the same at each start, and another where a setting is")
def hashes():
    found = []
    for options in ([], [], ["--memory", "128M"], ["--read", "/opt"]):
        log = new_log()
        with mcp_client.Server("--files", "--audit", log, *options) as server:
            server.call("run_command", {"command": "true"})
            server.call("run_python", {"code": "1"})
            server.call("list_files", {"path": "."})
        found.append([line["policy"] for line in await_lines(log, 3)])
    equal(found[0], found[1], "the hashes of two runs")
    for number in (2, 3):
        check(all(one != other for one, other in zip(found[0], found[number])), lambda: f"a setting changes nothing: {found}")


@case("calls over stdio are kept as well, and a broken manifest is still told of")
def stdio():
    log = new_log()
    folder = mcp_http.tools()
    (folder / "broken.json").write_text("{")
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "true", "arguments": {}, "_meta": {
        f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}, f"{META}clientInfo": {"name": "tester", "version": "1"}}}}
    command = [mcp_http.CALLBOX, "mcp", "--no-builtin", "--tools", folder, "--audit", log]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/") as process:
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        check(b'"isError":true' not in process.stdout.readline(), "the call failed")
        process.stdin.close()
        equal(process.wait(timeout=20 * harness.SLOW), 0, "exit code")
        check(b"broken.json" in process.stderr.read(), "nothing is said of the manifest")
    line = await_lines(log, 1)[0]
    equal((line["tool"], line["outcome"], line["transport"], line["client"]), ("true", "ok", "stdio", "tester"), "line")


@case("several servers share a log without mixing lines")
def shared():
    log = new_log()
    folder = mcp_http.tools()
    with Server("--audit", log, folder=folder) as one, Server("--audit", log, folder=folder) as other:
        def ask(server):
            with server.client() as client:
                for _ in range(40):
                    client.call("true")
        threads = [threading.Thread(target=ask, args=(server,)) for server in (one, other, one, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    equal(len(lines_of(log)), 160, "lines")


@case("the manual, the guide and the schema say the same of a line")
def written():
    keys = list(SCHEMA["properties"])
    equal(SCHEMA["required"], keys, "keys that every line has")
    guide = (harness.REPO / "docs" / "mcp.md").read_text()
    example = json.loads(re.search(r"### The audit log.*?```json\n(.*?)```", guide, re.S).group(1))
    jsonschema.validate(example, SCHEMA)
    equal(list(example), keys, "the keys of the example, in order")
    manual = (harness.REPO / "man" / "callbox-mcp.1.scd").read_text().split("# AUDIT LOG\n")[1].split("\n# ")[0]
    equal(re.findall(r"\*(\w+)\*", "\n".join(line for line in manual.split("\n") if line.startswith("*"))), keys, "the keys of the manual, in order")
    for word in [*SCHEMA["properties"]["outcome"]["enum"], *SCHEMA["properties"]["usage"]["required"]]:
        check(f"_{word}_" in manual, f"{word} is not in the manual")
    log = new_log()
    with mcp_client.Server("--audit", log) as server:
        server.call("run_command", {"command": "true"})
    equal(list(await_lines(log, 1)[0]), keys, "the keys of a line, in order")


if __name__ == "__main__":
    sys.exit(harness.main(after=lambda: (SCRATCH.remove(), mcp_client.SCRATCH.remove())))
