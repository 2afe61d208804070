/* SPDX-License-Identifier: Apache-2.0 */
#include "node/allocate/allocator.h"

#include <errno.h>

#include "base/log.h"
#include "gpu/cards/cdi.h"
#include "node/allocate/pod_candidate.h"
#include "share/environment.h"
#include "wire/annotation.h"
#include "wire/card_info.h"
#include "wire/pod.h"

/* ---- turns ---- */

void pending_admission_end(PendingAdmission *t) {
        free(t->uid);
        free(t->container);
        device_set_done(&t->offer);
        *t = (PendingAdmission){0};
}

void pending_admission_done(PendingAdmission *t) {
        pending_admission_end(t);
}

Str pending_admission_uid(const PendingAdmission *t) {
        return str_from(t->uid);
}

int pending_admission_begin(PendingAdmission *t, const RosterPod *pod, const RosterContainer *c,
                            DeviceKind kind, bool with_other) {
        PendingAdmission next = {0};

        if (t->uid && strcmp(t->uid, pod->uid) == 0 && strcmp(t->container, c->name) == 0)
                return 0;
        next.uid = strdup(pod->uid);
        next.container = strdup(c->name);
        if (!next.uid || !next.container) {
                pending_admission_end(&next);
                return -ENOMEM;
        }
        next.settled[!kind] = !with_other;
        pending_admission_end(t);
        *t = next;
        return 0;
}

int pending_admission_offer(PendingAdmission *t, DeviceKind kind, const DeviceSet *set) {
        DeviceSet copy = DEVICE_SET_NULL;

        if (device_set_copy(set, &copy) < 0)
                return -ENOMEM;
        device_set_done(&t->offer);
        t->offer = copy;
        t->kind = kind;
        return 0;
}

static const RosterContainer *container_of(const RosterPod *pod, const char *name) {
        for (size_t i = 0; i < pod->n_containers; i++)
                if (strcmp(pod->containers[i].name, name) == 0)
                        return &pod->containers[i];
        return NULL;
}

bool pending_admission_continues(const PendingAdmission *t, const Roster *roster, DeviceKind kind,
                                 uint32_t size, RosterPod **ret_pod, const RosterContainer **ret_container) {
        RosterPod *pod = t->uid ? roster_find(roster, str_from(t->uid)) : NULL;
        const RosterContainer *c = pod ? container_of(pod, t->container) : NULL;

        if (!c || pod->other_devices || !pod->placed || !t->settled[!kind] || t->settled[kind] ||
            roster_asks(pod, c, kind) != size)
                return false;
        *ret_pod = pod;
        *ret_container = c;
        return true;
}

/* ---- who gets them ---- */

typedef struct Owner {
        const RosterPod *pod; /* NULL: nobody knows */
        const RosterContainer *container;
} Owner;

/* Devices of an init container are given to a later one of the same pod without a question, when
 * they suffice: then the books know whose they are. */
static Owner owner_by_records(const Allocator *a, DeviceKind kind, const DeviceSet *set) {
        for (const Record *record = a->records->by_uid; record; record = record->hh.next)
                for (size_t i = 0; i < record->n_containers; i++) {
                        const RecordContainer *c = &record->containers[i];
                        const RosterPod *pod;

                        if (!c->init || record->orphan || !device_set_covers(&c->given[kind], set))
                                continue;
                        pod = roster_find(a->roster, str_from(record->uid));
                        if (pod)
                                return (Owner){pod, pod_candidate_without(a->records, pod, kind, set->n)};
                }
        return (Owner){0};
}

static Owner find_owner(const Allocator *a, DeviceKind kind, const DeviceSet *set) {
        PendingAdmission *t = a->turn;
        RosterPod *pod;

        if (t->uid && t->kind == kind && device_set_eq(&t->offer, set)) {
                pod = roster_find(a->roster, str_from(t->uid));
                t->settled[kind] = true;
                /* it was for this call: a later container may have the same set */
                device_set_done(&t->offer);
                if (pod)
                        return (Owner){pod, container_of(pod, t->container)};
        }
        /* Not what was asked for: the container had it without a question, or it is another one.
         * What comes next is not the second resource of the same. */
        pending_admission_end(t);
        return owner_by_records(a, kind, set);
}

/* ---- what they get ---- */

enum { VARIABLES_MAX = 8 };

typedef struct Environment {
        PluginVariable variables[VARIABLES_MAX];
        size_t n;
        Arena arena;
} Environment;

static void add_variable(void *userdata, const char *name, Str value) {
        Environment *e = userdata;

        if (e->n < VARIABLES_MAX)
                e->variables[e->n++] = (PluginVariable){name, arena_str(&e->arena, value)};
}

static size_t make_slices(const DeviceSet *set, Slice *ret) {
        uint32_t card, count;
        size_t at = 0, n = 0;

        while (device_set_next_card(set, &at, &card, &count))
                ret[n++] = (Slice){.card = card, .mem = count};
        return n;
}

