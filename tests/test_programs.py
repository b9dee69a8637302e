#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Ordinary programs work in a box: a table of commands with the output they must have.

Each row is run by root and by an ordinary user. Rows of programs that not every host has are
skipped where they are missing.
"""

import dataclasses
import hashlib
import http.server
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import threading

import harness
from harness import Skip, check, equal

SCRATCH = harness.Scratch()
CALLBOX = SCRATCH.install(harness.callbox_path(), "callbox")
PEOPLE = harness.PEOPLE

# Which kind of box this host gives, and with Landlock or without.
PLAIN = harness.run("true", binary=CALLBOX, cwd="/")
NAMESPACES = "namespace" in (PLAIN.guarantee("tree-kill") or {"by": "namespace"})["by"]
LANDLOCK = (PLAIN.guarantee("landlock") or {"enforced": True})["enforced"]

NOT_EVERYWHERE = "is not installed on every host, or not where an ordinary user can read it"
SKIPS = {name: f"{name} {NOT_EVERYWHERE}" for name in ("node", "java", "go", "cargo", "sqlite3", "gzip", "openssl")}


def box(*args, user=False, **more):
    more.setdefault("cwd", "/")
    slow = ["--timeout", str(30 * harness.SLOW)] if harness.SLOW > 1 else []
    return harness.callbox(["run", *slow, *args], user=user, binary=CALLBOX, **more)


def shell(script, user=False, **more):
    """A script of the caller's shell, in which $CB is callbox."""
    more.setdefault("cwd", "/")
    environment = {**os.environ, "CB": CALLBOX}
    command = ["sh", "-c", script]
    return harness.execute(harness.as_user(command) if user else command, env=environment, **more)


def good(result, out=None, err=b""):
    equal(result.code, 0, f"exit code ({result.brief()})")
    if out is not None:
        equal(result.out, out if isinstance(out, bytes) else out.encode(), "stdout")
    if err is not None:
        equal(result.err, err, "stderr")
    return result


# ---- The table -------------------------------------------------------------------------------


@dataclasses.dataclass
class Row:
    name: str
    command: list
    out: object  # text, or a pattern
    options: tuple = ()
    needs: str = None  # a program that the host may lack
    workspace: dict = None  # name → text of the files in a workspace of its own
    code: int = 0
    err: object = ""  # a pattern where something is expected
    timeout: float = 60


# What a box without namespaces cannot give: names, ids, processes and networks of its own.
NEEDS_NAMESPACES = {
    "coreutils identity", "coreutils temporary files", "coreutils df", "ps sees only the box", "python3 http over loopback",
    "a program fills /tmp to the size given", "the current directory is shown and is where the program starts",
    "git looks at a repository that is only shown, also at root's",
}
if not NAMESPACES:
    SKIPS.update({f"{name}, as {who}": "needs namespaces" for name in NEEDS_NAMESPACES for who, _ in PEOPLE})
# In a workspace a socket bears its whole name only where Landlock holds init to the directory.
NEEDS_LANDLOCK = {"python3 multiprocessing with a manager"}
if not LANDLOCK:
    SKIPS.update({f"{name}, as {who}": "needs Landlock" for name in NEEDS_LANDLOCK for who, _ in PEOPLE})


def sh(script):
    return ["sh", "-c", script]


def python(script):
    return ["/usr/bin/python3", "-c", script]


GIT = "git -c user.name=box -c user.email=box@example.org -c init.defaultBranch=main"

