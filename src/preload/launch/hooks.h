/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The hooks of the functions in launches.h (hooks.c), for the callers that return functions by
 * name: dlsym() and dlvsym() (dl.c), and cuGetProcAddress(). */

#include "preload/launch/real.h"

/* The attributes of a hook, which has the name of its symbol. */
#define EXPORTED(symbol) __asm__(symbol) __attribute__((visibility("default")))

#define LIKELY(e) __builtin_expect(!!(e), 1)

bool hooks_same(const char *a, const char *b); /* whether two texts are equal */

/* Returns the index of an exported symbol in the table of hooks, below REAL_HOOKED; -1: it is not
 * hooked. */
int hooks_find(const char *symbol);

/* Returns the hook for the address of a function of libcuda; 0: not hooked. */
uintptr_t hooks_replace(uintptr_t function);

/* Returns the hook for a name that cuGetProcAddress() answered with an address other than the
 * exported one. version: the one that was requested, as 12010. 0: none. */
uintptr_t hooks_for(const char *name, int version, bool twin);

uintptr_t hooks_at(unsigned number);
