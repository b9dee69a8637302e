/* SPDX-License-Identifier: MIT */
/*
 * Shrinking a filter. The kernel compiles it for each box, which takes time by its length.
 * libseccomp gives every call a leaf of its own, but most neighbours have the same fate: here they
 * become one range, found by a binary search over the numbers. What looks at arguments may be far
 * away: a search ends at an instruction right behind it, which returns or goes there. It stays
 * instruction by instruction as it was, but for two things: what tests nothing is left out, and
 * values of an argument that follow upon one another are tested as a range. A program that is not
 * of the form which libseccomp writes is left alone.
 */
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "policy/syscalls.h"

#define HEAD 3 /* load the architecture, compare it, load the number */
#define OFFSET(field) offsetof(struct seccomp_data, field)

struct range {
        uint32_t from;   /* the first number in it */
        uint16_t target; /* the instruction at which its fate begins */
};

struct compact {
        struct sock_filter in[BPF_MAXINSNS];
        size_t n_in;
        bool entered[BPF_MAXINSNS]; /* by a jump */
        struct sock_filter out[BPF_MAXINSNS];
        size_t n_out;
        struct range ranges[BPF_MAXINSNS];
        size_t n_ranges;
        bool keep[BPF_MAXINSNS];      /* of the old instructions */
        uint16_t moved[BPF_MAXINSNS]; /* where it is then */
        uint16_t ends[BPF_MAXINSNS];  /* where searches for it end; 0: none does */
        size_t n_ends;
        bool failed;
};

static bool loads(const struct sock_filter *instruction, size_t offset)
{
        return instruction->code == (BPF_LD | BPF_W | BPF_ABS) && instruction->k == offset;
}

static bool is_jump(const struct sock_filter *instruction)
{
        return BPF_CLASS(instruction->code) == BPF_JMP;
}

/* ---- Tests of arguments ---- */

static bool is_test(const struct sock_filter *instruction)
{
        return instruction->code == (BPF_JMP | BPF_JEQ | BPF_K);
}

/* Of an argument whose lower half alone counts libseccomp loads the upper one, leaves nothing of
 * it, and goes on where that is nothing: to an instruction that loads something else, or returns.
 */
static size_t past_idle(const struct compact *c, size_t at)
{
        const struct sock_filter *i = &c->in[at];

        while (at + 2 < c->n_in && i[0].code == (BPF_LD | BPF_W | BPF_ABS) &&
               i[1].code == (BPF_ALU | BPF_AND | BPF_K) && i[1].k == 0 && is_test(&i[2]) &&
               i[2].k == 0) {
                size_t next = at + 3 + i[2].jt;

                if (c->in[next].code != (BPF_LD | BPF_W | BPF_ABS) &&
                    c->in[next].code != (BPF_RET | BPF_K))
                        break;
                at = next;
                i = &c->in[at];
        }
        return at;
}

static void find_entered(struct compact *c)
{
        for (size_t i = 0; i < c->n_in; i++) {
                const struct sock_filter *instruction = &c->in[i];

                if (instruction->code == (BPF_JMP | BPF_JA)) {
                        c->entered[i + 1 + instruction->k] = true;
                } else if (is_jump(instruction)) {
                        c->entered[i + 1 + instruction->jt] = true;
                        if (instruction->jf > 0)
                                c->entered[i + 1 + instruction->jf] = true;
                }
        }
}

/* How many tests for one value follow upon this one and lead where it leads. */
static size_t run_length(const struct compact *c, size_t at)
{
        size_t n = 1;

        while (at + n < c->n_in && is_test(&c->in[at + n]) && c->in[at + n - 1].jf == 0 &&
               n + c->in[at + n].jt == c->in[at].jt && !c->entered[at + n])
                n++;
        return n;
}

static int compare_values(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return (x > y) - (x < y);
}

/* Write the tests for one run of values anew: "above the last: go on; from the first: there". What
 * is left over behind them is reached by nobody. */
static void fold_run(struct compact *c, size_t at, size_t n)
{
        const size_t there = at + 1 + c->in[at].jt, else_there = at + n + c->in[at + n - 1].jf;
        uint32_t values[BPF_MAXINSNS] = { 0 };
        struct sock_filter out[BPF_MAXINSNS];
        size_t n_out = 0;

        for (size_t i = 0; i < n; i++)
                values[i] = c->in[at + i].k;
        qsort(values, n, sizeof(values[0]), compare_values);
        for (size_t first = 0, last; first < n; first = last + 1) {
                for (last = first; last + 1 < n && values[last + 1] <= values[last] + 1; last++)
                        ;
                if (last > first)
                        out[n_out++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K,
                                                                    values[last], 1, 0);
                out[n_out] = (struct sock_filter)BPF_JUMP(
                        BPF_JMP | (last > first ? BPF_JGE : BPF_JEQ) | BPF_K, values[first],
                        (uint8_t)(there - at - n_out - 1), 0);
                n_out++;
        }
        if (n_out >= n || else_there - at - n_out + 1 > UINT8_MAX)
                return;
        out[n_out - 1].jf = (uint8_t)(else_there - at - n_out);
        if (n_out > 1 && out[n_out - 2].code == (BPF_JMP | BPF_JGT | BPF_K))
                out[n_out - 2].jt = (uint8_t)(else_there - at - n_out + 1);
        memcpy(&c->in[at], out, n_out * sizeof(out[0]));
}

