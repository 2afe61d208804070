/* SPDX-License-Identifier: Apache-2.0 */

/* Reacts to what the audits find: by the options of this node the container's processes are killed
 * or left alone. agent_tell.c then writes the Event. */

#include "base/log.h"
#include "node/agent-internal.h"

/* The container's processes passed the gate, by accident (a static program, raw system calls) or on
 * purpose. They are killed at each census while the excess lasts. The Event of the excess is
 * repeated at each kill. */
void agent_on_excess(void *userdata, const MemoryExcess *excess) {
        Agent *a = userdata;
        KilledProcesses killed = {0};

        if (a->o.kills_excess)
                killed = process_killer_end_excess(&a->killer, excess, clock_monotonic_usec());
        a->counters.killed += killed.killed;
        if (!excess->again || killed.killed > 0)
                agent_tell_excess(a, excess, a->o.kills_excess ? &killed : NULL);
}

/* The gate was passed, or a process gave the arbiter a false report. An Event follows each kill. */
void agent_on_overuse(void *userdata, const ComputeExcess *excess) {
        Agent *a = userdata;
        KilledProcesses killed = {0};

        if (a->o.kills_overuse)
                killed = process_killer_end_container(&a->killer, excess->pod, excess->container);
        a->counters.overuse_killed += killed.killed;
        if (!excess->again || killed.killed > 0)
                agent_tell_overuse(a, excess, a->o.kills_overuse ? &killed : NULL);
}

/* ---- kernels that do not end ---- */

static bool had_card(void *userdata, uint32_t card, uint32_t pid) {
        const Agent *a = userdata;

        return compute_audit_had(a->compute_audit, card, pid);
}

/* A stopped process cannot report that its kernel has ended. Where every process of the container
 * is stopped, no running process has the card, so the kernel belongs to a stopped one. */
static bool is_paused(Agent *a, const RosterPod *pod, const HungKernel *k) {
        _cleanup_free_ char *name = str_dup(k->container), *uuid = str_dup(k->uuid);
        const MachineCard *card = uuid ? inventory_card_by_uuid(&a->inventory, uuid) : NULL;
        PausedProcesses found;

        if (!pod || !name || !card)
                return false;
        found = memory_audit_paused(a->memory_audit, pod, name, card->index, had_card, a);
        return found.n_paused > 0 && (k->part || found.n_work == 0);
}

/* Kills the container's processes. Returns false, and kills none, for a pod that the roster does
 * not have: its object is gone, and the kubelet ends it. */
static bool end_container(Agent *a, const RosterPod *pod, Str container, KilledProcesses *ret) {
        _cleanup_free_ char *name = str_dup(container);

        if (!pod || !name)
                return false;
        *ret = process_killer_end_container(&a->killer, pod, name);
        a->counters.hung_killed += ret->killed;
        return true;
}

/* A kernel cannot be ended alone, only its container. Until it ends the containers that share the
 * card wait. */
void agent_on_hung(void *userdata, const HungKernel *k) {
        Agent *a = userdata;
        const RosterPod *pod = roster_find_name(&a->roster, k->namespace_, k->pod);
        HungVerdict verdict = hung_filter_judge(&a->hung_filter, k, is_paused(a, pod, k));
        bool acted = false;
        KilledProcesses killed;

        if (verdict == HUNG_VERDICT_WAIT)
                return;
        if (verdict == HUNG_VERDICT_HUNG && a->o.kills_hung)
                acted = end_container(a, pod, k->container, &killed);
        agent_tell_hung(a, k, verdict == HUNG_VERDICT_PAUSED, acted ? &killed : NULL);
}

/* ---- slices of aliquot run ---- */

/* The scheduler promises whole cards to pods and does not know such a slice. Its processes are not
 * killed, because a user of the machine may need them. Returns false on a node that does not share
 * cards now: the slice is reported again later. */
bool agent_on_foreign(void *userdata, const ForeignSlice *foreign) {
        Agent *a = userdata;

        if (!share_mode_is_served(a->node_config.mode))
                return false;
        agent_tell_foreign(a, foreign);
        return true;
}
