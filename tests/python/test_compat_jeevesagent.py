# SPDX-License-Identifier: MIT
"""The drop-in for jeevesagent and loomflow: its contract line by line, and every defect of theirs
(J1 ..., L1 ...) shown gone by a test of that name."""

import asyncio
import dataclasses
import datetime
import functools
import multiprocessing
import os
import pathlib
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time

import compat_tools as tools
import pytest
from conftest import SECRET
from test_run import processes, until

import callbox.compat.loomflow
from callbox import Policy
from callbox.compat import _jeeves_types
from callbox.compat.jeevesagent import (
    CodeExecutor,
    ConfigError,
    ExecResult,
    FilesystemSandbox,
    InProcessToolHost,
    NoSandbox,
    OSSandbox,
    SubprocessExecutor,
    SubprocessSandbox,
    Tool,
    ToolCall,
    ToolDef,
    ToolEvent,
    ToolResult,
    tool,
)

NAMED = [tools.triple, tools.decorated, tools.add_later, tools.nested]
PLAIN = [
    item
    for item in vars(tools).values()
    if callable(item) and getattr(item, "__module__", "") == tools.__name__ and not isinstance(item, type)
]


def host(*more):
    return InProcessToolHost([*NAMED, *PLAIN, *more])


@pytest.fixture(scope="module")
def sandbox():
    return SubprocessSandbox(host())


def call(sandbox, name, args=None, call_id="c1"):
    return asyncio.run(sandbox.call(name, args or {}, call_id=call_id))


def agent(tmp_path, text, *words, **more):
    """Run a program of a user's, and return what it printed."""
    path = tmp_path / "agent.py"
    path.write_text(textwrap.dedent(text))
    env = {**os.environ, "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{pathlib.Path(__file__).parent}"}
    return subprocess.run([sys.executable, str(path), *words], env=env, text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **more)  # fmt: skip


# ---- The types ----


def test_contract_results():
    good, bad, no = ToolResult.success("c", 1), ToolResult.error_("c", "e"), ToolResult.denied_("c", "r")
    assert (good.call_id, good.ok, good.output, good.error, good.denied) == ("c", True, 1, None, False)
    assert (bad.ok, bad.error, bad.output, bad.reason) == (False, "e", None, None)
    assert (no.ok, no.denied, no.reason, no.error) == (False, True, "r", None)
    assert good.duration_ms is None and good.started_at.tzinfo is datetime.timezone.utc


def test_contract_definitions_calls_and_events():
    definition = ToolDef(name="n", description="d")
    assert (definition.input_schema, definition.server, definition.destructive) == ({}, None, False)
    with pytest.raises(dataclasses.FrozenInstanceError):
        definition.name = "m"
    one, two = ToolCall(tool="t", args={"a": 1, "b": 2}), ToolCall(tool="t", args={"b": 2, "a": 1})
    assert one.id.startswith("tcall") and one.id != two.id
    assert one.idempotency_key() == two.idempotency_key() != ToolCall(tool="t").idempotency_key()
    assert (one.tool_def, one.destructive) == (None, False)
    event = ToolEvent(kind="added", tool="t")
    assert event.server is None and event.at.tzinfo


def test_contract_tool_decorator():
    assert isinstance(tools.triple, Tool) and tools.triple.fn(2) == 6
    assert tools.triple.name == "triple" and tools.triple.description == "Three times a number."
    assert tools.triple.input_schema == {
        "type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"],
    }  # fmt: skip
    other = tools.decorated
    assert (other.name, other.description, other.destructive) == ("renamed", "With another name.", True)
    kinds = {name: item.get("type") for name, item in other.input_schema["properties"].items()}
    assert {k: kinds[k] for k in ("text", "often", "rate", "loud")} == {
        "text": "string", "often": "integer", "rate": "number", "loud": "boolean",
    }  # fmt: skip
    assert other.input_schema["required"] == ["text"]
    assert tools.nested.input_schema["properties"]["words"]["items"] == {"type": "string"}

    class Owner:
        def method(self, a, *args, b: str = "", **more):
            """Of a class."""

    made = tool(Owner.method)
    assert list(made.input_schema["properties"]) == ["a", "b"] and made.input_schema["required"] == ["a"]
    assert tool(name="x")(len).name == "x"


