#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Own inputs, and names that are resolved once: what tells callbox what to do cannot be written by a box, a path of a
policy means what it first led to, and what callbox writes on the host follows no link. Attacks of the review are named
by their number; each has a control that shows what would happen without the fence."""

import json
import os
import pathlib
import select
import shlex
import socket
import subprocess
import sys
import time

import harness
import library
import mcp_client
import tooling
from harness import case, check, equal, for_people
from tooling import CALLBOX, LIBRARY, SCRATCH, manifest, toolbox

UNFENCED = SCRATCH.install(os.environ.get("CALLBOX_UNFENCED") or tooling.BUILD / "tests" / "callbox-unfenced", "callbox-unfenced")
BOXES = ("namespaces", "landlock")
PYTHON = "/usr/bin/python3"


def run(*command, options=(), user=False, cwd="/", binary=CALLBOX):
    return harness.callbox(["run", "-q", *options, "--", *command], user=user, cwd=cwd, binary=binary, env=tooling.ENVIRONMENT)


def place(user=False, *names):
    """A directory with these directories in it, all its user's."""
    top = SCRATCH.directory(user)
    for name in names:
        (top / name).mkdir(parents=True)
        for path in (top / name, *(top / name).parents):
            if path == top:
                break
            SCRATCH.own(path, user)
    return top


def put(path, text, user=False):
    path.write_text(text if isinstance(text, str) else json.dumps(text))
    SCRATCH.own(path, user)
    return path


def awaited(condition, what):
    check(harness.wait_until(condition, 20, pause=0.02), lambda: f"{what} did not come")


def raises(function, *words):
    """The error of a call that must fail, which has these words in it."""
    try:
        function()
    except library.CallboxError as error:
        text = f"{error.where}: {error} {getattr(error, 'hint', '')}"
        for word in words:
            check(word in text, lambda: f"the error is {text!r}, without {word!r}")
        return error
    raise harness.Failed("it was not refused")


# ---- S6: policies, specs and reports in the workspace ------------------------------------------


def policy_attack(user, box, change, binary=CALLBOX, without=()):
    """What a second call may do after a first one has tried to change its policy."""
    top = place(user, "ws", "victim")
    ws, victim = top / "ws", top / "victim"
    put(ws / "callbox.json", {"box": box, "files": {"workspace": str(ws)}}, user)
    wide = {"box": box, "files": {"workspace": str(ws), "write": [str(victim)]}, "network": "host"}
    put(ws / "wide.json", wide, user)
    options = [*without, "--policy", "callbox.json"]
    run("sh", "-c", change, options=options, user=user, cwd=ws, binary=binary)
    run("sh", "-c", f"echo escaped >{victim}/f", options=options, user=user, cwd=ws, binary=binary)
    return [p.name for p in victim.iterdir()]


CHANGES = {
    "written": "cat wide.json >callbox.json",
    "moved over": "mv wide.json callbox.json",
    "removed and made anew": "rm -f callbox.json; cp wide.json callbox.json",
    "linked": "ln -sf wide.json callbox.json",
    "linked hard": "ln -f wide.json callbox.json",
    "by its directory": "cd ..; mv ws w2; mkdir ws; cp w2/wide.json ws/callbox.json",
}
for how, change in CHANGES.items():
    for box in BOXES:

        @for_people(f"S6 a policy in its own workspace is not the program's to change: {how}, {box}")
        def policy_in_workspace(user, box=box, change=change):
            equal(policy_attack(user, box, change), [], "what the second call wrote outside")


@for_people("S6 control: without the fence the second call has the policy that the first one wrote")
def policy_control(user):
    equal(policy_attack(user, "namespaces", CHANGES["written"], UNFENCED, ["--without", "protect,readonly,landlock"]), ["f"], "what it wrote")


@for_people("S6 a policy below the workspace is held with the directories above it, and need not be spelled as it is")
def policy_deeper(user):
    top = place(user, "ws/a/b", "victim")
    ws, victim = top / "ws", top / "victim"
    put(ws / "a/b/p.json", {"files": {"workspace": str(ws)}}, user)
    wide = json.dumps({"files": {"workspace": str(ws), "write": [str(victim)]}})
    for spelled in ("a/b/p.json", f"{ws}/a/../a/b/p.json", f"{top}/ws//a/./b/p.json"):
        done = run("sh", "-c", f"mv a c; mkdir -p a/b; echo '{wide}' >a/b/p.json; echo '{wide}' >a/b/P.json; true", options=["--policy", spelled], user=user, cwd=ws)
        equal(done.code, 0, done.err)
        equal(json.loads((ws / "a/b/p.json").read_text()), {"files": {"workspace": str(ws)}}, f"the policy, spelled {spelled}")


@for_people("S6 a policy that is a link in its workspace is refused, with what to name instead")
def policy_linked(user):
    top = place(user, "ws", "conf")
    put(top / "conf/p.json", {"files": {"workspace": str(top / "ws")}}, user)
    (top / "ws/p.json").symlink_to(top / "conf/p.json")
    done = run("true", options=["--policy", "p.json"], user=user, cwd=top / "ws")
    equal(done.code, 125, "the exit code")
    check(b"leads through the link" in done.err and b"look at it" in done.err and b"real path" in done.err, done.err)
    check(str(top / "conf").encode() not in done.err, "what the link leads to may be what a box has chosen")


@for_people("S6 a spec and the command itself are held in a workspace")
def spec_and_command(user):
    top = place(user, "ws")
    ws = top / "ws"
    put(ws / "spec.json", {"argv": ["sh", "-c", "echo x >spec.json; echo x >callbox; rm -f callbox spec.json; echo ok >mine"]}, user)
    copy = ws / "callbox"
    copy.write_bytes(open(CALLBOX, "rb").read())
    copy.chmod(0o755)
    SCRATCH.own(copy, user)
    before = (copy.read_bytes(), (ws / "spec.json").read_text())
    done = harness.callbox(["run", "-q", "--workspace", ".", "--spec", "spec.json"], user=user, cwd=ws, binary=str(copy), env=tooling.ENVIRONMENT)
    equal((copy.read_bytes(), (ws / "spec.json").read_text()) == before, True, f"what is left of them ({done.err})")
    equal((ws / "mine").read_text(), "ok\n", "what the program may write")


# ---- S13: what callbox writes ------------------------------------------------------------------


def report_attack(user, leave, report="report.json", binary=CALLBOX, without=()):
    """The victim's text after a second call, whose report goes where the first one left something."""
    top = place(user, "ws")
    ws, victim = top / "ws", put(top / "victim", "original\n", user)
    put(ws / "inner", "inner\n", user)
    run("sh", "-c", leave.format(victim=victim), options=[*without, "--workspace", "."], user=user, cwd=ws, binary=binary)
    done = run("true", options=["--workspace", ".", "--report", report], user=user, cwd=ws, binary=binary)
    return victim.read_text(), (ws / "inner").read_text(), done


LEFT = {
    "a link": ("ln -s {victim} report.json", "report.json"),
    "a link to a link": ("ln -s {victim} x; ln -s x report.json", "report.json"),
    "a link as its directory": ("ln -s $(dirname {victim}) out", "out/victim"),
    "a second name": ("ln inner report.json", "report.json"),
}
for what, (leave, report) in LEFT.items():

    @for_people(f"S13 a report does not go where the call before left {what}")
    def report_led(user, leave=leave, report=report):
        outer, inner, done = report_attack(user, leave, report)
        equal((outer, inner), ("original\n", "inner\n"), "the files")
        equal(done.code, 125, "the exit code")
        check(b"--report" in done.err and b"to fix it" in done.err, done.err)
        check(report != "report.json" or b"victim" not in done.err, "the fix is what the box has chosen")


