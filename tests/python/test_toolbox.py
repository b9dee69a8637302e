# SPDX-License-Identifier: MIT
"""Python functions as tools. Tests that carry the name of a defect (J1, C9 ...) show that what was
wrong with the ancestors of this package is not."""

import asyncio
import datetime
import decimal
import gc
import importlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import textwrap
import threading
import time
import uuid

import boxed_tools
import pytest
from boxed_tools import Color, Node, Point, Rights
from conftest import SECRET
from test_run import processes, until

from callbox import CallboxError, Policy, Tool, Toolbox, _interpreter, _values


def test_a_call(box):
    result = box.call_sync("add", {"a": 1}, call_id="c1")
    assert (result.ok, result.output, result.error, result.tool) == (True, 3, None, "add")
    assert result.call_id == "c1" and result.report.id == "c1" and result.duration > 0
    assert (result.stdout, result.stderr) == ("adding\n", "carefully\n")
    assert asyncio.run(box.call("add", {"a": 1, "b": 5})).output == 6


def test_the_list_says_what_docstring_and_hints_say(box):
    (found,) = box.list_tools("ADD TWO NUMBERS")
    assert found == {
        "name": "add",
        "description": "Add two numbers.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "a": {"type": "integer", "description": "the first"},
                "b": {"type": "integer", "description": "the one that follows", "default": 2},
            },
            "required": ["a"],
            "additionalProperties": False,
        },
    }
    names = [item["name"] for item in box.list_tools()]
    assert names == sorted(names) and "typed" in names


def test_arguments_are_checked_before_there_is_a_box(box):
    result = box.call_sync("add", {"a": "1", "c": 2})
    assert not result.ok and result.report.reason == "setup"
    assert {(m.path, m.keyword) for m in result.mistakes} >= {("/a", "type")}
    assert box.call_sync("nothing").error == "unknown tool: nothing"


def test_typed_arguments(box):
    result = box.call_sync(
        "typed",
        {
            "point": {"x": 1},
            "color": "blue",
            "node": {"name": "a", "children": [{"name": "b"}]},
            "place": {"at": [1, 2]},
            "pair": {"left": 1},
            "size": 3,
            "numbers": [1, 2],
            "span": [1, "x"],
            "table": {"7": [1]},
            "when": "2026-03-01T12:30:00Z",
            "amount": "1.10",
            "file": "/a/b",
            "raw": "aGk=",
            "either": "5",
        },
    )
    assert result.error is None
    assert {name: shown for name, (_, shown) in result.output.items()} == {
        "point": "Point(x=1, y=0.5)",
        "color": "<Color.BLUE: 'blue'>",
        "node": "Node(name='a', children=[Node(name='b', children=[])])",
        "place": "{'at': (1.0, 2.0)}",
        "pair": "Pair(left=1, right='r')",
        "size": "3",
        "numbers": "{1, 2}",
        "span": "(1, 'x')",
        "table": "{7: [1.0]}",
        "when": "datetime.datetime(2026, 3, 1, 12, 30, tzinfo=datetime.timezone.utc)",
        "amount": "Decimal('1.10')",
        "file": "PosixPath('/a/b')",
        "raw": "b'hi'",
        "either": "'5'",
    }
    wrong = box.call_sync("typed", {"point": {"x": 1, "z": 2}, "color": "green", "span": [1]})
    assert {m.path for m in wrong.mistakes} >= {"/color", "/span"}


GIVEN = {
    "none": None,
    "plain": [True, 1, -1.5, "text", {"a": []}],
    "large": 2**200,
    "infinite": float("-inf"),
    "surrogate": "\udc80x",
    "bytes": bytes(range(256)),
    "datetime": datetime.datetime(2026, 3, 1, 10, 30, tzinfo=datetime.timezone.utc),
    "date": datetime.date(2026, 3, 1),
    "time": datetime.time(1, 2, 3),
    "timedelta": datetime.timedelta(days=-1, microseconds=5),
    "decimal": decimal.Decimal("1.10"),
    "set": {1, 2},
    "frozenset": frozenset(["a"]),
    "tuple": (1, (2, b"3")),
    "enum": Color.BLUE,
    "flags": Rights.READ | Rights.WRITE,
    "dataclass": Node("a", [Node("b")]),
    "path": pathlib.Path("/a/b"),
    "uuid": uuid.UUID(int=5),
    "complex": 1 + 2j,
    "keys": {1: "a", (2, 3): "b"},
    "tag": {"$callbox": "bytes", "value": "no bytes"},
}


