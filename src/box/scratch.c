/* SPDX-License-Identifier: MIT */
#include "box/scratch.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define BASE "/tmp/callbox-"
#define ROUNDS_MAX 100000 /* of removing; each takes a level away */

struct entry {
        uint64_t inode;
        int64_t offset;
        unsigned short length;
        unsigned char type;
        char name[];
};

static void base_path(char *ret, size_t room)
{
        text_copy(ret, room, BASE);
        text_number(ret + strlen(ret), geteuid());
}

int scratch_name(char *ret, size_t room)
{
        static const char hex[] = "0123456789abcdef";
        unsigned char bytes[16];
        char *end;

        base_path(ret, room);
        if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
                return -errno;
        end = ret + strlen(ret);
        *end++ = '/';
        for (size_t i = 0; i < sizeof(bytes); i++) {
                *end++ = hex[bytes[i] >> 4];
                *end++ = hex[bytes[i] & 15];
        }
        *end = '\0';
        return 0;
}

/* The directory above, which must be the caller's alone: anyone can make names in /tmp. */
static int open_base(void)
{
        char path[64];
        struct stat st;
        int fd;

        base_path(path, sizeof(path));
        if (mkdir(path, 0711) < 0 && errno != EEXIST)
                return -errno;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 022)) {
                base_close(fd);
                return -EPERM;
        }
        /* The umask may have closed it to the box's user. */
        if ((st.st_mode & 0777) != 0711)
                (void)fchmod(fd, 0711);
        return fd;
}

int scratch_make(struct child *child)
{
        const char *name = strrchr(child->page->scratch, '/') + 1;
        _cleanup_fd_ int base = open_base(), fd = -1;

        if (base < 0)
                return step_failed(child, "make a directory for temporary files",
                                   child->page->scratch, -base);
        if (flock(base, LOCK_SH) < 0 || mkdirat(base, name, 0700) < 0)
                return step_failed(child, "make a directory for temporary files",
                                   child->page->scratch, errno);
        fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fchmod(fd, 0700) < 0 ||
            (child->plan->privileged &&
             fchown(fd, child->plan->host_uid, child->plan->host_gid) < 0))
                return step_failed(child, "take a directory for temporary files",
                                   child->page->scratch, errno);
        child->scratch = TAKE_FD(fd);
        return 0;
}

/* ---- Removing ---- */

/* One entry of a directory: gone, or false where it is a directory with something in it. */
static bool remove_entry(int directory, const char *name)
{
        if (unlinkat(directory, name, 0) == 0 || errno == ENOENT)
                return true;
        return unlinkat(directory, name, AT_REMOVEDIR) == 0 || errno == ENOENT;
}

/* Let a directory be emptied and moved, whatever its mode. By a descriptor: it must not be a link. */
static void open_up(int directory, const char *name)
{
        _cleanup_fd_ int fd =
                openat(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        char link[40] = "/proc/self/fd/";

        text_number(link + strlen(link), (uint64_t)MAX(fd, 0));
        if (fd >= 0)
                (void)!chmod(link, 0700);
}

/* What is in `inner` goes, or comes up into `top`: so no tree is too deep, and two descriptors do. */
static void flatten(int top, const char *name, uint64_t *counter)
{
        _cleanup_fd_ int inner = -1;
        char room[4096], number[24];
        long n;

        open_up(top, name);
        inner = openat(top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        while (inner >= 0 && (n = syscall(SYS_getdents64, inner, room, sizeof(room))) > 0)
                for (long at = 0; at < n;) {
                        struct entry *entry = (struct entry *)(room + at);

                        at += entry->length;
                        if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0 ||
                            remove_entry(inner, entry->name))
                                continue;
                        open_up(inner, entry->name);
                        do
                                text_number(number, (*counter)++);
                        while (renameat(inner, entry->name, top, number) < 0 &&
                               (errno == EEXIST || errno == ENOTEMPTY));
                }
        (void)unlinkat(top, name, AT_REMOVEDIR);
}

/* Empty a directory. Returns whether there was something in it. */
static bool empty_once(int top, uint64_t *counter)
{
        char room[4096];
        bool found = false;
        long n;

        (void)lseek(top, 0, SEEK_SET);
        while ((n = syscall(SYS_getdents64, top, room, sizeof(room))) > 0)
                for (long at = 0; at < n;) {
                        struct entry *entry = (struct entry *)(room + at);

                        at += entry->length;
                        if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0)
                                continue;
                        found = true;
                        if (!remove_entry(top, entry->name))
                                flatten(top, entry->name, counter);
                }
        return found;
}

/* `top` is the directory itself, `base` and `name` where it lies. */
static void remove_tree(int base, const char *name, int top)
{
        uint64_t counter = 0;

        (void)fchmod(top, 0700);
        for (unsigned i = 0; unlinkat(base, name, AT_REMOVEDIR) < 0 && errno != ENOENT &&
                             i < ROUNDS_MAX && empty_once(top, &counter);
             i++)
                ;
}

void scratch_remove(struct child *child)
{
        _cleanup_fd_ int base = open_base();

        if (base >= 0 && child->scratch >= 0)
                remove_tree(base, strrchr(child->page->scratch, '/') + 1, child->scratch);
}

void scratch_sweep(void)
{
        _cleanup_fd_ int base = open_base();
        char room[4096];
        long n;

        if (base < 0 || flock(base, LOCK_EX | LOCK_NB) < 0)
                return; /* somebody makes one: later, then */
        while ((n = syscall(SYS_getdents64, base, room, sizeof(room))) > 0)
                for (long at = 0; at < n;) {
                        struct entry *entry = (struct entry *)(room + at);
                        _cleanup_fd_ int fd = -1;

                        at += entry->length;
                        if (entry->name[0] == '.')
                                continue;
                        fd = openat(base, entry->name,
                                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
                        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0)
                                remove_tree(base, entry->name, fd);
                }
}