@case("S13 control: a shell's own redirection follows the link that a box has left")
def report_control():
    top = place(False, "ws")
    victim = put(top / "victim", "original\n")
    run("ln", "-s", str(victim), "report.json", options=["--workspace", "."], cwd=top / "ws")
    subprocess.run(["sh", "-c", "echo overwritten >report.json"], cwd=top / "ws", check=True)
    equal(victim.read_text(), "overwritten\n", "the victim")


@for_people("S18 a report that is a pipe is refused, not waited for; streams are written as ever")
def report_pipe(user):
    top = place(user, "ws")
    os.mkfifo(top / "ws/report.json")
    SCRATCH.own(top / "ws/report.json", user)
    done = run("true", options=["--report", str(top / "ws/report.json")], user=user, cwd=top)
    check(done.code == 125 and b"no regular file" in done.err, done.err)
    for stream in () if user and harness.ROOT else ("/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"):  # root's pipe is not the user's to open
        equal(json.loads(run("true", options=["--report", stream], user=user).out)["reason"], "exited", stream)
    equal(run("true", options=["--report", "/dev/null"], user=user).code, 0, "/dev/null")


@for_people("S13 a report is held while its call runs, and is there afterwards")
def report_held(user):
    top = place(user, "ws")
    for box in BOXES:
        done = run("sh", "-c", "rm -f report.json; ln -s /etc/passwd report.json; echo x >report.json; mv report.json y; true", user=user,
                   options=["--box", box, "--workspace", ".", "--report", "report.json"], cwd=top / "ws")
        equal(done.code, 0, done.err)
        equal(json.loads((top / "ws/report.json").read_text())["reason"], "exited", "the report")


@for_people("S13 an audit log goes through no link, at the start and at SIGHUP")
def audit_led(user):
    top = place(user, "ws")
    victim, log = put(top / "victim", "original\n", user), top / "ws/audit.log"
    log.symlink_to(victim)
    done = harness.callbox(["mcp", "--workspace", str(top / "ws"), "--audit", str(log)], user=user, cwd="/", binary=CALLBOX, env=tooling.ENVIRONMENT)
    check(done.code == 125 and b"--audit" in done.err and b"link" in done.err, done.err)
    log.unlink()
    server = mcp_client.Server("--workspace", top / "ws", "--audit", log, user=user)
    server.call("run_command", {"command": f"rm -f audit.log; ln -sf {victim} audit.log; echo evil >audit.log; true"})
    check(not log.is_symlink() and len(log.read_text().splitlines()) == 1 and "evil" not in log.read_text(), "the log is the box's")
    log.unlink()
    log.symlink_to(victim)  # whoever it was
    server.process.send_signal(1)
    time.sleep(0.3)
    server.call("run_command", {"command": "true"})
    server.process.stdin.close()
    server.process.wait(20)
    equal(victim.read_text(), "original\n", "the victim")


@for_people("S13 a call's input is not read through a link that a box has left")
def input_led(user):
    top = place(user, "ws/sub", "out")
    ws, secret = top / "ws", put(top / "out/secret", "s3cret", user)
    spec = {"argv": ["cat"], "stdin": {"file": "in"}}
    put(top / "spec.json", spec, user)
    (top / "by").symlink_to(ws)
    for leave, file in (("ln -s {} in", "in"), ("ln -s {} x; ln -s x in", "in"), ("rm -rf sub; ln -s $(dirname {}) sub", "sub/secret")):
        for name in ("in", "x"):
            (ws / name).unlink(missing_ok=True)
        run("sh", "-c", leave.format(secret), options=["--workspace", "."], user=user, cwd=ws)
        tried = [(["--stdin", file], ["cat"])] + ([(["--spec", str(top / "spec.json")], [])] if file == "in" else [])
        for options, command in tried:
            done = harness.callbox(["run", "-q", "--workspace", ".", *options, *(["--", *command] if command else [])], user=user, cwd=ws, binary=CALLBOX, env=tooling.ENVIRONMENT)
            check(done.code == 125 and b"s3cret" not in done.out and b"leads through the link" in done.err, f"{options}: {done.out} {done.err}")
            check(str(secret).encode() not in done.err, "the fix names what the box has chosen")
        # Control: who may not change the link may be led by it.
        equal(run("cat", options=["--stdin", file], user=user, cwd=ws).out, b"s3cret", "without a workspace")
    put(ws / "plain", "plain", user)
    for file in ("plain", str(top / "by/plain")):
        equal(run("cat", options=["--workspace", ".", "--stdin", file], user=user, cwd=ws).out, b"plain", f"a file of the workspace: {file}")
    equal(run("cat", options=["--workspace", ".", "--stdin", "/dev/null"], user=user, cwd=ws).out, b"", "a stream")


@for_people("a report says of what is held that it is")
def held_told(user):
    top = place(user, "ws")
    for box in BOXES:
        for command in ("rm a", "echo x >new", "mv a b", "echo x >a"):
            put(top / "ws/a", "", user)
            done = harness.callbox(["run", "--json", "--explain", "--box", box, "--workspace", ".", "--hold", "a", "--hold", "new", "--", "sh", "-c", command], user=user, cwd=top / "ws", binary=CALLBOX)
            told = json.dumps(done.report["denials"])
            check("held: by --hold" in told and "more protected names" not in told, f"{box}, {command}: {told}")


@for_people("over MCP as well, of the files that tools are made of; no option is named that could not help")
def held_told_served(user):
    top = place(user, "ws")
    put(top / "ws/wt.py", 'def save(path: str, text: str) -> str:\n    "Save."\n    open(path, "w").write(text)\n    return "ok"\n', user)
    with mcp_client.Server("--workspace", top / "ws", "--python-tools", top / "ws/wt.py", user=user) as server:
        answer = server.call("save", {"path": str(top / "ws/wt.py"), "text": "x"})
        text = answer["content"][0]["text"]
        check(answer["isError"] and "held: by --hold" in text and "callbox itself goes by it" in text and "--write" not in text, text)
        equal(mcp_client.good(server.call("save", {"path": "other", "text": "x"})), "ok", "another file")


@for_people("a draft of a protected name is told by that name, and what hides a file holds its directory")
def drafts_told(user):
    top = place(user, "ws", "ws/.git", "ws/data")
    put(top / "ws/.git/config", "", user)
    put(top / "ws/data/key", "", user)
    tried = [("echo x >.git/config.lock", "--unprotect .git/config (what"), ("echo x >.envrc.tmp", "--unprotect .envrc (what"), ("mv data d2", "--hide")]
    for box in BOXES:
        for command, wanted in tried if box == "namespaces" else tried[:2]:
            hide = ["--hide", "data/key"] if box == "namespaces" else []  # which only mounts can
            done = harness.callbox(["run", "--json", "--explain", "--box", box, "--workspace", ".", *hide, "--", "sh", "-c", command], user=user, cwd=top / "ws", binary=CALLBOX)
            told = json.dumps(done.report["denials"])
            check(wanted in told and "more protected names" not in told, f"{box}, {command}: {told}")
        done = harness.callbox(["run", "--json", "--box", box, "--workspace", ".", "--unprotect", ".git/config", "--", "sh", "-c", tried[0][0]], user=user, cwd=top / "ws", binary=CALLBOX)
        equal((done.report["code"], done.report["denials"]), (0, []), f"{box}: what was advised")
        (top / "ws/.git/config.lock").unlink()


