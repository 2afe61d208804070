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
        /* Called when the ledger has the fences of a node. text names the ConfigMaps that cannot be
         * understood, with key, value, rule and the cards that stay fenced; "" if there are none.
         * May be NULL. */
        void (*on_judged)(void *userdata, Str node, const char *text);
        void *userdata;
        /* Called when the node has more healthy cards than before. May be NULL. */
        void (*on_room)(void *room_userdata, Str node);
        void *room_userdata;
} Fences;

enum { FENCE_E_MALFORMED = 1, FENCE_E_NOT_OURS };

/* Takes over one ConfigMap, or forgets it when deleted, and updates the ledger. Each entry is
 * judged separately. A deviceId may be in quotes.
 *
 * Returns 0; FENCE_E_NOT_OURS when it is another kind of ConfigMap; -ENOMEM; or FENCE_E_MALFORMED
 * with a fault: some entries cannot be understood, the others count. A card that the same key
 * fenced when it was last fully understood stays fenced, unless a valid entry names it. */
int fences_set(Fences *f, Ledger *l, Str configmap, bool deleted, uint32_t generation, Fault *fault);

/* Forgets the ConfigMaps that the list of this generation did not have; returns their number. */
size_t fences_sweep(Fences *f, Ledger *l, uint32_t generation);
void fences_done(Fences *f, Ledger *l);

/* The name of a ConfigMap that fences this card of the node; empty: none. Valid until the next
 * change of *f. */
Str fences_name(const Fences *f, Str node, uint32_t card);
/* Appends the text that on_judged was last called with for the node. */
void fences_format_wrong(const Fences *f, Str node, Buf *out);
