/* SPDX-License-Identifier: MIT */
#include "box/scratch.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "policy/host.h"

#define BASE "/tmp/callbox-"
#define BASES_MAX 16
#define TRIES_MAX 5000 /* of making a name in a directory that others remove or hold */
#define NAME_BYTES 16
#define NAMES_MAX 65536   /* in /tmp that are looked at */
#define ROUNDS_MAX 100000 /* of removing; each takes a level away */

/* The caller's id outside of its user namespace: root of one is not the host's, and both may meet
 * in /tmp. */
static unsigned long caller(void)
{
        unsigned long id = geteuid(), outside;

        return host_maps_id(id, &outside) ? outside : id;
}

static void base_path(unsigned long id, unsigned number, char *path, size_t room)
{
        char *end;

        text_copy(path, room, BASE);
        end = text_number(path + strlen(path), id);
        if (number > 0) {
                *end++ = '-';
                text_number(end, number);
        }
}

/* The directory above those of this user's boxes. It must be the caller's alone: anyone can make
 * names in /tmp, so where one is taken (-EEXIST) there is a next. It goes with the last box, so
 * between making and opening it somebody may have removed it. */
static int open_base(const char *path, bool make)
{
        struct stat st;
        int fd;

        do {
                if (make && mkdir(path, 0711) < 0 && errno != EEXIST)
                        return -errno;
                fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        } while (fd < 0 && errno == ENOENT && make);
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

/* Whoever has taken all of them must not keep this user from having boxes: there is one more that
 * nobody can guess. */
static int choose_base(char *path, size_t room)
{
        unsigned long id = caller();
        unsigned number = 0;
        int fd = -EEXIST;

        for (unsigned i = 0; fd == -EEXIST && i <= BASES_MAX; i++) {
                if (i == BASES_MAX && getrandom(&number, sizeof(number), 0) != sizeof(number))
                        return -errno;
                base_path(id, i < BASES_MAX ? i : number | BASES_MAX, path, room);
                fd = open_base(path, true);
        }
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

/* The path of the directory in which this box's lies; returns the box's name in there. */
static const char *path_above(const struct child *child, char path[sizeof(child->page->scratch)])
{
        const char *scratch = child->page->scratch, *slash = strrchr(scratch, '/');

        text_copy(path, (size_t)(slash - scratch) + 1, scratch);
        return slash + 1;
}

/* Another box's end may have taken the directory above away, before it was opened or after; and
 * somebody may be removing what was left in it, but must not keep this box waiting for ever. */
static int make_in_base(struct child *child)
{
        struct timespec a_while = { .tv_nsec = NSEC_PER_MSEC };
        char path[sizeof(child->page->scratch)];
        const char *name = path_above(child, path);

        for (unsigned i = 0; i < TRIES_MAX; i++) {
                int base = open_base(path, true), r;

                if (base < 0)
                        return base;
                if (flock(base, LOCK_SH | LOCK_NB) == 0 && mkdirat(base, name, 0700) == 0)
                        return base;
                r = -errno;
                base_close(base);
                if (r == -EWOULDBLOCK)
                        (void)nanosleep(&a_while, NULL);
                else if (r != -ENOENT)
                        return r;
        }
        return -EAGAIN;
}

int scratch_make(struct child *child)
{
        char path[sizeof(child->page->scratch)];
        const char *name = path_above(child, path);
        _cleanup_fd_ int base = make_in_base(child), fd = -1;

        if (base < 0)
                return step_failed(child, "make a directory for temporary files",
                                   child->page->scratch, -base);
        fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 || fchmod(fd, 0700) < 0 ||
            (child->plan->privileged &&
             fchown(fd, child->plan->host_uid, child->plan->host_gid) < 0)) {
                int error = errno;

                (void)unlinkat(base, name, AT_REMOVEDIR);
                return step_failed(child, "take a directory for temporary files",
                                   child->page->scratch, error);
        }
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
        char path[sizeof(child->page->scratch)];
        const char *name = path_above(child, path);
        _cleanup_fd_ int base = open_base(path, false);

        if (base < 0)
                return;
        if (child->scratch >= 0)
                remove_tree(base, name, child->scratch);
        (void)rmdir(path); /* where it was the last */
}

static void sweep_base(const char *path)
{
        char room[4096];
        _cleanup_fd_ int base = open_base(path, false);
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
        (void)rmdir(path);
        (void)flock(base, LOCK_UN); /* whoever was forked meanwhile has the descriptor as well */
}

/* Also one whose name nobody could guess, so all there are. */
void scratch_sweep(void)
{
        _cleanup_fd_ int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        char room[4096], first[64], path[64];
        size_t length;
        unsigned seen = 0;
        long n;

        base_path(caller(), 0, first, sizeof(first));
        length = strlen(first) - strlen("/tmp/");
        while (tmp >= 0 && seen < NAMES_MAX &&
               (n = syscall(SYS_getdents64, tmp, room, sizeof(room))) > 0)
                for (long at = 0; at < n; seen++) {
                        struct entry *entry = (struct entry *)(room + at);
                        const char *name = entry->name;

                        at += entry->length;
                        if (strncmp(name, first + strlen("/tmp/"), length) != 0 ||
                            (name[length] && name[length] != '-') ||
                            strlen(name) + strlen("/tmp/") >= sizeof(path))
                                continue;
                        text_copy(path, sizeof(path), "/tmp/");
                        text_copy(path + strlen(path), sizeof(path) - strlen(path), name);
                        sweep_base(path);
                }
}
