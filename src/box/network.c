/* SPDX-License-Identifier: MIT */
/*
 * Fence: network. The box's net namespace holds nothing but a loopback, down unless asked. It is
 * the box's own, or one that is lent to it alone (lend.h).
 */
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "box/child.h"

static int raise_loopback(struct child *child)
{
        struct ifreq request = { .ifr_name = "lo" };
        _cleanup_fd_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

        if (fd < 0)
                return step_failed(child, "open a socket", NULL, errno);
        request.ifr_flags = IFF_UP | IFF_RUNNING;
        if (ioctl(fd, SIOCSIFFLAGS, &request) < 0)
                return step_failed(child, "raise the loopback", NULL, errno);
        return 0;
}

/* Assert, don't hope: the loopback of a lent namespace is down, and this process, which still has
 * every capability of the box's user namespace, may not raise it. Asked on the socket between init
 * and main, which was made in that namespace. */
static int check_lent(struct child *child)
{
        struct ifreq request = { .ifr_name = "lo" };

        if (ioctl(child->pair[1], SIOCGIFFLAGS, &request) < 0)
                return step_failed(child, "look at the loopback", NULL, errno);
        if (request.ifr_flags & IFF_UP)
                return step_failed(child, "see the loopback down", NULL, ENOTUNIQ);
        if (ioctl(child->pair[1], SIOCSIFFLAGS, &request) == 0 || errno != EPERM)
                return step_failed(child, "see the network closed to changes", NULL, EPERM);
        return 0;
}

/* Has the box a net namespace of its own? */
static bool is_wanted(const struct child *child)
{
        return child->plan->policy->network != POLICY_NETWORK_HOST && box_fence(FENCE_NET);
}

/* Runs in main while init builds the root: making a net namespace takes the kernel longer than
 * anything else in a box, and two processors can share the work. */
int box_enter_network(struct child *child)
{
        static const char name[] = PLAN_BOX_NAME;
        enum policy_network network = child->plan->policy->network;
        _cleanup_fd_ int made = -1;
        int r = 0;

        if (child->forked) /* into a net namespace and with the name of a box */
                return network == POLICY_NETWORK_LOOPBACK ? raise_loopback(child) : 0;
        if (box_fence(FENCE_UTS) && sethostname(name, sizeof(name) - 1) < 0)
                return step_failed(child, "set the host name", NULL, errno);
        if (child->used)
                return check_lent(child);
        if (is_wanted(child)) {
                if (syscall(SYS_unshare, CLONE_NEWNET) < 0)
                        return step_failed(child, "make a net namespace", NULL, errno);
                made = openat(child->host_proc, "self/ns/net", O_RDONLY | O_CLOEXEC);
                if (made < 0)
                        return step_failed(child, "open the net namespace", NULL, errno);
                if (network == POLICY_NETWORK_LOOPBACK)
                        r = raise_loopback(child);
        }
        if (r == 0 && descriptor_send(child->pair[1], 'd', &made, made >= 0) < 0)
                r = step_failed(child, "show init the net namespace", NULL, errno);
        return r;
}

/* Init joins main's network, lest /proc/1/net show the host's. */
int box_join_network(struct child *child)
{
        _cleanup_fd_ int network = -1;
        char byte;

        if (child->used || child->forked) /* both were born in it */
                return 0;
        if (descriptor_receive(child->pair[0], &network, 1, &byte) <= 0)
                return step_failed(child, "meet the main process", NULL, EPIPE);
        if (!is_wanted(child))
                return 0;
        if (network < 0) /* a descriptor for which there is no room is dropped on the way */
                return step_failed(child, "take the net namespace", NULL, EMFILE);
        if (syscall(SYS_setns, network, CLONE_NEWNET) < 0)
                return step_failed(child, "join the net namespace", NULL, errno);
        return 0;
}
