/* SPDX-License-Identifier: MIT */
/* What a forked box sees: the root of its zygote's box, with what must be its own (renew.c). */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "box/child.h"
#include "box/own.h"

static int write_id(struct child *child, const char *file, const char *text)
{
        _cleanup_fd_ int fd = own_openat(child->proc, file, O_WRONLY | O_CLOEXEC, 0);

        if (fd < 0 || fd_write_all(fd, text, strlen(text)) < 0)
                return step_failed(child, "write the box's id maps", file, errno);
        return 0;
}

/* The one id that the zygote's box knows is this box's as well. */
static int map_ids(struct child *child)
{
        char map[80], *end;
        int r;

        end = text_number(map, PLAN_BOX_ID);
        *end++ = ' ';
        end = text_number(end, PLAN_BOX_ID);
        text_copy(end, (size_t)(map + sizeof(map) - end), " 1");
        r = write_id(child, "self/setgroups", "deny");
        if (r == 0)
                r = write_id(child, "self/uid_map", map);
        if (r == 0)
                r = write_id(child, "self/gid_map", map);
        return r < 0 ? r : box_become_identity(child);
}

int box_enter_view(struct child *child)
{
        struct stat st;
        int r;

        child->proc = box_new_proc(child);
        if (child->proc < 0)
                return child->proc;
        r = map_ids(child);
        if (r < 0)
                return r;
        if (stat("/", &st) < 0)
                return step_failed(child, "open the root", NULL, errno);
        child->page->root_device = st.st_dev;
        return box_enter_copy(child);
}
