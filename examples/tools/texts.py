# SPDX-License-Identifier: MIT
"""Python functions as tools: `callbox mcp --python-tools texts.py`, or a manifest for one of them, such as
reading_time.json. They are ordinary functions; callbox need not be installed for the interpreter."""

import dataclasses
import re
from typing import List, Literal


@dataclasses.dataclass
class ReadingTime:
    words: int
    minutes: float


def reading_time(text: str, words_per_minute: int = 200) -> ReadingTime:
    """Estimate how long it takes to read a text.

    Args:
        text: what is to be read
        words_per_minute: how fast
    """
    if words_per_minute < 1:
        raise ValueError("nobody reads that slowly")
    words = len(text.split())
    return ReadingTime(words, round(words / words_per_minute, 2))


def headings(markdown: str) -> List[str]:
    """List the headings of a text in Markdown."""
    return re.findall(r"^#{1,6}\s+(.+?)\s*#*$", markdown, re.M)


def change_case(text: str, to: Literal["upper", "lower", "title"] = "upper") -> str:
    """Change the case of a text."""
    changed: str = getattr(text, to)()
    return changed
