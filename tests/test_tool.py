#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""C functions as tools: what comes of every way in which one can go, and what it cannot reach. The
agent and the functions are tests/tool."""

import base64
import json
import os
import re
import shutil
import struct
import sys

import jsonschema

import harness
import tooling
from harness import case, check, equal, for_people
from tooling import ENVIRONMENT, FUNCTIONS, SCRATCH, function, functions

SHORT = bool(os.environ.get("CALLBOX_SMOKE"))
RESULT, TEXT, ERROR, PROGRESS, LOG, DONE = range(6)
SCHEMA = jsonschema.Draft202012Validator(json.loads((harness.REPO / "schema" / "report.schema.json").read_text()))


def frame(kind, body=b"", length=None):
    return struct.pack("=II", len(body) if length is None else length, kind) + body


def done(code=0):
    return frame(DONE, struct.pack("=i", code))


def valid(found):
    mistakes = sorted(SCHEMA.iter_errors(found["report"]), key=str)
    check(not mistakes, lambda: f"the report is not valid: {mistakes[0].message[:300]}")


def ok(found, output, what="the call"):
    valid(found)
    result = found["result"]
    check(result["ok"] and result["error"] is None and not result["denied"], lambda: f"{what} failed: {result}")
    equal(None if result["output"] is None else json.loads(result["output"]), output, "the result")
    equal(found["report"]["tool"].get("output"), output, "the result in the report")
    return found


def failed(found, text, reason="exited"):
    valid(found)
    result = found["result"]
    check(not result["ok"] and result["output"] is None and not result["denied"], lambda: f"it did not fail: {result}")
    check(text in (result["error"] or ""), lambda: f"the error is {result['error']!r}, without {text!r}")
    equal(found["report"]["reason"], reason, "the reason")
    return found


# ---- Functions that behave ---------------------------------------------------------------------


@for_people("a function gets its arguments and gives its result")
def echo(user):
    values = [{}, {"n": 1}, {"s": ""}, {"s": "\u00e9\u4e2d\U0001f600 \"quoted\" \\ / \n\t"}, {"x": [1, [2, {"y": None}]], "z": True},
              {"f": 0.1, "g": 1e300, "h": -5, "i": -0.0, "big": 9223372036854775807}, {"s": "$(reboot); `id` | & ' \""}]
    for value, found in zip(values, functions([("echo", value) for value in values], user=user)):
        ok(found, value)
        check(found["result"]["duration"] >= found["setup"] and found["result"]["duration"] > 0, f"no time was taken: {found['result']}")
        check(found["result"]["started_at"] > 1e18, "no time of the start")


@case("a function without a result is one without a result")
def no_result():
    found = ok(function("nothing", {}), None)
    equal(found["result"]["text"], "", "text")


@case("arguments of several megabytes arrive whole")
def big_arguments():
    text = "0123456789abcdef" * (300 * 1024)  # 4.8 MB
    found = function("echo", {"s": text})
    equal((found["result"]["ok"], json.loads(found["result"]["output"]) == {"s": text}), (True, True), "whether it came back")


@case("a result up to its limit arrives whole, and one beyond it is an error that says so")
def big_result():
    limit, head, end = 1 << 20, 8, 12  # two frames: the result, and that the function has returned
    room = limit - head - end
    found = functions([("large", {"bytes": n}) for n in (1000, room, room + 1, 2 * limit)], 'policy={"limits": {"result": "1M"}}')
    ok(found[0], "x" * 998)
    ok(found[1], "x" * (room - 2))
    for item, total in ((found[2], limit + 1), (found[3], 2 * limit + head + end)):
        failed(item, f"its result is too large: {total} bytes")
        check("limits.result" in item["result"]["error"], "the error does not name the limit")
        kept = item["report"]["result"]
        check(kept["truncated"] and kept["bytes"] == total and "xxxx" in kept["text"], "what there is was not kept")
    standard = (16 << 20) - head - end
    found = functions([("large", {"bytes": standard}), ("large", {"bytes": standard + 1})])
    equal((found[0]["result"]["ok"], len(found[0]["result"]["output"])), (True, standard), "a result of 16 MiB, the default")
    check("its result is too large: 16777217 bytes" in found[1]["result"]["error"], found[1]["result"]["error"])


@case("a call can ask for less room for its result")
def small_result():
    failed(function("large", {"bytes": 5000}, "result=4096"), "its result is too large: 5020 bytes, of which 4096 are kept")
    ok(function("large", {"bytes": 4000}, "result=4096"), "x" * 3998)


@case("what a function changes in memory is gone with its call")
def forgets():
    for _ in range(3):
        for found in functions([("remember", {})] * 5):
            ok(found, 1)


@for_people("progress, log lines, text and prints are told apart")
def chatty(user):
    found = ok(function("chatty", {}, "events", user=user), "last")
    equal(found["result"]["text"], "in two pieces", "text")
    equal(found["report"]["stdout"]["text"], "printed, and not flushed", "stdout")
    equal(found["report"]["stderr"]["text"], "complained\n", "stderr")
    equal(found["events"], [["progress", 1, 3, "working"], ["progress", 2, 3, ""], ["progress", 3, 3, "working"],
                            ["log", "warning", "a \u00e9 line"], ["log", "debug", "bytes \ufffd that are no text"]], "events")
    equal(function("chatty", {})["events"], [], "events that nobody asked for")
    equal(function("chatty", {}, "output")["events"], [[1, "printed, and not flushed"]], "events of stdout alone")


@case("threads of a function that reply at once do not tear each other's messages")
def crowd():
    found = ok(function("crowd", {}, "events"), "all have spoken")
    equal(found["result"]["text"], "." * 4000, "text")
    equal(len(found["events"]), 4000, "log lines")
    check(all(event == ["log", "info", "l" * 199] for event in found["events"]), "a line is torn")


@case("missing arguments get their defaults where the tool asks for it")
def defaults():
    ok(function("defaults", {}), {"n": 7})
    ok(function("defaults", {"n": 1, "m": 2}), {"n": 1, "m": 2})
    ok(function("echo", {}), {})


# ---- Refusals ----------------------------------------------------------------------------------


@for_people("an unknown tool and bad arguments are refused without a box, with every mistake")
def refusals(user):
    lines = [("nobody", {}), ("echo", {"n": "x", "s": 5}), ("echo", "[1]"), ("echo", "{"), ("echo", '{"n":1,"n":2}'),
             ("echo", '{"s":"\\ud800"}'), ("echo", '{"n":1e999}'), ("echo", "[" * 200), ("large", {}), ("echo", '{"n":99999999999999999999}'),
             ("no\x1b[31mbody", {}), ("\u00fcnknown", {})]  # fmt: skip
    texts = ["unknown tool: nobody", "/n must be an integer", "must be an object", "is not JSON", "n: the text, line 1: this key is given twice", "is not JSON",
             "out of range", "nested more than 64 deep", "bytes", "out of range", "unknown tool: no?[31mbody", "unknown tool: \u00fcnknown"]  # fmt: skip
    for text, found in zip(texts, functions(lines, "id=c-1", user=user)):
        failed(found, text, "setup")
        equal((found["setup"], found["result"]["duration"], found["report"]["usage"]["processes_peak"]), (0, 0, 0), "the use of a box")
        equal(found["report"]["id"], "c-1", "the id")
        equal((found["report"]["guarantees"], "stdout" in found["report"]), ([], False), "what a box would have left")
    found = functions(lines[:2])
    equal(found[0]["result"]["error"], "unknown tool: nobody", "the whole text")
    equal([item[:2] for item in found[1]["mistakes"]], [["/n", "type"], ["/s", "type"]], "the mistakes")


@case("a tool that breaks its own promise is told so by name, with every mistake")
def promise():
    ok(function("promise", {"n": 2, "m": 0}), {"n": 2, "m": 0})
    found = failed(function("promise", {"n": 3}), "promise broke its own promise: its result is not what outputSchema says")
    equal(sorted(item[:2] for item in found["mistakes"]), [["", "required"], ["/n", "multipleOf"]], "the mistakes")
    check('{"n":3}' in found["report"]["result"]["text"], "the result was not kept for reading")
    failed(function("silent_promise", {}), "silent_promise broke its own promise: it gave no result")


# ---- Functions that do not behave ----------------------------------------------------------------


@for_people("a function that fails says why")
def fails(user):
    ways = ["code", "text", "both", "empty"]
    texts = ["the function returned 7", "the disk is full; and \ufffd so am I", "no such word", "it failed"]
    for text, found in zip(texts, functions([("fail", {"how": way}) for way in ways], user=user)):
        failed(found, text)
        equal(found["result"]["error"], text, "the error")


@for_people("a function that crashes, ends its process or never ends is a report")
def crashes(user):
    ways = {"segv": ("signaled", "SIGSEGV"), "abort": ("signaled", "SIGABRT"), "exit": ("exited", "ended its process instead of returning"),
            "_exit": ("exited", "exit code 3: giving up"), "signal": ("signaled", "SIGTERM"), "stack": ("signaled", "SIGSEGV"),
            "spin": ("timeout", "1"), "sleep": ("timeout", "1"), "memory": ("memory", "memory")}  # fmt: skip
    found = functions([("crash", {"how": way}) for way in ways], "wall=1", 'policy={"limits": {"memory": "64M"}}', user=user)
    for (reason, text), item in zip(ways.values(), found):
        # Taking memory may also be ended by the clock of a busy machine.
        failed(item, "" if reason == "memory" else text, "timeout" if item["report"]["reason"] == "timeout" and reason == "memory" else reason)
    equal(found[6]["report"]["stdout"]["text"], "before the end\n", "what a call printed before its time was up")


@case("a flood of prints costs the caller nothing and changes nothing")
def flood():
    for where in ("stdout", "stderr"):
        found = ok(function("flood", {"how": where}), "still here")
        stream = found["report"][where]
        check(stream["truncated"] and stream["bytes"] == 640 * 65536, f"{where} is {stream['bytes']} bytes")
    room = 'policy={"limits": {"result": "1M"}}'
    failed(function("flood", {"how": "texts"}, room), "its result is too large")
    found = failed(function("flood", {"how": "channel"}, room), "its result is too large")
    equal(failed(function("flood", {"how": "channel"}, room, "events"), "its result is too large")["events"], [], "events of noise")
    check("nnnn" in found["report"]["result"]["text"], "it was not kept")


DEEP = b"[" * 65 + b"]" * 65
RESULTS = {
    "no JSON": (b"nonsense", "is not JSON"), "empty": (b"", "its result is empty"), "two values": (b"1 2", "is not JSON"),
    "cut": (b'{"a": [1, 2', "is not JSON"), "too deep": (DEEP, "nested more than 64 deep"),
    "too deep by far": (b"[" * 1000000, "nested more than 64 deep"), "duplicate keys": (b'{"a":1,"b":{"c":1,"c":2}}', "given twice"),
    "lone surrogate": (b'"\\ud800"', "its result"), "reversed surrogates": (b'"\\udc00\\ud800"', "its result"),
    "surrogate as bytes": (b'"\xed\xa0\x80"', "its result"), "no UTF-8": (b'"\xff\xfe"', "its result"), "overlong": (b'"\xc0\xaf"', "its result"),
    "number out of range": (b"1e999", "out of range"), "integer out of range": (b"99999999999999999999", "out of range"), "NaN": (b"NaN", "is not JSON"),
    "trailing comma": (b"[1,]", "is not JSON"), "control character": (b'"\x01"', "its result"), "NUL": (b'"\x00"', "its result"),
    "NUL in a key": (b'{"a\\u0000b": 1}', "NUL"), "comment": (b"1 // one", "is not JSON"),
}  # fmt: skip


@case("each bad result is a clear error, with the output kept for reading")
def bad_results():
    lines = [("broken", {"hex": body.hex()}) for body, _ in RESULTS.values()]
    for (name, (body, text)), found in zip(RESULTS.items(), functions(lines)):
        try:
            failed(found, text)
            kept = found["report"]["result"]
            raw = base64.b64decode(kept["base64"]) if "base64" in kept else kept["text"].encode()
            equal(raw, frame(RESULT, body) + done(), "what was kept")
        except harness.Failed as failure:
            raise harness.Failed(f"{name}: {failure}")


@case("good results of every kind are taken as they are")
def good_results():
    bodies = [b"null", b"true", b'""', b"[]", b"-0.5e-3", b'  {"a": [1]}\n', b'"\\ud83d\\ude00"', b"[" * 64 + b"]" * 64, b'"a\\u0000b"',
              b"9223372036854775807", b"-9223372036854775808", b"1.7976931348623157e308", b'"\xf4\x8f\xbf\xbf"', b'{"": {"": ""}}']  # fmt: skip
    for body, found in zip(bodies, functions([("broken", {"hex": body.hex()}) for body in bodies])):
        ok(found, json.loads(body))
    equal(found["result"]["error"], None, "the error")


FRAMES = {
    "a frame that is cut": (frame(RESULT, b"1", 100), {}, "its last message is cut off"),
    "a header that is cut": (b"\x01\x00\x00", {}, "message"),
    "a length that nothing has": (frame(RESULT, b"1", 0xFFFFFFFF), {}, "its last message is cut off"),
    "a kind that there is not": (frame(99, b"1"), {}, "no message on the result channel"),
    "bytes that are no frame": (b"GET / HTTP/1.0\r\n\r\n", {}, "cut off"),
    "a progress without numbers": (frame(PROGRESS, b"1"), {}, "wrong content"),
    "a progress that is no number": (frame(PROGRESS, struct.pack("=dd", float("nan"), 1)), {}, "wrong content"),
    "a progress without end": (frame(PROGRESS, struct.pack("=dd", float("inf"), 1)), {}, "wrong content"),
    "a progress below zero": (frame(PROGRESS, struct.pack("=dd", -1, 1)), {}, "wrong content"),
    "a level that there is not": (frame(LOG, struct.pack("=I", 4) + b"x"), {}, "wrong content"),
    "an end with a text": (frame(DONE, struct.pack("=i", 0) + b"x"), {}, "wrong content"),
    "an end, then a failure": (frame(RESULT, b"1") + done(0), {"code": 5}, "the function returned 5"),
    "an end, then an exit": (frame(RESULT, b"1") + done(0), {"code": 4, "exit": True}, "exit code 4"),
    "a failing end, then success": (frame(RESULT, b"1") + done(9), {"exit": True}, "the function returned 9"),
    "no end": (frame(RESULT, b"1"), {"exit": True}, "ended its process instead of returning"),
    "an error by hand": (frame(ERROR, b"by hand") + done(0), {}, "by hand"),
}  # fmt: skip


@case("frames that a function writes by hand cannot make a failure a success")
def forged_frames():
    lines = [("broken", {"hex": body.hex(), "raw": True, **more}) for body, more, _ in FRAMES.values()]
    for events in ((), ("events",)):
        for (name, (_, _, text)), found in zip(FRAMES.items(), functions(lines, *events)):
            try:
                failed(found, text)
            except harness.Failed as failure:
                raise harness.Failed(f"{name}{' with events' if events else ''}: {failure}")
    body = (frame(TEXT, b"t") + frame(LOG, struct.pack("=I", 0) + b"l") + frame(RESULT, b"[1]")).hex()
    ok(function("broken", {"hex": body, "raw": True}), [1])


@for_people("what a function leaves behind neither holds up its call nor speaks for it")
def leaves(user):
    for how in ("child", "thread"):
        ok(function("leave", {"how": how}, user=user), "gone", how)
    for found in functions([("leave", {"how": "forger"})] * 4, user=user):
        # What a child of the function says is the function's own. It comes whole: short messages do not mix.
        valid(found)
        result = found["result"]
        check(result["ok"] and result["output"] in ('"gone"', '"lies"'), lambda result=result: f"{result}")


@for_people("64 calls at once never mix", alone=True)
def many(user):
    lines, wanted = [], []
    for i in range(64):
        if i % 8 == 7:
            lines.append(("crash", {"how": "segv"}))
        elif i % 8 == 6:
            lines.append(("echo", {"n": f"no number {i}"}))
        else:
            lines.append(("echo", {"n": i, "s": f"payload {i} " * (200 * (i % 8))}))
        wanted.append(lines[-1][1])
    for i, found in enumerate(functions(lines, user=user)):
        if i % 8 == 7:
            failed(found, "SIGSEGV", "signaled")
        elif i % 8 == 6:
            failed(found, f"no number {i}", "setup")
        else:
            ok(found, wanted[i], f"call {i}")


@case("a call that runs and calls that wait for it can be cancelled")
def cancels():
    for found in functions([("crash", {"how": "sleep"})] * 6, "calls=2", "kill=200"):
        failed(found, "cancel", "cancelled")
    for found in functions([("defaults", {})] * 20, "calls=3"):
        ok(found, {"n": 7})


# ---- What a function cannot reach ----------------------------------------------------------------


@for_people("a function sees neither its toolbox, the host nor the agent's environment")
def sees(user):
    tools = SCRATCH.directory(user)
    (tools / "other.json").write_text("{}")
    (tools / "other.json").chmod(0o644)
    paths = [str(tools / "other.json"), str(tools), "/proc/1/environ", "/proc/self/environ", "/proc/1/cmdline", "/proc/1/root/etc/shadow",
             "/etc/shadow", "/proc/self/fd/0", "/proc/kcore", str(harness.REPO / "README.md"), "/proc/1/fd/3", str(SCRATCH.bin / "callbox"),
             "/proc/self/mountinfo", "/proc/self/cwd/tmp"]  # fmt: skip
    found = function("look", {"paths": paths}, user=user)
    seen = json.loads(found["result"]["output"])
    everything = json.dumps(found)
    check("secret-4711" not in everything and "SECRET_OF_THE_AGENT" not in everything, "the agent's environment is seen")
    names = sorted(item.split("=")[0] for item in seen["environment"])
    check(set(names) <= set("PATH HOME USER LOGNAME LANG LC_ALL LC_CTYPE TERM TMPDIR TZ SHELL PWD".split()), f"the environment has {names}")
    files = seen["files"]
    for path in (paths[0], paths[1], "/proc/1/root/etc/shadow", "/etc/shadow", "/proc/1/fd/3", str(SCRATCH.bin / "callbox"),
                 str(harness.REPO / "README.md")):  # fmt: skip
        check(isinstance(files[path], int), f"{path} can be read: {str(files[path])[:100]!r}")
    check(isinstance(files["/proc/1/environ"], int) or files["/proc/1/environ"] == "", f"init's environment: {files['/proc/1/environ']!r}")
    equal(files["/proc/self/fd/0"], "", "what is left of stdin, where the request came")
    # The three streams, the channel, and the one that the listing itself has open.
    check(set(seen["descriptors"]) - {"0", "1", "2", "3"} == set() or len(seen["descriptors"]) <= 5, f"descriptors: {seen['descriptors']}")
    for target in seen["descriptors"].values():
        check(target.startswith(("pipe:", "/dev/null", "/proc/", "socket:", "/memfd")), f"a descriptor is {target}")
    check(str(tools) not in str(files["/proc/self/mountinfo"]), "the folder of tools is named in the list of mounts")
    check(seen["pid"] < 10, f"the pid is one of the host: {seen['pid']}")


@for_people("a function reads and writes what its policy names, and nothing beside it")
def workspace(user):
    folder = SCRATCH.directory(user)
    (folder / "shown").write_text("for the tool")
    (folder / "shown").chmod(0o644)
    policy = json.dumps({"files": {"read": [str(folder / "shown")]}})
    files = json.loads(function("look", {"paths": [str(folder / "shown"), str(folder / "hidden")]}, f"policy={policy}",
                                user=user)["result"]["output"])["files"]
    equal(files[str(folder / "shown")], "for the tool", "the file that is named")
    equal(files[str(folder / "hidden")], 2, "errno of one that is not")


@case("functions are found again after the program was replaced, or refused, but never mistaken")
def replaced():
    """The box starts the program by its path: another one there must not be called into."""
    folder = SCRATCH.directory()
    program = folder / "agent"
    shutil.copy(FUNCTIONS, program)
    process = harness.subprocess.Popen([str(program), "call"], stdin=-1, stdout=-1, stderr=-1, env=ENVIRONMENT, cwd="/")
    try:
        process.stdin.write(b'echo {"n": 1}\n')
        process.stdin.flush()
        check(harness.wait_until(lambda: b"--callbox-functions" in b"".join(e[3] for e in harness.process_table().values() if str(program).encode() in e[3]), 10),
              "no box was made ready")
        shutil.copy(SCRATCH.bin / "callbox-functions", folder / "new")
        os.rename(folder / "new", program)
        out, err = process.communicate(b'echo {"n": 2}\necho {"n": 3}\n', timeout=30 * harness.SLOW)
    finally:
        harness.end(process)
    found = [json.loads(line) for line in out.splitlines()]
    equal((len(found), err), (3, b""), "reports and stderr")
    ok(found[0], {"n": 1})
    for item in found[1:]:
        failed(item, "the program's file was replaced since it was started", "setup")


# ---- The API itself ------------------------------------------------------------------------------


@case("the functions are listed in order, and found by a query in any case")
def listed():
    def names(*query):
        done_ = harness.execute([FUNCTIONS, "list", *query], env=ENVIRONMENT)
        return [tool["name"] for tool in json.loads(done_.out)]

    everything = names()
    equal(everything, sorted(everything), "the order")
    equal(len(everything), 15, "the number")
    equal(names("BaCk"), ["echo"], "by description")
    equal(names("PROM"), ["promise", "silent_promise"], "by name")
    equal(names("no such thing"), [], "by nothing")


@for_people("structs, specs, refused calls and lifetimes keep to the header")
def structs(user):
    command = [FUNCTIONS, "check"]
    done_ = harness.execute(harness.as_user(command) if user else command, env=ENVIRONMENT, cwd="/", timeout=60)
    equal((done_.code, done_.out.decode(), done_.err.decode()), (0, "0 wrong\n", ""), "what it says")


@case("a program that does not serve its functions is told so")
def not_served():
    for command in ([FUNCTIONS, "--callbox-functions"], [tooling.SERVER], [tooling.SERVER, "--callbox-functions"]):
        done_ = harness.execute(command, env=ENVIRONMENT, cwd="/")
        check(done_.code == 125 and b"libcallbox-tools(3)" in done_.err and not done_.out, f"{command}: {done_.code} {done_.err!r}")


@for_people("valgrind finds nothing in the agent, and nothing is lost", alone=True)
def valgrind(user):
    if not shutil.which("valgrind"):
        raise harness.Skip("valgrind is not installed: scripts/install-deps --test")
    options = ["valgrind", "--quiet", "--leak-check=full", "--show-leak-kinds=all", "--errors-for-leak-kinds=all", "--track-fds=yes",
               "--child-silent-after-fork=yes", "--trace-children=no", "--error-exitcode=99", FUNCTIONS]  # fmt: skip
    lines = b"".join(b"%s %s\n" % (name.encode(), json.dumps(value).encode()) for name, value in (
        ("echo", {"n": 1}), ("echo", {"n": "x"}), ("nobody", {}), ("chatty", {}), ("promise", {"n": 3}), ("fail", {"how": "text"}),
        ("crash", {"how": "segv"}), ("broken", {"hex": "7b"}), ("broken", {"hex": frame(LOG, b"").hex(), "raw": True}), ("large", {"bytes": 100000})))
    for command, data in ((["check"], None), (["call", "events"], lines)):
        done_ = harness.execute(harness.as_user([*options, *command]) if user else [*options, *command], timeout=120, data=data,
                                env={**ENVIRONMENT, "TMPDIR": "/tmp"}, cwd="/")
        check(done_.code == 0, lambda done_=done_: f"{command}: exit {done_.code}: {done_.err.decode()[:1500]} {done_.out.decode()[-300:]}")
        left = re.findall(r"^==\d+== (Open .*)\n==\d+== +(?!<inherited)", done_.err.decode(), re.M)
        check(not left, lambda left=left: f"descriptors are left: {left}")


if __name__ == "__main__":
    sys.exit(harness.main(after=SCRATCH.remove))
