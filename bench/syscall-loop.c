/* SPDX-License-Identifier: MIT */
/* A program that does nothing but make system calls: what a filter costs shows here first. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
        long rounds = argc > 1 ? strtol(argv[1], NULL, 10) : 1000000;

        for (long i = 0; i < rounds; i++)
                if (syscall(SYS_getppid) < 0)
                        return 1;
        return 0;
}
