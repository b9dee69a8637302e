# SPDX-License-Identifier: MIT
"""Programs in boxes: run(), arun(), Policy and Report."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from conftest import SECRET

import callbox
from callbox import CallboxError, Denial, Policy, Report, Warden, arun, run


def test_a_program_and_a_shell_text():
    report = run(["printf", "%s|", "a b", "$HOME"])
    assert isinstance(report, Report)
    assert report.ok and report.stdout == "a b|$HOME|" and report.stderr == ""
    report = run("echo out; echo err >&2; exit 3", call_id="c7")
    assert (report.reason, report.code, report.ok, report.id) == ("exited", 3, False, "c7")
    assert (report.stdout, report.stderr_bytes) == ("out\n", b"err\n")


def test_what_a_report_tells():
    report = run("kill -SEGV $$")
    assert report.reason == "signaled" and "SEGV" in f"{report.signal} {report.text}"
    report = run(["true"])
    assert report.run_time > 0 and report.memory_peak > 0 and report.started_at.year > 2000
    assert all(item.enforced for item in report.guarantees if item.name in ("files", "network"))
    assert report.denials == [] and not report.truncated


def test_input_environment_and_directory():
    report = run("cat; pwd; echo $A", input="given\n", environment={"A": "ä"}, cwd="/usr")
    assert report.stdout == "given\n/usr\nä\n"
    assert run(["cat"]).stdout == ""


def test_output_that_is_no_text():
    report = run(r"printf 'a\377b'")
    assert report.stdout_bytes == b"a\xffb" and report.stdout == "a\ufffdb"


def test_limits_end_a_call():
    report = run("sleep 60", timeout=0.2)
    assert report.reason == "timeout" and not report.ok
    report = run("yes", limits={"output": "97K"})
    assert report.reason == "output" and report.stdout.startswith("y\ny\n")
    with pytest.raises(TypeError, match="no limit 'memroy'"):
        run(["true"], limits={"memroy": 1})
    with pytest.raises(ValueError):
        run(["true"], timeout=0)


def test_what_cannot_be_set_up_is_raised():
    with pytest.raises(CallboxError) as caught:
        run(["no-such-program"])
    assert "no-such-program" in caught.value.text
    with pytest.raises(CallboxError) as caught:
        run(["true"], policy=Policy(read=["/no/such/path"]))
    assert "/no/such/path" in str(caught.value)
    with pytest.raises(TypeError):
        run(["a", 1])
    with pytest.raises(ValueError):
        run(["a\0b"])


def test_policies(tmp_path):
    (tmp_path / "a").write_text("seen")
    policy = Policy(read=[(tmp_path, "/data")], limits={"wall": 5, "memory": "64M"})
    assert run(["cat", "/data/a"], policy=policy).stdout == "seen"
    assert not run(["touch", "/data/b"], policy=policy).ok
    again = Policy.from_json(policy.to_json())
    assert again == policy and hash(again) == hash(policy) and again != Policy()
    assert again.to_dict()["limits"]["memory"] == "64M"
    work = Policy(workspace=tmp_path, environment=["LANG", SECRET])
    assert run(f"echo ${SECRET} > made; pwd", policy=work).ok
    assert (tmp_path / "made").read_text() == "the agent's own\n"
    with pytest.raises(CallboxError) as caught:
        Policy(limits={"memroy": 1})
    assert caught.value.where == "limits.memroy" and "memory" in str(caught.value)
    with pytest.raises(TypeError):
        Policy(read="/srv")


def test_o8_the_environment_of_the_agent_is_out_of_reach():
    report = run(f"echo ${SECRET}; cat /proc/$PPID/environ /proc/1/environ | tr '\\0' '\\n'")
    assert "the agent's own" not in report.stdout


def test_o6_stdin_is_not_the_agents():
    script = "import callbox; print(repr(callbox.run(['cat']).stdout)); print(input())"
    done = subprocess.run([sys.executable, "-c", script], input="mine\n", text=True,
                          stdout=subprocess.PIPE, check=True)  # fmt: skip
    assert done.stdout == "''\nmine\n"


def test_denials_are_listed():
    report = run("cat /etc/shadow", explain=True)
    assert report.denials == [Denial("file", "/etc/shadow", "ENOENT", 1, "--read /etc/shadow", '"files": {"read": ["/etc/shadow"]}')]


def test_live_output():
    pieces = []
    report = run("echo a; echo b >&2; echo c", on_output=pieces.append, on_errors=pieces.append)
    assert sorted(b"".join(pieces).split()) == [b"a", b"b", b"c"]
    assert report.stdout == "a\nc\n"

    def refuse(_):
        raise KeyError("enough")

    with pytest.raises(KeyError):
        run("yes", on_output=refuse)
    with pytest.raises(KeyError):
        asyncio.run(arun("yes", on_output=refuse))


def test_arun_on_a_loop_that_is_not_of_asyncio_says_so():
    for awaited in (arun(["true"]), callbox.Toolbox().call("none"), callbox.arun_python("1")):
        with pytest.raises(RuntimeError, match="need the event loop of asyncio; on another"):
            awaited.send(None)


def test_arun_many_without_threads():
    async def all_of_them():
        before = threading.active_count()
        reports = await asyncio.gather(*[arun(["echo", str(i)]) for i in range(40)])
        assert threading.active_count() == before
        return [report.stdout for report in reports]

    assert asyncio.run(all_of_them()) == [f"{i}\n" for i in range(40)]


def processes(mark):
    """Processes of the host that have the mark among their arguments."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as stream:
                if mark in stream.read().split(b"\0"):
                    found.append(int(name))
        except OSError:
            pass
    return found


