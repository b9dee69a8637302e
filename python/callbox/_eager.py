# SPDX-License-Identifier: MIT
"""What Python itself, or this package, would import only when it is first needed: loaded before there is a
box. Each is here because a call can come to need it."""

from __future__ import annotations

import ast  # a traceback that marks its place
import concurrent.futures.thread  # a large result, on an event loop
import linecache  # a warning that is shown
import tokenize  # a line of a source, in either
import traceback
import tracemalloc  # a warning that is shown
import unicodedata  # a traceback that marks its place

from . import _convert, _schema  # how a function is described

__all__ = [
    "_convert",
    "_schema",
    "ast",
    "concurrent",
    "linecache",
    "tokenize",
    "traceback",
    "tracemalloc",
    "unicodedata",
]
