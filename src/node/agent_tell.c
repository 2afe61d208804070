/* SPDX-License-Identifier: Apache-2.0 */
#include "node/agent_tell.h"

#include "base/log.h"
#include "node/isolation/isolation.h"
#include "node/kubelet/process_owner.h"
#include "node/records/holders.h"
#include "node/records/process_lookup.h"
#include "slice/container_paths.h"

/* Writes an Event of the pod, and a log line, because an Event may be dropped: above 25 per object,
 * or when the API server is away. */
static void tell_pod(const AgentEvents *e, const RosterPod *pod, const Fault *note, KubeEvent event) {
        log_warning("pod=%s/%s %s", pod->namespace_, pod->name, note->text);
        event.kind = "Pod";
        event.namespace_ = str_from(pod->namespace_);
        event.name = str_from(pod->name);
        event.uid = str_from(pod->api_uid);
        event.note = note->text;
        kube_event(e->node.recorder, &event);
}

static void warn_pod(const AgentEvents *e, const RosterPod *pod, const char *reason, const Fault *note) {
        tell_pod(e, pod, note, (KubeEvent){.type = "Warning", .reason = reason});
}

/* ---- cards that go out of service ---- */

static void tell_card(const AgentEvents *e, const MachineCard *c) {
        CardIndexes card = {0};
        Fault note = FAULT_NULL;
        size_t n = 0;

        card_indexes_add(&card, c->index);
        if (c->healthy)
                (void) fault_set(&note, 0, "gpu%u (%s) is in service again", c->index, c->uuid);
        else
                (void) fault_set(&note, 0,
                                 "gpu%u (%s), of which the pod has a slice, is out of service: %s; the pod "
                                 "is not ended, and the card takes no new slice",
                                 c->index, c->uuid, c->trouble);
        for (const RosterPod *pod = e->roster->pods; pod; pod = pod->hh.next)
                if (holders_is_on(pod->grant, &card) && n++ < FENCE_PODS_TOLD)
                        tell_pod(e, pod, &note,
                                 (KubeEvent){.type = c->healthy ? "Normal" : "Warning",
                                             .reason = c->healthy ? REASON_CARD_RECOVERED
                                                                  : REASON_CARD_FENCED});
        if (n > FENCE_PODS_TOLD)
                log_warning("%zu more pods with slices of gpu%u have no Event about it", n - FENCE_PODS_TOLD,
                            c->index);
}

/* Does nothing until the pods are listed, because it is not known which have slices on the card. */
void agent_tell_cards(AgentEvents *e, const CardList *cards) {
        for (size_t i = 0; e->roster->synced && i < cards->n; i++) {
                const MachineCard *c = &cards->cards[i];

                if (c->healthy != card_indexes_has(&e->told_out, c->index))
                        continue;
                if (c->healthy)
                        card_indexes_remove(&e->told_out, c->index);
                else
                        card_indexes_add(&e->told_out, c->index);
                tell_card(e, c);
        }
}

enum { KILLED_TEXT = 128, HOLDERS_TOLD = 4 };

/* "; N of its processes were killed", and how many could not be. Empty when killed is NULL. */
static void format_killed(const KilledProcesses *killed, bool of_container, char ret[static KILLED_TEXT]) {
        int n;

        ret[0] = '\0';
        if (!killed)
                return;
        n = snprintf(ret, KILLED_TEXT, "; %zu of its processes were killed%s", killed->killed,
                     killed->all && of_container ? " (all of the container's)" : "");
        if (n > 0 && n < KILLED_TEXT && killed->failed > 0)
                (void) snprintf(ret + n, (size_t) (KILLED_TEXT - n), ", %zu could not be", killed->failed);
}

/* Tells how many processes of the excess have ended: the driver still lists them while others have
 * their open files. */
static void format_ended(const MemoryExcess *excess, char *ret, size_t size) {
        ret[0] = '\0';
        if (excess->n_ended > 0)
                (void) snprintf(ret, size,
                                "; %zu of %zu have ended and others have the driver's file of theirs",
                                excess->n_ended, excess->n_pids);
}

/* What follows the first process in the text of an excess with several. */
static const char *or_another(const char *container) {
        return container ? " or another one of the container" : " or another one of the pod";
}

/* Names memory that the driver does not charge: where it limits the pod, what the container holds
 * beyond the charge. */
static void format_uncharged(const AgentEvents *e, const MemoryExcess *excess, char *ret, size_t size) {
        const MachineCard *card = inventory_machine_card(e->inventory, excess->card);
        uint64_t charged;

        ret[0] = '\0';
        if (card && memory_limits_charged(e->limits, excess->pod->uid, card->uuid, &charged) &&
            excess->used > charged + MEMORY_AUDIT_GRACE)
                (void) snprintf(ret, size,
                                "; the driver charges the pod for %llu MiB, and not for memory of clients "
                                "that outlived their creator",
                                (unsigned long long) (charged >> 20));
}