@pytest.mark.parametrize("what", GIVEN)
def test_values_come_back_as_they_were(box, what):
    result = box.call_sync("gives", {"what": what})
    assert result.error is None
    assert result.output == GIVEN[what] and type(result.output) is type(GIVEN[what])


def test_nothing_of_a_result_is_run_here(box):
    boxed_tools.POINTS.clear()
    refused = box.call_sync("gives", {"what": "own flags"})
    assert "which the return hint names, cannot be made of what came" in refused.error and refused.output is None
    assert box.call_sync("gives", {"what": "point"}).output.x == 7
    plain = box.call_sync("gives_careless")
    assert plain.output == {"path": "/x"} and plain.notes == [
        "'boxed_tools.Careless' came back as a dict, as the return hint does not name it"
    ]
    assert boxed_tools.POINTS == []


@pytest.mark.parametrize(
    "text",
    [
        '{"$callbox": "pickle", "value": ""}',
        '{"$callbox": "bytes", "value": 7}',
        '{"$callbox": "set", "value": [[]]}',
        '{"$callbox": "dict", "value": [1]}',
        '{"$callbox": "datetime", "value": "x"}',
        '{"$callbox": "decimal", "value": "x"}',
        '{"$callbox": "dataclass", "type": "a:b", "value": 1}',
        '{"$callbox": ["x"]}',
    ],
)
def test_what_only_looks_like_a_value_is_refused(text):
    with pytest.raises(ValueError):
        _values.loads(text)


def test_classes_are_not_imported_nor_called_for_a_result():
    for name in ("subprocess:Popen", "os:system", "no.such:Class", "boxed_tools:add", ":", ""):
        text = json.dumps({"$callbox": "dataclass", "type": name, "value": {"args": ["id"]}})
        assert _values.loads(text) == {"args": ["id"]}
        text = json.dumps({"$callbox": "enum", "type": name, "name": "x", "value": 1})
        assert _values.loads(text) == 1
    assert "this" not in sys.modules
    _values.loads('{"$callbox": "enum", "type": "this:s", "name": "x", "value": 1}')
    assert "this" not in sys.modules


def test_j3_what_cannot_leave_the_box_is_said(box):
    result = box.call_sync("gives_unknown")
    assert result.error.startswith("NotAValue: result['list'][0]: a _thread.lock cannot leave the box")
    assert "holds itself" in box.call_sync("gives_itself").error


def test_j1_results_larger_than_a_pipe(box):
    for size in (65_507, 65_508, 5_000_000):
        assert box.call_sync("gives_bytes", {"n": size}).output == b"x" * size
    result = box.call_sync("gives_bytes", {"n": 20_000_000})
    assert not result.ok and "too large" in result.error


def test_j2_c4_nothing_is_unpickled_here():
    class Evil:
        def __reduce__(self):
            return os.system, ("touch /tmp/callbox-escaped",)

    box = Toolbox([Tool(lambda: Evil(), name="evil")])
    result = box.call_sync("evil")
    assert not result.ok and "cannot leave the box" in result.error
    assert not os.path.exists("/tmp/callbox-escaped")
    package = pathlib.Path(_values.__file__).parent
    uses = [p.name for p in package.glob("*.py") if "pickle.load" in p.read_text()]
    assert uses == ["_serve.py"]  # which runs in the box


def test_j4_decorated_functions_work_and_stay_functions(box):
    assert boxed_tools.add(1, 1) == 2
    assert box.call_sync("shout", {"text": "a"}).output == "A!"


def test_j5_c9_closures_lambdas_and_main(tmp_path):
    n = 40

    def closure(x: int) -> int:
        return n + x

    box = Toolbox([closure, Tool(lambda x: x * 2, name="double"), Tool(boxed_tools.Adder(3), name="adder")])
    assert box.call_sync("closure", {"x": 2}).output == 42
    assert box.call_sync("double", {"x": 2}).output == 4
    assert box.call_sync("adder", {"x": 2}).output == 5  # J14: async __call__
    box.add(Tool(boxed_tools.Adder.twice))
    box.add(Tool(boxed_tools.Adder.named))
    assert box.call_sync("twice", {"x": 2}).output == 4
    assert box.call_sync("named", {"x": 2}).output == "AdderAdder"
    main = tmp_path / "main.py"  # J15: there is no guard
    main.write_text(textwrap.dedent("""
        import dataclasses
        from callbox import Toolbox, tool
        @dataclasses.dataclass
        class Pair:
            a: int
        @tool
        def pair(a: int) -> Pair:
            return Pair(a)
        print(repr(Toolbox([pair]).call_sync("pair", {"a": 1}).output))
    """))
    done = subprocess.run([sys.executable, str(main)], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == "Pair(a=1)\n"


def test_a_closure_over_too_much_is_refused():
    data = os.urandom(1 << 20)
    with pytest.raises(CallboxError) as caught:
        Toolbox([Tool(lambda: len(data), name="f")])
    assert caught.value.where == "f" and "bytes by value" in caught.value.text and caught.value.hint
    data = data[: 1 << 18]
    assert Toolbox([Tool(lambda: len(data), name="f")]).call_sync("f").output == 1 << 18


def test_j6_c5_nothing_outlives_a_call(box):
    assert box.call_sync("spawns").ok
    until(lambda: not processes(b"77"))


def test_j7_a_timeout(box):
    begin = time.monotonic()
    result = box.call_sync("sleeps", timeout=0.3)
    assert not result.ok and result.report.reason == "timeout" and "0.3" in result.error
    assert time.monotonic() - begin < 20


def test_j8_cancelling(box):
    async def cancelled():
        started = asyncio.Event()
        task = asyncio.ensure_future(box.call("sleeps"))
        asyncio.get_running_loop().call_later(0.3, started.set)
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(cancelled(), 30))


