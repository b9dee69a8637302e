# SPDX-License-Identifier: MIT
"""An emulated machine of Debian's packages, in which a script is run.

Nothing is installed or mounted on the build machine, and nothing but processes of qemu runs on it:

    kernel      unpacked from its .deb, with an initramfs of busybox and the modules of the disk
    base disk   the files of PACKAGES and what they depend on, as they are installed here, put into
                an ext4 image by mke2fs; used as a snapshot, so that each run begins with it anew
    job disk    a tar: the build, the tests and the script to run
    result disk a tar that the guest writes at the end: the output of the script, files, its status
    swap disk   empty

Made once and kept in a cache directory: the kernels and the base disk.
"""

import dataclasses
import gzip
import hashlib
import io
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
STARTED = "callbox: the job begins"  # on the console (guest/session)
BOOT_SECONDS, BOOTS_MAX = 240, 4

# What the attack suite and the table of ordinary programs use. Java and Node take minutes to start
# in emulation and are left out.
PACKAGES = ["base-files", "bash", "coreutils", "dash", "debianutils", "diffutils", "findutils", "grep", "gzip",
            "hostname", "sed", "tar", "util-linux", "procps", "gawk", "mawk", "python3", "perl", "git", "make",
            "gcc", "g++", "xz-utils", "openssl", "curl", "sqlite3", "libc-bin", "libjansson4", "libseccomp2",
            "libpcre2-8-0", "libevent-2.1-7", "strace", "systemd", "dbus", "libpam-systemd", "passwd", "login", "apparmor"]
# Of each package all files are taken but these.
LEFT_OUT = re.compile(r"^/usr/share/(doc|man|locale|info|lintian|bug|zoneinfo/right)/|^/(boot|dev|proc|sys|run|tmp)/.")

IMAGE_SIZE = "6G"  # sparse
RESULT_SIZE = 256 << 20
SWAP_SIZE = 1 << 30


class MachineFailed(Exception):
    """There is no machine, or it said nothing: never a result."""


def run(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **options)
    if done.returncode != 0:
        text = done.stdout.decode("utf-8", "replace")[-2000:]
        raise MachineFailed(f"{' '.join(map(str, command))[:200]}: {text}")
    return done.stdout.decode("utf-8", "replace")


# ---- The kernel ------------------------------------------------------------------------------


def newest(meta):
    """The package that a meta-package such as linux-image-cloud-amd64 stands for, or None."""
    text = subprocess.run(["apt-cache", "depends", "--no-recommends", meta], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False).stdout.decode()
    found = re.findall(r"Depends: (linux-image-\S+)", text)
    return found[0] if found else None


def modules(tree, names):
    """The files of these modules and of those that they need, in the order in which to load them."""
    root = next((tree / "lib" / "modules").iterdir())
    # modules.dep is made when a kernel is installed; the modules themselves say what they need.
    files = {path.name.split(".")[0].replace("-", "_"): path for path in root.glob("kernel/**/*.ko*")}
    order = []

    def add(name):
        path = files.get(name.replace("-", "_"))
        if path is None or path in order:
            return  # built in
        needs = re.search(rb"(?:^|\0)depends=([^\0]*)\0", content(path))
        for need in needs.group(1).decode().split(",") if needs else []:
            add(need)
        order.append(path)

    for name in names:
        add(name)
    return order


