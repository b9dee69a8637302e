/* SPDX-License-Identifier: MIT */
/*
 * Pipes. The kernel counts their pages for the user as a whole, and beyond a bound
 * (fs.pipe-user-pages-soft) gives all of his programs smaller ones. A box may be that user. To have
 * the call that makes one wait for init is no way: it could be interrupted by a signal then, which
 * no program expects of pipe(2). So a look at the tree (watch.c) asks whether the user is short of
 * pipes, and a tree that has many of them then is ended.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "box/init.h"

#define PIPES_MANY 96        /* a tenth of what users may have, unless the host says otherwise */
#define PIPE_SIZE (64 * KIB) /* of one that the kernel had room for */

bool pipes_add(struct inodes *pipes, int directory, const char *number, const char *link)
{
        struct statx st;

        if (strncmp(link, "pipe:[", 6) == 0)
                return inodes_add_link(pipes, link);
        /* One with a name is a file like others. Its file system is not asked: it may not answer.
         */
        if (link[0] != '/' || strncmp(link, "/proc/", 6) == 0 ||
            syscall(SYS_statx, directory, number, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
                    STATX_TYPE | STATX_INO, &st) < 0)
                return false;
        return S_ISFIFO(st.stx_mode) && inodes_add(pipes, st.stx_ino);
}

/* Does the kernel make no more pipes of full size for this user? */
static bool is_short(void)
{
        int ends[2], size;

        if (syscall(SYS_pipe2, ends, O_CLOEXEC) < 0)
                return errno == ENFILE;
        size = fcntl(ends[0], F_GETPIPE_SZ);
        base_close(ends[0]);
        base_close(ends[1]);
        return size > 0 && size < (int)PIPE_SIZE;
}

/* "scm_fds: 3" of a socket: descriptors that wait in it. */
uint64_t pipes_in_flight(int process, const char *number)
{
        static const char label[] = "\nscm_fds: ";
        char text[512], path[40];
        const char *at;
        uint64_t n = 0;

        text_copy(path, sizeof(path), "fdinfo/");
        text_copy(path + 7, sizeof(path) - 7, number);
        if (watch_read(process, path, text, sizeof(text)) <= 0)
                return 0;
        at = strstr(text, label);
        for (at = at ? at + strlen(label) : ""; *at >= '0' && *at <= '9'; at++)
                n = n * 10 + (uint64_t)(*at - '0');
        return n;
}

static uint64_t waiting_for(int process)
{
        char room[2048], link[64];
        _cleanup_fd_ int directory = openat(process, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        uint64_t sum = 0;
        long n;

        while (directory >= 0 && (n = syscall(SYS_getdents64, directory, room, sizeof(room))) > 0)
                for (long at = 0; at < n;) {
                        struct entry *entry = (struct entry *)(room + at);
                        ssize_t length = readlinkat(directory, entry->name, link, sizeof(link) - 1);

                        at += entry->length;
                        link[MAX(length, 0)] = '\0';
                        if (strncmp(link, "socket:[", 8) == 0)
                                sum += pipes_in_flight(process, entry->name);
                }
        return sum;
}

/* Descriptors on their way between two sockets may be pipes; and where a socket that nobody has
 * open is among them, more may wait in that. */
static bool may_pass_many(struct child *child, const struct inodes *sockets)
{
        static pid_t pids[WATCH_PROCESSES_MAX];
        size_t n = watch_list(child, pids, WATCH_PROCESSES_MAX);
        uint64_t waiting = 0;
        char name[24];

        for (size_t i = 0; i < n && waiting <= PIPES_MANY; i++) {
                _cleanup_fd_ int process = -1;

                text_number(name, (uint64_t)pids[i]);
                process = openat(child->proc, name, O_PATH | O_CLOEXEC);
                waiting += process >= 0 ? waiting_for(process) : 0;
        }
        return waiting > PIPES_MANY || (waiting > 0 && buffers_count(child) > sockets->n);
}

bool pipes_starve_user(struct child *child, const struct inodes *pipes,
                       const struct inodes *sockets)
{
        if ((pipes->n <= PIPES_MANY && sockets->n == 0) || !is_short())
                return false;
        if (pipes->n <= PIPES_MANY && !may_pass_many(child, sockets))
                return false;
        notify_trace(child->page, BOX_TRACE_PIPES, "pipes", ENFILE);
        return true;
}
