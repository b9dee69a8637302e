/* SPDX-License-Identifier: MIT */
/*
 * Directories of manifests. A file is read when whoever wrote it has closed it, or when it was
 * moved or linked here: never half-written. A file with mistakes leaves the last good version of
 * its tool in place; when it is gone, the tool is.
 *
 * A name belongs to the file that gave it first. One that comes second is told so, and gets its
 * turn when the first is gone.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "policy/inputs.h"
#include "tool/toolbox.h"

#define MANIFEST_BYTES MIB
#define READ_AGAIN 3 /* a file that changes while it is read */
#define READS_MAX 4  /* of what inotify has to say, in one step */

static void file_free(struct toolbox_file *file)
{
        free(file->name);
        free(file->tool);
        free(file->told);
        free(file);
}

void toolbox_folder_free(struct toolbox_folder *folder)
{
        struct toolbox_file *file;

        while ((file = TAILQ_FIRST(&folder->files))) {
                TAILQ_REMOVE(&folder->files, file, link);
                file_free(file);
        }
        inputs_unfollow(folder);
        free(folder->path);
        free(folder->policies);
        free(folder);
}

/* ---- One file ---- */

static bool is_json_name(const char *name)
{
        size_t length = strlen(name);

        return name[0] != '.' && length > 5 && strcmp(name + length - 5, ".json") == 0;
}

static struct toolbox_file *find_file(struct toolbox_folder *folder, const char *name)
{
        struct toolbox_file *file;

        TAILQ_FOREACH(file, &folder->files, link)
        {
                if (strcmp(file->name, name) == 0)
                        return file;
        }
        return NULL;
}

static struct toolbox_file *note_file(struct toolbox_folder *folder, const char *name)
{
        struct toolbox_file *file = find_file(folder, name);

        if (file)
                return file;
        file = calloc(1, sizeof(*file));
        if (!file || !(file->name = strdup(name))) {
                free(file);
                return NULL;
        }
        TAILQ_INSERT_TAIL(&folder->files, file, link);
        return file;
}

/* What is in it, provided that nobody changed it meanwhile: then its writer will close it, and it
 * is read again. */
static int read_file(const struct toolbox_folder *folder, const char *name, char **ret_text,
                     size_t *ret_length, char **ret_real)
{
        char path[PATH_MAX];
        int r = -EAGAIN;

        if (snprintf(path, sizeof(path), "%s/%s", folder->path, name) >= (int)sizeof(path))
                return -ENAMETOOLONG;
        for (int i = 0; r == -EAGAIN && i < READ_AGAIN; i++)
                r = tool_read_input(path, MANIFEST_BYTES, ret_text, ret_length, ret_real);
        return r;
}

/* All mistakes, a line each. */
static char *mistakes_text(const struct tool_mistakes *mistakes)
{
        _cleanup_buffer_ struct buffer text = BUFFER_INIT;
        int r = buffer_add(&text, "", 0);

        for (size_t i = 0; r == 0 && i < mistakes->n; i++) {
                const struct tool_mistake *item = &mistakes->items[i];

                r = buffer_printf(&text, "%s%s%s%s%s%s", i > 0 ? "\n" : "", item->where,
                                  item->where[0] ? ": " : "", item->text,
                                  item->hint[0] ? " (to fix it: " : "", item->hint);
                if (r == 0 && item->hint[0])
                        r = buffer_add(&text, ")", 1);
        }
        if (r == 0 && mistakes->cut)
                r = buffer_printf(&text, "\nand more mistakes");
        return r < 0 ? NULL : TAKE_PTR(text.data);
}

/* `again`: nobody has changed the file since it was told, so only what is new is. */
static void is_broken(cbx_toolbox *toolbox, struct toolbox_file *file, bool again, cbx_error *error,
                      struct tool_mistakes *mistakes)
{
        _cleanup_free_ char *text = NULL;

