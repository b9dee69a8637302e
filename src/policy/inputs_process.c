/* SPDX-License-Identifier: MIT */
/*
 * Own inputs of this process, whichever policy is in use: the folders and files that its toolboxes
 * go by, which no policy may write; and what the process itself is made of, which is held in every
 * policy that could.
 */
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/queue.h>
#include <sys/stat.h>

#include "policy/inputs.h"
#include "policy/pins.h"

/* ---- What toolboxes go by ---- */

struct followed {
        const void *owner, *group;
        char *what, *path;
        TAILQ_ENTRY(followed) link;
};

static pthread_mutex_t followed_lock = PTHREAD_MUTEX_INITIALIZER;
static TAILQ_HEAD(, followed) followed = TAILQ_HEAD_INITIALIZER(followed);
static uint64_t followed_generation; /* grows with what comes; 0: there never was any */

static void forget(struct followed *item)
{
        free(item->what);
        free(item->path);
        free(item);
}

int inputs_follow(const void *owner, const void *group, const char *what, const char *path)
{
        struct followed *item = calloc(1, sizeof(*item));
        char directory[PATH_MAX];

        if (!item)
                return -ENOMEM;
        item->owner = owner;
        item->group = group;
        item->what = strdup(what);
        if (path[0] == '/' || !getcwd(directory, sizeof(directory)))
                item->path = strdup(path);
        else if (asprintf(&item->path, "%s/%s", directory, path) < 0)
                item->path = NULL;
        if (!item->what || !item->path) {
                forget(item);
                return -ENOMEM;
        }
        pthread_mutex_lock(&followed_lock);
        TAILQ_INSERT_TAIL(&followed, item, link);
        __atomic_add_fetch(&followed_generation, 1, __ATOMIC_RELEASE);
        pthread_mutex_unlock(&followed_lock);
        return 0;
}

void inputs_unfollow(const void *owner)
{
        struct followed *item, *next;

        pthread_mutex_lock(&followed_lock);
        for (item = TAILQ_FIRST(&followed); item; item = next) {
                next = TAILQ_NEXT(item, link);
                if (item->owner != owner)
                        continue;
                TAILQ_REMOVE(&followed, item, link);
                forget(item);
        }
        pthread_mutex_unlock(&followed_lock);
}

/* Was it asked for what is followed now, and for what its paths lead to now? */
static bool was_asked(cbx_policy *policy, uint64_t generation)
{
        bool asked;

        pthread_mutex_lock(&policy->lock);
        asked = policy->pins.followed == generation &&
                policy->pins.followed_version == policy->pins.version;
        pthread_mutex_unlock(&policy->lock);
        return asked;
}

int inputs_refuse_followed(cbx_policy *policy, cbx_error *error)
{
        uint64_t generation = __atomic_load_n(&followed_generation, __ATOMIC_ACQUIRE);
        struct inputs_item item = { .whose = "boxes of this policy",
                                    .harm = "a program there would choose what the tools of this "
                                            "process do" };
        struct inputs_mounts *mounts = NULL;
        const struct followed *input;
        int r = 0;

        if (generation == 0 || was_asked(policy, generation))
                return 0;
        if (inputs_mounts_read(&mounts) == -ENOMEM)
                return error_oom(error);
        pthread_mutex_lock(&followed_lock);
        generation = followed_generation;
        TAILQ_FOREACH(input, &followed, link)
        {
                item.what = input->what;
                item.path = input->path;
                if (r == 0 && input->group != policy->group)
                        r = inputs_refuse(policy, mounts, &item, "policy", error);
        }
        pthread_mutex_unlock(&followed_lock);
        inputs_mounts_free(mounts);
        if (r < 0)
                return r;
        pthread_mutex_lock(&policy->lock);
        policy->pins.followed = generation;
        policy->pins.followed_version = policy->pins.version;
        pthread_mutex_unlock(&policy->lock);
        return 0;
}

/* ---- What this process is made of ---- */

bool inputs_own_program(char *path, size_t size)
{
        ssize_t n = readlink("/proc/self/exe", path, size - 1);

        if (n <= 0 || path[0] != '/')
                return false;
        path[n] = '\0';
        return access(path, F_OK) == 0;
}

static int add_absolute(char ***list, const char *path)
{
        char directory[PATH_MAX], *text;

        if (inputs_is_stream(path) || (path[0] != '/' && !getcwd(directory, sizeof(directory))))
                return 0;
        if (asprintf(&text, "%s%s%s", path[0] == '/' ? "" : directory, path[0] == '/' ? "" : "/",
                     path) < 0)
                return -ENOMEM;
        return list_take(list, text);
}

static int add_object(struct dl_phdr_info *info, size_t size, void *to)
{
        (void)size;
        return strchr(info->dlpi_name, '/') ? add_absolute(to, info->dlpi_name) : 0;
}

/* The name by which it was started; the directory may have changed since. */
static int add_started(char ***list)
{
        const char *name = (const char *)getauxval(AT_EXECFN);
        struct stat named, own;

        if (!name || stat(name, &named) < 0 || stat("/proc/self/exe", &own) < 0 ||
            named.st_dev != own.st_dev || named.st_ino != own.st_ino)
                return 0;
        return add_absolute(list, name);
}

/* The program, by each of its names, the objects that are loaded, and the warden's program. */
static char **own_files(const char *warden)
{
        char **list = list_new(), program[PATH_MAX];
        int r = list ? 0 : -ENOMEM;

        if (r == 0 && inputs_own_program(program, sizeof(program)))
                r = list_add(&list, program);
        if (r == 0)
                r = add_started(&list);
        if (r == 0)
                r = dl_iterate_phdr(add_object, &list);
        if (r == 0 && warden)
                r = add_absolute(&list, warden);
        if (r < 0) {
                list_free(list);
                return NULL;
        }
        return list;
}

int inputs_hold_own(cbx_policy **policy, const char *warden, cbx_error *error)
{
        _cleanup_list_ char **files = NULL;

        if (!inputs_writes(*policy))
                return 0;
        files = own_files(warden);
        return files ? inputs_hold_ways(policy, files, error) : error_oom(error);
}