ROWS = [
    Row("sh prints", sh("echo hello"), "hello\n"),
    Row("sh pipes and loops", sh("for i in 1 2 3; do echo $i; done | tail -n 1"), "3\n"),
    Row("sh has a here-document", sh("cat <<E\n$((6 * 7))\nE"), "42\n"),
    Row("sh starts jobs and waits", sh("(exit 7) & wait $!; echo $?"), "7\n"),
    Row("sh traps its exit", sh("trap 'echo bye' EXIT; echo hi"), "hi\nbye\n"),
    Row("sh passes its exit code", sh("exit 42"), "", code=42),
    Row("sh has positional arguments", ["sh", "-c", 'echo "$0|$1|$2"', "a", "b c", ""], "a|b c|\n"),
    Row("bash arrays and substitution", ["bash", "-c", 'a=(1 2 3); echo "${a[@]:1}" "${#a[@]}"'], "2 3 3\n"),
    Row("bash process substitution", ["bash", "-c", "cat <(echo one) <(echo two)"], "one\ntwo\n"),
    Row("bash here-string and mapfile", ["bash", "-c", 'mapfile -t l <<<$\'x\\ny\'; echo "${l[1]}"'], "y\n"),
    Row("bash pipefail", ["bash", "-c", "set -o pipefail; false | true; echo $?"], "1\n"),
    Row("bash writes to /dev/stderr", ["bash", "-c", "echo oops > /dev/stderr"], "", err="^oops$"),
    Row("sh opens its descriptors by name", sh("echo in | cat /dev/stdin; echo out > /dev/stdout; echo fd > /dev/fd/1; cat < /dev/stdin"), "in\nout\nfd\n"),
    Row("bash coprocess", ["bash", "-c", 'coproc cat; echo hi >&"${COPROC[1]}"; read -r x <&"${COPROC[0]}"; echo $x'], "hi\n"),
    # coreutils and their neighbours
    Row("coreutils files", sh(
        "cd /tmp && mkdir -p a/b && echo text > a/b/f && cp -a a c && mv c d && ln -s b/f a/l && "
        "ln a/b/f a/h && touch -d @0 d && chmod 640 a/h && stat -c %a a/b/f && cat a/l && "
        "readlink a/l && rm -r d && ls a && rmdir --ignore-fail-on-non-empty a && realpath a/l"),
        "640\ntext\nb/f\nb\nh\nl\n/tmp/a/b/f\n"),
    Row("coreutils text", sh("printf 'b 2\\na 1\\nb 2\\n' | sort | uniq -c | tr -s ' ' | cut -d' ' -f2- | tac"), "2 b 2\n1 a 1\n"),
    Row("coreutils numbers", sh("seq 3 | paste -sd+ && factor 1001 && printf %05d 42 && echo && expr 6 \\* 7"),
        "1+2+3\n1001: 7 11 13\n00042\n42\n"),
    Row("coreutils sums", sh("printf abc | sha256sum | cut -c1-16; printf abc | base64; printf abc | md5sum | cut -c1-8"),
        "ba7816bf8f01cfea\nYWJj\n90015098\n"),
    Row("coreutils time", sh("TZ=UTC date -d @0 +%F"), "1970-01-01\n"),
    Row("coreutils identity", sh("whoami; id -u; id -gn; uname -n; hostname; echo ~; pwd"),
        "box\n1000\nbox\nbox\nbox\n/tmp\n/tmp\n"),
    Row("coreutils temporary files", sh("d=$(mktemp -d) && echo x > $d/y && cat $d/y && rm -r $d && ls /tmp | wc -l"), "x\n0\n"),
    Row("coreutils fifo", sh("mkfifo /tmp/p && (echo through > /tmp/p &) && cat /tmp/p"), "through\n"),
    Row("coreutils dd and split", sh("cd /tmp; dd if=/dev/zero bs=1k count=64 2>/dev/null | split -b 16k && cat x?? | wc -c"), "65536\n"),
    Row("coreutils timeout", sh("timeout 0.1 sleep 20; echo $?"), "124\n"),
    Row("coreutils tee and nohup", sh("echo a | tee /tmp/b && nohup echo c && cat /tmp/b"), "a\nc\na\n", err=""),
    Row("coreutils tty", ["tty"], "not a tty\n", code=1),
    Row("coreutils env", ["env", "-i", "A=1", "printenv", "A"], "1\n"),
    Row("coreutils df", sh("df --output=target /tmp | tail -n 1"), "/tmp\n"),
    Row("coreutils special files", sh("head -c 4 /dev/zero | od -An -tx1; head -c 9 /dev/urandom | wc -c; echo x > /dev/null; echo x > /dev/full"),
        " 00 00 00 00\n9\n", code=re.compile("[12]"), err="I/O error|No space left"),
    Row("find, grep, sed and awk", sh(
        "cd /tmp && printf 'one\\ntwo\\n' > f && find . -name f -exec grep -n two {} + && sed s/o/0/g f && awk '{n += length} END {print n}' f"),
        "2:two\n0ne\ntw0\n6\n"),
    Row("xargs in parallel", sh("seq 20 | xargs -P 4 -n 1 echo | sort -n | tail -n 1"), "20\n"),
    Row("diff and patch by hand", sh("cd /tmp; echo a > a; echo b > b; diff a b; cmp -s a a && echo same"), "1c1\n< a\n---\n> b\nsame\n"),
    Row("ps sees only the box", sh("ls /proc | grep -c '^[0-9]' | awk '{print ($1 < 8) ? \"few\" : \"many\"}'"), "few\n"),
    # git
    Row("git init, commit and log in /tmp", sh(
        f"cd /tmp && mkdir r && cd r && {GIT} init -q && echo x > f && git add f && "
        f"{GIT} commit -qm first && git log --format=%s && git status --short && "
        f"{GIT} checkout -qb other && echo y >> f && {GIT} commit -qam second && git diff main --stat | tail -n 1 && "
        f"{GIT} merge-base main other | wc -c"),
        "first\n 1 file changed, 1 insertion(+)\n41\n"),
    Row("git clones and collects garbage in /tmp", sh(
        f"cd /tmp && {GIT} init -q r && cd r && {GIT} commit -q --allow-empty -m one && cd .. && "
        f"{GIT} clone -q r s 2>&1 && cd s && {GIT} gc -q && {GIT} fsck 2>/dev/null && git log --format=%s && "
        f"{GIT} rebase -q HEAD && {GIT} stash list | wc -l"),
        "one\n0\n"),
    # A compiler
    Row("gcc and make build a program", sh("make -s && ./hello"), "hello from make\n", workspace={
        "hello.c": '#include <stdio.h>\nint main(void) { puts("hello from make"); return 0; }\n',
        "Makefile": "hello: hello.c\n\tgcc -O2 -Wall -o hello hello.c\n"}),
    Row("make runs jobs in parallel", sh("make -s -j4 all && cat 1 2 3 4 | sort | paste -sd,"), "1,2,3,4\n", workspace={
        "Makefile": "all: 1 2 3 4\n1 2 3 4:\n\techo $@ > $@\n"}),
    Row("g++ with exceptions and threads", sh("cd /tmp && g++ -O1 -o t -x c++ - -pthread <<'E' && ./t\n"
        "#include <thread>\n#include <stdexcept>\n#include <cstdio>\n#include <atomic>\n"
        "int main() { std::atomic<int> n{0}; { std::thread a([&]{ n += 40; }), b([&]{ n += 2; }); a.join(); b.join(); }\n"
        "  try { throw std::runtime_error(\"caught\"); } catch (std::exception &e) { printf(\"%s %d\\n\", e.what(), n.load()); } }\nE"),
        "caught 42\n", needs="g++"),
    # Python
    Row("python3 prints", python("print('hello', 6 * 7)"), "hello 42\n"),
    Row("python3 runs a script of a workspace", ["python3", "script.py"], "run\n", workspace={
        "script.py": "import mod; print(mod.word)\n", "mod.py": "word = 'run'\n"}),
    Row("python3 venv", sh("/usr/bin/python3 -m venv --without-pip /tmp/v && . /tmp/v/bin/activate && python -c 'import sys; print(sys.prefix, sys.prefix != sys.base_prefix)'"),
        "/tmp/v True\n"),
    Row("a program that was written just now", ["python3", "make.py"], "0\n", workspace={
        "make.py": "import os, shutil\nbusy = 0\nfor _ in range(200):\n"
                   "    shutil.copy('/bin/true', 'x')\n"
                   "    try: os.waitpid(os.posix_spawn('x', ['x'], {}), 0)\n"
                   "    except OSError: busy += 1\n    os.unlink('x')\nprint(busy)\n"}),
    Row("tmpfile of libc", python("import ctypes; print(bool(ctypes.CDLL(None).tmpfile()))"), "True\n"),
    Row("python3 multiprocessing", python(
        "import multiprocessing as m\n"
        "def f(x): return x * x\n"
        "if __name__ == '__main__':\n"
        "    with m.get_context('fork').Pool(4) as p: print(sum(p.map(f, range(100))))\n"
        "    q = m.SimpleQueue(); p = m.Process(target=q.put, args=('queued',)); p.start(); print(q.get()); p.join(); print(p.exitcode)\n"
        "    l, v = m.Lock(), m.Value('i', 5)\n"
        "    with l: print(v.value)\n"),
        "328350\nqueued\n0\n5\n"),
    Row("python3 multiprocessing with a manager", ["python3", "manager.py"], "{'x': 1}\n", workspace={
        "manager.py": "import multiprocessing as m\ndef f(d): d['x'] = 1\n"
        "if __name__ == '__main__':\n  with m.Manager() as g:\n    d = g.dict()\n"
        "    p = m.Process(target=f, args=(d,)); p.start(); p.join(); print(d)\n"}),
    Row("python3 multiprocessing by spawn", ["python3", "spawn.py"], "[1, 4, 9]\n", workspace={
        "spawn.py": "import multiprocessing as m\ndef f(x): return x * x\n"
                    "if __name__ == '__main__':\n    with m.get_context('spawn').Pool(2) as p: print(p.map(f, [1, 2, 3]))\n"}),
    Row("python3 shared memory", python(
        "from multiprocessing import shared_memory as s\n"
        "a = s.SharedMemory(create=True, size=100); a.buf[0] = 7; b = s.SharedMemory(name=a.name); print(b.buf[0]); b.close(); a.close(); a.unlink()"), "7\n"),
    Row("python3 sqlite3", python(
        "import sqlite3\n"
        "c = sqlite3.connect('/tmp/x.db'); print(c.execute('pragma journal_mode=wal').fetchone()[0])\n"
        "c.execute('create table t(a)'); c.executemany('insert into t values (?)', [(i,) for i in range(1000)]); c.commit()\n"
        "d = sqlite3.connect('/tmp/x.db'); print(d.execute('select sum(a) from t').fetchone()[0], d.execute('pragma integrity_check').fetchone()[0])"),
        "wal\n499500 ok\n"),
    Row("python3 subprocess", python(
        "import subprocess as s\n"
        "print(s.check_output(['tr', 'a-z', 'A-Z'], input=b'loud').decode(), s.run('exit 3', shell=True).returncode)\n"
        "p = s.Popen(['sleep', '20'])\n"
        "try: p.wait(0.05)\n"
        "except s.TimeoutExpired: p.kill(); print(p.wait())\n"
        "print(s.run(['true'], start_new_session=True, close_fds=True).returncode)"),
        "LOUD 3\n-9\n0\n"),
    Row("python3 asyncio", python(
        "import asyncio\n"
        "async def main():\n"
        "    p = await asyncio.create_subprocess_exec('echo', 'sub', stdout=-1); print((await p.communicate())[0])\n"
        "    async def serve(r, w): w.write(await r.readline()); await w.drain(); w.close()\n"
        "    s = await asyncio.start_unix_server(serve, '/tmp/s'); r, w = await asyncio.open_unix_connection('/tmp/s')\n"
        "    w.write(b'echo\\n'); print(await r.readline()); w.close(); s.close()\n"
        "    print(await asyncio.gather(*[asyncio.to_thread(lambda i=i: i * i) for i in range(4)]))\n"
        "    try: await asyncio.wait_for(asyncio.sleep(30), 0.01)\n"
        "    except TimeoutError: print('late')\n"
        "asyncio.run(main())"), "b'sub\\n'\nb'echo\\n'\n[0, 1, 4, 9]\nlate\n"),
    Row("python3 threading", python(
        "import threading as t, queue\n"
        "q = queue.Queue(); ts = [t.Thread(target=lambda i=i: q.put(i)) for i in range(50)]\n"
        "[x.start() for x in ts]; [x.join() for x in ts]; print(sum(q.queue))\n"
        "e = t.Event(); t.Timer(0.01, e.set).start(); print(e.wait(20))"), "1225\nTrue\n"),
    Row("python3 files, maps and events", python(
        "import tempfile, mmap, os, select, signal, fcntl, socket, ctypes\n"
        "with tempfile.TemporaryFile() as f: f.write(b'x' * 8192); f.flush(); m = mmap.mmap(f.fileno(), 8192); m[0:1] = b'y'; print(m[:2])\n"
        "a, b = socket.socketpair(); e = select.epoll(); e.register(a, select.EPOLLIN); b.send(b'!'); print(len(e.poll(20)), a.recv(1))\n"
        "n = os.eventfd(3); print(os.eventfd_read(n)); fd = os.memfd_create('m'); os.write(fd, b'z'); print(os.pread(fd, 1, 0))\n"
        "with open('/tmp/l', 'w') as l: fcntl.flock(l, fcntl.LOCK_EX); fcntl.lockf(l, fcntl.LOCK_EX)\n"
        "signal.signal(signal.SIGALRM, lambda *_: print('alarm')); signal.setitimer(signal.ITIMER_REAL, 0.01); signal.pause()\n"
        "print(ctypes.CDLL(None).getpid() == os.getpid(), os.cpu_count() > 0, os.sched_getaffinity(0) != set())"),
        "b'yx'\n1 b'!'\n3\nb'z'\nalarm\nTrue True True\n"),
    Row("python3 http over loopback", python(
        "import http.server as h, threading as t, urllib.request as u\n"
        "class H(h.BaseHTTPRequestHandler):\n"
        "    def do_GET(self): self.send_response(200); self.end_headers(); self.wfile.write(b'page')\n"
        "    def log_message(self, *a): pass\n"
        "s = h.HTTPServer(('127.0.0.1', 0), H); t.Thread(target=s.serve_forever, daemon=True).start()\n"
        "print(u.urlopen('http://127.0.0.1:%d/' % s.server_port).read()); s.shutdown()"), "b'page'\n", options=("--net", "loopback")),
    # Others
    Row("perl forks and matches", ["perl", "-e", '$|=1; if (my $p = fork) { waitpid $p, 0; print $? >> 8, "\\n" } else { exit 9 } print join(",", "a1b22" =~ /(\\d+)/g), "\\n"; print `echo sub`;'],
        "9\n1,22\nsub\n"),
    Row("tar packs and unpacks", sh(
        "cd /tmp && mkdir -p t/u && echo x > t/u/f && chmod 750 t/u/f && ln -s f t/u/l && tar czf t.tgz t && rm -r t && tar xzf t.tgz && "
        "stat -c %a t/u/f && readlink t/u/l && tar tf t.tgz | wc -l && tar cf - t | tar xf - -C /tmp --one-top-level=o && cat o/t/u/f"),
        "750\nf\n4\nx\n"),
    Row("gzip and xz", sh("printf %1000s x | gzip | gunzip | wc -c; printf %1000s x | xz -T2 2>/dev/null | xz -d | wc -c"), "1000\n1000\n", needs="xz"),
    Row("openssl digests", sh("printf abc | openssl dgst -sha256 | sed 's/.*= //' | cut -c1-16"), "ba7816bf8f01cfea\n", needs="openssl"),
    Row("sqlite3 makes a database", ["sqlite3", "/tmp/d", "create table t(a); insert into t values (1), (2); select sum(a) from t;"], "3\n", needs="sqlite3"),
    Row("node computes, starts processes and threads", ["node", "-e",
        "const c = require('child_process'), w = require('worker_threads'), fs = require('fs'), z = require('zlib');"
        "console.log(c.execSync('echo sub').toString().trim(), [3, 1, 2].sort().join());"
        "fs.writeFileSync('/tmp/f', 'x'); console.log(fs.readFileSync('/tmp/f', 'utf8'), z.gunzipSync(z.gzipSync('zip')).toString());"
        "const t = new w.Worker('require(\"worker_threads\").parentPort.postMessage(42)', {eval: true});"
        "t.on('message', m => { console.log(m); fs.promises.readdir('/tmp').then(l => console.log(l.length)) })"],
        "sub 1,2,3\nx zip\n42\n1\n", needs="node"),
    Row("java compiles and runs a source", ["java", "Hello.java"], "hello from java 4950\n", needs="javac", timeout=120,
        options=("--timeout", "110", "--memory", "1G"), workspace={
        "Hello.java": "import java.util.stream.*;\npublic class Hello { public static void main(String[] a) throws Exception {\n"
                      "  int[] n = {0}; Thread t = new Thread(() -> n[0] = IntStream.range(0, 100).parallel().sum()); t.start(); t.join();\n"
                      "  System.out.println(\"hello from java \" + n[0]); } }\n"}),
]


