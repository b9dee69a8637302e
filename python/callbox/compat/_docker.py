# SPDX-License-Identifier: MIT
"""The docker backend of Calute and Xerxes: a function in a container of its own, by docker or podman. What
keeps it there is the engine's affair; of what comes back callbox takes as little on trust as of a box.

The container has this package, and the function's module or package, read-only. A function goes by its
name, as the Python there may be another one; arguments and results are typed JSON (_values.py)."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from typing import Any, Callable, Dict, List, Optional, Tuple

from .. import _kinds, _values
from .._interpreter import PACKAGE, _package_of, why_not_by_name
from .._late import asyncio, uuid
from . import _docker_client
from ._calls import log
from ._calute import _is_on_a_loop, _memory
from ._trio import on_asyncio

ENGINES = ("docker", "podman")
HERE = "/run/callbox"  # in the container
WORKSPACE = "/workspace"
RUNNER = f"CALLBOX_BOX = True; import sys; sys.path.append({HERE!r}); from callbox.compat import _docker_box; _docker_box.main()"
# What a container has that its program does not need.
FENCES = ("--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--pids-limit", "512")
INFO_SECONDS = 10
REMOVE_SECONDS = 30
OUTPUT_MAX = 256 << 20
ERRORS_MAX = 64 * 1024
SAID_MAX = 1000  # characters


def _mount(host: str, box: str, readonly: bool) -> List[str]:
    if ":" in host or ":" in box:
        raise ValueError(f"a path with a colon cannot be mounted: {host!r} at {box!r}")
    return ["-v", f"{host}:{box}{':ro' if readonly else ''}"]


class DockerSandboxBackend:
    """Runs each call in a container, which is removed whatever comes of the call. `extra_args["engine"]` of
    the backend's configuration names the program, where it is neither docker nor podman on the PATH."""

    as_json = False

    def __init__(self, sandbox_config: Any) -> None:
        self._config = sandbox_config
        _memory(sandbox_config)

    def _engine(self) -> str:
        named = self._config.backend_config.extra_args.get("engine")
        return str(named or next((name for name in ENGINES if shutil.which(name)), ENGINES[0]))

    # ---- The command ----

    def _build_docker_command(
        self, tool_name: str, name: str = "", func: Optional[Callable[..., Any]] = None
    ) -> List[str]:
        config, settings = self._config, self._config.backend_config
        words = [self._engine(), "run", "--rm", "-i", *(("--name", name) if name else ()), *FENCES]
        if config.sandbox_memory_limit_mb is not None:
            words += ["--memory", f"{config.sandbox_memory_limit_mb}m"]
        if not config.sandbox_network_access:
            words += ["--network", "none"]
        if config.working_directory:
            place = os.path.abspath(os.path.expanduser(config.working_directory))
            words += [*_mount(place, WORKSPACE, settings.mount_readonly), "-w", WORKSPACE]
        for host, box in settings.mount_paths.items():
            words += _mount(os.path.abspath(host), box, settings.mount_readonly)
        for host, box in [(PACKAGE, f"{HERE}/callbox"), *(_module_of(func) if func else ())]:
            words += _mount(host, box, True)
        for key, value in settings.env_vars.items():
            words += ["-e", f"{key}={value}"]
        return [*words, settings.image, "python", "-I", "-B", "-c", RUNNER]

    # ---- Calls ----

    def execute(self, tool_name: str, func: Callable[..., Any], arguments: Dict[str, Any]) -> Any:
        """The result; on a thread with a running event loop, which must not wait, an awaitable of it."""
        run = self.aexecute if _is_on_a_loop() else self.execute_sync
        return run(tool_name, func, arguments)

    def execute_sync(self, tool_name: str, func: Callable[..., Any], arguments: Dict[str, Any]) -> Any:
        return self._run(tool_name, func, arguments, f"callbox-{uuid.uuid4().hex}")

    async def aexecute(self, tool_name: str, func: Callable[..., Any], arguments: Dict[str, Any]) -> Any:
        """Cancelling it removes the container."""
        return await on_asyncio(self._aexecute(tool_name, func, arguments))

    async def _aexecute(self, tool_name: str, func: Callable[..., Any], arguments: Dict[str, Any]) -> Any:
        name = f"callbox-{uuid.uuid4().hex}"
        running = asyncio.ensure_future(asyncio.to_thread(self._run, tool_name, func, arguments, name))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.to_thread(self._remove, name)
            running.add_done_callback(lambda done: done.cancelled() or done.exception())
            raise

    def _failed(self, tool_name: str, status: int, text: str) -> RuntimeError:
        return RuntimeError(f"Docker sandbox execution of tool {tool_name!r} failed (exit {status}): {text}")

    def _request(self, func: Callable[..., Any], arguments: Dict[str, Any]) -> bytes:
        why = why_not_by_name(func)
        if why:
            raise ValueError(f"the tool {why}, and a container can only import it")
        request = {
            "name": f"{func.__module__}:{func.__qualname__}",
            "args": json.loads(_values.dumps(dict(arguments), "arguments", inward=True)),
            "path": [f"{HERE}/modules"],
            "json": self.as_json,
        }
        return json.dumps(request).encode()

    def _run(self, tool_name: str, func: Callable[..., Any], arguments: Dict[str, Any], name: str) -> Any:
        seconds = self._config.sandbox_timeout
        late = f"Docker sandbox execution of tool {tool_name!r} timed out after {seconds}s"
        if seconds is not None and not seconds > 0:
            raise RuntimeError(late)
        try:
            request = self._request(func, arguments)
            words = self._build_docker_command(tool_name, name, func)
        except (TypeError, ValueError) as error:
            raise self._failed(tool_name, -1, str(error)) from None
        log.debug("Docker sandbox executing tool %r: %s", tool_name, " ".join(words))
        ended = False
        try:
            done = _docker_client.run(words, input=request, timeout=seconds, output=OUTPUT_MAX, errors=ERRORS_MAX)
            ended = True
        except subprocess.TimeoutExpired:
            raise RuntimeError(late) from None
        except OSError as error:
            ended = True  # there is no such program
            raise self._failed(tool_name, -1, str(error)) from None
        finally:
            if not ended:
                self._remove(name)
        if done.returncode:
            raise self._failed(tool_name, done.returncode, done.stderr.strip()[-SAID_MAX:])
        return self._value(tool_name, func, done.stdout)

    def _remove(self, name: str) -> None:
        """Ending its client ends no container."""
        words = [self._engine(), "rm", "-f", name]
        try:
            subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=REMOVE_SECONDS, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            log.warning("cannot remove the container %s: %s", name, error)

    def _value(self, tool_name: str, func: Callable[..., Any], said: str) -> Any:
        failed = f"Failed to deserialise sandbox result for tool {tool_name!r}"
        notes: List[str] = []
        try:
            text = base64.b64decode(said.strip(), validate=True).decode()
            hinted = _values.Hinted(_kinds.result_classes(func))
            told = _values.loads(text, None, hinted, limit=len(text), notes=notes)
            if not isinstance(told, dict) or not isinstance(told.get("ok"), bool):
                raise ValueError("it is no answer")
            if told["ok"]:
                value = told["value"]
        except (KeyError, ValueError) as error:
            raise RuntimeError(f"{failed}: {error}") from None
        for note in notes:
            log.warning("tool %r returned something else: %s (docs/migrating.md)", tool_name, note)
        if told["ok"]:
            return value
        if "unreadable" in told:
            raise RuntimeError(f"{failed}: {str(told['unreadable'])[:SAID_MAX]}")
        kind, text = str(told.get("type", "Exception")), str(told.get("error", "unknown error"))
        raise RuntimeError(f"Tool {tool_name!r} raised {kind[:SAID_MAX]} inside sandbox: {text}")

    # ---- What it is ----

    def is_available(self) -> bool:
        """Whether the engine answers."""
        nothing = subprocess.DEVNULL
        try:
            done = subprocess.run(
                [self._engine(), "info"], stdin=nothing, stdout=nothing, stderr=nothing, timeout=INFO_SECONDS, check=False
            )
        except (OSError, subprocess.SubprocessError):
            return False
        return done.returncode == 0

    def get_capabilities(self) -> Dict[str, Any]:
        return {
            "backend": "docker",
            "available": self.is_available(),
            "image": self._config.backend_config.image,
            "network_access": self._config.sandbox_network_access,
            "memory_limit_mb": self._config.sandbox_memory_limit_mb,
            "timeout": self._config.sandbox_timeout,
        }


def _module_of(func: Callable[..., Any]) -> List[Tuple[str, str]]:
    """The module of a function, or the package that it is in, and where it is put. What every Python has, or
    the image, is not."""
    name = func.__module__
    file = getattr(sys.modules.get(name), "__file__", None)
    if not file or name.partition(".")[0] in {*sys.builtin_module_names, *getattr(sys, "stdlib_module_names", ())}:
        return []
    place = _package_of(name, os.path.realpath(file))
    return [(place, f"{HERE}/modules/{os.path.basename(place)}")]
