/* SPDX-License-Identifier: MIT */
#include "box/scratch.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define BASE "/tmp/callbox-"
#define BASES_MAX 16
#define NAME_BYTES 16
#define ROUNDS_MAX 100000 /* of removing; each takes a level away */

/* The directory above those of this user's boxes. It must be the caller's alone: anyone can make
 * names in /tmp, so where one is taken (-EEXIST) there is a next. */
static int open_base(unsigned number, char *path, size_t room)
{
        struct stat st;
        char *end;
        int fd;

        text_copy(path, room, BASE);
        end = text_number(path + strlen(path), geteuid());
        if (number > 0) {
                *end++ = '-';
                text_number(end, number);
        }
        if (mkdir(path, 0711) < 0 && errno != EEXIST)
                return -errno;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
                return errno == ELOOP || errno == ENOTDIR || errno == EACCES ? -EEXIST : -errno;
        if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 022)) {
                base_close(fd);
                return -EEXIST;
        }
        /* The umask may have closed it to the box's user. */
        if ((st.st_mode & 0777) != 0711)
                (void)fchmod(fd, 0711);
        return fd;
}

static int choose_base(char *path, size_t room)
{
        int fd = -EEXIST;

        for (unsigned i = 0; fd == -EEXIST && i < BASES_MAX; i++)
                fd = open_base(i, path, room);
        return fd;
}

int scratch_name(char *ret, size_t room)
{
        static const char hex[] = "0123456789abcdef";
        _cleanup_fd_ int base = choose_base(ret, room - 2 * NAME_BYTES - 1);
        unsigned char bytes[NAME_BYTES];
        char *end;

        if (base < 0)
                return base;
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

/* The directory in which this box's lies, and its name in there. */
static int open_above(struct child *child, const char **ret_name)
{
        const char *scratch = child->page->scratch, *slash = strrchr(scratch, '/');
        char path[sizeof(child->page->scratch)];
        int fd;

        text_copy(path, (size_t)(slash - scratch) + 1, scratch);
        *ret_name = slash + 1;
        fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

int scratch_make(struct child *child)
{
        const char *name;
        _cleanup_fd_ int base = open_above(child, &name), fd = -1;

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

/* Let a directory be emptied and moved, whatever its mode. By a descriptor: it must not be a link.
 */
static void open_up(int directory, const char *name)
{
        _cleanup_fd_ int fd =
                openat(directory, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        char link[40] = "/proc/self/fd/";

        text_number(link + strlen(link), (uint64_t)MAX(fd, 0));
        if (fd >= 0)
                (void)!chmod(link, 0700);
}

/* What is in `inner` goes, or comes up into `top`: so no tree is too deep, and two descriptors do.
 */
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
        const char *name;
        _cleanup_fd_ int base = open_above(child, &name);

        if (base >= 0 && child->scratch >= 0)
                remove_tree(base, name, child->scratch);
}

void scratch_sweep(void)
{
        char room[4096], path[64];
        _cleanup_fd_ int base = choose_base(path, sizeof(path));
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
