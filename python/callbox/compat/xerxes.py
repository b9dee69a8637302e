# SPDX-License-Identifier: MIT
"""The sandbox of Xerxes, with a box behind it.

    from callbox.compat.xerxes import SandboxConfig, SandboxRouter, SubprocessSandboxBackend

Where a xerxes that has a sandbox is installed its own types are used, and install() puts the backend into
its registry, from where a runtime takes it by backend_type="subprocess".
Results are as JSON has them: lists for tuples and sets, text for the keys of dicts."""

from __future__ import annotations

from typing import Any

from . import _calute, _calute_types, _docker
from ._real import find, module

ExecutionContext: Any = find("xerxes.security.sandbox", "ExecutionContext", _calute_types)
ExecutionDecision: Any = find("xerxes.security.sandbox", "ExecutionDecision", _calute_types)
SandboxBackend: Any = find("xerxes.security.sandbox", "SandboxBackend", _calute_types)
SandboxBackendConfig: Any = find("xerxes.security.sandbox", "SandboxBackendConfig", _calute_types)
SandboxConfig: Any = find("xerxes.security.sandbox", "SandboxConfig", _calute_types)
SandboxExecutionUnavailableError: Any = find(
    "xerxes.security.sandbox", "SandboxExecutionUnavailableError", _calute_types
)
SandboxMode: Any = find("xerxes.security.sandbox", "SandboxMode", _calute_types)
SandboxRouter: Any = find("xerxes.security.sandbox", "SandboxRouter", _calute_types)


class SubprocessSandboxBackend(_calute.SubprocessSandboxBackend):
    as_json = True


class DockerSandboxBackend(_docker.DockerSandboxBackend):
    as_json = True


_registry = _calute.Registry(
    {"docker": DockerSandboxBackend, "subprocess": SubprocessSandboxBackend},
    module("xerxes.security.sandbox_backends"),
)
get_backend = _registry.get_backend
install = _registry.install
list_backends = _registry.list_backends
register_backend = _registry.register_backend

__all__ = [
    "DockerSandboxBackend",
    "ExecutionContext",
    "ExecutionDecision",
    "SandboxBackend",
    "SandboxBackendConfig",
    "SandboxConfig",
    "SandboxExecutionUnavailableError",
    "SandboxMode",
    "SandboxRouter",
    "SubprocessSandboxBackend",
    "get_backend",
    "install",
    "list_backends",
    "register_backend",
]
