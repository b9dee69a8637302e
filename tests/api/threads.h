/* SPDX-License-Identifier: MIT */
#ifndef API_THREADS_H
#define API_THREADS_H

#include <callbox.h>

/* Threads that share a toolbox; each acts so often. Returns whether all went right. */
int threads_share_tools(cbx_warden *warden, int calls);

#endif
