# SPDX-License-Identifier: MIT
"""The drop-ins in a program that runs on trio. Here is as much of trio as they use, with a loop that is not
asyncio's; tests/frameworks has the real one."""

import queue
import sys
import time
import types

import compat_tools as tools
import pytest
from test_run import processes, until

from callbox.compat.calute import SandboxConfig, SubprocessSandboxBackend
from callbox.compat.jeevesagent import InProcessToolHost, NoSandbox, SubprocessExecutor, SubprocessSandbox, Tool


class Cancelled(BaseException):
    pass


@types.coroutine
def suspend():
    yield


def make_trio():
    """A module, and its run(): one task, which is cancelled after some seconds, if that is asked for."""
    calls = queue.Queue()
    now = types.SimpleNamespace(running=False, shielded=False)

    class Event:
        is_set = False

        def set(self):
            self.is_set = True

        async def wait(self):
            while not self.is_set:
                await suspend()

    class CancelScope:
        def __init__(self, shield):
            self.shield = shield

        def __enter__(self):
            now.shielded = self.shield

        def __exit__(self, *_):
            now.shielded = False

    class Threads:
        @staticmethod
        async def run_sync(work):
            return work()

    def run(function, cancel_after=None):
        until_then = None if cancel_after is None else time.monotonic() + cancel_after
        now.running, task = True, function()
        try:
            task.send(None)
            while True:
                left = None if until_then is None else max(0, until_then - time.monotonic())
                try:
                    calls.get(timeout=60 if left is None or now.shielded else left)()
                    task.send(None)
                except queue.Empty:
                    assert until_then is not None and not now.shielded, "nobody has told of an end"
                    until_then = None
                    task.throw(Cancelled())
        except StopIteration as done:
            return done.value
        finally:
            now.running = False

    token = types.SimpleNamespace(run_sync_soon=calls.put)
    made = types.ModuleType("trio")
    made.lowlevel = types.SimpleNamespace(in_trio_run=lambda: now.running, current_trio_token=lambda: token)
    made.Event, made.CancelScope, made.RunFinishedError, made.to_thread = Event, CancelScope, RuntimeError, Threads
    made.run = run
    return made


@pytest.fixture
def trio(monkeypatch):
    made = make_trio()
    monkeypatch.setitem(sys.modules, "trio", made)
    return made


HOST = InProcessToolHost([tools.triple, tools.add_later, Tool("sleeps", "", tools.sleeps, {}), Tool("measure", "", tools.measure, {})])


def test_J30_calls_on_trio(trio):
    async def main():
        box = SubprocessSandbox(HOST)
        results = [await box.call("triple", {"x": 7}), await box.call("add_later", {"a": 1})]
        results.append(await box.call("measure", {"data": b"x" * 3_000_000}))
        results.append(await box.call("measure", {"data": 1}))
        code = await SubprocessExecutor().run("print(6 * 7)")
        value = await SubprocessSandboxBackend(SandboxConfig()).execute("identity", tools.identity, {"x": 1})
        inner = await NoSandbox(HOST).call("triple", {"x": 1})
        return [result.output for result in results], code.stdout, value, inner.output, results[-1].error

    outputs, stdout, value, inner, error = trio.run(main)
    assert outputs == [21, 2, 3_000_000, None] and (stdout, value, inner) == ("42\n", 1, 3)
    assert error.startswith("SubprocessSandbox: tool raised TypeError: ")


def test_J30_cancelling_on_trio_ends_the_call(trio):
    async def main():
        await SubprocessSandbox(HOST).call("sleeps", {"seconds": 7961})

    begin = time.monotonic()
    with pytest.raises(Cancelled):
        trio.run(main, cancel_after=1.0)
    assert time.monotonic() - begin < 20

    async def shell():
        await SubprocessExecutor().run("sleep 7962", language="sh")

    with pytest.raises(Cancelled):
        trio.run(shell, cancel_after=1.0)
    until(lambda: not processes(b"7962"))
