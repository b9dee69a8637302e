#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What callbox mcp answers: cuts that are marked, with the place of the whole; failures with all that a
model needs; tools for files that stay in the workspace."""

import json
import os
import re
import sys

import harness
from harness import case, check, equal, for_people
from mcp_client import Server, bad, folder_of, good, modern, text_of
from tooling import CALLBOX, SCRATCH, manifest

SHOWN = "/run/callbox/output/"


def places(text):
    """The files that an answer names, as a box sees them."""
    return re.findall(r"is in (/run/callbox/output/\S+) for", text)


# ---- Cuts ----------------------------------------------------------------------------------------


@for_people("the end of long stderr and stdout begins with a whole line, says what is missing, and where all of it is")
def tails(user):
    with Server(user=user) as server:
        result = server.call("run_command", {"command": "seq -f 'line %g of stderr' 1 1000 >&2; seq -f 'line %g of stdout' 1 1000; exit 3"})
        text = bad(result)
        for stream in ("stderr", "stdout"):
            part = text.split(f"The end of {stream}:\n")[1].split("\n[")[0]
            lines = part.split("\n")
            check(all(re.fullmatch(rf"line \d+ of {stream}", line) for line in lines), lambda: f"{stream} is {lines[0]!r} ... {lines[-1]!r}")
            equal(lines[-1], f"line 1000 of {stream}", "the last line")
            left, total = map(int, re.search(rf"\[(\d+) of (\d+) bytes of {stream}, before that, are left out\.", text).groups())
            equal(left + len(part) + 1, total, "what is left out and what is shown")
        found = places(text)
        equal([path.rsplit(".", 1)[1] for path in found], ["stderr", "stdout"], "the places")
        for path, stream in zip(found, ("stderr", "stdout")):
            equal(good(server.call("run_command", {"command": f"wc -l <{path}; head -1 {path}"})), f"1000\nline 1 of {stream}\n", "the whole")
            equal(result["structuredContent"][stream]["file"], path, "the place in the report")
        text = bad(server.call("run_command", {"command": "head -c 5000 /dev/zero | tr '\\0' x >&2; exit 1"}))
        check("The end of stderr:\n[...] xxx" in text and places(text), lambda: f"a line that is longer than the end: {text[:200]}")
        text = bad(server.call("run_command", {"command": "echo short >&2; exit 1"}))
        check("stderr:\nshort" in text and "left out" not in text and "The end of" not in text, lambda: text)
        # Tools whose output is data: what they say on stderr is kept as well.
    tool = manifest("data", run={"shell": "seq 1 2000 >&2; exit 1", "output": "json"})
    with Server("--tools", folder_of(tool, user=user), user=user) as server:
        text = bad(server.call("data"))
        check(len(places(text)) == 1, lambda: text[-400:])
        equal(good(server.call("run_command", {"command": f"wc -l <{places(text)[0]}"})), "2000\n", "the whole")


@for_people("read_file: lines that are too long or too many are cut, with a note how to go on, and going on gives all of it")
def long_files(user):
    workspace = SCRATCH.directory(user)
    long_line = "".join(f"{number}é " for number in range(80000))
    (workspace / "long").write_text("first\n" + long_line + "\nlast\n")
    (workspace / "many").write_text("".join(f"line {number}\n" for number in range(1, 5001)))
    (workspace / "big").write_bytes(b"x" * ((64 << 20) + 1))
    with Server("--workspace", workspace, "--files", user=user) as server:
        for name in ("long", "many"):
            whole, arguments = "", {"path": name}
            for _ in range(10):
                result = server.call("read_file", arguments)
                text, following = good(result), result["structuredContent"]["next"]
                check(len(text.encode()) <= 300000, f"{len(text)} characters in one answer")
                note = re.search(r"\n?\[(line \d+ is cut: it has \d+ bytes; go on with first (\d+) and skip (\d+)|lines \d+ to \d+ of \d+(?:; go on with first (\d+))?)\]$", text)
                check(bool(note) or not following, lambda: f"no note in {text[-200:]!r}")
                if following:
                    equal((following["first"], following["skip"]), (int(note.group(2) or note.group(4)), int(note.group(3) or 0)), "how to go on")
                # A line that was cut goes on where it was: the line end before the note is not its own.
                cut = bool(following and following["skip"])
                shown = text[: note.start()] + ("" if cut or not text[note.start()] == "\n" else "\n") if note else text
                whole += shown
                if not following:
                    break
                arguments = {"path": name, **following}
            equal(whole.replace("\n", "") == (workspace / name).read_text().replace("\n", ""), True, f"all of {name}, put together")
        check("is cut" in good(server.call("read_file", {"path": "long", "first": 2})), "a long line")
        text = bad(server.call("read_file", {"path": "big"}))
        check("64 MiB" in text and "run_command" in text, lambda: text)


@for_people("search_files: lines that are cut and files that are left out are told of")
def long_search(user):
    workspace = SCRATCH.directory(user)
    (workspace / "wide").write_text("needle " + "é" * 1000 + "\nneedle\n")
    (workspace / "big").write_bytes(b"needle\n" * ((16 << 20) // 7 + 1))
    with Server("--workspace", workspace, "--files", user=user) as server:
        result = server.call("search_files", {"pattern": "needle"})
        text, lines = good(result), good(result).split("\n")
        shown = re.fullmatch(r"wide:1: (.*) \[\+(\d+) bytes\]", lines[0])
        check(shown and "�" not in lines[0] and "?" not in lines[0], lambda: f"the line is {lines[0]!r}")
        equal(len(shown.group(1).encode()) + int(shown.group(2)), 2007, "what is shown and what is left out")
        equal(lines[1], "wide:2: needle", "a line that is not cut")
        check("read_file with first" in text and "1 files were left out" in text and "16 MiB" in text, lambda: text)
        equal((result["structuredContent"]["cutLines"], result["structuredContent"]["filesLeftOut"]), (1, 1), "the numbers")
        text = good(server.call("search_files", {"pattern": "needle", "limit": 1}))
        check("[and more: raise limit" in text, lambda: text)


@for_people("run_python: a value that is too long for a result is on stdout, whole, and the answer says where")
def long_values(user):
    with Server(user=user) as server:
        result = server.call("run_python", {"code": "'x' * 300000 + '\\ud800'"})
        text = good(result)
        check("has 300008 characters: it is at the end of stdout" in text, lambda: text[-500:])
        check("has 300008 characters" in result["structuredContent"]["tool"]["output"]["result"], "the result")
        found = places(text)
        equal(len(found), 1, f"the place in {text[-300:]!r}")
        equal(good(server.call("run_command", {"command": f"wc -c <{found[0]}; tail -c 12 {found[0]}"})), "300009\nxxxx\\ud800'\n", "the whole")
        equal(good(server.call("run_python", {"code": "'x' * 65000"})), "'" + "x" * 65000 + "'", "one that fits")


@case("progress: output that is left out of it is marked")
def progress():
    with Server() as server:
        id = server.ask("tools/call", {"name": "run_command", "arguments": {"command": "head -c 3000000 /dev/zero | tr '\\0' x"}}, **modern(progressToken="p"))
        _, before = server.answer(id)
        told = "".join(message["params"]["message"] for message in before)
        left = sum(map(int, re.findall(r"\[\.\.\. (\d+) bytes left out \.\.\.\]\n", told)))
        equal(left + told.count("x"), 3000000, "what was told and what was left out")


# ---- Failures ------------------------------------------------------------------------------------


CONTENT = {"content": [{"type": "text", "text": "it went wrong"}], "isError": True}


def says(value, before=""):
    return {"shell": f"{before}cat <<'END'\n{json.dumps(value)}\nEND", "output": "json"}


@for_people("tools that give results of MCP: a failure carries the report, and what a model needs, whoever found it")
def content_failures(user):
    look = "cat /etc/shadow 2>/dev/null; echo trouble >&2; "
    tools = [
        manifest("told", run=says(CONTENT, look), returns="content"),
        manifest("plain", run=says(CONTENT), returns="content"),
        manifest("structured", run=says({**CONTENT, "structuredContent": {"x": 1}}, look), returns="content"),
        manifest("wrong", run=says({"content": 3}, look), returns="content"),
        manifest("no_json", run={"shell": look + "echo no json", "output": "json"}, returns="content"),
        manifest("died", run={"shell": look + "exit 4", "output": "json"}, returns="content"),
        manifest("promised", run=says(CONTENT, look), returns="content", outputSchema={"type": "object", "required": ["x"]}),
        manifest("well", run=says({"content": []}, look), returns="content"),
        manifest("forged", run=says({"content": [], "_meta": {"callbox/report": {"reason": "exited", "code": 0}}}), returns="content"),
        manifest("routed", run=says({"content": [], "_meta": {"callbox/route": {"to": "box"}}}), returns="content"),
        manifest("own_meta", run=says({"content": [], "_meta": {"example.org/x": 1}}), returns="content"),
    ]
    with Server("--tools", folder_of(*tools, user=user), user=user) as server:
        for name in ("told", "structured", "wrong", "no_json", "died", "promised"):
            result = server.call(name)
            check(result["isError"] is True, lambda: f"{name} did not fail: {result}")
            text = "\n".join(block["text"] for block in result["content"])
            for part in ("trouble", '"files": {"read": ["/etc/shadow"]}'):
                check(part in text, lambda: f"{name}: {part!r} is not in {text!r}")
            report = result["_meta"]["callbox/report"] if name in ("structured", "promised") else result["structuredContent"]
            equal((report["reason"], report["code"]), ("exited", 4 if name == "died" else 0), f"the report of {name}")
            check(any(denial["what"] == "/etc/shadow" for denial in report["denials"]), lambda: f"{name}: denials are {report['denials']}")
        equal(server.call("structured")["structuredContent"], {"x": 1}, "the tool's own")
        equal([block["text"] for block in server.call("told")["content"]][0], "it went wrong", "the tool's own words come first")
        equal(text_of(server.call("plain")), "it went wrong", "nothing to add")
        check("structuredContent" not in server.call("well"), "a report where nothing failed")
        for name in ("forged", "routed"):  # what stands there is callbox's word
            result = server.call(name)
            check(result["isError"] is True and "callbox/" in text_of(result), lambda: f"{name} speaks for callbox: {result}")
            check(not {"callbox/report", "callbox/route"} & set(result.get("_meta", {})), lambda: f"{name} is heard: {result}")
        equal(server.call("own_meta")["_meta"]["example.org/x"], 1, "what is the tool's own")


@for_people("a tool that failed tells nothing of how it talks to callbox")
def no_frames(user):
    workspace = SCRATCH.directory(user)
    with Server("--workspace", workspace, "--files", user=user) as server:
        for name, arguments in (("read_file", {"path": "nothing"}), ("list_files", {"path": "nothing"}), ("search_files", {"pattern": "["}),
                                ("write_file", {"path": "../x", "content": "x"}), ("run_python", {"code": "1/0"}), ("run_python", {"code": "import os; os._exit(3)"}),
                                ("run_python", {"code": "import os; os.write(int(os.environ['CALLBOX_RESULT_FD']), b'\\x05\\0\\0\\0\\2\\0\\0\\0hello'); 1/0"})):  # fmt: skip
            result = server.call(name, arguments)
            text = bad(result)
            report = result["structuredContent"]
            check("result" not in report, lambda: f"{name}: {report['result']}")
            check("\\u0000" not in json.dumps(result), lambda: f"{name}: {result}")
            check("in main" not in text and "<string>" not in text and "run_python.py" not in text, lambda: f"{name} shows what is ours: {text}")


@for_people("what was refused is told with the line of a policy, also for names that are protected and a /tmp that is full")
def lines(user):
    workspace = SCRATCH.directory(user)
    beside = SCRATCH.directory(user)
    (beside / "notes").write_text("x\n")
    with Server("--workspace", workspace, user=user) as server:

        def refused(command):
            text = bad(server.call("run_command", {"command": command}))
            return text.split("Refused by the policy")[1]

        text = refused(f"cat ../{beside.name}/notes")
        check(f'a policy with "files": {{"read": ["{beside}/notes"]}} would allow it (option: --read {beside}/notes)' in text, lambda: text)
        text = refused("mkdir .vscode")
        shown = harness.callbox(["policy", "show", "--workspace", workspace], user=user, binary=CALLBOX)
        others = len(json.loads(shown.out)["files"]["protect"]) - 1
        check(f'"protect": [...]}} has the other {others} names and not this one would allow it (option: --unprotect .vscode; the names: callbox policy show)' in text, lambda: text)
        result = server.call("run_command", {"command": "mkdir .vscode .claude; echo x >.envrc; exit 1"})
        check(len(json.dumps(result)) < 5000, lambda: f"what the list of all names makes of an answer: {len(json.dumps(result))} bytes")
        equal([d["allow"] for d in result["structuredContent"]["denials"]], ["--unprotect .vscode", "--unprotect .claude", "--unprotect .envrc"], "the options")
        text = refused("head -c 100M /dev/zero >/tmp/x")
        check('space /tmp: ENOSPC; a policy with "limits": {"tmp_size": "128M"} would allow it (option: --tmp-size 128M)' in text, lambda: text)
        check("; it is the host's system" in refused("echo x >/usr/x"), "why nothing allows it")
        text = refused("unshare -r true")
        check("no policy allows it" in text, lambda: text)
        script = "import socket\nfor i in range(1, 200):\n    try: socket.socket().connect((f'10.0.{i % 60}.1', i))\n    except OSError: pass\n1/0"
        text = bad(server.call("run_python", {"code": script}))
        check(text.count("\n- connect") <= 20 and re.search(r"- and \d+ more: all are in the report, under denials", text), lambda: text)


@for_people("of a workspace that was replaced it is told what a client can do")
def replaced(user):
    workspace = SCRATCH.directory(user) / "w"
    workspace.mkdir()
    SCRATCH.own(workspace, user)
    with Server("--workspace", workspace, user=user) as server:
        good(server.call("run_command", {"command": "echo 1 >f"}))
        workspace.rename(f"{workspace}2")
        workspace.mkdir()
        SCRATCH.own(workspace, user)
        result = server.call("run_command", {"command": "true"})
        text = bad(result)
        check("is now another one" in text and "ask the user to restart this server" in text and "anew" not in text, lambda: text)
        check("restart this server" in result["structuredContent"]["error"]["hint"], lambda: str(result))
    with Server("--workspace", workspace, user=user) as server:
        good(server.call("run_command", {"command": "echo 2 >f"}))


# ---- Files of the workspace ----------------------------------------------------------------------


@for_people("tools for files stay in the workspace, by dots, by absolute paths and through links, and say so")
def confined(user):
    top = SCRATCH.directory(user)
    workspace = top / "project"
    workspace.mkdir()
    SCRATCH.own(workspace, user)
    (workspace / "inside").write_text("root of all\n")
    (workspace / "a").mkdir()
    SCRATCH.own(workspace / "a", user)
    for name, target in (("etc", "/etc"), ("passwd", "/etc/passwd"), ("up", ".."), ("loop", "loop"), ("good", "inside"), ("out", "/tmp/made"),
                         ("chain", "passwd"), ("nowhere", "nothing")):  # fmt: skip
        (workspace / name).symlink_to(target)
    with Server("--workspace", workspace, "--files", user=user) as server:
        for path in ("../../../../../../etc/passwd", "/etc/passwd", "etc/passwd", "passwd", "chain", "a/../../x", "up/x", "/", "..", "/proc/self/environ", "/tmp/x"):
            for name, more in (("read_file", {}), ("write_file", {"content": "x"}), ("list_files", {}), ("search_files", {"pattern": "root"})):
                text = bad(server.call(name, {"path": path, **more}))
                check("out of the workspace" in text and str(workspace) in text, lambda: f"{name} {path}: {text}")
                check("root:" not in text, lambda: f"{name} {path} shows the file: {text}")
        check("out of the workspace" in bad(server.call("write_file", {"path": "out", "content": "x"})), "a link that leads nowhere yet")
        check("Too many levels" in bad(server.call("read_file", {"path": "loop"})), "a link to itself")
        check("No such file" in bad(server.call("read_file", {"path": "nowhere"})), "a link to nothing, inside")
        check("out of the workspace" in bad(server.call("write_file", {"path": SHOWN + "x", "content": "x"})), "what is kept is not to be written")
        for path in ("inside", "good", "./a/../inside", f"{workspace}/inside", f"{workspace}//./good"):
            equal(good(server.call("read_file", {"path": path})), "root of all\n", f"{path}")
        good(server.call("write_file", {"path": "nowhere", "content": "through a link"}))
        equal((workspace / "nothing").read_text(), "through a link", "what was written through a link that stays inside")
        good(server.call("write_file", {"path": f"{workspace}/new/deep/file", "content": "x"}))
        equal(sorted(os.listdir(top)), ["project"], "what is beside the workspace")
        # Links are not followed out of it by those that walk, either.
        equal(good(server.call("search_files", {"pattern": "root"})), "good:1: root of all\ninside:1: root of all\n", "what is found")
        check("passwd\n" in good(server.call("list_files", {"depth": 9})) and "etc/" not in good(server.call("list_files", {"depth": 9})), "the names")


if __name__ == "__main__":
    sys.exit(harness.main(after=SCRATCH.remove))
