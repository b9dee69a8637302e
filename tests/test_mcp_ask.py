#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""callbox mcp: content that tools give, what they ask for, calls that have to be approved, and tasks."""

import base64
import json
import os
import sys

import jsonschema

import harness
from harness import REPO, case, check, equal, for_people, wait_until
from mcp_client import FORMS, META, TASKS, Server, bad, folder_of, good, modern, text_of
from tooling import CALLBOX, SCRATCH, manifest

STRING = {"type": "string"}
BOOLEAN = {"type": "boolean"}
NAME = {"method": "elicitation/create", "params": {"message": "What is your name?", "requestedSchema": {
    "type": "object", "properties": {"name": STRING}, "required": ["name"]}}}  # fmt: skip
SAMPLE = {"method": "sampling/createMessage", "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 9}}
ROOTS = {"method": "roots/list", "params": {}}


def python(text):
    """A tool whose answer is what this Python makes of `answers` and `state`, by `give(result)`."""
    head = ("import json, os, sys, time\n"
            "found = json.loads(os.environ.get('CALLBOX_ANSWERS', '{}'))\n"
            "answers, state = found.get('inputResponses') or {}, found.get('requestState')\n"
            "def give(result): print(json.dumps(result)); sys.exit(0)\n"
            "def say(text): give({'content': [{'type': 'text', 'text': text}]})\n")  # fmt: skip
    return {"command": ["python3", "-c", (head + text).replace("{", "{{").replace("}", "}}")], "output": "json"}


def content(name, text, **more):
    return manifest(name, run=python(text), returns="content", **more)


def accept(**content):
    return {"action": "accept", "content": content}


ALLOW = {"approval": accept(allow=True)}

GREETER = content("greeter", f"""
if 'name' not in (answers.get('user') or {{}}).get('content', {{}}): give({{'inputRequests': {{'user': {NAME!r}}}}})
say('Hello, ' + answers['user']['content']['name'])""")  # fmt: skip
ROUNDS = content("rounds", f"""
if state is None: give({{'inputRequests': {{'step': {NAME!r}}}, 'requestState': {{'round': 1, 'names': []}}}})
names = state['names'] + [answers['step']['content']['name']]
if state['round'] < 3: give({{'inputRequests': {{'step': {NAME!r}}}, 'requestState': {{'round': state['round'] + 1, 'names': names}}}})
say(' '.join(names))""")  # fmt: skip
ALL_KINDS = content("all_kinds", f"""
if not answers: give({{'inputRequests': {{'a': {NAME!r}, 'b': {SAMPLE!r}, 'c': {ROOTS!r}}}}})
say(' '.join(sorted(answers)))""")  # fmt: skip


# ---- Content -------------------------------------------------------------------------------------


@case("a tool gives content blocks of every kind, and an error of the protocol; what is neither fails")
def blocks():
    picture = base64.b64encode(b"picture").decode()
    kinds = [{"type": "text", "text": "words"}, {"type": "image", "data": picture, "mimeType": "image/png"},
             {"type": "audio", "data": picture, "mimeType": "audio/wav"}, {"type": "resource_link", "uri": "test://x", "name": "x"},
             {"type": "resource", "resource": {"uri": "test://x", "mimeType": "text/plain", "text": "x"}}]  # fmt: skip
    tools = [
        content("kinds", f"give({{'content': {kinds!r}, 'structuredContent': {{'n': 5}}, '_meta': {{'own/key': 1}}}})",
                outputSchema={"type": "object", "required": ["n"]}),
        content("promise", "say('no structure')", outputSchema={"type": "object", "required": ["n"]}),
        content("failed", "give({'content': [{'type': 'text', 'text': 'no'}], 'isError': True})", outputSchema={"type": "object"}),
        content("protocol", "give({'error': {'code': 7, 'message': 'broken', 'data': {'x': 1}}})"),
        content("reserved", "give({'error': {'code': -32603, 'message': 'broken'}})"),
        *[content(f"wrong{i}", f"give({value})") for i, value in enumerate([
            "3", "{}", "{'content': 3}", "{'content': [{'type': 'text'}]}", "{'content': [{'type': 'video', 'data': ''}]}",
            "{'content': [], 'isError': 1}", "{'content': [], 'resultType': 'task'}", "{'content': [], '_meta': 1}",
            "{'inputRequests': {}}", "{'inputRequests': {'a': {'method': 'tools/call'}}}", "{'inputRequests': 1}", "{'error': {}}"])],
    ]  # fmt: skip
    with Server("--tools", folder_of(*tools)) as server:
        found = server.call("kinds")
        equal((found["content"], found["structuredContent"], found["_meta"]["own/key"]), (kinds, {"n": 5}, 1), "the result")
        check("broke its own promise" in bad(server.call("promise")), "a promise")
        equal(text_of(server.call("failed")), "no", "an error of the tool's own")
        equal(server.call("failed")["isError"], True, "that it is one")
        equal(server.error("tools/call", {"name": "protocol"}), {"code": 7, "message": "broken", "data": {"x": 1}}, "an error of the protocol")
        for tool in tools[4:]:
            text = bad(server.call(tool["name"], capabilities=FORMS))
            check("none of MCP" in text, lambda: f"{tool['name']}: {text}")


# ---- What tools ask for --------------------------------------------------------------------------


def again(server, name, asked, responses, capabilities=FORMS, arguments=None, **more):
    """Call again with answers, as a client of 2026-07-28 does."""
    params = {"name": name, "arguments": arguments or {}, "inputResponses": responses, **more}
    if "requestState" in asked:
        params.setdefault("requestState", asked["requestState"])
    return server.request("tools/call", params, capabilities=capabilities)


@case("2026-07-28: what a tool asks for is the answer, and the next call brings it along")
def asks_modern():
    with Server("--tools", folder_of(GREETER, ROUNDS, ALL_KINDS, manifest("needs", ["echo"], needs=["elicitation", "sampling"]))) as server:
        asked = server.call("greeter", capabilities=FORMS)
        equal((asked["resultType"], asked["inputRequests"]), ("input_required", {"user": NAME}), "the question")
        check("requestState" not in asked, "state of a tool that has none")
        answer = again(server, "greeter", asked, {"user": accept(name="Ada"), "extra": {"x": 1}})
        equal(good(answer["result"]), "Hello, Ada", "the answer")
        for responses in ({}, {"other": accept(name="Ada")}):
            equal(again(server, "greeter", asked, responses)["result"]["resultType"], "input_required", "what is missing is asked again")
        for responses in ([], 3, {"user": 3}, None):
            equal(again(server, "greeter", asked, responses)["error"]["code"], -32602, "what is no answer")
        asked = server.call("rounds", capabilities=FORMS)
        states = [asked["requestState"]]
        for name in ("a", "b"):
            asked = again(server, "rounds", asked, {"step": accept(name=name)})["result"]
            states.append(asked["requestState"])
        equal(len(set(states)), 3, "states that differ")
        equal(good(again(server, "rounds", asked, {"step": accept(name="c")})["result"]), "a b c", "three rounds")
        # What a tool says that it needs is asked for before it is called.
        error = server.error("tools/call", {"name": "needs"}, capabilities=FORMS)
        equal((error["code"], error["data"]["requiredCapabilities"]), (-32021, {"sampling": {}}), "what a tool needs")
        equal(good(server.call("needs", capabilities={**FORMS, "sampling": {}})), "\n", "a client that can")
        # Only what the client can do is asked of it.
        found = server.call("all_kinds", capabilities={"sampling": {}})
        equal(list(found["inputRequests"]), ["b"], "what such a client is asked")
        error = server.error("tools/call", {"name": "all_kinds"})
        equal((error["code"], sorted(error["data"]["requiredCapabilities"])), (-32021, ["elicitation", "roots", "sampling"]), "one that can do nothing")
        equal(server.error("tools/call", {"name": "greeter"}, capabilities={"elicitation": {"url": {}}})["code"], -32021, "no forms")


@case("state that was changed, is of another call, or of another server is refused")
def sealed():
    with Server("--tools", folder_of(ROUNDS, content("other", "say('x')"))) as server, Server("--tools", folder_of(ROUNDS)) as elsewhere:
        asked = server.call("rounds", capabilities=FORMS)
        state = asked["requestState"]
        good_one = {"step": accept(name="a")}
        plain, mac = state.split(".")
        text = json.loads(base64.urlsafe_b64decode(plain + "=" * (-len(plain) % 4)))
        text["state"]["round"] = 3
        forged = base64.urlsafe_b64encode(json.dumps(text).encode()).decode().rstrip("=")
        changed = [state[:-1], state + "A", state[:5] + ("A" if state[5] != "A" else "B") + state[6:], "", ".", "x", plain, f"{plain}.",
                   f"{forged}.{mac}", f".{mac}", state.upper(), elsewhere.call("rounds", capabilities=FORMS)["requestState"], "A" * 300000]  # fmt: skip
        for value in changed:
            error = again(server, "rounds", {}, good_one, requestState=value).get("error", {})
            equal(error.get("code"), -32602, f"the code for {value[:40]!r}")
        equal(again(server, "rounds", {}, good_one, requestState=3)["error"]["code"], -32602, "a number")
        equal(again(server, "other", {}, good_one, requestState=state)["error"]["code"], -32602, "another tool")
        equal(again(server, "rounds", {}, good_one, arguments={"x": 1}, requestState=state)["error"]["code"], -32602, "other arguments")
        equal(again(server, "rounds", asked, good_one)["result"]["resultType"], "input_required", "as it was given")


def play(server, id, reply):
    """Answer the questions of the older era by `reply(method, params)` until the response comes."""
    asked = []
    for _ in range(50):
        message = server.read()
        if "method" not in message and message.get("id") == id:
            return message, asked
        check("method" in message and "id" in message, lambda: f"not a question: {message}")
        asked.append(message["method"])
        found = reply(message["method"], message["params"])
        if found is not None:
            server.send({"jsonrpc": "2.0", "id": message["id"], **found})
    raise harness.Failed("too many questions")


@case("2025-11-25: what a tool asks for is asked while it waits")
def asks_legacy():
    with Server("--tools", folder_of(GREETER, ROUNDS, ALL_KINDS)) as server:
        server.greet(capabilities={"elicitation": {}, "sampling": {}, "roots": {}})

        def call(name, reply):
            return play(server, server.ask("tools/call", {"name": name}), reply)

        answer, asked = call("greeter", lambda method, params: {"result": accept(name=params["message"])})
        equal((good(answer["result"]), asked), ("Hello, What is your name?", ["elicitation/create"]), "one question")
        names = iter("abc")
        answer, asked = call("rounds", lambda method, params: {"result": accept(name=next(names))})
        equal((good(answer["result"]), len(asked)), ("a b c", 3), "three rounds")
        answer, asked = call("all_kinds", lambda method, params: {"result": {"roots": []}})
        equal((good(answer["result"]), len(asked)), ("a b c", 3), "three kinds at once")
        answer, _ = call("greeter", lambda method, params: {"error": {"code": -1, "message": "the user is out"}})
        check("the user is out" in bad(answer["result"]), "an error for an answer")
        # A question is not in the way of anything else, and its call can be cancelled.
        id = server.ask("tools/call", {"name": "greeter"})
        question = server.read()
        equal(server.old("ping")[0]["result"], {}, "a ping while a question is open")
        server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
        server.send({"jsonrpc": "2.0", "id": question["id"], "result": accept(name="late")})
        equal(server.old("ping"), ({"jsonrpc": "2.0", "id": server.serial, "result": {}}, []), "an answer that comes too late")
    with Server("--tools", folder_of(GREETER)) as server:
        server.greet()
        check("cannot do" in bad(server.old_call("greeter")[0]), "a client that cannot be asked")


# ---- Approval ------------------------------------------------------------------------------------


def folder_with_secret(user):
    """A directory of the host with a secret in it, and a tool that may read it once it was approved."""
    place = SCRATCH.directory(user)
    (place / "key").write_text("4711")
    tool = manifest("widens", ["sh", "-c", "cat -- \"$1\" 2>/dev/null || echo hidden", "sh", "{path}"], {"path": STRING},
                    ask={"message": "May it read this?", "policy": {"files": {"read": [str(place)]}}})  # fmt: skip
    return tool, {"path": str(place / "key")}


@for_people("2026-07-28: a call that has to be approved runs after a yes, once, and under the wider policy alone then")
def approvals(user):
    tool, arguments = folder_with_secret(user)
    sometimes = manifest("sometimes", ["echo", "{word}"], None, ask={"message": "Loud?", "when": "loud"})
    sometimes["inputSchema"] = {"type": "object", "properties": {"word": STRING, "loud": BOOLEAN}, "required": ["word"]}
    folder = folder_of(tool, sometimes, user=user)
    with Server("--tools", folder, user=user) as server:

        def ask():
            return server.call("widens", arguments, capabilities=FORMS)

        def reply(asked, responses, **more):
            return again(server, "widens", asked, responses, **{"arguments": arguments, **more})

        asked = ask()
        question = asked["inputRequests"]["approval"]
        equal((asked["resultType"], question["method"]), ("input_required", "elicitation/create"), "the question")
        for part in ("May it read this?", "widens", arguments["path"], "policy"):
            check(part in question["params"]["message"], lambda: f"{part} is not in {question}")
        equal(good(reply(asked, ALLOW)["result"]), "4711", "after a yes")
        equal(reply(asked, ALLOW)["error"]["code"], -32602, "the same yes again")
        for no in ({"approval": {"action": "decline"}}, {"approval": {"action": "cancel"}}, {"approval": accept()}, {"approval": accept(allow=False)},
                   {"approval": accept(allow="true")}, {"approval": accept(allow=1)}, {"approval": {"action": "yes", "content": {"allow": True}}}):  # fmt: skip
            asked = ask()
            check("did not allow" in bad(reply(asked, no)["result"]), lambda: f"{no} is a yes")
            equal(reply(asked, ALLOW)["error"]["code"], -32602, "a yes after a no")
        equal(reply(ask(), {})["result"]["resultType"], "input_required", "no answer: it is asked again")
        equal(server.request("tools/call", {"name": "widens", "arguments": arguments, "inputResponses": ALLOW}, capabilities=FORMS)["result"]["resultType"],
              "input_required", "a yes to a question that was not asked")  # fmt: skip
        equal(reply(ask(), ALLOW, arguments={"path": "/etc/passwd"})["error"]["code"], -32602, "a yes for other arguments")
        check("wrong" in bad(server.call("widens", {}, capabilities=FORMS)), "wrong arguments are told at once")
        error = server.error("tools/call", {"name": "widens", "arguments": arguments})
        equal((error["code"], error["data"]), (-32021, {"requiredCapabilities": {"elicitation": {}}}), "a client that cannot ask")
        # A tool that was changed meanwhile is not what was approved.
        asked = ask()
        server.ask("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, **modern())
        server.read()
        (folder / "widens.json").write_text(json.dumps({**tool, "run": {"command": ["echo", "changed {path}"]}}))
        equal(server.read()["method"], "notifications/tools/list_changed", "the change")
        equal(reply(asked, ALLOW)["error"]["code"], -32602, "a yes for what the tool was")
        # Whoever decides sees all of it, and nothing that looks like what it is not.
        odd = {"word": "a\u2028\u202eIf you allow it, it runs under this policy: {}", "loud": True}
        asked = server.call("sometimes", odd, capabilities=FORMS)
        message = asked["inputRequests"]["approval"]["params"]["message"]
        check("\\u2028\\u202eif" in message.lower() and message.isascii(), lambda: f"the question is {message!r}")
        long = server.call("sometimes", {"word": "x" * 5000, "loud": True}, capabilities=FORMS)
        check("too long to be shown" in bad(long), lambda: f"it is asked: {long}")
        # Only some calls ask.
        equal(good(server.call("sometimes", {"word": "x"})), "x\n", "nothing to ask")
        equal(good(server.call("sometimes", {"word": "x", "loud": False})), "x\n", "nothing to ask, said so")
        asked = server.call("sometimes", {"word": "x", "loud": True}, capabilities=FORMS)
        equal(asked["resultType"], "input_required", "something to ask")


@for_people("2025-11-25: a call that has to be approved asks by elicitation, and fails where that cannot be")
def approvals_legacy(user):
    tool, arguments = folder_with_secret(user)
    folder = folder_of(tool, user=user)
    with Server("--tools", folder, user=user) as server:
        server.greet("2025-06-18", capabilities=FORMS)
        for reply, wanted in [(accept(allow=True), "4711"), (accept(allow=False), None), ({"action": "decline"}, None), ({}, None)]:
            answer, asked = play(server, server.ask("tools/call", {"name": "widens", "arguments": arguments}), lambda method, params: {"result": reply})
            equal(asked, ["elicitation/create"], "what was asked")
            if wanted:
                equal(good(answer["result"]), wanted, "after a yes")
            else:
                check("did not allow" in bad(answer["result"]), lambda: f"{reply} is a yes")
    with Server("--tools", folder, user=user) as server:
        server.greet("2025-06-18")
        check("was not approved" in bad(server.old_call("widens", arguments)[0]), "a client that cannot ask")


@for_people("callbox tool call needs --approve for such a tool")
def approvals_command(user):
    tool, arguments = folder_with_secret(user)
    folder = folder_of(tool, user=user)
    words = ["tool", "call", "--tools", folder, "widens", json.dumps(arguments)]
    done = harness.callbox(words, user=user, binary=CALLBOX, cwd="/")
    check(done.code == 2 and b"has to be approved" in done.err and b"4711" not in done.out, lambda: done.brief())
    done = harness.callbox([*words, "--approve"], user=user, binary=CALLBOX, cwd="/")
    equal((done.code, done.out), (0, b"4711\n"), "with --approve")


# ---- Tasks ---------------------------------------------------------------------------------------

SLOW_TOOL = manifest("slow", ["sh", "-c", "sleep \"$1\"; echo slept", "sh", "{seconds}"], {"seconds": STRING}, task={})
PARKED = content("parked", f"""
if len(answers) < 2: give({{'inputRequests': {{'one': {NAME!r}, 'two': {NAME!r}}}}})
say(answers['one']['content']['name'] + answers['two']['content']['name'])""", task={"required": True})  # fmt: skip
FIRST = content("first", f"""
if not answers: give({{'inputRequests': {{'user': {NAME!r}}}}})
say('Hello, ' + answers['user']['content']['name'])""", task={"required": True, "inputFirst": True})  # fmt: skip


def settled(server, id, capabilities=TASKS):
    return wait_until(lambda: (lambda found: found if found["status"] != "working" else None)(
        server.result("tasks/get", {"taskId": id}, capabilities=capabilities)), 20, 0.02)  # fmt: skip


@for_people("tasks: the handle first, the result later; cancelled ones are killed")
def tasks(user):
    mark = f"6{os.getpid()}{int(user)}"
    tools = [SLOW_TOOL, content("protocol", "give({'error': {'code': 7, 'message': 'broken'}})", task={}),
             manifest("steps", run={"shell": "echo '{\"progress\": 1, \"message\": \"half way\"}'; sleep 20; echo '{\"result\": 1}'", "output": "json-lines"}, task={}),
             manifest("failing", ["sh", "-c", "echo no >&2; exit 3"], task={"required": True})]  # fmt: skip
    with Server("--tools", folder_of(*tools, user=user), user=user) as server:

        def call(name, **arguments):
            return server.call(name, arguments, capabilities=TASKS)

        made = call("slow", seconds="0.3")
        equal((made["resultType"], made["status"], len(made["taskId"])), ("task", "working", 32), "the handle")
        check(made["ttlMs"] > 0 and made["pollIntervalMs"] > 0 and made["createdAt"].endswith("Z"), lambda: str(made))
        check("requestState" not in made and "result" not in made, lambda: str(made))
        equal(server.result("tasks/get", {"taskId": made["taskId"]}, capabilities=TASKS)["taskId"], made["taskId"], "at once")
        found = settled(server, made["taskId"])
        equal((found["status"], good(found["result"]), found["resultType"]), ("completed", "slept\n", "complete"), "the result")
        found = settled(server, call("failing")["taskId"])
        check(found["status"] == "completed" and "exit code 3" in bad(found["result"]), lambda: str(found))
        found = settled(server, call("protocol")["taskId"])
        equal((found["status"], found["error"]["code"], "result" in found), ("failed", 7, False), "an error of the protocol")
        running = call("steps")["taskId"]
        check(wait_until(lambda: server.result("tasks/get", {"taskId": running}, capabilities=TASKS).get("statusMessage") == "half way", 10), "how far it is")
        running = call("slow", seconds=mark)["taskId"]
        check(wait_until(lambda: harness.programs(f"sleep\0{mark}"), 10), "the box did not start")
        for _ in range(2):
            found = server.result("tasks/cancel", {"taskId": running}, capabilities=TASKS)
            equal((found["resultType"], "status" in found), ("complete", False), "the end of a task")
        check(wait_until(lambda: not harness.programs(f"sleep\0{mark}"), 5), "the box lives on")
        equal(server.result("tasks/get", {"taskId": running}, capabilities=TASKS)["status"], "cancelled", "its status")
        for method in ("tasks/get", "tasks/cancel", "tasks/update"):
            equal(server.error(method, {"taskId": "0" * 32, "inputResponses": {}}, capabilities=TASKS)["code"], -32602, f"{method} of none")
            equal(server.error(method, {"taskId": made["taskId"], "inputResponses": {}})["code"], -32021, f"{method} without the extension")
        # Who does not know tasks gets the result itself, or is told that he has to.
        equal(good(server.call("slow", {"seconds": "0"})), "slept\n", "without the extension")
        error = server.error("tools/call", {"name": "failing"})
        equal((error["code"], error["data"]["requiredCapabilities"]), (-32021, {"extensions": {META + "tasks": {}}}), "one that must be a task")
        server.greet()
        check("exit code 3" in bad(server.old_call("failing")[0]), "the older era knows no tasks")


@case("tasks that ask: in parts, by keys of their own; or before there is one")
def tasks_ask():
    both = {**TASKS, **FORMS}
    with Server("--tools", folder_of(PARKED, FIRST)) as server:
        made = server.call("parked", capabilities=both)["taskId"]
        found = settled(server, made)
        keys = sorted(found["inputRequests"])
        equal((found["status"], len(keys), found["inputRequests"][keys[0]]), ("input_required", 2, NAME), "what is asked")

        def update(responses):
            return server.result("tasks/update", {"taskId": made, "inputResponses": responses}, capabilities=both)

        equal(update({"nonsense": accept(name="x"), keys[0]: accept(name="A")})["resultType"], "complete", "a part")
        found = server.result("tasks/get", {"taskId": made}, capabilities=both)
        equal((found["status"], list(found["inputRequests"])), ("input_required", [keys[1]]), "what is left")
        update({keys[0]: accept(name="Z"), keys[1]: accept(name="B")})
        found = settled(server, made)
        equal((found["status"], good(found["result"])), ("completed", "AB"), "the result")
        asked = server.call("first", capabilities=both)
        check(asked["resultType"] == "input_required" and "taskId" not in asked, lambda: str(asked))
        made = again(server, "first", asked, {"user": accept(name="Alice")}, capabilities=both)["result"]
        check(made["resultType"] == "task" and "requestState" not in made and "inputRequests" not in made, lambda: str(made))
        equal(good(settled(server, made["taskId"])["result"]), "Hello, Alice", "the result of the task")


@case("the end of stdin ends tasks too", alone=True)
def tasks_end():
    mark = f"7{os.getpid()}"
    with Server("--tools", folder_of(SLOW_TOOL)) as server:
        server.call("slow", {"seconds": mark}, capabilities=TASKS)
        check(wait_until(lambda: harness.programs(f"sleep\0{mark}"), 10), "the box did not start")
    check(wait_until(lambda: not harness.programs(f"sleep\0{mark}"), 5), "the box lives on")


# ---- Manifests -----------------------------------------------------------------------------------


@case("mistakes in ask, returns and task are found, all of them")
def manifests():
    wrong = [
        ({"ask": True}, "ask"), ({"ask": {}}, "ask.message"), ({"ask": {"message": ""}}, "ask.message"), ({"ask": {"message": "x", "when": "nope"}}, "ask.when"),
        ({"ask": {"message": "x", "policy": 3}}, "ask.policy"), ({"ask": {"message": "x", "policy": {"network": "all"}}}, "ask.policy.network"),
        ({"ask": {"message": "x", "polizy": {}}}, "ask.polizy"), ({"returns": "blocks"}, "returns"), ({"task": True}, "task"), ({"task": {"required": 1}}, "task.required"),
        ({"needs": ["video"]}, "needs[0]"), ({"needs": "roots"}, "needs"),
    ]  # fmt: skip
    schema = jsonschema.Draft202012Validator(json.loads((REPO / "schema" / "manifest.schema.json").read_text()))
    unseen = {"ask.when", "ask.policy.network"}  # of another part of the manifest, of another schema
    for more, where in wrong:
        equal(schema.is_valid(manifest("t", **more)), where in unseen, f"whether the schema allows {more}")
        folder = folder_of(manifest("t", **more))
        done = harness.callbox(["tool", "check", "--json", folder], cwd="/")
        found = [mistake["where"] for file in json.loads(done.out) for mistake in file.get("mistakes", [])]
        equal((done.code, found), (1, [where]), f"the mistakes of {more}")


@case("manifests that are in order are so for the schema too")
def manifests_in_order():
    schema = jsonschema.Draft202012Validator(json.loads((REPO / "schema" / "manifest.schema.json").read_text()))
    for tool in (GREETER, PARKED, FIRST, SLOW_TOOL, folder_with_secret(False)[0], manifest("t", needs=["roots"])):
        schema.validate(tool)
        equal(harness.callbox(["tool", "check", folder_of(tool)], cwd="/").code, 0, f"the check of {tool['name']}")


if __name__ == "__main__":
    sys.exit(harness.main(after=SCRATCH.remove))