def test_contract_in_process_host():
    inner = host()
    assert isinstance(inner.register(len), Tool) and inner.unregister("len") and not inner.unregister("len")
    assert inner.get("triple") is tools.triple and inner.get("nothing") is None

    async def use():
        names = [d.name for d in await inner.list_tools(query="THREE times")]
        assert names == ["triple"] and len(await inner.list_tools()) == len(NAMED + PLAIN)
        assert (await inner.call("nothing", {})).error == "unknown tool: nothing"
        assert (await inner.call("ends", {"how": "x"}, call_id="c")).error == "'x'"  # without the type
        assert (await inner.call("add_later", {"a": 1})).output == 2
        assert (await inner.call("triple", {"x": "7"})).output == 21
        assert (await inner.call("renamed", {"text": "1", "loud": "true", "rate": "2"})).output == [
            "1", 1, 2.0, True, None,
        ]  # fmt: skip
        assert [event async for event in inner.watch()] == []

    asyncio.run(use())


# ---- The sandboxes ----


def test_contract_constructor_checks_in_their_order():
    for wrong in (0, -1, float("nan")):
        with pytest.raises(ValueError) as caught:
            SubprocessSandbox(object(), timeout_seconds=wrong)
        assert str(caught.value) == "timeout_seconds must be positive"
    with pytest.raises(ConfigError) as caught:
        SubprocessSandbox(NoSandbox(host()))
    assert str(caught.value) == (
        "SubprocessSandbox wraps InProcessToolHost only (it needs access to the registered Tool.fn "
        "callable). Got NoSandbox."
    )
    inner = host()
    made = SubprocessSandbox(inner)
    assert made.inner is inner and made.timeout_seconds == 30.0
    assert SubprocessSandbox(inner, timeout_seconds=5).timeout_seconds == 5


def test_contract_passing_through(sandbox):
    async def use():
        assert await sandbox.list_tools() == await sandbox.inner.list_tools()
        assert [d.name for d in await sandbox.list_tools(query="three")] == ["triple"]
        assert [event async for event in sandbox.watch()] == []

    asyncio.run(use())


def test_contract_texts(sandbox):
    assert call(sandbox, "nothing").error == "unknown tool: nothing"
    quick = SubprocessSandbox(host(), timeout_seconds=0.5)
    assert call(quick, "sleeps").error == "SubprocessSandbox: tool exceeded 0.5s"
    assert call(sandbox, "ends", {"how": "x"}).error == "SubprocessSandbox: tool raised KeyError: 'x'"
    assert call(sandbox, "ends", {"how": "empty"}).error == "SubprocessSandbox: tool raised ValueError: "
    assert call(sandbox, "ends", {"how": "exit"}).error == "SubprocessSandbox: tool raised SystemExit: 0"
    assert call(sandbox, "triple", {"y": 1}).error.startswith("SubprocessSandbox: tool raised TypeError: ")


def test_contract_a_result(sandbox):
    before = datetime.datetime.now(datetime.timezone.utc)
    result = call(sandbox, "triple", {"x": 7}, call_id="call 7")
    assert isinstance(result, ToolResult) and (result.call_id, result.ok, result.output) == ("call 7", True, 21)
    assert (result.error, result.denied, result.reason) == (None, False, None)
    assert result.duration_ms > 0 and abs(result.started_at - before) < datetime.timedelta(minutes=1)
    assert call(sandbox, "add_later", {"a": 1}).output == 2
    for odd in ("", "a\0b", "x" * 1000, "naïve"):
        assert call(sandbox, "triple", {"x": 1}, call_id=odd).call_id == odd


def test_contract_no_sandbox():
    plain = NoSandbox(host())
    assert call(plain, "remembers").output == 1 and tools.SEEN == [1]  # in this process
    tools.SEEN.clear()
    assert isinstance(plain.inner, InProcessToolHost)


