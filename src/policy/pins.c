/* SPDX-License-Identifier: MIT */
#include "policy/pins.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#define LINKS_MAX 40 /* followed for one path, as in the kernel */

void policy_pin_clear(struct policy_pin *pin)
{
        free(pin->asked);
        free(pin->path);
        list_free(pin->links);
        *pin = (struct policy_pin){ 0 };
}

void policy_pins_clear(struct policy_pins *pins)
{
        for (size_t i = 0; i < pins->n; i++)
                policy_pin_clear(&pins->items[i]);
        free(pins->items);
        free(pins->complete);
        *pins = (struct policy_pins){ 0 };
}

/* ---- Paths without links ---- */

/* Step by step, where the host refuses openat2() as older container engines do. */
static int walk_direct(const char *path, int flags, mode_t mode)
{
        _cleanup_fd_ int at = open(*path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        char name[NAME_MAX + 1];
        struct stat st;

        while (at >= 0) {
                size_t n = strcspn(path += strspn(path, "/"), "/");
                bool last = path[n + strspn(path + n, "/")] == '\0';
                int next;

                if (n == 0)
                        return TAKE_FD(at);
                if (n > NAME_MAX)
                        return -ENAMETOOLONG;
                memcpy(name, path, n);
                name[n] = '\0';
                next = openat(at, name, (last ? flags : O_PATH) | O_NOFOLLOW | O_CLOEXEC, mode);
                if (next < 0)
                        return -errno;
                base_close(at);
                at = next;
                if (at >= 0 && fstat(at, &st) == 0 && S_ISLNK(st.st_mode))
                        return -ELOOP;
                path += n;
        }
        return -errno;
}

int policy_make_direct(const char *path, int flags, mode_t mode)
{
        struct open_how how = { .flags = (unsigned)flags | O_CLOEXEC,
                                .mode = flags & O_CREAT ? mode : 0,
                                .resolve = RESOLVE_NO_SYMLINKS };
        int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));

        if (fd < 0 && (errno == ENOSYS || errno == EPERM))
                return walk_direct(path, flags, mode);
        return fd < 0 ? -errno : fd;
}

int policy_open_direct(const char *path, int flags)
{
        return policy_make_direct(path, flags, 0);
}

/* ---- Looking up ---- */

static char *join(const char *directory, const char *path)
{
        size_t n = path[0] == '/' ? 0 : strlen(directory), length = strlen(path);
        char *joined = malloc(n + length + 2);

        if (!joined)
                return NULL;
        memcpy(joined, directory, n);
        if (path[0] != '/')
                joined[n++] = '/';
        memcpy(joined + n, path, length + 1);
        if (n > 0 && strcmp(path, ".") == 0)
                joined[MAX(n - 1, 1)] = '\0';
        return joined;
}

/* A path on its way: what is known of it, without links, and what is still to be followed. */
struct way {
        char known[PATH_MAX], rest[PATH_MAX];
        char **links;
        unsigned n_links;
};

static int follow_link(struct way *way, const char *place)
{
        char target[PATH_MAX], rest[2 * PATH_MAX];
        ssize_t n = readlink(place, target, sizeof(target) - 1);

        if (n <= 0)
                return n < 0 ? -errno : -ENOENT;
        target[n] = '\0';
        if (++way->n_links > LINKS_MAX)
                return -ELOOP;
        if (!way->links && !(way->links = list_new()))
                return -ENOMEM;
        if (list_add(&way->links, place) < 0)
                return -ENOMEM;
        if (snprintf(rest, sizeof(rest), "%s/%s", target, way->rest) >= (int)sizeof(way->rest))
                return -ENAMETOOLONG;
        memcpy(way->rest, rest, strlen(rest) + 1);
        if (target[0] == '/')
                way->known[0] = '\0';
        return 0;
}

