# SPDX-License-Identifier: MIT
"""What tells this program what to do, and lies where a box may write.

The interpreter, its environment, what is installed for it, this package, its programs and libraries, and
each module that is loaded are held: no box can change them, nor put a name beside them that Python would
take instead. Of a directory that this program imports from, and that stays writable otherwise, there is a
warning: a module that a box leaves there is run by whoever imports it next."""

from __future__ import annotations

import collections
import os
import sys
import warnings
from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Set, Tuple

from . import _eager, _late
from ._error import CallboxError
from ._loaded import Module, Ways, custom_names, generation, is_in, look
from ._native import HERE

NAMES_MAX = 4096  # that a policy can hold
BYTES_MAX = 400_000  # of them together; a policy can be a megabyte
WORDS = ("warn", "refuse", "allow")
VARIABLE = "CALLBOX_IMPORT_PATH"

__all__ = ["Held", "ImportPathWarning", "check_word", "generation", "held", "is_in", "refuse_links", "to_hold", "writable", "written"]


class ImportPathWarning(UserWarning):
    """A box may write to a directory from which this program imports."""


def writable(files: Dict[str, Any]) -> List[str]:
    """The directories of the host that the files of a policy let boxes write."""
    rules = [*(files.get("write") or ()), *filter(None, [files.get("workspace")])]
    hosts = [rule["host"] if isinstance(rule, dict) else rule for rule in rules]
    return sorted({os.path.realpath(host) for host in hosts})


# ---- What is held ----


class Held(NamedTuple):
    """`whole`: directories that are held with all that is in them, as their modules are too many or a link
    leads there; `loose`: how many modules are not held, as they are too many in the top of a tree."""

    names: List[str]
    whole: List[str]
    loose: int


def _without_inner(paths: Iterable[str]) -> List[str]:
    kept: List[str] = []
    for path in sorted(set(paths), key=lambda path: path.split("/")):
        if not kept or not is_in(path, kept[-1]):
            kept.append(path)
    return kept


def _fits(names: Iterable[str], room: int) -> bool:
    names = list(names)
    return len(names) <= room and sum(map(len, names)) <= BYTES_MAX


def _fit(modules: List[Module], others: Set[str], is_below: Callable[[str], bool], room: int) -> Held:
    """By names as long as that fits; then the fullest directories as a whole; in the top of a tree, which
    stays writable, with less and less of what is beside a module."""
    whole: List[str] = []
    for few in (0, 0, 1, 2):
        names = {module: [name for name in module.names(few) if is_below(name)] for module in modules}
        found = others.union(whole, *names.values())
        if _fits(found, room):
            return Held(_without_inner(found), whole, 0)
        if not whole:
            full = collections.Counter(os.path.dirname(module.file) for module in modules)
            for folder, _ in full.most_common():
                if is_below(folder) and not _fits(found, room):
                    whole.append(folder)
                    modules = [module for module in modules if not is_in(module.file, folder)]
                    found = others.union(whole, *(names[module] for module in modules))
            if _fits(found, room):
                return Held(_without_inner(found), whole, 0)
    kept = sorted(others.union(whole))[:room]
    left = BYTES_MAX - sum(map(len, kept))
    loose = len(others.union(whole)) - len(kept)
    for module in modules:
        left -= len(module.file)
        if len(kept) < room and left > 0:
            kept.append(module.file)
        else:
            loose += 1
    return Held(_without_inner(kept), whole, loose)


def held(trees: List[str], room: int = NAMES_MAX) -> Held:
    """Of what tells this program what to do, that which lies in these directories: so many names at most."""
    known = look()

    def is_below(path: str) -> bool:
        return any(path != tree and is_in(path, tree) for tree in trees)

    places = [place for place in known.places if is_below(place)]

    def is_free(path: str) -> bool:
        return is_below(path) and not any(is_in(path, place) for place in places)

    links = {link for link in known.links if is_free(link)}
    others = {*places, *links}
    for entry in known.entries:
        if any(is_in(entry, tree) for tree in trees) and entry not in known.packages:
            others.update(custom_names(entry))
    modules = [module for module in known.modules if is_free(module.file) or module.kind == "namespace"]
    told = _fit(sorted(modules), others, is_below, room)
    targets = {os.path.realpath(link) for link in links}
    led = [path for path in targets if is_free(path) and os.path.isdir(path)]
    led += [module.file for module in modules if module.kind == "tree"]
    return told._replace(whole=sorted({*told.whole, *led}))


# ---- What is said of the rest ----


def _word(given: Optional[str]) -> str:
    word = given or os.environ.get(VARIABLE) or "warn"
    if word not in WORDS:
        where = "import_path" if given else VARIABLE
        raise CallboxError(f"{word!r} is none of: {', '.join(WORDS)}", where)
    return word


