# SPDX-License-Identifier: MIT
"""What tells the agent what to do stays as it is, where its boxes may write: modules that it has loaded, its
environment, its interpreter, callbox itself. And the agent is told of what cannot be kept (S1)."""

import os
import pathlib
import shutil
import subprocess
import sys
import textwrap
import warnings

import pytest

import callbox
from callbox import CallboxError, ImportPathWarning, Policy, Toolbox, _inputs, run, run_python

TAG = sys.implementation.cache_tag
USERS = [0, 1000] if os.getuid() == 0 else [os.getuid()]

# Tries to have code of its own run by whoever imports what the agent has loaded; says what it could do.
ATTACK = r"""
import os, sys
os.chdir(WS)
EVIL = "import os; os.write(1, b'EXECUTED')\n"

def put(path):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as stream:
        stream.write(EVIL)

def replace(path):
    put("mine.tmp")
    os.replace("mine.tmp", path)

def move_away(folder):
    os.rename(folder, folder + ".old")
    os.mkdir(folder)

def link(path):
    put("mine.txt")
    os.symlink(os.path.abspath("mine.txt"), path)

TRIES = {
    "write": lambda: put("helper.py"),
    "replace": lambda: replace("helper.py"),
    "remove": lambda: os.unlink("helper.py"),
    "rename": lambda: os.rename("helper.py", "other.py"),
    "hard link": lambda: (os.link("helper.py", "mine.py"), put("mine.py")),
    "truncate": lambda: os.truncate("helper.py", 0),
    "mode": lambda: os.chmod("helper.py", 0),
    "cache": lambda: put("__pycache__/helper.%s.pyc" % TAG),
    "optimised cache": lambda: put("__pycache__/helper.%s.opt-1.pyc" % TAG),
    "caches": lambda: move_away("__pycache__"),
    "package": lambda: put("helper/__init__.py"),
    "directory": lambda: os.mkdir("helper"),
    "package by link": lambda: link("helper"),
    "extension": lambda: put("helper.abi3.so"),
    "extension of this Python": lambda: put(next("helper" + s for s in SUFFIXES if "cpython" in s)),
    "inner": lambda: put("parts/inner.py"),
    "inner package": lambda: put("parts/__init__.py"),
    "init of another kind": lambda: put("parts/__init__.abi3.so"),
    "parent": lambda: move_away("parts"),
    "parent of parent": lambda: os.rename("deep", "shallow"),
    "sitecustomize": lambda: put("sitecustomize.py"),
    "usercustomize": lambda: put("usercustomize/__init__.py"),
    "the program": lambda: put("agent.py"),
    "environment": lambda: put("venv/lib/%s/site-packages/easy.pth" % PYTHON),
    "interpreter": lambda: replace("venv/bin/python"),
    "configuration": lambda: put("venv/pyvenv.cfg"),
    "environment moved": lambda: move_away("venv"),
}
done = []
for name, attempt in TRIES.items():
    try:
        attempt()
        done.append(name)
    except OSError:
        pass
print("COULD", sorted(done))
put("work.txt")
os.makedirs("made/below"); put("made/below/x.py"); os.rename("made", "moved")
put("parts/fresh.py")
print("WORKED")
"""

AGENT = textwrap.dedent("""
    import importlib.machinery, os, sys, warnings
    import helper, parts.inner, deep.down.module
    import callbox
    from callbox import Policy, Tool, Toolbox, _inputs, run, run_python

    attack, how, kind = open("../attack.py").read(), sys.argv[1], sys.argv[2]
    if "unheld" in sys.argv:
        _inputs.to_hold = lambda trees, given, own: []
    warnings.simplefilter("ignore", callbox.ImportPathWarning)
    given = {"WS": os.getcwd(), "TAG": sys.implementation.cache_tag, "SUFFIXES": importlib.machinery.all_suffixes(),
             "PYTHON": "python%d.%d" % sys.version_info[:2]}
    policy = Policy(workspace=".", **({"box": kind} if kind != "any" else {}))
    if how == "run":
        head = "".join(f"{name} = {value!r}\\n" for name, value in given.items())
        report = run(["/usr/bin/python3", "-c", head + attack], policy=policy)
        print(report.stdout, report.stderr)
    elif how == "code":
        done = run_python(attack, given, policy=policy)
        print(done.stdout, done.stderr, done.error)
    else:
        def attacks(code: str, given: dict) -> None:
            exec(code, dict(given))

        result = Toolbox([Tool(attacks)], policy=policy).call_sync("attacks", {"code": attack, "given": given})
        print(result.stdout, result.stderr, result.error)
""")


