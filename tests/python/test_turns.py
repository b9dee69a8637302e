# SPDX-License-Identifier: MIT
"""What callbox does in one turn of an event loop is bounded."""

import asyncio
import copy
import gc
import pickle
import weakref

import pytest

from callbox import Toolbox, _turns
from callbox._turns import MOST, Turns, turns_of


def add(a: int, b: int) -> int:
    return a + b


@pytest.fixture(scope="module")
def tools():
    return Toolbox([add])


class Counted:
    """Turns of the running loop, and who came in which."""

    def __init__(self):
        self.turn, self.seen = 0, []
        asyncio.get_running_loop().call_soon(self.next)

    def next(self):
        self.turn += 1
        asyncio.get_running_loop().call_soon(self.next)

    def note(self, who):
        self.seen.append((self.turn, who))

    def most(self):
        turns = [turn for turn, _ in self.seen]
        return max(map(turns.count, turns))


def test_those_who_wait_come_in_their_order_and_so_many_in_a_turn():
    async def main():
        turns, counted = Turns(), Counted()

        async def one(n):
            await turns.wait()
            counted.note(n)

        await asyncio.gather(*[one(n) for n in range(100)])
        return counted

    counted = asyncio.run(main())
    assert [who for _, who in counted.seen] == list(range(100))
    assert counted.most() <= MOST


def test_ends_and_starts_share_a_turn():
    async def main():
        turns, counted = Turns(), Counted()
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in range(50)]
        for n, future in enumerate(futures):
            future.add_done_callback(lambda done: counted.note(done.result()))
            turns.settle(future, n)
        await turns.wait()
        assert all(future.done() for future in futures)
        return counted

    counted = asyncio.run(main())
    assert [who for _, who in counted.seen] == list(range(50)) and counted.most() <= MOST


def test_who_was_cancelled_takes_no_turn():
    async def main():
        turns = Turns()
        tasks = [asyncio.ensure_future(turns.wait()) for _ in range(20 * MOST)]
        await asyncio.sleep(0)
        for task in tasks[MOST:-1]:
            task.cancel()
        await asyncio.wait_for(tasks[-1], 10)
        return [task.cancelled() for task in await asyncio.gather(*map(done, tasks))]

    async def done(task):
        await asyncio.wait([task])
        return task

    assert asyncio.run(main()) == [False] * MOST + [True] * (19 * MOST - 1) + [False]


def test_each_loop_has_its_own_and_takes_them_along():
    async def main():
        return weakref.ref(turns_of(asyncio.get_running_loop()))

    known = [asyncio.run(main()) for _ in range(3)]
    gc.collect()
    assert len(_turns._turns) <= 1 and sum(turns() is not None for turns in known) <= 1


def test_many_calls_at_once_leave_the_loop_its_turns(tools, monkeypatch):
    async def main():
        counted, original = Counted(), tools._start

        def start(*particulars):
            counted.note("start")
            return original(*particulars)

        monkeypatch.setattr(tools, "_start", start)
        results = await asyncio.gather(*[tools.call("add", {"a": n, "b": 1}) for n in range(100)])
        assert [result.output for result in results] == list(range(1, 101))
        return counted

    counted = asyncio.run(main())
    assert len(counted.seen) == 100 and counted.most() <= MOST


def test_calls_that_are_cancelled_before_their_turn_never_start(tools):
    async def main():
        tasks = [asyncio.ensure_future(tools.call("add", {"a": n, "b": 1})) for n in range(4 * MOST)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in done)
        return (await tools.call("add", {"a": 1, "b": 2})).output

    assert asyncio.run(main()) == 3


# ---- Reports that are written when somebody asks for them ----


def test_a_report_can_be_copied_and_sent_before_it_was_read(tools):
    for copied in (copy.copy, copy.deepcopy, lambda result: pickle.loads(pickle.dumps(result))):
        result = tools.call_sync("add", {"a": 1, "b": 2}, call_id="this one")
        same = copied(result)
        assert same.output == 3 and same.report.id == "this one"
        assert same.report.json == result.report.json and same.report.ok


def test_a_report_outlives_its_toolbox():
    result = Toolbox([add]).call_sync("add", {"a": 1, "b": 2})
    gc.collect()
    assert result.report.ok and result.report.guarantees and result.report.json["tool"]["name"] == "add"
