/* SPDX-License-Identifier: Apache-2.0 */
#include "node/records/inventory.h"

#include <errno.h>
#include <string.h>

#include "gpu/cards/card_rates.h"

void inventory_done(Inventory *v) {
        card_list_done(&v->cards);
        free(v->infos);
        free(v->rates);
        *v = (Inventory){0};
}

/* Units of a card. In mode topology the unit is a card. */
static uint32_t units_of(const MachineCard *c, ShareMode mode, MemoryUnit unit) {
        return share_mode_has_whole(mode) ? c->mib > 0 : memory_unit_count(c->mib, unit);
}

int inventory_set(Inventory *v, const CardList *cards, ShareMode mode, MemoryUnit unit) {
        Inventory next = {.mode = mode, .unit = unit};
        int r;

        r = card_list_copy(cards, &next.cards);
        if (r < 0)
                return r;
        next.infos = calloc(cards->n > 0 ? cards->n : 1, sizeof *next.infos);
        if (!next.infos) {
                inventory_done(&next);
                return -ENOMEM;
        }
        for (size_t i = 0; i < next.cards.n; i++) {
                const MachineCard *c = &next.cards.cards[i];

                next.infos[i] = (CardInfo){
                        .index = c->index,
                        .units = units_of(c, mode, unit),
                        .mib = c->mib,
                        .numa = c->numa,
                        .healthy = c->healthy,
                        .uuid = str_from(c->uuid),
                        .model = str_from(c->model),
                };
        }
        r = card_rates_describe(&next.cards, next.infos, &next.rates);
        if (r < 0) {
                inventory_done(&next);
                return r;
        }
        inventory_done(v);
        *v = next;
        return 0;
}

const CardInfo *inventory_card(const Inventory *v, uint32_t index) {
        for (size_t i = 0; i < v->cards.n; i++)
                if (v->infos[i].index == index)
                        return &v->infos[i];
        return NULL;
}

const MachineCard *inventory_card_by_uuid(const Inventory *v, const char *uuid) {
        for (size_t i = 0; i < v->cards.n; i++)
                if (strcmp(v->cards.cards[i].uuid, uuid) == 0)
                        return &v->cards.cards[i];
        return NULL;
}

const MachineCard *inventory_machine_card(const Inventory *v, uint32_t index) {
        for (size_t i = 0; i < v->cards.n; i++)
                if (v->cards.cards[i].index == index)
                        return &v->cards.cards[i];
        return NULL;
}

/* ---- devices ---- */

enum { PERCENT = 100 };

static uint32_t devices_of(const MachineCard *c, MemoryUnit unit, DeviceKind kind) {
        uint32_t units = unit.mib == UINT32_MAX ? c->mib > 0 : memory_unit_count(c->mib, unit);

        if (kind == DEVICE_MEM)
                return units;
        return units > 0 ? PERCENT : 0; /* a card that holds no unit is not offered */
}

static int list_devices(const CardList *cards, MemoryUnit unit, DeviceKind kind, PluginDevice **ret,
                        size_t *ret_n) {
        PluginDevice *devices;
        size_t n = 0, room = 0;

        for (size_t i = 0; i < cards->n; i++)
                room += devices_of(&cards->cards[i], unit, kind);
        devices = calloc(room > 0 ? room : 1, sizeof *devices);
        if (!devices)
                return -ENOMEM;
        for (size_t i = 0; i < cards->n; i++) {
                const MachineCard *c = &cards->cards[i];

                for (uint32_t k = 0; k < devices_of(c, unit, kind); k++) {
                        devices[n].healthy = c->healthy;
                        device_format(device_id(c->index, k), kind, devices[n++].id);
                }
        }
        *ret = devices;
        *ret_n = n;
        return 0;
}

static bool offers_resource(ShareMode mode, OfferedResource resource) {
        switch (resource) {
        case OFFERED_MEM:
                return share_mode_has_memory(mode);
        case OFFERED_CORE:
                return share_mode_has_core(mode);
        default:
                return share_mode_has_whole(mode);
        }
}

