# SPDX-License-Identifier: MIT
"""Makes up what a box could say, and reads it as an agent does: `hostile_frames.py SEED SECONDS`. Ends with
a line of JSON: how many were read, and what was wrong with them. A reader may refuse a result; it must not
raise, import, open, or take long."""

import base64
import json
import random
import sys
import time

try:
    import numpy  # noqa: F401  so that arrays are read, too
except ImportError:
    pass

import dataclasses
import datetime
import enum
from typing import NamedTuple

from callbox import _report, _values
from callbox._code import CodeResult
from callbox._toolbox import Result, Typed
from callbox.compat import _calls, _hints

TAGS = (
    "int float dict tuple set frozenset datetime date time timedelta decimal uuid path complex bytes "
    "bytearray text numpy enum dataclass namedtuple unknown"
).split()
PRIME = 2**61 - 1
SLOW = 5.0  # seconds of processor time, for a text of less than 100 000 characters


class Color(enum.Flag):
    RED = 1
    BLUE = 2


@dataclasses.dataclass(frozen=True)
class Point:
    x: object
    y: object


class Pair(NamedTuple):
    a: object
    b: object


HINTED = _values.Hinted([Color, Point, Pair, datetime.datetime])
TEXTS = (
    "", "a", "0x5", "nan", "-inf", "1E+999999999", "sNaN", "2026-01-01", "2026-01-01T00:00:00+01:00", "25:61",
    "12345678123456781234567812345678", "../../x", "/etc/passwd", "a\0b", "\ud800", "\u202e", "$callbox", "x" * 9000,
    "<i4", "|S0", "<M8[ns]", "<U999999999", "|b1", "UTC", "No/Zone", "posix", "windows", "RED", "__class__",
    "hostile_frames:Point", "hostile_frames:Color", "__main__:Point", "__main__:Color", "__main__:Pair", "os:system",
)  # fmt: skip
KEYS = (
    "value", "type", "name", "part", "zone", "fold", "pure", "dtype", "shape", "scalar", "x", "y", "result", "text",
    "error", "traceback", "artifacts", "left_out",
)  # fmt: skip


def leaf(r):
    return r.choice([
        lambda: r.choice((None, True, False, 0, -1, -2, 1, 2**63, 10**400, 1e308, -0.0)),
        lambda: r.choice(TEXTS),
        lambda: r.getrandbits(r.choice((3, 64, 2000))),
        lambda: hex(5 + r.randrange(40) * PRIME),
        lambda: base64.b64encode(r.randbytes(r.randrange(40))).decode(),
        lambda: "".join(chr(r.randrange(0x500)) for _ in range(r.randrange(30))),
    ])()  # fmt: skip


def value(r, depth):
    if depth <= 0 or r.random() < 0.2:
        return leaf(r)
    kind = r.randrange(4)
    if kind == 0:
        return [value(r, depth - 1) for _ in range(r.randrange(6))]
    if kind == 1:
        return {r.choice(KEYS): value(r, depth - 1) for _ in range(r.randrange(5))}
    return item(r, depth)


def item(r, depth):
    """With a tag, and mostly with what belongs to it."""
    tag = r.choice(TAGS)
    made = {"$callbox": tag, "value": value(r, depth - 1)}
    if tag in ("set", "frozenset", "tuple", "namedtuple"):
        made["value"] = [value(r, depth - 1) for _ in range(r.randrange(8))]
    elif tag == "dict":
        made["value"] = [[value(r, depth - 1), value(r, 1)] for _ in range(r.randrange(5))]
    elif tag == "dataclass":
        made["value"] = {"x": value(r, depth - 1), "y": value(r, depth - 1)}
    elif tag in ("numpy", "enum", "timedelta", "complex"):
        made["shape"] = [r.choice((0, 1, 2, 2**40)) for _ in range(r.randrange(4))]
        made["dtype"] = r.choice(TEXTS)
        made["value"] = r.choice((leaf(r), [leaf(r), leaf(r)], [1, 2, 3]))
    elif r.random() < 0.7:
        made["value"] = leaf(r)
    for key in r.sample(KEYS, r.randrange(4)):
        made[key] = leaf(r)
    made["type"] = r.choice(TEXTS)
    return made


def text_of(r):
    """Sometimes cut, doubled or changed in places, so that it is no JSON."""
    made = value(r, r.randrange(1, 9)) if r.random() < 0.8 else {"result": value(r, 4), "artifacts": value(r, 3)}
    text = json.dumps(made, ensure_ascii=r.random() < 0.5)
    for _ in range(r.choice((0, 0, 0, 1, 3))):
        at = r.randrange(len(text) + 1)
        how = r.randrange(5)
        if how == 0:
            text = text[:at]
        elif how == 1:
            text = text[:at] + r.choice(('"', "\\", "[", "]", "{", "}", ",", ":", "9" * 4000, "NaN")) + text[at:]
        elif how == 2:
            text = text[:at] + text[at + 1 :]
        elif how == 3 and len(text) < 20_000:
            text = text[:at] + r.choice(("[", '{"a":', '"\\"', "1,")) * r.randrange(2000) + text[at:]
        elif how == 4 and len(text) < 20_000:
            text = "[" + ",".join([text] * r.randrange(5)) + "]"
    return text


def read(r, text):
    raw = text.encode("utf-8", "surrogatepass")
    parts = [raw] + [r.randbytes(r.randrange(20)) for _ in range(r.randrange(4))]
    report = _report.Report(("{}", b"", b"", (True, None, False, None, None), None, parts, -1))
    result = Result("t", "", report, Typed(HINTED, 1 << 24), patient=r.random() < 0.2)
    repr(result), repr(CodeResult(result))
    assert result.ok == (result.error is None) and (result.ok or result.output is None)


def read_frames(r):
    channel = _calls._Channel(1 << 30)
    for _ in range(r.randrange(8)):
        data = text_of(r).encode("utf-8", "surrogatepass")[:5000]
        length = r.choice((len(data), len(data), r.getrandbits(32), 0))
        channel.data += length.to_bytes(4, "little") + r.choice((0, 1, 2, 5, 6, r.getrandbits(32))).to_bytes(4, "little") + data
    report = _report.Report(('{"reason": "exited", "code": 0, "signal": null, "text": ""}', b"", b"", None, None, [], -1))
    outcome = _calls._outcome_of_large(report, channel.frames(), (Point, Color))
    _hints.hint_for(outcome.text, "none"), outcome.how, outcome.status


seen = []


def watch():
    def hook(event, arguments):
        if event in ("import", "open", "exec", "compile", "os.listdir", "os.scandir", "subprocess.Popen", "os.system"):
            seen.append(f"{event} {arguments[:1]}")

    sys.addaudithook(hook)


def main():
    seed, seconds = int(sys.argv[1]), float(sys.argv[2])
    wrong, number = [], 0
    end = time.monotonic() + seconds
    watch()
    while time.monotonic() < end and len(wrong) < 5:
        r = random.Random(seed * 1_000_003 + number)
        text = text_of(r)
        begun = time.process_time()
        try:
            read(r, text)
            read_frames(r)
        except BaseException as error:
            wrong.append(f"{seed} {number}: {type(error).__name__}: {error}"[:500])
        if time.process_time() - begun > SLOW:
            wrong.append(f"{seed} {number}: slow")
        if seen:
            wrong.append(f"{seed} {number}: {seen[:3]}")
            seen.clear()
        number += 1
    print(json.dumps({"read": number, "wrong": wrong}))


if __name__ == "__main__":
    main()