# ---- The current directory, by whatever name -------------------------------------------------


@for_people("a current directory with a colon in its name is shown itself, not what its parts would name")
def colon(user):
    top = place(user, "a:/b", "real")
    put(top / "a:/b/here", "here", user)
    put(top / "real/secret", "s3cret", user)
    (top / "a").symlink_to(top / "real")
    done = run("sh", "-c", "cat here; ls /b 2>&1; true", user=user, cwd=top / "a:/b")
    check(done.out.startswith(b"here") and b"secret" not in done.out, f"the box sees {done.out!r} ({done.err!r})")
    done = harness.callbox(["run", "--workspace", f"{top}/a:/b", "--", "ls"], user=user, cwd=top / "a:/b", binary=CALLBOX, env=tooling.ENVIRONMENT)
    check(done.code == 125 and b"secret" not in done.out and b":" in done.err, f"it is taken: {done.out!r} {done.err!r}")


@for_people("a current directory whose name is no UTF-8 is shown, or is told, and is none of callbox's failures")
def no_utf8(user):
    top = place(user, "x")
    odd = os.fsencode(top) + b"/caf\xe9"
    os.mkdir(odd)
    SCRATCH.own(pathlib.Path(os.fsdecode(odd)), user)
    done = run("sh", "-c", "echo ran", user=user, cwd=os.fsdecode(odd))
    equal((done.code, done.out), (0, b"ran\n"), f"the call, which says {done.err!r},")


@for_people("what is named through /proc/self/cwd is held, and no link is followed there")
def by_proc(user):
    top = place(user, "w", "victim")
    put(top / "w/p.json", {"files": {"workspace": str(top / "w")}}, user)
    before = (top / "w/p.json").read_text()
    done = run("sh", "-c", "echo x >p.json; mv p.json q.json; rm -f p.json; echo tried", options=["--policy", "/proc/self/cwd/w/p.json"], user=user, cwd=top)
    equal((b"tried" in done.out, (top / "w/p.json").read_text()), (True, before), f"the policy, after {done.out!r} {done.err!r}")
    put(top / "victim/f", "kept", user)
    (top / "w/r.json").symlink_to(top / "victim/f")
    done = harness.callbox(["run", "--workspace", "w", "--report", "/proc/self/cwd/w/r.json", "--", "true"], user=user, cwd=top, binary=CALLBOX, env=tooling.ENVIRONMENT)
    equal((done.code, (top / "victim/f").read_text()), (125, "kept"), f"a report through a link ({done.err!r})")


@for_people("--stdin of a FIFO is refused at once: nobody may ever write to it")
def stdin_fifo(user):
    top = place(user, "ws")
    os.mkfifo(top / "ws/fifo")
    SCRATCH.own(top / "ws/fifo", user)
    for options in ([], ["--workspace", "."]):
        began = time.monotonic()
        done = harness.callbox(["run", *options, "--stdin", "fifo", "--", "cat"], user=user, cwd=top / "ws", binary=CALLBOX, env=tooling.ENVIRONMENT)
        check(done.code == 125 and b"fifo" in done.err, f"{options}: {done.code} {done.err!r}")
        check(time.monotonic() - began < 5 * harness.SLOW, f"{options}: it waited")


# ---- S2: folders of manifests ------------------------------------------------------------------


def evil(victim):
    return manifest("evil", ["sh", "-c", f"echo escaped >{victim}/f"], policy={"files": {"write": [str(victim)]}, "network": "host"})


@for_people("S2 control: a manifest that is put into a followed folder is a tool, with whatever policy it brings")
def followed_control(user):
    top = place(user, "tools", "victim")
    put(top / "tools/hello.json", manifest("hello"), user)
    server = mcp_client.Server("--tools", top / "tools", user=user)
    server.result("tools/list")
    put(top / "tools/evil.json", evil(top / "victim"), user)
    awaited(lambda: "evil" in [t["name"] for t in server.result("tools/list")["tools"]], "the tool")
    server.call("evil")
    equal((top / "victim/f").read_text(), "escaped\n", "the victim")
    server.process.stdin.close()
    server.process.wait(20)


FOLDERS = {
    "by its name": lambda top: (["--workspace", str(top)], top / "tools"),
    "relative": lambda top: (["--workspace", "."], "tools"),
    "by a tree at another place": lambda top: (["--write", f"{top}:/elsewhere"], top / "tools"),
    "by itself": lambda top: (["--write", str(top / "tools")], top / "tools"),
    "through a link outside": lambda top: (["--workspace", str(top)], linked(top.parent / f"{top.name}-link", top / "tools")),
    "through a link inside": lambda top: (["--workspace", str(top / "ws")], linked(top / "ws/link", top / "elsewhere")),
}


@for_people("S2 what --hold is advised for a folder of manifests helps, also of tools with policies of their own")
def hold_advised(user):
    top = place(user, "tools")
    put(top / "tools/own.json", manifest("own", ["sh", "-c", "echo x >tools/new.json; echo x >beside"], policy={"files": {"workspace": "."}}), user)
    for command in (["tool", "check", "tools"], ["tool", "check", "tools/own.json"]):
        done = harness.callbox(command, user=user, cwd=top, binary=CALLBOX, env=tooling.ENVIRONMENT)
        check(done.code == 1 and f"--hold {top}/tools".encode() in done.out, done.out)
        done = harness.callbox([*command, "--hold", "tools"], user=user, cwd=top, binary=CALLBOX, env=tooling.ENVIRONMENT)
        equal(done.code, 0, f"{command} with what it advises, which says {done.out!r},")
    harness.callbox(["tool", "call", "--tools", "tools", "--hold", "tools", "own"], user=user, cwd=top, binary=CALLBOX, env=tooling.ENVIRONMENT)
    equal((sorted(path.name for path in (top / "tools").iterdir()), (top / "beside").exists()), (["own.json"], True), "what the tool wrote")


def linked(link, target):
    link.symlink_to(target)
    return link


for how, make in FOLDERS.items():

    @for_people(f"S2 a folder of manifests that a tool may write is refused: {how}")
    def folder_refused(user, make=make):
        top = place(user, "tools", "ws", "elsewhere")
        for folder in ("tools", "elsewhere"):
            put(top / folder / "hello.json", manifest("hello"), user)
        options, folder = make(top)
        done = harness.callbox(["mcp", *options, "--tools", str(folder)], user=user, cwd=top, binary=CALLBOX, env=tooling.ENVIRONMENT)
        equal(done.code, 125, f"the exit code ({done.err})")
        check(b"--tools" in done.err and b"the folder of manifests" in done.err and b"to fix it" in done.err, done.err)
        done = harness.callbox(["tool", "check", *options, str(folder)], user=user, cwd=top, binary=CALLBOX, env=tooling.ENVIRONMENT)
        check(done.code == 1 and b"the folder of manifests" in done.out, done.out)


@for_people("S2 a folder that is held may lie in the workspace, and stays as it is")
def folder_held(user):
    top = place(user, "tools", "victim")
    put(top / "tools/hello.json", manifest("hello", ["echo", "hi"]), user)
    server = mcp_client.Server("--workspace", top, "--hold", top / "tools", "--tools", top / "tools", user=user)
    attack = f"cd {top}; echo '{json.dumps(evil(top / 'victim'))}' >e.json; cp e.json tools/evil.json; mv e.json tools/; mv tools t2; mkdir -p tools; cp e.json tools/; true"
    server.call("run_command", {"command": attack})
    equal([p.name for p in (top / "tools").iterdir()], ["hello.json"], "the folder")
    check("evil" not in [t["name"] for t in server.result("tools/list")["tools"]], "there is another tool")
    server.process.stdin.close()
    server.process.wait(20)


