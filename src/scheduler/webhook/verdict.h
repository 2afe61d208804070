/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The decisions of the webhook, pure. There are two of them:
 *
 * Does the pod get our scheduler? It does when it asks for our resources and names no scheduler, or
 * names the one that the API server writes in before webhooks run. It does not when the manifest
 * chose another scheduler, or when it names its node, because such a pod is not scheduled. (Pods of
 * a DaemonSet choose their node by affinity; they are scheduled like others.)
 *
 * Can the pod ever run? The rules are those of share/request.h; the refusal names the field that
 * breaks them. An update is judged by what it changes: an object from before the webhook can still
 * be scaled, labelled and deleted.
 *
 * A container that asks for gpu-mem must not mount anything over its gate (wire/gate_cover.h). That
 * holds in any mode, because its node is not known yet. */

#include "base/buf.h"
#include "scheduler/webhook/subject.h"
#include "share/ledger.h"

#define VERDICT_SCHEDULER "ack-co-scheduler"

/* Whether the pod names a scheduler that is neither ours nor the default one, which the webhook
 * replaces. */
bool verdict_names_another(const Pod *pod);

/* Whether the pod gets our scheduler. gangs: members of gangs do, too (docs/use/gangs.md), because
 * all of them must be placed together. */
bool verdict_wants_scheduler(const Subject *s, bool gangs, Arena *arena);

enum { VERDICT_E_REFUSED = 1 };

typedef struct VerdictRules {
        /* Containers get their cards by NVIDIA_VISIBLE_DEVICES. A pod with a share that sets it is
         * refused, because its value would replace the node agent's (pkg/kubelet,
         * GenerateRunContainerOptions). */
        bool runtime_devices;
        uint32_t unit_mib; /* as in Refusal */
} VerdictRules;

/* old: NULL for a new object. path: of the template, put in front of field names. Returns 0
 * (allowed); VERDICT_E_REFUSED, with one sentence appended to *why; or -ENOMEM. */
int verdict_on_subject(const Subject *s, const Subject *old, const char *path, const VerdictRules *rules,
                       Arena *arena, Buf *why);

/* Appends sentences about an allowed object to *out, each with a newline. They say what the object
 * needs that the cluster does not have today (share/cluster_cards.h), and what in it has another
 * effect than its author may think (pod_warnings.h). For an update only new sentences. gangs: gangs
 * are on. ledger: NULL if the nodes are not known. Returns 0 or -ENOMEM. */
int verdict_warn(const Subject *s, const Subject *old, const Ledger *ledger, bool gangs, Arena *arena,
                 Buf *out);
