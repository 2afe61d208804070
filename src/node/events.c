/* SPDX-License-Identifier: Apache-2.0 */

/* What the agent's Events say, of its node and of pods. */

#include "base/log.h"
#include "node/events-internal.h"
#include "slice/container_paths.h"

static AgentWarning *warning_of(Agent *a, const char *reason) {
        AgentWarning *w;

        for (size_t i = 0; i < WARNINGS_MAX; i++)
                if (a->warnings[i].reason && strcmp(a->warnings[i].reason, reason) == 0)
                        return &a->warnings[i];
        w = &a->warnings[a->n_warnings++ % WARNINGS_MAX];
        *w = (AgentWarning){.reason = reason};
        return w;
}

void agent_tell_node(Agent *a, const char *reason, const char *note) {
        log_warning("%s: %s", reason, note);
        if (!a->node_uid)
                return; /* no memory for it: the log has it */
        kube_event(a->recorder, &(KubeEvent){.kind = "Node",
                                             .name = str_from(a->o.node_name),
                                             .uid = str_from(a->node_uid),
                                             .type = "Warning",
                                             .reason = reason,
                                             .note = note});
}

void agent_tell_waiting(Agent *a) {
        for (size_t i = 0; a->node_uid && i < WARNINGS_MAX; i++) {
                AgentWarning *w = &a->warnings[i];

                if (!w->reason || w->told)
                        continue;
                w->told = true;
                agent_tell_node(a, w->reason, w->note.text);
        }
}

void agent_tell(Agent *a, const char *reason, const Fault *note) {
        AgentWarning *w = warning_of(a, reason);

        w->note = *note;
        w->told = false;
        agent_tell_waiting(a);
}

void agent_warn(Agent *a, const char *reason, const Fault *note) {
        if (strcmp(warning_of(a, reason)->note.text, note->text) != 0)
                agent_tell(a, reason, note);
}

/* "; N of its processes were killed": all that is known of it, and of what could not be done. */
static void say_killed(const char *container, const KilledProcesses *killed, char *ret, size_t size) {
        int n = snprintf(ret, size, "; %zu of its processes were killed%s", killed->killed,
                         killed->all && container ? " (all of the container's)" : "");

        if (n > 0 && (size_t) n < size && killed->failed > 0)
                (void) snprintf(ret + n, size - (size_t) n, ", %zu could not be", killed->failed);
}

/* The driver names some that are no more: others have its file. */
static void say_ended(const MemoryExcess *excess, char *ret, size_t size) {
        ret[0] = '\0';
        if (excess->n_ended > 0)
                (void) snprintf(ret, size,
                                "; %zu of %zu have ended and others have the driver's file of theirs",
                                excess->n_ended, excess->n_pids);
}

static void warn_pod(const Agent *a, const RosterPod *pod, const char *reason, const Fault *note) {
        kube_event(a->recorder, &(KubeEvent){.kind = "Pod",
                                             .namespace_ = str_from(pod->namespace_),
                                             .name = str_from(pod->name),
                                             .uid = str_from(pod->api_uid),
                                             .type = "Warning",
                                             .reason = reason,
                                             .note = note->text});
}

/* The gate was passed by: by accident (a static program, raw system calls), or on purpose. Killed
 * is at each census as long as it lasts, and an Event is written each time that a process was. */
void agent_tell_excess(void *userdata, const MemoryExcess *excess) {
        Agent *a = userdata;
        KilledProcesses killed =
                a->o.kills_excess ? memory_audit_kill(a->memory_audit, excess) : (KilledProcesses){0};
        const char *other =
                excess->container ? " or another one of the container" : " or another one of the pod";
        char done[128] = "", ended[128];
        Fault note = FAULT_NULL;

        a->counters.killed += killed.killed;
        if (excess->again && killed.killed == 0)
                return;
        if (a->o.kills_excess)
                say_killed(excess->container, &killed, done, sizeof done);
        say_ended(excess, ended, sizeof ended);
        (void) fault_set(&note, 0,
                         "holds %llu MiB of gpu%u, and its slice is %llu MiB: process %u%s is not held by "
                         "the gate%s%s",
                         (unsigned long long) (excess->used >> 20), excess->card,
                         (unsigned long long) (excess->limit >> 20),
                         excess->n_pids > 0 ? excess->pids[0].pid : 0, excess->n_pids > 1 ? other : "", ended,
                         done);
        if (excess->container)
                (void) fault_wrap(&note, 0, "container %s", excess->container);
        log_warning("pod=%s/%s %s", excess->pod->namespace_, excess->pod->name, note.text);
        warn_pod(a, excess->pod, "GPUMemoryExceeded", &note);
}

