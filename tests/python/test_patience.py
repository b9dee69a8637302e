# SPDX-License-Identifier: MIT
"""What another thread does beside an event loop: the same, in small steps."""

import json
import threading
import time

import pytest

from callbox import _patience, _values
from callbox._arguments import _ENCODER, to_json

LONG = 'v"\\\n\0é\u2028𝄞' * 10_000
VALUES = [
    {},
    {"a": 1},
    {"a": [], "b": {}, "c": ()},
    {"k" * 40_000: LONG},
    {1: 2, None: [True, 1.5], False: "x", 2.5: ()},
    {"a": [1, [2, [3, LONG]], *range(1000), "b", None, {"c": [LONG, "d"]}]},
    {"a": list(range(200)) + [LONG] + ["x" * 63] * 64 + ["y" * 64] * 65},
    {"a": "x" * _patience.PIECE, "b": "x" * (_patience.PIECE + 1), "c": "x" * 2 * _patience.PIECE},
]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_it_writes_what_others_write(value):
    assert _patience.write(_ENCODER, value) == _ENCODER.encode(value)


@pytest.mark.parametrize("wrong", [{"a": [1, {2}]}, {"a": float("nan")}, {"a": {(1,): 2}}, {"a": "\ud800"}])
def test_it_complains_of_what_others_complain_of(wrong):
    told = []
    for patient in (False, True):
        with pytest.raises((TypeError, ValueError)) as caught:
            to_json(wrong, patient)
        told.append((type(caught.value), str(caught.value)))
    assert told[0] == told[1]


def test_what_holds_itself_is_refused():
    value = {}
    value["a"] = [value]
    with pytest.raises(ValueError, match="nested too deep, or hold themselves"):
        to_json(value, True)


def test_it_reads_what_others_read():
    for value in ([1, -2, 1.5, 10**30, "a", None, True, {"b": [[]]}], list(range(5000))):
        text = json.dumps(value)
        assert _values.loads(text + " " * 5000, patient=True) == value


def turns_of_others(work):
    """How often another thread got the interpreter meanwhile."""
    turns, on = 0, True

    def take_turns():
        nonlocal turns
        while on:
            time.sleep(0.0002)
            turns += 1

    thread = threading.Thread(target=take_turns)
    thread.start()
    before = turns
    work()
    found = turns - before
    on = False
    thread.join()
    return found


def test_others_run_meanwhile():
    text = "x" * 30_000_000
    together = turns_of_others(lambda: _ENCODER.encode({"a": text}))
    stepwise = turns_of_others(lambda: _patience.write(_ENCODER, {"a": text}))
    assert stepwise > 20 + 3 * together
