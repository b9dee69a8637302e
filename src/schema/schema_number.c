/* SPDX-License-Identifier: MIT */
/*
 * Numbers as people write them. jansson has 64 bit integers and doubles; a double stands for the
 * shortest decimal that reads back as it, so that 0.0075 is a multiple of 0.0001.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "schema/schema_parts.h"

bool number_is_integer(const json_t *number)
{
        double value = json_real_value(number);

        return json_is_integer(number) || (isfinite(value) && value == floor(value));
}

/* An integer has more digits than a double can hold, so the double is what is taken apart. */
static int compare_mixed(json_int_t integer, double real)
{
        json_int_t whole;

        if (isnan(real) || real >= INTEGER_END)
                return -1;
        if (real < -INTEGER_END)
                return 1;
        whole = (json_int_t)floor(real);
        if (integer != whole)
                return integer < whole ? -1 : 1;
        return real > floor(real) ? -1 : 0;
}

int number_compare(const json_t *a, const json_t *b)
{
        if (json_is_integer(a) && json_is_integer(b)) {
                json_int_t x = json_integer_value(a), y = json_integer_value(b);

                return (x > y) - (x < y);
        }
        if (json_is_integer(a))
                return compare_mixed(json_integer_value(a), json_real_value(b));
        if (json_is_integer(b))
                return -compare_mixed(json_integer_value(b), json_real_value(a));
        return (json_real_value(a) > json_real_value(b)) -
               (json_real_value(a) < json_real_value(b));
}

void number_print(const json_t *number, char text[NUMBER_ROOM])
{
        if (json_is_integer(number))
                (void)snprintf(text, NUMBER_ROOM, "%" JSON_INTEGER_FORMAT,
                               json_integer_value(number));
        else
                number_write(json_real_value(number), text);
}

/* ---- Multiples, exactly ---- */

/* digits × 10^exponent; the sign does not matter here. */
struct decimal {
        uint64_t digits;
        int exponent;
};

static struct decimal decimal_of(const json_t *number)
{
        struct decimal decimal = { 0 };
        char text[NUMBER_ROOM], *s = text;
        bool point = false;

        if (json_is_integer(number)) {
                json_int_t value = json_integer_value(number);

                decimal.digits = value < 0 ? -(uint64_t)value : (uint64_t)value;
                return decimal;
        }
        number_print(number, text);
        for (; *s && *s != 'e'; s++) {
                if (*s >= '0' && *s <= '9') {
                        decimal.digits = decimal.digits * 10 + (uint64_t)(*s - '0');
                        decimal.exponent -= point;
                } else if (*s == '.') {
                        point = true;
                }
        }
        if (*s == 'e')
                decimal.exponent += (int)strtol(s + 1, NULL, 10);
        return decimal;
}

static uint64_t multiply_modulo(uint64_t a, uint64_t b, uint64_t modulus)
{
        return (uint64_t)((unsigned __int128)a * b % modulus);
}

static uint64_t power_of_ten_modulo(unsigned exponent, uint64_t modulus)
{
        uint64_t result = 1 % modulus, base = 10 % modulus;

        for (; exponent > 0; exponent >>= 1) {
                if (exponent & 1)
                        result = multiply_modulo(result, base, modulus);
                base = multiply_modulo(base, base, modulus);
        }
        return result;
}

bool number_is_multiple(const json_t *number, const json_t *of)
{
        struct decimal a, b;
        unsigned __int128 divisor;
        int shift;

        if (json_is_real(number) && !isfinite(json_real_value(number)))
                return false;
        a = decimal_of(number);
        b = decimal_of(of);
        if (a.digits == 0 || b.digits == 0)
                return a.digits == 0;
        shift = a.exponent - b.exponent;
        if (shift >= 0)
                return multiply_modulo(a.digits % b.digits,
                                       power_of_ten_modulo((unsigned)shift, b.digits),
                                       b.digits) == 0;
        /* The divisor has more digits than the number can have. */
        if (shift < -19)
                return false;
        divisor = b.digits;
        for (; shift < 0; shift++)
                divisor *= 10;
        return a.digits % divisor == 0;
}
