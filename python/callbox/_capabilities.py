# SPDX-License-Identifier: MIT
"""What is enforced here, asked before there is a call: what the library's cbx_capabilities and cbx_backends
say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, List, Mapping, NamedTuple, Optional

from . import _channel
from ._error import CallboxError, no_policy
from ._native import Warden, default_warden, native

if TYPE_CHECKING:
    from ._policy import Policy

__all__ = ["Backend", "Capabilities", "Capability", "backends", "capabilities"]


class Capability(NamedTuple):
    """A guarantee: `by` says by what it is enforced, or why it is not; `fix` how to get it then."""

    name: str
    enforced: bool
    by: str
    required: bool
    fix: str


class Capabilities(NamedTuple):
    """`met`: what the policy requires is enforced, so that it does not refuse calls."""

    backend: str
    met: bool
    guarantees: List[Capability]
    warnings: List[str]

    def of(self, name: str) -> Capability:
        """The guarantee of that name."""
        for item in self.guarantees:
            if item.name == name:
                return item
        raise KeyError(name)


class Backend(NamedTuple):
    """What calls can be run by: `why` and `fix` where it is not available; `uses` is what "auto" stands for."""

    name: str
    available: bool
    why: str
    fix: str
    uses: str
    guarantees: List[Capability]


def _listed(items: List[Mapping[str, Any]]) -> List[Capability]:
    return [Capability(i["name"], i["enforced"], i["by"], i["required"], i["fix"]) for i in items]


def _ask(warden: Optional[Warden]) -> Any:
    if _channel.boxed:
        raise CallboxError("there are no boxes in a box", "warden")
    return (warden or default_warden())._native


def capabilities(policy: Optional[Policy] = None, *, warden: Optional[Warden] = None) -> Capabilities:
    """Every guarantee of calls under this policy, here, as their reports will list it."""
    if policy is not None and not hasattr(policy, "_for_use"):  # to import the class would be a circle
        raise no_policy(policy)
    asked = _ask(warden)
    found = json.loads(asked.capabilities(native.Policy("{}") if policy is None else policy._for_use()))
    return Capabilities(found["backend"], found["met"], _listed(found["guarantees"]), list(found["warnings"]))


def backends(*, warden: Optional[Warden] = None) -> List[Backend]:
    """What there is, "auto", "namespaces", "landlock" and "host": whether each can be used here, and what it keeps."""
    return [
        Backend(
            item["name"],
            item["available"],
            item.get("why", ""),
            item.get("fix", ""),
            item.get("uses", item["name"]),
            _listed(item.get("guarantees", [])),
        )
        for item in json.loads(_ask(warden).backends())
    ]
