# SPDX-License-Identifier: MIT
"""The drop-ins for Calute and Xerxes: their contract line by line, and every defect of their backend
(C1 ...) shown gone by a test of that name."""

import asyncio
import collections
import dataclasses
import datetime
import fractions
import importlib
import logging
import os
import pathlib
import socket
import subprocess
import sys
import textwrap

import compat_tools as tools
import pytest
from conftest import SECRET
from test_run import processes, until

from callbox import Policy
from callbox.compat import calute, xerxes
from callbox.compat.calute import (
    ExecutionContext,
    SandboxBackendConfig,
    SandboxConfig,
    SandboxExecutionUnavailableError,
    SandboxMode,
    SandboxRouter,
    SubprocessSandboxBackend,
)


def backend(**more):
    return SubprocessSandboxBackend(sandbox_config=SandboxConfig(**more))


@pytest.fixture(scope="module")
def box():
    return backend()


def failure(box, function, **arguments):
    with pytest.raises(RuntimeError) as caught:
        box.execute(function.__name__, function, arguments)
    assert type(caught.value) is RuntimeError
    return str(caught.value)


def agent(tmp_path, text):
    path = tmp_path / "agent.py"
    path.write_text(textwrap.dedent(text))
    env = {**os.environ, "PYTHONPATH": f"{os.environ['PYTHONPATH']}:{pathlib.Path(__file__).parent}"}
    return subprocess.run([sys.executable, str(path)], env=env, text=True, timeout=120,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)  # fmt: skip


# ---- The contract ----


def test_contract_configuration():
    assert [mode.value for mode in SandboxMode] == ["off", "warn", "strict"]
    assert dataclasses.asdict(SandboxConfig()) == {
        "mode": SandboxMode.OFF,
        "sandboxed_tools": set(),
        "elevated_tools": set(),
        "sandbox_timeout": 30.0,
        "sandbox_memory_limit_mb": 512,
        "sandbox_network_access": False,
        "working_directory": None,
        "backend_type": None,
        "backend_config": {
            "image": "python:3.12-slim",
            "mount_paths": {},
            "mount_readonly": True,
            "env_vars": {},
            "extra_args": {},
        },
    }


def test_contract_decisions(caplog):
    def decide(mode, tool):
        config = SandboxConfig(mode=mode, sandboxed_tools={"listed", "both"}, elevated_tools={"both"})
        decision = SandboxRouter(config).decide(tool)
        return decision.context, decision.reason

    host, sandbox = ExecutionContext.HOST, ExecutionContext.SANDBOX
    for mode in SandboxMode:
        assert decide(mode, "both") == (host, "Tool is marked as elevated")
    assert decide(SandboxMode.OFF, "listed") == (host, "Sandbox mode is off")
    with caplog.at_level(logging.WARNING):
        assert decide(SandboxMode.WARN, "listed") == (
            host, "Warn mode advisory: tool would run in sandbox, executing on host",
        )  # fmt: skip
    assert [r.getMessage() for r in caplog.records] == [
        "Tool 'listed' would run in sandbox (mode=warn, running on host)"
    ]
    assert decide(SandboxMode.STRICT, "listed") == (sandbox, "Strict sandbox enforcement")
    for mode in (SandboxMode.WARN, SandboxMode.STRICT):
        assert decide(mode, "other") == (host, "Tool not designated for sandbox")
    assert SandboxRouter().decide("x").reason == "Sandbox mode is off"


def test_contract_the_router_never_falls_back_to_the_host(box):
    with pytest.raises(SandboxExecutionUnavailableError) as caught:
        SandboxRouter().execute_in_sandbox("remembers", tools.remembers, {})
    assert isinstance(caught.value, RuntimeError) and caught.value.tool_name == "remembers"
    assert str(caught.value) == (
        "Tool 'remembers' requires sandbox execution, but no sandbox backend is configured"
    )
    assert tools.SEEN == []
    assert SandboxRouter(backend=box).execute_in_sandbox("remembers", tools.remembers, {}) == 1
    assert tools.SEEN == []


def test_contract_registry():
    assert calute.list_backends() == sorted(calute.list_backends()) and "subprocess" in calute.list_backends()
    made = calute.get_backend("subprocess", SandboxConfig(sandbox_timeout=5))
    assert isinstance(made, SubprocessSandboxBackend) and made.get_capabilities()["timeout"] == 5
    assert isinstance(calute.get_backend("subprocess", sandbox_config=SandboxConfig()), SubprocessSandboxBackend)
    with pytest.raises(ValueError) as caught:
        calute.get_backend("x", SandboxConfig())
    assert str(caught.value) == f"Unknown sandbox backend 'x'. Available backends: {', '.join(calute.list_backends())}"

    class Other:
        def __init__(self, sandbox_config):
            self.config = sandbox_config

    calute.register_backend("other", list)
    calute.register_backend("other", Other)
    config = SandboxConfig()
    assert calute.get_backend("other", config).config is config and "other" in calute.list_backends()
    assert "other" not in xerxes.list_backends()
    calute._registry._own.pop("other")
    assert calute.install() is False  # there is no real package here