@case("S2 a tool that may write where manifests are followed is refused, at first and when it comes later")
def tool_refused():
    top = place(False, "tools", "ws", "policies")
    for where in (top, top / "tools", top / "policies"):
        with toolbox(policies=str(top / "policies")) as box:
            put(top / "tools/a.json", manifest("a", ["true"], policy={"files": {"write": [str(where)]}}))
            box.load(top / "tools")
            event = box.step()
            check(event[0] == "broken" and "lies where calls of the tool \"a\" may write" in event[3], event)
            equal(box.list(), [], "the tools")
            put(top / "tools/a.json", manifest("a", ["true"]))
            awaited(lambda: box.step() and [t["name"] for t in box.list()] == ["a"], "the good one")
            raises(lambda: box.add(manifest("b", ["true"], policy={"files": {"workspace": str(where)}})), "may write", "hold")
            put(top / "tools/a.json", manifest("a", ["true"], policy={"files": {"write": [str(where)]}}))
            awaited(lambda: (box.step() or [""])[0] == "broken", "the bad one")
            equal(json.loads(json.dumps(box.list()))[0]["name"], "a", "the version that was good stays")


@case("S2 a folder is refused where a tool that is there already may write it")
def folder_later():
    top = place(False, "tools")
    with toolbox(manifest("w", ["true"], policy={"files": {"write": [str(top)]}})) as box:
        raises(lambda: box.load(top / "tools"), "directory", "the tool \"w\" may write")
        equal(box.step()[:2], ("added", "w"), "nothing else happened")


@case("S2 manifests that are links to what a tool may write are refused, also when the folder is put behind a link later")
def manifest_linked():
    top = place(False, "tools", "ws", "tools2")
    put(top / "ws/e.json", manifest("e"))
    with toolbox(manifest("shell", ["true"], policy={"files": {"workspace": str(top / "ws")}})) as box:
        box.step()
        box.load(top / "tools")
        (top / "tools/e.json").symlink_to(top / "ws/e.json")
        awaited(lambda: (box.step() or [""])[0] == "broken", "the link")
        # A parent of the folder goes away, and a link to the workspace comes into its place.
        (top / "ws/tools").mkdir()
        put(top / "ws/tools/f.json", manifest("f"))
        (top / "tools").rename(top / "away")
        (top / "tools").symlink_to(top / "ws/tools")
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline:
            box.step()
            time.sleep(0.05)
        equal([t["name"] for t in box.list()], ["shell"], "the tools")


@case("S2 a tool whose files another may write is refused; its own are held in its own boxes")
def files_of_tools():
    top = place(False, "ws", "tools")
    script = put(top / "ws/run.sh", "echo run\n")
    named = manifest("named", run={"command": ["/bin/sh", {"file": str(script)}]}, policy={"files": {"workspace": str(top / "ws")}})
    with toolbox(named) as box:
        equal(tooling.good(box.call("named")), "run\n", "what it says")
        raises(lambda: box.add(manifest("shell", ["true"], policy={"files": {"workspace": str(top / "ws")}})), "a file of the tool \"named\"")
        held = {"files": {"workspace": str(top / "ws"), "hold": [str(script)]}}
        box.add(manifest("shell", ["sh", "-c", f"echo echo evil >{script}; rm -f {script}; true"], policy=held))
        box.call("shell")
        equal((script.read_text(), tooling.good(box.call("named"))), ("echo run\n", "run\n"), "the script, and what it says")
    put(script, f"echo evil >{script}; rm -f {script}; true\n")
    with toolbox(named) as box:
        box.call("named")
        check("evil >" in script.read_text(), "the tool has changed its own file")


@case("S2 a bind mount does not hide where a folder lies")
def bind_mounted():
    top = place(False, "ws/tools", "bound")
    put(top / "ws/tools/hello.json", manifest("hello"))
    script = f"mount --bind {top}/ws/tools {top}/bound && exec {CALLBOX} mcp --workspace {top}/ws --tools {top}/bound"
    command = ["unshare", "-m", "sh", "-c", script] if harness.ROOT else ["unshare", "-rm", "sh", "-c", script]
    done = harness.execute(command, env=tooling.ENVIRONMENT)
    check(done.code == 125 and b"the folder of manifests" in done.err, done.err)


def mounted(binds, command, user=False):
    """Run a shell's command where these places are mounted at others."""
    script = " && ".join(f"mount --bind {at} {to}" for at, to in binds)
    if user and harness.ROOT:
        command = f"exec {' '.join(map(shlex.quote, harness.as_user(['sh', '-c', command])))}"
    inside = ["sh", "-c", f"{script} && {command}"]
    return harness.execute([*(["unshare", "-m"] if harness.ROOT else ["unshare", "-rm"]), *inside], env=tooling.ENVIRONMENT)


def alias_attack(user, box, form, binary=CALLBOX, without=""):
    """The policy's text after a call whose workspace shows it by another path."""
    top = place(user, "ws/conf", "alias", "conf", "more/in")
    ws, alias, conf = top / "ws", top / "alias", top / "conf"
    policy, binds, workspace, reached = {
        "the workspace is an alias": (ws / "p.json", [(ws, alias)], alias, alias / "p.json"),
        "a directory of it, by an alias": (ws / "conf/p.json", [(ws / "conf", alias)], alias, alias / "p.json"),
        "its directory is mounted in the workspace": (conf / "p.json", [(conf, ws / "conf")], ws, ws / "conf/p.json"),
        "a mount around the workspace": (ws / "conf/p.json", [(top, top / "more/in")], top / "more", top / "more/in/ws/conf/p.json"),
    }[form]
    put(policy, {"box": box, "files": {"workspace": str(workspace)}}, user)
    before = policy.read_text()
    attack = f"echo evil >{reached}; rm -f {reached}; mv {reached} {reached}2; mv {reached.parent} {reached.parent}2; cd {workspace}; echo ok >free"
    done = mounted(binds, f"{binary} run -q {without} --policy {policy} -- sh -c '{attack}'", user)
    free = (workspace / "free", ws / "free", ws / "conf/free")
    check(any(f.exists() for f in free), f"the box could write nothing ({done.err})")
    return policy.read_text() == before if policy.exists() else False


for form in ("the workspace is an alias", "a directory of it, by an alias", "its directory is mounted in the workspace", "a mount around the workspace"):
    for box in BOXES:

        @for_people(f"S6 a policy is held wherever a mount shows it: {form}, {box}")
        def aliased(user, box=box, form=form):
            equal(alias_attack(user, box, form), True, "the policy is as it was")


@case("S6 control: without the fence the policy is written by the other path")
def aliased_control():
    equal(alias_attack(False, "namespaces", "the workspace is an alias", UNFENCED, "--without protect,readonly,landlock"), False, "the policy is as it was")


