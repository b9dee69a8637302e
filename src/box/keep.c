/* SPDX-License-Identifier: MIT */
/*
 * The keeper: what stands above init in a box that has no pid namespace. Init's own death does not
 * take such a box along; so one more process, which does nothing but wait, ends what is left when
 * init is gone, whatever became of it, and removes the box's directory. If the keeper itself is
 * killed, init sees that and ends the tree; what the directory held is removed by the next box.
 *
 *   warden ── keeper ── init ── main ── ...
 *
 * The warden holds a pidfd of the keeper: where init is asked by SIGKILL in other boxes, the keeper
 * is asked by SIGTERM.
 */
#include <linux/prctl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "box/enter.h"
#include "box/scratch.h"
#include "box/tree.h"

/* Until it is dead, those that lose their parent are init's; on a busy host that takes a while. It
 * is not reaped before, so the number is its own. */
static void end_init(struct child *child)
{
        if (!child->scoped) {
                /* Stopped first: it would tell of main's end as of one by itself. */
                (void)kill(child->init, SIGSTOP);
                tree_kill_groups(child->proc, child->init);
        }
        (void)kill(child->init, SIGKILL);
}

/* Wait until init has ended, or the warden wants all to end. */
static void await_end(struct child *child)
{
        const uint64_t mask = 1ULL << (SIGCHLD - 1) | 1ULL << (SIGTERM - 1);
        int status;

        while (syscall(SYS_wait4, child->init, &status, __WALL | WNOHANG, NULL) == 0)
                if (syscall(SYS_rt_sigtimedwait, &mask, NULL, NULL, sizeof(mask)) == SIGTERM) {
                        end_init(child);
                        return;
                }
}

/* Everything that a keeper has to have before there is an init. */
static int prepare(struct child *child)
{
        int r = box_await_place(child, &child->page->init_placed);

        if (r < 0)
                return r;
        if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
                return step_failed(child, "become the box's reaper", NULL, errno);
        signal_default(SIGCHLD);
        r = scratch_make(child);
        if (r == 0)
                r = box_open_host_proc(child);
        return r == 0 ? box_scope_signals(child) : r;
}

_Noreturn void box_keep(struct child *child)
{
        const char failed = BOX_FAILED;
        int r;

        child->ids_end = base_close(child->ids_end);
        r = prepare(child);
        child->init = -1;
        child->keeper_pid = getpid();
        if (r == 0) {
                child->init = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
                if (child->init == 0)
                        box_enter_cage(child);
                if (child->init < 0)
                        r = step_failed(child, "start init", NULL, errno);
        }
        if (r < 0)
                (void)!write(child->control, &failed, 1);
        /* Whoever waits for the end of init's sockets must not wait for this one. */
        if (descriptor_keep(0, (int[]){ child->scratch, child->proc }, 2) < 0)
                r = step_failed(child, "close descriptors", NULL, errno);
        if (r == 0)
                await_end(child);
        if (box_fence(FENCE_TREE_KILL))
                tree_end(child, NULL);
        scratch_remove(child);
        syscall(SYS_exit_group, 0);
        __builtin_unreachable();
}
