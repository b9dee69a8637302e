/* SPDX-License-Identifier: MIT */
/* Fence: ids. The box is one unprivileged host id, known inside as PLAN_BOX_ID. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "box/child.h"

/* If the host runs out of memory, a box dies before anything that matters. Done while the host's
 * /proc is still there and its files are still this process's own. */
static int offer_to_oom_killer(struct child *child)
{
        _cleanup_fd_ int fd = openat(child->host_proc, "self/oom_score_adj", O_WRONLY | O_CLOEXEC);

        if ((fd < 0 || write(fd, "800", 3) != 3) &&
            !child->plan->caged) /* some containers' /proc */
                return step_failed(child, "offer the box to the OOM killer", NULL, errno);
        return 0;
}

int box_open_host_proc(struct child *child)
{
        if (child->host_proc < 0) /* else a mould has it */
                child->host_proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (child->host_proc < 0)
                return step_failed(child, "open", "/proc", errno);
        if (child->plan->caged)
                child->proc = child->host_proc; /* there will be no other */
        return 0;
}

/* What is done while this process is still the caller. */
int box_begin(struct child *child)
{
        int r;

        /* A caller may let the kernel reap for it: init has to see its children end. */
        signal_default(SIGCHLD);
        if (child->plan->wipe)
                memset(child->plan->wipe, 0, child->plan->wipe_length);
        r = child->enters_cgroup ? box_enter_cgroup(child) : 0;
        if (r == 0)
                r = box_open_host_proc(child);
        return r < 0 ? r : offer_to_oom_killer(child);
}

/* Become the box's id. Until here a root's child still is host root, without any capability
 * outside its new user namespace. Raw calls: the wrappers of the C library would talk to threads
 * that are not here. */
int box_become_identity(struct child *child)
{
        if (child->plan->privileged && syscall(SYS_setgroups, 0, NULL) < 0)
                return step_failed(child, "leave the caller's groups", NULL, errno);
        if (syscall(SYS_setresgid, PLAN_BOX_ID, PLAN_BOX_ID, PLAN_BOX_ID) < 0)
                return step_failed(child, "become the box's group", NULL, errno);
        if (syscall(SYS_setresuid, PLAN_BOX_ID, PLAN_BOX_ID, PLAN_BOX_ID) < 0)
                return step_failed(child, "become the box's user", NULL, errno);
        /* /proc/1 is nobody's to look into. */
        if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
                return step_failed(child, "close init to its children", NULL, errno);
        return 0;
}

/* Wait for the warden to write the id maps, then become that id and let main follow. */
int box_enter_identity(struct child *child)
{
        struct pollfd fds[2] = { { .fd = child->ids, .events = POLLIN },
                                 { .fd = child->warden, .events = POLLIN } };
        char byte;
        int r;

        while (poll(fds, 2, -1) < 0 && errno == EINTR)
                ;
        if (!(fds[0].revents & POLLIN) || read(child->ids, &byte, 1) != 1)
                return step_failed(child, "wait for the id maps", NULL, EPIPE);
        child->ids = base_close(child->ids);
        r = box_become_identity(child);
        if (r == 0)
                box_signal_word(&child->page->ids_written);
        return r;
}
