/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/convert/convert_mix.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

enum { HUNDREDTHS = 100, UNITS_MAX = 8192, SHOWN = 4 };

/* The least that shares of so many units together were before, and one of them. */
typedef struct Least {
        uint64_t before;
        const ConvertShare *last; /* NULL: no shares add up to so many */
} Least;

void convert_mix_done(ConvertMix *mix) {
        free(mix->shares);
        *mix = CONVERT_MIX_NULL;
}

int convert_mix_add(ConvertMix *mix, uint32_t units, uint64_t before) {
        size_t room = mix->room > 0 ? 2 * mix->room : 16;

        for (size_t i = 0; i < mix->n; i++) {
                if (mix->shares[i].units != units)
                        continue;
                if (before < mix->shares[i].before)
                        mix->shares[i].before = before;
                return 0;
        }
        if (mix->n == mix->room) {
                ConvertShare *more = reallocarray(mix->shares, room, sizeof *more);

                if (!more)
                        return -ENOMEM;
                mix->shares = more;
                mix->room = room;
        }
        mix->shares[mix->n++] = (ConvertShare){units, before};
        return 0;
}

/* Any number of each share may be taken: least[u] follows from all that have fewer units. */
static void find_least(const ConvertMix *mix, uint64_t units, Least *least) {
        static const ConvertShare none;

        least[0].last = &none;
        for (uint64_t u = 1; u <= units; u++)
                for (size_t i = 0; i < mix->n; i++) {
                        const ConvertShare *share = &mix->shares[i];
                        const Least *rest = share->units <= u ? &least[u - share->units] : NULL;

                        if (!rest || !rest->last)
                                continue;
                        if (!least[u].last || rest->before + share->before < least[u].before)
                                least[u] = (Least){rest->before + share->before, share};
                }
}

/* How many of this share are among those that add up to u. */
static unsigned number_of(const Least *least, uint64_t u, const ConvertShare *share) {
        unsigned n = 0;

        for (; u > 0; u -= least[u].last->units)
                n += least[u].last == share;
        return n;
}

static int describe(const ConvertMix *mix, const Least *least, uint64_t u, uint64_t mib, uint64_t units,
                    Buf *out) {
        unsigned shown = 0;

        for (size_t i = 0; i < mix->n; i++) {
                unsigned n = number_of(least, u, &mix->shares[i]);

                if (n == 0)
                        continue;
                if (shown++ < SHOWN)
                        buf_appendf(out, "%s%u of %llu MiB", shown > 1 ? ", " : "", n,
                                    (unsigned long long) mix->shares[i].before / HUNDREDTHS);
        }
        buf_appendf(out,
                    "%s fitted on a card of %llu MiB together, and their %llu units are more than its %llu",
                    shown > SHOWN ? " and others" : "", (unsigned long long) mib, (unsigned long long) u,
                    (unsigned long long) units);
        return buf_result(out);
}

/* Pods beyond a card by more than one of them are beyond it without that one, too: twice a card's
 * units are enough. */
int convert_mix_check(const ConvertMix *mix, uint64_t mib, uint64_t units, Buf *out) {
        _cleanup_free_ Least *least = NULL;

        if (mix->n == 0 || units > UNITS_MAX)
                return 0;
        least = calloc(2 * units + 1, sizeof *least);
        if (!least)
                return -ENOMEM;
        find_least(mix, 2 * units, least);
        for (uint64_t u = units + 1; u <= 2 * units; u++)
                if (least[u].last && least[u].before <= mib * HUNDREDTHS)
                        return describe(mix, least, u, mib, units, out);
        return 0;
}
