/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Two kinds of failure (docs/internals/errors.md):
 *     Broken (out of memory, I/O, an impossible reply): negative errno, passed upward unchanged.
 *     The answer is no (over quota, not found, malformed): a small positive enum of the API.
 *
 * Where a person reads the result, a Fault carries the text. It is set where the fault is known,
 * and each level above may put its object in front. It owns no memory, so no error path can fail
 * for lack of it. */

#include "base/cleanup.h"

typedef struct Fault {
        /* one sentence without a full stop, cut to fit; "" when nothing was said */
        char text[1024];
} Fault;

#define FAULT_NULL ((Fault){.text = ""})

/* Both return r, so that `return fault_set(fault, -EINVAL, ...)` reads as one step. fault may be
 * NULL. */
int fault_set(Fault *fault, int r, const char *format, ...) _printf_(3, 4);
/* Puts an object in front of the text: "CONTEXT: the text so far". */
int fault_wrap(Fault *fault, int r, const char *format, ...) _printf_(3, 4);

/* The analyser reads one file at a time and does not know that the result is r. Without this it
 * follows `return fault_set(f, -EINVAL, ...)` into the path of success. */
#ifdef __clang_analyzer__
#define fault_set(fault, r, ...)  ((void) (fault), (r))
#define fault_wrap(fault, r, ...) ((void) (fault), (r))
#endif
