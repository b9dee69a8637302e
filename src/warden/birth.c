/* SPDX-License-Identifier: MIT */
#include "warden/birth.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "box/box.h"
#include "warden/maker.h"

static int make_box(struct birth *birth, const struct wire_message *order, struct box *box,
                    int *ret_page, cbx_error *error)
{
        struct box_ends ends = BOX_ENDS_INIT;
        _cleanup_fd_ int page = memfd_create("callbox", MFD_CLOEXEC);
        pid_t pid;
        int r;

        if (page < 0 || ftruncate(page, sizeof(struct box_page)) < 0)
                return error_set(error, -errno, "", "cannot make the page of a box: %s",
                                 strerror(errno));
        ends.warden = birth->warden;
        ends.cgroup = order->fds[0];
        ends.mould = birth->mould;
        ends.unhurried = true;
        ends.zygote = order->length > 0 && birth->plan->zygote_filter;
        r = box_open(box, birth->plan, page, &ends, error);
        if (r == 0) {
                if (birth->lender)
                        ends.used = lender_enter(birth->lender);
                r = box_make(birth->plan, &ends, &pid, &box->pidfd, error);
                if (birth->lender)
                        lender_leave(birth->lender, r == 0 ? pid : -1);
        }
        base_close(ends.control);
        base_close(ends.start);
        *ret_page = TAKE_FD(page);
        return r;
}

int birth_serve(struct birth *birth, const struct wire_message *order)
{
        _cleanup_pack_ struct pack pack = PACK_INIT;
        cbx_error error = CBX_ERROR_INIT;
        struct box box = BOX_INIT;
        _cleanup_fd_ int page = -1;
        int r;

        if (order->lost) /* never outside the group that was made for it */
                r = error_set(&error, -EMFILE, "cgroup", "a maker has no descriptors left");
        else
                r = make_box(birth, order, &box, &page, &error);
        if (r < 0) {
                wire_pack_error(&pack, &error);
                r = wire_send_packed(birth->socket, WIRE_BOX, &pack, NULL, 0, 0);
                box_kill(&box);
        } else {
                r = wire_send(birth->socket, WIRE_BOX, NULL, 0,
                              (int[]){ [MAKER_PIDFD] = box.pidfd,
                                       [MAKER_CONTROL] = box.control,
                                       [MAKER_START] = box.start,
                                       [MAKER_PAGE] = page },
                              4, 0);
        }
        box_free(&box);
        if (r == 0 && birth->lender)
                lender_refill(birth->lender);
        return r;
}
