/* SPDX-License-Identifier: MIT */
/* Specs come from whoever asks for a call: reading one never does more than refuse it. */
#include <stdlib.h>

#include "cli/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        cbx_error error = CBX_ERROR_INIT;
        struct spec spec = { 0 };

        if (spec_parse((const char *)data, size, &error, &spec) < 0) {
                if (error.text[0] == '\0')
                        abort(); /* every refusal has a reason */
                return 0;
        }
        spec_free(&spec);
        return 0;
}
