#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Calls from asyncio, 64 at once, of every kind: some large, some that crash, some that are cancelled.
Each result must be right, nothing may be left, and the event loop must never be kept waiting.

    soak_calls.py [CALLS [SEED]]

Where 64 boxes and others want the same processors, a thread has to wait for one: that is not what
keeps the loop. So the lag is measured, and what the kernel says that the loop's thread has waited for a
processor meanwhile is taken off; so is what others of this process have waited for one, as far as the
loop's thread slept, for they may have had the interpreter's lock; and so is the processor time in which
this program itself makes arguments and looks at results."""

import array
import asyncio
import base64
import collections
import ctypes
import gc
import os
import pathlib
import random
import re
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import soak_tools
from callbox import Policy, Toolbox, Warden

AT_ONCE = 64
BLOCKED = 0.020  # seconds
LONG = 5000  # calls, from which on the loop is held to that
TOOLS = ("add", "pair", "echo", "count", "numbers", "fails", "sleeps")


def resident(pid="self"):
    with open(f"/proc/{pid}/statm", encoding="ascii") as stream:
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def allocated():
    """Bytes that the C library has given out and not got back, in all its arenas. What it and Python
    keep for later is no leak, and depends on how calls happened to meet."""
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    with tempfile.NamedTemporaryFile() as file:
        stream = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
        libc.malloc_info(0, stream)
        libc.fclose(stream)
        said = file.read().decode()
    said = said[said.rindex("</heap>") :]  # the sums
    sizes = {(tag, kind): int(size) for tag, kind, size in re.findall(r'<(\w+) type="(\w+)"[^>]* ?size="(\d+)"', said)}
    free = sizes["total", "fast"] + sizes["total", "rest"]
    return sizes["system", "current"] - free + sizes["total", "mmap"]


def descriptors(pid="self"):
    return len(os.listdir(f"/proc/{pid}/fd"))


def descendants(pid):
    """Processes below one, by their parents."""
    parents = collections.defaultdict(list)
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                stat = pathlib.Path("/proc", name, "stat").read_text()
            except OSError:
                continue
            parents[int(stat.rpartition(")")[2].split()[1])].append(int(name))
    found, left = [], [pid]
    while left:
        below = parents.get(left.pop(), [])
        found += below
        left += below
    return len(found)


def waited():
    """Seconds for which the loop's thread could have run and had no processor, and for which others."""
    ours, others = 0, 0
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/schedstat", encoding="ascii") as stream:
                delay = int(stream.read().split()[1])
        except OSError:
            continue  # it has ended
        if int(task) == threading.get_native_id():
            ours = delay
        else:
            others += delay
    return ours / 1e9, others / 1e9


class Heart:
    """Beats on the loop, and notes how late: with and without what callbox is not to blame for."""

    def __init__(self):
        self.own = 0.0  # seconds of a processor
        self.lags, self.blocked = array.array("d"), array.array("d")
        self.task = asyncio.get_running_loop().create_task(self.beat())

    def state(self):
        return (time.monotonic(), time.thread_time(), self.own, *waited())

    async def beat(self):
        while True:
            before = self.state()
            due = time.monotonic() + 0.002
            await asyncio.sleep(0.002)
            lag = max(0.0, time.monotonic() - due)
            taken, worked, own, unserved, others = (now - then for now, then in zip(self.state(), before))
            slept = max(0.0, taken - worked - unserved)
            self.lags.append(lag)
            self.blocked.append(max(0.0, lag - unserved - own - max(0.0, min(slept, others))))

    def __enter__(self):
        self.own -= time.thread_time()

    def __exit__(self, *_):
        self.own += time.thread_time()

    def stop(self):
        self.lags, self.blocked = sorted(self.lags), sorted(self.blocked)


def quantiles(name, values):
    shares = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
    shown = [f"{word} {quantile(values, share) * 1000:.1f}" for word, share in shares.items()]
    return f"{name}: {', '.join(shown)}, most {values[-1] * 1000:.1f} ms"


def quantile(values, share):
    return values[min(len(values) - 1, int(len(values) * share))]


