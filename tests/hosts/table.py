# SPDX-License-Identifier: MIT
"""docs/hosts.md, from the results of the matrix. Rows and suites may be run one by one; the last result of each counts."""

import json

GUARANTEES = ["tree-kill", "files", "network", "syscalls", "privileges", "environment", "memory", "pids", "cpu",
              "landlock", "cgroup"]


def read(kept):
    return json.loads(kept.read_text()) if kept.exists() else {}


def keep(kept, result):
    everything = read(kept)
    old = everything.get(result.row.key, {"shown": None, "suites": {}})
    everything[result.row.key] = {"shown": result.shown or old["shown"], "suites": {**old["suites"], **result.suites},
                                  "error": result.error, "skipped": result.skipped}
    kept.write_text(json.dumps(everything, indent=1))


def suite(found, name):
    if name not in found["suites"]:
        return "–"
    passed, failed, note = found["suites"][name]
    text = f"{passed} held" if name.startswith("attack") else f"{passed}"
    return text + (f", **{failed} not**" if failed else "") + (f" ({note})" if note else "")


def boxes(shown):
    return ", ".join(name for name, box in shown["boxes"].items() if box["runs"]) or "refused"


def attacks(found):
    """On boxes with namespaces and without, where there are any."""
    names = {"attack": "namespaces", "attack-landlock": "landlock"}
    return "; ".join(f"{kind}: {suite(found, name)}" for name, kind in names.items() if name in found["suites"]) or "–"


def others(found):
    extra = [n for n in found["suites"] if n not in ("doctor", "attack", "attack-landlock", "programs")]
    return ", ".join(f"{n}: {suite(found, n)}" for n in extra) or "–"


def cell(shown, name):
    item = shown["guarantees"][name]
    return item["by"] if item["enforced"] else "**no**"


def missing(shown):
    """Causes and fixes, each once."""
    told = {}
    for name, item in shown["guarantees"].items():
        if not item["enforced"]:
            told.setdefault((item["cause"], item["fix"]), []).append(name)
    return [(", ".join(names), cause, fix) for (cause, fix), names in told.items()]


HEAD = """# Hosts

Written by `make test-hosts`, which runs callbox on each of these hosts. Do not edit.

The attack suite and the table of ordinary programs are those of `make test`; *doctor* compares what
`callbox doctor` says with probes of its own, and sees that what is missing is refused, with a fix. *knobs*
switches on the settings that stop a box, one by one, sees what is refused, and makes the fix of doctor to the letter. Where
no box can be made, nothing is run: that is the refusal. Attacks and their controls are counted on the build
machine, attacks alone elsewhere. Emulated machines have neither Node nor Java, make some attacks less often, and but for
one of them make only those that a kernel or a control group could make a difference to (`SOME` in `tests/hosts/run`).
"""


def write(path, kept, rows, note):
    results = read(kept)
    lines = [HEAD, "| host | what it is | kernel | boxes | attacks | programs | doctor | others |",
             "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    shown = []
    for row in rows:
        found = results.get(row.key, {"shown": None, "skipped": "not run", "error": ""})
        if not found["shown"]:
            lines.append(f"| {row.title} | {row.what} | – | {found['skipped'] or found['error']} | – | – | – | – |")
            continue
        shown.append((row, found["shown"]))
        kernel = ".".join(found["shown"]["host"]["kernel"].split("-")[0].split(".")[:2])
        lines.append(f"| {row.title} | {row.what} | {kernel} | {boxes(found['shown'])} | {attacks(found)} |"
                     f" {suite(found, 'programs')} | {suite(found, 'doctor')} | {others(found)} |")
    if note:
        lines += ["", note]
    lines += ["", "## By what each guarantee is kept", "",
              "By the box that callbox chooses there, for whoever is named first above.", "",
              "| guarantee | " + " | ".join(row.title for row, _ in shown) + " |", "| --- |" + " --- |" * len(shown)]
    for name in GUARANTEES:
        lines.append(f"| {name} | " + " | ".join(cell(s, name) for _, s in shown) + " |")
    lines += ["", "## What is missing, and the fix that doctor tells", ""]
    for row, s in shown:
        found = missing(s)
        if found:
            lines.append(f"**{row.title}** ({row.what})")
            lines.append("")
            for names, cause, fix in found:
                lines.append(f"- {names}: {cause}. Fix: `{fix}`" if "`" not in fix else f"- {names}: {cause}. Fix: {fix}")
            lines.append("")
    path.write_text("\n".join(lines).rstrip() + "\n")


