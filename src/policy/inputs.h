/* SPDX-License-Identifier: MIT */
/*
 * Own inputs: what tells callbox what to do (policies, specs, manifests, the files they name,
 * tokens, logs, callbox itself) must not be writable by any box that it makes. Here is asked
 * whether one is, by canonical path and by where that lies in its file system, whatever it is
 * spelled like and wherever else it is mounted. It is then refused, or held: see files.hold of a
 * policy.
 */
#ifndef POLICY_INPUTS_H
#define POLICY_INPUTS_H

#include "policy/policy.h"

/* The mounts of this process, as they are now. Two paths that lead to the same place of a file
 * system are told to be one by these alone. */
struct inputs_mounts;
int inputs_mounts_read(struct inputs_mounts **ret_mounts);
struct inputs_mounts *inputs_mounts_free(struct inputs_mounts *mounts);

/* May boxes of this policy write anything of the host's? */
bool inputs_writes(const cbx_policy *policy);

/* The rule by which a box of this policy may write what is at a canonical path, or make it where
 * there is nothing, or put something else into the place of a directory above it; NULL: it cannot.
 * What the policy holds it cannot. The paths of the policy are looked up where that was not done.
 * `mounts` may be NULL: then paths alone tell. */
const struct policy_path *inputs_writer(const cbx_policy *policy,
                                        const struct inputs_mounts *mounts, const char *canonical);

/* One of them, in the words of a refusal. */
struct inputs_item {
        const char *what;  /* "the folder of manifests" */
        const char *path;  /* as it was given; relative to the current directory */
        const char *whose; /* "boxes of this policy", "calls of the tool \"x\"" */
        const char *harm;  /* "they could ..." */
};

/* Refuse it where a box of this policy may write it, or a link on the way to it: -EPERM with path,
 * reason and what to do about it. */
int inputs_refuse(const cbx_policy *policy, const struct inputs_mounts *mounts,
                  const struct inputs_item *item, const char *where, cbx_error *error);

/* The same for places that are canonical, or those of links; item->path is not looked at. */
int inputs_refuse_places(const cbx_policy *policy, const struct inputs_mounts *mounts,
                         const struct inputs_item *item, char *const *places, const char *where,
                         cbx_error *error);

/* Is it a stream of the caller's: a device, or a descriptor that leads to no file with a name? */
bool inputs_is_stream(const char *path);

/* Hold it where a box of this policy may write it: the policy is replaced by one that does. A link
 * on the way that a box may change is refused. Streams are left alone. */
int inputs_hold(cbx_policy **policy, const char *what, const char *path, const char *where,
                cbx_error *error);

/* Hold each of these absolute paths where a box of this policy may write it or change a link on the
 * way to it; the links are held with it. */
int inputs_hold_ways(cbx_policy **policy, char *const *paths, cbx_error *error);

/* Hold it as above, and hide it where it is there. */
int inputs_hide(cbx_policy **policy, const char *what, const char *path, const char *where,
                cbx_error *error);

/* Open a file for reading. A link on the way that a box of this policy may change is refused, with
 * an error; another failure comes without one. */
int inputs_open(const cbx_policy *policy, const char *path, int flags, const char *what,
                const char *where, cbx_error *error);

/* Refuse paths of a policy that lead through a link which a box of `writer`, the same policy or
 * another, may change: it would choose what the path means the next time. */
int inputs_refuse_links(const cbx_policy *policy, const cbx_policy *writer, const char *whose,
                        const struct inputs_mounts *mounts, cbx_error *error);

/* The same for the policy itself; asked once for what its paths led to. */
int inputs_refuse_own_links(cbx_policy *policy, cbx_error *error);

/* ---- Of this process (inputs_process.c) ---- */

/* Note an input that no policy of this process may write, and forget all of an owner's. Policies of
 * the same group are left out: whoever has put them there has asked them already. */
int inputs_follow(const void *owner, const void *group, const char *what, const char *path);
void inputs_unfollow(const void *owner);
/* Refuse a policy that may write one of them. Once it was asked, that costs nothing until there are
 * more of them, or its paths lead elsewhere. */
int inputs_refuse_followed(cbx_policy *policy, cbx_error *error);

/* Hold the program that runs, by each of its names, what it has loaded, and the program that is
 * started as a warden, which may be NULL. */
int inputs_hold_own(cbx_policy **policy, const char *warden, cbx_error *error);

/* The file of the program that runs; false: it has none any more. */
bool inputs_own_program(char *path, size_t size);

#endif
