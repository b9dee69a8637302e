/* SPDX-License-Identifier: MIT */
/* Nursery and makers: the processes between a warden and its boxes. */
#include "warden/maker.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "box/descriptor.h"
#include "box/lend.h"
#include "box/scratch.h"
#include "warden/birth.h"
#include "warden/fork_plan.h"
#include "warden/mould.h"

/* ---- A maker ---- */

struct maker {
        int socket;
        int warden; /* pidfd */
        cbx_policy *policy;
        struct plan_options options;
        struct plan *plan;
        int mould;  /* its socket; -1: none yet */
        int mounts; /* tells when the host's mounts change; -1: nothing does, and there is no mould
                     */
        bool begun;
        bool done;
};

static void pack_plan(struct pack *pack, const struct plan *plan)
{
        _cleanup_pack_ struct pack forks = PACK_INIT;

        pack_number(pack, 0);
        pack_number(pack, plan->caged);
        pack_number(pack, plan->unboxed);
        pack_number(pack, plan->privileged);
        pack_number(pack, plan->host_uid);
        pack_number(pack, plan->host_gid);
        pack_number(pack, (uint64_t)plan->landlock_abi);
        pack_number(pack, plan->remote);
        pack_number(pack, plan->calls);
        pack_text(pack, plan->start_directory);
        pack_texts(pack, (const char *const *)plan->environment);
        pack_texts(pack, (const char *const *)plan->warnings);
        pack_number(pack, plan->n_guards);
        for (size_t i = 0; i < plan->n_guards; i++) {
                pack_text(pack, plan->guards[i].path);
                pack_text(pack, plan->guards[i].name);
        }
        pack_number(pack, plan->n_facts);
        for (size_t i = 0; i < plan->n_facts; i++) {
                pack_text(pack, plan->facts[i].path);
                pack_number(pack, plan->facts[i].device);
                pack_number(pack, plan->facts[i].inode);
                pack_number(pack, plan->facts[i].born);
                pack_number(pack, plan->facts[i].guarded);
        }
        if (plan->zygote_filter)
                fork_plan_pack(&forks, plan);
        pack->failed |= forks.failed;
        pack_bytes(pack, forks.buffer.data, forks.buffer.length);
        pack_number(pack, plan->loading_mark);
}

/* Compile the plan and tell the warden. Returns false when there is none. */
static bool make_plan(struct maker *maker)
{
        _cleanup_pack_ struct pack pack = PACK_INIT;
        cbx_error error = CBX_ERROR_INIT;

        maker->plan = plan_free(maker->plan);
        if (plan_compile(maker->policy, &maker->options, &error, &maker->plan) < 0)
                wire_pack_error(&pack, &error);
        else
                pack_plan(&pack, maker->plan);
        if (maker->plan && maker->plan->caged)
                scratch_sweep();
        return wire_send_packed(maker->socket, WIRE_PLAN, &pack, NULL, 0, 0) == 0 && maker->plan;
}

static bool refuse(struct maker *maker, const cbx_error *error)
{
        _cleanup_pack_ struct pack pack = PACK_INIT;

        wire_pack_error(&pack, error);
        return wire_send_packed(maker->socket, WIRE_BOX, &pack, NULL, 0, 0) == 0;
}

/* The first box is made directly: there may be no other, and somebody may wait for it. Others will
 * be forked from that of a zygote, which is not what a mould has; and what has lost its control
 * group on the way is refused here. */
static bool is_direct(const struct maker *maker, const struct wire_message *order)
{
        return !maker->begun || order->length > 0 || order->lost || maker->mounts < 0 ||
               !box_can_cast(maker->plan);
}

static int make_directly(struct maker *maker, const struct wire_message *order)
{
        struct birth birth = {
                .plan = maker->plan, .socket = maker->socket, .warden = maker->warden, .mould = -1
        };

        maker->begun = true;
        return birth_serve(&birth, order);
}

/* Have a box made, from a mould that shows the host as it is now. */
static void serve(struct maker *maker, const struct wire_message *order)
{
        cbx_error error = CBX_ERROR_INIT;
        int r;

        do {
                /* What a path led to when the plan was made may have been replaced since. */
                if (!plan_is_current(maker->plan)) {
                        maker->mould = base_close(maker->mould);
                        if (!make_plan(maker)) {
                                maker->done = true;
                                return;
                        }
                }
                if (is_direct(maker, order)) {
                        maker->done = make_directly(maker, order) < 0;
                        return;
                }
                if (maker->mould < 0 && mould_open(maker->plan, maker->socket, maker->warden,
                                                   &maker->mould, &error) < 0) {
                        maker->done = !refuse(maker, &error);
                        return;
                }
                r = mould_make(maker->mould, order);
                if (r < 0)
                        maker->mould = base_close(maker->mould);
        } while (r == -ESTALE);
        maker->done = r < 0;
}

/* Wait for a request. A mould holds on to the host's mounts as they were when it was built, so it
 * goes as soon as they change; the next box will need a new one. */
