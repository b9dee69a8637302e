# SPDX-License-Identifier: MIT
"""The client of a container engine, run with an input and a time, of whose output only so much is kept."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import threading
import time
from typing import Any, List, NamedTuple, Optional

PIECE = 64 * 1024


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


class _Kept:
    """The beginning of a stream."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.data = bytearray()

    def add(self, data: bytes) -> None:
        self.data += data[: max(0, self.most - len(self.data))]

    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


def _feed(stream: Any, data: bytes) -> None:
    try:
        with stream:
            stream.write(data)
    except OSError:
        pass  # it has ended before it had read all


def _read(process: Any, kept: List[_Kept], until: Optional[float]) -> None:
    with selectors.DefaultSelector() as ready:
        for stream, keep in zip((process.stdout, process.stderr), kept):
            ready.register(stream, selectors.EVENT_READ, keep)
        while ready.get_map():
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                raise subprocess.TimeoutExpired(process.args, 0)
            for key, _ in ready.select(left):
                data = os.read(key.fd, PIECE)
                key.data.add(data)
                if not data:
                    ready.unregister(key.fileobj)


def run(words: List[str], *, input: bytes, timeout: Optional[float], output: int, errors: int) -> Done:
    """Raises subprocess.TimeoutExpired, and OSError where there is no such program. Whatever is raised, the
    client has ended; what it has asked the engine for may not have."""
    until = None if timeout is None else time.monotonic() + timeout
    kept = [_Kept(output), _Kept(errors)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, start_new_session=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            threading.Thread(target=_feed, args=(process.stdin, input), daemon=True).start()
            _read(process, kept, until)
            process.wait(None if until is None else max(0.1, until - time.monotonic()))
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return Done(process.returncode, kept[0].text(), kept[1].text())