/* The gate was passed by, or a process lied to the arbiter. As with memory, an Event is written
 * each time that a process was killed. */
void agent_tell_overuse(void *userdata, const ComputeExcess *excess) {
        Agent *a = userdata;
        const char *other =
                excess->container ? " or another one of the container" : " or another one of the pod";
        KilledProcesses killed = {0};
        char done[128] = "";
        Fault note = FAULT_NULL;

        if (a->o.kills_overuse) {
                killed = memory_audit_end_container(a->memory_audit, excess->pod, excess->container);
                say_killed(excess->container, &killed, done, sizeof done);
        }
        a->counters.overuse_killed += killed.killed;
        if (excess->again && killed.killed == 0)
                return;
        (void) fault_set(&note, 0,
                         "has had %u.%u %% of the time of gpu%u for %llu s by the driver's word, and %s "
                         "%u.%u %%: process %u%s is not held by the gate%s",
                         excess->used / 10000, excess->used / 1000 % 10, excess->card,
                         (unsigned long long) (excess->nsec / 1000000000),
                         excess->shared
                                 ? "by its windows, its part and what the others left it might have had"
                                 : "its share is",
                         excess->share / 10000, excess->share / 1000 % 10, excess->pid,
                         excess->several ? other : "", done);
        if (excess->container)
                (void) fault_wrap(&note, 0, "container %s", excess->container);
        log_warning("pod=%s/%s %s", excess->pod->namespace_, excess->pod->name, note.text);
        warn_pod(a, excess->pod, "GPUComputeExceeded", &note);
}

/* No process is killed of a pod that the roster does not have: its object is gone, and the kubelet
 * ends it anyway. */
static void end_hung(Agent *a, const RosterPod *pod, Str container, char *ret, size_t size) {
        _cleanup_free_ char *name = str_dup(container);
        KilledProcesses killed;

        if (!pod || !name)
                return;
        killed = memory_audit_end_container(a->memory_audit, pod, name);
        a->counters.hung_killed += killed.killed;
        say_killed(name, &killed, ret, size);
}

static bool had_card(void *userdata, uint32_t card, uint32_t pid) {
        const Agent *a = userdata;

        return compute_audit_had(a->compute_audit, card, pid);
}

/* A stopped process cannot say that its kernel has ended. Where every process of the container is
 * stopped, none that runs can have the card, so the kernel is a stopped one's. */
static bool is_paused(Agent *a, const RosterPod *pod, const HungKernel *k) {
        _cleanup_free_ char *name = str_dup(k->container), *uuid = str_dup(k->uuid);
        const MachineCard *card = uuid ? inventory_card_by_uuid(&a->inventory, uuid) : NULL;
        PausedProcesses found;

        if (!pod || !name || !card)
                return false;
        found = memory_audit_paused(a->memory_audit, pod, name, card->index, had_card, a);
        return found.n_paused > 0 && (k->part || found.n_work == 0);
}

/* A kernel cannot be cut from here. Its container pays for it, and the containers that share the
 * card with it wait. */
void agent_tell_hung(void *userdata, const HungKernel *k) {
        Agent *a = userdata;
        const RosterPod *pod = roster_find_name(&a->roster, k->namespace_, k->pod);
        HungVerdict verdict = hung_filter_judge(&a->hung_filter, k, is_paused(a, pod, k));
        char done[128] = "";
        Fault note = FAULT_NULL;

        if (verdict == HUNG_VERDICT_WAIT)
                return;
        if (verdict == HUNG_VERDICT_HUNG && a->o.kills_hung)
                end_hung(a, pod, k->container, done, sizeof done);
        (void) fault_set(&note, 0,
                         "container %.*s: a kernel has run for %llu s on " STR_FMT
                         ", and others wait for the card%s",
                         STR_ARG(k->container), (unsigned long long) (k->nsec / 1000000000), STR_ARG(k->uuid),
                         verdict == HUNG_VERDICT_PAUSED
                                 ? "; a process of it is stopped or frozen, and cannot say that it has ended"
                                 : done);
        log_warning("pod=%.*s/%.*s %s", STR_ARG(k->namespace_), STR_ARG(k->pod), note.text);
        if (pod)
                warn_pod(a, pod, "GPUKernelHung", &note);
}