def without_namespaces(row, options, user):
    """The row for a box that has no /tmp of its own: in a directory that it may write to instead."""
    if row.name in NEEDS_NAMESPACES:
        raise Skip("needs namespaces")
    place = str(SCRATCH.directory(user))
    moved = [word.replace("/tmp", place) for word in row.command]
    if moved == row.command and row.workspace is None:
        return row, options
    options = [*options, "--write", place, "--env", f"HOME={place}", "--env", f"TMPDIR={place}"]
    return dataclasses.replace(row, command=moved, out=row.out.replace("/tmp", place)), options


def run_row(row, user):
    if row.needs and not shutil.which(row.needs):
        raise Skip(f"{row.needs} is not installed")
    if row.name in NEEDS_LANDLOCK and not LANDLOCK:
        raise Skip("needs Landlock")
    options = list(row.options)
    if not NAMESPACES:
        row, options = without_namespaces(row, options, user)
    if row.workspace is not None:
        directory = SCRATCH.directory(user)
        for name, text in row.workspace.items():
            (directory / name).write_text(text)
            SCRATCH.own(directory / name, user)
        options += ["--workspace", directory]
    result = box(*options, "--", *row.command, user=user, timeout=row.timeout)
    code = row.code if isinstance(row.code, re.Pattern) else re.compile(str(row.code))
    check(code.fullmatch(str(result.code)), lambda: f"exit code: {result.brief()}")
    equal(result.out.decode(), row.out, f"stdout ({result.brief()})")
    check(re.search(row.err, result.err.decode().strip(), re.M) if row.err else not result.err,
          lambda: f"stderr is {result.err!r}")


