/* SPDX-License-Identifier: MIT */
#ifndef ATTACK_PAYLOAD_ZYGOTE_H
#define ATTACK_PAYLOAD_ZYGOTE_H

/* Make an attack that needs the memory of a forked process; prints its verdict (payload.h) and
 * returns the exit code for it. */
int zygote_attack(const char *name);

#endif
