/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Two kinds of "no" (docs/internals/errors.md):
 *   We are broken (out of memory, I/O, an impossible reply): negative errno, passed upward unchanged.
 *   The answer is no (over quota, not found, malformed input): a small positive enum of the API that gives it.
 * Where a person will read the result, a Fault carries the words. It is set where the fault is known, and each level
 * on the way up may put its object in front. It owns no memory, so that no error path can fail for want of
 * it. */

#include "base/cleanup.h"

typedef struct Fault {
        char text[1024]; /* one sentence without a full stop; cut, never overrun; "" when nothing was said */
} Fault;

#define FAULT_NULL ((Fault){.text = ""})

/* Both return r, so that `return fault_set(fault, -EINVAL, ...)` reads as one step. fault may be
 * NULL. */
int fault_set(Fault *fault, int r, const char *format, ...) _printf_(3, 4);
int fault_wrap(Fault *fault, int r, const char *format, ...) _printf_(3, 4); /* "CONTEXT: what was said" */

/* The analyser looks into one file at a time; without this it would follow `return fault_set(f,
 * -EINVAL, ...)` into the path of success. */
#ifdef __clang_analyzer__
#define fault_set(fault, r, ...)  ((void) (fault), (r))
#define fault_wrap(fault, r, ...) ((void) (fault), (r))
#endif
