/* SPDX-License-Identifier: MIT */
/* Limits: one table from which they are read, checked, given their defaults and printed. */
#include <stdio.h>
#include <strings.h>

#include "policy/policy_parts.h"

#define SIZE_LIMIT_MAX (1ULL << 50) /* 1024T; what needs more has no limit */
#define SECONDS_MAX 1e9

#define CPUS_MIN 0.01
#define CPUS_MAX 8192

enum limit_kind { LIMIT_SECONDS, LIMIT_CPUS, LIMIT_SIZE, LIMIT_COUNT };

/* Where `optional`, null is allowed and is 0 in the struct. The smallest values are those with
 * which a dynamically linked program can still be started. */
static const struct limit {
        const char *key;
        enum limit_kind kind;
        bool optional;
        size_t offset;
        uint64_t standard, min, max;
} table[] = {
#define AT(member) offsetof(struct policy_limits, member)
        { "wall", LIMIT_SECONDS, false, AT(wall), 30, 0, 0 },
        { "cpu", LIMIT_SECONDS, true, AT(cpu), 0, 0, 0 },
        { "cpus", LIMIT_CPUS, true, AT(cpus), 0, 0, 0 },
        { "memory", LIMIT_SIZE, true, AT(memory), 512 * MIB, MIB, SIZE_LIMIT_MAX },
        { "processes", LIMIT_COUNT, true, AT(processes), 128, 1, 1 << 22 },
        { "file_size", LIMIT_SIZE, true, AT(file_size), GIB, 1, SIZE_LIMIT_MAX },
        { "open_files", LIMIT_COUNT, true, AT(open_files), 768, 8, 1 << 20 },
        { "tmp_size", LIMIT_SIZE, false, AT(tmp_size), POLICY_TMP_SIZE, 1, SIZE_LIMIT_MAX },
        { "output", LIMIT_SIZE, true, AT(output), 0, 1, SIZE_LIMIT_MAX },
        { "capture", LIMIT_SIZE, false, AT(capture), 100 * KIB, 0, GIB },
        { "result", LIMIT_SIZE, false, AT(result), 16 * MIB, 0, 4 * GIB },
#undef AT
};

static const struct {
        char letter;
        uint64_t bytes;
} units[] = { { 'T', 1024 * GIB }, { 'G', GIB }, { 'M', MIB }, { 'K', KIB } };

/* Seconds and shares are fractions, sizes and counts are not. */
static bool is_real(const struct limit *limit)
{
        return limit->kind == LIMIT_SECONDS || limit->kind == LIMIT_CPUS;
}

static double *real_at(const struct limit *limit, struct policy_limits *limits)
{
        return (double *)(void *)((char *)limits + limit->offset);
}

static uint64_t *number_at(const struct limit *limit, struct policy_limits *limits)
{
        return (uint64_t *)(void *)((char *)limits + limit->offset);
}

/* ---- Sizes ---- */

/* "", "B", "K", "KB" or "KiB" → 1 or 1024; 0 for anything else. */
static uint64_t unit_from_str(const char *text)
{
        uint64_t unit = 1;

        for (size_t i = 0; i < ARRAY_SIZE(units); i++)
                if (*text == units[i].letter || *text == units[i].letter + ('a' - 'A'))
                        unit = units[i].bytes;
        if (unit > 1)
                text++;
        if (*text == '\0' || strcasecmp(text, "B") == 0 ||
            (unit > 1 && strcasecmp(text, "iB") == 0))
                return unit;
        return 0;
}

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

int policy_size_from_str(const char *text, uint64_t *ret_bytes)
{
        uint64_t whole = 0, part = 0, scale = 1, unit, bytes;
        bool fraction = false;

        if (!is_digit(*text))
                return -EINVAL;
        for (; is_digit(*text); text++)
                if (__builtin_mul_overflow(whole, 10, &whole) ||
                    __builtin_add_overflow(whole, (uint64_t)(*text - '0'), &whole))
                        return -ERANGE;
        if (*text == '.') {
                fraction = true;
                if (!is_digit(*++text))
                        return -EINVAL;
                /* Six digits are a byte in a megabyte; with more, part * unit could overflow. */
                for (; is_digit(*text); text++, scale *= 10) {
                        if (scale == 1000000)
                                return -EINVAL;
                        part = part * 10 + (uint64_t)(*text - '0');
                }
        }
        unit = unit_from_str(text);
        if (unit == 0 || (fraction && unit == 1))
                return -EINVAL;
        if (__builtin_mul_overflow(whole, unit, &bytes) ||
            __builtin_add_overflow(bytes, part * unit / scale, &bytes))
                return -ERANGE;
        *ret_bytes = bytes;
        return 0;
}

static void size_to_str(uint64_t size, char *text, size_t room)
{
        for (size_t i = 0; i < ARRAY_SIZE(units); i++)
                if (size > 0 && size % units[i].bytes == 0) {
                        (void)snprintf(text, room, "%llu%c",
                                       (unsigned long long)(size / units[i].bytes),
                                       units[i].letter);
                        return;
                }
        (void)snprintf(text, room, "%llu", (unsigned long long)size);
}

