/* SPDX-License-Identifier: MIT */
/* callbox-functions: runs a function of a shared object in a box (function_server.c). */
#include <stdio.h>

#include "callbox.h"

int main(int argc, char **argv)
{
        cbx_serve_functions(argc, argv);
        fputs("callbox-functions is started by boxes of callbox: see libcallbox-tools(3)\n",
              stderr);
        return 125;
}
