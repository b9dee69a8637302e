# SPDX-License-Identifier: MIT
"""libcallbox for tests, by ctypes: what include/callbox.h declares, as far as they need it."""

import ctypes
import json
import os
import socket
import subprocess
from ctypes import POINTER, Structure, byref, c_char, c_char_p, c_double, c_int, c_size_t, c_uint, c_uint64, c_void_p

import harness

CAPTURE, EVENTS, TO_FD, DISCARD = range(4)
NO_RESULT, RESULT, RESULT_EVENTS = range(3)
EVENT_NONE, EVENT_OUTPUT, EVENT_ERRORS, EVENT_ENDED, EVENT_RESULT, EVENT_PROGRESS, EVENT_LOG = range(7)
NONE = 2**32 - 1  # prepared boxes
TOOL_EVENTS = ("none", "added", "removed", "updated", "broken")


FREE = ctypes.CDLL(None).free
FREE.restype, FREE.argtypes = None, [c_void_p]


class Error(Structure):
    _fields_ = [("size", c_size_t), ("code", c_int), ("where", c_char * 128), ("text", c_char * 384), ("hint", c_char * 384)]


class Options(Structure):
    _fields_ = [("size", c_size_t), ("program", c_char_p), ("socket", c_char_p), ("calls", c_uint), ("queue", c_uint), ("prepared", c_uint)]


class Spec(Structure):
    _fields_ = [
        ("size", c_size_t), ("id", c_char_p), ("argv", POINTER(c_char_p)), ("shell", c_char_p),
        ("environment", POINTER(c_char_p)), ("cwd", c_char_p), ("input_mode", c_int), ("input", c_char_p),
        ("input_length", c_size_t), ("input_fd", c_int), ("output_mode", c_int), ("errors_mode", c_int),
        ("output_fd", c_int), ("errors_fd", c_int), ("wall_limit", c_double), ("cpu_limit", c_double),
        ("memory_limit", c_uint64), ("process_limit", c_uint64), ("file_size_limit", c_uint64),
        ("open_files_limit", c_uint64), ("output_limit", c_uint64), ("capture_limit", c_uint64),
        ("explain", c_int), ("sanitize", c_int), ("result_mode", c_int), ("warm", c_int), ("result_limit", c_uint64), ("raw", c_int),
        ("approved", c_int), ("answers", c_char_p), ("cpus_limit", c_double),
    ]  # fmt: skip


class Output(Structure):
    _fields_ = [("data", c_void_p), ("length", c_size_t), ("head", c_size_t), ("total", c_uint64), ("omitted", c_uint64)]


class Report(Structure):
    _fields_ = [
        ("size", c_size_t), ("reason", c_int), ("code", c_int), ("signal", c_int), ("id", c_char_p),
        ("text", c_char_p), ("error", POINTER(Error)), ("output", Output), ("errors", Output),
        ("started_at", c_uint64), ("setup_time", c_uint64), ("run_time", c_uint64), ("cpu_user", c_uint64),
        ("cpu_system", c_uint64), ("memory_peak", c_uint64), ("processes_peak", c_uint64),
        ("bytes_in", c_uint64), ("bytes_out", c_uint64), ("owner", c_void_p),
        ("result", Output),
    ]  # fmt: skip


class Event(Structure):
    _fields_ = [
        ("size", c_size_t), ("kind", c_int), ("data", c_void_p), ("length", c_size_t),
        ("done", c_double), ("total", c_double), ("level", c_char_p),
    ]  # fmt: skip


class ToolboxOptions(Structure):
    _fields_ = [("size", c_size_t), ("policy", c_void_p), ("policies", c_char_p), ("calls", c_uint), ("server", c_char_p)]


class ToolResult(Structure):
    _fields_ = [
        ("tool", c_char_p), ("ok", c_int), ("output", c_char_p), ("text", c_char_p), ("error", c_char_p),
        ("denied", c_int), ("reason", c_char_p), ("duration", c_uint64), ("started_at", c_uint64),
    ]  # fmt: skip


class Mistake(Structure):
    _fields_ = [("path", c_char_p), ("keyword", c_char_p), ("text", c_char_p)]


class ToolEvent(Structure):
    _fields_ = [("size", c_size_t), ("kind", c_int), ("tool", c_char_p), ("file", c_char_p), ("text", c_char_p)]


class CallboxError(Exception):
    def __init__(self, error):
        self.code, self.where = error.code, error.where.decode()
        self.hint = error.hint.decode()
        super().__init__(error.text.decode())


def strings(values):
    encoded = [os.fsencode(v) for v in values]
    return (c_char_p * (len(encoded) + 1))(*encoded, None)


