# SPDX-License-Identifier: MIT
"""What a hostile review has tried on zygotes: modules that want more than a box, calls that want to last
longer than one, and reports that are lies."""

import concurrent.futures
import os
import socket
import subprocess
import sys
import textwrap
import time

import pytest
from test_run import until
from test_zygote import get, harmful, load  # noqa: F401

from callbox import Policy

ROOT = os.geteuid() == 0

# ---- Agents of their own: who they are is the test ----

AGENT = """
    import os, sys, time
    sys.path.insert(0, {directory!r})
    os.chdir("/")
    {before}
    import tried
    from callbox import Policy, Toolbox
    box = Toolbox([tried.tool], policy={policy})
    for _ in range({calls}):
        result = box.call_sync("tool", {{}})
        assert result.ok, (result.error, result.reason, result.traceback)
        print(result.output)
        time.sleep(0.5)  # loading may take longer than calls wait for it
"""

# As on a kernel without Landlock.
NO_LANDLOCK = """
    import ctypes, struct
    code = b"".join(struct.pack("<HBBI", *line) for line in (
        (0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x50000 | 38), (0x06, 0, 0, 0x7fff0000)))
    code = ctypes.create_string_buffer(code)
    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
    libc = ctypes.CDLL(None)
    libc.prctl(38, 1, 0, 0, 0)
    assert libc.prctl(22, 2, ctypes.byref(Program(4, ctypes.addressof(code))), 0, 0) == 0
"""


def agent(directory, module, prefix=(), before="", policy="None", calls=3):
    """What a module's tool returns in so many calls, one per line."""
    (directory / "tried.py").write_text(textwrap.dedent(module))
    directory.chmod(0o755)
    before = textwrap.indent(textwrap.dedent(before), "    ").strip() or "pass"
    text = AGENT.format(directory=str(directory), before=before, policy=policy, calls=calls)
    done = subprocess.run(
        [*prefix, sys.executable, "-c", textwrap.dedent(text)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False)  # fmt: skip
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout.splitlines()


# ---- S7, S11: what a call of a zygote could reach or use up, as any other ----


def test_s7_a_wardens_socket_in_the_workspace_is_no_way_out_of_a_forked_call(load, tmp_path):  # noqa: F811
    """Nor is any of the host's that lies where a call may only read; one of its own is a socket as any other."""
    work, shown = tmp_path / "work", tmp_path / "shown"
    work.mkdir()
    shown.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(shown / "s"))
        listener.listen()
        (work / "link").symlink_to(shown / "s")
        warden = subprocess.Popen([os.environ["CALLBOX_WARDEN"], "warden", "--socket", str(work / "w")], cwd="/")
        try:
            until((work / "w").exists)
            box = load(
                """
                import os, socket, struct
                PID = os.getpid()
                def reach(path: str, own: bool) -> list:
                    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                    if own:
                        listener.bind(path)
                        listener.listen()
                    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                    client.settimeout(5)
                    try:
                        client.connect(path)
                        client.send(struct.pack("=IIQQ", 1, 0, 8, 5))
                        said = bool(own or client.recv(100))
                    except OSError:
                        said = False
                    return [os.getpid() != PID, said]
                """,
                policy=Policy(workspace=str(work), read=[str(shown)]),
            )
            until(lambda: get(box, "reach", path=str(work / "w"), own=False)[0])
            for path, own, reached in ((work / "w", False, False), (shown / "s", False, False), (work / "link", False, False), (work / "own", True, True), ("/tmp/own", True, True)):
                assert get(box, "reach", path=str(path), own=own) == [True, reached], path
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:  # the control: outside of a box it is there
                client.connect(str(shown / "s"))
            done = subprocess.run([os.environ["CALLBOX_WARDEN"], "run", "--warden", str(work / "w"), "--", "echo", "hi"], stdout=subprocess.PIPE, cwd="/", check=True)
            assert done.stdout == b"hi\n"
        finally:
            warden.terminate()
            warden.wait(20)


