/* SPDX-License-Identifier: MIT */
/* What JSON values are to a schema: their types, when two are the same, how long a string is. */
#include <string.h>

#include "schema/schema_parts.h"

enum value_type value_type(const json_t *value)
{
        switch (json_typeof(value)) {
        case JSON_NULL:
                return TYPE_NULL;
        case JSON_TRUE:
        case JSON_FALSE:
                return TYPE_BOOLEAN;
        case JSON_INTEGER:
        case JSON_REAL:
                return number_is_integer(value) ? TYPE_INTEGER | TYPE_NUMBER : TYPE_NUMBER;
        case JSON_STRING:
                return TYPE_STRING;
        case JSON_ARRAY:
                return TYPE_ARRAY;
        case JSON_OBJECT:
                break;
        }
        return TYPE_OBJECT;
}

/* Code points: bytes that do not go on with one. */
size_t value_length(const json_t *string)
{
        const char *text = json_string_value(string);
        size_t length = json_string_length(string), n = 0;

        for (size_t i = 0; i < length; i++)
                n += ((unsigned char)text[i] & 0xc0) != 0x80;
        return n;
}

bool value_is_text(const json_t *value)
{
        return json_is_string(value) &&
               strlen(json_string_value(value)) == json_string_length(value);
}

/* Recurses at most as deep as asked. */
bool value_is_deeper(const json_t *value, unsigned levels)
{
        const char *key;
        json_t *child;
        size_t i;

        if (!json_is_object(value) && !json_is_array(value))
                return false;
        if (levels == 0)
                return true;
        if (json_is_array(value)) {
                json_array_foreach((json_t *)value, i,
                                   child) if (value_is_deeper(child, levels - 1)) return true;
                return false;
        }
        json_object_foreach((json_t *)value, key,
                            child) if (value_is_deeper(child, levels - 1)) return true;
        return false;
}

static int equal_arrays(struct check *check, const json_t *a, const json_t *b)
{
        if (json_array_size(a) != json_array_size(b))
                return 1;
        for (size_t i = 0; i < json_array_size(a); i++) {
                int r = value_equal(check, json_array_get(a, i), json_array_get(b, i));

                if (r != 0)
                        return r;
        }
        return 0;
}

static int equal_objects(struct check *check, const json_t *a, const json_t *b)
{
        const char *key;
        json_t *value;

        if (json_object_size(a) != json_object_size(b))
                return 1;
        json_object_foreach((json_t *)a, key, value)
        {
                const json_t *other = json_object_get(b, key);
                int r = check_spend(check, strlen(key) / BYTES_PER_STEP);

                if (r == 0)
                        r = other ? value_equal(check, value, other) : 1;
                if (r != 0)
                        return r;
        }
        return 0;
}

/* Schemas and instances are both bounded in depth, so this recursion is. */
int value_equal(struct check *check, const json_t *a, const json_t *b)
{
        int r = check_spend(check, 1);

        if (r < 0)
                return r;
        if (json_is_number(a) && json_is_number(b))
                return number_compare(a, b) != 0;
        if (json_typeof(a) != json_typeof(b))
                return 1;
        if (json_is_array(a))
                return equal_arrays(check, a, b);
        if (json_is_object(a))
                return equal_objects(check, a, b);
        if (!json_is_string(a))
                return 0;
        if (json_string_length(a) != json_string_length(b))
                return 1;
        r = check_spend(check, json_string_length(a) / BYTES_PER_STEP);
        return r < 0 ? r
                     : memcmp(json_string_value(a), json_string_value(b), json_string_length(a)) !=
                               0;
}

/* ---- Hashes: equal values have equal ones. ---- */

static uint64_t hash_number(const json_t *number)
{
        uint64_t hash = hash_bytes(HASH_INIT, "#", 1);
        double real = json_number_value(number);
        json_int_t integer = 0;

        if (json_is_integer(number))
                integer = json_integer_value(number);
        else if (number_is_integer(number) && real >= -INTEGER_END && real < INTEGER_END)
                integer = (json_int_t)real;
        else
                return hash_bytes(hash, &real, sizeof(real));
        return hash_bytes(hash, &integer, sizeof(integer));
}

static int hash_object(struct check *check, const json_t *object, uint64_t *ret)
{
        uint64_t sum = json_object_size(object);
        const char *key;
        json_t *value;

        json_object_foreach((json_t *)object, key, value)
        {
                const size_t length = strlen(key);
                uint64_t hash = 0;
                int r = value_hash(check, value, &hash);

                if (r == 0)
                        r = check_spend(check, length / BYTES_PER_STEP);
                if (r < 0)
                        return r;
                /* A sum: the order of keys means nothing. */
                sum += hash_bytes(hash, key, length);
        }
        *ret = hash_bytes(HASH_INIT, &sum, sizeof(sum));
        return 0;
}

static int hash_array(struct check *check, const json_t *array, uint64_t *ret)
{
        uint64_t hash = hash_bytes(HASH_INIT, "[", 1), one;
        json_t *value;
        size_t i;

        json_array_foreach((json_t *)array, i, value)
        {
                int r = value_hash(check, value, &one);

                if (r < 0)
                        return r;
                hash = hash_bytes(hash, &one, sizeof(one));
        }
        *ret = hash;
        return 0;
}

int value_hash(struct check *check, const json_t *value, uint64_t *ret)
{
        const char type = (char)json_typeof(value);
        int r = check_spend(check, 1);

        if (r < 0)
                return r;
        if (json_is_array(value))
                return hash_array(check, value, ret);
        if (json_is_object(value))
                return hash_object(check, value, ret);
        if (json_is_number(value)) {
                *ret = hash_number(value);
                return 0;
        }
        *ret = hash_bytes(HASH_INIT, &type, 1);
        if (!json_is_string(value))
                return 0;
        *ret = hash_bytes(*ret, json_string_value(value), json_string_length(value));
        return check_spend(check, json_string_length(value) / BYTES_PER_STEP);
}
