# SPDX-License-Identifier: MIT
"""What a box said is read without importing, opening or executing anything (S1)."""

import ast
import pathlib
import subprocess
import sys
import textwrap

import pytest

import callbox

PACKAGE = pathlib.Path(callbox.__file__).parent
# Function-level imports, and why they can run no code that a box has left.
ALLOWED = {
    ("_serve.py", "*"): "runs in a box",
    ("_code_box.py", "*"): "runs in a box",
    ("_foreign.py", "*"): "runs in a box",
    ("_hosted.py", "*"): "runs in a box",
    ("compat/_box.py", "*"): "runs in a box",
    ("_once.py", "*"): "runs in a box",
    ("_late.py", "import_module"): "from the standard library, or when the package is loaded (test_own_late.py)",
    ("_zones.py", "tzdata"): "called when the module is loaded",
    ("_native.py", "import_module"): "called when the module is loaded",
    ("compat/_real.py", "import_module"): "called when a drop-in is loaded",
}


def late_imports(path):
    """(module or function that imports, line) of what a file imports within functions."""
    for function in ast.walk(ast.parse(path.read_text())):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Import):
                yield from ((name.name, node.lineno) for name in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield node.module or node.names[0].name, node.lineno
            elif isinstance(node, ast.Call):
                name = getattr(node.func, "attr", "") or getattr(node.func, "id", "")
                if name in ("import_module", "__import__", "getsource", "getlines"):
                    yield name, node.lineno


def test_S1_no_function_imports_anything():
    used, wrong = set(), []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = str(path.relative_to(PACKAGE))
        for what, line in late_imports(path):
            keys = {(name, "*"), (name, what)} & set(ALLOWED)
            used |= keys
            if not keys:
                wrong.append(f"{name}:{line}: imports {what} when it is called")
    assert wrong == []
    assert used == set(ALLOWED) - {("_native.py", "import_module")}, "entries that allow nothing"


def test_S1_no_regular_expression_reads_what_a_box_said():
    """Those that are left read docstrings, sizes of the caller's own, and a dtype of bounded length."""
    known = {"_schema.py", "_left.py", "_drive.py", "_arrays.py"}
    found = {str(p.relative_to(PACKAGE)) for p in PACKAGE.rglob("*.py") if "re.compile(" in p.read_text() or "re.sub(" in p.read_text()}
    assert found == known


# Runs in a directory that is sys.path[0] and full of decoys, which a box may have written after the start.
READ = textwrap.dedent("""
    import os, sys
    numpy = None
    if "numpy" in sys.argv:
        import numpy
    import callbox
    from callbox import _eager, _report, _values
    from callbox._code import CodeResult
    from callbox._parts import Parts
    from callbox._toolbox import Result, Typed
    import asyncio, datetime, json, struct, warnings
    callbox.Report
    _eager.load(_eager.RESULT + _eager.LOOP)  # as any call has done

    class Now:
        watched = False
        seen = []

    def hook(event, arguments):
        if Now.watched and event in ("import", "open", "exec", "compile", "os.listdir", "os.scandir", "subprocess.Popen"):
            Now.seen.append((event, str(arguments[:1])))

    sys.addaudithook(hook)

    for name in json.load(open("names.json")):
        with open(name + ".py", "w") as stream:
            stream.write("import os; os.write(2, b'DECOY %s' + __name__.encode()); os._exit(9)")

    def told(output):
        report = _report.Report(("{}", b"out", b"err", (True, None, False, None, None), None, [output.encode()], -1))
        return Result("t", "", report, Typed(_values.Hinted(), 0), patient=True)

    Now.watched = True
    for text in json.load(sys.stdin):
        result = told(text)
        repr(result), CodeResult(result)
        if result.output is not None:
            str(result.output), repr(result.output)
    from_report = callbox.Report(('{"started_at": "2026-01-01T00:00:00Z", "denials": []}', b"\\xff", b"", None, None, [], -1))
    from_report.started_at, from_report.stdout, from_report.denials

    async def loop():
        from callbox._drive import aside
        return await aside(told, "[1]")

    assert asyncio.run(loop()).output == [1]
    warnings.warn("shown", UserWarning)
    Now.watched = False
    print(json.dumps(Now.seen))
""")


def every_value():
    bytes_, tagged = "aGk=", lambda tag, value, **more: {"$callbox": tag, "value": value, **more}
    zones = ("UTC", "Europe/Berlin", "No/Such", "tzdata", "../../etc/passwd", "encodings", "posix/UTC")
    return [
        1, 1.5, None, "text", [1], {"a": 1}, tagged("int", "0xff"), tagged("float", "nan"), tagged("tuple", [1]),
        tagged("set", [1]), tagged("frozenset", [1]), tagged("dict", [[1, 2]]), tagged("bytes", bytes_),
        tagged("bytearray", bytes_), tagged("text", bytes_), tagged("date", "2026-01-01"),
        *(tagged("datetime", "2026-01-01T00:00:00+01:00", zone=zone) for zone in zones),
        *(tagged("time", "01:00:00", zone=zone, fold=1) for zone in zones),
        tagged("datetime", "no time"), tagged("timedelta", [1, 2, 3]), tagged("decimal", "1E+5"),
        tagged("decimal", "wrong"), tagged("uuid", "12345678123456781234567812345678"), tagged("path", "/a"),
        tagged("path", "a", pure="windows"), tagged("complex", [1, 2]), tagged("complex", ["x", 2]),
        tagged("enum", 1, type="os:system", name="x"), tagged("dataclass", {"a": 1}, type="subprocess:Popen"),
        tagged("namedtuple", [1], type="asyncio:x"), tagged("unknown", 1), {"$callbox": ["x"]},
        tagged("deque", [1], maxlen=3), tagged("fraction", [1, 3]), tagged("range", [0, 9, 2]), tagged("slice", [0, 9, 2]),
        tagged("counter", [[1, 2]]), tagged("ordereddict", [[1, 2]]), tagged("derived", 1, type="asyncio:x"),
        *(tagged("defaultdict", [[1, 2]], factory=name) for name in ("list", "OrderedDict", "os.system", "__import__")),
        *(tagged("exception", [1], base=base, more={"name": "asyncio", "__class__": 1}) for base in ("KeyError", "x")),
        tagged("exception", [1], base="ImportError", type="subprocess:TimeoutExpired", more={"name": "x"}),
        *({"$callbox": "numpy", "dtype": dtype, "shape": shape, "value": value, "scalar": True}
          for dtype in ("<i4", "<f8", "|b1", "<U1", "|S4", "<M8[ns]", "<m8[10us]", "<c16", "|V4", "|O8", "<U0", "<i9")
          for shape, value in (([], bytes_), ([1], "AAAAAA=="), ([0], ""), ([2**40, 0], ""), ([2], "AAAAAAAAAAA="))),
        {"result": 1, "text": "1", "artifacts": {"a": tagged("bytes", bytes_)}, "left_out": ["x"]},
        {"result": 1, "artifacts": {"../a": 5}}, {"error": "encodings.idna", "traceback": "os.py"},
    ]  # fmt: skip


@pytest.mark.parametrize("with_numpy", [False, True])
def test_S1_reading_imports_opens_and_executes_nothing(tmp_path, with_numpy):
    import json

    if with_numpy:
        pytest.importorskip("numpy", reason="numpy is not installed (Debian: python3-numpy)")
    names = sorted({*sys.stdlib_module_names, "numpy", "tzdata", "cloudpickle", "pydantic", "sitecustomize"})
    (tmp_path / "names.json").write_text(json.dumps([name for name in names if not name.startswith("__")]))
    (tmp_path / "agent.py").write_text(READ)
    texts = [json.dumps(value) for value in every_value()]
    texts += ["", "{", '"', "[" * 3000, "9" * 5000, '{"a": NaN}', '"\\ud800"', "[" + "1," * 2500 + "1]"]
    done = subprocess.run([sys.executable, "agent.py", "numpy" if with_numpy else "-"], cwd=tmp_path,
                          input=json.dumps(texts), text=True, capture_output=True, check=False)  # fmt: skip
    assert done.returncode == 0 and "DECOY" not in done.stderr, done.stderr
    seen = [what for what in json.loads(done.stdout) if not what[1].endswith("agent.py',)")]  # of the warning's line
    assert seen == []


def test_S1_an_import_that_waits_would_be_caught(tmp_path):
    """The control: the same test, of a program that imports when it reads."""
    (tmp_path / "agent.py").write_text("import os\nopen('colorsys.py', 'w').write('print(\"DECOY\")')\nimport colorsys\n")
    done = subprocess.run([sys.executable, "agent.py"], cwd=tmp_path, text=True, capture_output=True, check=False)
    assert "DECOY" in done.stdout
    source = tmp_path / "late.py"
    source.write_text("def read(x):\n    import zoneinfo\n    return __import__('a'), importlib.import_module(x)\n")
    assert [what for what, _ in late_imports(source)] == ["zoneinfo", "__import__", "import_module"]


AGENT = textwrap.dedent("""
    import os, sys, textwrap, warnings
    import callbox
    from callbox import Policy, run_python
    warnings.simplefilter("ignore", callbox.ImportPathWarning)
    CODE = textwrap.dedent('''
    import os
    for name in NAMES:
        try:
            open(os.path.join(WS, name + ".py"), "w").write("import os; os.write(1, b'EXECUTED')")
        except OSError:
            pass
    import datetime, zoneinfo
    %s
    ''')
    done = run_python(CODE, {"WS": os.getcwd(), "NAMES": ["zoneinfo", "numpy", "queue", "tzdata", "linecache"]},
                      policy=Policy(workspace="."))
    print(done.ok or done.error, repr(done.result)[:60])
""")


@pytest.mark.parametrize("value, expected", [
    ("datetime.datetime(2020, 1, 1, tzinfo=zoneinfo.ZoneInfo('UTC'))", "True datetime.datetime(2020, 1, 1"),
    ("__import__('numpy').zeros(3)", "its result is none that callbox knows: it has an array of numpy"),
    ("'x' * 1000000", "True 'xxx"),
])  # fmt: skip
def test_S1_in_a_project_that_is_the_workspace(tmp_path, value, expected):
    """`python3 agent.py`, where the box leaves modules beside the agent. It goes on working."""
    (tmp_path / "agent.py").write_text(AGENT.replace("%s", value))
    done = subprocess.run([sys.executable, "agent.py"], cwd=tmp_path, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "EXECUTED" not in done.stdout and done.stdout.startswith(expected)
    assert (tmp_path / "zoneinfo.py").exists()
