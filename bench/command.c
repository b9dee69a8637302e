/* SPDX-License-Identifier: MIT */
/* Contestants that are commands. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

static int filter_fd = -1;

void command_offer_filter(int fd)
{
        filter_fd = fd;
}

void command_add(struct contestant *command, const char *const *words)
{
        for (; *words; words++) {
                if (command->n_args + 1 >= MAX_ARGS) {
                        errno = E2BIG;
                        die(command->name);
                }
                command->argv[command->n_args++] = *words;
        }
}

pid_t command_start(const struct contestant *command, int in, int out, int err)
{
        posix_spawn_file_actions_t actions;
        pid_t pid;
        int r;

        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, in, 0);
        posix_spawn_file_actions_adddup2(&actions, out, 1);
        posix_spawn_file_actions_adddup2(&actions, err, 2);
        if (filter_fd >= 0 && strcmp(command->argv[0], "bwrap") == 0) {
                lseek(filter_fd, 0, SEEK_SET);
                posix_spawn_file_actions_adddup2(&actions, filter_fd, COMMAND_FILTER_FD);
        }
        r = posix_spawnp(&pid, command->argv[0], &actions, NULL, (char *const *)command->argv,
                         environ);
        posix_spawn_file_actions_destroy(&actions);
        return r == 0 ? pid : -r;
}

int command_await(pid_t pid)
{
        int status;

        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        die("wait");
        return status;
}

static int open_null(void)
{
        int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

        if (fd < 0)
                die("/dev/null");
        return fd;
}

double command_run(struct contestant *command)
{
        static char buffer[1 << 16];
        int null = open_null(), ends[2] = { -1, -1 };
        double before, after;
        pid_t pid;
        int status;

        if (command->pipe && pipe2(ends, O_CLOEXEC) < 0)
                die("pipe");
        before = now_ms();
        pid = command_start(command, null, command->pipe ? ends[1] : null, null);
        if (pid < 0) {
                errno = -pid;
                die(command->name);
        }
        if (command->pipe) {
                close(ends[1]);
                while (read(ends[0], buffer, sizeof(buffer)) > 0)
                        ;
        }
        status = command_await(pid);
        after = now_ms();
        close(null);
        if (command->pipe)
                close(ends[0]);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
                fprintf(stderr, "bench: %s failed in the middle of a race (status %#x)\n",
                        command->name, (unsigned)status);
                exit(2);
        }
        return after - before;
}

void command_try(struct contestant *command)
{
        int err = memfd_create("errors", MFD_CLOEXEC), null = open_null();
        char words[4096];
        ssize_t length;
        pid_t pid;
        int status = 0;

        if (err < 0)
                die("memory file");
        pid = command_start(command, null, null, err);
        if (pid < 0)
                snprintf(command->absent, sizeof(command->absent), "%s", strerror(-pid));
        else
                status = command_await(pid);
        if (pid >= 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
                length = pread(err, words, sizeof(words) - 1, 0);
                words[length > 0 ? length : 0] = '\0';
                for (char *end = words + strlen(words); end > words && end[-1] == '\n'; end--)
                        end[-1] = '\0';
                char *line = strrchr(words, '\n');

                snprintf(command->absent, sizeof(command->absent), "exit status %d: %.200s",
                         WIFEXITED(status) ? WEXITSTATUS(status) : -1, line ? line + 1 : words);
        }
        close(err);
        close(null);
}
