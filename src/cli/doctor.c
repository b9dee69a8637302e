/* SPDX-License-Identifier: MIT */
#include "cli/cli.h"
int cli_doctor(int argc, char **argv)
{
        (void)argc;
        (void)argv;
        return cli_fail("not yet");
}
