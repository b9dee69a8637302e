# SPDX-License-Identifier: MIT
"""As the documentation of jeevesagent has it: the name is that of a Tool afterwards."""

from jeevesagent import tool


@tool
def triple(x: int) -> int:
    """Three times."""
    return x * 3
