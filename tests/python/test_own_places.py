# SPDX-License-Identifier: MIT
"""What a tool is not shown, though it lies where the program does: keys, homes, .env that comes later."""

import importlib
import os
import subprocess
import sys
import textwrap

import pytest

from callbox import Policy, Toolbox, _places
from callbox.compat.jeevesagent import InProcessToolHost, SubprocessSandbox
from callbox.compat.openjarvis import run_sandboxed


@pytest.fixture
def module(tmp_path, monkeypatch):
    name = f"reading_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text("def read(path: str) -> str:\n    return open(path).read()\n")
    monkeypatch.syspath_prepend(tmp_path)
    return importlib.import_module(name)


def test_an_env_that_comes_later_is_hidden_from_the_next_call(tmp_path, module):
    box = Toolbox([module.read])
    assert "FileNotFound" in box.call_sync("read", {"path": f"{tmp_path}/.env"}).error
    for name in (".env", ".env.local", ".git-credentials"):
        (tmp_path / name).write_text("TOKEN=s3cret")
        result = box.call_sync("read", {"path": f"{tmp_path}/{name}"})
        assert not result.ok and "PermissionError" in result.error
    (tmp_path / "plain").write_text("text")
    assert box.call_sync("read", {"path": f"{tmp_path}/plain"}).output == "text"
    (tmp_path / ".env").unlink()  # and what goes is no trouble either
    assert "FileNotFound" in box.call_sync("read", {"path": f"{tmp_path}/.env"}).error


def test_through_a_drop_in_too(tmp_path, module):
    import asyncio

    sandbox = SubprocessSandbox(InProcessToolHost([module.read]))

    def call(name):
        return asyncio.run(sandbox.call("read", {"path": f"{tmp_path}/{name}"}))

    (tmp_path / "plain").write_text("text")
    assert call("plain").output == "text"
    (tmp_path / ".env").write_text("TOKEN=s3cret")
    assert "PermissionError" in call(".env").error


def test_it_costs_little_to_look(tmp_path, module):
    import timeit

    box = Toolbox([module.read])
    (tmp_path / "plain").write_text("text")
    box.call_sync("read", {"path": f"{tmp_path}/plain"})
    look = min(timeit.repeat(lambda: box._look_around("read"), number=100, repeat=5)) / 100
    call = min(timeit.repeat(lambda: box.call_sync("read", {"path": f"{tmp_path}/plain"}), number=10, repeat=5)) / 10
    print(look, call)
    assert look < 0.05 * call


@pytest.mark.parametrize("below", [".ssh", ".gnupg/private", ".aws", ".config", ".config/gcloud/x", ".kube/cache", "p/.docker", ".mozilla/y"])
def test_places_of_keys_are_too_much(tmp_path, monkeypatch, below):
    monkeypatch.setenv("HOME", str(tmp_path))
    place = tmp_path / below
    place.mkdir(parents=True)
    assert _places.shows_too_much(str(place))
    (place / "id").write_text("SECRET")
    monkeypatch.chdir(place)
    assert "SECRET" not in run_sandboxed("cat id").stdout
    # As a directory of the search path it shows no more than the module that was asked for.
    (place / "keeps.py").write_text("def read(path: str) -> str:\n    return open(path).read()\n")
    script = f"import keeps, callbox; print(callbox.Toolbox([keeps.read]).call_sync('read', {{'path': {str(place / 'id')!r}}}))"
    done = subprocess.run([sys.executable, "-c", script], cwd=place, text=True, capture_output=True, check=True)
    assert "FileNotFoundError" in done.stdout and "SECRET" not in done.stdout


def test_homes_and_what_is_above_them(tmp_path, monkeypatch):
    home = tmp_path / "homes" / "me"
    (home / "project").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    assert _places.shows_too_much(str(home)) and _places.shows_too_much(str(tmp_path / "homes"))
    assert not _places.shows_too_much(str(home / "project"))
    for place in ("/", "/home", "/home/somebody", "/root", "/proc/1", "/tmp", "/etc"):
        assert _places.shows_too_much(place)
    other = tmp_path / "homes" / "other"
    (other / ".ssh").mkdir(parents=True)
    assert _places.shows_too_much(str(other))  # nobody knows of that user


def test_an_interpreter_may_lie_there(tmp_path):
    """A virtual environment in a place that would not be shown for a module."""
    place = tmp_path / "home" / ".config" / "agent"
    place.mkdir(parents=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", str(place / "venv")], check=True)
    script = textwrap.dedent("""
        from callbox import run_python
        print(run_python("import sys; sys.prefix").result)
    """)
    done = subprocess.run([str(place / "venv" / "bin" / "python"), "-c", script], cwd=tmp_path, text=True,
                          capture_output=True, check=True, env={**os.environ, "HOME": str(tmp_path / "home")})  # fmt: skip
    assert done.stdout.strip() == str(place / "venv")


def test_what_a_policy_names_is_shown_all_the_same(tmp_path, module):
    (tmp_path / ".env").write_text("TOKEN=mine")
    box = Toolbox([module.read], policy=Policy(read=[tmp_path / ".env"]))
    assert box.call_sync("read", {"path": f"{tmp_path}/.env"}).output == "TOKEN=mine"
