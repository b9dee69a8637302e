/* SPDX-License-Identifier: MIT */
/* What is kept and what is hidden, while the host works beside the box: the suite replaces, moves
 * and makes names on the host when it has read READY, and then makes the file `go`. */
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "payload.h"

#define SECRET "callbox-secret"

static bool await(const char *go)
{
        printf("READY\n");
        fflush(stdout);
        for (int i = 0; i < 800; i++, nap(0.01))
                if (access(go, F_OK) == 0)
                        return true;
        return false;
}

static void put(struct tally *tally, const char *what, const char *path, long result)
{
        char text[512];

        snprintf(text, sizeof(text), "%s %s", what, strrchr(path, '/') ? strrchr(path, '/') : path);
        expect_failure(tally, text, result);
        if (result >= 0 && strncmp(what, "open", 4) == 0)
                close((int)result);
}

static void bind_to(struct tally *tally, const char *path)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", path);
        if (fd >= 0 && strlen(path) < 100)
                put(tally, "bind", path, bind(fd, (struct sockaddr *)&address, sizeof(address)));
        close(fd);
}

/* Without any name of its own being changed: contents, mode, times, attributes, links to it. */
static void change_contents(struct tally *tally, const char *path, int before)
{
        struct timespec times[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
        int bare = open(path, O_PATH | O_CLOEXEC), reads = open(path, O_RDONLY | O_CLOEXEC);
        struct stat st;
        char link[64];

        if (stat(path, &st) < 0) {
                put_held(tally, "%s is not there", path);
                return;
        }
        put(tally, "open to write", path, S_ISDIR(st.st_mode) ? -1 : open(path, O_WRONLY));
        put(tally, "open to append", path,
            S_ISDIR(st.st_mode) ? -1 : open(path, O_RDWR | O_APPEND));
        put(tally, "open or make", path, open(path, O_WRONLY | O_CREAT, 0600));
        put(tally, "open nameless", path, open(path, O_TMPFILE | O_RDWR, 0600));
        put(tally, "open to cut", path, S_ISDIR(st.st_mode) ? -1 : open(path, O_RDONLY | O_TRUNC));
        put(tally, "truncate", path, truncate(path, st.st_size));
        put(tally, "chmod", path, chmod(path, st.st_mode & 0777));
        put(tally, "chown", path, chown(path, (uid_t)-1, (gid_t)-1));
        put(tally, "utimensat", path, utimensat(AT_FDCWD, path, times, 0));
        put(tally, "setxattr", path, setxattr(path, "user.attack", "x", 1, 0));
        put(tally, "lsetxattr", path, lsetxattr(path, "user.attack", "x", 1, 0));
        for (int i = 0; i < 3; i++) {
                int fd = (const int[]){ bare, reads, before }[i];

                if (fd < 0)
                        continue;
                snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
                put(tally, "open again", link, S_ISDIR(st.st_mode) ? -1 : open(link, O_WRONLY));
                put(tally, "chmod by link", link, chmod(link, st.st_mode & 0777));
                put(tally, "truncate by link", link, truncate(link, st.st_size));
                if (fd == bare)
                        continue;
                put(tally, "fchmod", link, fchmod(fd, st.st_mode & 0777));
                put(tally, "fchown", link, fchown(fd, (uid_t)-1, (gid_t)-1));
                put(tally, "futimens", link, futimens(fd, times));
                put(tally, "fsetxattr", link, fsetxattr(fd, "user.attack", "x", 1, 0));
        }
        close(bare);
        close(reads);
}

/* The name itself, and what could take its place. `other` is a file of the box's own. */
static void change_name(struct tally *tally, const char *path, const char *other)
{
        char second[4096];

        snprintf(second, sizeof(second), "%.4000s-link", other);
        put(tally, "link from", path, link(path, second));
        snprintf(second, sizeof(second), "%.4000s-moved", other);
        put(tally, "exchange", path,
            syscall(SYS_renameat2, AT_FDCWD, other, AT_FDCWD, path, 2 /* RENAME_EXCHANGE */));
        put(tally, "rename over", path, rename(other, path));
        put(tally, "rename away", path, rename(path, second));
        put(tally, "unlink", path, unlink(path));
        put(tally, "rmdir", path, rmdir(path));
        put(tally, "mkdir", path, mkdir(path, 0700));
        put(tally, "symlink", path, symlink("/etc/passwd", path));
        put(tally, "mknod", path, mknod(path, S_IFREG | 0600, 0));
        put(tally, "link", path, link(other, path));
        bind_to(tally, path);
}

/* GO OTHER PATH...: change each of them, and names in them. */
static int s3_change(int argc, char **argv)
{
        struct tally tally = { 0 };
        char inner[4096], own[4096];
        int before[16];

        if (argc < 3 || argc > 16)
                return untried("arguments");
        for (int i = 2; i < argc; i++)
                before[i] = open(argv[i], O_RDONLY | O_CLOEXEC);
        if (!await(argv[0]))
                return untried("nothing happens");
        for (int i = 2; i < argc; i++) {
                struct stat st;
                int fd;

                snprintf(own, sizeof(own), "%.4000s%d", argv[1], i);
                fd = open(own, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
                if (fd < 0)
                        return untried("%s: %s", own, errno_name(errno));
                close(fd);
                change_contents(&tally, argv[i], before[i]);
                if (stat(argv[i], &st) == 0 && S_ISDIR(st.st_mode)) {
                        snprintf(inner, sizeof(inner), "%s/made", argv[i]);
                        put(&tally, "open in it", inner, open(inner, O_WRONLY | O_CREAT, 0600));
                        put(&tally, "mkdir in it", inner, mkdir(inner, 0700));
                }
                change_name(&tally, argv[i], own);
        }
        return verdict(&tally);
}

/* GO PATH...: contents alone, as through another name. */
static int s3_contents(int argc, char **argv)
{
        struct tally tally = { 0 };

        if (argc < 2 || !await(argv[0]))
                return untried("nothing happens");
        for (int i = 1; i < argc; i++)
                change_contents(&tally, argv[i], -1);
        return verdict(&tally);
}

/* GO PATH: open it for writing as often as it takes while the host replaces it. */
static int s3_race(int argc, char **argv)
{
        double end;
        long tries = 0;

        if (argc < 2 || !await(argv[0]))
                return untried("nothing happens");
        for (end = now() + 1.5; now() < end; tries++) {
                int fd = open(argv[1], O_WRONLY | O_CLOEXEC);

                if (fd >= 0 || truncate(argv[1], 0) == 0 || unlink(argv[1]) == 0)
                        return broken("%s after %ld tries", argv[1], tries);
        }
        return held("%ld tries", tries);
}

/* ---- Reading ---- */

static void look_for(struct tally *tally, const char *what, int fd)
{
        char text[256] = "";

        if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && strstr(text, SECRET))
                put_broken(tally, "%s", what);
        else
                put_held(tally, "%s", what);
        if (fd >= 0)
                close(fd);
}

static void read_file(struct tally *tally, const char *path)
{
        int bare = open(path, O_PATH | O_CLOEXEC), directory;
        char text[4200], parent[4096];

        look_for(tally, "open", open(path, O_RDONLY));
        look_for(tally, "open without links", open(path, O_RDONLY | O_NOFOLLOW));
        look_for(tally, "open to write too", open(path, O_RDWR));
        look_for(tally, "open or make", open(path, O_RDWR | O_CREAT, 0600));
        snprintf(text, sizeof(text), "/proc/self/fd/%d", bare);
        look_for(tally, "open again", open(text, O_RDONLY));
        snprintf(text, sizeof(text), "/dev/fd/%d", bare);
        look_for(tally, "open by /dev/fd", open(text, O_RDONLY));
        snprintf(text, sizeof(text), "/proc/self/root%s", path);
        look_for(tally, "open by root", open(text, O_RDONLY));
        snprintf(text, sizeof(text), "/proc/thread-self/root%s", path);
        look_for(tally, "open by thread-self", open(text, O_RDONLY));
        snprintf(parent, sizeof(parent), "%.4000s", path);
        *strrchr(parent, '/') = '\0';
        directory = open(parent, O_PATH | O_CLOEXEC);
        look_for(tally, "open in its directory",
                 openat(directory, strrchr(path, '/') + 1, O_RDONLY));
        if (symlink(path, scratch("look")) == 0)
                look_for(tally, "open by a link", open(scratch("look"), O_RDONLY));
        unlink(scratch("look"));
        if (chdir(parent) == 0)
                look_for(tally, "open from its directory", open(strrchr(path, '/') + 1, O_RDONLY));
        look_for(tally, "openat2", (int)syscall(437, AT_FDCWD, path, (uint64_t[]){ 0, 0, 0 }, 24));
        close(bare);
        close(directory);
}

static void connect_to(struct tally *tally, const char *path)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", path);
        put(tally, "connect", path, connect(fd, (struct sockaddr *)&address, sizeof(address)));
        close(fd);
}

