/* SPDX-License-Identifier: Apache-2.0 */
#include "node/limits/pod_limit.h"

static bool is_others(const Record *record, DeviceId id) {
        for (size_t i = 0; i < record->n_containers; i++)
                if (!record->containers[i].init &&
                    device_set_has(&record->containers[i].given[DEVICE_MEM], id))
                        return true;
        return false;
}

/* Devices of that card which an init container has and no later container does. */
static uint32_t count_own(const Record *record, const DeviceSet *set, uint32_t card) {
        uint32_t n = 0;

        for (size_t i = 0; i < set->n; i++)
                n += device_card(set->ids[i]) == card && !is_others(record, set->ids[i]);
        return n;
}

/* The pod's bytes on a card. Devices of an ordinary init container count only as far as no later
 * container has them. Each slice is rounded down, so the sum may be some MiB less than what an init
 * container shows, which has devices of several. */
static uint64_t sum_of(const Inventory *v, const Record *record, uint32_t index) {
        uint64_t sum = 0, most = 0, whole = 0;
        bool resized = false;

        for (size_t i = 0; i < record->n_containers; i++) {
                const RecordContainer *c = &record->containers[i];
                const DeviceSet *set = &c->given[DEVICE_MEM];
                uint32_t count = c->init ? count_own(record, set, index) : device_set_count(set, index);
                uint64_t bytes = count > 0 ? isolation_slice_bytes(v, c, index, count) : 0;

                resized |= c->size_mem > 0;
                if (!c->init) {
                        sum += bytes;
                        continue;
                }
                most = bytes > most ? bytes : most;
                count = device_set_count(set, index);
                bytes = count > 0 ? isolation_slice_bytes(v, c, index, count) : 0;
                whole = bytes > whole ? bytes : whole;
        }
        return !resized && whole > sum + most ? whole : sum + most;
}

static PodLimitCard *add_card(PodLimit *p, const char *uuid) {
        for (size_t i = 0; i < p->n; i++)
                if (strcmp(p->cards[i].uuid, uuid) == 0)
                        return &p->cards[i];
        if (p->n == POD_LIMIT_CARDS)
                return NULL;
        p->cards[p->n] = (PodLimitCard){.wanted = CARD_LIMIT_NONE};
        memcpy(p->cards[p->n].uuid, uuid, strnlen(uuid, sizeof p->cards->uuid - 1));
        return &p->cards[p->n++];
}

static bool want_cards_of(PodLimit *p, const Inventory *v, const Record *record, const DeviceSet *set,
                          bool lifted) {
        uint32_t index, count;
        size_t at = 0;

        while (device_set_next_card(set, &at, &index, &count)) {
                const MachineCard *card = inventory_machine_card(v, index);
                PodLimitCard *c = card ? add_card(p, card->uuid) : NULL;
                uint64_t sum = c ? sum_of(v, record, index) : 0;

                if (sum == 0)
                        return false;
                c->wanted = lifted ? CARD_LIMIT_NONE : sum + c->inherited;
        }
        return true;
}

bool pod_limit_want(PodLimit *p, const Inventory *v, const Record *record, bool lifted) {
        for (size_t i = 0; i < record->n_containers; i++)
                if (!want_cards_of(p, v, record, &record->containers[i].given[DEVICE_MEM], lifted))
                        return false;
        return true;
}

uint64_t pod_limit_next(const PodLimitCard *c) {
        return c->wanted > c->used ? c->wanted : c->used;
}

bool pod_limit_is_met(const PodLimit *p) {
        for (size_t i = 0; i < p->n; i++)
                if (!p->cards[i].known || p->cards[i].hard != p->cards[i].wanted)
                        return false;
        return true;
}

bool pod_limit_is_any(const PodLimit *p) {
        for (size_t i = 0; i < p->n; i++) {
                const PodLimitCard *c = &p->cards[i];

                if (c->wanted != CARD_LIMIT_NONE || (c->hard == 0 ? p->ends : c->hard != CARD_LIMIT_NONE))
                        return true;
        }
        return false;
}

PodLimit *pod_limit_free(PodLimit *p) {
        if (!p)
                return NULL;
        free(p->uid);
        free(p);
        return NULL;
}
