# SPDX-License-Identifier: MIT
"""Large arguments through each drop-in, from an agent that has nothing of callbox beside it: what its boxes see
of the package is what an installed one has, without the library."""

import os
import subprocess
import sys
import textwrap

import pytest

TOOLS = "def size(data):\n    return len(data)\n"

CALUTE = """
    from callbox.compat.{name} import SandboxConfig, SubprocessSandboxBackend
    call = SubprocessSandboxBackend(sandbox_config=SandboxConfig()).execute
    print([call("size", tools.size, {{"data": data}}) for data in given])
"""
JEEVES = """
    import asyncio
    from callbox.compat.{name} import InProcessToolHost, {sandbox}
    sandbox = {sandbox}(InProcessToolHost([tools.size]){more})
    print([asyncio.run(sandbox.call("size", {{"data": data}}, call_id="1")).output for data in given])
"""
WAYS = {
    "calls": """
        from callbox.compat._calls import Calls, policy_with
        calls = Calls(policy_with(None, lambda document: None))
        print([calls.call("size", tools.size, {"data": data}).value for data in given])
    """,
    **{name: CALUTE.format(name=name) for name in ("calute", "xerxes")},
    **{f"{name} {sandbox}": JEEVES.format(name=name, sandbox=sandbox, more=more)
       for name in ("jeevesagent", "loomflow")
       for sandbox, more in (("SubprocessSandbox", ""), ("OSSandbox", ", roots=['.']"))},
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_large_arguments(tmp_path, way):
    (tmp_path / "tools.py").write_text(TOOLS)
    head = "import tools\ngiven = [b'x' * n for n in (10, 2_000_000, 20_000_000)]\n"
    (tmp_path / "agent.py").write_text(head + textwrap.dedent(WAYS[way]))
    env = {**os.environ, "PYTHONPATH": os.environ["PYTHONPATH"].split(":")[0], "CALLBOX_IMPORT_PATH": "allow"}
    done = subprocess.run([sys.executable, "agent.py"], cwd=tmp_path, env=env, text=True, timeout=120,
                          capture_output=True, check=False)  # fmt: skip
    assert done.stdout.strip() == "[10, 2000000, 20000000]", done.stdout + done.stderr


def test_a_result_without_end_is_not_kept(tmp_path):
    """Of a call with large arguments too."""
    (tmp_path / "tools.py").write_text(textwrap.dedent("""
        import os
        def flood(data):
            from callbox import _channel
            for _ in range(200):
                os.write(_channel.current.fd, bytes(1 << 20))
    """))
    (tmp_path / "agent.py").write_text(textwrap.dedent("""
        import resource, tools
        from callbox import Policy
        from callbox.compat._calls import Calls
        calls = Calls(Policy(limits={"result": "1M"}))
        data = b"x" * 2_000_000
        calls.call("flood", len, {"obj": data})
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        done = calls.call("flood", tools.flood, {"data": data})
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(done.state, "too large" in done.text, grown < 50 * 1024, grown)
    """))
    env = {**os.environ, "PYTHONPATH": os.environ["PYTHONPATH"].split(":")[0]}
    done = subprocess.run([sys.executable, "agent.py"], cwd=tmp_path, env=env, text=True, timeout=120,
                          capture_output=True, check=False)  # fmt: skip
    assert done.stdout.startswith("ended True True"), done.stdout + done.stderr
