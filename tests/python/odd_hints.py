# SPDX-License-Identifier: MIT
"""Functions whose hints are texts, for test_hints.py."""

from __future__ import annotations

import dataclasses
import enum
from dataclasses import InitVar
from typing import TYPE_CHECKING, ClassVar, Optional

if TYPE_CHECKING:
    from somewhere import Unknown


class Rights(enum.Flag):
    READ = 1
    WRITE = 2
    RUN = 4


@dataclasses.dataclass
class Area:
    kind: ClassVar[str] = "area"
    width: InitVar[int]
    unit: InitVar[Optional[str]] = None
    size: int = 0

    def __post_init__(self, width: int, unit: Optional[str]) -> None:
        self.size = width * width
        self.named = unit


@dataclasses.dataclass
class Named(Area):
    name: str = "n"


def returns_unknown(n: int) -> Unknown:
    return n + 1


def takes_unknown(n: Unknown) -> int:
    return 1


def size(area: Area, named: Optional[Named] = None) -> list:
    return [area.size, area.named, named and named.size]


def other(rights: Rights = Rights.READ | Rights.RUN) -> Rights:
    return ~rights
