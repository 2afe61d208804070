/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The decisions of the webhook, pure. Two of them:
 *
 * Who schedules it? A pod that asks for our resources and has no scheduler, or the one that the API
 * server writes in before webhooks run, gets ours. A name that somebody chose is left alone, and so
 * is a pod that names its node, which nobody schedules. (Pods of a DaemonSet choose their node by
 * affinity; they are scheduled like others.)
 *
 * Can it ever run? The rules of share/request, with the field that breaks them. An update is judged
 * by what it changes: an object that was let in before there was a webhook can still be scaled,
 * labelled and deleted.
 *
 * A container that asks for gpu-mem must not mount anything over its gate (wire/gate_cover.h), in
 * any mode, because its node is not known yet. */

#include "base/buf.h"
#include "scheduler/webhook/subject.h"

#define VERDICT_SCHEDULER "ack-co-scheduler"

bool verdict_wants_scheduler(const Subject *s, Arena *arena);

enum { VERDICT_E_REFUSED = 1 };

/* old: NULL when the object is new. path: of the template. runtime_devices: a container gets its
 * cards by NVIDIA_VISIBLE_DEVICES, so that a pod with a share that sets it is refused: the
 * manifest's value goes before the one of the node agent (pkg/kubelet,
 * GenerateRunContainerOptions). 0 lets it in; VERDICT_E_REFUSED, with one sentence appended to *why;
 * or -ENOMEM. */
int verdict_on_subject(const Subject *s, const Subject *old, const char *path, bool runtime_devices,
                       Arena *arena, Buf *why);
