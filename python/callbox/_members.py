# SPDX-License-Identifier: MIT
"""Sets and dicts of what a box said. Hashes of numbers are no secret, so that members can be chosen to be
slow: with the same hash, Python compares each with each, and sets within sets a power of that; an int is
made a decimal first where one is compared with it; with hashes that lead to the same places of a table,
each walks by all others. Members of the first kind are counted, those of the second are timed."""

from __future__ import annotations

import collections
import dataclasses
import decimal
import fractions
import itertools
import time
from typing import Any, Dict, Iterable, List, Optional, Tuple

SAME_HASH_MAX = 64  # members of one set
PER_CHARACTER = 8  # comparisons that a result may take, for each character of it
DIGITS = 16  # of a number, that count one
FEW = 512  # too few to be slow
SECONDS = 1.0  # of processor time, for one set
SECONDS_EACH = 20e-6  # and for each of its members


def _own_weight(value: Any) -> int:
    if isinstance(value, int):
        return 1 + value.bit_length() // (4 * DIGITS)
    if isinstance(value, decimal.Decimal):
        return 1 + len(value.as_tuple().digits) // DIGITS
    if isinstance(value, fractions.Fraction):
        return _own_weight(value.numerator) + _own_weight(value.denominator)
    return 1


def _weigh(value: Any) -> int:
    """How much there is to compare in it, however deep."""
    weight = 0
    rest = [value]
    while rest:
        item = rest.pop()
        weight += _own_weight(item)
        if isinstance(item, (tuple, frozenset)):
            rest += item
        elif isinstance(item, slice):
            rest += (item.start, item.stop, item.step)
        elif dataclasses.is_dataclass(item):
            rest += vars(item).values() if hasattr(item, "__dict__") else ()
    return weight


def _has_twice(numbers: List[int]) -> bool:
    if len(numbers) <= FEW:
        return len(set(numbers)) < len(numbers)
    ordered = sorted(numbers)
    return any(map(int.__eq__, ordered, itertools.islice(ordered, 1, None)))


class Members:
    """`characters`: of the result, which bound how much there is to compare."""

    def __init__(self, characters: int) -> None:
        self._left = 1000 + PER_CHARACTER * characters

    def set_of(self, given: List[Any]) -> Any:
        self._check(given)
        made = set()
        for piece in self._unhurried(given):
            made.update(piece)
        return made

    def dict_of(self, given: Iterable[Tuple[Any, Any]], made: Optional[Dict[Any, Any]] = None) -> Dict[Any, Any]:
        """`made`: an empty dict of another kind."""
        pairs = [(key, value) for key, value in given]
        self._check([key for key, _ in pairs])
        made = {} if made is None else made
        # A Counter would count the pairs; an OrderedDict has to see them itself.
        update = type(made).update if isinstance(made, collections.OrderedDict) else dict.update
        for piece in self._unhurried(pairs):
            update(made, piece)
        return made

    def _unhurried(self, members: List[Any]) -> Any:
        """In pieces, as long as they do not take longer than any honest ones would."""
        if len(members) <= FEW:
            yield members
            return
        end = time.thread_time() + SECONDS + len(members) * SECONDS_EACH
        for at in range(0, len(members), FEW):
            if time.thread_time() > end:
                raise ValueError("the members of a set or dict were chosen to be slow")
            yield members[at : at + FEW]

    def _check(self, members: List[Any]) -> None:
        hashes = [hash(member) for member in members]
        if not _has_twice(hashes):
            return
        order = sorted(range(len(members)), key=hashes.__getitem__)
        for _, group in itertools.groupby(order, hashes.__getitem__):
            self._compare([members[number] for number in group])

    def _compare(self, same: List[Any]) -> None:
        if len(same) == 1:
            return
        if len(same) > SAME_HASH_MAX:
            raise ValueError(f"{len(same)} members of a set or dict have the same hash")
        weight = sum(_weigh(member) for member in same)
        self._left -= weight * weight
        if self._left < 0:
            raise ValueError("members of sets or dicts were chosen to have the same hash")
