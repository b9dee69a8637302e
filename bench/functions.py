#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A Python agent that runs a trivial function in one of several ways: functions.py KIND MEGABYTES

It grows to that many megabytes resident, says "ready", and then for each byte on stdin runs the
function once and prints the nanoseconds that it took. Three of the ways are those of sandboxes that
agents use: a spawned process with the imports of a framework and a queue for the result, Popen with a
session of its own, and python -c with a pickle in base64.
"""

import asyncio
import base64
import concurrent.futures
import multiprocessing
import os
import pickle
import subprocess
import sys
import time

from popen import call as popen
from popen import grow

BUILD = os.environ.get("CALLBOX_BUILD", "build")
MANY = 8
ROW = 300


def add(a: int, b: int) -> int:
    return a + b


def answer(queue, a, b):
    queue.put(add(a, b))


def answer_in_framework(queue, a, b):
    """In a process that had to import what a framework has imported."""
    import anyio  # noqa: F401
    import pydantic  # noqa: F401

    queue.put(add(a, b))


def timed(function):
    before = time.perf_counter_ns()
    result = function()
    after = time.perf_counter_ns()
    if result != 3:
        raise RuntimeError(f"1 + 2 gave {result!r}")
    return after - before


# ---- callbox ----


def tools(policy=None):
    sys.path.insert(0, os.path.join(os.path.abspath(BUILD), "python"))
    os.environ.setdefault("CALLBOX_WARDEN", os.path.join(os.path.abspath(BUILD), "callbox"))
    import callbox
    import functions  # by its name: a box does not run the main program

    return callbox.Toolbox([functions.add], policy=policy)


def callbox():
    box = tools()
    for _ in range(5):
        box.call_sync("add", {"a": 1, "b": 2})
    return lambda: timed(lambda: box.call_sync("add", {"a": 1, "b": 2}).output)


def callbox_row():
    box = tools()
    for _ in range(20):
        box.call_sync("add", {"a": 1, "b": 2})
    return lambda: sorted(timed(lambda: box.call_sync("add", {"a": 1, "b": 2}).output) for _ in range(ROW))[ROW // 2]


def calute():
    tools()
    import functions
    from callbox.compat.calute import SandboxConfig, SandboxMode, SubprocessSandboxBackend

    backend = SubprocessSandboxBackend(SandboxConfig(mode=SandboxMode.STRICT, sandboxed_tools={"add"}))
    for _ in range(5):
        backend.execute("add", functions.add, {"a": 1, "b": 2})
    return lambda: timed(lambda: backend.execute("add", functions.add, {"a": 1, "b": 2}))


def jeevesagent():
    tools()
    import functions
    from callbox.compat.jeevesagent import InProcessToolHost, SubprocessSandbox

    box = SubprocessSandbox(InProcessToolHost([functions.add]))
    loop = asyncio.new_event_loop()

    def call():
        return loop.run_until_complete(box.call("add", {"a": 1, "b": 2}, call_id="1")).output

    for _ in range(5):
        call()
    return lambda: timed(call)


def callbox_cold():
    numbers = iter(range(1 << 30))

    def call():
        import callbox as package

        # Another policy: neither box nor interpreter are ready for it.
        box = tools(package.Policy(environment={"NUMBER": str(next(numbers))}))
        return timed(lambda: box.call_sync("add", {"a": 1, "b": 2}).output)

    tools()
    return call


def callbox_many():
    box = tools()
    loop = asyncio.new_event_loop()

    async def calls():
        results = await asyncio.gather(*[box.call("add", {"a": 1, "b": 2}) for _ in range(MANY)])
        return 3 if all(result.output == 3 for result in results) else results

    for _ in range(3):
        loop.run_until_complete(calls())
    return lambda: timed(lambda: loop.run_until_complete(calls())) // MANY


# ---- Others ----


def spawn(target):
    context = multiprocessing.get_context("spawn")

    def run():
        queue = context.Queue()
        process = context.Process(target=target, args=(queue, 1, 2))
        process.start()
        result = queue.get(timeout=30)
        process.join()
        return result

    return lambda: timed(run)


def python():
    command = [sys.executable, "-c", "print(1 + 2)"]
    return lambda: timed(lambda: int(subprocess.run(command, capture_output=True, check=True).stdout))


def through_pickle():
    code = (
        "import base64, pickle, sys; function, arguments = pickle.loads(base64.b64decode(sys.stdin.read()));"
        "print(base64.b64encode(pickle.dumps(function(*arguments))).decode())"
    )

    def run():
        import operator

        given = base64.b64encode(pickle.dumps((operator.add, (1, 2))))
        done = subprocess.run([sys.executable, "-c", code], input=given, capture_output=True, check=True)
        return pickle.loads(base64.b64decode(done.stdout))

    return lambda: timed(run)


def pool():
    executor = concurrent.futures.ProcessPoolExecutor(1)
    executor.submit(add, 1, 2).result()
    return lambda: timed(lambda: executor.submit(add, 1, 2).result())


KINDS = {
    "callbox": callbox,
    "callbox-8": callbox_many,
    "callbox-cold": callbox_cold,
    "callbox-row": callbox_row,
    "calute": calute,
    "jeevesagent": jeevesagent,
    "spawn": lambda: spawn(answer),
    "framework": lambda: spawn(answer_in_framework),
    "python": python,
    "pickle": through_pickle,
    "pool": pool,
    "popen": lambda: popen,
}


def main():
    ballast = grow(int(sys.argv[2]))
    call = KINDS[sys.argv[1]]()
    print("ready", flush=True)
    while os.read(0, 1):
        print(call(), flush=True)
    return 0 if ballast is not None else 1


if __name__ == "__main__":
    sys.exit(main())
