#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Programs that make one call: first.py KIND MEGABYTES

Says "ready", and then for each byte on stdin runs a new program that makes one call in one of several ways, and
prints the nanoseconds that the program took, or for KIND-call those of the call. Each way comes twice: through
a drop-in of callbox, and as the sandbox works whose place it takes. No more is imported for those than their
own modules would; first.py once KIND is the program.
"""

import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("CALLBOX_BUILD", "build"))


def with_callbox():
    sys.path.insert(0, os.path.join(BUILD, "python"))
    os.environ.setdefault("CALLBOX_WARDEN", os.path.join(BUILD, "callbox"))


def calute():
    with_callbox()
    from callbox.compat.calute import SandboxConfig, SandboxMode, SubprocessSandboxBackend
    from first_tool import add

    backend = SubprocessSandboxBackend(SandboxConfig(mode=SandboxMode.STRICT, sandboxed_tools={"add"}))
    return lambda: backend.execute("add", add, {"a": 1, "b": 2})


def calute_way():
    """A function and its arguments as a pickle in base64, to python -c."""
    import base64
    import dataclasses  # noqa: F401
    import enum  # noqa: F401
    import logging  # noqa: F401
    import pickle
    import subprocess
    import typing  # noqa: F401

    from first_tool import add

    code = (
        "import base64, pickle, resource, sys; sys.path.insert(0, %r);"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29));"
        "function, arguments = pickle.loads(base64.b64decode(sys.stdin.read()));"
        "print(base64.b64encode(pickle.dumps(function(**arguments))).decode())" % HERE
    )

    def call():
        given = base64.b64encode(pickle.dumps((add, {"a": 1, "b": 2})))
        done = subprocess.run([sys.executable, "-c", code], input=given, capture_output=True, check=True)
        return pickle.loads(base64.b64decode(done.stdout))

    return call


def openjarvis():
    with_callbox()
    from callbox.compat.openjarvis import run_sandboxed

    return lambda: int(run_sandboxed("echo 3").stdout)


def openjarvis_way():
    """A shell in a session of its own."""
    import dataclasses  # noqa: F401
    import logging  # noqa: F401
    import signal  # noqa: F401
    import subprocess
    import typing  # noqa: F401

    def call():
        with subprocess.Popen("echo 3", shell=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              preexec_fn=os.setsid) as process:  # fmt: skip
            return int(process.communicate(timeout=30)[0])

    return call


def jeevesagent():
    with_callbox()
    import asyncio

    from callbox.compat.jeevesagent import InProcessToolHost, SubprocessSandbox
    from first_tool import add

    box = SubprocessSandbox(InProcessToolHost([add]))
    return lambda: asyncio.run(box.call("add", {"a": 1, "b": 2}, call_id="1")).output


def jeevesagent_way():
    """A spawned interpreter that imports what a framework does, and a queue."""
    import asyncio
    import multiprocessing

    import anyio  # noqa: F401
    import pydantic  # noqa: F401
    from first_tool import answer

    def run():
        context = multiprocessing.get_context("spawn")
        queue = context.Queue()
        process = context.Process(target=answer, args=(queue, 1, 2))
        process.start()
        result = queue.get(timeout=30)
        process.join()
        return result

    async def call():
        return await asyncio.to_thread(run)

    return lambda: asyncio.run(call())


KINDS = {
    "calute": calute,
    "calute-way": calute_way,
    "jeevesagent": jeevesagent,
    "jeevesagent-way": jeevesagent_way,
    "openjarvis": openjarvis,
    "openjarvis-way": openjarvis_way,
}


def once(kind):
    call = KINDS[kind]()
    before = time.perf_counter_ns()
    result = call()
    after = time.perf_counter_ns()
    if result != 3:
        raise RuntimeError(f"it gave {result!r}")
    print(after - before, flush=True)


def program(kind, timed_inside):
    import subprocess

    before = time.perf_counter_ns()
    command = [sys.executable, os.path.abspath(__file__), "once", kind]
    said = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    after = time.perf_counter_ns()
    return int(said) if timed_inside else after - before


def main():
    if sys.argv[1] == "once":
        once(sys.argv[2])
        return
    kind = sys.argv[1].removesuffix("-call")
    compile_package()
    program(kind, False)
    print("ready", flush=True)
    while os.read(0, 1):
        print(program(kind, kind != sys.argv[1]), flush=True)


def compile_package():
    """As whoever installs a package does."""
    import compileall

    for place in (os.path.join(BUILD, "python", "callbox"), HERE):
        compileall.compile_dir(place, quiet=2, maxlevels=2)


if __name__ == "__main__":
    main()
