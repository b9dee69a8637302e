# SPDX-License-Identifier: MIT
"""What tells this program what to do, and lies where a box may write.

The interpreter, its environment, what is installed for it, this package, its programs and libraries, and
each module that is loaded are held: no box can change them, nor put a name beside them that Python would
take instead. Of a directory on sys.path that stays writable otherwise there is a warning: a module that a
box leaves there is run by whoever imports it next."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import site
import sys
import warnings
from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

from ._error import CallboxError
from ._native import HERE, functions_program, warden_program

NAMES_MAX = 1024  # of modules; beyond that their directories are held
WORDS = ("warn", "refuse", "allow")
VARIABLE = "CALLBOX_IMPORT_PATH"
CUSTOM = ("sitecustomize", "usercustomize")  # which Python imports by itself
SUFFIXES = importlib.machinery.all_suffixes()

Generation = Tuple[int, Tuple[str, ...]]


class ImportPathWarning(UserWarning):
    """A box may write to a directory from which this program imports."""


def is_in(path: str, tree: str) -> bool:
    return path == tree or path.startswith(tree.rstrip("/") + "/")


def generation() -> Generation:
    """Another one, when there may be more to hold. It costs little to ask."""
    return len(sys.modules), tuple(sys.path)


def writable(document: Dict[str, Any]) -> List[str]:
    """The directories of the host that a policy lets boxes write."""
    files = document.get("files") or {}
    rules = [*(files.get("write") or ()), *filter(None, [files.get("workspace")])]
    hosts = [rule["host"] if isinstance(rule, dict) else rule for rule in rules]
    return sorted({os.path.realpath(host) for host in hosts})


# ---- What is held ----


def _real_folder(path: str) -> str:
    """Links resolved on the way, but not what the name itself stands for: that could be replaced too."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


