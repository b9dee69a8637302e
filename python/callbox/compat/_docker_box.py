# SPDX-License-Identifier: MIT
"""The side of _docker.py that is in the container: calls one function, and answers on what was stdout. What
is printed goes to stderr instead."""

from __future__ import annotations

import base64
import json
import os
import sys
from typing import Any, Dict

from .. import _values
from ._box import _find, _run


def _answer(request: Dict[str, Any]) -> str:
    args = _values.loads(json.dumps(request["args"]))
    try:
        value = _run(_find(request["name"]), args, request["json"])
        return f'{{"ok": true, "value": {_values.dumps(value)}}}'
    except _values.NotAValue as error:
        return json.dumps({"ok": False, "unreadable": str(error)})
    except Exception as error:
        return json.dumps({"ok": False, "type": type(error).__name__, "error": str(error)})


def main() -> None:
    out = os.dup(1)
    os.dup2(2, 1)
    request = json.loads(sys.stdin.buffer.read())
    sys.path[:0] = request["path"]
    answer = base64.b64encode(_answer(request).encode("utf-8", "backslashreplace"))
    sys.stdout.flush()
    with open(out, "wb") as stream:
        stream.write(answer)
