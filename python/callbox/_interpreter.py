# SPDX-License-Identifier: MIT
"""An interpreter in a box that is like the one that runs here: what has to be shown of the host, and
how it is started.

A box starts the same program, with the same sys.path, and _start.py in it: a zygote, from which the
boxes of calls are forked, or an interpreter for one call. Its arguments name the module of the function, which is loaded before
there is a call, and the module's file: when that has changed on the host, the interpreter is started
anew. Which function is meant comes with the call.
"""

from __future__ import annotations

import base64
import inspect
import json
import os
import site
import sys
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence
from typing import Tuple

from . import _inputs, _late
from ._error import CallboxError
from ._inputs import is_in
from ._installed import SYSTEM, spelled, trees_of
from ._loaded import want
from ._places import is_top, shows_too_much
from ._policy import Policy

if TYPE_CHECKING:
    from . import _by_value
else:
    _by_value = _late.Late(f"{__package__}._by_value")

REMADE = f"{__package__}._remade"  # what a function by value needs in its box
PACKAGE = os.path.dirname(os.path.realpath(__file__))
# Beside a program, and not for its tools unless the policy names them; and whatever begins with .env.
SECRETS = (".git", ".ssh", ".aws", ".gnupg", ".kube", ".docker", ".netrc", ".npmrc", ".pypirc", ".git-credentials")

VALUE_MAX = 600_000  # bytes of a function by value: it is a part of its manifest


class Start(NamedTuple):
    """How a function is run: what the box starts, what it is told, and what it must see."""

    argv: List[str]
    line: str
    show: List[str]

    def run(self) -> Dict[str, Any]:
        """As a manifest says it."""
        return {"server": self.argv, "function": self.line, "forks": True}


def search_path() -> List[str]:
    """sys.path as it is now, links resolved; nothing but what is there."""
    found: List[str] = []
    for entry in sys.path:
        path = os.path.realpath(entry or os.getcwd())
        if os.path.exists(path) and path not in found:
            found.append(path)
    return found


def program() -> str:
    """The interpreter, by the name that lets it find its virtual environment."""
    if not sys.executable:
        raise CallboxError("this program has no interpreter that a box could start", "sys.executable")
    return spelled(sys.executable)


def _trees(path: Iterable[str]) -> List[str]:
    """What to show: the interpreter, its library, the search path and this package."""
    real = os.path.realpath(program())
    own = [*trees_of(program()), program(), real, PACKAGE]
    if site.ENABLE_USER_SITE and site.getusersitepackages() in sys.path:
        own.append(os.path.realpath(site.getusersitepackages()))
    wanted = [item for item in own if not is_top(item)] + [item for item in path if not shows_too_much(item)]
    kept: List[str] = []
    for item in wanted:
        known = any(is_in(item, tree) for tree in (*SYSTEM, *kept))
        if os.path.exists(item) and not known:
            kept = [tree for tree in kept if not is_in(tree, item)] + [item]
    return kept


def _secrets(tree: str) -> List[str]:
    """What lies at the top of a shown directory and is not for tools, however they got there."""
    try:
        names = os.listdir(tree)
    except OSError:
        return []
    return [os.path.join(tree, n) for n in sorted(names) if n in SECRETS or n.startswith(".env")]


def add_to_policy(policy: Policy, show: Iterable[str]) -> Policy:
    """The policy with more to read, but for secrets beside a program. What it speaks of itself stays as
    it says."""
    document = policy.to_dict()
    files = document.setdefault("files", {})
    rules = [*files.get("read", []), *files.get("write", [])]
    if files.get("workspace") is not None:
        rules.append(files["workspace"])
    shown = []
    for rule in rules:
        host, box = (rule["host"], rule.get("box")) if isinstance(rule, dict) else (rule, None)
        if box is None or box == host:
            shown.append(os.path.realpath(host))
    system = SYSTEM if document.get("system", True) else ()
    more = [p for p in show if not any(is_in(p, tree) for tree in (*shown, *system))]
    files["read"] = files.get("read", []) + [{"host": p, "box": p} for p in more]
    hidden = [path for tree in more for path in _secrets(tree) if path not in shown]
    files["hide"] = files.get("hide", []) + [p for p in hidden if p not in files.get("hide", [])]
    return policy._with(document)


