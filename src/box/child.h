/* SPDX-License-Identifier: MIT */
/*
 * Between clone and exec: what the files of this folder offer each other. Everything declared
 * here is async-signal-safe. A step returns 0, or a negative errno with the failure noted in the
 * page by step_failed.
 */
#ifndef BOX_CHILD_H
#define BOX_CHILD_H

#include <string.h>
#include <sys/syscall.h>

#include "box/box.h"
#include "box/descriptor.h"
#include "box/fences.h"

/* The directory of the new root in which a step was last made. */
struct parent {
        const char *path;
        size_t length;
        int fd;   /* -1: none */
        bool own; /* on a file system that this box mounted */
};

/* Where something is to be mounted or made: one name in a directory. */
struct place {
        int parent;
        const char *name;
        bool own;
};

#define BOX_DEVICES_MAX 8

/* What the child holds on its way. */
struct child {
        const struct plan *plan;
        struct box_page *page;
        int control; /* init's end */
        int start;   /* main's end */
        int ids;     /* readable once the warden has written the id maps; ends with who makes it */
        int ids_end; /* the other end, which a child closes first of all */
        int warden;  /* pidfd of the warden: readable when it is gone */
        int *trees;  /* one per step: copies of mounts, handed in or made by init */
        bool shared; /* others will begin with a copy of this root */
        bool cast;   /* this one is a copy of a mould's */
        int root;    /* the new root, while it is being built */
        struct parent parent;
        int host_proc;                /* the host's /proc, until the box has its own; or -1 */
        int proc;                     /* the box's own /proc */
        int devices[BOX_DEVICES_MAX]; /* copies of their mounts */
        int pair[2];                  /* between init and main: carries the notifier */
        int notifier;                 /* init: refused calls arrive here */
        pid_t main;                   /* init: main's pid */
        /* Without namespaces: */
        pid_t init, keeper_pid;       /* in the keeper, above init */
        int keeper;                   /* init: pidfd of the keeper; readable when it is gone */
        int scratch;                  /* the box's own directory, in place of a /tmp (scratch.h) */
        int cgroup;                   /* for init to enter; -1: none */
        bool enters_cgroup;           /* ... also with namespaces */
        int terminal[2];              /* main: opened before its fences are up */
        bool scoped;                  /* Landlock lets this process signal those below it alone */
        bool alone;                   /* init: nobody else is left */
        bool still;                   /* init: the last look found nothing new */
        bool stale;                   /* init: something was not counted anew in it */
        bool unhurried;               /* prepared with nobody waiting for it */
        _Atomic bool *used;           /* set when something may be left in its lent net namespace */
        bool zygote;                  /* its program is one from which boxes will be forked */
        bool forked;                  /* this box is: its program runs already (fork.h) */
        pid_t holder;                 /* of main's memory (holder.c); below 0: it ends; 0: none */
        uint64_t mask;                /* signals that a forked program had blocked */
        bool spread;                  /* worth moving main to another processor */
        unsigned long processors[16]; /* that the warden may use */
};

/* What getdents64 gives. */
struct entry {
        uint64_t inode;
        int64_t offset;
        unsigned short length;
        unsigned char type;
        char name[];
};

/* Is a path that of a place, or below it? */
static inline bool lies_in(const char *path, const char *place)
{
        return plan_below(path, place) != NULL;
}

static inline void text_copy(char *to, size_t room, const char *from)
{
        size_t i = 0;

        for (; from && from[i] && i + 1 < room; i++)
                to[i] = from[i];
        to[i] = '\0';
}

/* Append a number to a text that has room for it; returns the new end. */
static inline char *text_number(char *to, uint64_t value)
{
        char digits[24];
        unsigned n = 0;

        do
                digits[n++] = (char)('0' + value % 10);
        while (value /= 10);
        while (n > 0)
                *to++ = digits[--n];
        *to = '\0';
        return to;
}

/* Give a signal its default meaning again; not by the C library, which keeps two to itself. */
static inline void signal_default(int number)
{
        struct {
                void *handler;
                unsigned long flags;
                void *restorer;
                uint64_t mask;
        } standard = { 0 };

        syscall(SYS_rt_sigaction, number, &standard, NULL, sizeof(standard.mask));
}

/* A net namespace that is lent must not be lent again (lend.h). */
static inline void note_network_used(const struct child *child)
{
        if (child->used)
                atomic_store(child->used, true);
}