def test_contract_capabilities():
    found = backend(sandbox_timeout=7.0, sandbox_memory_limit_mb=64).get_capabilities()
    assert found == {
        "backend": "subprocess",
        "available": True,
        "isolation_level": "process",
        "filesystem_isolation": True,
        "network_isolation": True,
        "memory_limit_mb": 64,
        "timeout": 7.0,
    }
    assert backend(sandbox_network_access=True).get_capabilities()["network_isolation"] is False
    assert backend().is_available() is True


def test_contract_errors(box):
    quick = backend(sandbox_timeout=0.5)
    assert failure(quick, tools.sleeps) == "Subprocess sandbox execution of tool 'sleeps' timed out after 0.5s"
    assert failure(box, tools.ends, how="x") == "Tool 'ends' raised KeyError inside subprocess sandbox: 'x'"
    assert failure(box, tools.ends, how="crash").startswith(
        "Subprocess sandbox execution of tool 'ends' failed (exit -11): "
    )
    text = failure(box, tools.a_lock)
    assert text.startswith("Failed to deserialise subprocess sandbox result for tool 'a_lock': ")
    assert "result['lock'][0]" in text and "cannot leave the box" in text


def test_contract_values(box):
    for value in ((1, {2}), {1: b"\xff"}, datetime.date(2026, 3, 1), pathlib.Path("/x")):
        found = box.execute("identity", tools.identity, {"x": value})
        assert found == value and type(found) is type(value)


def test_contract_results_of_xerxes_are_json():
    made = xerxes.get_backend("subprocess", xerxes.SandboxConfig())
    for value, expected in (((1, (2,)), [1, [2]]), ({1: {3}}, {"1": [3]}), (b"\xff", b"\xff"), (None, None)):
        assert made.execute("identity", tools.identity, {"x": value}) == expected
    assert failure(made, tools.ends, how="exit 3").startswith(
        "Subprocess sandbox execution of tool 'ends' failed (exit 3): "
    )
    assert failure(made, tools.a_lock).startswith("Failed to deserialise subprocess sandbox result for tool 'a_lock'")


def test_contract_values_of_the_standard_library(box):
    for value in (collections.deque([1], 3), collections.Counter("aab"), collections.OrderedDict(b=1, a=2), range(3, 9, 2),
                  fractions.Fraction(1, 3), slice(1, None), 2 + 1j, frozenset([1]), collections.defaultdict(list, a=[1])):  # fmt: skip
        found = box.execute("identity", tools.identity, {"x": value})
        assert found == value and type(found) is type(value)
    found = box.execute("identity", tools.identity, {"x": FileNotFoundError(2, "no", "/x")})
    assert type(found) is FileNotFoundError and found.filename == "/x"


def test_contract_times_names_and_logs(box, caplog):
    assert backend(sandbox_timeout=None).execute("identity", tools.identity, {"x": 1}) == 1
    for given in (0, -1.5):
        with pytest.raises(RuntimeError) as caught:
            backend(sandbox_timeout=given).execute("it's", tools.identity, {"x": 1})
        assert str(caught.value) == f"Subprocess sandbox execution of tool \"it's\" timed out after {given}s"
    with caplog.at_level(logging.DEBUG, "callbox.compat"):
        box.execute("x\n", tools.identity, {"x": 1})
    assert "Subprocess sandbox executing tool 'x\\n'" in [record.getMessage() for record in caplog.records]
    with pytest.raises(ValueError, match=r"Unknown sandbox backend 'x'. Available backends: docker, subprocess"):
        calute.get_backend("x", SandboxConfig())


def test_contract_exit_with_a_text(box):
    text = failure(box, tools.exits, code="no more\nof this")
    assert text == "Subprocess sandbox execution of tool 'exits' failed (exit 1): no more\nof this"
    assert failure(box, tools.exits, code=3).endswith("failed (exit 3): it ended instead of returning")


@pytest.mark.parametrize("how", ["garbage", "no json", "no tag", "half"])
def test_contract_text_for_a_forged_reply(box, how):
    assert failure(box, tools.forges, how=how).startswith(
        "Failed to deserialise subprocess sandbox result for tool 'forges': "
    )


