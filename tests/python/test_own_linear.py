# SPDX-License-Identifier: MIT
"""To read what a box said takes time in proportion to its length, whatever it is (S8, S18): the worst text
of each kind that was thought of, at 1, 4 and 16 MB."""

import base64
import json
import time

import pytest

import callbox._members
from callbox import _report, _values
from callbox._code import CodeResult
from callbox._parts import Parts
from callbox._toolbox import Result, Typed
from callbox.compat import _calls, _hints

MB = 1 << 20
SIZES = (1 * MB, 4 * MB, 16 * MB)
SLACK = 2.5  # of caches and a busy machine, on what four times the length takes; its square is four
LEAST = 0.1  # seconds of processor time; what takes less is not worth a ratio
PRIME = 2**61 - 1  # hashes of ints are taken by it


def tagged(tag, value, **more):
    return json.dumps({"$callbox": tag, "value": value, **more})


def filled(size, item, begin="[", end="]", between=","):
    """So many items that there are `size` characters. `item` is a text, or makes one of a number."""
    make = item if callable(item) else lambda _: item
    number = max(1, size // (len(make(1000)) + len(between)))
    return begin + between.join(make(n) for n in range(number)) + end


def members(size, item, tag="set"):
    return filled(size, item, '{"$callbox":"%s","value":[' % tag, "]}")


def same_hash(n):
    return '{"$callbox":"int","value":"%#x"}' % (5 + n * PRIME)


def nested(size, width=8):
    """Sets within sets, whose members have the same hash and differ in what is compared last: to compare
    two of them takes a power of their length."""
    def level(depth, at):
        if depth == 0:
            return same_hash(at)
        inner = ",".join(level(depth - 1, n) for n in (*range(width - 1), width + at))
        return '{"$callbox":"frozenset","value":[%s]}' % inner

    depth = 1
    while len(level(depth + 1, 0)) * 2 < size:
        depth += 1
    count = size // len(level(depth, 0))
    return '{"$callbox":"set","value":[%s]}' % ",".join(level(depth, n) for n in range(count))


def big_and_decimal(size):
    """Python makes a decimal of the int, to compare them."""
    big = 5 + (PRIME << (4 * size))
    return '[{"$callbox":"set","value":[{"$callbox":"int","value":"%#x"},{"$callbox":"decimal","value":"5"}]}]' % big


def same_places(size):
    """Hashes whose low bits are the same: each walks by the others for a while."""
    return members(size, lambda n: str((n << 40) % PRIME))


WORST = {
    "quotes": lambda size: ',' * 2_000_001 + '"' + '\\"' * (size // 2),
    "quotes, closed": lambda size: '"' + '\\"' * (size // 2) + '"',
    "backslashes": lambda size: '"' + "\\" * size,
    "half strings": lambda size: '"a",' * (size // 4),
    "brackets": lambda size: "[" * size,
    "nested, just allowed": lambda size: filled(size, "[" * 900 + "]" * 900),
    "objects in objects": lambda size: filled(size, '{"a":' * 400 + "1" + "}" * 400),
    "commas": lambda size: "[" + "1," * (size // 2) + "1]",
    "keys": lambda size: filled(size, lambda n: f'"{n}":1', "{", "}"),
    "the same key": lambda size: filled(size, '"a":1', "{", "}"),
    "digits": lambda size: "1" * size,
    "digits, just allowed": lambda size: filled(size, "1" * 4300),
    "a fraction": lambda size: "0." + "1" * size,
    "fractions": lambda size: filled(size, "0." + "1" * 4000 + "e-300"),
    "exponents": lambda size: filled(size, "1e" + "9" * 4000),
    "spaces": lambda size: " " * size,
    "an int": lambda size: tagged("int", "0x" + "f" * size),
    "ints": lambda size: filled(size, tagged("int", "0x" + "f" * 5000)),
    "an int with underscores": lambda size: tagged("int", "_".join("f" * (size // 2))),
    "a float": lambda size: tagged("float", "1" * size),
    "a decimal": lambda size: tagged("decimal", "1" * size),
    "a hashed decimal": lambda size: members(size, tagged("decimal", "1" * (size // 2))),
    "decimals of large exponents": lambda size: members(size, lambda n: tagged("decimal", f"1E+{10**15 + n}")),
    "an int and a decimal": big_and_decimal,
    "the same hash": lambda size: members(size, same_hash),
    "the same hash, a few each": lambda size: members(size, lambda n: '{"$callbox":"int","value":"%#x"}' % (n // 60 + (n % 60) * PRIME)),
    "sets within sets": nested,
    "tuples of -1 and -2": lambda size: members(size, lambda n: '{"$callbox":"tuple","value":[%s]}' % ",".join("-1" if n >> bit & 1 else "-2" for bit in range(20))),
    "hashes of the same places": same_places,
    "keys of the same hash": lambda size: members(size, lambda n: f"[{same_hash(n)},1]", "dict"),
    "bytes": lambda size: tagged("bytes", base64.b64encode(b"x" * (size * 3 // 4)).decode()),
    "bytes that are none": lambda size: tagged("bytes", "=" * size),
    "text": lambda size: tagged("text", base64.b64encode(b"\xf4" * (size * 3 // 4)).decode()),
    "zones": lambda size: filled(size, lambda n: tagged("datetime", "2026-01-01T00:00:00+00:00", zone=f"A{n}/B{n}")),
    "one zone": lambda size: filled(size, tagged("datetime", "2026-01-01T00:00:00+00:00", zone="UTC")),
    "a zone": lambda size: tagged("datetime", "2026-01-01T00:00:00+00:00", zone="A/" * (size // 2)),
    "a time": lambda size: tagged("datetime", "2026-01-01T00:00:00." + "1" * size),
    "times": lambda size: filled(size, tagged("time", "00:00:00", zone="Europe/Berlin")),
    "a uuid": lambda size: tagged("uuid", "-" * size),
    "a path": lambda size: tagged("path", "a/" * (size // 2)),
    "paths": lambda size: members(size, lambda n: tagged("path", f"{n}/" * 500, pure="windows")),
    "a tag": lambda size: json.dumps({"$callbox": "x" * size}),
    "a class": lambda size: tagged("dataclass", {str(n): n for n in range(size // 20)}, type="a" * (size // 2)),
    "an array": lambda size: json.dumps({"$callbox": "numpy", "dtype": "|S0", "shape": [2**40], "value": ""}),
    "shapes": lambda size: filled(size, json.dumps({"$callbox": "numpy", "dtype": "<i4", "shape": [0] * 32, "value": ""})),
    "a dtype": lambda size: json.dumps({"$callbox": "numpy", "dtype": "<i" + "1" * size, "shape": [], "value": ""}),
    "parts": lambda size: filled(size, lambda n: json.dumps({"$callbox": "bytes", "part": n})),
    "what is told of code": lambda size: filled(size, lambda n: f'"{n}/{"a/" * 30}x": {{"$callbox":"bytes","value":""}}', '{"result":1,"artifacts":{', "}}"),
    "a name": lambda size: json.dumps({"result": 1, "artifacts": {"a/" * (size // 2): 1}}),
    "what was left out": lambda size: filled(size, lambda n: f'"{n}"', '{"result":1,"left_out":[', "]}"),
}  # fmt: skip


def read(text, patient):
    """All that becomes of it in the agent; the processor time of that."""
    parts = [text.encode()]
    report = _report.Report(("{}", b"", b"", (True, None, False, None, None), None, parts, -1))
    begun = time.process_time()
    result = Result("t", "", report, Typed(_values.Hinted(), 16 * MB), patient=patient)
    CodeResult(result)
    repr(result)
    spent = time.process_time() - begun
    assert result.ok or len(result.error) < 1000
    return spent


def in_proportion(times):
    return all(later <= SLACK * 4 * max(earlier, LEAST) for earlier, later in zip(times, times[1:]))


@pytest.mark.parametrize("kind", WORST)
def test_S8_a_result_is_read_in_linear_time(kind):
    patient = kind in ("commas", "brackets", "digits, just allowed")
    texts = [WORST[kind](size) for size in SIZES]
    times = [read(text, patient) for text in texts]
    if not in_proportion(times):  # somebody else was busy
        times = [min(before, read(text, patient)) for before, text in zip(times, texts)]
    print(kind, times)
    assert in_proportion(times), times


def test_S8_the_square_of_a_length_would_be_seen():
    """The control: what the reader did before, on the text that made the agent busy for weeks."""
    import re

    times = []
    for size in (10_000, 40_000, 160_000):
        text = '"' + '\\"' * (size // 2)
        begun = time.process_time()
        re.compile(r'"(?:[^"\\]|\\.)*"').sub('""', text)
        times.append(time.process_time() - begun)
        if not in_proportion(times):
            return
    raise AssertionError(times)


def test_S8_sets_within_sets_would_take_a_power(monkeypatch):
    """The control: without the count of comparisons, eight times the length takes far more than that."""
    monkeypatch.setattr(callbox._members.Members, "_compare", lambda self, same: None)
    times = read(nested(40_000), False), read(nested(320_000), False)
    print(times)
    assert times[1] > 11 * times[0], times


@pytest.mark.parametrize("make", [
    lambda size: b"\0" * size,
    lambda size: b"".join(n.to_bytes(4, "little") * 2 for n in range(size // 8)),
    lambda size: (0).to_bytes(4, "little") + (2).to_bytes(4, "little") + b"\0" * size,
])  # fmt: skip
def test_S8_frames_of_a_large_call_are_taken_apart_in_linear_time(make):
    times = []
    for size in SIZES:
        channel = _calls._Channel(1 << 30)
        channel.data += make(size)
        begun = time.process_time()
        found = channel.frames()
        times.append(time.process_time() - begun)
        assert len(found) <= 4
    assert in_proportion(times), times


@pytest.mark.parametrize("text", [
    "[Errno 2] x: '" * 100_000, "[Errno " + "1" * MB, "[Errno 2] " + ":" * MB, "[Errno 2] : '" + "a" * MB,
    "[Errno " + "1" * 5000 + "] x: '/a'", "[Errno -] ", "",
])  # fmt: skip
def test_S8_what_a_tool_raised_is_looked_at_in_no_time(text):
    begun = time.process_time()
    _hints.hint_for(text, "none")
    assert time.process_time() - begun < 1


def test_a_part_is_used_once_however_many_there_are():
    parts = Parts([b""] * 60_000)
    text = json.dumps([{"$callbox": "bytes", "part": n} for n in range(1, 60_000)])
    assert len(_values.loads(text, parts)) == 59_999
    with pytest.raises(ValueError, match="used twice"):
        _values.loads(text[:-1] + "," + json.dumps({"$callbox": "bytes", "part": 7}) + "]", Parts([b""] * 60_000))


def test_members_that_take_longer_than_honest_ones_are_refused(monkeypatch):
    text = json.dumps({"$callbox": "set", "value": list(range(5000))})
    assert _values.loads(text) == set(range(5000))
    monkeypatch.setattr(callbox._members, "SECONDS", -1)
    with pytest.raises(ValueError, match="chosen to be slow"):
        _values.loads(text)