        if (error)
                tool_mistake_add(mistakes, error);
        text = mistakes_text(mistakes);
        file->broken = true;
        if (again && text && file->told && strcmp(text, file->told) == 0)
                return;
        toolbox_tell(toolbox, CBX_TOOL_BROKEN, file->tool ? file->tool : "", file->name,
                     text ? text : "out of memory");
        free(file->told);
        file->told = TAKE_PTR(text);
}

/* The name that a file has given is free again. */
static void forget_tool(cbx_toolbox *toolbox, struct toolbox_file *file)
{
        const struct tool *tool = file->tool ? toolbox_find(toolbox, file->tool) : NULL;

        /* Whoever replaced it by a call has taken it over. */
        if (tool && tool->file && strcmp(tool->file, file->name) == 0)
                toolbox_drop(toolbox, file->tool, file->name);
        free(file->tool);
        file->tool = NULL;
}

/* May this file give a tool of this name? */
static int check_name(cbx_toolbox *toolbox, const struct toolbox_file *file,
                      const struct tool *tool, cbx_error *error)
{
        const struct tool *other = toolbox_find(toolbox, tool->name);

        if (!other || (other->file && strcmp(other->file, file->name) == 0 && file->tool &&
                       strcmp(file->tool, tool->name) == 0))
                return 0;
        return error_set(error, -EEXIST, "name", "\"%s\" is already the name of a tool: %s",
                         tool->name, other->file ? other->file : "it was added by a call");
}

/* Was it taken away meanwhile? Then that will be told, and is no mistake of it. A link that leads
 * nowhere is one. */
static bool is_gone(const struct toolbox_folder *folder, const char *name)
{
        char path[PATH_MAX];
        struct stat facts;

        snprintf(path, sizeof(path), "%s/%s", folder->path, name);
        return lstat(path, &facts) < 0 && errno == ENOENT;
}

/* Also those of a manifest that has mistakes, which may be the file's. */
static void follow_sources(cbx_toolbox *toolbox, char *const *sources)
{
        for (; sources && *sources; sources++) {
                bool known = false;

                for (char **file = toolbox->followed; !known && *file; file++)
                        known = strcmp(*file, *sources) == 0;
                if (!known && toolbox_follow_file(toolbox, *sources) == 0)
                        (void)list_add(&toolbox->followed, *sources);
        }
}

/* Read it, for the first time, because it has changed, or again because something else has. Returns
 * whether the file has let go of a name. */
static bool load_file(cbx_toolbox *toolbox, struct toolbox_folder *folder,
                      struct toolbox_file *file, bool again)
{
        _cleanup_mistakes_ struct tool_mistakes mistakes = TOOL_MISTAKES_INIT;
        struct tool_origin origin = toolbox_origin(toolbox, folder);
        _cleanup_list_ char **sources = list_new();
        _cleanup_tool_ struct tool *tool = NULL;
        _cleanup_free_ char *text = NULL, *name = NULL, *real = NULL;
        cbx_error error = CBX_ERROR_INIT;
        bool renamed;
        size_t length;
        int r = read_file(folder, file->name, &text, &length, &real);

        if (r == -ENOENT && is_gone(folder, file->name))
                return false;
        if (r < 0) {
                error_set(&error, r, "", "cannot be read: %s",
                          r == -EINVAL ? "it is no regular file" : strerror(-r));
                is_broken(toolbox, file, again, &error, &mistakes);
                return false;
        }
        origin.sources = &sources;
        r = sources ? manifest_read(text, length, &origin, &mistakes, &tool) : -ENOMEM;
        follow_sources(toolbox, sources);
        if (r == 0)
                r = check_name(toolbox, file, tool, &error);
        if (r == 0) {
                tool->file = strdup(file->name);
                name = strdup(tool->name);
                if (!tool->file || !name || tool_add_input(tool, real) < 0)
                        r = -ENOMEM;
        }
        if (r == -ENOMEM)
                error_oom(&error);
        if (r != 0) {
                is_broken(toolbox, file, again, error.code ? &error : NULL, &mistakes);
                return false;
        }
        renamed = file->tool && strcmp(file->tool, name) != 0;
        if (renamed)
                forget_tool(toolbox, file);
        if (toolbox_put(toolbox, TAKE_PTR(tool), &error) < 0) {
                is_broken(toolbox, file, again, &error, &mistakes);
                return renamed;
        }
        free(file->tool);
        file->tool = TAKE_PTR(name);
        file->broken = false;
        free(TAKE_PTR(file->told));
        return renamed;
}

