/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/cleanup.h"
#include "base/str.h"

/* A copy in a block of exactly its size, so that the address sanitizer sees a read of one byte too
 * many. */
static inline char *exact_copy(Str s) {
        char *copy = malloc(s.len > 0 ? s.len : 1);

        if (!copy)
                abort();
        if (s.len > 0)
                memcpy(copy, s.data, s.len);
        return copy;
}