for _row in ROWS:
    for _who, _user in PEOPLE:
        harness.add(f"{_row.name}, as {_who}", lambda row=_row, user=_user: run_row(row, user))


def for_people(name, alone=False):
    """Register function(user) once for each kind of caller."""

    def attempt(function, user):
        if not NAMESPACES and name in NEEDS_NAMESPACES:
            raise Skip("needs namespaces")
        function(user)

    def register(function):
        for who, user in PEOPLE:
            harness.add(f"{name}, as {who}", lambda user=user: attempt(function, user), alone)
        return function

    return register


# ---- Toolchains that live outside /usr -------------------------------------------------------

ONE_AT_A_TIME = {"go": threading.Lock(), "cargo": threading.Lock()}


@for_people("go builds and runs a program")
def go(user):
    program = shutil.which("go")
    if not program:
        raise Skip("go is not installed")
    home = str(pathlib.Path(os.path.realpath(program)).parent.parent)
    options = [] if home.startswith("/usr/") else ["--read", home]
    directory = SCRATCH.directory(user)
    (directory / "go.mod").write_text("module hello\n\ngo 1.18\n")
    (directory / "main.go").write_text(
        'package main\n\nfunc main() {\n\tc := make(chan int)\n'
        '\tfor i := 0; i < 10; i++ {\n\t\tgo func(i int) { c <- i }(i)\n\t}\n'
        '\tn := 0\n\tfor i := 0; i < 10; i++ {\n\t\tn += <-c\n\t}\n\tprintln("sum", n)\n}\n')
    for path in directory.iterdir():
        SCRATCH.own(path, user)
    with ONE_AT_A_TIME["go"]:  # the second finds the first one's cache: its owner is the user
        cache = SCRATCH.path / "gocache"
        if not cache.exists():
            SCRATCH.directory(True, name="gocache")
        result = box("--workspace", directory, "--write", cache, *options, "--timeout", "170",
                     "--memory", "2G", "--tmp-size", "512M", "--processes", "512",
                     "--env", f"GOCACHE={cache}", "--env", "GOPROXY=off", "--env", "GOTOOLCHAIN=local",
                     "--env", "CGO_ENABLED=0", "-q", "--",
                     "sh", "-c", f"'{home}/bin/go' build -o hello . && ./hello", user=user, timeout=200)
    equal(result.code, 0, result.brief())
    equal(result.err, b"sum 45\n", "what it prints")


