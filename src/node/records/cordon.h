/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a cordon of cards means on the node. Pure.
 *
 * The kubelet is told that the devices of a cordoned card are unhealthy, but for those that a pod
 * of the node holds or is bound to. So it admits no further pod there.
 *
 * If the held devices were unhealthy too, the node's allocatable would lack them, while its pods
 * still count as using them: the other cards would seem smaller by that much. A kubelet that
 * restarts would also end pods with unhealthy devices of which a container has ended
 * ("previously allocated devices are no longer healthy", devicesToAllocate,
 * pkg/kubelet/cm/devicemanager/manager.go). */

#include "node/kubelet/plugin.h"
#include "node/records/records.h"
#include "node/records/roster.h"
#include "share/card_indexes.h"

typedef struct Cordon {
        CardIndexes cards;
        const Roster *roster;
        const Records *records;
} Cordon;

/* What the last Event about a cordon said; reason "": it was lifted. */
typedef struct CordonTold {
        CardIndexes cards;
        const char *reason; /* static */
} CordonTold;

/* Marks devices of cordoned cards as unhealthy. devices: of one kind, sorted by card and number, as
 * inventory_devices() makes them. */
void cordon_apply(const Cordon *cordon, DeviceKind kind, PluginDevice *devices, size_t n);