static void fold_runs(struct compact *c)
{
        find_entered(c);
        for (size_t i = HEAD, n; i < c->n_in; i += n) {
                n = is_test(&c->in[i]) ? run_length(c, i) : 1;
                if (n > 2)
                        fold_run(c, i, n);
        }
}

/* ---- Numbers of calls ---- */

/* The same value returned elsewhere is the same fate. */
static size_t first_return(const struct compact *c, size_t at)
{
        for (size_t i = 0; i < at; i++)
                if (c->in[i].code == (BPF_RET | BPF_K) && c->in[i].k == c->in[at].k)
                        return i;
        return at;
}

/* Follow the program for one number until it returns or looks at anything else. */
static size_t fate(struct compact *c, uint32_t number)
{
        for (size_t at = HEAD - 1; at < c->n_in;) {
                const struct sock_filter *i = &c->in[at];

                if (i->code == (BPF_RET | BPF_K))
                        return first_return(c, at);
                if (i->code == (BPF_LD | BPF_W | BPF_ABS) && i->k >= OFFSET(args)) {
                        at = past_idle(c, at);
                        return c->in[at].code == (BPF_RET | BPF_K) ? first_return(c, at) : at;
                }
                if (loads(i, OFFSET(nr)))
                        at += 1;
                else if (i->code == (BPF_JMP | BPF_JA))
                        at += 1 + i->k;
                else if (i->code == (BPF_JMP | BPF_JEQ | BPF_K))
                        at += 1U + (number == i->k ? i->jt : i->jf);
                else if (i->code == (BPF_JMP | BPF_JGT | BPF_K))
                        at += 1U + (number > i->k ? i->jt : i->jf);
                else if (i->code == (BPF_JMP | BPF_JGE | BPF_K))
                        at += 1U + (number >= i->k ? i->jt : i->jf);
                else
                        break;
        }
        c->failed = true;
        return 0;
}

static void add_border(struct compact *c, uint32_t from)
{
        size_t at = c->n_ranges;

        while (at > 0 && c->ranges[at - 1].from >= from)
                at--;
        if (c->n_ranges == ARRAY_SIZE(c->ranges) ||
            (at < c->n_ranges && c->ranges[at].from == from)) {
                c->failed |= c->n_ranges == ARRAY_SIZE(c->ranges);
                return;
        }
        memmove(&c->ranges[at + 1], &c->ranges[at], (c->n_ranges - at) * sizeof(c->ranges[0]));
        c->ranges[at].from = from;
        c->n_ranges++;
}

/* A number's fate can change only at a value that the program compares with, or right behind. */
static void find_ranges(struct compact *c)
{
        size_t n = 0;

        add_border(c, 0);
        for (size_t i = HEAD - 1; i < c->n_in; i++)
                if (is_jump(&c->in[i]) && BPF_OP(c->in[i].code) != BPF_JA) {
                        add_border(c, c->in[i].k);
                        if (c->in[i].k != UINT32_MAX)
                                add_border(c, c->in[i].k + 1);
                }
        for (size_t i = 0; i < c->n_ranges; i++) {
                size_t target = fate(c, c->ranges[i].from);

                if (n > 0 && c->ranges[n - 1].target == target)
                        continue;
                c->ranges[n++] = (struct range){ c->ranges[i].from, (uint16_t)target };
        }
        c->n_ranges = n;
}

/* What the search may find, each once, behind it. */
static void add_end(struct compact *c, size_t target)
{
        if (c->ends[target])
                return;
        c->ends[target] = (uint16_t)(HEAD + c->n_ranges - 1 + c->n_ends++);
        c->keep[target] = BPF_CLASS(c->in[target].code) != BPF_RET;
}

