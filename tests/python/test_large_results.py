# SPDX-License-Identifier: MIT
"""Results that are large: they arrive, and what they cost the agent. CALLBOX_FULL=1: with 1 GB."""

import asyncio
import json
import os
import subprocess
import sys
import textwrap

import pytest

FULL = bool(os.environ.get("CALLBOX_FULL"))
SIZE = 1_000_000_000 if FULL else 128_000_000
PEAK = 2.2  # times the result

AGENT = textwrap.dedent("""
    import asyncio, json, os, sys
    import giving
    from callbox import Policy, Toolbox, Warden

    def peak(pid):
        with open(f"/proc/{pid}/status") as stream:
            return int(next(line for line in stream if line.startswith("VmHWM")).split()[1]) * 1024

    if sys.argv[1] == "array":
        import numpy

    what, n, how = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    limits = {"result": "4G", "memory": "8G", "wall": 300}
    heard = []
    with Warden() as warden:
        box = Toolbox([getattr(giving, what)], policy=Policy(limits=limits), warden=warden)

        def call(n):
            if how == "async":
                return asyncio.run(box.call(what, {"n": n}))
            listen = (lambda *said: heard.append(said)) if how == "listen" else None
            return box.call_sync(what, {"n": n}, on_progress=listen)

        assert call(100).ok
        before = peak("self"), peak(warden.pid)
        result = call(n)
        after = peak("self"), peak(warden.pid)
    assert result.ok, result.error
    assert giving.is_right(what, result.output, n)
    print(json.dumps({"agent": after[0] - before[0], "warden": after[1] - before[1], "heard": len(heard),
                      "descriptors": len(os.listdir("/proc/self/fd"))}))
""")

GIVING = textwrap.dedent("""
    import callbox

    def pattern(n):
        return (bytes(range(256)) * (n // 256 + 1))[:n]

    def data(n: int):
        callbox.progress(1)
        result = pattern(n)
        callbox.progress(2)
        return result

    def text(n: int):
        return "t" * n

    def pieces(n: int):
        return {"a": bytearray(n // 2), "b": [("x" * (n // 4), b"y" * (n // 4))]}

    def array(n: int):
        import numpy
        return numpy.arange(n // 8, dtype="<f8")

    def is_right(what, value, n):
        if what == "array":
            return value.shape == (n // 8,) and value[-1] == n // 8 - 1
        if what == "pieces":
            (x, y), = value["b"]
            return len(value["a"]) == n // 2 and len(x) == len(y) == n // 4
        return len(value) == n and (what == "text" or value[-1000:] == pattern(n)[-1000:])
""")


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    folder = tmp_path_factory.mktemp("agent")
    (folder / "giving.py").write_text(GIVING)
    (folder / "agent.py").write_text(AGENT)

    def run(what, size, how="sync"):
        done = subprocess.run([sys.executable, str(folder / "agent.py"), what, str(size), how],
                              stdout=subprocess.PIPE, text=True, check=True, timeout=600)  # fmt: skip
        return json.loads(done.stdout)

    return run


@pytest.mark.parametrize("what", ["data", "text", "pieces", "array"])
def test_a_large_result_costs_the_agent_little_more_than_itself(agent, what):
    if what == "array":
        pytest.importorskip("numpy", reason="numpy is not installed (Debian: python3-numpy)")
    cost = agent(what, SIZE)
    print(what, SIZE, cost)
    assert cost["agent"] < PEAK * SIZE
    if what in ("data", "array"):
        assert cost["agent"] < 1.1 * SIZE
    assert cost["warden"] < 8_000_000


def test_a_large_result_on_an_event_loop_and_beside_progress(agent):
    assert agent("data", SIZE // 4, "async")["agent"] < PEAK * SIZE / 4
    cost = agent("data", SIZE // 4, "listen")
    assert cost["agent"] < 1.2 * SIZE / 4 and cost["heard"] == 4


def test_what_is_beyond_the_limit_is_an_error_and_small(box):
    result = box.call_sync("gives_bytes", {"n": 20_000_000})
    assert not result.ok and "limits.result" in result.error
    assert len(json.dumps(result.report.json)) < 100_000


def test_the_repr_of_a_large_result_is_short(box):
    for output in (b"x" * 10**8, bytearray(10**6), "y" * 10**6, list(range(10**6)), [b"z" * 10**6], {"a": b"z" * 10**6}):
        result = box.call_sync("gives_bytes", {"n": 1})
        result.output = output
        assert len(repr(result)) < 300
    assert repr(box.call_sync("gives", {"what": "none"})) == "<Result of gives: ok, None>"


def test_no_descriptor_is_left_of_a_large_result(box):
    before = len(os.listdir("/proc/self/fd"))
    kept = [box.call_sync("gives_bytes", {"n": 1_000_000}) for _ in range(5)]
    kept.append(asyncio.run(box.call("gives_bytes", {"n": 1_000_000})))
    assert all(result.output == b"x" * 1_000_000 for result in kept)
    assert len(os.listdir("/proc/self/fd")) == before