json_t *policy_size_to_json(uint64_t size)
{
        char text[32];

        if (size == 0 || size % KIB != 0)
                return json_integer((json_int_t)size);
        size_to_str(size, text, sizeof(text));
        return json_string(text);
}

/* ---- Reading ---- */

static int refuse_range(const struct limit *limit, const struct json_place *at, bool low,
                        cbx_error *error)
{
        uint64_t bound = low ? limit->min : limit->max;
        char text[32];
        int r;

        if (limit->kind == LIMIT_SIZE)
                size_to_str(bound, text, sizeof(text));
        else
                (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)bound);
        r = json_refuse(at, error, "must be at %s %s%s", low ? "least" : "most", text,
                        limit->kind == LIMIT_SIZE && bound < KIB ? " byte" : "");
        if (limit->optional)
                error_hint(error, "null means no limit");
        return r;
}

static int read_size(json_t *value, const struct json_place *at, bool *ret_low, cbx_error *error,
                     uint64_t *ret_size)
{
        int r;

        if (json_is_integer(value)) {
                *ret_low = json_integer_value(value) < 0;
                *ret_size = (uint64_t)json_integer_value(value);
                return 0;
        }
        if (!json_is_string(value))
                return json_refuse_type(at, error, "a size such as \"256M\" or 4096", value);
        r = policy_size_from_str(json_string_value(value), ret_size);
        if (r == -ERANGE)
                *ret_size = UINT64_MAX;
        else if (r < 0) {
                r = json_refuse(at, error, "\"%.32s\" is not a size", json_string_value(value));
                error_hint(error, "write bytes as a number, or a string such as \"64K\", \"256M\" "
                                  "or \"1.5G\"");
                return r;
        }
        return 0;
}

static int read_number(const struct limit *limit, json_t *value, const struct json_place *at,
                       cbx_error *error, uint64_t *ret_number)
{
        uint64_t number = 0;
        bool low = false;
        int r;

        if (limit->kind == LIMIT_SIZE) {
                r = read_size(value, at, &low, error, &number);
                if (r < 0)
                        return r;
        } else {
                if (!json_is_integer(value))
                        return json_refuse_type(at, error, "a whole number", value);
                low = json_integer_value(value) < 0;
                number = (uint64_t)json_integer_value(value);
        }
        if (low || number < limit->min)
                return refuse_range(limit, at, true, error);
        if (number > limit->max)
                return refuse_range(limit, at, false, error);
        *ret_number = number;
        return 0;
}

int policy_read_size(json_t *value, const struct json_place *at, cbx_error *error,
                     uint64_t *ret_size)
{
        static const struct limit any = { .kind = LIMIT_SIZE, .min = 1, .max = SIZE_LIMIT_MAX };

        return read_number(&any, value, at, error, ret_size);
}

static int read_cpus(json_t *value, const struct json_place *at, cbx_error *error, double *ret_cpus)
{
        double cpus;
        int r;

        if (!json_is_number(value))
                return json_refuse_type(at, error, "a number of processors", value);
        cpus = json_number_value(value);
        if (cpus >= CPUS_MIN && cpus <= CPUS_MAX) {
                *ret_cpus = cpus;
                return 0;
        }
        r = json_refuse(at, error, "must be at least %g and at most %d processors", CPUS_MIN,
                        CPUS_MAX);
        error_hint(error, "0.5 is half of one; null means no limit");
        return r;
}

static int read_seconds(json_t *value, const struct json_place *at, cbx_error *error,
                        double *ret_seconds)
{
        double seconds;

        if (!json_is_number(value))
                return json_refuse_type(at, error, "a number of seconds", value);
        seconds = json_number_value(value);
        if (!(seconds > 0))
                return json_refuse(at, error, "must be more than 0 seconds");
        if (!(seconds <= SECONDS_MAX))
                return json_refuse(at, error, "must be at most %.0f seconds", SECONDS_MAX);
        *ret_seconds = seconds;
        return 0;
}

/* Whether b is looser than a; 0 is no limit where that is possible at all. */
static bool is_looser(const struct limit *limit, double a, double b)
{
        if (limit->optional && a == 0)
                return false;
        return (limit->optional && b == 0) || b > a;
}

