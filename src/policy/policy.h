/* SPDX-License-Identifier: MIT */
/*
 * A policy: what a box may see, reach and use. It is read from JSON (policy_from_json), checked
 * as it is read, and never changes afterwards. Reading it does not look at the host: whether a path
 * exists is found out when the policy is compiled to a plan (plan.h). What its paths led to when
 * they were first looked up is kept with it (pins.h).
 */
#ifndef POLICY_POLICY_H
#define POLICY_POLICY_H

#include <jansson.h>
#include <pthread.h>
#include <sys/types.h>

#include "base/base.h"

enum policy_network { POLICY_NETWORK_NONE, POLICY_NETWORK_LOOPBACK, POLICY_NETWORK_HOST };
const char *policy_network_str(enum policy_network network);

/* What a box is made of. POLICY_BOX_AUTO: of namespaces where the host lets callbox make them, else
 * of Landlock. */
enum policy_box { POLICY_BOX_AUTO, POLICY_BOX_NAMESPACES, POLICY_BOX_LANDLOCK };

enum policy_access { POLICY_READ, POLICY_WRITE, POLICY_HIDE, POLICY_TMPFS };

/* What happens when the program makes a system call that the policy refuses. */
enum policy_refusal { POLICY_REFUSE_ERRNO, POLICY_REFUSE_KILL };

/* The named things that a box enforces; used as bits by 1U << guarantee. */
enum guarantee {
        GUARANTEE_TREE_KILL,
        GUARANTEE_FILES,
        GUARANTEE_NETWORK,
        GUARANTEE_SYSCALLS,
        GUARANTEE_PRIVILEGES,
        GUARANTEE_ENVIRONMENT,
        GUARANTEE_MEMORY,
        GUARANTEE_PIDS,
        GUARANTEE_CPU,
        GUARANTEE_LANDLOCK, /* the second fence; wanted, required only on request */
        GUARANTEE_CGROUP,   /* exact accounting; wanted, required only on request */
        GUARANTEE_MAX_,
};
const char *guarantee_str(enum guarantee guarantee); /* "tree-kill", "files", ... */

/* One rule about a path. `where` names the rule in refusals, e.g. "files.read[0]". */
struct policy_path {
        enum policy_access access;
        bool workspace; /* POLICY_WRITE only: protected names hold in it */
        char *host; /* on the host; absolute, or relative to the caller's directory; NULL for tmpfs
                     */
        char *box;  /* absolute, in the box; NULL: the same place as on the host */
        uint64_t size; /* POLICY_TMPFS only */
        char *where;
};

struct policy_variable {
        char *name;
        char *value; /* NULL: passed through from the caller */
};

#define POLICY_TMP_SIZE (64 * MIB) /* by default */

/* 0 means no limit, except for wall, tmp_size, capture and result, which are always set. */
struct policy_limits {
        double wall;         /* seconds, from the start of the program; > 0 */
        double cpu;          /* seconds, whole tree */
        double cpus;         /* processors' worth of time, whole tree */
        uint64_t memory;     /* bytes, whole tree */
        uint64_t processes;  /* processes and threads, whole tree */
        uint64_t file_size;  /* bytes, each file */
        uint64_t open_files; /* descriptors, each process */
        uint64_t tmp_size;   /* bytes, /tmp and /dev/shm each */
        uint64_t output;  /* bytes written to stdout and stderr together; then the call is ended */
        uint64_t capture; /* bytes kept of each stream, head and tail */
        uint64_t result;  /* bytes kept of the result, likewise; it counts towards no other */
};

/* What a path of a policy led to when it was first looked up (pins.h). */
struct policy_pin {
        char *asked;  /* absolute, as the policy and the caller's directory have it */
        char *path;   /* canonical; where there was nothing yet: where it would be */
        char **links; /* that were followed, each by its canonical place; NULL: none */
        bool there;   /* what follows is known */
        mode_t type;  /* S_IFMT of it */
        dev_t device; /* 0, 0: not compared, its file system may number it anew */
        ino_t inode;
        uint64_t born;
};

