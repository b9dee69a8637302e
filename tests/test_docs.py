#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What is written is true: the README's examples print what it says, the manual pages know every
option, the example policies are good, --help fits a screen, and the tour of scripts/demo ends as told."""

import json
import os
import re
import shutil
import sys
import tempfile

import harness
from harness import REPO, ROOT, callbox, case, check, equal, execute

MARK = "---8<--- %s"
scratch = None
command = None


def text_of(*path):
    return (REPO.joinpath(*path)).read_text(encoding="utf-8")


def who(user):
    return "as a user" if user else "as root" if ROOT else "as oneself"


# The suite's own user; and root, where it is root that runs the suite.
PEOPLE = [False, True] if ROOT else [False]


def environment(home):
    return {
        "HOME": str(home),
        "PATH": f"{scratch.bin}:/usr/local/bin:/usr/bin:/bin",
        "LC_ALL": "C.UTF-8",
        "TMPDIR": "/tmp",
    }


# ---- The README's examples ---------------------------------------------------------------------


def console_blocks(text):
    """Each ```console block as a list of (command, the lines that follow it)."""
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.M | re.S):
        steps = []
        for line in block.rstrip("\n").split("\n"):
            if line.startswith("$ "):
                steps.append((line[2:], []))
            else:
                steps[-1][1].append(line)
        yield steps


def pattern_of(lines):
    """[..] matches anything within a line, a line of three dots any number of lines."""
    parts = []
    for line in lines:
        if line == "...":
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(".*?".join(re.escape(part) for part in line.split("[..]")) + r"\n")
    return re.compile("".join(parts))


def tour(user):
    """All examples in one shell, one after the other, as a reader would type them."""
    home = scratch.directory(user)
    place = scratch.directory(user)
    shutil.copytree(REPO / "examples", place / "examples")
    steps = [step for block in console_blocks(text_of("README.md")) for step in block]
    check(len(steps) > 10, "the README has hardly any examples")
    script = ["exec 2>&1"]
    for number, (line, _) in enumerate(steps):
        script += [f"r=$?; echo '{MARK % number}'; (exit $r)", line]
    script.append(f"echo '{MARK % len(steps)}'")
    shell = ["bash", "--norc", "-c", "\n".join(script)]
    result = execute(harness.as_user(shell) if user else shell, timeout=120, cwd=place,
                     env=environment(home))
    out = result.out.decode("utf-8", "replace")
    wrong = []
    for number, (line, expected) in enumerate(steps):
        begin = out.find(MARK % number)
        stop = out.find(MARK % (number + 1))
        check(0 <= begin < stop, f"the tour stopped at: {line}: {harness.one_line(out[-300:])}")
        got = out[begin + len(MARK % number) + 1 : stop]
        if not pattern_of(expected).fullmatch(got):
            says = "\n".join(expected)
            wrong.append(f"$ {line} printed {got!r}, the README says {says!r}")
    check(not wrong, f"{len(wrong)} of {len(steps)} examples are not as printed: " + "; ".join(wrong))


for person in PEOPLE:
    harness.add(f"README tour {who(person)}", lambda person=person: tour(person))


@case("README links")
def links():
    for name in ["README.md", "CONTRIBUTING.md", "docs/design.md", "docs/mcp.md", "docs/security.md"]:
        for target in re.findall(r"\]\(([^)#:]+)\)", text_of(name)):
            path = REPO.joinpath(name).parent / target
            check(path.exists(), f"{name} links to {target}, which is not there")


@case("paths named in the documentation exist")
def paths():
    for name in ["README.md", "CONTRIBUTING.md", "docs/design.md", "docs/mcp.md", "docs/security.md"]:
        for path in re.findall(r"`((?:src|tests|docs|man|schema|examples|scripts|bench|include)/[\w./-]*)`",
                               text_of(name)):
            if "NAME" not in path:
                check((REPO / path).exists(), f"{name} speaks of {path}, which is not there")


@case("README options and defaults are those of --help")
def readme_options():
    readme = text_of("README.md")
    for option in options_of("run"):
        short = {"--tty": "-t", "--quiet": "-q"}.get(option, option)
        check(re.search(rf"`{re.escape(short)}\b", readme), f"the README does not name {option}")
    known = [*options_of("run"), *options_of("mcp"), "--json"]
    for option in re.findall(r"`(--[a-z-]+)", readme):
        check(option in known, f"there is no {option}")


@case("hype")
def hype():
    words = r"\b(blazing|lightning|seamless|powerful|robust|simply|revolutionary|cutting-edge|world-class|easily)\b"
    for name in ["README.md", "NEWS", "docs/design.md", "docs/security.md"]:
        found = re.search(words, text_of(name), re.I)
        check(not found, lambda name=name, found=found: f"{name} says {found.group(0)!r}")


