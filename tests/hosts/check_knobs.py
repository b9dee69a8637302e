#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Settings of a host that stop a box, each switched on and then off as doctor says. In an emulated machine, by its root.

What is asked for is refused with the setting's name, or kept by other means; the fix, made to the letter, works."""

import contextlib
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import harness  # noqa: E402
from harness import check, equal  # noqa: E402

SCRATCH = harness.Scratch()
CALLBOX = SCRATCH.install(harness.callbox_path(), "callbox")
SETTINGS = pathlib.Path("/proc/sys")
WRITE = ["sh", "-c", "echo made >new && cat new && rm new"]
NAMESPACES, LANDLOCK = ("--box", "namespaces"), ("--box", "landlock")

# The setting, its value, who meets it, what is refused then, and what goes on.
KNOBS = [
    ("user.max_user_namespaces", "0", (False, True), [NAMESPACES], [(), LANDLOCK]),
    ("user.max_net_namespaces", "0", (False, True), [(), NAMESPACES], [LANDLOCK]),
    ("user.max_pid_namespaces", "0", (False, True), [(), NAMESPACES], [LANDLOCK]),
    ("kernel.unprivileged_userns_clone", "0", (True,), [NAMESPACES], [(), LANDLOCK]),
    ("kernel.yama.ptrace_scope", "2", (False, True), ["workspace", LANDLOCK], [()]),
]


def path_of(setting):
    return SETTINGS / setting.replace(".", "/")


@contextlib.contextmanager
def switched(setting, value):
    before = path_of(setting).read_text()
    path_of(setting).write_text(value)
    try:
        yield
    finally:
        path_of(setting).write_text(before)


def run(user, options):
    command = ["true"]
    if options == "workspace":
        options, command = ("--workspace", str(SCRATCH.directory(user=user))), WRITE
    return harness.callbox(["run", "--json", *options, "--", *command], binary=CALLBOX, cwd="/", user=user, timeout=60)


def fixes(user):
    report = harness.callbox(["doctor", "--json"], binary=CALLBOX, cwd="/", user=user, timeout=120).report
    return [obstacle["fix"] for obstacle in report["host"]["obstacles"]]


def runs(user, options):
    result = run(user, options)
    equal((result.code, result.reason), (0, "exited"), f"{options}: {result.brief()}")


def attempt(knob, user):
    setting, value, _, refused, goes_on = knob

    def case():
        with switched(setting, value):
            for options in refused:
                result = run(user, options)
                equal(result.code, 125, f"{options}: {result.brief()}")
                error = result.report["error"]
                check(setting.split("_")[0] in f"{error['text']} {error['hint']}", f"{options}: {error}")
            for options in goes_on:
                runs(user, options)
            found = [fix for fix in fixes(user) if f"sysctl -w {setting}=" in fix]
            check(found, f"doctor does not speak of {setting}: {fixes(user)}")
            name, new = re.search(r"sysctl -w (\S+)=(\d+)", found[0]).groups()
            path_of(name).write_text(new)
            for options in [*refused, *goes_on]:
                runs(user, options)

    return case


def register():
    for knob in KNOBS:
        for user in knob[2]:
            harness.add(f"{knob[0]} = {knob[1]}, as {'a user' if user else 'root'}", attempt(knob, user), True)


if __name__ == "__main__":
    if "RESULT_DISK" not in os.environ:
        sys.exit("this changes settings of the machine: it is for an emulated one")
    register()
    sys.exit(harness.main(after=SCRATCH.remove))
