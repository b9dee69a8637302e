#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The wheel: it is what it says, and works where nothing else of callbox is installed."""

import base64
import glob
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import harness
from harness import check, equal

SCRATCH = harness.Scratch()
BUILD = pathlib.Path(harness.callbox_path()).resolve().parent

PROGRAM = """
import asyncio, json, os, sys
import callbox

@callbox.tool
def double(n: int) -> int:
    return 2 * n

if __name__ == "__main__":
    import wheel_tools
    box = callbox.Toolbox([wheel_tools.double])
    libraries = {line.split()[-1] for line in open("/proc/self/maps") if "/lib/lib" in line and "callbox" in line}
    print(json.dumps({
        "run": callbox.run(["echo", "hi"]).stdout,
        "tool": box.call_sync("double", {"n": 21}).output,
        "async": asyncio.run(box.call("double", {"n": 4})).output,
        "code": callbox.run_python("import sys; sys.version_info[:2]").result,
        "file": callbox.__file__,
        "libraries": sorted(os.path.basename(path) for path in libraries),
    }))
"""


def make():
    done = subprocess.run(["ninja", "-C", str(BUILD), "python/wheel/_callbox.abi3.so"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    equal(done.returncode, 0, f"ninja: {done.stdout[-500:]}")
    said = subprocess.run(["/usr/bin/python3", str(harness.REPO / "scripts" / "wheel"), "--build", str(BUILD)], stdout=subprocess.PIPE, text=True, check=True).stdout
    return pathlib.Path(said.strip())


WHEEL = make()


def interpreters():
    """Debian's own, and of the others that are here the oldest and the newest."""
    found = {}
    for path in glob.glob("/usr/local/bin/python3.*") + glob.glob("/usr/bin/python3.*") + glob.glob(os.path.expanduser("~/.pyenv/versions/*/bin/python3")):
        if "-config" in path:
            continue
        try:
            said = subprocess.run([path, "-c", "import sys, venv, ensurepip; print(*sys.version_info[:2])"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60, check=True)
        except (OSError, subprocess.SubprocessError):
            continue
        version = tuple(map(int, said.stdout.split()))
        if version >= (3, 9):
            found.setdefault(version, path)
    chosen = {"/usr/bin/python3", found[min(found)], found[max(found)]} if found else {"/usr/bin/python3"}
    return sorted({os.path.realpath(path): path for path in sorted(chosen)}.values())


def install_and_run(python):
    folder = SCRATCH.directory()
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    subprocess.run([python, "-m", "venv", str(folder / "venv")], env=environment, check=True, stdout=subprocess.DEVNULL)
    own = str(folder / "venv" / "bin" / "python")
    done = subprocess.run([own, "-m", "pip", "install", "-q", "--no-index", "--no-deps", str(WHEEL)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    equal(done.returncode, 0, f"pip: {done.stdout}")
    (folder / "wheel_tools.py").write_text(PROGRAM)
    done = subprocess.run([own, "wheel_tools.py"], env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    equal(done.returncode, 0, f"the program: {done.stdout}")
    said = json.loads(done.stdout.strip().split("\n")[-1])
    version = subprocess.run([own, "-c", "import sys; print(*sys.version_info[:2])"], stdout=subprocess.PIPE, text=True, check=True).stdout
    check(said["file"].startswith(str(folder)), f"another package was loaded: {said['file']}")
    equal((said["run"], said["tool"], said["async"]), ("hi\n", 42, 8), "calls")
    equal(tuple(said["code"]), tuple(map(int, version.split())), "the interpreter in the box")
    check(len(said["libraries"]) == 3, f"libraries of the wheel: {said['libraries']}")


for interpreter in interpreters():
    harness.add(f"it is installed into an empty environment of {interpreter} and works there", lambda interpreter=interpreter: install_and_run(interpreter))


@harness.case("its list is right, its programs can be executed, and its tag is what the files ask for")
def contents():
    with zipfile.ZipFile(WHEEL) as wheel:
        names = wheel.namelist()
        record = wheel.read(next(n for n in names if n.endswith("/RECORD"))).decode()
        listed = dict(line.split(",", 1) for line in record.strip().split("\n"))
        equal(sorted(listed), sorted(names), "the list")
        for name in names:
            if not name.endswith("/RECORD"):
                data = wheel.read(name)
                digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                equal(listed[name], f"sha256={digest},{len(data)}", name)
        for name in ("callbox/bin/callbox", "callbox/bin/callbox-functions"):
            check(wheel.getinfo(name).external_attr >> 16 & 0o111, f"{name} cannot be executed")
        tag = re.search(r"^Tag: (.*)$", wheel.read(next(n for n in names if n.endswith("/WHEEL"))).decode(), re.M).group(1)
        check(WHEEL.name.endswith(f"-{tag}.whl"), "the tag is another than in the name")
        meta = wheel.read(next(n for n in names if n.endswith("/METADATA"))).decode()
        for line in ("Name: callbox", "Requires-Python: >=3.9", "License: MIT"):
            check(line in meta, f"{line} is missing")
        sources = {p.name for p in (harness.REPO / "python" / "callbox").rglob("*.py")}
        equal(sources - {os.path.basename(name) for name in names}, set(), "files of the package that are missing")
        folder = SCRATCH.directory()
        major, minor = map(int, re.search(r"manylinux_(\d+)_(\d+)_", tag).groups())
        for name in names:
            if wheel.read(name)[:4] == b"\x7fELF":
                path = wheel.extract(name, folder)
                asked = re.findall(r"GLIBC_(\d+)\.(\d+)", subprocess.run(["objdump", "-T", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout)
                check(all((int(a), int(b)) <= (major, minor) for a, b in asked), f"{name} needs a newer C library than the tag says")


@harness.case("two wheels of one build are the same, byte by byte")
def reproducible():
    before = WHEEL.read_bytes()
    check(make().read_bytes() == before, "they differ")


if __name__ == "__main__":
    sys.exit(harness.main(after=SCRATCH.remove))