def spec_of(fields):
    spec = Spec(size=ctypes.sizeof(Spec))
    for name, value in fields.items():
        if name in ("environment", "argv"):
            value = strings(value)
        elif name == "input":
            spec.input_length = len(value)
        elif isinstance(value, str):
            value = os.fsencode(value)
        setattr(spec, name, value)
    return spec


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(path, use_errno=True)
        self.c.cbx_reason_name.restype = c_char_p
        self.c.cbx_report_result.restype = POINTER(ToolResult)
        self.c.cbx_report_mistakes.restype = POINTER(POINTER(Mistake))
        for name in ("cbx_policy_unref", "cbx_warden_close", "cbx_call_free", "cbx_toolbox_close"):
            function = getattr(self.c, name)
            function.restype, function.argtypes = c_void_p, [c_void_p]
        self.c.cbx_report_free.restype = None

    def check(self, r, error):
        if r < 0:
            raise CallboxError(error)
        return r

    def error(self):
        return Error(size=ctypes.sizeof(Error))

    def take_text(self, pointer):
        """The bytes of a string that the library has given, which is freed."""
        text = ctypes.string_at(pointer)
        FREE(pointer)
        return text

    def policy(self, value=None):
        text = json.dumps(value or {}).encode()
        policy, error = c_void_p(), self.error()
        self.check(self.c.cbx_policy_parse(text, c_size_t(len(text)), byref(policy), byref(error)), error)
        return policy

    def take_report(self, report, fill=None):
        """What it says, as a dictionary; it is freed."""
        error = self.error()
        found = {
            "reason": self.c.cbx_reason_name(report.reason).decode(),
            "code": report.code, "signal": report.signal, "id": report.id, "text": report.text.decode(),
            "error": CallboxError(report.error.contents) if report.error else None,
            "output": ctypes.string_at(report.output.data, report.output.length),
            "errors": ctypes.string_at(report.errors.data, report.errors.length),
            "result": ctypes.string_at(report.result.data, report.result.length),
            "result_total": report.result.total, "result_omitted": report.result.omitted,
            "started_at": report.started_at,
            "setup_time": report.setup_time, "run_time": report.run_time,
        }  # fmt: skip
        text = c_void_p()
        self.check(self.c.cbx_report_print(byref(report), byref(text), byref(error)), error)
        found["json"] = json.loads(self.take_text(text))
        if fill:
            fill(report, found)
        self.c.cbx_report_free(byref(report))
        return found

    def warden(self, **options):
        given = Options(size=ctypes.sizeof(Options), **{k: os.fsencode(v) if isinstance(v, (str, os.PathLike)) else v for k, v in options.items()})
        return Warden(self, given)


class Warden:
    def __init__(self, library, options):
        self.library, self.handle, error = library, c_void_p(), library.error()
        library.check(library.c.cbx_warden_open(byref(options), byref(self.handle), byref(error)), error)

    @property
    def pid(self):
        return self.library.c.cbx_warden_pid(self.handle)

    def prepare(self, policy):
        error = self.library.error()
        self.library.check(self.library.c.cbx_prepare(self.handle, policy, byref(error)), error)

    def start(self, policy, argv, **spec):
        return Call(self, policy, argv, spec)

    def run(self, policy, argv, **spec):
        given, report, error = spec_of({"argv": argv, **spec}), Report(size=ctypes.sizeof(Report)), self.library.error()
        self.library.check(self.library.c.cbx_run(self.handle, policy, byref(given), byref(report), byref(error)), error)
        return self.library.take_report(report)

    def close(self):
        self.library.c.cbx_warden_close(self.handle)
        self.handle = None


class Call:
    def __init__(self, warden, policy, argv, spec):
        self.library, self.handle, error = warden.library, c_void_p(), warden.library.error()
        given = spec_of({"argv": argv, **spec})
        self.library.check(self.library.c.cbx_start(warden.handle, policy, byref(given), byref(self.handle), byref(error)), error)

    def fileno(self):
        return self.library.c.cbx_call_fd(self.handle)

    def step(self):
        """(kind, bytes) of the next event."""
        event, error = Event(size=ctypes.sizeof(Event)), self.library.error()
        self.library.check(self.library.c.cbx_step(self.handle, byref(event), byref(error)), error)
        return event.kind, ctypes.string_at(event.data, event.length) if event.data else b""

    def wait(self):
        """The report as a dictionary, with the kept output as bytes."""
        report, error = Report(size=ctypes.sizeof(Report)), self.library.error()
        self.library.check(self.library.c.cbx_wait(self.handle, byref(report), byref(error)), error)
        return self.library.take_report(report, self.fill)

    def fill(self, report, found):
        """For calls of tools."""

    def kill(self):
        self.library.check(self.library.c.cbx_kill(self.handle), self.library.error())

    def free(self):
        if self.handle:
            self.library.c.cbx_call_free(self.handle)
        self.handle = None