static void lose_file(cbx_toolbox *toolbox, struct toolbox_folder *folder, const char *name)
{
        struct toolbox_file *file = find_file(folder, name);

        if (!file)
                return;
        forget_tool(toolbox, file);
        TAILQ_REMOVE(&folder->files, file, link);
        file_free(file);
}

/* A file that lets go of a name is broken no more, so this comes to an end. */
void toolbox_try_again(cbx_toolbox *toolbox)
{
        struct toolbox_folder *folder;
        struct toolbox_file *file;
        bool freed;

        do {
                freed = false;
                TAILQ_FOREACH(folder, &toolbox->folders, link)
                {
                        TAILQ_FOREACH(file, &folder->files, link)
                        {
                                if (file->broken)
                                        freed |= load_file(toolbox, folder, file, true);
                        }
                }
        } while (freed);
}

void toolbox_reload_python(cbx_toolbox *toolbox, const char *path)
{
        struct toolbox_folder *folder;
        struct toolbox_file *file;
        bool freed = false;

        TAILQ_FOREACH(folder, &toolbox->folders, link)
        {
                TAILQ_FOREACH(file, &folder->files, link)
                {
                        const struct tool *tool =
                                file->tool ? toolbox_find(toolbox, file->tool) : NULL;
                        const char *source = tool ? tool->function.source : NULL;

                        if (file->broken || (source && strcmp(source, path) == 0))
                                freed |= load_file(toolbox, folder, file, true);
                }
        }
        if (freed)
                toolbox_try_again(toolbox);
}

/* ---- All files ---- */

static int filter(const struct dirent *entry)
{
        return is_json_name(entry->d_name);
}

/* alphasort(3) goes by the locale; which of two files gives a tool must not. */
static int compare(const struct dirent **a, const struct dirent **b)
{
        return strcmp((*a)->d_name, (*b)->d_name);
}

/* Take in what is there, and let go of what is not any more. */
static int scan(cbx_toolbox *toolbox, struct toolbox_folder *folder)
{
        struct dirent **entries = NULL;
        int n = scandir(folder->path, &entries, filter, compare);
        struct toolbox_file *file, *following;
        bool lost = false;

        if (n < 0)
                return -errno;
        for (file = TAILQ_FIRST(&folder->files); file; file = following) {
                bool there = false;

                following = TAILQ_NEXT(file, link);
                for (int i = 0; i < n && !there; i++)
                        there = strcmp(entries[i]->d_name, file->name) == 0;
                if (!there) {
                        lose_file(toolbox, folder, file->name);
                        lost = true;
                }
        }
        for (int i = 0; i < n; i++) {
                file = note_file(folder, entries[i]->d_name);
                if (file)
                        lost |= load_file(toolbox, folder, file, false);
                free(entries[i]);
        }
        free(entries);
        if (lost)
                toolbox_try_again(toolbox);
        return 0;
}

/* ---- Changes ---- */

int toolbox_open_inotify(cbx_toolbox *toolbox)
{
        struct epoll_event event = { .events = EPOLLIN };

        if (toolbox->inotify >= 0)
                return 0;
        toolbox->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
        if (toolbox->inotify < 0)
                return -errno;
        if (epoll_ctl(toolbox->poll, EPOLL_CTL_ADD, toolbox->inotify, &event) < 0) {
                int r = -errno;

                toolbox->inotify = base_close(toolbox->inotify);
                return r;
        }
        return 0;
}