static int refuse_looser(const struct limit *limit, const struct json_place *at, double seconds,
                         uint64_t number, cbx_error *error)
{
        char text[32];

        if (is_real(limit))
                (void)snprintf(text, sizeof(text), "%g %s", seconds,
                               limit->kind == LIMIT_CPUS ? "processors" : "seconds");
        else if (limit->kind == LIMIT_SIZE)
                size_to_str(number, text, sizeof(text));
        else
                (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
        return json_refuse(at, error, "a call may only tighten its policy, which allows %s", text);
}

static int read_limit(const struct limit *limit, json_t *value, const struct json_place *at,
                      bool tighten, cbx_error *error, struct policy_limits *limits)
{
        double *seconds = real_at(limit, limits), new_seconds = 0;
        uint64_t *number = number_at(limit, limits), new_number = 0;
        int r = 0;

        if (json_is_null(value)) {
                if (!limit->optional)
                        return json_refuse(at, error, "cannot be without a limit");
        } else if (limit->kind == LIMIT_CPUS)
                r = read_cpus(value, at, error, &new_seconds);
        else if (limit->kind == LIMIT_SECONDS)
                r = read_seconds(value, at, error, &new_seconds);
        else
                r = read_number(limit, value, at, error, &new_number);
        if (r < 0)
                return r;

        if (is_real(limit)) {
                if (tighten && is_looser(limit, *seconds, new_seconds))
                        return refuse_looser(limit, at, *seconds, 0, error);
                *seconds = new_seconds;
        } else {
                /* Numbers are below 2^53, so that they are exact as doubles. */
                if (tighten && is_looser(limit, (double)*number, (double)new_number))
                        return refuse_looser(limit, at, 0, *number, error);
                *number = new_number;
        }
        return 0;
}

/* One limit of a call; 0 leaves the policy's. */
static int tighten(const struct limit *limit, struct policy_limits *asked,
                   struct policy_limits *limits, cbx_error *error)
{
        struct json_place at = { .key = limit->key };

        if (is_real(limit)) {
                double *seconds = real_at(limit, limits), wanted = *real_at(limit, asked);

                if (wanted == 0)
                        return 0;
                if (limit->kind == LIMIT_CPUS && !(wanted >= CPUS_MIN && wanted <= CPUS_MAX))
                        return json_refuse(&at, error,
                                           "must be at least %g and at most %d processors",
                                           CPUS_MIN, CPUS_MAX);
                if (!(wanted > 0 && wanted <= SECONDS_MAX))
                        return json_refuse(&at, error,
                                           "must be more than 0 and at most %.0f seconds",
                                           SECONDS_MAX);
                if (is_looser(limit, *seconds, wanted))
                        return refuse_looser(limit, &at, *seconds, 0, error);
                *seconds = wanted;
        } else {
                uint64_t *number = number_at(limit, limits), wanted = *number_at(limit, asked);

                if (wanted == 0)
                        return 0;
                if (wanted < limit->min || wanted > limit->max)
                        return refuse_range(limit, &at, wanted < limit->min, error);
                if (is_looser(limit, (double)*number, (double)wanted))
                        return refuse_looser(limit, &at, 0, *number, error);
                *number = wanted;
        }
        return 0;
}

int policy_limits_tighten(const struct policy_limits *asked, struct policy_limits *limits,
                          cbx_error *error)
{
        struct policy_limits wanted = *asked, copy = *limits;

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                int r = tighten(&table[i], &wanted, &copy, error);

                if (r < 0)
                        return r;
        }
        *limits = copy;
        return 0;
}

int policy_limits_from_json(json_t *json, const char *path, bool tighten, cbx_error *error,
                            struct policy_limits *limits)
{
        struct json_place at = { .key = path };
        struct policy_limits copy = *limits;
        int r;

        if (!json_is_object(json))
                return json_refuse_type(&at, error, "an object", json);
        r = json_check_keys(json, &at, JSON_WORDS(table), error);
        if (r < 0)
                return r;
        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                struct json_place place = { .parent = &at, .key = table[i].key };
                json_t *value = json_object_get(json, table[i].key);

                if (!value)
                        continue;
                r = read_limit(&table[i], value, &place, tighten, error, &copy);
                if (r < 0)
                        return r;
        }
        *limits = copy;
        return 0;
}

int policy_read_limits(json_t *value, const struct json_place *at, cbx_error *error, void *policy)
{
        return policy_limits_from_json(value, at->key, false, error,
                                       &((cbx_policy *)policy)->limits);
}

/* ---- Defaults and printing ---- */

void policy_limits_default(struct policy_limits *limits)
{
        for (size_t i = 0; i < ARRAY_SIZE(table); i++)
                if (is_real(&table[i]))
                        *real_at(&table[i], limits) = (double)table[i].standard;
                else
                        *number_at(&table[i], limits) = table[i].standard;
}

static json_t *seconds_to_json(double seconds)
{
        if (seconds == (double)(json_int_t)seconds)
                return json_integer((json_int_t)seconds);
        return json_real(seconds);
}

json_t *policy_limits_to_json(const struct policy_limits *limits)
{
        struct policy_limits copy = *limits;
        _cleanup_json_ json_t *json = json_object();

        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                const struct limit *limit = &table[i];
                bool is_seconds = is_real(limit);
                double seconds = is_seconds ? *real_at(limit, &copy) : 0;
                uint64_t number = is_seconds ? 0 : *number_at(limit, &copy);
                json_t *value;

                if (limit->optional && seconds == 0 && number == 0)
                        value = json_null();
                else if (is_seconds)
                        value = seconds_to_json(seconds);
                else if (limit->kind == LIMIT_SIZE)
                        value = policy_size_to_json(number);
                else
                        value = json_integer((json_int_t)number);
                if (json_object_set_new(json, limit->key, value) < 0)
                        return NULL;
        }
        return TAKE_PTR(json);
}
