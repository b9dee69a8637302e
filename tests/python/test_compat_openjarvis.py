# SPDX-License-Identifier: MIT
"""The drop-in for OpenJarvis: its contract line by line, and every defect of its sandbox (O1 ...) shown
gone by a test of that name."""

import os
import signal
import socket
import subprocess
import sys
import textwrap
import venv

import pytest
from conftest import SECRET
from test_run import processes, until

from callbox import Policy, _inputs
from callbox.compat import openjarvis
from callbox.compat.openjarvis import SandboxResult, build_safe_env, kill_process_tree, run_sandboxed
from callbox.compat.openjarvis_tools import CodeInterpreterTool, ShellExecTool


def agent(tmp_path, text, **more):
    path = tmp_path / "agent.py"
    path.write_text(textwrap.dedent(text))
    return subprocess.run([sys.executable, str(path)], text=True, timeout=120, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, **more)  # fmt: skip


# ---- The contract ----


def test_contract_exports_and_result():
    assert openjarvis.__all__ == ["SandboxResult", "build_safe_env", "kill_process_tree", "run_sandboxed"]
    empty = SandboxResult()
    assert (empty.stdout, empty.stderr, empty.returncode, empty.timed_out, empty.killed) == ("", "", -1, False, False)
    if sys.version_info >= (3, 10):
        with pytest.raises(AttributeError):
            empty.other = 1


