/* SPDX-License-Identifier: Apache-2.0 */
#include "node/enforce.h"

/* The container's processes bypassed the preload library, by accident (a static program, raw system
 * calls) or on purpose. They are killed at each census while the excess lasts. The Event of the
 * excess is repeated at each kill. */
void enforce_excess(void *userdata, const MemoryExcess *excess) {
        AgentAudit *a = userdata;
        KilledProcesses killed = {0};

        if (a->kills_excess)
                killed = process_killer_end_excess(&a->killer, excess, clock_monotonic_usec());
        a->killed += killed.killed;
        if (!excess->again || killed.killed > 0)
                agent_tell_excess(a->events, excess, a->kills_excess ? &killed : NULL);
}

/* The library was bypassed, or a process gave the arbiter a false report. An Event follows each
 * kill. */
void enforce_overuse(void *userdata, const ComputeExcess *excess) {
        AgentAudit *a = userdata;
        KilledProcesses killed = {0};

        if (a->kills_overuse)
                killed = process_killer_end_container(&a->killer, excess->pod, excess->container);
        a->overuse_killed += killed.killed;
        if (!excess->again || killed.killed > 0)
                agent_tell_overuse(a->events, excess, a->kills_overuse ? &killed : NULL);
}

void enforce_unaccounted(void *userdata, const UnaccountedMemory *memory) {
        const AgentAudit *a = userdata;

        agent_tell_unaccounted(a->events, memory);
}

/* ---- kernels that do not end ---- */

static bool had_card(void *userdata, uint32_t card, uint32_t pid) {
        const AgentAudit *a = userdata;

        return compute_audit_had(a->compute, card, pid);
}

/* A stopped process cannot report that its kernel has ended. Where every process of the container
 * is stopped, no running process has the card, so the kernel belongs to a stopped one. */
static bool is_paused(AgentAudit *a, const RosterPod *pod, const HungKernel *k) {
        _cleanup_free_ char *name = str_dup(k->container), *uuid = str_dup(k->uuid);
        const MachineCard *card = uuid ? inventory_card_by_uuid(a->inventory, uuid) : NULL;
        PausedProcesses found;

        if (!pod || !name || !card)
                return false;
        found = memory_audit_paused(a->memory, pod, name, card->index, had_card, a);
        return found.n_paused > 0 && (k->part || found.n_work == 0);
}

/* Kills the container's processes. Returns false, and kills none, for a pod that the roster does
 * not have: its object is gone, and the kubelet ends it. */
static bool end_container(AgentAudit *a, const RosterPod *pod, Str container, KilledProcesses *ret) {
        _cleanup_free_ char *name = str_dup(container);

        if (!pod || !name)
                return false;
        *ret = process_killer_end_container(&a->killer, pod, name);
        a->hung_killed += ret->killed;
        return true;
}

/* A kernel cannot be ended alone, only its container. Until it ends the containers that share the
 * card wait. */
void enforce_hung(void *userdata, const HungKernel *k) {
        AgentAudit *a = userdata;
        const RosterPod *pod = agent_tell_pod_of(a->events, k->namespace_, k->pod, k->container, k->slice);
        HungVerdict verdict = hung_filter_judge(&a->hung_filter, k, is_paused(a, pod, k));
        bool acted = false;
        KilledProcesses killed;

        if (verdict == HUNG_VERDICT_WAIT)
                return;
        if (verdict == HUNG_VERDICT_HUNG && a->kills_hung)
                acted = end_container(a, pod, k->container, &killed);
        agent_tell_hung(a->events, pod, k, verdict == HUNG_VERDICT_PAUSED, acted ? &killed : NULL);
}
