# SPDX-License-Identifier: MIT
"""The types of Calute and Xerxes, for where neither is installed: the same names, fields and texts."""

from __future__ import annotations

import dataclasses
import enum
import logging
from typing import Any, Callable, Dict, Optional, Protocol, Set

log = logging.getLogger("callbox.compat")


class SandboxMode(enum.Enum):
    OFF = "off"
    WARN = "warn"
    STRICT = "strict"


class ExecutionContext(enum.Enum):
    HOST = "host"
    SANDBOX = "sandbox"


@dataclasses.dataclass
class ExecutionDecision:
    context: ExecutionContext
    tool_name: str
    reason: str


@dataclasses.dataclass
class SandboxBackendConfig:
    image: str = "python:3.12-slim"
    mount_paths: Dict[str, str] = dataclasses.field(default_factory=dict)
    mount_readonly: bool = True
    env_vars: Dict[str, str] = dataclasses.field(default_factory=dict)
    extra_args: Dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class SandboxConfig:
    mode: SandboxMode = SandboxMode.OFF
    sandboxed_tools: Set[str] = dataclasses.field(default_factory=set)
    elevated_tools: Set[str] = dataclasses.field(default_factory=set)
    sandbox_timeout: float = 30.0
    sandbox_memory_limit_mb: int = 512
    sandbox_network_access: bool = False
    working_directory: Optional[str] = None
    backend_type: Optional[str] = None
    backend_config: SandboxBackendConfig = dataclasses.field(default_factory=SandboxBackendConfig)


class SandboxExecutionUnavailableError(RuntimeError):
    def __init__(self, tool_name: str) -> None:
        super().__init__(
            f"Tool '{tool_name}' requires sandbox execution, but no sandbox backend is configured"
        )
        self.tool_name = tool_name


class SandboxBackend(Protocol):
    def execute(self, tool_name: str, func: Callable[..., Any], arguments: Dict[str, Any]) -> Any: ...

    def is_available(self) -> bool: ...

    def get_capabilities(self) -> Dict[str, Any]: ...


class SandboxRouter:
    """Says of a tool where it runs, and runs it in the backend; never on the host instead."""

    def __init__(
        self, config: Optional[SandboxConfig] = None, backend: Optional[SandboxBackend] = None
    ) -> None:
        self.config = config or SandboxConfig()
        self.backend = backend

    def decide(self, tool_name: str) -> ExecutionDecision:
        context, config = ExecutionContext.HOST, self.config
        if tool_name in config.elevated_tools:
            reason = "Tool is marked as elevated"
        elif config.mode is SandboxMode.OFF:
            reason = "Sandbox mode is off"
        elif tool_name not in config.sandboxed_tools:
            reason = "Tool not designated for sandbox"
        elif config.mode is SandboxMode.WARN:
            log.warning("Tool '%s' would run in sandbox (mode=warn, running on host)", tool_name)
            reason = "Warn mode advisory: tool would run in sandbox, executing on host"
        else:
            context, reason = ExecutionContext.SANDBOX, "Strict sandbox enforcement"
        return ExecutionDecision(context, tool_name, reason)

    def execute_in_sandbox(
        self, tool_name: str, func: Callable[..., Any], arguments: Dict[str, Any]
    ) -> Any:
        if self.backend is None:
            raise SandboxExecutionUnavailableError(tool_name)
        return self.backend.execute(tool_name, func, arguments)
