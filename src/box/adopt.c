/* SPDX-License-Identifier: MIT */
/* The warden's side of a box that a zygote has forked (fork.h): what comes from there is a
 * stranger's word. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

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

/* Whatever it was told, a report can be made of it. */
static void make_sense(struct box_page *page)
{
        uint64_t now = time_now();

        page->failure.step[sizeof(page->failure.step) - 1] = '\0';
        page->failure.detail[sizeof(page->failure.detail) - 1] = '\0';
        if (page->failure.error <= 0 || page->failure.error >= 4096)
                page->failure.error = EPROTO;
        page->exec_failed = false;
        if (page->verdict > BOX_DENIED)
                page->verdict = BOX_OK;
        page->ended = MIN(page->ended, now);
        if (atomic_load(&page->started) > now)
                atomic_store(&page->started, now);
        page->usage.ru_utime.tv_sec = MAX(page->usage.ru_utime.tv_sec, 0);
        page->usage.ru_stime.tv_sec = MAX(page->usage.ru_stime.tv_sec, 0);
        page->usage.ru_maxrss = MAX(page->usage.ru_maxrss, 0);
        for (uint32_t i = 0; i < page->n_traces; i++)
                page->traces[i].text[BOX_TRACE_TEXT - 1] = '\0';
}

struct box_page *box_copy_page(const struct box *box)
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
        make_sense(page);
        return page;
}
