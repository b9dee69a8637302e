/* SPDX-License-Identifier: MIT */
/*
 * The page: memory that the warden shares with a box's init and, until it executes the program,
 * with main. The program itself never sees it. Init and main write what came of the call, the
 * warden writes what is to be started; messages on sockets only say "look".
 */
#ifndef BOX_PAGE_H
#define BOX_PAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "policy/plan.h"

#define BOX_DENIALS_MAX 64
#define BOX_TRACES_MAX 128
#define BOX_TRACE_TEXT 240
#define BOX_TRACES_ALIKE                                                                           \
        8 /* of one directory or host; more are one trace that ends with a star                    \
           */
#define BOX_BLOCK_SIZE (1024 * 1024)

/* Why init ended the call by itself. The last one is the largest. */
enum box_verdict { BOX_OK, BOX_MEMORY, BOX_CPU, BOX_PIDS, BOX_DENIED };

/* A step of the set-up that failed; the step is empty where none has. */
struct box_failure {
        char step[48];
        int error;
        char detail[256];
};

/* A system call that was refused. */
struct box_denial {
        uint32_t arch;
        int number;
        int error;
        uint64_t count;
};

/* A path or address that was refused. */
enum box_trace_kind {
        BOX_TRACE_FILE,   /* not there, in a directory that is */
        BOX_TRACE_LOST,   /* not there, and neither is its directory */
        BOX_TRACE_CHANGE, /* not there, and was to be changed */
        BOX_TRACE_REMOVE, /* read-only or not there, and was to be removed */
        BOX_TRACE_WRITE,  /* read-only, or to be made where there is no directory */
        BOX_TRACE_MODE,   /* there, but its mode keeps the box's user out */
        BOX_TRACE_FULL,
        BOX_TRACE_CONNECT,
        BOX_TRACE_LOOPBACK,
        BOX_TRACE_BIND,
        BOX_TRACE_BIND_LOOPBACK,
        BOX_TRACE_PROTECTED,
        BOX_TRACE_MEMORY, /* shared memory beyond the limit; its text says what */
        BOX_TRACE_PIPES   /* the tree was ended for them; the last one */
};
struct box_trace {
        enum box_trace_kind kind;
        int error;
        uint64_t count;
        char text[BOX_TRACE_TEXT];
};

struct box_page {
        /* written by init and main */
        struct box_failure failure;
        bool exec_failed; /* everything was set up, but the program cannot be executed */
        _Atomic uint32_t init_placed, main_placed, ids_written; /* futexes */
        pid_t holder;             /* of main's memory (holder.c); 0: none */
        _Atomic uint64_t started; /* when the program was executed, 0 before; CLOCK_MONOTONIC */
        uint64_t ended;
        int status; /* of main, as from wait(2) */
        enum box_verdict verdict;
        struct rusage usage;     /* of all that ended, main included */
        uint64_t cpu;            /* nanoseconds, highest seen for the tree */
        uint64_t memory_peak;    /* bytes, whole tree, as sampled or of the largest process */
        uint64_t processes_peak; /* processes and threads without init */
        struct box_denial denials[BOX_DENIALS_MAX];
        uint32_t n_denials;
        uint64_t denials_lost; /* calls of further kinds, beyond the table */
        struct box_trace traces[BOX_TRACES_MAX];
        _Atomic uint32_t n_traces; /* processes that act for init add as well */
        uint64_t traces_lost;
        int landlock_abi;  /* what was really enforced */
        dev_t root_device; /* of the box's own root */
        char scratch[96];  /* its directory, where that is one of the host's (scratch.h) */
        struct box_page
                *self; /* where the box sees it: a maker maps it elsewhere than the warden */
        /* written by the warden before it says go; pointers are the box's */
        struct {
                uint64_t memory, processes;
                double cpu;
                struct plan_rlimit rlimits[PLAN_RLIMITS_MAX]; /* tighter than the plan's */
                size_t n_rlimits;
                bool tty, result;
                unsigned short rows, columns;
                char *directory;
                char **argv, **environment; /* into block */
        } spec;
        uint64_t mark; /* of init's own calls, where it has the filter of a zygote (own.h) */
        size_t block_used;
        char block[BOX_BLOCK_SIZE];
};

#endif
