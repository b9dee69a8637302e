#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""libcallbox as its users meet it: the exported symbols are the listed, declared and documented
ones; the examples and the fragments of the manual build with an installed library and print what is
told; tests/api shows what each function does, also under valgrind and ThreadSanitizer."""

import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import jsonschema

import harness
from harness import REPO, case, check, equal, execute

BUILD = pathlib.Path(os.environ.get("CALLBOX_BUILD") or REPO / "build")
SHORT = bool(os.environ.get("CALLBOX_SMOKE"))
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
scratch = None
top = None  # where the library is installed
lib = None  # its directory


def text_of(*path):
    return REPO.joinpath(*path).read_text(encoding="utf-8")


def before():
    """Install into a scratch directory; put what every id must be able to run beside it."""
    global scratch, top, lib
    scratch = harness.Scratch()
    prefix_file = BUILD / ".prefix"
    prefix = prefix_file.read_text().strip() if prefix_file.exists() else "/usr/local"
    stage = scratch.path / "stage"
    done = execute(["make", "-C", str(REPO), "install", f"BUILD={os.path.relpath(BUILD, REPO)}",
                    f"PREFIX={prefix}", f"DESTDIR={stage}"], timeout=600)
    if done.code != 0:
        raise SystemExit(f"make install failed: {(done.out + done.err).decode()[-2000:]}")
    top = pathlib.Path(f"{stage}{prefix}")
    lib = pathlib.Path(glob.glob(str(top / "lib" / "**" / "libcallbox.so"), recursive=True)[0]).parent
    for name in ("api", "threads"):
        scratch.install(BUILD / "tests" / name)


def environment(**more):
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/nonexistent",
            "LD_LIBRARY_PATH": str(lib), "CALLBOX_WARDEN": str(top / "bin" / "callbox"), **more}


def execute_as(user, command, **options):
    options.setdefault("env", environment())
    options.setdefault("cwd", "/")
    return execute(harness.as_user(command) if user else command, **options)


# ---- Symbols -----------------------------------------------------------------------------------


def exported():
    done = execute(["nm", "-D", "--defined-only", "--with-symbol-versions", str(lib / "libcallbox.so")])
    found = {}
    for line in done.out.decode().splitlines():
        kind, name = line.split()[-2:]
        if kind != "A":
            name, _, version = name.partition("@@")
            found[name] = version
    return found


def listed():
    text = re.sub(r"/\*.*?\*/", "", text_of("src", "libcallbox.map"), flags=re.S)
    return re.findall(r"^\s*([\w*]+);", text.split("local:")[0], re.M)


def header():
    return re.sub(r"/\*.*?\*/", "", text_of("include", "callbox.h"), flags=re.S)


def declared():
    return [re.findall(r"(\w+)\s*\(", part)[0] for part in re.findall(r"^CBX_API\s([^;]*);", header(), re.M)]


def page(name):
    """A manual page as its reader sees the words: without scdoc's marks."""
    return re.sub(r"\\(?=.)|\*", "", text_of("man", name + ".scd"))


@case("the exported symbols are exactly the listed ones")
def symbols_listed():
    names = listed()
    check(len(names) > 20 and not [n for n in names if "*" in n], f"no list of names: {names}")
    equal(names, sorted(set(names)), "the list, in order and each once")
    equal(sorted(exported()), names, "what is exported")
    equal(set(exported().values()), {"CALLBOX_0"}, "the versions of the symbols")


@case("the listed symbols are those that the header declares")
def symbols_declared():
    equal(sorted(declared()), listed(), "what is declared")


# Tools have a page of their own.
PAGES = ("libcallbox.3", "libcallbox-tools.3")


def pages():
    return "\n".join(page(name).split("# DESCRIPTION")[1] for name in PAGES)


@case("libcallbox(3) has every function as the header declares it, and explains it")
def symbols_documented():
    def shape(text):
        return re.sub(r"\s+", " ", text).strip()

    synopsis = " ".join(shape(text_of("man", name + ".scd").split("```")[1]) for name in PAGES)
    text = pages()
    for part in re.findall(r"^CBX_API\s([^;]*;)", header(), re.M):
        check(shape(part) in synopsis, f"the synopsis lacks {shape(part)}")
    for name in declared():
        if name != "cbx_version":
            check(re.search(rf"\b{name}\(\)", text), f"libcallbox(3) does not explain {name}()")
    for name in re.findall(r"\bcbx_\w+", synopsis + text):
        check(re.search(rf"\b{name}\b", header()), f"libcallbox(3) speaks of {name}, which there is not")


