/* SPDX-License-Identifier: Apache-2.0 */

/* The runtime of AddressSanitizer, where it is a library (gcc's default, clang's -shared-libasan),
 * ends a process in which it is not the first one: what stands before it could hide its functions.
 * Preloaded libraries do, and ld.so.preload is before everything. It asks for options by this
 * function, which a program may define, and what it is told here is that this is as it should be:
 * the gate hands on to it what it stands before (next.h). What the program says itself, in its own
 * function of that name or in ASAN_OPTIONS, counts more. */

#include <stddef.h>

#include "preload/inject/loaded.h"

enum { OPTIONS_MAX = 4096 };

typedef const char *Options(void);

const char *aliquot_asan_options(void) __asm__("__asan_default_options")
        __attribute__((visibility("default")));

static size_t append(char *to, size_t at, const char *text) {
        while (*text != '\0' && at < OPTIONS_MAX - 1)
                to[at++] = *text++;
        to[at] = '\0';
        return at;
}

/* A library of the program that has such a function, too, is behind this one. The runtime asks
 * once, before there is a second thread. */
const char *aliquot_asan_options(void) {
        static char options[OPTIONS_MAX];
        Options *next = loaded_is_ready() ? (Options *) loaded_next("__asan_default_options") : NULL;
        const char *theirs = next ? next() : NULL;
        size_t at = append(options, 0, "verify_asan_link_order=0:");

        if (theirs)
                (void) append(options, at, theirs);
        return options;
}
