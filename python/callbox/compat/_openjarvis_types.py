# SPDX-License-Identifier: MIT
"""The types of OpenJarvis' tools, for where it is not installed: the same names, fields and texts."""

from __future__ import annotations

import dataclasses
from typing import Any, Dict, List


@dataclasses.dataclass
class ToolResult:
    tool_name: str
    content: str
    success: bool = True
    usage: Dict[str, Any] = dataclasses.field(default_factory=dict)
    cost_usd: float = 0.0
    latency_seconds: float = 0.0
    metadata: Dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class ToolSpec:
    name: str
    description: str
    parameters: Dict[str, Any] = dataclasses.field(default_factory=dict)
    category: str = ""
    cost_estimate: float = 0.0
    latency_estimate: float = 0.0
    requires_confirmation: bool = False
    timeout_seconds: float = 30.0
    required_capabilities: List[str] = dataclasses.field(default_factory=list)
    metadata: Dict[str, Any] = dataclasses.field(default_factory=dict)


def _object(required: str, **properties: Any) -> Dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [required]}


def _text(description: str) -> Dict[str, Any]:
    return {"type": "string", "description": description}


class Tool:
    tool_id = ""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    @property
    def spec(self) -> ToolSpec:
        raise NotImplementedError

    def to_openai_function(self) -> Dict[str, Any]:
        spec = self.spec
        said = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
        return {"type": "function", "function": said}


class ShellExecTool(Tool):
    tool_id = "shell_exec"

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name=self.tool_id,
            description="Run a shell command in a box; returns what it wrote to stdout and stderr.",
            parameters=_object(
                "command",
                command=_text("The command, for /bin/sh."),
                timeout={"type": "integer", "description": "Seconds: 30 unless given, 300 at most."},
                working_dir=_text("The directory in which it starts."),
                env_passthrough={
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Names of more variables that it gets, as far as they are allowed.",
                },
            ),
            category="system",
            requires_confirmation=True,
            timeout_seconds=60.0,
            required_capabilities=["code:execute"],
        )


class CodeInterpreterTool(Tool):
    tool_id = "code_interpreter"

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(
            name=self.tool_id,
            description="Run Python code in a box; returns what it printed.",
            parameters=_object("code", code=_text("The code.")),
            category="code",
            metadata={"structured_allow_object_text": True},
        )