@case("libcallbox(3) explains every type, field, constant and reason of the header")
def fields_documented():
    text = pages()
    for name in re.findall(r"\bCBX_[A-Z_]+\b", header()):
        if not name.endswith(("_INIT", "_API")) or name in ("CBX_SPEC_INIT", "CBX_REPORT_INIT"):
            check(re.search(rf"\b{name}\b", text), f"libcallbox(3) lacks {name}")
    for name in re.findall(r"typedef (?:struct|enum) (\w+)", header()):
        check(re.search(rf"\b{name}\b", text), f"libcallbox(3) lacks {name}")
    for kind in ("spec", "report", "warden_options", "error", "event", "output", "toolbox_options", "tool", "result", "mistake", "tool_event"):
        body = re.search(rf"typedef struct cbx_{kind} \{{(.*?)\n\}}", header(), re.S).group(1)
        for line in body.split(";"):
            for name in re.findall(r"(\w+)(?:\[\d+\])?\s*(?:,|$)", line.strip()):
                if name not in ("size", "owner"):
                    check(re.search(rf"(?<![a-z]){name}(?![a-z])", text),
                          f"libcallbox(3) lacks {name} of cbx_{kind}")


@case("the soname is libcallbox.so.0")
def soname():
    dynamic = execute(["readelf", "-W", "-d", str(lib / "libcallbox.so")]).out.decode()
    check("[libcallbox.so.0]" in dynamic, dynamic[:500])
    equal(os.readlink(lib / "libcallbox.so"), "libcallbox.so.0", "what is linked with")


# ---- The header --------------------------------------------------------------------------------


@case("the header stands alone, in C and C++, in fewer than 750 lines")
def header_alone():
    check(len(text_of("include", "callbox.h").splitlines()) < 750, "it is too long")
    use = "#include <callbox.h>\n" + "\n".join(
        f"static {kind} a_{kind} = {kind.upper()}_INIT; {kind} *use_{kind}(void); {kind} *use_{kind}(void)"
        f" {{ return &a_{kind}; }}"
        for kind in ("cbx_error", "cbx_warden_options", "cbx_spec", "cbx_report", "cbx_event"))
    for compiler, standard, language in (("gcc", "c99", "c"), ("gcc", "c17", "c"), ("g++", "c++11", "c++"),
                                         ("g++", "c++20", "c++"), ("clang", "c17", "c"), ("clang++", "c++11", "c++")):
        if not shutil.which(compiler):
            raise harness.Failed(f"{compiler} is missing: scripts/install-deps --test")
        done = execute([compiler, f"-std={standard}", *WARNINGS, "-fsyntax-only", f"-I{top}/include", "-x", language, "-"],
                       data=use.encode() + b"\n")
        equal((done.code, done.err.decode()[:600]), (0, ""), f"{compiler} -std={standard}")


# ---- Examples ----------------------------------------------------------------------------------


def flags(*packages):
    env = {**os.environ, "PKG_CONFIG_PATH": str(lib / "pkgconfig"), "PKG_CONFIG_SYSROOT_DIR": str(scratch.path / "stage")}
    found = execute(["pkg-config", "--cflags", "--libs", *packages], env=env)
    equal(found.code, 0, f"exit code of pkg-config {packages} ({found.err!r})")
    # Where the prefix is the system's own, pkg-config leaves its directories out.
    return [f"-I{top}/include", f"-L{lib}", *found.out.decode().split()]


def compile_source(source, target, *packages, cplusplus=False, link=True):
    compiler = ["g++", "-std=c++17"] if cplusplus else ["gcc", "-std=c17"]
    compiler += ["-D_POSIX_C_SOURCE=200809L"] if not cplusplus else []
    output = ["-o", str(target)] if link else ["-fsyntax-only"]
    done = execute([*compiler, *WARNINGS, "-O1", *output, str(source), *flags(*packages)], timeout=60)
    equal((done.code, done.err.decode()[:1500]), (0, ""), f"compiling {source}")


def packages_of(source):
    return {"with_libevent.c": ["callbox", "libevent_core"], "functions.c": ["callbox", "jansson"]}.get(source.name, ["callbox"])


def examples():
    """What examples/README.md says: the file, and the lines that it prints."""
    rows = re.findall(r"^\| \[([\w.]+)\]\(\1\) \| (.*?) \| (.*) \|$", text_of("examples", "README.md"), re.M)
    return {name: "".join(line + "\n" for line in re.findall(r"`([^`]*)`", prints)) for name, _, prints in rows}


