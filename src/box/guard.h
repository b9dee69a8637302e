/* SPDX-License-Identifier: MIT */
/*
 * The guard: calls that init looks at before they happen.
 *
 * A protected name must not come into being, even where there is nothing yet that a mount could
 * cover; and a mount on a name goes when the host replaces the name. So in a box that may write
 * around something that is to stay as it is, every call that makes, changes or takes away a file
 * arrives here, and init makes it on the program's behalf: it copies the path, resolves the
 * directory once, looks at the real place, and then acts on that very directory. Where something is
 * hidden from the box, it opens files for reading as well. A socket of the host that a shown tree
 * happens to hold must not be talked to, so connections are made here too.
 *
 * What the program does to its own memory meanwhile changes nothing, and no call of these kinds is
 * ever told to continue. Init is the box's own user in the box's own namespaces, without
 * capabilities that matter: it can do nothing for the program that the program could not do itself.
 */
#ifndef BOX_GUARD_H
#define BOX_GUARD_H

#include <limits.h>
#include <linux/seccomp.h>

#include "box/child.h"

/* Deal with a watched call. False: it is not one, and has to be refused. */
bool guard_serve(struct child *child, const struct seccomp_notif *call);

/* ---- guard_path.c: paths as the calling process means them ---- */

/* A name in a directory that is held open. */
struct guard_path {
        int parent;
        char name[NAME_MAX + 1];
        char given[NAME_MAX +
                   2];       /* with the slash behind it, for calls to which that means something */
        char text[PATH_MAX]; /* the whole, as the box sees it */
        bool slash;          /* it was written with a slash behind it */
};

int guard_read(const struct seccomp_notif *call, uint64_t address, void *room, size_t size);
int guard_read_text(const struct seccomp_notif *call, uint64_t address, char *room, size_t size);

/* Resolve the directory of a path that lies in the memory of the calling process. */
int guard_resolve(struct child *child, const struct seccomp_notif *call, int dirfd,
                  uint64_t address, struct guard_path *ret);
/* The same for a path that is known, seen from a directory that is open, which it takes. */
int guard_resolve_from(struct child *child, const struct seccomp_notif *call, int start,
                       const char *path, struct guard_path *ret);
void guard_path_close(struct guard_path *path);
/* May this place be looked at for the program? Init's own corner of /proc is nobody's. */
bool guard_lets_see(const struct child *child, const char *text);

/* What a descriptor of the caller's stands for, or its current directory, to look at. */
int guard_base(struct child *child, const struct seccomp_notif *call, int dirfd);
/* The same as what a relative path starts from. */
int guard_start(struct child *child, const struct seccomp_notif *call, int dirfd);

/* A number from /proc/TID/status, 0 where there is none; umasks are octal. */
uint64_t guard_status(struct child *child, const struct seccomp_notif *call, const char *label,
                      unsigned base);

/* Make files as the caller would; and somebody sets an umask. */
void guard_take_umask(struct child *child, const struct seccomp_notif *call);
void guard_umask_set(void);

/* The same of one of its descriptors, from /proc/TID/fdinfo. */
uint64_t guard_fdinfo(struct child *child, const struct seccomp_notif *call, int number,
                      const char *label, unsigned base);

/* The process of a thread, 0 where there is none. */
pid_t guard_process_of(struct child *child, pid_t thread);

/* The path by which a descriptor of ours can be named, in a room of 40; and where it leads to. */
void guard_own_link(int fd, char *room);
int guard_text_of(int fd, char *room, size_t size);
/* Open it once more. */
int guard_open_own(int fd, int flags, mode_t mode);

/* One of the caller's descriptors, as one of ours; -EPERM where the host lets nobody take any. */
int guard_take_descriptor(struct child *child, const struct seccomp_notif *call, int number);

/* Is the last part of a path a link, and where does that lead? */
bool guard_is_link(const struct guard_path *path);
int guard_follow(struct child *child, const struct seccomp_notif *call, struct guard_path *path);

bool guard_is_alive(struct child *child, const struct seccomp_notif *call);

/* ---- Answers ---- */

void guard_answer(struct child *child, const struct seccomp_notif *call, int r);
void guard_continue(struct child *child, const struct seccomp_notif *call);

/* ---- guard_keep.c: what stays as it is ---- */

/* Is it the name by which a directory is a repository, as this directory reads it (guard_case.c)?
 */
bool guard_means_head(const struct child *child, const struct guard_path *path);

struct statx;

/* Look at something, or at a name in a directory; links are not followed. */
int guard_look(int fd, const char *name, struct statx *ret);

/* What holds for a place: by its directory, which is open, and its text. */
enum plan_keeping guard_keeping(const struct child *child, int directory, const char *text);
/* ... for something by who it is, and for something that is open, of which only the text is known.
 */
enum plan_keeping guard_keeping_node(const struct child *child, const struct statx *st);
enum plan_keeping guard_keeping_of(const struct child *child, const char *text,
                                   const struct statx *st);
/* Is it not where its text says, as the host has moved it out of a tree? */
bool guard_is_misplaced(const struct child *child, const char *text, const struct statx *st);
/* Does it take its directory to tell? */
bool guard_needs_way(const struct child *child, const char *text);
/* May init change something here for a program that Landlock would not let? */
bool guard_is_writable(const struct child *child, int fd, const char *text);

/* May a name be made here; and may one be moved or removed, which may be a directory's? 0, or the
 * answer. */
int guard_check_new(struct child *child, const struct guard_path *path);
int guard_check_old(struct child *child, const struct guard_path *path, bool directory);
/* Both: what is there has to give way. */
int guard_check_target(struct child *child, const struct guard_path *path);
int guard_refuse(struct child *child, int fd, const char *text);
int guard_refuse_hidden(struct child *child, const char *text);

/* ---- guard_open.c ---- */

void guard_open(struct child *child, const struct seccomp_notif *call, int dirfd, uint64_t address,
                int flags, mode_t mode);

/* ---- guard_change.c; without namespaces guard_signal.c ---- */

/* May the program change what is at this place, or read it? The latter is to be told, not to be
 * decided: Landlock decides. */
bool guard_may_change(const struct child *child, const char *text);
bool guard_may_read(const struct child *child, const char *text);

bool guard_change(struct child *child, const struct seccomp_notif *call);
bool guard_signal(struct child *child, const struct seccomp_notif *call);

/* ---- guard_socket.c, guard_explain.c ---- */

void guard_bind(struct child *child, const struct seccomp_notif *call);
void guard_connect(struct child *child, const struct seccomp_notif *call);
void guard_note_send(struct child *child, const struct seccomp_notif *call);
bool guard_explain(struct child *child, const struct seccomp_notif *call);
/* --explain: note a socket that is not there or is hidden, and what has no room left. */
void guard_note_socket(struct child *child, int base, const char *path);
void guard_note_full(struct child *child);

/* Run the rest in a process of its own, because it may block. Returns true in that process, which
 * ends with guard_leave. */
bool guard_delegate(struct child *child, const struct seccomp_notif *call);
_Noreturn void guard_leave(void);
bool guard_is_helper(pid_t pid); /* is it such a process? */
/* Init has reaped one, or somebody else. */
void guard_reaped(pid_t pid);
/* Look at no more calls. What was begun ends. */
void guard_close(struct child *child);

#endif
