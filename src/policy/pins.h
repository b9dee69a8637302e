/* SPDX-License-Identifier: MIT */
/*
 * What the paths of a policy led to when it was first used. A box may write where another policy's
 * path lies, and put a link there; so a path is looked up once, with whatever links the host had on
 * it, and from then on what was found is opened by its canonical path, without links. Where it is
 * not what it was, that is an error.
 */
#ifndef POLICY_PINS_H
#define POLICY_PINS_H

#include "policy/policy.h"

void policy_pins_clear(struct policy_pins *pins);

/* Look up every path that was not found before. Paths that are not there are noted as such: when
 * they come to be, no link is followed. Fails for want of memory alone. */
int policy_pin(cbx_policy *policy, const char *directory);
/* The same, from the current directory. */
int policy_pin_here(cbx_policy *policy);

/* What is known of its paths, as seen from a directory: to be told to somebody else. To be freed
 * with policy_pin_list_free(). */
int policy_pin_list(cbx_policy *policy, const char *directory, struct policy_pin **ret_pins,
                    size_t *ret_n);
void policy_pin_list_free(struct policy_pin *pins, size_t n);
/* 0 when all is known, which then stays so; else a number that changes with what is known. */
uint64_t policy_pin_state(cbx_policy *policy, const char *directory);

/* Take over what somebody else has found; policy_pin() then looks up what he has not. */
int policy_pin_take(cbx_policy *policy, const struct policy_pin *given);

/* Take over all that another policy has found. */
int policy_pin_copy(cbx_policy *from, cbx_policy *to);

/* Open what a rule is about, O_PATH: as it was found before, or now. The copy that is returned has
 * to be cleared. -ESTALE comes with an error: it is not what it was. */
int policy_pin_open(const cbx_policy *policy, const char *directory, const struct policy_path *rule,
                    struct policy_pin *ret_pin, cbx_error *error);
void policy_pin_clear(struct policy_pin *pin);

/* The canonical path of a rule, or NULL when it was not looked up. To be freed. */
char *policy_pin_path(const cbx_policy *policy, const char *directory,
                      const struct policy_path *rule);

/* The links that were followed for a rule; NULL: none. To be freed. */
char **policy_pin_links(const cbx_policy *policy, const char *directory,
                        const struct policy_path *rule);

/* Open a path in which no component is a link. */
int policy_open_direct(const char *path, int flags);
int policy_make_direct(const char *path, int flags, mode_t mode); /* with O_CREAT */

/* The canonical path of what a path leads to. Where there is nothing, the part that is there is
 * followed and the rest added as it is. NULL: out of memory, or no such directory to start from. */
char *policy_canonical(const char *directory, const char *path);
/* The same, with the links that were followed, each by its canonical place; NULL where there were
 * none. Both are to be freed. */
int policy_follow(const char *directory, const char *path, char **ret_canonical, char ***ret_links);

/* When a file was made; 0 where its file system does not tell. */
struct statx;
uint64_t policy_birth(const struct statx *st);

#endif
