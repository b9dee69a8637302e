/* SPDX-License-Identifier: MIT */
/*
 * Refused system calls. The filter lets allowed calls through by itself; all others arrive here.
 * They are counted and answered with an errno. A refused call is never told to continue.
 */
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "box/guard.h"
#include "box/init.h"
#include "policy/syscalls.h"

static void count(struct box_page *page, uint32_t arch, int number, int error)
{
        for (uint32_t i = 0; i < page->n_denials; i++) {
                struct box_denial *denial = &page->denials[i];

                if (denial->number == number && denial->arch == arch) {
                        denial->count++;
                        return;
                }
        }
        if (page->n_denials == BOX_DENIALS_MAX) {
                page->denials_lost++;
                return;
        }
        page->denials[page->n_denials++] =
                (struct box_denial){ .arch = arch, .number = number, .error = error, .count = 1 };
}

/* The directory or host that a text is of, with what separates it from the name or port. */
static size_t stem_of(enum box_trace_kind kind, const char *text)
{
        const char *end;

        if (kind == BOX_TRACE_FULL || kind == BOX_TRACE_FILE || kind >= BOX_TRACE_MEMORY ||
            kind == BOX_TRACE_MODE ||                      /* its directory is shown, in part */
            (kind == BOX_TRACE_CONNECT && text[0] == '/')) /* each is a service of its own */
                return 0;
        end = strrchr(text, text[0] == '/' ? '/' : ':');
        return end ? (size_t)(end + 1 - text) : 0;
}

/* Count one more, if there is such a trace. */
static bool count_trace(struct box_page *page, uint32_t n, enum box_trace_kind kind,
                        const char *text)
{
        for (uint32_t i = 0; i < n; i++) {
                struct box_trace *trace = &page->traces[i];

                if (trace->kind == kind && strncmp(trace->text, text, BOX_TRACE_TEXT - 1) == 0) {
                        trace->count++;
                        return true;
                }
        }
        return false;
}

void notify_trace(struct box_page *page, enum box_trace_kind kind, const char *text, int error)
{
        uint32_t n = MIN(atomic_load(&page->n_traces), BOX_TRACES_MAX);
        size_t stem = stem_of(kind, text);
        char many[BOX_TRACE_TEXT];
        /* A protected name is allowed by its own option, so it is worth more room. */
        unsigned alike = 0,
                 most = kind == BOX_TRACE_PROTECTED ? BOX_TRACES_MAX / 2 : BOX_TRACES_ALIKE;

        if (count_trace(page, n, kind, text))
                return;
        for (uint32_t i = 0; stem > 0 && i < n; i++)
                alike += page->traces[i].kind == kind && page->traces[i].error == error &&
                         strncmp(page->traces[i].text, text, stem) == 0 &&
                         stem_of(kind, page->traces[i].text) == stem;
        if (alike >= most && stem + 2 <= sizeof(many)) {
                text_copy(many, stem + 1, text);
                text_copy(many + stem, 2, "*");
                if (count_trace(page, n, kind, many))
                        return;
                text = many;
        }
        n = n < BOX_TRACES_MAX ? atomic_fetch_add(&page->n_traces, 1) : n;
        if (n >= BOX_TRACES_MAX) {
                page->traces_lost++;
                return;
        }
        page->traces[n].kind = kind;
        page->traces[n].error = error;
        page->traces[n].count = 1;
        text_copy(page->traces[n].text, BOX_TRACE_TEXT, text);
}

/* Does the policy deny this call by name? Then nobody makes it, not even init. What main does on
 * its way is spared by the list of calls that cannot be denied. */
static bool denied(const struct child *child, int number)
{
        for (size_t i = 0; i < child->plan->n_denied; i++)
                if (child->plan->denied[i] == number)
                        return true;
        return false;
}

/* As the kernel answers above what a user may have: programs try, and do without. */
static bool refuse_large_pipe(struct child *child, const struct seccomp_notif *call)
{
        if (call->data.arch != AUDIT_ARCH_X86_64 || call->data.nr != SYS_fcntl ||
            (uint32_t)call->data.args[1] != F_SETPIPE_SZ)
                return false;
        guard_answer(child, call, -EPERM);
        return true;
}

enum box_verdict notify_serve(struct child *child)
{
        union {
                struct seccomp_notif call;
                char room[256]; /* a newer kernel's struct may be longer */
        } in;
        union {
                struct seccomp_notif_resp answer;
                char room[256];
        } out;

        memset(&in, 0, sizeof(in));
        memset(&out, 0, sizeof(out));
        if (ioctl(child->notifier, SECCOMP_IOCTL_NOTIF_RECV, &in) < 0)
                return BOX_OK; /* the caller is dead */
        if (!denied(child, in.call.data.nr) &&
            (refuse_large_pipe(child, &in.call) || shared_serve(child, &in.call) ||
             guard_serve(child, &in.call)))
                return BOX_OK;

        out.answer.id = in.call.id;
        out.answer.error = -syscalls_errno(in.call.data.arch, in.call.data.nr,
                                           (const uint64_t *)in.call.data.args);
        /* What main does on its way to the program is not the program's doing. */
        if (atomic_load(&child->page->started) != 0) {
                count(child->page, in.call.data.arch, in.call.data.nr, -out.answer.error);
                if (child->plan->policy->refusal == POLICY_REFUSE_KILL)
                        return BOX_DENIED;
        }
        (void)ioctl(child->notifier, SECCOMP_IOCTL_NOTIF_SEND, &out);
        return BOX_OK;
}
