#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Cages in which no namespaces are to be had: the refusal names the cause and the fix, and with the fix
applied, as it is written, there is a box. Run by root; nothing of the machine is changed."""

import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness  # noqa: E402
from harness import check, equal  # noqa: E402

CALLBOX = harness.callbox_path()
CAGE = str(pathlib.Path(os.environ["CALLBOX_PAYLOAD"]).parent / "cage")
USER = str(harness.USER_ID)

# What an option of a container manager is for a cage.
OPTIONS = {
    "seccomp=unconfined": ("--seccomp", "unconfined"), "systempaths=unconfined": ("--paths", "unmasked"),
    "unmask=ALL": ("--paths", "unmasked"), "{type: Unconfined}": ("--seccomp", "unconfined"),
    "procMount: Unmasked": ("--paths", "unmasked"), "apparmor=unconfined": (), "hostUsers: false": (),
}

KIND = ["--box", "namespaces"] if b"--box" in subprocess.run([CALLBOX, "run", "--help"], stdout=subprocess.PIPE, check=True).stdout else []


def caged(options, command, **environment):
    env = {k: v for k, v in os.environ.items() if not k.startswith("KUBERNETES")} | environment
    # Not where an ordinary user cannot go.
    script = 'cp "$1" /tmp/callbox 2>/dev/null; shift; exec "$@"'
    return harness.execute([CAGE, *options, "--", "sh", "-c", script, "sh", CALLBOX, *command], timeout=60, env=env, cwd="/")


def box(options, prefix=(), **environment):
    return caged(options, [*prefix, "/tmp/callbox", "run", *KIND, "--", "true"], **environment)


def obstacles(options, **environment):
    result = caged(options, ["/tmp/callbox", "doctor", "--json"], **environment)
    return json.loads(result.out)["host"]["obstacles"]


def refused(result):
    text = result.err.decode()
    equal(result.code, 125, f"the exit code ({text})")
    check("to fix it:" in text, lambda: f"no fix is named: {text}")
    return text


def translate(fix):
    """The options of a fix, as options of the cage."""
    found = [option for word, option in OPTIONS.items() if word in fix]
    check(found, f"nothing of the fix can be applied: {fix}")
    return [part for option in found for part in option]


def container(name, options, environment, fixes):
    @harness.case(f"a container of {name}: the options that doctor names are enough")
    def _():
        refused(box(options, **environment))
        found = obstacles(options, **environment)
        fix = "; ".join(o["fix"] for o in found)
        for word in fixes:
            check(word in fix, f"{word} is not in the fix: {fix}")
        result = box([*options, *translate(fix)], **environment)
        equal((result.code, result.err), (0, b""), "a call after the fix")


container("Docker", ["--mark", "/.dockerenv"], {}, ["seccomp=unconfined", "systempaths=unconfined"])
container("Podman", ["--mark", "/run/.containerenv"], {}, ["seccomp=unconfined", "unmask=ALL"])
container("Kubernetes", ["--caps", "none", "--id", USER, "--no-new-privs"], {"KUBERNETES_SERVICE_HOST": "10.0.0.1"},
          ["{type: Unconfined}", "procMount: Unmasked"])


@harness.case("a covered /proc alone is told, and uncovering it is enough")
def covered():
    options = ["--mark", "/.dockerenv", "--seccomp", "unconfined"]
    result = box(options)
    refused(result)
    found = [o for o in obstacles(options) if "/proc" in o["cause"]]
    check(found, "the covers are not named")
    equal(box([*options, *translate(found[0]["fix"])]).code, 0, "a call after the fix")


@harness.case("user namespaces that are switched off: the command that doctor names switches them on")
def switched_off():
    off = ["--no-userns", "--seccomp", "unconfined", "--paths", "unmasked", "--id", USER]
    refused(box([*off, "--caps", "none"]))
    found = [o for o in obstacles([*off, "--caps", "none"]) if "max_user_namespaces" in o["cause"]]
    check(found, "the setting is not named")
    command = re.search(r"sysctl -w (\S+)=(\d+)", found[0]["fix"])
    # In the user namespace of the cage, by one who has the rights of root in it.
    path = "/proc/sys/" + command.group(1).replace(".", "/")
    prefix = ("sh", "-c", f'echo {command.group(2)} >{path} && exec "$@"', "sh")
    equal(box([*off, "--caps", "all"], prefix).code, 0, "a call after the fix")


if __name__ == "__main__":
    sys.exit(harness.main(workers=1))
