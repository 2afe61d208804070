/* SPDX-License-Identifier: Apache-2.0 */
#include "node/allocate/evidence.h"

#include <errno.h>

#define PREFIX STR("aliyun.com/")

void evidence_done(Evidence *e) {
        for (size_t i = 0; i < e->n_containers; i++)
                free(e->containers[i]);
        for (size_t i = 0; i < e->n_held; i++) {
                free(e->held[i].name);
                for (int kind = 0; kind < DEVICE_KINDS_; kind++)
                        device_set_done(&e->held[i].given[kind]);
        }
        free(e->containers);
        free(e->held);
        free(e->uid);
        free(e->namespace_);
        free(e->name);
        *e = (Evidence){0};
}

CheckpointFile evidence_file(const char *path) {
        return (CheckpointFile){.path = path, .prefix = PREFIX};
}

static int add_container(Evidence *e, Str name) {
        char **grown = realloc(e->containers, (e->n_containers + 1) * sizeof *grown);

        if (!grown)
                return -ENOMEM;
        e->containers = grown;
        grown[e->n_containers] = str_dup(name);
        if (!grown[e->n_containers])
                return -ENOMEM;
        e->n_containers++;
        return 0;
}

/* ---- the checkpoint ---- */

static bool pod_lives(const Roster *roster, Str uid) {
        const RosterPod *pod = roster_find(roster, uid);

        return pod ? pod->grant != NULL || pod->refusal != NULL : false;
}

/* Reads the devices of an entry. 0; 1: some are not ours (of an earlier unit, say), so they match
 * no set; -ENOMEM. */
static int entry_set(const CheckpointEntry *entry, DeviceKind kind, DeviceSet *ret) {
        int r = device_set_parse(entry->ids, entry->n, kind, ret, NULL);

        return r < 0 ? r : r > 0;
}

static int entry_holds(const CheckpointEntry *entry, DeviceKind kind, const DeviceSet *set) {
        _cleanup_devices_ DeviceSet held = DEVICE_SET_NULL;
        DeviceKind of;
        int r;

        if (!device_kind_of(entry->resource, &of) || of != kind || entry->n != set->n)
                return 0;
        r = entry_set(entry, kind, &held);
        return r < 0 ? r : r == 0 && device_set_eq(&held, set);
}

static int add_held(Evidence *e, const CheckpointEntry *entry) {
        RecordContainer *grown, *held = NULL;
        DeviceKind kind;
        int r;

        if (!device_kind_of(entry->resource, &kind))
                return 0;
        for (size_t i = 0; i < e->n_held; i++)
                if (str_eq(str_from(e->held[i].name), entry->container))
                        held = &e->held[i];
        if (!held) {
                grown = realloc(e->held, (e->n_held + 1) * sizeof *grown);
                if (!grown)
                        return -ENOMEM;
                e->held = grown;
                grown[e->n_held] = (RecordContainer){.name = str_dup(entry->container)};
                if (!grown[e->n_held].name)
                        return -ENOMEM;
                held = &grown[e->n_held++];
        }
        device_set_done(&held->given[kind]);
        r = entry_set(entry, kind, &held->given[kind]);
        return r < 0 ? r : 0;
}

/* Finds the pod that holds the set. A pod that is known to live goes before one that the API server
 * has not shown: the latter may be long gone, or not have arrived yet. */
static int find_uid(const Checkpoint *c, const Roster *roster, DeviceKind kind, const DeviceSet *set,
                    Str *ret, Fault *fault) {
        Str living = {0}, unknown = {0};

        for (size_t i = 0; i < c->n; i++) {
                const CheckpointEntry *entry = &c->entries[i];
                int r = entry_holds(entry, kind, set);

                if (r < 0)
                        return r;
                if (r == 0)
                        continue;
                if (!roster_find(roster, entry->pod_uid))
                        unknown = entry->pod_uid;
                if (!pod_lives(roster, entry->pod_uid) || str_eq(living, entry->pod_uid))
                        continue;
                if (!str_is_empty(living))
                        return fault_set(
                                fault, EVIDENCE_E_TWICE,
                                "the kubelet gave the same %zu devices of %s to the pods with uid " STR_FMT
                                " and " STR_FMT,
                                set->n, device_resource(kind), STR_ARG(living), STR_ARG(entry->pod_uid));
                living = entry->pod_uid;
        }
        *ret = str_is_empty(living) ? unknown : living;
        return str_is_empty(*ret)
                       ? fault_set(fault, EVIDENCE_E_NONE, "no such set in the kubelet's checkpoint")
                       : 0;
}

static int take_entries(const Checkpoint *c, Str uid, DeviceKind kind, const DeviceSet *set, Evidence *e) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < c->n; i++) {
                if (!str_eq(c->entries[i].pod_uid, uid))
                        continue;
                r = entry_holds(&c->entries[i], kind, set);
                if (r > 0)
                        r = add_container(e, c->entries[i].container);
                if (r >= 0)
                        r = add_held(e, &c->entries[i]);
        }
        return r < 0 ? r : 0;
}

