# SPDX-License-Identifier: MIT
"""Arrays and scalars of numpy, where it is installed: the bytes as they are, with dtype and shape."""

from __future__ import annotations

import base64
import re
import struct
import sys
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional

if TYPE_CHECKING:
    from ._encode import Encoder, Place
    from ._parts import Parts

# Numbers, bool, fixed text and times: what is no more than its bytes.
DTYPE = re.compile(r"[<>|][biufcSUMm][0-9]{1,9}(\[[0-9]{0,9}[a-zA-Z]{1,2}\])?\Z")
DIMENSIONS_MAX = 32
CHARACTER_MAX = 0x10FFFF


def encode(encoder: Encoder, value: Any, place: Place) -> Any:
    numpy: Any = sys.modules["numpy"]  # or there would be no array
    scalar = isinstance(value, numpy.generic)
    if not scalar and type(value) not in (numpy.ndarray, numpy.memmap):
        name = f"{type(value).__module__}.{type(value).__qualname__}"
        raise encoder.refuse_type(place, f"a {name}", "a plain array and what else it has")
    dtype = value.dtype.str
    if not DTYPE.match(dtype):
        what = f"an array of dtype {value.dtype}"
        raise encoder.refuse_type(place, what, "numbers, bool, text, times, or a list")
    shape = list(value.shape)
    # bytes: an array of times or of text gives no buffer of its own
    data = numpy.ascontiguousarray(value).reshape(-1).view(numpy.uint8) if value.nbytes else b""
    return encoder.raw("numpy", data, place, dtype=dtype, shape=shape, scalar=scalar)


def _check(numpy: Any, array: Any) -> None:
    """Bytes of which numpy expects more than that they are there."""
    if array.dtype.kind == "b" and array.size and int(array.view(numpy.uint8).max()) > 1:
        raise ValueError("an array of bool has something else in it")
    if array.dtype.kind == "U" and array.nbytes:
        points = array.reshape(-1).view(numpy.dtype(numpy.uint32).newbyteorder(array.dtype.str[0]))
        if int(points.max()) > CHARACTER_MAX:
            raise ValueError("an array of text has something else in it")


# Of scalars that Python has itself, by kind and bytes: how struct writes them.
NUMBERS = {"b1": "?", "f2": "e", "f4": "f", "f8": "d", "c8": "ff", "c16": "dd"}
INTEGERS = {"i": True, "u": False}  # whether they have a sign


def _number(dtype: str, raw: bytes) -> Any:
    """A scalar without numpy; None: it has no such form."""
    order, kind = ">" if dtype[0] == ">" else "<", dtype[1:]
    if kind[0] in INTEGERS and kind[1:] in ("1", "2", "4", "8") and len(raw) == int(kind[1:]):
        return int.from_bytes(raw, "big" if order == ">" else "little", signed=INTEGERS[kind[0]])
    form = order + NUMBERS.get(kind, "")
    if len(form) == 1 or struct.calcsize(form) != len(raw) or kind == "b1" and raw > b"\1":
        return None
    found = struct.unpack(form, raw)
    return complex(*found) if len(found) == 2 else found[0]


def decode(
    item: Dict[str, Any], parts: Optional[Parts], part: Optional[int], note: Callable[[str], None]
) -> Any:
    """A new array, writable. Nothing is allocated before its size is known to be that of the data."""
    numpy: Any = sys.modules.get("numpy")  # never loaded because a box speaks of it
    if numpy is None and item.get("scalar") and item["shape"] == [] and part is None:
        dtype = item["dtype"]
        plain = isinstance(dtype, str) and DTYPE.match(dtype)
        found = _number(dtype, base64.b64decode(item["value"], validate=True)) if plain else None
        if found is not None:
            note(f"a scalar of numpy ({dtype}) came back as a number of Python, as this program has not imported numpy")
            return found
    if numpy is None:
        raise ValueError("it has an array of numpy, which this program has not imported; import numpy first")
    shape = item["shape"]
    if not isinstance(item["dtype"], str) or not DTYPE.match(item["dtype"]):
        raise ValueError("an array has a dtype that is unknown")
    if not isinstance(shape, list) or len(shape) > DIMENSIONS_MAX:
        raise ValueError("an array has no shape")
    if any(type(n) is not int or not 0 <= n < 2**48 for n in shape):
        raise ValueError("an array has a shape that cannot be")
    dtype = numpy.dtype(item["dtype"])
    length = dtype.itemsize
    if not length:
        raise ValueError("an array has members without a size")  # which numpy would give one
    for n in shape:
        length *= n
    raw = base64.b64decode(item["value"], validate=True) if part is None else None
    there = len(raw) if raw is not None else parts.length(part or 0) if parts else 0
    if length != there:
        raise ValueError(f"an array has {there} bytes, and not the {length} of its shape")
    array = numpy.empty(tuple(shape), dtype)
    if length and raw is not None:
        array.reshape(-1).view(numpy.uint8)[:] = numpy.frombuffer(raw, numpy.uint8)
    elif length and parts:
        parts.read_into(part or 0, array.reshape(-1).view(numpy.uint8))
    _check(numpy, array)
    if item.get("scalar") and not shape:
        return array[()]
    return array