static size_t list_cdi(const Allocator *a, const Slice *slices, size_t n, Environment *e, const char **ret) {
        size_t found = 0;

        for (size_t i = 0; a->with_cdi && i < n; i++) {
                const CardInfo *card = inventory_card(a->inventory, slices[i].card);
                _cleanup_buf_ Buf name = BUF_NULL;
                Str kept;

                buf_appendf(&name, CDI_KIND "=" STR_FMT, STR_ARG(card->uuid));
                kept = arena_str(&e->arena, buf_str(&name));
                if (kept.data)
                        ret[found++] = kept.data;
        }
        return found;
}

/* How the nvidia container toolkit is told the cards where
 * accept-nvidia-visible-devices-as-volume-mounts is true: /dev/null, mounted at this folder/UUID.
 * It goes before NVIDIA_VISIBLE_DEVICES of the image and of the manifest, which the toolkit may
 * then be told to ignore (internal/config/image, VisibleDevices). Without the setting these mounts
 * mean nothing. ret has room for n. */
#define DEVICE_MOUNTS "/var/run/nvidia-container-devices/"

static size_t list_device_mounts(const Allocator *a, const Slice *slices, size_t n, Environment *e,
                                 PluginMount *ret) {
        size_t found = 0;

        for (size_t i = 0; !a->with_cdi && i < n; i++) {
                const CardInfo *card = inventory_card(a->inventory, slices[i].card);
                _cleanup_buf_ Buf path = BUF_NULL;
                Str kept;

                buf_appendf(&path, DEVICE_MOUNTS STR_FMT, STR_ARG(card->uuid));
                kept = arena_str(&e->arena, buf_str(&path));
                if (kept.data)
                        ret[found++] = (PluginMount){
                                .container_path = kept.data, .host_path = "/dev/null", .read_only = true};
        }
        return found;
}

static void answer_memory(const Allocator *a, const DeviceSet *set, const RosterPod *pod, RpcCall *call) {
        const Inventory *v = a->inventory;
        Slice slices[CARD_INDEX_MAX + 1];
        const char *cdi[CARD_INDEX_MAX + 1];
        PluginMount mounts[ISOLATION_MOUNTS + CARD_INDEX_MAX + 1];
        size_t n = make_slices(set, slices);
        Environment e = {.arena = ARENA_NULL};
        PluginAllocation answer = {.environment = e.variables, .cdi_devices = cdi, .mounts = mounts};
        int n_mounts = a->isolation ? isolation_mounts(a->isolation, v, set, &e.arena, mounts) : 0;

        if (n_mounts < 0 || environment_make(slices, n, pod ? roster_pod_units(pod) : (uint32_t) set->n,
                                             v->unit, v->infos, v->cards.n, add_variable, &e) < 0) {
                arena_done(&e.arena);
                rpc_fail(call, RPC_RESOURCE_EXHAUSTED, "out of memory");
                return;
        }
        answer.n_environment = e.n;
        answer.n_mounts = (size_t) n_mounts + list_device_mounts(a, slices, n, &e, mounts + n_mounts);
        answer.n_cdi_devices = list_cdi(a, slices, n, &e, cdi);
        plugin_answer_allocate(call, &answer);
        arena_done(&e.arena);
}

int allocator_check(const Allocator *a, DeviceKind kind, const DeviceSet *set, Fault *fault) {
        uint32_t card, count;
        size_t at = 0;

        if (set->n == 0)
                return fault_set(fault, ALLOCATOR_E_UNKNOWN, "no devices of %s", device_resource(kind));
        while (device_set_next_card(set, &at, &card, &count)) {
                const CardInfo *info = inventory_card(a->inventory, card);
                uint32_t last = set->ids[at - 1] & ((UINT32_C(1) << DEVICE_NUMBER_BITS) - 1);

                if (!info || last >= (kind == DEVICE_MEM ? info->units : 100))
                        return fault_set(fault, ALLOCATOR_E_UNKNOWN,
                                         "unit %u of gpu%u is no device of %s here", last, card,
                                         device_resource(kind));
        }
        return 0;
}

/* PreStart does the same again, and saves it. A saved record is complete already. */
static void note_owner(const Allocator *a, const Owner *owner, DeviceKind kind, const DeviceSet *set) {
        Str uid = str_from(owner->pod->uid), container = str_from(owner->container->name);
        Record *record;

        if (records_give(a->records, uid, str_from(owner->pod->namespace_), str_from(owner->pod->name),
                         container, owner->container->kind == CONTAINER_INIT, kind, set) < 0)
                return;
        record = records_find(a->records, uid);
        if (record && !record->saved && a->isolation)
                isolation_record_slice(a->inventory, record, container);
}

bool allocator_answer(const Allocator *a, DeviceKind kind, const DeviceSet *set, RpcCall *call) {
        Owner owner = find_owner(a, kind, set);

        if (owner.pod && owner.container)
                note_owner(a, &owner, kind, set);
        else
                log_warning("%zu of %s were given to nobody that is known: held against the books before it "
                            "starts",
                            set->n, device_resource(kind));
        if (kind == DEVICE_MEM)
                answer_memory(a, set, owner.pod, call);
        else
                plugin_answer_allocate(call, &(PluginAllocation){0});
        return owner.pod != NULL;
}