/* One name further. Returns 1 when there is none left. */
static int step(struct way *way)
{
        size_t length = strlen(way->known);
        char *name = way->rest + strspn(way->rest, "/"), place[PATH_MAX];
        size_t n = strcspn(name, "/");
        bool up = n == 2 && name[0] == '.' && name[1] == '.';
        struct stat st;

        if (n == 0)
                return 1;
        if (length + n + 2 > sizeof(place))
                return -ENAMETOOLONG;
        memcpy(place, way->known, length);
        place[length] = '/';
        memcpy(place + length + 1, name, n);
        place[length + 1 + n] = '\0';
        memmove(way->rest, name + n, strlen(name + n) + 1);
        if (n == 1 && place[length + 1] == '.')
                return 0;
        if (up) {
                char *slash = strrchr(way->known, '/');

                if (slash && (lstat(way->known, &st) < 0 || !S_ISDIR(st.st_mode)))
                        return -ENOENT;
                if (slash)
                        *slash = '\0';
                return 0;
        }
        if (lstat(place, &st) == 0 && S_ISLNK(st.st_mode))
                return follow_link(way, place);
        memcpy(way->known, place, length + n + 2);
        return 0;
}

static int follow(const char *path, struct way *way)
{
        int r;

        *way = (struct way){ 0 };
        if (snprintf(way->rest, sizeof(way->rest), "%s", path) >= (int)sizeof(way->rest))
                return -ENAMETOOLONG;
        while ((r = step(way)) == 0)
                ;
        if (r > 0 && !way->known[0])
                memcpy(way->known, "/", 2);
        return r < 0 ? r : 0;
}

int policy_follow(const char *directory, const char *path, char **ret_canonical, char ***ret_links)
{
        _cleanup_free_ char *joined = join(directory ? directory : "", path);
        struct way way;
        int r = joined ? follow(joined, &way) : -ENOMEM;

        if (!joined)
                return r;
        if (r == 0 && !(*ret_canonical = strdup(way.known)))
                r = -ENOMEM;
        if (r < 0)
                list_free(way.links);
        else
                *ret_links = way.links;
        return r;
}

char *policy_canonical(const char *directory, const char *path)
{
        _cleanup_list_ char **links = NULL;
        char *canonical = NULL;
        int r = policy_follow(directory, path, &canonical, &links);

        return r < 0 && r != -ENOMEM ? join(directory ? directory : "", path) : canonical;
}

uint64_t policy_birth(const struct statx *st)
{
        if (!(st->stx_mask & STATX_BTIME))
                return 0;
        return (uint64_t)st->stx_btime.tv_sec * NSEC_PER_SEC + st->stx_btime.tv_nsec;
}

/* Does its file system keep the numbers of what it holds? In user space or over a network it may
 * forget them. */
static bool has_numbers(int fd)
{
        static const unsigned long types[] = { FUSE_SUPER_MAGIC, CIFS_SUPER_MAGIC, SMB2_SUPER_MAGIC,
                                               V9FS_MAGIC, OVERLAYFS_SUPER_MAGIC };
        struct statfs fs;

        if (fstatfs(fd, &fs) < 0)
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(types); i++)
                if ((unsigned long)fs.f_type == types[i])
                        return false;
        return true;
}

static int identify(int fd, struct policy_pin *pin)
{
        struct statx st;

        if (statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st) < 0)
                return -errno;
        pin->there = true;
        pin->type = st.stx_mode & S_IFMT;
        if (!has_numbers(fd))
                return 0;
        pin->device = makedev(st.stx_dev_major, st.stx_dev_minor);
        pin->inode = st.stx_ino;
        pin->born = policy_birth(&st);
        return 0;
}

