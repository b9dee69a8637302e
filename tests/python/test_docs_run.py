# SPDX-License-Identifier: MIT
"""The examples of README.md and of docs/ print what is written below them."""

import pathlib
import re
import subprocess
import sys

import pytest

REPO = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:```output\n(.*?)^```\n)?", re.M | re.S)


@pytest.mark.parametrize("name, least", [("docs/python.md", 6), ("docs/migrating.md", 4), ("README.md", 1)])
def test_examples(name, least, tmp_path):
    blocks = BLOCK.findall((REPO / name).read_text(encoding="utf-8"))
    assert len([output for _, output in blocks if output]) >= least
    for number, (code, expected) in enumerate(blocks):
        file = re.match(r"# file: (\S+)\n", code)
        path = tmp_path / (file.group(1) if file else f"example_{number}.py")
        path.write_text(code, encoding="utf-8")
        if file:
            continue
        done = subprocess.run([sys.executable, str(path)], cwd=tmp_path, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)  # fmt: skip
        assert done.stdout == expected and done.returncode == 0, code
