#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""What `make install` leaves behind: the right files and no others, a library and a header that
others can build with, a command that is hardened and starts without a dynamic linker."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("CALLBOX_BUILD", os.path.join(ROOT, "build"))

PROGRAM = r"""
#include <callbox.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_policy *policy = NULL;
        char *text = NULL;

        puts(cbx_version());
        if (cbx_policy_parse("{}", 2, &policy, &error) != 0)
                return 1;
        if (cbx_policy_print(policy, &text, &error) != 0)
                return 2;
        free(text);
        if (cbx_policy_unref(policy) != NULL)
                return 3;
        if (cbx_policy_parse("{\"colour\": 1}", 13, &policy, &error) == 0 || !error.text[0])
                return 4;
        return 0;
}
"""

passed = failed = 0


def check(name, true, detail=""):
    global passed, failed
    if true:
        passed += 1
    else:
        failed += 1
        print(f"FAILED {name}: {detail}")


def run(*command, **options):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, **options)


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as stream:
        return stream.read()


def project_version():
    return re.search(r"\bversion: '([\d.]+)'", read(ROOT, "meson.build")).group(1)


def check_files(top):
    """Every file that is installed is expected, and every expected one is installed."""
    installed = sorted(os.path.relpath(os.path.join(folder, name), top)
                       for folder, _, names in os.walk(top) for name in names)
    expected = {
        "the command": r"bin/callbox",
        "the header": r"include/callbox\.h",
        "the library": r"lib/(.+/)?libcallbox\.so\.0\.\d+\.\d+",
        "the library by its soname": r"lib/(.+/)?libcallbox\.so\.0",
        "the library for linking": r"lib/(.+/)?libcallbox\.so",
        "the pkg-config file": r"lib/(.+/)?pkgconfig/callbox\.pc",
        "callbox-run(1)": r"share/man/man1/callbox-run\.1",
        "callbox-doctor(1)": r"share/man/man1/callbox-doctor\.1",
        "callbox-warden(1)": r"share/man/man1/callbox-warden\.1",
        "callbox-wrap(1)": r"share/man/man1/callbox-wrap\.1",
        "callbox-tool(1)": r"share/man/man1/callbox-tool\.1",
        "libcallbox(3)": r"share/man/man3/libcallbox\.3",
        "libcallbox-tools(3)": r"share/man/man3/libcallbox-tools\.3",
        "callbox-manifest(5)": r"share/man/man5/callbox-manifest\.5",
        "callbox-policy(5)": r"share/man/man5/callbox-policy\.5",
        "callbox-security(7)": r"share/man/man7/callbox-security\.7",
        "the completion": r"share/bash-completion/completions/callbox",
        "the unit for a user": r"lib/systemd/user/callbox\.service",
        "the unit for a system": r"lib/systemd/system/callbox@\.service",
        "the AppArmor profile": r"share/callbox/apparmor/callbox",
        "the schema of policies": r"share/callbox/schema/policy[\w.-]*\.json",
        "the schema of manifests": r"share/callbox/schema/manifest[\w.-]*\.json",
        "the server of functions": r"libexec/callbox-functions",
        "what runs Python functions in boxes": r"lib/(.+/)?callbox/python/callbox/_serve\.py",
        "the modules of that": r"lib/(.+/)?callbox/python/callbox/(compat/)?\w+\.py",
        "what forks it": r"lib/(.+/)?callbox/python/callbox/_zygote\.abi3\.so",
        "the schema of specs": r"share/callbox/schema/spec[\w.-]*\.json",
        "the schema of reports": r"share/callbox/schema/report[\w.-]*\.json",
        "the schema of doctor's findings": r"share/callbox/schema/doctor[\w.-]*\.json",
        "the schema of the audit log": r"share/callbox/schema/audit[\w.-]*\.json",
    }
    for name, pattern in expected.items():
        check(f"installs {name}", any(re.fullmatch(pattern, path) for path in installed), pattern)
    allowed = [*expected.values(), r"share/man/man\d/callbox[\w-]*\.\d"]
    extra = [path for path in installed
             if not any(re.fullmatch(pattern, path) for pattern in allowed)]
    check("installs nothing else", not extra, extra)
    privileged = [path for path in installed
                  if os.stat(os.path.join(top, path)).st_mode & 0o6022]
    check("installs nothing set-uid or writable by others", not privileged, privileged)
    for path in installed:
        if path.endswith(".json"):
            try:
                json.loads(read(top, path))
                check(f"{path} is JSON", True)
            except ValueError as error:
                check(f"{path} is JSON", False, error)


