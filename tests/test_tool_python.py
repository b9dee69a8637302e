#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Python functions as tools: by manifests, by --python-tools, by the library and over MCP; what is said of
them, what becomes of their results and errors, how files are followed; and files that mean harm, which are
never loaded outside of a box."""

import json
import os
import select
import subprocess
import sys
import time

import harness
import mcp_client
import mcp_http
import tooling
from harness import case, check, equal, for_people
from tooling import BUILD, CALLBOX, ENVIRONMENT, SCRATCH, bad, good, manifest, toolbox

TOOLS = '''
"""Tools."""
from __future__ import annotations
import asyncio, dataclasses, datetime, enum, os
from typing import Dict, List, Literal, NamedTuple, Optional, TypedDict

TOKEN = os.urandom(8).hex()

class Unit(enum.Enum):
    C = "c"
    F = "f"

@dataclasses.dataclass
class Weather:
    degrees: float
    unit: Unit
    at: Optional[datetime.date] = None

class Place(TypedDict):
    name: str
    height: int

class Point(NamedTuple):
    x: int
    y: int

def weather(city: str, unit: Unit = Unit.C, days: Optional[int] = None) -> Weather:
    """Tell the weather of a city.

    Args:
        city: its name
    """
    print("looking for", city)
    assert isinstance(unit, Unit)
    return Weather(20.5, unit, datetime.date(2026, 3, 1))

async def later(words: List[str], mode: Literal["all", "first"] = "all") -> int:
    "Count words, later."
    await asyncio.sleep(0)
    return len(words) if mode == "all" else 1

def places(near: Place) -> Dict[str, Place]:
    "Places."
    return {near["name"]: near}

def points() -> List[Point]:
    "Points."
    return [Point(1, 2)]

def odd():
    "What JSON has in another form."
    return {"set": {1}, "bytes": b"ab", "tuple": (1, 2), "time": datetime.timedelta(seconds=1.5), 3: "three"}

def strange():
    "What it has no form of."
    return [object()]

def fails(amount: int):
    "Fail."
    raise ValueError("bad amount %d" % amount)

def token() -> str:
    "Of the process that has loaded the file."
    return TOKEN

def steps(n: int) -> int:
    "Tell what it does."
    from callbox import log, progress
    for i in range(n):
        progress(i + 1, n, "step")
    log("done", "warning")
    return n

def many(*words: str) -> int:
    "Count."
    return len(words)

def plain(x): return x

def gen(x: int):
    yield x

def _own(x: int): return x
'''


def place(user=False, **files):
    """A folder with these files: tools_py="..."."""
    folder = SCRATCH.directory(user)
    for name, text in files.items():
        path = folder / ".".join(name.rsplit("_", 1))
        path.write_text(text if isinstance(text, str) else json.dumps(text))
        SCRATCH.own(path, user)
    return folder


def tool(*words, user=False, env=None, **options):
    options.setdefault("cwd", "/")
    return harness.callbox(["tool", *map(str, words)], user=user, binary=CALLBOX, json_report="--json" in words,
                           env={**ENVIRONMENT, **(env or {})}, **options)  # fmt: skip


def called(*words, **options):
    done = tool("call", *words, **options)
    equal(done.code, 0, f"the exit code of {words[-2:]} ({done.err!r})")
    try:
        return json.loads(done.out)
    except ValueError:
        return done.out.decode().rstrip("\n")  # a text is printed as it is


def function(name="f", key="f", **more):
    return {"name": name, "run": {"python": key, "file": "tools.py"}, **more}


BOXES = ({}, {"box": "landlock"})


# ---- A file --------------------------------------------------------------------------------------


@for_people("all functions of a file are tools: listed, described by hints and docstring, and called")
def of_a_file(user):
    file = place(user, tools_py=TOOLS) / "tools.py"
    done = tool("list", "--python-tools", file, user=user)
    names = [line.split()[0] for line in done.out.decode().splitlines()]
    equal(names, sorted(["weather", "later", "places", "points", "odd", "strange", "fails", "token", "steps", "many"]), "the tools")
    for text in (b"plain is left out: it has neither type hints nor a docstring", b"gen is left out: it yields"):
        check(text in done.err, lambda: f"{text} is not in {done.err!r}")
    check(b"_own" not in done.err, "a private function is spoken of")
    listed = {item["name"]: item for item in json.loads(tool("list", "--json", "--python-tools", file, user=user).out)}
    weather = listed["weather"]
    equal(weather["description"], "Tell the weather of a city.", "the description")
    equal(weather["inputSchema"]["required"], ["city"], "what is required")
    equal(weather["inputSchema"]["properties"]["city"], {"type": "string", "description": "its name"}, "a parameter")
    equal(weather["inputSchema"]["properties"]["unit"], {"enum": ["c", "f"], "default": "c"}, "an Enum")
    equal(weather["outputSchema"]["type"], "object", "the schema of a result")
    equal(listed["later"]["inputSchema"]["properties"]["mode"]["enum"], ["all", "first"], "a Literal")
    equal(called("--python-tools", file, "weather", '{"city": "Bonn", "unit": "f"}', user=user),
          {"degrees": 20.5, "unit": "f", "at": "2026-03-01"}, "a dataclass")  # fmt: skip


@case("async functions, typed dicts, named tuples and *args; what JSON has no form of is refused by its place")
def values():
    with toolbox() as box:
        box.load_python(place(tools_py=TOOLS) / "tools.py")
        equal(good(box.call("later", {"words": ["a", "b"]})), 2, "an async function")
        equal(good(box.call("places", {"near": {"name": "x", "height": 3}})), {"x": {"name": "x", "height": 3}}, "a typed dict")
        equal(good(box.call("points")), [{"x": 1, "y": 2}], "a named tuple")
        equal(good(box.call("odd")), {"set": [1], "bytes": "YWI=", "tuple": [1, 2], "time": 1.5, "3": "three"}, "odd values")
        equal(good(box.call("many", {"words": ["a", "b", "c"]})), 3, "*args")
        bad(box.call("strange"), "result[0]: an object cannot leave the box")
        tooling.refused(box.call("later", {"words": [1]}), "the arguments are wrong")


@case("what a function prints is its output, an exception its error with type, text and last lines; progress and log are told")
def telling():
    with toolbox() as box:
        box.load_python(place(tools_py=TOOLS) / "tools.py")
        report = box.call("weather", {"city": "Bonn"})
        good(report)
        check(b"looking for Bonn" in report["output"], lambda: f"the output is {report['output']!r}")
        error = bad(box.call("fails", {"amount": 3}), "ValueError: bad amount 3")["error"]
        check('tools.py", line ' in error and "raise ValueError" in error, lambda: f"the error is {error!r}")
        check("_serve.py" not in error and "_hosted.py" not in error, lambda: f"callbox's own lines are in {error!r}")
    done = tool("call", "--python-tools", place(tools_py=TOOLS) / "tools.py", "steps", '{"n": 2}')
    check(b"1 of 2: step" in done.err and b"warning: done" in done.err, lambda: f"stderr is {done.err!r}")


@case("the module is loaded once, and forked for each call")
def warm():
    with toolbox(options={"prepared": 2}) as box:
        box.load_python(place(tools_py=TOOLS) / "tools.py")
        good(box.call("token"))
        deadline, seen = time.monotonic() + 30 * harness.SLOW, []
        while len(seen) < 3 or len(set(seen[-3:])) > 1:
            check(time.monotonic() < deadline, lambda: f"each call has loaded it anew: {seen}")
            seen.append(good(box.call("token")))


@case("a file has the name of a module of Python's own, or an odd one")
def odd_names():
    for name in ("random.py", "my-tools.py", "callbox.py"):
        folder = SCRATCH.directory()
        (folder / name).write_text("import random, tempfile\ndef f(x: int) -> int:\n    'Add.'\n    return x + random.randint(1, 1)\n")
        equal(called("--python-tools", folder / name, "f", '{"x": 1}'), 2, f"the result of {name}")


@case("marked functions are the only tools of their file; what a decorator says holds, but for a policy")
def decorated():
    folder = place(tools_py="""