/* A unit that is larger than any card makes one device of each card that has memory. */
static const MemoryUnit whole_card = {UINT32_MAX};

int inventory_devices(const Inventory *v, OfferedResource resource, PluginDevice **ret, size_t *ret_n) {
        CardList none = {0};

        return list_devices(offers_resource(v->mode, resource) ? &v->cards : &none,
                            resource == OFFERED_WHOLE ? whole_card : v->unit, device_offered_kind(resource),
                            ret, ret_n);
}

const char *inventory_resource(const Inventory *v, DeviceKind kind) {
        return device_offered_name(kind == DEVICE_CORE             ? OFFERED_CORE
                                   : share_mode_has_whole(v->mode) ? OFFERED_WHOLE
                                                                   : OFFERED_MEM);
}

/* ---- the limit of the kubelet ---- */

/* Eight cards of 141 GiB in units of 1 MiB make 23 MB of IDs. A list that cannot fit is not
 * built. */
static bool fits_message(const CardList *cards, MemoryUnit unit) {
        _cleanup_free_ PluginDevice *devices = NULL;
        uint64_t units = 0;
        size_t n;

        for (size_t i = 0; i < cards->n; i++)
                units += memory_unit_count(cards->cards[i].mib, unit);
        if (units > PLUGIN_MESSAGE_MAX / 8)
                return false;
        return list_devices(cards, unit, DEVICE_MEM, &devices, &n) == 0 &&
               plugin_message_size(devices, n) <= PLUGIN_MESSAGE_MAX;
}

static MemoryUnit smallest_that_fits(const CardList *cards, MemoryUnit from) {
        uint32_t low = from.mib, high = from.mib;

        while (high < UINT32_MAX / 2 && !fits_message(cards, (MemoryUnit){high})) {
                low = high;
                high *= 2;
        }
        while (high - low > 1) {
                uint32_t middle = low + (high - low) / 2;

                if (fits_message(cards, (MemoryUnit){middle}))
                        high = middle;
                else
                        low = middle;
        }
        return (MemoryUnit){high};
}

enum { CARDS_NAMED = 8 };

/* Counts the cards that cannot hold one unit. *names: the first of them; *ret_smallest: the memory
 * of the smallest one. */
static size_t list_too_small(const CardList *cards, MemoryUnit unit, Buf *names, uint32_t *ret_smallest) {
        size_t n = 0;

        *ret_smallest = UINT32_MAX;
        for (size_t i = 0; i < cards->n; i++) {
                const MachineCard *c = &cards->cards[i];

                if (c->mib == 0 || memory_unit_count(c->mib, unit) > 0)
                        continue;
                if (n++ < CARDS_NAMED)
                        buf_appendf(names, "%sgpu%u", n > 1 ? ", " : "", c->index);
                if (c->mib < *ret_smallest)
                        *ret_smallest = c->mib;
        }
        if (n > CARDS_NAMED)
                buf_appendf(names, " and %zu more", n - CARDS_NAMED);
        return n;
}

int inventory_check_unit(const CardList *cards, MemoryUnit unit, Fault *fault) {
        _cleanup_buf_ Buf asked = BUF_NULL, least = BUF_NULL, names = BUF_NULL;
        uint32_t smallest;

        memory_unit_format(unit, &asked);
        if (list_too_small(cards, unit, &names, &smallest) > 0)
                return fault_set(
                        fault, INVENTORY_E_LARGE,
                        "gpu-mem unit %.*s is larger than a card: %.*s cannot hold one; the unit must "
                        "be at most %uMiB",
                        STR_ARG(buf_str(&asked)), STR_ARG(buf_str(&names)), smallest);
        if (fits_message(cards, unit))
                return 0;
        memory_unit_format(smallest_that_fits(cards, unit), &least);
        return fault_set(
                fault, INVENTORY_E_UNIT,
                "gpu-mem unit %.*s: the device list of %zu cards would pass the kubelet's limit of %d "
                "bytes; the smallest unit that fits is %.*s",
                STR_ARG(buf_str(&asked)), cards->n, PLUGIN_MESSAGE_MAX, STR_ARG(buf_str(&least)));
}
