# SPDX-License-Identifier: MIT
"""A word to the user whose tool fails in a box and did not before. It goes to the log, once for each
tool and kind: the texts of results are not ours to change. What a tool says is quoted: it may try to
steer a terminal."""

from __future__ import annotations

import os
import re
from typing import Optional, Tuple

ERROR = re.compile(r"\[Errno (-?\d+)\] [^:]*(?:: '([^'\0]{1,1024})')?")
NO_NETWORK = (-2, -3, 101)  # no name, no server for names, no way
NO_FILE, MAY_NOT = 2, (1, 13, 30)


def hint_for(text: str, network: str) -> Optional[Tuple[str, str]]:
    """(kind, what to say) of the text of an exception, as far as it can be seen there."""
    found = ERROR.search(text)
    if not found:
        return None
    number, path = int(found.group(1)), found.group(2)
    if number in NO_NETWORK and network == "none":
        return "network", 'there is no network; Policy(network="host") gives it one'
    if number in MAY_NOT and path:
        return "write", f"it may not change {path!r}; Policy(write=[...]) names what it may"
    if number == NO_FILE and path and os.path.exists(path):
        return "read", f"{path!r} is on this host, but not shown there; Policy(read=[...]) shows more"
    return None