/* It starts all the same, as if it had not said it. */
void agent_tell_odd(void *userdata, const RosterPod *pod, const RosterContainer *c) {
        Agent *a = userdata;
        Fault note = FAULT_NULL;

        (void) fault_set(&note, 0, "container %s: %s; it is passed over", c->name, c->compute_fault);
        log_warning("pod=%s/%s %s", pod->namespace_, pod->name, note.text);
        warn_pod(a, pod, "GPUComputeRefused", &note);
}

void agent_tell_tampered(void *userdata, const RosterPod *pod, const Fault *note) {
        log_warning("pod=%s/%s %s", pod->namespace_, pod->name, note->text);
        warn_pod(userdata, pod, "GPUAllocationTampered", note);
}

void agent_tell_moved(void *userdata, const RosterPod *pod, const Fault *note) {
        log_warning("pod=%s/%s %s", pod->namespace_, pod->name, note->text);
        warn_pod(userdata, pod, "GPUPlaceImpossible", note);
}

/* No process is killed: it may be the machine's own, a display or a monitor. */
void agent_tell_stray(void *userdata, const UnaccountedMemory *stray) {
        char largest[96] = ", and no process is listed with them";
        Fault note = FAULT_NULL;

        if (stray->pid > 0)
                (void) snprintf(largest, sizeof largest, "; process %u, which is in no pod, holds %llu MiB",
                                stray->pid, (unsigned long long) (stray->pid_bytes >> 20));
        (void) fault_set(&note, 0, "of the %llu MiB that are in use of gpu%u, %llu MiB are no pod's%s",
                         (unsigned long long) (stray->used >> 20), stray->card,
                         (unsigned long long) (stray->bytes >> 20), largest);
        agent_tell(userdata, "GPUMemoryUnaccounted", &note);
}

/* "agent NAMESPACE/POD/CONTAINER". Others are of this machine's users, and only the log knows
 * them. */
static const RosterPod *pod_of(const Agent *a, const char *owner, Str *ret_container) {
        Str rest = str_from(owner), namespace_, pod;

        if (!str_has_prefix(rest, STR(SLICEDIR_AGENT)))
                return NULL;
        (void) str_split(&rest, ' ');
        namespace_ = str_split(&rest, '/');
        pod = str_split(&rest, '/');
        *ret_container = rest;
        return roster_find_name(&a->roster, namespace_, pod);
}

void agent_tell_grown(void *userdata, const SlicedirGrown *grown) {
        Agent *a = userdata;
        Fault note = FAULT_NULL;
        Str container = STR("");
        const RosterPod *pod = pod_of(a, grown->owner, &container);

        (void) fault_set(&note, 0,
                         "its slice's counters (" SLICE_PAGES "/%u/counters) had grown to %llu KiB and were "
                         "cut back: a process of the container writes to them",
                         grown->number, (unsigned long long) (grown->bytes >> 10));
        if (!pod) {
                log_warning("slice %s (%s): %s", grown->id, grown->owner, note.text);
                return;
        }
        (void) fault_wrap(&note, 0, "container %.*s", STR_ARG(container));
        log_warning("pod=%s/%s %s", pod->namespace_, pod->name, note.text);
        warn_pod(a, pod, "SliceFileGrown", &note);
}

/* The scheduler promises whole cards to pods, and does not know of such a slice. Its processes are
 * not stopped: a person may be using it. */
bool agent_tell_foreign(void *userdata, const ForeignSlice *foreign) {
        Agent *a = userdata;
        Fault note = FAULT_NULL;

        if (!share_mode_has_memory(a->terms.mode))
                return false;
        (void) fault_set(
                &note, 0,
                "slice %s (%s) has %llu MiB of gpu%u (%s), which the scheduler counts as free: nodes "
                "that share cards among pods are not for aliquot run",
                foreign->id, foreign->owner, (unsigned long long) (foreign->bytes >> 20), foreign->card,
                foreign->uuid);
        agent_tell(a, "ForeignSlice", &note);
        return true;
}
