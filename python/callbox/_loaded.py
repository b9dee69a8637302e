# SPDX-License-Identifier: MIT
"""From where this program takes what it runs: modules that are loaded, directories that it imports from,
its interpreter and libraries, each with the links that lead there."""

from __future__ import annotations

import importlib.machinery
import os
import site
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from . import _late
from ._native import functions_program, warden_program

CUSTOM = ("sitecustomize", "usercustomize")  # which Python imports by itself
CACHE = "__pycache__"
EXTENSIONS = importlib.machinery.EXTENSION_SUFFIXES
SUFFIXES = importlib.machinery.all_suffixes()
INSTALLED = ("site-packages", "dist-packages")
LINKS_MAX = 40


def is_in(path: str, tree: str) -> bool:
    return path == tree or path.startswith(tree.rstrip("/") + "/")


# ---- Links ----


class Ways:
    """Where paths lead, at some moment."""

    def __init__(self) -> None:
        self._targets: Dict[str, Optional[str]] = {}
        self._known: Dict[str, Tuple[Tuple[str, ...], str]] = {}

    def _target(self, place: str) -> Optional[str]:
        if place not in self._targets:
            try:
                self._targets[place] = os.readlink(place)
            except (OSError, ValueError):
                self._targets[place] = None
        return self._targets[place]

    def follow(self, path: str) -> Tuple[Tuple[str, ...], str]:
        """The links on the way, each by a path without links, and what they lead to."""
        path = os.path.join(here(), path)
        if path not in self._known:
            self._known[path] = self._walk(path)
        return self._known[path]

    def _walk(self, path: str) -> Tuple[Tuple[str, ...], str]:
        at, left = "", path.split("/")[::-1]
        links: List[str] = []
        while left and len(links) <= LINKS_MAX:
            name = left.pop()
            if name in ("", "."):
                continue
            if name == "..":
                at = at.rpartition("/")[0]
                continue
            target = self._target(f"{at}/{name}")
            if target is None:
                at = f"{at}/{name}"
                continue
            links.append(f"{at}/{name}")
            at = "" if target.startswith("/") else at
            left += target.split("/")[::-1]
        return tuple(links), at or "/"


def here() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return "/"


# ---- What is loaded ----


class Module(NamedTuple):
    """`kind`: "module"; "package", whose file is that of its __init__; "namespace", a directory without
    one; "file", which is found by its path alone; "tree", which is wanted with all that is in it."""

    kind: str
    file: str

    def names(self, few: int = 0) -> List[str]:
        """What Python would take instead of this, or as well: itself, what wins over it in its directory,
        and what was compiled. `few`: 1 without extensions, 2 nothing but itself."""
        folder, base = os.path.split(self.file)
        if self.kind in ("file", "tree") or few == 2 and self.kind != "namespace":
            return [self.file]
        if self.kind == "namespace":
            inner = [os.path.join(self.file, "__init__" + suffix) for suffix in SUFFIXES]
            return inner + [self.file + suffix for suffix in SUFFIXES]
        stem = os.path.join(folder, base.partition(".")[0])
        names = [self.file, os.path.join(folder, CACHE)]
        if self.kind == "module" and os.path.isdir(stem):  # of data: a package would win over the module
            names += [os.path.join(stem, "__init__" + suffix) for suffix in SUFFIXES]
        elif self.kind == "module":
            names.append(stem)
        if not few:
            names += [stem + suffix for suffix in EXTENSIONS]
        if not base.endswith((".py", *EXTENSIONS)):
            names.append(stem + ".py")
        return names


def custom_names(folder: str) -> List[str]:
    return [os.path.join(folder, stem + suffix) for stem in CUSTOM for suffix in ("", *SUFFIXES)]


def _paths(module: Any) -> List[str]:
    """Of a package. It may be anything that somebody has put there."""
    try:
        return [path for path in list(getattr(module, "__path__", None) or ()) if isinstance(path, str)]
    except Exception:
        return []


def _file(module: Any) -> Optional[str]:
    try:
        file = getattr(module, "__file__", None)
    except Exception:
        return None
    return file if isinstance(file, str) and file else None


