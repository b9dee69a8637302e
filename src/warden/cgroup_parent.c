/* SPDX-License-Identifier: MIT */
/* The place where the groups of boxes lie: found, divided, kept clean. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/xattr.h>

#include "box/fences.h"
#include "warden/cgroup.h"
#include "warden/cgroup_files.h"

#define ROOT "/sys/fs/cgroup"
#define LEAF "callbox-warden" /* where the warden itself lives below a divided group */
#define SWEEPS_MAX 100        /* looks at what is dying, 10 ms apart */
#define SWEEP_PAUSE 10000     /* us */

static const struct {
        const char *text, *fix;
} obstacles[CGROUP_OBSTACLE_MAX_] = {
        [CGROUP_NOT_MOUNTED] = { "no cgroup file system is mounted",
                                 "mount -t cgroup2 none /sys/fs/cgroup, or start the container "
                                 "with one" },
        [CGROUP_V1] = { "/sys/fs/cgroup is cgroup v1, in which subtrees cannot be handed out",
                        "boot the host with systemd.unified_cgroup_hierarchy=1, or without "
                        "systemd with cgroup_no_v1=all and cgroup2 mounted at /sys/fs/cgroup" },
        [CGROUP_READ_ONLY] = { "the cgroup file system is mounted read-only",
                               "start the container with a writable one of its own: docker run "
                               "--privileged --cgroupns=private ..., podman run "
                               "--security-opt unmask=/sys/fs/cgroup ..., or as root in it: mount "
                               "-o remount,rw /sys/fs/cgroup" },
        [CGROUP_FOREIGN] = { "the cgroup that callbox was started in is not its own",
                             "systemd-run --user --scope -p Delegate=yes callbox run ...; without "
                             "systemd, as root: mkdir /sys/fs/cgroup/callbox && chown -R USER "
                             "/sys/fs/cgroup/callbox, and start callbox in it" },
        [CGROUP_NOT_DELEGATED] = { "the cgroup that callbox was started in is systemd's, and has "
                                   "not been handed over",
                                   "systemd-run --scope -p Delegate=yes callbox run ... (with "
                                   "--user where a user runs it), or Delegate=yes in the unit" },
        [CGROUP_POOR] = { "the memory and pids controllers have not been handed down to the cgroup "
                          "that callbox was started in",
                          "as root: echo +memory +pids +cpu >CGROUP/cgroup.subtree_control in each "
                          "group above it, or Delegate=yes in the unit" },
        [CGROUP_CROWDED] = { "other processes live in the cgroup that callbox was started in, "
                             "which "
                             "cannot be divided then",
                             "start callbox alone in one (systemd-run --scope -p Delegate=yes "
                             "callbox run ...), or move all that is in it to one below it: mkdir "
                             "CGROUP/all && for p in $(cat CGROUP/cgroup.procs); do echo $p "
                             ">CGROUP/all/cgroup.procs; done" },
};

const char *cgroup_obstacle_str(enum cgroup_obstacle obstacle)
{
        return obstacles[obstacle].text;
}

const char *cgroup_obstacle_fix(enum cgroup_obstacle obstacle)
{
        return obstacles[obstacle].fix;
}

/* ---- Looking ---- */

