#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The Python package, by pytest: the tests are in tests/python. Run by root, what a hostile review has tried is
tried by an ordinary user as well."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import harness

REPO = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("CALLBOX_BUILD", REPO / "build"))
TESTS = REPO / "tests" / "python"
# By the numbers in their names; how long reading takes is nobody's in particular.
ATTACKS = "_S1_ or _S5_ or _S7_ or _S11_ or _S14_ or _S19_ or _S2 or test_loading"


def main():
    if not (BUILD / "python" / "callbox" / "_callbox.abi3.so").exists():
        print(f"{BUILD}/python is not built: install python3-dev, and configure the build again")
        print("0 passed, 1 failed")
        return 1
    with tempfile.TemporaryDirectory(prefix="callbox-test-", dir="/tmp") as place:
        build = reachable(BUILD, pathlib.Path(place))
        passed, failed = run(build, TESTS)
        if os.getuid() == 0:
            more = run(build, readable(pathlib.Path(place)), "-k", ATTACKS, user=True)
            passed, failed = passed + more[0], failed + more[1]
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def is_open(path):
    return all(part.stat().st_mode & 1 for part in (path, *path.parents))


def readable(place):
    """The tests where the ordinary user can read them."""
    if is_open(TESTS):
        return TESTS
    place.chmod(0o755)
    return shutil.copytree(TESTS, place / "cases", ignore=shutil.ignore_patterns("__pycache__"))


def reachable(build, place):
    """The package where any user can get at it: some tests are run as another."""
    if os.getuid() != 0 or is_open(build):
        return build
    place.chmod(0o755)
    shutil.copytree(build / "python", place / "python")
    (place / "tests").mkdir()
    for path in (build / "callbox", build / "callbox-functions", *build.glob("libcallbox.so*"), build / "tests" / "callbox-unfenced"):
        if path.is_file():
            shutil.copy(path, place / path.relative_to(build), follow_symlinks=False)
    return place


def run(build, tests, *options, user=False):
    """How many have passed, and how many have not."""
    env = {**os.environ, "PYTHONPATH": str(build / "python"), "CALLBOX_WARDEN": str(build / "callbox")}
    if user:
        env["HOME"] = "/nonexistent"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", "--durations=5", *options, str(tests)]
    done = subprocess.run(harness.as_user(command) if user else command, env=env, cwd="/" if user else REPO, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)  # fmt: skip
    print(done.stdout)
    # What the interpreter says at its end may stand behind it.
    last = ([""] + re.findall(r"^\d+ \w+.* in [\d.]+s.*$", done.stdout, re.M))[-1]
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", last)}
    failed = sum(counts.get(word, 0) for word in ("failed", "error", "errors", "skipped"))
    if done.returncode != 0 and failed == 0:
        failed = 1
    return counts.get("passed", 0), failed


if __name__ == "__main__":
    sys.exit(main())
