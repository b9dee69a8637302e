#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The JSON Schema validator: every required case of the official suite for 2020-12, and our own.

The official suite is data of its own, not part of callbox. It is looked for in the directory that
CALLBOX_SCHEMA_SUITE names, be it the suite's own checkout, its tests/draft2020-12, or a package of
it below node_modules; without that variable, two levels below the directory that this checkout is in,
then below its own node_modules. Which one it is gets printed.
Its files name other documents as http://localhost:1234/..., which are given to the validator; nothing
listens there.

Our own cases are in schema/cases.json. A test has a value and, where it is wrong, the mistakes
that must be told, as path, keyword and text; "*" stands for any text. `bound` is the text of a
refusal because the check would take too much.
"""

import json
import os
import pathlib
import re
import sys

import harness
from harness import Skip, check, equal

PROGRAM = str(pathlib.Path(harness.callbox_path()).parent / "tests" / "schema-check")
CASES = harness.REPO / "tests" / "schema" / "cases.json"
E2BIG = -7
CONTROL = re.compile("[\\x00-\\x1f\\x7f-\\x9f]")
SKIPS = {"suite": "the official suite is not part of callbox; CALLBOX_SCHEMA_SUITE names a directory that has it"}


def run(cases, prefix=(), timeout=60.0):
    """The answers of the validator to some cases, in their order."""
    result = harness.execute([*prefix, PROGRAM], data=json.dumps(cases).encode(), timeout=timeout)
    equal(result.code, 0, f"exit code of the validator ({result.brief()})")
    answers = [json.loads(line) for line in result.out.decode().split("\n")[:-1]]
    equal(len(answers), len(cases), "number of answers")
    return answers


# ---- The official suite ----------------------------------------------------------------------

REMOTE = "http://localhost:1234/"


def suite_directories():
    """Where the suite may be: pairs of its cases and its remote documents."""
    named = os.environ.get("CALLBOX_SCHEMA_SUITE")
    if named:
        tops = [pathlib.Path(named)]
    else:
        tops = sorted(p for p in harness.REPO.parent.glob("*/*/*2020-12") if p.is_dir())
    packages = pathlib.Path(named or harness.REPO).glob("node_modules/**/tests/draft2020-12")
    tops += sorted(p.parent.parent for p in packages)
    for top in tops:
        yield top, top / "remotes"
        yield top / "tests" / "draft2020-12", top / "remotes"
        yield top, top.parent.parent / "remotes"


def find_suite():
    for cases, remotes in suite_directories():
        if (cases / "unevaluatedProperties.json").is_file() and remotes.is_dir():
            return cases, remotes
    return None


def remote_documents(remotes):
    documents = {}
    for path in sorted(remotes.rglob("*.json")):
        name = path.relative_to(remotes).as_posix()
        # Those of other drafts have dialects that are none of ours.
        if not name.startswith("draft") or name.startswith("draft2020-12/"):
            documents[REMOTE + name] = json.loads(path.read_text())
    return documents


def suite_file(path, documents):
    groups = json.loads(path.read_text())
    answers = run([{"documents": documents, "schema": group["schema"], "instances": [test["data"] for test in group["tests"]]} for group in groups])
    wrong, tests = [], 0
    for group, answer in zip(groups, answers):
        tests += len(group["tests"])
        if "error" in answer:
            wrong.append(f"{group['description']}: {answer['error']}")
            continue
        for test, result in zip(group["tests"], answer["results"]):
            if result["code"] != (0 if test["valid"] else 1):
                wrong.append(f"{group['description']}: {test['description']}: {result}")
            elif not test["valid"]:
                check(result["mistakes"], f"no mistake is told: {group['description']}: {test['description']}")
    check(tests > 0, "there is no test in it")
    check(not wrong, lambda: f"{len(wrong)} of {tests} tests: {'; '.join(wrong)}")
    return tests


def register_suite():
    found = find_suite()
    if not found:

        @harness.case("suite is there")
        def absent():
            raise Skip("not found")

        return
    cases, remotes = found
    documents = remote_documents(remotes)
    counts = {}
    print(f"the official suite is {cases}", flush=True)
    for path in sorted(cases.glob("*.json")):
        harness.add(f"suite: {path.stem}", lambda path=path: counts.update({path.stem: suite_file(path, documents)}))

    # Runs after the others: a suite that has lost its files would otherwise pass.
    @harness.case("suite: is all of it", alone=True)
    def complete():
        chosen = [a for a in sys.argv[1:] if not a.startswith("--")]
        check(chosen or sum(counts.values()) >= 1250, f"only {sum(counts.values())} tests were there")
        print(f"{sum(counts.values())} tests in {len(counts)} files of the official suite", flush=True)


# ---- Our own cases ---------------------------------------------------------------------------


def matches(text, wanted):
    """"*" at the beginning stands for anything."""
    return text.endswith(wanted[1:]) if wanted.startswith("*") else text == wanted


def check_refusal(error, wanted):
    equal(error["code"], -22, "code of the refusal")
    for field, value in wanted.items():
        check(matches(error[field], value), f"{field} is {error[field]!r}, not {value!r}")


def check_mistakes(result, test):
    wanted = test.get("wrong", [])
    got = [[m["path"], m["keyword"], m["text"]] for m in result["mistakes"]]
    equal(result["code"], 1 if wanted else 0, f"code ({got})")
    equal(len(got), len(wanted), f"number of mistakes ({got})")
    for have, want in zip(got, wanted):
        equal(have[:2], want[:2], "path and keyword")
        if not test.get("any_text"):
            check(matches(have[2], want[2]), f"text is {have[2]!r}, not {want[2]!r}")
    equal(result["cut"], test.get("cut", False), "cut")


def check_test(result, test):
    for mistake in result["mistakes"]:
        check(mistake["text"] and not CONTROL.search(mistake["text"] + mistake["path"]), f"not to be shown: {mistake}")
        check(len(mistake["text"]) < 2500 and len(mistake["path"]) < 512, f"too long: {mistake}")
    if "bound" in test:
        equal(result["code"], E2BIG, "code")
        check(result["exhausted"] and len(result["mistakes"]) == 1, f"{result}")
        check(matches(result["mistakes"][0]["text"], test["bound"]), f"{result}")
    elif "listed" in test:
        equal((result["code"], len(result["mistakes"]), result["cut"]), (1, test["listed"], test.get("cut", False)), "code, number of mistakes, cut")
        if "path_length" in test:
            equal(len(result["mistakes"][0]["path"]), test["path_length"], "length of the path")
    else:
        check_mistakes(result, test)
    if "added" in test:
        equal(result["added"], test["added"], "number of defaults")
    if "after" in test:
        equal(json.dumps(result["instance"]), json.dumps(test["after"]), "the value with its defaults")


def own_group(group):
    tests = group.get("tests", [])
    case = {"schema": group["schema"], "instances": [test["value"] for test in tests], "defaults": group.get("defaults", False), "documents": group.get("documents", {})}
    answer = run([case])[0]
    if "error" in group:
        check("error" in answer, "the schema is accepted")
        check_refusal(answer["error"], group["error"])
        return
    check("error" not in answer, f"the schema is refused: {answer.get('error')}")
    for number, (result, test) in enumerate(zip(answer["results"], tests)):
        try:
            check_test(result, test)
        except harness.Failed as failure:
            raise harness.Failed(f"test {number} with {harness.one_line(json.dumps(test), 200)}: {failure}")


def register_own():
    groups = json.loads(CASES.read_text())
    for group in groups:
        harness.add(f"own: {group['name']}", lambda group=group: own_group(group))


@harness.case("own: there are enough of them, and no two of a name")
def enough():
    groups = json.loads(CASES.read_text())
    equal(len({group["name"] for group in groups}), len(groups), "number of names")
    check(sum(len(group.get("tests", [0])) for group in groups) >= 300, "there are fewer than 300")


# ---- What the walk costs ---------------------------------------------------------------------


@harness.case("a small stack is enough for the deepest value")
def small_stack():
    schema = {"properties": {"a": {"allOf": [{"anyOf": [{"$ref": "#"}, False]}]}}, "unevaluatedProperties": False}
    deep = {"build": "deep-object", "of": 1, "n": 126}
    limit = ["sh", "-c", "ulimit -s 512 && exec \"$0\"" if not os.environ.get("CALLBOX_SMOKE") else "exec \"$0\""]
    answer = run([{"schema": schema, "instances": [deep]}], prefix=limit)[0]
    equal(answer["results"][0]["code"], 0, "code")


@harness.case("every keyword of the metaschema is known or ignored as the suite has it")
def metaschema_accepts_itself():
    base = "https://json-schema.org/draft/2020-12/"
    vocabularies = ("core", "applicator", "unevaluated", "validation", "meta-data", "format-annotation", "content")
    names = [base + "schema", *(f"{base}meta/{name}" for name in vocabularies)]
    cases = [{"schema": {"$ref": name}, "instances": [True, {}, {"type": "string"}]} for name in names]
    for name, answer in zip(names, run(cases)):
        check("results" in answer, f"{name}: {answer}")
        equal([r["code"] for r in answer["results"]], [0, 0, 0], name)


register_suite()
register_own()

if __name__ == "__main__":
    sys.exit(harness.main(skips=SKIPS))
