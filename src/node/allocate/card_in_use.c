/* SPDX-License-Identifier: Apache-2.0 */
#include "node/allocate/card_in_use.h"

#include "base/minmax.h"
#include "share/growth.h"
#include "share/ledger_summary.h"

/* Units of each card that the record's size has above the devices there. */
static uint32_t size_above(const RecordContainer *c, DeviceKind kind, uint32_t count) {
        uint32_t n = device_set_count_cards(&c->given[kind]);

        return n > 0 ? above_u32((kind == DEVICE_MEM ? c->size_mem : c->size_core) / n, count) : 0;
}

/* Units above its devices that the processes of a container hold. */
static uint32_t held_above(const NodeContext *node, const RecordContainer *c, uint32_t card, uint32_t count) {
        return c->started && node->isolation
                       ? above_u32(isolation_held(node->isolation, node->inventory, c, card), count)
                       : 0;
}

/* What a pod is charged with on a card. */
static uint64_t charged(const Growth *seen, Str uid, uint32_t card) {
        uint64_t sum = 0;

        for (size_t i = 0; i < seen->n; i++)
                if (seen->list[i].card == card && str_eq(seen->list[i].uid, uid))
                        sum += seen->list[i].size.mem;
        return sum;
}

/* Units above its devices that a pod has in force or holds on a card. A container can write any
 * number into its counters, so they count up to what the annotation charges or its record permits.
 * seen: NULL: the annotation could not be read. */
static uint64_t mem_above(const NodeContext *node, const Record *record, uint32_t card, const Growth *seen) {
        uint64_t permitted = 0, held = 0;

        for (size_t i = 0; i < record->n_containers; i++) {
                const RecordContainer *c = &record->containers[i];
                uint32_t count = device_set_count(&c->given[DEVICE_MEM], card), size, holds, permit;

                if (c->init || count == 0)
                        continue;
                size = size_above(c, DEVICE_MEM, count);
                holds = held_above(node, c, card, count);
                permit = record_mem_above(c, card);
                permitted += max_u32(size, min_u32(permit, holds));
                held += max_u32(size, holds);
        }
        if (held <= permitted || !seen)
                return held;
        return min_u64(held, max_u64(permitted, charged(seen, str_from(record->uid), card)));
}

static uint64_t core_above(const Record *record, uint32_t card) {
        uint64_t sum = 0;

        for (size_t i = 0; i < record->n_containers; i++) {
                const RecordContainer *c = &record->containers[i];
                uint32_t count = device_set_count(&c->given[DEVICE_CORE], card);

                if (!c->init && count > 0)
                        sum += size_above(c, DEVICE_CORE, count);
        }
        return sum;
}

/* An init container and later containers may have the same devices. */
static bool is_counted(const Record *record, size_t before, DeviceKind kind, DeviceId id) {
        for (size_t i = 0; i < before; i++)
                if (record->containers[i].started && device_set_has(&record->containers[i].given[kind], id))
                        return true;
        return false;
}

static uint32_t count_new(const Record *record, size_t before, DeviceKind kind, const DeviceSet *set,
                          uint32_t card) {
        uint32_t n = 0;

        for (size_t i = 0; i < set->n; i++)
                n += device_card(set->ids[i]) == card &&
                     !(record && is_counted(record, before, kind, set->ids[i]));
        return n;
}

static uint32_t started_devices(const Record *record, DeviceKind kind, uint32_t card) {
        uint32_t n = 0;

        for (size_t i = 0; i < record->n_containers; i++)
                if (record->containers[i].started)
                        n += count_new(record, i, kind, &record->containers[i].given[kind], card);
        return n;
}

CardInUse card_in_use(const NodeContext *node, DeviceKind kind, uint32_t card, Str pod,
                      const DeviceSet *more) {
        const Record *own = records_find(node->records, pod);
        CardInUse use = {.devices = more ? count_new(own, own ? own->n_containers : 0, kind, more, card) : 0};
        const char *text = node->growth ? node->growth->seen : NULL;
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Growth seen;
        bool known = growth_read(str_from(text), &arena, &seen, NULL) >= 0;

        for (const Record *record = node->records->by_uid; record; record = record->hh.next) {
                use.devices += started_devices(record, kind, card);
                use.above += kind == DEVICE_MEM ? mem_above(node, record, card, known ? &seen : NULL)
                                                : core_above(record, card);
        }
        return use;
}

uint32_t card_in_use_capacity(const NodeContext *node, DeviceKind kind, uint32_t card) {
        const CardInfo *info = inventory_card(node->inventory, card);

        if (!info)
                return 0;
        return kind == DEVICE_MEM ? info->units : CORE_PER_CARD;
}

bool card_in_use_lets_start(const NodeContext *node, DeviceKind kind, Str pod, const DeviceSet *set,
                            uint32_t *ret_card) {
        uint32_t count;
        size_t at = 0;

        while (device_set_next_card(set, &at, ret_card, &count)) {
                CardInUse use = card_in_use(node, kind, *ret_card, pod, set);
                uint32_t capacity = card_in_use_capacity(node, kind, *ret_card);

                if (capacity > 0 && use.above > 0 && use.devices + use.above > capacity)
                        return false;
        }
        return true;
}
