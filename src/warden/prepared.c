/* SPDX-License-Identifier: MIT */
#include "warden/prepared.h"

#include <fcntl.h>
#include <string.h>

#include "warden/input.h"

void prepared_give(const struct plan *plan, int fd)
{
        if (plan->privileged)
                (void)!fchown(fd, plan->host_uid, plan->host_gid);
}

int prepared_open_streams(struct prepared *prepared, const struct plan *plan, bool result)
{
        for (int i = 0; i < (result ? STREAMS : STREAM_RESULT); i++) {
                int *pipe = prepared->output[i];

                if (pipe[0] >= 0 || pipe[1] >= 0)
                        continue;
                if (pipe2(pipe, O_CLOEXEC) < 0 || fcntl(pipe[0], F_SETFL, O_NONBLOCK) < 0)
                        return -errno;
                prepared_give(plan, pipe[1]);
        }
        if (prepared->nothing < 0)
                prepared->nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
        return prepared->nothing < 0 ? -errno : 0;
}

void prepared_offer(struct prepared *prepared)
{
        const int fds[] = { prepared->nothing, prepared->output[STREAM_OUTPUT][1],
                            prepared->output[STREAM_ERRORS][1] };

        if (!prepared->offered)
                prepared->offered = box_offer(&prepared->box, fds) == 0;
}

int prepared_start(struct prepared *prepared, const struct plan *plan, const struct box_spec *spec,
                   cbx_error *error)
{
        int r = prepared_open_streams(prepared, plan, spec->result);

        if (r == 0)
                r = input_make_pipe(prepared->input);
        if (r < 0)
                return error_set(error, r, "", "cannot make a pipe: %s", strerror(-r));
        prepared_give(plan, prepared->input[0]);
        r = box_start(&prepared->box, spec,
                      (int[]){ prepared->input[0], prepared->output[STREAM_OUTPUT][1],
                               prepared->output[STREAM_ERRORS][1],
                               prepared->output[STREAM_RESULT][1] },
                      error);
        prepared->running = r == 0;
        if (r == 0)
                box_settle(&prepared->box);
        return r;
}

void prepared_free(struct prepared *prepared)
{
        box_free(&prepared->box);
        cgroup_close(&prepared->cgroup);
        for (int i = 0; i < 2 * STREAMS; i++)
                base_close(prepared->output[i / 2][i % 2]);
        base_close(prepared->nothing);
        base_close(prepared->input[0]);
        base_close(prepared->input[1]);
        zygote_unref(prepared->zygote);
        *prepared = (struct prepared)PREPARED_INIT;
}