from callbox import Policy, tool
@tool(name="double-it", description="Twice.", annotations={"readOnlyHint": True})
def double(x: int) -> int: return 2 * x
@tool(policy=Policy(network="host"))
def wide() -> str:
    "Nothing more."
    import socket
    socket.create_connection(("127.0.0.1", 1), 1)
def other(x: int) -> int: return x
""")
    with toolbox() as box:
        box.load_python(folder / "tools.py")
        equal([item["name"] for item in box.list()], ["double-it", "wide"], "the tools")
        equal(box.get("double-it")["annotations"], {"readOnlyHint": True}, "the annotations")
        equal(good(box.call("double-it", {"x": 4})), 8, "the result")
        bad(box.call("wide"), "Network is unreachable")
        told = [event[3] for event in iter(box.step, None) if event[0] == "broken"]
        check(any("names a policy, which is not taken from the file" in text for text in told), lambda: f"it was told {told}")


@case("tools of jeevesagent, loomflow and OpenJarvis load as they are, without those packages")
def ancestors():
    with toolbox() as box:
        for package in ("jeevesagent", "loomflow"):
            box.load_python(place(tools_py=f"""
from {package} import tool
@tool
def add_{package}(a: int, b: int = 1) -> int:
    'Add two numbers.'
    return a + b
@tool(name="{package}-late", destructive=True)
async def late(text: str) -> str:
    return text.upper()
