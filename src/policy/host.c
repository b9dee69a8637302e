/* SPDX-License-Identifier: MIT */
#include "policy/host.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Is it a refusal that will stay one, rather than a moment of too little memory, or a signal? Only
 * then is a box made of something else. */
static int lasting(int code)
{
        if (code == EINVAL) /* of a kernel that was built without them */
                return access("/proc/self/ns/user", F_OK) == 0 ? 0 : code;
        return code == EPERM || code == EACCES || code == ENOSPC || code == EUSERS || code == ENOSYS
                       ? code
                       : 0;
}

/* In a user namespace of its own, as after vfork: some hosts allow the namespace and then nothing
 * in it (AppArmor), so do what the root of a box begins with. */
static int try_inside(void *ret)
{
        int *refused = ret;

        if (syscall(SYS_unshare, CLONE_NEWNS) < 0 ||
            mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                *refused = errno;
        syscall(SYS_exit_group, 0);
        __builtin_unreachable();
}

int host_refuses_clone3(void)
{
        /* Where it is known it says that this is no way to ask. */
        return syscall(SYS_clone3, NULL, 0) < 0 && errno != EINVAL ? lasting(errno) : 0;
}

static int try_namespaces(void)
{
        _Alignas(16) char stack[4096];
        int refused = host_refuses_clone3(), status;
        pid_t pid;

        if (refused != 0)
                return refused;
        pid = clone(try_inside, stack + sizeof(stack),
                    CLONE_NEWUSER | CLONE_VM | CLONE_VFORK | SIGCHLD, &refused);
        if (pid < 0)
                return lasting(errno);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        return lasting(refused);
}

int host_refuses_namespaces(void)
{
        static int refused = -1;

        if (refused < 0)
                refused = try_namespaces();
        return refused;
}

int host_explain_refusal(int code, cbx_error *error)
{
        error_set(error, -code, "namespaces", "the kernel refuses new namespaces: %s",
                  strerror(code));
        if (code == ENOSPC)
                error_hint(error, "raise the sysctl user.max_user_namespaces, or that of another "
                                  "kind; `callbox doctor` says which");
        else if (code == EPERM || code == EACCES)
                error_hint(error,
                           "allow unprivileged user namespaces (sysctl "
                           "kernel.unprivileged_userns_clone=1, or "
                           "kernel.apparmor_restrict_unprivileged_userns=0, or run the "
                           "container with a profile that permits them); see `callbox doctor`");
        else if (code == ENOSYS)
                error_hint(error, "something that callbox runs in answers clone3 so, a container's "
                                  "seccomp profile or another box; run it outside, or with a "
                                  "profile that permits clone3");
        else if (code == EAGAIN)
                error_hint(error, "the caller's limit on processes is reached (ulimit -u)");
        return -code;
}

int host_forbids_reading(void)
{
        _cleanup_fd_ int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
        char scope = '0';

        return fd >= 0 && read(fd, &scope, 1) == 1 && scope >= '2' ? scope - '0' : 0;
}

int host_explain_reading(int scope, const char *where, const char *what, cbx_error *error)
{
        error_set(error, -EPERM, where,
                  "the guarantee \"files\" cannot be kept %s: kernel.yama.ptrace_scope is %d, so "
                  "init could not read what a program asks for",
                  what, scope);
        error_hint(error, "%s",
                   scope == 2
                           ? "sudo sysctl -w kernel.yama.ptrace_scope=1"
                           : "set kernel.yama.ptrace_scope=1 in /etc/sysctl.d/ and boot again: 3 "
                             "cannot be changed back");
        return error->code;
}

bool host_lets_take(void)
{
        /* Asked for nobody's descriptor: refused as such, or not even that. */
        return syscall(SYS_pidfd_getfd, -1, 0, 0) == 0 || errno == EBADF;
}

/* The kernel lets this id alone change its settings, whatever capabilities anyone has, and says so
 * before it looks whether they can be changed there. Any other answer is no proof. */
bool host_is_root(void)
{
        return geteuid() == 0 || access("/proc/sys/kernel/core_pattern", W_OK) == 0 ||
               errno != EACCES;
}

bool host_maps_id(unsigned long id, unsigned long *ret_outside)
{
        _cleanup_free_ char *map = NULL;
        unsigned long inside, outside, count;
        int n;

        if (file_read(AT_FDCWD, "/proc/self/uid_map", 64 * KIB, &map, NULL) < 0)
                return false;
        for (const char *at = map; sscanf(at, "%lu %lu %lu%n", &inside, &outside, &count, &n) == 3;
             at += n)
                if (id >= inside && id - inside < count) {
                        *ret_outside = outside + (id - inside);
                        return true;
                }
        return false;
}