def test_contract_filesystem_sandbox(tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out")
    monkeypatch.chdir(tmp_path / "in")
    with pytest.raises(ValueError) as caught:
        FilesystemSandbox(host(), roots=[])
    assert str(caught.value) == "FilesystemSandbox requires at least one allowed root"
    inner = InProcessToolHost([Tool("t", "", lambda **args: "ran", {})])
    box = FilesystemSandbox(inner, roots=[tmp_path / "in"])
    assert box.roots == ((tmp_path / "in").resolve(),) and box.inner is inner
    outside = tmp_path / "out" / "x"
    refused = call(box, "t", {"path": str(outside)})
    assert refused.denied and not refused.ok and refused.error is None
    assert refused.reason == (
        f"FilesystemSandbox: argument 'path' resolves outside the allowed roots ('{outside}')"
    )
    names = "path file filename filepath directory dir folder src source dst destination target".split()
    for name in [*names, "output_file", "log-dir", "a.target", "PATH"]:
        assert call(box, "t", {name: ".."}).denied, name
        assert call(box, "t", {name: "inside"}).output == "ran", name
    for value in ("../x", "..\\..\\x/../..", "link/x", "~/x", ["a", ["../x"]], {"a": {"b": "../x"}}, {"dir": ".."}):
        assert call(box, "t", {"note": value}).denied, value
    for value in ("..", "harmless", 7, None, ["a"], b"/raw"[1:]):
        assert call(box, "t", {"note": value}).output == "ran", value
    deep = "x"
    for _ in range(20):
        deep = [deep]
    assert call(box, "t", {"note": deep}).denied
    for exact in ({"path_args": ["custom"]}, {"path_args": ["custom"], "auto_detect": False}):
        named = FilesystemSandbox(inner, roots=[tmp_path / "in"], **exact)  # these, and no others
        assert call(named, "t", {"path": "/etc", "note": "../x"}).output == "ran"
        assert call(named, "t", {"custom": "/etc"}).denied and call(named, "t", {"custom": ["a", "/etc"]}).denied
    for blind in ({"auto_detect": False}, {"path_args": []}):
        assert call(FilesystemSandbox(inner, roots=[tmp_path / "in"], **blind), "t", {"path": "/etc"}).ok


def test_contract_os_sandbox(tmp_path):
    with pytest.raises(ValueError) as caught:
        OSSandbox(object(), roots=[], timeout_seconds=0)
    assert str(caught.value) == "OSSandbox requires at least one writable root"
    with pytest.raises(ValueError) as caught:
        OSSandbox(object(), roots=[tmp_path], timeout_seconds=0)
    assert str(caught.value) == "timeout_seconds must be positive"
    with pytest.raises(ConfigError) as caught:
        OSSandbox(NoSandbox(host()), roots=[tmp_path])
    assert str(caught.value).startswith("OSSandbox kernel mode wraps InProcessToolHost only ")
    inner = host()
    quick = OSSandbox(inner, roots=[tmp_path], timeout_seconds=1.0)
    assert quick.timeout_seconds == 1.0 and call(quick, "sleeps").error == "OSSandbox: tool exceeded 1.0s"
    box = OSSandbox(inner, roots=[tmp_path], env={"NAMED": "yes"}, path_args=["path"])
    assert box.inner is inner and box.roots == (tmp_path.resolve(),)
    assert box.mode in ("seatbelt", "bubblewrap") and box.timeout_seconds == 30.0
    assert call(box, "ends", {"how": "x"}).error == "OSSandbox: tool raised KeyError: 'x'"
    assert call(box, "ends", {"how": "_exit 3"}).error.startswith("OSSandbox: sandboxed child exited 3: ")
    assert call(box, "ends", {"how": "_exit 3 and say"}).error == "OSSandbox: sandboxed child exited 3: err"
    assert call(box, "ends", {"how": "crash"}).error.startswith("OSSandbox: sandboxed child exited -11: ")
    assert call(box, "ends", {"how": "_exit"}).error.startswith("OSSandbox: child produced no result: ")
    assert call(box, "a_lock").error.startswith("OSSandbox: child produced no result: ")
    assert call(box, "nothing").error == "unknown tool: nothing"
    assert call(box, "looks", {"port": 9}).output["environment"]["NAMED"] == "yes"
    assert call(box, "reads", {"path": "/etc/hosts"}).denied


def test_contract_code_executor(tmp_path):
    executor = SubprocessExecutor(max_output_chars=50, max_artifact_bytes=1000)

    def run(code, **more):
        return asyncio.run(executor.run(textwrap.dedent(code), **more))

    done = run("""
        import os, sys
        print(open("data/in.txt").read(), sorted(os.listdir(".")), sys.flags.isolated)
        open("out/new.txt", "w").write("new")
        os.mkdir("out/sub"); open("out/sub/b", "wb").write(b"\\xff")
        open("out/large", "w").write("x" * 2000)
        open("elsewhere", "w").write("stays")
    """, files={"data/in.txt": b"given", "out/same.txt": b"unchanged"})  # fmt: skip
    assert isinstance(done, ExecResult)
    assert (done.stdout, done.returncode, done.timed_out) == ("given ['data', 'out'] 1\n", 0, False)
    assert done.artifacts == {"new.txt": b"new", "sub/b": b"\xff"}
    late = run("open('out/kept', 'w').write('k')\nprint('part', flush=True)\nimport time; time.sleep(600)",
               timeout_s=1)  # fmt: skip
    assert (late.returncode, late.timed_out, late.artifacts) == (-1, True, {"kept": b"k"})
    assert late.stderr == "ERROR: process killed after 1.0s timeout" and late.stdout == "part\n"
    assert run("print('é' * 100)").stdout == "é" * 50 + "\n... (truncated, 51 more chars)"
    assert run("import sys; sys.exit(3)").returncode == 3
    assert run("import os; os.kill(os.getpid(), 11)").returncode == -11
    failed = run("raise ValueError('no')")
    assert failed.returncode == 1 and failed.stderr.startswith("Traceback")
    assert run("import os; print(os.environ['A'], os.environ.get('%s'))" % SECRET, env={"A": "b"}).stdout == "b None\n"
    for wrong in ({"language": "perl"}, {"files": {"../x": b""}}, {"files": {"/x": b""}}, {"files": {"": b""}},
                  {"timeout_s": 0}):  # fmt: skip
        with pytest.raises(ValueError):
            run("1", **wrong)


def test_what_code_leaves_behind_leads_nowhere(tmp_path):
    """Links in the scratch directory are the program's; the agent does not follow them."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("the agent's own")
    place = tmp_path / "place"
    place.mkdir()
    executor = SubprocessExecutor(cwd=place)

    def run(code, **more):
        return asyncio.run(executor.run(code, **more))

    first = run(f"import os\nos.symlink({str(secret / 'key')!r}, 'out/key')\nos.mkfifo('out/pipe')\n"
                f"os.symlink({str(secret)!r}, 'away')\nopen('out/good', 'w').write('g')")  # fmt: skip
    assert first.returncode == 0 and first.artifacts == {"good": b"g"}
    with pytest.raises(ValueError):
        run("1", files={"away/key": b"overwritten"})
    with pytest.raises(ValueError):
        run("1", files={"out/key": b"overwritten"})
    assert (secret / "key").read_text() == "the agent's own"
    second = run(f"import os, shutil\nshutil.rmtree('out')\nos.symlink({str(secret)!r}, 'out')")
    assert (second.returncode, second.artifacts) == (0, {})
    assert [p for p in os.listdir(tempfile.gettempdir()) if p.startswith("callbox-code-")] == []


def test_the_same_under_the_name_of_loomflow():
    module = callbox.compat.loomflow
    box = module.SubprocessSandbox(host())
    assert call(box, "triple", {"x": 2}).output == 6
    assert module.SubprocessSandbox.__mro__[1] is SubprocessSandbox.__mro__[1]
    assert {"OSSandbox", "FilesystemSandbox", "NoSandbox", "SubprocessExecutor", "CodeExecutor"} <= set(module.__all__)


# ---- The defects ----


def test_J1_result_larger_than_a_pipe_buffer(sandbox):
    for size in (65_507, 65_508, 10_000_000):
        result = call(sandbox, "text_of", {"n": size})
        assert result.ok and len(result.output) == size


def test_J2_a_result_runs_nothing_in_the_agent(sandbox, tmp_path):
    mark = tmp_path / "escaped"
    result = call(sandbox, "evil", {"mark": str(mark)})
    assert not result.ok and "compat_tools.Evil" in result.error and "cannot leave the box" in result.error
    assert not call(sandbox, "evil_reply", {"mark": str(mark)}).ok
    assert not mark.exists()
    pickle.loads(pickle.dumps(tools.Evil(mark)))  # this is what it would have done
    assert mark.exists()


def test_J3_what_cannot_come_back_is_named(sandbox, capfd):
    result = call(sandbox, "a_lock")
    assert result.error.startswith("SubprocessSandbox: subprocess exited without producing a result: ")
    assert "result['lock'][0]" in result.error and "_thread.lock" in result.error
    assert capfd.readouterr() == ("", "")


def test_J4_decorated_functions_of_a_module_work(sandbox):
    with pytest.raises(pickle.PicklingError):
        pickle.dumps(tools.triple.fn)  # its name is that of the Tool now
    assert call(sandbox, "triple", {"x": 7}).output == 21
    assert call(sandbox, "renamed", {"text": "a"}).output == ["a", 1, 1.0, False, None]


def test_J5_closures_and_lambdas_are_results_never_raised(sandbox):
    inner = host(
        Tool("closure", "", tools.make_closure(40), {}),
        Tool("lambda", "", lambda x: x + 1, {}),
        Tool("method", "", tools.Adder(5).method, {}),
        Tool("partial", "", functools.partial(tools.identity, x=3), {}),
    )
    box = SubprocessSandbox(inner)
    assert call(box, "closure", {"x": 2}).output == 42
    assert call(box, "lambda", {"x": 1}).output == 2
    assert call(box, "method", {"x": 1}).output == 4
    assert call(box, "partial").output == 3
    assert call(box, "identity", {"x": socket.socket}).error  # a class cannot come back
    # An argument that no pickle can hold.
    with socket.socket() as held:
        refused = call(box, "measure", {"data": held})
    assert refused.error.startswith("SubprocessSandbox: tool 'measure' or its arguments are not picklable (")
    assert refused.error.endswith("). Use a module-level function and primitive args.")
    assert call(box, "measure", {"data": [lambda: 1]}).output == 1
    assert call(box, "identity", {"x": {1: (2,)}}).output == {1: (2,)}


@pytest.mark.parametrize("language", ["bash", "sh", "shell"])
def test_executor_runs_shells(tmp_path, monkeypatch, language):
    monkeypatch.setenv("HOME", "/host/home")

    def run(code, **more):
        return asyncio.run(SubprocessExecutor(cwd=tmp_path).run(code, language=language, **more))

    done = run("cat given; echo made >out/made; echo $X; pwd; exit 3", files={"given": b"in\n"}, env={"X": "set"})
    assert (done.stdout, done.returncode) == (f"in\nset\n{tmp_path}\n", 3) and done.artifacts == {"made": b"made\n"}
    late = run("echo so far; sleep 600", timeout_s=0.5)
    assert late.timed_out and late.stderr == "ERROR: process killed after 0.5s timeout"
    # All of the agent's environment, as bash_tool gives it: what the box has itself stays its own.
    assert run("echo $HOME", env=dict(os.environ)).stdout == "/tmp\n" and run("echo $HOME", env={"HOME": "/x"}).stdout == "/x\n"


def test_executor_names_a_language_that_it_does_not_run():
    with pytest.raises(ValueError, match="language 'ruby'"):
        asyncio.run(SubprocessExecutor().run("puts 1", language="ruby"))
    assert isinstance(SubprocessExecutor(), CodeExecutor) and not isinstance(object(), CodeExecutor)


def test_executor_with_an_interpreter_by_a_path_with_dots(tmp_path):
    (tmp_path / "other").mkdir()
    python = f"{tmp_path}/other/../link/../bin/python3"
    (tmp_path / "link").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    assert asyncio.run(SubprocessExecutor(python).run("print(1)")).stdout == "1\n"


def test_what_came_back_as_something_else_is_said_in_the_result(caplog):
    @dataclasses.dataclass
    class Shape:
        sides: int

    def unhinted():
        return [Shape(4), Shape(5)]

    def hinted() -> Shape:
        return Shape(4)

    box = SubprocessSandbox(InProcessToolHost([unhinted, hinted]))
    for _ in range(2):
        result = call(box, "unhinted")
        assert result.ok and result.output == [{"sides": 4}, {"sides": 5}] and not result.denied
        assert result.reason.endswith(".Shape' came back as a dict, as the return hint does not name it")
    assert len([record for record in caplog.records if "came back as" in record.getMessage()]) == 1
    assert call(box, "hinted").reason is None


def test_J5_functions_are_taken_as_they_are_when_called(sandbox):
    numbers = [1]
    box = SubprocessSandbox(InProcessToolHost([Tool("last", "", lambda: numbers[-1], {})]))
    assert call(box, "last").output == 1
    numbers.append(2)
    assert call(box, "last").output == 2


def test_J6_a_timeout_kills_the_whole_tree(sandbox):
    box = SubprocessSandbox(host(), timeout_seconds=1.0)
    assert call(box, "leaves_children", {"mark": "7706"}).error.endswith("tool exceeded 1.0s")
    until(lambda: not processes(b"7706"))
    assert call(sandbox, "leaves_children", {"mark": "7707", "then": "return"}).output == "finished"
    until(lambda: not processes(b"7707"))


def test_J7_a_tool_that_ignores_sigterm_delays_nothing():
    box = SubprocessSandbox(host(), timeout_seconds=1.0)
    call(box, "triple", {"x": 1})

    def took(name):
        begin = time.monotonic()
        assert call(box, name).error.endswith("tool exceeded 1.0s")
        return time.monotonic() - begin

    assert took("ignores_sigterm") < 1.7 * took("sleeps")  # a second of grace would make it twice


def test_J8_cancelling_ends_the_call_at_once(tmp_path):
    started = tmp_path / "started"
    box = SubprocessSandbox(host(), timeout_seconds=500, policy=Policy(write=[tmp_path]))

    async def cancelled():
        task = asyncio.ensure_future(box.call("marks_and_sleeps", {"path": str(started)}))
        while not started.exists():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(cancelled(), 60))  # the tool would have slept ten minutes


def test_J9_calls_at_once_are_bounded_and_waiting_is_not_timed(tmp_path):
    box = SubprocessSandbox(host(), calls=6, policy=Policy(write=[tmp_path]))

    async def many():
        return await asyncio.gather(*[box.call("counts_itself", {"folder": str(tmp_path)}) for _ in range(60)])

    results = asyncio.run(many())
    assert [r.error for r in results if not r.ok] == []
    assert max(r.output for r in results) <= 6
    late = SubprocessSandbox(host(), calls=6, timeout_seconds=0.5)

    async def too_long():
        return await asyncio.gather(*[late.call("sleeps", {}) for _ in range(24)])

    results = asyncio.run(too_long())
    assert {r.error for r in results} == {"SubprocessSandbox: tool exceeded 0.5s"}
    # Each had its own half second, however long it waited for its turn.
    assert max(r.duration_ms for r in results) < 2 * 500


def test_J10_prints_do_not_reach_the_agents_stdout(tmp_path, caplog):
    done = agent(tmp_path, """
        import asyncio, compat_tools
        from callbox.compat.jeevesagent import InProcessToolHost, SubprocessSandbox
        box = SubprocessSandbox(InProcessToolHost([compat_tools.chatters]))
        print(asyncio.run(box.call("chatters", {})).output)
    """)  # fmt: skip
    assert (done.stdout, done.stderr, done.returncode) == ("quiet\n", "", 0)
    told = []
    box = SubprocessSandbox(host(), on_report=lambda *args: told.append(args))
    with caplog.at_level("DEBUG", "callbox.compat"):
        assert call(box, "chatters").ok
    ((name, call_id, report),) = told
    assert (name, call_id) == ("chatters", "c1") and "TOOL-CHATTER" in report.stdout
    assert "TOOL-CHATTER" in caplog.text and "on stderr" in caplog.text


def test_J11_environment_files_and_network_are_closed(sandbox):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = call(sandbox, "looks", {"port": port}).output
        assert SECRET not in found["environment"] and os.environ[SECRET] not in found["environ"]
        assert "/etc/shadow" not in found["open"] and not found["connected"]
        # Opened where it is asked for.
        open_box = SubprocessSandbox(host(), policy=Policy(network="host", environment=[SECRET]))
        found = call(open_box, "looks", {"port": port}).output
        assert found["connected"] and found["environment"][SECRET] == os.environ[SECRET]


def test_J12_a_tool_cannot_kill_the_agent(tmp_path):
    done = agent(tmp_path, """
        import asyncio, os, compat_tools
        from callbox.compat.jeevesagent import InProcessToolHost, SubprocessSandbox
        os.setpgrp()
        box = SubprocessSandbox(InProcessToolHost([compat_tools.kills]))
        print(asyncio.run(box.call("kills", {"pid": os.getpid()})).output)
    """)  # fmt: skip
    assert (done.stdout, done.returncode) == ("alive\n", 0)
    control = agent(tmp_path, """
        import compat_tools, os
        os.setpgrp()
        if os.fork() == 0:
            compat_tools.kills(os.getppid())
        os.wait()
    """)  # fmt: skip
    assert control.returncode == -signal.SIGKILL


def test_J13_how_a_tool_ended_is_said(sandbox):
    known = "SubprocessSandbox: subprocess exited without producing a result: "
    said = {how: call(sandbox, "ends", {"how": how}).error for how in ("crash", "_exit", "_exit 3")}
    said["memory"] = call(sandbox, "allocates", {"megabytes": 900}).error
    assert len(set(said.values())) == 4
    assert said["crash"].startswith(known) and "SIGSEGV" in said["crash"]
    assert said["_exit 3"].startswith(known) and "3" in said["_exit 3"]
    assert "emory" in said["memory"]


def test_J14_callable_objects_with_an_async_call():
    box = SubprocessSandbox(InProcessToolHost([Tool("adder", "", tools.Adder(3), {})]))
    assert call(box, "adder", {"x": 4}).output == 7


def test_J15_a_script_without_a_guard(tmp_path):
    done = agent(tmp_path, """
        import asyncio, dataclasses
        from callbox.compat.jeevesagent import InProcessToolHost, SubprocessSandbox, tool
        print("once")
        @dataclasses.dataclass
        class Point:
            x: int
        @tool
        def shifted(point) -> Point:
            return Point(point.x + 1)
        box = SubprocessSandbox(InProcessToolHost([shifted]))
        print(asyncio.run(box.call("shifted", {"point": Point(1)})).output)
    """)  # fmt: skip
    assert (done.stdout, done.stderr) == ("once\nPoint(x=2)\n", "")


async def worst_gap(work):
    """The longest time for which the event loop did nothing else."""
    gaps, done = [0.0], asyncio.Event()

    async def tick():
        while not done.is_set():
            begin = time.perf_counter()
            await asyncio.sleep(0.001)
            gaps.append(time.perf_counter() - begin)

    ticker = asyncio.ensure_future(tick())
    await asyncio.sleep(0.05)
    gaps.clear()
    result = await work()
    done.set()
    await ticker
    return max(gaps), result


def test_J16_large_arguments_do_not_hold_up_the_event_loop(sandbox):
    data = os.urandom(25_000_000).hex()
    numbers = list(range(1_000_000))

    async def ours():
        return [await sandbox.call("measure", {"data": item}) for item in (data, numbers)]

    async def as_it_was():
        child = multiprocessing.get_context("spawn").Process(target=tools.measure, args=(data,))
        child.start()
        return child

    gap, results = asyncio.run(worst_gap(ours))
    assert [r.output for r in results] == [len(data), len(numbers)]
    other, child = asyncio.run(worst_gap(as_it_was))
    child.join()
    assert gap < other / 2


def test_J17_memory_is_bounded(sandbox):
    result = call(sandbox, "allocates", {"megabytes": 2000})
    assert not result.ok and "emory" in result.error
    wide = SubprocessSandbox(host(), policy=Policy(limits={"memory": "1G"}))
    assert call(wide, "allocates", {"megabytes": 600}).ok


def test_J18_a_killed_agent_takes_its_tools_with_it(tmp_path):
    text = """
        import asyncio, compat_tools
        from callbox.compat.jeevesagent import InProcessToolHost, SubprocessSandbox
        box = SubprocessSandbox(InProcessToolHost([compat_tools.leaves_children]), timeout_seconds=500)
        asyncio.run(box.call("leaves_children", {"mark": "7718"}))
    """
    path = tmp_path / "agent.py"
    path.write_text(textwrap.dedent(text))
    env = {**os.environ, "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{pathlib.Path(__file__).parent}"}
    with subprocess.Popen([sys.executable, str(path)], env=env) as running:
        until(lambda: processes(b"7718"), 60)
        running.kill()
    until(lambda: not processes(b"7718"))


def test_L1_an_os_sandbox_works_with_roots_in_the_temporary_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("CALLBOX_IMPORT_PATH", "allow")  # modules of other tests lie there
    with tempfile.TemporaryDirectory() as place:
        outside = tempfile.NamedTemporaryFile(dir=tempfile.gettempdir())
        box = OSSandbox(host(), roots=[place])
        file = os.path.join(place, "a.txt")
        assert call(box, "writes", {"path": file, "text": "written"}).output == "written"
        assert pathlib.Path(file).read_text() == "written"
        assert "FileNotFoundError" in call(box, "reads", {"path": outside.name}).error  # and it is the box that says so
        outside.close()
    inside = tmp_path / "inside"
    box = OSSandbox(host(), roots=[tempfile.gettempdir()])
    assert call(box, "writes", {"path": str(inside), "text": "too"}).output == "too"
    assert inside.read_text() == "too"


def test_L1_names_that_the_host_would_execute_are_protected(tmp_path):
    box = OSSandbox(host(), roots=[tmp_path])
    assert "PermissionError" in call(box, "writes", {"path": str(tmp_path / ".envrc"), "text": "x"}).error
    assert not (tmp_path / ".envrc").exists()


def test_L2_arguments_are_made_what_the_schema_says(sandbox):
    async def both(name, args):
        here, there = await sandbox.inner.call(name, args), await sandbox.call(name, args)
        assert here.output == there.output and there.ok
        return there.output

    assert asyncio.run(both("doubled", {"x": "21"})) == 42
    assert asyncio.run(both("renamed", {"text": "5", "often": "2", "rate": "0.5", "loud": "FALSE"}))[1:4] == [2, 0.5, False]
    assert asyncio.run(both("doubled", {"x": "many"})) == "manymany"
    assert asyncio.run(both("nested", {"words": ["a"], "more": 3})) == [["a"], 3]


def test_L3_nothing_is_unpickled_from_an_os_sandbox(tmp_path):
    box, mark = OSSandbox(host(), roots=[tmp_path / "root"]), tmp_path / "escaped"
    (tmp_path / "root").mkdir()
    assert not call(box, "evil", {"mark": str(mark)}).ok
    assert not call(box, "evil_reply", {"mark": str(mark)}).ok
    assert not mark.exists()


def test_L4_an_os_sandbox_has_a_clean_environment(tmp_path):
    box = OSSandbox(host(), roots=[tmp_path], allow_network=True)
    found = call(box, "looks", {"port": 9}).output
    assert SECRET not in found["environment"] and os.environ[SECRET] not in found["environ"]


# ---- What a user may meet besides ----


def test_calls_see_nothing_of_each_other_and_start_where_the_agent_is(sandbox):
    assert [call(sandbox, "remembers").output for _ in range(3)] == [1, 1, 1]
    assert tools.SEEN == []


def test_a_relative_path_means_the_same_where_it_can_be_seen(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "note.txt").write_text("here")
    box = SubprocessSandbox(host(), policy=Policy(read=[tmp_path]))
    assert call(box, "where").output == str(tmp_path)
    assert call(box, "reads", {"path": "note.txt"}).output == "here"


def test_arguments_of_any_type_arrive_as_they_are(sandbox):
    for value in ((1, {2}), datetime.date(2026, 3, 1), b"\0\xff", {1: 2}, 2**70, float("inf"), "\udc80", pathlib.Path("/x")):
        result = call(sandbox, "identity", {"x": value})
        assert result.output == value and type(result.output) is type(value)
    for size in (300_000, 3_000_000):
        text = "a€\n" * (size // 3)
        assert call(sandbox, "identity", {"x": text}).output == text
    assert call(sandbox, "identity", {"x": {"args": [1, "ä", None]}}).output == {"args": [1, "ä", None]}


def test_tools_may_come_and_go(sandbox):
    box = SubprocessSandbox(InProcessToolHost([]))
    assert call(box, "doubled", {"x": 1}).error == "unknown tool: doubled"
    box.register(tools.doubled)
    assert call(box, "doubled", {"x": 1}).output == 2
    box.inner.register(Tool("doubled", "", tools.identity, {}))
    assert call(box, "doubled", {"x": 1}).output == 1


def test_a_box_that_cannot_be_had_is_a_result(tmp_path):
    box = SubprocessSandbox(host(), policy=Policy(read=[tmp_path / "nothing"]))
    result = call(box, "triple", {"x": 1})
    assert "its box could not be made: " in result.error and str(tmp_path / "nothing") in result.error
    result = call(OSSandbox(host(), roots=[tmp_path / "nothing"]), "triple", {"x": 1})
    assert result.error.startswith("OSSandbox: child produced no result: its box could not be made: ")
    with pytest.raises(TypeError):
        SubprocessSandbox(host(), policy={"read": []})


def test_a_user_is_told_what_a_tool_missed(tmp_path, caplog):
    (tmp_path / "data").write_text("x")
    box = SubprocessSandbox(host())
    with caplog.at_level("WARNING", "callbox.compat"):
        for _ in range(3):
            call(box, "reads", {"path": str(tmp_path / "data")})
            call(box, "reads", {"path": str(tmp_path / "nowhere")})
            call(box, "writes", {"path": "/usr/x", "text": ""})
            call(box, "connects", {"host": "127.0.0.1"})
            call(box, "ends", {"how": "x"})
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 3
    assert f"tool reads failed in its box: '{tmp_path / 'data'}' is not shown there" in said[0]
    assert "tool writes" in said[1] and "Policy(write=" in said[1]
    assert "tool connects" in said[2] and "Policy(network=" in said[2]


def test_an_interrupt_is_raised_and_ends_the_call(tmp_path):
    path = tmp_path / "agent.py"
    path.write_text(textwrap.dedent("""
        import asyncio, compat_tools, signal
        from callbox.compat.jeevesagent import InProcessToolHost, SubprocessSandbox
        signal.signal(signal.SIGINT, signal.default_int_handler)
        box = SubprocessSandbox(InProcessToolHost([compat_tools.leaves_children]), timeout_seconds=500)
        try:
            asyncio.run(box.call("leaves_children", {"mark": "7719"}))
        except KeyboardInterrupt:
            print("interrupted")
    """))
    env = {**os.environ, "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{pathlib.Path(__file__).parent}"}
    with subprocess.Popen([sys.executable, str(path)], env=env, stdout=subprocess.PIPE, text=True) as running:
        until(lambda: processes(b"7719"), 60)
        running.send_signal(signal.SIGINT)
        assert running.communicate(timeout=60)[0] == "interrupted\n"
    until(lambda: not processes(b"7719"))


def test_a_forked_child_may_use_it_too(tmp_path):
    done = agent(tmp_path, """
        import asyncio, os, compat_tools
        from callbox.compat.jeevesagent import InProcessToolHost, SubprocessSandbox
        box = SubprocessSandbox(InProcessToolHost([compat_tools.doubled]))
        assert asyncio.run(box.call("doubled", {"x": 1})).output == 2
        if os.fork() == 0:
            result = asyncio.run(box.call("doubled", {"x": 2}))
            print(result.output, result.error, flush=True)
            os._exit(0)
        os.wait()
        print(asyncio.run(box.call("doubled", {"x": 3})).output)
    """)  # fmt: skip
    assert (done.stdout, done.stderr) == ("4 None\n6\n", "")


def test_own_types_are_used_where_the_package_is_not_installed():
    assert ToolResult is _jeeves_types.ToolResult and InProcessToolHost is _jeeves_types.InProcessToolHost
