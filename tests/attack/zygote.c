/* SPDX-License-Identifier: MIT */
/*
 * A zygote that executes its arguments in each box that is forked from it: so every attack can be
 * made on such a box. It takes them off its own command line, by which the suite would take it for
 * the payload.
 *
 *     zygote @ATTACK [FENCE,...]     one that a forked process makes itself (payload_zygote.c),
 * with fences left out
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <callbox.h>

#include "box/fences.h"
#include "payload_zygote.h"

static int attack(const char *name, const char *without)
{
        if (without && box_fence_leave_out(without) < 0) {
                printf("UNTRIED there is no fence %s\n", without);
                return 3;
        }
        if (cbx_await_call(NULL) != 1) {
                puts("UNTRIED this box was not forked");
                return 3;
        }
        (void)poll(&(struct pollfd){ .events = POLLIN }, 1, -1); /* for its call */
        return zygote_attack(name);
}

int main(int argc, char **argv)
{
        char **program;

        if (argc > 1 && argv[1][0] == '@')
                return attack(argv[1] + 1, argc > 2 ? argv[2] : NULL);
        program = calloc((size_t)argc, sizeof(*program));
        for (int i = 1; program && i < argc; i++) {
                program[i - 1] = strdup(argv[i]);
                memset(argv[i], '-', strlen(argv[i]));
        }
        if (!program || argc < 2)
                return 1;
        if (cbx_await_call(NULL) != 1) { /* a box that was made by itself would prove nothing */
                puts("UNTRIED this box was not forked");
                return 1;
        }
        (void)poll(&(struct pollfd){ .events = POLLIN }, 1, -1); /* for its call */
        execv(program[0], program);
        return 127;
}
