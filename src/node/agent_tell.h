/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The Events of the agent for pods, and those of its node that audits find. The functions write
 * Events and log lines, and act on no finding. userdata is the AgentEvents. */

#include "node/allocate/orphans.h"
#include "node/audit/compute_audit.h"
#include "node/audit/hung_filter.h"
#include "node/audit/process_killer.h"
#include "node/audit/slicedir_watch.h"
#include "node/publish/node_events.h"
#include "node/publish/node_state.h"

typedef struct AgentEvents {
        NodeEvents node;
        const Roster *roster; /* borrowed, as the next ones */
        const Records *records;
        const Inventory *inventory;
        const NodeState *state;
        const MemoryLimits *limits;
        const char *proc;     /* where the host's proc is mounted; NULL: /proc */
        CardIndexes told_out; /* cards that were reported to pods as out of service */
} AgentEvents;

/* The pod of that name or UID (isolation_container_name()), if its container has the slice. NULL:
 * it is gone, although another one may have its name. */
const RosterPod *agent_tell_pod_of(const AgentEvents *e, Str namespace_, Str pod, Str container, Str slice);

/* Writes an Event for each pod with a slice of a card that went out of service, or is in service
 * again. One per change, for at most FENCE_PODS_TOLD pods of a card. */
enum { FENCE_PODS_TOLD = 64 };
void agent_tell_cards(AgentEvents *e, const CardList *cards);
/* killed may be NULL. */
void agent_tell_excess(const AgentEvents *e, const MemoryExcess *excess, const KilledProcesses *killed);
void agent_tell_overuse(const AgentEvents *e, const ComputeExcess *excess, const KilledProcesses *killed);
/* pod: NULL where it is gone. */
void agent_tell_hung(const AgentEvents *e, const RosterPod *pod, const HungKernel *k, bool paused,
                     const KilledProcesses *killed);
/* Reports a slice of `aliquot run`: the scheduler promises whole cards to pods and does not know
 * them. Their processes are not killed, because a user of the machine may need them. Returns false
 * on a node that does not share cards now: the slice is reported again later. */
bool agent_tell_foreign(void *userdata, const ForeignSlice *foreign);
void agent_tell_unaccounted(void *userdata, const UnaccountedMemory *memory);
void agent_tell_grown(void *userdata, const SlicedirCard *grown);
void agent_tell_rewritten(void *userdata, const SlicedirCard *card);
void agent_tell_rowless(void *userdata, const SlicedirCard *card);
void agent_tell_refused(void *userdata, const SlicedirCard *card, uint64_t refused);
void agent_tell_compute_refused(void *userdata, const RosterPod *pod, const RosterContainer *c);
void agent_tell_tampered(void *userdata, const RosterPod *pod, const Fault *note);
void agent_tell_moved(void *userdata, const RosterPod *pod, const Fault *note);
void agent_tell_restored(void *userdata, Str uid, const Fault *note);
/* note NULL: the limit is kept again, which is only logged */
void agent_tell_unkept(void *userdata, Str uid, const Fault *note);
void agent_tell_resize_refused(void *userdata, const RosterPod *pod, const Fault *note);
