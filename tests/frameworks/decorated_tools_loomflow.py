# SPDX-License-Identifier: MIT
"""As the documentation of loomflow has it: the name is that of a Tool afterwards."""

from loomflow import tool


@tool
def triple(x: int) -> int:
    """Three times."""
    return x * 3
