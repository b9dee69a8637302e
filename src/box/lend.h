/* SPDX-License-Identifier: MIT */
/*
 * Net namespaces that boxes without a network are lent, one after the other. Making one and taking
 * it down again takes the kernel a fifth of what a whole box takes, and an empty one is as good as
 * new.
 *
 *   - It belongs to the mould's user namespace, not to the box's: nobody in the box has a
 * capability over it, not even before the capabilities are dropped. Its loopback is down and stays
 * so.
 *   - It is lent again only when nothing can be left in it: its box's init is dead, and with it
 *     everything in the box; no socket is alive in it; and the box has neither made a socket that
 *     was not local nor connected or bound one at a path, which its init would have noted. Local
 *     sockets leave nothing behind. All others may, for a time or for ever: counters, flow labels,
 *     keys. By a path a file of /proc/net could be handed out, in which later boxes would be seen;
 *     the streams of a box are pipes and a terminal of its own, which carry no descriptors. What is
 *     not proven to be clean is given up, and the kernel takes it down.
 *   - It is lent to boxes of one policy alone.
 *
 * A box that is not lent one makes its own (network.c).
 */
#ifndef BOX_LEND_H
#define BOX_LEND_H

#include <stdbool.h>
#include <sys/types.h>

#include "policy/policy.h"

#define LENT_MAX 32

struct lent {
        int network; /* -1: there is none */
        int sockets; /* its count of them, in /proc */
        int init;    /* pidfd of the box that has it; -1: nobody has had it yet */
        unsigned looks;
};

struct lender {
        int proc; /* that shows this process */
        int home; /* the net namespace of this process; -1: not known yet */
        bool able;
        bool wanted; /* there was none for the last box */
        struct lent *entered;
        struct lent lent[LENT_MAX];
        _Atomic bool *used; /* one for each, shared with the boxes; noted by their inits */
};

/* May boxes of this policy be lent a network? */
bool lender_is_wanted(const cbx_policy *policy);

/* In a mould, whose boxes can then have no network but these or their own: run by a user it has
 * left the host's. `proc` is a /proc that shows it. */
void lender_open(struct lender *lender, int proc);

/* Make one more where there was none for the last box, which somebody may have waited for. Now is
 * the time for it. */
void lender_refill(struct lender *lender);

/* Enter a namespace that a box may have; a child that is cloned now is born in it. Returns where
 * its init has to note that something may be left in it; NULL: there is none to be had, and the box
 * makes its own. */
_Atomic bool *lender_enter(struct lender *lender);

/* Go home again, and remember whose the namespace is: the box with this init; -1 when it could not
 * be made. */
void lender_leave(struct lender *lender, pid_t init);

#endif
