/* SPDX-License-Identifier: MIT */
/* Fence: network. The box's own net namespace holds nothing but a loopback, down unless asked. */
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

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

int box_enter_network(struct child *child)
{
        static const char name[] = PLAN_BOX_NAME;

        if (box_fence(FENCE_UTS) && sethostname(name, sizeof(name) - 1) < 0)
                return step_failed(child, "set the host name", NULL, errno);
        if (child->plan->policy->network == POLICY_NETWORK_LOOPBACK && box_fence(FENCE_NET))
                return raise_loopback(child);
        return 0;
}