class Soak:
    def __init__(self, calls, seed, warden):
        self.calls, self.random = calls, random.Random(seed)
        self.warden = warden
        self.counts = collections.Counter()
        self.wrong = []
        self.box = Toolbox(
            [getattr(soak_tools, name) for name in TOOLS],
            policy=Policy(limits={"wall": 20}),
            warden=warden,
        )

    def own(self, work):
        """What this program does, not callbox."""
        with self.heart:
            return work()

    def check(self, good, what, result):
        self.counts[what] += 1
        if not self.own(good):
            self.wrong.append(f"{what}: {result!r} {result.report.text} {result.report.json}"[:3000])

    async def one(self, n):
        kind = self.random.random()
        call = self.box.call
        if kind < 0.45:
            result = await call("add", {"a": n, "b": 1}, call_id=f"c{n}")
            self.check(lambda: result.ok and result.output == n + 1 and result.report.id == f"c{n}", "add", result)
        elif kind < 0.55:
            result = await call("pair", {"n": n})
            self.check(lambda: result.ok and result.output == soak_tools.Pair(n, str(n)), "pair", result)
        elif kind < 0.62:
            data = self.own(lambda: self.random.randbytes(self.random.choice([10, 3000, 400_000, 2_000_000])))
            text = self.own(lambda: base64.b64encode(data).decode())
            result = await call("echo", {"data": text})
            self.check(
                lambda: result.ok and result.output == data and result.stdout == f"{len(data)}\n", "echo", result
            )
        elif kind < 0.66:
            items = self.own(lambda: list(range(self.random.choice([3, 60_000]))))
            result = await call("count", {"items": items})
            told = {"sum": self.own(lambda: sum(items)), "n": len(items)}
            self.check(lambda: result.ok and result.output == told, "count", result)
        elif kind < 0.70:
            result = await call("numbers", {"n": 70_000, "first": n})
            self.check(lambda: result.ok and result.output == list(range(n, n + 70_000)), "numbers", result)
        elif kind < 0.85:
            await self.failing(n)
        else:
            await self.cancelled(n)

    async def failing(self, n):
        how = self.random.choice(["crash", "exit", "memory", "raise"])
        result = await self.box.call("fails", {"how": how, "n": n})
        report = result.report
        good = {
            "crash": report.signal == "SIGSEGV",
            "memory": report.signal == "SIGKILL" and report.truncated is False and len(report.stdout) == 100_000,
            "exit": report.code == n % 100 + 1,
            "raise": result.error == f"KeyError: {n}" and "fails" in result.traceback,
        }[how]
        self.check(lambda: not result.ok and good, how, result)

    async def cancelled(self, n):
        large = self.random.random() < 0.2
        name, arguments = ("numbers", {"n": 70_000, "first": 0}) if large else ("sleeps", {"seconds": 10})
        task = asyncio.get_running_loop().create_task(self.box.call(name, arguments))
        await asyncio.sleep(self.random.choice([0, 0, 0.001, 0.01, 0.05]))
        task.cancel()
        try:
            result = await task
            self.check(lambda: result.ok and name == "numbers", "too late to cancel", result)
        except asyncio.CancelledError:
            self.counts["cancelled"] += 1

    async def worker(self, numbers):
        for n in numbers:  # shared: each takes the next
            await self.one(n)

    async def run(self):
        # What is made once, and kept: threads for what is large, interpreters that wait.
        self.heart = Heart()
        await asyncio.gather(*[self.one(n) for n in range(AT_ONCE)])
        self.heart.task.cancel()
        await self.settle()
        gc.collect()
        before = self.state()
        self.heart = heart = Heart()
        numbers = iter(range(self.calls))
        begin = time.monotonic()
        await asyncio.gather(*[self.worker(numbers) for _ in range(AT_ONCE)])
        taken = time.monotonic() - begin
        heart.task.cancel()
        await self.settle()
        gc.collect()
        after = self.state()
        heart.stop()
        return heart, taken, before, after

    async def settle(self):
        """Boxes of cancelled calls end a moment after their calls."""
        last, same = None, 0
        for _ in range(200):
            await asyncio.sleep(0.05)
            now = descendants(self.warden.pid), descriptors(self.warden.pid)
            same = same + 1 if now == last else 0
            last = now
            if same == 10:
                return

    def state(self):
        return {
            "descriptors": descriptors(),
            "threads": threading.active_count(),
            "tasks": len(asyncio.all_tasks()),
            "memory": resident(),
            "allocated": allocated(),
            "blocks of Python": sys.getallocatedblocks(),
            "warden's descriptors": descriptors(self.warden.pid),
            "warden's memory": resident(self.warden.pid),
            "warden's processes": descendants(self.warden.pid),
        }


def leaks(before, after, calls):
    """What has grown more than it can by itself. The warden keeps some boxes ready for each policy: on a
    machine that is busy it may not have made them all when the calls began."""
    allowed = {
        "descriptors": 0,
        "threads": 32,
        "tasks": 0,
        "memory": 256 << 20,  # what is kept for later, after some thousand large values
        "allocated": (2 << 20) + 100 * calls,
        "blocks of Python": 5000 + calls // 10,
        "warden's descriptors": 256,
        "warden's memory": 4 << 20,
        "warden's processes": 64,
    }
    return [f"{name}: {before[name]} -> {after[name]}" for name in before if after[name] - before[name] > allowed[name]]


def main():
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(10**6)
    slack = float(os.environ.get("CALLBOX_TEST_SLACK", "1"))
    with Warden() as warden:
        soak = Soak(calls, seed, warden)
        heart, taken, before, after = asyncio.run(soak.run())
    print(f"seed {seed}: {calls} calls in {taken:.1f} s, {dict(soak.counts)}")
    print(quantiles("lag of the loop", heart.lags), f"({len(heart.lags)} beats)")
    print(quantiles("it was blocked", heart.blocked))
    print("before", before)
    print("after ", after)
    faults = soak.wrong[:10] + leaks(before, after, calls)
    # A short run may be one of many on its machine.
    most, share = (BLOCKED * slack, 1) if calls >= LONG else (10 * BLOCKED * slack, 0.99)
    if quantile(heart.blocked, share) > most:
        faults.append("the event loop was blocked")
    for fault in faults:
        print("wrong:", fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
