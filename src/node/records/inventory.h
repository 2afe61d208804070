/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the node offers: its cards, counted in the unit and for the mode that are in force. */

#include "gpu/cards/card_list.h"
#include "node/kubelet/plugin.h"
#include "node/records/device.h"
#include "share/memory_unit.h"
#include "share/mode.h"
#include "wire/card_info.h"

typedef struct Inventory {
        CardList cards;  /* owned */
        CardInfo *infos; /* the same cards as CONTRACT section 13 describes them; views of `cards` */
        ShareMode mode;
        MemoryUnit unit;
} Inventory;

void inventory_done(Inventory *v);

/* Takes over cards (copied), mode and unit. 0 or -ENOMEM. */
int inventory_set(Inventory *v, const CardList *cards, ShareMode mode, MemoryUnit unit);

/* The device list of one resource: none where the mode does not offer it. The caller frees *ret. 0
 * or -ENOMEM. */
int inventory_devices(const Inventory *v, DeviceKind kind, PluginDevice **ret, size_t *ret_n);

/* Can these cards be offered in this unit? 0, or with a fault that names value and rule:
 * INVENTORY_E_UNIT: the device list would pass the kubelet's message limit; INVENTORY_E_LARGE: some
 * cards (named) cannot hold one unit. Cards whose memory is not known (0 MiB) are not judged. */
enum { INVENTORY_E_UNIT = 1, INVENTORY_E_LARGE };
int inventory_check_unit(const CardList *cards, MemoryUnit unit, Fault *fault);

/* Each returns NULL when the node has no such card. */
const CardInfo *inventory_card(const Inventory *v, uint32_t index);
const MachineCard *inventory_machine_card(const Inventory *v, uint32_t index);
const MachineCard *inventory_card_by_uuid(const Inventory *v, const char *uuid);
