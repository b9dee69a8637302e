/* SPDX-License-Identifier: MIT */
#include "box/lend.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "box/fences.h"
#include "policy/plan.h"

#define LOOKS_MAX 16 /* at a namespace whose box is dead but whose sockets are not */

/* ---- What is in a namespace ---- */

/* How many sockets are alive in it, those in flight and those waiting to be collected included; a
 * negative number when that cannot be told. */
static long count_sockets(int sockets)
{
        static const char before[] = "sockets: used ";
        char text[64];
        ssize_t n = pread(sockets, text, sizeof(text) - 1, 0);

        if (n <= 0)
                return -1;
        text[n] = '\0';
        if (strncmp(text, before, strlen(before)) != 0)
                return -1;
        return strtol(text + strlen(before), NULL, 10);
}

/* See that they are counted, rather than trust that they are. */
static bool counts_sockets(int sockets)
{
        _cleanup_fd_ int probe = -1;
        bool counts = count_sockets(sockets) == 0;

        probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        counts = counts && probe >= 0 && count_sockets(sockets) == 1;
        probe = base_close(probe);
        return counts && count_sockets(sockets) == 0;
}

static void give_up(struct lent *lent)
{
        lent->network = base_close(lent->network);
        lent->sockets = base_close(lent->sockets);
        lent->init = base_close(lent->init);
}

/* Its box is dead. Is it as it was before? */
static bool is_clean(struct lent *lent, bool used)
{
        if (used || ++lent->looks > LOOKS_MAX) {
                give_up(lent);
                return false;
        }
        return count_sockets(lent->sockets) == 0;
}

/* ---- Making and finding one ---- */

/* What this process makes from now on must not come to be in a box's network. The pool gets another
 * maker and mould, and a box that is half made ends by itself. */
static void go_home(struct lender *lender)
{
        if (setns(lender->home, CLONE_NEWNET) < 0)
                _exit(1);
}

static bool make(struct lender *lender, struct lent *lent)
{
        bool made;

        if (unshare(CLONE_NEWNET) < 0)
                return false;
        lent->network = openat(lender->proc, "self/ns/net", O_RDONLY | O_CLOEXEC);
        lent->sockets = openat(lender->proc, "self/net/sockstat", O_RDONLY | O_CLOEXEC);
        made = lent->network >= 0 && lent->sockets >= 0 && counts_sockets(lent->sockets);
        go_home(lender);
        if (!made)
                give_up(lent);
        return made;
}

/* One that is free; NULL when all are in use. */
static struct lent *find(struct lender *lender)
{
        struct pollfd fds[LENT_MAX];

        for (size_t i = 0; i < LENT_MAX; i++)
                fds[i] = (struct pollfd){ .fd = lender->lent[i].init, .events = POLLIN };
        if (poll(fds, LENT_MAX, 0) < 0)
                return NULL;
        for (size_t i = 0; i < LENT_MAX; i++) {
                struct lent *lent = &lender->lent[i];

                if (lent->network >= 0 && lent->init < 0)
                        return lent;
                if (fds[i].revents && is_clean(lent, atomic_load(&lender->used[i])))
                        return lent;
        }
        return NULL;
}

/* ---- The mould's part ---- */

static bool open_home(struct lender *lender)
{
        lender->home = openat(lender->proc, "self/ns/net", O_RDONLY | O_CLOEXEC);
        return lender->home >= 0;
}

bool lender_is_wanted(const cbx_policy *policy)
{
        const enum fence needed[] = { FENCE_NET, FENCE_ROOT, FENCE_PID, FENCE_SYSCALLS,
                                      FENCE_DESCRIPTORS };

        for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
                if (!box_fence(needed[i]))
                        return false;
        return policy->network == POLICY_NETWORK_NONE && !plan_is_caged(policy);
}

void lender_open(struct lender *lender, int proc)
{
        *lender = (struct lender){ .proc = proc, .home = -1 };
        for (size_t i = 0; i < LENT_MAX; i++)
                lender->lent[i] = (struct lent){ -1, -1, -1, 0 };
        lender->used = mmap(NULL, LENT_MAX * sizeof(*lender->used), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        lender->able = lender->used != MAP_FAILED;
}

void lender_refill(struct lender *lender)
{
        struct lent *empty = NULL;

        for (size_t i = 0; i < LENT_MAX && !empty; i++)
                if (lender->lent[i].network < 0)
                        empty = &lender->lent[i];
        if (!lender->able || !lender->wanted || !empty)
                return;
        lender->wanted = false;
        lender->able = (lender->home >= 0 || open_home(lender)) && make(lender, empty);
}

_Atomic bool *lender_enter(struct lender *lender)
{
        struct lent *lent = lender->home >= 0 ? find(lender) : NULL;

        lender->wanted = !lent;
        if (!lent)
                return NULL;
        if (setns(lent->network, CLONE_NEWNET) < 0) {
                give_up(lent);
                return NULL;
        }
        lender->entered = lent;
        atomic_store(&lender->used[lent - lender->lent], false);
        return &lender->used[lent - lender->lent];
}

void lender_leave(struct lender *lender, pid_t init)
{
        struct lent *lent = TAKE_PTR(lender->entered);

        if (!lent)
                return;
        go_home(lender);
        base_close(lent->init);
        lent->looks = 0;
        /* Not a copy of the box's own descriptor: what the warden closes has to be closed for good.
         * Should this be another process, that has the pid after init, the wait is only longer. */
        lent->init = init < 0 ? -1 : (int)syscall(SYS_pidfd_open, init, 0);
        if (lent->init < 0)
                give_up(lent);
}
