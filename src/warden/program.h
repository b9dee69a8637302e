/* SPDX-License-Identifier: MIT */
/*
 * The program of a warm box: one that was started before its call and waits for its input. What it
 * was started from may be replaced on the host meanwhile; then the box is of no use any more.
 */
#ifndef WARDEN_PROGRAM_H
#define WARDEN_PROGRAM_H

#include <time.h>

#include "warden/wire.h"

struct call_spec;

#define PROGRAM_FILES 4 /* arguments that are looked at */

/* The files that its arguments name by an absolute path, as the host has them: the program itself,
 * and a script that an interpreter was given. */
struct program_files {
        struct {
                dev_t device; /* 0: it is not looked at, or `inode` says why it cannot be */
                ino_t inode;
                off_t size;
                struct timespec changed, modified;
        } files[PROGRAM_FILES];
};

/* Look at them. Never waits for a file system that the policy does not show. */
void program_look(const struct wire_policy *asked, const cbx_policy *policy,
                  struct program_files *ret);
bool program_is_same(const struct program_files *a, const struct program_files *b);

/* Can a call use a box in which this program has been started with the policy's limits? */
bool program_suits(const struct wire_program *program, const cbx_policy *policy,
                   const struct call_spec *spec);

#endif
