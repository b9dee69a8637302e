# SPDX-License-Identifier: MIT
"""The docker backend of Calute and Xerxes, with a program that stands in for docker and podman."""

import asyncio
import base64
import collections
import json
import pathlib
import shutil
import time

import compat_tools as tools
import pytest
from test_run import processes, until

from callbox.compat import _docker_client, xerxes
from callbox.compat.calute import DockerSandboxBackend, SandboxBackendConfig, SandboxConfig, get_backend, list_backends


class Engine:
    """Where it is, and what it was asked for."""

    def __init__(self, place):
        self.place = place

    @property
    def asked(self):
        return [json.loads(line) for line in (self.place / "asked").read_text().splitlines()]


@pytest.fixture
def engine(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "state").mkdir()
    shutil.copy(pathlib.Path(__file__).with_name("fake_docker.py"), tmp_path / "bin" / "docker")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.setenv("FAKE_DOCKER", str(tmp_path / "state"))
    return Engine(tmp_path / "state")


def backend(cls=DockerSandboxBackend, **more):
    return cls(SandboxConfig(**{"sandbox_timeout": 30.0, **more}))


def failure(made, function, **arguments):
    with pytest.raises(RuntimeError) as caught:
        made.execute(function.__name__, function, arguments)
    return str(caught.value)


def test_a_call_in_a_container(engine):
    made = get_backend("docker", SandboxConfig(sandbox_memory_limit_mb=64))
    assert isinstance(made, DockerSandboxBackend) and list_backends() == ["docker", "subprocess"]
    assert made.execute("identity", tools.identity, {"x": (1, {2})}) == (1, {2})
    assert made.execute("identity", tools.identity, {"x": collections.Counter("aab")}) == collections.Counter("aab")
    words = engine.asked[0]
    assert words[:5] == ["docker", "run", "--rm", "-i", "--name"] and words[words.index("--memory") + 1] == "64m"
    assert words[words.index("--network") + 1] == "none" and "no-new-privileges" in words
    assert words[words.index("python:3.12-slim") + 1 :][:3] == ["python", "-I", "-B"]
    mounted = [word for flag, word in zip(words, words[1:]) if flag == "-v"]
    assert len(mounted) == 2 and all(word.endswith(":ro") for word in mounted)
    assert made.execute("add_later", tools.later, {"x": 2}) == 4  # a coroutine function


def test_results_of_xerxes_are_json(engine):
    assert backend(xerxes.DockerSandboxBackend).execute("identity", tools.identity, {"x": (1, {2})}) == [1, [2]]


def test_what_is_printed_is_no_answer(engine):
    assert backend().execute("chatter", tools.chatters, {}) == "quiet"


def test_a_configuration_opens_what_it_names(engine, tmp_path):
    (tmp_path / "work").mkdir()
    settings = SandboxBackendConfig(
        image="mine", mount_paths={str(tmp_path): "/data"}, mount_readonly=False, env_vars={"NAMED": "a=b"}
    )
    made = backend(backend_config=settings, working_directory=str(tmp_path / "work"), sandbox_network_access=True)
    assert made.execute("environment", tools.variable, {"name": "NAMED"}) == "a=b"
    words = engine.asked[0]
    assert "--network" not in words and f"{tmp_path}:/data" in words and words[words.index("-w") + 1] == "/workspace"
    assert f"{tmp_path}/work:/workspace" in words and "mine" in words
    settings.mount_paths = {"/a:b": "/c"}
    assert "colon" in failure(made, tools.identity, x=1)


def test_texts(engine):
    made = backend()
    known = "Docker sandbox execution of tool "
    assert failure(made, tools.ends, how="x") == "Tool 'ends' raised KeyError inside sandbox: 'x'"
    assert failure(made, tools.ends, how="_exit 3 and say") == known + "'ends' failed (exit 3): err"
    assert failure(made, tools.a_lock).startswith("Failed to deserialise sandbox result for tool 'a_lock': result")
    assert "can only import it" in failure(made, lambda: 1)
    missing = backend(backend_config=SandboxBackendConfig(image="no-such-image"))
    assert failure(missing, tools.identity, x=1) == known + "'identity' failed (exit 125): Unable to find image"
    assert failure(backend(sandbox_timeout=0), tools.identity, x=1) == known + "'identity' timed out after 0s"
    assert backend(sandbox_timeout=None).execute("identity", tools.identity, {"x": 1}) == 1


FORGED = ["", "not base64!", "aGk=", base64.b64encode(b"[1]").decode(), base64.b64encode(b'{"ok": true}').decode(),
          base64.b64encode(b'{"ok": 1, "value": 2}').decode(), base64.b64encode(b"\x80\x04cos\nsystem\n.").decode(),
          base64.b64encode(b'{"ok": true, "value": {"$callbox": "x"}}').decode()]  # fmt: skip


@pytest.mark.parametrize("said", FORGED, ids=range(len(FORGED)))
def test_a_forged_answer_is_refused(engine, monkeypatch, said):
    monkeypatch.setattr(_docker_client, "run", lambda *_, **__: _docker_client.Done(0, said, ""))
    assert failure(backend(), tools.identity, x=1).startswith("Failed to deserialise sandbox result for tool 'identity': ")


def test_a_container_is_removed_when_its_time_is_over(engine):
    made = backend(sandbox_timeout=2.0)
    assert failure(made, tools.leaves_children, mark="7951").endswith("timed out after 2.0s")
    run, removed = engine.asked
    assert removed == ["docker", "rm", "-f", run[run.index("--name") + 1]]
    until(lambda: not processes(engine.place.name.encode() + b"/root-"))


def test_a_container_is_removed_when_its_task_is_cancelled(engine):
    async def main():
        task = asyncio.ensure_future(backend().execute("sleeps", tools.sleeps, {"seconds": 600}))
        begin = time.monotonic()
        while not (engine.place / "asked").exists() or len(list(engine.place.iterdir())) < 3:
            assert time.monotonic() < begin + 30
            await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert [words[1] for words in engine.asked] == ["run", "rm"]


def test_which_engine(engine, tmp_path, monkeypatch):
    assert backend().is_available() and backend().get_capabilities() == {
        "backend": "docker", "available": True, "image": "python:3.12-slim", "network_access": False,
        "memory_limit_mb": 512, "timeout": 30.0,
    }  # fmt: skip
    (tmp_path / "bin" / "docker").rename(tmp_path / "bin" / "podman")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    assert backend()._build_docker_command("t")[0] == "podman"
    (tmp_path / "bin" / "podman").unlink()
    assert backend()._build_docker_command("t")[0] == "docker" and not backend().is_available()
    assert "failed (exit -1): " in failure(backend(), tools.identity, x=1)


def test_output_is_bounded():
    done = _docker_client.run(["sh", "-c", "yes | head -c 10000000; yes | head -c 1000 >&2; exit 3"],
                              input=b"x" * 1_000_000, timeout=60, output=100, errors=10)  # fmt: skip
    assert (done.returncode, len(done.stdout), len(done.stderr)) == (3, 100, 10)