int evidence_from_checkpoint(CheckpointFile *file, const Roster *roster, DeviceKind kind,
                             const DeviceSet *set, Evidence *ret, Fault *fault) {
        _cleanup_(evidence_done) Evidence e = {0};
        const Checkpoint *c;
        Str uid = {0};
        int r;

        r = checkpoint_file_look(file, &c, fault);
        if (r != 0)
                return r == -ENOMEM ? r : EVIDENCE_E_NONE;
        r = find_uid(c, roster, kind, set, &uid, fault);
        if (r != 0)
                return r;
        e.uid = str_dup(uid);
        r = e.uid ? take_entries(c, uid, kind, set, &e) : -ENOMEM;
        if (r < 0)
                return r;
        *ret = e;
        e = (Evidence){0};
        return 0;
}

/* ---- List ---- */

static int list_holds(const ListedContainer *c, DeviceKind kind, const DeviceSet *set) {
        for (size_t i = 0; i < c->n_devices; i++) {
                const HeldDevices *d = &c->devices[i];
                CheckpointEntry entry = {.resource = d->resource, .ids = d->ids, .n = d->n};
                int r = entry_holds(&entry, kind, set);

                if (r != 0)
                        return r;
        }
        return 0;
}

static int take_listed(const ListedContainer *c, Evidence *e) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < c->n_devices; i++) {
                const HeldDevices *d = &c->devices[i];

                r = add_held(
                        e, &(CheckpointEntry){
                                   .container = c->name, .resource = d->resource, .ids = d->ids, .n = d->n});
        }
        return r;
}

int evidence_from_list(const PodList *list, DeviceKind kind, const DeviceSet *set, Evidence *ret) {
        _cleanup_(evidence_done) Evidence e = {0};

        for (size_t i = 0; i < list->n && e.n_containers == 0; i++) {
                const ListedPod *pod = &list->pods[i];
                int r = 0;

                for (size_t k = 0; r >= 0 && k < pod->n_containers; k++) {
                        r = list_holds(&pod->containers[k], kind, set);
                        if (r > 0)
                                r = add_container(&e, pod->containers[k].name);
                }
                if (r < 0)
                        return r;
                if (e.n_containers == 0)
                        continue;
                for (size_t k = 0; r >= 0 && k < pod->n_containers; k++)
                        r = take_listed(&pod->containers[k], &e);
                if (r < 0)
                        return r;
                e.namespace_ = str_dup(pod->namespace_);
                e.name = str_dup(pod->name);
                if (!e.namespace_ || !e.name)
                        return -ENOMEM;
        }
        if (e.n_containers == 0)
                return EVIDENCE_E_NONE;
        *ret = e;
        e = (Evidence){0};
        return 0;
}

/* ---- pods without a place, and pods without a record ---- */

static const RecordContainer *held_by(const RecordContainer *all, size_t n, const char *name) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(all[i].name, name) == 0)
                        return &all[i];
        return NULL;
}

static int refuse_uneven(const RosterPod *pod, Fault *fault) {
        return fault_set(fault, EVIDENCE_E_UNEVEN,
                         "pod %s/%s came without a place, and the kubelet's devices do not make one: delete "
                         "it to have "
                         "it placed",
                         pod->namespace_, pod->name);
}

int evidence_place(const RecordContainer *all, size_t n_all, Roster *roster, RosterPod *pod, Fault *fault) {
        _cleanup_free_ Slice *slices = calloc(pod->n_containers * pod->request.cards + 1, sizeof *slices);
        size_t n = 0;

        if (!slices)
                return -ENOMEM;
        for (size_t i = 0; i < pod->n_containers; i++) {
                const RosterContainer *c = &pod->containers[i];
                const RecordContainer *held = held_by(all, n_all, c->name);
                uint32_t card, count, cards = 0;
                size_t at = 0;

                while (held && device_set_next_card(&held->given[DEVICE_MEM], &at, &card, &count)) {
                        if (++cards > pod->request.cards || count != c->mem)
                                return refuse_uneven(pod, fault);
                        slices[n++] = (Slice){.card = card,
                                              .mem = count,
                                              .core = c->core,
                                              .container = (uint16_t) c->index,
                                              .kind = (uint8_t) c->kind};
                }
                if (c->mem > 0 && cards != pod->request.cards)
                        return refuse_uneven(pod, fault);
        }
        return n > 0 ? roster_place(roster, pod, slices, n) : refuse_uneven(pod, fault);
}

/* The devices of the first container that has started. All containers of its pod are on the same
 * cards. */
static const DeviceSet *started_devices(const Record *record) {
        for (size_t i = 0; i < record->n_containers; i++)
                if (record->containers[i].started && record->containers[i].given[DEVICE_MEM].n > 0)
                        return &record->containers[i].given[DEVICE_MEM];
        return NULL;
}

/* Writes the container's slices on the cards of a set. Returns how many, or 0 when the pod asks for
 * another number of cards. */