static bool await_request(struct maker *maker)
{
        struct pollfd fds[2] = { { .fd = maker->socket, .events = POLLIN },
                                 { .fd = maker->mounts, .events = POLLPRI } };

        do {
                if (poll(fds, ARRAY_SIZE(fds), -1) < 0 && errno != EINTR)
                        return false;
                if (fds[1].revents & POLLPRI)
                        maker->mould = base_close(maker->mould);
        } while (!fds[0].revents);
        return true;
}

/* What the policy points into stays with the nursery's message, to which nobody returns. */
static _Noreturn void maker_main(struct maker *maker, const struct wire_policy *policy)
{
        static struct wire_room room;
        cbx_error error = CBX_ERROR_INIT;

        (void)prctl(PR_SET_NAME, "callbox-maker");
        (void)sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){ 0 });
        maker->mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
        maker->options = (struct plan_options){ .unboxed = policy->unboxed,
                                                .explain = policy->explain,
                                                .directory = policy->directory,
                                                .environment = policy->environment,
                                                .zygote = policy->program.forks };
        maker->done = policy_from_text(policy->text, policy->length, &error, &maker->policy) < 0 ||
                      wire_take_pins(policy, maker->policy) < 0;
        if (!maker->done) {
                maker->options.lends = !policy->unboxed && lender_is_wanted(maker->policy);
                maker->done = !make_plan(maker);
        }
        while (!maker->done) {
                _cleanup_message_ struct wire_message message = WIRE_MESSAGE_INIT;

                maker->done =
                        !await_request(maker) ||
                        wire_receive(maker->socket, &room, WIRE_REQUEST_MAX, 0, &message) <= 0 ||
                        message.type != WIRE_MAKE;
                if (!maker->done)
                        serve(maker, &message);
        }
        _exit(0);
}

/* ---- The nursery ---- */

/* Children are not waited for: the kernel reaps them. */
static void let_kernel_reap(void)
{
        (void)signal(SIGCHLD, SIG_IGN);
}

/* There is no maker: say so in its place. */
static void tell_refusal(int socket, int code)
{
        _cleanup_pack_ struct pack pack = PACK_INIT;
        cbx_error error = CBX_ERROR_INIT;

        error_set(&error, -code, "", "cannot start a maker of boxes: %s", strerror(code));
        if (code == EAGAIN)
                error_hint(&error, "the caller's limit on processes is reached (ulimit -u)");
        wire_pack_error(&pack, &error);
        (void)wire_send_packed(socket, WIRE_PLAN, &pack, NULL, 0, MSG_DONTWAIT);
}

static _Noreturn void nursery_main(int socket, int warden, struct cgroup_parent *cgroup)
{
        static struct wire_room room;

        (void)prctl(PR_SET_NAME, "callbox-nursery");
        let_kernel_reap();
        for (;;) {
                _cleanup_message_ struct wire_message message = WIRE_MESSAGE_INIT;
                struct wire_policy policy;
                struct unpack unpack;
                pid_t pid;
                int r = wire_receive(socket, &room, WIRE_REQUEST_MAX, 0, &message);

                if (r == 0 || (r < 0 && r != -EMFILE && r != -ENOMEM))
                        break;
                unpack = (struct unpack)UNPACK_INIT(message.body, message.length);
                if (r < 0 || message.fds[0] < 0 || wire_unpack_policy(&unpack, &policy) < 0)
                        continue; /* whoever waits for this maker sees its socket end */
                pid = fork();
                if (pid == 0) {
                        struct maker maker = { .socket = message.fds[0],
                                               .warden = warden,
                                               .mould = -1 };

                        base_close(socket);
                        base_close(cgroup->fd);
                        maker_main(&maker, &policy);
                }
                if (pid < 0)
                        tell_refusal(message.fds[0], errno);
                wire_policy_free(&policy);
        }
        /* The warden may have been killed: its boxes are dying, and nobody else clears up. */
        cgroup->live = 0;
        cgroup->litter = cgroup->fd >= 0;
        cgroup_parent_close(cgroup);
        _exit(0);
}

int nursery_open(int warden, const struct cgroup_parent *cgroup, int *ret_socket)
{
        struct cgroup_parent parent = *cgroup;
        int pair[2];
        pid_t pid;

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        pid = fork();
        if (pid == 0) {
                int keep[] = { pair[1], warden, parent.fd };

                /* With the other end of its own socket it would never see it end. */
                if (descriptor_keep(3, keep, ARRAY_SIZE(keep)) < 0)
                        _exit(1);
                nursery_main(pair[1], warden, &parent);
        }
        base_close(pair[1]);
        if (pid < 0) {
                base_close(pair[0]);
                return -errno;
        }
        *ret_socket = pair[0];
        return 0;
}

int nursery_ask(int nursery, const struct wire_policy *policy, int socket)
{
        _cleanup_pack_ struct pack pack = PACK_INIT;

        wire_pack_policy(&pack, policy);
        return wire_send_packed(nursery, WIRE_POLICY, &pack, &socket, 1, MSG_DONTWAIT);
}

/* ---- The warden's side ---- */

static int unpack_error(struct unpack *unpack, cbx_error *error)
{
        wire_unpack_error(unpack, error);
        if (!unpack_is_whole(unpack) || error->code == 0)
                return error_set(error, -EPROTO, "", "a maker spoke in riddles");
        return error->code;
}

