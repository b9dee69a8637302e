/* SPDX-License-Identifier: MIT */
/*
 * An agent of a given size that runs /bin/true in a box: agent MEGABYTES
 *
 * It grows to that many megabytes resident, says "ready", and then for each byte on stdin makes one
 * call and prints the nanoseconds that it took. bench/popen.py is the same in Python, without
 * callbox.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <callbox.h>

#define MEGABYTE 1000000UL

static long long now_ns(void)
{
        struct timespec ts;

        clock_gettime(CLOCK_MONOTONIC, &ts);
        return (long long)ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* Ordinary memory, all of it written to, as a process that has loaded much would have. */
static int grow(unsigned long megabytes)
{
        size_t length = megabytes * MEGABYTE;
        char *ballast =
                mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (ballast == MAP_FAILED)
                return -1;
        memset(ballast, 1, length);
        return 0;
}

static int fail(const char *what, const cbx_error *error)
{
        printf("%s: %s\n", what, error->text);
        return 1;
}

int main(int argc, char **argv)
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_warden *warden;
        cbx_policy *policy;
        char byte;

        setvbuf(stdout, NULL, _IOLBF, 0);
        if (argc != 2 || grow(strtoul(argv[1], NULL, 10)) < 0) {
                printf("no memory of that size\n");
                return 1;
        }
        if (cbx_warden_open(NULL, &warden, &error) < 0 ||
            cbx_policy_parse("{}", 2, &policy, &error) < 0 ||
            cbx_prepare(warden, policy, &error) < 0)
                return fail("cannot begin", &error);
        printf("ready\n");
        while (read(0, &byte, 1) == 1) {
                cbx_spec spec = CBX_SPEC_INIT;
                cbx_report report = CBX_REPORT_INIT;
                long long before, after;

                spec.argv = (const char *const[]){ "/bin/true", NULL };
                before = now_ns();
                if (cbx_run(warden, policy, &spec, &report, &error) < 0)
                        return fail("cannot call", &error);
                after = now_ns();
                if (report.reason != CBX_EXITED || report.code != 0)
                        return fail(report.text, &error);
                cbx_report_free(&report);
                printf("%lld\n", after - before);
        }
        cbx_policy_unref(policy);
        cbx_warden_close(warden);
        return 0;
}