def test_contract_safe_environment(monkeypatch):
    for name in ("PATH", "HOME", "USER", "LANG", "TERM", "SHELL", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ"):
        monkeypatch.setenv(name, f"of the agent: {name}")
        assert name in openjarvis._SAFE_ENV_VARS
    assert len(openjarvis._SAFE_ENV_VARS) == 10
    made = build_safe_env()
    assert set(made) == set(openjarvis._SAFE_ENV_VARS) and made["TZ"] == "of the agent: TZ"
    monkeypatch.delenv("TZ")
    made = build_safe_env([SECRET, "NOT_SET"], {"PATH": "/extra", "X": "1"})
    assert "TZ" not in made and "NOT_SET" not in made and made[SECRET] == os.environ[SECRET]
    assert made["PATH"] == "/extra" and made["X"] == "1"


@pytest.mark.parametrize(
    "command, status", [("true", 0), ("exit 3", 3), ("no-such-command", 127), ("kill -9 $$", -9), ("kill -TERM $$", -15)]
)
def test_contract_return_codes(command, status):
    result = run_sandboxed(command)
    assert (result.returncode, result.timed_out, result.killed) == (status, False, False)


def test_contract_streams():
    result = run_sandboxed("printf 'a\\r\\nb\\n'; echo error >&2")
    assert (result.stdout, result.stderr, result.truncated) == ("a\nb\n", "error\n", False)
    assert result.reason == "exited"


def test_contract_a_timeout():
    result = run_sandboxed("echo begun; sleep 600", timeout=0.5)
    assert (result.timed_out, result.killed, result.returncode) == (True, True, -1)
    assert (result.stdout, result.stderr) == ("(timed out)", "")
    assert run_sandboxed("sleep 1; echo done", timeout=45).stdout == "done\n"  # longer than a policy's 30 s
    assert run_sandboxed("true", timeout=0).timed_out


def test_contract_environment_of_a_command(monkeypatch):
    monkeypatch.setenv("LC_ALL", "C")
    said = run_sandboxed("env", env_passthrough=[SECRET], env_extra={"HOME": "/nowhere", "X": "a b"}).stdout
    lines = said.splitlines()
    assert {"HOME=/nowhere", "X=a b", "LC_ALL=C", f"{SECRET}={os.environ[SECRET]}"} <= set(lines)
    assert SECRET not in run_sandboxed("env").stdout


def test_contract_directories(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "seen").write_text("yes")
    assert run_sandboxed("pwd; cat seen").stdout == f"{tmp_path}\nyes"
    assert "Read-only" in run_sandboxed("echo no >seen").stderr
    place = tmp_path / "place"
    place.mkdir()
    result = run_sandboxed("pwd; echo made >file", working_dir=str(place))
    assert result.stdout == f"{place}\n" and (place / "file").read_text() == "made\n"


# ---- The defects ----

LEAVES = "setsid sleep {0} & (trap '' TERM HUP INT; sleep {0}; true) & "


def test_O1_nothing_survives_a_timeout():
    assert run_sandboxed(LEAVES.format(7801) + "sleep 7801", timeout=1).killed
    until(lambda: not processes(b"7801"))


def test_O1_kill_process_tree_leaves_nobody():
    script = LEAVES.format(7811) + "wait"
    with subprocess.Popen(["sh", "-c", script], start_new_session=True) as running:
        until(lambda: len(processes(b"7811")) >= 2)
        kill_process_tree(running.pid)
        assert running.wait(timeout=60) in (-signal.SIGKILL, -signal.SIGTERM)  # it got both
    until(lambda: not processes(b"7811"))
    kill_process_tree(running.pid)  # a dead one, and none that there ever was
    for never in (0, -1, 1, 2**30, os.getpid()):
        kill_process_tree(never)


def test_O2_a_background_child_that_holds_stdout():
    result = run_sandboxed("echo hi; sleep 7802 &", timeout=20)
    assert (result.stdout, result.returncode, result.timed_out) == ("hi\n", 0, False)
    until(lambda: not processes(b"7802"))


def test_O3_output_is_bounded_while_it_is_read(tmp_path):
    done = agent(tmp_path, """
        import resource, time
        from callbox.compat.openjarvis import run_sandboxed
        run_sandboxed("true")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begin = time.monotonic()
        result = run_sandboxed("yes", timeout=2)
        print(result.timed_out, time.monotonic() - begin < 2 * 2)
        result = run_sandboxed("head -c 400000000 /dev/zero | tr '\\\\0' x")
        print(len(result.stdout), result.stdout_more)
        print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
    """)  # fmt: skip
    first, second, grown = done.stdout.splitlines()
    assert (first, second) == ("True True", f"102400 {400_000_000 - 102_400}")
    assert int(grown) < 40  # megabytes; it was 1166 for the same


def test_O4_output_that_is_no_utf_8():
    result = run_sandboxed("printf 'a\\377b'")
    assert (result.stdout, result.returncode) == ("a\ufffdb", 0)
    result = run_sandboxed("echo a\0b")
    assert result.returncode == -1 and result.stderr.startswith("Execution error: ")


def test_O5_bytes_are_counted_and_the_cut_is_told():
    result = run_sandboxed("for i in $(seq 100); do printf é; done", max_output_bytes=101)
    assert result.stdout == "é" * 50 and len(result.stdout.encode()) <= 101
    assert result.truncated and result.stdout_more == 100 and result.stderr_more == 0
    whole = run_sandboxed("printf éé", max_output_bytes=4)
    assert whole.stdout == "éé" and not whole.truncated


def test_O6_stdin_stays_the_agents(tmp_path):
    done = agent(tmp_path, """
        import sys
        from callbox.compat.openjarvis import run_sandboxed
        print(sys.stdin.buffer.raw.read(6))
        print(repr(run_sandboxed("cat; cat").stdout))
        print(sys.stdin.buffer.raw.read(7))
    """, input="line 1line 2\n")  # fmt: skip
    assert done.stdout == "b'line 1'\n''\nb'line 2\\n'\n"


def test_O7_a_missing_working_directory_is_an_error(tmp_path):
    file = tmp_path / "file"
    file.touch()
    for wrong in (tmp_path / "missing", file):
        result = run_sandboxed("pwd", working_dir=str(wrong))
        assert (result.returncode, result.stdout) == (-1, "")
        assert result.stderr.startswith("Execution error: ") and str(wrong) in result.stderr


def test_O8_the_environment_of_the_agent_cannot_be_read():
    look = "cat /proc/*/environ /proc/$PPID/environ | tr '\\0' '\\n'"
    result = run_sandboxed(look)
    assert os.environ[SECRET] not in result.stdout and "PATH=" in result.stdout  # its own it can
    here = subprocess.run(["sh", "-c", look], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          env={}, errors="replace", check=False)  # fmt: skip
    assert "PATH=" in here.stdout  # of other processes, without a box


def test_O9_a_process_of_the_same_group_can_be_killed(tmp_path):
    done = agent(tmp_path, """
        import os, subprocess
        from callbox.compat.openjarvis import kill_process_tree
        os.setpgrp()
        children = [subprocess.Popen(["sleep", "7809"]) for _ in range(2)]
        kill_process_tree(children[0].pid)
        print(children[0].wait() < 0, children[1].poll())
        children[1].kill()
    """)  # fmt: skip
    assert (done.stdout, done.returncode) == ("True None\n", 0)


def test_O10_files_network_processes_and_memory_are_bounded():
    assert run_sandboxed("cat /etc/shadow").returncode != 0
    assert run_sandboxed(f"kill -0 {os.getpid()}").returncode != 0
    with socket.create_server(("127.0.0.1", 0)) as server:
        connect = f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {server.getsockname()[1]}), 5)'"
        assert run_sandboxed(connect).returncode != 0
        assert run_sandboxed(connect, policy=Policy(network="host")).returncode == 0
    hog = run_sandboxed("python3 -c 'bytearray(1 << 30)'")
    assert hog.returncode != 0 and "emory" in hog.stderr
    many = run_sandboxed("for i in $(seq 400); do sleep 7810 & done", timeout=25)
    assert many.returncode != 0
    until(lambda: not processes(b"7810"))


