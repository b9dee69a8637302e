/* SPDX-License-Identifier: MIT */
/* For programs that are started once and forked for each call: their side of it. */
#include <string.h>

#include "box/fork.h"
#include "callbox.h"
#include "warden/forker.h"

int cbx_await_call(cbx_error *error)
{
        static struct forker forker;
        const char *fd = getenv("CALLBOX_FORK_FD");
        int r;

        if (!fd)
                return 0;
        r = forker_open(atoi(fd), &forker);
        if (r < 0)
                return error_set(error, r, "", "cannot get what boxes are made from: %s",
                                 strerror(-r));
        do
                r = forker_serve(&forker);
        while (r == 0);
        if (r < 0) /* whoever would want another is gone */
                _exit(0);
        (void)unsetenv("CALLBOX_FORK_FD");
        return 1;
}