static size_t slices_on(const RosterPod *pod, const RosterContainer *c, const DeviceSet *set, Slice *ret) {
        uint32_t card, count;
        size_t at = 0, n = 0;

        while (device_set_next_card(set, &at, &card, &count)) {
                if (n == pod->request.cards)
                        return 0;
                ret[n++] = (Slice){.card = card,
                                   .mem = c->mem,
                                   .core = c->core,
                                   .container = (uint16_t) c->index,
                                   .kind = (uint8_t) c->kind};
        }
        return n == pod->request.cards ? n : 0;
}

/* Whether the slices, in any order, are those of the grant. Sorts them as a grant has them. */
static bool are_of_grant(Slice *slices, size_t n, const Grant *grant) {
        size_t n_granted;
        const Slice *granted = grant_slices(grant, &n_granted);

        qsort(slices, n, sizeof *slices, grant_compare_slices);
        for (size_t i = 0; i < n && n == n_granted; i++)
                if (grant_compare_slices(&slices[i], &granted[i]) != 0 || slices[i].mem != granted[i].mem)
                        return false;
        return n == n_granted;
}

int evidence_recall(const Record *record, Roster *roster, RosterPod *pod) {
        _cleanup_free_ Slice *slices = calloc(pod->n_containers * pod->request.cards + 1, sizeof *slices);
        const DeviceSet *others = started_devices(record);
        size_t n = 0;

        if (!slices)
                return -ENOMEM;
        if (!others || !pod->grant || !pod->placed)
                return 0;
        if (record->assume > 0)
                pod->assume = record->assume;
        for (size_t i = 0; i < pod->n_containers; i++) {
                const RosterContainer *c = &pod->containers[i];
                const RecordContainer *own = record_container(record, str_from(c->name));
                size_t found;

                if (c->mem == 0)
                        continue;
                found = slices_on(pod, c,
                                  own && own->given[DEVICE_MEM].n > 0 ? &own->given[DEVICE_MEM] : others,
                                  slices + n);
                if (found == 0)
                        return 0; /* devices of another unit, or uneven: PreStart decides */
                n += found;
        }
        if (n == 0 || are_of_grant(slices, n, pod->grant))
                return 0;
        return roster_place(roster, pod, slices, n) < 0 ? -ENOMEM : 1;
}

static void take_page_size(const NodeContext *node, const RosterPod *pod, Str container) {
        Record *record = records_find(node->records, str_from(pod->uid));
        const RecordContainer *c = record_container(record, container);
        char owner[ISOLATION_CONTAINER_NAME];
        IsolationSize size;

        if (!node->isolation || c->given[DEVICE_MEM].n == 0)
                return;
        isolation_container_name(pod, c->name, owner);
        size = isolation_page_size(node->isolation, c, owner);
        record_set_size(record, container, size.mem, size.core);
}

int evidence_give(const NodeContext *node, const RosterPod *pod, Str container, bool init, DeviceKind kind,
                  const DeviceSet *set) {
        const Record *record = records_find(node->records, str_from(pod->uid));
        const RecordContainer *c = record ? record_container(record, container) : NULL;
        bool is_known = c && c->given[kind].n > 0;
        int r = records_give(node->records, str_from(pod->uid), str_from(pod->namespace_),
                             str_from(pod->name), container, init, kind, set);

        if (r == 0 && !is_known)
                take_page_size(node, pod, container);
        return r;
}

static int adopt_entry(const CheckpointEntry *entry, const RosterPod *pod, const NodeContext *node) {
        _cleanup_devices_ DeviceSet set = DEVICE_SET_NULL;
        bool init = false;
        const Record *record = records_find(node->records, str_from(pod->uid));
        bool known = record && record_container(record, entry->container);
        DeviceKind kind;
        int r;

        if (!device_kind_of(entry->resource, &kind))
                return 0;
        r = entry_set(entry, kind, &set);
        if (r != 0)
                return r < 0 ? r : 0;
        for (size_t i = 0; i < pod->n_containers; i++)
                if (str_eq(str_from(pod->containers[i].name), entry->container))
                        init = pod->containers[i].kind == CONTAINER_INIT;
        r = evidence_give(node, pod, entry->container, init, kind, &set);
        if (r == 0 && !known) /* no record says that it has not started */
                record_set_started(records_find(node->records, str_from(pod->uid)), entry->container, true);
        return r;
}

int evidence_adopt(CheckpointFile *file, const NodeContext *node, Fault *fault) {
        const Checkpoint *c;
        int r;

        r = checkpoint_file_look(file, &c, fault);
        if (r != 0)
                return r == -ENOMEM ? r : EVIDENCE_E_NONE;
        for (size_t i = 0; r == 0 && i < c->n; i++) {
                const RosterPod *pod = roster_find(node->roster, c->entries[i].pod_uid);

                if (!pod || !pod->grant)
                        continue;
                r = adopt_entry(&c->entries[i], pod, node);
        }
        return r;
}
