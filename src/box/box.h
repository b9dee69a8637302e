/* SPDX-License-Identifier: MIT */
/*
 * A box: one init process in namespaces of its own, below it the main process of exactly one call.
 *
 *   warden ──control──▶ init (pid 1 of the box)      says ENDED or FAILED, one byte each
 *          ──start────▶ main                         gets its descriptors and the word to go
 *          ═══page════  both                         the particulars (page.h)
 *
 * The warden is trusted and outside. From clone to exec the code of this folder runs in the
 * child: async-signal-safe, nothing allocated, everything it needs lies ready in the plan. Init
 * is trusted and stays; main stops being ours when it executes the program.
 */
#ifndef BOX_BOX_H
#define BOX_BOX_H

#include "box/page.h"
#include "policy/plan.h"

/* From init, one byte each; and to init, with one more byte: BOX_SIGNAL with the signal's number.
 * To main: descriptors, in case its call has no others; its call, with descriptors or with those.
 */
enum box_message {
        BOX_ENDED = 'E',
        BOX_FAILED = 'F',
        BOX_WATCH = 'w',
        BOX_SETTLE = 't',
        BOX_SIGNAL = 's',
        BOX_LOADED = 'l',
        BOX_OFFER = 'o',
        BOX_GO = 'g',
        BOX_GO_OFFERED = 'h',
};

struct box {
        const struct plan *plan;
        struct box_page *page;
        pid_t pid;   /* of init, where it is this process's child and has to be reaped; or -1 */
        int pidfd;   /* of init */
        int control; /* from init */
        int start;   /* to main */
};

#define BOX_INIT                                                                                   \
        {                                                                                          \
                .page = NULL, .pid = -1, .pidfd = -1, .control = -1, .start = -1                   \
        }

/* The particulars of one call, as main needs them. */
struct box_spec {
        char *const *argv;
        char *const *environment; /* added to the plan's, replacing the same names; may be NULL */
        const char *directory;    /* NULL: the plan's */
        bool tty;
        bool result; /* descriptor 3 is for the result, CALLBOX_RESULT_FD says so */
        bool zygote; /* it is a socket to the warden (warden/zygote.h), and CALLBOX_FORK_FD says so
                      */
        unsigned short rows, columns;
        struct policy_limits limits;
};

#define BOX_DESCRIPTORS 4 /* that a program can be given, from 0 on */

/* What goes into the child. */
struct box_ends {
        struct box_page *page;
        int control, start; /* the other ends of the box's */
        int warden;         /* pidfd: the box ends with this process */
        int cgroup;         /* to be born in; -1: the caller's */
        int mould;      /* from box_enter_mould, by a mould; -1: the root is built from nothing */
        bool unhurried; /* nobody waits for it: do not take processors from those who work */
        _Atomic bool *used; /* of the net namespace that is lent to it (lend.h); NULL: none is */
        bool zygote;        /* boxes will be forked from its program (fork.h) */
};

#define BOX_ENDS_INIT                                                                              \
        {                                                                                          \
                .control = -1, .start = -1, .warden = -1, .cgroup = -1, .mould = -1                \
        }

/* Open what warden and box share; `page` is a file of that size, or -1 for memory. Both sides are
 * to be closed, on failure as well. */
int box_open(struct box *box, const struct plan *plan, int page, struct box_ends *ends,
             cbx_error *error);

/* Clone init. It builds the box and lets main wait one step before exec. */
int box_make(const struct plan *plan, const struct box_ends *ends, pid_t *ret_pid, int *ret_pidfd,
             cbx_error *error);

/* Can boxes of this plan be copied from a mould? */
bool box_can_cast(const struct plan *plan);

/*
 * Become a mould: leave the host for a mount namespace in which a box's root stands, the places of
 * everything that is a box's own empty and read-only. Boxes that are cloned here begin with a copy
 * of these mounts, which they can cover but not take away. Gives the host's /proc, which a mould
 * needs for its boxes' id maps, and the plan's descriptors are not needed any more.
 */
int box_enter_mould(const struct plan *plan, int *ret_mould, cbx_error *error);

/* In a mould: are all its mounts where they were put? A name on the host on which something is
 * mounted elsewhere may be removed or replaced there, and the mount goes with it. */
bool box_mould_is_whole(const struct plan *plan);

/* Is this one of an init that the zygote whose init is `zygote` has forked? It may have sent
 * anything, the warden itself: a socket tells who made it. */
int box_check_forked(int pidfd, int zygote);

/* A box that is being forked from a zygote: whom it sent back, and that it may go on. */
int box_adopt(struct box *box, int pidfd);

/* A copy of what the page says, to be freed; without what the warden has written itself. Of a box
 * that was forked from a zygote, nobody can tell who else writes to it: all of it is within bounds,
 * or none of it is there, as it makes no sense. NULL: there is no memory. */
struct box_page *box_copy_page(const struct box *box, bool *ret_sense);

/* Both in one, for a box that lives with this process. Its messages come on box->control. */
int box_prepare(const struct plan *plan, int cgroup_fd, struct box *box, cbx_error *error);

/* Have those parts of the page at hand that every call needs: to fetch them takes longer than most
 * system calls. For a box that has not been started. */
void box_touch(struct box *box);

/* Hand over stdin, stdout and stderr ahead of the call, for one that needs nothing else. */
int box_offer(struct box *box, const int fds[BOX_DESCRIPTORS - 1]);

/* Hand over the particulars and the program's descriptors, the last of which is used for a result
 * only, and let the program start. NULL: those that it was offered. With a tty none is used (-1)
 * and main answers on box->start with the pty's master. */
int box_start(struct box *box, const struct box_spec *spec, const int fds[BOX_DESCRIPTORS],
              cbx_error *error);

/* Let init look at what the tree uses, from now on. A call that is over in a few milliseconds needs
 * no look, and is over sooner without one. */
void box_watch(struct box *box);

/* Of a zygote's box: it has loaded, and boxes will be forked from it, which need what init looks
 * after it by (policy/syscalls_loading.c). */
void box_loaded(struct box *box);

/* The same, but only until nothing happens in the tree any more: a program that is to wait for its
 * input shall cost nothing while it does. */
void box_settle(struct box *box);

/* Send a signal to the program. */
void box_signal(struct box *box, int signal);

/* Kill everything in the box. Idempotent; the end shows on box->pidfd. */
void box_kill(struct box *box);

/* Reap init and free what the warden holds. The box must be dead or killed. */
void box_free(struct box *box);

/* Turn the failure in the page into words and a fix. */
int box_explain_failure(const struct box_failure *failure, cbx_error *error);

/* Receive the pty's master from main; -EAGAIN when it has not come yet. */
int box_receive_terminal(const struct box *box);

#endif
