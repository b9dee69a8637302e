#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Good clients of callbox mcp over HTTP, in a process of their own: what attackers do in theirs, the locks of the
interpreter included, does not count as a delay by the server.

    mcp_victim.py PORT

One connection lists tools, another calls one, all the time, until stdin ends. Each answer is a line on stdout:
when it was asked for (CLOCK_MONOTONIC), how long it took, and which of them it was."""

import json
import select
import socket
import sys
import time

PAUSE = 0.002
META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}


def request(port, method, name=None):
    params = {**({"name": name, "arguments": {}} if name else {}), "_meta": META}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    fields = {"Host": f"127.0.0.1:{port}", "Accept": "application/json, text/event-stream", "Content-Type": "application/json",
              "Content-Length": len(body), "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, **({"Mcp-Name": name} if name else {})}  # fmt: skip
    return b"POST /mcp HTTP/1.1\r\n" + "".join(f"{key}: {value}\r\n" for key, value in fields.items()).encode() + b"\r\n" + body


def is_whole(data):
    head, found, rest = data.partition(b"\r\n\r\n")
    if not found:
        return False
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(rest) >= int(line.split(b":")[1])
    return data.endswith(b"0\r\n\r\n")


class Client:
    def __init__(self, port, name, data):
        self.name, self.data = name, data
        self.sock = socket.create_connection(("127.0.0.1", port), 60)
        self.began, self.heard, self.next = None, b"", 0.0

    def ask(self, now):
        self.began, self.heard = now, b""
        self.sock.sendall(self.data)

    def hear(self):
        piece = self.sock.recv(1 << 16)
        self.heard += piece
        if piece and not is_whole(self.heard):
            return
        took = time.monotonic() - self.began
        good = self.heard.startswith(b"HTTP/1.1 200") and b'"error"' not in self.heard and b'"isError":true' not in self.heard
        print(f"{self.began:.6f} {took:.6f} {self.name if good else 'wrong'}", flush=True)
        if not good:
            sys.exit(f"a wrong answer: {self.heard[-600:]!r}")
        self.began, self.next = None, time.monotonic() + PAUSE


def main():
    port = int(sys.argv[1])
    clients = [Client(port, "list", request(port, "tools/list")), Client(port, "call", request(port, "tools/call", "true"))]
    while True:
        now = time.monotonic()
        for client in clients:
            if client.began is None and client.next <= now:
                client.ask(now)
        ready = select.select([sys.stdin, *(client.sock for client in clients)], [], [], PAUSE)[0]
        if sys.stdin in ready:
            return
        for client in clients:
            if client.sock in ready and client.began is not None:
                client.hear()


if __name__ == "__main__":
    main()
