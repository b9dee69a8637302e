# SPDX-License-Identifier: MIT
"""Runs the functions test_* of a file, and says how it went; imported by the check of each package."""

import asyncio
import inspect
import os
import sys
import traceback

SECRET = "CALLBOX_TEST_SECRET"
os.environ[SECRET] = "the agent's own"


def boxed(value):
    """What where_am_i(21) says in a box."""
    assert value == {"double": 42, "pid": value["pid"], "secret": None, "shadow": False}, value
    assert value["pid"] < os.getpid() or value["pid"] < 100  # of a namespace of its own


def main(names):
    passed = failed = 0
    for name, check in list(names.items()):
        if not name.startswith("test_") or not callable(check):
            continue
        try:
            result = check()
            if inspect.isawaitable(result):
                asyncio.run(result)
            passed += 1
            print(f"  ok      {name}", flush=True)
        except Exception:
            failed += 1
            print(f"  FAILED  {name}\n{traceback.format_exc()}", flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)
