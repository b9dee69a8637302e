/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>

#include "serve/http_parts.h"
#include "serve/record.h"

/* -1: not known. */
static long resident_bytes(void)
{
        _cleanup_free_ char *text = NULL;
        unsigned long pages, resident;
        size_t length;

        if (file_read(AT_FDCWD, "/proc/self/statm", 4096, &text, &length) < 0 ||
            sscanf(text, "%lu %lu", &pages, &resident) != 2)
                return -1;
        return (long)resident * sysconf(_SC_PAGESIZE);
}

static long open_descriptors(void)
{
        DIR *directory = opendir("/proc/self/fd");
        long n = -3; /* ".", ".." and its own */

        while (directory && readdir(directory))
                n++;
        if (directory)
                closedir(directory);
        return MAX(n, -1);
}

static int write_statuses(const struct serve_http *http, struct buffer *text)
{
        int r = buffer_printf(text, "# HELP callbox_http_requests_total Answers, by status.\n"
                                    "# TYPE callbox_http_requests_total counter\n");

        for (int status = 0; r == 0 && status < HTTP_STATUSES; status++)
                if (http->statuses[status])
                        r = buffer_printf(text, "callbox_http_requests_total{code=\"%d\"} %llu\n",
                                          status, (unsigned long long)http->statuses[status]);
        return r;
}

int http_write_metrics(const struct serve_http *http, struct buffer *text)
{
        struct serve_numbers numbers;
        int r = record_write(http->record, text);

        serve_count(http->serve, &numbers);
        const struct {
                const char *name, *type, *help;
                long long value;
        } rows[] = {
                { "callbox_calls_running", "gauge", "Calls that run now.",
                  (long long)numbers.calls },
                { "callbox_requests_open", "gauge", "Requests without an answer so far.",
                  (long long)numbers.requests },
                { "callbox_tasks", "gauge", "Tasks that are kept.", (long long)numbers.tasks },
                { "callbox_http_sessions", "gauge", "Sessions of the older era.",
                  http->n_sessions },
                { "callbox_http_connections", "gauge", "Connections that are open.",
                  http->n_connections },
                { "callbox_http_connections_total", "counter", "Connections that were opened.",
                  (long long)http->accepted },
                { "callbox_http_connections_evicted_total", "counter",
                  "Connections that had to make room for others.", (long long)http->evicted },
                { "process_resident_memory_bytes", "gauge", "Memory of the server itself.",
                  resident_bytes() },
                { "process_open_fds", "gauge", "Descriptors of the server itself.",
                  open_descriptors() },
        };

        for (size_t i = 0; r == 0 && i < ARRAY_SIZE(rows); i++)
                if (rows[i].value >= 0)
                        r = buffer_printf(text, "# HELP %s %s\n# TYPE %s %s\n%s %lld\n",
                                          rows[i].name, rows[i].help, rows[i].name, rows[i].type,
                                          rows[i].name, rows[i].value);
        return r == 0 ? write_statuses(http, text) : r;
}
