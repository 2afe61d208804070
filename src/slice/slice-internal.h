/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What slice.c (reserving and releasing) and slice_open.c (files, rows and reaping) share. */

#include "slice/slice.h"

/* Tries to read a limit while the agent writes it; its two writes are some microseconds apart. */
enum { SLICE_LIMIT_TRIES = 64 };

/* Reads the limit, in bytes. False: the agent was writing it all the time; *ret is what was read
 * last. */
bool slice_read_limit(SliceUser *s, uint64_t *ret);