void agent_tell_excess(const AgentEvents *e, const MemoryExcess *excess, const KilledProcesses *killed) {
        char done[KILLED_TEXT], ended[128], uncharged[160];
        Fault note = FAULT_NULL;

        format_killed(killed, excess->container != NULL, done);
        format_ended(excess, ended, sizeof ended);
        format_uncharged(e, excess, uncharged, sizeof uncharged);
        (void) fault_set(&note, 0,
                         "holds %llu MiB of gpu%u, and its slice is %llu MiB: process %u%s is not held by "
                         "the library%s%s%s",
                         (unsigned long long) (excess->used >> 20), excess->card,
                         (unsigned long long) (excess->limit >> 20),
                         excess->n_pids > 0 ? excess->pids[0].pid : 0,
                         excess->n_pids > 1 ? or_another(excess->container) : "", ended, uncharged, done);
        if (excess->container)
                (void) fault_wrap(&note, 0, "container %s", excess->container);
        tell_pod(e, excess->pod, &note,
                 (KubeEvent){.type = "Warning",
                             .reason = REASON_MEMORY_EXCEEDED,
                             .replaces = true,
                             .part = excess->container});
}

void agent_tell_overuse(const AgentEvents *e, const ComputeExcess *excess, const KilledProcesses *killed) {
        char done[KILLED_TEXT];
        Fault note = FAULT_NULL;

        format_killed(killed, excess->container != NULL, done);
        (void) fault_set(&note, 0,
                         "has had %u.%u %% of the time of gpu%u for %llu s by the driver's word, and %s "
                         "%u.%u %%: process %u%s is not held by the library%s",
                         excess->used / 10000, excess->used / 1000 % 10, excess->card,
                         (unsigned long long) (excess->nsec / 1000000000),
                         excess->shared
                                 ? "by its windows, its part and what the others left it might have had"
                                 : "its share is",
                         excess->share / 10000, excess->share / 1000 % 10, excess->pid,
                         excess->several ? or_another(excess->container) : "", done);
        if (excess->container)
                (void) fault_wrap(&note, 0, "container %s", excess->container);
        warn_pod(e, excess->pod, REASON_COMPUTE_EXCEEDED, &note);
}

void agent_tell_hung(const AgentEvents *e, const RosterPod *pod, const HungKernel *k, bool paused,
                     const KilledProcesses *killed) {
        char done[KILLED_TEXT];
        Fault note = FAULT_NULL;

        format_killed(killed, true, done);
        (void) fault_set(
                &note, 0,
                "container %.*s: a kernel has run for %llu s on " STR_FMT ", and others wait for the card%s",
                STR_ARG(k->container), (unsigned long long) (k->nsec / 1000000000), STR_ARG(k->uuid),
                paused ? "; a process of it is stopped or frozen, and cannot say that it has ended" : done);
        if (pod)
                warn_pod(e, pod, REASON_KERNEL_HUNG, &note);
        else
                log_warning("pod=%.*s/%.*s %s", STR_ARG(k->namespace_), STR_ARG(k->pod), note.text);
}

/* The container starts as if it had not made the request. */
void agent_tell_compute_refused(void *userdata, const RosterPod *pod, const RosterContainer *c) {
        const AgentEvents *e = userdata;
        Fault note = FAULT_NULL;

        (void) fault_set(&note, 0, "container %s: %s; it is passed over", c->name, c->compute_fault);
        warn_pod(e, pod, REASON_COMPUTE_REFUSED, &note);
}

void agent_tell_tampered(void *userdata, const RosterPod *pod, const Fault *note) {
        warn_pod(userdata, pod, REASON_ALLOCATION_TAMPERED, note);
}

void agent_tell_moved(void *userdata, const RosterPod *pod, const Fault *note) {
        warn_pod(userdata, pod, REASON_PLACE_IMPOSSIBLE, note);
}

void agent_tell_restored(void *userdata, Str uid, const Fault *note) {
        const AgentEvents *e = userdata;
        const RosterPod *pod = roster_find(e->roster, uid);

        if (pod)
                warn_pod(userdata, pod, REASON_MEMORY_LIMIT_RESTORED, note);
}

void agent_tell_unkept(void *userdata, Str uid, const Fault *note) {
        const AgentEvents *e = userdata;
        const RosterPod *pod = roster_find(e->roster, uid);

        if (pod && note)
                warn_pod(e, pod, REASON_MEMORY_LIMIT_FAILED, note);
        else if (pod)
                log_info("pod=%s/%s its limit of the driver is kept again", pod->namespace_, pod->name);
}