/* The first look: with the links that there are. Whatever is found then is what is meant. */
static int look(const char *asked, struct policy_pin *ret_pin, int *ret_fd)
{
        struct policy_pin pin = { .asked = strdup(asked) };
        _cleanup_fd_ int fd = -1;
        struct way way;
        int r = pin.asked ? follow(asked, &way) : -ENOMEM;

        if (r < 0) {
                if (pin.asked)
                        list_free(way.links);
                policy_pin_clear(&pin);
                return r;
        }
        pin.links = way.links;
        pin.path = strdup(way.known);
        /* Between the two looks somebody may have put a link there: then it is not opened. */
        fd = pin.path ? policy_open_direct(pin.path, O_PATH) : -ENOMEM;
        r = fd < 0 ? fd : identify(fd, &pin);
        if (r == -ENOMEM || !pin.path) {
                policy_pin_clear(&pin);
                return -ENOMEM;
        }
        *ret_pin = pin;
        if (ret_fd)
                *ret_fd = r < 0 ? r : TAKE_FD(fd);
        return 0;
}

/* ---- Keeping ---- */

static void changed(struct policy_pins *pins)
{
        pins->version++;
        pins->checked = false;
        free(pins->complete);
        pins->complete = NULL;
}

static struct policy_pin *find(const struct policy_pins *pins, const char *asked)
{
        for (size_t i = 0; i < pins->n; i++)
                if (strcmp(pins->items[i].asked, asked) == 0)
                        return &pins->items[i];
        return NULL;
}

static int keep(struct policy_pins *pins, struct policy_pin *pin)
{
        struct policy_pin *items = reallocarray(pins->items, pins->n + 1, sizeof(*items));

        if (!items) {
                policy_pin_clear(pin);
                return -ENOMEM;
        }
        pins->items = items;
        items[pins->n++] = *pin;
        changed(pins);
        return 0;
}

static int copy_pin(const struct policy_pin *from, struct policy_pin *ret)
{
        struct policy_pin pin = *from;

        pin.asked = strdup(from->asked);
        pin.path = strdup(from->path);
        pin.links = from->links ? list_new() : NULL;
        for (char **link = from->links; pin.links && link && *link; link++)
                if (list_add(&pin.links, *link) < 0)
                        break;
        if (!pin.asked || !pin.path ||
            (from->links && (!pin.links || list_length(pin.links) != list_length(from->links)))) {
                policy_pin_clear(&pin);
                return -ENOMEM;
        }
        *ret = pin;
        return 0;
}

int policy_pin_take(cbx_policy *policy, const struct policy_pin *given)
{
        struct policy_pin pin = { 0 };
        int r = 0;

        pthread_mutex_lock(&policy->lock);
        if (!find(&policy->pins, given->asked))
                r = copy_pin(given, &pin);
        if (r == 0 && !find(&policy->pins, given->asked))
                r = keep(&policy->pins, &pin);
        pthread_mutex_unlock(&policy->lock);
        return r;
}

int policy_pin_copy(cbx_policy *from, cbx_policy *to)
{
        int r = 0;

        pthread_mutex_lock(&from->lock);
        for (size_t i = 0; r == 0 && i < from->pins.n; i++)
                r = policy_pin_take(to, &from->pins.items[i]);
        pthread_mutex_unlock(&from->lock);
        return r;
}

static const char *kind_of(mode_t type)
{
        switch (type) {
        case S_IFDIR:
                return "a directory";
        case S_IFREG:
                return "a file";
        case S_IFSOCK:
                return "a socket";
        case S_IFLNK:
                return "a symbolic link";
        default:
                return "a special file";
        }
}

static int refuse_change(const struct policy_pin *pin, const struct policy_path *rule,
                         const char *now, cbx_error *error)
{
        error_set(error, -ESTALE, rule->where,
                  "%.200s was %s when this policy was first used, and is now %s", pin->path,
                  kind_of(pin->type), now);
        error_hint(error, "if that is meant, make the policy anew: it keeps what its paths first "
                          "led to");
        return -ESTALE;
}