class SharedWarden:
    """`callbox warden --socket`, as root or as the user, for the time of a with block."""

    def __init__(self, scratch, binary, *options, user=False, prefix=(), **more):
        self.binary, self.directory = binary, scratch.directory(user)
        self.path = str(self.directory / "socket")
        command = [*prefix, binary, "warden", "--socket", self.path, *options]
        self.process = subprocess.Popen(harness.as_user(command) if user else command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/", **more)
        if not harness.wait_until(self.listens, 10):
            raise harness.Failed("the warden does not listen")

    def listens(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
            return peer.connect_ex(self.path) == 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        harness.end(self.process)
        self.process.stderr.close()

    def run(self, *command, options=(), user=False, **more):
        return harness.callbox(["run", "--warden", self.path, *options, "--", *command], binary=self.binary, user=user, cwd="/", **more)


def text_of(value):
    return None if value is None else value.decode()


class ToolCall(Call):
    """The call of a tool; its report has "tool" and "mistakes" besides."""

    def __init__(self, toolbox, name, arguments, spec):
        self.library, self.handle, error = toolbox.library, c_void_p(), toolbox.library.error()
        if arguments is not None and not isinstance(arguments, (str, bytes)):
            arguments = json.dumps(arguments)
        if isinstance(arguments, str):
            arguments = arguments.encode()
        given = spec_of(spec)
        start = self.library.c.cbx_toolbox_start
        self.library.check(start(toolbox.handle, os.fsencode(name), arguments, byref(given), byref(self.handle), byref(error)), error)

    def fill(self, report, found):
        result = self.library.c.cbx_report_result(byref(report)).contents
        found["tool"] = {
            "tool": text_of(result.tool), "ok": bool(result.ok),
            "output": None if result.output is None else json.loads(result.output),
            "text": text_of(result.text), "error": text_of(result.error), "denied": bool(result.denied),
            "reason": text_of(result.reason), "duration": result.duration, "started_at": result.started_at,
        }  # fmt: skip
        mistakes, found["mistakes"] = self.library.c.cbx_report_mistakes(byref(report)), []
        while mistakes[len(found["mistakes"])]:
            item = mistakes[len(found["mistakes"])].contents
            found["mistakes"].append((item.path.decode(), item.keyword.decode(), item.text.decode()))

    def take(self):
        """The next event: its kind, and of progress and log lines what they say."""
        event, error = Event(size=ctypes.sizeof(Event)), self.library.error()
        self.library.check(self.library.c.cbx_step(self.handle, byref(event), byref(error)), error)
        data = ctypes.string_at(event.data, event.length) if event.data else b""
        if event.kind == EVENT_PROGRESS:
            return event.kind, (event.done, event.total, data.decode())
        if event.kind == EVENT_LOG:
            return event.kind, (event.level.decode(), data.decode())
        return event.kind, data


class Toolbox:
    def __init__(self, warden, policy=None, **options):
        self.library, self.handle, error = warden.library, c_void_p(), warden.library.error()
        self.warden = warden
        given = ToolboxOptions(size=ctypes.sizeof(ToolboxOptions), **{k: os.fsencode(v) if isinstance(v, (str, os.PathLike)) else v for k, v in options.items()})
        if policy is not None:
            given.policy = policy if isinstance(policy, c_void_p) else self.library.policy(policy)
        self.library.check(self.library.c.cbx_toolbox_open(warden.handle, byref(given), byref(self.handle), byref(error)), error)

    def ask(self, name, *arguments):
        error = self.library.error()
        return self.library.check(getattr(self.library.c, name)(self.handle, *arguments, byref(error)), error)

    def add(self, manifest):
        text = manifest if isinstance(manifest, bytes) else json.dumps(manifest).encode()
        self.ask("cbx_toolbox_add", text, c_size_t(len(text)))

    def load(self, directory):
        self.ask("cbx_toolbox_load", os.fsencode(directory))

    def load_python(self, source):
        self.ask("cbx_toolbox_load_python", os.fsencode(source))

    def remove(self, name):
        self.ask("cbx_toolbox_remove", os.fsencode(name))

    def get(self, name):
        text = c_void_p()
        self.ask("cbx_toolbox_get", os.fsencode(name), byref(text))
        return json.loads(self.library.take_text(text))

    def list(self, query=None):
        text = c_void_p()
        self.ask("cbx_toolbox_list", None if query is None else os.fsencode(query), byref(text))
        return json.loads(self.library.take_text(text))

    def start(self, name, arguments=None, **spec):
        return ToolCall(self, name, arguments, spec)

    def call(self, name, arguments=None, **spec):
        call = self.start(name, arguments, **spec)
        try:
            return call.wait()
        finally:
            call.free()

    def fileno(self):
        return self.library.c.cbx_toolbox_fd(self.handle)

    def step(self):
        """(kind, tool, file, text) of the next change, or None."""
        event = ToolEvent(size=ctypes.sizeof(ToolEvent))
        self.ask("cbx_toolbox_step", byref(event))
        if not event.kind:
            return None
        return TOOL_EVENTS[event.kind], event.tool.decode(), event.file.decode(), event.text.decode()

    def close(self):
        self.library.c.cbx_toolbox_close(self.handle)
        self.handle = None
