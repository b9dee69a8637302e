# SPDX-License-Identifier: MIT
# Runs in a box: the source text of one call, and the value of its last expression.
# What it says goes as frames to the result channel: callbox-manifest(5), FUNCTIONS OF A SERVER.
import ast
import builtins
import json
import linecache
import os
import struct
import sys
import traceback

NAME = "<code>"
RESULT_MAX = 65536
channel = int(os.environ["CALLBOX_RESULT_FD"])


def tell(kind, data):
    data = struct.pack("=II", len(data), kind) + data
    while data:
        data = data[os.write(channel, data):]


def run(code):
    space = {"__name__": "__main__", "__builtins__": builtins}
    tree = ast.parse(code, NAME)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, NAME, "exec"), space)
    return eval(compile(ast.Expression(last.value), NAME, "eval"), space) if last else None


def show(value):
    """The value as text. One that is too long is printed: what becomes of long output is known."""
    text = repr(value)
    if len(text) <= RESULT_MAX:
        return text
    sys.stdout.flush()
    print(text.encode("utf-8", "backslashreplace").decode())
    return f"[the value of the last expression has {len(text)} characters: it is at the end of stdout]"


def main():
    sys.stdin.buffer.readline()
    code = json.load(sys.stdin.buffer)["code"]
    linecache.cache[NAME] = (len(code), None, code.splitlines(True), NAME)
    sys.path.insert(0, os.getcwd())
    result = None
    try:
        value = run(code)
        if value is not None:
            result = show(value)
    except SystemExit:
        raise
    except BaseException as error:
        # The first frames are ours.
        trace = error.__traceback__
        while trace and trace.tb_frame.f_code.co_filename != NAME:
            trace = trace.tb_next
        sys.stdout.flush()
        traceback.print_exception(type(error), error, trace)
        sys.exit(1)
    sys.stdout.flush()
    tell(0, json.dumps({"result": result}).encode("utf-8", "replace"))
    tell(5, struct.pack("=i", 0))


try:
    main()
except SystemExit as end:
    sys.stdout.flush()
    if end.code in (None, 0):
        tell(0, b'{"result": null}')
        tell(5, struct.pack("=i", 0))
    else:
        raise
