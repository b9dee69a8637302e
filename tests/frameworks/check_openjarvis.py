# SPDX-License-Identifier: MIT
"""The drop-in in a real OpenJarvis: its types, and its own tools with another execute()."""

import os

import openjarvis.security.subprocess_sandbox as real
import openjarvis.tools.shell_exec as real_shell
from checks import SECRET, main

from callbox.compat import openjarvis as dropin
from callbox.compat.openjarvis_tools import CodeInterpreterTool, ShellExecTool


def test_results_are_the_packages_own():
    result = dropin.run_sandboxed("echo hi; exit 3")
    assert isinstance(result, real.SandboxResult)
    assert (result.stdout, result.returncode, result.timed_out, result.killed) == ("hi\n", 3, False, False)


def test_both_say_the_same():
    assert dropin.__all__ == real.__all__
    assert dropin.build_safe_env(["X"], {"A": "b"}) == real.build_safe_env(["X"], {"A": "b"})
    assert set(dropin._SAFE_ENV_VARS) == set(real._SAFE_ENV_VARS)
    for command in ("true", "exit 3", "kill -9 $$", "printf 'a\\r\\nb'; echo c >&2", "echo $((6 * 7))"):
        ours, theirs = dropin.run_sandboxed(command), real.run_sandboxed(command)
        for field in ("stdout", "stderr", "returncode", "timed_out", "killed"):
            assert getattr(ours, field) == getattr(theirs, field), (command, field)
    ours, theirs = (each.run_sandboxed("sleep 60", timeout=0.5) for each in (dropin, real))
    for field in ("stdout", "stderr", "returncode", "timed_out", "killed"):
        assert getattr(ours, field) == getattr(theirs, field), field


def test_a_box_is_behind_it():
    told = dropin.run_sandboxed(f"cat /etc/shadow /proc/$PPID/environ; echo ${SECRET}")
    assert os.environ[SECRET] not in told.stdout and "root:" not in told.stdout


def test_the_shell_tool_is_one_of_the_packages():
    tool = ShellExecTool()
    assert isinstance(tool, real_shell.ShellExecTool)
    result = tool.execute(command="echo a; echo b >&2")
    assert type(result) is real_shell.ToolResult
    theirs = real_shell.ShellExecTool().execute(command="echo a; echo b >&2")
    assert (result.content, result.success) == (theirs.content, theirs.success)
    assert tool.spec.name == real_shell.ShellExecTool().spec.name
    assert tool.execute(command="cat /etc/shadow").success is False


def test_the_code_interpreter_too():
    result = CodeInterpreterTool().execute(code="print(6 * 7)")
    assert (result.content, result.success, result.tool_name) == ("42\n", True, "code_interpreter")


if __name__ == "__main__":
    main(globals())
