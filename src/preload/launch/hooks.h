/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What stands in front of the functions of launches.h (hooks.c), for those who hand out functions by
 * name: dlsym() and dlvsym() (dl.c), and cuGetProcAddress(). */

#include "preload/launch/real.h"

/* The number of a name among the symbols, below REAL_HOOKED; -1: the gate has nothing to do with
 * it. */
int hooks_find(const char *symbol);

/* Ours in place of a function of libcuda, given by its address; 0: it is none of those. */
uintptr_t hooks_replace(uintptr_t function);

/* Ours for a name that cuGetProcAddress() was asked for and answered with an address that is not
 * the exported one. 0: none. */
uintptr_t hooks_for(const char *name, bool twin);

uintptr_t hooks_at(unsigned number);
