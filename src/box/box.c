/* SPDX-License-Identifier: MIT */
/* The warden's side of a box: open it, let it go, end it. */
#include "box/box.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "box/descriptor.h"
#include "box/scratch.h"

int box_open(struct box *box, const struct plan *plan, int page, struct box_ends *ends,
             cbx_error *error)
{
        int flags = MAP_SHARED | (page < 0 ? MAP_ANONYMOUS : 0), pair[2], r;

        box->plan = plan;
        box->page = mmap(NULL, sizeof(*box->page), PROT_READ | PROT_WRITE, flags, page, 0);
        if (box->page == MAP_FAILED) {
                box->page = NULL;
                return error_oom(error);
        }
        box->page->self = ends->page = box->page;
        if (plan->caged) {
                r = scratch_name(box->page->scratch, sizeof(box->page->scratch));
                if (r < 0) {
                        error_set(error, r, "tmp",
                                  "cannot make a directory for temporary files: %s", strerror(-r));
                        error_hint(error, "/tmp must be there and writable");
                        return r;
                }
        }
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return error_set(error, -errno, "", "cannot make a socket: %s", strerror(errno));
        box->control = pair[0];
        ends->control = pair[1];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return error_set(error, -errno, "", "cannot make a socket: %s", strerror(errno));
        box->start = pair[0];
        ends->start = pair[1];
        return 0;
}

int box_prepare(const struct plan *plan, int cgroup, struct box *box, cbx_error *error)
{
        struct box_ends ends = BOX_ENDS_INIT;
        int r;

        if (plan->caged)
                scratch_sweep();
        ends.cgroup = cgroup;
        ends.warden = (int)syscall(SYS_pidfd_open, getpid(), 0);
        if (ends.warden < 0)
                return error_set(error, -errno, "", "cannot watch this process: %s",
                                 strerror(errno));
        r = box_open(box, plan, -1, &ends, error);
        if (r == 0)
                r = box_make(plan, &ends, &box->pid, &box->pidfd, error);
        if (r < 0 && plan->caged) /* there is no keeper to remove what was made for it */
                scratch_sweep();
        base_close(ends.control);
        base_close(ends.start);
        base_close(ends.warden);
        return r;
}

/* ---- Starting the program ---- */

static char *block_add(struct box_page *page, const void *data, size_t length, size_t align)
{
        size_t at = (page->block_used + align - 1) & ~(align - 1);
        char *place;

        if (at > sizeof(page->block) || length > sizeof(page->block) - at)
                return NULL;
        place = page->block + at;
        if (data)
                memcpy(place, data, length);
        page->block_used = at + length;
        return place;
}

/* What the box will see at this place of the page. */
static void *in_box(const struct box_page *page, const void *place)
{
        return (char *)page->self + ((const char *)place - (const char *)page);
}

static int block_add_strings(struct box_page *page, char **array, size_t *n, char *const *strings)
{
        for (; strings && *strings; strings++) {
                char *copy = block_add(page, *strings, strlen(*strings) + 1, 1);

                if (!copy)
                        return -E2BIG;
                array[(*n)++] = in_box(page, copy);
        }
        array[*n] = NULL;
        return 0;
}

static size_t count_strings(char *const *strings)
{
        size_t n = 0;

        while (strings && strings[n])
                n++;
        return n;
}

static bool named_in(const char *variable, char *const *environment)
{
        size_t n = strcspn(variable, "=");

        for (; environment && *environment; environment++)
                if (strncmp(*environment, variable, n) == 0 && (*environment)[n] == '=')
                        return true;
        return false;
}

/* The plan's variables, those of the call, and what callbox has to say; later ones replace. */
static int fill_environment(struct box *box, const struct box_spec *spec, char **array)
{
        char *const *plan = box->plan->environment, *const *call = spec->environment;
        char *ours[] = { spec->zygote   ? (char *)"CALLBOX_FORK_FD=3"
                         : spec->result ? (char *)"CALLBOX_RESULT_FD=3"
                                        : NULL,
                         NULL };
        char home[sizeof(box->page->scratch) + 8], tmpdir[sizeof(home) + 8];
        char *of_box[] = { home, tmpdir, NULL };
        size_t n = 0;
        int r = 0;

        if (box->plan->caged) {
                snprintf(home, sizeof(home), "HOME=%s", box->page->scratch);
                snprintf(tmpdir, sizeof(tmpdir), "TMPDIR=%s", box->page->scratch);
        }
        for (char **own = of_box; r == 0 && box->plan->caged && *own; own++)
                if (!named_in(*own, plan) && !named_in(*own, call))
                        r = block_add_strings(box->page, array, &n, (char *[]){ *own, NULL });
        for (; r == 0 && plan && *plan; plan++)
                if (!named_in(*plan, spec->environment) && !named_in(*plan, ours))
                        r = block_add_strings(box->page, array, &n, (char *[]){ *plan, NULL });
        for (; r == 0 && call && *call; call++)
                if (!named_in(*call, ours))
                        r = block_add_strings(box->page, array, &n, (char *[]){ *call, NULL });
        return r == 0 ? block_add_strings(box->page, array, &n, ours) : r;
}

