# SPDX-License-Identifier: MIT
"""Hostile frames, made up by a generator and by code in a box. CALLBOX_FUZZ_SECONDS: for how long;
CALLBOX_FUZZ_SEED: which ones."""

import json
import os
import pathlib
import random
import subprocess
import sys

import pytest

import callbox
from callbox import CodeResult, Policy, Toolbox, run_python

SECONDS = float(os.environ.get("CALLBOX_FUZZ_SECONDS", "8"))
SEED = int(os.environ.get("CALLBOX_FUZZ_SEED", "1"))
HERE = pathlib.Path(__file__).parent


def test_S8_hostile_frames_are_refused_or_read_and_do_nothing_else():
    done = subprocess.run([sys.executable, str(HERE / "hostile_frames.py"), str(SEED), str(SECONDS)],
                          text=True, capture_output=True, check=True, timeout=SECONDS * 4 + 120)  # fmt: skip
    told = json.loads(done.stdout)
    print(told["read"])
    assert told["wrong"] == [] and told["read"] > 20 * SECONDS


WRITES = """
import os
data = FRAMES
while data: data = data[os.write(3, data):]
os._exit(0)
"""


def frames(r):
    """As bytes: lengths and kinds that are wrong in all ways, texts that are no text."""
    made = b""
    for _ in range(r.randrange(1, 5)):
        body = r.choice((b"", b"1", b'"\xff"', b"\xed\xa0\x80", b'{"result": 1}', b'{"$callbox":"set","value":[[1]]}', r.randbytes(30)))
        kind = r.choice((0, 1, 2, 3, 4, 5, 6, 7, 2**32 - 1))
        length = r.choice((len(body), len(body), len(body), 0, 2**32 - 1, len(body) + 1))
        made += length.to_bytes(4, "little") + kind.to_bytes(4, "little") + body
    return made + r.choice((b"", b"\4\0\0\0\5\0\0\0\0\0\0\0"))


@pytest.mark.parametrize("seed", range(SEED, SEED + 25))
def test_S8_code_that_writes_its_own_frames_gets_a_result_and_no_more(seed):
    done = run_python(WRITES, {"FRAMES": frames(random.Random(seed))})
    assert isinstance(done, CodeResult) and (done.ok or isinstance(done.error, str))
    assert isinstance(done.text, str) and isinstance(done.traceback, str) and repr(done)
    assert all(type(data) is bytes for data in done.artifacts.values())


def told(document):
    """Of code that says this of itself."""
    text = json.dumps(document).encode()
    frame = len(text).to_bytes(4, "little") + bytes(4) + text + b"\4\0\0\0\5\0\0\0\0\0\0\0"
    return run_python(WRITES, {"FRAMES": frame})


DATA = {"$callbox": "bytes", "value": "ZXZpbA=="}


@pytest.mark.parametrize("artifacts", [
    {"../../.bashrc": DATA}, {"/etc/cron.d/x": DATA}, {"a\0b": DATA}, {"n": 5}, {"": DATA}, {".": DATA}, {"a/..": DATA},
    {"a/../b": DATA}, {"a//b": DATA}, {"./a": DATA}, {"a/": DATA}, {"..\\x": DATA}, {"\\x": DATA}, {"a" * 5000: DATA},
    {"a/" * 100 + "b": DATA}, {"a": DATA, "a/b": DATA}, {"a": "text"}, {"a": None}, [["a", DATA]], "text", 5,
    {"$callbox": "dict", "value": [[7, DATA]]}, {"$callbox": "dict", "value": [[None, DATA]]},
    {"a": {"$callbox": "bytearray", "value": "ZXZpbA=="}},
])  # fmt: skip
def test_S14_artifacts_of_names_and_kinds_that_cannot_be(artifacts):
    done = told({"result": 42, "text": "42", "artifacts": artifacts})
    assert not done.ok and done.artifacts == {} and done.result is None
    assert "its result is none that callbox knows" in done.error and len(done.error) < 1000


@pytest.mark.parametrize("more", [
    {"left_out": [1]}, {"left_out": "abc"}, {"left_out": {"a": 1}}, {"text": 5}, {"text": {"$callbox": "int", "value": "0x" + "f" * 9000}},
    {"error": 0}, {"error": ["x"]}, {"traceback": 7}, {"unknown": 1},
])  # fmt: skip
def test_S14_what_else_code_says_of_itself(more):
    done = told({"result": 42, **more})
    assert not done.ok and done.result is None and isinstance(done.error, str) and done.left_out == []


def test_S14_honest_artifacts_come_as_they_were():
    code = "import os\nos.makedirs('out/a/b')\nfor n in ('x', 'a/b/..y', 'a/\\u202ez', 'a b'): open('out/' + n, 'w').write('1')\nopen('out/a\\\\..\\\\b', 'w')"
    done = run_python(code)
    assert done.ok and set(done.artifacts) == {"x", "a/b/..y", "a/\u202ez", "a b"}
    assert done.left_out == ["a\\..\\b"]


def test_results_of_a_tool_are_checked_as_well(tmp_path):
    box = Toolbox([callbox.Tool(lambda: {"artifacts": {"../x": b"1"}}, name="f")], policy=Policy())
    assert box.call_sync("f").output == {"artifacts": {"../x": b"1"}}  # which is no more than a dict
