# SPDX-License-Identifier: MIT
"""Models of pydantic, for test_newcomer.py."""

from typing import List, Optional

import pydantic


class Tree(pydantic.BaseModel):
    x: int
    below: Optional[List["Tree"]] = None


Tree.update_forward_refs()


class One(pydantic.BaseModel):
    class Item(pydantic.BaseModel):
        a: int

    item: Item


class Two(pydantic.BaseModel):
    class Item(pydantic.BaseModel):
        b: str

    item: Item


def depth(tree: Tree) -> int:
    return 1 + max((depth(t) for t in tree.below or []), default=0)


def both(one: One, two: Two) -> list:
    return [one.item.a, two.item.b]