HOARD = """
    import array, ctypes, os, signal, socket, time
    PID = os.getpid()
    libc, keep = ctypes.CDLL(None), []
    def take(kind: str, seconds: float) -> list:
        n = 0
        try:
            while n < 100000:
                if kind == "notices":
                    if libc.inotify_init() < 0: break
                elif kind == "flight":
                    keep.append(socket.socketpair())
                    keep[-1][0].sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0] * 253))])
                elif kind == "terminals":
                    keep.append(os.open("/dev/ptmx", os.O_RDWR))
                else:
                    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN})
                    if libc.sigqueue(os.getpid(), signal.SIGRTMIN, None) < 0: break
                n += 1
        except OSError:
            pass
        time.sleep(seconds)
        return [os.getpid() != PID, n]
"""


def usable():
    """What a user needs of each kind, with the usual limit on descriptors."""
    script = textwrap.dedent("""
        import array, ctypes, os, pty, resource, signal, socket
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(1024, hard), min(1024, hard)))
        libc = ctypes.CDLL(None)
        assert libc.inotify_init() >= 0, "notices"
        a, b = socket.socketpair()
        a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])
        pty.openpty()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGRTMIN})
        assert all(libc.sigqueue(os.getpid(), signal.SIGRTMIN, None) == 0 for i in range(64)), "signals"
    """)
    return subprocess.run([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True, check=False).stderr


def test_s11_forked_calls_that_take_all_they_can_leave_the_user_what_he_needs(load):  # noqa: F811
    box = load(HOARD)
    until(lambda: get(box, "take", kind="signals", seconds=0)[0])
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(get, box, "take", kind=kind, seconds=2) for kind in ("notices", "flight", "terminals", "signals") * 2]
        time.sleep(1)
        assert usable() == ""
        assert get(box, "take", kind="none", seconds=0)[0]
        for call in calls:
            forked, taken = call.result()
            assert forked and taken < 100000


# ---- S20: a /proc of a module's own ----

PROC = """
    import ctypes, os, sys
    from callbox import _channel
    def attack() -> str:
        libc = ctypes.CDLL(None, use_errno=True)
        ready, told = os.pipe()
        pid = libc.syscall(56, 0x10000000 | 0x20000000 | 0x00020000 | 0x08000000 | 0x40000000 | 17, 0, 0, 0, 0)
        if pid < 0:
            return "no namespaces"
        if pid == 0:
            proc = libc.syscall(430, b"proc", 0)
            mount = libc.syscall(432, proc, 0, 0) if libc.syscall(431, proc, 6, 0, 0, 0) == 0 else -1
            opened = []
            for name in ("sys/kernel/core_pattern", "sys/vm/drop_caches", "sys/kernel/hostname", "sys/fs/protected_hardlinks"):
                try:
                    os.close(os.open(name, os.O_WRONLY, dir_fd=mount))  # and nothing is written
                    opened.append(name)
                except OSError:
                    pass
            os.write(told, f"mounted {mount >= 0}, opened {opened}".encode())
            os._exit(0)
        os.close(told)
        said = os.read(ready, 4096).decode()
        os.close(ready)
        os.waitpid(pid, 0)
        return said
    SAID = attack() if _channel.boxed else ""
    PID = os.getpid()
    def tool() -> str:
        return f"{SAID}; forked {PID != os.getpid()}"
"""

WITHOUT = ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]
RENAMED = ["unshare", "-U", "--map-user=1000", "--map-group=1000"]
ROOTS = [WITHOUT, RENAMED, [*RENAMED, "unshare", "-U", "--map-user=7", "--map-group=7"]] if ROOT else [["unshare", "-Ur", *WITHOUT]]


@pytest.mark.parametrize("prefix", ROOTS, ids=lambda prefix: " ".join(prefix))
def test_s20_where_a_box_has_the_id_of_the_hosts_root_there_is_no_zygote(tmp_path, prefix):
    for line in agent(tmp_path, PROC, prefix):
        assert line == "no namespaces; forked False"