def check_hardening(path, name, static):
    headers = run("readelf", "-W", "-h", "-l", "-d", path).stdout
    check(f"{name} is position independent", re.search(r"Type:\s+DYN", headers), headers[:400])
    check(f"{name} has a stack that cannot be executed",
          re.search(r"GNU_STACK\s+(\S+\s+){5}RW ", headers), "GNU_STACK is not RW")
    check(f"{name} has relocations made read-only", "GNU_RELRO" in headers)
    check(f"{name} binds at start", "BIND_NOW" in headers or re.search(r"FLAGS_1.*NOW", headers))
    check(f"{name} has no search path of its own", not re.search(r"\(R(UN)?PATH\)", headers))
    if static:
        check(f"{name} starts without a dynamic linker", "INTERP" not in headers)


def check_library(path):
    version = run("readelf", "-W", "-d", path).stdout
    check("the soname is libcallbox.so.0", "[libcallbox.so.0]" in version, version)
    symbols = run("nm", "-D", "--defined-only", path).stdout.split("\n")
    names = {line.split()[-1].split("@")[0] for line in symbols if line and " A " not in line}
    foreign = sorted(name for name in names if not name.startswith("cbx_"))
    check("the library exports nothing but cbx_*", not foreign, foreign)
    header = re.sub(r"/\*.*?\*/", "", read(ROOT, "include", "callbox.h"), flags=re.S)
    declared = {re.findall(r"(\w+)\s*\(", text)[0]
                for text in re.findall(r"^CBX_API\s([^;]*);", header, re.M)}
    check("the library exports what the header declares, no more and no less", names == declared,
          f"missing {sorted(declared - names)}, undeclared {sorted(names - declared)}")


def check_header(include):
    source = "#include <callbox.h>\n"
    for compiler, standard, language in (("gcc", "c99", "c"), ("gcc", "c17", "c"),
                                         ("g++", "c++11", "c++"), ("g++", "c++20", "c++")):
        done = run(compiler, f"-std={standard}", "-Wall", "-Wextra", "-pedantic", "-Werror",
                   "-fsyntax-only", f"-I{include}", "-x", language, "-", input=source)
        check(f"the header stands alone as {standard}", done.returncode == 0, done.stdout)


def check_use(top, prefix, stage, folder):
    """Build a program as a user would: with nothing but pkg-config."""
    pc = glob.glob(os.path.join(top, "lib", "**", "callbox.pc"), recursive=True)
    if not pc:
        check("a program builds by pkg-config", False, "no callbox.pc")
        return
    env = {**os.environ, "PKG_CONFIG_PATH": os.path.dirname(pc[0]),
           "PKG_CONFIG_SYSROOT_DIR": stage}
    version = run("pkg-config", "--modversion", "callbox", env=env).stdout.strip()
    check("pkg-config knows the version", version == project_version(), version)
    private = read(pc[0])
    for library in ("jansson", "libseccomp", "libpcre2-8"):
        check(f"{library} is private in the pkg-config file",
              re.search(rf"^Requires\.private:.*\b{library}\b", private, re.M), private)
    flags = run("pkg-config", "--cflags", "--libs", "callbox", env=env).stdout.split()
    check("a user of the library links with it alone",
          not any("jansson" in flag or "seccomp" in flag or "pcre" in flag for flag in flags), flags)

    source, program = os.path.join(folder, "use.c"), os.path.join(folder, "use")
    with open(source, "w", encoding="utf-8") as stream:
        stream.write(PROGRAM)
    # Where the prefix is the system's own, pkg-config leaves its directories out.
    lib = os.path.dirname(os.path.dirname(pc[0]))
    done = run("gcc", "-Wall", "-Wextra", "-Werror", "-o", program, source,
               f"-I{top}/include", f"-L{lib}", *flags)
    check("a program builds by pkg-config", done.returncode == 0, done.stdout)
    if done.returncode == 0:
        done = run(program, env={**os.environ, "LD_LIBRARY_PATH": lib})
        check("the program runs", done.returncode == 0, f"{done.returncode} {done.stdout}")
        check("the library tells its version", done.stdout.strip() == project_version(),
              done.stdout)


OBJECT = """
#include <callbox.h>

int answer(const char *arguments, size_t length, cbx_reply *reply)
{
        (void)arguments;
        (void)length;
        return cbx_reply_result(reply, "42", 2);
}
"""


