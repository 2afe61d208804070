/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Scope owns. A local variable that owns something carries _cleanup_(), and TAKE_PTR or TAKE_FD
 * hands ownership over, so that each error path is a plain return. Variables are destroyed in the
 * reverse order of their declaration. */

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
                (void) close(*fd); /* a late error would concern no data */
}

DEFINE_CLEANUP(FILE *, fclose)

#define _cleanup_free_   _cleanup_(cleanup_freep)
#define _cleanup_close_  _cleanup_(cleanup_closep)
#define _cleanup_fclose_ _cleanup_(fclosep)
