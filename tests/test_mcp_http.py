#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""callbox mcp --http: both eras, who may ask, what the headers must say, and clients that mean harm.

With --full: 10 000 calls over 64 connections, and 20 000 connections opened and dropped.
"""

import base64
import contextlib
import json
import os
import random
import re
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import harness
import mcp_http
from harness import case, check, equal, wait_until
from mcp_http import LEGACY, META, MODERN, SCRATCH, Fleet, Server, head, modern_request, percentile, raw, read_answer, text_of

FULL = "--full" in sys.argv
SMOKE = bool(os.environ.get("CALLBOX_SMOKE"))

MISMATCH, CAPABILITY, VERSION = -32020, -32021, -32022
INVALID_REQUEST, NO_METHOD, INVALID_PARAMS, PARSE_ERROR = -32600, -32601, -32602, -32700

_shared = {}
_lock = threading.Lock()


def shared():
    """The server that cases share which leave it as it was."""
    with _lock:
        if "server" not in _shared:
            _shared["server"] = Server()
        return _shared["server"]


def running(mark):
    return harness.processes_with(mark)


def new_mark():
    return f"mark-{secrets.token_hex(6)}"


# ---- 2026-07-28 ----------------------------------------------------------------------------------


@case("modern: discover, list and call")
def modern():
    with shared().client() as client:
        answer = client.modern("server/discover")
        equal(answer.status, 200, "status")
        check(MODERN in answer.message["result"]["supportedVersions"], f"{answer}")
        names = [tool["name"] for tool in client.modern("tools/list").message["result"]["tools"]]
        check(names == sorted(names) and "echo" in names, f"tools are {names}")
        answer = client.call("echo", {"text": "grüß dich"})
        equal((answer.status, text_of(answer)), (200, "grüß dich"), "answer")
        equal(answer.message["result"]["resultType"], "complete", "resultType")


@case("modern: a call is answered by a stream, at once; everything else by JSON")
def modern_types():
    with shared().client() as client:
        answer = client.call("true")
        equal((answer.type, answer.headers.get("x-accel-buffering")), ("text/event-stream", "no"), "type and buffering")
        check(answer.text.startswith(":"), f"the stream begins with {answer.text[:40]!r}")
        equal(client.modern("tools/list").type, "application/json", "type of a list")
        equal(client.call("true", headers={"Accept": "application/json"}).type, "application/json", "type for one who takes no stream")


@case("modern: no session, no GET, no DELETE, no initialize needed")
def modern_stateless():
    with shared().client() as client:
        answer = client.modern("tools/list")
        check("mcp-session-id" not in answer.headers, "there is a session")
        for method in ("GET", "DELETE"):
            equal(client.request(method).status, 405, f"status of {method}")
        equal(client.modern("tools/list", headers={"Mcp-Session-Id": "made-up"}).status, 200, "status with a session that is none")


@case("modern: errors have their codes and statuses")
def modern_errors():
    with shared().client() as client:
        for answer, status, code in (
            (client.modern("no/such"), 404, NO_METHOD),
            (client.modern("initialize"), 404, NO_METHOD),
            (client.modern("tools/list", version="2099-01-01"), 400, VERSION),
            (client.modern("tools/list", meta={f"{META}clientCapabilities": None}), 400, INVALID_PARAMS),
            (client.modern("tools/list", meta={f"{META}protocolVersion": None}), 400, INVALID_PARAMS),
            (client.call("no_such_tool"), 200, INVALID_PARAMS),
            (client.modern("tools/list", {"cursor": "made up"}), 200, INVALID_PARAMS),
            (client.post(b"{"), 400, PARSE_ERROR),
            (client.post(b""), 400, PARSE_ERROR),
            (client.post(b"[]"), 400, INVALID_REQUEST),
            (client.post({"jsonrpc": "1.0", "id": 1, "method": "x"}), 400, INVALID_REQUEST),
        ):
            equal((answer.status, answer.error), (status, code), f"status and code ({answer})")


@case("modern: a notification is accepted, without an answer")
def modern_notification():
    with shared().client() as client:
        answer = client.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {
            "requestId": 99, "_meta": {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}}}},
            {"MCP-Protocol-Version": MODERN, "Mcp-Method": "notifications/cancelled"})
        equal((answer.status, answer.raw), (202, b""), "status and body")


@case("modern: a client that leaves cancels its call at once")
def modern_leaves():
    server = shared()
    for reset in (False, True):
        mark = new_mark()
        sock = server.socket()
        sock.sendall(modern_request(server, params={"name": "sleep", "arguments": {"mark": mark}}))
        check(wait_until(lambda: running(mark), 20), "the call did not begin")
        equal(read_answer(sock)[0], 200, "status before the end")
        if reset:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
        check(wait_until(lambda: not running(mark), 5), "the call goes on")


# ---- Headers of 2026-07-28 -----------------------------------------------------------------------


def wrapped(text):
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


@case("headers: what is missing or says something else is refused")
def header_mismatches():
    with shared().client() as client:
        for headers in (
            {"MCP-Protocol-Version": None},
            {"MCP-Protocol-Version": LEGACY},
            {"Mcp-Method": None},
            {"Mcp-Method": "tools/list"},
            {"Mcp-Method": "TOOLS/CALL"},
            {"Mcp-Method": ""},
            {"Mcp-Name": None},
            {"Mcp-Name": "Echo"},
            {"Mcp-Name": wrapped("fail")},
            {"Mcp-Name": "=?base64?!!!!?="},
            {"Mcp-Name": "=?base64?ZWNobw?="},
            {"Mcp-Name": "=?base64?ZWN=bw==?="},
            {"Mcp-Name": "=?BASE64?ZWNobw==?="},
        ):
            answer = client.call("echo", {"text": "x"}, headers=headers)
            equal((answer.status, answer.error), (400, MISMATCH), f"status and code with {headers}")
            equal(answer.message["id"], client.id, "id")


@case("headers: names in any case, blanks around values and base64 are good")
def header_forms():
    with shared().client() as client:
        for headers in (
            {"Mcp-Name": None, "mcp-NAME": "echo"},
            {"Mcp-Name": "  echo \t"},
            {"Mcp-Name": wrapped("echo")},
            {"Mcp-Method": wrapped("tools/call")},
        ):
            answer = client.call("echo", {"text": "x"}, headers=headers)
            equal((answer.status, text_of(answer)), (200, "x"), f"answer with {headers}")


@case("headers: a version that differs counts before one that is not spoken")
def header_order():
    with shared().client() as client:
        answer = client.modern("tools/list", version="2099-01-01", headers={"MCP-Protocol-Version": MODERN})
        equal((answer.status, answer.error), (400, MISMATCH), "status and code")
        answer = client.modern("tools/list", version="2099-01-01")
        equal((answer.status, answer.error), (400, VERSION), "status and code where they agree")
        check(MODERN in answer.message["error"]["data"]["supported"], f"{answer}")
        equal(answer.message["error"]["data"]["requested"], "2099-01-01", "requested")


@case("headers: arguments that a tool marks must be there and agree")
def header_params():
    with shared().client() as client:
        for region, headers, good in (
            ("eu", {"Mcp-Param-Region": "eu"}, True),
            ("eu", {"mcp-param-REGION": " eu "}, True),
            ("Grüße", {"Mcp-Param-Region": wrapped("Grüße")}, True),
            (" eu", {"Mcp-Param-Region": wrapped(" eu")}, True),
            ("", {"Mcp-Param-Region": ""}, True),
            ("eu", {}, False),
            ("eu", {"Mcp-Param-Region": "us"}, False),
            ("eu", {"Mcp-Param-Region": "EU"}, False),
            ("eu", {"Mcp-Param-Region": "=?base64?*?="}, False),
        ):
            answer = client.call("region", {"region": region}, headers=headers)
            if good:
                equal((answer.status, text_of(answer)), (200, region), f"answer with {headers}")
            else:
                equal((answer.status, answer.error), (400, MISMATCH), f"status and code with {headers}")
        # What is not in the body is not expected in a header, and not allowed there.
        answer = client.call("region", {})
        check(answer.status == 200 and answer.message["result"]["isError"], f"without the argument: {answer}")
        equal(client.call("region", {}, headers={"Mcp-Param-Region": "eu"}).error, MISMATCH, "code for a header too many")
        equal(client.call("echo", {"text": "x"}, headers={"Mcp-Param-Other": "y"}).status, 200, "status with a header of nobody")


@case("headers: integers and booleans are compared as such")
def header_numbers():
    extra = [mcp_http.manifest("numbers", ["true"], {
        "n": {"type": "integer", "x-mcp-header": "N"}, "b": {"type": "boolean", "x-mcp-header": "B"},
        "o": {"type": "object", "properties": {"deep": {"type": "string", "x-mcp-header": "Deep"}}},
        "f": {"type": "number", "x-mcp-header": "F"}})]
    with Server(folder=mcp_http.tools(extra)) as server, server.client() as client:
        arguments = {"n": 42, "b": True, "o": {"deep": "d"}, "f": 1.5}
        good = {"Mcp-Param-N": "42", "Mcp-Param-B": "true", "Mcp-Param-Deep": "d"}
        equal(client.call("numbers", arguments, headers=good).status, 200, "status")
        equal(client.call("numbers", arguments, headers={**good, "Mcp-Param-N": "42.0"}).status, 200, "status with 42.0")
        for change in ({"Mcp-Param-N": "43"}, {"Mcp-Param-N": "0x2a"}, {"Mcp-Param-N": "4 2"}, {"Mcp-Param-B": "1"},
                       {"Mcp-Param-B": "True"}, {"Mcp-Param-Deep": "e"}, {"Mcp-Param-Deep": None}):
            equal(client.call("numbers", arguments, headers={**good, **change}).error, MISMATCH, f"code with {change}")


# ---- 2025-11-25 and older ------------------------------------------------------------------------


@case("legacy: a session from initialize to DELETE")
def legacy():
    with shared().client() as client:
        client.initialize()
        check(re.fullmatch(r"[\x21-\x7e]{32,}", client.session), f"the session is {client.session!r}")
        equal(client.legacy("ping").message["result"], {}, "ping")
        names = [tool["name"] for tool in client.legacy("tools/list").message["result"]["tools"]]
        check("echo" in names, f"tools are {names}")
        answer = client.legacy("tools/call", {"name": "echo", "arguments": {"text": "x"}})
        equal((answer.status, text_of(answer)), (200, "x"), "answer")
        check("resultType" not in answer.message["result"], "there is a resultType")
        check(client.request("DELETE", headers=client.legacy_headers()).status in (200, 204), "DELETE is refused")
        for method in ("GET", "DELETE"):
            equal(client.request(method, headers=client.legacy_headers()).status, 404, f"status of {method} after it")
        equal(client.legacy("ping").status, 404, "status of a request after it")


@case("legacy: sessions differ, and one that was made up is none")
def legacy_sessions():
    server = shared()
    with server.client() as one, server.client() as other:
        one.initialize()
        other.initialize()
        check(one.session != other.session, "two sessions are one")
        one.request("DELETE", headers=one.legacy_headers())
        equal(other.legacy("ping").status, 200, "status of the other")
        for made_up in ("0" * 32, "", one.session, other.session[:-1], "x" * 5000):
            equal(other.legacy("ping", headers={"Mcp-Session-Id": made_up}).status, 404, f"status of {made_up[:40]!r}")
        equal(other.legacy("tools/list", session=False).status, 400, "status without a session")


@case("legacy: what is kept of one session's output, another neither lists nor finds, in both kinds of box")
def legacy_kept():
    for box in ("namespaces", "landlock"):
        with Server("--files", "--box", box) as server, server.client() as first, server.client() as second:
            for client in (first, second):
                client.initialize()

            def call(client, name, arguments):
                return client.legacy("tools/call", {"name": name, "arguments": arguments}).message["result"]

            def said(result):
                return "\n".join(block.get("text", "") for block in result["content"])

            text = json.dumps(call(first, "run_command", {"command": "echo s3cret; seq 100000"}))
            kept = re.search(r"is in (/\S+) for run_command", text)[1]
            place, name = os.path.split(kept)
            check("s3cret" in said(call(first, "run_command", {"command": f"head -n 1 {kept}"})), f"{box}: whoever was told reads it")
            guess = re.sub(r"-[0-9a-f]{16}\.", ".", kept)
            check(guess != kept, f"{box}: {kept} can be guessed")
            tried = [("run_command", {"command": f"ls -a {place}; cat {place}/* {guess}; find {os.path.dirname(place)} -type f -exec cat {{}} +"}),
                     ("run_python", {"code": f"import os\nprint(os.listdir({place!r}))"}), ("list_files", {"path": place}),
                     ("search_files", {"pattern": "s3cret", "path": place}), ("read_file", {"path": guess})]  # fmt: skip
            for tool, arguments in tried:
                found = said(call(second, tool, arguments))
                check(name not in found and not re.search("^s3cret", found, re.M), f"{box}: {tool} finds {found!r}")


@case("legacy: versions")
def legacy_versions():
    with shared().client() as client:
        for asked, spoken in (("2025-06-18", "2025-06-18"), ("2025-03-26", "2025-03-26"), ("1999-01-01", LEGACY)):
            equal(client.initialize(asked).message["result"]["protocolVersion"], spoken, "version")
        equal(client.legacy("ping", headers={"MCP-Protocol-Version": None}).status, 200, "status without the header")
        equal(client.legacy("ping", headers={"MCP-Protocol-Version": "wrong"}).status, 400, "status with a wrong one")


@case("legacy: a client that leaves does not cancel its call; DELETE does")
def legacy_leaves():
    server = shared()
    mark = new_mark()
    with server.client() as client:
        client.initialize()
        with server.socket() as sock:
            sock.sendall(mcp_http.legacy_request(server, client.session, params={"name": "sleep", "arguments": {"mark": mark}}))
            check(wait_until(lambda: running(mark), 20), "the call did not begin")
        for _ in range(20):  # many turns of the server later
            equal(client.legacy("ping").status, 200, "status")
        check(running(mark), "the call was ended")
        client.request("DELETE", headers=client.legacy_headers())
        check(wait_until(lambda: not running(mark), 5), "the call goes on after DELETE")


def events_of(data):
    """The events of a stream, chunked as it is: each a dictionary of its fields."""
    body = re.sub(rb"\r\n[0-9a-f]+\r\n", b"", b"\r\n" + data.split(b"\r\n\r\n", 1)[1])
    found = [dict(line.split(b": ", 1) if b": " in line else (line, b"") for line in event.split(b"\n") if line and not line.startswith(b":"))
             for event in body.split(b"\n\n")]  # fmt: skip
    return [event for event in found if b"data" in event]


def read_until(sock, mark):
    data = b""
    while mark not in data:
        piece = sock.recv(65536)
        check(piece, f"the stream ended before {mark!r}: {data[-300:]!r}")
        data += piece
    return data


@case("legacy: a stream that was lost is taken up again by the id of its last event, whether the answer is there or comes")
def legacy_resume():
    server = shared()
    with server.client() as client, server.client() as stranger:
        client.initialize()
        stranger.initialize()

        def begin(name, arguments, number):
            with server.socket() as sock:
                sock.sendall(mcp_http.legacy_request(server, client.session, params={"name": name, "arguments": arguments}, number=number))
                events = events_of(read_until(sock, b"data: \n\n"))
            equal((events[0][b"data"], events[0][b"retry"]), (b"", b"1000"), "the first event")
            return events[0][b"id"].decode()

        def resume(session, last):
            sock = server.socket()
            sock.sendall(head(server, "GET", Content_Type=None, Content_Length=None, Mcp_Session_Id=session, Last_Event_ID=last))
            return sock

        # One that is still to come.
        mark = new_mark()
        last = begin("sleep", {"mark": mark}, 101)
        check(wait_until(lambda: running(mark), 20), "the call did not begin")
        with resume(client.session, last) as sock, resume(stranger.session, last) as other:
            data = read_until(sock, b":\n\n")
            for process in running(mark):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGTERM)
            events = events_of(data + read_until(sock, b"0\r\n\r\n"))
            answer = json.loads(events[-1][b"data"])
            equal((answer["id"], answer["result"]["isError"]), (101, True), "the answer")
            check(events[-1][b"id"].decode().split("-")[0] == last.split("-")[0], f"the id {events[-1]} after {last}")
            other.settimeout(0.2)
            with contextlib.suppress(TimeoutError):
                check(b'"id":101' not in other.recv(65536) + other.recv(65536), "another session has it")
        # One that has come meanwhile; and no more than once.
        last = begin("later", {"text": "kept"}, 102)
        check(wait_until(lambda: check_exposition(server.metrics())["callbox_calls_running", None] == 0, 20), "the call goes on")
        with resume(client.session, last) as sock:
            answer = json.loads(events_of(read_until(sock, b"0\r\n\r\n"))[-1][b"data"])
            equal((answer["id"], answer["result"]["content"][0]["text"]), (102, "kept"), "the answer")
        with resume(client.session, last) as sock:
            equal(read_answer(sock)[0], 200, "status of a stream for what was taken already: one like any other")
        for nonsense in ("0-0", "x", "99999999999999999999999-1", "-1", last + "0" * 300):
            with resume(client.session, nonsense) as sock:
                equal(read_answer(sock)[0], 200, f"status with {nonsense[:30]!r}")
        # Older clients would take an event without data for a message.
        client.initialize("2025-06-18")
        answer = client.legacy("tools/call", {"name": "echo", "arguments": {"text": "x"}}, headers={"MCP-Protocol-Version": "2025-06-18"})
        check("id:" not in answer.text and text_of(answer) == "x", f"{answer}")
        # More of them than are kept.
        client.initialize()
        lasts = [begin("later", {"text": str(number)}, number) for number in range(200, 240)]
        check(wait_until(lambda: check_exposition(server.metrics())["callbox_calls_running", None] == 0, 20), "calls go on")
        with resume(client.session, lasts[5]) as sock:
            equal(json.loads(events_of(read_until(sock, b"0\r\n\r\n"))[-1][b"data"])["id"], 205, "one of those that are")
        with resume(client.session, lasts[-1]) as sock:
            equal(read_answer(sock)[0], 200, "status of a stream for one that is not")
        client.request("DELETE", headers=client.legacy_headers())


@case("legacy: one who waits is told that the session ended")
def legacy_waits():
    server = shared()
    for accept in ("application/json, text/event-stream", "application/json"):
        mark = new_mark()
        with server.client() as client, server.socket() as sock:
            client.initialize()
            request = mcp_http.legacy_request(server, client.session, params={"name": "sleep", "arguments": {"mark": mark}})
            sock.sendall(request.replace(b"application/json, text/event-stream", accept.encode()))
            check(wait_until(lambda mark=mark: running(mark), 20), "the call did not begin")
            client.request("DELETE", headers=client.legacy_headers())
            status, _, rest = read_answer(sock)
            equal(status, 200 if "event" in accept else 404, "status")
            if "event" in accept:
                while not rest.endswith(b"0\r\n\r\n"):
                    piece = sock.recv(4096)
                    check(piece, "the stream was cut")
                    rest += piece


@case("legacy: a cancelled call ends, by a notification of its session alone")
def legacy_cancel():
    server = shared()
    mark = new_mark()
    with server.client() as client, server.client() as stranger, server.socket() as sock:
        client.initialize()
        stranger.initialize()
        sock.sendall(mcp_http.legacy_request(server, client.session, params={"name": "sleep", "arguments": {"mark": mark}}, number=77))
        check(wait_until(lambda: running(mark), 20), "the call did not begin")
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}}
        equal(stranger.post(note, stranger.legacy_headers()).status, 202, "status")
        equal(stranger.legacy("ping").status, 200, "status")
        check(running(mark), "a stranger cancelled it")
        equal(client.post(note, client.legacy_headers()).status, 202, "status")
        check(wait_until(lambda: not running(mark), 5), "the call goes on")


@case("legacy: list changes come on the stream of GET")
def legacy_stream():
    folder = mcp_http.tools()
    with Server(folder=folder) as server, server.client() as client:
        client.initialize()
        equal(client.request("GET", headers={**client.legacy_headers(), "Accept": "application/json"}).status, 406, "status")
        with server.socket() as sock:
            sock.sendall(head(server, "GET", Content_Type=None, Content_Length=None, Mcp_Session_Id=client.session))
            status, fields, seen = read_answer(sock)
            equal(status, 200, "status")
            check("text/event-stream" in fields, fields)
            (folder / "late.json").write_text(json.dumps(mcp_http.manifest("late", ["true"])))
            while b"notifications/tools/list_changed" not in seen:
                piece = sock.recv(4096)
                check(piece, "the stream was cut")
                seen += piece
            # A second stream takes the place of the first.
            with server.socket() as again:
                again.sendall(head(server, "GET", Content_Type=None, Content_Length=None, Mcp_Session_Id=client.session))
                equal(read_answer(again)[0], 200, "status of the second")
                while not seen.endswith(b"0\r\n\r\n"):
                    piece = sock.recv(4096)
                    check(piece, "the first stream was cut")
                    seen += piece


@case("legacy: more sessions than there is room for: the silent one goes, one that is used stays")
def many_sessions():
    with Server() as server, server.client() as first, server.client() as second, server.client() as many:
        first.initialize()
        second.initialize()
        for number in range(1100):
            many.initialize()
            if number % 100 == 0:
                equal(second.legacy("ping").status, 200, "status of one that is used")
        equal(first.legacy("ping").status, 404, "status of the silent one")
        equal(second.legacy("ping").status, 200, "status of one that is used")


# ---- Who may ask ---------------------------------------------------------------------------------


@case("access: foreign hosts and origins are refused, before anything else")
def origins():
    server = shared()
    with server.client() as client:
        port = server.port
        for headers, status in (
            ({"Host": "localhost"}, 200),
            ({"Host": f"LOCALHOST:{port}"}, 200),
            ({"Host": f"127.0.0.1:{port}"}, 200),
            ({"Host": "[::1]:8765"}, 200),
            ({"Host": "192.168.7.7"}, 200),
            ({"Host": "evil.example"}, 403),
            ({"Host": f"evil.example:{port}"}, 403),
            ({"Host": "localhost.evil.example"}, 403),
            ({"Host": "127.0.0.1.evil.example"}, 403),
            ({"Host": "evil.example:80@localhost"}, 403),
            ({"Host": "localhost:"}, 403),
            ({"Host": "127.1"}, 403),
            ({"Host": ""}, 403),
            ({"Origin": "http://localhost:3000"}, 200),
            ({"Origin": f"http://127.0.0.1:{port}"}, 200),
            ({"Origin": "https://[::1]"}, 200),
            ({"Origin": "http://evil.example"}, 403),
            ({"Origin": "http://localhost.evil.example"}, 403),
            ({"Origin": "http://192.168.7.7"}, 403),
            ({"Origin": "null"}, 403),
            ({"Origin": ""}, 403),
            ({"Origin": "file://localhost"}, 403),
            ({"Host": "evil.example", "Origin": "http://evil.example"}, 403),
        ):
            equal(client.modern("tools/list", headers=headers).status, status, f"status with {headers}")


@case("access: names and origins that were allowed are")
def allowed():
    with Server("--allow-host", "tools.example", "--allow-origin", "https://app.example") as server, server.client() as client:
        for headers, status in (({"Host": "tools.example"}, 200), ({"Host": "TOOLS.example:443"}, 200), ({"Host": "app.example"}, 403),
                                ({"Origin": "https://app.example"}, 200), ({"Origin": "http://app.example"}, 403),
                                ({"Origin": "https://tools.example"}, 403)):
            equal(client.modern("tools/list", headers=headers).status, status, f"status with {headers}")


@case("access: without the token there is nothing but /healthz")
def token():
    secret = secrets.token_urlsafe(32)
    with Server(token=secret) as server, server.client() as client:
        equal(client.modern("tools/list").status, 200, "status with the token")
        equal(client.modern("tools/list", headers={"Authorization": f"bearer  {secret}"}).status, 200, "status with another spelling")
        for value in (None, "", "Bearer", "Bearer ", "Bearer x", f"Bearer {secret[:-1]}", f"Bearer {secret}x", f"Bearer {secret}{secret}",
                      f"Basic {secret}", secret, f"Bearer {secret.swapcase()}"):
            for method, path in (("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("GET", "/metrics"), ("GET", "/other")):
                answer = client.request(method, path, b"{}" if method == "POST" else None, {"Authorization": value})
                equal((answer.status, answer.headers.get("www-authenticate")), (401, "Bearer"), f"{method} {path} with {value!r}")
                if answer.headers["connection"] == "close":
                    client.http.close()
        equal(client.request("GET", "/healthz", headers={"Authorization": None}).status, 200, "status of /healthz")
        check(secret not in server.said.decode(), "the token was printed")


@case("access: a body is not read from one who may not send it")
def unwanted_body():
    with Server(token="t" * 20) as server:
        answer = raw(server, head(server, Authorization="Bearer wrong", Content_Length=900000))
        equal(answer[0], 401, "status before the body was sent")


@case("access: what starts and what does not")
def starting():
    folder = SCRATCH.directory()
    tools = mcp_http.tools()
    good, short, wide, words = (folder / name for name in ("good", "short", "wide", "words"))
    for path, text, mode in ((good, "g" * 40 + "\n", 0o600), (short, "short\n", 0o600), (wide, "w" * 40, 0o644), (words, "two words" * 9, 0o600)):
        path.write_text(text)
        path.chmod(mode)
    for options, words_of_it in (
        (["--http", "0.0.0.0:0"], ["no token", "--token-file"]),
        (["--http", "[::]:0"], ["no token"]),
        (["--http", "127.0.0.1"], ["no address with a port"]),
        (["--http", "127.0.0.1:99999"], ["no address"]),
        (["--http", "example.com:80"], ["no address"]),
        (["--http", ":80"], ["no address"]),
        (["--http", "127.0.0.1:0", "--token-file", folder / "none"], ["--token-file", "No such file"]),
        (["--http", "127.0.0.1:0", "--token-file", short], ["shorter than 16"]),
        (["--http", "127.0.0.1:0", "--token-file", wide], ["chmod 600"]),
        (["--http", "127.0.0.1:0", "--token-file", words], ["one word"]),
        (["--http", "127.0.0.1:0", "--audit", "/nowhere/at/all"], ["--audit"]),
        (["--http", "127.0.0.1:0", "--body", "21M"], ["--body"]),
        (["--token-file", good], ["without --http"]),
        (["--allow-host", "x"], ["without --http"]),
        (["--http", f"127.0.0.1:{shared().port}"], ["cannot listen", "in use"]),
    ):
        result = harness.callbox(["mcp", "--tools", tools, *options], binary=mcp_http.CALLBOX, cwd="/")
        equal((result.code, result.out), (125, b""), f"exit code and stdout of {options}")
        for word in words_of_it:
            check(word in result.stderr, f"{options} does not say {word!r}: {result.stderr}")
    with Server(address="0.0.0.0:0", token="t" * 20) as server, server.client() as client:
        equal(client.modern("tools/list").status, 200, "status with a token on every address")


# ---- HTTP ----------------------------------------------------------------------------------------


@case("http: paths, methods and types")
def http_basics():
    with shared().client() as client:
        for method, path, headers, status in (
            ("GET", "/healthz", {}, 200),
            ("GET", "/healthz", {"Host": "whatever.example"}, 200),
            ("POST", "/healthz", {}, 405),
            ("GET", "/metrics", {}, 200),
            ("DELETE", "/metrics", {}, 405),
            ("GET", "/", {}, 404),
            ("GET", "/mcpx", {}, 404),
            ("GET", "/mcp/", {}, 404),
            ("GET", "/../mcp", {}, 404),
            ("PUT", "/mcp", {}, 405),
            ("OPTIONS", "/mcp", {}, 405),
            ("GET", "/mcp?x=1", {}, 405),
        ):
            equal(client.request(method, path, headers=headers).status, status, f"status of {method} {path}")
        for content, status in (("application/json", 200), ("application/json; charset=utf-8", 200), ("Application/JSON", 200),
                                ("text/plain", 415), ("application/jsonx", 415), (None, 415)):
            answer = client.modern("tools/list", headers={"Content-Type": content})
            equal(answer.status, status, f"status of {content}")
            if status != 200:
                client.http.close()
        for accept, status in (("*/*", 200), ("application/*", 200), ("application/json", 200), (None, 200),
                               ("application/json;q=0.5, text/event-stream", 200), ("text/html", 406)):
            equal(client.modern("tools/list", headers={"Accept": accept}).status, status, f"status of Accept {accept}")
            if status != 200:
                client.http.close()


def chunked(server, *pieces):
    text = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
    request = modern_request(server, "tools/list")
    fields, body = request.split(b"\r\n\r\n", 1)
    fields = re.sub(rb"Content-Length: \d+", b"Transfer-Encoding: chunked", fields)
    return fields, body, text


@case("http: bodies in chunks")
def http_chunks():
    server = shared()
    fields, body, _ = chunked(server)
    for cuts in ([len(body)], [1] * len(body), [10, 20, len(body) - 30]):
        pieces, at = [], 0
        for cut in cuts:
            pieces.append(body[at : at + cut])
            at += cut
        text = b"".join(b"%x;name=value\r\n%s\r\n" % (len(piece), piece) for piece in pieces)
        equal(raw(server, fields + b"\r\n\r\n" + text + b"0\r\nTrailer: x\r\n\r\n")[0], 200, f"status of {len(cuts)} chunks")
    for text in (b"zz\r\n", b"-1\r\n", b"0x5\r\nhello\r\n", b"5\r\nhelloX\r\n", b"5\nhello", b"5 5\r\nhello\r\n", b"5\r\rhello",
                 b"fffffffffffffffff\r\n", b"5" + b";" * 300 + b"\r\n", b"0\r\n" + b"T: x\r\n" * 2000):
        equal(raw(server, fields + b"\r\n\r\n" + text)[0], 400, f"status of {text[:30]!r}")
    equal(raw(server, fields + b"\r\n\r\n" + b"fffffff\r\n" + b"x" * 100)[0], 413, "status of a chunk that is too long")


@case("http: requests that two readers would understand differently are refused")
def http_strict():
    server = shared()
    good = modern_request(server, "tools/list")
    equal(raw(server, good)[0], 200, "status of the good one")
    fields, body = good.split(b"\r\n\r\n", 1)
    line, rest = fields.split(b"\r\n", 1)
    length = b"Content-Length: %d" % len(body)

    def with_field(field):
        return fields + b"\r\n" + field + b"\r\n\r\n" + body

    for data, status in (
        (with_field(length), 400),
        (with_field(b"Transfer-Encoding: chunked"), 400),
        (with_field(b"Host: localhost"), 400),
        (with_field(b"Mcp-Method: tools/call"), 400),
        (with_field(b"Authorization: x\r\nAuthorization: y"), 400),
        (with_field(b"X: a\r\n folded"), 400),
        (with_field(b"X : a"), 400),
        (with_field(b": a"), 400),
        (with_field(b"X\x00: a"), 400),
        (with_field(b"X: a\x00b"), 400),
        (with_field(b"X: a\nY: b"), 400),
        (with_field(b"X: a\rY: b"), 400),
        (with_field(b"no colon"), 400),
        (with_field(b"Expect: something"), 417),
        (fields.replace(length, b"Content-Length: +%d" % len(body)) + b"\r\n\r\n" + body, 400),
        (fields.replace(length, b"Content-Length: -1") + b"\r\n\r\n" + body, 400),
        (fields.replace(length, b"Content-Length: 0x10") + b"\r\n\r\n" + body, 400),
        (fields.replace(length, b"Content-Length: ") + b"\r\n\r\n" + body, 400),
        (fields.replace(length, b"Content-Length: 99999999999999999999999") + b"\r\n\r\n" + body, 400),
        (fields.replace(length, b"Transfer-Encoding: gzip, chunked") + b"\r\n\r\n" + body, 501),
        (b"POST /mcp HTTP/2.0\r\n" + rest + b"\r\n\r\n" + body, 505),
        (b"POST /mcp\r\n" + rest + b"\r\n\r\n" + body, 400),
        (b"POST  /mcp HTTP/1.1\r\n" + rest + b"\r\n\r\n" + body, 400),
        (b"POST /mcp HTTP/1.1 \r\n" + rest + b"\r\n\r\n" + body, 400),
        (b"POST mcp HTTP/1.1\r\n" + rest + b"\r\n\r\n" + body, 400),
        (b"PO\x00ST /mcp HTTP/1.1\r\n" + rest + b"\r\n\r\n" + body, 400),
        (b"\r\n" + good, 400),
        (line + b"\r\n" + rest.replace(b"Host: 127.0.0.1:%d\r\n" % server.port, b"") + b"\r\n\r\n" + body, 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\r\n\r\n", 400),
        (b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n\r\n", 431),
        (with_field(b"X: " + b"a" * 20000), 431),
        (with_field(b"\r\n".join(b"X%d: a" % i for i in range(100))), 431),
    ):
        answer = raw(server, data)
        check(answer is not None, f"no answer to {data[:80]!r}")
        equal(answer[0], status, f"status of {data[:60]!r} ... {data[-60:]!r}")
        check("Connection: close" in answer[1], f"the connection stays open after {status}")


@case("http: HTTP/1.1 without Host is refused, whatever is asked for; HTTP/1.0 has none")
def http_host():
    server = shared()
    for method, path in (("GET", "/healthz"), ("GET", "/metrics"), ("GET", "/mcp"), ("POST", "/mcp"), ("GET", "/nowhere"), ("PUT", "/healthz")):
        data = head(server, method, path, Host=None)
        answer = raw(server, data)
        check(answer and answer[0] == 400, f"{method} {path}: {answer}")
        check(b"Host" in answer[2], f"{method} {path}: {answer}")
    equal(raw(server, b"GET /healthz HTTP/1.0\r\n\r\n")[0], 200, "status of /healthz in HTTP/1.0")
    equal(raw(server, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")[0], 200, "status of /healthz")


@case("http: an old client gets an answer it understands")
def http_old():
    server = shared()
    request = modern_request(server, params={"name": "true", "arguments": {}}).replace(b"HTTP/1.1", b"HTTP/1.0")
    with server.socket() as sock:
        sock.sendall(request)
        data = b""
        while piece := sock.recv(65536):
            data += piece
    check(b"Connection: close" in data and b"chunked" not in data and b"data: {" in data, data[:400])


@case("http: one request after another on one connection, and at once")
def http_keep():
    server = shared()
    with server.socket() as sock:
        for number in range(1, 20):
            sock.sendall(modern_request(server, "tools/list", number=number))
            equal(json.loads(read_answer(sock)[2])["id"], number, "id")
    with server.socket() as sock:
        sock.sendall(b"".join(modern_request(server, "tools/list", {"cursor": "x"}, number=number) for number in range(1, 20)))
        data = b""
        while data.count(b'"jsonrpc"') < 19:
            piece = sock.recv(65536)
            check(piece, f"closed after {data.count(b'jsonrpc')} answers")
            data += piece
        equal([int(number) for number in re.findall(rb'"id":(\d+)', data)], list(range(1, 20)), "ids")


@case("http: a client that waits for 100 Continue gets it, or the refusal")
def http_continue():
    server = shared()
    request = modern_request(server, "tools/list")
    fields, body = request.split(b"\r\n\r\n", 1)
    with server.socket() as sock:
        sock.sendall(fields + b"\r\nExpect: 100-continue\r\n\r\n")
        equal(sock.recv(4096), b"HTTP/1.1 100 Continue\r\n\r\n", "first answer")
        sock.sendall(body)
        equal(read_answer(sock)[0], 200, "status")
    refused = re.sub(rb"Content-Length: \d+", b"Content-Length: 99000000", fields)
    equal(raw(server, refused + b"\r\nExpect: 100-continue\r\n\r\n")[0], 413, "status of one too long")


@case("http: a message may be as long as --body says, and no longer")
def http_body():
    for option, limit in (([], 1 << 20), (["--body", "2M"], 2 << 20)):
        with Server(*option) as server, server.client() as client:
            for length, status in ((limit, 200), (limit + 1, 413)):
                body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {
                    "_meta": {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": {}}, "x": ""}})
                body = body.replace('"x": ""', '"x": "' + "y" * (length - len(body)) + '"').encode()
                equal(len(body), length, "length")
                answer = client.post(body, {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/list"})
                equal(answer.status, status, f"status of {length} bytes")


# ---- Metrics -------------------------------------------------------------------------------------


LINE = re.compile(r"""^([a-zA-Z_:][a-zA-Z0-9_:]*)            # name
                      (?:\{((?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*",?)*)\})?
                      [ ](-?(?:[0-9.]+(?:e[+-]?[0-9]+)?|Inf|NaN)|\+Inf)$""", re.X)


def check_exposition(text):
    """What promtool would say of it, and more: returns the samples."""
    check(text.endswith("\n"), "the last line has no end")
    types, samples, closed, current = {}, {}, set(), None
    for line in text[:-1].split("\n"):
        comment = re.fullmatch(r"# (HELP|TYPE) ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)", line)
        if comment:
            kind, name, rest = comment.groups()
            if kind == "HELP":
                check(name not in closed and name not in types, f"{name} is explained twice, or apart from its samples")
                if current:
                    closed.add(current)
                current = name
            else:
                equal(name, current, "the name of TYPE")
                check(rest in ("counter", "gauge", "histogram"), f"{name} is a {rest}")
                types[name] = rest
            continue
        found = LINE.fullmatch(line)
        check(found, f"no sample: {line!r}")
        name, labels, value = found.groups()
        base = re.sub(r"_(bucket|sum|count)$", "", name) if types.get(current) == "histogram" else name
        equal(base, current, f"the family of {line!r}")
        check((name, labels) not in samples, f"{line!r} is there twice")
        samples[name, labels] = float(value)
        if types[current] == "counter":
            check(name.endswith("_total") and float(value) >= 0, f"{line!r} is no good counter")
        else:
            check(not name.endswith("_total"), f"{line!r} is no counter")
    for name, kind in types.items():
        if kind == "histogram":
            buckets = [value for (sample, _), value in samples.items() if sample == f"{name}_bucket"]
            check(buckets == sorted(buckets) and buckets[-1] == samples[f"{name}_count", None], f"{name} does not add up")
    return samples


@case("metrics: the format is good, and the numbers are true")
def metrics():
    with Server() as server, server.client() as client:
        before = check_exposition(server.metrics())
        for _ in range(5):
            client.call("true")
        client.call("fail")
        client.call("echo", {"wrong": 1})
        for number in range(3):
            client.call(f"no_such_tool_{number}")
        text = server.metrics()
        after = check_exposition(text)
        equal(after["callbox_calls_total", 'tool="true",outcome="ok"'], 5, "good calls")
        equal(after["callbox_calls_total", 'tool="fail",outcome="error"'], 1, "calls that failed")
        check("no_such_tool" not in text, "names that clients make up are kept")
        equal(after["callbox_http_requests_total", 'code="200"'] - before.get(("callbox_http_requests_total", 'code="200"'), 0), 11,
              "answers with 200")
        equal(after["callbox_calls_running", None], 0, "calls that run")
        check(after["callbox_http_connections", None] >= 2, "connections")
        check(after["process_resident_memory_bytes", None] > 1 << 20, "memory")
        promtool = shutil.which("promtool")
        if promtool:
            result = harness.execute([promtool, "check", "metrics"], data=text.encode())
            equal((result.code, result.out, result.err), (0, b"", b""), "what promtool says")


# ---- The end -------------------------------------------------------------------------------------


@case("end: SIGTERM ends every box, and tells whoever waits")
def stop():
    for accept in ("application/json, text/event-stream", "application/json"):
        server = Server()
        marks = [new_mark() for _ in range(3)]
        socks = []
        for mark in marks:
            sock = server.socket()
            request = modern_request(server, params={"name": "sleep", "arguments": {"mark": mark}})
            sock.sendall(request.replace(b"application/json, text/event-stream", accept.encode()))
            socks.append(sock)
        check(wait_until(lambda marks=marks: all(running(mark) for mark in marks), 20), "the calls did not begin")
        idle = server.socket()
        equal(server.stop(), 0, "exit code")
        check(wait_until(lambda marks=marks: not any(running(mark) for mark in marks), 5), "calls go on")
        for sock in socks:
            data = b""
            with contextlib.suppress(ConnectionResetError):
                while piece := sock.recv(65536):
                    data += piece
            if "event" in accept:
                check(data.endswith(b"0\r\n\r\n"), f"the stream was cut: {data[-100:]!r}")
            else:
                check(data.startswith(b"HTTP/1.1 503"), f"the answer is {data[:100]!r}")
            sock.close()
        equal(idle.recv(100), b"", "what an idle client hears")
        idle.close()


@case("end: a server that is killed takes its boxes along")
def killed():
    server = Server()
    mark = new_mark()
    with server.socket() as sock:
        sock.sendall(modern_request(server, params={"name": "sleep", "arguments": {"mark": mark}}))
        check(wait_until(lambda: running(mark), 20), "the call did not begin")
        server.stop(signal.SIGKILL)
        check(wait_until(lambda: not running(mark), 10), "the call goes on")


# ---- Clients that mean harm ----------------------------------------------------------------------


LIMIT = 0.05  # the most that one client may add to what others wait
ROUNDS = 7 if FULL else 3


class Victims:
    """Good clients that ask all the time (mcp_victim.py), and how long each answer took."""

    def __init__(self, server):
        self.times, self.lock = [], threading.Lock()
        self.process = subprocess.Popen([sys.executable, str(harness.REPO / "tests" / "mcp_victim.py"), str(server.port)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            began, took, kind = line.split()
            with self.lock:
                self.times.append((float(began), float(took), kind))

    def worst(self, begin, end):
        """The longest that anybody waited who had asked by then, and how many there were."""
        check(wait_until(lambda: self.process.poll() is not None or any(began > end for began, _, _ in self.copy()), 60), "the good clients get no answers")
        check(self.process.poll() is None, lambda: f"a good client has ended: {self.process.stderr.read()[-400:]}")
        found = [took for began, took, _ in self.copy() if began <= end and began + took >= begin]
        check(len(found) >= 5, f"{len(found)} answers to good clients")
        return max(found)

    def copy(self):
        with self.lock:
            return list(self.times)

    def __enter__(self):
        check(wait_until(lambda: len(self.times) >= 50 or self.process.poll() is not None, 30), "the good clients get no answers")
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(30)
        self.reader.join(5)
        self.process.stdout.close()
        self.process.stderr.close()


def limit():
    """On a machine that has more to do than processors, whatever is waited for takes as many times longer."""
    return LIMIT * harness.SLOW * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def middle(values):
    return sorted(values)[len(values) // 2]


def politely(function, *arguments):
    """Attackers share the machine with those whom they attack, and are to hold them up by way of the server alone: so
    the thread that does it, and those that it starts, give way where processors are short."""
    failures = []

    def run():
        os.setpriority(os.PRIO_PROCESS, 0, 15)  # of this thread
        try:
            function(*arguments)
        except BaseException as failure:  # noqa: BLE001
            failures.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


def added_delay(server, victims, function):
    """What an attacker adds to the longest wait of the others. Rounds with him and without take turns, each pair as
    long as the other, so that whoever shares the machine slows down both; and the middle one of them counts."""
    attacked, quiet = [], []
    for _ in range(ROUNDS):
        begin = time.monotonic()
        politely(function, server)
        time.sleep(max(0, begin + 0.3 - time.monotonic()))
        end = time.monotonic()
        attacked.append(victims.worst(begin, end))
        length = min(end - begin, 3)
        time.sleep(0.1)  # for what he left behind
        begin = time.monotonic()
        time.sleep(length)
        quiet.append(victims.worst(begin, time.monotonic()))
    return middle(attacked) - middle(quiet), attacked, quiet


def attack(name):
    def register(function):
        def run():
            with Server() as server:
                before = server.memory()
                with Victims(server) as victims:
                    added, attacked, quiet = added_delay(server, victims, function)
                    for _ in range(2):  # a machine that is busy now is less so later; a server that waits is not
                        if added >= limit():
                            added, attacked, quiet = added_delay(server, victims, function)

                def show(times):
                    return " ".join(f"{time * 1000:.0f}" for time in times)

                check(added < limit(), lambda: f"others waited {added * 1000:.0f} ms longer: {show(attacked)} ms, {show(quiet)} ms without")
                print(f"# {name}: others waited {show(attacked)} ms at most, {show(quiet)} ms without")
                # Whatever it was, nothing of it is left.
                check(wait_until(lambda: server.memory()[1] <= before[1] + 2, 60),
                      lambda: f"{server.memory()[1]} descriptors, {before[1]} before")
                with server.client() as client:
                    equal(client.modern("tools/list").status, 200, "status afterwards")
                check(server.process.poll() is None, "the server is gone")

        harness.add(f"hostile: {name}", run, alone=True)
        return function

    return register


def newcomer(server):
    """There is room for one more."""
    with server.client() as client:
        equal(text_of(client.call("echo", {"text": "x"})), "x", "answer to one more client")


@attack("slow-loris, more of them than there is room for")
def slow_loris(server):
    socks = []
    for _ in range(700):
        with contextlib.suppress(OSError):
            sock = server.socket()
            sock.send(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: ")
            socks.append(sock)
    for _ in range(15):
        for sock in socks:
            with contextlib.suppress(OSError):
                sock.send(b"a")
        time.sleep(0.05)
    newcomer(server)
    for sock in socks:
        sock.close()


@case("hostile: a head that drips in is refused though each byte is in time", alone=True)
def drip():
    with Server() as server, server.socket(60) as sock:
        sock.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: ")
        sock.settimeout(0.25)
        sent = 0
        deadline = time.monotonic() + 60 * harness.SLOW
        while time.monotonic() < deadline:
            try:
                data = sock.recv(4096)
                check(data.startswith(b"HTTP/1.1 408"), f"the answer is {data[:60]!r}")
                break
            except TimeoutError:
                sock.send(b"a")
                sent += 1
        check(sent < 200, f"{sent} bytes were taken one by one")


@attack("connections that say nothing")
def silent(server):
    socks = [server.socket() for _ in range(600)]
    newcomer(server)
    for sock in socks:
        sock.close()


@attack("streams that nobody needs, more of them than there is room for")
def streams(server):
    socks = []
    with server.client() as client:
        for _ in range(600):
            client.initialize()
            sock = server.socket()
            sock.sendall(head(server, "GET", Content_Type=None, Content_Length=None, Mcp_Session_Id=client.session))
            equal(read_answer(sock)[0], 200, "status of a stream")
            socks.append(sock)
    newcomer(server)
    for sock in socks:
        sock.close()


@attack("half-open: gone without a word, in the middle of everything")
def half_open(server):
    request = modern_request(server, params={"name": "sleep", "arguments": {"mark": "half-open"}})
    for cut in (0, 10, 100, len(request) - 1, len(request)):
        for _ in range(10):
            sock = server.socket()
            sock.send(request[:cut])
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()


@attack("bodies of 100 MB")
def huge_body(server):
    data = b"x" * (1 << 20)
    for fields in (head(server, Content_Length=100 << 20), head(server, Content_Length=None, Transfer_Encoding="chunked")):
        sent = 0
        with server.socket() as sock, contextlib.suppress(OSError):
            sock.sendall(fields)
            for _ in range(100):
                sock.sendall(data if b"Content-Length" in fields else b"100000\r\n" + data + b"\r\n")
                sent += 1
        check(sent <= 100, "sent")
    check(server.memory()[0] < (200 << 10) * harness.SLOW, f"{server.memory()[0]} KiB are held")


@attack("many long bodies at once, whole ones and such that stop before the end")
def many_bodies(server):
    body = b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"' + b"y" * 1000000 + b'"}}'
    request = head(server, body=body)

    def send(cut):
        with server.socket() as sock, contextlib.suppress(OSError):
            sock.sendall(request[:cut])
            if cut == len(request):
                read_answer(sock)
            else:
                time.sleep(0.3)

    threads = [threading.Thread(target=send, args=(len(request) - (number % 2),)) for number in range(60)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(server.memory()[0] < (300 << 10) * harness.SLOW, f"{server.memory()[0]} KiB are held")


@attack("garbage")
def garbage(server):
    rng = random.Random(4711)
    good = modern_request(server, "tools/list")
    for number in range(400):
        if number % 2:
            data = rng.randbytes(rng.randrange(1, 4000))
        else:  # a good one with a few bytes changed
            data = bytearray(good)
            for _ in range(rng.randrange(1, 6)):
                data[rng.randrange(len(data))] = rng.randrange(256)
        with server.socket() as sock, contextlib.suppress(OSError):
            sock.sendall(bytes(data))
            sock.shutdown(socket.SHUT_WR)
            while sock.recv(65536):
                pass


def hostile_json():
    deep = b"[" * 15000
    yield deep, PARSE_ERROR
    yield b'{"a":' * 15000, PARSE_ERROR
    yield b'{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/list"}', PARSE_ERROR
    yield b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"a":1,"a":2}}', PARSE_ERROR
    yield b'{"jsonrpc":"2.0","id":' + b"9" * 100000 + b',"method":"tools/list"}', PARSE_ERROR
    yield b'{"jsonrpc":"2.0","id":"' + b"9" * 900000 + b'","method":"tools/list"}', INVALID_REQUEST
    yield b'{"jsonrpc":"2.0","id":1e999,"method":"tools/list"}', PARSE_ERROR
    yield b'{"jsonrpc":"2.0","id":{"a":1},"method":"tools/list"}', INVALID_REQUEST
    yield b'{"jsonrpc":"2.0","id":null,"method":"tools/list"}', INVALID_REQUEST
    yield b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}', PARSE_ERROR
    yield b'{"jsonrpc":"2.0","id":1,"method":"tools\\u0000/list"}', INVALID_REQUEST
    yield b'{"jsonrpc":"2.0","id":1,"method":"' + b"m" * 900000 + b'"}', INVALID_PARAMS
    yield b'{"jsonrpc":"2.0","id":1,"method":"x","params":[' + b"0," * 400000 + b"0]}", INVALID_REQUEST
    yield b'{"jsonrpc":"2.0","id":1,"method":"x","params":{' + b",".join(b'"%x":0' % n for n in range(90000)) + b"}}", INVALID_REQUEST
    yield b'{"jsonrpc":"2.0","id":1,"method":"x","params":{' + b",".join(b'"%x":0' % n for n in range(19000)) + b"}}", INVALID_PARAMS
    yield b"\x00" * 1000, PARSE_ERROR


@attack("deep JSON, duplicate keys, huge ids")
def bad_json(server):
    with server.client() as client:
        for body, code in hostile_json():
            answer = client.post(body)
            check(answer.status in (400, 413) and answer.error == code, f"{body[:60]!r}: {answer.status} {answer.error}, not {code}")


@attack("calls with long arguments, good ones and wrong ones, whole and in pieces")
def long_arguments(server):
    with server.client() as client:
        for name, arguments in (("run_python", {"code": "#" + "y" * 900000}), ("run_python", {"code": "\n" * 450000}), ("true", {"x": "y" * 900000}),
                                ("run_command", {"command": "y" * 900000}), ("run_python", {"code": "\u00e9" * 100000}), ("true", {"x": [0] * 19000}),
                                ("true", {f"x{number}": {} for number in range(9000)})):  # fmt: skip
            answer = client.call(name, arguments)
            equal(answer.status, 200, f"status of {name} with {len(str(arguments))} characters")


@attack("floods of headers")
def header_flood(server):
    for fields in (b"".join(b"X%d: a\r\n" % number for number in range(100000)), b"X: " + b"a" * 5000000,
                   b"Mcp-Param-X: a\r\n" * 100000):
        with server.socket() as sock, contextlib.suppress(OSError):
            sock.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n" + fields)
            answer = read_answer(sock)
            check(answer is None or answer[0] in (400, 431), f"{answer}")


@attack("answers that nobody reads")
def unread(server):
    socks = []
    request = modern_request(server, "tools/list")
    for _ in range(20):
        sock = server.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.settimeout(0.2)
        with contextlib.suppress(OSError):
            for _ in range(500):
                sock.sendall(request)
        socks.append(sock)
    check(server.memory()[0] < (200 << 10) * harness.SLOW, f"{server.memory()[0]} KiB are held")
    for sock in socks:
        sock.close()


@attack("a tool that floods, for a client that does not read")
def flood(server):
    socks = []
    for _ in range(4):
        sock = server.socket()
        sock.sendall(modern_request(server, params={"name": "flood", "arguments": {"mark": "x" * 1000}, }))
        socks.append(sock)
    time.sleep(1)
    check(server.memory()[0] < (200 << 10) * harness.SLOW, f"{server.memory()[0]} KiB are held")
    for sock in socks:
        sock.close()


@case("hostile: no descriptors left: the server waits, and goes on", alone=True)
def no_descriptors():
    with Server(files=64) as server:
        socks = []
        for _ in range(100):
            with contextlib.suppress(OSError):
                socks.append(server.socket())
        with server.client() as client:
            equal(client.modern("tools/list").status, 200, "status while others hold connections")
        for sock in socks:
            sock.close()
        with server.client() as client:
            check(wait_until(lambda: text_of(client.call("echo", {"text": "x"})) == "x", 20), "calls do not work again")


# ---- Load ----------------------------------------------------------------------------------------


def load(calls, connections=64):
    with Server() as server:
        fleet = Fleet(server, connections, modern_request(server, params={"name": "true", "arguments": {}}))
        try:
            times = fleet.go(calls)
        finally:
            fleet.close()
        samples = check_exposition(server.metrics())
        equal(samples["callbox_calls_total", 'tool="true",outcome="ok"'], calls, "calls that were counted")
        print(f"# {calls} calls over {connections} connections: p50 {percentile(times, 0.5) * 1000:.1f} ms, "
              f"p99 {percentile(times, 0.99) * 1000:.1f} ms")


@case("load: 64 connections, no error", alone=True)
def load_short():
    load(10000 if FULL else 300 if SMOKE else 1500)


def churn(server, count):
    """Connections opened and dropped, in every state."""
    listing = modern_request(server, "tools/list")
    call = modern_request(server, params={"name": "true", "arguments": {}})
    start = head(server, body=json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}).encode())
    for number in range(count):
        kind = number % 8
        sock = server.socket()
        if kind == 1:
            sock.send(listing[: number % len(listing)])
        elif kind in (2, 3):
            sock.send(listing)
            read_answer(sock)
        elif kind == 4:
            sock.send(call)
        elif kind == 5 and number % 80 == 5:
            sock.send(start)
            read_answer(sock)
        elif kind == 6:
            sock.send(b"\x00" * 100)
        if kind == 7:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()


@case("load: connections opened and dropped leave nothing", alone=True)
def churned():
    count = 20000 if FULL else 400 if SMOKE else 2000
    with Server() as server:
        churn(server, max(count // 4, 800))
        time.sleep(0.2)
        before = server.memory()
        churn(server, count)
        check(wait_until(lambda: server.memory()[1] <= before[1] + 4, 90), lambda: f"{server.memory()[1]} descriptors, {before[1]} before")
        after = server.memory()
        # Sessions that were begun and left are kept for a while: some 50 of them in 4 000.
        check(after[0] - before[0] < 4096 * harness.SLOW, f"{after[0] - before[0]} KiB more than before")
        check(wait_until(lambda: check_exposition(server.metrics())["callbox_calls_running", None] == 0, 30), "calls go on")
        print(f"# {count} connections: {after[0] - before[0]:+} KiB, {after[1] - before[1]:+} descriptors")


def after():
    if "server" in _shared:
        _shared["server"].stop()
    SCRATCH.remove()


if __name__ == "__main__":
    sys.exit(harness.main(after=after))
