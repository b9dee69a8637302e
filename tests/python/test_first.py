# SPDX-License-Identifier: MIT
"""First calls start an interpreter of their own, and later ones are forked: nobody sees a difference."""

import itertools
import json
import math
import os
import random
import textwrap
import time

import pytest

from callbox import Policy, Toolbox, _encode, _once

DIRECT, FORKED = 2, 3  # pids in a box; see box/fork.c

TOOLS = textwrap.dedent("""
    from __future__ import annotations
    import asyncio, atexit, dataclasses, datetime, enum, os, sys
    from typing import Any, Dict, List, Optional
    import callbox

    print("while it is loaded")
    READ = sys.stdin.read()
    LEFT = open("/tmp/left", "w") if callbox._late.boxed else None

    class Colour(enum.Enum):
        RED = 1

    @dataclasses.dataclass
    class Point:
        x: int
        y: float = 0.5

    def pid() -> int: return os.getpid()
    def plain(a: int, b: str = "x", *, c: bool = True) -> dict: return {"a": a, "b": b, "c": c}
    def hinted(when: datetime.date, point: Point, colour: Colour, some: Optional[List[int]] = None) -> list:
        return [when, point, colour, some]
    def loose(a, b: Any = None, **more): return [a, b, more]
    def positional(a: int, /, *rest: int) -> list: return [a, *rest]
    def number(a: float) -> float: return a
    def same(a: Any) -> Any: return a
    def large(n: int) -> str: return "x" * n
    def odd() -> tuple: return (1, {2}, b"3", 1 << 80, float("inf"), "\\ud800", {"$callbox": 1}, {1: 2})
    def prints(a: int) -> int:
        print("out", a); sys.stderr.write("err\\n"); return a
    def fails(a: int) -> int: raise ValueError(f"no {a}")
    def exits(a: int) -> int: sys.exit(a)
    def cannot() -> object: return object()
    async def later(a: int) -> int:
        await asyncio.sleep(0)
        return a
    def tells() -> int:
        callbox.progress(1, 2, "half"); callbox.log("said"); return 1
    def ends() -> int:
        atexit.register(print, "at the end"); LEFT.write("unwritten"); return 1
    def loaded() -> str: return READ
    def argv() -> list: return sys.argv
""")

CALLS = {
    "plain": [{"a": 1}, {"a": 2, "b": "\u00fc\n\"", "c": False}, {"a": 3.0}],
    "hinted": [{"when": "2026-01-02", "point": {"x": 1}, "colour": 1, "some": [1, 2]}],
    "loose": [{"a": 1}, {"a": [None, 1.5], "b": {"c": []}, "more": 5}],
    "positional": [{"a": 1, "rest": [2, 3]}],
    "number": [{"a": 1}, {"a": 1.5}, {"a": 1e300}],
    "same": [{"a": value} for value in (None, True, "", [[], {}], {"a": {"b": [1, -1, 0.1, "\u2028\x7f\x01"]}}, "\u00e4" * 3000)],
    "large": [{"n": 10}, {"n": 70_000}],
    "odd": [{}], "prints": [{"a": 1}], "fails": [{"a": 1}], "exits": [{"a": 0}, {"a": 3}], "cannot": [{}],
    "later": [{"a": 1}], "tells": [{}], "ends": [{}], "loaded": [{}], "argv": [{}],
}  # fmt: skip

numbers = itertools.count()


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    place = tmp_path_factory.mktemp("first")
    (place / "first_tools.py").write_text(TOOLS)
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(place)
    with open(os.devnull, encoding="utf-8") as nothing:
        patch.setattr("sys.stdin", nothing)
        yield __import__("first_tools")
        patch.undo()


def toolbox(module):
    """For which no box is ready, nor anything to fork one from."""
    functions = [value for name, value in vars(module).items() if name in ("pid", *CALLS)]
    return Toolbox(functions, policy=Policy(environment={"NUMBER": f"{os.getpid()}-{next(numbers)}"}))


def until_forked(box):
    end = time.monotonic() + 60
    while box.call_sync("pid").output != FORKED:
        assert time.monotonic() < end, "nothing is forked"
        time.sleep(0.02)