def until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came to be"
        time.sleep(0.02)


def test_j8_cancelling_ends_the_call():
    async def cancelled():
        task = asyncio.ensure_future(arun(["sleep", "7391"]))
        while not processes(b"7391"):
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(cancelled(), 30))
    until(lambda: not processes(b"7391"))


def test_an_interrupt_ends_the_call():
    script = textwrap.dedent("""
        import callbox, sys
        try:
            callbox.run("echo ready; sleep 7392", on_output=lambda b: print("ready", flush=True))
        except KeyboardInterrupt:
            print(callbox.run(["echo", "still works"]).stdout)
    """)
    # Whoever runs the tests in the background ignores interrupts, and so would the agent.
    agent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    assert agent.stdout.readline() == "ready\n"
    agent.send_signal(signal.SIGINT)
    out, _ = agent.communicate(timeout=30)
    assert out == "still works\n\n" and agent.returncode == 0
    until(lambda: not processes(b"7392"))


def test_j18_a_killed_agent_takes_its_calls_along():
    script = "import callbox; callbox.run('echo; sleep 7393', on_output=lambda b: print(flush=True))"
    agent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    agent.stdout.readline()
    until(lambda: processes(b"7393"))
    agent.kill()
    agent.communicate(timeout=30)
    until(lambda: not processes(b"7393"))


def test_threads_share_a_warden():
    wrong = []

    def work(n):
        for i in range(5):
            if run(["echo", f"{n} {i}"]).stdout != f"{n} {i}\n":
                wrong.append((n, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []


def test_a_forked_child_opens_its_own():
    mine = Warden()
    assert run(["true"], warden=mine).ok
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            try:
                run(["true"], warden=mine)
            except RuntimeError:
                status = 0 if run(["true"]).ok else 2
            del mine
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert run(["true"], warden=mine).ok
    mine.close()
    with pytest.raises(ValueError):
        run(["true"], warden=mine)


def test_a_call_is_used_by_one_thread_and_its_report_is_taken_once():
    warden = callbox._native.default_warden()
    call = warden._native.start(Policy()._native, {"shell": b"sleep 7394"})
    raised = []

    def wait():
        call.wait()

    thread = threading.Thread(target=wait)
    thread.start()

    def refused():
        try:
            call.step()
        except RuntimeError as error:
            raised.append(error)
        return raised

    until(refused)
    call.signal(signal.SIGCONT)
    call.kill()
    thread.join(30)
    assert '"cancelled"' in str(call.report()[0])
    with pytest.raises(CallboxError):
        call.report()
    call.close()
    call.close()
    call.kill()
    for use in (call.step, call.wait, call.report, call.fileno, lambda: call.signal(15)):
        with pytest.raises(RuntimeError):
            use()
    with pytest.raises(TypeError):
        warden._native.start(Policy()._native, {"nonsense": 1})


def test_o13_a_box_costs_the_same_from_a_large_agent():
    def best():
        times = []
        for _ in range(15):
            begin = time.perf_counter()
            run(["true"])
            times.append(time.perf_counter() - begin)
        return min(times)

    small = best()
    ballast = bytearray(400 << 20)
    ballast[:: 4096] = b"x" * len(ballast[:: 4096])
    assert best() < small * 5


def test_many_policies_at_once():
    """More than the warden's processes can be told of before they have read the first."""

    async def one(n):
        policy = Policy(environment={"NUMBER": str(n), "MORE": "x" * 4000}, limits={"wall": 120})
        return (await arun('echo "$NUMBER"', policy=policy)).stdout

    async def main():
        return await asyncio.gather(*[one(n) for n in range(200)])

    assert asyncio.run(main()) == [f"{n}\n" for n in range(200)]
