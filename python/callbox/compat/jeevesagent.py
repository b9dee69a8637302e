# SPDX-License-Identifier: MIT
"""The sandboxes of jeevesagent, with a box behind them.

    from callbox.compat.jeevesagent import SubprocessSandbox

Where jeevesagent is installed its own types are used, so that a sandbox goes into its Agent."""

from __future__ import annotations

from typing import Any

from . import _jeeves, _jeeves_code, _jeeves_types
from ._real import find

CodeExecutor = _jeeves_code.CodeExecutor
ExecResult: Any = _jeeves_code.ExecResult
SubprocessExecutor = _jeeves_code.SubprocessExecutor

ConfigError: Any = find("jeevesagent", "ConfigError", _jeeves_types)
InProcessToolHost: Any = find("jeevesagent", "InProcessToolHost", _jeeves_types)
Tool: Any = find("jeevesagent", "Tool", _jeeves_types)
ToolCall: Any = find("jeevesagent", "ToolCall", _jeeves_types)
ToolDef: Any = find("jeevesagent", "ToolDef", _jeeves_types)
ToolEvent: Any = find("jeevesagent", "ToolEvent", _jeeves_types)
ToolResult: Any = find("jeevesagent", "ToolResult", _jeeves_types)
tool: Any = find("jeevesagent", "tool", _jeeves_types)

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
