/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What was told last, for a text that is not to be told again and again. */

#include "base/clock.h"
#include "base/str.h"

/* All zero: nothing was told. */
typedef struct Told {
        uint64_t hash; /* of the text, and 1 */
        usec_t at;
} Told;

/* Whether `text` is to be told now: it differs from the last one, or the last one was told `again`
 * or more ago. again 0: the same text is never told again. If so, remembers it as told. */
static inline bool told_is_news(Told *told, Str text, usec_t now, usec_t again) {
        uint64_t hash = str_hash64(text, 0) | 1;

        if (told->hash == hash && (again == 0 || now < told->at + again))
                return false;
        *told = (Told){hash, now};
        return true;
}
