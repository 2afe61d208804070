/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The cards that the node offers, counted in the unit and for the mode in force. */

#include "gpu/cards/card_list.h"
#include "node/kubelet/plugin.h"
#include "node/records/device.h"
#include "share/memory_unit.h"
#include "share/mode.h"
#include "wire/card_info.h"

typedef struct Inventory {
        CardList cards; /* owned */
        /* the same cards as the annotation ANNOTATION_CARDS describes them; views of `cards` */
        CardInfo *infos;
        uint16_t *rates; /* memory of the peers in `infos`, which are views of it; owned */
        ShareMode mode;
        MemoryUnit unit;
} Inventory;

void inventory_done(Inventory *v);

/* Sets cards (copied), mode and unit. Returns 0 or -ENOMEM. */
int inventory_set(Inventory *v, const CardList *cards, ShareMode mode, MemoryUnit unit);

/* Makes the device list of one resource, which is empty if the mode does not offer it. The caller
 * frees *ret. Returns 0 or -ENOMEM. */
int inventory_devices(const Inventory *v, OfferedResource resource, PluginDevice **ret, size_t *ret_n);

/* The resource under which the mode in force offers this kind of devices. */
const char *inventory_resource(const Inventory *v, DeviceKind kind);

/* Checks whether these cards can be offered in this unit. Returns 0, or with a fault that names
 * value and rule:
 *
 * INVENTORY_E_UNIT: the device list would exceed PLUGIN_MESSAGE_MAX. INVENTORY_E_LARGE: some cards
 * cannot hold one unit. Cards whose memory is not known (0 MiB) are not checked. */
enum { INVENTORY_E_UNIT = 1, INVENTORY_E_LARGE };
int inventory_check_unit(const CardList *cards, MemoryUnit unit, Fault *fault);

/* Each returns NULL when the node has no such card. */
const CardInfo *inventory_card(const Inventory *v, uint32_t index);
const MachineCard *inventory_machine_card(const Inventory *v, uint32_t index);
const MachineCard *inventory_card_by_uuid(const Inventory *v, const char *uuid);
