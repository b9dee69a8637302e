# SPDX-License-Identifier: MIT
"""Functions that a box cannot import: closures, lambdas and what a script has itself."""

import functools
import pickle
import subprocess
import sys
import textwrap

import pytest

from callbox import CallboxError, Tool, Toolbox, _by_value


def call(function, **arguments):
    result = Toolbox([Tool(function, name="f")]).call_sync("f", arguments)
    assert result.ok, (result.error, result.traceback)
    return result.output


def test_closures_lambdas_and_recursion():
    def make(base, *, step=2):
        def even(n: int) -> bool:
            return n == 0 or odd(n - 1)

        def odd(n: int) -> bool:
            return n != 0 and even(n - 1)

        def f(n: int, more: int = step, *, last: int = 5) -> list:
            """Says it."""
            return [base + n, more, last, even(n), f.__doc__]

        return f

    assert call(make(40), n=2) == [42, 2, 5, True, "Says it."]
    assert call(lambda x: x + 1, x=1) == 2
    assert call(functools.partial(make(1), more=9), n=1) == [2, 9, 5, False, "Says it."]


def test_generators_coroutines_and_late_cells():
    async def f(n: int):
        def numbers():
            yield from range(n)

        return [await g(item) for item in numbers()]

    async def g(item):
        return later * item

    later = 3  # after both were made
    assert call(f, n=3) == [0, 3, 6]


def test_what_cannot_go_is_said():
    with open(__file__, encoding="utf-8") as held, pytest.raises(CallboxError) as caught:
        Toolbox([Tool(lambda: held, name="f")])
    assert caught.value.where == "f" and "cannot be sent by value either" in caught.value.text


SCRIPT = textwrap.dedent("""
    from __future__ import annotations
    import abc, collections, dataclasses, enum, functools, json, math, sys
    from typing import List, NamedTuple, NewType, Optional, TypeVar
    from callbox import Toolbox, tool
    from callbox.compat.calute import SandboxConfig, SubprocessSandboxBackend
    from callbox.compat.jeevesagent import InProcessToolHost, SubprocessSandbox

    T = TypeVar("T")
    Number = NewType("Number", int)
    RATES = {"a": 2}
    count = 0

    class Color(enum.Enum):
        RED = 1
        BLUE = "b"

        def title(self):
            return self.name.title()

    class Bits(enum.IntFlag):
        A = 1
        B = 2

    @dataclasses.dataclass(order=True)
    class Point:
        x: int
        y: List[int] = dataclasses.field(default_factory=list)
        color: Optional[Color] = None

        @property
        def twice(self):
            return self.x * 2

        @functools.cached_property
        def thrice(self):
            return self.x * 3

        @classmethod
        def of(cls, x):
            return cls(x)

        @staticmethod
        def origin():
            return Point(0)

    class Pair(NamedTuple):
        left: int
        right: int = 7

    class Base(abc.ABC):
        __slots__ = ("n",)

        def __init__(self, n):
            self.n = n

        @abc.abstractmethod
        def name(self): ...

    class Derived(Base):
        def __init__(self, n):
            super().__init__(n + 1)

        def name(self):
            return f"{type(self).__name__} {self.n}"

    @functools.lru_cache(maxsize=None)
    def fib(n):
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    def helper(x):
        global count
        count += 1
        return math.floor(x) * RATES["a"]

    @tool
    def work(point: Point, color: Color = Color.RED) -> Point:
        helper(1.5)
        made = Point(helper(point.x + 0.5) + count, [point.twice, Pair(1).right, Point.of(3).x, Point.origin().x])
        made.color = color if Color("b").title() == "Blue" and Bits.A | Bits.B == 3 else None
        made.y.append(len(Derived(4).name()))
        return made

    def plain(x: T, n: Number = 0) -> T:
        assert fib(30) == 832040 and Point(2).thrice == 6
        return [x, helper(x), json.dumps(Point(1, [2]).y), [f.name for f in dataclasses.fields(Point)]]

    print(Toolbox([work]).call_sync("work", {"point": {"x": 3}, "color": 1}).output)
    print(SubprocessSandboxBackend(SandboxConfig()).execute("plain", plain, {"x": 2}))
    import asyncio
    sandbox = SubprocessSandbox(InProcessToolHost([plain]))
    print(asyncio.run(sandbox.call("plain", {"x": Point(5).x})).output)
""")


def test_a_script_without_another_package(tmp_path):
    (tmp_path / "agent.py").write_text(SCRIPT)
    done = subprocess.run([sys.executable, "agent.py"], cwd=tmp_path, text=True, capture_output=True, check=False)
    assert done.stderr == "" and done.stdout.splitlines() == [
        "Point(x=8, y=[6, 7, 3, 0, 9], color=<Color.RED: 1>)",
        "[2, 4, '[2]', ['x', 'y', 'color']]",
        "[5, 10, '[2]', ['x', 'y', 'color']]",
    ]


def test_things_by_name_stay_so():
    raw = _by_value.dumps([textwrap.dedent, pickle.Pickler, subprocess.Popen])
    assert pickle.loads(raw) == [textwrap.dedent, pickle.Pickler, subprocess.Popen] and len(raw) < 200
