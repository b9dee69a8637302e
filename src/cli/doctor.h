/* SPDX-License-Identifier: MIT */
/*
 * callbox doctor: what this host can enforce, proven.
 *
 *   doctor.c         the verb: options, the table, the JSON form
 *   doctor_host.c    facts about the host, and the settings that stop a box, each with its fix
 *   doctor_plant.c   what the probes plant on the host, and take away again
 *   doctor_probe.c   the probes: for each guarantee a real box, made by the same engine as a call
 *   doctor_inside.c  what a probe does inside its box
 *
 * The program in the box is callbox itself, shown there as one more file at its own path. It needs
 * nothing of the host (a shell, coreutils or unshare(1) may be absent or different), it can make
 * the very system calls that are to be refused, and being linked statically it runs in the barest
 * of boxes. A probe does no harm where its fence is missing: what it tries is bounded and changes
 * nothing.
 */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include <limits.h>
#include <sys/utsname.h>

#include "cli/cli.h"
#include "warden/cgroup.h"

/* ---- The host ---- */

enum doctor_container {
        CONTAINER_NONE,
        CONTAINER_DOCKER,
        CONTAINER_PODMAN,
        CONTAINER_KUBERNETES,
        CONTAINER_OTHER
};
const char *doctor_container_str(enum doctor_container container);

struct doctor_host {
        struct utsname system;
        uid_t uid;
        char namespaces[64]; /* the first kind that is refused, "" when none is */
        int namespaces_error;
        bool seccomp_notifier;
        bool filtered; /* a seccomp filter of someone else's is upon us */
        int landlock_abi, landlock_error;
        int cgroup_version; /* 0: none is mounted */
        bool cgroup_writable;
        char cgroup_controllers[128]; /* of our own group */
        enum cgroup_obstacle cgroup_obstacle;
        enum doctor_container container;
        char container_hint[64]; /* by what it was recognized */
};

void doctor_look_at_host(struct doctor_host *host);

/* A setting of this host that stops a box, or NULL when there are no more of them. `index` counts
 * through them. `where` is the failed step; NULL: any. */
struct doctor_obstacle {
        char cause[192];
        char fix[400];
};
#define DOCTOR_LISTENER "load the system call filter"
/* What makes init blind. */
#define DOCTOR_READING "look after changes"
bool doctor_next_obstacle(const struct doctor_host *host, const char *where, size_t *index,
                          struct doctor_obstacle *ret);

/* Why there is no Landlock, or no cgroup, and how to get it. */
void doctor_explain_landlock(const struct doctor_host *host, struct doctor_obstacle *ret);
void doctor_explain_cgroup(const struct doctor_host *host, struct doctor_obstacle *ret);

/* ---- What is planted ---- */

#define DOCTOR_VARIABLE "CALLBOX_DOCTOR_PLANTED"

struct doctor_plants {
        char program[PATH_MAX]; /* ourselves, to be run in the boxes */
        char directory[64];     /* where the following lie */
        char planted[96];       /* a file that is not shown */
        char shown[96];         /* one that is */
        char tree[96];          /* a directory to write to */
        int lock;               /* the shown file */
        int tcp, local;         /* listening */
        char port[8], socket[64];
};

#define DOCTOR_PLANTS_INIT                                                                         \
        {                                                                                          \
                .lock = -1, .tcp = -1, .local = -1                                                 \
        }

int doctor_plant(struct doctor_plants *plants, cbx_error *error);
void doctor_clear(struct doctor_plants *plants);

/* ---- The probes ---- */

struct doctor_finding {
        bool enforced;
        char by[96];     /* the mechanism */
        char proof[96];  /* what was tried, and what came of it */
        char cause[512]; /* empty where it is enforced */
        char fix[768];   /* ... */
};

struct doctor_findings {
        unsigned required; /* by an empty policy, as bits */
        struct doctor_finding guarantees[GUARANTEE_MAX_];
        struct doctor_finding trees; /* writable trees keep their owner: id-mapped, run by root */
        int signal;                  /* that came meanwhile and ended the examination, or 0 */
};

/* Run them all. Fails only when nothing could be tried. */
int doctor_probe(const struct doctor_host *host, struct doctor_findings *findings,
                 cbx_error *error);

/* The other side: be the program in a probe's box. Gets the name of the probe, the directory where
 * things are planted, and the probe's own arguments; returns its exit code, or -1 when this is no
 * box of a probe. */
enum { PROBE_HELD, PROBE_BROKEN, PROBE_FAILED };
int doctor_inside(int argc, char **argv);

#endif