def test_j10_c1_prints_harm_nothing(box):
    result = box.call_sync("chatters")
    assert result.output == "quiet"
    assert result.report.stdout_bytes == b'{"result": 1}\n\xff\xfea child\n'


def test_j11_c2_the_agent_is_out_of_reach_and_calls_see_nothing_of_each_other(box):
    for _ in range(3):
        found = box.call_sync("looks").output
        assert SECRET not in found["environment"] and "TRACE" not in found["environment"]
        assert "CALLBOX_RESULT_FD" not in found["environment"]
        assert "trace" not in found["tmp"] and found["seen"] == 1
        assert len(found["descriptors"]) <= 5
        assert not found["shadow"] and SECRET not in found["agent"]


def test_j12_c11_c13_the_agent_cannot_be_attacked(box):
    with socket.create_server(("127.0.0.1", 0)) as server:
        there = {"pid": os.getpid(), "port": server.getsockname()[1]}
        result = box.call_sync("attacks", there)
        assert (result.error, result.output) == (None, [])
        # It can be seen to succeed: in a box that may use the network of the host.
        open_box = Toolbox([Tool(boxed_tools.attacks, policy=Policy(network="host"))])
        assert open_box.call_sync("attacks", there).output == ["connect"]


def test_j13_c8_how_it_ended_is_said(box):
    result = box.call_sync("fails", {"how": "exit"})
    assert result.error == "SystemExit: 0"
    assert "instead of returning" in box.call_sync("fails", {"how": "_exit"}).error
    crash = box.call_sync("fails", {"how": "crash"})
    assert crash.report.reason == "signaled" and "SEGV" in crash.error
    assert not box.call_sync("fails", {"how": "forge"}).ok


def test_tracebacks_have_the_frames_of_the_tool_alone(box):
    result = box.call_sync("fails", {"how": "nowhere"})
    assert result.error == "KeyError: 'nowhere'"
    frames = [line for line in result.traceback.split("\n") if line.startswith("  File ")]
    assert len(frames) == 2 and all("boxed_tools.py" in line for line in frames)
    assert "return {}[key]" in result.traceback


def test_j17_memory_is_bounded(box):
    result = box.call_sync("allocates", {"megabytes": 900})
    assert not result.ok
    assert result.report.reason == "memory" or result.error.startswith("MemoryError")


def test_progress_logs_and_live_output(box):
    told = []
    result = box.call_sync(
        "waits",
        {"steps": 3},
        on_progress=lambda *told_of: told.append(told_of),
        on_log=lambda *told_of: told.append(told_of),
    )
    assert result.output == "waited"
    assert told[:2] == [(0.0, 3.0, "step 0"), ("warning", "still here")] and len(told) == 6
    pieces = []
    asyncio.run(box.call("add", {"a": 1}, on_output=pieces.append, on_errors=pieces.append))
    assert sorted(b"".join(pieces).split()) == [b"adding", b"carefully"]


def test_parameters_of_every_kind(box):
    assert box.call_sync("positional", {"a": 1, "b": 2, "c": 3}).output == [1, 2, 3]
    assert box.call_sync("positional", {"a": 1}).output == [1, 1, 1]
    assert box.call_sync("greets", {"x": 1}).output == ["hi", {"x": 1}]
    assert "/x" in {m.path for m in box.call_sync("greets", {"x": "1"}).mistakes}


