# SPDX-License-Identifier: MIT
"""The subprocess backend and the registry of Calute and Xerxes; _docker.py has the other backend. calute.py and
xerxes.py say with which types, and how results come back."""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from .._error import CallboxError
from .._late import asyncio
from .._native import default_warden
from .._policy import Policy
from ._calls import ENDED, WALL_MAX, Calls, OnReport, Outcome, log, policy_with, wall
from ._trio import running

Key = Tuple[Any, ...]


class SubprocessSandboxBackend:
    """Runs each call in a box of its own. `policy`, here or in `extra_args` of the backend's
    configuration, says what else it may see and reach."""

    as_json = False

    def __init__(
        self,
        sandbox_config: Any,
        *,
        policy: Optional[Policy] = None,
        calls: int = 0,
        on_report: Optional[OnReport] = None,
    ) -> None:
        self._config = sandbox_config
        self._policy = policy
        self._bound = calls
        self._on_report = on_report
        self._open: Optional[Tuple[Key, Calls]] = None
        _memory(sandbox_config)

    # ---- What the configuration asks for ----

    def _directory(self) -> Optional[str]:
        named: Optional[str] = self._config.working_directory
        if named is None:
            return None
        place = os.path.realpath(os.path.expanduser(named))
        os.scandir(place).close()  # raises what is wrong with it
        return place

    def _key(self, place: Optional[str]) -> Key:
        config, backend = self._config, self._config.backend_config
        return (
            place,
            _seconds(config),
            _memory(config),
            bool(config.sandbox_network_access),
            tuple(sorted(backend.mount_paths.items())),
            bool(backend.mount_readonly),
            tuple(sorted(backend.env_vars.items())),
            backend.extra_args.get("policy", self._policy),
        )

    def _policy_for(self, place: Optional[str], key: Key) -> Policy:
        _, timeout, memory, network, mounts, readonly, environment, policy = key

        def change(document: Dict[str, Any]) -> None:
            files = document["files"]
            document["limits"].update(wall=wall(timeout), memory=memory)
            if network:
                document["network"] = "host"
            if place is not None:
                files["workspace"] = place
            rules = [{"host": os.path.abspath(host), "box": box} for host, box in mounts]
            files["read" if readonly else "write"] += rules
            document["environment"]["set"].update(environment)

        return policy_with(policy, change)

    def _calls(self) -> Calls:
        """A configuration may be changed at any time; boxes are kept ready for the one of now."""
        place = self._directory()
        key = self._key(place)
        if self._open is None or self._open[0] != key:
            made = self._policy_for(place, key)
            calls = Calls(made, calls=self._bound, as_json=self.as_json, on_report=self._on_report)
            self._open = (key, calls)
        return self._open[1]

    # ---- Calls ----

    def execute(self, tool_name: str, func: Callable[..., Any], arguments: Dict[str, Any]) -> Any:
        """The result. On a thread with a running event loop, which must not wait, it is an awaitable
        of the result; the executors of Calute and Xerxes wait for it."""
        run = self.aexecute if _is_on_a_loop() else self.execute_sync
        return run(tool_name, func, arguments)

    def execute_sync(
        self, tool_name: str, func: Callable[..., Any], arguments: Dict[str, Any]
    ) -> Any:
        """Waits for the end, wherever it is called."""
        calls = self._calls_for(tool_name)
        return self._value(tool_name, calls.call(tool_name, func, arguments))

    async def aexecute(
        self, tool_name: str, func: Callable[..., Any], arguments: Dict[str, Any]
    ) -> Any:
        """Cancelling it ends the call."""
        calls = self._calls_for(tool_name)
        return self._value(tool_name, await calls.acall(tool_name, func, arguments))

    def _failed(self, tool_name: str, status: int, text: str) -> RuntimeError:
        return RuntimeError(
            f"Subprocess sandbox execution of tool {tool_name!r} failed (exit {status}): {text}"
        )

    def _late(self, tool_name: str) -> RuntimeError:
        return RuntimeError(
            f"Subprocess sandbox execution of tool {tool_name!r} timed out after "
            f"{self._config.sandbox_timeout}s"
        )

    def _unreadable(self, tool_name: str, text: str) -> RuntimeError:
        return RuntimeError(
            f"Failed to deserialise subprocess sandbox result for tool {tool_name!r}: {text}"
        )

    def _calls_for(self, tool_name: str) -> Calls:
        log.debug("Subprocess sandbox executing tool %r", tool_name)
        if not _seconds(self._config) > 0:
            raise self._late(tool_name)
        try:
            return self._calls()
        except (CallboxError, OSError, ValueError) as error:
            raise self._failed(tool_name, -1, str(error)) from None

    def _value(self, tool_name: str, told: Outcome) -> Any:
        if told.state == "returned":
            return told.value
        if told.state == "timeout":
            raise self._late(tool_name)
        if told.state == "unreadable":
            raise self._unreadable(tool_name, told.text)
        if told.state == "raised" and told.kind == "SystemExit":
            status = _status(told.text)
            text = told.text if status and not _is_number(told.text) else ""
            said = "\n".join(filter(None, (told.said, text)))
            raise self._failed(tool_name, status, said or "it ended instead of returning")
        if told.state == "raised":
            raise RuntimeError(
                f"Tool {tool_name!r} raised {told.kind} inside subprocess sandbox: {told.text}"
            )
        if told.state == "unsendable":
            text = f"the tool or its arguments cannot be sent into a box: {told.text}"
            raise self._failed(tool_name, -1, text)
        status = -1 if told.state == "unmade" else told.status
        if status == 0 and not told.text.startswith(ENDED):  # it has answered something else
            raise self._unreadable(tool_name, told.how)
        raise self._failed(tool_name, status, told.how)

    # ---- What it is ----

    def is_available(self) -> bool:
        """Whether there is a warden to make boxes."""
        try:
            default_warden()
        except (CallboxError, OSError):
            return False
        return True

    def _kept(self) -> Dict[str, bool]:
        """Which guarantees its calls have here and now; none where there can be no calls."""
        try:
            place = self._directory()
            found = self._policy_for(place, self._key(place)).capabilities()
        except (CallboxError, OSError, RuntimeError):
            return {}
        return {item.name: item.enforced for item in found.guarantees}

    def get_capabilities(self) -> Dict[str, Any]:
        kept = self._kept()
        return {
            "backend": "subprocess",
            "available": self.is_available(),
            "isolation_level": "process",
            "filesystem_isolation": kept.get("files", False),
            "network_isolation": kept.get("network", False),
            "memory_limit_mb": self._config.sandbox_memory_limit_mb,
            "timeout": self._config.sandbox_timeout,
        }


