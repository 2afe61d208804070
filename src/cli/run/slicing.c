/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/slicing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slice/visible.h"

#define MIB (UINT64_C(1) << 20)

enum { CORE_MAX = 100, UNIT_MAX = 1 << 24 };

uint64_t slicing_visible_bytes(uint64_t card_bytes, uint64_t units, uint64_t unit_mib) {
        uint64_t card_mib = card_bytes / MIB, card_units = unit_mib > 0 ? card_mib / unit_mib : 0;

        if (units > card_units || card_units == 0)
                return 0;
        return MIB * visible_mib(card_mib, units, card_units);
}

uint64_t slicing_unit(const char *text) {
        char *end = NULL;
        unsigned long n = 1;

        if (text[0] >= '0' && text[0] <= '9')
                n = strtoul(text, &end, 10);
        else
                end = (char *) text;
        if (n == 0 || n > UNIT_MAX)
                return 0;
        if (strcmp(end, "GiB") == 0)
                return n * 1024;
        return strcmp(end, "MiB") == 0 ? n : 0;
}

static bool is_meant(const HostCard *card, const char *only) {
        char index[16];

        (void) snprintf(index, sizeof index, "%u", card->index);
        return !only || strcmp(only, card->uuid) == 0 || strcmp(only, index) == 0;
}

static bool has_room(const HostCard *card, const SliceRequest *request) {
        uint64_t visible = slicing_visible_bytes(card->bytes, request->mem, request->unit_mib);

        return visible > 0 && card->taken <= card->bytes && visible <= card->bytes - card->taken &&
               request->core <= CORE_MAX && card->core_taken <= CORE_MAX - request->core;
}

static bool is_chosen(const uint32_t *chosen, uint32_t n, uint32_t card) {
        for (uint32_t i = 0; i < n; i++)
                if (chosen[i] == card)
                        return true;
        return false;
}

static int no_room(const HostCards *m, const SliceRequest *request, Fault *fault) {
        char text[400] = "";
        size_t at = 0;

        for (uint32_t i = 0; i < m->n && at < sizeof text; i++) {
                const HostCard *c = &m->cards[i];
                uint64_t left = c->taken < c->bytes ? c->bytes - c->taken : 0;

                if (is_meant(c, request->only))
                        at += (size_t) snprintf(
                                text + at, sizeof text - at, "%sgpu%u has %llu of %llu MiB and %u %% left",
                                at > 0 ? ", " : "", c->index, (unsigned long long) (left / MIB),
                                (unsigned long long) (c->bytes / MIB),
                                c->core_taken < CORE_MAX ? CORE_MAX - c->core_taken : 0);
        }
        return fault_set(
                fault, SLICING_E_NO_ROOM, "no room for %llu x %llu MiB and %u %% of compute on %u card%s: %s",
                (unsigned long long) request->mem, (unsigned long long) request->unit_mib, request->core,
                request->cards, request->cards > 1 ? "s" : "", at > 0 ? text : "there is no such card");
}

int slicing_choose(const HostCards *m, const SliceRequest *request, uint32_t *ret, Fault *fault) {
        for (uint32_t n = 0; n < request->cards; n++) {
                uint32_t best = UINT32_MAX;

                for (uint32_t i = 0; i < m->n; i++)
                        if (is_meant(&m->cards[i], request->only) && has_room(&m->cards[i], request) &&
                            !is_chosen(ret, n, i) &&
                            (best == UINT32_MAX || m->cards[i].taken > m->cards[best].taken))
                                best = i;
                if (best == UINT32_MAX)
                        return no_room(m, request, fault);
                ret[n] = best;
        }
        return 0;
}
