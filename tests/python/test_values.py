# SPDX-License-Identifier: MIT
"""Values on their way out of a box, and what a box can make of them that has been taken over."""

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import json
import math
import os
import pathlib
import re
import struct
import sys
import threading
import time
import uuid
import zoneinfo
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, TypedDict, Union

import pytest

from callbox import Policy, Toolbox, _kinds, _values
from callbox._encode import PART_MIN
from callbox._parts import Parts


class Color(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


class Pair(NamedTuple):
    left: int
    right: Any = None


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: int = 0


@dataclasses.dataclass
class Holder:
    items: List[Any]
    lock: Any = None


class Slotted:
    __slots__ = ("a",)


HINTED = _values.Hinted([Color, Level, Pair, Point, Holder, datetime.datetime])


def through(value, hinted=HINTED):
    """Out, by bytes alone, and in again."""
    return _values.loads(*_open(_values.pack(value)), hinted)


def _open(packed):
    parts = Parts([bytes(part) for part in packed])
    return parts.text(0), parts


VALUES = [
    None, True, 0, -1, 2**63 - 1, -(2**63), 2**63, -(10**500), 1.5, -0.0, float("inf"), "", "a\0b", "\ud800",
    "ä€😀", "x" * PART_MIN, "ä" * PART_MIN, "\udc80" * PART_MIN, b"", b"\0\xff", b"x" * PART_MIN, bytearray(b"ab"),
    bytearray(PART_MIN), [], [[], {}], {}, {"a": {"b": [1]}}, {1: 2, None: 3, (1, 2): 4, b"k": 5}, {"$callbox": 1},
    {"\ud800": 1}, {"k" * PART_MIN: 1}, (), (1, (2,)), {1, "a", (2, 3)}, frozenset([1.5]), 1 + 2j,
    complex(float("inf"), -0.0), decimal.Decimal("1.10"), decimal.Decimal("-Infinity"), uuid.UUID(int=7),
    pathlib.Path("/a/b c"), pathlib.PurePosixPath("a"), pathlib.PureWindowsPath("c:\\a"), pathlib.Path("\udcff"),
    datetime.date.min, datetime.time(1, 2, 3, 4), datetime.time(1, tzinfo=datetime.timezone.utc),
    datetime.time(1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")), datetime.timedelta(-1, 2, 3),
    datetime.timedelta.max, datetime.datetime(2026, 1, 2, 3, 4, 5, 6),
    datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone(datetime.timedelta(seconds=-90))),
    datetime.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")),
    Color.RED, Level.LOW, Pair(1, [2]), Point(1), Holder([Point(1), Pair(2)]), [Color.RED, {Level.LOW: Point(2)}],
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{type(value).__name__} {value!r:.30}")
def test_values_are_the_same_afterwards(value):
    back = through(value)
    assert back == value and type(back) is type(value)
    assert repr(back) == repr(value)
    if isinstance(value, (datetime.datetime, datetime.time)):
        assert back.tzinfo == value.tzinfo and back.fold == value.fold
    assert _values.loads(_values.dumps(value), None, HINTED) == value  # all of it as JSON


def test_values_that_are_nearly_known():
    assert math.isnan(through(float("nan"))) and through(decimal.Decimal("sNaN")).is_snan()
    for value, plain in (
        (memoryview(b"abc"), b"abc"),
        (type("Text", (str,), {})("t"), "t"),
        (type("Number", (int,), {})(3), 3),
        (type("Items", (list,), {})([1]), [1]),
        (type("Count", (collections.Counter,), {})("aab"), collections.Counter("aab")),
        (OwnError("a", 1), ValueError("a", 1)),
    ):
        notes = []
        back = _values.loads(_values.dumps(value), None, HINTED, notes=notes)
        assert repr(back) == repr(plain) and type(back) is type(plain)
        assert len(notes) == 1 and re.search(f"came back as an? {type(plain).__name__}", notes[0])
        if not isinstance(value, Exception):  # those can be made: see below
            with pytest.raises(ValueError, match="which the return hint names, cannot be made"):
                _values.loads(_values.dumps(value), None, _values.Hinted([type(value)]))


@pytest.mark.parametrize("value", [
    collections.deque([1, (2,)], 5), collections.deque(), fractions.Fraction(-3, 10**400 + 7), range(1, 10**30, 7),
    range(0), slice(None, (1,), -1), collections.Counter("aab"), collections.OrderedDict([("b", 1), ((1,), 2)]),
    collections.defaultdict(list, {"a": [1]}), collections.defaultdict(None, {1: 2}), frozenset([frozenset()]),
    collections.defaultdict(collections.OrderedDict), {"a": [collections.Counter({"$callbox": 1})]}, 3 - 4j,
], ids=repr)  # fmt: skip
def test_values_of_the_standard_library_are_the_same_afterwards(value):
    notes = []
    back = _values.loads(_values.dumps(value), None, notes=notes)
    assert back == value and type(back) is type(value) and repr(back) == repr(value) and notes == []
    if isinstance(value, fractions.Fraction):
        assert hash(back) == hash(value) and back + 1 == value + 1


class OwnError(ValueError):
    """An exception of the user's, with a constructor that must not be run."""

    def __init__(self, *args):
        RUN.append("init")
        super().__init__(*args)
        self.code = 7


def exception_group():
    return ExceptionGroup("several", [ValueError(1), OSError(2, "no", "x")]) if sys.version_info >= (3, 11) else KeyError()


@pytest.mark.parametrize("error", [
    ValueError("x", 1), KeyError(("a",)), FileNotFoundError(2, "No such file", "/a"), StopIteration(3), SystemExit(4),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "why"), ImportError("no", name="a", path="/b"), exception_group(),
], ids=repr)  # fmt: skip
def test_exceptions_as_values(error):
    if sys.version_info >= (3, 11):
        error.add_note("noted")
    notes = []
    back = _values.loads(_values.dumps(error), None, notes=notes)
    assert type(back) is type(error) and repr(back) == repr(error) and str(back) == str(error) and notes == []
    assert getattr(back, "__notes__", []) == getattr(error, "__notes__", [])
    for name in ("filename", "name", "path", "reason"):
        assert getattr(back, name, None) == getattr(error, name, None)


def test_an_exception_of_a_hint_is_made_without_its_constructor():
    text = _values.dumps([OwnError("a", 1)])
    RUN.clear()
    back = _values.loads(text, None, _values.Hinted([OwnError]))[0]
    assert type(back) is OwnError and back.args == ("a", 1) and back.code == 7 and RUN == []


def test_a_factory_that_is_code_stays_in_the_box():
    notes = []
    back = _values.loads(_values.dumps(collections.defaultdict(lambda: 1, a=2)), None, notes=notes)
    assert back == {"a": 2} and back.default_factory is None and "default_factory" in notes[0]


def test_classes_that_no_hint_names_come_plain():
    nothing = _values.Hinted()
    assert through(Point(1, 2), nothing) == {"x": 1, "y": 2}
    assert through(Color.RED, nothing) == 1
    assert through(Pair(1, 2), nothing) == (1, 2) and type(through(Pair(1, 2), nothing)) is tuple
    notes = []
    _values.loads(_values.dumps([Point(1), Point(2), Color.RED, Pair(1, 2)]), None, nothing, notes=notes)
    assert [note.split(",")[0] for note in notes] == [
        "'test_values.Point' came back as a dict",
        "'test_values.Color' came back as its value",
        "'test_values.Pair' came back as a tuple",
    ]


def test_notes_of_what_a_box_makes_up_are_few_and_short():
    notes = []
    made = [tagged("enum", n, type=f"\x1b[2J{n}:" + "x" * 10_000, name="x") for n in range(100)]
    _values.loads(json.dumps(made), None, notes=notes)
    assert len(notes) == 16 and all(len(note) < 250 and note.isprintable() for note in notes)


@pytest.mark.parametrize(
    "value, complaint",
    [
        (threading.Lock(), "result: a _thread.lock cannot leave the box"),
        (Holder([1, Holder([], threading.Lock())]), "result.items[1].lock: a _thread.lock cannot"),
        ({"a b": [(0, object())]}, "result['a b'][0][1]: an object cannot"),
        ({object: 1}, "result.keys(): a type cannot"),
        (Pair(1, {2: iter([])}), "result.right[2]: a list_iterator cannot"),
        (collections.deque([threading.Lock()]), "result[0]: a _thread.lock cannot"),
        (collections.Counter({"a": object()}), "result['a']: an object cannot"),
        (ValueError(object()), "result[0]: an object cannot"),
        (range(2**5000), "result: a range with such numbers cannot"),
        (slice(object()), "result[1]: an object cannot"),
        (collections.UserDict(), "result: a collections.UserDict cannot"),
        (Slotted(), "result: a test_values.Slotted cannot"),
        (Point, "result: a type cannot"),
        ((n for n in range(3)), "result: a generator cannot"),
        (json, "result: a module cannot"),
    ],
)
def test_what_has_no_form_is_named_with_its_place(value, complaint):
    with pytest.raises(_values.NotAValue) as error:
        _values.pack(value)
    assert str(error.value).startswith(complaint)


def test_what_holds_itself_or_is_too_deep_is_said():
    loop = {}
    loop["me"] = loop
    deep = []
    for _ in range(5000):
        deep = [deep]
    for value in (loop, deep):
        with pytest.raises(_values.NotAValue, match="nested too deep, or holds itself"):
            _values.pack(value)


def test_the_complaint_reaches_the_caller():
    def holder():
        return Holder([1, 2, 3, Holder([], threading.Lock())])

    error = Toolbox([holder]).call_sync("holder").error
    assert "result.items[3].lock: a _thread.lock cannot leave the box" in error


# ---- The classes of a hint ----


class Cell(TypedDict):
    color: Color


@dataclasses.dataclass
class Tree:
    cell: Cell
    children: "List[Tree]"


def test_classes_are_those_of_the_return_hint():
    def tree() -> Optional[Dict[str, Union[Tree, Tuple[Pair, ...]]]]: ...

    def nothing(x: Point): ...

    def broken() -> "Missing": ...  # noqa: F821

    assert set(_kinds.result_classes(tree)) == {Tree, Color, Pair}
    assert _kinds.result_classes(nothing) == [] and _kinds.result_classes(broken) == []


def test_a_dataclass_that_a_hint_names_comes_back_whole():
    def tree(n: int) -> List[Tree]:
        return [Tree({"color": Color.RED}, [Tree({"color": Color.RED}, [])])] * n

    assert Toolbox([tree]).call_sync("tree", {"n": 2}).output == tree(2)


# ---- A box that has been taken over ----


@dataclasses.dataclass
class Guarded:
    """Of the agent's, and of no tool's hint."""

    x: int

    def __post_init__(self):
        RUN.append("post_init")

    def __setattr__(self, name, value):
        RUN.append("setattr")
        object.__setattr__(self, name, value)

    def __del__(self):
        RUN.append("del")


class Sly(dict):
    """A dataclass of a hint that is more than its fields."""


Sly = dataclasses.dataclass(Sly)
RUN: List[str] = []


def tagged(tag, value, **more):
    return {"$callbox": tag, "value": value, **more}


@pytest.mark.parametrize("name", ["test_values:Guarded", "subprocess:Popen", "os:system", "builtins:object", "", ":", 7, None, ["x"]])
def test_a_box_cannot_choose_a_class(name):
    RUN.clear()
    for tag, value in (("dataclass", {"x": 1}), ("enum", 1), ("namedtuple", [1])):
        text = json.dumps(tagged(tag, value, type=name, name="RED"))
        back = _values.loads(text, None, HINTED)
        assert back == (tuple(value) if tag == "namedtuple" else value)
        assert type(back) in (dict, int, tuple)
    assert RUN == []


def test_a_class_of_the_hint_runs_no_code_of_its_own():
    RUN.clear()
    hinted = _values.Hinted([Guarded, Sly, Color, Point, OwnError])
    fields = {"x": 1, "__class__": 2}
    for made in (
        tagged("dataclass", {"x": 1}, type="test_values:Guarded"),
        tagged("dataclass", {}, type="test_values:Sly"),
        # a class that is known, but not as what the box says it is
        tagged("dataclass", {"_value_": 2}, type="test_values:Color"),
        tagged("enum", 9, type="test_values:Guarded", name="x"),
        tagged("namedtuple", [9], type="test_values:Guarded"),
        tagged("derived", {}, type="test_values:Guarded"),
        tagged("exception", [], type="test_values:Guarded", base="ValueError", more={}),
        tagged("exception", [], type="test_values:OwnError", base="KeyError", more={}),
        *(tagged("enum", 9, type="test_values:Color", name=name) for name in ("__class__", "mro", "BLUE", 5)),
        tagged("dataclass", fields, type="test_values:Point"),
    ):
        with pytest.raises(ValueError):
            _values.loads(json.dumps(made), None, hinted)
    assert RUN == []


class Bits(enum.IntFlag):
    """Many flags; IntFlag takes bits that are none of them, too."""

    A, B, C, D, E, F, G, H, I, J, K, L, M, N = (1 << n for n in range(14))


def test_a_box_cannot_fill_a_class_of_flags():
    hinted = _values.Hinted([Bits])

    def back(value):
        return _values.loads(json.dumps(tagged("enum", value, type="test_values:Bits", name=None)), None, hinted)

    assert back(5) == Bits.A | Bits.C and type(back(5)) is Bits
    def is_made(value):
        try:
            return type(back(value)) is Bits
        except ValueError:
            return False

    assert not any(is_made(value) for value in (1 << 14, -1, 2**70))
    made = [is_made(value) for value in range(1, 1 << 14)]
    assert 100 < made.count(True) <= 4096 and len(Bits._value2member_map_) <= 4096
    assert type(back(5)) is Bits  # those that there are stay


HOSTILE = [
    tagged("pickle", ""), tagged("bytes", "!"), tagged("bytes", None), tagged("text", "/w=="), tagged("int", 7),
    tagged("int", "x"), tagged("float", []), tagged("tuple", 1), tagged("set", [[]]), tagged("dict", [[1]]),
    tagged("dict", [[[], 1]]), tagged("date", "2026-13-01"), tagged("time", 3), tagged("timedelta", [10**30]),
    tagged("timedelta", {"days": 1}), tagged("decimal", [1]), tagged("decimal", "x"), tagged("uuid", "x"),
    tagged("path", 1), tagged("path", "a", pure="x"), tagged("path", "a", pure=["x"]), tagged("complex", [1, 2, 3]),
    tagged("datetime", "2026-01-01", zone="../../etc/passwd"), tagged("datetime", "2026-01-01", zone=7),
    tagged("dataclass", 1, type="x"), tagged("dataclass", {}), tagged("enum", 1), tagged("namedtuple", 1, type="x"),
    tagged("deque", 1), tagged("deque", [1], maxlen=-1), tagged("deque", [1], maxlen=2**70), tagged("fraction", [1]),
    tagged("fraction", [1, 0]), tagged("fraction", [1, -2]), tagged("fraction", [1.5, 2]), tagged("fraction", [True, 2]),
    tagged("range", [0, 1]), tagged("range", [0, 1, 0]), tagged("range", [0, tagged("int", hex(2**5000)), 1]),
    tagged("slice", [1, 2]), tagged("slice", 7), tagged("counter", [1]), tagged("counter", [[[], 1]]),
    tagged("ordereddict", {"a": 1}), tagged("defaultdict", [[1]], factory="list"), tagged("derived", 1),
    tagged("exception", [1], base="Popen", more={}), tagged("exception", 1, base="ValueError", more={}),
    tagged("exception", [1], base="UnicodeDecodeError", more={}), tagged("exception", [], base=["x"], more={}),
    tagged("exception", [], base="ValueError", more=[]), tagged("exception", [], base="ValueError"),
    {"$callbox": "bytes"}, {"$callbox": "bytes", "part": 0}, {"$callbox": "bytes", "part": 2}, {"$callbox": "text", "part": -1},
    {"$callbox": "bytes", "part": True}, {"$callbox": "bytes", "part": "1"}, {"$callbox": "bytearray", "part": 1.0},
    [{"$callbox": "bytes", "part": 1}, {"$callbox": "bytes", "part": 1}],
    {"$callbox": None}, {"$callbox": ["bytes"]}, {"$callbox": {}},
]  # fmt: skip


@pytest.mark.parametrize("document", HOSTILE, ids=lambda document: json.dumps(document)[:50])
def test_what_a_box_makes_up_is_refused(document):
    with pytest.raises(ValueError):
        _values.loads(json.dumps(document), Parts([b"", b"one part"]), HINTED)


NO_JSON = ["", "{", "NaN", "[Infinity]", "1" * 5000, "[" * 100_000, '{"a":' * 100_000, "\ud800"]


@pytest.mark.parametrize("text", NO_JSON, ids=lambda text: ascii(text[:20]))
def test_what_is_no_json_is_refused(text):
    for patient in (False, True):
        with pytest.raises(ValueError):
            _values.loads(text, patient=patient)


@pytest.mark.parametrize("tag", ["dict", "counter", "ordereddict", "defaultdict"])
def test_keys_that_share_a_hash_are_refused_in_every_kind_of_dict(tag):
    pairs = [[tagged("int", hex(n * (2**61 - 1))), n] for n in range(1, 100)]
    with pytest.raises(ValueError, match="have the same hash"):
        _values.loads(json.dumps(tagged(tag, pairs)))


def test_members_that_share_a_hash_do_not_take_forever():
    numbers = [tagged("int", hex((2**61 - 1) * n)) for n in range(2**20, 2**20 + 100_000)]
    begin = time.process_time()
    json.loads(json.dumps(numbers))
    plain = time.process_time() - begin
    begin = time.process_time()
    for document in (tagged("set", numbers), tagged("frozenset", numbers), tagged("dict", [[n, 1] for n in numbers])):
        with pytest.raises(ValueError, match="the same hash"):
            _values.loads(json.dumps(document))
    assert time.process_time() - begin < 100 * plain + 2  # the square would be hours
    assert len(_values.loads(json.dumps(tagged("set", list(range(100_000)))))) == 100_000


def test_many_values_need_a_larger_limit():
    text = "[" + ",".join(["[]"] * 600_000) + "]"
    with pytest.raises(ValueError, match="limits.result"):
        _values.loads(text, limit=16 << 20)
    assert len(_values.loads(text, limit=64 << 20)) == 600_000
    strings = json.dumps(["," * 60_000] * 100)  # they only look like many
    assert len(_values.loads(strings, limit=16 << 20)) == 100


def test_the_patient_reader_reads_the_same():
    for value in VALUES:
        text, parts = _open(_values.pack(value))
        assert repr(_values.loads(text, parts, HINTED, patient=True)) == repr(value)


def frames(*given):
    return b"".join(struct.pack("=II", len(data), kind) + data for kind, data in given)


RESULT, DONE, DATA = 0, 5, 6
DONE_WELL = (DONE, struct.pack("=i", 0))


@pytest.mark.parametrize(
    "given, error",
    [
        ([(DATA, b"x"), (RESULT, b'{"$callbox": "bytes", "part": 1}'), DONE_WELL], None),
        ([(RESULT, b'{"$callbox": "bytes", "part": 1}'), (DATA, b"x"), DONE_WELL], "there is no such part"),
        ([(DATA, b"x"), (RESULT, b"1"), (RESULT, b'{"$callbox": "bytes", "part": 1}'), DONE_WELL], "there is no such part"),
        ([(DATA, b"")] * 66_000 + [(RESULT, b"1"), DONE_WELL], "its result has too many parts"),
        ([(RESULT, b"\xff"), DONE_WELL], "its result is none that callbox knows"),
        ([(RESULT, b"")], "the function ended its process"),
        ([(DATA, b"x"), DONE_WELL], None),
        ([(7, b"x"), DONE_WELL], "no message"),
    ],
)
def test_frames_that_a_box_writes_itself(given, error, tmp_path):
    (tmp_path / "frames").write_bytes(frames(*given))
    path = str(tmp_path / "frames")

    def forged() -> Any:
        rest = memoryview(open(path, "rb").read())
        while rest:
            rest = rest[os.write(3, rest) :]
        os._exit(0)

    result = Toolbox([forged], policy=Policy(read=[str(tmp_path)])).call_sync("forged")
    if error is None:
        assert result.ok and result.output in (b"x", None)
    else:
        assert not result.ok and error in result.error


# ---- numpy ----


def numpy_values():
    numpy = pytest.importorskip("numpy", reason="numpy is not installed (Debian: python3-numpy)")
    grid = numpy.arange(24).reshape(2, 3, 4)
    return [
        numpy.float64(1.5), numpy.float32(0.1), numpy.int8(-3), numpy.uint64(2**64 - 1), numpy.bool_(True),
        numpy.complex64(1 + 2j), numpy.datetime64("2026-01-02T03:04"), numpy.timedelta64(5, "D"), numpy.float16(2),
        numpy.array(7), numpy.array([]), numpy.zeros((0, 3)), grid, grid.T, grid[:, ::2], numpy.asfortranarray(grid),
        grid.astype(">i4"), grid > 5, numpy.array(["a", "ä😀"]), numpy.array([b"a", b"bc"]), grid.astype("M8[ns]"),
        numpy.arange(100_000, dtype=numpy.float32).reshape(10, -1), numpy.arange(50_000, dtype=">u4")[::-1],
        numpy.array(["text"] * 10_000), numpy.ones(70_000, bool), numpy.longdouble("1.1"),
    ]  # fmt: skip


def test_arrays_keep_dtype_and_shape():
    import numpy

    for value in numpy_values():
        back = through({"a": [value]})["a"][0]
        assert type(back) is type(value) and back.dtype.str == value.dtype.str and back.shape == value.shape
        assert numpy.array_equal(back, value)
        if isinstance(back, numpy.ndarray):
            assert back.flags.writeable and back.flags.owndata
    text = numpy.str_("t")
    assert through(text) == "t" and type(through(text)) is str and through(numpy.bytes_(b"b")) == b"b"


def test_arrays_that_are_more_than_numbers_are_refused():
    numpy = pytest.importorskip("numpy", reason="numpy is not installed (Debian: python3-numpy)")
    for value, complaint in (
        (numpy.array([object()]), "result['a']: an array of dtype object cannot leave the box"),
        (numpy.zeros(2, dtype=[("x", int), ("o", object)]), "cannot leave the box"),
        (numpy.zeros(2, dtype=[("x", int)]), "cannot leave the box"),
        (numpy.ma.masked_array([1], [True]), "a numpy.ma.core.MaskedArray cannot leave the box"),
    ):
        with pytest.raises(_values.NotAValue) as error:
            _values.pack({"a": value})
        assert complaint in str(error.value)


def test_arrays_that_a_box_makes_up_are_refused():
    pytest.importorskip("numpy", reason="numpy is not installed (Debian: python3-numpy)")
    good = {"$callbox": "numpy", "dtype": "<i4", "shape": [2], "part": 1}
    data = struct.pack("<2i", 1, 2)
    assert list(_values.loads(json.dumps(good), Parts([b"", data]))) == [1, 2]
    for change in (
        {"dtype": "|O8"}, {"dtype": "O"}, {"dtype": "<i4,O"}, {"dtype": ["<i4"]}, {"dtype": "<V4"}, {"dtype": "<i3"},
        {"dtype": "<i4\n"}, {"shape": [3]}, {"shape": [-2]}, {"shape": [2, 2**47, 2**47]}, {"shape": [1] * 40},
        {"shape": "2"}, {"shape": [True, 2]}, {"shape": [2.0]}, {"part": 2}, {"dtype": "<i2"}, {"dtype": "<m8[xx]"},
        {"dtype": "|b1", "shape": [8]}, {"dtype": "<S0"},
    ):  # fmt: skip
        with pytest.raises(ValueError):
            _values.loads(json.dumps({**good, **change}), Parts([b"", data]))
    bad = {"$callbox": "numpy", "dtype": "<U1", "shape": [2], "part": 1}
    with pytest.raises(ValueError):
        _values.loads(json.dumps(bad), Parts([b"", b"\xff" * 8]))


def test_arrays_come_out_of_a_box():
    numpy = pytest.importorskip("numpy", reason="numpy is not installed (Debian: python3-numpy)")

    def table(n: int):
        import numpy

        return {"grid": numpy.arange(n * n, dtype="f8").reshape(n, n), "mean": numpy.float32(0.5)}

    output = Toolbox([table]).call_sync("table", {"n": 300}).output
    assert numpy.array_equal(output["grid"], numpy.arange(90_000.0).reshape(300, 300))
    assert type(output["mean"]) is numpy.float32


def test_where_numpy_is_missing_it_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(ValueError, match="numpy, which this program has not imported"):
        _values.loads(json.dumps({"$callbox": "numpy", "dtype": "<i4", "shape": [], "value": ""}))


def test_models_of_pydantic_are_dumped():
    pydantic = pytest.importorskip("pydantic", reason="pydantic is not installed (Debian: python3-pydantic)")

    class Inner(pydantic.BaseModel):
        when: datetime.date

    class Outer(pydantic.BaseModel):
        inner: List[Inner]
        color: Color

    value = Outer(inner=[Inner(when=datetime.date(2026, 1, 2))], color=Color.RED)
    assert through(value) == {"inner": [{"when": datetime.date(2026, 1, 2)}], "color": Color.RED}


@pytest.mark.parametrize("text, value", [
    ('{"$callbox": "bytes", "value": "aGk="}', b"hi"),
    ('{"\\u0024callbox": "bytes", "value": "aGk="}', b"hi"),  # the same key
    ('["callbox", 1.5, null, {"a": []}]', ["callbox", 1.5, None, {"a": []}]),
    ('"' + "$" * 5000 + '"', "$" * 5000),
])
def test_tags_are_found_however_they_are_written(text, value):
    assert _values.loads(text) == value


@pytest.mark.parametrize("text", ["NaN", "[-Infinity]", "[" * 4000, "1 2", "", '{"a":}'])
def test_a_short_text_that_is_no_json_is_refused(text):
    with pytest.raises(ValueError):
        _values.loads(text)