/* Note what failed, for the warden to put into words. The first failure stays. */
static inline int step_failed(struct child *child, const char *step, const char *detail, int error)
{
        struct box_failure *failure = &child->page->failure;

        if (!failure->step[0]) {
                failure->error = error;
                text_copy(failure->detail, sizeof(failure->detail), detail);
                text_copy(failure->step, sizeof(failure->step), step);
        }
        return -error;
}

int box_open_host_proc(struct child *child); /* identity.c */
int box_begin(struct child *child);
int box_enter_cgroup(struct child *child); /* cage.c */
int box_enter_identity(struct child *child);
int box_become_identity(struct child *child);
int box_copy_mounts(struct child *child);  /* root.c: what of the host will be shown */
int box_enter_root(struct child *child);   /* root.c */
int box_build_mould(struct child *child);  /* root.c: in the mould, before it makes boxes */
int box_enter_copy(struct child *child);   /* renew.c: instead of a root of its own */
int box_copy_devices(struct child *child); /* dev.c */
int box_new_proc(struct child *child);     /* proc.c */
int box_mount_proc(struct child *child);
int box_leave_proc(struct child *child);         /* for boxes that will be forked from this one */
int box_leave_dead_proc(struct child *child);    /* for boxes that will be copied from this mould */
int box_hide(struct child *child, size_t index); /* hide.c: as a step of the plan */
int box_seal_hidden(struct child *child);
int box_fill_dev(struct child *child);      /* dev.c */
int box_refill_dev(struct child *child);    /* what is not shared with the box it is a copy of */
int box_enter_network(struct child *child); /* network.c: main makes it, init joins it */
int box_join_network(struct child *child);
int box_set_limits(struct child *child, const struct plan_rlimit *limits, size_t n);
/* Without namespaces: init ends a box with too many processes; this keeps a storm from taking the
 * host's last one before it does. */
int box_limit_processes(struct child *child);
int box_empty_bounds(struct child *child); /* privileges.c */
int box_drop_privileges(struct child *child, bool init);
int box_keep_privileges(struct child *child); /* test build */
int box_scope_signals(struct child *child);   /* cage.c */
int box_open_scope(struct child *child, int *ret);
int box_open_ruleset(struct child *child, int *ret);      /* landlock.c: made by init */
int box_restrict_files(struct child *child, int ruleset); /* entered by main */
int box_start_holder(struct child *child);                /* holder.c: by main, before its filter */
int box_load_filter(struct child *child);                 /* filter.c: sends the notifier to init */

/* root.c, for the files that mount things into the new root. root_find opens the directory above a
 * path, root_make also makes the path; the place is good until the next of these calls. */
#define STAGE "proc" /* covered by /proc in the end: things to bind elsewhere are made here */
int root_open(int root, const char *path, uint64_t flags);
bool root_is_own(dev_t device); /* was it mounted here, or in the mould? */
int root_find(struct child *child, const char *path, struct place *ret);
int root_make(struct child *child, const char *path, bool directory, struct place *ret);
void root_forget_parent(struct child *child);
int root_attach(struct child *child, int tree, const struct place *place);
int root_new_tmpfs(struct child *child, uint64_t size, const char *mode);
int root_mount_tmpfs(struct child *child, const char *path, uint64_t size);
int root_copy_tree(struct child *child, int at, const char *path); /* its mounts, detached */
int root_add_step(struct child *child, size_t index);

int box_start_main(struct child *child);      /* init.c */
pid_t box_spawn_main(struct child *child);    /* spawn.c */
int box_make_terminal(struct child *child);   /* main.c */
_Noreturn void box_main(struct child *child); /* from fork to exec ... */
void box_resume(struct child *child);         /* ... or to where a forked program goes on */
int box_enter_view(struct child *child);      /* fork_view.c: instead of a root of its own */
_Noreturn void box_init(struct child *child); /* init.c: pid 1's life */

/* place.c: a futex between processes of a box, and which processor they work on */
void box_signal_word(_Atomic uint32_t *word);
int box_await_word(struct child *child, _Atomic uint32_t *word);
void box_hurry(const struct child *child);
void box_place(struct child *child, pid_t pid, _Atomic uint32_t *placed);
int box_await_place(struct child *child, _Atomic uint32_t *placed);

#endif
