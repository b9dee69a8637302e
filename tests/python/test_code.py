# SPDX-License-Identifier: MIT
"""Source text in a box: run_python()."""

import asyncio
import datetime

import pytest

from callbox import CallboxError, Policy, arun_python, run_python


def test_the_last_expression_is_the_result():
    done = run_python("import math\nprint('hello')\nn * math.factorial(3)", {"n": 7})
    assert done.ok and done.result == 42 and done.text == "42" and done.stdout == "hello\n"
    assert run_python("x = 1").result is None
    assert run_python("").ok
    assert run_python("if True:\n    1").result is None


def test_inputs_are_typed_and_may_not_be_just_anything():
    when = datetime.datetime(2026, 1, 1)
    done = run_python("when.year, data[:1]", {"when": when, "data": b"\xff\x00"})
    assert done.result == (2026, b"\xff")
    with pytest.raises(CallboxError, match="inputs"):
        run_python("1", {"f": object()})


def test_files_go_in_and_artifacts_come_out():
    code = """
import os
os.makedirs("out/deep")
open("out/deep/b.bin", "wb").write(open("data/a.bin", "rb").read() * 2)
os.symlink("/etc/passwd", "out/link")
os.mkfifo("out/pipe")
open("out/large", "wb").truncate(9 << 20)
sorted(os.listdir("."))
"""
    done = run_python(code, files={"data/a.bin": b"\x00\xff", "b.txt": "ä"})
    assert done.error is None and done.result == ["b.txt", "data", "out"]
    assert done.artifacts == {"deep/b.bin": b"\x00\xff\x00\xff"}
    assert done.left_out == ["large", "link", "pipe"]


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", "", ".", "a\0b"])
def test_file_names_stay_in_the_directory(name):
    with pytest.raises(CallboxError):
        run_python("1", files={name: ""})


def test_an_error_is_a_result_with_its_place():
    done = run_python("def f():\n    return 1 / 0\nprint('so far')\nopen('out/a', 'w').write('x')\nf()")
    assert not done.ok and done.error == "ZeroDivisionError: division by zero"
    assert done.stdout == "so far\n" and done.artifacts == {"a": b"x"}
    frames = [line.strip() for line in done.traceback.split("\n") if line.startswith("  File ")]
    assert frames == ['File "<code>", line 5, in <module>', 'File "<code>", line 2, in f']
    assert "return 1 / 0" in done.traceback
    assert run_python("1 +").error.startswith("SyntaxError")
    assert run_python("import sys; sys.exit(2)").error == "SystemExit: 2"


def test_a_value_that_cannot_leave_has_its_text():
    done = run_python("object")
    assert done.ok and done.result is None and done.text == "<class 'object'>"


def test_await_at_the_top():
    code = "import asyncio\nasync def f(): return 5\nx = await f()\nawait asyncio.sleep(0)\nx + await f()"
    assert asyncio.run(arun_python(code)).result == 10


def test_limits_and_policies(tmp_path):
    done = run_python("while True: pass", timeout=0.5)
    assert not done.ok and done.report.reason == "timeout"
    done = run_python("import os; os.abort()")
    assert not done.ok and done.report.reason == "signaled"
    (tmp_path / "a").write_text("shown")
    code = f"open({str(tmp_path / 'a')!r}).read()"
    assert run_python(code, policy=Policy(read=[tmp_path])).result == "shown"
    assert run_python(code).error.startswith("FileNotFoundError")


def test_calls_see_nothing_of_each_other():
    code = """
import os, sys
seen = [os.path.exists("/tmp/trace"), hasattr(sys, "left"), "LEFT" in os.environ]
open("/tmp/trace", "w")
sys.left = os.environ["LEFT"] = "x"
any(seen)
"""
    assert [run_python(code).result for _ in range(3)] == [False] * 3


def test_what_came_plainly_is_noted():
    done = run_python("import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\nP(1)")
    assert done.result == {"x": 1} and done.notes == ["'__main__.P' came back as a dict, as the return hint does not name it"]
    assert run_python("(1, 2)").notes == []