def test_O11_partial_output_survives_a_timeout():
    result = run_sandboxed("echo so far; echo and this >&2; sleep 600", timeout=1)
    assert (result.stdout, result.partial_stdout, result.partial_stderr) == ("(timed out)", "so far\n", "and this\n")


def test_O12_a_daemon_does_not_outlive_its_call():
    assert run_sandboxed("setsid -f sleep 7812; (sleep 7812 &) ; true").returncode == 0
    until(lambda: not processes(b"7812"))


def test_O13_latency_does_not_grow_with_the_agent(tmp_path):
    done = agent(tmp_path, """
        import statistics, time
        from callbox.compat.openjarvis import run_sandboxed
        def median():
            taken = []
            for _ in range(30):
                begin = time.perf_counter()
                run_sandboxed("true")
                taken.append(time.perf_counter() - begin)
            return statistics.median(taken)
        median()
        small = median()
        hog = bytearray(1 << 30)
        hog[::4096] = b"x" * (1 << 18)
        print(median() / small)
    """)  # fmt: skip
    assert float(done.stdout) < 4  # it was ten for half of that


def test_O14_its_own_tools_are_in_a_box_too(monkeypatch):
    code, shell = CodeInterpreterTool(), ShellExecTool()
    dodge = f"print(__import__('o' + 's').environ.get('{SECRET}'))"
    assert code.execute(code=dodge).content == "None\n"
    harmless = "print('subprocess, os.system and eval( are only words here')"
    assert code.execute(code=harmless).content.startswith("subprocess, os.system and eval(")
    assert "FileNotFoundError" in code.execute(code="open('/etc/shadow')").content
    assert shell.execute(command="sleep 7814 & setsid sleep 7814 &").success
    until(lambda: not processes(b"7814"))
    # A model that asks for the agent's secrets.
    asked = {"command": f"echo ${SECRET}", "env_passthrough": [SECRET]}
    assert shell.execute(**asked).content == "=== STDOUT ===\n\n"
    assert os.environ[SECRET] in ShellExecTool(allow_env=[SECRET]).execute(**asked).content