def test_s20_control_elsewhere_it_gets_a_proc_in_which_it_is_nobody(tmp_path):
    lines = agent(tmp_path, PROC)
    assert lines[-1] == "mounted True, opened []; forked True"


# ---- S21, S22, S23: who holds the memory of a call ----

HOLDER = """
    import ctypes, fcntl, mmap, os, signal, socket, struct, time
    def stat(pid):
        fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
        return fields[0], int(fields[11]) + int(fields[12])
    def rewrite(libc, page):
        # Wherever it goes on when it wakes, it counts in this page.
        base = ctypes.addressof(ctypes.c_char.from_buffer(page))
        page[:13] = b"\\x48\\xb8" + struct.pack("<Q", base + 2048) + b"\\x48\\xff\\x00"
        page[13:15] = b"\\xeb\\xfb"
        jump = b"\\x48\\xb8" + struct.pack("<Q", base) + b"\\xff\\xe0"
        function = ctypes.cast(libc.syscall, ctypes.c_void_p).value
        after = function + ctypes.string_at(function, 64).index(b"\\x0f\\x05") + 2
        for line in open("/proc/self/maps"):
            fields = line.split()
            begin, end = (int(at, 16) for at in fields[0].split("-"))
            if "_zygote" in line and fields[1] == "rw-p":
                text = ctypes.string_at(begin, end - begin)
                for at in range(0, len(text) - 8, 8):  # return addresses on its stack
                    if struct.unpack_from("<Q", text, at)[0] == after:
                        ctypes.memmove(begin + at, struct.pack("<Q", base), 8)
        libc.mprotect(ctypes.c_void_p(after & ~4095), 8192, 7)
        ctypes.memmove(after, jump, len(jump))
    def wake(libc, holder):
        for line in open("/proc/self/maps"):
            fields = line.split()
            begin, end = (int(at, 16) for at in fields[0].split("-"))
            if fields[1] == "rw-p" and end - begin < 1 << 20:
                for at in range(begin, end, 4):
                    FUTEX(202, at, 1, 10)
        one, other = socket.socketpair()
        fcntl.fcntl(one, fcntl.F_SETOWN, holder)
        fcntl.fcntl(one, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
        other.send(b"x")
        for number in (signal.SIGSTOP, signal.SIGCONT, signal.SIGSTOP, signal.SIGCONT, signal.SIGURG, signal.SIGUSR1):
            try:
                os.kill(holder, number)
            except PermissionError:  # Landlock
                pass
            time.sleep(0.01)
    def tool() -> dict:
        global FUTEX
        holder = max(int(name) for name in os.listdir("/proc") if name.isdigit())
        if holder == os.getpid():
            return {"forked": False}
        libc = ctypes.CDLL(None, use_errno=True)
        code = mmap.mmap(-1, 4096, prot=7)
        code.write(bytes.fromhex("4889f84889f74889d64889ca0f05c3"))  # any system call of three arguments
        FUTEX = ctypes.CFUNCTYPE(ctypes.c_long, *[ctypes.c_long] * 4)(ctypes.addressof(ctypes.c_char.from_buffer(code)))
        page = mmap.mmap(-1, 4096, prot=7)
        try:
            here = os.stat(f"/proc/{holder}/cwd")
            beside = os.path.samestat(here, os.stat("/"))
        except PermissionError:
            beside = True
        rewrite(libc, page)
        wake(libc, holder)
        time.sleep(0.3)
        return {"forked": True, "counted": struct.unpack("<Q", page[2048:2056])[0], "state": stat(holder), "beside": beside}
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="what it is made to run is x86-64 code")
@pytest.mark.parametrize("before", ["", NO_LANDLOCK], ids=["landlock", "without landlock"])
def test_s21_s22_s23_who_holds_the_memory_of_a_call_never_runs(tmp_path, before):
    lines = agent(tmp_path, HOLDER, before=before, policy='Policy(limits={"cpu": 5, "memory": "256M"})')
    assert lines[-1] == "{'forked': True, 'counted': 0, 'state': ('t', 0), 'beside': True}", lines


# ---- S24: memory that calls would share ----

SHARED = {
    "a memory file, for reading": "fd = os.memfd_create('x'); os.truncate(fd, 4096); at = MMAP(0, 4096, READ, SHARED, fd, 0); os.close(fd)",
    "a temporary file, for reading": "f = tempfile.TemporaryFile(); f.truncate(4096); at = MMAP(0, 4096, READ, SHARED, f.fileno(), 0); f.close()",
    "a file in /dev/shm, for nothing": "fd = os.open('/dev/shm/x', 66); os.unlink('/dev/shm/x'); os.truncate(fd, 4096); at = MMAP(0, 4096, 0, SHARED, fd, 0); os.close(fd)",
    "no file, closed by mprotect": "at = MMAP(0, 4096, 3, SHARED | 32, -1, 0); libc.mprotect(ctypes.c_void_p(at), 4096, READ)",
    "a System V segment": "libc.shmat.restype = ctypes.c_void_p; at = libc.shmat(libc.shmget(0, 4096, 0o1600), 0, 0)",
}
SHARING = """
    import ctypes, os, tempfile
    from callbox import _channel
    libc = ctypes.CDLL(None, use_errno=True)
    MMAP = libc.mmap
    MMAP.restype, MMAP.argtypes = ctypes.c_void_p, [ctypes.c_long] * 6
    READ, SHARED = 1, 1
    if _channel.boxed:
        {}
        assert at not in (None, 2**64 - 1), os.strerror(ctypes.get_errno())
    PID = os.getpid()
    def poison() -> list:
        changed = libc.mprotect(ctypes.c_void_p(at), 4096, 3) == 0
        before = ctypes.string_at(at, 1) if changed else b""
        if changed:
            ctypes.memset(at, 0x78, 1)
        return [changed, before.hex(), PID != os.getpid()]