def _changed_at(tree: str) -> Tuple[int, ...]:
    try:
        facts = os.stat(tree)
    except OSError:
        return ()
    return (facts.st_dev, facts.st_ino, facts.st_mtime_ns)


class Surroundings:
    """A policy with more to read, and whether it would still be the same: secrets may have come to lie
    beside a program, and modules may have been loaded that are to be held."""

    def __init__(self, policy: Policy, show: Iterable[str]) -> None:
        self._show = list(show)
        self._base = policy
        self._hidden = self._secrets()
        self.policy = add_to_policy(policy, self._show)
        self._seen = self._facts()
        self.native = self.policy._for_use()

    def _secrets(self) -> List[str]:
        return [path for tree in self._show for path in _secrets(tree)]

    def _facts(self) -> Any:
        return _inputs.generation(), [_changed_at(tree) for tree in self._show]

    def is_current(self) -> bool:
        return bool(self._seen == self._facts())

    def look(self) -> bool:
        """Whether it has become another."""
        self._seen = self._facts()
        hidden, last = self._secrets(), self.native
        if hidden != self._hidden:
            self._hidden, self.policy = hidden, add_to_policy(self._base, self._show)
        self.native = self.policy._for_use()
        return self.native is not last


def _package_of(module: str, file: str) -> str:
    """The folder of the package that a module's file belongs to; the file itself if to none."""
    depth = module.count(".") + (os.path.basename(file).startswith("__init__."))
    folder = file
    for _ in range(depth):
        folder = os.path.dirname(folder)
    return file if shows_too_much(folder) else folder


def library_path() -> List[str]:
    """Of the search path what is installed, without the program's own directories."""
    roots = {os.path.realpath(r) for r in (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)}
    trees = (*SYSTEM, *roots, os.path.dirname(PACKAGE))
    parts = ("site-packages", "dist-packages")
    return [p for p in search_path() if any(is_in(p, t) for t in trees) or os.path.basename(p) in parts]


def _ask_finders(name: str, path: Optional[Sequence[str]]) -> Any:
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        try:
            spec = find(name, path) if find is not None else None
        except Exception:
            continue  # a finder that does not know it
        if spec is not None:
            return spec
    return None


def _find_specs(name: str, path: Optional[Sequence[str]]) -> List[Any]:
    """How an interpreter with this search path would load a module, after the packages that it is in;
    without loading anything here."""
    found: List[Any] = []
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        spec = _ask_finders(".".join(parts[:depth]), path) if all(parts) else None
        if spec is None:
            return []
        path = spec.submodule_search_locations or []
        found.append(spec)
    return found


def find_modules(names: Iterable[str], path: Optional[Sequence[str]] = None) -> Dict[str, str]:
    """Modules that somebody wants loaded before there is a call, each with its file, or "" where it has
    none. `path`: where they are looked for; None: sys.path."""
    if isinstance(names, (str, bytes)):
        raise TypeError('modules must be a list of names: ["numpy"]')
    found: Dict[str, str] = {}
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"modules must be names, not {type(name).__name__}: {name!r}")
        specs = _find_specs(name, path)
        if not specs:
            raise CallboxError(
                f"there is no module {name!r}", "modules", "install it, or correct its name"
            )
        want(specs)
        spec = specs[-1]
        found[name] = os.path.realpath(spec.origin) if spec.has_location and spec.origin else ""
    return found


