/* SPDX-License-Identifier: MIT */
/*
 * A plan: a policy compiled once for this host and this caller. Every host path has been resolved
 * to a descriptor, the filter to bytes, the environment to a block; a box is made from it without
 * looking anything up again. Many boxes may be made from one plan.
 */
#ifndef POLICY_PLAN_H
#define POLICY_PLAN_H

#include <linux/filter.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "policy/policy.h"

/* Who the program is inside its box, and which host id that is when root runs callbox. The latter
 * lies just above the range that systemd gives to containers: no user database hands it out. */
#define PLAN_BOX_ID 1000
#define PLAN_BOX_NAME "box"
#define PLAN_HOST_ID 0x70000000U
#define PLAN_HOST_IDS 0x10000U
#define PLAN_HOME "/tmp"

/* Why a call has no box. Only an application can say so, never a policy, a manifest or a model; and
 * whoever lets it is named in the report. 0: it has one. */
enum plan_unboxed { PLAN_BOXED, PLAN_OFF, PLAN_WARN, PLAN_ELEVATED, PLAN_UNBOXED_MAX_ };
const char *plan_unboxed_str(enum plan_unboxed unboxed);

/* One step in building the root of a box; applied in order. */
enum plan_kind {
        PLAN_DIRECTORY, /* a directory of the box's own */
        PLAN_LINK,      /* a symbolic link to `text` */
        PLAN_FILE,      /* a small read-only file that holds `text` */
        PLAN_TREE,      /* a directory or file of the host */
        PLAN_TMPFS,     /* an empty file system of `size` bytes */
        PLAN_HIDE,      /* an empty, unreadable thing over what is there */
};

struct plan_step {
        enum plan_kind kind;
        char *target;      /* in the box, absolute */
        char *text;        /* LINK, FILE: see above */
        const char *where; /* the rule it comes from, or NULL for what every box has */
        bool system;       /* a part of the system, that no rule asked for */
        /* PLAN_TREE and PLAN_HIDE: */
        bool directory;
        /* PLAN_TREE: */
        bool writable;
        char *source; /* canonical host path */
        int fd;       /* O_PATH */
        dev_t device; /* what it was when it was resolved: the box refuses anything else */
        ino_t inode;  /* ... */
        uint64_t born;
        bool map;  /* make it belong to the box's own id (root only) */
        uid_t uid; /* its owner on the host */
        gid_t gid;
        uint64_t size; /* PLAN_TMPFS */
};

/* A place that Landlock opens to a box without namespaces, with all below it. */
enum plan_access { PLAN_READS, PLAN_LISTS, PLAN_USES, PLAN_WRITES };

struct plan_rule {
        int fd;   /* O_PATH */
        bool own; /* else it is that of a step */
        bool directory;
        enum plan_access access;
};

struct plan_rlimit {
        int resource;
        rlim_t value;
};

/* How a name begins: most names are told from most others by it at once. */
struct plan_letters {
        unsigned char first,
                second; /* lower case; 0 where the first part of the name has no more */
};
struct plan_letters plan_letters_of(const char *name);

/* Can what begins like this be a spelling or a draft of a name that begins like that? Beside the
 * letters themselves: what is left out of comparisons is never ASCII, a shortened name begins with
 * a g, and a draft of NAME with NAME, ".NAME", "#NAME" or ".#NAME" (plan_names.c). */
static inline bool plan_may_mean(struct plan_letters name, struct plan_letters path)
{
        if (path.first >= 0x80 || path.first == 'g')
                return true;
        if ((path.first == '.' || path.first == '#') &&
            (path.second == '#' || path.second == name.first))
                return true;
        return path.first == name.first &&
               (name.second == 0 || path.second >= 0x80 || path.second == name.second);
}

/* A place in the box whose name must stay as it is, whether it exists or not; or, where the name
 * begins with POLICY_ANYWHERE, one that is made nowhere below a directory. */