static int refuse_link(const struct policy_pin *pin, const struct policy_path *rule,
                       cbx_error *error)
{
        _cleanup_free_ char *path = strdup(pin->path);
        struct stat st;

        for (char *end = path; end; end = strchr(end, '/')) {
                end += strspn(end, "/");
                end += strcspn(end, "/");
                if (end == path || !*end)
                        break;
                *end = '\0';
                if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode)) {
                        char now[PATH_MAX + 64];

                        snprintf(now, sizeof(now), "behind a symbolic link, %.200s", path);
                        return refuse_change(pin, rule, now, error);
                }
                *end = '/';
        }
        return refuse_change(pin, rule, kind_of(S_IFLNK), error);
}

/* Is it what it was? A file may be replaced by a file, as editors do when they save. What is hidden
 * may be replaced by anything: that is hidden then. */
static int compare(const struct policy_pin *pin, const struct policy_pin *now,
                   const struct policy_path *rule, cbx_error *error)
{
        if (rule->access == POLICY_HIDE || !pin->there)
                return 0;
        if (pin->type != now->type)
                return refuse_change(pin, rule, kind_of(now->type), error);
        if (pin->type == S_IFDIR && (pin->inode || pin->device) &&
            (pin->device != now->device || pin->inode != now->inode || pin->born != now->born))
                return refuse_change(pin, rule, "another one", error);
        return 0;
}

/* Open what was found before. */
static int open_again(struct policy_pins *pins, struct policy_pin *pin,
                      const struct policy_path *rule, cbx_error *error)
{
        _cleanup_fd_ int fd = policy_open_direct(pin->path, O_PATH);
        struct policy_pin now = { 0 };
        int r;

        if (fd == -ELOOP && !pin->there) {
                error_set(error, -ESTALE, rule->where,
                          "%.200s was not there when this policy was made, and has a symbolic link "
                          "in it now",
                          pin->path);
                error_hint(error, "if that is meant, make the policy anew: no link is followed "
                                  "that came later");
                return -ESTALE;
        }
        if (fd == -ELOOP)
                return refuse_link(pin, rule, error);
        r = fd < 0 ? fd : identify(fd, &now);
        if (r == 0)
                r = compare(pin, &now, rule, error);
        if (r < 0)
                return r;
        if (!pin->there) {
                pin->there = true;
                pin->type = now.type;
                pin->device = now.device;
                pin->inode = now.inode;
                pin->born = now.born;
                changed(pins);
        }
        return TAKE_FD(fd);
}

int policy_pin_open(const cbx_policy *policy, const char *directory, const struct policy_path *rule,
                    struct policy_pin *ret_pin, cbx_error *error)
{
        cbx_policy *owner = (cbx_policy *)policy; /* what it led to is no part of what it says */
        _cleanup_free_ char *asked = join(directory, rule->host);
        struct policy_pin *pin, found;
        int fd = -ENOENT, r = 0;

        if (!asked)
                return -ENOMEM;
        pthread_mutex_lock(&owner->lock);
        pin = find(&owner->pins, asked);
        if (pin) {
                fd = open_again(&owner->pins, pin, rule, error);
        } else {
                r = look(asked, &found, &fd);
                if (r == 0)
                        r = keep(&owner->pins, &found);
                if (r == 0)
                        pin = &owner->pins.items[owner->pins.n - 1];
        }
        if (r == 0 && fd >= 0)
                r = copy_pin(pin, ret_pin);
        pthread_mutex_unlock(&owner->lock);
        if (r < 0 && fd >= 0)
                base_close(fd);
        return r < 0 ? r : fd;
}

static int pin_rule(cbx_policy *policy, const char *directory, const struct policy_path *rule,
                    bool *complete)
{
        _cleanup_free_ char *asked = join(directory, rule->host);
        struct policy_pin *pin = asked ? find(&policy->pins, asked) : NULL, found;
        int r;

        if (!asked)
                return -ENOMEM;
        if (pin && !pin->there) /* it may have come to be */
                base_close(open_again(&policy->pins, pin, rule, NULL));
        if (pin) {
                *complete &= pin->there;
                return 0;
        }
        r = look(asked, &found, NULL);
        if (r == -ENOMEM)
                return r;
        *complete &= r == 0 && found.there;
        return r < 0 ? 0 : keep(&policy->pins, &found);
}

