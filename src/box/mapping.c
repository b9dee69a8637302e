/* SPDX-License-Identifier: MIT */
/*
 * Id maps. A box's own user namespace knows one id; and where root runs callbox, the trees that a
 * policy names are mounted with their owner's id mapped to the box's, so that the program may do
 * with them what the owner could, and what it makes is the owner's.
 */
#include "box/mapping.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static int write_process_file(int proc, pid_t pid, const char *name, const char *text)
{
        char path[64];
        _cleanup_fd_ int fd = -1;

        snprintf(path, sizeof(path), "%s%d/%s", proc < 0 ? "/proc/" : "", pid, name);
        fd = openat(proc, path, O_WRONLY | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        return fd_write_all(fd, text, strlen(text));
}

int mapping_write(int proc, pid_t pid, bool deny_groups, uid_t inside_uid, uid_t uid,
                  gid_t inside_gid, gid_t gid)
{
        char text[64];
        int r;

        if (deny_groups) {
                r = write_process_file(proc, pid, "setgroups", "deny");
                if (r < 0 && r != -ENOENT)
                        return r;
        }
        snprintf(text, sizeof(text), "%u %u 1\n", inside_uid, uid);
        r = write_process_file(proc, pid, "uid_map", text);
        if (r < 0)
                return r;
        snprintf(text, sizeof(text), "%u %u 1\n", inside_gid, gid);
        return write_process_file(proc, pid, "gid_map", text);
}

/* A user namespace that maps `owner` to the box, held by nothing but the descriptor. */
int mapping_open(uid_t owner_uid, gid_t owner_gid, uid_t box_uid, gid_t box_gid)
{
        int pidfd = -1, fd, r;
        struct clone_args args = {
                .flags = CLONE_NEWUSER | CLONE_PIDFD,
                .pidfd = (uint64_t)(uintptr_t)&pidfd,
                .exit_signal = SIGCHLD,
        };
        siginfo_t info;
        char path[64];
        pid_t pid, parent;

        parent = getpid();
        pid = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
        if (pid < 0)
                return -errno;
        if (pid == 0) { /* holds the namespace until it is killed, or the warden is */
                syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
                while (syscall(SYS_getppid) == parent)
                        syscall(SYS_pause);
                syscall(SYS_exit_group, 0);
        }
        r = mapping_write(-1, pid, false, owner_uid, box_uid, owner_gid, box_gid);
        if (r == 0) {
                snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
                fd = open(path, O_RDONLY | O_CLOEXEC);
                r = fd < 0 ? -errno : fd;
        }
        /* By pid where that fails: it is not reaped yet, so the pid is still its own. */
        if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) < 0)
                (void)kill(pid, SIGKILL);
        while (waitid(P_PIDFD, (id_t)pidfd, &info, WEXITED) < 0 && errno == EINTR)
                ;
        base_close(pidfd);
        return r;
}

int mapping_apply(int tree, int mapping)
{
        struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)mapping };

        if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr,
                    sizeof(attr)) < 0)
                return -errno;
        return 0;
}
