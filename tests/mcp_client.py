# SPDX-License-Identifier: MIT
"""A client of MCP for tests: callbox mcp on its stdin and stdout, in either era."""

import contextlib
import json
import os
import queue
import subprocess
import threading
import time

import harness
from harness import Failed, check, equal
from tooling import CALLBOX, ENVIRONMENT, SCRATCH

META = "io.modelcontextprotocol/"
MODERN, LEGACY = "2026-07-28", "2025-11-25"
TASKS = {"extensions": {META + "tasks": {}}}
FORMS = {"elicitation": {}}


def modern(capabilities=None, **more):
    """The _meta of a request of 2026-07-28."""
    return {META + "protocolVersion": MODERN, META + "clientCapabilities": capabilities or {}, **more}


def no_duplicates(pairs):
    keys = [key for key, _ in pairs]
    if len(keys) != len(set(keys)):
        raise ValueError(f"a key stands twice in {keys}")
    return dict(pairs)


def folder_of(*manifests, user=False):
    """A folder with these tools, each in the file of its name."""
    folder = SCRATCH.directory(user)
    for item in manifests:
        (folder / f"{item['name']}.json").write_text(json.dumps(item))
    return folder


class Server:
    """A running `callbox mcp`. Every line that it writes must be one message, or the test fails."""

    def __init__(self, *options, user=False, prefix=(), env=None):
        command = [*prefix, CALLBOX, "mcp", *[os.fspath(option) for option in options]]
        self.process = subprocess.Popen(harness.as_user(command) if user else command, cwd="/", env={**ENVIRONMENT, **(env or {})},
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.serial = 0
        self.lines = queue.Queue()
        self.kept = []
        self.errors = b""
        self.readers = [threading.Thread(target=reader, daemon=True) for reader in (self._read, self._read_errors)]
        for reader in self.readers:
            reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def _read_errors(self):
        self.errors = self.process.stderr.read()

    def write(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        self.write(json.dumps(message).encode() + b"\n")

    def read(self, timeout=20.0):
        """The next message; None at the end."""
        try:
            line = self.lines.get(timeout=timeout * harness.SLOW)
        except queue.Empty:
            raise Failed(f"no message after {timeout * harness.SLOW:g} s")
        if line is None:
            return None
        try:
            message = json.loads(line, object_pairs_hook=no_duplicates)
        except ValueError as error:
            raise Failed(f"{line[:200]!r} is no message: {error}")
        check(isinstance(message, dict) and message.get("jsonrpc") == "2.0", lambda: f"{line[:200]!r} is no message")
        check(line.endswith(b"\n") and line.count(b"\n") == 1, "a message is one line")
        return message

    def ask(self, method, params=None, id=None, **meta):
        """Send a request and return its id. `meta` None: none at all."""
        self.serial += 1
        id = self.serial if id is None else id
        params = dict(params or {})
        if meta:
            params["_meta"] = {**params.get("_meta", {}), **meta}
        self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return id

    def answer(self, id, timeout=20.0):
        """The response to a request, and the messages that came before it and belong to no other response."""
        before = []
        for message in self.kept:
            if message.get("id") == id and "method" not in message:
                self.kept.remove(message)
                return message, before
        for _ in range(100000):
            message = self.read(timeout)
            check(message is not None, lambda: f"the server ended: {self.errors[-300:]!r}")
            if "method" not in message and message.get("id") == id:
                return message, before
            (before if "method" in message else self.kept).append(message)
        raise Failed("too many messages")

    def request(self, method, params=None, timeout=20.0, **meta):
        """The answer to a request of 2026-07-28."""
        return self.answer(self.ask(method, params, **modern(**meta)), timeout)[0]

    def result(self, method, params=None, **meta):
        answer = self.request(method, params, **meta)
        check("result" in answer, lambda: f"{method} failed: {answer}")
        return answer["result"]

    def error(self, method, params=None, **meta):
        answer = self.request(method, params, **meta)
        check("error" in answer, lambda: f"{method} did not fail: {str(answer)[:500]}")
        return answer["error"]

    def call(self, name, arguments=None, **meta):
        """What came of a tool."""
        return self.result("tools/call", {"name": name, "arguments": arguments or {}}, **meta)

    def greet(self, version=LEGACY, capabilities=None):
        """The handshake of the older era."""
        id = self.ask("initialize", {"protocolVersion": version, "capabilities": capabilities or {},
                                     "clientInfo": {"name": "test", "version": "1"}})
        answer = self.answer(id)[0]
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer["result"]

    def old(self, method, params=None, **meta):
        """The answer to a request of the older era, and what came before it."""
        return self.answer(self.ask(method, params, **meta))

    def old_call(self, name, arguments=None, **meta):
        answer, before = self.old("tools/call", {"name": name, "arguments": arguments or {}}, **meta)
        check("result" in answer, lambda: f"{name} failed: {answer}")
        return answer["result"], before

    def close(self):
        """End its stdin and wait; how long that took."""
        began = time.monotonic()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait(timeout=20 * harness.SLOW)
        return time.monotonic() - began

    def __enter__(self):
        return self

    def __exit__(self, failed, *_):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            self.process.wait(timeout=10 * harness.SLOW)
        except subprocess.TimeoutExpired:
            harness.end(self.process)
            raise Failed("the server did not end with its stdin")
        finally:
            for reader in self.readers:
                reader.join(timeout=5)
            self.process.stdout.close()
            self.process.stderr.close()
        if not failed:
            equal(self.process.returncode, 0, f"the exit code of the server, which says {self.errors[-500:]!r},")


def text_of(result):
    """The text of a result that must have one block."""
    equal([block["type"] for block in result["content"]], ["text"], "the blocks")
    return result["content"][0]["text"]


def good(result):
    check(not result.get("isError"), lambda: f"the tool failed: {text_of(result)}")
    return text_of(result)


def bad(result):
    check(result.get("isError") is True, lambda: f"the tool did not fail: {str(result)[:500]}")
    return text_of(result)