static bool is_policy(const char *policy, const char *file)
{
        size_t length = strlen(policy);

        return strncmp(file, policy, length) == 0 && strcmp(file + length, ".json") == 0;
}

/* A policy has changed, or all may have (NULL): the tools that name it are read again. */
static void reload_users(cbx_toolbox *toolbox, struct toolbox_folder *folder, const char *name)
{
        struct toolbox_file *file;

        TAILQ_FOREACH(file, &folder->files, link)
        {
                const struct tool *tool = file->tool ? toolbox_find(toolbox, file->tool) : NULL;

                if (file->broken ||
                    (tool && tool->policy_name && (!name || is_policy(tool->policy_name, name))))
                        load_file(toolbox, folder, file, file->broken);
        }
}

/* The folder of policies may come later than the manifests, and go and come again. */
static bool watch_policies(const cbx_toolbox *toolbox, struct toolbox_folder *folder)
{
        if (folder->policies_watch >= 0)
                return false;
        folder->policies_watch =
                inotify_add_watch(toolbox->inotify, folder->policies, TOOLBOX_EVENTS);
        return folder->policies_watch >= 0;
}

/* A name that was made is not yet written, but for links. */
static bool is_written(const char *directory, const struct inotify_event *event)
{
        char path[PATH_MAX];
        struct stat facts;

        if (event->mask & (IN_CLOSE_WRITE | IN_MOVED_TO))
                return true;
        snprintf(path, sizeof(path), "%s/%s", directory, event->name);
        return (event->mask & IN_CREATE) && lstat(path, &facts) == 0 &&
               (S_ISLNK(facts.st_mode) || (S_ISREG(facts.st_mode) && facts.st_nlink > 1));
}

static void file_changed(cbx_toolbox *toolbox, struct toolbox_folder *folder,
                         const struct inotify_event *event)
{
        struct toolbox_file *file;

        if (event->mask & (IN_DELETE | IN_MOVED_FROM)) {
                lose_file(toolbox, folder, event->name);
                toolbox_try_again(toolbox);
        } else if (is_written(folder->path, event)) {
                file = note_file(folder, event->name);
                if (file && load_file(toolbox, folder, file, false))
                        toolbox_try_again(toolbox);
        }
}

static void lose_folder(cbx_toolbox *toolbox, struct toolbox_folder *folder)
{
        struct toolbox_file *file;

        while ((file = TAILQ_FIRST(&folder->files)))
                lose_file(toolbox, folder, file->name);
        folder->watch = -1;
        toolbox_try_again(toolbox);
}

static void folder_changed(cbx_toolbox *toolbox, struct toolbox_folder *folder,
                           const struct inotify_event *event)
{
        if (event->mask & IN_IGNORED)
                lose_folder(toolbox, folder);
        else if (event->len > 0 && is_json_name(event->name))
                file_changed(toolbox, folder, event);
        else if ((event->mask & (IN_CREATE | IN_MOVED_TO)) && watch_policies(toolbox, folder))
                reload_users(toolbox, folder, NULL);
}

static void policies_changed(cbx_toolbox *toolbox, struct toolbox_folder *folder,
                             const struct inotify_event *event)
{
        if (event->mask & IN_IGNORED) {
                folder->policies_watch = -1; /* a new one may be there already */
                if (watch_policies(toolbox, folder))
                        reload_users(toolbox, folder, NULL);
        } else if (event->len > 0 && is_json_name(event->name) &&
                   ((event->mask & (IN_DELETE | IN_MOVED_FROM)) ||
                    is_written(folder->policies, event))) {
                reload_users(toolbox, folder, event->name);
        }
}