@pytest.fixture(scope="session")
def venv(tmp_path_factory):
    place = tmp_path_factory.mktemp("venv") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", str(place)], check=True)
    return place


@pytest.fixture
def project(tmp_path, venv):
    os.chmod(tmp_path, 0o755)
    place = tmp_path / "project"
    (place / "parts").mkdir(parents=True)
    (place / "deep" / "down").mkdir(parents=True)
    for name in ("helper.py", "parts/__init__.py", "parts/inner.py", "deep/__init__.py", "deep/down/module.py"):
        (place / name).write_text("VALUE = 1\n")
    (place / "agent.py").write_text(AGENT)
    (tmp_path / "attack.py").write_text(ATTACK)
    shutil.copytree(venv, place / "venv", symlinks=True)
    config = (place / "venv" / "pyvenv.cfg").read_text()
    (place / "venv" / "pyvenv.cfg").write_text(config.replace(str(venv), str(place / "venv")))
    return place


def as_user(uid, place):
    """How a program is started as somebody: the project is theirs."""
    if uid == os.getuid():
        return {}
    for path in (place, *place.rglob("*")):
        os.chown(path, uid, uid, follow_symlinks=False)
    for path in list(place.parents)[:3]:
        os.chmod(path, os.stat(path).st_mode | 0o55)
    return {"user": uid, "group": uid, "extra_groups": []}


def attacked(project, uid, *words):
    python = project / "venv" / "bin" / "python"
    done = subprocess.run([str(python), "agent.py", *words], cwd=project, text=True, capture_output=True,
                          check=False, **as_user(uid, project))  # fmt: skip
    assert "WORKED" in done.stdout, done.stdout + done.stderr
    return done.stdout.split("COULD ")[1].split("\n")[0], done.stdout


@pytest.mark.parametrize("uid", USERS)
@pytest.mark.parametrize("how, kind", [("run", "any"), ("run", "landlock"), ("code", "any"), ("tool", "any"), ("tool", "landlock")])
def test_S1_what_the_agent_has_loaded_is_held(project, uid, how, kind):
    could, _ = attacked(project, uid, how, kind)
    assert could == "[]"
    done = subprocess.run([sys.executable, "-c", "import helper, parts.inner, deep.down.module; print(helper.VALUE)"],
                          cwd=project, text=True, capture_output=True, check=True)  # fmt: skip
    assert done.stdout == "1\n"
    assert (project / "work.txt").exists() and (project / "moved" / "below" / "x.py").exists()


def test_S1_and_would_not_be_otherwise(project):
    """The control: nothing is held."""
    could, _ = attacked(project, os.getuid(), "run", "any", "unheld")
    for name in ("write", "cache", "package", "extension", "parent", "the program", "environment", "sitecustomize"):
        assert repr(name) in could


def test_what_is_loaded_later_is_held_from_the_next_call_on(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "first.py").write_text("")
    (tmp_path / "second_loaded.py").write_text("")
    policy = Policy(workspace=tmp_path, import_path="allow")
    write = f"echo x >{tmp_path}/second_loaded.py && echo written"
    assert run(write, policy=policy).stdout == "written\n"
    (tmp_path / "second_loaded.py").write_text("")
    import second_loaded  # noqa: F401

    report = run(write, policy=policy)
    assert report.stdout == "" and "Read-only" in report.stderr
    assert str(tmp_path / "second_loaded.py") in _inputs.held([str(tmp_path)]).names


def test_of_a_tool_too(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "third_loaded.py").write_text("")

    def write(path: str) -> int:
        return open(path, "w").write("x")

    box = Toolbox([callbox.Tool(write)], policy=Policy(workspace=tmp_path, import_path="allow"))
    given = {"path": str(tmp_path / "third_loaded.py")}
    assert box.call_sync("write", given).output == 1
    (tmp_path / "third_loaded.py").write_text("")
    import third_loaded  # noqa: F401

    assert "Read-only" in box.call_sync("write", given).error
    assert "Read-only" in box.call_sync("write", given).error