# ---- Help and manual pages -----------------------------------------------------------------------


def help_of(verb):
    result = callbox([verb, "--help"])
    equal(result.code, 0, f"exit code of {verb} --help")
    equal(result.err, b"", f"stderr of {verb} --help")
    return result.out.decode()


def options_of(verb):
    found = sorted(set(re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", help_of(verb))))
    check(found, f"{verb} --help names no option")
    return found


def page(name):
    """A manual page as its reader sees the words: without scdoc's marks."""
    return re.sub(r"[*_]|\\(?=.)", "", text_of("man", name + ".scd"))


def mentions(text, option):
    return re.search(rf"(?<![\w-]){re.escape(option)}(?![\w-])", text)


VERBS = ["run", "doctor", "mcp", "policy", "warden", "wrap"]


@case("--help fits a screen")
def help_fits():
    for verb in VERBS:
        lines = help_of(verb).rstrip("\n").split("\n")
        check(len(lines) <= 40, f"{verb} --help has {len(lines)} lines")
        widest = max(lines, key=len)
        check(len(widest) <= 100, f"{verb} --help has a line of {len(widest)} columns: {widest}")


@case("callbox-run(1) explains every option")
def run_page():
    raw = text_of("man", "callbox-run.1.scd")
    for option in options_of("run"):
        check(re.search(rf"^\*?(?:\*?-\w\*, )?\*{re.escape(option)}\*", raw, re.M),
              f"callbox-run(1) has no entry for {option}")
    for option in set(re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", page("callbox-run.1"))):
        check(option in options_of("run") + ["--help", "--name"], f"there is no {option}")


@case("callbox-policy(5), callbox-doctor(1), callbox-mcp(1), callbox-warden(1) and callbox-wrap(1) explain their verbs")
def other_pages():
    for verb in ["check", "show", "schema"]:
        check(mentions(page("callbox-policy.5"), verb), f"callbox-policy(5) does not explain {verb}")
    for option in options_of("doctor"):
        check(mentions(page("callbox-doctor.1"), option), f"callbox-doctor(1) lacks {option}")
    for option in options_of("mcp"):
        check(mentions(page("callbox-mcp.1"), option), f"callbox-mcp(1) lacks {option}")
    for option in options_of("warden"):
        check(mentions(page("callbox-warden.1"), option), f"callbox-warden(1) lacks {option}")
    for option in options_of("wrap"):
        check(mentions(page("callbox-wrap.1"), option), f"callbox-wrap(1) lacks {option}")
    text = page("callbox-warden.1")
    for default in re.findall(r"\((\d+)\)", help_of("warden")):
        check(mentions(text, default), f"callbox-warden(1) lacks the default {default}")


@case("docs/mcp.md speaks of options that there are, in commands that callbox takes")
def mcp_page():
    text = text_of("docs", "mcp.md")
    known = set(options_of("mcp") + options_of("wrap"))
    foreign = {"--transport", "--header", "--prefix", "--package"}  # of claude, npm and npx
    for option in set(re.findall(r"(?<![\w-])(--[a-z][a-z-]+)", text)) - foreign:
        check(option in known, f"there is no {option}")
    blocks = re.findall(r"^```json\n(.*?)^```$", text, re.M | re.S)
    check(len(blocks) > 5, "there is hardly any JSON")
    for block in blocks:
        json.loads(block)


@case("docs/mcp.md counts the other protected names as callbox does")
def mcp_names():
    with tempfile.TemporaryDirectory() as workspace:
        done = callbox(["run", "--json", "--workspace", workspace, "--", "mkdir", ".git"], cwd="/")
    denial = next(item for item in json.loads(done.out)["denials"] if item["kind"] == "protected")
    others = len(json.loads(f"{{{denial['policy']}}}")["files"]["protect"])
    equal(re.findall(r"has the other (\d+) names", text_of("docs", "mcp.md")), [str(others)], "the number")


@case("callbox-policy(5) explains every key of the schema")
def policy_keys():
    schema = json.loads(callbox(["policy", "schema"]).out)
    text = page("callbox-policy.5")

    def walk(node):
        for key, child in node.get("properties", {}).items():
            yield key, child
            yield from walk(child)

    # The list is read with its underscores: page() has taken them away.
    for key, _ in walk(schema):
        check(key.replace("_", "") in text, f"callbox-policy(5) does not explain {key}")


@case("callbox-policy(5) has the defaults of policy show")
def policy_defaults():
    shown = json.loads(callbox(["policy", "show"]).out)
    raw = text_of("man", "callbox-policy.5.scd")
    for key, value in shown["limits"].items():
        row = re.search(rf"^\|  {key}\n:  (.*)$", raw, re.M)
        check(row, f"no row for limits.{key}")
        equal(row.group(1), json.dumps(value), f"the default of limits.{key} in callbox-policy(5)")
    for name in shown["require"]:
        check(f"_{name}_" in raw, f"callbox-policy(5) does not name the guarantee {name}")


@case("callbox-run(1) explains every field and reason of the report")
def report_fields():
    schema = json.loads(text_of("schema", "report.schema.json"))
    text = page("callbox-run.1")
    for key in schema["properties"]:
        check(key.replace("_", "") in text, f"callbox-run(1) does not explain {key}")
    reasons = schema["properties"]["reason"].get("enum", [])
    for reason in reasons:
        check(re.search(rf"^\|  {reason}$", text, re.M), f"callbox-run(1) lacks the reason {reason}")
    report = harness.run("true").report
    for key in report:
        check(key.replace("_", "") in text, f"callbox-run(1) does not explain {key}")


@case("pages are good manual pages")
def pages_lint():
    for source in sorted(REPO.glob("man/*.scd")):
        with open(source, "rb") as stream:
            made = execute(["scdoc"], stdin=stream)
        equal(made.code, 0, f"exit code of scdoc for {source.name} ({made.err!r})")
        check(b"to be written" not in made.out, f"{source.name} is to be written")
        if shutil.which("mandoc"):
            lint = execute(["mandoc", "-T", "lint", "-W", "warning"], data=made.out).out.decode()
            found = [line for line in lint.split("\n") if line and "skipping paragraph" not in line]
            check(not found, lambda found=found: found[0])


# ---- Example policies ----------------------------------------------------------------------------


def example(path):
    place = scratch.directory()
    checked = callbox(["policy", "check", path], cwd=place)
    equal(checked.code, 0, f"policy check ({checked.brief()})")
    check(checked.out.decode().endswith(": good\n"), checked.brief())
    shown = callbox(["policy", "show", path], cwd=place)
    equal(shown.code, 0, f"policy show ({shown.brief()})")
    written, effective = json.loads(path.read_text()), json.loads(shown.out)
    for key, value in written.get("limits", {}).items():
        equal(effective["limits"][key], value, f"limits.{key}")
    ran = callbox(["run", "--policy", path, "--", "sh", "-c", "echo $((6 * 7))"], cwd=place)
    equal((ran.code, ran.out), (0, b"42\n"), f"a program under it ({ran.brief()})")


for policy in sorted(REPO.glob("examples/policies/*.json")):
    harness.add(f"example policy {policy.name}", lambda policy=policy: example(policy))


@case("there are example policies, and the manual names each")
def examples_named():
    found = sorted(REPO.glob("examples/policies/*.json"))
    check(len(found) >= 3, "fewer than three")
    raw = text_of("man", "callbox-policy.5.scd")
    for path in found:
        check(f"examples/policies/{path.name}" in raw, f"callbox-policy(5) does not name {path.name}")
    for block in re.findall(r"^```\n(\{.*?)^```$", raw, re.M | re.S):
        check(json.loads(block) in [json.loads(p.read_text()) for p in found],
              "an example in callbox-policy(5) is none of examples/policies")


# ---- The demo ------------------------------------------------------------------------------------


def demo(user):
    home = scratch.directory(user)
    script = scratch.bin / "demo"
    shown = execute(harness.as_user([str(script)]) if user else [str(script)], timeout=60, cwd=home,
                    env=dict(environment(home), CALLBOX=str(command), TMPDIR=str(home)))
    out = shown.out.decode("utf-8", "replace")
    wrong = [line for line in out.split("\n") if line.startswith("NOT AS TOLD")]
    equal(shown.code, 0, f"exit code of scripts/demo ({wrong or out[-300:]!r}, {shown.err!r})")
    equal(os.listdir(home), [], "what the demo leaves behind")


for person in PEOPLE:
    harness.add(f"demo {who(person)}", lambda person=person: demo(person))


def before():
    global scratch, command
    scratch = harness.Scratch()
    command = scratch.install(harness.callbox_path(), "callbox")
    build = REPO / (os.environ.get("CALLBOX_BUILD") or "build")
    scratch.install(build / "callbox-functions")
    scratch.install_python(build)
    shutil.copy(REPO / "scripts" / "demo", scratch.bin / "demo")


if __name__ == "__main__":
    sys.exit(harness.main(before=before, after=lambda: scratch and scratch.remove()))
