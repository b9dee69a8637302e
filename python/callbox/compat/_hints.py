# SPDX-License-Identifier: MIT
"""A word to the user whose tool fails in a box and did not before. It goes to the log, once for each
tool and kind: the texts of results are not ours to change. What a tool says is quoted, as it may try to
steer a terminal, and no path that it names is looked for here."""

from __future__ import annotations

from typing import Optional, Tuple

NO_NETWORK = ("-2", "-3", "101")  # no name, no server for names, no way
NO_FILE, MAY_NOT = "2", ("1", "13", "30")
BEGIN = "[Errno "
LOOKED_AT = 2000  # characters of an exception
PATH_MAX = 1024


def _take_apart(text: str) -> Tuple[str, str]:
    """Number and path of an OSError, as Python writes it: [Errno 2] No such file or directory: 'x'."""
    _, _, rest = text[:LOOKED_AT].partition(BEGIN)
    number, _, rest = rest.partition("] ")
    _, _, quoted = rest.partition(": '")
    path, end, _ = quoted.partition("'")
    return number, path if end and len(path) <= PATH_MAX and "\0" not in path else ""


def hint_for(text: str, network: str) -> Optional[Tuple[str, str]]:
    """(kind, what to say) of the text of an exception, as far as it can be seen there."""
    number, path = _take_apart(text)
    if number in NO_NETWORK and network == "none":
        return "network", 'there is no network; Policy(network="host") gives it one'
    if number in MAY_NOT and path:
        return "write", f"it may not change {path!r}; Policy(write=[...]) names what it may"
    if number == NO_FILE and path.startswith("/"):
        return "read", f"{path!r} is not shown there; if this host has it, Policy(read=[...]) shows it"
    return None