def example(name, prints):
    source = REPO / "examples" / name
    target = scratch.bin / ("example-" + name.split(".")[0])
    compile_source(source, target, *packages_of(source), cplusplus=name.endswith(".cc"))
    target.chmod(0o755)
    for who, user in harness.PEOPLE:
        done = execute_as(user, [str(target)], timeout=60)
        equal((done.code, done.out.decode(), done.err.decode()), (0, prints, ""), f"what {name} does as {who}")
    lost = execute_as(False, [str(target)], timeout=60, env=environment(CALLBOX_WARDEN="/nonexistent/callbox"))
    check(lost.code == 1 and not lost.out and b"/nonexistent/callbox" in lost.err,
          f"without a warden {name} exits with {lost.code} and says {lost.err!r}")


for example_name, example_prints in examples().items():
    harness.add(f"example {example_name}", lambda name=example_name, prints=example_prints: example(name, prints))


@case("examples/README.md names every example, and each is short")
def examples_named():
    files = sorted(p.name for p in REPO.glob("examples/*.c*"))
    equal(sorted(examples()), files, "the programs in examples/README.md")
    check(len(files) >= 6, f"only {files}")
    for name in files:
        lines = len(text_of("examples", name).splitlines())
        check(lines <= (130 if name == "functions.c" else 90), f"{name} has {lines} lines")
    manual = text_of("man", "libcallbox.3.scd") + text_of("man", "libcallbox-tools.3.scd")
    for name in files:
        check(f"_{name}_" in manual, f"libcallbox(3) does not show {name}")


PROLOGUE = """
#include <callbox.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
"""

# What the fragments of the manual take for granted, by a word that stands in them.
FRAGMENTS = {
    "hello from a box": (PROLOGUE + "int main(void) {", "}"),
    "running = CALLS": (PROLOGUE + "enum { CALLS = 2 }; int main(void) { cbx_call *calls[CALLS] = { NULL };"
                        " struct pollfd fds[CALLS] = { 0 };", "}"),
    "fwrite(event.data": (PROLOGUE + "int f(cbx_call *call); int f(cbx_call *call) { cbx_error error = CBX_ERROR_INIT;",
                          " return error.code; }"),
    "cbx_signal(call, SIGINT)": (PROLOGUE + "void f(cbx_call *call); void f(cbx_call *call) {"
                                 " cbx_error error = CBX_ERROR_INIT; cbx_report report = CBX_REPORT_INIT;", "}"),
    "event_new(": (PROLOGUE + "#include <event2/event.h>\nstruct job { cbx_call *call; struct event *ready; };"
                   " void look(evutil_socket_t fd, short what, void *c);"
                   " void f(struct event_base *base, struct job *job); void f(struct event_base *base, struct job *job) {", "}"),
    "std::unique_ptr": ("#include <callbox.h>\n#include <memory>\n", "int main() { Warden w; Policy p; }"),
    "options.socket": (PROLOGUE + "int main(void) { cbx_warden *warden; cbx_error error = CBX_ERROR_INIT;", "}"),
}


@case("every fragment of code in the manual compiles")
def fragments():
    found = []
    for name in ("libcallbox.3", "callbox-warden.1"):
        blocks = re.findall(r"^```\n(.*?)^```$", text_of("man", name + ".scd"), re.M | re.S)
        found += [block.replace("\\\\", "\\") for block in blocks if "SYNOPSIS" not in block and "#include" not in block]
    equal(len(found), len(FRAGMENTS), "the number of fragments")
    for block in found:
        words = [word for word in FRAGMENTS if word in block]
        equal(len(words), 1, f"fragments like {block[:80]!r}")
        opening, closing = FRAGMENTS[words[0]]
        cplusplus = "std::" in block
        source = scratch.directory() / ("fragment.cc" if cplusplus else "fragment.c")
        source.write_text(f"{opening}\n{block}\n{closing}\n")
        packages = ["callbox", "libevent_core"] if "event_new" in block else ["callbox"]
        compile_source(source, None, *packages, cplusplus=cplusplus, link=False)


@case("the five lines of the README are those of the header, and do what they say")
def five_lines():
    readme = re.search(r"^```c\n(.*?)^```$", text_of("README.md"), re.M | re.S).group(1)
    comment = re.search(r"A program in five lines.*?\n \*\n(.*?) \*/", text_of("include", "callbox.h"), re.S).group(1)
    equal(re.sub(r"^ \*     ", "", comment, flags=re.M), readme, "the lines in the header")
    equal(len(readme.splitlines()), 5, "the number of lines")
    folder = scratch.directory()
    (folder / "five.c").write_text(
        "#include <callbox.h>\n#include <stdio.h>\n\nint main(void)\n{\n"
        "cbx_error error = CBX_ERROR_INIT; cbx_report report = CBX_REPORT_INIT;\n"
        "cbx_warden *warden = NULL; cbx_policy *policy = NULL;\n" + readme +
        'printf("%s%s%s\\n", report.output.data, report.errors.data, report.text);\n'
        "cbx_report_free(&report); cbx_policy_unref(policy); cbx_warden_close(warden); return 0;\n}\n")
    compile_source(folder / "five.c", folder / "five", "callbox")
    (folder / "five").chmod(0o755)
    for who, user in harness.PEOPLE:
        place = scratch.directory(user)
        (place / "tool.py").write_text("print(6 * 7)\n")
        done = execute_as(user, [str(folder / "five")], cwd=place)
        equal(done.out.decode(), "42\nthe program exited with code 0\n", f"what it prints as {who}")