@for_people("protected names hold where another writable tree shows the workspace by a mount")
def protected_alias(user):
    for box in BOXES:
        top = place(user, "ws/.git/hooks", "out/alias", "ws/self")
        attack = f"echo evil >{top}/out/alias/.git/hooks/x; echo evil >{top}/out/alias/.envrc; echo evil >{top}/ws/self/.git/hooks/y; echo ok >{top}/out/alias/free"
        options = f"--box {box} --workspace {top}/ws --write {top}/out"
        done = mounted([(top / "ws", top / "out/alias"), (top / "ws", top / "ws/self")], f"{CALLBOX} run -q {options} -- sh -c '{attack}'", user)
        equal(sorted(p.name for p in (top / "ws").rglob("*") if p.is_file()), ["free"], f"{box}: what was written ({done.err})")


@case("S2 a folder that is held by one path is held at the other, or refused")
def folder_alias():
    top = place(False, "ws/tools/policies", "alias")
    ws, alias = top / "ws", top / "alias"
    put(ws / "tools/hello.json", manifest("hello"))
    call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "run_command", "arguments": {"command": f"echo x >{alias}/tools/evil.json; echo ok >{alias}/free"}}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}
    put(top / "input", "".join(json.dumps(m) + "\n" for m in (hello, {"jsonrpc": "2.0", "method": "notifications/initialized"}, call)))
    done = mounted([(ws, alias)], f"{CALLBOX} mcp --workspace {alias} --tools {ws}/tools <{top}/input")
    check(done.code == 125 and b"the folder of manifests" in done.err, done.err)
    done = mounted([(ws, alias)], f"(cat {top}/input; sleep 1) | {CALLBOX} mcp --workspace {alias} --tools {ws}/tools --hold {ws}/tools")
    equal(sorted(p.name for p in (ws / "tools").iterdir()), ["hello.json", "policies"], f"the folder ({done.out} {done.err})")
    equal((ws / "free").read_text(), "ok\n", f"what the box may write ({done.err})")


@for_people("a rule for a tree below what is held ends the hold there: it is no way to have an input held")
def deeper_rule(user):
    top = place(user, "ws/tools/policies")
    put(top / "ws/tools/hello.json", manifest("hello"), user)
    held = ["--workspace", str(top / "ws"), "--hold", str(top / "ws/tools")]
    deeper = ["--write", str(top / "ws/tools/policies")]
    for options, code in ((held, 0), ([*held, *deeper], 1), ([*deeper, *held], 1), ([*held, *deeper, "--hold", str(top / "ws/tools/policies")], 0)):
        done = harness.callbox(["tool", "check", *options, str(top / "ws/tools")], user=user, cwd="/", binary=CALLBOX, env=tooling.ENVIRONMENT)
        equal(done.code, code, f"{options}: {done.out}")
    check(b"the folder of policies" in harness.callbox(["tool", "check", *held, *deeper, str(top / "ws/tools")], user=user, cwd="/", binary=CALLBOX).out, "which it is")


WORDS = {
    "a program": lambda ws: ([f"{ws}/bin/prog"], ws / "bin/prog"),
    "a program that is not there yet": lambda ws: ([f"{ws}/bin/new"], ws / "bin/new"),
    "a script of an interpreter": lambda ws: ([PYTHON, f"{ws}/data"], ws / "data"),
    "a script behind options": lambda ws: ([PYTHON, "-I", f"{ws}/tool.py", "{x}"], ws / "tool.py"),
    "a program for a program": lambda ws: (["/usr/bin/nohup", f"{ws}/bin/prog"], ws / "bin/prog"),
    "found along PATH": lambda ws: (["prog"], ws / "bin/prog"),
    "not found there yet": lambda ws: (["true"], ws / "bin/true"),
    "from its directory": lambda ws: (["bin/prog"], ws / "bin/prog"),
    "by a link": lambda ws: ([f"{ws}/bin/link"], ws / "bin/link"),
    "only sometimes": lambda ws: (["/usr/bin/true", {"when": "x", "then": [f"{ws}/tool.py"]}], ws / "tool.py"),
}
for how, make in WORDS.items():

    @case(f"S2 what a command runs is a file of its tool, though the manifest does not call it one: {how}")
    def words(make=make):
        top = place(False, "ws/bin", "tools")
        ws = top / "ws"
        for name in ("bin/prog", "tool.py", "data"):
            put(ws / name, "#!/bin/sh\necho run\n" if name == "bin/prog" else "print('run')\n")
        (ws / "bin/prog").chmod(0o755)
        (ws / "bin/link").symlink_to("/bin/true")
        command, path = make(ws)
        own = {"files": {"workspace": str(ws)}, "environment": {"set": {"PATH": f"{ws}/bin:/usr/bin:/bin"}}}
        named = manifest("named", command, properties={"x": {"type": "string"}}, policy=own)
        writer = manifest("writer", ["sh", "-c", "true"], policy={"files": {"workspace": str(ws)}})
        put(top / "tools/a.json", named)
        put(top / "tools/b.json", writer)
        done = harness.callbox(["tool", "check", str(top / "tools")], binary=CALLBOX, env=tooling.ENVIRONMENT)
        check(done.code == 1 and b"a file of the tool" in done.out, done.out)
        with toolbox(named) as box:
            raises(lambda: box.add(writer), "a file of the tool \"named\"", "hold")
            box.add(manifest("writer", ["sh", "-c", "true"], policy={"files": {"workspace": str(ws), "hold": [str(path)]}}))
        with toolbox(writer) as box:
            raises(lambda: box.add(named), "a file of the tool \"named\"")


@case("S2 control: a word of a command that is data may be written by others, and by the tool itself")
def words_data():
    top = place(False, "ws")
    log = put(top / "ws/log.txt", "")
    files = {"files": {"workspace": str(top / "ws")}}
    with toolbox(manifest("note", ["tee", "-a", str(log)], policy=files), manifest("list", ["ls", str(top / "ws")], policy=files)) as box:
        box.add(manifest("writer", ["sh", "-c", f"echo more >>{log}"], policy=files))
        tooling.good(box.call("writer"))
        tooling.good(box.call("note"))
        equal(log.read_text(), "more\n", "the log")


@case("S2 what a command runs is held in its own boxes")
def words_held():
    top = place(False, "ws/bin")
    prog = put(top / "ws/bin/prog", "#!/bin/sh\ncd $(dirname $0)\necho evil >prog; rm -f prog link; ln -s /x link; mv ../bin ../b2; echo ok >free\n")
    prog.chmod(0o755)
    before, link = prog.read_text(), top / "ws/bin/link"
    for command in ([str(prog)], [str(link)], ["/bin/sh", str(link)]):
        link.unlink(missing_ok=True)
        link.symlink_to("prog")
        with toolbox(manifest("t", command, policy={"files": {"workspace": str(top / "ws")}})) as box:
            box.call("t")
        equal((prog.read_text(), (top / "ws/bin/free").read_text()), (before, "ok\n"), f"{command}")
        equal(os.readlink(link), "prog" if str(link) in command else "/x", f"the link, which is the control of {command}")


@case("S2 control: what is looked for along PATH may be written by tools that have the same rights")
def words_found():
    top = place(False, "ws/bin")
    prog = put(top / "ws/bin/prog", "#!/bin/sh\necho run\n")
    prog.chmod(0o755)
    with toolbox(policy=LIBRARY.policy({"files": {"workspace": str(top / "ws")}, "environment": {"set": {"PATH": f"{top}/ws/bin:/usr/bin:/bin"}}})) as box:
        box.add(manifest("prog", ["prog"]))
        box.add(manifest("writer", ["sh", "-c", "echo more"]))
        equal(tooling.good(box.call("prog")), "run\n", "the program")
        raises(lambda: box.add(manifest("other", ["true"], policy={"files": {"workspace": str(top / "ws")}})), "a file of the tool \"prog\"")