/* Does a space-separated list hold a word? */
static bool has_word(const char *list, const char *word)
{
        size_t n = strlen(word);

        for (const char *at = list; (at = strstr(at, word)); at += n)
                if ((at == list || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\n' || !at[n]))
                        return true;
        return false;
}

static bool has_controller(int directory, const char *name, const char *controller)
{
        _cleanup_free_ char *text = NULL;
        size_t length;

        return file_read(directory, name, 4 * KIB, &text, &length) == 0 &&
               has_word(text, controller);
}

static bool has_controllers(int directory, const char *name)
{
        return has_controller(directory, name, "memory") && has_controller(directory, name, "pids");
}

/* The cgroup that this process is in, as a path below the mount of its hierarchy: in the line of
 * /proc/self/cgroup with these controllers. */
static int own_path(const char *controllers, const char *root, char *room, size_t size)
{
        _cleanup_free_ char *text = NULL;
        size_t length;
        char *line, *end;

        if (file_read(AT_FDCWD, "/proc/self/cgroup", 64 * KIB, &text, &length) < 0)
                return -ENOENT;
        line = strstr(text, controllers);
        if (!line || (line > text && *controllers == '0' && line[-1] != '\n'))
                return -ENOENT;
        line += strlen(controllers) - 1;
        line[strcspn(line, "\n")] = '\0';
        end = line + strlen(line) - 1;
        if (*end == '/') /* the root */
                *end = '\0';
        return snprintf(room, size, "%s%s", root, line) < (int)size ? 0 : -ENAMETOOLONG;
}

static bool is_unit(const char *name)
{
        static const char *const kinds[] = { ".scope", ".service", ".slice", ".mount", ".socket" };
        size_t length = strlen(name);

        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
                if (length > strlen(kinds[i]) &&
                    strcmp(name + length - strlen(kinds[i]), kinds[i]) == 0)
                        return true;
        return false;
}

/* Where systemd keeps the tree, the unit that a group lies in must be marked as handed over. The
 * manager of a user could not mark one before systemd 253: there, what the user may write to is. */
static bool is_delegated(const char *path)
{
        static const char *const marks[] = { "user.delegate", "trusted.delegate" };
        char unit[PATH_MAX], value;

        if (geteuid() != 0 || access("/run/systemd/system", F_OK) < 0)
                return true;
        snprintf(unit, sizeof(unit), "%s", path);
        while (strlen(unit) > strlen(ROOT) && !is_unit(strrchr(unit, '/') + 1))
                *strrchr(unit, '/') = '\0';
        for (size_t i = 0; strlen(unit) > strlen(ROOT) && i < ARRAY_SIZE(marks); i++)
                if (getxattr(unit, marks[i], &value, 1) == 1 && value == '1')
                        return true;
        return false;
}

/* Is nobody but perhaps this process in it? Who is in another pid namespace shows as 0. */
static bool is_empty(int group)
{
        _cleanup_free_ char *text = NULL;
        size_t length;

        if (file_read(group, "cgroup.procs", MIB, &text, &length) < 0)
                return false;
        for (char *line = text; *line; line += strcspn(line, "\n") + 1)
                if (atoi(line) != getpid())
                        return false;
        return true;
}

/* The root of all has no such file, and may have processes beside groups. */
static bool is_root(int group)
{
        return faccessat(group, "cgroup.type", F_OK, 0) < 0;
}

static bool is_ours(int group)
{
        static const char *const files[] = { ".", "cgroup.procs", "cgroup.subtree_control" };

        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                if (faccessat(group, files[i], W_OK, AT_EACCESS) < 0)
                        return false;
        return true;
}

static enum cgroup_obstacle examine(const char *path, int *ret_group)
{
        _cleanup_fd_ int group = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (group < 0)
                return CGROUP_FOREIGN;
        if (!is_ours(group))
                return errno == EROFS ? CGROUP_READ_ONLY : CGROUP_FOREIGN;
        if (!is_delegated(path))
                return CGROUP_NOT_DELEGATED;
        if (!has_controllers(group, "cgroup.controllers"))
                return CGROUP_POOR;
        if (!has_controllers(group, "cgroup.subtree_control") && !is_root(group) &&
            !is_empty(group))
                return CGROUP_CROWDED;
        *ret_group = TAKE_FD(group);
        return CGROUP_FINE;
}

/* Nobody set a limit for it that boxes beside it would escape. */
static bool is_unlimited(const char *path)
{
        static const char *const files[] = { "memory.max", "memory.high", "pids.max", "cpu.max" };
        _cleanup_fd_ int group = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                _cleanup_free_ char *text = NULL;
                size_t length;

                if (file_read(group, files[i], 64, &text, &length) == 0 &&
                    strncmp(text, "max", 3) != 0)
                        return false;
        }
        return true;
}

bool cgroup_is_v1(void)
{
        struct statfs fs;

        return geteuid() == 0 && access("/run/systemd/system", F_OK) < 0 &&
               statfs(ROOT "/memory", &fs) == 0 && fs.f_type == CGROUP_SUPER_MAGIC;
}

/* In version 1 groups may lie below any that is ours, whoever is in it, and what is limited above
 * limits them too. Where systemd keeps the tree it hands none out. */
static enum cgroup_obstacle find_v1(int *ret_group)
{
        _cleanup_free_ char *above = NULL;
        _cleanup_fd_ int group = -1;
        char path[PATH_MAX];
        size_t length;

        if (!cgroup_is_v1() || own_path(":memory:/", ROOT "/memory", path, sizeof(path)) < 0)
                return CGROUP_V1;
        group = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (group < 0 || faccessat(group, "cgroup.procs", W_OK, AT_EACCESS) < 0 ||
            file_read(group, "memory.use_hierarchy", 16, &above, &length) < 0 || *above != '1')
                return CGROUP_V1;
        *ret_group = TAKE_FD(group);
        return CGROUP_FINE;
}

/* The group of this process, or the one above it: where that can be divided and this one cannot. */
static enum cgroup_obstacle find(bool v1_wanted, int *ret_group, bool *ret_v1)
{
        enum cgroup_obstacle obstacle;
        char path[PATH_MAX];
        struct statfs fs;

        if (statfs(ROOT, &fs) < 0)
                return CGROUP_NOT_MOUNTED;
        *ret_v1 = fs.f_type != CGROUP2_SUPER_MAGIC;
        if (*ret_v1 && !v1_wanted)
                return CGROUP_V1;
        if (*ret_v1)
                return access(ROOT "/memory", F_OK) == 0 || access(ROOT "/pids", F_OK) == 0
                               ? find_v1(ret_group)
                               : CGROUP_NOT_MOUNTED;
        if (own_path("0::/", ROOT, path, sizeof(path)) < 0)
                return CGROUP_FOREIGN;
        obstacle = examine(path, ret_group);
        if (obstacle == CGROUP_FINE || strcmp(path, ROOT) == 0 || !is_unlimited(path))
                return obstacle;
        *strrchr(path, '/') = '\0';
        return examine(path, ret_group) == CGROUP_FINE ? CGROUP_FINE : obstacle;
}

enum cgroup_obstacle cgroup_look(void)
{
        _cleanup_fd_ int group = -1;
        bool v1;

        return find(true, &group, &v1);
}

/* ---- Litter ---- */

/* Who made it holds it, and so do processes of its box until they are dead. */
static void remove_unheld(int parent, const char *name)
{
        _cleanup_fd_ int group = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (group < 0 || flock(group, LOCK_EX | LOCK_NB) < 0)
                return;
        (void)cgroup_write(group, "cgroup.kill", "1");
        (void)unlinkat(parent, name, AT_REMOVEDIR);
}

void cgroup_parent_sweep(struct cgroup_parent *parent)
{
        int fd = openat(parent->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *directory = fd < 0 ? NULL : fdopendir(fd);
        unsigned number, left = 0;
        struct dirent *entry;
        pid_t owner;

        if (!directory)
                base_close(fd);
        while (directory && (entry = readdir(directory))) {
                if (sscanf(entry->d_name, CGROUP_NAME, &owner, &number) != 2)
                        continue;
                remove_unheld(parent->fd, entry->d_name);
                left += owner == parent->owner &&
                        faccessat(parent->fd, entry->d_name, F_OK, 0) == 0;
        }
        if (directory)
                closedir(directory);
        parent->litter = left > parent->live;
}

/* A group whose warden was killed in its leaf takes no process any more; those below it clear up.
 */
static void sweep_above(int group)
{
        struct cgroup_parent above = { .fd = openat(group, "..",
                                                    O_RDONLY | O_DIRECTORY | O_CLOEXEC) };

        if (above.fd >= 0 && faccessat(above.fd, "cgroup.procs", W_OK, AT_EACCESS) == 0) {
                cgroup_parent_sweep(&above);
                (void)unlinkat(above.fd, LEAF, AT_REMOVEDIR);
        }
        base_close(above.fd);
}

/* ---- Dividing ---- */

/* Leave the leaf again and take it away. False while others are in it. */
static bool step_up(int group)
{
        (void)cgroup_write(group, "cgroup.subtree_control", "-cpu");
        (void)cgroup_write(group, "cgroup.subtree_control", "-memory -pids");
        (void)cgroup_write(group, "cgroup.procs", "0");
        return unlinkat(group, LEAF, AT_REMOVEDIR) == 0 || errno != EBUSY;
}

static int hand_down(int group)
{
        int r = has_controllers(group, "cgroup.subtree_control")
                        ? 0
                        : cgroup_write(group, "cgroup.subtree_control", "+memory +pids");

        /* What not every host has, and few calls need. */
        if (r == 0 && !has_controller(group, "cgroup.subtree_control", "cpu"))
                (void)cgroup_write(group, "cgroup.subtree_control", "+cpu");
        return r;
}

static int divide(struct cgroup_parent *parent)
{
        int r = hand_down(parent->fd);

        if (r != -EBUSY)
                return r;
        if (mkdirat(parent->fd, LEAF, 0755) < 0 && errno != EEXIST)
                return -errno;
        r = cgroup_write(parent->fd, LEAF "/cgroup.procs", "0");
        if (r == 0)
                r = hand_down(parent->fd);
        if (r < 0)
                (void)step_up(parent->fd);
        else
                parent->stepped = true;
        return r;
}

void cgroup_parent_open(struct cgroup_parent *parent, bool v1_wanted)
{
        *parent = (struct cgroup_parent)CGROUP_PARENT_INIT;
        if (!box_fence(FENCE_CGROUP) || find(v1_wanted, &parent->fd, &parent->v1) != CGROUP_FINE)
                return;
        if (!parent->v1 && divide(parent) < 0) {
                parent->fd = base_close(parent->fd);
                return;
        }
        parent->cpu = !parent->v1 && has_controller(parent->fd, "cgroup.subtree_control", "cpu");
        parent->owner = getpid();
        cgroup_parent_sweep(parent);
        if (!parent->v1)
                sweep_above(parent->fd);
}

/* What is dying leaves its group soon. */
void cgroup_parent_close(struct cgroup_parent *parent)
{
        for (int i = 0; (parent->litter || parent->stepped) && i < SWEEPS_MAX; i++) {
                if (i > 0)
                        (void)usleep(SWEEP_PAUSE);
                if (parent->litter)
                        cgroup_parent_sweep(parent);
                if (!parent->litter && parent->stepped)
                        parent->stepped = !step_up(parent->fd);
        }
        base_close(parent->fd);
        *parent = (struct cgroup_parent)CGROUP_PARENT_INIT;
}
