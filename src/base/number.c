/* SPDX-License-Identifier: MIT */
/* Numbers as text, whatever the locale of the program. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

void number_write(double number, char room[NUMBER_ROOM])
{
        static const char plain[] = "+-0123456789einfa";
        char *point, *behind;

        /* Fifteen digits come back from every double but the smallest ones, which have fewer. */
        for (int digits = fabs(number) < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
                (void)snprintf(room, NUMBER_ROOM, "%.*g", digits, number);
                if (strtod(room, NULL) == number)
                        break;
        }
        /* What is left is the point, as the locale writes it: in one byte or in more. */
        point = room + strspn(room, plain);
        if (*point) {
                behind = point + strcspn(point, plain);
                *point = '.';
                memmove(point + 1, behind, strlen(behind) + 1);
        }
}