static void changed(cbx_toolbox *toolbox, const struct inotify_event *event)
{
        struct toolbox_folder *folder;

        /* What was moved away is not what its name stands for any more; IN_IGNORED follows. */
        if (event->mask & IN_MOVE_SELF)
                (void)inotify_rm_watch(toolbox->inotify, event->wd);
        if (event->len > 0 && (event->mask & (IN_CLOSE_WRITE | IN_MOVED_TO)))
                toolbox_python_changed(toolbox, event->wd, event->name);
        if (event->mask & IN_IGNORED)
                toolbox_python_lost(toolbox, event->wd);
        TAILQ_FOREACH(folder, &toolbox->folders, link)
        {
                if (event->mask & IN_Q_OVERFLOW)
                        (void)scan(toolbox, folder);
                else if (event->wd == folder->watch)
                        folder_changed(toolbox, folder, event);
                else if (event->wd == folder->policies_watch)
                        policies_changed(toolbox, folder, event);
        }
}

void toolbox_watch(cbx_toolbox *toolbox)
{
        _Alignas(struct inotify_event) char room[16384];
        ssize_t n = 1;

        /* Whoever writes faster than this reads must not keep the caller here for ever. */
        for (int i = 0; toolbox->inotify >= 0 && n > 0 && i < READS_MAX; i++) {
                n = read(toolbox->inotify, room, sizeof(room));
                for (const char *at = room; at < room + n;) {
                        const struct inotify_event *event = (const struct inotify_event *)at;

                        changed(toolbox, event);
                        at += sizeof(*event) + event->len;
                }
        }
}

static bool is_watched(const cbx_toolbox *toolbox, int watch)
{
        const struct toolbox_folder *folder;

        TAILQ_FOREACH(folder, &toolbox->folders, link)
        {
                if (folder->watch == watch)
                        return true;
        }
        return false;
}

/* Returns 1 when it is in the toolbox already. */
static int add_folder(cbx_toolbox *toolbox, struct toolbox_folder *folder, const char *directory,
                      cbx_error *error)
{
        int r;

        folder->policies_watch = -1;
        folder->path = realpath(directory, NULL);
        r = folder->path ? 0 : -errno;
        if (r == 0) /* by the name that was given, and by what it leads to */
                r = toolbox_admit_folder(toolbox, directory, error);
        if (r == 0)
                r = toolbox_open_inotify(toolbox);
        /* Watched before it is read, so that nothing falls between. */
        if (r == 0) {
                folder->watch = inotify_add_watch(toolbox->inotify, folder->path, TOOLBOX_EVENTS);
                r = folder->watch < 0 ? -errno : is_watched(toolbox, folder->watch);
        }
        if (r == 0 && toolbox->policies)
                folder->policies = strdup(toolbox->policies);
        else if (r == 0 && asprintf(&folder->policies, "%s/policies", folder->path) < 0)
                folder->policies = NULL;
        if (r == 0 && !folder->policies)
                r = -ENOMEM;
        if (r != 0)
                return r;
        r = toolbox_admit_folder(toolbox, folder->policies, error);
        if (r < 0)
                return r;
        if (inputs_follow(folder, toolbox, "the folder of manifests", directory) < 0 ||
            inputs_follow(folder, toolbox, "the folder of policies", folder->policies) < 0)
                return -ENOMEM;
        (void)watch_policies(toolbox, folder);
        TAILQ_INSERT_TAIL(&toolbox->folders, folder, link);
        r = scan(toolbox, folder);
        if (r < 0)
                TAILQ_REMOVE(&toolbox->folders, folder, link);
        return r;
}

int cbx_toolbox_load(cbx_toolbox *toolbox, const char *directory, cbx_error *error)
{
        struct toolbox_folder *folder = calloc(1, sizeof(*folder));
        int r;

        if (!folder)
                return error_oom(error);
        TAILQ_INIT(&folder->files);
        pthread_mutex_lock(&toolbox->lock);
        r = add_folder(toolbox, folder, directory, error);
        pthread_mutex_unlock(&toolbox->lock);
        if (r != 0)
                toolbox_folder_free(folder);
        if (r == -EPERM && error && error->code == r)
                return r;
        return r < 0 ? error_set(error, r, "directory", "cannot read the tools in %s: %s",
                                 directory, strerror(-r))
                     : 0;
}
