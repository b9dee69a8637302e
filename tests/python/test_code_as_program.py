# SPDX-License-Identifier: MIT
"""Source text is a program of its own: it is __main__, and its end is that of an interpreter."""

import asyncio
import textwrap

import pytest

from callbox import CallboxError, Policy, Toolbox, arun_python, run, run_python


def artifacts(code, **more):
    done = run_python(textwrap.dedent(code), **more)
    assert done.ok, done.traceback
    return done.artifacts


def test_a_file_that_was_left_open_is_written():
    assert artifacts("f = open('out/a', 'w')\nf.write('x' * 100)") == {"a": b"x" * 100}


def test_a_file_is_written_whoever_holds_it():
    """A cycle, a value that is told, a thread, a module that was brought along, a module of the library."""
    code = """
    import dataclasses, helper, sys, threading, zipfile
    files = [open(f"out/{n}", "w") for n in range(3)]
    for n, file in enumerate(files):
        file.write(str(n))
    files.append(files)
    sys.kept = open("out/kept", "w")
    sys.kept.write("kept")
    archive = zipfile.ZipFile("out/archive.zip", "w")
    archive.writestr("name", "content")

    @dataclasses.dataclass
    class Told:
        n: int
        def method(self):
            return archive

    Told(5)
    """
    helper = "file = open('out/helper', 'w')\nfile.write('helped')\n"
    found = artifacts(code, files={"helper.py": helper})
    archive = found.pop("archive.zip")
    assert archive.startswith(b"PK\x03\x04") and b"PK\x05\x06" in archive  # has its directory
    assert found == {"0": b"0", "1": b"1", "2": b"2", "kept": b"kept", "helper": b"helped"}


def test_threads_and_functions_of_atexit_are_waited_for():
    code = """
    import atexit, concurrent.futures, threading, time

    def write(name):
        time.sleep(0.1)
        open(f"out/{name}", "w").write(greeting)

    greeting = "hello"
    threading.Thread(target=write, args=["thread"]).start()
    threading.Thread(target=time.sleep, args=[1000], daemon=True).start()
    concurrent.futures.ThreadPoolExecutor().submit(write, "pool")
    atexit.register(write, "atexit")
    """
    assert artifacts(code) == dict.fromkeys(("thread", "pool", "atexit"), b"hello")


def test_the_end_comes_after_an_error_too():
    done = run_python("f = open('out/a', 'w')\nf.write('x')\n1 / 0")
    assert done.error == "ZeroDivisionError: division by zero" and done.artifacts == {"a": b"x"}


def test_tasks_of_a_loop_end_with_it():
    code = """
    import asyncio

    async def forever():
        try:
            await asyncio.sleep(1000)
        finally:
            open("out/ended", "w").write("x")

    task = asyncio.ensure_future(forever())
    await asyncio.sleep(0)
    task.done()
    """
    done = asyncio.run(arun_python(textwrap.dedent(code)))
    assert done.ok and done.artifacts == {"ended": b"x"} and done.stderr == ""


def test_nothing_of_this_package_is_inherited():
    assert run_python("def f(x: int): pass\nf.__annotations__['x'] is int").result is True
    code = "from __future__ import annotations\ndef f(x: int): pass\nf.__annotations__"
    assert run_python(code).result == {"x": "int"}


