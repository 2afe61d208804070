/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Cards that an administrator takes out of service by a ConfigMap in kube-system. Two names are
 * read, and a card is fenced when one of them says so:
 *   <node>-device-status   data.devices: YAML list of
 *                          {deviceId: 0, deviceType: gpu, healthy: false}
 *   unhealthy-gpu-<node>   data.gpus: "0,2" */

#include "base/buf.h"
#include "base/hash.h"
#include "share/ledger.h"

typedef struct Fence Fence; /* one ConfigMap */

typedef struct Fences {
        Fence *by_name;
        /* A node's ConfigMaps were read. text names all of them that are not understood, with key,
         * value, rule and the cards that stay fenced; "" when all are understood. May be NULL. */
        void (*on_judged)(void *userdata, Str node, const char *text);
        void *userdata;
        /* The node has more healthy cards than before. May be NULL. */
        void (*on_room)(void *room_userdata, Str node);
        void *room_userdata;
} Fences;

enum { FENCE_E_MALFORMED = 1, FENCE_E_NOT_OURS };

/* Takes over one ConfigMap, or forgets it when it was deleted, and updates the ledger. Each entry
 * is judged by itself. A deviceId may stand in quotes.
 *
 * Returns 0, FENCE_E_NOT_OURS, -ENOMEM, or FENCE_E_MALFORMED with a fault: some entries are not
 * understood. The others count. A card that the same key fenced when all of it was understood stays
 * fenced, unless an entry that is understood says otherwise. */
int fences_set(Fences *f, Ledger *l, Str configmap, bool deleted, uint32_t generation, Fault *fault);

/* Forgets the ConfigMaps that were not in this list; returns how many. */
size_t fences_sweep(Fences *f, Ledger *l, uint32_t generation);
void fences_done(Fences *f, Ledger *l);

/* The name of a ConfigMap that fences this card of the node; empty: none does. Lives until the next
 * call that takes over or forgets ConfigMaps. */
Str fences_name(const Fences *f, Str node, uint32_t card);
/* Appends the text that on_judged got last for the node. */
void fences_format_wrong(const Fences *f, Str node, Buf *out);
