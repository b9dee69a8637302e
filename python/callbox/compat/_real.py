# SPDX-License-Identifier: MIT
"""Types of a package that a drop-in stands in for, where it is installed."""

from __future__ import annotations

import importlib
from typing import Any


def module(name: str) -> Any:
    """None where it is not there. Another trouble in it is raised: it is the user's to know."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and (name == error.name or name.startswith(error.name + ".")):
            return None
        raise


def find(names: str, attribute: str, own: Any) -> Any:
    """The attribute of the first of some modules that has it, else our own."""
    for name in names.split():
        found = getattr(module(name), attribute, None)
        if found is not None:
            return found
    return getattr(own, attribute)