void agent_tell_resize_refused(void *userdata, const RosterPod *pod, const Fault *note) {
        warn_pod(userdata, pod, REASON_RESIZE_REFUSED, note);
}

/* ---- Events of the node, from what the audits found ---- */

/* Writes an Event for a pod with a container that may hold what an ended process left. Appends the
 * container to `names`, the text of the node's Event, which names a few. */
static void tell_holder(const AgentEvents *e, const UnaccountedMemory *memory, const LeftHolder *holder,
                        size_t n, Buf *names) {
        const RosterPod *pod = roster_find(e->roster, str_from(holder->owner.uid));
        const char *container = process_lookup_container(pod, &holder->owner);
        Fault note = FAULT_NULL;

        if (!pod)
                return;
        if (n < HOLDERS_TOLD)
                buf_appendf(names, "%s%s/%s (container %s, process %u)", n > 0 ? ", " : "", pod->namespace_,
                            pod->name, container ? container : "not known", holder->pid);
        (void) fault_set(
                &note, 0,
                "process %u has a file of the driver open, and may hold %llu MiB of gpu%u that process "
                "%u left when it ended; nothing is killed, because it may be another pod's",
                holder->pid, (unsigned long long) (memory->pid_bytes >> 20), memory->card, memory->pid);
        if (container)
                (void) fault_wrap(&note, 0, "container %s", container);
        warn_pod(e, pod, REASON_MEMORY_UNACCOUNTED, &note);
}

static void tell_holders(const AgentEvents *e, const UnaccountedMemory *memory, Buf *names) {
        size_t n = 0;

        for (size_t i = 0; i < memory->holders->n; i++)
                if (left_memory_is_told(memory->holders, i))
                        tell_holder(e, memory, &memory->holders->list[i], n++, names);
        if (n > HOLDERS_TOLD)
                buf_appendf(names, " and %zu more", n - HOLDERS_TOLD);
}

/* Appends the largest process without a slice, and what is known of it. */
static void format_largest(const AgentEvents *e, const UnaccountedMemory *memory, Buf *ret) {
        const char *proc = e->proc ? e->proc : "/proc";
        const RosterPod *pod = NULL;
        ProcessOwner owner;

        if (memory->pid == 0) {
                buf_append_str(ret, STR(", and no process is listed with them"));
                return;
        }
        if (!memory->pid_ended && process_owner_of(proc, memory->pid, &owner))
                pod = roster_find(e->roster, str_from(owner.uid));
        buf_appendf(ret, "; process %u, which ", memory->pid);
        if (pod)
                buf_appendf(ret, "is in pod %s/%s without a slice", pod->namespace_, pod->name);
        else
                buf_appendf(ret, "%s", memory->pid_ended ? "has ended" : "is in no pod");
        buf_appendf(ret, ", holds %llu MiB", (unsigned long long) (memory->pid_bytes >> 20));
}

void agent_tell_unaccounted(void *userdata, const UnaccountedMemory *memory) {
        _cleanup_buf_ Buf largest = BUF_NULL;
        _cleanup_buf_ Buf names = BUF_NULL;
        AgentEvents *e = userdata;
        Fault note = FAULT_NULL;

        format_largest(e, memory, &largest);
        tell_holders(e, memory, &names);
        (void) fault_set(&note, 0, "of the %llu MiB that are in use of gpu%u, %llu MiB are no pod's%s%s%s",
                         (unsigned long long) (memory->used >> 20), memory->card,
                         (unsigned long long) (memory->bytes >> 20), largest.data ? largest.data : "",
                         names.len > 0 ? "; they may be with " : "", names.len > 0 ? names.data : "");
        node_events_tell(&e->node, REASON_MEMORY_UNACCOUNTED, &note);
}

/* Returns the pod, if its container has the slice. pod: may be NULL */
static const RosterPod *holder_of(const AgentEvents *e, const RosterPod *pod, Str container, Str slice) {
        const Record *record = pod ? records_find(e->records, str_from(pod->uid)) : NULL;
        const RecordContainer *c = record ? record_container(record, container) : NULL;
        char name[SLICEDIR_ID_SIZE];

        if (!c)
                return NULL;
        isolation_slice_name(c, name);
        return str_eq(slice, str_from(name)) ? pod : NULL;
}

const RosterPod *agent_tell_pod_of(const AgentEvents *e, Str namespace_, Str pod, Str container, Str slice) {
        const RosterPod *named = holder_of(e, roster_find_name(e->roster, namespace_, pod), container, slice);

        /* a tenant may have named another pod by that UID */
        return named ? named : holder_of(e, roster_find(e->roster, pod), container, slice);
}

/* Parses "agent NAMESPACE/POD/CONTAINER". Returns NULL for an unknown pod, and for other owners,
 * which are users of this machine. */
