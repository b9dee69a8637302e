/* SPDX-License-Identifier: MIT */
/* What both ends of a function call know: the toolbox, and the process in the box. */
#include "tool/function.h"
#include "tool/message.h"

bool function_served;

const char *const message_levels[MESSAGE_LEVELS] = { "debug", "info", "warning", "error" };
