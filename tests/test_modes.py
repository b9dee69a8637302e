#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Where tools run: --mode, --elevate and --refuse, as root and as an ordinary user; who may say so and
who may not (manifests, policies, specs, clients of MCP, variables, clients of a shared warden); and
whether what is promised before a call is what its report says."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys

import jsonschema

import harness
import library
import mcp_client
import tooling
from harness import REPO, case, check, equal, for_people, wait_until
from tooling import CALLBOX, ENVIRONMENT, OBJECT, SCRATCH, manifest

REPORTS = jsonschema.Draft202012Validator(json.loads((REPO / "schema" / "report.schema.json").read_text()))
AUDIT = jsonschema.Draft202012Validator(json.loads((REPO / "schema" / "audit.schema.json").read_text()))
WHO_MAY = "only the application says"
STRING = {"type": "string"}

# In a box of either kind a program cannot open this, which root and the ordinary user can.
SECRET = SCRATCH.path / "secret"
SECRET.write_text("secret-4711\n")
SECRET.chmod(0o644)
LOOK = {"shell": f"cat {SECRET} 2>/dev/null || echo fenced"}
TOOLS = [manifest("look", run=LOOK), manifest("look_more", run=LOOK), manifest("other", run=LOOK)]
NO_NAMESPACES = ("unshare", "-U", "--map-root-user", "sh", "-c", 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"', "sh")
OPEN, FENCED = "secret-4711\n", "fenced\n"


def folder_of(*manifests, user=False):
    folder = SCRATCH.directory(user)
    for item in manifests:
        (folder / f"{item['name']}.json").write_text(json.dumps(item))
    return folder


def tool(*words, user=False, **options):
    options.setdefault("env", ENVIRONMENT)
    options.setdefault("cwd", "/")
    return harness.callbox(["tool", *words], user=user, binary=CALLBOX, json_report="--json" in words, **options)


def enforced(report):
    return {item["name"]: item["by"] for item in report["guarantees"] if item["enforced"]}


# ---- The operator's own command line ---------------------------------------------------------


@for_people("a tool runs as the mode and the rules say, and where there is no box that is told first")
def by_options(user):
    folder = folder_of(*TOOLS, user=user)
    cases = [
        ([], FENCED, None, ""),
        (["--mode", "strict"], FENCED, None, ""),
        (["--mode=off"], OPEN, "Mode is off", "NO BOX (mode off)"),
        (["--mode", "warn"], OPEN, "Warn mode advisory: tool would run in a box, executing on host", "NO BOX (mode warn)"),
        (["--elevate", "look"], OPEN, "Tool is marked as elevated", "NO BOX (elevated by the application)"),
        (["--elevate", "lo*"], OPEN, "Tool is marked as elevated", "NO BOX (elevated by the application)"),
        (["--elevate", "look_*"], FENCED, "Strict mode: tool runs in a box", ""),
        (["--elevate", "look_*", "--mode", "off"], OPEN, "Mode is off", "NO BOX (mode off)"),
    ]
    for options, output, reason, loud in cases:
        done = tool("call", "--tools", folder, *options, "look", user=user)
        equal((done.code, done.out.decode()), (0, output), f"with {options}, which says {done.err!r},")
        check(loud in done.err.decode() and bool(loud) == ("NO BOX" in done.err.decode()), f"with {options} it says {done.err!r}")
        report = tool("call", "--json", "--tools", folder, *options, "look", user=user).report
        REPORTS.validate(report)
        equal(report["tool"].get("route", {}).get("reason"), reason, f"the reason with {options}")
        equal([loud in text for text in report["warnings"][:1]], [True] if loud else [], f"the warnings with {options}")
        held = enforced(report)
        check({"tree-kill", "environment", "memory", "pids"} <= set(held), f"with {options}: {held}")
        equal("files" in held and "network" in held and "syscalls" in held and "privileges" in held, not loud, f"fences with {options}")
    warned = tool("call", "--tools", folder, "--mode", "warn", "look", user=user)
    check("Tool 'look' would run in a box (mode=warn, running on host)" in warned.err.decode(), f"it says {warned.err!r}")


@for_people("a function of a shared object runs without a box as well, with its result and its progress")
def function(user):
    folder = folder_of(manifest("upper", run={"object": OBJECT, "function": "object_upper"}), user=user)
    for options in ([], ["--elevate", "upper"]):
        done = tool("call", "--tools", folder, *options, "upper", '{"a": "b"}', user=user)
        equal((done.code, done.out, b"1 of 1: done" in done.err, b"NO BOX" in done.err), (0, b'{"A":"B"}\n', True, bool(options)), f"with {options}: {done.err!r}")


@for_people("a refused tool does not run, whatever stands before or behind")
def refused(user):
    folder = folder_of(*TOOLS, manifest("never", run=LOOK, route="refused"), manifest("always", run=LOOK, route="boxed"), user=user)
    for options in (["--refuse", "look"], ["--mode", "off", "--refuse", "look"], ["--refuse", "l*", "--elevate", "look"], ["--elevate", "look", "--refuse", "l*"]):
        done = tool("call", "--tools", folder, *options, "look", user=user)
        equal((done.code, done.out, done.err.decode()), (3, b"", "callbox: look: Tool is refused by the application\n"), f"with {options}")
    done = tool("call", "--tools", folder, "--mode", "off", "never", user=user)
    equal((done.code, done.err.decode()), (3, "callbox: never: Tool is refused by its manifest\n"), "refused by its manifest")
    done = tool("call", "--tools", folder, "--elevate", "*", "always", user=user)
    equal((done.code, done.out.decode(), done.err), (0, FENCED, b""), "boxed by its manifest")
    report = tool("call", "--json", "--tools", folder, "never", user=user).report
    REPORTS.validate(report)
    equal((report["tool"]["denied"], report["tool"]["route"]["to"], report["guarantees"]), (True, "nobody", []), "its report")


@case("list says where tools run; check finds rules that name none; wrong words are told")
def listed():
    folder = folder_of(*TOOLS, manifest("never", run=LOOK, route="refused"))
    lines = dict(line.split(None, 1) for line in tool("list", "--tools", folder, "--elevate", "look", "--refuse", "o*").out.decode().replace("  \n", " -\n").splitlines())
    equal({name: text.split(":")[0] for name, text in lines.items()}, {"look": "NO BOX", "look_more": "-", "never": "refused", "other": "refused"}, "the list")
    done = tool("check", folder, "--elevate", "lok", "--refuse", "other")
    check(done.code == 1 and b"--elevate lok: there is no such tool" in done.out and b"--refuse" not in done.out, done.brief())
    equal(tool("check", folder, "--elevate", "look", "--refuse", "o*").code, 0, "the exit code of a check")
    found = tool("check", "--json", folder, "--elevate", "lok").report
    equal([item["mistakes"][0]["where"] for item in found if item["mistakes"]], ["--elevate"], "mistakes as JSON")
    for command in (["list", "--tools", folder], ["call", "--tools", folder, "look"]):
        done = tool(*command[:3], "--refuse", "nope", "--elevate", "look_m*", *command[3:])
        equal((done.code, [line for line in done.err.decode().splitlines() if "no such tool" in line]), (0, ["callbox: warning: --refuse nope: there is no such tool"]), f"{command}")
    for words, wanted in ((["--mode", "of"], 'there is no mode "of"'), (["--mode"], "--mode"), (["--elevate", ""], "--elevate"), (["--elevate"], "--elevate")):
        done = tool("call", "--tools", folder, *words, *(["look"] if len(words) == 2 else []))
        check(done.code == 125 and wanted in done.err.decode(), f"{words}: {done.brief()}")


# ---- What is watched without a box -----------------------------------------------------------


def wardens():
    """Of the processes of wardens those that no other of them has started."""
    found = {}
    for pid in harness.programs("callbox\0warden\0--connection"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as stream:
            if os.readlink(f"/proc/{pid}/exe") != CALLBOX:
                continue
            found[pid] = int(stream.read().rsplit(")", 1)[1].split()[1])
    return {pid for pid, parent in found.items() if parent not in found}


@for_people("without a box nothing outlives the call, its caller or its warden, and no rights are gained", alone=True)
def ends(user):
    mark = f"7{os.getpid()}{int(user)}"
    folder = folder_of(manifest("stay", run={"shell": f"setsid sleep {mark} >/dev/null 2>&1 & (trap '' TERM HUP INT; sleep {mark}) & wait"}),
                       manifest("leave", run={"shell": f"setsid sleep {mark} >/dev/null 2>&1 & sleep 0.1; grep NoNewPrivs /proc/self/status"}), user=user)  # fmt: skip

    def running():
        return harness.programs(f"sleep\0{mark}")

    done = tool("call", "--mode", "off", "--tools", folder, "leave", user=user)
    equal((done.code, done.out.split()), (0, [b"NoNewPrivs:", b"1"]), "the call")
    check(wait_until(lambda: not running(), 10), "a daemon outlives its call")
    command = [CALLBOX, "tool", "call", "--mode", "off", "--tools", str(folder), "stay"]
    for who in ("the caller", "the warden"):
        before = wardens()
        process = subprocess.Popen(harness.as_user(command) if user else command, env=ENVIRONMENT, cwd="/",
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        try:
            check(wait_until(lambda: len(running()) == 2, 20), f"{len(running())} processes run")
            if who == "the warden":
                equal(len(wardens() - before), 1, "wardens")
            os.kill(process.pid if who == "the caller" else (wardens() - before).pop(), signal.SIGKILL)
            check(wait_until(lambda: not running(), 20), f"processes are left when {who} is killed")
        finally:
            harness.end(process)
            for pid in running():
                os.kill(pid, signal.SIGKILL)


# ---- Who may not say it ----------------------------------------------------------------------

MANIFESTS = [
    {"route": "elevated"}, {"route": "host"}, {"route": "off"}, {"route": "none"}, {"route": "warn"}, {"route": "strict"},
    {"mode": "off"}, {"elevated": True}, {"elevate": ["look"]}, {"unboxed": True}, {"rules": []},
    {"policy": {"box": "none"}}, {"policy": {"box": "off"}}, {"policy": {"box": "host"}}, {"policy": {"box": False}},
    {"policy": {"mode": "off"}}, {"policy": {"elevated": True}},
    {"ask": {"message": "x", "policy": {"box": "none"}}}, {"run": {**LOOK, "mode": "off"}}, {"run": {**LOOK, "elevated": True}},
]  # fmt: skip


@case("no manifest can ask for less than a box: each form is refused, with who may")
def hostile_manifests():
    for number, form in enumerate(MANIFESTS):
        folder = folder_of({**manifest("look", run=LOOK), **form})
        done = tool("check", folder)
        check(done.code == 1 and WHO_MAY in done.out.decode(), f"{form}: {done.brief()}")
        done = tool("call", "--tools", folder, "look")
        check(done.code == 2 and b"unknown tool" in done.err and OPEN.encode() not in done.out, f"{form}: {done.brief()}")
        check(not jsonschema.Draft202012Validator(json.loads((REPO / "schema" / "manifest.schema.json").read_text())).is_valid(
            {**manifest("look", run=LOOK), **form}) or "policy" in str(form), f"the schema allows {form}")
    for form, wanted in (({"route": "boxd"}, "boxed"), ({"route": 3}, "string"), ({"route": ["host"]}, "string")):
        done = tool("check", folder_of({**manifest("look", run=LOOK), **form}))
        check(done.code == 1 and wanted in done.out.decode(), f"{form}: {done.brief()}")


@for_people("no policy, spec or variable can ask for less than a box")
def hostile_documents(user):
    place = SCRATCH.directory(user)
    spec, policy = place / "spec.json", place / "policy.json"
    for form in ({"box": "none"}, {"box": "off"}, {"box": "host"}, {"box": False}, {"mode": "off"}, {"elevated": ["*"]}, {"limits": {"mode": "off"}}):
        policy.write_text(json.dumps(form))
        for command in (["run", "--policy", policy, "true"], ["policy", "check", policy], ["policy", "capabilities", policy],
                        ["tool", "call", "--tools", folder_of(*TOOLS), "--policy", policy, "look"]):  # fmt: skip
            done = harness.callbox(command, user=user, binary=CALLBOX, env=ENVIRONMENT, cwd="/", json_report=False)
            check(done.code == 125 and WHO_MAY in done.err.decode(), f"{form} with {command[:2]}: {done.brief()}")
    for form in ({"mode": "off"}, {"unboxed": True}, {"elevated": True}):
        spec.write_text(json.dumps({"argv": ["cat", str(SECRET)], **form}))
        done = harness.callbox(["run", "--spec", spec], user=user, binary=CALLBOX, env=ENVIRONMENT, cwd="/", json_report=False)
        check(done.code == 125 and WHO_MAY in done.err.decode() and OPEN.encode() not in done.out, f"{form}: {done.brief()}")
    done = harness.callbox(["run", "--box", "none", "true"], user=user, binary=CALLBOX, env=ENVIRONMENT, cwd="/", json_report=False)
    check(done.code == 125 and WHO_MAY in done.err.decode(), f"--box none: {done.brief()}")
    variables = {f"CALLBOX_{name}": value for name in ("MODE", "SANDBOX_MODE", "ELEVATE", "BOX", "UNBOXED", "RULES") for value in ("off",)}
    done = tool("call", "--tools", folder_of(*TOOLS), "look", user=user, env={**ENVIRONMENT, **variables})
    equal((done.code, done.out.decode()), (0, FENCED), "with variables")


@case("a client of MCP cannot elevate: neither by params, arguments nor _meta")
def hostile_client():
    schema = manifest("look", run=LOOK)
    schema["inputSchema"] = {"type": "object"}
    with mcp_client.Server("--tools", folder_of(schema), "--no-builtin") as server:
        forms = [{"mode": "off"}, {"route": "host"}, {"elevated": True}, {"unboxed": True}, {"sandbox_mode": "off"}, {"rules": [{"pattern": "*", "means": 1}]}]
        for form in forms:
            for params in ({"name": "look", "arguments": form}, {"name": "look", "arguments": {}, **form},
                           {"name": "look", "arguments": {}, "_meta": form}, {"name": "look", "_meta": {f"callbox/{key}": value for key, value in form.items()}}):  # fmt: skip
                answer = server.request("tools/call", params)
                check("secret-4711" not in json.dumps(answer), f"{params} gives {answer}")
        server.greet()
        for form in forms:
            answer, _ = server.old("tools/call", {"name": "look", "arguments": form, **form}, **form)
            check("secret-4711" not in json.dumps(answer), f"{form} gives {answer}")


# ---- MCP -------------------------------------------------------------------------------------


@for_people("callbox mcp: the operator's rules hold, the answer's report and the audit log say so")
def served(user):
    log = SCRATCH.directory(user) / "audit.jsonl"
    with mcp_client.Server("--tools", folder_of(*TOOLS, user=user), "--elevate", "look", "--refuse", "other", "--audit", log, user=user) as server:
        elevated, boxed, no = (server.call(name) for name in ("look", "look_more", "other"))
        equal((mcp_client.good(elevated), mcp_client.good(boxed)), (OPEN, FENCED), "what they see")
        check("was not called: Tool is refused by the application" in mcp_client.bad(no), no)
        report = elevated["_meta"]["callbox/report"] if "_meta" in elevated and "callbox/report" in elevated["_meta"] else elevated["structuredContent"]
        equal((elevated["_meta"].get("callbox/route"), "callbox/route" in boxed.get("_meta", {})), ({"to": "host", "reason": "Tool is marked as elevated"}, False), "_meta")
        check("NO BOX" in report["warnings"][0] and report["tool"]["route"]["to"] == "host", report)
        check("fenced" in mcp_client.good(server.call("run_command", {"command": f"cat {SECRET} || echo fenced"})), "run_command is not fenced")
    check(b"NO BOX: some tools run with all rights of this user (--elevate)" in server.errors, f"the server says {server.errors!r}")
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        AUDIT.validate(line)
    equal([(line["tool"], line["outcome"], line["route"]["to"], line["route"]["reason"]) for line in lines[:3]],
          [("look", "ok", "host", "Tool is marked as elevated"), ("look_more", "ok", "box", "Strict mode: tool runs in a box"),
           ("other", "refused", "nobody", "Tool is refused by the application")], "the audit log")  # fmt: skip


@case("callbox mcp --mode off: the built-in tools as well, told when it starts")
def served_off():
    with mcp_client.Server("--mode", "off") as server:
        check(mcp_client.good(server.call("run_command", {"command": f"cat {SECRET}"})).endswith(OPEN), "it is fenced")
    check(b"NO BOX: tools run with all rights of this user (--mode off)" in server.errors, f"the server says {server.errors!r}")


@for_people("callbox mcp says of itself what is so in each mode, and kept output is where all its tools find it")
def served_words(user):
    boxed, unboxed = "in a sandbox of its own", "without a sandbox"
    long = {"command": "seq 200000"}
    cases = [
        ([], [boxed], {"run_command": boxed, "run_python": boxed}),
        (["--mode", "off"], [unboxed], {"run_command": unboxed, "run_python": unboxed}),
        (["--mode", "warn"], [unboxed], {"run_command": unboxed, "run_python": unboxed}),
        (["--elevate", "run_command"], [boxed, unboxed], {"run_command": unboxed, "run_python": boxed}),
        (["--elevate", "run_command", "--refuse", "run_c*"], [boxed, unboxed], {"run_python": boxed}),
    ]
    for options, told, tools in cases:
        with mcp_client.Server("--files", *options, user=user) as server:
            words = server.greet()["instructions"]
            equal([each for each in (boxed, unboxed) if each in words], told, f"with {options} the instructions {words!r}")
            found = {each["name"]: each for each in server.result("tools/list")["tools"]}
            for name, wanted in tools.items():
                said = found[name]["description"]
                equal([each for each in (boxed, unboxed) if each in said], [wanted], f"with {options} {name} is described: {said!r}")
                equal(found[name]["annotations"]["openWorldHint"], wanted == unboxed, f"with {options} the hint of {name}")
            if "run_command" not in tools:
                check(server.call("run_command", long)["isError"], "a refused tool runs")
                continue
            answer = server.call("run_command", long)
            check("there is no box" not in json.dumps(answer), f"with {options} there is a warning: {json.dumps(answer)[-2000:]}")
            kept = re.search(r"is in (/\S+) for run_command", json.dumps(answer))[1]
            check(os.path.dirname(kept) in words, f"with {options} {kept} is not where the instructions say")
            for reader, arguments in (("run_command", {"command": f"tail -n 1 {kept}"}), ("run_python", {"code": f"print(open('{kept}').read().split()[-1])"}), ("read_file", {"path": kept, "first": 200000})):
                check("200000" in mcp_client.good(server.call(reader, arguments)), f"with {options} {reader} does not find {kept}")
        equal(b"no such tool" in server.errors, False, f"with {options} the server says {server.errors!r}")


@case("callbox mcp tells once which --elevate and --refuse fit none of its tools, before anything is asked")
def served_misspelled():
    with mcp_client.Server("--refuse", "nosuch", "--elevate", "run_comand", "--refuse", "run_p*") as server:
        check("run_command" in {each["name"] for each in server.result("tools/list")["tools"]}, "it does not serve")
    said = [line for line in server.errors.decode().splitlines() if "no such tool" in line]
    equal(said, ["callbox: warning: --refuse nosuch: there is no such tool", "callbox: warning: --elevate run_comand: there is no such tool"], "what it says")


# ---- A shared warden -------------------------------------------------------------------------


@for_people("a shared warden runs nothing without a box, unless it was started to; boxes of it go on")
def shared(user):
    folder = folder_of(*TOOLS, user=user)
    with library.SharedWarden(SCRATCH, CALLBOX, user=user) as warden:
        for options in (["--mode", "off"], ["--mode", "warn"], ["--elevate", "look"]):
            done = tool("call", "--warden", warden.path, "--tools", folder, *options, "look", user=user)
            check(done.code == 2 and OPEN.encode() not in done.out and b"this warden runs nothing without a box" in done.err, f"{options}: {done.brief()}")
            report = tool("call", "--json", "--warden", warden.path, "--tools", folder, *options, "look", user=user).report
            check("--allow-no-box" in report["error"]["hint"], report)
        done = tool("call", "--warden", warden.path, "--tools", folder, "look", user=user)
        equal((done.code, done.out.decode()), (0, FENCED), "in a box")
    with library.SharedWarden(SCRATCH, CALLBOX, "--allow-no-box", user=user) as warden:
        done = tool("call", "--warden", warden.path, "--tools", folder, "--mode", "off", "look", user=user)
        equal((done.code, done.out.decode()), (0, OPEN), "with --allow-no-box")
        check(b"NO BOX (mode off)" in done.err, done.brief())
        done = tool("call", "--warden", warden.path, "--tools", folder, "look", user=user)
        equal((done.code, done.out.decode()), (0, FENCED), "in a box")


@case("a root's warden with --allow-no-box lets no other user in")
def foreign():
    if not harness.ROOT:
        raise harness.Skip("needs root")
    with library.SharedWarden(SCRATCH, CALLBOX, "--allow-no-box") as warden:
        os.chmod(warden.path, 0o777)  # as careless as can be
        done = tool("call", "--warden", warden.path, "--tools", folder_of(*TOOLS), "--mode", "off", "look", user=True)
        check(done.code == 125 and OPEN.encode() not in done.out, done.brief())


# ---- Capabilities and backends ---------------------------------------------------------------


@for_people("policy capabilities prints what the report of a call then says, for both kinds of box")
def capabilities(user):
    for box in ("namespaces", "landlock"):
        for more in ([], ["--net", "host"], ["--memory", "none", "--cpu", "5"]):
            asked = harness.callbox(["policy", "capabilities", "--json", "--box", box, *more], user=user, binary=CALLBOX, env=ENVIRONMENT, cwd="/")
            equal((asked.code, asked.report["backend"], asked.report["met"]), (0, box, True), f"{box} {more}")
            report = harness.run("true", options=["--box", box, *more], user=user, binary=CALLBOX, env=ENVIRONMENT, cwd="/").report
            equal([(item["name"], item["enforced"], item["by"]) for item in asked.report["guarantees"]],
                  [(item["name"], item["enforced"], item["by"]) for item in report["guarantees"]], f"{box} {more}")  # fmt: skip
            check(all(item["enforced"] or item["fix"] for item in asked.report["guarantees"]), f"no fix: {asked.report}")
    shown = harness.callbox(["policy", "capabilities"], user=user, binary=CALLBOX, env=ENVIRONMENT, cwd="/").out.decode()
    check(shown.startswith("namespaces\n  ok  tree-kill    pid namespace\n"), shown)


@for_people("what a host cannot keep is told with the fix: namespaces that are refused, a share of processors")
def missing(user):
    asked = harness.callbox(["policy", "backends", "--json"], user=user, binary=CALLBOX, env=ENVIRONMENT, cwd="/").report
    equal([(item["name"], item["available"]) for item in asked], [(name, True) for name in ("auto", "namespaces", "landlock", "host")], "backends")
    equal(next(item for item in asked if item["name"] == "auto")["uses"], "namespaces", "what auto is")
    # As in a container: there Landlock is what is left, and namespaces are said to be missing.
    asked = harness.callbox(["policy", "backends", "--json"], user=user, binary=CALLBOX, env=ENVIRONMENT, cwd="/", prefix=NO_NAMESPACES).report
    found = {item["name"]: item for item in asked}
    equal([found[name]["available"] for name in ("auto", "namespaces", "landlock", "host")], [True, False, True, True], "backends without namespaces")
    check(found["auto"]["uses"] == "landlock" and "namespaces" in found["namespaces"]["why"] and found["namespaces"]["fix"], f"{found['namespaces']}")
    asked = harness.callbox(["policy", "capabilities", "--json", "--cpus", "0.5"], user=user, binary=CALLBOX, env=ENVIRONMENT, cwd="/")
    cpu = next(item for item in asked.report["guarantees"] if item["name"] == "cpu")
    equal((asked.code, asked.report["met"], bool(cpu["fix"])), (0, True, False) if cpu["enforced"] else (1, False, True), "a share")
    if not cpu["enforced"]:  # a call is refused with the same fix
        done = harness.callbox(["run", "--cpus", "0.5", "--", "true"], user=user, binary=CALLBOX, env=ENVIRONMENT, cwd="/")
        check(done.code == 125 and cpu["fix"] in " ".join(done.err.decode().split()), f"{cpu['fix']!r} is not in {done.err!r}")
    done = harness.callbox(["policy", "backends", "x"], user=user, binary=CALLBOX, env=ENVIRONMENT, cwd="/")
    equal((done.code, done.out), (125, b""), f"policy backends x, which says {done.err!r},")


if __name__ == "__main__":
    sys.exit(harness.main(after=SCRATCH.remove))