/* Jumps lead forward only, so one pass finds all that can be reached. */
static void find_kept(struct compact *c, size_t foreign)
{
        size_t next;

        add_end(c, foreign);
        for (size_t i = 0; i < c->n_ranges; i++)
                add_end(c, c->ranges[i].target);
        next = HEAD + c->n_ranges - 1 + c->n_ends;
        for (size_t i = 0; i < c->n_in; i++) {
                const struct sock_filter *instruction = &c->in[i];

                if (!c->keep[i])
                        continue;
                c->moved[i] = (uint16_t)next++;
                if (BPF_CLASS(instruction->code) == BPF_RET)
                        continue;
                if (instruction->code == (BPF_JMP | BPF_JA)) {
                        c->keep[past_idle(c, i + 1 + instruction->k)] = true;
                } else if (is_jump(instruction)) {
                        c->keep[past_idle(c, i + 1 + instruction->jt)] = true;
                        c->keep[past_idle(c, i + 1 + instruction->jf)] = true;
                } else {
                        c->keep[i + 1] = true;
                }
        }
        c->failed |= next > ARRAY_SIZE(c->out);
}

/* The distance from one new instruction to another; a conditional jump reaches 255. */
static uint8_t distance(struct compact *c, size_t from, size_t to)
{
        c->failed |= to <= from || to - from - 1 > UINT8_MAX;
        return (uint8_t)(to - from - 1);
}

/* A search among the ranges from `low` up to `high`. Returns where it begins. */
static size_t add_search(struct compact *c, size_t low, size_t high)
{
        size_t middle = low + (high - low) / 2, at, below, above;

        if (high - low == 1)
                return c->ends[c->ranges[low].target];
        at = c->n_out++;
        below = add_search(c, low, middle);
        above = add_search(c, middle, high);
        c->out[at] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, c->ranges[middle].from,
                                                  distance(c, at, above), distance(c, at, below));
        return at;
}

static void add_kept(struct compact *c)
{
        for (size_t i = 0; i < c->n_in; i++) {
                if (!c->ends[i])
                        continue;
                c->out[c->ends[i]] = c->in[i];
                if (BPF_CLASS(c->in[i].code) != BPF_RET)
                        c->out[c->ends[i]] = (struct sock_filter)BPF_STMT(
                                BPF_JMP | BPF_JA, (uint32_t)(c->moved[i] - c->ends[i] - 1));
        }
        c->n_out += c->n_ends;
        for (size_t i = 0; i < c->n_in; i++) {
                struct sock_filter *out = &c->out[c->n_out];

                if (!c->keep[i])
                        continue;
                *out = c->in[i];
                if (out->code == (BPF_JMP | BPF_JA)) {
                        out->k = (uint32_t)(c->moved[past_idle(c, i + 1 + out->k)] - c->n_out - 1);
                } else if (is_jump(out)) {
                        out->jt = distance(c, c->n_out, c->moved[past_idle(c, i + 1 + out->jt)]);
                        out->jf = distance(c, c->n_out, c->moved[past_idle(c, i + 1 + out->jf)]);
                }
                c->n_out++;
        }
}

/* Is it a program whose jumps stay inside it, and which begins as libseccomp's do? */
static bool is_known_form(const struct sock_filter *filter, size_t length)
{
        if (length <= HEAD || length > BPF_MAXINSNS || !loads(&filter[0], OFFSET(arch)) ||
            filter[1].code != (BPF_JMP | BPF_JEQ | BPF_K) || filter[1].jt != 0 ||
            !loads(&filter[2], OFFSET(nr)))
                return false;
        for (size_t i = 0; i < length; i++) {
                size_t left = length - i - 1;

                if (filter[i].code == (BPF_JMP | BPF_JA)
                            ? filter[i].k >= left
                            : is_jump(&filter[i]) && MAX(filter[i].jt, filter[i].jf) >= left)
                        return false;
        }
        return BPF_CLASS(filter[length - 1].code) == BPF_RET;
}

void syscalls_compact(struct sock_filter *filter, unsigned short *length)
{
        struct compact *c;
        size_t foreign;

        if (!is_known_form(filter, *length))
                return;
        c = calloc(1, sizeof(*c));
        if (!c)
                return;
        memcpy(c->in, filter, *length * sizeof(*filter));
        c->n_in = *length;
        fold_runs(c);
        foreign = 2U + filter[1].jf;
        find_ranges(c);
        if (!c->failed)
                find_kept(c, foreign);
        if (!c->failed) {
                memcpy(c->out, filter, HEAD * sizeof(*filter));
                c->n_out = HEAD;
                (void)add_search(c, 0, c->n_ranges);
                add_kept(c);
                c->out[1].jf = distance(c, 1, c->ends[foreign]);
        }
        if (!c->failed && c->n_ranges > 1 && c->n_out < *length) {
                memcpy(filter, c->out, c->n_out * sizeof(*filter));
                *length = (unsigned short)c->n_out;
        }
        free(c);
}
