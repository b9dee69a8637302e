/* SPDX-License-Identifier: MIT */
/*
 * The order of isolation. The child has just been cloned into its namespaces and runs as pid 1 of
 * the box; the fences below are put up from the outermost to the innermost. It starts main at
 * once: while init builds the root, main makes the network and puts up the fences that hold for it
 * alone (main.c). Nothing is executed before both are done.
 */
#include "box/enter.h"

#include <sys/syscall.h>

_Noreturn void box_enter(struct child *child)
{
        const char failed = BOX_FAILED;
        int r;

        child->ids_end = base_close(child->ids_end);
        r = box_await_place(child, &child->page->init_placed);
        if (r == 0)
                r = box_begin(child);
        if (r == 0)
                r = box_start_main(child); /* puts up its own fences meanwhile */
        if (r == 0)
                r = box_copy_mounts(child);
        if (r == 0)
                r = box_enter_identity(child);
        if (r == 0)
                r = box_enter_root(child);
        if (r == 0)
                box_init(child);
        (void)!write(child->control, &failed, 1);
        syscall(SYS_exit_group, 1);
        __builtin_unreachable();
}
