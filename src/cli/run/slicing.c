/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/slicing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/quantity.h"
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

bool slicing_amount(const char *text, uint64_t *ret_mib, bool *ret_in_gib) {
        Str s = str_from(text);
        uint64_t bytes;

        s.len -= s.len > 0 && text[s.len - 1] == 'B';
        if (s.len < 3 || text[s.len - 1] != 'i' || !strchr("GM", text[s.len - 2]) ||
            quantity_parse(s, &bytes) != 0 || bytes == 0 || bytes % MIB != 0 || bytes / MIB > UINT32_MAX)
                return false;
        *ret_mib = bytes / MIB;
        *ret_in_gib = text[s.len - 2] == 'G';
        return true;
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

/* Whether the card has enough free memory for the slice now. `taken` includes the limits of slices,
 * but not memory that processes hold outside of slices. */
static bool has_memory(const HostCard *card, const SliceRequest *request) {
        uint64_t visible = slicing_visible_bytes(card->bytes, request->mem, request->unit_mib);

        return host_cards_outside(card) <= card->bytes - card->taken - visible;
}

/* Whether the first of two cards, both with room, is the better one. */
static bool is_better(const HostCard *card, const HostCard *than, const SliceRequest *request) {
        bool a = has_memory(card, request), b = has_memory(than, request);

        return a != b ? a : card->taken > than->taken;
}

static bool is_chosen(const uint32_t *chosen, uint32_t n, uint32_t card) {
        for (uint32_t i = 0; i < n; i++)
                if (chosen[i] == card)
                        return true;
        return false;
}

/* Formats "15.7" (GiB) or "16160" (MiB), rounded down so that no more is shown than there is. */
static const char *format_amount(uint64_t mib, bool in_gib, char ret[static 24]) {
        unsigned long long whole = mib / 1024, tenths = mib % 1024 * 10 / 1024;

        if (!in_gib)
                (void) snprintf(ret, 24, "%llu", (unsigned long long) mib);
        else
                (void) snprintf(ret, 24, tenths > 0 ? "%llu.%llu" : "%llu", whole, tenths);
        return ret;
}

static int no_card(const HostCards *m, const char *only, Fault *fault) {
        char text[900] = "";
        size_t at = 0;

        for (uint32_t i = 0; i < m->n && at < sizeof text; i++)
                at += (size_t) snprintf(text + at, sizeof text - at, "%sgpu%u (%s)", at > 0 ? ", " : "",
                                        m->cards[i].index, m->cards[i].uuid);
        return fault_set(fault, SLICING_E_NO_ROOM, "--gpu %s: there is no such card; there %s %s", only,
                         m->n == 1 ? "is" : "are", text);
}

static int no_room(const HostCards *m, const SliceRequest *request, Fault *fault) {
        const char *unit = request->in_gib ? "GiB" : "MiB";
        char text[400] = "", amount[24], all[24], core[32] = "";
        size_t at = 0;

        for (uint32_t i = 0; i < m->n && at < sizeof text; i++) {
                const HostCard *c = &m->cards[i];
                uint64_t left = c->taken < c->bytes ? c->bytes - c->taken : 0;

                if (is_meant(c, request->only))
                        at += (size_t) snprintf(text + at, sizeof text - at,
                                                "%s gpu%u has %s of %s %s and %u %% left", at > 0 ? "," : "",
                                                c->index, format_amount(left / MIB, request->in_gib, amount),
                                                format_amount(c->bytes / MIB, request->in_gib, all), unit,
                                                c->core_taken < CORE_MAX ? CORE_MAX - c->core_taken : 0);
        }
        if (at == 0)
                return no_card(m, request->only, fault);
        if (request->core > 0)
                (void) snprintf(core, sizeof core, " and %u %% of compute", request->core);
        return fault_set(fault, SLICING_E_NO_ROOM, "no room for %s %s%s on %u card%s:%s",
                         format_amount(request->mem * request->unit_mib, request->in_gib, amount), unit, core,
                         request->cards, request->cards > 1 ? "s" : "", text);
}

int slicing_choose(const HostCards *m, const SliceRequest *request, uint32_t *ret, Fault *fault) {
        for (uint32_t n = 0; n < request->cards; n++) {
                uint32_t best = UINT32_MAX;

                for (uint32_t i = 0; i < m->n; i++)
                        if (is_meant(&m->cards[i], request->only) && has_room(&m->cards[i], request) &&
                            !is_chosen(ret, n, i) &&
                            (best == UINT32_MAX || is_better(&m->cards[i], &m->cards[best], request)))
                                best = i;
                if (best == UINT32_MAX)
                        return no_room(m, request, fault);
                ret[n] = best;
        }
        return 0;
}

static int lacks_memory(const HostCard *card, const SliceRequest *request, uint64_t wanted, uint64_t left,
                        Fault *fault) {
        const char *unit = request->in_gib ? "GiB" : "MiB";
        char amount[24], free_text[24], all[24];

        if (wanted == 0)
                return fault_set(fault, SLICING_E_NO_ROOM, "gpu%u has only %s %s", card->index,
                                 format_amount(card->bytes / MIB, request->in_gib, all), unit);
        return fault_set(fault, SLICING_E_NO_ROOM,
                         "gpu%u lacks %llu MiB: the other slices leave %s of %s %s, and %s are wanted",
                         card->index, (unsigned long long) ((wanted - left + MIB - 1) / MIB),
                         format_amount(left / MIB, request->in_gib, free_text),
                         format_amount(card->bytes / MIB, request->in_gib, all), unit,
                         format_amount(wanted / MIB, request->in_gib, amount));
}

int slicing_check_growth(const HostCard *card, const SliceRequest *request, uint64_t had, uint32_t had_core,
                         Fault *fault) {
        uint64_t wanted = slicing_visible_bytes(card->bytes, request->mem, request->unit_mib);
        uint64_t left = card->taken < card->bytes ? card->bytes - card->taken : 0;
        uint32_t core_left = card->core_taken < CORE_MAX ? CORE_MAX - card->core_taken : 0;

        if (wanted == 0 || (wanted > had && wanted > left))
                return lacks_memory(card, request, wanted, left, fault);
        if (request->core > had_core && request->core > core_left)
                return fault_set(fault, SLICING_E_NO_ROOM,
                                 "gpu%u lacks %u %% of compute: the other slices leave %u %%, and %u %% are "
                                 "wanted",
                                 card->index, request->core - core_left, core_left, request->core);
        return 0;
}