# ---- What a process goes by and is made of, whichever policy is in use --------------------------


@case("S2 a second policy of the process cannot write the folder that a toolbox follows, nor the files of its tools")
def second_policy():
    top = place(False, "ws/tools", "files")
    put(top / "ws/tools/hello.json", manifest("hello", ["true"]))
    script = put(top / "files/run.sh", "echo run\n")
    wide = LIBRARY.policy({"files": {"workspace": str(top / "ws")}})
    files = LIBRARY.policy({"files": {"write": [str(top / "files")]}})
    touch = ["sh", "-c", f"echo >{top}/ws/tools/evil.json; echo >{top}/files/run.sh; true"]
    with tooling.warden() as warden:
        # Control: before anything is followed, both may.
        for policy in (wide, files):
            equal(warden.run(policy, touch)["code"], 0, "before")
        equal(((top / "ws/tools/evil.json").exists(), script.read_text()), (True, "\n"), "what it wrote")
        (top / "ws/tools/evil.json").unlink()
        put(script, "echo run\n")
        with toolbox(manifest("named", run={"command": ["/bin/sh", {"file": str(script)}]})) as box:
            box.load(top / "ws/tools")
            for _ in range(2):
                raises(lambda: warden.run(wide, touch), "the folder of manifests", "may write", "--hold")
                raises(lambda: warden.prepare(wide), "the folder of manifests")
                raises(lambda: warden.run(files, touch), "a file of the tool \"named\"")
            equal(tooling.good(box.call("named")), "run\n", "the tool itself")
            held = LIBRARY.policy({"files": {"workspace": str(top / "ws"), "hold": [str(top / "ws/tools")]}})
            equal(warden.run(held, touch)["code"], 0, "where it is held")
            check(not (top / "ws/tools/evil.json").exists(), "what is held was written")
            with toolbox(policy=wide) as other:
                other.add(manifest("w", ["true"]))
                raises(lambda: other.call("w"), "the folder of manifests")
            box.remove("named")
            equal(warden.run(files, touch)["code"], 0, "once the tool is gone")
        equal(warden.run(wide, touch)["code"], 0, "once nothing is followed any more")


OWN = """
import sys
sys.path.insert(0, sys.argv[1])
import library
made = library.Library(sys.argv[2])
warden = made.warden()
policy = made.policy({"box": sys.argv[3], "files": {"workspace": sys.argv[4]}})
print(warden.run(policy, ["sh", "-c", sys.argv[5]])["code"])
warden.close()
"""


@for_people("a program of the library's has its own objects and the warden's program held in every policy, with the links to them")
def own_objects(user):
    for box in BOXES:
        top = place(user, "ws/lib", "ws/bin", "tests")
        ws = top / "ws"
        built = next(p for p in (tooling.BUILD / "libcallbox.so.0.0.0", tooling.BUILD / "libcallbox.so.0") if p.exists())
        for path, origin in ((ws / "lib/libcallbox.so.0.0.0", built), (ws / "lib/control", built), (ws / "bin/callbox-1", CALLBOX)):
            path.write_bytes(open(origin, "rb").read())
            path.chmod(0o755)
            SCRATCH.own(path, user)
        (ws / "lib/libcallbox.so.0").symlink_to("libcallbox.so.0.0.0")
        (ws / "bin/callbox").symlink_to("callbox-1")
        put(top / "tests/library.py", open(os.path.join(os.path.dirname(__file__), "library.py")).read(), user)
        put(top / "tests/harness.py", open(os.path.join(os.path.dirname(__file__), "harness.py")).read(), user)
        names = ["lib/libcallbox.so.0.0.0", "lib/libcallbox.so.0", "bin/callbox", "bin/callbox-1", "lib/control"]
        attack = f"cd {ws}; for f in {' '.join(names)}; do ln -sf /x $f; rm -f $f; echo evil >$f; done; mv lib lib2; mv bin bin2; true"
        command = [PYTHON, "-c", OWN, str(top / "tests"), str(ws / "lib/libcallbox.so.0"), box, str(ws), attack]
        done = harness.execute(harness.as_user(command) if user else command, env={**tooling.ENVIRONMENT, "CALLBOX_WARDEN": str(ws / "bin/callbox")})
        equal(done.out, b"0\n", f"{box}: {done.err}")
        for name in names[:4]:
            check((ws / name).exists() and (ws / name).stat().st_size > 10000, f"{box}: {name} was changed")
        equal((os.readlink(ws / "lib/libcallbox.so.0"), os.readlink(ws / "bin/callbox")), ("libcallbox.so.0.0.0", "callbox-1"), "the links")
        equal((ws / "lib/control").read_text(), "evil\n", f"{box}: the control, which nobody uses")


@for_people("the command is held by the name that it was started by, with its links")
def own_command(user):
    top = place(user, "ws/bin", "real")
    for box in BOXES:
        for target, name in ((top / "real/callbox", "bin/callbox"), (top / "ws/bin/real", "bin/callbox")):
            target.write_bytes(open(CALLBOX, "rb").read())
            target.chmod(0o755)
            SCRATCH.own(target, user)
            link = top / "ws" / name
            link.symlink_to(target)
            attack = "ln -sf /x bin/callbox; rm -f bin/callbox bin/real; echo evil >bin/callbox; mv bin b2; echo ok >free"
            for started in (str(link), "bin/callbox", "../ws/bin/callbox"):
                done = harness.callbox(["run", "-q", "--box", box, "--workspace", ".", "--", "sh", "-c", attack], user=user, cwd=top / "ws", binary=started, env=tooling.ENVIRONMENT)
                equal((os.readlink(link), target.stat().st_size > 10000), (str(target), True), f"{box}, {started}: {done.err}")
                equal((top / "ws/free").read_text(), "ok\n", f"{box}, {started}: what it may write ({done.err})")
                (top / "ws/free").unlink()
            link.unlink()


@for_people("a token is not seen in any box, and stays as it is")
def token(user):
    top = place(user, "ws")
    secret = put(top / "ws/token", "0123456789abcdef0123\n", user)
    secret.chmod(0o600)
    for options in (["--workspace", str(top / "ws")], ["--read", str(top / "ws")], ["--write", f"{top / 'ws'}:/w"]):
        server = mcp_client.Server(*options, "--http", "127.0.0.1:0", "--token-file", secret, user=user)
        time.sleep(0.7)
        server.process.terminate()
        server.process.wait(20)
        for reader in server.readers:
            reader.join(5)
        check(b"serving http" in server.errors, server.errors)
    shown = harness.callbox(["policy", "show", "--read", str(top / "ws")], user=user, cwd="/", binary=CALLBOX)
    equal(shown.code, 0, "the policy of others")


# ---- S5: paths of a policy ---------------------------------------------------------------------


SWAPS = {
    "the path itself": ("out", "mv out old && ln -s {victim} out"),
    "a directory above": ("a/out", "mv a b && mkdir {victim}/out; ln -s {victim} a"),
    "a link in the link's place": ("out", "mv out old && ln -s {victim} x && ln -s x out"),
}


def policy_of(path, rule):
    return LIBRARY.policy({"files": {rule: [str(path)]}})