/* GO OPEN PATH...: read what is hidden; OPEN lies beside it and can be read. */
static int s3_read(int argc, char **argv)
{
        struct tally tally = { 0 };
        struct stat st;

        if (argc < 3 || !await(argv[0]))
                return untried("nothing happens");
        if (!opens(argv[1], O_RDONLY))
                return untried("%s cannot be read: %s", argv[1], errno_name(errno));
        for (int i = 2; i < argc; i++) {
                if (stat(argv[i], &st) < 0) {
                        put_held(&tally, "%s %s", argv[i], errno_name(errno));
                } else if (S_ISDIR(st.st_mode)) {
                        put(&tally, "open directory", argv[i], open(argv[i], O_RDONLY));
                } else if (S_ISSOCK(st.st_mode)) {
                        connect_to(&tally, argv[i]);
                } else {
                        read_file(&tally, argv[i]);
                }
        }
        return verdict(&tally);
}

/* ---- Parents ---- */

/* TOP PATH...: put something else in the place of each by way of what lies above it. */
static int s4_parents(int argc, char **argv)
{
        struct tally tally = { 0 };
        char at[4096], aside[4096], other[4096];

        if (argc < 2)
                return untried("arguments");
        snprintf(other, sizeof(other), "%s/other", argv[0]);
        snprintf(aside, sizeof(aside), "%s/aside", argv[0]);
        if (mkdir(other, 0700) < 0 && errno != EEXIST)
                return untried("%s: %s", other, errno_name(errno));
        for (int i = 1; i < argc; i++) {
                snprintf(at, sizeof(at), "%s", argv[i]);
                for (; strlen(at) > strlen(argv[0]); *strrchr(at, '/') = '\0') {
                        put(&tally, "exchange", at,
                            syscall(SYS_renameat2, AT_FDCWD, other, AT_FDCWD, at, 2));
                        put(&tally, "move", at, rename(at, aside));
                        put(&tally, "remove", at, rmdir(at));
                        put(&tally, "unlink", at, unlink(at));
                        put(&tally, "replace", at, rename(other, at));
                }
                put(&tally, "open to write", argv[i], open(argv[i], O_WRONLY | O_CREAT, 0600));
        }
        return verdict(&tally);
}

const struct attack attacks_keep[] = {
        { "S3-change", s3_change }, { "S3-contents", s3_contents }, { "S3-race", s3_race },
        { "S3-read", s3_read },     { "S4-parents", s4_parents },   { NULL, NULL },
};