def content(path):
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def cpio(entries):
    """A cpio archive in the form that the kernel unpacks: (name, mode, bytes) each."""
    out = io.BytesIO()
    for number, (name, mode, data) in enumerate([*entries, ("TRAILER!!!", 0, b"")], 1):
        fields = [number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
        head = b"070701" + b"".join(b"%08x" % f for f in fields) + name.encode() + b"\0"
        for part in (head, data):
            out.write(part)
            out.write(b"\0" * (-out.tell() % 4))
    return out.getvalue()


@dataclasses.dataclass
class Kernel:
    release: str
    image: pathlib.Path
    initramfs: pathlib.Path


def get_kernel(package, cache):
    """Fetch a kernel's package, unpack it, and make its initramfs."""
    place = cache / package
    if not (place / "initramfs.gz").exists():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        run(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", package], cwd=place)
        deb = next(place.glob("*.deb"))
        run(["dpkg-deb", "-x", str(deb), str(place / "tree")])
        deb.unlink()
        load = modules(place / "tree", ["virtio_pci", "virtio_mmio", "virtio_blk"])
        entries = [(name, 0o40755, b"") for name in ("bin", "proc", "sys", "dev", "new", "modules")]
        entries.append(("bin/busybox", 0o100755, pathlib.Path("/usr/bin/busybox").read_bytes()))
        entries += [(f"modules/{i:02}.ko", 0o100644, content(path)) for i, path in enumerate(load)]
        entries.append(("init", 0o100755, (HERE / "guest" / "initramfs").read_bytes()))
        (place / "initramfs.tmp").write_bytes(gzip.compress(cpio(entries), 6))
        (place / "initramfs.tmp").rename(place / "initramfs.gz")
    release = next((place / "tree" / "lib" / "modules").iterdir()).name
    return Kernel(release, place / "tree" / "boot" / f"vmlinuz-{release}", place / "initramfs.gz")


# ---- The base disk ---------------------------------------------------------------------------


def closure(packages):
    """These packages and all installed ones that they depend on."""
    text = run(["dpkg-query", "-W", "-f", "${Package}\t${Version}\t${db:Status-Status}\t${Provides}\t${Pre-Depends}, ${Depends}\n"])
    table, provided = {}, {}
    for line in text.splitlines():
        name, version, status, provides, depends = line.split("\t")
        if status != "installed":
            continue
        table[name] = (version, depends)
        for word in re.findall(r"([a-z0-9][a-z0-9.+-]*)(?: \([^)]*\))?", provides):
            provided.setdefault(word, name)
    found, todo = {}, list(packages)
    while todo:
        name = todo.pop()
        name = name if name in table else provided.get(name)
        if not name or name in found:
            continue
        found[name], depends = table[name]
        for choice in depends.split(","):
            todo += [part.split("(")[0].split(":")[0].strip() for part in choice.split("|")]
    return found


def files_of(packages):
    listed = run(["dpkg-query", "-L", *sorted(packages)]).splitlines()
    found = set()
    for name in listed:
        if not name.startswith("/") or LEFT_OUT.search(name + ("/" if os.path.isdir(name) else "")):
            continue
        # /bin and its like are links into /usr.
        real = os.path.join(os.path.realpath(os.path.dirname(name)), os.path.basename(name))
        if os.path.lexists(real) and real != "/" and not os.path.ismount(real):
            found.add(real)
    return found


ETC = {
    "passwd": "root:x:0:0:root:/root:/bin/bash\nmessagebus:x:100:100::/nonexistent:/bin/false\n"
              "agent:x:64001:64001::/home/agent:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "group": "root:x:0:\ntty:x:5:\nutmp:x:43:\nmessagebus:x:100:\nagent:x:64001:\nnogroup:x:65534:\n",
    "shadow": "root:*:1::::::\nagent:*:1::::::\n",
    "hostname": "guest\n",
    "hosts": "127.0.0.1 localhost guest\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files\n",
    "fstab": "",
    "machine-id": "0123456789abcdef0123456789abcdef\n",
    "pam.d/other": "auth required pam_deny.so\naccount required pam_deny.so\nsession required pam_deny.so\n",
    "pam.d/systemd-user": "account required pam_permit.so\nsession required pam_permit.so\nsession optional pam_systemd.so\n",
}


def stage(packages, tree):
    """Lay out the guest's root below `tree`."""
    chosen = [p for p in pathlib.Path("/usr/bin").iterdir() if p.is_symlink() and os.readlink(p).startswith("/etc/alternatives/")]
    listed = sorted(files_of(packages) | {"/etc/alternatives", *map(str, pathlib.Path("/etc/alternatives").iterdir()), *map(str, chosen)})
    names = "\0".join(name[1:] for name in listed) + "\0"
    pack = subprocess.Popen(["tar", "-c", "-C", "/", "--null", "--no-recursion", "-T", "-", "--ignore-failed-read"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    unpack = subprocess.Popen(["tar", "-x", "-C", str(tree)], stdin=pack.stdout)
    pack.stdout.close()
    pack.stdin.write(names.encode())
    pack.stdin.close()
    if unpack.wait() != 0 or pack.wait() not in (0, 1, 2):
        raise MachineFailed("cannot lay out the root of the guest")
    for name in ("bin", "sbin", "lib", "lib64", "lib32", "libx32"):
        if os.path.islink(f"/{name}") and not (tree / name).exists():
            (tree / name).symlink_to(os.readlink(f"/{name}"))
    for name in ("dev", "proc", "sys", "run", "tmp", "root", "home", "var/tmp", "var/lib", "var/log", "etc", "srv", "mnt"):
        (tree / name).mkdir(parents=True, exist_ok=True)
    for name in ("tmp", "var/tmp"):
        (tree / name).chmod(0o1777)
    for name, text in ETC.items():
        path = tree / "etc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text(text)
    home = tree / "home" / "agent"
    home.mkdir()
    os.chown(home, 64001, 64001)
    for name in ("init", "session"):
        shutil.copy(HERE / "guest" / name, tree / "usr" / "sbin" / f"guest-{name}")
        (tree / "usr" / "sbin" / f"guest-{name}").chmod(0o755)
    (tree / "etc" / "systemd" / "system").mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "guest" / "guest.service", tree / "etc" / "systemd" / "system")


def base_disk(cache):
    """The image of the guest's root; made anew where a package or this file has changed."""
    packages = closure(PACKAGES)
    own = b"".join(p.read_bytes() for p in sorted([HERE / "machine.py", *(HERE / "guest").iterdir()]))
    stamp = hashlib.sha256(own + repr(sorted(packages.items())).encode()).hexdigest()[:16]
    image = cache / f"base-{stamp}.ext4"
    if image.exists():
        return image
    for old in cache.glob("base-*.ext4"):
        old.unlink()
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        tree = pathlib.Path(scratch) / "tree"
        tree.mkdir()
        tree.chmod(0o755)
        stage(packages, tree)
        made = pathlib.Path(scratch) / "image"
        run(["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal,casefold", "-E", "lazy_itable_init=1", "-m", "0", "-d", str(tree),
             str(made), IMAGE_SIZE], env={**os.environ, "PATH": "/usr/sbin:/sbin:" + os.environ["PATH"]})
        made.rename(image)
    return image


# ---- A run -----------------------------------------------------------------------------------


@dataclasses.dataclass
class Outcome:
    status: int  # of the script; None where it did not end
    output: str  # what it wrote
    files: dict  # name → bytes, of what it left in $RESULTS
    console: str  # what the kernel and the guest's init said
    seconds: float


def empty(path, size):
    with open(path, "wb") as stream:
        stream.truncate(size)


def pack_job(path, script, trees, environment):
    """The job disk: `trees` is name → file or directory of the build machine, put below /job."""
    with tarfile.open(path, "w") as tar:
        for name, source in trees.items():
            tar.add(source, name, filter=lambda info: None if "__pycache__" in info.name else info)
        texts = {"script": script, "environment": "".join(f"{k}='{v}'\n" for k, v in environment.items())}
        for name, text in texts.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(text.encode()), 0o755
            tar.addfile(info, io.BytesIO(text.encode()))


def read_results(path):
    files = {}
    with contextlib_tar(path) as tar:
        for info in tar or ():
            if info.isfile():
                files[info.name.removeprefix("./")] = tar.extractfile(info).read()
    return files


class contextlib_tar:
    """A tar that may not be one: then there is nothing in it."""

    def __init__(self, path):
        try:
            self.tar = tarfile.open(path, "r:")
        except tarfile.TarError:
            self.tar = None

    def __enter__(self):
        return self.tar

    def __exit__(self, *_):
        if self.tar:
            self.tar.close()


def run_machine(command, place, seconds):
    """Until it switches itself off, or its time is over: what the emulator said, and the machine's console."""
    began = time.monotonic()
    path = place / "console"
    path.write_text("")
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               env={**os.environ, "TMPDIR": str(place)})
    over = ""
    while not over:
        try:
            process.wait(1)
            break
        except subprocess.TimeoutExpired:
            spent = time.monotonic() - began
            if spent > seconds or (spent > BOOT_SECONDS and STARTED not in path.read_text(errors="replace")):
                over = f"\nended after {spent:.0f} s"
                process.kill()
    return process.communicate()[0].decode("utf-8", "replace") + over, path.read_text(errors="replace")


def boot(kernel, base, script, trees, seconds, arguments="", environment=None, memory="2G"):
    """Run a script in a machine of its own, as root of the guest."""
    with tempfile.TemporaryDirectory(prefix="callbox-host-", dir=base.parent) as scratch:
        place = pathlib.Path(scratch)
        pack_job(place / "job", script, trees, environment or {})
        empty(place / "result", RESULT_SIZE)
        empty(place / "swap", SWAP_SIZE)
        drives = []
        for name, path, more in (("base", base, ",snapshot=on"), ("job", place / "job", ",readonly=on"),
                                 ("result", place / "result", ""), ("swap", place / "swap", ",cache=unsafe")):
            drives += ["-drive", f"id={name},file={path},format=raw,if=none{more}",
                       "-device", f"virtio-blk-pci,drive={name},serial={name}"]
        command = ["setpriv", "--pdeathsig", "KILL", "--", "qemu-system-x86_64", "-accel", "tcg", "-cpu", "max",
                   # Its clock counts instructions, and skips what it would sleep: so it is as steady as a real
                   # machine, however busy this one is. That takes a machine of one processor.
                   "-icount", "shift=1,sleep=off",
                   "-M", "q35", "-no-reboot",  # a microvm starts sooner, but not on a busy machine: it misses its clocks
                   "-nodefaults", "-no-user-config", "-nographic",
                   "-m", memory, "-serial", f"file:{place}/console",
                   "-kernel", str(kernel.image), "-initrd", str(kernel.initramfs),
                   "-append", f"console=ttyS0 panic=-1 loglevel=5 {arguments}", *drives]
        began = time.monotonic()
        # Once in a while such a clock stands still while the kernel finds its disks: then it is switched on again.
        for _ in range(BOOTS_MAX):
            said, console = run_machine(command, place, seconds)
            if STARTED in console:
                break
        spent = time.monotonic() - began
        files = read_results(place / "result")
    status = files.pop("status", b"").decode().strip()
    output = files.pop("output", b"").decode("utf-8", "replace")
    return Outcome(int(status) if status else None, output, files, said + console, spent)