def test_a_policy_that_writes_nothing_of_it_stays_as_it_is(tmp_path):
    for policy in (Policy(), Policy(read=["."]), Policy(workspace=tmp_path)):
        before = policy.to_json()
        ready = policy._for_use()
        assert policy.to_json() == before and "hold" not in str(_inputs.held([str(tmp_path)]))
        assert policy._for_use() is ready
    assert _inputs.held([str(tmp_path)]) == ([], [], 0)


def test_callbox_itself_is_held(tmp_path):
    package = pathlib.Path(callbox.__file__).parent
    held = _inputs.held([str(package.parent.parent)]).names
    assert str(package) in held
    assert any(path.endswith("/callbox") for path in held)  # the warden
    assert any("libcallbox.so" in path for path in held)


# ---- The warning ----


@pytest.fixture
def on_path(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_one_warning_names_the_directory_and_the_fix(on_path):
    with pytest.warns(ImportPathWarning) as caught:
        for _ in range(3):
            assert run("echo >x", policy=Policy(workspace=on_path)).ok
    (one,) = caught
    assert str(on_path) in str(one.message) and f'Policy(workspace="{on_path}/work")' in str(one.message)
    assert one.filename == __file__


@pytest.mark.parametrize("start", [
    lambda policy: run("true", policy=policy),
    lambda policy: run_python("1", policy=policy),
    lambda policy: Toolbox(policy=policy),
    lambda policy: Toolbox([callbox.Tool(lambda: 1, name="f", policy=policy)]),
])  # fmt: skip
def test_it_can_be_made_a_refusal(on_path, start, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ImportPathWarning)
        for _ in range(2):
            with pytest.raises(ImportPathWarning):
                start(Policy(workspace=on_path))
    with pytest.raises(CallboxError) as caught:
        start(Policy(workspace=on_path, import_path="refuse"))
    assert caught.value.where == "import_path" and str(on_path) in caught.value.text and "workspace=" in caught.value.hint
    monkeypatch.setenv("CALLBOX_IMPORT_PATH", "refuse")
    with pytest.raises(CallboxError):
        start(Policy(write=[on_path.parent]))
    start(Policy(workspace=on_path, import_path="allow"))


def test_words_that_mean_nothing_are_refused(on_path, monkeypatch):
    with pytest.raises(CallboxError, match="none of: warn, refuse, allow"):
        Policy(import_path="never")
    monkeypatch.setenv("CALLBOX_IMPORT_PATH", "1")
    with pytest.raises(CallboxError) as caught:
        run("true", policy=Policy(workspace=on_path))
    assert caught.value.where == "CALLBOX_IMPORT_PATH"


@pytest.mark.parametrize("writes, warned", [
    (".", True), ("..", True), ("below", False), ("../beside", False), ("../../link", True),
])  # fmt: skip
def test_which_directories_are_meant(tmp_path, monkeypatch, writes, warned):
    top = tmp_path / "top"
    place = top / "place"
    for name in ("", "place", "place/below", "beside"):
        (top / name).mkdir()
    (tmp_path / "link").symlink_to(top)  # where no box may change it
    monkeypatch.syspath_prepend(place)
    monkeypatch.chdir(place)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run("true", policy=Policy(write=[writes]))
    assert [str(place) in str(one.message) for one in caught] == ([True] if warned else [])


def test_a_directory_of_the_path_that_is_not_there_yet(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path / "later")
    with pytest.warns(ImportPathWarning, match="later"):
        run("true", policy=Policy(workspace=tmp_path))


def test_a_policy_can_hold_more(tmp_path):
    policy = Policy(workspace=tmp_path, hold=[tmp_path / "config.json"])
    report = run("echo x >config.json; echo x >other && ls", policy=policy)
    assert report.stdout == "other\n" and "config.json" in report.stderr
    assert policy.to_dict()["files"]["hold"] == [str(tmp_path / "config.json")]
