/* SPDX-License-Identifier: MIT */
/* What the files that make up the policy reader share; nothing else includes this. */
#ifndef POLICY_POLICY_PARTS_H
#define POLICY_POLICY_PARTS_H

#include "policy/json_read.h"
#include "policy/policy.h"

#define POLICY_VERSION 1
#define POLICY_TEXT_MAX MIB /* bytes of JSON */

/* Bounds on the lists of a policy. */
#define POLICY_PATHS_MAX 1024
#define POLICY_PROTECT_MAX 1024
#define POLICY_HOLD_MAX 4096
#define POLICY_VARIABLES_MAX 1024
#define POLICY_SYSCALLS_MAX 512 /* in each list */

/* One reader for each section (json_reader; `policy` is the cbx_policy). What depends on more than
 * one section, and all sorting, is left to policy_finish_*. */
json_reader policy_read_files, policy_read_environment, policy_read_limits;
int policy_finish_paths(cbx_policy *policy, cbx_error *error);
int policy_finish_variables(cbx_policy *policy, cbx_error *error);

void policy_path_clear(struct policy_path *path);
void policy_variable_clear(struct policy_variable *variable);

/* One size for a place that is not in the table of limits; at least 1 byte. */
int policy_read_size(json_t *value, const struct json_place *at, cbx_error *error,
                     uint64_t *ret_size);

void policy_limits_default(struct policy_limits *limits);
json_t *policy_limits_to_json(const struct policy_limits *limits);
json_t *policy_size_to_json(uint64_t size); /* "512M" where exact, else bytes */

/* The words for enums, in the order of their values (policy_words.c). */
extern const struct json_words policy_box_words, policy_network_words, policy_refusal_words,
        policy_guarantee_words;

#endif
