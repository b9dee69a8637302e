# SPDX-License-Identifier: MIT
"""What a function tells while it runs, and to whom."""

import functools
import math
import time

import pytest

import callbox
from callbox import Toolbox, _channel, run, run_python


def steps(count: int, of: int, then: float = 0) -> float:
    import time

    started = time.monotonic()
    for step in range(count):
        callbox.progress(step + 1, of, f"step {step + 1}")
    passed = time.monotonic() - started
    time.sleep(then)
    return passed


def unknown_total() -> None:
    callbox.progress(1, None)
    callbox.progress(2)
    callbox.progress(3, 0, 5)


def log_a_number() -> None:
    callbox.log(5)
    callbox.log(None, "error")


@pytest.fixture(scope="module")
def tools():
    return Toolbox([steps, unknown_total, log_a_number])


def listen(tools, name, **arguments):
    told = []
    result = tools.call_sync(name, arguments, on_progress=lambda *what: told.append(what))
    assert result.ok, result.error
    return told, result.output


def test_few_steps_are_all_told(tools):
    told, _ = listen(tools, "steps", count=20, of=20)
    assert [done for done, _, _ in told] == list(range(1, 21))


@pytest.mark.parametrize("of", [700_000, 0, 1])
def test_more_steps_than_anybody_can_follow(tools, of):
    """With a known total, an unknown one, and one that is always reached. The last one is told."""
    told, passed = listen(tools, "steps", count=700_000, of=of)
    assert told[0] == (1, of, "step 1") and told[-1] == (700_000, of, "step 700000")
    assert len(told) <= 2 * _channel.PROGRESS_RATE + passed * _channel.PROGRESS_RATE


def test_the_end_of_a_known_total_is_told_at_once(tools):
    told = []

    def ended(done, total, text):
        if done == total:
            told.append(text)
            raise KeyboardInterrupt

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        tools.call_sync("steps", {"count": 5000, "of": 5000, "then": 20}, on_progress=ended)
    assert told == ["step 5000"] and time.monotonic() - started < 20


def test_a_total_that_is_not_known(tools):
    told, _ = listen(tools, "unknown_total")
    assert told == [(1, 0, ""), (2, 0, ""), (3, 0, "5")]


def test_whatever_is_logged_is_a_text(tools):
    told = []
    assert tools.call_sync("log_a_number", on_log=lambda *what: told.append(what)).ok
    assert told == [("info", "5"), ("error", "None")]


@pytest.mark.parametrize("wrong", [-1, math.nan, math.inf, -math.inf, 10**400])
def test_amounts_are_finite_and_not_below_zero(wrong):
    for amounts in ((wrong,), (1, wrong)):
        with pytest.raises(ValueError, match="must be a finite number, 0 or above"):
            callbox.progress(*amounts)


@pytest.mark.parametrize("wrong", ["1", [1]])
def test_amounts_are_numbers(wrong):
    with pytest.raises(TypeError, match="must be a number"):
        callbox.progress(wrong)


async def wait(*_):
    pass


class Waiting:
    async def __call__(self, *_):
        pass


@pytest.mark.parametrize("name", ["on_output", "on_errors", "on_progress", "on_log"])
@pytest.mark.parametrize("listener", [wait, functools.partial(wait, 1), Waiting()])
def test_a_listener_that_nobody_would_wait_for_is_refused(tools, name, listener):
    with pytest.raises(TypeError, match=f"{name} is an async function"):
        tools.call_sync("unknown_total", **{name: listener})
    with pytest.raises(TypeError, match=f"{name} must be a function, not str"):
        tools.call_sync("unknown_total", **{name: "print"})
    if name in ("on_output", "on_errors"):
        for call in (run, run_python):
            with pytest.raises(TypeError, match=f"{name} is an async function"):
                call("1", **{name: listener})


def huge() -> list:
    return [10**6000, {"a": -(10**6000)}, 7]


def test_a_result_of_huge_numbers_can_be_shown():
    result = Toolbox([huge]).call_sync("huge")
    assert result.output[0] == 10**6000
    assert repr(result) == "<Result of huge: ok, [<int of 19932 bits>, {'a': <int of 19932 bits>}, 7]>"