"""


@pytest.mark.parametrize("how", SHARED.values(), ids=SHARED)
def test_s24_nothing_that_calls_share_can_be_made_writable(load, how):  # noqa: F811
    box = load(SHARING.format(how))
    for _ in range(4):
        changed, before, forked = get(box, "poison")
        assert changed and before == "00" and not forked


def test_s24_there_is_nothing_to_share_by_a_device(load):  # noqa: F811
    box = load("import os\ndef zero() -> int:\n    return os.open('/dev/zero', os.O_RDWR)\n")
    assert "PermissionError" in box.call_sync("zero").error


def test_s24_control_what_can_only_be_read_is_shared(load):  # noqa: F811
    box = load(SHARING.format("fd = os.open('/etc/passwd', 0); at = MMAP(0, 4096, READ, SHARED, fd, 0); os.close(fd)"))
    until(lambda: get(box, "poison") == [False, "", True])


def test_s24_what_is_open_in_a_zygote_is_open_in_no_call(load, tmp_path):  # noqa: F811
    """An offset, a flag or a lock that belongs to an open file would be every call's."""
    data = tmp_path / "data"
    data.write_text("0123456789")
    box = load(
        f"""
        import fcntl, os
        FD = os.open({str(data)!r}, os.O_RDONLY)
        def look() -> list:
            before = [os.lseek(FD, 0, 1), fcntl.fcntl(FD, fcntl.F_GETFL) & os.O_NONBLOCK]
            os.lseek(FD, 7, 0)
            fcntl.fcntl(FD, fcntl.F_SETFL, os.O_NONBLOCK)
            fcntl.flock(FD, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return [*before, os.getpid()]
        """,
        policy=Policy(read=[str(data)]),
    )
    until(lambda: get(box, "look")[2] == 3)
    for _ in range(3):
        assert get(box, "look") == [0, 0, 3]


