/* SPDX-License-Identifier: MIT */
/*
 * Calls of every kind, in a mix that a seed stands for, and what is to come of each. Used by the
 * soak and by the fault tests, which have the same question: is every report there, once, and
 * right?
 */
#ifndef SOAK_LOAD_H
#define SOAK_LOAD_H

#include <callbox.h>
#include <stdbool.h>

#define LOAD_POLICIES 4

enum load_kind {
        LOAD_EXIT,    /* known output, known code */
        LOAD_ECHO,    /* a large stdin comes back */
        LOAD_EVENTS,  /* output as it comes, taken at leisure */
        LOAD_TIMEOUT, /* the wall limit ends it */
        LOAD_FLOOD,   /* the output limit ends it */
        LOAD_CRASH,   /* SIGSEGV or SIGABRT */
        LOAD_MEMORY,  /* the memory limit ends it */
        LOAD_LEAVE,   /* leaves a process that holds the pipes */
        LOAD_CANCEL,  /* cbx_kill, while it runs or before it does */
        LOAD_RACE,    /* cbx_kill when it may be over as well */
        LOAD_DROP,    /* cbx_call_free at some moment */
        LOAD_MISSING, /* there is no such program */
        LOAD_CPU,     /* the processor time limit ends it */
        LOAD_PIDS,    /* the limit on processes ends it */
        LOAD_NAP,     /* some milliseconds: what a fault test has under way */
        LOAD_KINDS_,
};

extern const char *const load_kind_names[LOAD_KINDS_];

struct load {
        const char *worker; /* its path */
        cbx_policy *policies[LOAD_POLICIES];
        unsigned long long random; /* state */
        unsigned long number;      /* of the next call */
};

struct load_call {
        enum load_kind kind;
        cbx_call *call; /* NULL: free */
        char id[32];
        unsigned seed;
        size_t out, err; /* lengths */
        int code, signal;
        unsigned long long began;   /* milliseconds */
        unsigned long long act_at;  /* when to kill or drop; 0: not */
        unsigned long long look_at; /* when to take the next event */
        size_t taken[2];            /* of events */
        char *input;
};

unsigned load_random(struct load *load, unsigned below);
unsigned long long load_now(void); /* milliseconds */

/* Policies that show the worker. Returns 0, or a negative errno with the error. */
int load_open(struct load *load, const char *worker, unsigned seed, cbx_error *error);
void load_close(struct load *load);

/* Start a call of a kind. Returns 0, or a negative errno with the error. */
int load_start(struct load *load, cbx_warden *warden, enum load_kind kind, struct load_call *call,
               cbx_error *error);
/* The mix of the soak. */
enum load_kind load_choose(struct load *load);

/* Do what is due: kill, drop, take an event. Returns 1 when the call is over (its report can be
 * taken, or it was dropped), 0 when not, or -1 with a reason why it went wrong. */
int load_step(struct load_call *call, char *why, size_t size);

/* Take the report and compare it with what was to come. Frees the call. Returns whether it is
 * right; otherwise `why` says what is wrong. A reason in `excused` (1 << reason) is right as well,
 * and told in `ret_excused`. */
bool load_finish(struct load_call *call, unsigned excused, bool *ret_excused, char *why,
                 size_t size);

#endif
