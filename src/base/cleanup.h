/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Scope owns: every local that owns something carries _cleanup_(), and ownership is handed over by
 * TAKE_PTR or TAKE_FD, so that each error path is a plain return. Declaration order is reverse
 * destruction order, on purpose. */

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(f)   __attribute__((cleanup(f)))
#define _printf_(a, b) __attribute__((format(printf, a, b)))
#define _unused_       __attribute__((unused))

#define ELEMENTSOF(a) (sizeof(a) / sizeof((a)[0]))

#define TAKE_PTR(p)                                                                                          \
        ({                                                                                                   \
                __typeof__(p) _take_ = (p);                                                                  \
                (p) = NULL;                                                                                  \
                _take_;                                                                                      \
        })

#define TAKE_FD(fd)                                                                                          \
        ({                                                                                                   \
                int _take_ = (fd);                                                                           \
                (fd) = -1;                                                                                   \
                _take_;                                                                                      \
        })

/* DEFINE_CLEANUP(Thing *, thing_free) gives thing_freep for _cleanup_(thing_freep). */
#define DEFINE_CLEANUP(type, func)                                                                           \
        static inline void func##p(type *p) {                                                                \
                if (*p)                                                                                      \
                        func(*p);                                                                            \
        }

static inline void cleanup_freep(void *p) {
        free(*(void **) p);
}

static inline void cleanup_closep(const int *fd) {
        if (*fd >= 0)
                (void) close(*fd); /* nothing was written that a late error could concern */
}

DEFINE_CLEANUP(FILE *, fclose)

#define _cleanup_free_   _cleanup_(cleanup_freep)
#define _cleanup_close_  _cleanup_(cleanup_closep)
#define _cleanup_fclose_ _cleanup_(fclosep)