def test_hints_for_a_neighbour_in_a_home_and_for_descriptors(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "home_tool.py").write_text("def f():\n    import home_neighbour\n")
    (tmp_path / "home_neighbour.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    home_tool = importlib.import_module("home_tool")
    made = backend()
    assert "No module named 'home_neighbour'" in failure(made, home_tool.f)
    assert "'home_neighbour' is not found" in caplog.text and "Policy(read=[...])" in caplog.text
    caplog.clear()
    failure(made, tools.reads, path="/proc/self/fd/77")
    assert "is the box's own" in caplog.text and "Policy" not in caplog.text


def test_what_a_configuration_opens(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.txt").write_text("mounted")
    settings = SandboxBackendConfig(mount_paths={str(tmp_path / "data"): "/data"}, env_vars={"NAMED": "yes"})
    made = backend(backend_config=settings)
    assert made.execute("reads", tools.reads, {"path": "/data/a.txt"}) == "mounted"
    assert "OSError" in failure(made, tools.writes, path="/data/b", text="x")
    assert made.execute("looks", tools.looks, {"port": 9})["environment"]["NAMED"] == "yes"
    settings.mount_readonly = False  # it is looked at again
    assert made.execute("writes", tools.writes, {"path": "/data/b", "text": "x"}) == "x"
    settings.extra_args["policy"] = Policy(read=[(tmp_path, "/all")])
    assert made.execute("reads", tools.reads, {"path": "/all/data/b"}) == "x"


# ---- The defects ----


def test_C1_prints_do_not_touch_the_result(box):
    assert box.execute("chatters", tools.chatters, {}) == "quiet"
    assert box.execute("dots", tools.says_nothing_but_dots, {}) == 5


def test_C2_the_environment_is_clean(box):
    found = box.execute("looks", tools.looks, {"port": 9})["environment"]
    assert SECRET not in found and len(found) < 15


def test_C3_memory_is_that_of_the_tree_and_not_address_space(box):
    assert box.execute("reserves", tools.reserves, {"megabytes": 600}) == 600 << 20
    text = failure(box, tools.allocates_in_children, children=4, megabytes=400)
    assert "failed (exit -9)" in text and "memory" in text
    assert backend(sandbox_memory_limit_mb=16).execute("identity", tools.identity, {"x": 1}) == 1
    for wrong in (-1, 0):
        with pytest.raises(ValueError):
            backend(sandbox_memory_limit_mb=wrong)
    assert "emory" in failure(backend(sandbox_memory_limit_mb=64), tools.allocates, megabytes=600)


def test_C4_nothing_of_a_result_is_run_in_the_agent(box, tmp_path):
    mark = tmp_path / "escaped"
    assert "cannot leave the box" in failure(box, tools.evil, mark=str(mark))
    text = failure(box, tools.evil_reply, mark=str(mark))
    assert text.startswith("Failed to deserialise subprocess sandbox result for tool 'evil_reply': ")
    assert not mark.exists()


def test_C5_a_timeout_leaves_no_orphans():
    assert "timed out after 1.0s" in failure(backend(sandbox_timeout=1.0), tools.leaves_children, mark="7905")
    until(lambda: not processes(b"7905"))


def test_C6_a_background_child_that_holds_stdout(box):
    assert box.execute("leaves", tools.leaves_children, {"mark": "7906", "then": "return"}) == "finished"
    until(lambda: not processes(b"7906"))


def test_C7_async_tools_and_the_event_loop(box):
    assert box.execute("add_later", tools.add_later.fn, {"a": 1}) == 2

    async def on_the_loop():
        ticks = 0
        waiting = asyncio.ensure_future(box.execute("sleeps", tools.sleeps, {"seconds": 0.5}))
        while not waiting.done():
            ticks += 1
            await asyncio.sleep(0.01)
        router = SandboxRouter(backend=box)
        return ticks, await router.execute_in_sandbox("add_later", tools.add_later.fn, {"a": 2})

    ticks, value = asyncio.run(on_the_loop())
    assert ticks > 5 and value == 3


def test_C7_a_cancelled_call_ends(tmp_path):
    started = tmp_path / "started"
    made = backend(sandbox_timeout=500.0, working_directory=str(tmp_path))

    async def cancelled():
        task = asyncio.ensure_future(made.execute("m", tools.marks_and_sleeps, {"path": str(started)}))
        while not started.exists():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(cancelled(), 60))


def test_C8_an_exit_is_told_as_such(box):
    for how, code in (("exit", 0), ("_exit", 0), ("exit 3", 3), ("_exit 3", 3)):
        text = failure(box, tools.ends, how=how)
        known = f"Subprocess sandbox execution of tool 'ends' failed (exit {code}): "
        assert text.startswith(known) and text != known


def test_contract_text_of_a_failed_process_is_what_it_said(box):
    known = "Subprocess sandbox execution of tool 'ends' failed "
    assert failure(box, tools.ends, how="_exit 3 and say") == known + "(exit 3): err"
    text = failure(box, tools.ends, how="crash and say")
    assert text.startswith(known + "(exit -11): ") and text.count("err") == 1


def test_C9_closures_and_functions_of_the_main_script(box, tmp_path):
    assert box.execute("closure", tools.make_closure(40), {"x": 2}) == 42
    done = agent(tmp_path, """
        from callbox.compat.calute import SandboxConfig, SubprocessSandboxBackend
        def tool(x):
            return helper(x) * 2
        def helper(x):
            return x + 1
        print(SubprocessSandboxBackend(SandboxConfig()).execute("tool", tool, {"x": 1}))
    """)  # fmt: skip
    assert (done.stdout, done.stderr) == ("4\n", "")
    with pytest.raises(RuntimeError) as caught, open(os.devnull) as held:
        backend().execute("closure", lambda: held, {})
    assert "cannot be sent into a box" in str(caught.value)


def test_C10_the_working_directory_hijacks_nothing(tmp_path):
    for name in ("base64", "pickle", "json", "asyncio", "random"):
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('hijacked by {name}')\n")
    made = backend(working_directory=str(tmp_path))
    assert made.execute("uses", tools.uses_base64, {}) == "aGk="
    assert made.execute("identity", tools.identity, {"x": (1,)}) == (1,)


def test_C11_network_and_files_are_closed_unless_asked_for(box):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = box.execute("looks", tools.looks, {"port": port})
        assert not found["connected"] and "/etc/shadow" not in found["open"]
        found = backend(sandbox_network_access=True).execute("looks", tools.looks, {"port": port})
        assert found["connected"] and "/etc/shadow" not in found["open"]


def test_C12_memory_of_the_agent_for_a_large_result(tmp_path):
    done = agent(tmp_path, """
        import resource, compat_tools
        from callbox.compat.calute import SandboxConfig, SubprocessSandboxBackend
        box = SubprocessSandboxBackend(SandboxConfig(sandbox_memory_limit_mb=1024))
        box.execute("text_of", compat_tools.text_of, {"n": 1})
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        size = 100_000_000
        assert len(box.execute("text_of", compat_tools.text_of, {"n": size})) == size
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / size)
    """)  # fmt: skip
    assert done.stderr == ""
    assert float(done.stdout) < 2.2  # times the result; it was 4.2


def test_C13_a_tool_cannot_kill_the_agent(tmp_path):
    done = agent(tmp_path, """
        import os, compat_tools
        from callbox.compat.calute import SandboxConfig, SubprocessSandboxBackend
        os.setpgrp()
        box = SubprocessSandboxBackend(SandboxConfig())
        print(box.execute("kills", compat_tools.kills, {"pid": os.getpid()}))
    """)  # fmt: skip
    assert (done.stdout, done.returncode) == ("alive\n", 0)


def test_C14_the_search_path_of_the_moment(box, tmp_path, monkeypatch):
    (tmp_path / "found_late.py").write_text("import found_later\ndef give(x):\n    return found_later.BASE + x\n")
    (tmp_path / "found_later.py").write_text("BASE = 40\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("found_late")
    assert box.execute("give", module.give, {"x": 2}) == 42
    # A path that is added between two calls of the same function.
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "found_last.py").write_text("VALUE = 7\n")

    def late():
        import found_last

        return found_last.VALUE

    assert "ModuleNotFoundError" in failure(box, late)
    monkeypatch.syspath_prepend(str(tmp_path / "more"))
    assert box.execute("late", late, {}) == 7


def test_C15_a_missing_working_directory(tmp_path):
    made = backend(working_directory=str(tmp_path / "missing"))
    text = failure(made, tools.where)
    assert text.startswith("Subprocess sandbox execution of tool 'where' failed (exit -1): ") and "missing" in text
    (tmp_path / "missing").mkdir()
    assert made.execute("writes", tools.writes, {"path": "file", "text": "t"}) == "t"
    assert not (tmp_path / "missing" / ".envrc").exists()


def test_many_threads_may_share_a_backend(box):
    import concurrent.futures

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        made = [pool.submit(box.execute, "doubled", tools.doubled, {"x": n}) for n in range(40)]
        assert [item.result() for item in made] == [2 * n for n in range(40)]
