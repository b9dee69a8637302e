# SPDX-License-Identifier: MIT
"""Values as typed JSON, between a box and its caller.

None, bool, int, float, str, list and dict are what they are. Other known types are an object with a
tag: {"$callbox": "bytes", "value": "aGk="}. A dict that has such a key itself is tagged too, so there
is no doubt. Anything else is refused.

Bytes, text and arrays that are large do not go through JSON: they lie beside it as they are, in parts
of their own, and a tag says which: {"$callbox": "bytes", "part": 1}.

_encode.py is the side that writes, _decode.py the one that reads, _arrays.py both for numpy.
"""

from __future__ import annotations

from ._decode import Hinted, loads
from ._encode import NotAValue, dumps, fields_of, pack

__all__ = ["Hinted", "NotAValue", "dumps", "fields_of", "loads", "pack"]
