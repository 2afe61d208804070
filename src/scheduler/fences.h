/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Cards that somebody took out of service by a ConfigMap in kube-system: CONTRACT section 10. Two names are read, and
 * what both say together counts:
 *   <node>-device-status   data.devices: YAML list of {deviceId: 0, deviceType: gpu, healthy: false}
 *   unhealthy-gpu-<node>   data.gpus: "0,2" */

#include "base/hash.h"
#include "share/ledger.h"

typedef struct Fence Fence; /* one ConfigMap */

typedef struct Fences {
        Fence *by_name;
} Fences;

enum { FENCE_E_MALFORMED = 1, FENCE_E_NOT_OURS };

/* Takes over one ConfigMap, or forgets it when it was deleted, and tells the ledger. FENCE_E_MALFORMED (fault says what is wrong
 * with it) leaves the node's cards as they were. Or -ENOMEM. */
int fences_set(Fences *f, Ledger *l, Str configmap, bool deleted, uint32_t generation, Fault *fault);

/* Forgets those that did not come by in this list; returns how many. */
size_t fences_sweep(Fences *f, Ledger *l, uint32_t generation);
void fences_done(Fences *f, Ledger *l);