struct plan_guard {
        char *path;       /* absolute, in the box */
        const char *name; /* the protected name; "" where another rule is the reason */
        bool hides;       /* nor may it be read */
        bool absent;      /* there was not even the first part of its name */
        /* What is asked for each file that is made, found out once (plan_set_guard): */
        size_t place;                /* how much of `path` is the place, before the name */
        bool anywhere;               /* it is a name that is made nowhere */
        bool again;                  /* the place is that of the guard before this one */
        struct plan_letters letters; /* of the name */
};

/* Is a path one that a guard is for, above it or below it? */
bool plan_is_guarded(const struct plan_guard *guard, const char *path);
/* The same by text, of a name in a place (plan_names.c). */
bool plan_means(const char *guarded, const char *name, const char *path);
/* Is it a name under which editors and git write what they then rename to `kept`, in the same
 * directory? Whoever has that open has the kept file afterwards. */
bool plan_is_draft(const char *kept, const char *path);
/* Is it in a repository, of which no directory may become one of its own? */
struct plan;
bool plan_parts_repository(const struct plan *plan, const char *path);

/* What holds for a place, more and more. */
enum plan_keeping {
        PLAN_FREE,
        PLAN_ABOVE,  /* something below is kept: it is neither moved, removed nor replaced */
        PLAN_KEPT,   /* it is not made or changed either, with all below it */
        PLAN_HIDDEN, /* nor read */
};

/* Who a file or directory is, whatever its name. */
struct plan_node {
        dev_t device;
        ino_t inode;
        uint64_t born; /* nanoseconds, 0 where unknown: file systems use numbers of inodes again */
};

/* What was found on the way to a guarded place: a directory and the name in it; or, without a name,
 * what was there itself. */
struct plan_mark {
        struct plan_node node;
        char *name;
        enum plan_keeping keeping;
        struct plan_letters letters; /* of the name */
};
struct plan_mark plan_mark_of(struct plan_node node, char *name, enum plan_keeping keeping);

/* What was found on the host when the plan was made. A box that was prepared from it is out of date
 * when it is not so any more: a workspace was replaced. */
struct plan_fact {
        char *path;   /* on the host, absolute */
        dev_t device; /* 0, 0: there is nothing of that name */
        ino_t inode;
        uint64_t born; /* nanoseconds, 0 where unknown: file systems use numbers of inodes again */
        bool guarded;  /* init keeps it whatever it is; it counts where there is nobody who does */
};

#define PLAN_RLIMITS_MAX 16

struct plan {
        const cbx_policy *policy;  /* a reference is held */
        bool caged;                /* without namespaces: Landlock is the fence */
        enum plan_unboxed unboxed; /* caged, but there is no fence either: why (plan_unboxed.c) */
        bool unnamed;    /* ... and local sockets have no names: init could not look after those */
        bool privileged; /* made by root: trees are handed in, ids are mapped */
        uid_t host_uid;  /* who the box is on the host */
        gid_t host_gid;
        bool host_root; /* which is the host's root, to whom the kernel gives more by the id alone
                         */
        bool explain;
        bool looks; /* what was refused is looked for on the host, to tell only what is there */
        bool tty;   /* calls may have a terminal */
        char *directory; /* where relative paths start, absolute */
        struct plan_step *steps;
        size_t n_steps;
        struct plan_rule *rules; /* caged only */
        size_t n_rules;
        struct plan_guard *guards;
        size_t n_guards;
        struct plan_mark *marks;
        size_t n_marks;
        bool guarded;  /* something is kept in a tree that may be written */
        bool sets_ids; /* the policy allows set-user-id and set-group-id bits to be set */
        bool hides;    /* something is hidden in a tree of the host, and mounts alone hide it */
        bool remote;   /* it shows a file system that may not answer: looking takes its time */
        struct inputs_mounts *mounts; /* while it is made: those of the host, NULL where unknown */
        bool mounts_read;
        struct plan_fact *facts;
        size_t n_facts;
        short *denied; /* calls that the policy denies by name, by number */
        size_t n_denied;
        bool lends;          /* boxes may be lent a network: init sees what might be left in it */
        bool guards_sockets; /* the host's trees or network are shown: not so their sockets */
        struct plan_rlimit rlimits[PLAN_RLIMITS_MAX];
        size_t n_rlimits;
        char **environment; /* NULL-terminated NAME=VALUE */
        char *start_directory;
        unsigned calls; /* which kind of filter it has (syscalls.h) */
        const struct sock_filter *filter;
        unsigned short filter_length;
        struct sock_filter *filter_own; /* where it was compiled for this policy alone */
        /* The same, for a zygote from which such boxes are forked: where that is asked for. */
        const struct sock_filter *zygote_filter;
        unsigned short zygote_filter_length;
        struct sock_filter *zygote_filter_own;
        struct sock_filter *loading_filter; /* a second one, while it loads; NULL: none is needed */
        unsigned short loading_filter_length;
        uint64_t loading_mark; /* of calls that it lets pass (box/own.h); 0: there is no such */
        int landlock_abi;      /* 0: the kernel has none */
        char *wipe;
        size_t wipe_length;
        char **warnings; /* NULL-terminated; shown in the report */
        size_t n_warnings;
};

