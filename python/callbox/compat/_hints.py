# SPDX-License-Identifier: MIT
"""A word to the user whose tool fails in a box and did not before. It goes to the log, once for each
tool and kind: the texts of results are not ours to change. What a tool says is quoted, as it may try to
steer a terminal, and no path that it names is looked for here."""

from __future__ import annotations

from typing import Optional, Tuple

from .._inputs import is_in
from .._places import NEVER

NO_NETWORK = ("-2", "-3", "101")  # no name, no server for names, no way
NO_FILE, MAY_NOT = "2", ("1", "13", "30")
BEGIN = "[Errno "
LOOKED_AT = 2000  # characters of an exception
PATH_MAX = 1024
NO_MODULE = "No module named '"


def _take_apart(text: str) -> Tuple[str, str]:
    """Number and path of an OSError, as Python writes it: [Errno 2] No such file or directory: 'x'."""
    _, _, rest = text[:LOOKED_AT].partition(BEGIN)
    number, _, rest = rest.partition("] ")
    _, _, quoted = rest.partition(": '")
    path, end, _ = quoted.partition("'")
    return number, path if end and len(path) <= PATH_MAX and "\0" not in path else ""


def _module(text: str) -> str:
    """That which could not be imported."""
    _, _, rest = text[:LOOKED_AT].partition(NO_MODULE)
    name, end, _ = rest.partition("'")
    return name if end else ""


def hint_for(text: str, network: str, alone: bool = False) -> Optional[Tuple[str, str]]:
    """(kind, what to say) of the text of an exception, as far as it can be seen there. `alone`: the tool's
    module is shown without what lies beside it."""
    number, path = _take_apart(text)
    if number in NO_NETWORK and network == "none":
        return "network", 'there is no network; Policy(network="host") gives it one'
    if any(is_in(path, tree) for tree in NEVER):
        return "own", f"{path!r} is the box's own, which has no descriptors, processes and devices of the agent"
    if number in MAY_NOT and path:
        return "write", f"it may not change {path!r}; Policy(write=[...]) names what it may"
    if number == NO_FILE and path.startswith("/"):
        return "read", f"{path!r} is not shown there; if this host has it, Policy(read=[...]) shows it"
    if alone and _module(text):
        where = "its module is shown alone, as its directory holds too much (a home ...)"
        return "module", f"{_module(text)!r} is not found: {where}; Policy(read=[...]) shows what lies beside it"
    return None