def _is_number(text: str) -> bool:
    digits = text[1:] if text.startswith("-") else text
    return len(digits) < 20 and digits.isascii() and digits.isdecimal()


def _status(text: str) -> int:
    """Of the text of a SystemExit, as the kernel gives it to a parent."""
    return int(text) if _is_number(text) else int(text not in ("", "None"))


def _seconds(config: Any) -> float:
    """None is no limit."""
    seconds: Optional[float] = config.sandbox_timeout
    return WALL_MAX if seconds is None else seconds


def _is_on_a_loop() -> bool:
    if "asyncio" not in sys.modules:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return running() is not None
    return True


def _memory(config: Any) -> Optional[int]:
    """Bytes for the whole tree of a call; None, and nothing else, is no limit."""
    limit = config.sandbox_memory_limit_mb
    if limit is None:
        return None
    if not limit >= 1:
        raise ValueError(
            f"sandbox_memory_limit_mb must be 1 or more, or None for no limit, not {limit!r}"
        )
    return int(limit * (1 << 20))


class Registry:
    """Backends by name; those of the real package too, where there is one."""

    def __init__(self, own: Mapping[str, Any], real: Any) -> None:
        self._own: Dict[str, Any] = dict(own)
        self._ours = tuple(own.items())
        self._real = real

    def register_backend(self, name: str, cls: Any) -> None:
        """One of the same name is replaced."""
        self._own[name] = cls
        if self._real is not None:
            self._real.register_backend(name, cls)

    def get_backend(self, name: str, sandbox_config: Any) -> Any:
        if name in self._own:
            return self._own[name](sandbox_config=sandbox_config)
        if self._real is not None and name in self._real.list_backends():
            return self._real.get_backend(name, sandbox_config=sandbox_config)
        raise ValueError(
            f"Unknown sandbox backend {name!r}. Available backends: {', '.join(self.list_backends())}"
        )

    def list_backends(self) -> List[str]:
        return sorted({*self._own, *(self._real.list_backends() if self._real is not None else ())})

    def install(self) -> bool:
        """Make the real package use the box for "subprocess", and its containers by what is here. Whether there
        is a real package."""
        if self._real is None:
            return False
        for name, cls in self._ours:
            self._real.register_backend(name, cls)
        return True
