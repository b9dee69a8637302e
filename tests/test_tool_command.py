#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Commands, shell texts and functions of shared objects as tools: what becomes of arguments, what is
made of output, and the bounds on calls. By the library, through ctypes."""

import json
import os
import select
import shutil
import sys
import time

import harness
import library
import tooling
from harness import case, check, equal
from tooling import LIBRARY, OBJECT, SCRATCH, SERVER, bad, good, manifest, refused, toolbox

# Prints its arguments, each with a NUL behind it.
SHOW = ["python3", "-I", "-c", "import json,sys; print(json.dumps(sys.argv[1:]))"]
STRING, INTEGER, NUMBER, BOOLEAN, ARRAY = ({"type": kind} for kind in ("string", "integer", "number", "boolean", "array"))


def shown(template, properties, **more):
    return manifest("t", [*SHOW, *template], properties, run=None, **more) | {"run": {"command": [*SHOW, *template], "output": "json"}}


# ---- What becomes of arguments -------------------------------------------------------------------

# template, properties, arguments, what the command gets
EXPANSIONS = [
    (["{a}"], {"a": STRING}, {"a": "plain"}, ["plain"]),
    (["x{a}y{b}z"], {"a": STRING, "b": INTEGER}, {"a": "1", "b": 2}, ["x1y2z"]),
    (["{{{a}}}", "{{", "}}", "{{a}}"], {"a": STRING}, {"a": "v"}, ["{v}", "{", "}", "{a}"]),
    (["{a}"], {"a": STRING}, {"a": "{b} {{a}}"}, ["{b} {{a}}"]),
    (["{a}"], {"a": NUMBER}, {"a": 1e300}, ["1e+300"]),
    (["{a}"], {"a": NUMBER}, {"a": 0.1}, ["0.1"]),
    (["{a}"], {"a": NUMBER}, {"a": 5}, ["5"]),
    (["{a}"], {"a": INTEGER}, {"a": 9223372036854775807}, ["9223372036854775807"]),
    (["n={a}"], {"a": INTEGER}, {"a": -5}, ["n=-5"]),
    ([{"value": "{a}", "dash": True}], {"a": INTEGER}, {"a": -5}, ["-5"]),
    (["{a}", "{b}"], {"a": BOOLEAN, "b": BOOLEAN}, {"a": True, "b": False}, ["true", "false"]),
    (["{a}"], {"a": STRING}, {"a": "\u00e9\u4e2d\U0001f600\u200b"}, ["\u00e9\u4e2d\U0001f600\u200b"]),
    (["{a}", "", "{a}{a}"], {"a": STRING}, {"a": ""}, ["", "", ""]),
    (["{a}"], {"a": STRING}, {"a": "line\nline\ttab\r"}, ["line\nline\ttab\r"]),
    (["{a}"], {"a": STRING}, {"a": "'\"\\ $(id) `id` ; | & > < * ? ~ ! #"}, ["'\"\\ $(id) `id` ; | & > < * ? ~ ! #"]),
    (["--x={a}", "-y{a}", "-{a}"], {"a": STRING}, {"a": "-rf"}, ["--x=-rf", "-y-rf", "--rf"]),
    ([{"value": "{a}", "dash": True}], {"a": STRING}, {"a": "--all"}, ["--all"]),
    ([{"value": "{a}", "dash": False}], {"a": STRING}, {"a": "a"}, ["a"]),
    (["{a}"], {"a": STRING}, {"a": "x" * 131071}, ["x" * 131071]),
    ([{"each": "a"}], {"a": ARRAY}, {"a": ["one", 2, 0.5, True, "", "two words"]}, ["one", "2", "0.5", "true", "", "two words"]),
    ([{"each": "a"}, "end"], {"a": ARRAY}, {"a": []}, ["end"]),
    ([{"each": "a", "dash": True}], {"a": ARRAY}, {"a": ["-a", "--", "b"]}, ["-a", "--", "b"]),
    ([{"json": "a"}], {"a": {}}, {"a": {"k": [1, 0.1, None, "\u00e9\"", True]}}, ['{"k":[1,0.1,null,"\u00e9\\"",true]}']),
    ([{"json": "a"}], {"a": {}}, {"a": None}, ["null"]),
    ([{"json": "a", "dash": True}], {"a": {}}, {"a": -1}, ["-1"]),
    ([{"json": "a"}], {"a": {}}, {"a": "a\x00b"}, ['"a\\u0000b"']),
    ([{"when": "a", "then": ["-v", "{a}"]}, "z"], {"a": STRING}, {"a": "x"}, ["-v", "x", "z"]),
    ([{"when": "a", "then": ["-v"]}], {"a": BOOLEAN}, {"a": True}, ["-v"]),
    ([{"when": "a", "then": ["-v"]}], {"a": BOOLEAN}, {"a": False}, []),
    ([{"when": "a", "then": ["-v"]}], {"a": STRING}, {"a": ""}, ["-v"]),
    ([{"when": "a", "then": ["-v"]}], {"a": INTEGER}, {"a": 0}, ["-v"]),
    ([{"when": "a", "then": [{"when": "b", "then": ["both"]}]}], {"a": BOOLEAN, "b": BOOLEAN}, {"a": True, "b": True}, ["both"]),
    (["{a}"], {"a": {"enum": ["x", 1]}}, {"a": 1}, ["1"]),
    (["{a}"], {"a": {"const": "c"}}, {"a": "c"}, ["c"]),
    (["{a b}", "{\u00e9}"], {"a b": STRING, "\u00e9": STRING}, {"a b": "1", "\u00e9": "2"}, ["1", "2"]),
]  # fmt: skip


@case("each value is exactly one argument, whatever it holds")
def expansions():
    with toolbox() as box:
        for number, (template, properties, arguments, wanted) in enumerate(EXPANSIONS):
            box.add(shown(template, properties) | {"name": f"t{number}"})
        calls = [box.start(f"t{number}", arguments) for number, (_, _, arguments, _) in enumerate(EXPANSIONS)]
        for call, (template, _, arguments, wanted) in zip(calls, EXPANSIONS):
            equal(good(call.wait(), f"{template} with {str(arguments)[:80]}"), wanted, f"the arguments of {template}")
            call.free()


@case("missing arguments leave their elements out, or get their defaults")
def missing():
    with toolbox() as box:
        tool = shown([{"when": "a", "then": ["a", "{a}"]}, {"when": "b", "then": ["b"]}], {"a": STRING, "b": {"type": ["string", "null"]}})
        del tool["inputSchema"]["required"]
        box.add(tool)
        equal(good(box.call("t")), [], "without any")
        equal(good(box.call("t", {"b": None})), [], "with null")
        equal(good(box.call("t", {"a": "x", "b": "y"})), ["a", "x", "b"], "with both")
        tool = shown(["{a}", "{n}"], {"a": STRING | {"default": "none"}, "n": INTEGER | {"default": 3}}, applyDefaults=True)
        del tool["inputSchema"]["required"]
        box.add(tool)
        equal(good(box.call("t")), ["none", "3"], "with defaults")
        equal(good(box.call("t", {"n": 4})), ["none", "4"], "with one default")
        refused(box.call("t", {"n": None}), "/n must be an integer", ["/n"])


# template, properties, arguments, where the mistakes are, and what is said
REFUSALS = [
    (["{a}"], {"a": STRING}, {"a": "-rf"}, ["/a"], "may not begin with a dash"),
    (["{a}"], {"a": STRING}, {"a": "-"}, ["/a"], "may not begin with a dash"),
    (["{a}"], {"a": INTEGER}, {"a": -5}, ["/a"], "may not begin with a dash"),
    (["{a}"], {"a": NUMBER}, {"a": -0.5}, ["/a"], "may not begin with a dash"),
    ([{"json": "a"}], {"a": {}}, {"a": -1}, ["/a"], "may not begin with a dash"),
    (["{a}{b}"], {"a": STRING, "b": STRING}, {"a": "", "b": "-x"}, ["/b"], "may not begin with a dash"),
    (["{a}-{b}"], {"a": STRING, "b": STRING}, {"a": "", "b": "rf"}, ["/b"], "may not begin with a dash"),
    (["{a}--force"], {"a": STRING}, {"a": ""}, ["/a"], "may not begin with a dash"),
    (["{a}"], {"a": STRING}, {"a": "a\x00b"}, ["/a"], "holds a NUL"),
    (["x{a}"], {"a": STRING}, {"a": "\x00"}, ["/a"], "holds a NUL"),
    (["{a}"], {"a": STRING}, {"a": "x" * 131072}, ["/a"], "too long for a command line"),
    (["{a}"], {"a": STRING}, {"a": "x" * 200000}, ["/a"], "too long for a command line"),
    ([{"each": "a"}], {"a": ARRAY}, {"a": ["x", "-y", ["z"], None, {}, "\x00"]}, ["/a/1", "/a/2", "/a/3", "/a/4", "/a/5"], "dash"),
    ([{"each": "a"}], {"a": ARRAY}, {"a": ["x" * 100000] * 11}, ["/a/10"], "makes the command line too long"),
    ([{"each": "a"}], {"a": ARRAY}, {"a": ["x"] * 9000}, ["/a/8190"], "makes the command line too long"),
    (["{a/b}", "{c~d}"], {"a/b": STRING, "c~d": STRING}, {"a/b": "-1", "c~d": "-2"}, ["/a~1b", "/c~0d"], "dash"),
    (["{a}", "{b}", {"each": "c"}], {"a": STRING, "b": STRING, "c": ARRAY}, {"a": "-1", "b": "\x00", "c": ["-"]}, ["/a", "/b", "/c/0"], "dash"),
    (["{a}"], {"a": STRING, "b": INTEGER}, {"a": 1, "b": "2"}, ["/a", "/b"], "must be"),
    (["{a}"], {"a": STRING}, {}, [""], "a"),
]  # fmt: skip


@case("what could become an option, cannot be an argument or is too long is refused, all of it, without a box")
def refusals():
    mark = SCRATCH.directory()
    with toolbox() as box:
        for template, properties, arguments, where, text in REFUSALS:
            box.add(manifest("t", ["touch", str(mark / "made"), *template], properties, policy={"files": {"write": [str(mark)]}}))
            try:
                refused(box.call("t", arguments), text, where)
            except harness.Failed as failure:
                raise harness.Failed(f"{template} with {str(arguments)[:80]}: {failure}")
        equal(os.listdir(mark), [], "what a box would have made")
        # No box: the warden has started nothing for any of them.
        good(box.call("t", {"a": "x"}))
        equal(os.listdir(mark), ["made"], "what a box does make")


@case("a command line of a megabyte arrives whole")
def long_line():
    with toolbox(shown([{"each": "a"}], {"a": ARRAY})) as box:
        values = ["x" * 100000] * 10
        equal(good(box.call("t", {"a": values})) == values, True, "whether it came whole")


@case("arguments come on stdin, in the environment, or both")
def ways():
    script = "import json,os,sys; print(json.dumps([sys.stdin.read(), os.environ.get('CALLBOX_ARGUMENTS')]))"
    text = '{"a":"\u00e9 \\u0001\'","n":0.1}'
    with toolbox() as box:
        for way, wanted in (("none", ["", None]), ("stdin", [text + "\n", None]), ("environment", ["", text]), ("both", [text + "\n", text])):
            box.add(manifest("t", properties={"a": STRING, "n": NUMBER}, run={"command": ["python3", "-I", "-c", script], "arguments": way, "output": "json"}))
            equal(good(box.call("t", {"a": "\u00e9 \x01'", "n": 0.1})), wanted, f"what comes by {way}")
        refused(box.call("t", {"a": "x" * 131072, "n": 1}), "too long for the environment", [""])
        box.add(manifest("t", properties={"a": STRING}, run={"command": ["wc", "-c"], "arguments": "stdin"}))
        equal(good(box.call("t", {"a": "x" * 3000000})).strip(), str(3000000 + len('{"a":""}\n')), "the length of a long one")


INJECTIONS = ["$(touch /tmp/x)", "`touch /tmp/x`", "; touch /tmp/x", "' ; touch /tmp/x '", '" ; touch /tmp/x "', "\n touch /tmp/x", "$1", "${HOME}", "\\", "* ?", "|| true", "", " "]


@case("a shell gets values as positional parameters, and none becomes a part of its text")
def shell():
    run = {"shell": "printf '%s|' \"$#\" \"$0\" \"$@\"; ls /tmp", "parameters": ["{a}", "fixed", {"when": "b", "then": ["b={b}"]}]}
    tool = manifest("t", properties={"a": STRING, "b": STRING}, run=run)
    tool["inputSchema"]["required"] = ["a"]
    with toolbox(tool) as box:
        for value in INJECTIONS:
            equal(good(box.call("t", {"a": value})), f"2|t|{value}|fixed|", f"what the shell makes of {value!r}")
        equal(good(box.call("t", {"a": "x", "b": "-y"})), "3|t|x|fixed|b=-y|", "three parameters")
        refused(box.call("t", {"a": "-c"}), "may not begin with a dash", ["/a"])
        box.add(manifest("t", run={"shell": "echo \"{a}\" $#"}))
        equal(good(box.call("t")), "{a} 0\n", "a text in which nothing is put")


@case("files beside the manifest are shown, follow their changes, and are all that is shown of the folder")
def files():
    folder = SCRATCH.directory()
    (folder / "secret").write_text("of another tool")
    (folder / "script.sh").write_text("cat \"$1\" 2>&1; ls -A \"$2\"\n")
    text = {"command": ["sh", {"file": "script.sh"}, str(folder / "secret"), str(folder)], "success": [0, 1]}
    (folder / "t.json").write_text(json.dumps(manifest("t", run=text)))
    with toolbox() as box:
        box.load(folder)
        said = good(box.call("t"))
        check("of another tool" not in said and said.splitlines()[-1:] == ["script.sh"], f"it sees {said!r}")
        (folder / "new").write_text("echo changed\n")
        os.rename(folder / "new", folder / "script.sh")
        equal(good(box.call("t")), "changed\n", "what the new file prints")
        (folder / "script.sh").write_text("echo again\n")
        equal(good(box.call("t")), "again\n", "what the file prints that was written anew")


# ---- What is made of output ----------------------------------------------------------------------


def printing(text, output="json", code=0, errors="", **more):
    script = f"import sys; sys.stdout.buffer.write({text!r}); sys.stderr.write({errors!r}); sys.stdout.flush(); sys.exit({code})"
    return manifest("t", run={"command": ["python3", "-I", "-c", script.replace("{", "{{").replace("}", "}}")], "output": output, **more.pop("run", {})}, **more)


@case("text is a result as it is; bytes that are none are replaced, and too many are left out in the middle")
def texts():
    with toolbox() as box:
        for text, wanted in ((b"", ""), (b"hello\n", "hello\n"), (b"\xff\x00\xc3\xa9", "\ufffd\ufffd\u00e9")):
            box.add(printing(text, "text"))
            report = box.call("t")
            equal(good(report), wanted, "the result")
            equal(report["tool"]["text"], wanted, "the text")
        box.add(manifest("t", ["head", "--bytes=300000", "/dev/zero"]))
        said = good(box.call("t"))
        check("bytes omitted" in said and len(said) < 110000, f"{len(said)} bytes are left")


@case("JSON output is checked as any result, and kept for reading where it is none")
def json_output():
    cases = {b"nonsense": "is not JSON", b"": "its output is empty", b'{"a":1}{': "is not JSON", b'{"a":1,"a":2}': "given twice",
             b"[" * 70: "nested more than 64 deep", b'"\\ud800"': "its output", b'"\xff"': "its output", b"1e999": "out of range"}  # fmt: skip
    with toolbox() as box:
        for text, error in cases.items():
            box.add(printing(text))
            report = box.call("t")
            bad(report, error)
            equal(report["output"], text, "what was kept")
        box.add(printing(b' {"a": [1, 0.1, null]}\n\n', errors="noise\n"))
        report = box.call("t")
        equal(good(report), {"a": [1, 0.1, None]}, "the result")
        equal((report["errors"], report["tool"]["text"]), (b"noise\n", '{"a":[1,0.1,null]}'), "stderr and text")
        million = {"command": ["python3", "-I", "-c", "print('\"' + 'x' * 1000000 + '\"', end='')"], "output": "json"}
        box.add(manifest("t", run=million))
        equal(len(good(box.call("t"))), 1000000, "a result larger than what is captured of text")
        bad(box.call("t", capture_limit=1000), "its result is too large: 1000002 bytes, of which 1000 are kept")
        box.add(manifest("t", run=million, policy={"limits": {"result": "500K"}}))
        bad(box.call("t"), "its result is too large: 1000002 bytes, of which 512000 are kept")


@case("exit codes are failures but for those that the manifest names; the error ends with stderr")
def codes():
    with toolbox(printing(b"out\n", "text", 3, "first\nlast word\n\n")) as box:
        bad(box.call("t"), "exit code 3: first\nlast word")
        equal(box.call("t")["output"], b"out\n", "what was kept")
        box.add(printing(b"out\n", "text", 3, run={"success": [0, 3]}))
        equal(good(box.call("t")), "out\n", "the result of a code that is no failure")
        box.add(printing(b"", "text", 0, run={"success": [3]}))
        bad(box.call("t"), "exit code 0")
        box.add(printing(b"", "text", 1, "e" * 5000 + "END"))
        error = bad(box.call("t"), "END")["error"]
        check(error.startswith("exit code 1: ... eee") and len(error) < 2100, f"the error is {len(error)} bytes long")
        box.add(manifest("t", ["sh", "-c", "kill -SEGV $$"]))
        bad(box.call("t"), "SIGSEGV", "signaled")
        box.add(manifest("t", ["no-such-program-at-all"]))
        bad(box.call("t"), "no-such-program-at-all", "setup")


LINES = (b'{"progress": 1, "total": 3, "message": "reading"}\n\n  \n{"log": "careful", "level": "warning"}\n{"log": "plain"}\n'
         b'{"text": "a"}\n{"progress": 2.5}\n{"text": "b"}\n{"result": 1}\n{"result": {"last": true}}')  # fmt: skip


def listen(call):
    """All events of a call, by its descriptor."""
    events = []
    while True:
        kind, what = call.take()
        if kind == library.EVENT_ENDED:
            return events
        if kind == library.EVENT_NONE:
            check(select.select([call], [], [], 60)[0], "nothing comes")
        else:
            events.append((kind, what))


@case("lines of JSON are messages: progress and log come while the call runs, the last result counts")
def lines():
    with toolbox(printing(LINES, "json-lines")) as box:
        report = box.call("t")
        equal(good(report), {"last": True}, "the result")
        equal(report["tool"]["text"], "ab", "the text")
        wanted = [(library.EVENT_PROGRESS, (1, 3, "reading")), (library.EVENT_LOG, ("warning", "careful")),
                  (library.EVENT_LOG, ("info", "plain")), (library.EVENT_PROGRESS, (2.5, 0, ""))]  # fmt: skip
        call = box.start("t", result_mode=library.RESULT_EVENTS)
        equal(listen(call), wanted, "the events")
        equal(good(call.wait()), {"last": True}, "the result after the events")
        call.free()
        call = box.start("t", result_mode=library.RESULT_EVENTS, output_mode=library.EVENTS)
        events = listen(call)
        equal([e for e in events if e[0] != library.EVENT_OUTPUT], wanted, "the events besides the output")
        equal(b"".join(e[1] for e in events if e[0] == library.EVENT_OUTPUT), LINES, "the output")
        call.free()
        call = box.start("t", output_mode=library.EVENTS)
        equal(b"".join(e[1] for e in listen(call)), LINES, "the output alone")
        call.free()


@case("a line that is no message is an error of the tool's, and shows nothing that was not asked for")
def bad_lines():
    cases = {b"nonsense\n": "is not JSON", b"[1]\n": "no message", b'{"a": 1}\n': "no message", b'{"result": 1, "text": "x"}\n': "no message",
             b'{"log": 1}\n': "no message", b'{"log": "x", "level": "loud"}\n': "no message", b'{"progress": "x"}\n': "no message",
             b'{"progress": -1}\n': "no message", b'{"progress": 1, "total": null}\n': "no message", b'{"text": null}\n': "no message",
             b'{"error": "by itself"}\n': "by itself", b'{"error": "one"}\n{"result": 1}\n{"error": "two"}': "one; two",
             b'{"result": 1}\n{"result": ': "line 2 of its output: result: it is not JSON", b'{"result": 1, "result": 2}\n': "line 1 of its output: result: this key is given twice",
             b"\xff\n": "line 1 of its output: this is not UTF-8", b'\n{"result": 1}\r\n\n \nnonsense\n{"result": 2}\n': "line 5 of its output: it is not JSON: invalid token near 'nonsense'",
             b'{"text": "x"}\n{"text": 1}': "line 2 of its output: it is JSON, but no message: ", b'{"result": ' + b"[" * 70 + b"\n": "line 1 of its output: nested more than 64 deep"}  # fmt: skip
    with toolbox() as box:
        for text, error in cases.items():
            box.add(printing(text + (b"" if b"error" in text else b'\n{"log": "after"}\n' + b"x" * 1000), "json-lines"))
            try:
                report = box.call("t")
                bad(report, error)
                check(report["output"].startswith(text), "the output was not kept")
                call = box.start("t", result_mode=library.RESULT_EVENTS)
                events = listen(call)
                check(all(kind == library.EVENT_LOG for kind, _ in events), f"events are {events}")
                bad(call.wait(), error)
                call.free()
            except harness.Failed as failure:
                raise harness.Failed(f"{text}: {failure}")
        box.add(printing(LINES, "json-lines", 2, "and fell"))
        bad(box.call("t"), "exit code 2: and fell")
        box.add(printing(b'{"log": "only"}\n', "json-lines"))
        equal(box.call("t")["tool"]["output"], None, "the result of a tool that gives none")


@case("blank lines without end cost the caller little")
def blanks():
    script = "import sys; sys.stdout.write('\\n' * 8000000); print('{{\"result\": 1}}')"
    with toolbox(manifest("t", run={"command": ["python3", "-I", "-c", script], "output": "json-lines"})) as box:
        began = time.process_time()
        call = box.start("t", result_mode=library.RESULT_EVENTS)
        listen(call)
        live = time.process_time() - began
        began = time.process_time()
        equal(good(call.wait()), 1, "the result")
        call.free()
        again = time.process_time()
        good(box.call("t"))
        whole = time.process_time() - again
        check(live < 5 * whole + 0.5, f"listening took {live:.2f} s, reading at the end {whole:.2f} s")


@case("a result that is not what outputSchema says names the tool and every mistake")
def promise():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}, "required": ["n"], "additionalProperties": False}
    with toolbox(printing(b'{"n": "x", "s": 1, "more": 2}', outputSchema=schema)) as box:
        report = box.call("t")
        bad(report, "t broke its own promise: its result is not what outputSchema says")
        equal(sorted(item[0] for item in report["mistakes"]), ["", "/n", "/s"], "where the mistakes are")
        equal(report["output"], b'{"n": "x", "s": 1, "more": 2}', "what was kept")
        box.add(printing(b'{"n": 1}', outputSchema=schema))
        equal(good(box.call("t")), {"n": 1}, "a promise that is kept")
        box.add(printing(b'{"log": "x"}\n', "json-lines", outputSchema=True))
        bad(box.call("t"), "it gave no result")
        box.add(printing(b"text", "text", outputSchema={"type": "string", "maxLength": 3}))
        bad(box.call("t"), "broke its own promise")


@case("a denial is told apart from a failure")
def denied():
    policy = {"syscalls": {"on_denied": "kill"}}
    with toolbox(manifest("t", ["python3", "-I", "-c", "import os; os.unshare(0x10000000)" if hasattr(os, "unshare") else
                                "import ctypes; ctypes.CDLL(None).unshare(0x10000000)"], policy=policy)) as box:
        report = box.call("t")
        tool = report["tool"]
        equal((report["reason"], tool["ok"], tool["denied"], tool["error"], tool["output"]), ("denied", False, True, None, None), "what came of it")
        check("unshare" in tool["reason"], f"the reason is {tool['reason']!r}")


# ---- Limits, bounds, cancelling ------------------------------------------------------------------


@case("a call can tighten the limits of its tool, and loosen none")
def limits():
    with toolbox(manifest("t", ["sleep", "60"], policy={"limits": {"wall": 20}})) as box:
        began = time.monotonic()
        bad(box.call("t", wall_limit=0.2), "0.2", "timeout")
        check(time.monotonic() - began < 10 * harness.SLOW, "it was not ended in time")
        for looser in ({"wall_limit": 21.0}, {"memory_limit": 1 << 40}, {"result_limit": 17 << 20}):
            try:
                box.start("t", **looser).free()
                raise harness.Failed(f"{looser} was taken")
            except library.CallboxError as error:
                check("tighten" in str(error), str(error))
        for mode in (library.TO_FD, library.DISCARD):
            try:
                box.start("t", output_mode=mode, output_fd=1).free()
                raise harness.Failed(f"output mode {mode} was taken")
            except library.CallboxError as error:
                equal(error.where, "output_mode", "where")
        box.add(manifest("t", ["python3", "-I", "-c", "print('x' * 100000)"]))
        bad(box.call("t", output_limit=1000), "output", "output")


def at_once(box, names, folder):
    """How many calls of these tools run at once: each leaves a mark while it does."""
    calls = [box.start(name) for name in names]
    most, deadline = 0, time.monotonic() + 60 * harness.SLOW
    waiting = list(calls)
    while waiting and time.monotonic() < deadline:
        most = max(most, len(os.listdir(folder)))
        ready, _, _ = select.select(waiting, [], [], 0.002)
        for call in ready:
            if call.take()[0] == library.EVENT_ENDED:
                waiting.remove(call)
    check(not waiting, "calls hang")
    for call in calls:
        good(call.wait())
        call.free()
    return most


@case("calls at once are bounded for a tool and for the toolbox; the others wait")
def bounds():
    folder = SCRATCH.directory()
    run = {"shell": f"f={folder}/$$.$(cat /proc/sys/kernel/random/uuid); : >$f; sleep 0.1; rm $f"}
    policy = {"files": {"write": [str(folder)]}}
    tools = [manifest("one", run=run, policy=policy, calls=1), manifest("two", run=run, policy=policy, calls=2), manifest("free", run=run, policy=policy)]
    with toolbox(*tools) as box:
        equal(at_once(box, ["one"] * 4, folder), 1, "the most calls of a tool with one")
        check(at_once(box, ["two"] * 6, folder) <= 2, "more than two at once")
        check(at_once(box, ["free"] * 8, folder) > 2, "no more than two at once without a bound")
        # A new version shares the bound of the old one.
        calls = [box.start("one") for _ in range(2)]
        box.add(tools[0])
        equal(at_once(box, ["one"] * 3, folder), 1, "the most calls of two versions")
        for call in calls:
            good(call.wait())
            call.free()
    with toolbox(*tools, calls=3) as box:
        check(at_once(box, ["two"] * 4 + ["free"] * 6, folder) <= 3, "more than three at once in a toolbox of three")


@case("a call that runs and one that waits can be cancelled, and the next gets its turn")
def cancel():
    with toolbox(manifest("t", ["sh", "-c", "sleep $1", "sh", "{n}"], {"n": NUMBER}, calls=1)) as box:
        first, second, third = box.start("t", {"n": 60}), box.start("t", {"n": 60}), box.start("t", {"n": 0})
        second.kill()
        bad(second.wait(), "cancel", "cancelled")
        first.kill()
        bad(first.wait(), "cancel", "cancelled")
        good(third.wait())
        for call in (first, second, third):
            call.free()
        dropped = box.start("t", {"n": 60})
        box.start("t", {"n": 60}).free()
        dropped.free()
        good(box.call("t", {"n": 0}))


# ---- Shared objects ------------------------------------------------------------------------------


@case("functions of a shared object are loaded in the box, from beside the manifest or by their path")
def objects():
    folder = SCRATCH.directory()
    shutil.copy(OBJECT, folder / "my.so")
    (folder / "a.json").write_text(json.dumps(manifest("a", run={"object": "my.so", "function": "object_upper"})))
    with toolbox(manifest("b", run={"object": OBJECT, "function": "object_fail"})) as box:
        box.load(folder)
        report = box.call("a", {"k": "v"})
        equal(good(report), {"K": "V"}, "the result")
        equal(report["errors"], b"loaded\n", "what it printed when it was loaded")
        bad(box.call("b"), "as it should")
        box.add(manifest("c", run={"object": OBJECT, "function": "no_such_function"}))
        bad(box.call("c"), "the object has no function no_such_function")
        try:
            box.add(manifest("d", run={"object": "my.so", "function": "object_upper"}))
            raise harness.Failed("a relative object was taken without a directory")
        except library.CallboxError as error:
            equal((error.where, "absolute" in error.hint), ("run.object", True), "where, and the hint")
        (folder / "my.so").write_bytes(open(OBJECT, "rb").read()[:2000])
        check(not box.call("a")["tool"]["ok"], "half an object was loaded")
    with toolbox() as box:
        box.library.c.cbx_toolbox_close(box.handle)
        box.handle = None
        other = library.Toolbox(box.warden, server="/nonexistent/server")
        try:
            other.add(manifest("b", run={"object": OBJECT, "function": "object_fail"}))
            raise harness.Failed("there is no such server")
        except library.CallboxError as error:
            check("/nonexistent/server" in str(error) and "CALLBOX_FUNCTIONS" in error.hint, f"{error} {error.hint}")
        finally:
            other.close()


# ---- The registry --------------------------------------------------------------------------------


@case("a query is a text, in any case of any script")
def queries():
    with toolbox(manifest("t", description="\u00dcber die \u00c9cole, \u041c\u0418\u0420 (a.b)")) as box:
        for query in ("\u00fcber DIE \u00e9COLE", "\u00dcBER", "\u043c\u0438\u0440", "(A.B)", ""):
            equal([tool["name"] for tool in box.list(query)], ["t"], f"by {query!r}")
        for query in ("uber", "a[.]b", "(aXb)", "x" * 100000, "\\E"):
            equal(box.list(query), [], f"by {query[:20]!r}")


@case("tools are listed in a stable order, and found by name and description in any case")
def listed():
    names = ["b", "a.b", "a-b", "A", "a_b", "a", "Z", "10", "9"]
    with toolbox(*(manifest(name, description=f"The {name.upper()} of it" if name != "Z" else None) for name in names)) as box:
        equal([tool["name"] for tool in box.list()], sorted(names), "the order")
        equal([tool["name"] for tool in box.list("A_B OF")], ["a_b"], "by description")
        equal([tool["name"] for tool in box.list("z")], ["Z"], "by name")
        equal([tool["name"] for tool in box.list("")], sorted(names), "by an empty query")
        equal(box.list("nothing of the kind"), [], "by what is nowhere")
        equal(box.list("a.B of"), [box.get("a.b")], "by a text, in which a point is a point")
        tool = box.get("a.b")
        equal(sorted(tool), ["description", "inputSchema", "name"], "the members of one: no run, no policy")
        box.remove("a.b")
        equal([tool["name"] for tool in box.list()], sorted(set(names) - {"a.b"}), "the order without one")
        for ask in (box.get, box.remove):
            try:
                ask("a.b")
                raise harness.Failed("it is still there")
            except library.CallboxError as error:
                equal((str(error), error.code), ("unknown tool: a.b", -2), "the error")
        refused(box.call("a.b"), "unknown tool: a.b", [])
        equal([box.step()[:2] for _ in range(10)], [("added", name) for name in names] + [("removed", "a.b")], "the changes")
        equal(box.step(), None, "the next change")


@case("the whole of what MCP knows of a tool is listed as it was written")
def whole():
    written = {"name": "t", "title": "T", "description": "d\u00e9", "inputSchema": {"type": "object", "x-unknown": [1, 0.1]},
               "outputSchema": {"type": "string"}, "annotations": {"title": "x", "readOnlyHint": True, "destructiveHint": False,
               "idempotentHint": True, "openWorldHint": False}, "icons": [{"src": "a"}], "_meta": {"k": None}}  # fmt: skip
    with toolbox(written | {"run": {"command": ["true"]}, "calls": 3, "applyDefaults": False, "policy": {}, "$schema": "x"}) as box:
        equal(box.get("t"), written, "the tool")


@case("64 commands at once never mix")
def many():
    with toolbox(shown(["{a}"], {"a": STRING})) as box:
        calls = [box.start("t", {"a": f"payload {i} " * (i + 1)}, id=f"c{i}") for i in range(64)]
        for i, call in enumerate(calls):
            report = call.wait()
            equal((good(report), report["id"]), ([f"payload {i} " * (i + 1)], f"c{i}".encode()), f"result and id of call {i}")
            call.free()


@case("a command sees neither its manifest, its toolbox nor the agent's environment")
def sees():
    folder = SCRATCH.directory()
    os.environ["SECRET_OF_THE_AGENT"] = "secret-4711"
    try:
        script = f"env; cat /proc/1/environ /proc/self/environ /proc/*/cmdline {folder}/* 2>&1 | tr '\\0' ' '; ls -l /proc/self/fd /proc/1/fd 2>&1; ls /tmp {folder} 2>&1"
        (folder / "t.json").write_text(json.dumps(manifest("t", run={"shell": script, "success": [0, 1, 2]}, description="hidden-word")))
        with toolbox() as box:
            box.load(folder)
            said = good(box.call("t"))
        check("secret-4711" not in said, "the agent's environment is seen")
        check("hidden-word" not in said and "t.json" not in said, f"the manifest is seen: {said[-500:]}")
        check("CALLBOX_ARGUMENTS" not in said, "arguments nobody asked for")
    finally:
        del os.environ["SECRET_OF_THE_AGENT"]


@case("policies come inline, by name, or from the toolbox; a missing or broken one is a mistake with its place")
def policies():
    folder = SCRATCH.directory()
    (folder / "small.json").write_text('{"limits": {"wall": 1}}')
    (folder / "broken.json").write_text('{"limits": {"wal": 1}}')
    sleep = ["sleep", "60"]
    with toolbox(policy={"limits": {"wall": 1.5}}, policies=folder) as box:
        box.add(manifest("inline", sleep, policy={"limits": {"wall": 0.5}}))
        box.add(manifest("named", sleep, policy="small"))
        box.add(manifest("none", sleep))
        for name, seconds in (("inline", "0.5"), ("named", "than 1 s"), ("none", "1.5")):
            bad(box.call(name), seconds, "timeout")
        for policy, text in (("missing", "missing.json"), ("broken", "broken.json: limits.wal"), ("../small", "no name of a policy"),
                             ("", "no name of a policy"), (".hidden", "no name of a policy"), (5, "must be an object or a name"),
                             ({"limits": {"wal": 1}}, "wal"), ({"network": "x"}, "x")):  # fmt: skip
            try:
                box.add(manifest("t", sleep, policy=policy))
                raise harness.Failed(f"{policy} was taken")
            except library.CallboxError as error:
                check(text in str(error) and error.where.startswith("policy"), f"{policy}: {error.where}: {error}")
    with toolbox() as box:
        try:
            box.add(manifest("t", policy="small"))
            raise harness.Failed("there is no folder of policies")
        except library.CallboxError as error:
            check("no folder" in str(error), str(error))


if __name__ == "__main__":
    sys.exit(harness.main(after=SCRATCH.remove))
