/* SPDX-License-Identifier: MIT */
/*
 * Paths of the host that stay as they are in whichever writable tree they lie: what is there is
 * mounted read-only, and the guard keeps the name and all names above it.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "policy/plan.h"

/* The canonical path of what is there, or would be: links are followed as far as there is
 * something, the rest is added as it is. */
static char *canonical(const char *path)
{
        _cleanup_free_ char *head = strdup(path);
        char *found, *whole = NULL;
        size_t length = head ? strlen(head) : 0;

        if (!head)
                return NULL;
        while (!(found = realpath(head, NULL)) && length > 1) {
                while (length > 1 && head[length - 1] != '/')
                        length--;
                while (length > 1 && head[length - 1] == '/')
                        length--;
                head[length] = '\0';
        }
        if (found && asprintf(&whole, "%s%s", strcmp(found, "/") == 0 ? "" : found,
                              path + (length == 1 ? 0 : length)) < 0)
                whole = NULL;
        free(found);
        return whole;
}

static int hold_at(struct plan *plan, const char *path, const char *target, const char *where)
{
        int r = plan_add_guard(plan, target, "");

        if (r < 0)
                return r;
        r = plan_add_tree(plan, AT_FDCWD, path, target, false, where);
        if (r == 0)
                plan->steps[plan->n_steps - 1].map = plan->privileged;
        return r == -ENOENT || r == -ENOTDIR ? plan_note(plan, path) : r;
}

int plan_hold(struct plan *plan, const char *path, const char *where, cbx_error *error)
{
        _cleanup_free_ char *real = canonical(path);
        size_t n_shown = plan->n_steps;
        char target[PATH_MAX];
        int r = 0;

        if (!real)
                return error_oom(error);
        for (size_t i = 0; r == 0 && i < n_shown; i++) {
                const struct plan_step *step = &plan->steps[i];
                const char *rest;

                if (step->kind != PLAN_TREE || !step->writable)
                        continue;
                rest = plan_below(real, step->source);
                if (!rest)
                        continue;
                snprintf(target, sizeof(target), "%s%s", step->target, rest);
                r = hold_at(plan, real, target, where);
        }
        return r < 0 ? error_set(error, r, where, "cannot hold %s: %s", path, strerror(-r)) : 0;
}
