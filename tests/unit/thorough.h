/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A test with many seeds, cases or rounds runs a part of them, always the same part.
 * With THOROUGH=1 in the environment it runs all of them; without, empty or 0 the part. */

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static inline bool thorough(void) {
        const char *value = getenv("THOROUGH");

        return value && *value != '\0' && strcmp(value, "0") != 0;
}

static inline unsigned few_or_all(unsigned few, unsigned all) {
        return thorough() ? all : few;
}
