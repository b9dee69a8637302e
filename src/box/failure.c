/* SPDX-License-Identifier: MIT */
/* A failed step of the set-up in words, with the fix where there is a known one. */
#include <string.h>

#include "box/box.h"

static const char enter_directory[] = "enter the start directory";

static const struct {
        const char *step; /* NULL: any */
        int error;        /* 0: any */
        const char *hint;
} hints[] = {
        { "mount a /proc", EPERM,
          "this host's /proc has parts covered, as in a container, so the kernel gives no fresh "
          "one; "
          "run the container with an unmasked /proc" },
        { "make a mount point", EROFS,
          "the path lies inside a tree of the host where it does not exist, and nothing is created "
          "on the host; create it there or choose another place for it in the box" },
        { "open a mount point", ELOOP,
          "a part of the path is a symbolic link in the box; name the place it leads to" },
        { "open a directory on the way", ELOOP,
          "a part of the path is a symbolic link in the box; name the place it leads to" },
        { "open what the plan resolved", ESTALE, "the path was replaced while the box was made" },
        { "open", EACCES, "the caller may not reach this path" },
        { "make the new root the root", EINVAL,
          "the host's root is an initial ramdisk, which cannot be left; boot from a real root" },
        { "load the system call filter", EINVAL,
          "the kernel has no seccomp filters with notifications (Linux 5.0 or newer has)" },
        { "load the system call filter", EBUSY,
          "a filter with a listener is in force already, that of another box for example: start "
          "callbox without it" },
        { "make a net namespace", ENOSPC,
          "raise the limit on them: sudo sysctl -w user.max_net_namespaces=15000" },
        { "start the main process", EAGAIN,
          "the caller's limit on processes is reached (ulimit -u)" },
        { enter_directory, ENOENT,
          "the box does not show this directory: add --read or --workspace for it, or choose "
          "another one with --cwd" },
        { enter_directory, EACCES, "the box's user may not enter this directory" },
        { enter_directory, ENOTDIR, "name a directory" },
        { NULL, ENOSYS, "this kernel is too old; Linux 5.12 or newer is needed" },
        { NULL, EMFILE, "the caller's limit on open files is too low (ulimit -n)" },
        { NULL, ENFILE, "the host has no descriptors left" },
        { NULL, ENOMEM, "the host has no memory left" },
};

int box_explain_failure(const struct box_failure *failure, cbx_error *error)
{
        if (!failure->step[0])
                return error_set(error, -EPROTO, "init", "the box's init died while it was set up");
        error_set(error, -failure->error, strcmp(failure->step, enter_directory) ? "" : "cwd",
                  "could not %s%s%s: %s", failure->step, failure->detail[0] ? " " : "",
                  failure->detail, strerror(failure->error));
        for (size_t i = 0; i < ARRAY_SIZE(hints); i++)
                if ((!hints[i].step || strcmp(hints[i].step, failure->step) == 0) &&
                    hints[i].error == failure->error) {
                        error_hint(error, "%s", hints[i].hint);
                        break;
                }
        return -failure->error;
}