def check_word(given: Optional[str]) -> Optional[str]:
    if given is not None:
        _word(given)
    return given


def open_entries(trees: List[str]) -> List[str]:
    """Directories, there or not, to which boxes may add modules that this program can import: those in a
    tree, and a tree that is in a package."""
    known = look()
    places = [place for place in known.places if any(place != tree and is_in(place, tree) for tree in trees)]
    found = [entry for entry in known.entries if any(is_in(entry, tree) for tree in trees)]
    inside = [*known.packages, *filter(None, [sys.pycache_prefix and os.path.realpath(sys.pycache_prefix)])]
    found += [tree for tree in trees if any(is_in(tree, package) for package in inside)]
    free = [entry for entry in found if not any(is_in(entry, place) for place in places)]
    return [entry for entry in dict.fromkeys(free) if not any(entry != top and is_in(entry, top) for top in free)]


def _caller() -> int:
    """How many frames up is the first that is not of this package, as warnings count them."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(HERE):
        level, frame = level + 1, frame.f_back
    return level


_warned: Set[Tuple[str, ...]] = set()


def _warn(key: Tuple[str, ...], text: str) -> None:
    """Once."""
    if key not in _warned:
        warnings.warn(ImportPathWarning(text), stacklevel=_caller())
        _warned.add(key)


def _own_directory(entry: str) -> str:
    if any(is_in(entry, package) for package in look().packages):
        return "give it a directory of its own, which is in no package, or a copy"
    return f'give it a directory of its own, such as Policy(workspace="{os.path.join(entry, "work")}"), or a copy'


def tell(trees: List[str], given: Optional[str]) -> None:
    """Warn once of what boxes could leave for this program to import, or refuse it."""
    word = _word(given)
    entries = tuple(open_entries(trees)) if word != "allow" else ()
    if not entries:
        return
    text = (
        f"this program imports from {' and '.join(entries)}, and a box may write there: a module that it "
        f"leaves can come to run in this program, outside of any box"
    )
    hint = _own_directory(entries[0])
    if word == "refuse":
        raise CallboxError(text, "import_path", hint)
    _warn(entries, f'{text}; {hint}; Policy(import_path="allow") says that this is meant')


def tell_of_held(found: Held, given: Optional[str]) -> None:
    """What nobody would expect: more is held than what is loaded, or less."""
    if found.whole:
        _warn(
            ("whole", *found.whole),
            f"no box can write to {' and '.join(found.whole)}: of what is there too much is loaded to "
            f"be held by its names, or it is loaded by a link, or by an interpreter in a box "
            f"(Toolbox(modules=...)); give boxes a directory of their own",
        )
    if found.loose:
        text = f"{found.loose} modules that this program has loaded are not held: they are too many in one directory"
        hint = "give boxes a directory of their own, or a copy"
        if _word(given) == "refuse":
            raise CallboxError(text, "import_path", hint)
        _warn(("loose",), f"{text}, to which a box may write; {hint}")


_written: Set[str] = set()  # trees of the policies that were used


def written() -> Tuple[str, ...]:
    """The directories of the host that a box of this program may have written."""
    return tuple(_written)


def refuse_links(path: str, where: str) -> str:
    """What a path leads to, but not by a link that a box of this program could have made."""
    links, real = Ways().follow(path)
    for link in links:
        if any(link != tree and is_in(link, tree) for tree in _written):
            text = f"{link} is a link where boxes may write, to {real}"
            raise CallboxError(text, where, "name the directory itself, if that is meant")
    return real


def _load_first(trees: List[str]) -> None:
    """What boxes may write within is not held but for what is loaded: so nothing is loaded from there later."""
    places = [os.path.realpath(place) for place in _late.places()]
    if any(is_in(tree, place) for tree in trees for place in places):
        _eager.load(_eager.ALL)


_last: Dict[Tuple[Any, ...], List[str]] = {}


def to_hold(trees: List[str], given: Optional[str], own: Iterable[str] = ()) -> List[str]:
    """What a policy has to hold besides its own, once whoever uses it has been told."""
    own = tuple(own)
    if trees and not _written.issuperset(trees):
        _load_first(trees)
    _written.update(trees)
    key = (generation(), tuple(trees), _word(given), len(own))
    names = _last.get(key)
    if names is None:
        tell(trees, given)
        found = held(trees, max(0, NAMES_MAX - len(own)))
        tell_of_held(found, given)
        if len(_last) > 16:
            _last.clear()
        names = _last[key] = found.names
    return sorted({*own, *names})