for what, (name, swap) in SWAPS.items():

    @case(f"S5 a path of a policy that a box swaps for a link is not followed: {what}")
    def swapped(name=name, swap=swap):
        top = place(False, f"ws/{name}", "victim/out")
        ws, victim, path = top / "ws", top / "victim", top / "ws" / name
        command = ["sh", "-c", f"touch {path}/f"]
        with tooling.warden() as warden:
            shell, report = LIBRARY.policy({"files": {"workspace": str(ws)}}), policy_of(path, "write")
            unused = policy_of(path, "write")
            equal(warden.run(report, command)["code"], 0, "before")
            equal(warden.run(shell, ["sh", "-c", swap.format(victim=victim)])["code"], 0, "the swap")
            for policy in (report, unused, report):
                found = warden.run(policy, command)
                equal(found["reason"], "setup", f"afterwards: {found['text']}")
                check("symbolic link" in found["text"], found["text"])
            equal([p.name for p in victim.rglob("f")], [], "what the victim has")
            # Control: a policy that is made now means what the path leads to now.
            equal(warden.run(policy_of(path, "write"), command)["code"], 0, "the control")
            equal(len(list(victim.rglob("f"))), 1, "what the control wrote")


@case("S5 what was not there when a policy was made is not followed when it comes as a link; a directory is used")
def absent():
    top = place(False, "ws", "victim")
    with tooling.warden() as warden:
        shell, report = LIBRARY.policy({"files": {"workspace": str(top / "ws")}}), policy_of(top / "ws/out", "write")
        check("does not exist" in warden.run(report, ["true"])["text"], "before")
        warden.run(shell, ["ln", "-s", str(top / "victim"), str(top / "ws/out")])
        found = warden.run(report, ["touch", str(top / "ws/out/f")])
        equal((found["reason"], list((top / "victim").iterdir())), ("setup", []), found["text"])
        (top / "ws/out").unlink()
        (top / "ws/out").mkdir()
        equal(warden.run(report, ["touch", str(top / "ws/out/f")])["code"], 0, "a directory")


@case("S5 a file that is saved anew goes on being shown; a directory in its place, or the other way round, is told")
def saved():
    top = place(False, "d")
    note = put(top / "note", "one")
    with tooling.warden() as warden:
        policy, tree = policy_of(note, "read"), policy_of(top / "d", "read")
        for text in ("one", "two", "three"):
            put(top / "new", text)
            os.rename(top / "new", note)
            equal(warden.run(policy, ["cat", str(note)])["output"], text.encode(), "the note")
        note.unlink()
        note.mkdir()
        check("was a file when this policy was first used, and is now a directory" in warden.run(policy, ["true"])["text"], "the file")
        equal(warden.run(tree, ["true"])["code"], 0, "the directory")
        (top / "d").rename(top / "e")
        check("does not exist" in warden.run(tree, ["true"])["text"], "while it is away")
        (top / "e").rename(top / "d")
        equal(warden.run(tree, ["true"])["code"], 0, "when it is back")


@case("S5 two clients of one warden have each what their own policies led to")
def two_clients():
    top = place(False, "one", "two")
    put(top / "one/f", "1")
    put(top / "two/f", "2")
    link = top / "link"
    with library.SharedWarden(SCRATCH, CALLBOX) as shared:
        first, second = LIBRARY.warden(socket=shared.path), LIBRARY.warden(socket=shared.path)
        link.symlink_to(top / "one")
        early = policy_of(link, "read")
        equal(first.run(early, ["cat", f"{link}/f"])["output"], b"1", "the first")
        link.unlink()
        link.symlink_to(top / "two")
        late = policy_of(link, "read")
        for _ in range(3):
            equal(second.run(late, ["cat", f"{link}/f"])["output"], b"2", "the second")
            equal(first.run(early, ["cat", f"{link}/f"])["output"], b"1", "the first, again")
        first.close()
        second.close()


@for_people("S5 a path through a link that the same policy may change is refused, with what to name instead")
def own_link(user):
    top = place(user, "ws", "data")
    (top / "ws/data").symlink_to(top / "data")
    for options in (["--read", "data"], ["--write", "data"], ["--read", str(top / "ws/data") + ":/d"]):
        done = run("true", options=["--workspace", ".", *options], user=user, cwd=top / "ws")
        check(done.code == 125 and b"leads through the link" in done.err and b"look at it" in done.err, done.err)
    equal(run("true", options=["--workspace", ".", "--read", str(top / "data")], user=user, cwd=top / "ws").code, 0, "by its own name")


# ---- S7: a warden's socket in a workspace ------------------------------------------------------


@for_people("S7 a warden's socket in the workspace is no way out of a box", alone=True)
def race(user):
    top = place(user, "ws")
    put(top / "ws/talk.py", tooling.TALK, user)
    command = [CALLBOX, "warden", "--socket", str(top / "ws/w.sock")]
    warden = subprocess.Popen(harness.as_user(command) if user else command, env=tooling.ENVIRONMENT)
    try:
        awaited(lambda: (top / "ws/w.sock").exists(), "the socket")
        for box in BOXES:
            talkers = [subprocess.Popen((harness.as_user if user else list)([CALLBOX, "run", "-q", "--box", box, "--workspace", str(top / "ws"), "--", PYTHON, "talk.py", "w.sock", "2"]),
                                        stdout=subprocess.PIPE, env=tooling.ENVIRONMENT) for _ in range(3)]  # fmt: skip
            said = [t.communicate(timeout=60 * harness.SLOW)[0] for t in talkers]
            check(all(text.startswith(b"held") for text in said), f"{box}: {said}")
        # Without init's part the warden's own look holds as well.
        done = run(PYTHON, "talk.py", "w.sock", "2", options=["--without", "net", "--box", "landlock", "--workspace", "."], user=user, cwd=top / "ws", binary=UNFENCED)
        check(done.out.startswith(b"held"), done.out)
        equal(run("echo", "hi", options=["--warden", str(top / "ws/w.sock")], user=user).out, b"hi\n", "who may")
    finally:
        warden.terminate()
        warden.wait(20)


@for_people("S7 control: whoever asks no questions is reached where init's fence is left out, and not where it is there")
def listener(user):
    top = place(user, "ws")
    put(top / "ws/talk.py", tooling.TALK, user)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        os.chdir("/")
        server.bind(str(top / "ws/w.sock"))
        server.listen(5)
        SCRATCH.own(top / "ws/w.sock", user)
        for binary, without, wanted in ((UNFENCED, ["--without", "net"], b"WON"), (CALLBOX, [], b"held")):
            command = [binary, "run", "-q", *without, "--box", "landlock", "--workspace", str(top / "ws"), "--", PYTHON, "talk.py", "w.sock", "1"]
            talker = subprocess.Popen(harness.as_user(command) if user else command, stdout=subprocess.PIPE, env=tooling.ENVIRONMENT)
            deadline = time.monotonic() + 20 * harness.SLOW
            while talker.poll() is None and time.monotonic() < deadline:
                if select.select([server], [], [], 0.1)[0]:
                    peer = server.accept()[0]
                    peer.settimeout(1)
                    try:
                        if peer.recv(100):
                            peer.send(b"welcome")
                    except OSError:
                        pass
                    peer.close()
            check(talker.communicate(timeout=20)[0].startswith(wanted), f"{binary}: not {wanted}")


@for_people("S7 a client that has died, or speaks for another process, is turned away")
def other_speaks(user):
    with library.SharedWarden(SCRATCH, CALLBOX, user=user) as shared:
        script = f"""
import os, socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect({str(shared.path)!r})
if os.fork() == 0:
    try:
        s.send(struct.pack("=IIQQ", 1, 0, 8, 5))
        print("answer" if s.recv(100) else "none", flush=True)
    except OSError:
        print("none", flush=True)
    os._exit(0)
os.wait()
"""
        command = [PYTHON, "-c", script]
        done = harness.execute(harness.as_user(command) if user else command)
        equal(done.out, b"none\n", f"what a child of who connected hears ({done.err})")