def test_O14_with_the_texts_of_those_tools(tmp_path):
    code, shell = CodeInterpreterTool(), ShellExecTool(workspace=tmp_path)

    def said(**params):
        result = shell.execute(**params)
        assert result.tool_name == "shell_exec" and (result.usage, result.cost_usd) == ({}, 0.0)
        return result.content, result.success, result.metadata.get("returncode")

    file = tmp_path / "file"
    file.touch()
    assert said() == ("No command provided.", False, None)
    assert said(command="x", working_dir="/none") == ("Working directory does not exist: /none", False, None)
    assert said(command="x", working_dir=str(file)) == (f"Working directory is not a directory: {file}", False, None)
    assert said(command="sleep 600", timeout=1) == ("Command timed out after 1 seconds.", False, -1)
    assert said(command="true") == ("(no output)", True, 0)
    assert said(command="echo a; echo b >&2; exit 4") == ("=== STDOUT ===\na\n\n=== STDERR ===\nb\n", False, 4)
    assert said(command="yes | head -c 200000")[0].endswith("\n... (stdout truncated)")
    for given, used in (("5", 5), (0, 1), (-3, 1), (2.9, 2), ("abc", 30), ([1], 30), (None, 30), (float("inf"), 300)):
        assert shell.execute(command="true", timeout=given).metadata["timeout_used"] == used, given
    used = shell.execute(command="true", timeout=9000, working_dir=str(tmp_path)).metadata
    assert used == {"returncode": 0, "timeout_used": 300, "working_dir": str(tmp_path)}
    assert code.execute().content == "No code provided."
    failed = code.execute(code="1 / 0")
    assert not failed.success and failed.metadata == {"returncode": 1}
    assert failed.content.endswith("ZeroDivisionError: division by zero\n")
    long = code.execute(code="print('x' * 20_000)").content
    assert long.endswith("\n... (output truncated)") and len(long) < 10_100
    assert code.execute(code="#" * 200_000 + "\nprint(7)").content == "7\n"
    both = code.execute(code="import sys; print('out', end=''); print('err', file=sys.stderr, end='')")
    assert both.content == "out\nerr"


def test_code_interpreter_has_the_time_and_the_output_that_it_is_given():
    slow = CodeInterpreterTool(timeout=1).execute(code="import time; time.sleep(600)")
    assert (slow.content, slow.success) == ("Execution timed out after 1 seconds.", False)
    assert CodeInterpreterTool(0).execute(code="1").content == "Execution timed out after 0 seconds."
    short = CodeInterpreterTool(30, 50).execute(code="print('A' * 200)")
    assert short.success and short.content == "A" * 50 + "\n... (output truncated)"
    assert CodeInterpreterTool(timeout=None)._seconds > 1e6
    # What an application allows by a policy is not exceeded.
    strict = CodeInterpreterTool(timeout=600, policy=Policy(limits={"wall": 1}))
    assert strict.execute(code="while True: pass").content == "Execution timed out after 1 seconds."


def test_tools_say_what_they_are_without_openjarvis():
    for made, name, needed in ((ShellExecTool(), "shell_exec", "command"), (CodeInterpreterTool(), "code_interpreter", "code")):
        assert made.tool_id == made.spec.name == name and made.spec.parameters["required"] == [needed]
        assert made.to_openai_function()["function"]["name"] == name


# ---- Interpreters ----


def make_venv(place):
    """A virtual environment without pip, with a module of its own."""
    venv.create(place, with_pip=False, symlinks=True)
    site = next((place / "lib").glob("python3*/site-packages"))
    (site / "only_there.py").write_text("WORD = 'of the environment'\n")
    return place / "bin"


ASKS = "python3 -c 'import only_there, sys; print(only_there.WORD, sys.prefix)'"


