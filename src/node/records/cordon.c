/* SPDX-License-Identifier: Apache-2.0 */
#include "node/records/cordon.h"

/* The devices of one card in the list of all. */
typedef struct CardDevices {
        uint32_t card;
        DeviceKind kind;
        PluginDevice *devices;
        size_t n;
} CardDevices;

static uint32_t card_of(const PluginDevice *d, DeviceKind kind) {
        DeviceId id;

        return device_parse(str_from(d->id), kind, &id) == 0 ? device_card(id) : CARD_INDEX_MAX + 1;
}

/* Marks what the pod's containers hold of the card; returns how many devices that are. Containers
 * may have a device in common, as an init container and a later one. */
static uint32_t keep_held(const CardDevices *c, const Record *record) {
        uint32_t kept = 0;

        for (size_t i = 0; record && i < record->n_containers; i++) {
                const DeviceSet *set = &record->containers[i].given[c->kind];

                for (size_t k = 0; k < set->n; k++) {
                        uint32_t number = set->ids[k] & ((UINT32_C(1) << DEVICE_NUMBER_BITS) - 1);

                        if (device_card(set->ids[k]) != c->card || number >= c->n ||
                            c->devices[number].healthy)
                                continue;
                        c->devices[number].healthy = true;
                        kept++;
                }
        }
        return kept;
}

static uint32_t granted(const CardDevices *c, const RosterPod *pod) {
        if (!pod->grant)
                return 0;
        return c->kind == DEVICE_MEM ? grant_mem_on_card(pod->grant, c->card)
                                     : grant_core_on_card(pod->grant, c->card);
}

/* Keeps this many more devices healthy, for pods that were bound before the cordon and are admitted
 * later. */
static void keep_some(const CardDevices *c, uint64_t wanted) {
        for (size_t i = 0; i < c->n && wanted > 0; i++)
                if (!c->devices[i].healthy) {
                        c->devices[i].healthy = true;
                        wanted--;
                }
}

static void apply_to_card(const Cordon *cordon, const CardDevices *c) {
        uint64_t not_given = 0;

        for (size_t i = 0; i < c->n; i++)
                c->devices[i].healthy = false;
        /* Before the first list of pods the records are all that is known. */
        for (const Record *r = cordon->records->by_uid; !cordon->roster->synced && r; r = r->hh.next)
                (void) keep_held(c, r);
        for (const RosterPod *pod = cordon->roster->pods; pod; pod = pod->hh.next) {
                uint32_t due = granted(c, pod), kept;

                if (!pod->grant)
                        continue;
                kept = keep_held(c, records_find(cordon->records, str_from(pod->uid)));
                not_given += due > kept ? due - kept : 0;
        }
        if (cordon->roster->synced)
                keep_some(c, not_given);
}

void cordon_apply(const Cordon *cordon, DeviceKind kind, PluginDevice *devices, size_t n) {
        if (card_indexes_is_empty(&cordon->cards))
                return;
        for (size_t from = 0, to; from < n; from = to) {
                CardDevices c = {
                        .card = card_of(&devices[from], kind), .kind = kind, .devices = &devices[from]};

                for (to = from + 1; to < n && card_of(&devices[to], kind) == c.card; to++)
                        ;
                c.n = to - from;
                /* A card that is out of order has no healthy device already. */
                if (card_indexes_has(&cordon->cards, c.card) && devices[from].healthy)
                        apply_to_card(cordon, &c);
        }
}
