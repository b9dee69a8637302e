/* SPDX-License-Identifier: MIT */
/*
 * What the probes plant on the host: a file that no box is shown, one that is, a directory that a
 * box may write to, two listening sockets, an environment variable. All of it goes with them.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "cli/doctor.h"

static int plant_file(const char *path)
{
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

        return fd < 0 ? -errno : fd;
}

/* Where a box can be shown something that lies in no tree which every box is shown. */
static int plant_files(struct doctor_plants *plants, cbx_error *error)
{
        static const char *const places[] = { "/tmp", "/var/tmp", "/run" };
        int fd = -ENOENT;

        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                snprintf(plants->directory, sizeof(plants->directory), "%s/callbox-doctor-XXXXXX",
                         places[i]);
                if (mkdtemp(plants->directory))
                        break;
                plants->directory[0] = '\0';
        }
        if (!plants->directory[0]) {
                error_set(error, -errno, "",
                          "cannot make a directory in /tmp, /var/tmp or /run: %s", strerror(errno));
                error_hint(error, "let one of them be writable; the probes plant files there");
                return error->code;
        }
        snprintf(plants->planted, sizeof(plants->planted), "%s/planted", plants->directory);
        snprintf(plants->shown, sizeof(plants->shown), "%s/shown", plants->directory);
        snprintf(plants->tree, sizeof(plants->tree), "%s/tree", plants->directory);
        /* The fence must stop the box, not the modes of what is planted. */
        if (chmod(plants->directory, 0755) == 0 && mkdir(plants->tree, 0700) == 0)
                fd = plant_file(plants->planted);
        if (fd >= 0) {
                close(fd);
                fd = plants->lock = plant_file(plants->shown);
        }
        if (fd < 0 || fchmodat(AT_FDCWD, plants->planted, 0644, 0) < 0 || fchmod(fd, 0644) < 0)
                return error_set(error, -EIO, "", "cannot plant files in %s", plants->directory);
        return 0;
}

/* Listen, and see that a connection from here is possible. */
static int plant_listener(int family, struct sockaddr *address, socklen_t length)
{
        _cleanup_fd_ int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        _cleanup_fd_ int client = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        socklen_t room = length;

        if (fd < 0 || client < 0 || bind(fd, address, length) < 0 || listen(fd, 8) < 0 ||
            getsockname(fd, address, &room) < 0)
                return -1;
        if (connect(client, address, length) < 0 && errno != EINPROGRESS)
                return -1;
        return TAKE_FD(fd);
}

static void plant_sockets(struct doctor_plants *plants)
{
        struct sockaddr_in tcp = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        struct sockaddr_un local = { .sun_family = AF_UNIX };
        const char *name = strrchr(plants->directory, '/') + 1;
        socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));

        snprintf(plants->socket, sizeof(plants->socket), "%s", name);
        snprintf(local.sun_path + 1, sizeof(local.sun_path) - 1, "%s", name);
        plants->local = plant_listener(AF_UNIX, (struct sockaddr *)&local, length);
        /* A host without loopback has no port to be reached. */
        plants->tcp = plant_listener(AF_INET, (struct sockaddr *)&tcp, sizeof(tcp));
        snprintf(plants->port, sizeof(plants->port), "%u",
                 plants->tcp >= 0 ? ntohs(tcp.sin_port) : 0U);
}

int doctor_plant(struct doctor_plants *plants, cbx_error *error)
{
        ssize_t n = readlink("/proc/self/exe", plants->program, sizeof(plants->program) - 1);
        int r;

        if (n <= 0)
                return error_set(error, -errno, "", "cannot find the program callbox itself: %s",
                                 strerror(errno));
        plants->program[n] = '\0';
        r = plant_files(plants, error);
        if (r < 0)
                return r;
        plant_sockets(plants);
        return setenv(DOCTOR_VARIABLE, "planted", 1) < 0 ? error_oom(error) : 0;
}

void doctor_clear(struct doctor_plants *plants)
{
        char made[128];

        base_close(plants->lock);
        base_close(plants->tcp);
        base_close(plants->local);
        (void)unsetenv(DOCTOR_VARIABLE);
        if (!plants->directory[0])
                return;
        snprintf(made, sizeof(made), "%s/made", plants->tree);
        (void)unlink(made);
        (void)unlink(plants->planted);
        (void)unlink(plants->shown);
        (void)rmdir(plants->tree);
        (void)rmdir(plants->directory);
}