@pytest.mark.parametrize(
    "code",
    [
        "import pickle\nclass A: pass\ntype(pickle.loads(pickle.dumps(A()))) is A",
        """
        import multiprocessing
        def double(n): return 2 * n
        with multiprocessing.get_context("fork").Pool(2) as pool:
            pool.map(double, [1, 2]) == [2, 4]
        pool = multiprocessing.get_context("fork").Pool(1)
        pool.map(double, [1, 2]) == [2, 4]
        """,
        """
        from __future__ import annotations
        import dataclasses, typing
        @dataclasses.dataclass
        class A:
            b: dataclasses.InitVar[int]
            c: B = None
        class B: pass
        A(1)
        [field.name for field in dataclasses.fields(A)] == ["c"] and typing.get_type_hints(B.__init__) == {}
        """,
        """
        import typing
        class A:
            next: "A"
        typing.get_type_hints(A)["next"] is A
        """,
        """
        import unittest
        class Case(unittest.TestCase):
            def test_it(self):
                self.assertEqual(1, 1)
        unittest.main(argv=["code"], exit=False).result.testsRun == 1
        """,
        """
        import doctest
        def double(n):
            '''
            >>> double(2)
            4
            '''
            return 2 * n
        doctest.testmod().attempted == 1
        """,
        "import sys\nsys.modules['__main__'].__dict__ is globals()",
    ],
)
def test_it_is_the_main_module(code):
    done = run_python(textwrap.dedent(code))
    assert done.ok, done.traceback
    assert done.result is True


@pytest.mark.parametrize("said", ["sys.exit()", "sys.exit(0)", "raise SystemExit", "exit()", "sys.exit(False)"])
def test_an_exit_that_is_a_success(said):
    done = run_python(f"import sys\nopen('out/a', 'w').write('x')\n{said}")
    assert done.ok and done.error is None and done.traceback == "" and done.artifacts == {"a": b"x"}


@pytest.mark.parametrize("said", ["3", "'no data'", "True"])
def test_an_exit_that_is_a_failure(said):
    done = run_python(f"import sys\nsys.exit({said})")
    assert not done.ok and done.error == f"SystemExit: {said.strip(chr(39))}"


def test_a_syntax_error_has_no_frame_but_its_own():
    done = run_python("x = 1\nx = = 2")
    assert done.error.startswith("SyntaxError") and done.traceback.count("File ") == 1
    assert 'File "<code>", line 2' in done.traceback


def test_code_that_removes_its_directory_keeps_its_result():
    done = run_python("import os, shutil\nshutil.rmtree(os.getcwd())\n5")
    assert done.ok and done.result == 5 and done.artifacts == {}


def test_a_number_too_long_to_be_printed_is_a_result():
    done = run_python("10 ** 6000")
    assert done.ok and done.result == 10**6000


@pytest.mark.parametrize("code", [None, b"1", 5])
def test_code_is_a_text(code):
    with pytest.raises(TypeError, match="code must be a text"):
        run_python(code)


@pytest.mark.parametrize("name", ["a b", "", "1a", "class", 5])
def test_names_of_inputs_are_names_of_variables(name):
    with pytest.raises(ValueError, match="cannot be the name of a variable"):
        run_python("1", {name: 1})


def test_what_is_said_of_a_bad_input():
    with pytest.raises(CallboxError) as raised:
        run_python("1", {"things": [object()]})
    assert str(raised.value).startswith("inputs['things'][0]: an object cannot go into the box; give numbers")


def test_more_time_where_nobody_has_bounded_it():
    assert run_python("1", timeout=100).result == 1
    assert asyncio.run(arun_python("1", timeout=31)).result == 1
    assert run("true", timeout=100).ok
    assert run_python("while True: pass", timeout=0.5).report.reason == "timeout"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda **more: run_python("1", policy=Policy(), **more),
        lambda **more: run("true", policy=Policy(), **more),
        lambda **more: Toolbox([{"name": "t", "inputSchema": {"type": "object"}, "run": {"command": ["true"]}}]).call_sync("t", **more),
    ],
)
def test_more_time_than_the_policy_allows_is_refused_by_name(wrong):
    with pytest.raises(CallboxError) as raised:
        wrong(timeout=100)
    assert raised.value.where == "timeout" and raised.value.hint == "give the policy limits={'wall': 100}"
    with pytest.raises(CallboxError) as raised:
        wrong(limits={"wall": 100})
    assert raised.value.where == "limits.wall" and "limits={'wall': ...}" in raised.value.hint
