#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The table of tests/attack/README.md says where each finding of the hostile review is tried: that this is so."""

import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(TESTS / "attack"))
import harness  # noqa: E402
import suite  # noqa: E402
from harness import case, check, equal  # noqa: E402

WAYS = ("a single call", "through a warden", "from a zygote", "over MCP")
FINDINGS = 25
ENTRY = re.compile(r'`(?P<file>[\w/]+)(?: "(?P<title>[^"]+)")?`')


def rows():
    lines = (TESTS / "attack" / "README.md").read_text().splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| S")]
    return {cells[0]: dict(zip(WAYS, cells[2:])) for cells in table}


def numbers_over_mcp():
    text = (TESTS / "test_mcp_holes.py").read_text()
    return re.findall(r'"(S\d+)"', re.search(r"^NUMBERS = \((.*)\)$", text, re.M).group(1))


def is_tried(number, file, title):
    """Is there a case of that kind? Attacks of the suite count where they are one of both people's."""
    if file == "suite":
        number = title or number
        found = [row for row in suite.TABLE if row.number == number]
        return {who for row in found for who in row.who} == set(suite.BOTH)
    if file == "mcp_holes" and title is None:
        return number in numbers_over_mcp() and any(row.number == number for row in suite.TABLE)
    path = TESTS / (f"{file}.py" if "/" in file else f"test_{file}.py")
    text = path.read_text() if path.exists() else ""
    return bool(title) and (f'"{title}' in text or f"def {title}" in text)  # an f-string begins so as well


@case("each finding has a cell for each way, and each cell a test or a reason")
def whole():
    found = rows()
    equal(sorted(found, key=lambda number: int(number[1:])), [f"S{n}" for n in range(1, FINDINGS + 1)], "the findings")
    for number, ways in found.items():
        equal(tuple(ways), WAYS, f"the ways of {number}")
        for way, cell in ways.items():
            entries = list(ENTRY.finditer(cell))
            if not entries:
                check(re.fullmatch(r"– .{12,}", cell), f"{number}, {way}: {cell!r} is neither a test nor a reason")
            equal(bool(ENTRY.sub("", cell).strip()), not entries, f"{number}, {way}: something beside the tests in {cell!r}: the words")
            for entry in entries:
                check(is_tried(number, entry["file"], entry["title"]), f"{number}, {way}: there is no {entry[0]}")


@case("no attack of a finding is missing from the table")
def complete():
    found = rows()
    told = " ".join(cell for ways in found.values() for cell in ways.values())
    for number in {row.number for row in suite.TABLE if row.number.startswith("S")}:
        check(f'`suite "{number}"`' in told or any("`suite`" in cell for cell in found.get(number, {}).values()), f"{number} of the suite is nowhere")
    for number in numbers_over_mcp():
        check("`mcp_holes`" in found[number]["over MCP"], f"{number} is tried over MCP, and the table does not say so")


@case("the check finds a test that is not there")
def control():
    for entry in (("S3", "inputs", "S3 no such title"), ("S3", "nowhere", "x"), ("S7", "suite", None), ("S7", "mcp_holes", None), ("S3", "inputs", None)):
        check(not is_tried(*entry), f"{entry} is taken for a test")


if __name__ == "__main__":
    sys.exit(harness.main(workers=1))