# ---- S17: no oracle of the host's files --------------------------------------------------------


@for_people("S17 what was refused is told whether the host has it or not")
def oracle(user):
    top = place(user, "ws", "closed/in")
    put(top / "closed/there", "x", user)
    paths = [f"{top}/closed/{name}" for name in ("there", "absent", "in/absent")]
    server = mcp_client.Server("--workspace", top / "ws", user=user)
    for command in ("cat {}", "echo x >{}", "rm {}", "test -e {}", "ls {}"):
        told = []
        for path in paths[:2]:
            text = server.call("run_command", {"command": f"{command.format(path)}; exit 1"})["content"][0]["text"]
            told.append(text.replace(path, "PATH"))
        equal(told[0], told[1], f"what is told of {command}")
    server.process.stdin.close()
    server.process.wait(20)
    # Control: to the user who runs the command only what is there is told.
    done = harness.callbox(["run", "--json", "--explain", "--workspace", str(top / "ws"), "--", "cat", *paths[:2]], user=user, cwd="/", binary=CALLBOX)
    told = [d["what"] for d in done.report["denials"]]
    check(paths[0] in told and paths[1] not in told, told)


# ---- S19: what a model may say ------------------------------------------------------------------


@for_people("S19 no argument of a tool over MCP widens what its box sees")
def arguments(user):
    top = place(user, "ws", "outside")
    secret = put(top / "outside/secret", "s3cret", user)
    (top / "ws/link").symlink_to(top / "outside")
    tools = mcp_client.folder_of(
        manifest("cat", run={"command": ["cat", "{path}"]}, properties={"path": {"type": "string"}}),
        manifest("env", run={"command": ["env"], "arguments": "environment"}, inputSchema={"type": "object"}),
        user=user)
    server = mcp_client.Server("--workspace", top / "ws", "--files", "--tools", tools, user=user)
    tries = [("run_command", {"command": "cat secret", "cwd": str(top / "outside")}), ("run_command", {"command": "cat secret", "cwd": "../outside"}),
             ("run_command", {"command": "cat link/secret"}), ("run_command", {"command": f"cat <{secret}", "stdin": str(secret)}),
             ("read_file", {"path": str(secret)}), ("read_file", {"path": "../outside/secret"}), ("read_file", {"path": "link/secret"}),
             ("list_files", {"path": str(top / "outside")}), ("search_files", {"pattern": "s3cret", "path": ".."}), ("search_files", {"pattern": "s3cret", "path": "link"}),
             ("cat", {"path": str(secret)}), ("cat", {"path": "/proc/1/root" + str(secret)}), ("run_python", {"code": f"print(open({str(secret)!r}).read())"}),
             ("env", {"LD_PRELOAD": "x", "policy": {"files": {"read": [str(top)]}}, "env": {"A": "1"}})]  # fmt: skip
    for name, given in tries:
        text = json.dumps(server.call(name, given))
        check("s3cret" not in text.replace("pattern s3cret", "") or name == "search_files" and str(secret) not in text.split("Refused")[0], f"{name} {given}: {text[:500]}")
    for name, given in (("write_file", {"path": str(top / "outside/new"), "content": "x"}), ("write_file", {"path": "link/new", "content": "x"}),
                        ("run_command", {"command": "touch new", "cwd": str(top / "outside")})):  # fmt: skip
        server.call(name, given)
        check(not (top / "outside/new").exists(), f"{name} {given} wrote outside")
    for more in ({"cwd": str(top / "outside")}, {"policy": {"files": {"write": [str(top)]}}}, {"env": {"X": "1"}}):
        answer = server.request("tools/call", {"name": "cat", "arguments": {"path": str(secret)}, **more})
        check("s3cret" not in json.dumps(answer), f"beside the arguments: {more}")
    server.process.stdin.close()
    server.process.wait(20)


# ---- files.hold --------------------------------------------------------------------------------


@for_people("what is held cannot be made, changed, replaced, removed or reached by moving a directory, in both kinds of box")
def held(user):
    for box in BOXES:
        top = place(user, "ws/a/b")
        put(top / "ws/a/b/f", "mine\n", user)
        script = "cd ws; echo x >a/b/f; rm -rf a; mv a c; echo x >new; mkdir new; ln -s x new; echo x >a/b/n; echo ok >free"
        done = run("sh", "-c", script, options=["--box", box, "--write", str(top), "--hold", "ws/a/b/f", "--hold", str(top / "ws/new"), "--cwd", str(top)], user=user, cwd=top)
        equal((top / "ws/a/b/f").read_text(), "mine\n", f"what is held, {box} ({done.err})")
        check(not (top / "ws/new").exists() and (top / "ws/free").read_text() == "ok\n", f"{box}: {os.listdir(top / 'ws')}")


@case("a hold that would do nothing is refused, with what to do instead")
def hold_nothing():
    top = place(False, "ws/a", "[x]")
    for held, words in (("ws/*.json", ("is a pattern", "hold the directory")), ("ws/a/?", ("is a pattern",)), (".", ("would be held with all that is in it", "hold what lies in")),
                        (str(top.parent), ("may be written (--workspace)",)), ("/", ("may be written",))):  # fmt: skip
        done = run("true", options=["--workspace", str(top / "ws"), "--hold", held], cwd=top)
        equal(done.code, 125, f"{held}: {done.err}")
        for word in words:
            check(word in done.err.decode() and "--hold" in done.err.decode(), done.err)
    for held in ("ws", "ws/a", "[x]", "/etc", "ws/later"):
        equal(run("true", options=["--workspace", str(top / "ws"), "--hold", held], cwd=top).code, 0, held)
    put(top / "ws/a*b", "x")  # which is one
    done = run("sh", "-c", "echo y >'a*b'", options=["--workspace", str(top / "ws"), "--hold", "ws/a*b"], cwd=top)
    equal((done.code != 125, (top / "ws/a*b").read_text()), (True, "x"), done.err)
    # In one tree and above another it holds in the first.
    (top / "ws/a/open").mkdir()
    done = run("sh", "-c", "echo y >a/f; echo y >a/open/f", options=["--workspace", str(top / "ws"), "--hold", "ws/a", "--write", str(top / "ws/a/open")], cwd=top)
    equal(((top / "ws/a/f").exists(), (top / "ws/a/open/f").exists()), (False, True), str(done.err))


@case("files.hold is read, printed, bounded, and merged with options")
def hold_key():
    top = place(False, "ws")
    put(top / "p.json", {"files": {"hold": ["b//c/./d", "/a"]}})
    shown = harness.callbox(["policy", "show", "--policy", str(top / "p.json"), "--hold", "e"], binary=CALLBOX)
    equal(json.loads(shown.out)["files"]["hold"], ["/a", "b/c/d", "e"], "the list")
    for wrong, word in (([1], "a string"), ([""], "may not be empty"), (["x" * 4096], "longer"), ("x", "array"), (["x%d" % n for n in range(4097)], "at most 4096")):
        raises(lambda wrong=wrong: LIBRARY.policy({"files": {"hold": wrong}}), word)


if __name__ == "__main__":
    sys.exit(harness.main(after=SCRATCH.remove))
