/* SPDX-License-Identifier: MIT */
/*
 * Many calls of every kind, 64 at once, from one poll loop; every report is compared with what was
 * to come of its call. After a part of them, and again at the end, what the warden holds is
 * measured: it must not have grown.
 *
 *     soak WORKER CALLS [SEED]
 *
 * Ends with 0 when everything was right. Figures and faults go to stdout.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "host.h"
#include "load.h"

#define AT_ONCE 64
#define SILENCE_MS 60000 /* without an end of any call: something hangs */
#define FAULTS_SHOWN 20

/* What may be more at the end than after the warm-up: noise, but not a piece per call. */
#define SLACK_KIB 4096 /* what 64 calls at once leave in the heap comes and goes */
#define SLACK_CLIENT_KIB 64
#define SLACK_DESCRIPTORS 12

struct soak {
        struct load load;
        cbx_warden *warden;
        struct load_call calls[AT_ONCE];
        unsigned running;
        unsigned long done, faults, kinds[LOAD_KINDS_];
        unsigned long long last_end;
};

static void fault(struct soak *soak, const char *why)
{
        if (soak->faults++ < FAULTS_SHOWN)
                printf("wrong: %s\n", why);
}

static void start(struct soak *soak, struct load_call *call)
{
        cbx_error error = CBX_ERROR_INIT;
        enum load_kind kind = load_choose(&soak->load);

        /* The largest first, all at once: later ones find the memory that these needed. */
        if (soak->load.number < 2UL * AT_ONCE)
                kind = soak->load.number % 2 ? LOAD_EVENTS : LOAD_ECHO;
        soak->kinds[kind]++;
        if (load_start(&soak->load, soak->warden, kind, call, &error) < 0) {
                fault(soak, error.text);
                call->call = NULL;
                soak->done++;
                return;
        }
        soak->running++;
}

static void step(struct soak *soak, struct load_call *call)
{
        char why[2048] = "";
        int r = load_step(call, why, sizeof(why));

        if (r == 0)
                return;
        if (r < 0 || !load_finish(call, 0, NULL, why, sizeof(why)))
                fault(soak, why);
        call->call = cbx_call_free(call->call);
        soak->running--;
        soak->done++;
        soak->last_end = load_now();
}

/* Wait for an event of one of those that want to hear of it, or until something is due. */
static void wait_for_any(struct soak *soak)
{
        struct pollfd fds[AT_ONCE];
        unsigned long long now = load_now(), next = now + 1000;
        nfds_t n = 0;

        for (int i = 0; i < AT_ONCE; i++) {
                const struct load_call *call = &soak->calls[i];

                if (!call->call)
                        continue;
                if (call->act_at && call->act_at < next)
                        next = call->act_at;
                if (call->look_at > now)
                        next = call->look_at < next ? call->look_at : next;
                else
                        fds[n++] =
                                (struct pollfd){ .fd = cbx_call_fd(call->call), .events = POLLIN };
        }
        (void)poll(fds, n, next > now ? (int)(next - now) : 0);
}

/* Returns false when nothing moves any more. */
static bool run(struct soak *soak, unsigned long calls)
{
        unsigned long started = 0;

        soak->last_end = load_now();
        while (soak->running > 0 || started < calls) {
                for (int i = 0; i < AT_ONCE && started < calls; i++)
                        if (!soak->calls[i].call) {
                                start(soak, &soak->calls[i]);
                                started++;
                        }
                wait_for_any(soak);
                for (int i = 0; i < AT_ONCE; i++)
                        if (soak->calls[i].call)
                                step(soak, &soak->calls[i]);
                if (load_now() - soak->last_end > SILENCE_MS) {
                        for (int i = 0; i < AT_ONCE; i++)
                                if (soak->calls[i].call)
                                        printf("hangs: %s, kind %s\n", soak->calls[i].id,
                                               load_kind_names[soak->calls[i].kind]);
                        return false;
                }
        }
        return true;
}

static void compare(struct soak *soak, const char *what, long before, long after, long slack)
{
        char why[200];

        printf("%-28s %8ld %8ld\n", what, before, after);
        if (after <= before + slack)
                return;
        snprintf(why, sizeof(why), "%s grew from %ld to %ld", what, before, after);
        fault(soak, why);
}

static void compare_all(struct soak *soak, const struct host_use *before,
                        const struct host_use *after)
{
        printf("%-28s %8s %8s\n", "", "before", "after");
        compare(soak, "memory of the warden, KiB", before->warden_kib, after->warden_kib,
                SLACK_KIB);
        compare(soak, "of nursery and makers, KiB", before->others_kib, after->others_kib,
                SLACK_KIB);
        compare(soak, "of this client, KiB", before->client_kib, after->client_kib,
                SLACK_CLIENT_KIB);
        compare(soak, "descriptors of the warden", before->descriptors, after->descriptors,
                SLACK_DESCRIPTORS);
        compare(soak, "of this client", before->own, after->own, 0);
        compare(soak, "boxes that wait", before->boxes, after->boxes, LOAD_POLICIES * 16);
        compare(soak, "zombies", before->zombies, after->zombies, 0);
        compare(soak, "mounts", before->mounts, after->mounts, 0);
        compare(soak, "control groups", before->cgroups, after->cgroups, 0);
}

static void soak_calls(struct soak *soak, unsigned long calls)
{
        unsigned long warm_up = calls / 4 > 10000 ? 10000 : calls / 4;
        struct host_use before, after;
        unsigned long long began;
        int pid = cbx_warden_pid(soak->warden);
        double seconds;

        if (!run(soak, warm_up))
                fault(soak, "calls of the warm-up hang");
        else if (!host_measure(pid, &before))
                fault(soak, "the warden does not come to rest after the warm-up");
        if (soak->faults > 0)
                return;
        began = load_now();
        if (!run(soak, calls - warm_up)) {
                fault(soak, "calls hang");
                return;
        }
        seconds = (double)(load_now() - began) / 1000.0;
        if (!host_measure(pid, &after))
                fault(soak, "the warden does not come to rest at the end");
        if (cbx_warden_pid(soak->warden) != pid)
                fault(soak, "the warden is another one");
        printf("%lu calls, %d at once: %.0f in a second\n", soak->done, AT_ONCE,
               (double)(calls - warm_up) / (seconds > 0 ? seconds : 1));
        for (int i = 0; i < LOAD_KINDS_; i++)
                if (soak->kinds[i])
                        printf("%s %lu%s", load_kind_names[i], soak->kinds[i],
                               i == LOAD_PIDS ? "\n" : ", ");
        compare_all(soak, &before, &after);
}

int main(int argc, char **argv)
{
        static struct soak soak;
        cbx_error error = CBX_ERROR_INIT;
        unsigned long calls = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;

        setvbuf(stdout, NULL, _IOLBF, 0);
        if (argc < 3 || argc > 4 || calls == 0) {
                fputs("usage: soak WORKER CALLS [SEED]\n", stderr);
                return 2;
        }
        /* What the warden leaves behind becomes this process's own, and is seen. */
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        if (load_open(&soak.load, argv[1], argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 1,
                      &error) < 0 ||
            cbx_warden_open(NULL, &soak.warden, &error) < 0) {
                printf("cannot begin: %s\n", error.text);
                return 1;
        }
        soak_calls(&soak, calls);
        for (int i = 0; i < AT_ONCE; i++)
                cbx_call_free(soak.calls[i].call);
        cbx_warden_close(soak.warden);
        load_close(&soak.load);
        if (host_reap(20, true) > 0)
                fault(&soak, "processes are left");
        printf("%lu wrong\n", soak.faults);
        return soak.faults > 0;
}