@for_people("cargo builds and runs a program")
def cargo(user):
    program = shutil.which("cargo")
    if not program:
        raise Skip("cargo is not installed")
    found = harness.execute(["rustc", "--print", "sysroot"])
    home = found.out.decode().strip() if found.code == 0 else ""
    if not os.path.exists(os.path.join(home, "bin", "cargo")):
        home = "/usr"
        if not os.path.exists("/usr/bin/cargo"):
            raise Skip("cargo has no home that could be shown")
    options = []
    if home != "/usr":
        if user and harness.execute(harness.as_user(["test", "-r", home])).code != 0:
            raise Skip("the ordinary user cannot read cargo's home")
        options = ["--read", home]
    directory = SCRATCH.directory(user)
    (directory / "src").mkdir()
    (directory / "Cargo.toml").write_text('[package]\nname = "hello"\nversion = "0.1.0"\nedition = "2018"\n')
    (directory / "src" / "main.rs").write_text(
        'use std::thread;\nfn main() {\n'
        '    let t: Vec<_> = (0..10).map(|i| thread::spawn(move || i)).collect();\n'
        '    println!("sum {}", t.into_iter().map(|t| t.join().unwrap()).sum::<i32>());\n}\n')
    for path in directory.rglob("*"):
        SCRATCH.own(path, user)
    with ONE_AT_A_TIME["cargo"]:
        result = box("--workspace", directory, *options, "--timeout", "110", "--memory", "2G",
                     "--env", "CARGO_HOME=/tmp/cargo", "--env", f"PATH={home}/bin:/usr/bin:/bin", "-q", "--",
                     "sh", "-c", "cargo build -q --offline && target/debug/hello", user=user, timeout=130)
    good(result, "sum 45\n")


