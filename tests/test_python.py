#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The Python package, by pytest: the tests are in tests/python."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

REPO = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("CALLBOX_BUILD", REPO / "build"))


def main():
    if not (BUILD / "python" / "callbox" / "_callbox.abi3.so").exists():
        print(f"{BUILD}/python is not built: install python3-dev, and configure the build again")
        print("0 passed, 1 failed")
        return 1
    with tempfile.TemporaryDirectory(prefix="callbox-test-", dir="/tmp") as place:
        return run(reachable(BUILD, pathlib.Path(place)))


def reachable(build, place):
    """The package where any user can get at it: some tests are run as another."""
    if os.getuid() != 0 or all(path.stat().st_mode & 1 for path in (build, *build.parents)):
        return build
    place.chmod(0o755)
    shutil.copytree(build / "python", place / "python")
    for path in (build / "callbox", build / "callbox-functions", *build.glob("libcallbox.so*")):
        if path.is_file():
            shutil.copy(path, place, follow_symlinks=False)
    return place


def run(build):
    env = {**os.environ, "PYTHONPATH": str(build / "python"), "CALLBOX_WARDEN": str(build / "callbox")}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error",
         "--durations=5", str(REPO / "tests" / "python")],
        env=env, cwd=REPO, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)  # fmt: skip
    print(done.stdout)
    # What the interpreter says at its end may stand behind it.
    last = ([""] + re.findall(r"^\d+ \w+.* in [\d.]+s.*$", done.stdout, re.M))[-1]
    counts = {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", last)}
    passed = counts.get("passed", 0)
    failed = sum(counts.get(word, 0) for word in ("failed", "error", "errors", "skipped"))
    if done.returncode != 0 and failed == 0:
        failed = 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
