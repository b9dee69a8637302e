# SPDX-License-Identifier: MIT
"""What a box may see, reach and use."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from . import _capabilities, _channel, _inputs
from ._error import CallboxError
from ._late import difflib
from ._native import native

if TYPE_CHECKING:
    from ._native import Warden

PathRule = Union[str, "os.PathLike[str]", Tuple[Any, str], Mapping[str, str]]


def _rule(rule: PathRule) -> Any:
    """A path, (host, place in the box), or the object of the JSON form. Relative paths of the host
    are meant from here and now."""
    host: Any
    if isinstance(rule, Mapping):
        host, box = rule["host"], rule.get("box")
    elif isinstance(rule, tuple):
        host, box = rule
    else:
        host, box = rule, None
    host = os.path.abspath(os.fspath(host))
    return {"host": host, "box": box} if box is not None else host


def _absolute(files: Mapping[str, Any]) -> Dict[str, Any]:
    """The same, with every path of the host from here and now on."""
    made = dict(files)
    for name in ("read", "write", "hide", "hold"):
        if name in made:
            made[name] = [_rule(rule) for rule in made[name]]
    if made.get("workspace") is not None:
        made["workspace"] = _rule(made["workspace"])
    return made


def _rules(rules: Union[PathRule, Iterable[PathRule]], name: str) -> List[Any]:
    if isinstance(rules, (str, os.PathLike, Mapping)):
        raise TypeError(f"{name} must be a list of paths")
    return [_rule(rule) for rule in rules]


def _environment(given: Union[Mapping[str, Optional[str]], Sequence[str]]) -> Dict[str, Any]:
    if isinstance(given, str):
        raise TypeError("environment must be a list of names, or a dict")
    if not isinstance(given, Mapping):
        return {"pass": list(given)}
    return {
        "pass": [name for name, value in given.items() if value is None],
        "set": {name: value for name, value in given.items() if value is not None},
    }


OWN = (
    "read",
    "write",
    "workspace",
    "hide",
    "tmpfs",
    "protect",
    "hold",
    "network",
    "environment",
    "limits",
    "import_path",
)
OTHERS = ("version", "box", "system", "files", "syscalls", "require", "best_effort")


def _check_names(given: Iterable[str]) -> None:
    """By the names that are known here: those of the JSON form have other places."""
    for name in given:
        if name not in OTHERS:
            close = difflib.get_close_matches(name, (*OWN, *OTHERS), 1)
            meant = f'; did you mean "{close[0]}"?' if close else ""
            hint = f"known here are: {', '.join((*OWN, *OTHERS))}"
            raise CallboxError(f'unknown key "{name}"{meant}', name, hint)


class Policy:
    """A frozen policy; without arguments the default one, which is safe.

    read, write     paths to show, read-only or writable: each a path, or (path, place in the box)
    workspace       one writable directory, in which the program starts
    hide, tmpfs     paths to cover; empty private directories
    hold            paths that no box may change, wherever else it may write; they need not exist
    network         "none", "loopback" or "host"
    environment     names to pass on, or a dict of values (None: passed on)
    limits          as in callbox-policy(5): {"wall": 10, "memory": "256M"}
    import_path     what is done where a box may write to a directory of sys.path: "warn", "refuse" or
                    "allow"; as CALLBOX_IMPORT_PATH says, else "warn"
    others          the other keys of callbox-policy(5): box, system, syscalls, require, best_effort
    """

    __slots__ = ("_native", "_json", "_import_path", "_ready", "_trees")

    def __init__(
        self,
        *,
        read: Iterable[PathRule] = (),
        write: Iterable[PathRule] = (),
        workspace: Optional[PathRule] = None,
        hide: Iterable[Union[str, "os.PathLike[str]"]] = (),
        tmpfs: Iterable[Any] = (),
        protect: Optional[Iterable[str]] = None,
        hold: Iterable[Union[str, "os.PathLike[str]"]] = (),
        network: str = "none",
        environment: Union[Mapping[str, Optional[str]], Sequence[str]] = (),
        limits: Optional[Mapping[str, Any]] = None,
        import_path: Optional[str] = None,
        **others: Any,
    ) -> None:
        _check_names(others)
        files: Dict[str, Any] = {
            "read": _rules(read, "read"),
            "write": _rules(write, "write"),
            "hide": _rules(hide, "hide"),
            "tmpfs": list(tmpfs),
        }
        if workspace is not None:
            files["workspace"] = _rule(workspace)
        if protect is not None:
            files["protect"] = list(protect)
        held = _rules(hold, "hold")
        if held:
            files["hold"] = held
        document = {
            "files": files,
            "network": network,
            "environment": _environment(environment),
            "limits": dict(limits or {}),
            **others,
        }
        made = None if _channel.boxed else native.Policy(json.dumps(document))
        self._set(made, import_path, None if "files" in others else files)

    def _set(self, made: Any, import_path: Optional[str], files: Optional[Dict[str, Any]] = None) -> None:
        """`files`: of its JSON form, where they are known and all absolute. What its paths lead to now is
        what they mean, here as in the library."""
        self._native: Any = made
        self._json: Optional[str] = None
        self._import_path = _inputs.check_word(import_path)
        self._ready: Any = None
        self._trees: List[str] = []
        if made is None:
            return
        if files is None:
            files = self.to_dict()["files"]
            plain = _absolute(files)
            if plain != files:
                self._native, self._json = made.changed("files", json.dumps(plain)), None
            files = plain
        self._trees = _inputs.writable(files)

    def _workspace(self) -> Optional[str]:
        """Where it is in the box."""
        rule = self.to_dict()["files"].get("workspace")
        place: Optional[str] = rule.get("box") or rule["host"] if isinstance(rule, dict) else rule
        return place

    def _with(self, document: Mapping[str, Any]) -> Policy:
        """Another one, by its whole JSON form; but its paths mean what they mean here."""
        made, known = self._native, self.to_dict()
        for name, value in document.items():
            if value != known.get(name):
                made = made.changed(name, json.dumps(value))
        policy = Policy.__new__(Policy)
        policy._set(made, self._import_path)
        return policy

    @classmethod
    def from_json(
        cls, document: Union[str, bytes, Mapping[str, Any]], *, import_path: Optional[str] = None
    ) -> Policy:
        """From JSON text, or what json.load made of it."""
        policy = cls.__new__(cls)
        if isinstance(document, bytes):
            document = document.decode()
        text = document if isinstance(document, str) else json.dumps(document)
        policy._set(None if _channel.boxed else native.Policy(text), import_path)
        return policy

    def _for_use(self) -> Any:
        """As the library takes it, with what tells this program what to do held (_inputs.py): as it is
        now, since modules may have been loaded after the last call."""
        if not self._trees:
            return self._native
        now = _inputs.generation()
        ready = self._ready
        if ready is None or ready[0] != now:
            own = self.to_dict()["files"].get("hold") or []
            held = _inputs.to_hold(self._trees, self._import_path, own)
            made = self._native if ready is None else ready[2]
            if held != (own if ready is None else ready[1]):
                made = made.changed("files.hold", json.dumps(held))
            self._ready = ready = (now, held, made)
        return ready[2]

    def to_json(self) -> str:
        """The effective policy, with every default spelled out."""
        if self._json is None:
            self._json = str(self._native.print())
        return self._json

    def to_dict(self) -> Dict[str, Any]:
        document = json.loads(self.to_json())
        assert isinstance(document, dict)
        return document

    def capabilities(self, *, warden: Optional[Warden] = None) -> _capabilities.Capabilities:
        """Every guarantee of calls under this policy, here, before there is one."""
        return _capabilities.capabilities(self, warden=warden)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policy) and hash(self) == hash(other)

    def __hash__(self) -> int:
        return hash(self._native.hash())

    def __repr__(self) -> str:
        return f"Policy.from_json({self.to_json()!r})"
