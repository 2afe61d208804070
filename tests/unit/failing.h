/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An allocator whose n-th call fails. The linker puts it in malloc's place (failing_args in the
 * meson.build beside this); what shared libraries allocate is not met. For one source of a program:
 * the functions are not static. */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#include "test.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);

static unsigned countdown; /* the allocation that fails; 0: none */

static bool fails_now(void) {
        return countdown > 0 && --countdown == 0;
}

void *__wrap_malloc(size_t size) {
        return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size) {
        return fails_now() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size) {
        return fails_now() ? NULL : __real_realloc(p, size);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size) {
        return fails_now() ? NULL : __real_reallocarray(p, n, size);
}

/* With the first, the second, ... allocation failing, until `attempt` gets by without meeting the
 * failure. */
static inline void failing_each(int (*attempt)(void)) {
        unsigned n = 0;

        for (;;) {
                int r;

                countdown = ++n;
                r = attempt();
                if (countdown > 0)
                        break;
                ASSERT_INT(r, -ENOMEM);
        }
        countdown = 0;
        ASSERT_TRUE(n > 1); /* something did allocate */
}