def _places() -> List[str]:
    """Held as they are, with all that is in them."""
    found: List[Any] = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix, HERE]
    found += [os.environ.get("VIRTUAL_ENV"), *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        found.append(site.getusersitepackages())
    found += [entry for entry in sys.path if os.path.basename(entry) in ("site-packages", "dist-packages")]
    found += [entry for entry in sys.path if os.path.isfile(entry)]  # an archive
    found += [sys.executable, getattr(sys, "_base_executable", None)]
    found += [warden_program(), functions_program()]
    found += [os.environ.get("CALLBOX_WARDEN"), os.environ.get("CALLBOX_FUNCTIONS")]
    names = [path for path in found if path]
    return [_real_folder(name) for name in names] + [os.path.realpath(name) for name in names]


def _libraries() -> Set[str]:
    """Files that are mapped into this process: libcallbox is one of them."""
    try:
        with open("/proc/self/maps", "rb") as stream:
            lines = stream.read().split(b"\n")
    except OSError:
        return set()
    fields = (line.split(None, 5) for line in lines)
    return {os.fsdecode(found[5]) for found in fields if len(found) == 6 and found[5].startswith(b"/")}


def _modules() -> List[Tuple[str, str]]:
    """Names and files; of a file that is a link, what it leads to as well."""
    files = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
    found = [(name, os.path.abspath(file)) for name, file in files.items() if isinstance(file, str)]
    found += [("__main__", file) for file in _libraries()]
    real = {folder: os.path.realpath(folder) for folder in {os.path.dirname(file) for _, file in found}}
    found = [(name, os.path.join(real[os.path.dirname(file)], os.path.basename(file))) for name, file in found]
    return found + [(name, os.path.realpath(file)) for name, file in found if os.path.islink(file)]


def _names_of(folder: str, stem: str) -> List[str]:
    """All that Python could take for a module of this name, in the order of its choice or another."""
    source = os.path.join(folder, stem + ".py")
    names = [os.path.join(folder, stem + suffix) for suffix in SUFFIXES]
    names += [importlib.util.cache_from_source(source, optimization=level) for level in ("", "1", "2")]
    if stem != "__init__":
        package = os.path.join(folder, stem)
        if os.path.isdir(package):
            names += [os.path.join(package, "__init__" + suffix) for suffix in SUFFIXES]
        else:
            names.append(package)
    return names


def _names_of_module(name: str, file: str) -> List[str]:
    folder, base = os.path.split(file)
    if name == "__main__":
        return [file]  # it is started by its path
    return [file, *_names_of(folder, base.partition(".")[0])]


class _Known:
    """What was found, for the modules of some moment."""

    def __init__(self) -> None:
        self.at: Optional[Generation] = None
        self.places: List[str] = []
        self.modules: List[Tuple[str, str]] = []
        self.entries: List[str] = []

    def look(self) -> _Known:
        now = generation()
        if self.at != now:
            self.places = _places()
            self.modules = _modules()
            self.entries = [os.path.realpath(entry or os.curdir) for entry in sys.path]
            self.at = now
        return self


_known = _Known()


def _without_inner(paths: Iterable[str]) -> List[str]:
    kept: List[str] = []
    for path in sorted(set(paths)):
        if not kept or not is_in(path, kept[-1]):
            kept.append(path)
    return kept


def held(trees: List[str]) -> List[str]:
    """Of what tells this program what to do, that which lies in these directories."""
    known = _known.look()

    def is_below(path: str) -> bool:
        return any(path != tree and is_in(path, tree) for tree in trees)

    found = [place for place in known.places if is_below(place)]
    names: Set[str] = set()
    folders: Set[str] = set()
    for name, file in known.modules:
        if is_below(file) and not any(is_in(file, place) for place in found):
            names.update(_names_of_module(name, file))
            folders.add(os.path.dirname(file))
    for entry in known.entries:
        if any(is_in(entry, tree) for tree in trees):
            names.update(path for stem in CUSTOM for path in _names_of(entry, stem))
    if len(names) > NAMES_MAX:
        at_top = {path for path in names if os.path.dirname(path) in trees}
        names = at_top | {path for path in folders if is_below(path)}
    return _without_inner([*found, *names])


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
    """Directories of sys.path, there or not, to which boxes may add modules."""
    known = _known.look()
    places = [place for place in known.places if any(place != tree and is_in(place, tree) for tree in trees)]
    return [
        entry
        for entry in dict.fromkeys(known.entries)
        if any(is_in(entry, tree) for tree in trees) and not any(is_in(entry, place) for place in places)
    ]


def _caller() -> int:
    """How many frames up is the first that is not of this package, as warnings count them."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(HERE):
        level, frame = level + 1, frame.f_back
    return level


_warned: Set[Tuple[str, ...]] = set()


def tell(trees: List[str], given: Optional[str]) -> None:
    """Warn once of what boxes could leave for this program to import, or refuse it."""
    word = _word(given)
    entries = tuple(open_entries(trees)) if word != "allow" else ()
    if not entries or word == "warn" and entries in _warned:
        return
    names = " and ".join(entries)
    text = (
        f"this program imports from {names}, and a box may write there: a module that it leaves can "
        f"come to run in this program, outside of any box"
    )
    own = os.path.join(entries[0], "work")
    hint = f'give it a directory of its own, such as Policy(workspace="{own}"), or a copy'
    if word == "refuse":
        raise CallboxError(text, "import_path", hint)
    meant = 'Policy(import_path="allow") says that this is meant'
    warnings.warn(ImportPathWarning(f"{text}; {hint}; {meant}"), stacklevel=_caller())
    _warned.add(entries)


def add_held(document: Dict[str, Any], import_path: Optional[str]) -> Dict[str, Any]:
    """A policy in its JSON form, with more to hold, once whoever uses it has been told."""
    trees = writable(document)
    if trees:
        tell(trees, import_path)
        files = document["files"]
        files["hold"] = sorted({*(files.get("hold") or ()), *held(trees)})
    return document