struct maker_plan *maker_plan_ref(struct maker_plan *plan)
{
        plan->refs++;
        return plan;
}

struct maker_plan *maker_plan_unref(struct maker_plan *plan)
{
        if (!plan || --plan->refs > 0)
                return NULL;
        free(plan->plan.environment);
        free(plan->plan.warnings);
        free(plan->plan.guards);
        free(plan->plan.facts);
        free(plan->body);
        cbx_policy_unref((cbx_policy *)plan->plan.policy);
        free(plan);
        return NULL;
}

static void maker_plan_unrefp(struct maker_plan **plan)
{
        *plan = maker_plan_unref(*plan);
}

/* The numbers are a maker's own, not a stranger's: what is checked is only that they are whole. */
static int unpack_plan(struct unpack *unpack, struct maker_plan *ret)
{
        struct plan *plan = &ret->plan;

        plan->caged = unpack_number(unpack);
        plan->unboxed = (enum plan_unboxed)unpack_number_below(unpack, PLAN_UNBOXED_MAX_);
        plan->privileged = unpack_number(unpack);
        plan->host_uid = (uid_t)unpack_number(unpack);
        plan->host_gid = (gid_t)unpack_number(unpack);
        plan->landlock_abi = (int)unpack_number(unpack);
        plan->remote = unpack_number(unpack);
        plan->calls = (unsigned)unpack_number(unpack);
        plan->start_directory = (char *)unpack_text(unpack);
        plan->environment = unpack_texts(unpack, SIZE_MAX - 1);
        plan->warnings = unpack_texts(unpack, SIZE_MAX - 1);
        for (char **warning = plan->warnings; warning && *warning; warning++)
                plan->n_warnings++;
        plan->n_guards = unpack_number_below(unpack, 65536);
        plan->guards = calloc(plan->n_guards + 1, sizeof(*plan->guards));
        for (size_t i = 0; plan->guards && i < plan->n_guards; i++) {
                plan->guards[i].path = (char *)unpack_text(unpack);
                plan->guards[i].name = unpack_text(unpack);
        }
        plan->n_facts = unpack_number_below(unpack, 65536);
        plan->facts = calloc(plan->n_facts + 1, sizeof(*plan->facts));
        for (size_t i = 0; plan->facts && i < plan->n_facts; i++) {
                plan->facts[i].path = (char *)unpack_text(unpack);
                plan->facts[i].device = unpack_number(unpack);
                plan->facts[i].inode = unpack_number(unpack);
                plan->facts[i].born = unpack_number(unpack);
                plan->facts[i].guarded = unpack_number(unpack);
        }
        ret->forks = unpack_bytes(unpack, &ret->forks_length);
        plan->loading_mark = unpack_number(unpack);
        plan->n_rlimits = plan_rlimits(&plan->policy->limits, plan->rlimits);
        if (!plan->guards || !plan->facts)
                return -ENOMEM;
        return unpack_is_whole(unpack) ? 0 : -EPROTO;
}

int maker_unpack_plan(struct wire_message *message, cbx_policy *policy, cbx_error *error,
                      struct maker_plan **ret)
{
        _cleanup_(maker_plan_unrefp) struct maker_plan *plan = calloc(1, sizeof(*plan));
        struct unpack unpack;
        uint64_t code;
        int r;

        if (!plan || !(plan->body = malloc(MAX(message->length, 1)))) {
                free(TAKE_PTR(plan));
                return error_oom(error);
        }
        plan->refs = 1;
        plan->plan.policy = cbx_policy_ref(policy);
        memcpy(plan->body, message->body, message->length);
        unpack = (struct unpack)UNPACK_INIT(plan->body, message->length);
        code = unpack_number(&unpack);
        if (code != 0) {
                unpack = (struct unpack)UNPACK_INIT(plan->body, message->length);
                return unpack_error(&unpack, error);
        }
        r = unpack_plan(&unpack, plan);
        if (r < 0)
                return error_set(error, r, "", "cannot take a plan from its maker: %s",
                                 strerror(-r));
        *ret = TAKE_PTR(plan);
        return 0;
}

int maker_unpack_box(struct wire_message *message, const struct plan *plan, struct box *box,
                     cbx_error *error)
{
        struct unpack unpack = UNPACK_INIT(message->body, message->length);

        if (message->lost)
                return error_set(error, -EMFILE, "", "the warden has no descriptors left");
        if (message->length > 0)
                return unpack_error(&unpack, error);
        *box = (struct box)BOX_INIT;
        box->plan = plan;
        box->page = mmap(NULL, sizeof(*box->page), PROT_READ | PROT_WRITE, MAP_SHARED,
                         message->fds[MAKER_PAGE], 0);
        box->pidfd = TAKE_FD(message->fds[MAKER_PIDFD]);
        box->control = TAKE_FD(message->fds[MAKER_CONTROL]);
        box->start = TAKE_FD(message->fds[MAKER_START]);
        if (box->page == MAP_FAILED) {
                box->page = NULL;
                return error_oom(error);
        }
        return 0;
}
