/* SPDX-License-Identifier: Apache-2.0 */
#include "node/allocate/card_in_use.h"

#include "base/minmax.h"
#include "share/growth.h"
#include "share/ledger_summary.h"

/* What is looked at: one card and one kind of device, with the annotation as it was seen. */
typedef struct Look {
        const NodeContext *node;
        DeviceKind kind;
        uint32_t card;
        const CardSize *as; /* parameter of card_in_use() */
        const Growth *seen; /* NULL: the annotation could not be read */
} Look;

/* Units of the card that the container has in force: its size, or `count`, its devices there. */
static uint32_t size_on(const Look *look, const RecordContainer *c, uint32_t count) {
        uint32_t size = look->kind == DEVICE_MEM ? c->size_mem : c->size_core;

        if (look->as && look->as->container == c)
                size = look->as->size;
        return size > 0 ? size / device_set_count_cards(&c->given[look->kind]) : count;
}

/* Units of the card that the processes of a container hold. */
static uint32_t held_on(const Look *look, const RecordContainer *c) {
        const NodeContext *node = look->node;

        return look->kind == DEVICE_MEM && c->started && node->isolation
                       ? isolation_held(node->isolation, node->inventory, c, look->card)
                       : 0;
}

/* Units of the card that the annotation charges a pod above its limits (sign 1), or has it give up
 * below them (-1). */
static uint64_t units_charged(const Look *look, const Record *record, int sign) {
        uint64_t sum = 0;

        for (size_t i = 0; look->seen && i < look->seen->n; i++) {
                const GrowthEntry *e = &look->seen->list[i];
                int64_t size = (int64_t) sign * e->size.mem;

                if (size > 0 && e->card == look->card && str_eq(e->uid, str_from(record->uid)))
                        sum += (uint64_t) size;
        }
        return sum;
}

/* ---- sizes above the devices ---- */

/* Units above its devices that a pod has in force or holds. A container can write any number into
 * its counters, so they count up to what the annotation charges or its record permits. */
static uint64_t units_above(const Look *look, const Record *record) {
        uint64_t permitted = 0, held = 0;

        for (size_t i = 0; i < record->n_containers; i++) {
                const RecordContainer *c = &record->containers[i];
                uint32_t count = device_set_count(&c->given[look->kind], look->card), size, holds, permit;

                if (c->init || count == 0)
                        continue;
                size = above_u32(size_on(look, c, count), count);
                holds = above_u32(held_on(look, c), count);
                permit = look->kind == DEVICE_MEM ? record_mem_above(c, look->card) : 0;
                permitted += max_u32(size, min_u32(permit, holds));
                held += max_u32(size, holds);
        }
        if (held <= permitted || !look->seen)
                return held;
        return min_u64(held, max_u64(permitted, units_charged(look, record, 1)));
}

/* ---- sizes below them ---- */

/* Devices that the pod's counted containers (started, or starting now) leave free: neither in their
 * size in force, nor held. What the annotation says was given up is free whatever the counters say,
 * less what containers that are not counted gave up. 0 for a pod with an init container on the
 * card, which has its limit when the sandbox begins again. starting: `more` of card_in_use(), where
 * it is this pod's. */
static uint64_t units_below(const Look *look, const Record *record, const DeviceSet *starting) {
        uint64_t devices = 0, sizes = 0, held = 0, elsewhere = 0;

        for (size_t i = 0; i < record->n_containers; i++) {
                const RecordContainer *c = &record->containers[i];
                const DeviceSet *given = &c->given[look->kind];
                uint32_t count = device_set_count(given, look->card), size;

                if (count > 0 && c->init)
                        return 0;
                if (count == 0)
                        continue;
                size = min_u32(count, size_on(look, c, count));
                if (!c->started && !(starting && device_set_touches(given, starting))) {
                        elsewhere += count - size;
                        continue;
                }
                devices += count;
                sizes += size;
                held += min_u32(count, max_u32(size, held_on(look, c)));
        }
        held = min_u64(held, above_u64(devices, above_u64(units_charged(look, record, -1), elsewhere)));
        return devices - max_u64(sizes, held);
}

/* ---- the sums ---- */

/* Whether an earlier container of the record has the device: an init container and later ones may
 * have the same. */
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

CardInUse card_in_use(const NodeContext *node, DeviceKind kind, uint32_t card, Str pod, const DeviceSet *more,
                      const CardSize *as) {
        const Record *own = records_find(node->records, pod);
        CardInUse use = {.devices = more ? count_new(own, own ? own->n_containers : 0, kind, more, card) : 0};
        const char *text = node->growth ? node->growth->seen : NULL;
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Look look = {.node = node, .kind = kind, .card = card, .as = as};
        Growth seen;

        if (growth_read(str_from(text), &arena, &seen, NULL) >= 0)
                look.seen = &seen;
        for (const Record *record = node->records->by_uid; record; record = record->hh.next) {
                use.devices += started_devices(record, kind, card);
                use.above += units_above(&look, record);
                use.below += units_below(&look, record, record == own ? more : NULL);
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
                CardInUse use = card_in_use(node, kind, *ret_card, pod, set, NULL);
                uint32_t capacity = card_in_use_capacity(node, kind, *ret_card);

                if (capacity > 0 && use.above > 0 && card_in_use_sum(use) > capacity)
                        return false;
        }
        return true;
}
