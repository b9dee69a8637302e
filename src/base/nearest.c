/* SPDX-License-Identifier: MIT */
/* "Did you mean": how near one word is to another. */
#include <limits.h>
#include <string.h>

#include "base/base.h"

#define WORD_MAX 31 /* longer words are not compared */

/*
 * Edits (insert, drop, replace, swap neighbours) from one word to the other; WORD_FAR where one of
 * them is too long to bother.
 */
static int edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
        int d[WORD_MAX + 1][WORD_MAX + 1];

        if (a_length > WORD_MAX || b_length > WORD_MAX)
                return WORD_FAR;
        for (size_t i = 0; i <= a_length; i++)
                d[i][0] = (int)i;
        for (size_t j = 0; j <= b_length; j++)
                d[0][j] = (int)j;
        for (size_t i = 1; i <= a_length; i++)
                for (size_t j = 1; j <= b_length; j++) {
                        int replace = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

                        d[i][j] = MIN(MIN(d[i - 1][j], d[i][j - 1]) + 1, replace);
                        if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                                d[i][j] = MIN(d[i][j], d[i - 2][j - 2] + 1);
                }
        return d[a_length][b_length];
}

bool word_is_nearer(const char *given, const char *word, size_t length, int *best)
{
        int distance = edit_distance(given, strnlen(given, WORD_MAX + 1), word, length);

        if (distance >= *best || distance > (int)MAX(length, 3U) / 3)
                return false;
        *best = distance;
        return true;
}
