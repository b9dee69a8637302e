# SPDX-License-Identifier: MIT
"""A server of MCP over HTTP for tests, and clients for it: well-behaved and raw ones."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import selectors
import signal
import socket
import subprocess
import threading
import time

import harness
from harness import check, equal

MODERN = "2026-07-28"
LEGACY = "2025-11-25"
META = "io.modelcontextprotocol/"
BUILD = pathlib.Path(os.environ.get("CALLBOX_BUILD") or harness.REPO / "build")
SCRATCH = harness.Scratch()
CALLBOX = SCRATCH.install(harness.callbox_path(), "callbox")
FUNCTIONS = SCRATCH.install(BUILD / "callbox-functions")


def manifest(name, command, properties=None, **more):
    properties = properties or {}
    return {"name": name, "description": f"The tool {name}.",
            "inputSchema": {"type": "object", "properties": properties, "required": sorted(properties)},
            "run": {"command": command, **more.pop("run", {})}, **more}  # fmt: skip


TEXT = {"type": "string"}
TOOLS = [
    manifest("echo", ["printf", "%s", {"value": "{text}", "dash": True}], {"text": TEXT}),
    manifest("true", ["true"]),
    manifest("later", ["sh", "-c", "sleep 1; printf %s \"$0\"", {"value": "{text}", "dash": True}], {"text": TEXT}),
    manifest("fail", ["sh", "-c", "echo why >&2; exit 3"]),
    manifest("refused", ["cat", "/srv/nothing"]),
    manifest("sleep", ["sh", "-c", "sleep 1000; : \"$0\"", {"value": "{mark}", "dash": True}], {"mark": TEXT}),
    manifest("flood", ["sh", "-c", "yes \"$0\"", {"value": "{mark}", "dash": True}], {"mark": TEXT},
             policy={"limits": {"wall": 5, "output": "1M"}}),
    manifest("region", ["printf", "%s", {"value": "{region}", "dash": True}],
             {"region": {"type": "string", "x-mcp-header": "Region"}}),
]


def tools(extra=()):
    folder = SCRATCH.directory()
    for item in [*TOOLS, *extra]:
        (folder / f"{item['name']}.json").write_text(json.dumps(item))
    return folder


class Server:
    def __init__(self, *options, token=None, address="127.0.0.1:0", folder=None, files=None):
        command = [CALLBOX, "mcp", "--http", address, "--tools", str(folder or tools()), *map(str, options)]
        self.token = token
        if token:
            path = SCRATCH.directory() / "token"
            path.write_text(token + "\n")
            path.chmod(0o600)
            command += ["--token-file", str(path)]
        if files:
            command = ["prlimit", f"--nofile={files}", *command]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/",
                                        env={**os.environ, "CALLBOX_FUNCTIONS": FUNCTIONS})
        self.said = b""
        line = self.process.stderr.readline().decode()
        found = re.search(r"http://(\S+):(\d+)/mcp", line)
        if not found:
            harness.end(self.process)
            raise harness.Failed(f"the server did not start: {line}{self.process.stderr.read().decode()}")
        self.host, self.port = found.group(1), int(found.group(2))
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.said += line

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self, sign=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(sign)
        try:
            return self.process.wait(timeout=20 * harness.SLOW)
        finally:
            harness.end(self.process)
            self.reader.join(5)
            self.process.stdout.close()
            self.process.stderr.close()

    def memory(self):
        """KiB resident, and how many descriptors."""
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text).group(1)), len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def socket(self, timeout=20):
        return socket.create_connection(("127.0.0.1", self.port), timeout * harness.SLOW)

    def client(self, **more):
        return Client(self, **more)

    def metrics(self):
        with self.client() as client:
            answer = client.request("GET", "/metrics")
        equal(answer.status, 200, "status of /metrics")
        return answer.text


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.type = self.headers.get("content-type", "").split(";")[0]
        self.raw = response.read()
        self.text = self.raw.decode()
        self.events = []
        if self.type == "text/event-stream":
            self.events = [json.loads(line[6:]) for line in self.text.split("\n") if line.startswith("data: ") and line[6:]]
            self.message = self.events[-1] if self.events else None
        else:
            self.message = json.loads(self.text) if self.type == "application/json" and self.text else None

    @property
    def error(self):
        return (self.message or {}).get("error", {}).get("code")

    def __repr__(self):
        return f"<{self.status} {self.headers} {self.text[:400]!r}>"


class Client:
    """One connection that is kept, and the headers that a good client sends."""

    def __init__(self, server, timeout=30):
        self.server = server
        self.http = http.client.HTTPConnection("127.0.0.1", server.port, timeout=timeout * harness.SLOW)
        self.session = None
        self.id = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.http.close()

    def request(self, method, path="/mcp", body=None, headers=None):
        sent = {"Accept": "application/json, text/event-stream"}
        if self.server.token:
            sent["Authorization"] = f"Bearer {self.server.token}"
        if body is not None:
            sent["Content-Type"] = "application/json"
        sent.update(headers or {})
        self.http.request(method, path, body, {name: value for name, value in sent.items() if value is not None})
        return Answer(self.http.getresponse())

    def post(self, message, headers=None):
        return self.request("POST", "/mcp", message if isinstance(message, bytes) else json.dumps(message).encode(), headers)

    # 2026-07-28

    def modern(self, method, params=None, headers=None, meta=None, version=MODERN, request_id=None):
        """A request as it should be; `headers` change or (None) remove some."""
        self.id += 1
        params = {**(params or {}), "_meta": {f"{META}protocolVersion": version, f"{META}clientCapabilities": {}, **(meta or {})}}
        params["_meta"] = {key: value for key, value in params["_meta"].items() if value is not None}
        sent = {"MCP-Protocol-Version": version, "Mcp-Method": method}
        if method == "tools/call":
            sent["Mcp-Name"] = params.get("name")
        return self.post({"jsonrpc": "2.0", "id": request_id or self.id, "method": method, "params": params}, {**sent, **(headers or {})})

    def call(self, name, arguments=None, **more):
        return self.modern("tools/call", {"name": name, "arguments": arguments or {}}, **more)

    # 2025-11-25 and older

    def initialize(self, version=LEGACY):
        answer = self.legacy("initialize", {"protocolVersion": version, "capabilities": {},
                                            "clientInfo": {"name": "test", "version": "1"}}, session=False)  # fmt: skip
        equal(answer.status, 200, f"status of initialize ({answer})")
        self.session = answer.headers["mcp-session-id"]
        equal(self.post({"jsonrpc": "2.0", "method": "notifications/initialized"}, self.legacy_headers()).status, 202, "status")
        return answer

    def legacy_headers(self):
        return {"Mcp-Session-Id": self.session, "MCP-Protocol-Version": LEGACY}

    def legacy(self, method, params=None, headers=None, session=True):
        self.id += 1
        message = {"jsonrpc": "2.0", "id": self.id, "method": method}
        if params is not None:
            message["params"] = params
        return self.post(message, {**(self.legacy_headers() if session else {}), **(headers or {})})


def text_of(answer):
    return answer.message["result"]["content"][0]["text"]


def raw(server, data, shut=False, timeout=20):
    """Send bytes, and read until the server closes or is done with an answer."""
    with server.socket(timeout) as sock:
        with contextlib.suppress(OSError):
            sock.sendall(data)
        if shut:
            sock.shutdown(socket.SHUT_WR)
        return read_answer(sock)


def read_answer(sock):
    """(status, head, body) of one answer; None where there is none."""
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while b"\r\n\r\n" not in data:
            piece = sock.recv(65536)
            if not piece:
                return None
            data += piece
        head, body = data.split(b"\r\n\r\n", 1)
        length = re.search(rb"content-length: (\d+)", head, re.I)
        while length and len(body) < int(length.group(1)):
            piece = sock.recv(65536)
            if not piece:
                break
            body += piece
        return int(head.split()[1]), head.decode(), body
    return None


def head(server, method="POST", path="/mcp", body=b"", **headers):
    """A request as bytes."""
    fields = {"Host": f"127.0.0.1:{server.port}", "Accept": "application/json, text/event-stream",
              "Content-Type": "application/json", "Content-Length": len(body)}  # fmt: skip
    if server.token:
        fields["Authorization"] = f"Bearer {server.token}"
    fields.update({name.replace("_", "-"): value for name, value in headers.items()})
    lines = [f"{method} {path} HTTP/1.1"] + [f"{name}: {value}" for name, value in fields.items() if value is not None]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def modern_request(server, method="tools/call", params=None, number=1):
    """A good request of 2026-07-28 as bytes."""
    params = {**(params or {}), "_meta": {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}}}
    body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
    more = {"MCP_Protocol_Version": MODERN, "Mcp_Method": method}
    if "name" in params:
        more["Mcp_Name"] = params["name"]
    return head(server, body=body, **more)


def legacy_request(server, session, method="tools/call", params=None, number=1):
    body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}).encode()
    return head(server, body=body, MCP_Protocol_Version=LEGACY, Mcp_Session_Id=session)


class Fleet:
    """Many connections of one thread, each asking one request after another."""

    def __init__(self, server, connections, request):
        self.server, self.request = server, request
        self.times = []
        self.wrong = []
        self.selector = selectors.DefaultSelector()
        for _ in range(connections):
            sock = server.socket()
            sock.setblocking(False)
            self.selector.register(sock, selectors.EVENT_READ, {"began": 0, "data": b""})

    def _ask(self, key):
        key.data["began"] = time.monotonic()
        key.data["data"] = b""
        key.fileobj.send(self.request)

    def _take(self, key):
        try:
            piece = key.fileobj.recv(1 << 16)
        except OSError as error:
            piece = b""
            self.wrong.append(str(error))
        key.data["data"] += piece
        data = key.data["data"]
        if piece and not is_whole(data):
            return False
        if not piece or not data.startswith(b"HTTP/1.1 200") or b'"error"' in data or b'"isError":true' in data:
            self.wrong.append(data[:300].decode(errors="replace") or "closed")
        self.times.append(time.monotonic() - key.data["began"])
        return True

    def go(self, requests, seconds=300):
        """Ask so often, all connections together; returns the times that answers took."""
        deadline = time.monotonic() + seconds * harness.SLOW
        keys = list(self.selector.get_map().values())
        asked = 0
        for key in keys[:requests]:
            self._ask(key)
            asked += 1
        while len(self.times) < requests and not self.wrong:
            check(time.monotonic() < deadline, f"{len(self.times)} of {requests} answers after {seconds} s")
            for key, _ in self.selector.select(5):
                if self._take(key) and asked < requests:
                    self._ask(key)
                    asked += 1
        check(not self.wrong, lambda: f"{len(self.wrong)} wrong answers, the first: {self.wrong[0]}")
        return self.times

    def close(self):
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()


def is_whole(data):
    """Is this all of an answer?"""
    at = data.find(b"\r\n\r\n")
    if at < 0:
        return False
    length = re.search(rb"content-length: (\d+)", data[:at], re.I)
    if length:
        return len(data) >= at + 4 + int(length.group(1))
    return data.endswith(b"0\r\n\r\n")


def percentile(times, share):
    return sorted(times)[min(len(times) - 1, int(len(times) * share))]
