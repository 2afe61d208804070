/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The Events of the agent, for its node and for pods (node/publish/event_reasons.h). userdata is
 * the agent. */

#include "kube/event.h"
#include "node/allocate/orphans.h"
#include "node/audit/compute_audit.h"
#include "node/audit/hung_filter.h"
#include "node/audit/process_killer.h"
#include "node/audit/slicedir_watch.h"

typedef struct Agent Agent;

/* An Event of the node waits until its object is known. tell_node writes one each time, tell_once
 * when the note differs from the last one of that reason. reason is static, killed may be NULL. */
void agent_tell_node(Agent *a, const char *reason, const Fault *note);
void agent_tell_once(Agent *a, const char *reason, const Fault *note);
void agent_tell_pending(Agent *a); /* call it when the Node object is known */
void agent_tell_node_now(Agent *a, const char *reason, const char *note);
/* To each pod with a slice of a card that went out of service, or is in service again. Once per
 * change, and to no more than FENCE_PODS_TOLD pods of a card. */
enum { FENCE_PODS_TOLD = 64 };
void agent_tell_cards(Agent *a);
void agent_tell_excess(Agent *a, const MemoryExcess *excess, const KilledProcesses *killed);
void agent_tell_overuse(Agent *a, const ComputeExcess *excess, const KilledProcesses *killed);
void agent_tell_hung(Agent *a, const HungKernel *k, bool paused, const KilledProcesses *killed);
void agent_tell_foreign(Agent *a, const ForeignSlice *foreign);
void agent_tell_unaccounted(void *userdata, const UnaccountedMemory *memory);
void agent_tell_grown(void *userdata, const SlicedirCard *grown);
void agent_tell_rewritten(void *userdata, const SlicedirCard *card);
void agent_tell_rowless(void *userdata, const SlicedirCard *card);
void agent_tell_refused(void *userdata, const SlicedirCard *card, uint64_t refused);
void agent_tell_compute_refused(void *userdata, const RosterPod *pod, const RosterContainer *c);
void agent_tell_tampered(void *userdata, const RosterPod *pod, const Fault *note);
void agent_tell_moved(void *userdata, const RosterPod *pod, const Fault *note);
void agent_tell_restored(void *userdata, Str uid, const Fault *note);
void agent_tell_resize_refused(void *userdata, const RosterPod *pod, const Fault *note);
