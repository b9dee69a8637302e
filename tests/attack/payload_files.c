/* SPDX-License-Identifier: MIT */
/* E and F: the view of the file system, /proc, /sys and /dev. */
#include "payload.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>

#define SECRET "callbox-secret" /* in every file of the suite that must not be read */
#define GRANTED "callbox-granted"

/* Each argument is a path of the host that does not exist in the box. */
static int e53_absent(int argc, char **argv)
{
        struct tally tally = { 0 };

        for (int i = 0; i < argc; i++) {
                /* Without namespaces a name can be seen, and nothing else. */
                if (caged() && !opens(argv[i], O_RDONLY) && !opens(argv[i], O_RDONLY | O_DIRECTORY))
                        put_held(&tally, "%s %s", argv[i], errno_name(errno));
                else if (opens(argv[i], O_PATH))
                        put_broken(&tally, "%s exists%s", argv[i],
                                   opens(argv[i], O_RDONLY) ? " and opens" : "");
                else if (errno == ENOENT || errno == ENOTDIR)
                        put_held(&tally, "%s %s", argv[i], errno_name(errno));
                else
                        put_broken(&tally, "%s exists (%s)", argv[i], errno_name(errno));
        }
        return verdict(&tally);
}

static void try_secret(struct tally *tally, const char *path)
{
        const char *text = slurp(path);

        if (text && strstr(text, SECRET))
                put_broken(tally, "%s was read", path);
        else
                put_held(tally, "%s", text ? "other content" : errno_name(errno));
}

/* Ways around the root; the argument is a secret of the host by its absolute path. */
static int e54_around_root(int argc, char **argv)
{
        static const char *const prefixes[] = {
                "",
                "/../../../../../../../../../..",
                "/proc/self/root",
                "/proc/self/root/../../..",
                "/proc/self/cwd/../../../../../../../../..",
                "/proc/thread-self/root",
                "/proc/1/root",
                "/proc/1/cwd/../../../../../../../..",
                "/proc/1/task/1/root",
                "/proc/self/fd/0/../../../../..",
                "/proc/self/fd/1/../../../../..",
                "/dev/fd/0/../../../../..",
                "/dev/../../../../..",
                "/tmp/../../../../..",
        };
        struct tally tally = { 0 };
        char path[4096];
        DIR *dir;
        struct dirent *entry;

        if (argc < 1)
                return untried("no path given");
        for (size_t i = 0; i < COUNT(prefixes); i++) {
                snprintf(path, sizeof(path), "%s%s", prefixes[i], argv[0]);
                try_secret(&tally, path);
        }
        dir = opendir("/proc");
        while (dir && (entry = readdir(dir))) {
                if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
                        continue;
                snprintf(path, sizeof(path), "/proc/%s/root%s", entry->d_name, argv[0]);
                try_secret(&tally, path);
                snprintf(path, sizeof(path), "/proc/%s/cwd/../../../../../../..%s", entry->d_name,
                         argv[0]);
                try_secret(&tally, path);
        }
        if (dir)
                closedir(dir);
        return verdict(&tally);
}

static int e55_chroot(int argc, char **argv)
{
        struct tally tally = { 0 };
        int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        mkdir("/tmp/e55", 0700);
        expect_fence(&tally, "chroot", chroot("/tmp/e55"));
        (void)!fchdir(fd);
        for (int i = 0; i < 64; i++)
                if (chdir("..") < 0)
                        break;
        expect_fence(&tally, "chroot .", chroot("."));
        if (argc > 0)
                try_secret(&tally, argv[0]);
        return verdict(&tally);
}

/* Each argument is a directory or file of a read-only grant, nested mounts included. */
static int e60_read_only(int argc, char **argv)
{
        struct tally tally = { 0 };

        for (int i = 0; i < argc; i++) {
                struct stat info;
                char path[4096];

                if (stat(argv[i], &info) < 0)
                        return untried("%s %s", argv[i], errno_name(errno));
                if (S_ISDIR(info.st_mode)) {
                        snprintf(path, sizeof(path), "%s/e60", argv[i]);
                        if (opens(path, O_WRONLY | O_CREAT | O_EXCL)) {
                                unlink(path);
                                put_broken(&tally, "made a file in %s", argv[i]);
                        } else {
                                put_held(&tally, "%s %s", argv[i], errno_name(errno));
                        }
                } else if (opens(argv[i], O_WRONLY)) {
                        put_broken(&tally, "%s opens for writing", argv[i]);
                } else {
                        put_held(&tally, "%s %s", argv[i], errno_name(errno));
                }
        }
        return verdict(&tally);
}

