# SPDX-License-Identifier: MIT
"""Names of files below some directory, on their way into a box and out of it."""

from __future__ import annotations

from typing import Any, Dict, Iterable, List, Optional

NAME_MAX = 4096  # characters
DEPTH_MAX = 64
COUNT_MAX = 100_000


def why_not(name: Any) -> str:
    """Why it is none that stays below a directory, wherever somebody may put it; empty: it is one."""
    if not isinstance(name, str):
        return "it is no text"
    if not name or "\0" in name:
        return "it is empty, or has a NUL in it"
    if len(name) > NAME_MAX or name.count("/") > DEPTH_MAX:
        return "it is too long"
    parts = name.replace("\\", "/").split("/")
    if parts[0] == "":
        return "it begins at the top"
    if any(part in ("", ".", "..") for part in parts):
        return "it leads elsewhere"
    return ""


def checked_artifacts(given: Any) -> Dict[str, bytes]:
    """Files that a box says it has written: raises ValueError for what no honest one says."""
    if not isinstance(given, dict) or len(given) > COUNT_MAX:
        raise ValueError("its artifacts are no files")
    for name, content in given.items():
        why = why_not(name)
        if why:
            raise ValueError(f"an artifact has a name that cannot be: {why}: {str(name)[:100]!r}")
        if type(content) is not bytes:
            raise ValueError(f"the artifact {name[:100]!r} is no bytes")
    made = {plain_text(name): content for name, content in given.items()}
    both = _file_and_folder(made)
    if both is not None:
        raise ValueError(f"the artifact {both[:100]!r} is a file and a directory")
    if len(made) < len(given):
        raise ValueError("two artifacts have names that are the same but for what is no character")
    return made


def _file_and_folder(names: Iterable[str]) -> Optional[str]:
    """With / before any other character, what is in a folder follows it at once."""
    last = ""
    for name in sorted(names, key=lambda name: name.replace("/", "\0")):
        if last and name.startswith(last) and name[len(last) : len(last) + 1] == "/":
            return last
        last = name
    return None


def plain_text(text: str) -> str:
    """What can be printed and written as UTF-8: there are no characters for half of a pair."""
    return text.encode("utf-8", "replace").decode()


def checked_left_out(given: Any) -> List[str]:
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise ValueError("the names that it left out are no names")
    return [plain_text(name) for name in given]
