# SPDX-License-Identifier: MIT
"""What somebody runs into who has just begun."""

import importlib.util
import math
import os
import subprocess
import sys
import textwrap
import types

import pytest

import callbox
from callbox import CallboxError, Policy, Tool, Toolbox, run, run_python


def script(place, text, **files):
    """Run a program with files beside it."""
    for name, content in files.items():
        (place / name.replace("__", ".")).write_text(textwrap.dedent(content))
    (place / "program.py").write_text(textwrap.dedent(text))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p.endswith("python"))}
    done = subprocess.run([sys.executable, "program.py"], cwd=place, env=env, text=True, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_secrets_beside_a_program_are_not_for_its_tools(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("secret")
    (tmp_path / ".env").write_text("KEY=secret")
    (tmp_path / ".env.local").write_text("KEY=secret")
    told = script(
        tmp_path,
        """
        import os
        from callbox import Policy, Toolbox, run_python
        import reading
        names = [".env", ".env.local", ".git/config", "helper.py", "data.txt"]
        print(Toolbox([reading.read]).call_sync("read", {"names": names}).output)
        print(Toolbox([reading.read], policy=Policy(read=[".env"])).call_sync("read", {"names": names}).output)
        here = os.getcwd()
        print(run_python(f"import os; [os.path.exists(os.path.join({here!r}, n)) for n in {names!r}]").result)
        """,
        reading__py="""
        import os
        import helper
        def read(names: list) -> list:
            found = []
            for name in names:
                try:
                    found.append(open(os.path.join(os.path.dirname(__file__), name)).read(4))
                except OSError:
                    found.append("")
            return found
        """,
        helper__py="pass\n",
        data__txt="data",
    )
    assert told[0] == "['', '', '', 'pass', 'data']"
    assert told[1] == "['KEY=', '', '', 'pass', 'data']"
    assert told[2] == "[False, False, False, False, False]"


def test_a_module_that_cannot_be_imported_by_its_name_is_sent_by_value(tmp_path):
    (tmp_path / "plugin.py").write_text("def double(n: int) -> int:\n    return 2 * n\n")
    spec = importlib.util.spec_from_file_location("plugin_of_mine", tmp_path / "plugin.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["plugin_of_mine"] = module
    try:
        spec.loader.exec_module(module)
        assert "cannot be imported" in __import__("callbox._interpreter")._interpreter.why_not_by_name(module.double)
    finally:
        del sys.modules["plugin_of_mine"]
    made = types.ModuleType("made_up")
    exec("def triple(n: int) -> int:\n    return 3 * n\n", vars(made))
    assert Toolbox([made.triple]).call_sync("triple", {"n": 2}).output == 6


def test_models_of_pydantic_that_refer_to_themselves_and_share_names():
    pydantic = pytest.importorskip("pydantic")
    import pydantic_models as models

    del pydantic
    box = Toolbox([models.depth, models.both])
    tree = {"x": 1, "below": [{"x": 2, "below": [{"x": 3}]}]}
    assert box.call_sync("depth", {"tree": tree}).output == 3
    assert box.call_sync("depth", {"tree": {"below": []}}).mistakes
    assert box.call_sync("both", {"one": {"item": {"a": 1}}, "two": {"item": {"b": "x"}}}).output == [1, "x"]


def test_an_error_without_a_text_is_told():
    box = Toolbox([Tool(importlib.import_module("odd_errors").fail)])
    result = box.call_sync("fail")
    assert result.error == "Odd: (its text cannot be had)" and "_serve.py" not in result.traceback


@pytest.mark.parametrize(
    "wrong, says",
    [
        (lambda: run("cat", input=5), "input must be str or bytes, not int"),
        (lambda: run_python("1", files={"a": 3}), "files['a'] must be str or bytes, not int"),
        (lambda: run("true", policy={"network": "none"}), "a policy is a callbox.Policy, not dict"),
        (lambda: Toolbox(policy={}), "a policy is a callbox.Policy, not dict"),
        (lambda: run("true", timeout=math.inf), "timeout must be a finite number above 0, not inf"),
        (lambda: run("true", limits={"memory": math.inf}), 'the limit memory must be a number above 0, or a size such as "256M", not inf'),
        (lambda: run("true", limits={"memory": "lots"}), "or a size such as \"256M\", not 'lots'"),
        (lambda: run("true", limits={"cpu": "1M"}), "the limit cpu must be a finite number above 0, not '1M'"),
        (lambda: run("true", timeout="3"), "timeout must be a finite number above 0, not '3'"),
        (lambda: run("true", cwd=5), "cwd must be a text or a path, not int: 5"),
        (lambda: run(["echo", 5]), "argument 1 must be a text or a path, not int: 5"),
        (lambda: run("true", environment={"A=B": "x"}), "'A=B' is no name of an environment variable"),
        (lambda: run("true", environment={"A": 5}), "the environment variable A must be a text or a path, not int: 5"),
        (lambda: Toolbox([lambda x: x]), "a lambda has no name"),
        (lambda: callbox.tool(name=5)(len), "name must be a text, not int: 5"),
        (lambda: callbox.tool(description=b"x")(len), "description must be a text, not bytes: b'x'"),
        (lambda: Toolbox([Tool(len, policy={}, input_schema={"type": "object"})]), "a policy is a callbox.Policy, not dict"),
        (lambda: Policy(raed=["/srv"]), 'raed: unknown key "raed"; did you mean "read"? (known here are: read, write,'),
        (lambda: Policy(enviroment=["A"]), 'unknown key "enviroment"; did you mean "environment"?'),
        (lambda: Policy(limts={}), 'unknown key "limts"; did you mean "limits"?'),
        (lambda: Policy(sistem=True), 'unknown key "sistem"; did you mean "system"?'),
        (lambda: Policy(xyzzy=1), 'unknown key "xyzzy" (known here are: read,'),
    ],
)
def test_what_is_wrong_is_said(wrong, says):
    with pytest.raises((TypeError, ValueError, CallboxError)) as raised:
        wrong()
    assert says in str(raised.value)


def test_where_a_tool_starts_and_paths_of_a_policy(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a").write_text("x")
    monkeypatch.chdir(tmp_path)
    policy = Policy(workspace="work", read=["texts"])
    monkeypatch.chdir("/")
    box = Toolbox([os.getcwd, os.listdir], policy=policy)
    assert box.call_sync("getcwd").output == str(tmp_path / "work")
    assert box.call_sync("listdir", {"path": str(tmp_path / "texts")}).output == ["a"]
    assert Toolbox([os.getcwd]).call_sync("getcwd").output == "/tmp"
    # Also where the program's own directory is shown, as it is in its search path.
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    here = Tool(lambda: os.getcwd(), name="here")
    assert Toolbox([here], policy=policy).call_sync("here").output == str(tmp_path / "work")
    placed = Toolbox([here], policy=Policy(workspace=("work", "/w")))
    assert placed.call_sync("here").output == "/w" and Toolbox([here]).call_sync("here").output == "/tmp"
    caged = Toolbox([here], policy=Policy(box="landlock")).call_sync("here")
    assert str(tmp_path) not in caged.output and "callbox" in caged.output


def test_a_lambda_with_a_name():
    assert Toolbox([Tool(lambda x: x + 1, name="next")], policy=Policy()).call_sync("next", {"x": 1}).output == 2


def test_the_version_is_that_of_the_library():
    from callbox import _callbox

    assert callbox.__version__ == _callbox.version()


def test_a_want_of_processes_is_not_taken_for_a_want_of_callbox(tmp_path):
    told = script(
        tmp_path,
        """
        import os, resource
        from callbox import CallboxError, Warden
        path = os.environ.pop("CALLBOX_WARDEN", None)
        try:
            Warden(program="/no/such/program")
        except CallboxError as error:
            print(error.hint.split(",")[0])
        if os.getuid() == 0:
            os.setresuid(65534, 65534, 65534)  # there is no such bound for root
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        try:
            Warden(program=path)
        except CallboxError as error:
            print(error.hint.split(":")[0])
        """,
    )
    assert told == ["install callbox", "there are as many processes as there may be"]