def serve(
    module: str,
    line: str,
    file: Optional[str] = None,
    path: Optional[List[str]] = None,
    modules: Optional[Mapping[str, str]] = None,
    start: Optional[str] = None,
) -> Start:
    """An interpreter that has loaded a module, which is in a file of the host, and `modules` before it,
    as find_modules() has found them. `start`: the directory in which calls begin;
    "": one of the box's own."""
    path = search_path() if path is None else path
    config: Dict[str, Any] = {"module": module, "path": path}
    if start is not None:
        config["start"] = start
    files = dict(modules or {})
    if files:
        config["also"] = list(files)
    argv = [program(), "-I", "-B", os.path.join(PACKAGE, "_start.py"), json.dumps(config, sort_keys=True)]
    if file:
        files[module] = os.path.realpath(file)
        argv.append(files[module])
    show = _trees(path)
    for name, place in files.items():
        # An import hook may have found it elsewhere than along the path.
        if place and not any(is_in(place, tree) for tree in (*SYSTEM, *show)):
            show.append(_package_of(name, place))
    return Start(argv, line, show)


# ---- Functions ----


def _find(module: Any, qualname: str) -> Any:
    found = module
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found


def _file_of(module: Any) -> Optional[str]:
    """Where another interpreter would load it from; None: nowhere."""
    if module is None or module.__name__ == "__main__":
        return None
    spec = getattr(module, "__spec__", None)
    file = getattr(module, "__file__", None)
    if spec is None or not spec.has_location:
        return "" if getattr(spec, "origin", None) in ("built-in", "frozen") else None
    return file if file and os.path.exists(file) else None


def _is_importable(name: str) -> bool:
    """Would another interpreter find it? It may have been put into sys.modules by hand."""
    above, _, _ = name.rpartition(".")
    path = getattr(sys.modules.get(above), "__path__", None) if above else None
    return _ask_finders(name, path) is not None


def why_not_by_name(function: Callable[..., Any]) -> str:
    """Why a box could not import it; empty: it can."""
    qualname = getattr(function, "__qualname__", None)
    name = getattr(function, "__module__", None)
    if not qualname or not name:
        return "has no name of its own"
    if "<lambda>" in qualname:
        return "is a lambda"
    if "<locals>" in qualname:
        return "is defined within a function"
    if name == "__main__":
        return "is defined in the main program, which a box does not run again"
    module = sys.modules.get(name)
    if _file_of(module) is None:
        return f"is in the module {name}, which was not loaded from a file"
    if not _is_importable(name):
        return f"is in the module {name}, which cannot be imported by that name"
    found = _find(module, qualname)
    if found is not function and found != function:
        # A decorator that wraps it gives its name to what it returns.
        if not callable(found) or inspect.unwrap(found) is not inspect.unwrap(function):
            return f"is not what {name}.{qualname} is"
    return ""


def start_of(
    function: Callable[..., Any], name: str, modules: Optional[Mapping[str, str]] = None, start: Optional[str] = None
) -> Start:
    """By its name where it has one; else by value, into the box. `start`: the directory in which it begins."""
    why = why_not_by_name(function)
    if not why:
        file = _file_of(sys.modules[function.__module__])
        line = json.dumps({"name": f"{function.__module__}:{function.__qualname__}"})
        return serve(function.__module__, line, file, modules=modules, start=start)
    try:
        value = _by_value.dumps(function)
    except Exception as error:
        raise CallboxError(
            f"it {why}, and cannot be sent by value either: {error}",
            name,
            "define it at the top of a module that can be imported",
        ) from None
    if len(value) > VALUE_MAX:
        raise CallboxError(
            f"it {why}, and is {len(value)} bytes by value, with all that it refers to; {VALUE_MAX} is "
            f"the most",
            name,
            "give it its data as an argument or by a file, or define it at the top of a module",
        )
    line = json.dumps({"value": base64.b64encode(value).decode()})
    return serve(REMADE, line, modules=modules, start=start)
