# SPDX-License-Identifier: MIT
"""What the package loads after it was imported comes from where it was then, whatever lies on sys.path by now
(S1); and what it loads before that is little."""

import json
import os
import pathlib
import subprocess
import sys
import textwrap

import pytest

import callbox
from callbox import _eager, _late

# Modules of all names lie first on sys.path as soon as the program has imported callbox; boxes do without them.
HEAD = textwrap.dedent("""
    import json, os, sys, warnings
    if "asyncio" in sys.argv:
        import asyncio
    import callbox
    import late_tools
    warnings.simplefilter("ignore")
    sys.path.insert(0, os.path.abspath("decoys"))
    for name in json.load(open("names.json")):
        os.makedirs(f"decoys/{name}")
        for path in (f"decoys/{name}.py", f"decoys/{name}/__init__.py"):
            with open(path, "w") as stream:
                stream.write("import os; os.write(2, b'DECOY ' + __name__.encode()); os._exit(9)")
    policy = callbox.Policy(hide=["decoys"])
""")

TOOLS = textwrap.dedent("""
    import datetime, decimal, pathlib, uuid

    def add(a: int, b: int) -> int:
        return a + b

    def many(n: int):
        return [decimal.Decimal(n), uuid.UUID(int=n), pathlib.Path("x"), datetime.date(2026, 1, n), {n}, b"1", 1j]

    def fails() -> int:
        raise ValueError("no")
""")

WAYS = {
    "a tool": """
        box = callbox.Toolbox([late_tools.add, late_tools.many, late_tools.fails], policy=policy)
        assert box.call_sync("add", {"a": 1, "b": 2}).output == 3
        assert "Decimal" in repr(box.call_sync("many", {"n": 3}).output)
        assert "ValueError" in box.call_sync("fails").traceback
        assert box.call_sync("add", {"a": 1, "b": 2}).report.started_at
    """,
    "a tool that is sent by value": """
        def twice(x: int) -> int:
            return 2 * x

        assert callbox.Toolbox([twice], policy=policy).call_sync("twice", {"x": 2}).output == 4
    """,
    "a tool on a loop": """
        box = callbox.Toolbox([late_tools.add], policy=policy)

        async def many():
            return await asyncio.gather(*(box.call("add", {"a": n, "b": 0}) for n in range(3)))

        assert [result.output for result in asyncio.run(many())] == [0, 1, 2]
        assert asyncio.run(callbox.arun("head -c 400000 /dev/zero")).ok
    """,
    "a command": """
        assert callbox.run("echo 1; head -c 200000 /dev/zero").stdout.startswith("1")
        warnings.simplefilter("always")
        warnings.warn("shown")
    """,
    "code": """
        done = callbox.run_python("import decimal; decimal.Decimal(n)", {"n": 3}, policy=policy)
        assert repr(done.result) == "Decimal('3')", done
    """,
    "complaints": """
        box = callbox.Toolbox([late_tools.add], policy=policy)
        for wrong in (lambda: callbox.Policy(reed=[]), lambda: box.call_sync("add", {"a": {1}})):
            try:
                raise AssertionError(wrong())
            except (callbox.CallboxError, TypeError) as error:
                assert "did you mean" in str(error) or "JSON does not have" in str(error), error
    """,
}  # fmt: skip


def agent(place, text, *words):
    names = {*sys.stdlib_module_names, "org", "numpy", "tzdata", "cloudpickle", "typing_extensions", "pydantic"}
    (place / "names.json").write_text(json.dumps(sorted(name for name in names if not name.startswith("__"))))
    (place / "agent.py").write_text(HEAD + textwrap.dedent(text))
    (place / "late_tools.py").write_text(TOOLS)
    return subprocess.run([sys.executable, "agent.py", *words], cwd=place, text=True, capture_output=True, check=False)


def printed(code):
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], text=True, capture_output=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("way", WAYS)
def test_S1_nothing_is_loaded_from_beside_the_program(tmp_path, way):
    done = agent(tmp_path, WAYS[way], *["asyncio"] * ("loop" in way))
    assert done.returncode == 0 and "DECOY" not in done.stderr, done.stderr


def test_S1_and_would_be_otherwise(tmp_path):
    """The control: an import of one's own finds what lies there."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    assert "DECOY colorsys" in agent(tmp_path / "one", "import colorsys").stderr
    finder = "callbox._late._Finder.find_spec = lambda *_, **__: None\n"
    assert "DECOY" in agent(tmp_path / "two", finder + textwrap.dedent(WAYS["a tool"])).stderr


def test_S1_a_name_that_is_nowhere_is_not_looked_for_elsewhere(tmp_path):
    load = "try:\n    callbox._late.load('org')\nexcept ModuleNotFoundError as error:\n    print(error)"
    assert agent(tmp_path, load).stdout == "No module named 'org'\n"


@pytest.mark.parametrize("place, all_of_it", [
    (pathlib.Path(os.__file__).parent, True), (pathlib.Path(os.__file__).parent / "json", True),
    (pathlib.Path(callbox.__file__).parent / "compat", True), (pathlib.Path(__file__).parent, False),
])  # fmt: skip
def test_S1_what_boxes_may_write_within_is_loaded_before(place, all_of_it):
    code = f"""
        import sys
        from callbox import _eager, _inputs
        _inputs.to_hold([{os.path.realpath(place)!r}], "allow")
        print(all(name in sys.modules for name in _eager.ALL))
    """
    assert printed(code) == {str(all_of_it)}


def test_S1_what_is_loaded_late_is_known():
    """Nothing is loaded late that would not have been loaded first where boxes may write to its place."""
    code = """
        import sys
        from callbox import _code, _eager, _late, _run, _toolbox
        from callbox.compat import calute, jeevesagent, openjarvis_tools
        own = [module for name, module in sys.modules.items() if name.startswith("callbox")]
        late = {thing._name for module in own for thing in vars(module).values() if isinstance(thing, _late.Late)}
        _eager.load(_eager.ALL)
        print(len(late) > 5, *late - set(sys.modules))
    """
    # What goes into a box by value is no answer to what one said.
    assert printed(code) <= {"True", "callbox._by_value"}


def test_an_import_loads_little():
    heavy = {"asyncio", "typing", "json", "re", "inspect", "threading"}
    above = os.path.dirname(os.path.dirname(callbox.__file__))
    loaded = "import callbox\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", f"import sys\nsys.path.append({above!r})\n{loaded}"],
                          text=True, capture_output=True, check=True)  # fmt: skip
    assert not heavy & set(done.stdout.split()) and "callbox" in done.stdout.split()
    found = printed("import callbox, sys; callbox.Toolbox, callbox.run, callbox.Policy; print(*sys.modules)")
    assert not {"asyncio", "logging", "decimal", "uuid", "zoneinfo", "cloudpickle"} & found


def test_all_names_are_there():
    for name in callbox.__all__:
        assert getattr(callbox, name) is not None and name in dir(callbox)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        callbox.nothing  # noqa: B018
    assert set(_eager.RESULT) < set(_eager.ALL) and not _late.boxed
