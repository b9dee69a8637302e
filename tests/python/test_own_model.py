# SPDX-License-Identifier: MIT
"""What a model says about a call does not widen what the application allowed (S19)."""

import asyncio
import os
import pathlib
import subprocess
import sys
import textwrap
import time

import pytest

from callbox import Policy
from callbox.compat import _jeeves_paths, _scratch
from callbox.compat.calute import SandboxConfig, SubprocessSandboxBackend
from callbox.compat.jeevesagent import SubprocessExecutor
from callbox.compat.openjarvis import run_sandboxed
from callbox.compat.openjarvis_tools import CodeInterpreterTool, ShellExecTool

USERS = [0, 1000] if os.getuid() == 0 else [os.getuid()]


@pytest.fixture
def host(tmp_path):
    """A home with a key, and beside it the directory that the application works in."""
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    (tmp_path / "home" / ".ssh" / "id").write_text("SECRET")
    (tmp_path / "work" / "sub").mkdir(parents=True)
    (tmp_path / "work" / "file").write_text("")
    (tmp_path / "work" / "out").symlink_to(tmp_path / "home")
    return tmp_path


READS = "cat .ssh/id id 2>/dev/null; echo planted >planted; pwd"

FORMS = {
    "the home": lambda host: str(host / "home"),
    "the place of the keys": lambda host: str(host / "home" / ".ssh"),
    "from the workspace": lambda host: "../home",
    "from the top": lambda host: str(host / "work" / ".." / "home"),
    "by a link in the workspace": lambda host: "out",
    "by a link, deeper": lambda host: "out/.ssh",
    "by /proc": lambda host: f"/proc/{os.getpid()}/cwd",
    "by a descriptor": lambda host: "/proc/self/fd/3",
    "by the caller's home": lambda host: "~",
    "with a NUL": lambda host: f"{host}/home\0",
    "a number": lambda host: 3,
    "a list": lambda host: [str(host / "home")],
    "far too long": lambda host: "a/" * 100_000,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("made", ["workspace", "policy", "nothing"])
def test_S19_a_directory_that_the_model_names(host, monkeypatch, form, made):
    monkeypatch.setenv("HOME", str(host / "home"))
    monkeypatch.chdir(host / "work")
    shell = {
        "workspace": lambda: ShellExecTool(workspace=host / "work"),
        "policy": lambda: ShellExecTool(policy=Policy(workspace=host / "work")),
        "nothing": ShellExecTool,
    }[made]()
    result = shell.execute(command=READS, working_dir=FORMS[form](host))
    assert "SECRET" not in result.content and len(result.content) < 2000
    assert not (host / "home" / "planted").exists() and not (host / "home" / ".ssh" / "planted").exists()


def test_S19_and_would_if_the_application_said_so(host):
    """The control: the same command, where the application itself names the directory."""
    result = ShellExecTool(workspace=host / "home").execute(command=READS)
    assert "SECRET" in result.content and (host / "home" / "planted").exists()


@pytest.mark.parametrize("uid", USERS)
@pytest.mark.parametrize("place", ["/etc", "/root", "/", "/var", "/home"])
def test_S19_directories_of_the_system(host, uid, place):
    """As root the host's own /etc/shadow would be there to be read, and /etc to be changed."""
    script = textwrap.dedent("""
        import sys
        from callbox.compat.openjarvis_tools import ShellExecTool
        print(ShellExecTool().execute(command="cat shadow etc/shadow; echo x >planted.by.a.model; ls -a", working_dir=sys.argv[1]))
    """)
    os.chmod(host, 0o755)
    how = {"user": uid, "group": uid, "extra_groups": []} if uid != os.getuid() else {}
    done = subprocess.run([sys.executable, "-c", script, place], cwd="/", text=True, capture_output=True, check=True, **how)
    assert "root:" not in done.stdout and "shell_exec" in done.stdout
    assert not os.path.exists(pathlib.Path(place, "planted.by.a.model"))


def test_a_model_works_below_what_it_was_given(host):
    shell = ShellExecTool(workspace=host / "work")
    for place in ("sub", str(host / "work" / "sub"), "./sub/../sub"):
        result = shell.execute(command="pwd; echo made >made", working_dir=place)
        assert str(host / "work" / "sub") in result.content and (host / "work" / "sub" / "made").exists()
    said = shell.execute(command="x", working_dir="nowhere")
    assert (said.content, said.metadata) == ("Working directory does not exist: nowhere", {})
    assert shell.execute(command="x", working_dir="file").content == "Working directory is not a directory: file"
    # Below the place in the box, where that is another.
    inside = ShellExecTool(policy=Policy(workspace=(host / "work", "/project")))
    assert "/project/sub" in inside.execute(command="pwd", working_dir="sub").content


@pytest.mark.parametrize("asked", [9000, float("inf"), "9000", 10**400], ids=["9000", "inf", "text", "huge"])
def test_a_model_gets_no_more_time_than_the_policy_has(asked):
    shell = ShellExecTool(policy=Policy(limits={"wall": 1}))
    begun = time.monotonic()
    result = shell.execute(command="sleep 60", timeout=asked)
    assert result.content == "Command timed out after 1 seconds." and time.monotonic() - begun < 30
    assert ShellExecTool().execute(command="true", timeout=asked).metadata["timeout_used"] == 300
    code = CodeInterpreterTool(policy=Policy(limits={"wall": 1}))
    assert code.execute(code="import time; time.sleep(60)").content == "Execution timed out after 1 seconds."


@pytest.mark.parametrize("asked", [["PATH", "TOKEN_OF_THE_AGENT"], "TOKEN_OF_THE_AGENT", [["TOKEN_OF_THE_AGENT"]], 7, {"TOKEN_OF_THE_AGENT": 1}])
def test_variables_that_a_model_asks_for(monkeypatch, asked):
    monkeypatch.setenv("TOKEN_OF_THE_AGENT", "s3cret")
    assert "s3cret" not in ShellExecTool(allow_env=["OTHER"]).execute(command="env", env_passthrough=asked).content


@pytest.mark.parametrize("wrong", [5, ["true"], {"a": 1}, b"true"])
def test_what_is_no_command_is_said(wrong):
    assert "must be a text" in ShellExecTool().execute(command=wrong).content
    assert "must be a text" in CodeInterpreterTool().execute(code=wrong).content


# ---- Other drop-ins ----


@pytest.mark.parametrize("name", [".git/hooks/pre-commit", ".envrc", ".ENVRC", "./.envrc", "sub/.git/config", ".vscode/tasks.json"])
def test_files_of_an_executor_are_none_that_the_host_executes(host, name):
    """They are written on the host, into a directory that the application works in too."""
    executor = SubprocessExecutor(cwd=host / "work")
    with pytest.raises(ValueError, match="protected"):
        asyncio.run(executor.run("1", files={name: b"evil"}))
    done = asyncio.run(executor.run("print(open('plain.txt').read())", files={"plain.txt": b"text"}))
    assert done.stdout == "text\n"
    scratch = asyncio.run(SubprocessExecutor().run(f"print(open({name!r}).read())", files={name: b"mine"}))
    assert scratch.stdout == "mine\n"  # nobody works there


def test_an_executor_whose_code_leaves_a_deep_tree(host):
    code = textwrap.dedent("""\
        import os
        os.chdir("out")
        top = os.open(".", os.O_RDONLY)
        for name in ("upper", "lower"):  # each is far quicker to make than both in one
            os.chdir(top)
            os.mkdir(name)
            os.chdir(name)
            for _ in range(600):
                os.mkdir("d")
                os.chdir("d")
            open("x", "w")
            if name == "upper":
                bottom = os.open(".", os.O_RDONLY)
        os.rename("lower", "lower", src_dir_fd=top, dst_dir_fd=bottom)
        print("made")
        """)
    for place in (None, host / "work" / "sub"):
        done = asyncio.run(SubprocessExecutor(cwd=place).run(code))
        assert done.stdout == "made\n" and done.artifacts == {}
    _scratch.remove(str(host / "work" / "sub" / "out"))  # pytest could not
    assert not (host / "work" / "sub" / "out").exists()
    left = [name for name in os.listdir("/tmp") if name.startswith("callbox-code-") and os.stat(f"/tmp/{name}").st_uid == os.getuid()]
    assert left == []


def test_paths_in_arguments_are_looked_at_in_no_time(host):
    check = _jeeves_paths.PathCheck((host,), ["path"], True, host)
    begun = time.process_time()
    for text in ("a/" * 2_000_000, "../" * 2_000_000, "/" * 4_000_000, "~" * 4_000_000):
        check.refuse({"path": text})
    assert time.process_time() - begun < 10
    assert check.refuse({"path": "../" * 2000 + "etc"}) and not check.refuse({"path": "a/" * 3000})


@pytest.mark.parametrize("text", ["--5", "9" * 5000, "-", "²", "5 ", "\u0665"])
def test_the_status_of_a_tool_that_exits_is_a_number(text):
    def exits():
        raise SystemExit(text)

    with pytest.raises(RuntimeError, match="failed \\(exit -?[0-9]+\\)"):
        SubprocessSandboxBackend(SandboxConfig()).execute_sync("exits", exits, {})


def test_run_sandboxed_is_the_application_s_own_word(host):
    """Not a tool: whoever writes the program names the directory."""
    assert run_sandboxed("cat id", working_dir=str(host / "home" / ".ssh")).stdout == "SECRET"
