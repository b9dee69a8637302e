/* SPDX-License-Identifier: MIT */
/* What is kept of a stream: in memory and in a file, whole and cut, and handed over. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "warden/output.h"

static char byte_at(size_t i)
{
        return (char)(i % 251 + i / 65521);
}

/* Add so many bytes in pieces of this size. */
static void fill(struct output *output, size_t total, size_t piece)
{
        char *data = malloc(piece);

        assert_non_null(data);
        for (size_t at = 0; at < total; at += piece) {
                size_t n = MIN(piece, total - at);

                for (size_t i = 0; i < n; i++)
                        data[i] = byte_at(at + i);
                assert_int_equal(output_add(output, data, n), 0);
        }
        free(data);
}

/* Is this the head and the tail of so many bytes? */
static void assert_kept(const char *data, size_t capacity, size_t total)
{
        size_t kept = MIN(capacity, total), head = MIN(capacity - capacity / 2, total);

        for (size_t i = 0; i < kept; i++)
                if (data[i] != byte_at(i < head ? i : total - kept + i))
                        fail_msg("byte %zu of %zu is another", i, kept);
        assert_int_equal(data[kept], '\0');
}

/* Hand it over as a report does, and look at what arrives. */
static void hand_over(const struct output *output, size_t capacity, size_t total)
{
        struct output other = { .capacity = output->capacity,
                                .total = output->total,
                                .head_length = output->head_length,
                                .tail_length = output->tail_length,
                                .tail_at = output->tail_at };
        char *joined;
        size_t length;

        assert_int_equal(output_join(output, &joined, &length), 0);
        assert_int_equal(length, MIN(capacity, total));
        assert_kept(joined, capacity, total);
        if (output->filed) {
                assert_null(output->data);
                assert_int_equal(output_seal(output), 0);
                assert_int_equal(output_seal(output),
                                 0); /* where sending it has to be tried again */
                assert_int_equal(output_take_file(&other, fcntl(output->file, F_DUPFD_CLOEXEC, 3)),
                                 0);
                assert_int_equal(output_add((struct output *)output, "x", 1) < 0, capacity > 0);
        } else {
                assert_int_equal(output_take_kept(&other, joined), 0);
        }
        assert_kept(other.data, capacity, total);
        assert_int_equal(other.tail_at, 0);
        assert_int_equal(other.mapped, output->filed && output->tail_at == 0);
        output_free(&other);
        free(joined);
}

static void every_size_is_kept_and_handed_over(void **state)
{
        static const size_t capacities[] = { 0, 1, 2, 1000, 4096, 262144, 262145, 400001, 1048576 };
        static const size_t totals[] = { 0,      1,      999,    4096,    262143,  262144,
                                         262145, 400001, 524288, 1048576, 1048577, 2500003 };
        static const size_t pieces[] = { 4099, 65536, 3000000 };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(capacities); i++)
                for (size_t j = 0; j < ARRAY_SIZE(totals); j++)
                        for (size_t k = 0; k < ARRAY_SIZE(pieces); k++) {
                                struct output output;

                                output_init(&output, capacities[i]);
                                fill(&output, totals[j], pieces[k]);
                                assert_int_equal(output.total, totals[j]);
                                assert_int_equal(output.filed,
                                                 MIN(capacities[i], totals[j]) > OUTPUT_IN_MEMORY);
                                hand_over(&output, capacities[i], totals[j]);
                                output_free(&output);
                        }
}

/* One that could change or shrink under the reader would be a signal. */
static void a_file_that_is_not_sealed_or_of_another_size_is_refused(void **state)
{
        static const int seals[] = { 0, F_SEAL_SHRINK, F_SEAL_SHRINK | F_SEAL_GROW,
                                     F_SEAL_GROW | F_SEAL_WRITE, F_SEAL_SHRINK | F_SEAL_WRITE };
        struct output output = { .capacity = 1000, .total = 10, .head_length = 10 };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(seals); i++) {
                int file = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

                assert_int_equal(ftruncate(file, 11), 0);
                assert_int_equal(fcntl(file, F_ADD_SEALS, seals[i]), 0);
                assert_int_equal(output_take_file(&output, file), -EPROTO);
                base_close(file);
        }
        for (off_t size = 9; size < 14; size++) {
                int file = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

                assert_int_equal(ftruncate(file, size), 0);
                assert_int_equal(
                        fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
                assert_int_equal(output_take_file(&output, file), size == 11 ? 0 : -EPROTO);
                if (size == 11)
                        output_free(&output);
                else
                        base_close(file);
                output.total = output.head_length = 10;
        }
        assert_int_equal(output_take_file(&output, 0), -EPROTO);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_size_is_kept_and_handed_over),
                cmocka_unit_test(a_file_that_is_not_sealed_or_of_another_size_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
