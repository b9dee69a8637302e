/* SPDX-License-Identifier: MIT */
/* One box is made, by a maker or its mould, and sent to the warden. */
#ifndef WARDEN_BIRTH_H
#define WARDEN_BIRTH_H

#include "box/lend.h"
#include "policy/plan.h"
#include "warden/wire.h"

struct birth {
        const struct plan *plan;
        int socket;            /* of the warden */
        int warden;            /* its pidfd: the box ends with it */
        int mould;             /* from box_enter_mould, in a mould; else -1 */
        struct lender *lender; /* in a mould that lends; else NULL */
};

/* Serve a WIRE_MAKE with a WIRE_BOX: a box, or the error that was met with. */
int birth_serve(struct birth *birth, const struct wire_message *order);

#endif