""") / "tools.py")  # fmt: skip
            equal(good(box.call(f"add_{package}", {"a": 2})), 3, package)
            equal(good(box.call(f"{package}-late", {"text": "x"})), "X", package)
            equal(box.get(f"{package}-late")["annotations"], {"destructiveHint": True}, "destructive")
        box.load_python(place(jarvis_py="""
from openjarvis.core.registry import ToolRegistry
from openjarvis.core.types import ToolResult
from openjarvis.tools._stubs import BaseTool, ToolSpec
try:  # a part of the package that callbox does not stand in for, with another way
    from openjarvis._rust_bridge import get_rust_module
    get_rust_module()
except ImportError:
    pass
@ToolRegistry.register("divide")
class Divide(BaseTool):
    tool_id = "divide"
    @property
    def spec(self):
        return ToolSpec(name="divide", description="Divide.", parameters={"type": "object",
            "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]})
    def execute(self, **params):
        if not params["b"]:
            return ToolResult(tool_name="divide", content="Division by zero.", success=False)
        return ToolResult(tool_name="divide", content=str(params["a"] / params["b"]), success=True)
""") / "jarvis.py")  # fmt: skip
        equal(good(box.call("divide", {"a": 1, "b": 2})), "0.5", "OpenJarvis")
        equal(bad(box.call("divide", {"a": 1, "b": 0}), "Division")["error"], "Division by zero.", "its error")


@case("a function class of Calute or Xerxes is a tool, as a subclass and by its metaclass, alone, beside others and in a manifest")
def function_classes():
    for package in ("calute", "xerxes"):
        source = f"""
from __future__ import annotations
from {package}.types import AgentBaseFn
class Search(AgentBaseFn):
    @staticmethod
    def static_call(query: str, n: Optional[int] = 1, **context_variables) -> list:
        'Search.'
        return [query] * n
class Meta(metaclass=AgentBaseFn):
    @staticmethod
    def static_call(query: str) -> str:
        'Ask.'
        return query
class Base(AgentBaseFn):
    pass
class Wrong(AgentBaseFn):
    def static_call(self, query: str) -> str:
        return query
def beside(x: int) -> int:
    return x
from typing import Optional
"""
        folder = place(tools_py=source, s_json=function("s", "Search"))
        with toolbox() as box:
            box.load_python(folder / "tools.py")
            equal([item["name"] for item in box.list()], ["Meta", "Search"], package)
            told = [event[3] for event in iter(box.step, None) if event[0] == "broken"]
            check(any("Wrong is left out: its static_call is to be a @staticmethod" in text for text in told), lambda: f"it was told {told}")
            equal(box.get("Search")["description"], "Search.", "its description")
            equal(good(box.call("Search", {"query": "x", "n": 2})), ["x", "x"], package)
            equal(good(box.call("Meta", {"query": "y"})), "y", f"{package}, by its metaclass")
            box.load(folder)
            equal(good(box.call("s", {"query": "z"})), ["z"], f"{package}, in a manifest")
        done = tool("check", folder)
        check(done.code == 0 and b"good" in done.out, lambda: f"the check: {done.brief()}")
        done = tool("check", folder / "tools.py")
        check(done.code == 1 and b"beside is left out: " in done.out, lambda: f"the check: {done.brief()}")


# ---- Manifests -----------------------------------------------------------------------------------


@for_people("a manifest names a function of a file beside it, in both kinds of box; what it leaves out the function says")
def by_manifest(user):
    for policy in BOXES:
        folder = place(user, tools_py=TOOLS, w_json=function("w", "weather", policy=policy),
                       l_json={"name": "l", "description": "Mine.", "run": {"python": "tools:later", "file": "tools.py"}, "policy": policy})  # fmt: skip
        equal(called("--tools", folder, "w", '{"city": "x"}', user=user)["unit"], "c", f"the result ({policy})")
        listed = {item["name"]: item for item in json.loads(tool("list", "--json", "--tools", folder, user=user).out)}
        equal(listed["l"]["description"], "Mine.", "what the manifest says")
        equal(listed["l"]["outputSchema"], {"type": "integer"}, "what the function says")
        done = tool("check", folder, user=user)
        equal((done.code, done.out.count(b"good")), (0, 2), f"the check: {done.out!r}")


@case("a manifest that contradicts the signature is told which parameter, and how")
def contradictions():
    source = "def f(a: int, b: str = '') -> int:\n    'F.'\n    return a\n"

    def mistakes(schema, **more):
        folder = place(tools_py=source, f_json=function(inputSchema={"type": "object", **schema}, **more))
        done = tool("check", "--json", folder)
        return [(item["where"], item["text"]) for item in json.loads(done.out)[0]["mistakes"]]

    number = {"type": "integer"}
    equal(mistakes({"properties": {"a": number}, "required": ["a"]}), [], "the mistakes of a narrower schema")
    equal(mistakes({"properties": {"a": {**number, "default": 1}}}, applyDefaults=True), [], "of one with a default")
    equal(mistakes({"properties": {"a": number, "c": {}}, "required": ["a"]}),
          [("inputSchema.properties.c", "is no parameter of the function")], "a parameter that is not there")  # fmt: skip
    equal(mistakes({"properties": {"a": {"type": "string"}}, "required": ["a"]}),
          [("inputSchema.properties.a", "the function takes the type integer here")], "another type")  # fmt: skip
    equal([where for where, _ in mistakes({"properties": {"a": number}})], ["inputSchema.properties.a"], "one that is not required")


@case("check says what is wrong with a Python file, where, and what to do")
def checks():
    for source, text, hint in (
        ("def f(x: int:\n  return x\n", "line 1: SyntaxError: ", "look at: def f(x: int:"),
        ("import nosuch_module\n", "there is no module 'nosuch_module'", "install it for /usr/bin/python3"),
        ("import helper\n", "there is no module 'helper'", "it lies beside the file"),
        ("x = 1\nraise OSError('no')\n", "line 2: OSError: no", ""),
        ("import sys\nsys.exit(2)\n", "it ends the interpreter while it is loaded: SystemExit: 2", ""),
        ("def fun(x): return x\n", "has no function that could be a tool: fun is left out: it has neither", "mark a function with @tool"),
        ("", "has no function that could be a tool", "mark a function"),
    ):
        folder = place(tools_py=source, helper_py="", f_json=function())
        done = tool("check", "--json", folder / "tools.py")
        (mistake,) = json.loads(done.out)[0]["mistakes"]
        check(done.code == 1 and text in mistake["text"] and hint in mistake["hint"], lambda: f"of {source!r} it says {mistake}")
        if "nosuch" in source or "Syntax" in text:
            done = tool("check", folder)
            check(done.code == 1 and f"run.python: tools.py: {text}".encode() in done.out, lambda: f"of the manifest it says {done.out!r}")
    folder = place(tools_py="def fetch(x: int) -> int:\n    'F.'\n    return x\n", f_json=function(key="fetsh"))
    done = tool("check", folder)
    check(b"there is no function 'fetsh' in it\n    to fix it: did you mean \"fetch\"?" in done.out, lambda: f"it says {done.out!r}")
    done = tool("call", "--python-tools", folder / "none.py", "x")
    check(done.code == 125 and b"cannot read" in done.err, lambda: f"it says {done.err!r}")
    done = tool("call", "--python-tools", folder / "tools.py", "--python", "nopython", "fetch", '{"x": 1}')
    check(done.code == 125 and b'callbox: --python: there is no interpreter "nopython"' in done.err, lambda: f"it says {done.err!r}")


@case("check fails where a marked function is left out, and tells of unmarked ones beside marked ones")
def check_of_marks():
    good_one = "from callbox import tool\n@tool\ndef f(x: int) -> int:\n    'F.'\n    return x\n"
    beside = "def other(x: int) -> int: return x\ndef plain(x): return x\ndef _own(x: int): return x\n"
    file = place(tools_py=good_one + beside) / "tools.py"
    done = tool("check", file)
    equal((done.code, done.out.decode().replace(str(file), "FILE")),
          (0, "FILE: good: f\nFILE: other is left out: others are marked as tools, and it is not\n"), "unmarked ones")  # fmt: skip
    file = place(tools_py=good_one + "import threading\n@tool\ndef g(x: threading.Lock()) -> int:\n    return 1\n") / "tools.py"
    done = tool("check", file)
    check(done.code == 1 and b": good: f\n" in done.out and b": g is left out: " in done.out, lambda: f"the check: {done.brief()}")
    done = tool("check", "--json", file)
    found = {item["tool"]: [mistake["text"] for mistake in item["mistakes"]] for item in json.loads(done.out)}
    check(done.code == 1 and found["f"] == [] and "g is left out: " in found["g"][0], lambda: f"the check: {found}")


@case("names that are of no tools and no interpreter are told with what was meant")
def near_misses():
    folder = place(tools_py="def f(x: int) -> int:\n    'F.'\n    return x\n")
    (folder / "venv" / "bin").mkdir(parents=True)
    os.symlink("/usr/bin/python3", folder / "venv" / "bin" / "python3")
    (folder / "other").mkdir()
    (folder / "other" / "more.py").write_text((folder / "tools.py").read_text())
    for words, text in (
        (("--python-tools", "tools"), "name the file, tools.py, or add where the module lies: --python-path ."),
        (("--python-tools", "tools.py", "--python", "/usr/bin/ls"), "/usr/bin/ls seems to be no interpreter of Python: the program exited with code 2 (to fix it: name one: --python"),
        (("--python-tools", "tools.py", "--python", "./venv"), "--python: \"./venv\" is a directory (to fix it: name the interpreter in it, ./venv/bin/python3"),
        (("--python-tools", "tools.py", "--python", "venv"), "--python: \"venv\" is a directory (to fix it: name the interpreter in it, venv/bin/python3"),
        (("--python-tools", "tools.py", "--python", "./other"), "--python: \"./other\" is a directory (to fix it: name"),
        (("--python-tools", "tools.py", "--python-tools", "other/more.py"), "give the function another name: @tool(name="),
    ):  # fmt: skip
        done = tool("list", *words, cwd=folder)
        check(done.code == 125 and text in done.err.decode().replace("\ncallbox: to fix it: ", " (to fix it: "), lambda: f"{words}: {done.brief()}")


@case("what Python itself looks for in vain is not told as refused")
def pythons_own():
    names = ("pyvenv.cfg", "python311.zip", "__pycache__", "__pycache__/x.pyc", "other.cfg")
    source = "def f() -> int:\n    for name in %r:\n        try: open('/srv/nowhere/' + name)\n        except OSError: pass\n    raise ValueError\n"
    file = place(tools_py=source % (names,)) / "tools.py"
    with mcp_client.Server("--no-builtin", "--python-tools", file) as server:
        text = mcp_client.text_of(server.call("f", {}))  # the first: the interpreter is started for it
        check("ValueError" in text and "- file /srv/nowhere/other.cfg: ENOENT" in text, lambda: f"the answer is {text!r}")
        own = [line for line in text.splitlines() if "__pycache__" in line or ".zip" in line or "pyvenv.cfg" in line]
        equal(own, [], "what is Python's own")


@case("what a manifest may not say of a Python function")
def wrong_manifests():
    for run, where, text in (
        ({"python": "f"}, "run.python", "does not name a function"),
        ({"python": "a b:f"}, "run.python", "does not name a function"),
        ({"python": "other:f", "file": "tools.py"}, "run.python", "is not in the file"),
        ({"python": "f", "file": "none.py"}, "run.file", "there is no file"),
        ({"python": "f", "file": "."}, "run.file", "is no regular file"),
        ({"python": "f", "file": "tools.py", "path": ["/"]}, "run.path[0]", "would show all"),
        ({"python": "f", "file": "tools.py", "path": ["none"]}, "run.path[0]", "there is no directory"),
        ({"python": "f", "file": "tools.py", "interpreter": "nopython"}, "run.interpreter", "there is no interpreter"),
        ({"python": "f", "file": "tools.py", "interpreter": "./script"}, "run.interpreter", "is no program"),
        ({"python": "f", "file": "tools.py", "command": ["true"]}, "run.python", "unknown"),
        ({"python": "nosuch.module:f"}, "run.python", "there is no module 'nosuch'"),
    ):
        folder = place(tools_py="def f(x: int) -> int: return x\n", f_json={"name": "f", "run": run}, script_="#!/bin/sh\n")
        (folder / "script.").rename(folder / "script")
        (folder / "script").chmod(0o755)
        done = tool("check", "--json", folder)
        found = json.loads(done.out)[0]["mistakes"]
        check(done.code == 1 and any(text in item["text"] and where in (item["where"], "run.python" if "command" in run else where)
                                     for item in found), lambda: f"of {run} it says {found}")  # fmt: skip


@case("installed modules, modules beside the file, and the packages of a virtual environment")
def environments():
    equal(called("--tools", place(f_json={"name": "f", "run": {"python": "textwrap:shorten"}, "inputSchema": {"type": "object",
          "properties": {"text": {"type": "string"}, "width": {"type": "integer"}}, "required": ["text", "width"]}}),
          "f", '{"text": "a  b", "width": 9}'), "a b", "a function of the standard library")  # fmt: skip
    folder = place(tools_py="import helper\ndef f(x: int) -> int:\n    'F.'\n    return helper.twice(x)\n",
                   helper_py="def twice(x): return 2 * x\n", secret_txt="secret-4711", f_json={"name": "f", "run": {
                       "python": "f", "file": "tools.py", "path": ["."]}})  # fmt: skip
    equal(called("--tools", folder, "f", '{"x": 2}'), 4, "with a path of its own")
    equal(called("--python-tools", folder / "tools.py", "--python-path", folder, "f", '{"x": 2}'), 4, "with --python-path")
    check(tool("call", "--python-tools", folder / "tools.py", "f", '{"x": 2}').code == 125, "a neighbour is found without a path")
    venv = SCRATCH.directory() / "venv"
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", str(venv)], check=True)
    (site,) = venv.glob("lib/python3*/site-packages")
    (site / "only_here.py").write_text("NAME = 'venv'\n")
    file = place(tools_py="import only_here\ndef f() -> str:\n    'F.'\n    return only_here.NAME\n") / "tools.py"
    equal(called("--python-tools", file, "f", env={"VIRTUAL_ENV": str(venv)}), "venv", "the active environment")
    equal(called("--python-tools", file, "--python", venv / "bin" / "python3", "f"), "venv", "with --python")
    done = tool("check", file)
    check(done.code == 1 and b"there is no module 'only_here'" in done.out, lambda: f"without it: {done.out!r}")


@case("models of pydantic are arguments and results, with their schema")
def models():
    source = """
from typing import List
from pydantic import BaseModel
class Item(BaseModel):
    name: str
    price: float = 1.0
class Order(BaseModel):
    items: List[Item]
def total(order: Order) -> Item:
    'Add up.'
    assert isinstance(order.items[0], Item)
    return Item(name="all", price=sum(item.price for item in order.items))
"""
    with toolbox() as box:
        box.load_python(place(tools_py=source) / "tools.py")
        equal(good(box.call("total", {"order": {"items": [{"name": "a"}, {"name": "b", "price": 2}]}})), {"name": "all", "price": 3.0}, "a model")
        tooling.refused(box.call("total", {"order": {"items": [{"price": 2}]}}), "the property 'name' is missing")
        equal(box.get("total")["outputSchema"]["type"], "object", "the schema of a result")


@case("without the extension that forks it, each call starts an interpreter of its own")
def no_zygote():
    own = harness.Scratch()
    try:
        server = own.install(BUILD / "callbox-functions")
        own.install_python(BUILD)
        for extension in (own.bin / "python" / "callbox").glob("_zygote*"):
            extension.unlink()
        file = place(tools_py=TOOLS) / "tools.py"
        for _ in range(2):
            equal(called("--python-tools", file, "later", '{"words": []}', env={"CALLBOX_FUNCTIONS": server}), 0, "the result")
    finally:
        own.remove()


@case("a tool with the same policy may write the virtual environment, one with another is refused")
def own_environment():
    folder = place(tools_py="def f() -> int:\n    'F.'\n    return 1\n")
    subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", str(folder / "work" / "venv")], check=True)
    (folder / "f.json").write_text(json.dumps({"name": "f", "run": {"python": "f", "file": "tools.py", "interpreter": "work/venv/bin/python3"}}))
    rules = {"files": {"workspace": str(folder / "work")}}
    with toolbox(policy=rules) as box:
        box.load(folder)
        equal(good(box.call("f")), 1, "the result")
        box.add(manifest("same", ["touch", str(folder / "work" / "new")]))
        good(box.call("same"))
        try:
            box.add(manifest("other", ["true"], policy={**rules, "network": "host"}))
            check(False, "a tool with another policy that may write the environment was taken")
        except Exception as error:
            check("a file of the tool" in str(error), lambda: f"the error is {error}")


# ---- Following -----------------------------------------------------------------------------------


def next_change(box, kinds, seconds=30):
    deadline = time.monotonic() + seconds * harness.SLOW
    while True:
        event = box.step()
        if event and event[0] in kinds:
            return event
        left = deadline - time.monotonic()
        check(event or (left > 0 and select.select([box], [], [], left)[0]), lambda: f"none of {kinds} came")


@case("a file that changes is described anew: new tools come, lost ones go, mistakes leave the last good version")
def followed():
    first = "def f(x: int) -> int:\n    'F.'\n    return x\n"
    folder = place(tools_py=first, manifest_json=function("m"))
    with toolbox() as box:
        box.load_python(folder / "tools.py")
        box.load(folder)
        while box.step():
            pass
        equal([item["name"] for item in box.list()], ["f", "m"], "the tools")
        (folder / "tools.py").write_text("def f(x: int, y: int = 2) -> int:\n    'G.'\n    return x + y\ndef g() -> int: return 1\n")
        next_change(box, ("added",))
        while box.step():
            pass
        equal([item["name"] for item in box.list()], ["f", "g", "m"], "the tools afterwards")
        equal([box.get(name)["description"] for name in "fm"], ["G.", "G."], "what is said of both")
        equal(good(box.call("m", {"x": 1})), 3, "the new function")
        (folder / "tools.py").write_text("def f(:\n")
        event = next_change(box, ("broken",))
        check("SyntaxError" in event[3], lambda: f"it was told {event}")
        equal(box.get("f")["description"], "G.", "what is said of it still")
        for name in "fm":
            said = bad(box.call(name, {"x": 1}), "SyntaxError")["error"]
            check(said.startswith("tools.py cannot be loaded: line 1: SyntaxError: ") and said.endswith(" (its tools fail until it can)"), lambda: f"the error is {said!r}")
        (folder / "new").write_text(first)
        os.rename(folder / "new", folder / "tools.py")
        next_change(box, ("removed",))
        while box.step():
            pass
        equal([item["name"] for item in box.list()], ["f", "m"], "the tools at the end")
        equal(box.get("m")["description"], "F.", "what is said of it at the end")


# ---- Files that mean harm ------------------------------------------------------------------------

HOSTILE = """
import os, sys
def f(x: int = 1) -> int:
    'F.'
    return x
"""


@for_people("a file is never loaded outside of a box: not to list, check, describe or call it")
def never_here(user):
    folder = place(user, tools_py=HOSTILE + f"""
for name in ("{{0}}/mark", "/tmp/mark-of-python", os.path.expanduser("~/mark")):
    try:
        open(name, "w").write("here")
    except OSError:
        pass
SEEN = repr(sorted(os.environ)) + repr(os.path.exists("/proc/%d/environ" % os.getppid()) and os.getppid())
def seen() -> str:
    'Seen.'
    return SEEN
""".replace("{{0}}", "FOLDER"), f_json=function())  # fmt: skip
    source = folder / "tools.py"
    source.write_text(source.read_text().replace("FOLDER", str(folder)))
    before = sorted(os.listdir(folder))
    for words in (("list", "--python-tools", source), ("list", "--tools", folder), ("check", source), ("check", folder),
                  ("call", "--tools", folder, "f"), ("call", "--workspace", folder, "--python-tools", source, "f")):  # fmt: skip
        equal(tool(*words, user=user).code, 0, f"the exit code of {words[0]}")
    left = [name for name in sorted(os.listdir(folder)) if name not in before]
    check(left in ([], ["mark"]), lambda: f"{left} came to be")
    check(not os.path.exists("/tmp/mark-of-python"), "a mark was left in the host's /tmp")
    seen = called("--python-tools", source, "seen", user=user)
    check("SECRET_OF_THE_AGENT" not in seen, lambda: f"it saw the agent's environment: {seen}")


@case("describing has no network and nothing that it could write, though the tool has both")
def still_box():
    folder = place(tools_py=HOSTILE + """
import socket
def attempt(what):
    try:
        what()
        return "could"
    except OSError as error:
        return type(error).__name__
NET = attempt(lambda: socket.create_connection(("127.0.0.1", 1), 1))
WRITE = attempt(lambda: open("mark", "w"))
f.__doc__ = f"{NET} {WRITE} {os.path.exists('data.txt')}"
""", data_txt="")  # fmt: skip
    (folder / "work").mkdir()
    (folder / "data.txt").rename(folder / "work" / "data.txt")
    manifests = SCRATCH.directory()
    (manifests / "f.json").write_text(json.dumps({"name": "f", "run": {"python": "f", "file": str(folder / "tools.py")},
                                                  "policy": {"network": "host", "files": {"workspace": str(folder / "work")}}}))  # fmt: skip
    (found,) = json.loads(tool("list", "--json", "--tools", manifests).out)
    equal(found["description"], "OSError OSError True", "what it could do, and whether it sees the workspace")
    equal(os.listdir(folder / "work"), ["data.txt"], "what is in the workspace")


@case("a file that prints, exits, forks, floods, forges frames or hangs is told of, and harms nobody")
def hostile_files():
    big = "def f(x: int) -> int:\n    'F.'\n    return x\nf.__doc__ = 'x' * (%d << 20)\n"
    for name, source, expected in (
        ("prints", HOSTILE + "print('{\"tools\": []}', flush=True); os.write(1, b'{}\\n')\n", None),
        ("closes", HOSTILE + "sys.stdout.close(); sys.stdout = None\n", None),
        ("leaves", "import os\nos._exit(0)\n", "ends its interpreter while it is loaded"),
        ("kills", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", "ends its interpreter while it is loaded"),
        ("forks", HOSTILE + "if not os.fork():\n    os._exit(0)\n", None),
        ("stays", HOSTILE + "if not os.fork():\n    import time\n    while True: time.sleep(1)\n", None),
        ("floods", big % 64, "says too much of its functions"),
        ("huge", "def f(x: int) -> int: return x\nf.__doc__ = 'x' * (1 << 30)\n", ""),
        ("garbage", "import os\nos.write(3, b'\\xff' * 100)\nos._exit(0)\n", "its last message is cut off"),
        ("deep", "import os, struct\nt = b'[' * 100000\nos.write(3, struct.pack('=II', len(t), 0) + t)\nos._exit(0)\n", "what it says of its functions"),
        ("other", "import os, struct\nt = b'{\"tools\": 3}'\nos.write(3, struct.pack('=II', len(t), 0) + t)\nos._exit(0)\n", "could be understood"),
        ("named", HOSTILE + "from callbox import Tool\nt = Tool(f, name='../evil\\x1b[2J')\n", "is no name of a tool"),
        ("schema", HOSTILE + "from callbox import Tool\nt = Tool(f, input_schema={'type': 'array'})\n", "must be \"object\""),
        ("regex", HOSTILE + "from callbox import Tool\nt = Tool(f, input_schema={'type': 'object', 'properties': {'x': {'pattern': '('}}})\n", "is no regular expression"),
        ("meta", "class M(type):\n    def __getattribute__(c, n): raise SystemError(n)\nclass T(metaclass=M): pass\n" + HOSTILE, None),
    ):
        folder = place(tools_py=source)
        started = time.monotonic()
        done = tool("check", "--json", folder / "tools.py", timeout=60 * harness.SLOW)
        (found, *_) = json.loads(done.out)
        texts = "".join(item["text"] for item in found["mistakes"])
        check(done.code == (0 if expected is None else 1), lambda: f"{name}: exit code {done.code}: {done.out!r} {done.err!r}")
        check(expected is None or expected in texts, lambda: f"{name}: it says {texts!r}")
        check(all(c.isprintable() for c in texts), lambda: f"{name}: it says {texts!r}")
        check(time.monotonic() - started < 30 * harness.SLOW, f"{name}: it took {time.monotonic() - started} s")


@case("a tool cannot change its own file, nor can another: it is held in the one's box, and the other is refused")
def own_inputs():
    source = HOSTILE + """
def rewrite() -> str:
    'Rewrite.'
    with open(__file__, "a") as stream:
        stream.write("#")
    return "could"
def replace() -> str:
    'Replace.'
    os.rename(__file__, __file__ + ".old")
    return "could"
"""
    folder = place(tools_py=source)
    for policy in BOXES:
        rules = {**policy, "files": {"workspace": str(folder)}}
        with toolbox(policy=rules) as box:
            box.load_python(folder / "tools.py")
            bad(box.call("rewrite"), "Error: [Errno ")
            bad(box.call("replace"), "Error: [Errno ")
            equal((folder / "tools.py").read_text(), source, f"the file ({policy})")
            try:
                box.add(manifest("writer", ["true"], policy=rules))
                check(False, "a tool that may write the file was taken")
            except Exception as error:
                check("a file of the tool" in str(error), lambda: f"the error is {error}")


# ---- MCP -----------------------------------------------------------------------------------------


@for_people("over stdio: listed, called, prints kept from the protocol, changes told; run_command cannot write the file")
def over_stdio(user):
    folder = place(user, tools_py=TOOLS)
    with mcp_client.Server("--workspace", folder, "--python-tools", folder / "tools.py", user=user) as server:
        names = [item["name"] for item in server.result("tools/list")["tools"]]
        check({"weather", "run_command"} <= set(names), lambda: f"the tools are {names}")
        equal(server.call("weather", {"city": "x"})["structuredContent"]["degrees"], 20.5, "the result")
        text = mcp_client.text_of(server.call("fails", {"amount": 7}))
        check("ValueError: bad amount 7" in text and "raise ValueError" in text, lambda: f"the error is {text!r}")
        tried = server.call("run_command", {"command": f"echo '#' >> {folder}/tools.py; mv {folder}/tools.py {folder}/x; echo new > {folder}/new"})
        equal((folder / "tools.py").read_text(), TOOLS, f"the file after {mcp_client.text_of(tried)!r}")
        check((folder / "new").exists(), "nothing can be written in the workspace")
        (folder / "tools.py").write_text("def only(x: int) -> int:\n    'Only.'\n    return x\n")
        check(harness.wait_until(lambda: [item["name"] for item in server.result("tools/list")["tools"]]
                                 == ["only", "run_command", "run_python"], 30 * harness.SLOW, 0.1), "the tools did not change")  # fmt: skip
        equal(server.call("only", {"x": 3})["structuredContent"], 3, "the new tool")


@case("over HTTP, and with no other tools")
def over_http():
    file = place(tools_py=TOOLS[: TOOLS.index("def plain")]) / "tools.py"  # the first line on stderr is the address
    mcp_http.SCRATCH.install_python(BUILD)
    with mcp_http.Server("--no-builtin", "--python-tools", file, folder=SCRATCH.directory()) as server, server.client() as client:
        names = [item["name"] for item in client.modern("tools/list").message["result"]["tools"]]
        check("weather" in names and "run_command" not in names, lambda: f"the tools are {names}")
        equal(client.call("weather", {"city": "x"}).message["result"]["structuredContent"]["unit"], "c", "the result")


@case("a file with mistakes is a reason not to start, by its option and line")
def not_started():
    file = place(tools_py="def f(:\n") / "tools.py"
    done = harness.execute([CALLBOX, "mcp", "--python-tools", str(file)], env=ENVIRONMENT)
    check(done.code == 125 and b"--python-tools" in done.err and b"line 1: SyntaxError" in done.err, lambda: f"it says {done.err!r}")


if __name__ == "__main__":
    sys.exit(harness.main(workers=2, after=SCRATCH.remove))