def test_c14_the_search_path_of_now_and_modules_that_change(tmp_path, monkeypatch):
    file = tmp_path / "changing_tool.py"
    file.write_text("def version() -> int:\n    return 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("changing_tool")
    box = Toolbox([module.version])
    assert box.call_sync("version").output == 1
    file.write_text("def version() -> int:\n    return 2  # changed\n")
    assert box.call_sync("version").output == 2
    file.write_text("import nothing_of_that_name\n")
    assert box.call_sync("version").error == "ModuleNotFoundError: No module named 'nothing_of_that_name'"


def test_modules_that_an_import_hook_finds(tmp_path):
    package = tmp_path / "elsewhere" / "hooked_package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "data.txt").write_text("beside it")
    (package / "part.py").write_text(
        "import pathlib\n"
        "def read() -> str:\n"
        "    return pathlib.Path(__file__).with_name('data.txt').read_text()\n"
    )
    start = _interpreter.serve("hooked_package.part", "{}", str(package / "part.py"))
    assert start.show[-1] == str(package) and start.argv[-1] == str(package / "part.py")
    alone = tmp_path / "alone.py"
    alone.write_text("")
    assert _interpreter.serve("alone", "{}", str(alone)).show[-1] == str(alone)


def test_a_script_in_a_home_directory_shows_nothing_else_of_it(tmp_path):
    (tmp_path / "secret.txt").write_text("not for tools")
    (tmp_path / "home_tool.py").write_text(
        "import os\n"
        "def look() -> list:\n"
        f"    return os.listdir({str(tmp_path)!r})\n"
    )
    script = "import home_tool, callbox; print(callbox.Toolbox([home_tool.look]).call_sync('look').output)"
    done = subprocess.run([sys.executable, "-c", script], env={**os.environ, "HOME": str(tmp_path)},
                          cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True)  # fmt: skip
    assert done.stdout == "['home_tool.py']\n"


def test_what_lies_beside_a_tool_can_be_hidden(tmp_path):
    (tmp_path / "prices.db").write_text("secret")
    (tmp_path / "hiding_tool.py").write_text("def read(name: str) -> str:\n    return open(name).read()\n")
    script = textwrap.dedent("""
        import hiding_tool
        from callbox import Policy, Toolbox
        for hide in ([], ["prices.db"]):
            box = Toolbox([hiding_tool.read], policy=Policy(hide=hide))
            result = box.call_sync("read", {"name": %r})
            print(result.output, (result.error or "").split(":")[0])
    """ % str(tmp_path / "prices.db"))
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, stdout=subprocess.PIPE, text=True,
                          check=True)  # fmt: skip
    assert done.stdout == "secret \nNone PermissionError\n"


def test_there_are_no_boxes_in_a_box():
    def inside(how: str) -> str:
        from callbox import CallboxError, Toolbox, run

        try:
            Toolbox([]).list_tools() if how == "toolbox" else run(["true"])
        except CallboxError as error:
            return str(error)
        return "none"

    box = Toolbox([inside])
    for how in ("toolbox", "run"):
        assert "no boxes in a box" in box.call_sync("inside", {"how": how}).output


def test_c10_the_directory_of_the_call_hijacks_nothing(tmp_path):
    (tmp_path / "base64.py").write_text("raise SystemExit('hijacked')\n")
    (tmp_path / "json.py").write_text("raise SystemExit('hijacked')\n")
    box = Toolbox([boxed_tools.add], policy=Policy(workspace=tmp_path))
    assert box.call_sync("add", {"a": 1}).output == 3


def test_a_virtual_environment_is_found(tmp_path):
    place = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    (site,) = place.glob("lib/python3*/site-packages")
    (site / "only_there.py").write_text("def where() -> str:\n    import sys\n    return sys.prefix\n")
    script = "import only_there, callbox; print(callbox.Toolbox([only_there.where]).call_sync('where').output)"
    done = subprocess.run([str(place / "bin" / "python"), "-c", script], stdout=subprocess.PIPE,
                          cwd=tmp_path, text=True, check=True)  # fmt: skip
    assert done.stdout.strip() == str(place)


def test_manifests_live_in_the_same_toolbox(tmp_path):
    (tmp_path / "count.json").write_text(json.dumps({
        "name": "count",
        "description": "Count bytes.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        "run": {"shell": "printf %s \"$1\" | wc -c", "parameters": ["{text}"], "output": "json"},
    }))  # fmt: skip
    box = Toolbox([boxed_tools.add], manifests=tmp_path)
    assert [item["name"] for item in box.list_tools()] == ["add", "count"]
    assert box.call_sync("count", {"text": "four"}).output == 4
    assert {(c.kind, c.tool) for c in box.changes()} == {("added", "add"), ("added", "count")}
    (tmp_path / "broken.json").write_text("{")
    assert [c.kind for c in box.changes()] == ["broken"]
    (tmp_path / "count.json").unlink()
    assert [c.tool for c in box.changes()] == ["count"]
    box.add({"name": "add", "inputSchema": {"type": "object"}, "run": {"command": ["echo", "other"]}})
    assert box.call_sync("add").output == "other\n"
    assert box.remove("add") and not box.remove("add") and box.list_tools() == []