static int e61_remount(int argc, char **argv)
{
        static const char *const places[] = { "/usr", "/", "/proc", "/etc", "/dev", "/tmp" };
        struct tally tally = { 0 };

        (void)argc;
        (void)argv;
        for (size_t i = 0; i < COUNT(places); i++)
                expect_failure(&tally, "remount",
                               mount(NULL, places[i], NULL, MS_REMOUNT | MS_BIND, NULL));
        mkdir("/tmp/e61", 0700);
        expect_failure(&tally, "bind", mount("/", "/tmp/e61", NULL, MS_BIND | MS_REC, NULL));
        expect_failure(&tally, "tmpfs over", mount("none", "/tmp/e61", "tmpfs", 0, NULL));
        expect_failure(&tally, "move", mount("/usr", "/tmp/e61", NULL, MS_MOVE, NULL));
        expect_failure(&tally, "propagation", mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL));
        expect_failure(&tally, "umount", umount2("/tmp/e61", MNT_DETACH));
        expect_failure(&tally, "umount of a mask", umount2("/proc/kallsyms", MNT_DETACH));
        return verdict(&tally);
}

static int e63_hard_link(int argc, char **argv)
{
        struct tally tally = { 0 };
        char link_path[64];
        int fd;

        if (argc < 2)
                return untried("two paths are needed");
        expect_failure(&tally, "link", link(argv[0], argv[1]));
        unlink(argv[1]);
        fd = open(argv[0], O_PATH | O_CLOEXEC);
        if (fd < 0)
                return untried("%s %s", argv[0], errno_name(errno));
        expect_failure(&tally, "linkat of a descriptor",
                       linkat(fd, "", AT_FDCWD, argv[1], AT_EMPTY_PATH));
        unlink(argv[1]);
        snprintf(link_path, sizeof(link_path), "/proc/self/fd/%d", fd);
        expect_failure(&tally, "linkat through /proc",
                       linkat(AT_FDCWD, link_path, AT_FDCWD, argv[1], AT_SYMLINK_FOLLOW));
        unlink(argv[1]);
        expect_failure(&tally, "rename", rename(argv[0], argv[1]));
        return verdict(&tally);
}

static bool put_file(const char *path)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
        bool done;

        if (fd < 0)
                return false;
        done = write(fd, "evil\n", 5) == 5;
        close(fd);
        return done;
}

/* Other spellings of a name in the workspace, in which we are; stage/here is a link to it. */
static const char *spelling(int which, const char *name, char *room, size_t size)
{
        static const char *const forms[] = {
                "%s", "./%s", ".//%s", "stage/../%s", "stage/here/%s", "/proc/self/cwd/%s",
        };

        if (which == (int)COUNT(forms)) { /* absolute */
                if (!getcwd(room, size))
                        return NULL;
                snprintf(room + strlen(room), size - strlen(room), "/%s", name);
                return room;
        }
        if (which > (int)COUNT(forms))
                return NULL;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(room, size, forms[which], name);
#pragma GCC diagnostic pop
        return room;
}

