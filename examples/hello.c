/* SPDX-License-Identifier: MIT */
/* One call: run a program in a box of its own, and say what came of it. */
#include <callbox.h>
#include <stdio.h>

int main(void)
{
        cbx_error error = CBX_ERROR_INIT;
        cbx_report report = CBX_REPORT_INIT;
        cbx_spec spec = CBX_SPEC_INIT;
        cbx_warden *warden = NULL;
        cbx_policy *policy = NULL;
        int failed;

        spec.argv = (const char *[]){ "echo", "hello from a box", NULL };
        failed = cbx_warden_open(NULL, &warden, &error) < 0 ||
                 cbx_policy_parse("{}", 2, &policy, &error) < 0 ||
                 cbx_run(warden, policy, &spec, &report, &error) < 0;
        if (failed)
                fprintf(stderr, "hello: %s\n", error.text);
        else
                printf("%s(%s)\n", report.output.data, report.text);
        cbx_report_free(&report);
        cbx_policy_unref(policy);
        cbx_warden_close(warden);
        return failed;
}