# ---- S25: reports of a hostile zygote ----

LIE = """
    import ctypes, mmap
    say(warden, READY)
    while True:
        data, more, _, _ = warden.recvmsg(1 << 20, 256)
        if not data:
            os._exit(0)
        fds = array.array("i")
        fds.frombytes(more[0][2])
        page = mmap.mmap(fds[0], os.fstat(fds[0]).st_size)
        init = ctypes.CDLL(None).syscall(56, 0x38020000 | 17, 0, 0, 0, 0)
        if init == 0:
            start = socket.socket(fileno=fds[2])
            start.recvmsg(64, 256)  # an offer, or the call
            {}
            socket.socket(fileno=fds[1]).send(b"E")
            time.sleep(0.2)
            os._exit(0)
        say(warden, BOX, bytes(8), [os.pidfd_open(init)])
        [os.close(fd) for fd in fds]
"""
LIES = {
    "ones": "page[: len(page) - (1 << 20)] = bytes([255]) * (len(page) - (1 << 20))",
    "noise": "page[: len(page) - (1 << 20)] = os.urandom(len(page) - (1 << 20))",
    "texts without an end": "page[:320] = bytes([27]) * 320",
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_s25_a_report_that_makes_no_sense_is_told_as_that(load, lie):  # noqa: F811
    other = load("def ok() -> int:\n    return 1\n")
    box = harmful(load, LIE.format(lie), policy=Policy(limits={"wall": 5}))
    said = []

    def lied():
        result = box.call_sync("ok")
        assert get(other, "ok") == 1
        if not result.ok:
            said.append((result.report.reason, result.error))
        return said

    until(lied)
    assert said == [("internal", "the box's report made no sense")]
    # Nobody asks such a zygote again.
    for _ in range(3):
        assert get(box, "ok") == 1


def test_s25_a_zygote_that_wants_to_be_replaced_for_ever_is_done_without(load, tmp_path):  # noqa: F811
    log = tmp_path / "log"
    log.mkdir()
    box = harmful(
        load,
        f"""
        import ctypes
        FORGET = 3
        os.close(os.open({str(log)!r} + "/" + os.urandom(8).hex(), os.O_CREAT))
        say(warden, READY)
        warden.recv(1 << 20)
        init = ctypes.CDLL(None).syscall(56, 0x38020000 | 17, 0, 0, 0, 0)
        if init == 0:
            time.sleep(1000)
        say(warden, BOX, bytes(8), [os.pidfd_open(init)])
        say(warden, FORGET)
        time.sleep(1000)
        """,
        policy=Policy(write=[str(log)], limits={"wall": 1}),
    )
    for _ in range(8):
        box.call_sync("ok")
    until(lambda: all(box.call_sync("ok").ok for _ in range(3)), 60)  # one that starts slowly takes a call more
    assert len(os.listdir(log)) <= 8, "zygotes that were started"


# ---- What a module may do while nobody calls ----


def test_a_zygote_goes_when_the_host_replaces_what_is_protected(load, tmp_path):  # noqa: F811
    """Nobody looks at what a module does in a workspace: by mounts alone what is protected stays as it is, and the
    host's own mv takes them away."""
    work = tmp_path / "work"
    work.mkdir()
    (work / ".envrc").write_text("as it was")
    box = load("import os\ndef pid() -> int:\n    return os.getpid()\n", policy=Policy(workspace=str(work)))
    until(lambda: get(box, "pid") == 3)

    def zygotes():
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/mountinfo", encoding="utf-8") as mounts, open(f"/proc/{name}/cmdline", "rb") as line:
                    if str(work) in mounts.read() and b"_start" in line.read():
                        found.append(int(name))
            except OSError:
                pass
        return found

    assert zygotes()
    (work / "new").write_text("replaced")
    (work / "new").rename(work / ".envrc")
    until(lambda: not zygotes())  # without another call