/* All calls that give something a name, for one spelling of a protected one. */
static void name_it(struct tally *tally, const char *path)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        char below[700];
        int fd, socket_fd;

        if (put_file(path))
                put_broken(tally, "%s was written", path);
        if (mkdir(path, 0700) == 0)
                put_broken(tally, "%s was made", path);
        snprintf(below, sizeof(below), "%s/evil", path);
        if (put_file(below))
                put_broken(tally, "%s was written", below);
        put_file("stage/file");
        if (rename("stage/file", path) == 0)
                put_broken(tally, "a rename onto %s", path);
        mkdir("stage/dir", 0700);
        put_file("stage/dir/evil");
        if (rename("stage/dir", path) == 0)
                put_broken(tally, "a rename of a directory onto %s", path);
        if (syscall(SYS_renameat2, AT_FDCWD, "stage/dir", AT_FDCWD, path, 2 /* exchange */) == 0)
                put_broken(tally, "an exchange with %s", path);
        if (link("stage/evil", path) == 0)
                put_broken(tally, "a link at %s", path);
        if (symlink("stage", path) == 0)
                put_broken(tally, "a symbolic link at %s", path);
        if (mknod(path, S_IFIFO | 0600, 0) == 0)
                put_broken(tally, "a fifo at %s", path);
        fd = open(".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
        snprintf(below, sizeof(below), "/proc/self/fd/%d", fd);
        if (fd >= 0 && linkat(AT_FDCWD, below, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0)
                put_broken(tally, "an unnamed file was named %s", path);
        if (fd >= 0)
                close(fd);
        if (strlen(path) < sizeof(address.sun_path))
                memcpy(address.sun_path, path, strlen(path) + 1);
        socket_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (bind(socket_fd, (struct sockaddr *)&address, sizeof(address)) == 0)
                put_broken(tally, "a socket at %s", path);
        close(socket_fd);
        fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (path[0] != '/') {
                int made = openat(fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

                if (made >= 0)
                        put_broken(tally, "%s was opened by a descriptor", path);
                if (made >= 0)
                        close(made);
        }
        close(fd);
}

/*
 * Put content of ours under a protected name, by all roads: directly, by a rename, an exchange, a
 * link, and by moving a parent away and making it anew. The arguments are the names, relative to
 * the workspace, in which we are. The suite looks at the host's side after.
 */
static int e65_protected(int argc, char **argv)
{
        struct tally tally = { 0 };

        mkdir("stage", 0700);
        put_file("stage/evil");
        if (symlink("..", "stage/here") < 0 && errno != EEXIST)
                return untried("symlink %s", errno_name(errno));
        for (int i = 0; i < argc; i++) {
                const char *name = argv[i], *path;
                char parent[256], moved[300], below[300], room[600];
                char *slash;

                for (int which = 0; (path = spelling(which, name, room, sizeof(room))); which++)
                        name_it(&tally, path);
                /* away with it, then make it anew */
                snprintf(moved, sizeof(moved), "stage/moved-%d", i);
                if (rename(name, moved) == 0 || unlink(name) == 0 || rmdir(name) == 0)
                        put_broken(&tally, "%s was moved away", name);
                /* away with its parent */
                snprintf(parent, sizeof(parent), "%s", name);
                snprintf(below, sizeof(below), "%s/evil", name);
                slash = strrchr(parent, '/');
                if (slash) {
                        *slash = '\0';
                        snprintf(moved, sizeof(moved), "stage/parent-%d", i);
                        if (rename(parent, moved) == 0 || rmdir(parent) == 0 ||
                            access(parent, F_OK) != 0) {
                                mkdir(parent, 0700);
                                mkdir(name, 0700);
                                if (put_file(below) || put_file(name))
                                        put_broken(&tally, "%s in a parent made anew", name);
                                mkdir("stage/tree", 0700);
                                mkdir("stage/tree/hooks", 0700);
                                put_file("stage/tree/hooks/evil");
                                put_file("stage/tree/config");
                                snprintf(moved, sizeof(moved), "stage/tree/%s", slash + 1);
                                mkdir(moved, 0700);
                                if (rename("stage/tree", parent) == 0 && access(name, F_OK) == 0)
                                        put_broken(&tally, "a tree was renamed to %s", parent);
                                if (symlink("stage/tree", parent) == 0 && access(name, F_OK) == 0)
                                        put_broken(&tally, "a symbolic link at %s", parent);
                        }
                }
                put_held(&tally, "%s", name);
        }
        return verdict(&tally);
}

/* The same while another thread changes the path under the eyes of whoever checks it. */
static char racing_path[256];
static const char *racing_name;
static volatile bool racing = true;

static void *change_path(void *data)
{
        (void)data;
        while (racing) {
                memcpy(racing_path, racing_name, strlen(racing_name) + 1);
                memcpy(racing_path, "harmless", 9);
        }
        return NULL;
}

static int e65_race(int argc, char **argv)
{
        pthread_t thread;
        double until = now() + 1.5;
        long tries = 0;

        if (argc < 1)
                return untried("no name given");
        racing_name = argv[0];
        put_file("source");
        if (pthread_create(&thread, NULL, change_path, NULL) != 0)
                return untried("no thread");
        while (now() < until && access(racing_name, F_OK) != 0) {
                int fd = open(racing_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

                if (fd >= 0)
                        close(fd);
                rename("source", racing_path);
                (void)!link("harmless", racing_path);
                mkdir(racing_path, 0700);
                (void)!symlink("x", racing_path);
                unlink("harmless");
                rmdir("harmless");
                put_file("source");
                tries++;
        }
        racing = false;
        pthread_join(thread, NULL);
        if (access(racing_name, F_OK) == 0)
                return broken("%s exists after %ld rounds", racing_name, tries);
        return held("%ld rounds", tries);
}

/* "+path" is granted and must be readable, "-path" must not show the secret. */
static int e71_view(int argc, char **argv)
{
        struct tally tally = { 0 };

        for (int i = 0; i < argc; i++) {
                const char *text = slurp(argv[i] + 1);

                if (argv[i][0] == '+' && (!text || !strstr(text, GRANTED)))
                        return untried("%s is not readable (%s)", argv[i] + 1,
                                       text ? text : errno_name(errno));
                if (argv[i][0] == '-')
                        try_secret(&tally, argv[i] + 1);
                else
                        put_held(&tally, "%s is there", argv[i] + 1);
        }
        return verdict(&tally);
}

/* Hidden directories are no place to write to. */
static int e72_hidden_writable(int argc, char **argv)
{
        struct tally tally = { 0 };

        for (int i = 0; i < argc; i++) {
                char path[4096];

                snprintf(path, sizeof(path), "%s/e72", argv[i]);
                if (opens(path, O_WRONLY | O_CREAT))
                        put_broken(&tally, "made %s", path);
                else
                        put_held(&tally, "%s %s", path, errno_name(errno));
                expect_failure(&tally, "mkdir", mkdir(path, 0700));
                if (opens(argv[i], O_WRONLY))
                        put_broken(&tally, "%s opens for writing", argv[i]);
        }
        return verdict(&tally);
}

/* path, true size, true inode; while we watch, the host writes to the file. */
static int e73_metadata(int argc, char **argv)
{
        struct tally tally = { 0 };
        struct stat info;
        struct pollfd watch = { .events = POLLIN };

        if (argc < 3)
                return untried("three arguments are needed");
        if (stat(argv[0], &info) == 0) {
                if (info.st_size == strtol(argv[1], NULL, 10))
                        put_broken(&tally, "the size shows");
                if (info.st_ino == strtoul(argv[2], NULL, 10))
                        put_broken(&tally, "the inode shows");
        }
        put_held(&tally, "stat tells nothing");
        watch.fd = inotify_init1(IN_CLOEXEC);
        if (watch.fd >= 0 && inotify_add_watch(watch.fd, argv[0], IN_ALL_EVENTS) >= 0) {
                if (poll(&watch, 1, 700) > 0)
                        put_broken(&tally, "writes by others show");
                else
                        put_held(&tally, "a watch stays silent");
        } else {
                put_held(&tally, "no watch: %s", errno_name(errno));
        }
        return verdict(&tally);
}

/* Were our arguments eaten as options of callbox? */
static int e77_arguments(int argc, char **argv)
{
        static const char *const given[] = { "--net", "host", "--workspace", "/", "--json", "-t" };

        if (argc != (int)COUNT(given))
                return broken("%d arguments arrived, not %zu", argc, COUNT(given));
        for (size_t i = 0; i < COUNT(given); i++)
                if (strcmp(argv[i], given[i]) != 0)
                        return broken("argument %zu is %s", i, argv[i]);
        if (missing_fence(false))
                return broken("%s", missing_fence(false));
        return held("all arguments arrived");
}

static bool copy_self(int to)
{
        static char block[65536];
        int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        ssize_t n = -1;

        while (from >= 0 && (n = read(from, block, sizeof(block))) > 0)
                if (write(to, block, (size_t)n) != n)
                        return false;
        return from >= 0 && n == 0;
}

/* Started by other roads (a memfd, a copy in /tmp), a program is fenced as before. */
static int e78_other_roads(int argc, char **argv)
{
        struct tally tally = { 0 };
        char *args[] = { (char *)(uintptr_t) "payload", (char *)(uintptr_t) "R169-fences",
                         (char *)(uintptr_t)self_token, (char *)(uintptr_t) "child", NULL };

        (void)argc;
        (void)argv;
        for (int road = 0; road < 2; road++) {
                int status;
                pid_t pid;
                int fd = road == 0 ? (int)syscall(SYS_memfd_create, "e78", 0)
                                   : open(scratch("e78"), O_WRONLY | O_CREAT | O_TRUNC, 0700);

                if (fd < 0 || !copy_self(fd)) {
                        put_held(&tally, "no copy: %s", errno_name(errno));
                        continue;
                }
                fcntl(fd, F_SETFD, FD_CLOEXEC);
                if (road == 1)
                        close(fd);
                pid = fork();
                if (pid == 0) {
                        if (road == 0)
                                syscall(SYS_execveat, fd, "", args, environ, AT_EMPTY_PATH);
                        else
                                execv(scratch("e78"), args);
                        _exit(EXIT_HELD); /* not started at all is as good */
                }
                waitpid(pid, &status, 0);
                if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_HELD)
                        put_held(&tally, "%s", road ? "a copy in /tmp" : "a memfd");
                else
                        put_broken(&tally, "%s lacks a fence", road ? "a copy in /tmp" : "a memfd");
        }
        return verdict(&tally);
}

/* ---- F ---- */

static int f81_pids(int argc, char **argv)
{
        DIR *dir = opendir("/proc");
        struct dirent *entry;
        int count = 0, last = 0;

        (void)argc;
        (void)argv;
        while (dir && (entry = readdir(dir)))
                if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9' &&
                    !is_holder(atoi(entry->d_name))) {
                        count++;
                        last = atoi(entry->d_name);
                }
        if (!dir || count == 0)
                return untried("/proc shows nothing");
        closedir(dir);
        if (count > 2)
                return broken("%d processes are visible, the last one is %d", count, last);
        if (getppid() != 1 || getpid() > 100)
                return broken("we are %d, our parent is %d", getpid(), getppid());
        return held("%d processes are visible", count);
}

static void try_writing(struct tally *tally, const char *const *paths)
{
        for (; *paths; paths++)
                if (opens(*paths, O_WRONLY))
                        put_broken(tally, "%s opens for writing", *paths);
                else
                        put_held(tally, "%s %s", *paths, errno_name(errno));
}

static int f82_kernel_settings(int argc, char **argv)
{
        static const char *const paths[] = {
                "/proc/sys/kernel/core_pattern",   "/proc/sysrq-trigger",
                "/proc/sys/kernel/modprobe",       "/proc/sys/vm/overcommit_memory",
                "/proc/sys/kernel/shmmax",         "/proc/sys/net/ipv4/ip_forward",
                "/proc/sys/fs/binfmt_misc/status", "/proc/sys/kernel/ns_last_pid",
                "/proc/sys/kernel/hostname",       "/proc/self/oom_score_adj",
                "/proc/1/oom_score_adj",           NULL,
        };
        struct tally tally = { 0 };

        (void)argc;
        (void)argv;
        try_writing(&tally, paths);
        return verdict(&tally);
}

static int f83_masked(int argc, char **argv)
{
        static const char *const paths[] = {
                "/proc/kcore",         "/proc/kallsyms",      "/proc/keys",
                "/proc/key-users",     "/proc/timer_list",    "/proc/sched_debug",
                "/proc/kmsg",          "/proc/kpagecount",    "/proc/kpageflags",
                "/proc/sysrq-trigger", "/proc/latency_stats", "/proc/interrupts",
                "/sys/firmware",       "/sys/kernel/debug",   "/sys/kernel/security",
                "/sys/devices",        "/proc/scsi/scsi",     "/proc/acpi/wakeup",

        };
        struct tally tally = { 0 };

        (void)argc;
        (void)argv;
        for (size_t i = 0; i < COUNT(paths); i++) {
                char byte;
                int fd = open(paths[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
                DIR *dir = opendir(paths[i]);
                int entries = 0;

                if (dir) {
                        for (struct dirent *e; (e = readdir(dir));)
                                entries += e->d_name[0] != '.';
                        closedir(dir);
                }
                if (entries > 0 || (fd >= 0 && !dir && read(fd, &byte, 1) > 0))
                        put_broken(&tally, "%s is readable", paths[i]);
                else
                        put_held(&tally, "%s", paths[i]);
                if (fd >= 0)
                        close(fd);
        }
        return verdict(&tally);
}

static int f85_self(int argc, char **argv)
{
        static const char *const paths[] = {
                "/proc/self/uid_map",      "/proc/self/gid_map",      "/proc/self/setgroups",
                "/proc/self/attr/current", "/proc/self/attr/exec",    "/proc/self/attr/fscreate",
                "/proc/self/loginuid",     "/proc/self/projid_map",   "/proc/self/timens_offsets",
                "/proc/1/uid_map",         "/proc/self/make-it-fail", NULL,
        };
        struct tally tally = { 0 };
        gid_t group = 0;

        (void)argc;
        (void)argv;
        try_writing(&tally, paths);
        expect_failure(&tally, "setgroups", syscall(SYS_setgroups, 1, &group));
        return verdict(&tally);
}

static bool known_device(dev_t device)
{
        static const unsigned char memory[] = { 3, 5, 7, 8, 9 };

        if (major(device) == 1)
                for (size_t i = 0; i < sizeof(memory); i++)
                        if (minor(device) == memory[i])
                                return true;
        if (major(device) == 5 && (minor(device) == 0 || minor(device) == 2))
                return true;
        return major(device) >= 136 && major(device) <= 143;
}

static void list_devices(struct tally *tally, const char *where, int depth)
{
        DIR *dir = opendir(where);
        struct dirent *entry;

        while (dir && (entry = readdir(dir))) {
                struct stat info;
                char path[4096];

                if (entry->d_name[0] == '.')
                        continue;
                snprintf(path, sizeof(path), "%s/%s", where, entry->d_name);
                if (lstat(path, &info) < 0 || S_ISLNK(info.st_mode))
                        continue;
                if (S_ISDIR(info.st_mode)) {
                        if (depth > 0)
                                list_devices(tally, path, depth - 1);
                } else if ((S_ISCHR(info.st_mode) && !known_device(info.st_rdev)) ||
                           S_ISBLK(info.st_mode)) {
                        put_broken(tally, "%s", path);
                } else {
                        put_held(tally, "%s", path);
                }
        }
        if (dir)
                closedir(dir);
}

static int f87_devices(int argc, char **argv)
{
        struct tally tally = { 0 };
        long r;

        (void)argc;
        (void)argv;
        list_devices(&tally, "/dev", 3);
        r = mknod("/tmp/f87", S_IFCHR | 0600, makedev(1, 3));
        expect_failure(&tally, "mknod of null", r);
        r = mknod("/tmp/f87b", S_IFBLK | 0600, makedev(254, 0));
        expect_failure(&tally, "mknod of a disk", r);
        if (opens("/dev/f87", O_WRONLY | O_CREAT)) {
                unlink("/dev/f87");
                put_broken(&tally, "/dev takes new files");
        }
        return verdict(&tally);
}

static int f89_sys(int argc, char **argv)
{
        static const char *const paths[] = {
                "/sys/kernel/uevent_helper",   "/sys/power/state", "/sys/kernel/mm/ksm/run",
                "/sys/fs/cgroup/cgroup.procs", "/sys/module",      NULL,
        };
        struct tally tally = { 0 };

        (void)argc;
        (void)argv;
        try_writing(&tally, paths);
        if (opens("/sys/kernel", caged() ? O_RDONLY : O_PATH))
                put_broken(&tally, "/sys is visible");
        if (opens("/sys/f89", O_WRONLY | O_CREAT)) {
                unlink("/sys/f89");
                put_broken(&tally, "/sys takes new files");
        }
        return verdict(&tally);
}

const struct attack attacks_files[] = {
        { "E53-absent", e53_absent },
        { "E54-around-root", e54_around_root },
        { "E55-chroot", e55_chroot },
        { "E60-read-only", e60_read_only },
        { "E61-remount", e61_remount },
        { "E63-hard-link", e63_hard_link },
        { "E65-protected", e65_protected },
        { "E65-race", e65_race },
        { "E71-view", e71_view },
        { "E72-hidden-writable", e72_hidden_writable },
        { "E73-metadata", e73_metadata },
        { "E77-arguments", e77_arguments },
        { "E78-other-roads", e78_other_roads },
        { "F81-pids", f81_pids },
        { "F82-kernel-settings", f82_kernel_settings },
        { "F83-masked", f83_masked },
        { "F85-self", f85_self },
        { "F87-devices", f87_devices },
        { "F89-sys", f89_sys },
        { NULL, NULL },
};
