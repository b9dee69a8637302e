# SPDX-License-Identifier: MIT
"""The drop-in in a real loomflow: its Agent, its types, a model that follows a script."""

import asyncio
import os
import tempfile

import anyio
import framework_tools as tools
import loomflow
from checks import boxed, main
from loomflow import Agent, ScriptedModel, ScriptedTurn, ToolCall
from loomflow.tools import InProcessToolHost, bash_tool

from callbox import Policy
from callbox.compat import loomflow as dropin
from callbox.compat.loomflow import FilesystemSandbox, OSSandbox, SubprocessExecutor, SubprocessSandbox

HOST = InProcessToolHost([tools.where_am_i, tools.fails, tools.sleeps, tools.later, tools.writes])


async def agent_calls(sandbox, tool, args):
    """What an Agent got from a tool that its model has called."""
    seen = []
    model = ScriptedModel([
        ScriptedTurn(text="", tool_calls=[ToolCall(tool=tool, args=args)]),
        ScriptedTurn(text="done"),
    ])  # fmt: skip
    agent = Agent("Use the tools.", model=model, tools=sandbox)

    @agent.after_tool
    async def after(call, result):
        seen.append(result)

    done = await agent.run("go")
    assert done.output == "done", done
    (result,) = seen
    assert type(result) is loomflow.ToolResult
    return result


def test_types_are_the_packages_own():
    for name in ("ConfigError", "Tool", "ToolCall", "ToolDef", "ToolResult", "tool"):
        assert getattr(dropin, name) is getattr(loomflow, name), name
    for name in ("InProcessToolHost", "ExecResult", "CodeExecutor"):
        assert getattr(dropin, name) is getattr(loomflow.tools, name), name


async def test_an_agent_calls_a_tool_in_a_box():
    result = await agent_calls(SubprocessSandbox(HOST), "where_am_i", {"x": 21})
    assert result.ok
    boxed(result.output)
    assert (await agent_calls(SubprocessSandbox(HOST), "later", {"x": 1})).output == 2


async def test_an_agent_hears_of_failures():
    result = await agent_calls(SubprocessSandbox(HOST), "fails", {"how": "so"})
    assert (result.ok, result.error) == (False, "SubprocessSandbox: tool raised ValueError: so")
    result = await agent_calls(SubprocessSandbox(HOST, timeout_seconds=0.5), "sleeps", {"seconds": 600})
    assert result.error == "SubprocessSandbox: tool exceeded 0.5s"


async def test_cancelling_a_run_ends_the_tool():
    sandbox = SubprocessSandbox(HOST, timeout_seconds=600)
    task = asyncio.ensure_future(agent_calls(sandbox, "sleeps", {"seconds": 600}))
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait_for(asyncio.wait([task]), 30)
    assert task.done()


def test_an_agent_on_trio():
    async def calls():
        result = await agent_calls(SubprocessSandbox(HOST), "where_am_i", {"x": 21})
        boxed(result.output)
        with anyio.move_on_after(1) as scope:
            await SubprocessSandbox(HOST, timeout_seconds=600).call("sleeps", {"seconds": 600})
        assert scope.cancelled_caught
        return (await SubprocessExecutor().run("echo $((6 * 7))", language="bash")).stdout

    assert anyio.run(calls, backend="trio") == "42\n"


async def test_its_shell_runs_by_the_executor():
    with tempfile.TemporaryDirectory() as place:
        shell = bash_tool(place, executor=SubprocessExecutor(cwd=place))
        said = await shell.execute({"command": "pwd; cat /etc/shadow"})
        assert f"\n{os.path.realpath(place)}\n" in said and "No such file" in said and "[exit=1]" in said


async def test_denials_and_lists():
    result = await agent_calls(FilesystemSandbox(HOST, roots=["/srv"]), "writes", {"path": "/etc/x"})
    assert result.denied and "resolves outside the allowed roots" in result.reason
    assert len(await SubprocessSandbox(HOST).list_tools()) == 5


async def test_a_decorated_tool_of_a_module():
    import decorated_tools_loomflow as decorated_tools

    sandbox = SubprocessSandbox(InProcessToolHost([decorated_tools.triple]))
    assert (await agent_calls(sandbox, "triple", {"x": "7"})).output == 21


async def test_a_directory_may_be_opened():
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        for sandbox in (
            OSSandbox(HOST, roots=[place]),
            SubprocessSandbox(HOST, policy=Policy(write=[place])),
        ):
            assert (await agent_calls(sandbox, "writes", {"path": f"{place}/a"})).output == "written"


async def test_code_in_a_box():
    done = await dropin.SubprocessExecutor().run("open('out/a', 'w').write('b')\nprint(6 * 7)")
    assert type(done) is loomflow.tools.ExecResult
    assert (done.stdout, done.returncode, done.artifacts) == ("42\n", 0, {"a": b"b"})


def test_mistakes_are_the_packages_own():
    try:
        SubprocessSandbox(object())
    except loomflow.ConfigError as error:
        assert "Got object" in str(error)
    else:
        raise AssertionError("it was taken")


if __name__ == "__main__":
    main(globals())