struct plan_options {
        char *wipe; /* memory that init clears: the command line, which /proc/1 shows */
        size_t wipe_length;
        enum plan_unboxed unboxed; /* there is to be no box, and why */
        bool explain;              /* record refused paths and connections */
        bool looks;                /* ... and tell of those that the host has: to its user alone */
        bool hopeful;          /* the host is taken to allow namespaces until it says otherwise */
        bool tty;              /* calls may have a terminal of their own */
        bool lends;            /* boxes without a network may be lent one (box/lend.h) */
        bool zygote;           /* boxes may be forked from a zygote (box/fork.h) */
        const char *directory; /* where relative paths start; NULL: the current directory */
        char **environment;    /* the caller's */
        const char *pass_all;  /* unfenced test build only */
};

/* Compile a policy. error->where names the rule that cannot be kept on this host. */
int plan_compile(cbx_policy *policy, const struct plan_options *options, cbx_error *error,
                 struct plan **ret_plan);
struct plan *plan_free(struct plan *plan);

static inline void plan_freep(struct plan **plan)
{
        *plan = plan_free(*plan);
}
#define _cleanup_plan_ _cleanup_(plan_freep)

/* Is `path` the same as `tree` or below it? Returns what follows `tree`, or NULL. */
static inline const char *plan_below(const char *path, const char *tree)
{
        size_t n = strlen(tree);

        if (strncmp(path, tree, n) != 0 || (path[n] != '\0' && path[n] != '/'))
                return NULL;
        return path + n;
}

/* The step that says what is at this path, which is the deepest. A directory of the box's own says
 * nothing of what is in it. */
static inline const struct plan_step *plan_step_for(const struct plan *plan, const char *path)
{
        const struct plan_step *found = NULL;

        for (size_t i = 0; i < plan->n_steps; i++) /* parents come before children */
                if (plan->steps[i].kind != PLAN_DIRECTORY &&
                    plan_below(path, plan->steps[i].target))
                        found = &plan->steps[i];
        return found;
}

/* Will a box for this policy be made without namespaces? Asks the host. */
bool plan_is_caged(const cbx_policy *policy);
/* Does the policy show what is at this path? */
bool plan_shows(const struct plan *plan, const char *path);

/* Do the facts still hold, with those that init looks after or without them? */
bool plan_facts_hold(const struct plan_fact *facts, size_t n, bool guarded);
/* The same, and is the system that every box shows where it was? */
bool plan_is_current(const struct plan *plan);

/* The limits that the kernel keeps by itself; returns how many there are. */
size_t plan_rlimits(const struct policy_limits *limits, struct plan_rlimit ret[PLAN_RLIMITS_MAX]);

/* Of the caller's environment, what a plan for this policy looks at. An array of pointers into it,
 * NULL-terminated, to be freed (plan_environment.c). */
char **plan_select_environment(const cbx_policy *policy, char *const *environment);

int plan_warn(struct plan *plan, const char *format, ...) PRINTF_LIKE(2, 3);

/* The steps that every box has: the read-only system, /etc, /tmp (plan_system.c). */
int plan_add_system(struct plan *plan, cbx_error *error);
/* The steps that the policy asks for (plan_files.c). */
int plan_add_files(struct plan *plan, const struct plan_options *options, cbx_error *error);
/* The order of all steps, what of them can be mounted where it is to be, and where the program
 * starts (plan_order.c). */