# ---- git in a workspace ----------------------------------------------------------------------


@for_people("git looks at a repository that is only shown, also at root's")
def git_shown(user):
    directory = SCRATCH.directory(user)
    directory.chmod(0o755)
    script = f"{GIT} init -q && echo one > f && git add f && {GIT} commit -qm first && echo two > f"
    made = harness.execute(harness.as_user(["sh", "-c", script]) if user else ["sh", "-c", script], cwd=directory)
    equal(made.code, 0, made.brief())
    for rule, place in ((directory, directory), (f"{directory}:/place", "/place")):
        good(box("--read", rule, "--cwd", place, "--", "sh", "-c", "git log --format=%s && git status --short", user=user), "first\n M f\n")


@for_people("git works in an existing repository as workspace")
def git_workspace(user):
    directory = SCRATCH.directory(user)
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "HOME": "/nonexistent"}
    outside = harness.execute(
        harness.as_user(["sh", "-c", f"{GIT} init -q && echo one > f && git add f && {GIT} commit -qm first"])
        if user else ["sh", "-c", f"{GIT} init -q && echo one > f && git add f && {GIT} commit -qm first"],
        cwd=directory, env=environment)
    equal(outside.code, 0, outside.brief())
    hooks = sorted(os.listdir(directory / ".git" / "hooks"))
    config = (directory / ".git" / "config").read_bytes()
    result = box("--workspace", directory, "--", "sh", "-c",
                 f"git status --short && echo two > g && git add g && {GIT} commit -qm second && "
                 "git log --format=%s && git status --short && git diff HEAD~ --name-only && "
                 f"{GIT} checkout -qb topic && echo three >> f && {GIT} commit -qam third && git branch | wc -l && "
                 "git rev-parse --is-inside-work-tree", user=user)
    good(result, "second\nfirst\ng\n2\ntrue\n")
    # What is seen from outside: commits, files of the owner, and nothing else changed.
    seen = harness.execute(harness.as_user(["git", "log", "--format=%s"]) if user else ["git", "log", "--format=%s"],
                           cwd=directory, env=environment)
    equal(seen.out, b"third\nsecond\nfirst\n", f"the log from outside ({seen.brief()})")
    owner = directory.stat().st_uid
    foreign = [p for p in directory.rglob("*") if p.lstat().st_uid != owner]
    equal(foreign, [], "files of another owner")
    equal(sorted(os.listdir(directory / ".git" / "hooks")), hooks, "the hooks")
    equal((directory / ".git" / "config").read_bytes(), config, "the configuration")
    denied = box("--workspace", directory, "--", "git", "config", "core.pager", "evil", user=user)
    check(denied.code != 0, "git config could change the configuration")
    equal((directory / ".git" / "config").read_bytes(), config, "the configuration")


