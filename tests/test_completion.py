#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The bash completion: what it offers where, and that it knows every option of --help."""

import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("CALLBOX_BUILD", os.path.join(ROOT, "build"))
CALLBOX = os.environ.get("CALLBOX", os.path.join(BUILD, "callbox"))
LIBRARY = "/usr/share/bash-completion/bash_completion"

# A line is split as readline splits it: = and : are words of their own.
DRIVER = r"""
source "$1"; source "$2"; shift 2
COMP_LINE=$1; COMP_POINT=${#1}; shift
COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMP_TYPE=9
_callbox 2>&1
printf '%s\n' "${COMPREPLY[@]}"
"""

passed = failed = 0


def check(name, true, detail=""):
    global passed, failed
    if true:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {name}: {detail}")


def complete(line, cwd="/"):
    words = [word for word in re.split(r"(=)|\s+", line) if word]
    if line.endswith((" ", "=")):
        words.append("")
    if line.endswith("="):
        # An empty value shares its word with the sign, as readline has it.
        words.pop()
    done = subprocess.run(
        ["bash", "--norc", "-c", DRIVER, "bash", LIBRARY,
         os.path.join(ROOT, "completions", "callbox.bash"), line, *words],
        cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return {word.strip() for word in done.stdout.split("\n") if word.strip()}


def offers(name, line, expected, cwd="/"):
    got = complete(line, cwd)
    check(name, got == set(expected), f"{line!r} offers {sorted(got)}, not {sorted(expected)}")


def includes(name, line, expected, cwd="/"):
    got = complete(line, cwd)
    check(name, set(expected) <= got, f"{line!r} lacks {sorted(set(expected) - got)}")


def help_options(*verb):
    text = subprocess.run([CALLBOX, *verb, "--help"], text=True, stdout=subprocess.PIPE,
                          check=False).stdout
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))


def main():
    if not os.path.exists(LIBRARY):
        print(f"FAILED the package bash-completion is needed: {LIBRARY} is missing")
        print("0 passed, 1 failed")
        return 1

    offers("verbs", "callbox ", ["run", "doctor", "mcp", "policy", "tool", "warden", "wrap", "help", "--help", "--version"])
    offers("verb by its beginning", "callbox do", ["doctor"])
    offers("policy verbs", "callbox policy ", ["check", "show", "capabilities", "backends", "schema", "--help"])
    offers("tool verbs", "callbox tool ", ["list", "call", "check", "schema", "--help"])
    offers("tool options", "callbox tool call --call", ["--call-id"])
    offers("names of tools", f"{CALLBOX} tool call --tools {ROOT}/examples/tools word", ["word_count"])
    offers("verbs to explain", "callbox help w", ["warden", "wrap"])
    offers("doctor options", "callbox doctor --", ["--json", "--help"])
    offers("warden options", "callbox warden --", ["--socket", "--calls", "--queue", "--prepared", "--allow-no-box", "--help"])
    offers("warden options after a value", "callbox warden --calls 3 --so", ["--socket"])
    offers("nothing for a number of calls", "callbox warden --calls ", [])
    offers("option by its beginning", "callbox run --work", ["--workspace"])
    offers("options after options", "callbox run --json --timeout 3 --mem", ["--memory"])
    offers("networks", "callbox run --net ", ["none", "loopback", "host"])
    offers("networks after =", "callbox run --net=l", ["loopback"])
    offers("refusals", "callbox run --on-denied k", ["kill"])
    offers("guarantees", "callbox run --require la", ["landlock"])
    offers("no limit", "callbox run --memory n", ["none"])
    offers("nothing for a number", "callbox run --timeout ", [])
    offers("policy options of show", "callbox policy show --cap", ["--capture"])
    offers("options of capabilities", "callbox policy capabilities --js", ["--json"])
    offers("modes", "callbox mcp --mode ", ["strict", "warn", "off"])
    offers("tools to elevate", f"{CALLBOX} tool call --tools {ROOT}/examples/tools --elevate word", ["word_count"])
    offers("no call options for show", "callbox policy show --js", [])
    includes("programs", "callbox run ls", ["ls"])
    includes("programs after options", "callbox run --json --net none tru", ["true", "truncate"])
    includes("programs after --", "callbox run -- tru", ["true"])
    offers("options of wrap", "callbox wrap --gr", ["--grace"])
    includes("servers to wrap", "callbox wrap --grace 2 -- tru", ["true"])

    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "directory"))
        for name in ("policy.json", "notes.txt"):
            with open(os.path.join(folder, name), "w", encoding="utf-8"):
                pass
        offers("a workspace is a directory", "callbox run --workspace ", ["directory"], folder)
        offers("a directory after =", "callbox run --cwd=d", ["directory"], folder)
        offers("a policy is a JSON file", "callbox run --policy p", ["policy.json"], folder)
        offers("files to read", "callbox run --read n", ["notes.txt"], folder)
        offers("a socket for a warden", "callbox warden --socket d", ["directory"], folder)
        offers("a file to check", "callbox policy check p", ["policy.json"], folder)
        offers("a folder of tools", "callbox tool list --tools ", ["directory"], folder)
        offers("a folder of tools to serve", "callbox mcp --files --tools ", ["directory"], folder)
        offers("a manifest to check", "callbox tool check p", ["policy.json"], folder)
        offers("a file to show", "callbox policy show --net none p", ["policy.json"], folder)
        offers("standard input", "callbox run --stdin no", ["none", "notes.txt"], folder)
        offers("arguments of the program", "callbox run -- cat no", ["notes.txt"], folder)

    for verb in (("run",), ("wrap",), ("doctor",), ("warden",), ("policy", "capabilities"), ("tool", "call"), ("mcp",)):
        wanted = help_options(*verb)
        offered = complete("callbox " + " ".join(verb) + " --")
        check(f"every option of {' '.join(verb)} --help", wanted and wanted <= offered,
              f"not offered: {sorted(wanted - offered) or 'no help text'}")
    unknown = {word for word in complete("callbox run --") if word.startswith("--")}
    unknown -= help_options("run")
    check("no option that run does not have", not unknown, sorted(unknown))

    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
