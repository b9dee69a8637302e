#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""A Python agent of a given size that runs /bin/true as such agents do: popen.py MEGABYTES

It grows to that many megabytes resident, says "ready", and then for each byte on stdin runs the
program once and prints the nanoseconds that it took. bench/agent.c is the same with callbox.
"""

import os
import subprocess
import sys
import time

PAGE = 4096


def grow(megabytes):
    with open("/proc/self/statm", encoding="ascii") as stream:
        resident = int(stream.read().split()[1]) * PAGE
    ballast = bytearray(max(0, megabytes * 1000 * 1000 - resident))
    for at in range(0, len(ballast), PAGE):
        ballast[at] = 1
    return ballast


def call():
    before = time.perf_counter_ns()
    with subprocess.Popen(["/bin/true"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          preexec_fn=os.setsid) as process:
        process.communicate(timeout=30)
    after = time.perf_counter_ns()
    if process.returncode != 0:
        raise RuntimeError(f"/bin/true gave {process.returncode}")
    return after - before


def main():
    ballast = grow(int(sys.argv[1]))
    print("ready", flush=True)
    while os.read(0, 1):
        print(call(), flush=True)
    return 0 if ballast is not None else 1


if __name__ == "__main__":
    sys.exit(main())
