#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Calls of every kind, 64 at once, through one warden: every report is right, and what the warden
holds does not grow. The long version is `make soak`."""

import os
import sys

import harness
from harness import equal

BUILD = os.environ.get("CALLBOX_BUILD") or str(harness.REPO / "build")
CALLS = 200 if os.environ.get("CALLBOX_SMOKE") else 1500

SCRATCH = harness.Scratch()
CALLBOX = SCRATCH.install(harness.callbox_path(), "callbox")
WORKER = SCRATCH.install(os.path.join(BUILD, "tests", "worker"))
SOAK = SCRATCH.install(os.path.join(BUILD, "tests", "soak"))
TOOLS = SCRATCH.install(os.path.join(BUILD, "tests", "soak-tools"))
SCRATCH.install(os.path.join(BUILD, "libcallbox.so.0"), "libcallbox.so.0")


@harness.for_people("calls of every kind are told right and leave nothing", alone=True)
def soak(user):
    calls = CALLS // len(harness.PEOPLE)
    run([SOAK, WORKER, str(calls), str(int(user))], calls, user)


@harness.for_people("calls of twenty tools are told right and leave nothing", alone=True)
def soak_tools(user):
    calls = max(CALLS // len(harness.PEOPLE), 300)
    run([TOOLS, str(calls), str(int(user))], calls, user)


def run(command, calls, user):
    environment = {**os.environ, "CALLBOX_WARDEN": CALLBOX, "LD_LIBRARY_PATH": str(SCRATCH.bin)}
    result = harness.execute(harness.as_user(command) if user else command, timeout=120 + calls / 5, env=environment, cwd="/")
    print(result.out.decode("utf-8", "replace"), end="", flush=True)
    wrong = [line for line in result.stdout.splitlines() if line.startswith(("wrong", "left", "hangs"))]
    equal(result.code, 0, f"exit code ({' | '.join(wrong[:5])} {result.err.decode('utf-8', 'replace')[-300:]})")


if __name__ == "__main__":
    try:
        sys.exit(harness.main())
    finally:
        SCRATCH.remove()