def test_a_server_of_ones_own(tmp_path):
    server = tmp_path / "server.py"
    server.write_text(textwrap.dedent("""
        import os, struct, sys
        def send(kind, data):
            os.write(3, struct.pack("=II", len(data), kind) + data)
        line, _, arguments = sys.stdin.buffer.read().partition(b"\\n")
        send(0, b'["' + line + b'", ' + arguments + b"]")
        send(5, struct.pack("=i", 0))
    """))
    run = {"server": ["/usr/bin/python3", "-I", str(server)], "function": "echo it"}
    manifest = {"name": "echo", "inputSchema": {"type": "object"}, "policy": {"files": {"read": [str(server)]}}}
    box = Toolbox()
    box.add({**manifest, "run": run})
    assert box.call_sync("echo", {"a": 1}).output == ["echo it", {"a": 1}]
    for change, where in (
        ({"server": []}, "run.server"),
        ({"server": [""]}, "run.server"),
        ({"server": ["a", 1]}, "run.server[1]"),
        ({"server": "a"}, "run.server"),
        ({"function": "a\nb"}, "run.function"),
        ({"function": ""}, "run.function"),
        ({"function": 1}, "run.function"),
        ({"output": "json"}, "run.output"),
    ):
        with pytest.raises(CallboxError) as caught:
            box.add({**manifest, "run": {**run, **change}})
        assert caught.value.where == where


def test_j9_calls_beyond_the_bound_wait():
    async def overlaps(calls):
        box = Toolbox([boxed_tools.interval], calls=calls)
        results = await asyncio.gather(*[box.call("interval") for _ in range(5)])
        times = sorted(result.output for result in results)
        return sum(a[1] > b[0] for a, b in zip(times, times[1:]))

    assert asyncio.run(overlaps(1)) == 0
    assert asyncio.run(overlaps(0)) > 0  # without a bound they do


def test_many_calls_at_once(box):
    async def many():
        worst = 0.0

        async def pulse():
            nonlocal worst
            while True:
                begin = time.perf_counter()
                await asyncio.sleep(0.001)
                worst = max(worst, time.perf_counter() - begin)

        beat = asyncio.ensure_future(pulse())
        calls = [box.call("add", {"a": i}) for i in range(60)]
        results = await asyncio.gather(*calls)
        beat.cancel()
        return [result.output for result in results], worst

    outputs, worst = asyncio.run(many())
    assert outputs == [i + 2 for i in range(60)]
    assert worst < 2  # nothing waits in the loop; a busy machine has its slack


def test_calls_leave_no_descriptors_behind(box):
    async def some():
        calls = [asyncio.ensure_future(box.call("sleeps")) for _ in range(5)]
        await asyncio.gather(*[box.call("add", {"a": i}) for i in range(10)])
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        box.call_sync("fails", {"how": "x"})
        return len(os.listdir("/proc/self/fd"))

    gc.disable()  # what only the collector finds counts too
    try:
        assert asyncio.run(some()) == asyncio.run(some())
    finally:
        gc.enable()


def test_threads_share_a_toolbox(box):
    outputs = []
    threads = [
        threading.Thread(target=lambda n=n: outputs.append(box.call_sync("add", {"a": n}).output))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(outputs) == list(range(2, 10))


def test_an_output_schema_is_a_promise():
    box = Toolbox([Tool(boxed_tools.add, output_schema={"type": "integer", "maximum": 5})])
    assert box.call_sync("add", {"a": 1}).ok
    result = box.call_sync("add", {"a": 9})
    assert not result.ok and "promise" in result.error and result.output is None


def test_misuse_is_raised():
    with pytest.raises(TypeError):
        Toolbox([7])
    with pytest.raises(CallboxError) as caught:
        Toolbox([Tool(boxed_tools.add, name="not a name")])
    assert "not a name" in str(caught.value)

    def unknown(lock: threading.Event) -> None: ...

    with pytest.raises(CallboxError) as caught:
        Toolbox([unknown])
    assert caught.value.where == "unknown(lock)" and "Event" in caught.value.text
