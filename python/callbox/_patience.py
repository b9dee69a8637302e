# SPDX-License-Identifier: MIT
"""Work of a thread beside an event loop, which waits for the interpreter meanwhile. Python hands it over
every 5 ms, and not at all within a function of C: so the work is done in small steps, with rests."""

from __future__ import annotations

import json
import time
from typing import Any, Iterator

STEPS = 64  # of which each is short, between two looks at the clock
WORK = 0.002  # seconds
REST = 0.00005  # that others need to take the interpreter
PIECE = 32 * 1024  # characters


class Patience:
    def __init__(self) -> None:
        self._steps = 0
        self._since = time.monotonic()

    def _look(self) -> None:
        if time.monotonic() - self._since > WORK:
            time.sleep(REST)
            self._since = time.monotonic()

    def step(self) -> None:
        self._steps += 1
        if self._steps % STEPS == 0:
            self._look()

    def integer(self, text: str) -> int:
        self._steps += 1
        if self._steps % STEPS == 0:
            self._look()
        return int(text)

    def real(self, text: str) -> float:
        self.step()
        return float(text)


_PLAIN = {bool, int, float, type(None)}


def _is_short(items: Any) -> bool:
    """Whether they take no time worth a rest, all together."""
    return all(type(item) in _PLAIN or isinstance(item, str) and len(item) < STEPS for item in items)


def _pieces(encoder: json.JSONEncoder, value: Any) -> Iterator[str]:
    """As encoder.iterencode(), but for texts, which it writes in one piece however long they are."""
    if isinstance(value, str) and len(value) > PIECE:
        for at in range(0, len(value), PIECE):
            piece = encoder.encode(value[at : at + PIECE])
            yield piece[at > 0 : -1]
        yield '"'
    elif isinstance(value, (list, tuple)) and value:
        for at in range(0, len(value), STEPS):
            items = value[at : at + STEPS]
            yield ", " if at > 0 else "["
            if _is_short(items):
                yield encoder.encode(items)[1:-1]
                continue
            for number, item in enumerate(items):
                if number > 0:
                    yield ", "
                yield from _pieces(encoder, item)
        yield "]"
    elif isinstance(value, dict) and value:
        before = "{"
        for key, item in value.items():
            yield before + encoder.encode({key: None})[1:-5]  # all but the value
            before = ", "
            yield from _pieces(encoder, item)
        yield "}"
    else:
        yield encoder.encode(value)


def write(encoder: json.JSONEncoder, value: Any) -> str:
    """What encoder.encode() gives."""
    patience = Patience()
    found = []
    for piece in _pieces(encoder, value):
        found.append(piece)
        patience.step()
        if len(piece) >= PIECE:
            time.sleep(REST)
    return "".join(found)
