# SPDX-License-Identifier: MIT
"""Every way by which an agent comes to run what lies where its boxes write: seen, held or told (S1). And its paths
mean what they meant when a policy was made, whoever uses it (S5)."""

import asyncio
import os
import subprocess
import sys
import textwrap

import pytest

from callbox import CallboxError, ImportPathWarning, Policy, Tool, Toolbox, _inputs, _loaded, _names, run, run_python
from callbox.compat.loomflow import InProcessToolHost, OSSandbox, SubprocessExecutor
from callbox.compat.openjarvis import run_sandboxed

HEAD = """
import os, sys, warnings
from callbox import Policy, Tool, Toolbox, run
def attack(text, **more):
    report = run(["sh", "-c", text], policy=Policy(workspace=more.pop("workspace", "."), **more))
    print(report.reason, report.stdout, report.stderr, sep="\\n")
"""


def agent(place, text, *words, **env):
    """Run a program in a directory, with nothing of the tests on its path."""
    (place / "agent.py").write_text(textwrap.dedent(HEAD) + textwrap.dedent(text))
    path = os.environ["PYTHONPATH"].split(":")[0]
    done = subprocess.run([sys.executable, *(words or ["agent.py"])], cwd=place, text=True, capture_output=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": path, **env}, check=False)  # fmt: skip
    return done.stdout + done.stderr


# ---- Many modules ----


def load_many(place, count):
    place.mkdir(exist_ok=True)
    for number in range(count):
        (place / f"many{number}.py").write_text("")


@pytest.mark.parametrize("count", [720, 5000])
def test_many_modules_at_the_top_are_no_failure(tmp_path, count):
    load_many(tmp_path, count)
    said = agent(tmp_path, f"""
        for number in range({count}): __import__(f"many{{number}}")
        attack("echo x >many0.py; echo x >many{min(count, 3000) - 1}.py; mkdir many7; echo x >new && echo made", import_path="allow")
    """)  # fmt: skip
    assert "made\n" in said and said.count("many0.py") == 1, said
    assert ("are not held" in said) == (count == 5000)
    assert (tmp_path / "many0.py").read_text() == ""
    if count == 720:
        assert not (tmp_path / "many7").exists()


def test_many_modules_of_a_package_leave_it_writable(tmp_path):
    load_many(tmp_path / "pkg", 200)
    said = agent(tmp_path, """
        for number in range(200): __import__(f"pkg.many{number}")
        attack("echo x >pkg/new.py && mkdir pkg/data && echo made; echo x >pkg/many1.py; mkdir pkg/many2; echo x >pkg/many3.so", import_path="allow")
    """)  # fmt: skip
    assert "made\n" in said and "Warning" not in said
    assert [name for name in ("many1.py", "many2", "many3.so") if name not in said] == []


def test_a_directory_that_is_held_as_a_whole_is_named(tmp_path):
    load_many(tmp_path / "pkg", 1000)
    said = agent(tmp_path, """
        for number in range(1000): __import__(f"pkg.many{number}")
        attack("echo x >pkg/new.py; echo x >new && echo made", import_path="allow")
    """)  # fmt: skip
    assert "made\n" in said and f"no box can write to {tmp_path}/pkg" in said
    assert not (tmp_path / "pkg" / "new.py").exists()


def test_data_beside_a_module_stays_writable(tmp_path):
    (tmp_path / "table").mkdir()
    (tmp_path / "table.py").write_text("")
    said = agent(tmp_path, 'import table\nattack("echo x >table/row && echo made; echo x >table/__init__.py")')
    assert "made\n" in said and not (tmp_path / "table" / "__init__.py").exists()


# ---- Ways in ----


def test_a_workspace_within_a_package(tmp_path):
    for name in ("app/__init__.py", "app/report.py", "app/parts/data.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    for inner in ("app", "app/parts"):
        said = agent(tmp_path, f'import app\nattack("true", workspace={inner!r}, import_path="refuse")')
        assert "CallboxError" in said and f"imports from {tmp_path}/{inner}" in said and "in no package" in said
    said = agent(tmp_path, 'attack("true", workspace="app", import_path="refuse")')  # which nobody imports
    assert said.startswith("exited")


def test_an_entry_that_is_a_link(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "proj").mkdir()
    (tmp_path / "proj" / "lib").symlink_to("../outside")
    (tmp_path / "outside" / "helper.py").write_text("")
    said = agent(tmp_path, 'sys.path[0] = "proj/lib"\nimport helper\nattack("rm lib; mv lib old; echo x >f && echo made", workspace="proj")')
    assert "made\n" in said and (tmp_path / "proj" / "lib").is_symlink()


def test_a_package_that_is_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "ws").mkdir()
    (tmp_path / "real" / "__init__.py").write_text("")
    (tmp_path / "ws" / "pkg").symlink_to("../real")
    said = agent(tmp_path, 'sys.path.append("ws")\nimport pkg\nattack("rm pkg; mv pkg old; echo x >f && echo made", workspace="ws", import_path="allow")')
    assert "made\n" in said and (tmp_path / "ws" / "pkg").is_symlink()


def test_an_import_hook(tmp_path):
    (tmp_path / "proj" / "src" / "foo").mkdir(parents=True)
    (tmp_path / "proj" / "src" / "foo" / "__init__.py").write_text("")
    said = agent(tmp_path, """
        import importlib.util
        class Finder:
            def find_spec(name, path=None, target=None):
                return importlib.util.spec_from_file_location(name, "proj/src/foo/__init__.py") if name == "foo" else None
        sys.meta_path.append(Finder)
        import foo
        attack("echo x >src/foo/__init__.py; echo x >src/foo/__init__.so; mv src s", workspace="proj")
    """)  # fmt: skip
    assert "ImportPathWarning" in said and f"{tmp_path}/proj/src/foo" in said
    assert (tmp_path / "proj" / "src" / "foo" / "__init__.py").read_text() == ""
    assert not (tmp_path / "proj" / "src" / "foo" / "__init__.so").exists()


def test_a_cache_of_its_own(tmp_path):
    (tmp_path / "ws").mkdir()
    said = agent(tmp_path, 'attack("mkdir -p .cache/usr || echo no; echo x >f && echo made", workspace="ws", import_path="allow")',
                 PYTHONPYCACHEPREFIX=str(tmp_path / "ws" / ".cache"))  # fmt: skip
    assert "no\nmade\n" in said
    said = agent(tmp_path, 'attack("true", workspace="ws", import_path="refuse")', PYTHONPYCACHEPREFIX=str(tmp_path))
    assert "CallboxError" in said and "imports from" in said


def test_a_program_that_is_a_module_and_a_namespace(tmp_path):
    (tmp_path / "ns").mkdir()
    (tmp_path / "ns" / "mod.py").write_text("")
    said = agent(tmp_path, """
        import ns.mod
        attack("mkdir agent; for f in ns/__init__.py ns/__init__.so ns.py ns/mod.so agent.so; do echo x >$f && echo MADE; done; "
               "mkdir ns/mod ns/__pycache__ && echo MADE; echo x >ns/new && echo fine", import_path="allow")
    """, "-m", "agent")  # fmt: skip
    assert "MADE" not in said and "fine\n" in said and not (tmp_path / "agent").exists()


def test_a_relative_path_of_json_is_meant_from_where_it_was_read(tmp_path, monkeypatch):
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    monkeypatch.chdir(tmp_path / "first")
    policy = Policy.from_json('{"files": {"workspace": ".", "hold": ["kept"]}}')
    other = Policy(files={"workspace": "."})
    monkeypatch.chdir(tmp_path / "second")
    for one in (policy, other):
        assert run("echo x >made; echo x >kept", policy=one).reason == "exited"
        assert (tmp_path / "first" / "made").exists() and list((tmp_path / "second").iterdir()) == []
    assert policy.to_dict()["files"]["hold"] == [str(tmp_path / "first" / "kept")]


def test_one_module_for_another_is_seen(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("one_module", "other_module"):
        (tmp_path / f"{name}.py").write_text("")
    __import__("one_module")
    first = _loaded.generation()
    assert _loaded.generation() == first
    del sys.modules["one_module"]
    __import__("other_module")
    assert _loaded.generation() != first
    assert str(tmp_path / "other_module.py") in _inputs.held([str(tmp_path)]).names


@pytest.mark.parametrize("module", ["heavy", "pack", "pack.inner", "space", "linked"])
def test_a_module_that_only_the_box_loads(tmp_path, module):
    name = module.split(".")[0]
    for path in ("heavy.py", "pack/__init__.py", "pack/inner.py", "space/inner.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("")
    (tmp_path.parent / "elsewhere").mkdir(exist_ok=True)
    (tmp_path / "linked").symlink_to("../elsewhere")
    (tmp_path / "tools.py").write_text("def f(x: str) -> str:\n    return x\n")
    said = agent(tmp_path, f"""
        import tools
        box = Toolbox([tools.f], policy=Policy(workspace=".", import_path="allow"), modules=[{module!r}])
        attack("for f in {name}.py {name}/__init__.py {name}/inner.py; do test -e $f && echo x >$f && echo MADE; done; "
               "test {name} = linked && rm linked && echo MADE; echo x >f && echo made",
               import_path="allow")
        print(box.call_sync("f", {{"x": "called"}}).output)
    """)  # fmt: skip
    assert "MADE" not in said and "made\n" in said
    assert "called" in said or module == "linked"  # what it leads to is not shown


# ---- What paths mean ----


@pytest.fixture
def swapped(tmp_path):
    """A directory that a box replaces by a link, and what that leads to."""
    (tmp_path / "w" / "out").mkdir(parents=True)
    (tmp_path / "proj").mkdir()
    (tmp_path / "victim").mkdir()

    def swap():
        report = run(f"mv out old; ln -s {tmp_path}/victim out", policy=Policy(workspace=tmp_path / "w"))
        assert report.ok and (tmp_path / "w" / "out").is_symlink()

    return tmp_path, swap


def wrote(path: str) -> int:
    with open(path, "w") as stream:
        return stream.write("x")


WAYS = {
    "run": lambda policy, path: run(["sh", "-c", f"echo x >{path}"], policy=policy),
    "run_python": lambda policy, path: run_python(f"open({path!r}, 'w').write('x')", policy=policy),
}


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.parametrize("loads", [False, True])
@pytest.mark.parametrize("way", [*WAYS, "toolbox"])
def test_S5_a_path_means_what_it_meant(swapped, way, used, loads, monkeypatch):
    place, swap = swapped
    monkeypatch.syspath_prepend(place / "proj")
    name = f"late_{way}_{used}"
    (place / "proj" / f"{name}.py").write_text("")
    policy = Policy(workspace=place / "proj", write=[place / "w" / "out"], import_path="allow")
    box = Toolbox([Tool(wrote)], policy=policy) if way == "toolbox" else None

    def use(file):
        path = str(place / "w" / "out" / file)
        return box.call_sync("wrote", {"path": path}) if box else WAYS[way](policy, path)

    if used:
        use("one")
        assert (place / "w" / "out" / "one").exists()
    swap()
    if loads:
        __import__(name)
    try:
        said = str(getattr(use("two"), "error", ""))
    except CallboxError as error:
        said = str(error)
    assert "symbolic link" in said and list((place / "victim").iterdir()) == []
    assert run(f"echo x >{place}/w/out/new", policy=Policy(write=[place / "w" / "out"])).ok  # which is meant
    assert [path.name for path in (place / "victim").iterdir()] == ["new"]


@pytest.mark.parametrize("used", [False, True])
def test_S5_an_executor_writes_where_it_began(swapped, used):
    place, swap = swapped
    executor = SubprocessExecutor(cwd=place / "w" / "out")
    if used:
        assert asyncio.run(executor.run("print(1)", files={"given": b"1"})).stdout == "1\n"
    swap()
    done = asyncio.run(executor.run("open('left', 'w')", files={"given": b"by the agent"}))
    assert done.returncode == -1 and "link" in done.stderr and str(place) in done.stderr
    assert list((place / "victim").iterdir()) == []


@pytest.mark.parametrize("to", ["/nonexistent/x", "victim"])
def test_an_executor_whose_code_leaves_a_link_for_out(tmp_path, to):
    (tmp_path / "victim").mkdir()
    executor = SubprocessExecutor(cwd=tmp_path / "work")
    target = to if to.startswith("/") else str(tmp_path / to)
    assert asyncio.run(executor.run(f"import os; os.rmdir('out'); os.symlink({target!r}, 'out')")).returncode == 0
    done = asyncio.run(executor.run("open('out/x', 'w').write('y')"))
    assert done.artifacts == {"x": b"y"} and list((tmp_path / "victim").iterdir()) == []
    executor = SubprocessExecutor(cwd=tmp_path / "other")
    assert asyncio.run(executor.run("import os; os.rmdir('out'); open('out', 'w')")).returncode == 0
    assert "it is a file" in asyncio.run(executor.run("print(1)")).stderr


def test_S5_a_working_directory_that_is_a_link_of_a_box(swapped):
    place, swap = swapped
    assert run_sandboxed("echo x >one", working_dir=str(place / "w" / "out")).returncode == 0
    swap()
    done = run_sandboxed("echo x >two", working_dir=str(place / "w" / "out"))
    assert done.reason == "setup" and "is a link where boxes may write" in done.stderr
    assert list((place / "victim").iterdir()) == []
    (place / "link").symlink_to("victim")  # where no box may: of another process, other tests have had boxes here
    code = f"from callbox.compat.openjarvis import run_sandboxed as r; print(r('echo x >two', working_dir={str(place / 'link')!r}).returncode)"
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=False)
    assert done.stdout == "0\n", done.stderr


# ---- Smaller ones ----


def test_memory_of_names_of_artifacts():
    import tracemalloc

    given = {f"{number:05d}" + "a" * 3900 + "/b" * 63: b"" for number in range(500)}
    tracemalloc.start()
    _names.checked_artifacts(given)
    assert tracemalloc.get_traced_memory()[1] < 4 * sum(map(len, given))
    tracemalloc.stop()
    for names in (("a", "a/b"), ("a.b", "a", "a/b"), ("a/b/c", "a!", "a/b"), ("x", "a/b", "a/b/c/d", "a.")):
        with pytest.raises(ValueError, match="a file and a directory"):
            _names.checked_artifacts(dict.fromkeys(names, b""))
    assert len(_names.checked_artifacts(dict.fromkeys(("a", "a.b", "ab/c", "a b/c"), b""))) == 4


def test_what_code_says_can_be_printed():
    done = run_python("raise ValueError('\\ud800')")
    for text in (done.error, done.traceback, repr(done)):
        text.encode()
    done = run_python("class A:\n    __repr__ = lambda self: '\\ud800'\nopen('out/' + '\\udc80', 'w').write('x')\nA()")
    for text in (done.text, *done.artifacts, repr(done)):
        text.encode()


def test_an_os_sandbox_tells_nothing_of_links(tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "link").symlink_to("/a/b")
    (tmp_path / "by").symlink_to("root")

    def f(path: str) -> str:
        return path

    box = OSSandbox(InProcessToolHost([f]), roots=[tmp_path / "root", tmp_path / "by"], path_args=["path"])

    def ok(path):
        return asyncio.run(box.call("f", {"path": str(path)}, call_id="1")).ok

    assert [ok(tmp_path / name / "../root/x") for name in ("link", "none", "root")] == [True, True, True]
    assert ok(tmp_path / "by" / "x") and not ok(tmp_path / "root" / "../x") and not ok("~nobody/x") and not ok("/etc/\0x")


def test_hints_name_the_keyword(tmp_path):
    (tmp_path / "tools").mkdir()
    with pytest.raises(CallboxError) as caught:
        Toolbox(policy=Policy(workspace=tmp_path), manifests=tmp_path / "tools")
    assert f'Policy(hold=["{tmp_path}/tools"])' in caught.value.hint and "--hold" not in str(caught.value)


def test_a_warning_for_a_package_names_no_directory_in_it(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "warned_pkg").mkdir()
    (tmp_path / "warned_pkg" / "__init__.py").write_text("")
    __import__("warned_pkg")
    with pytest.warns(ImportPathWarning, match="which is in no package"):
        run("true", policy=Policy(workspace=tmp_path / "warned_pkg"))
