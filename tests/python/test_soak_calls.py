# SPDX-License-Identifier: MIT
"""A short soak, as part of the tests; `make soak` has the long one."""

import pathlib
import subprocess
import sys


def test_calls_from_an_event_loop_are_right_leave_nothing_and_do_not_block_it():
    program = pathlib.Path(__file__).parent / "soak_calls.py"
    done = subprocess.run([sys.executable, str(program), "600"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=300)  # fmt: skip
    print(done.stdout)
    assert done.returncode == 0
