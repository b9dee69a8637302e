/* SPDX-License-Identifier: MIT */
/* NULL-terminated lists of strings. They are short: each has its bounds. */
#include <string.h>

#include "base/base.h"

char **list_new(void)
{
        return calloc(1, sizeof(char *));
}

size_t list_length(char *const *list)
{
        size_t n = 0;

        while (list[n])
                n++;
        return n;
}

char **list_copy(const char *const *list)
{
        size_t n = list_length((char *const *)list);
        char **copy = calloc(n + 1, sizeof(char *));

        for (size_t i = 0; copy && i < n; i++)
                if (!(copy[i] = strdup(list[i]))) {
                        list_free(copy);
                        return NULL;
                }
        return copy;
}

int list_take(char ***list, char *text)
{
        size_t n = list_length(*list);
        char **longer;

        if (!text)
                return -ENOMEM;
        longer = reallocarray(*list, n + 2, sizeof(char *));
        if (!longer) {
                free(text);
                return -ENOMEM;
        }
        longer[n] = text;
        longer[n + 1] = NULL;
        *list = longer;
        return 0;
}

int list_add(char ***list, const char *text)
{
        return list_take(list, strdup(text));
}

static int compare(const void *a, const void *b)
{
        return strcmp(*(char *const *)a, *(char *const *)b);
}

void list_sort(char **list)
{
        size_t n = list_length(list), kept = 0;

        qsort(list, n, sizeof(char *), compare);
        for (size_t i = 0; i < n; i++)
                if (kept > 0 && strcmp(list[kept - 1], list[i]) == 0)
                        free(list[i]);
                else
                        list[kept++] = list[i];
        list[kept] = NULL;
}

void list_free(char **list)
{
        for (size_t i = 0; list && list[i]; i++)
                free(list[i]);
        free(list);
}
