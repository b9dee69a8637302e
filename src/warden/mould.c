/* SPDX-License-Identifier: MIT */
#include "warden/mould.h"

#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "box/box.h"
#include "box/descriptor.h"
#include "warden/birth.h"

/* ---- The mould ---- */

/* Say what became of the mould itself. */
static int tell(int socket, const cbx_error *error)
{
        _cleanup_pack_ struct pack pack = PACK_INIT;

        wire_pack_error(&pack, error);
        return wire_send_packed(socket, WIRE_PLAN, &pack, NULL, 0, 0);
}

/* Returns a negative number when the mould is done. */
static int serve(struct birth *birth, int maker, const struct wire_message *order, bool first)
{
        int r;

        /* What was built a moment ago is not looked at: one box at least comes of each mould. */
        if (!first && !box_mould_is_whole(birth->plan))
                return wire_send(maker, WIRE_PLAN, NULL, 0, NULL, 0, 0);
        r = birth_serve(birth, order);
        return r < 0 ? r : wire_send(maker, WIRE_BOX, NULL, 0, NULL, 0, 0);
}

static _Noreturn void mould_main(struct birth *birth, int maker)
{
        static struct wire_room room;
        static struct lender lender;
        cbx_error error = CBX_ERROR_INIT;
        bool first = true;
        int r;

        (void)prctl(PR_SET_NAME, "callbox-mould");
        r = box_enter_mould(birth->plan, &birth->mould, &error);
        /* The plan's descriptors lead to the host. */
        if (r == 0)
                r = descriptor_keep(3, (int[]){ maker, birth->socket, birth->warden, birth->mould },
                                    4);
        if (r == 0 && birth->plan->lends) {
                lender_open(&lender, birth->mould);
                birth->lender = &lender;
        }
        if (tell(maker, &error) < 0)
                r = -EPIPE;
        while (r >= 0) {
                _cleanup_message_ struct wire_message order = WIRE_MESSAGE_INIT;

                r = wire_receive(maker, &room, WIRE_REQUEST_MAX, 0, &order);
                r = r > 0 ? serve(birth, maker, &order, first) : -EPIPE;
                first = false;
        }
        _exit(0);
}

/* ---- Its maker's side ---- */

/* What the mould says of itself once it stands, or not. */
static int await_mould(int mould, cbx_error *error)
{
        static struct wire_room room;
        _cleanup_message_ struct wire_message message = WIRE_MESSAGE_INIT;
        struct unpack unpack;

        if (wire_receive(mould, &room, WIRE_REQUEST_MAX, 0, &message) <= 0)
                return error_set(error, -EPIPE, "",
                                 "the mould of the boxes died while it was made");
        unpack = (struct unpack)UNPACK_INIT(message.body, message.length);
        wire_unpack_error(&unpack, error);
        if (!unpack_is_whole(&unpack))
                return error_set(error, -EPROTO, "", "the mould of the boxes spoke in riddles");
        return error->code;
}

int mould_open(const struct plan *plan, int answers, int warden, int *ret_mould, cbx_error *error)
{
        _cleanup_fd_ int ours = -1;
        int pair[2], r;
        pid_t pid;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return error_set(error, -errno, "", "cannot make a socket: %s", strerror(errno));
        ours = pair[0];
        pid = fork();
        if (pid == 0) {
                struct birth birth = {
                        .plan = plan, .socket = answers, .warden = warden, .mould = -1
                };

                base_close(TAKE_FD(ours));
                mould_main(&birth, pair[1]);
        }
        r = errno;
        base_close(pair[1]);
        if (pid < 0) {
                error_set(error, -r, "", "cannot start the mould of the boxes: %s", strerror(r));
                if (r == EAGAIN)
                        error_hint(error, "the caller's limit on processes is reached (ulimit -u)");
                return -r;
        }
        r = await_mould(ours, error);
        if (r == 0)
                *ret_mould = TAKE_FD(ours);
        return r;
}

int mould_make(int mould, const struct wire_message *order)
{
        static struct wire_room room;
        _cleanup_message_ struct wire_message answer = WIRE_MESSAGE_INIT;
        int cgroup = order->fds[0],
            r = wire_send(mould, WIRE_MAKE, NULL, 0, &cgroup, cgroup >= 0, 0);

        if (r == 0)
                r = wire_receive(mould, &room, WIRE_REQUEST_MAX, 0, &answer);
        if (r <= 0)
                return r < 0 ? r : -EPIPE;
        return answer.type == WIRE_BOX ? 0 : -ESTALE;
}
