/* SPDX-License-Identifier: MIT */
/* A shared object with functions that manifests name. It is not linked with libcallbox. */
#include <callbox.h>
#include <stdio.h>
#include <string.h>

int object_upper(const char *arguments, size_t length, cbx_reply *reply);
int object_fail(const char *arguments, size_t length, cbx_reply *reply);
extern const int object_number;

__attribute__((visibility("default"))) const int object_number = 42; /* no function */

/* What a constructor prints must change nothing. */
__attribute__((constructor)) static void loaded(void)
{
        fputs("loaded\n", stderr);
}

__attribute__((visibility("default"))) int object_upper(const char *arguments, size_t length,
                                                        cbx_reply *reply)
{
        char text[4096];

        if (length >= sizeof(text))
                return cbx_reply_error(reply, "that is too long") < 0 ? 2 : 1;
        for (size_t i = 0; i < length; i++)
                text[i] = arguments[i] >= 'a' && arguments[i] <= 'z' ? (char)(arguments[i] - 32)
                                                                     : arguments[i];
        cbx_reply_progress(reply, 1, 1, "done");
        return cbx_reply_result(reply, text, length);
}

__attribute__((visibility("default"))) int object_fail(const char *arguments, size_t length,
                                                       cbx_reply *reply)
{
        (void)arguments;
        (void)length;
        return cbx_reply_error(reply, "as it should") < 0 ? 2 : 1;
}
