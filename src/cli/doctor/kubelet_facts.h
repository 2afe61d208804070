/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which devices the kubelet has given out, by its PodResources, and by the node agent's records. */

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "cli/doctor/facts.h"

typedef struct KubeletFacts KubeletFacts;

/* Reads the records and asks the kubelet; h outlives the result. Returns 0 or -ENOMEM. */
int kubelet_facts_new(sd_event *event, HostFacts *h, usec_t timeout, KubeletFacts **ret);
KubeletFacts *kubelet_facts_free(KubeletFacts *k);
bool kubelet_facts_complete(const KubeletFacts *k);

DEFINE_CLEANUP(KubeletFacts *, kubelet_facts_free)