def check_object(top, command, folder):
    """A function of a shared object, by the server that was installed and nothing else."""
    source, tools = os.path.join(folder, "answer.c"), os.path.join(folder, "tools")
    os.mkdir(tools)
    with open(source, "w", encoding="utf-8") as stream:
        stream.write(OBJECT)
    with open(os.path.join(tools, "answer.json"), "w", encoding="utf-8") as stream:
        json.dump({"name": "answer", "inputSchema": {"type": "object"},
                   "run": {"object": "answer.so", "function": "answer"}}, stream)
    done = run("gcc", "-shared", "-fPIC", f"-I{top}/include", "-o",
               os.path.join(tools, "answer.so"), source)
    check("a shared object builds without the library", done.returncode == 0, done.stdout)
    env = {key: value for key, value in os.environ.items() if not key.startswith("CALLBOX_")}
    done = run(command, "tool", "call", "--tools", tools, "answer", env=env)
    check("the installed command runs a function of it",
          (done.returncode, done.stdout) == (0, "42\n"), f"{done.returncode} {done.stdout}")


def check_units(top, prefix, folder):
    """Units that systemd reads without a complaint, with the command as it is staged."""
    if not shutil.which("systemd-analyze"):
        print("systemd is not installed: its units are not checked")
        return
    for kind, name, instance in (("user", "callbox.service", "callbox.service"),
                                 ("system", "callbox@.service", "callbox@root.service")):
        text = read(top, "lib", "systemd", kind, name)
        check(f"{name} starts the installed command", f"ExecStart={prefix}/bin/callbox warden" in text)
        check(f"{name} asks for a subtree of its own", re.search(r"^Delegate=.*memory", text, re.M))
        path = os.path.join(folder, instance)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(re.sub(r"^Documentation=.*\n", "", text, flags=re.M).replace(f"{prefix}/bin", f"{top}/bin"))
        done = run("systemd-analyze", "verify", *(["--user"] if kind == "user" else []), path,
                   env={**os.environ, "XDG_RUNTIME_DIR": folder})
        own = [line for line in done.stdout.splitlines() if "callbox" in line]
        check(f"systemd has nothing against {name}", not own, own)


def check_profile(top, prefix):
    """AppArmor before 4.0 knows neither the rule nor has kernels that need it: the rest is checked."""
    parser = shutil.which("apparmor_parser") or "/usr/sbin/apparmor_parser"
    text = read(top, "share", "callbox", "apparmor", "callbox")
    check("the profile is that of the installed command", f"profile callbox {prefix}/bin/callbox " in text, text)
    check("the profile allows user namespaces", re.search(r"^\s+userns,$", text, re.M), text)
    if not os.path.exists(parser):
        print("AppArmor is not installed: its profile is not checked")
        return
    if not os.path.exists("/etc/apparmor.d/abi/4.0"):
        text = text.replace("abi <abi/4.0>,", "abi <abi/3.0>,").replace("  userns,\n", "")
    for right, profile in ((True, text), (False, text.replace("flags=", "flag="))):
        done = run(parser, "-Q", "-K", "--skip-kernel-load", input=profile)
        check(f"AppArmor takes the profile{'' if right else ' only where it is right'}",
              (done.returncode == 0) == right, done.stdout)


def check_man(top):
    for path in sorted(glob.glob(os.path.join(top, "share", "man", "man*", "*"))):
        page, section = os.path.basename(path).rsplit(".", 1)
        text = read(path)
        check(f"{page}({section}) names itself",
              re.search(rf'^\.TH "{page}" "{section}"', text, re.M), text[:200])


def main():
    version = project_version()
    prefix_file = os.path.join(BUILD, ".prefix")
    prefix = read(prefix_file).strip() if os.path.exists(prefix_file) else "/usr/local"
    folder = tempfile.mkdtemp(prefix="callbox-install-")
    try:
        stage = os.path.join(folder, "stage")
        done = run("make", "-C", ROOT, "install", f"BUILD={os.path.relpath(BUILD, ROOT)}",
                   f"PREFIX={prefix}", f"DESTDIR={stage}")
        check("make install succeeds", done.returncode == 0, done.stdout[-2000:])
        top = stage + prefix
        check_files(top)

        command = os.path.join(top, "bin", "callbox")
        if os.path.exists(command):
            check_hardening(command, "the command", static=True)
            told = run(command, "--version").stdout
            check("the command tells its version", version in told.split(), told)
            check_object(top, command, folder)
        library = glob.glob(os.path.join(top, "lib", "**", "libcallbox.so.0.*"), recursive=True)
        if library:
            check_hardening(library[0], "the library", static=False)
            check_library(library[0])
        check_header(os.path.join(top, "include"))
        check_use(top, prefix, stage, folder)
        check_man(top)
        check_units(top, prefix, folder)
        check_profile(top, prefix)
        check("NEWS begins with this version",
              re.search(r"^callbox ([\d.]+)", read(ROOT, "NEWS"), re.M).group(1) == version)
    finally:
        shutil.rmtree(folder)

    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
