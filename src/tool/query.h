/* SPDX-License-Identifier: MIT */
#ifndef TOOL_QUERY_H
#define TOOL_QUERY_H

#include "base/base.h"

/* A text to be looked for. For one thread. */
struct query;

int query_new(const char *text, struct query **ret);
struct query *query_free(struct query *query);

/* Is it in this text, whatever the case? In NULL nothing is. */
bool query_finds(const struct query *query, const char *text);

#endif