def test_commands_find_the_virtual_environment_of_their_path(tmp_path, monkeypatch):
    monkeypatch.setattr(_inputs, "_written", set())  # other tests let boxes write above it
    folder = make_venv(tmp_path / "env")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    assert run_sandboxed(ASKS).stdout.split() == ["of", "the", "environment", str(tmp_path / "env")]
    (tmp_path / "work").mkdir()
    assert "of the environment" in run_sandboxed(ASKS, working_dir=str(tmp_path / "work")).stdout
    assert "of the environment" in ShellExecTool(workspace=tmp_path / "work").execute(command=ASKS).content
    # It is shown to be read, and nothing beside it.
    (tmp_path / "beside").write_text("secret")
    assert run_sandboxed(f"cat {tmp_path}/beside; echo x >{folder}/python3").stdout == ""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert "only_there" in run_sandboxed(ASKS).stderr


def test_commands_find_the_interpreters_of_pyenv(tmp_path, monkeypatch):
    monkeypatch.setattr(_inputs, "_written", set())  # other tests let boxes write above it
    root = tmp_path / "pyenv"
    make_venv(root / "versions" / "9.9")
    (root / "shims").mkdir()
    shim = root / "shims" / "python3"
    shim.write_text(f'#!/bin/sh\nexec {root}/versions/$(cat {root}/version)/bin/python3 "$@"\n')
    shim.chmod(0o755)
    (root / "version").write_text("9.9")
    monkeypatch.setenv("PATH", f"{root}/shims:{os.environ['PATH']}")
    assert "of the environment" in run_sandboxed(ASKS).stdout


def test_an_environment_where_boxes_write_shows_nothing_more(tmp_path, monkeypatch):
    """What lies there may be written by a box: a link or a pyvenv.cfg of its own would show what it likes."""
    secret = make_venv(tmp_path / "secret")
    work = tmp_path / "work"
    mine = make_venv(work / "env")
    monkeypatch.setenv("PATH", f"{mine}:/usr/bin:/bin")
    (mine / "python3").unlink()
    (mine / "python3").symlink_to(secret / "python3")
    (work / "env" / "pyvenv.cfg").write_text(f"home = {secret}\n")
    asked = f"ls {tmp_path}/secret || echo hidden"
    for _ in range(2):
        assert run_sandboxed(asked, working_dir=str(work)).stdout == "hidden\n"
    assert run_sandboxed(asked).stdout == "hidden\n"  # nor where it may not write any more


def test_homes_are_not_shown_for_an_interpreter(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    make_venv(tmp_path)
    (tmp_path / "key").write_text("secret")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    assert run_sandboxed(f"cat {tmp_path}/key").returncode == 1


def test_an_interpreter_by_a_path_with_dots(tmp_path, monkeypatch):
    folder = make_venv(tmp_path / "env")
    (tmp_path / "other").mkdir()
    monkeypatch.setattr(sys, "executable", f"{tmp_path}/other/../env/bin/python3")
    said = CodeInterpreterTool().execute(code="import only_there; print(only_there.WORD)").content
    assert said == "of the environment\n", (said, folder)


def test_commands_start_where_a_box_has_its_own():
    for place in ("/", "/proc", "/dev"):
        assert run_sandboxed("pwd", working_dir=place).stdout == f"{place}\n"
    assert run_sandboxed("touch /made", working_dir="/").returncode == 1
    assert run_sandboxed("ls", working_dir="/").returncode == 0


def test_an_interrupt_ends_the_command(tmp_path):
    path = tmp_path / "agent.py"
    path.write_text(textwrap.dedent("""
        import signal
        from callbox.compat.openjarvis import run_sandboxed
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            run_sandboxed("sleep 7815", timeout=600)
        except KeyboardInterrupt:
            print("interrupted")
    """))
    with subprocess.Popen([sys.executable, str(path)], stdout=subprocess.PIPE, text=True) as running:
        until(lambda: processes(b"7815"), 60)
        running.send_signal(signal.SIGINT)
        assert running.communicate(timeout=60)[0] == "interrupted\n"
    until(lambda: not processes(b"7815"))
