#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Stands in for docker and podman: it writes down what it is asked for, and runs a container's program as a
process of its own session, with mounts as links in a directory of its own."""

import json
import os
import pathlib
import signal
import subprocess
import sys

STATE = pathlib.Path(os.environ["FAKE_DOCKER"])
TAKES_VALUE = ("--name", "--memory", "--network", "-v", "-w", "-e", "--cap-drop", "--security-opt", "--pids-limit")


def main(words):
    with open(STATE / "asked", "a", encoding="utf-8") as stream:
        stream.write(json.dumps([os.path.basename(sys.argv[0]), *words]) + "\n")
    if words[0] == "rm":
        os.killpg(int((STATE / words[-1]).read_text()), signal.SIGKILL)
        return 0
    if words[0] != "run":
        return 0 if words == ["info"] else 125
    given, at = [], 1
    while words[at].startswith("-"):
        given.append(words[at : at + 1 + (words[at] in TAKES_VALUE)])
        at += len(given[-1])
    image, program = words[at], words[at + 1 :]
    if image == "no-such-image":
        print("Unable to find image", file=sys.stderr)
        return 125
    name = next(item[1] for item in given if item[0] == "--name")
    root = STATE / f"root-{name}"
    for mount in (item[1].split(":") for item in given if item[0] == "-v"):
        (root / mount[1][1:]).parent.mkdir(parents=True, exist_ok=True)
        (root / mount[1][1:]).symlink_to(mount[0])
    environment = dict(item[1].split("=", 1) for item in given if item[0] == "-e")
    moved = [word.replace("/run/callbox", f"{root}/run/callbox") for word in program]
    work = next((f"{root}{item[1]}" for item in given if item[0] == "-w"), "/")
    request = sys.stdin.buffer.read().replace(b"/run/callbox", os.fsencode(f"{root}/run/callbox"))
    # Its end is not the client's.
    with subprocess.Popen([sys.executable, *moved[1:]], cwd=work, env={"PATH": "/usr/bin:/bin", **environment},
                          stdin=subprocess.PIPE, start_new_session=True) as running:  # fmt: skip
        (STATE / name).write_text(str(running.pid))
        running.communicate(request)
    return running.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
