/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Cards that an administrator took out of service by a ConfigMap in kube-system. Two names are read, and what both say
 * together counts:
 *   <node>-device-status   data.devices: YAML list of {deviceId: 0, deviceType: gpu, healthy: false}
 *   unhealthy-gpu-<node>   data.gpus: "0,2" */

#include "base/hash.h"
#include "share/ledger.h"

typedef struct Fence Fence; /* one ConfigMap */

typedef struct Fences {
        Fence *by_name;
        /* A node's ConfigMaps were judged: text names all of them that are not understood, with
         * key, value, rule and the cards that stay fenced; "" when all are. May be NULL. */
        void (*on_judged)(void *userdata, Str node, const char *text);
        void *userdata;
} Fences;

enum { FENCE_E_MALFORMED = 1, FENCE_E_NOT_OURS };

/* Takes over one ConfigMap, or forgets it when it was deleted, and tells the ledger. Each entry is judged by itself.
 * FENCE_E_MALFORMED with a fault: some entries are not understood. The others count, and a card that the same key fenced
 * while all of it was understood stays fenced, unless an entry that is understood says otherwise. Or FENCE_E_NOT_OURS, or
 * -ENOMEM. A deviceId may stand in quotes. */
int fences_set(Fences *f, Ledger *l, Str configmap, bool deleted, uint32_t generation, Fault *fault);

/* Forgets those that did not come by in this list; returns how many. */
size_t fences_sweep(Fences *f, Ledger *l, uint32_t generation);
void fences_done(Fences *f, Ledger *l);