static const RosterPod *pod_of(const AgentEvents *e, const char *id, const char *owner, Str *ret_container) {
        Str rest = str_from(owner), namespace_, pod;

        if (!str_has_prefix(rest, STR(SLICEDIR_AGENT)))
                return NULL;
        (void) str_split(&rest, ' ');
        namespace_ = str_split(&rest, '/');
        pod = str_split(&rest, '/');
        *ret_container = rest;
        return agent_tell_pod_of(e, namespace_, pod, rest, str_from(id));
}

/* Writes an Event for the slice's pod, or a log line where that is not known. */
static void tell_slice_event(const AgentEvents *e, const char *id, const char *owner, const KubeEvent *event,
                             Fault *note) {
        Str container = STR("");
        const RosterPod *pod = pod_of(e, id, owner, &container);

        if (!pod) {
                log_warning("slice %s (%s): %s", id, owner, note->text);
                return;
        }
        (void) fault_wrap(note, 0, "container %.*s", STR_ARG(container));
        tell_pod(e, pod, note, *event);
}

static void tell_slice(const AgentEvents *e, const char *id, const char *owner, const char *reason,
                       Fault *note) {
        tell_slice_event(e, id, owner, &(KubeEvent){.type = "Warning", .reason = reason}, note);
}

void agent_tell_grown(void *userdata, const SlicedirCard *grown) {
        Fault note = FAULT_NULL;

        (void) fault_set(&note, 0,
                         "its slice's counters (" SLICE_PAGES "/%u/counters) had grown to %llu KiB and were "
                         "cut back: a process of the container writes to them",
                         grown->number, (unsigned long long) (grown->bytes >> 10));
        tell_slice(userdata, grown->id, grown->owner, REASON_SLICE_FILE_GROWN, &note);
}

void agent_tell_rewritten(void *userdata, const SlicedirCard *card) {
        Fault note = FAULT_NULL;

        (void) fault_set(&note, 0,
                         "its slice's counters (" SLICE_PAGES
                         "/%u/counters) are behind what they were: a process "
                         "of the container has written old values back, and may hold more than they say",
                         card->number);
        tell_slice(userdata, card->id, card->owner, REASON_SLICE_FILE_REWRITTEN, &note);
}

void agent_tell_rowless(void *userdata, const SlicedirCard *card) {
        Fault note = FAULT_NULL;
        SliceLimits limits;

        if (slice_files_read_limits(card->dir, &limits) != 0)
                return; /* it is being removed */
        (void) fault_set(&note, 0,
                         "memory of gpu%u was refused to a process: its slice has rows for %d processes, and "
                         "all are taken",
                         limits.card, SLICE_ROWS);
        tell_slice(userdata, card->id, card->owner, REASON_SLICE_ROWS_TAKEN, &note);
}

/* No warning: allocators ask for more than there is on purpose, and again for less. */
void agent_tell_refused(void *userdata, const SlicedirCard *card, uint64_t refused) {
        char part[SLICEDIR_ID_SIZE + 16], asked[SLICE_ASKED + 4] = "";
        Fault note = FAULT_NULL;
        SliceLimits limits;

        if (slice_files_read_limits(card->dir, &limits) != 0)
                return; /* it is being removed */
        (void) snprintf(part, sizeof part, "%s/%u", card->id, card->number);
        if (limits.asked_limit == limits.limit)
                (void) snprintf(asked, sizeof asked, " (%.*s)", SLICE_ASKED, limits.asked);
        (void) fault_set(&note, 0,
                         "%llu allocation%s refused on gpu%u since its slice was made: the slice is %llu "
                         "MiB%s; the number is from counters that the container can write, and some programs "
                         "ask for too much on purpose",
                         (unsigned long long) refused, refused == 1 ? " was" : "s were", limits.card,
                         (unsigned long long) (limits.limit >> 20), asked);
        tell_slice_event(
                userdata, card->id, card->owner,
                &(KubeEvent){
                        .type = "Normal", .reason = REASON_MEMORY_REFUSED, .replaces = true, .part = part},
                &note);
}

bool agent_tell_foreign(void *userdata, const ForeignSlice *foreign) {
        AgentEvents *e = userdata;
        Fault note = FAULT_NULL;

        if (!share_mode_is_served(e->state->config.mode))
                return false;
        (void) fault_set(
                &note, 0,
                "slice %s (%s) has %llu MiB of gpu%u (%s), which the scheduler counts as free: nodes "
                "that share cards among pods are not for aliquot run",
                foreign->id, foreign->owner, (unsigned long long) (foreign->bytes >> 20), foreign->card,
                foreign->uuid);
        node_events_tell(&e->node, REASON_FOREIGN_SLICE, &note);
        return true;
}