# ---- Threads, network, /tmp ------------------------------------------------------------------

THREADS_C = r"""
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#define N 16
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t barrier;
static __thread int own;
static long sum;
static void *work(void *arg)
{
        own = (int)(long)arg;
        pthread_barrier_wait(&barrier);
        for (int i = 0; i < 10000; i++) {
                pthread_mutex_lock(&lock);
                sum += own;
                pthread_mutex_unlock(&lock);
        }
        return arg;
}
int main(void)
{
        pthread_t threads[N];
        long joined = 0;
        pthread_barrier_init(&barrier, NULL, N);
        for (long i = 0; i < N; i++)
                if (pthread_create(&threads[i], NULL, work, (void *)i))
                        return 1;
        for (int i = 0; i < N; i++) {
                void *value;
                pthread_join(threads[i], &value);
                joined += (long)value;
        }
        printf("%ld %ld\n", sum, joined);
        return 0;
}
"""


def compile_threads(*flags):
    name = "threads" + "".join(flags)
    (SCRATCH.path / "threads.c").write_text(THREADS_C)
    subprocess.run(["gcc", "-O1", *flags, "-pthread", "-o", SCRATCH.bin / name, SCRATCH.path / "threads.c"], check=True)
    (SCRATCH.bin / name).chmod(0o755)
    return SCRATCH.bin / name


@for_people("a C program runs 16 threads")
def threads(user):
    for path in (THREADS, THREADS_STATIC):
        good(box("--read", SCRATCH.bin, "--", path, user=user), "1200000 120\n")


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = f"you asked for {self.path}\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@for_people("curl reaches the host's loopback with --net host, and only so")
def curl(user):
    if not shutil.which("curl"):
        raise Skip("curl is not installed")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            url = f"http://127.0.0.1:{server.server_port}/x"
            fetch = ["curl", "-sS", "--noproxy", "*", "--max-time", "20"]
            good(box("--net", "host", "--", *fetch, url, user=user), "you asked for /x\n")
            named = url.replace("127.0.0.1", "localhost")
            good(box("--net=host", "--", *fetch, "-4", named, user=user), "you asked for /x\n")
            for options, code in (((), 7), (("--net", "loopback"), 7 if NAMESPACES else 125)):
                refused = box(*options, "--", *fetch, url, user=user)
                equal(refused.code, code, f"exit code with {options} ({refused.brief()})")
                equal(refused.out, b"", "stdout")
        finally:
            server.shutdown()


