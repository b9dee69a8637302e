/* SPDX-License-Identifier: MIT */
/*
 * A zygote that executes its arguments in each box that is forked from it: so every attack can be
 * made on such a box. It takes them off its own command line, by which the suite would take it for
 * the payload.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "box/fork.h"
#include "warden/forker.h"

int main(int argc, char **argv)
{
        static struct forker forker;
        const char *fd = getenv("CALLBOX_FORK_FD");
        char **program = calloc((size_t)argc, sizeof(*program));
        int r = 0;

        for (int i = 1; program && i < argc; i++) {
                program[i - 1] = strdup(argv[i]);
                memset(argv[i], '-', strlen(argv[i]));
        }
        if (!program || argc < 2)
                return 1;
        if (!fd) { /* a box that was made by itself would prove nothing */
                puts("UNTRIED this box was not forked");
                return 1;
        }
        r = forker_open(atoi(fd), &forker);
        while (r == 0)
                r = forker_serve(&forker);
        if (r != BOX_FORKED)
                return 1;
        (void)poll(&(struct pollfd){ .events = POLLIN }, 1, -1); /* for its call */
        unsetenv("CALLBOX_FORK_FD");
        execv(program[0], program);
        return 127;
}