/* Lay out argv and the environment in the page, where main finds them ready to use. */
static int fill_block(struct box *box, const struct box_spec *spec)
{
        struct box_page *page = box->page;
        size_t n = 0, n_variables = count_strings(box->plan->environment) +
                                    count_strings(spec->environment) + 3;
        const char *directory = spec->directory ? spec->directory : box->plan->start_directory;
        char **argv, **environment, *place;
        int r;

        if (!*directory) /* of no place that a policy names */
                directory = page->scratch;
        page->block_used = 0;
        /* Before them is room for the name of a shell (main.c). */
        argv = (char **)block_add(page, NULL, (count_strings(spec->argv) + 2) * sizeof(char *),
                                  sizeof(char *));
        environment =
                (char **)block_add(page, NULL, (n_variables + 1) * sizeof(char *), sizeof(char *));
        place = block_add(page, directory, strlen(directory) + 1, 1);
        if (!argv || !environment || !place)
                return -E2BIG;
        argv++;
        page->spec.argv = in_box(page, argv);
        page->spec.environment = in_box(page, environment);
        page->spec.directory = in_box(page, place);
        r = block_add_strings(page, argv, &n, spec->argv);
        return r == 0 ? fill_environment(box, spec, environment) : r;
}

/* The limits of a call that may use less than its plan allows. */
static void fill_rlimits(struct box *box, const struct box_spec *spec)
{
        struct box_page *page = box->page;
        struct plan_rlimit wanted[PLAN_RLIMITS_MAX];
        size_t n = plan_rlimits(&spec->limits, wanted);
        size_t filled = 0; /* counted here: others may write to the page */

        for (size_t i = 0; i < n; i++) {
                bool same = false;

                for (size_t j = 0; j < box->plan->n_rlimits; j++)
                        same |= box->plan->rlimits[j].resource == wanted[i].resource &&
                                box->plan->rlimits[j].value == wanted[i].value;
                if (!same)
                        page->spec.rlimits[filled++] = wanted[i];
        }
        page->spec.n_rlimits = filled;
}

int box_offer(struct box *box, const int fds[BOX_DESCRIPTORS - 1])
{
        return descriptor_send(box->start, BOX_OFFER, fds, BOX_DESCRIPTORS - 1);
}

int box_start(struct box *box, const struct box_spec *spec, const int fds[BOX_DESCRIPTORS],
              cbx_error *error)
{
        struct box_page *page = box->page;
        unsigned n_fds = spec->tty || !fds                ? 0
                         : (spec->result || spec->zygote) ? BOX_DESCRIPTORS
                                                          : BOX_DESCRIPTORS - 1;
        int r;

        r = fill_block(box, spec);
        if (r < 0) {
                error_set(error, r, "argv", "the arguments and the environment are too long");
                error_hint(error,
                           "together they may take %d KiB; pass long input on stdin or in a "
                           "file",
                           BOX_BLOCK_SIZE / 1024);
                return r;
        }
        fill_rlimits(box, spec);
        page->spec.memory = spec->limits.memory;
        page->spec.processes = spec->limits.processes;
        page->spec.cpu = spec->limits.cpu;
        page->spec.tty = spec->tty;
        page->spec.result = spec->result || spec->zygote;
        page->spec.rows = spec->rows;
        page->spec.columns = spec->columns;
        r = descriptor_send(box->start, fds ? BOX_GO : BOX_GO_OFFERED, fds, n_fds);
        /* A box that failed meanwhile says so on its control socket. */
        if (r == 0 || r == -EPIPE || r == -ECONNRESET)
                return 0;
        return error_set(error, r, "", "cannot hand over the call: %s", strerror(-r));
}

void box_touch(struct box *box)
{
        struct box_page *page = box->page;

        (void)*(volatile int *)&page->status;
        *(volatile size_t *)&page->block_used = 0;
        *(volatile char *)page->block = 0;
}

void box_watch(struct box *box)
{
        if (box->control >= 0)
                (void)!send(box->control, (char[]){ BOX_WATCH, 0 }, 2, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void box_loaded(struct box *box)
{
        if (box->control >= 0)
                (void)!send(box->control, (char[]){ BOX_LOADED, 0 }, 2,
                            MSG_NOSIGNAL | MSG_DONTWAIT);
}

void box_settle(struct box *box)
{
        if (box->control >= 0)
                (void)!send(box->control, (char[]){ BOX_SETTLE, 0 }, 2,
                            MSG_NOSIGNAL | MSG_DONTWAIT);
}

int box_receive_terminal(const struct box *box)
{
        char byte;
        int fd, r = descriptor_receive(box->start, &fd, 1, &byte);

        if (r <= 0)
                return r < 0 ? r : -EPIPE;
        return fd < 0 ? -EPROTO : fd;
}

void box_signal(struct box *box, int signal)
{
        if (box->control >= 0)
                (void)!send(box->control, (char[]){ BOX_SIGNAL, (char)signal }, 2,
                            MSG_NOSIGNAL | MSG_DONTWAIT);
}

void box_kill(struct box *box)
{
        /* Without namespaces it is the keeper, who has to end what is below it first (keep.c). */
        int signal = box->plan && box->plan->caged ? SIGTERM : SIGKILL;

        /* By pid where that fails: a child is not reaped before box_free, so it is still init's
         * own. A box that a maker made is not this process's child. */
        if (box->pidfd >= 0 && syscall(SYS_pidfd_send_signal, box->pidfd, signal, NULL, 0) < 0 &&
            box->pid > 0)
                (void)kill(box->pid, signal);
}

void box_free(struct box *box)
{
        siginfo_t info;

        if (box->pidfd >= 0 && box->pid > 0)
                while (waitid(P_PIDFD, (id_t)box->pidfd, &info, WEXITED) < 0 && errno == EINTR)
                        ;
        box->pidfd = base_close(box->pidfd);
        box->control = base_close(box->control);
        box->start = base_close(box->start);
        if (box->page)
                munmap(box->page, sizeof(*box->page));
        box->page = NULL;
        box->pid = -1;
}
