# SPDX-License-Identifier: MIT
"""The sandboxes of loomflow, as jeevesagent is called today, with a box behind them.

    from callbox.compat.loomflow import OSSandbox

Where loomflow is installed its own types are used."""

from __future__ import annotations

from typing import Any

from . import _jeeves, _jeeves_code, _jeeves_types
from ._real import find

CodeExecutor: Any = find("loomflow.tools", "CodeExecutor", _jeeves_code)
ConfigError: Any = find("loomflow", "ConfigError", _jeeves_types)
ExecResult: Any = find("loomflow.tools", "ExecResult", _jeeves_code)
InProcessToolHost: Any = find("loomflow.tools", "InProcessToolHost", _jeeves_types)
Tool: Any = find("loomflow", "Tool", _jeeves_types)
ToolCall: Any = find("loomflow", "ToolCall", _jeeves_types)
ToolDef: Any = find("loomflow", "ToolDef", _jeeves_types)
ToolEvent: Any = find("loomflow.core.types", "ToolEvent", _jeeves_types)
ToolResult: Any = find("loomflow", "ToolResult", _jeeves_types)
tool: Any = find("loomflow", "tool", _jeeves_types)

_TYPES = _jeeves.Types(
    ToolResult, ConfigError, (InProcessToolHost, _jeeves_types.InProcessToolHost)
)


class NoSandbox(_jeeves.NoSandbox):
    types = _TYPES


class FilesystemSandbox(_jeeves.FilesystemSandbox):
    types = _TYPES


class SubprocessSandbox(_jeeves.SubprocessSandbox):
    types = _TYPES


class OSSandbox(_jeeves.OSSandbox):
    types = _TYPES


class SubprocessExecutor(_jeeves_code.SubprocessExecutor):
    result_type = ExecResult


__all__ = [
    "CodeExecutor",
    "ConfigError",
    "ExecResult",
    "FilesystemSandbox",
    "InProcessToolHost",
    "NoSandbox",
    "OSSandbox",
    "SubprocessExecutor",
    "SubprocessSandbox",
    "Tool",
    "ToolCall",
    "ToolDef",
    "ToolEvent",
    "ToolResult",
    "tool",
]
