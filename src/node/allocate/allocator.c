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

/* ---- the container that gets them ---- */

typedef struct Owner {
        const RosterPod *pod; /* NULL: not known */
        const RosterContainer *container;
} Owner;

/* Finds the container by the records. The kubelet gives an init container's devices to a later
 * container of the same pod without asking for a preference, when they suffice. A pod that still
 * needs them goes before one that needs none, which may have ended while the watch is behind. */
static Owner owner_by_records(const Allocator *a, DeviceKind kind, const DeviceSet *set) {
        const Records *records = a->node->records;
        Owner found = {0};

        for (const Record *record = records->by_uid; record; record = record->hh.next)
                for (size_t i = 0; i < record->n_containers; i++) {
                        const RecordContainer *c = &record->containers[i];
                        const RosterPod *pod;

                        if (!c->init || record->orphan || !device_set_covers(&c->given[kind], set))
                                continue;
                        pod = roster_find(a->node->roster, str_from(record->uid));
                        if (pod)
                                found = (Owner){pod, pod_candidate_without(records, pod, kind, set->n)};
                        if (found.container)
                                return found;
                }
        return found;
}

static Owner find_owner(const Allocator *a, DeviceKind kind, const DeviceSet *set) {
        Owner owner = {0};

        if (pending_admission_take(a->pending, a->node->roster, kind, set, &owner.pod, &owner.container))
                return owner;
        return owner_by_records(a, kind, set);
}

/* ---- what it gets ---- */

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
                const CardInfo *card = inventory_card(a->node->inventory, slices[i].card);
                _cleanup_buf_ Buf name = BUF_NULL;
                Str kept;

                buf_appendf(&name, CDI_KIND "=" STR_FMT, STR_ARG(card->uuid));
                kept = arena_str(&e->arena, buf_str(&name));
                if (kept.data)
                        ret[found++] = kept.data;
        }
        return found;
}

/* Names the cards to the nvidia container toolkit by mounts of /dev/null at DEVICE_MOUNTS/UUID. The
 * toolkit reads them where accept-nvidia-visible-devices-as-volume-mounts is true, before
 * NVIDIA_VISIBLE_DEVICES of the image and of the manifest (its internal/config/image,
 * VisibleDevices). Without that setting the mounts have no effect. ret has room for n. */
#define DEVICE_MOUNTS "/var/run/nvidia-container-devices/"

static size_t list_device_mounts(const Allocator *a, const Slice *slices, size_t n, Environment *e,
                                 PluginMount *ret) {
        size_t found = 0;

        for (size_t i = 0; !a->with_cdi && i < n; i++) {
                const CardInfo *card = inventory_card(a->node->inventory, slices[i].card);
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
        const Inventory *v = a->node->inventory;
        Slice slices[CARD_INDEX_MAX + 1];
        const char *cdi[CARD_INDEX_MAX + 1];
        PluginMount mounts[ISOLATION_MOUNTS + CARD_INDEX_MAX + 1];
        size_t n = make_slices(set, slices);
        Environment e = {.arena = ARENA_NULL};
        PluginAllocation answer = {.environment = e.variables, .cdi_devices = cdi, .mounts = mounts};
        int n_mounts =
                a->node->isolation ? isolation_mounts(a->node->isolation, v, set, &e.arena, mounts) : 0;

        int made = share_mode_has_whole(v->mode)
                           ? environment_make_whole(slices, n, v->infos, v->cards.n, add_variable, &e)
                           : environment_make(slices, n, pod ? roster_pod_units(pod) : (uint32_t) set->n,
                                              v->unit, v->infos, v->cards.n, add_variable, &e);

        if (n_mounts < 0 || made < 0) {
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
                return fault_set(fault, ALLOCATOR_E_UNKNOWN, "no devices of %s",
                                 inventory_resource(a->node->inventory, kind));
        while (device_set_next_card(set, &at, &card, &count)) {
                const CardInfo *info = inventory_card(a->node->inventory, card);
                uint32_t last = set->ids[at - 1] & ((UINT32_C(1) << DEVICE_NUMBER_BITS) - 1);

                if (!info || last >= (kind == DEVICE_MEM ? info->units : 100))
                        return fault_set(fault, ALLOCATOR_E_UNKNOWN,
                                         "unit %u of gpu%u is no device of %s here", last, card,
                                         inventory_resource(a->node->inventory, kind));
        }
        return 0;
}

/* Records the owner of the devices in memory. PreStart records it again and saves it. */
static void note_owner(const Allocator *a, const Owner *owner, DeviceKind kind, const DeviceSet *set) {
        Str uid = str_from(owner->pod->uid), container = str_from(owner->container->name);

        /* Out of memory: PreStart tries again. */
        (void) records_give(a->node->records, uid, str_from(owner->pod->namespace_),
                            str_from(owner->pod->name), container, owner->container->kind == CONTAINER_INIT,
                            kind, set);
}

bool allocator_answer(const Allocator *a, DeviceKind kind, const DeviceSet *set, RpcCall *call) {
        Owner owner = find_owner(a, kind, set);

        if (owner.pod && owner.container)
                note_owner(a, &owner, kind, set);
        else
                log_warning(
                        "%zu of %s were given to a container that is not known: PreStart compares them with "
                        "the pod",
                        set->n, inventory_resource(a->node->inventory, kind));
        if (kind == DEVICE_MEM)
                answer_memory(a, set, owner.pod, call);
        else
                plugin_answer_allocate(call, &(PluginAllocation){0});
        return owner.pod != NULL;
}
