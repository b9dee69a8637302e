/* SPDX-License-Identifier: MIT */
#include "warden/forker.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "box/fork.h"
#include "warden/zygote.h"

/* Is one of the two letters' flags in a line of /proc/PID/smaps? */
static bool has_flag(const char *line, const char *flag)
{
        return memmem(line, strcspn(line, "\n"), flag, strlen(flag)) != NULL;
}

/* Memory that stays shared over a fork would be a way from one call to another, and to the zygote.
 * Is there none that can be written to, or made so? That is in what the kernel notes of each piece,
 * not in how it may be used just now. Where it notes nothing, nothing is known. */
static int check_memory(void)
{
        _cleanup_free_ char *maps = NULL;
        size_t length, pieces = 0, noted = 0;
        int r = file_read(AT_FDCWD, "/proc/self/smaps", 64 * MIB, &maps, &length);

        for (const char *line = r < 0 ? NULL : maps; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                pieces += strncmp(line, "Size:", strlen("Size:")) == 0;
                if (strncmp(line, "VmFlags:", strlen("VmFlags:")) != 0)
                        continue;
                noted++;
                if (has_flag(line, " sh") && has_flag(line, " mw"))
                        return -EBUSY;
        }
        return r == 0 && (noted == 0 || noted != pieces) ? -EBUSY : r;
}

int forker_open(int socket, struct forker *ret)
{
        _cleanup_message_ struct wire_message message = WIRE_MESSAGE_INIT;
        struct unpack unpack;
        int r;

        *ret = (struct forker){ .socket = socket };
        r = check_memory();
        if (r < 0)
                return r;
        r = wire_receive(socket, &ret->room, WIRE_REQUEST_MAX, 0, &message);
        if (r <= 0)
                return r < 0 ? r : -EPIPE;
        if (message.type != WIRE_PLAN)
                return -EPROTO;
        (void)signal(SIGCHLD, SIG_IGN); /* the kernel reaps for it */
        ret->body = malloc(MAX(message.length, 1));
        if (!ret->body)
                return -ENOMEM;
        memcpy(ret->body, message.body, message.length);
        unpack = (struct unpack)UNPACK_INIT(ret->body, message.length);
        r = fork_plan_unpack(&unpack, &ret->plan);
        return r < 0 ? r : wire_send(socket, WIRE_READY, NULL, 0, NULL, 0, 0);
}

#define SEND_TRIES 2000

/* Tell of a box. The kernel bounds what all boxes of a user have in flight: where that is too much
 * just now, it will be less. An end here would be the end of every call. */
static int tell(struct forker *forker, int r, int pidfd)
{
        uint64_t code = (uint64_t)-r;
        struct iovec body = { &code, sizeof(code) };
        struct timespec a_while = { .tv_nsec = 1000 * 1000 };

        for (unsigned i = 0; i < SEND_TRIES; i++) {
                int sent = wire_send(forker->socket, WIRE_BOX, &body, 1, &pidfd, r == 0, 0);

                if (sent != -ETOOMANYREFS && sent != -ENOBUFS && sent != -ENOMEM)
                        return sent;
                (void)nanosleep(&a_while, NULL);
        }
        if (r == 0) /* the warden would not know of it */
                (void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
        code = EAGAIN;
        return wire_send(forker->socket, WIRE_BOX, &body, 1, NULL, 0, 0);
}

static int fork_box(struct forker *forker, struct wire_message *message)
{
        struct box_ends ends = BOX_ENDS_INIT;
        _cleanup_fd_ int pidfd = -1;
        int r;

        ends.control = message->fds[ZYGOTE_CONTROL];
        ends.start = message->fds[ZYGOTE_START];
        ends.page = mmap(NULL, sizeof(*ends.page), PROT_READ | PROT_WRITE, MAP_SHARED,
                         message->fds[ZYGOTE_PAGE], 0);
        r = ends.page == MAP_FAILED ? -errno : 0;
        if (r == 0) {
                ends.page->self = ends.page;
                r = box_fork(&forker->plan.plan, &ends, forker->plan.trees, &pidfd);
                if (r == BOX_FORKED)
                        return r;
                munmap(ends.page, sizeof(*ends.page));
        }
        return tell(forker, r, pidfd);
}

int forker_serve(struct forker *forker)
{
        struct wire_message message = WIRE_MESSAGE_INIT;
        int r = wire_receive(forker->socket, &forker->room, 0, 0, &message);

        if (r <= 0)
                return r < 0 ? r : -EPIPE;
        forker->hurried = message.length > 0;
        r = message.type == WIRE_MAKE ? fork_box(forker, &message) : -EPROTO;
        if (r != BOX_FORKED) /* where they are closed already, and their numbers are others' */
                wire_message_free(&message);
        return r;
}

int forker_retire(struct forker *forker)
{
        return wire_send(forker->socket, WIRE_FORGET, NULL, 0, NULL, 0, 0);
}
