# SPDX-License-Identifier: MIT
"""What a call can come to need, of Python itself or of this package, and nobody has loaded yet. It is loaded
(_late.py) before anything is read of what a box said, so that what a box says is no reason to load anything;
of a first call, while its box is being made."""

from __future__ import annotations

import sys

from ._late import load as _load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Tuple

REPORT = (
    "ast",  # a traceback that marks its place
    "datetime",
    "linecache",  # a warning that is shown
    "tokenize",  # a line of a source, in either
    "traceback",
    "tracemalloc",  # a warning that is shown
    "unicodedata",  # a traceback that marks its place
)
RESULT = (f"{__package__}._values", *REPORT)
LOOP = ("asyncio", "concurrent.futures.thread")  # the latter for a large result
ALL = (f"{__package__}._complaints", f"{__package__}._schema", "difflib", *LOOP, *RESULT)


def load(names: Tuple[str, ...]) -> None:
    for name in names:
        if name not in sys.modules:
            _load(name)
