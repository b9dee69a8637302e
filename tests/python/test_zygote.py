# SPDX-License-Identifier: MIT
"""Calls are forked from an interpreter that has loaded everything: what one of them leaves behind is
never seen by another, and the fences around it are those of any box."""

import asyncio
import importlib
import os
import platform
import signal
import sys
import textwrap
import time

import pytest
from conftest import SECRET
from test_run import until

from callbox import Policy, Toolbox


@pytest.fixture
def load(tmp_path, monkeypatch):
    """A module with this text, and a toolbox with its functions; `load.file` is where it is."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def loader(text, **options):
        loader.count = getattr(loader, "count", 0) + 1
        name = f"forked_{os.getpid()}_{tmp_path.name}_{loader.count}"
        loader.file = tmp_path / f"{name}.py"
        loader.file.write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        module = importlib.import_module(name)
        functions = [f for f in vars(module).values() if getattr(f, "__module__", "") == name and callable(f)]
        return Toolbox(functions, **options)

    return loader


def get(box, tool, **arguments):
    result = box.call_sync(tool, arguments)
    assert result.ok, (result.error, result.reason, result.traceback, result.stderr)
    return result.output


# ---- Forked, and nothing shared ----


def test_a_call_is_a_process_of_its_own_in_a_box_of_its_own(load):
    box = load(
        """
        import os
        PARENT = os.getpid()
        def look() -> dict:
            status = {k: v.strip() for k, _, v in (line.partition(":") for line in open("/proc/self/status"))}
            return {
                "loaded_by": PARENT, "pid": os.getpid(), "parent": os.getppid(),
                "processes": sorted(int(p) for p in os.listdir("/proc") if p.isdigit()),
                "capabilities": [status[k] for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
                "filtered": status["Seccomp"], "new_privileges": status["NoNewPrivs"],
                "descriptors": sorted(int(f) for f in os.listdir("/proc/self/fd")),
                "environment": dict(os.environ), "id": os.getuid(),
                "session": os.getsid(0), "tmp": os.listdir("/tmp"), "run": os.listdir("/run"),
            }
        """
    )
    until(lambda: get(box, "look")["pid"] == 3)  # forked: loading may take longer than calls wait for it
    first, second = get(box, "look"), get(box, "look")
    assert first == {**second, "tmp": first["tmp"]}
    # It was loaded elsewhere: the zygote is another process, in another pid namespace.
    assert first["loaded_by"] == 2 and first["pid"] == 3 and first["parent"] == 1
    assert first["processes"] == [1, 3, 4]  # init, itself, and who holds its memory
    assert set(first["capabilities"]) == {"0" * 16}
    assert first["filtered"] == "2" and first["new_privileges"] == "1"
    assert first["descriptors"][:4] == [0, 1, 2, 3] and len(first["descriptors"]) == 5  # one to look
    assert SECRET not in first["environment"]
    assert not any(name.startswith("CALLBOX") for name in first["environment"])


def test_nothing_of_one_call_is_seen_by_the_next(load):
    box = load(
        """
        import builtins, ctypes, os, random, signal, socket, sys, tempfile, threading
        STATE = {"calls": 0}
        def leave() -> list:
            traces = [
                STATE["calls"], os.environ.get("LEFT"), os.path.exists("/tmp/left"), os.path.exists("/dev/shm/left"),
                os.getcwd(), signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL, threading.active_count(),
                "left" in sys.modules, hasattr(builtins, "left"), len(sys.path) > 0 and sys.path[0] == "/left",
                ctypes.CDLL(None).shmget(0x5eed, 4096, 0), os.umask(0o022),
            ]
            STATE["calls"] += 1
            os.environ["LEFT"] = "1"
            open("/tmp/left", "w").close()
            open("/dev/shm/left", "w").close()
            os.chdir("/usr")
            signal.signal(signal.SIGUSR1, lambda *a: None)
            threading.Thread(target=signal.pause, daemon=True).start()
            sys.modules["left"] = builtins.left = sys
            sys.path.insert(0, "/left")
            ctypes.CDLL(None).shmget(0x5eed, 4096, 0o1600)
            os.umask(0o077)
            return traces
        def where() -> str:
            return os.getcwd()
        def draw() -> list:
            return [random.random(), random.getrandbits(64), tempfile.mkdtemp()]
        """
    )
    clean = [0, None, False, False, get(box, "where"), True, 1, False, False, False, -1, 0o022]
    for _ in range(4):
        assert get(box, "leave") == clean
    drawn = [get(box, "draw") for _ in range(6)]
    assert len({number for number, _, _ in drawn}) == len({bits for _, bits, _ in drawn}) == 6
    assert len({place for _, _, place in drawn}) == 6


def test_memory_that_a_module_shares_is_shared_by_no_calls(load):
    """It stays shared over a fork: where there is some, each call loads the module itself."""
    box = load(
        """
        import mmap, multiprocessing
        PAGE, COUNT = mmap.mmap(-1, 4096), multiprocessing.Value("i", 0)
        def count() -> list:
            PAGE[0] += 1
            COUNT.value += 1
            return [PAGE[0], COUNT.value]
        """
    )
    assert [get(box, "count") for _ in range(4)] == [[1, 1]] * 4


def test_numpy_draws_anew_in_each_call(load):
    pytest.importorskip("numpy")
    box = load(
        """
        import numpy
        OURS, SEEDED = numpy.random.default_rng(), numpy.random.default_rng(5)
        def draw() -> list:
            return [float(numpy.random.random()), float(OURS.random()), float(SEEDED.random())]
        """
    )
    of_module, ours, seeded = zip(*[get(box, "draw") for _ in range(4)])
    assert len(set(of_module)) == len(set(ours)) == 4 and len(set(seeded)) == 1


def test_calls_at_the_same_time_do_not_meet(load):
    box = load(
        """
        import os, socket, time
        def meet(number: int) -> list:
            mine = socket.socket(socket.AF_UNIX)
            mine.bind("\\0meeting")            # one for all of a network
            mine.listen()
            open("/tmp/meeting", "x").close()  # ... of a /tmp
            ours = (1, os.getpid(), os.getpid() + 1)  # init, itself, and who holds its memory
            met = [p for p in os.listdir("/proc") if p.isdigit() and int(p) not in ours]
            time.sleep(0.3)
            return [number, met]
        """
    )

    async def main():
        return await asyncio.gather(*[box.call("meet", {"number": n}) for n in range(8)])

    results = asyncio.run(main())
    assert [r.output for r in results] == [[n, []] for n in range(8)], [r.error for r in results]


# ---- Attacks ----

ATTACKS = """
    import ctypes, glob, os, signal, socket
    libc = ctypes.CDLL(None, use_errno=True)
    def tried(r):
        return r if r >= 0 else -1
    def attack(name: str) -> object:
        return globals()["_" + name]()
    def _namespaces():
        flags = (0x10000000, 0x20000000, 0x00020000, 0x40000000, 0x08000000)
        return [tried(libc.unshare(f)) for f in flags] + [tried(libc.syscall(56, f | 17, 0, 0, 0, 0)) for f in flags]
    def _forking_again():  # as its zygote may
        return [tried(libc.syscall(56, 0x78020000 | 17, 0, 0, 0, 0)), tried(libc.syscall(56, 0x38020000 | 17, 0, 0, 0, 0))]
    def _mounts():
        return [tried(libc.mount(b"x", b"/tmp", b"tmpfs", 0, 0)), tried(libc.umount2(b"/proc", 2)),
                tried(libc.syscall(430, b"proc", 0)), tried(libc.syscall(428, -100, b"/", 1)), tried(libc.chroot(b"/tmp"))]
    def _others():
        return [tried(libc.ptrace(16, 1, 0, 0)), tried(libc.syscall(310, 1, 0, 0, 0, 0, 0)), tried(libc.setns(0, 0)),
                tried(libc.syscall(438, libc.syscall(434, 1, 0), 0, 0))]
    def _init():
        found = []
        for path in ("/proc/1/mem", "/proc/1/environ", "/proc/1/maps", "/proc/1/fd/0", "/proc/1/root/etc"):
            try:
                open(path).close()
                found.append(path)
            except OSError:
                pass
        try:
            os.kill(1, signal.SIGKILL)
        except PermissionError:
            pass
        return found
    def _everyone():
        for pid in range(2, 400):
            if pid not in (os.getpid(), 4):  # who holds its memory is of no use to anyone else
                try:
                    os.kill(pid, signal.SIGKILL)
                    return pid
                except (ProcessLookupError, PermissionError):  # nobody, or one who acts for init
                    pass
        return 0
    def _memory():  # whatever its zygote knew of the warden is not mapped any more
        return [line for line in open("/proc/self/maps") if "memfd" in line or "callbox (deleted)" in line]
    def _proc():
        found = [b"CALLBOX_FORK" in open("/proc/self/environ", "rb").read()]
        try:
            open("/proc/sys/kernel/ns_last_pid", "w").write("500")
            found.append("written")
        except OSError:
            pass
        return found + glob.glob("/run/.forks/*")
    def _descriptors():
        for fd in range(4, 1024):
            try:
                os.fstat(fd)
                return fd
            except OSError:
                pass
        return [os.readlink(f"/proc/self/fd/{fd}").split(":")[0] for fd in range(4)]
    def _files():
        found = []
        for path in ("/etc/shadow", "/root", "/home", "/proc/kcore", "/proc/keys", "/sys"):
            try:
                found += [path, os.listdir(path) if os.path.isdir(path) else open(path).read(1)]
            except OSError:
                pass
        for path in ("/usr/left", "/etc/left", "/left", "/proc/left", "/dev/left"):
            try:
                open(path, "w").close()
                found.append(path)
            except OSError:
                pass
        return found
    def _network():
        try:
            socket.create_connection(("127.0.0.1", 22), 1)
        except OSError as error:
            return error.errno
"""


@pytest.fixture(scope="module")
def attacks(tmp_path_factory):
    place = tmp_path_factory.mktemp("attacks")
    (place / "attacking.py").write_text(textwrap.dedent(ATTACKS))
    sys.path.insert(0, str(place))
    yield Toolbox([importlib.import_module("attacking").attack])
    sys.path.remove(str(place))


@pytest.mark.parametrize(
    "name, outcome",
    [
        ("namespaces", [-1] * 10),
        ("forking_again", [-1] * 2),
        ("mounts", [-1] * 5),
        ("others", [-1] * 4),
        ("init", []),
        ("everyone", 0),
        ("memory", []),
        ("proc", [True]),  # its own environment, as it was at the start: nothing but a number
        ("descriptors", ["pipe"] * 4),
        ("files", []),
        ("network", 101),
    ],
)
def test_the_fences_stand(attacks, name, outcome):
    for _ in range(2):
        assert get(attacks, "attack", name=name) == outcome


def test_what_is_refused_is_told(attacks):
    told = attacks.call_sync("attack", {"name": "others"}).report.denials
    assert {"ptrace", "setns", "process_vm_readv"} <= {denial.what for denial in told}


def test_limits_hold_for_each_call(load):
    box = load(
        """
        import os, time
        def work(how: str) -> int:
            if how == "memory":
                return len(bytearray(b"x") * (300 << 20))
            if how == "cpu":
                while True: pass
            if how == "wall":
                time.sleep(60)
            if how == "pids":
                while True:
                    try:
                        os.fork() or time.sleep(60)
                    except BlockingIOError:
                        time.sleep(60)
            if how == "crash":
                os.abort()
            return 1
        """,
        policy=Policy(limits={"memory": "128M", "cpu": 1, "processes": 16, "wall": 20}),
    )
    for how in ("memory", "cpu", "pids"):
        assert get(box, "work", how="none") == 1
        assert box.call_sync("work", {"how": how}).report.reason == how
    assert box.call_sync("work", {"how": "wall"}, timeout=0.3).report.reason == "timeout"
    assert box.call_sync("work", {"how": "crash"}).report.signal == "SIGABRT"
    tighter = box.call_sync("work", {"how": "memory"}, limits={"memory": 64 << 20})
    assert tighter.report.reason == "memory"


# ---- What loading leaves behind ----


def test_files_that_are_open_since_a_module_was_loaded_are_each_calls_own(load, tmp_path):
    data = tmp_path / "data"
    data.write_text("0123456789")
    box = load(
        f"""
        import logging, os
        if os.getppid() == 1:  # in a box
            logging.basicConfig(filename="/tmp/my.log", level=logging.INFO)
            logging.info("loaded")
            KEPT = open("/tmp/kept", "w")
        DATA = open({str(data)!r})
        DATA.seek(3)
        def export(path: str) -> dict:
            with open(path, "w") as out:
                out.write("a\\n")
                logging.info("exporting")
                out.write("b\\n")
            KEPT.write("more")
            return {{"out": open(path).read(), "log": open("/tmp/my.log").read(), "read": DATA.read(2), "pid": os.getpid()}}
        """,
        policy=Policy(read=[str(data)]),
    )
    until(lambda: get(box, "export", path="/tmp/out")["pid"] == 3)
    expected = {"out": "a\nb\n", "log": "INFO:root:loaded\nINFO:root:exporting\n", "read": "34", "pid": 3}
    for _ in range(3):
        assert get(box, "export", path="/tmp/out") == expected


def test_files_that_a_module_has_made_are_there_for_each_call(load):
    box = load(
        """
        import os, tempfile
        if os.getppid() == 1:  # in a box
            WORK = tempfile.mkdtemp()
            os.makedirs(WORK + "/deep/er")
            open(WORK + "/deep/er/file", "w").write("as it was made")
            os.symlink("deep/er", WORK + "/link")
        def work() -> list:
            found = open(WORK + "/link/file").read()
            open(WORK + "/link/file", "w").write("changed")
            return [found, sorted(os.listdir(WORK)), os.getpid()]
        """
    )
    until(lambda: get(box, "work")[2] == 3)
    for _ in range(3):
        assert get(box, "work") == ["as it was made", ["deep", "link"], 3]


@pytest.mark.parametrize("made", ["os.mkfifo('/tmp/fifo')", "S = socket.socket(socket.AF_UNIX)", "P = os.pipe()"])
def test_what_cannot_be_made_anew_is_loaded_in_each_box(load, made):
    box = load(
        f"""
        import os, socket
        if os.getppid() == 1:  # in a box
            {made}
        PID = os.getpid()
        def look() -> bool:
            return PID == os.getpid()
        """
    )
    for _ in range(3):
        assert get(box, "look")


def test_what_a_call_has_written_to_a_file_is_there_though_it_was_never_closed(load, tmp_path):
    box = load(
        """
        FILE = None
        def write(path: str) -> str:
            global FILE
            FILE = open(path, "w")
            FILE.write("written")
            return "done"
        """,
        policy=Policy(write=[str(tmp_path)], import_path="allow"),
    )
    for n in range(3):
        assert get(box, "write", path=str(tmp_path / str(n))) == "done"
        assert (tmp_path / str(n)).read_text() == "written"


ATEXIT = """
    import atexit, logging, logging.handlers, os, sys, weakref
    from atexit import register
    def write(path: str, text: str) -> None:
        with open(path, "a") as file:
            file.write(text)
    class Thing:
        pass
    THING = Thing()
    def registers(path: str) -> int:
        atexit.register(write, path, "first ")
        register(write, path, "second ")
        return os.getpid()
    def finalizes(path: str) -> int:
        weakref.finalize(THING, write, path, "finalized ")
        return os.getpid()
    def logs(path: str) -> int:
        handler = logging.handlers.MemoryHandler(100, target=logging.FileHandler(path))
        logging.getLogger().addHandler(handler)
        logging.warning("logged")
        return os.getpid()
    def fails(path: str) -> int:
        atexit.register(write, path, "after all ")
        atexit.register(print, "printed")
        atexit.register(lambda: 1 / 0)
        atexit.register(sys.exit, 3)
        raise KeyError(path)
    def leaves_a_process(path: str) -> int:
        import multiprocessing, time
        multiprocessing.get_context("fork").Process(target=time.sleep, args=[1000]).start()
        atexit.register(write, path, "not waited for ")
        return os.getpid()
"""


def test_functions_of_atexit_are_called_before_the_end(load, tmp_path):
    box = load(ATEXIT, policy=Policy(write=[str(tmp_path)], import_path="allow"))
    until(lambda: get(box, "registers", path="/tmp/nothing") == 3)  # forked
    told = {
        "registers": "second first ", "finalizes": "finalized ", "logs": "logged\n", "leaves_a_process": "not waited for ",
    }  # fmt: skip
    for name, text in told.items():
        path = tmp_path / name
        get(box, name, path=str(path))
        assert path.read_text() == text, name
        get(box, name, path=str(path))
        assert path.read_text() == 2 * text, name  # of one call, and of another


def test_functions_of_atexit_are_called_after_an_error(load, tmp_path):
    path = tmp_path / "fails"
    result = load(ATEXIT, policy=Policy(write=[str(tmp_path)], import_path="allow")).call_sync("fails", {"path": str(path)})
    assert result.error.startswith("KeyError") and path.read_text() == "after all "
    assert result.stdout == "printed\n" and "ZeroDivisionError" in result.stderr


def test_functions_that_a_module_has_registered_are_called_by_each_call(load, tmp_path):
    box = load(
        f"""
        import atexit, os
        def write() -> None:
            with open("{tmp_path}/each", "a") as file:
                file.write("x")
        if os.getpid() < 100:  # in a box
            atexit.register(write)
        def nothing() -> int:
            return os.getpid()
        """,
        policy=Policy(write=[str(tmp_path)], import_path="allow"),
    )
    calls = 0

    def forked():
        nonlocal calls
        calls += 1
        return get(box, "nothing") == 3

    until(forked)
    assert (tmp_path / "each").read_text() == "x" * calls


def test_generators_draw_anew_in_each_call_unless_they_were_seeded(load):
    box = load(
        """
        import os, random
        OURS, SEEDED = random.Random(), random.Random(42)
        OTHER = random.Random(7)
        OTHER.seed()
        def draw() -> list:
            return [OURS.random(), OTHER.random(), random.random(), SEEDED.random(), os.getpid()]
        """
    )
    until(lambda: get(box, "draw")[4] == 3)
    drawn = [get(box, "draw") for _ in range(3)]
    assert all(len({call[i] for call in drawn}) == 3 for i in range(3))
    assert len({call[3] for call in drawn}) == 1


def test_an_error_with_a_huge_message_is_told(load):
    box = load(
        """
        def fail() -> None:
            raise ValueError("x" * (20 << 20))
        """
    )
    result = box.call_sync("fail", {})
    assert result.error.startswith("ValueError: xxx") and "more characters" in result.error
    assert "in fail" in result.traceback


# ---- Who holds its memory (box/holder.c) ----


@pytest.mark.skipif(platform.machine() != "x86_64", reason="what it is made to run is x86-64 code")
def test_who_holds_the_memory_of_a_call_can_do_nothing(load):
    box = load(
        """
        import ctypes, mmap, os, signal, time
        CODE = bytes.fromhex(
            "b853000000"      # mkdir
            "488d3d12000000"  # of the name at the end
            "beff010000"
            "0f05"
            "b83c000000"      # exit
            "31ff"
            "0f05"
            "ebfe"
        ) + b"/tmp/taken\\0"
        CALL = bytes.fromhex("4889f84889f74889d64889ca0f05c3")  # any system call of three arguments
        FUTEX = 202
        def parts() -> list:
            found = []
            for line in open("/proc/self/maps"):
                near = "_zygote" in line or (found and len(line.split()) == 5)
                if near and line.split()[1] == "rw-p":
                    found.append([int(at, 16) for at in line.split()[0].split("-")])
            return found
        def take_over(holder: int) -> dict:
            pages = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
            pages.write(CODE.ljust(256) + CALL)
            code = ctypes.addressof(ctypes.c_char.from_buffer(pages))
            call = ctypes.CFUNCTYPE(ctypes.c_long, *[ctypes.c_long] * 4)(code + 256)
            libc = ctypes.CDLL(None)
            function = ctypes.cast(libc.syscall, ctypes.c_void_p).value
            # It waits in this function. Where it goes on when it is woken, something else stands now.
            after = function + ctypes.string_at(function, 64).index(b"\\x0f\\x05") + 2
            libc.mprotect(ctypes.c_void_p(after & ~4095), 8192, 7)
            ctypes.memmove(after, b"\\x48\\xb8" + code.to_bytes(8, "little") + b"\\xff\\xe0", 12)
            woken = sum(call(FUTEX, at, 1, 1) for begin, end in parts() for at in range(begin, end, 4))
            for number in (signal.SIGSTOP, signal.SIGCONT, signal.SIGUSR1, signal.SIGTERM):
                try:
                    os.kill(holder, number)
                except (PermissionError, ProcessLookupError):  # Landlock keeps it, or there is none
                    pass
            time.sleep(0.3)
            try:
                state = open(f"/proc/{holder}/stat").read().rsplit(")", 1)[1].split()
            except OSError:
                state = None
            return {"woken": woken, "made": os.path.exists("/tmp/taken"), "state": state}
        """
    )

    def taken_over():
        found = get(box, "take_over", holder=4)
        assert not found["made"] and not found["woken"]
        if found["state"] is None:  # there is none where it was not forked, as loading took too long
            return False
        # Stopped by init, and it has used no time.
        assert found["state"][0] == "t" and found["state"][11:13] == ["0", "0"]
        return True

    until(taken_over)


def test_memory_is_counted_once_and_none_is_forgotten(load):
    box = load(
        """
        import os, time
        HELD = None
        def hold(megabytes: int) -> int:
            global HELD  # until it has ended
            HELD = bytearray(b"x") * (megabytes << 20)
            time.sleep(0.05)
            return len(HELD)
        def execute(megabytes: int) -> None:
            held = bytearray(b"x") * (megabytes << 20)
            time.sleep(0.05)
            again = f"held = bytearray(b'x') * ({megabytes} << 20); import time; time.sleep(0.5)"
            os.execv("/usr/bin/python3", ["python3", "-c", again])
        """,
        policy=Policy(limits={"memory": "256M", "wall": 20}),
    )
    for _ in range(8):
        assert get(box, "hold", megabytes=180) == 180 << 20
    assert box.call_sync("hold", {"megabytes": 280}).report.reason == "memory"
    # What it had before is gone, as after any exec; what it has then counts.
    assert box.call_sync("execute", {"megabytes": 180}).report.reason == "exited"


def test_a_call_ends_with_what_it_has_started(load, tmp_path):
    box = load(
        """
        import os, time
        def leave(path: str) -> str:
            if os.fork() == 0:
                os.setsid()
                if os.fork():
                    os._exit(0)
                time.sleep(0.5)
                open(path, "w").write("still there")
                os._exit(0)
            os.wait()
            return "left"
        """,
        policy=Policy(write=[str(tmp_path)], import_path="allow"),
    )
    file = tmp_path / "late"
    assert get(box, "leave", path=str(file)) == "left"
    time.sleep(1)
    assert not file.exists()


# ---- What holds for each ----


def test_policies_hold_for_each_call(load, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "text").write_text("here")
    box = load(
        """
        import os, socket
        def use(place: str) -> list:
            done = [open(place + "/text").read(), os.path.exists("/tmp/shown/text"), os.path.exists("/data/old")]
            with open(place + "/text", "w") as stream:
                stream.write("changed")
            open("/data/old", "w").close()
            try:
                os.makedirs(place + "/.git/hooks")
            except PermissionError:
                done.append("protected")
            server = socket.create_server(("127.0.0.1", 0))
            socket.create_connection(server.getsockname()).close()
            return done
        """,
        policy=Policy(
            workspace=str(work), read=[(str(work), "/tmp/shown")], tmpfs=["/data"], network="loopback"
        ),
    )
    assert get(box, "use", place=str(work)) == ["here", True, False, "protected"]
    assert (work / "text").read_text() == "changed" and not (work / ".git").exists()
    assert get(box, "use", place=str(work)) == ["changed", True, False, "protected"]


def test_what_is_shown_in_a_tmpfs_of_a_workspace_is_there(load, tmp_path):
    work, shown = tmp_path / "work", tmp_path / "shown"
    (work / "inner").mkdir(parents=True)
    shown.mkdir()
    (shown / "text").write_text("here")
    box = load(
        """
        import os
        def look(place: str) -> list:
            open(place + "/new", "x").close()
            return [os.getpid(), open(place + "/shown/text").read()]
        """,
        policy=Policy(workspace=str(work), tmpfs=[str(work / "inner")], read=[(str(shown), str(work / "inner/shown"))]),
    )
    place = str(work / "inner")
    assert get(box, "look", place=place)[1] == "here"
    until(lambda: get(box, "look", place=place) == [3, "here"])


def test_calls_of_a_zygote_do_not_share_a_limit(load):
    """The kernel counts pending signals in user namespaces, those of the zygote's included."""
    box = load(
        """
        import ctypes, os, signal, time
        def queue(seconds: float) -> int:
            signal.pthread_sigmask(signal.SIG_BLOCK, [40])
            sigqueue, n = ctypes.CDLL(None).sigqueue, 0
            while n < 1 << 20 and sigqueue(os.getpid(), 40, ctypes.c_void_p(0)) == 0:
                n += 1
            time.sleep(seconds)
            return n
        def pid() -> int:
            return os.getpid()
        """
    )
    until(lambda: get(box, "pid") == 3)

    async def main():
        slow = asyncio.ensure_future(box.call("queue", {"seconds": 3}))
        await asyncio.sleep(1.5)
        return (await box.call("queue", {"seconds": 0})).output, (await slow).output

    second, first = asyncio.run(main())
    assert 0 < first < 1 << 20 and second == first


def test_a_call_cannot_keep_others_from_being_forked(load):
    """The kernel bounds the descriptors in flight for all boxes of a user together."""
    greedy = load(
        """
        import array, socket, time
        def send(seconds: float) -> int:
            sent, pairs = 0, []
            try:
                while sent < 1 << 20:
                    pairs.append(socket.socketpair())
                    for _ in range(8):
                        pairs[-1][0].sendmsg([b"x"], [(1, 1, array.array("i", [0] * 250))])
                        sent += 250
            except OSError:
                pass
            time.sleep(seconds)
            return sent
        """
    )
    box = load("import os\ndef pid() -> int:\n    return os.getpid()\n")

    async def main():
        slow = asyncio.ensure_future(greedy.call("send", {"seconds": 60}))
        await asyncio.sleep(1.5)
        pids = [(await box.call("pid")).output]
        for _ in range(60):
            if pids[-1] != 3:
                await asyncio.sleep(0.2)
                pids.append((await box.call("pid")).output)
        assert not slow.done()
        slow.cancel()
        return pids[-1]

    assert get(greedy, "send", seconds=0) >= 500
    assert asyncio.run(main()) == 3  # however long its zygote may take to load


def test_where_calls_may_trace_nothing_is_forked(load):
    """A tracer lets pass what the filter of a zygote refuses."""
    box = load(
        "import os\ndef pid() -> int:\n    return os.getpid()\n", policy=Policy(syscalls={"allow": ["ptrace"]})
    )
    assert [get(box, "pid") for _ in range(3)] == [2] * 3


# ---- The zygote itself ----


def test_a_changed_module_is_loaded_anew(load):
    box = load("def version() -> int:\n    return 1\n")
    assert [get(box, "version") for _ in range(3)] == [1, 1, 1]
    for number in (2, 3):
        load.file.write_text(f"def version() -> int:\n    return {number}\n")
        assert [get(box, "version") for _ in range(4)] == [number] * 4


def test_a_changed_module_that_it_imports_is_loaded_anew(load, tmp_path):
    (tmp_path / f"below_{os.getpid()}.py").write_text("VERSION = 1\n")
    box = load(f"import below_{os.getpid()} as below\ndef version() -> int:\n    return below.VERSION\n")
    assert get(box, "version") == 1
    (tmp_path / f"below_{os.getpid()}.py").write_text("VERSION = 22\n")
    assert [get(box, "version") for _ in range(4)] == [22] * 4


def zygotes(text):
    """Of this test's module, on the host: pid of those from which others are forked."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as stream:
                if text.encode() not in stream.read():
                    continue
            with open(f"/proc/{pid}/status") as stream:
                (ids,) = [line.split()[1:] for line in stream if line.startswith("NSpid")]
            speaks = os.readlink(f"/proc/{pid}/fd/3").startswith("socket:")  # to the warden
        except (OSError, ValueError):
            continue
        if ids[-1] == "2" and speaks:
            found.append(int(pid))
    return found


def test_a_zygote_that_dies_is_replaced(load):
    box = load("import os\ndef ok() -> int:\n    return 1\n")
    for _ in range(3):
        assert get(box, "ok") == 1
        until(lambda: len(zygotes(load.file.stem)) == 1)
        os.kill(zygotes(load.file.stem)[0], signal.SIGKILL)
        until(lambda: not zygotes(load.file.stem))
        time.sleep(0.2)  # its box ends with it, and those that wait in it
        assert get(box, "ok") == 1


def test_a_call_that_runs_outlives_a_change_of_its_module(load):
    text = "import time\ndef wait(seconds: float) -> int:\n    time.sleep(seconds)\n    return {}\n"
    box = load(text.format(1))

    async def main():
        assert (await box.call("wait", {"seconds": 0})).output == 1
        slow = asyncio.ensure_future(box.call("wait", {"seconds": 1.5}))
        await asyncio.sleep(0.3)
        load.file.write_text(text.format(2))
        for _ in range(3):
            assert (await box.call("wait", {"seconds": 0})).output == 2
        return await slow

    assert asyncio.run(main()).output == 1


def test_a_module_that_has_threads_is_loaded_in_each_box(load):
    box = load(
        """
        import threading, time
        BEATS = []
        def beat():
            while True:
                BEATS.append(1)
                time.sleep(0.01)
        threading.Thread(target=beat, daemon=True).start()
        def beats() -> int:
            time.sleep(0.1)
            return len(BEATS)
        """
    )
    assert get(box, "beats") > 1 and get(box, "beats") > 1


def test_a_module_that_takes_long_to_load_is_waited_for(load):
    box = load(
        """
        import os, time
        from callbox import _channel
        if _channel.boxed:
            time.sleep(2.5)
        def pid() -> int:
            return os.getpid()
        """
    )
    assert get(box, "pid") == 2  # in a box of its own, as the zygote was not there yet
    until(lambda: get(box, "pid") == 3)


@pytest.mark.parametrize(
    "harm",
    [
        "os.write(3, b'nonsense')",
        "os.write(3, b'\\x0e' + bytes(15))",
        "os.close(3)",
        "os._exit(0)",
        "os.kill(os.getpid(), 9)",
        "socket.socket(fileno=os.dup(3)).send(b'\\x0f' + bytes(15))",
        "[os.write(3, b'\\x0f' + bytes(15)) for _ in range(5000)]",
        "os.write(3, b'\\x03' + bytes(15))",  # another in its place, and another in that one's
    ],
)
def test_a_module_that_harms_its_zygote_harms_nobody_else(load, harm):
    """What it does in the zygote it does there alone; where it is loaded in the box of a call, there
    is no zygote to harm."""
    other = load("def ok() -> int:\n    return 1\n")
    box = load(
        f"""
        import os, socket
        def harm():
            {harm}
        from callbox import _channel
        if _channel.boxed and os.path.exists("/proc/self/fd/3") and "socket" in os.readlink("/proc/self/fd/3"):
            harm()
        def ok() -> int:
            return 1
        """
    )
    for _ in range(3):
        assert get(box, "ok") == 1
        assert get(other, "ok") == 1


HARMFUL = """
    import array, os, socket, struct, sys, time
    from callbox import _channel
    def say(to, kind, body=b"", fds=()):
        more = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        to.sendmsg([struct.pack("=IIQ", kind, 0, len(body)) + body], more)
    PLAN, BOX, READY = 12, 14, 15
    if _channel.boxed and os.path.exists("/proc/self/fd/3") and "socket" in os.readlink("/proc/self/fd/3"):
        warden = socket.socket(fileno=os.dup(3))
        warden.recv(1 << 20)
        {}
    def ok() -> int:
        return 1
"""


def harmful(load, text, **options):
    return load(HARMFUL.format(textwrap.indent(textwrap.dedent(text), "        ").strip()), **options)


def test_a_zygote_cannot_pass_off_another_process_as_a_box(load):
    """Least of all the warden, of which its own socket gives it a pidfd: what is taken for a box is
    killed in the end."""
    other = load("import time\ndef wait(seconds: float) -> int:\n    time.sleep(seconds)\n    return 1\n")
    box = harmful(
        load,
        """
        try:
            maker = warden.getsockopt(socket.SOL_SOCKET, 77)  # SO_PEERPIDFD
        except OSError:
            maker = os.pidfd_open(os.getpid())  # an older kernel
        say(warden, READY)
        while True:
            warden.recv(1 << 20)
            say(warden, BOX, bytes(8), [maker])
        """,
    )

    async def main():
        assert (await other.call("wait", {"seconds": 0})).output == 1
        slow = asyncio.ensure_future(other.call("wait", {"seconds": 4}))
        assert (await box.call("ok")).output == 1  # done without
        return await slow

    assert asyncio.run(main()).output == 1


def test_the_wall_limit_does_not_depend_on_what_a_zygote_says(load):
    box = harmful(
        load,
        """
        import ctypes, mmap
        say(warden, READY)
        while True:
            fds = array.array("i")
            fds.frombytes(warden.recvmsg(1 << 20, 256)[1][0][2])
            page = mmap.mmap(fds[0], os.fstat(fds[0]).st_size)
            init = ctypes.CDLL(None).syscall(56, 0x38020000 | 17, 0, 0, 0, 0)
            if init == 0:
                for at in range(320, 352, 8):  # one of them is when the program has started
                    page[at : at + 8] = struct.pack("=Q", 1 << 62)
                time.sleep(1000)
            say(warden, BOX, bytes(8), [os.pidfd_open(init)])
        """,
        policy=Policy(limits={"wall": 1}),
    )

    async def main():
        return await asyncio.wait_for(box.call("ok"), 30)

    until(lambda: not asyncio.run(main()).ok)  # why, it may say itself; until it has loaded, there are others


def test_what_a_zygote_sends_cannot_hold_up_the_warden(load):
    """A connection that lingers makes whoever closes it wait until the other side has read it all."""
    other = load("def ok() -> int:\n    return 1\n")
    assert get(other, "ok") == 1
    box = harmful(
        load,
        """
        import ctypes
        server = socket.create_server(("127.0.0.1", 0))
        client = socket.create_connection(server.getsockname())
        client.setblocking(False)
        try:
            while True:
                client.send(bytes(65536))
        except BlockingIOError:
            pass
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 60))
        say(warden, READY)
        fds = array.array("i")
        fds.frombytes(warden.recvmsg(1 << 20, 256)[1][0][2])
        init = ctypes.CDLL(None).syscall(56, 0x38020000 | 17, 0, 0, 0, 0)
        if init == 0:
            client.close()
            time.sleep(1000)
        time.sleep(0.2)
        control = socket.socket(fileno=fds[1])  # of the box, to be read later
        say(control, 0, b"", [client.fileno()])
        client.close()
        say(warden, BOX, bytes(8), [os.pidfd_open(init)])
        time.sleep(60)
        """,
        policy=Policy(network="loopback", limits={"wall": 1}),
    )

    async def main():
        bad = asyncio.ensure_future(box.call("ok"))
        await asyncio.sleep(1.5)
        for _ in range(3):
            assert (await asyncio.wait_for(other.call("ok"), 20)).output == 1
        return await bad

    until(lambda: not asyncio.run(main()).ok)  # until it has loaded, there are others


def test_a_module_that_cannot_be_loaded_is_the_error_of_each_call(load):
    box = load("from callbox import _channel\nif _channel.boxed:\n    raise RuntimeError('not today')\ndef ok() -> int:\n    return 1\n")
    for _ in range(3):
        result = box.call_sync("ok")
        assert not result.ok and "not today" in result.error and load.file.name in result.traceback


def test_what_is_printed_while_loading_is_in_no_result(load):
    box = load("print('loading')\ndef ok() -> int:\n    print('calling')\n    return 1\n")
    assert [box.call_sync("ok").stdout for _ in range(3)] == ["calling\n"] * 3


def test_many_calls_at_once_from_one_zygote(load):
    box = load("import os\ndef double(n: int) -> int:\n    return 2 * n\n")

    async def main():
        return await asyncio.gather(*[box.call("double", {"n": n}) for n in range(200)])

    started = time.monotonic()
    assert [r.output for r in asyncio.run(main())] == [2 * n for n in range(200)]
    assert time.monotonic() - started < 60
    until(lambda: len(zygotes(load.file.stem)) == 1)  # the first calls had interpreters of their own


def test_calls_that_need_a_box_of_their_own_kind_do_not_lose_it_to_others(load):
    """Half of them ask for other limits, and so for a box that is not forked."""
    box = load("def double(n: int) -> int:\n    return 2 * n\n")

    async def main():
        calls = [box.call("double", {"n": n}, limits={"memory": 200 << 20} if n % 2 else None) for n in range(12)]
        return await asyncio.gather(*calls)

    for _ in range(2):
        results = asyncio.run(main())
        assert [r.output for r in results] == [2 * n for n in range(12)], [r.error for r in results]


def test_where_no_zygote_can_be_made_every_call_is_told(load):
    # What no host has that lacks a group of version 2: without one, or with the memory of version 1 alone.
    asked = {"cgroup": {"require": ["cgroup"]}, "processors": {"limits": {"cpus": 0.5}}}
    for word, policy in asked.items():
        probe = load("def ok() -> int:\n    return 1\n", policy=Policy(**policy))
        if not probe.call_sync("ok").ok:
            break
    else:
        pytest.skip("this host has what the test asks for in vain")

    async def main():
        return await asyncio.gather(*[probe.call("ok") for _ in range(4)])

    assert [word in r.error for r in asyncio.run(main())] == [True] * 4