def told(result):
    return (result.ok, repr(result.output), result.error, result.traceback, result.stdout, result.stderr, result.report.reason)


def test_first_calls_are_direct_and_others_are_forked(module):
    box = toolbox(module)
    assert box.call_sync("pid").output == DIRECT
    until_forked(box)
    assert [box.call_sync("pid").output for _ in range(5)] == [FORKED] * 5


@pytest.mark.parametrize("name", CALLS)
def test_nobody_sees_a_difference(module, name):
    forked = toolbox(module)
    until_forked(forked)
    for arguments in CALLS[name]:
        first = toolbox(module)
        heard = {box: [] for box in (first, forked)}
        results = [
            told(box.call_sync(name, arguments, on_progress=lambda *said, box=box: heard[box].append(said),
                               on_log=lambda *said, box=box: heard[box].append(said)))
            for box in (first, forked)
        ]  # fmt: skip
        assert results[0] == results[1] and heard[first] == heard[forked]
        assert bool(heard[first]) == (name == "tells")


# ---- JSON without json ----


def values(r, depth=0):
    kinds = [
        lambda: None, lambda: True, lambda: False, lambda: r.randrange(-(2**70), 2**70), lambda: r.randrange(100),
        lambda: r.uniform(-1e9, 1e9), lambda: r.choice([math.inf, -math.inf, 0.0, -0.0, 1e-320]),
        lambda: "".join(chr(r.randrange(1, 0x3000)) for _ in range(r.randrange(20))), lambda: r.choice(["$callbox", "\ud800", '"\\/\b', ""]),
        lambda: b"x", lambda: (1,),
    ]  # fmt: skip
    if depth < 4:
        kinds += [
            lambda: [values(r, depth + 1) for _ in range(r.randrange(4))],
            lambda: {r.choice(["a", "b", "$callbox", "\u00fc", 1, None]): values(r, depth + 1) for _ in range(r.randrange(4))},
        ] * 4
    return r.choice(kinds)()


def test_what_is_written_without_an_encoder_is_what_it_would_write():
    r, plain = random.Random(1), 0
    for _ in range(5000):
        value = values(r)
        text = _once.write(value)
        if text is not None:
            plain += 1
            assert text.decode() == _encode.dumps(value)
            assert repr(_once.read(text.decode())) == repr(value)
    assert 1000 < plain < 4500


@pytest.mark.parametrize("value", [(1,), {1}, b"", {"$callbox": 1}, {1: 2}, "\ud800", 2**63, float("nan"), 1j, "x" * 70_000, True.__class__])
def test_what_is_not_plain_is_left_to_others(value):
    for one in (value, [value], {"a": [value]}):
        assert _once.write(one) is None
    deep = []
    for _ in range(40):
        deep = [deep]
    assert _once.write(deep) is None


@pytest.mark.parametrize("text", ["", "{", '{"a": 1} x', "[1,]", "nul", "'a'", '"\x01"'])
def test_what_is_no_json_is_an_error(text):
    with pytest.raises(ValueError):
        _once.read(text)
    with pytest.raises(ValueError):
        json.loads(text)


def test_what_takes_its_arguments_as_they_are():
    def plain(a: int, b: "str" = "", *, c=None, d: "Any" = None, e: object = 1): ...  # noqa: F821
    def positional(a, /): ...
    def many(*a): ...
    def named(**a): ...
    def float_(a: float): ...
    def ours(a: "Policy"): ...

    class Callable:
        def __call__(self, a: int): ...

    assert _once.takes(plain, {"a": 1, "b": "x", "c": [], "d": {}, "e": None})
    for function, arguments in ((plain, {"a": "1"}), (plain, {"a": True}), (plain, {"x": 1}), (positional, {"a": 1}), (many, {"a": []}),
                                (named, {"a": 1}), (float_, {"a": 1}), (ours, {"a": 1}), (Callable(), {"a": 1}), (len, {"obj": ""})):  # fmt: skip
        assert not _once.takes(function, arguments)