int plan_order_steps(struct plan *plan, int dirfd, const char *workspace, cbx_error *error);
/* What the system shows by itself gives way to what the rules show around it. */
int plan_give_way(struct plan *plan);
/* Of the system's parts, leave out what lies below a hidden path. */
void plan_drop_hidden(struct plan *plan, const char *path);
/* Room for one more in an array that is never shortened; NULL: out of memory. */
static inline void *plan_grow(void *array, size_t n, size_t size)
{
        return n & (n - 1) ? array : reallocarray(array, n ? 2 * n : 1, size);
}
/* Add one step; takes ownership of nothing, copies target and text. */
struct plan_step *plan_add_step(struct plan *plan, enum plan_kind kind, const char *target,
                                const char *text);
/* Resolve a host path once and add it as a tree; 0, or a negative errno with nothing added. */
int plan_add_tree(struct plan *plan, int dirfd, const char *host, const char *target, bool writable,
                  const char *where);
/* The same for a rule of the policy: what it led to when it was first looked up (pins.h). -ESTALE
 * comes with an error: it is not that any more. */
int plan_add_rule(struct plan *plan, const struct policy_path *rule, const char *target,
                  bool writable, cbx_error *error);
/* Note what is at a path, relative to `directory` where it is not absolute; NULL: nothing. */
int plan_add_fact(struct plan *plan, const char *directory, const char *path,
                  const struct plan_step *found);
/* Look at an absolute path, and note what is there. */
int plan_note(struct plan *plan, const char *path);
/* The same of a name that is to be kept from coming to be: its first part is not there. */
int plan_note_absent(struct plan *plan, const char *directory, const char *name);
/* What stays as it is (plan_keep.c): by a path in the box; by who a directory is, and a name in it,
 * or who something is itself, without a name. The greater of both holds. */
enum plan_keeping plan_keeps(const struct plan *plan, const char *path);
enum plan_keeping plan_keeps_node(const struct plan *plan, const struct plan_node *node,
                                  const char *name);
/* The same of a directory and of a name in it, at once. */
struct plan_kept {
        enum plan_keeping itself, name;
};
struct plan_kept plan_keeps_entry(const struct plan *plan, const struct plan_node *node,
                                  const char *name);
/* The greater of two. */
static inline enum plan_keeping plan_greater(enum plan_keeping a, enum plan_keeping b)
{
        return MAX(a, b);
}
/* Is it a name that is made nowhere in this tree? */
bool plan_forbids_name(const struct plan *plan, const char *path);
struct statx;
struct plan_node plan_node_of(const struct statx *st);
/* Once all steps are in order: guard what they keep and hide, and note who it is. */
int plan_keep(struct plan *plan);
/* Keep a place of the box, or a name in it, as it is. */
int plan_add_guard(struct plan *plan, const char *place, const char *name);
/* Fill in one of a plan's guards, those before which are there: takes the path. */
void plan_set_guard(struct plan *plan, size_t index, char *path, const char *name);
/* The host's paths in the tree of a step that lead to what is at a path: bind mounts give one place
 * many. NULL: out of memory (plan_hold.c). */
char **plan_shown(struct plan *plan, size_t index, const char *path);
/* Let no box of this plan create, change, replace or remove what is at a host path, nor a directory
 * above it that it may write, whether there is something now or not. The path is absolute and may
 * have links in it. One that no writable tree shows costs nothing (plan_hold.c). */
int plan_hold(struct plan *plan, const char *path, const char *where, cbx_error *error);
/* The same for a name in a directory whose path has no links. */
int plan_hold_name(struct plan *plan, const char *directory, const char *name, const char *where);
/* What of it can be had without namespaces (plan_cage.c). */
int plan_cage(struct plan *plan, cbx_error *error);
/* Take every fence away again; what is left is where the program starts (plan_unboxed.c). */
int plan_unbox(struct plan *plan, cbx_error *error);
/* The environment block (plan_environment.c). */
int plan_set_environment(struct plan *plan, const struct plan_options *options, cbx_error *error);

#endif