struct policy_pins {
        struct policy_pin *items;
        size_t n;
        uint64_t version; /* grows with every change */
        char *complete;   /* the directory for which all paths are known */
        bool checked;     /* no box of the policy may change a link that was followed */
        uint64_t followed, followed_version; /* for what inputs_refuse_followed() has said yes */
};

struct cbx_policy {
        unsigned refs;
        enum policy_box box;
        bool system; /* show the read-only system: /usr, /bin, /lib*, parts of /etc */
        struct policy_path *paths;
        size_t n_paths;
        char **protect; /* names protected in the workspace; NULL-terminated */
        char **hold; /* host paths that stay as they are in every writable tree; NULL-terminated */
        enum policy_network network;
        struct policy_variable *variables;
        size_t n_variables;
        struct policy_limits limits;
        char **syscalls_allow, **syscalls_deny; /* NULL-terminated */
        enum policy_refusal refusal;
        unsigned require;     /* guarantees that must hold, as bits */
        bool best_effort;     /* what is not in `require` may be missing, and is then reported */
        pthread_mutex_t lock; /* of what follows, which is no part of what the policy says */
        struct policy_pins pins;
        const void *group; /* of inputs_follow(); set before its first use */
};

/*
 * Read a policy from parsed JSON. On failure `error->where` is the JSON path of the mistake
 * ("limits.memory", "files.read[2]").
 */
int policy_from_json(json_t *json, cbx_error *error, cbx_policy **ret_policy);

/* The effective policy, every default spelled out. */
json_t *policy_to_json(const cbx_policy *policy);

/* The same from text, as cbx_policy_parse() does, which also looks up what its paths lead to. */
int policy_from_text(const char *text, size_t length, cbx_error *error, cbx_policy **ret_policy);

/*
 * Parse JSON text strictly: one value, no duplicate keys, at most 64 levels and 1 MiB, no NUL in
 * strings. `what` names the document in errors ("the policy").
 */
int policy_json_parse(const char *text, size_t length, const char *what, cbx_error *error,
                      json_t **ret_json);

/* "256M", "1.5G", "4096" → bytes; K, M, G, T are powers of 1024, an optional B or iB follows. */
int policy_size_from_str(const char *text, uint64_t *ret_bytes);

/* The hash of the policy but for what it shows read-only at this place in the box. */
uint64_t policy_hash_without(const cbx_policy *policy, bool (*is_left_out)(const char *box));

/* Why a path cannot be a place in the box, as the end of a sentence that begins with it; or NULL.
 * The plan asks again for host paths whose place is known only when they have been resolved. */
const char *policy_box_path_refusal(const char *path);

/* The names that are protected in a workspace unless the policy has a list of its own. */
#define POLICY_ANYWHERE "**/"                      /* before a protected name: at every depth */
extern const char *const policy_protect_default[]; /* NULL-terminated */

/* What follows POLICY_ANYWHERE in a protected name that begins with it; else NULL. */
const char *policy_anywhere(const char *name);

/* Is it a letter or underscore, followed by letters, digits and underscores? */
bool policy_variable_is_name(const char *name);

/* Names such as LD_PRELOAD or PYTHONPATH that make a program load code from elsewhere: they
 * pass only where a policy names them, and a warning says so. */
bool policy_variable_is_risky(const char *name);

/* Read one "limits" object over `limits`, each key at most as large as before when `tighten`. */
int policy_limits_from_json(json_t *json, const char *path, bool tighten, cbx_error *error,
                            struct policy_limits *limits);

/* Set the limits of a call over its policy's, where they are not 0; none may be looser. */
int policy_limits_tighten(const struct policy_limits *asked, struct policy_limits *limits,
                          cbx_error *error);

static inline void policy_unrefp(cbx_policy **policy)
{
        *policy = cbx_policy_unref(*policy);
}
#define _cleanup_policy_ _cleanup_(policy_unrefp)

static inline void policy_json_decrefp(json_t **json)
{
        json_decref(*json);
}
#define _cleanup_json_ _cleanup_(policy_json_decrefp)

#endif