int policy_pin(cbx_policy *policy, const char *directory)
{
        bool complete = true;
        int r = 0;

        if (policy->n_paths == 0)
                return 0;
        pthread_mutex_lock(&policy->lock);
        if (policy->pins.complete && strcmp(policy->pins.complete, directory) == 0) {
                pthread_mutex_unlock(&policy->lock);
                return 0;
        }
        for (size_t i = 0; r == 0 && i < policy->n_paths; i++)
                if (policy->paths[i].host)
                        r = pin_rule(policy, directory, &policy->paths[i], &complete);
        if (r == 0 && complete) {
                free(policy->pins.complete);
                policy->pins.complete = strdup(directory);
        }
        pthread_mutex_unlock(&policy->lock);
        return r;
}

int policy_pin_here(cbx_policy *policy)
{
        char here[PATH_MAX];

        return policy_pin(policy, getcwd(here, sizeof(here)) ? here : "/");
}

uint64_t policy_pin_state(cbx_policy *policy, const char *directory)
{
        uint64_t state = 0;

        pthread_mutex_lock(&policy->lock);
        if (policy->n_paths > 0 &&
            (!policy->pins.complete || strcmp(policy->pins.complete, directory) != 0))
                state = policy->pins.version + 1;
        pthread_mutex_unlock(&policy->lock);
        return state;
}

void policy_pin_list_free(struct policy_pin *pins, size_t n)
{
        for (size_t i = 0; i < n; i++)
                policy_pin_clear(&pins[i]);
        free(pins);
}

int policy_pin_list(cbx_policy *policy, const char *directory, struct policy_pin **ret_pins,
                    size_t *ret_n)
{
        struct policy_pin *list = calloc(MAX(policy->n_paths, 1), sizeof(*list));
        size_t n = 0;
        int r = list ? 0 : -ENOMEM;

        pthread_mutex_lock(&policy->lock);
        for (size_t i = 0; r == 0 && i < policy->n_paths; i++) {
                const char *host = policy->paths[i].host;
                _cleanup_free_ char *asked = host ? join(directory, host) : NULL;
                const struct policy_pin *pin = asked ? find(&policy->pins, asked) : NULL;

                if (host && !asked)
                        r = -ENOMEM;
                else if (pin)
                        r = copy_pin(pin, &list[n]);
                n += pin && r == 0;
        }
        pthread_mutex_unlock(&policy->lock);
        if (r < 0) {
                policy_pin_list_free(list, n);
                return r;
        }
        *ret_pins = list;
        *ret_n = n;
        return 0;
}

char *policy_pin_path(const cbx_policy *policy, const char *directory,
                      const struct policy_path *rule)
{
        cbx_policy *owner = (cbx_policy *)policy;
        _cleanup_free_ char *asked = rule->host ? join(directory, rule->host) : NULL;
        const struct policy_pin *pin;
        char *path = NULL;

        if (!asked)
                return NULL;
        pthread_mutex_lock(&owner->lock);
        pin = find(&owner->pins, asked);
        if (pin)
                path = strdup(pin->path);
        pthread_mutex_unlock(&owner->lock);
        return path;
}

char **policy_pin_links(const cbx_policy *policy, const char *directory,
                        const struct policy_path *rule)
{
        cbx_policy *owner = (cbx_policy *)policy;
        _cleanup_free_ char *asked = rule->host ? join(directory, rule->host) : NULL;
        struct policy_pin *pin, copy = { 0 };
        char **links;

        if (!asked)
                return NULL;
        pthread_mutex_lock(&owner->lock);
        pin = find(&owner->pins, asked);
        if (pin && pin->links)
                (void)copy_pin(pin, &copy);
        pthread_mutex_unlock(&owner->lock);
        links = TAKE_PTR(copy.links);
        policy_pin_clear(&copy);
        return links;
}