@for_people("a program fills /tmp to the size given")
def fill_tmp(user):
    for size, mib in ((["--tmp-size", "8M"], 8), ([], 64)):
        result = box(*size, "--", "sh", "-c",
                     "dd if=/dev/zero of=/tmp/fill bs=64k 2>&1 | grep -o 'No space left on device'; "
                     "stat -c %s /tmp/fill; echo more > /tmp/more; rm /tmp/fill; echo again > /tmp/more && cat /tmp/more",
                     user=user)
        equal(result.out.decode(), f"No space left on device\n{mib << 20}\nagain\n", f"stdout ({result.brief()})")
    result = box("--tmpfs", "/scratch=4M", "--", "sh", "-c",
                 "cat /dev/zero > /scratch/fill; stat -c %s /scratch/fill; echo fine > /tmp/x && cat /tmp/x", user=user)
    equal(result.out.decode(), f"{4 << 20}\nfine\n", f"stdout ({result.brief()})")
    result = box("--tmp-size", "4M", "--", "sh", "-c", "cat /dev/zero > /dev/shm/fill; stat -c %s /dev/shm/fill", user=user)
    equal(result.out.decode(), f"{4 << 20}\n", f"stdout ({result.brief()})")


# ---- In front of other commands --------------------------------------------------------------


@for_people("sort takes a big input through stdin")
def big_sort(user):
    numbers = random.Random(1).choices(range(10**9), k=500_000)
    data = "".join(f"{n}\n" for n in numbers).encode()
    result = box("--", "sort", "-n", user=user, data=data, timeout=60)
    equal(result.code, 0, result.brief())
    wanted = "".join(f"{n}\n" for n in sorted(numbers)).encode()
    equal(hashlib.sha256(result.out).hexdigest(), hashlib.sha256(wanted).hexdigest(), "the sum of the sorted lines")


@for_people("a pipeline of boxes passes every byte")
def pipeline(user):
    data = random.Random(2).randbytes(3_000_000)
    path = SCRATCH.path / f"pipeline-{user}"
    path.write_bytes(data)
    path.chmod(0o644)
    good(shell(f'"$CB" run -- cat < {path} | "$CB" run -- gzip -1 | "$CB" run -- gunzip | "$CB" run -- sha256sum | cut -c1-64', user),
         hashlib.sha256(data).hexdigest() + "\n")
    good(shell('"$CB" run -- seq 100000 | "$CB" run -- head -n 2 | "$CB" run -- tail -n 1', user), "2\n", err=None)
    good(shell(f'"$CB" run -- cat < {path} | cmp - {path} && echo same', user), "same\n")


@for_people("it stands in front of commands as env and timeout do")
def prefix(user):
    good(shell("printf 'a b c' | xargs -n 1 \"$CB\" run -- echo got", user), "got a\ngot b\ngot c\n")
    good(shell("printf 'a b c' | xargs -n 1 -P 3 \"$CB\" run -- echo got | sort", user), "got a\ngot b\ngot c\n")
    good(shell('find /usr/bin/env -exec "$CB" run -- echo {} \\;', user), "/usr/bin/env\n")
    good(shell('env -i "$CB" run -- sh -c "echo \\$HOME \\$PATH" | grep -c /usr/bin', user), "1\n")
    good(shell('timeout 20 nice "$CB" run -- echo fine', user), "fine\n")
    good(shell('x=$("$CB" run -- echo inner) && echo "outer $x"', user), "outer inner\n")
    good(shell('if "$CB" run -- false; then echo yes; else echo "no $?"; fi', user), "no 1\n")
    good(shell('"$CB" run -- sh -c "echo out; echo err >&2" 2>&1 >/dev/null', user), "err\n")
    good(shell('"$CB" run echo -n --json', user), "--json")  # options after the program are its own
    good(shell('(cd /usr && "$CB" run -- pwd); nohup "$CB" run -- echo hup 2>/dev/null', user), "/usr\nhup\n", err=None)


@for_people("the current directory is shown and is where the program starts")
def current_directory(user):
    directory = SCRATCH.directory(user)
    (directory / "note").write_text("seen\n")
    (directory / "note").chmod(0o644)
    result = box("--", "sh", "-c", "pwd; cat note; (echo x > new) 2>/dev/null || echo read-only", user=user, cwd=directory)
    good(result, f"{directory}\nseen\nread-only\n")
    check(not (directory / "new").exists(), "the file was made")
    good(box("--", "pwd", user=user, cwd="/"), "/tmp\n")


if __name__ == "__main__":
    try:
        THREADS, THREADS_STATIC = compile_threads(), compile_threads("-static")
        sys.exit(harness.main(skips=SKIPS))
    finally:
        SCRATCH.remove()
