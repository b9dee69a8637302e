# SPDX-License-Identifier: MIT
"""Arguments on their way to a tool, which are JSON."""

from __future__ import annotations

import json
from typing import Any, Mapping

from . import _patience
from ._late import Late

_complaints: Any = Late(f"{__package__}._complaints")

LARGE = 128 * 1024  # bytes of arguments or of a report: too much for an event loop


def is_large(value: Any) -> bool:
    """Whether it would keep an event loop from its other work to make JSON of it. A quick look."""
    rest, size = [value], 0
    while rest:
        item = rest.pop()
        if isinstance(item, (str, bytes)):
            size += len(item)
        elif isinstance(item, Mapping):
            size += 8 * len(item)
            if size <= LARGE:
                rest += item.keys()
                rest += item.values()
        elif isinstance(item, (list, tuple)):
            size += 8 * len(item)
            if size <= LARGE:
                rest += item
        if size > LARGE:
            return True
    return False


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def to_json(arguments: Mapping[str, Any], patient: bool) -> str:
    """`patient`: in small steps, between which other threads run. As it is, rather than escaped, which
    would take up to six times the room."""
    if not isinstance(arguments, Mapping):
        raise TypeError(f"arguments must be a dict, not {type(arguments).__name__}")
    given = dict(arguments)
    try:
        text = _patience.write(_ENCODER, given) if patient else _ENCODER.encode(given)
        if not text.isascii():
            text.encode()  # no halves of surrogate pairs
        return text
    except (TypeError, ValueError, RecursionError) as error:
        raise _complaints.complaint(given, error) from None