# ---- What the functions do -----------------------------------------------------------------------


def api_names():
    """The tests of tests/api, as its program lists them."""
    done = subprocess.run([str(BUILD / "tests" / "api"), "--list"], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()


def api(name, user):
    done = execute_as(user, [str(scratch.bin / "api"), name], timeout=90)
    last = done.out.decode("utf-8", "replace").splitlines()[-1:]
    equal((done.code, last, done.err), (0, [f"ok - {name}"], b""), "the end of it")


for api_name in api_names():
    for api_who, api_user in harness.PEOPLE:
        harness.add(f"{api_name}, as {api_who}", lambda name=api_name, user=api_user: api(name, user))


@harness.for_people("reports as JSON are valid and complete")
def reports(user):
    schema = json.loads(text_of("schema", "report.schema.json"))
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    done = execute_as(user, [str(scratch.bin / "api"), "reports as JSON"], timeout=90)
    parts = re.split(r"^report (\w+) (-?\d+)\n", done.out.decode("utf-8").rsplit("ok - ", 1)[0], flags=re.M)[1:]
    found = []
    for reason, code, text in zip(parts[0::3], parts[1::3], parts[2::3]):
        report = harness.parse_report(text)
        mistakes = sorted(validator.iter_errors(report), key=str)
        check(not mistakes, lambda mistakes=mistakes: f"not valid: {mistakes[0].message[:300]}")
        equal((report["reason"], report["code"] if report["code"] is not None else -1), (reason, int(code)), "reason and code")
        equal(report["id"], "printed", "id")
        check("stdout" in report and "stderr" in report, "the output is not in it")
        found.append(reason)
    equal(found, ["exited", "signaled", "exited", "exited", "timeout", "setup"], "the reasons")


@harness.for_people("valgrind finds nothing, and nothing is lost", alone=True)
def valgrind(user):
    if not shutil.which("valgrind"):
        raise harness.Skip("valgrind is not installed: scripts/install-deps --test")
    names = api_names()[:: 4 if SHORT else 1]
    done = execute_as(user, ["valgrind", "--quiet", "--tool=memcheck", "--leak-check=full", "--show-leak-kinds=all",
                             "--errors-for-leak-kinds=all", "--track-fds=yes", "--child-silent-after-fork=yes",
                             "--error-exitcode=99", str(scratch.bin / "api"), *names],
                      timeout=300, env=environment(API_VALGRIND="1", TMPDIR="/tmp"))
    said = done.out.decode("utf-8", "replace")
    wrong = re.findall(r"^not ok.*", said, re.M)
    check(done.code == 0 and not wrong, lambda: f"exit {done.code}: {wrong} {done.err.decode()[:1500]}")
    equal(len(re.findall(r"^ok - ", said, re.M)), len(names), "the tests that were run")
    left = re.findall(r"^==\d+== (Open .*)\n==\d+== +(?!<inherited)", done.err.decode(), re.M)
    check(not left, lambda: f"descriptors are left: {left}")


# A kernel with much randomness in its addresses is too much for older runtimes of ThreadSanitizer.
THREADS = ["setarch", "--addr-no-randomize"]


@harness.for_people("ThreadSanitizer is silent with 16 threads, with a warden each and with one", alone=True)
def threads(user):
    calls = 5 if SHORT else 20
    done = execute_as(user, [*THREADS, str(scratch.bin / "threads"), str(calls)], timeout=300,
                      env=environment(TSAN_OPTIONS="exitcode=66 halt_on_error=0"))
    total = 16 * calls
    equal((done.code, done.out.decode(), done.err.decode()[:2000]),
          (0, f"a warden each: {total} of {total} calls are right\none warden: {total} of {total} calls are right\n"
           f"one toolbox: {total} of {total} acts are right\n", ""),
          "exit code and output")


@case("ThreadSanitizer would tell of a race")
def threads_control():
    done = execute_as(False, [*THREADS, str(scratch.bin / "threads"), "--race"], env=environment(TSAN_OPTIONS="exitcode=66"))
    check(done.code == 66 and b"data race" in done.err, f"exit {done.code}, {done.err[:300]!r}")


if __name__ == "__main__":
    sys.exit(harness.main(before=before, after=lambda: scratch and scratch.remove()))
