# SPDX-License-Identifier: MIT
"""What came of a call."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional

from ._late import datetime
from ._parts import Parts

if TYPE_CHECKING:
    from ._callbox import RawReport

KEPT_AS_TEXT = 16 * 1024  # a report of that size is read when somebody asks for it


@dataclasses.dataclass(frozen=True)
class Denial:
    """An operation that was refused."""

    kind: str
    what: str
    error: str
    count: int
    allow: str  #: the option of ``callbox run`` that allows it; may be empty
    policy: str = ""  #: the line of a policy that does; may be empty
    note: str = ""  #: why there is neither; may be empty


class Guarantee(NamedTuple):
    """One named thing that was enforced, or not, and by what."""

    name: str
    enforced: bool
    by: str


class Report:
    """`ok`: the program exited with code 0. `reason` says why the call ended: "exited", "signaled",
    "timeout", "cpu", "memory", "pids", "output", "denied", "cancelled", "setup" or "internal"."""

    def __init__(self, raw: RawReport) -> None:
        text, self.stdout_bytes, self.stderr_bytes, self._told, self._output, parts, fd = raw
        self._parts = Parts(parts, fd)
        self._text = text  # or what makes it, when somebody asks for it
        self._json: Optional[Dict[str, Any]] = None
        if isinstance(text, str) and len(text) > KEPT_AS_TEXT:
            self._read()

    def __getstate__(self) -> Dict[str, Any]:
        return {**vars(self), "_text": str(self._text)}

    def _read(self) -> Dict[str, Any]:
        read: Dict[str, Any] = json.loads(str(self._text))
        if self._told and self._told[0]:
            read["tool"].pop("output", None)  # it may be large, and is kept once
        self._json, self._text = read, ""
        return read

    @property
    def json(self) -> Dict[str, Any]:
        """The whole report, as the schema has it; of a tool that did well, without its output."""
        return self._read() if self._json is None else self._json

    @property
    def reason(self) -> str:
        return str(self.json["reason"])

    @property
    def code(self) -> Optional[int]:
        code: Optional[int] = self.json["code"]
        return code

    @property
    def signal(self) -> Optional[str]:
        """The name of the signal that ended the program."""
        signal: Optional[str] = self.json["signal"]
        return signal

    @property
    def text(self) -> str:
        """One sentence on why the call ended."""
        return str(self.json["text"])

    @property
    def ok(self) -> bool:
        return self.reason == "exited" and self.code == 0

    @property
    def id(self) -> Optional[str]:
        return self.json.get("id")

    @property
    def stdout(self) -> str:
        """What the program wrote, as text; bytes that are no UTF-8 are replaced."""
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        return self.stderr_bytes.decode("utf-8", "replace")

    @property
    def truncated(self) -> bool:
        """Whether the middle of a stream is missing."""
        return any(self.json.get(name, {}).get("truncated") for name in ("stdout", "stderr"))

    @property
    def started_at(self) -> datetime.datetime:
        return datetime.datetime.fromisoformat(self.json["started_at"].replace("Z", "+00:00"))

    @property
    def setup_time(self) -> float:
        """Seconds until the program was started."""
        return float(self.json["time"]["setup_ms"]) / 1000

    @property
    def run_time(self) -> float:
        """Seconds from there until it ended."""
        return float(self.json["time"]["run_ms"]) / 1000

    @property
    def cpu_time(self) -> float:
        usage = self.json["usage"]
        return (float(usage["cpu_user_ms"]) + float(usage["cpu_system_ms"])) / 1000

    @property
    def memory_peak(self) -> int:
        return int(self.json["usage"]["memory_peak"])

    @property
    def denials(self) -> List[Denial]:
        return [
            Denial(
                item["kind"],
                item["what"],
                item["errno"],
                item["count"],
                item.get("allow") or "",
                item.get("policy") or "",
                item.get("note") or "",
            )
            for item in self.json["denials"]
        ]

    @property
    def guarantees(self) -> List[Guarantee]:
        return [Guarantee(i["name"], i["enforced"], i["by"]) for i in self.json["guarantees"]]

    @property
    def warnings(self) -> List[str]:
        return list(self.json["warnings"])

    def __repr__(self) -> str:
        return f"<Report {self.reason}: {self.text}>"
