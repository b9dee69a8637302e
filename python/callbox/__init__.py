# SPDX-License-Identifier: MIT
"""callbox: a box of its own for every tool call.

    from callbox import Policy, Toolbox, run, tool

Names are loaded when they are first used, with what they need, and from where that was when this package was
loaded (_late.py): an import that waits until a box has run would find what the box has left in a directory
of sys.path."""

from __future__ import annotations

from . import _late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, List

    from ._capabilities import Backend as Backend
    from ._capabilities import Capabilities as Capabilities
    from ._capabilities import Capability as Capability
    from ._capabilities import backends as backends
    from ._capabilities import capabilities as capabilities
    from ._channel import log as log
    from ._channel import progress as progress
    from ._code import CodeResult as CodeResult
    from ._code import arun_python as arun_python
    from ._code import run_python as run_python
    from ._error import CallboxError as CallboxError
    from ._inputs import ImportPathWarning as ImportPathWarning
    from ._native import Warden as Warden
    from ._policy import Policy as Policy
    from ._report import Denial as Denial
    from ._report import Guarantee as Guarantee
    from ._report import Report as Report
    from ._run import arun as arun
    from ._run import run as run
    from ._tool import Tool as Tool
    from ._tool import tool as tool
    from ._toolbox import Change as Change
    from ._toolbox import Mistake as Mistake
    from ._toolbox import Result as Result
    from ._toolbox import Toolbox as Toolbox

_WHERE = {
    "Backend": "_capabilities",
    "CallboxError": "_error",
    "Capabilities": "_capabilities",
    "Capability": "_capabilities",
    "Change": "_toolbox",
    "CodeResult": "_code",
    "Denial": "_report",
    "Guarantee": "_report",
    "ImportPathWarning": "_inputs",
    "Mistake": "_toolbox",
    "Policy": "_policy",
    "Report": "_report",
    "Result": "_toolbox",
    "Tool": "_tool",
    "Toolbox": "_toolbox",
    "Warden": "_native",
    "arun": "_run",
    "arun_python": "_code",
    "backends": "_capabilities",
    "capabilities": "_capabilities",
    "log": "_channel",
    "progress": "_channel",
    "run": "_run",
    "run_python": "_code",
    "tool": "_tool",
}

__all__ = sorted(_WHERE)
__version__ = "0.1.0"  # that of meson.build


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'callbox' has no attribute {name!r}")
    value = getattr(_late.load(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted(set(globals()) | set(_WHERE))
