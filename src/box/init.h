/* SPDX-License-Identifier: MIT */
/* What the parts of init offer each other. Async-signal-safe, all of it. */
#ifndef BOX_INIT_H
#define BOX_INIT_H

#include "box/child.h"

/* Reap who has ended. */
void init_reap(struct child *child); /* init.c */

/* Answer one refused or watched call. Returns BOX_DENIED when it is to end the call. */
enum box_verdict notify_serve(struct child *child); /* notify.c */

/* Note a refused path, address or name in the page, counting what is there already. */
void notify_trace(struct box_page *page, enum box_trace_kind kind, const char *text, int error);

/* Memory that is shared within the tree (shared.c): answer a call that makes some, false where it
 * is another call; what there is; whether a memory file is among that; and give up what nobody has
 * any more, now or where that was not done just before. */
struct seccomp_notif;
bool shared_serve(struct child *child, const struct seccomp_notif *call);
uint64_t shared_held(void);
bool shared_has(dev_t device, ino_t inode);
bool shared_forget(struct child *child, bool now);

/* Things that processes have open, each once; beyond so many, once for each who has it. */
#define INODES_MAX 1024
struct inodes {
        uint64_t all[INODES_MAX];
        unsigned n;
};

/* Note one, by its number or by a link of /proc such as "pipe:[123]": whether it was not seen
 * before (watch.c). */
bool inodes_add(struct inodes *inodes, uint64_t inode);
bool inodes_add_link(struct inodes *inodes, const char *link);

/* Pipes (pipes.c): add what a link in a directory of descriptors stands for if it is a pipe, with a
 * name or without: whether it is a new one; and ask whether the user has too few left because this
 * tree has many. */
uint64_t pipes_in_flight(int process, const char *number); /* descriptors that wait in a socket */
bool pipes_add(struct inodes *pipes, int directory, const char *number, const char *link);
bool pipes_starve_user(struct child *child, const struct inodes *pipes,
                       const struct inodes *sockets);

/* What the tree's sockets hold; those that its processes have open are given. */
uint64_t buffers_held(struct child *child, const struct inodes *open); /* buffers.c */
/* How many there are in a network of the box's own, on their way or not; 0 where it has none. */
uint64_t buffers_count(struct child *child);

/* When to do again what has taken init that much of the processors: one part of `share` of the time
 * goes into it at most, but it is never put off for long. */
#define PAUSE_MOST (200 * NSEC_PER_MSEC)
uint64_t watch_clock(void); /* watch.c: what init has used */
static inline uint64_t watch_pause(uint64_t now, uint64_t used, unsigned share)
{
        return now + MIN(used * share, PAUSE_MOST);
}

/* How much later than asked the kernel may wake init, ns; 0: as usual. It may wake the inits of
 * many sleeping boxes together. */
void watch_set_slack(uint64_t slack);

/* Processor time that nobody's books have (books.c): what `stat` says of each process; how much was
 * lost, by what the books of all have and how many tasks there are; that the tree was still until
 * now; and whether some may be lost. */
void books_add(const char *stat);
uint64_t books_lost(struct child *child, uint64_t booked, uint64_t tasks, uint64_t now);
void books_rest(uint64_t now);
bool books_suspect(uint64_t now);

/* Processor time by chance (sample.c): when to look again, at the latest after an interval; the
 * sample, where the time for one has come; what all of them prove. */
uint64_t sample_plan(uint64_t now, uint64_t interval);
void sample_take(struct child *child, uint64_t now);
uint64_t sample_proven(void);

/* How many descriptors a process has that may be closed to init, or has room for (watch.c). */
uint64_t watch_descriptors(int process);

/* Read a small file as text, -1 on failure; how many processors there are for the box (watch.c). */
ssize_t watch_read(int directory, const char *path, char *room, size_t size);
unsigned watch_processors(void);

/* Areas and watches, as they were counted last. */
uint64_t objects_held(struct child *child, uint64_t limit); /* objects.c */

/* Look at the whole tree: what it uses, whether that is too much, and when to look again. */
#define LOOK_USUAL (25 * NSEC_PER_MSEC)
enum box_verdict watch_tree(struct child *child, uint64_t now, uint64_t *ret_next); /* watch.c */

/* The processes of the tree, without init; how many there are. */
#define WATCH_PROCESSES_MAX 4096
size_t watch_list(struct child *child, pid_t *pids, size_t max);

/* The sum of one column of a table below /proc, however long; of column 0, how many rows it has
 * below its head. */
uint64_t watch_sum(struct child *child, const char *path, unsigned wanted);

/* Who has main's memory too (holder.c): is it the only other process of the box? What it has is
 * counted with main, so a look begins with letting it go where main has another memory by now; then
 * it is on its way out, and still not to be counted. */
void holder_stop(struct child *child); /* before the program goes on */
bool holder_is_alone(const struct child *child);
void holder_look(struct child *child);
bool holder_is(const struct child *child, pid_t pid);
void holder_reaped(struct child *child, pid_t pid);

/* What tells whether a tree has changed since a look (still.c): taken before it and as the
 * processes are looked at, asked afterwards. */
#define STILL_MAX 8
struct still {
        uint64_t last_pid; /* 0: it cannot be told */
        unsigned n;
        pid_t pids[STILL_MAX];
        uint64_t clocks[STILL_MAX];
};
void still_begin(struct still *still, const struct child *child);
void still_add(struct still *still, pid_t pid);
bool still_holds(const struct still *still, const struct child *child);
bool still_clock(pid_t pid, uint64_t *ret);         /* what a process has used, exactly */
uint64_t still_last_pid(const struct child *child); /* that was given out; 0: not known */

#endif
