/* SPDX-License-Identifier: Apache-2.0 */

/* Options for the runtime of AddressSanitizer. Where the runtime is a library (gcc's default,
 * clang's -shared-libasan), it ends a process in which it is not the first one, because an earlier
 * library could hide its functions. A preloaded library is earlier, and ld.so.preload comes before
 * everything. The runtime asks for options by this function, which a program may define. The answer
 * here is that the order is right: this library passes on to the runtime what it interposes
 * (next.h). Options of the program, in its own function of that name or in ASAN_OPTIONS, take
 * precedence. */

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

/* Appends the options of a later library of the program that has such a function, too. The runtime
 * asks once, before there is a second thread. */
const char *aliquot_asan_options(void) {
        static char options[OPTIONS_MAX];
        Options *next = loaded_is_ready() ? (Options *) loaded_next("__asan_default_options") : NULL;
        const char *theirs = next ? next() : NULL;
        size_t at = append(options, 0, "verify_asan_link_order=0:");

        if (theirs)
                (void) append(options, at, theirs);
        return options;
}
