# SPDX-License-Identifier: MIT
"""What can send a function by value, where it is installed. A box loads its own."""

from __future__ import annotations

from typing import Any

from . import _channel

cloudpickle: Any = None
if not _channel.boxed:
    try:
        import cloudpickle  # type: ignore[no-redef, import]
    except Exception:  # not there, or of no use
        pass
