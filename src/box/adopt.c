/* SPDX-License-Identifier: MIT */
/* The warden's side of a box that a zygote has forked (fork.h): what comes from there is a
 * stranger's word. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "box/child.h"

/* In how many pid namespaces is it known, from the one of this process's /proc on? And is it the
 * first of the innermost? Returns 0 where it is gone, or no pidfd. */
static unsigned depth_of(int pidfd, bool *ret_init)
{
        _cleanup_free_ char *text = NULL;
        char path[64];
        const char *at;
        size_t length;
        long pid = -1;
        unsigned n = 0;

        snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
        if (file_read(AT_FDCWD, path, 4 * KIB, &text, &length) < 0)
                return 0;
        at = strstr(text, "\nNSpid:");
        if (!at)
                return 0;
        for (at += strlen("\nNSpid:"); *at == '\t'; n++)
                pid = strtol(at + 1, (char **)&at, 10);
        *ret_init = pid == 1;
        return pid > 0 ? n : 0;
}

int box_check_forked(int pidfd, int zygote)
{
        bool init = false, ignored;
        unsigned depth = depth_of(pidfd, &init), above = depth_of(zygote, &ignored);

        return above > 0 && depth == above + 1 && init ? 0 : -EPROTO;
}

int box_adopt(struct box *box, int pidfd)
{
        /* Anything may have come: this is one of a process, and this process may end it. */
        if (syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0) < 0)
                return -errno;
        box->pidfd = pidfd;
        box_signal_word(&box->page->init_placed);
        return 0;
}

#define TIMES_MAX (1ULL << 53) /* that something happened; and what JSON can tell exactly */
#define CPU_MAX (1ULL << 60)   /* nanoseconds: 36 years */
#define MEMORY_MAX (1ULL << 50)
#define PROCESSES_MAX (1ULL << 22) /* PID_MAX_LIMIT of the kernel */
#define ERRNO_MAX 4095
#define ABI_MAX 999

static bool is_text(const char *text, size_t room)
{
        return memchr(text, '\0', room) != NULL;
}

static bool is_errno(int number)
{
        return number >= 0 && number <= ERRNO_MAX;
}

static bool is_time(const struct timeval *time)
{
        return time->tv_sec >= 0 && (uint64_t)time->tv_sec < CPU_MAX / NSEC_PER_SEC &&
               time->tv_usec >= 0 && time->tv_usec < 1000 * 1000;
}

/* Has the program exited, or did a signal end it that there is? */
static bool is_end(int status)
{
        return (status & ~0xffff) == 0 &&
               (WIFEXITED(status) || (WIFSIGNALED(status) && WTERMSIG(status) < NSIG));
}

static bool are_refusals(const struct box_page *page)
{
        bool good = page->n_denials <= BOX_DENIALS_MAX && page->denials_lost <= TIMES_MAX &&
                    page->traces_lost <= TIMES_MAX;

        for (uint32_t i = 0; good && i < page->n_denials; i++)
                good = is_errno(page->denials[i].error) && page->denials[i].count <= TIMES_MAX;
        for (uint32_t i = 0; good && i < atomic_load(&page->n_traces); i++) {
                const struct box_trace *trace = &page->traces[i];

                good = (unsigned)trace->kind <= BOX_TRACE_PIPES && is_errno(trace->error) &&
                       trace->count <= TIMES_MAX && trace->text[0] &&
                       is_text(trace->text, sizeof(trace->text));
        }
        return good;
}

/* Is this something that an init of ours could have written? */
static bool makes_sense(const struct box_page *page)
{
        uint64_t now = time_now(), started = atomic_load(&page->started);
        const struct box_failure *failure = &page->failure;

        return is_text(failure->step, sizeof(failure->step)) &&
               is_text(failure->detail, sizeof(failure->detail)) && is_errno(failure->error) &&
               (!failure->step[0] || failure->error > 0) && !page->exec_failed &&
               (unsigned)page->verdict <= BOX_DENIED && is_end(page->status) && started <= now &&
               page->ended <= now && is_time(&page->usage.ru_utime) &&
               is_time(&page->usage.ru_stime) && page->usage.ru_maxrss >= 0 &&
               (uint64_t)page->usage.ru_maxrss <= MEMORY_MAX / KIB && page->cpu <= CPU_MAX &&
               page->memory_peak <= MEMORY_MAX && page->processes_peak <= PROCESSES_MAX &&
               page->landlock_abi >= 0 && page->landlock_abi <= ABI_MAX && are_refusals(page);
}

struct box_page *box_copy_page(const struct box *box, bool *ret_sense)
{
        size_t after = offsetof(struct box_page, n_traces);
        uint32_t n = MIN(atomic_load(&box->page->n_traces), BOX_TRACES_MAX);
        struct box_page *page = malloc(sizeof(*page)); /* little of which is ever touched */

        if (!page)
                return NULL;
        memcpy(page, box->page, offsetof(struct box_page, traces) + n * sizeof(page->traces[0]));
        memcpy((char *)page + after, (const char *)box->page + after,
               offsetof(struct box_page, spec) - after);
        atomic_store(&page->n_traces, n);
        *ret_sense = makes_sense(page);
        if (!*ret_sense)
                memset(page, 0, offsetof(struct box_page, spec));
        return page;
}
