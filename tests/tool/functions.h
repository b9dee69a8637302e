/* SPDX-License-Identifier: MIT */
/*
 * A program whose functions are tools: some that behave, many that do not. It is both ends: started
 * by test_tool.py it is the agent (functions.c); started again by a box it runs one function
 * (functions_good.c, functions_bad.c).
 */
#ifndef TOOL_FUNCTIONS_H
#define TOOL_FUNCTIONS_H

#include <callbox.h>

extern const cbx_tool good_tools[], bad_tools[]; /* each ends with one without a name */

#endif