def _modules() -> List[Tuple[str, Module, List[str]]]:
    """With their names and, of packages, the directories of their modules."""
    found = []
    for name, module in list(sys.modules.items()):
        file, paths = _file(module), _paths(module)
        if name == "__main__":
            spec = getattr(module, "__spec__", None)
            name = getattr(spec, "name", None) or name
            if spec is None and file:
                found.append(("", Module("file", file), paths))
                continue
        if file and os.path.basename(file).startswith("__init__."):
            found.append((name, Module("package", file), paths))
        elif file:
            found.append((name, Module("module", file), paths))
        else:
            found += [(name, Module("namespace", path.rstrip("/") or "/"), [path]) for path in paths]
    return found


def _libraries() -> Set[str]:
    """Files that are mapped into this process: libcallbox is one of them."""
    try:
        with open("/proc/self/maps", "rb") as stream:
            lines = stream.read().split(b"\n")
    except OSError:
        return set()
    fields = (line.split(None, 5) for line in lines)
    return {os.fsdecode(found[5]) for found in fields if len(found) == 6 and found[5].startswith(b"/")}


def _places() -> List[str]:
    """Held as they are, with all that is in them."""
    found: List[Any] = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix, *_late.places()]
    found += [os.environ.get("VIRTUAL_ENV"), *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        found.append(site.getusersitepackages())
    found += [entry for entry in sys.path if os.path.basename(entry) in INSTALLED]
    found += [entry for entry in sys.path if os.path.isfile(entry)]  # an archive
    found += [sys.executable, getattr(sys, "_base_executable", None)]
    found += [warden_program(), functions_program(), sys.pycache_prefix]
    found += [os.environ.get("CALLBOX_WARDEN"), os.environ.get("CALLBOX_FUNCTIONS")]
    return [path for path in found if path]


# ---- What others will load ----

_wanted: Dict[Module, None] = {}


def want(specs: Sequence[Any]) -> None:
    """A module that an interpreter in a box will load, and this program has not: its spec, after those of
    the packages that it is in. Of a package all is held: what it loads itself is not known here."""
    for number, spec in enumerate(specs, 1):
        file = spec.origin if spec.has_location else None
        if number == len(specs) and spec.submodule_search_locations is not None:
            _wanted.update((Module("tree", path), None) for path in spec.submodule_search_locations)
        elif file:
            _wanted[Module("module" if number == len(specs) else "package", file)] = None


# ---- All of it ----


def generation() -> Tuple[Any, ...]:
    """Another one, when there may be more to hold. It costs little to ask: what is loaded again under its
    name comes last among the modules, so their order tells."""
    names = tuple(sys.modules)
    last = id(sys.modules.get(names[-1]))
    where = here() if "" in sys.path else ""
    return names, last, tuple(sys.path), where, sys.pycache_prefix, len(sys.path_importer_cache), len(_wanted)


class Loaded:
    """What was found at some moment, and does not change. `places`: held as they are. `modules`: each
    without links. `links`: on the way to any of it. `entries`: directories that are imported from.
    `packages`: those of packages, all of which is imported from."""

    def __init__(self, at: Tuple[Any, ...]) -> None:
        self.at = at
        self.modules: Set[Module] = set()
        self.links: Set[str] = set()
        ways = Ways()

        def real(path: str) -> str:
            links, found = ways.follow(path)
            self.links.update(links)
            return found

        def add(module: Module) -> None:
            """Without links on the way; a file that is one is held, and so is what it leads to."""
            folder, base = os.path.split(module.file)
            place = os.path.join(real(folder or os.curdir), base)
            self.modules.add(module._replace(file=place))
            self.modules.add(module._replace(file=real(place)))

        entries = [entry or os.curdir for entry in (*sys.path, *sys.path_importer_cache) if isinstance(entry, str)]
        packages: Set[str] = set()
        for name, module, paths in _modules():
            add(module)
            packages.update(paths)
            if name and "." not in name and module.kind == "module":
                entries.append(os.path.dirname(module.file))
        for file in _libraries():
            add(Module("file", file))
        for module in list(_wanted):
            add(module)
        places = [os.path.split(place) for place in _places()]
        self.places: List[str] = [os.path.join(real(folder), base) for folder, base in places]
        self.places += [real(place) for place in self.places]
        self.packages: Set[str] = {real(path) for path in packages}
        self.entries: List[str] = list(dict.fromkeys([*map(real, entries), *sorted(self.packages)]))


_last: Optional[Loaded] = None


def look() -> Loaded:
    """As it is now."""
    global _last
    now = generation()
    found = _last
    if found is None or found.at != now:
        found = _last = Loaded(now)
    return found
