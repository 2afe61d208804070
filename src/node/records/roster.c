/* SPDX-License-Identifier: Apache-2.0 */
#include "node/records/roster.h"

#include <errno.h>

#include "base/log.h"
#include "share/ledger_growth.h"
#include "share/pod_grant.h"
#include "share/refusal_format.h"
#include "wire/annotation.h"
#include "wire/node.h"
#include "wire/pod.h"

enum { LABEL_SIZE = 16 }; /* of a number of cards as text */

int roster_init(Roster *r, const char *node_name) {
        *r = (Roster){.node_name = strdup(node_name)};
        return r->node_name ? ledger_new(&r->ledger) : -ENOMEM;
}

static void pod_free(RosterPod *p) {
        grant_free(p->grant);
        for (size_t i = 0; i < p->n_containers; i++) {
                free(p->containers[i].name);
                free(p->containers[i].compute_fault);
                free(p->containers[i].gate_cover);
        }
        free(p->containers);
        for (size_t i = 0; i < p->n_ids; i++)
                free(p->ids[i].id);
        free(p->ids);
        for (size_t i = 0; i < POD_SYSTEM_KEYS_COUNT; i++)
                free(p->keys[i]);
        for (size_t i = 0; i < ELEMENTSOF(p->resize); i++)
                free(p->resize[i]);
        free(p->resize_status);
        free(p->request.containers);
        free(p->refusal);
        free(p->uid);
        free(p->api_uid);
        free(p->namespace_);
        free(p->name);
        free(p);
}

DEFINE_CLEANUP(RosterPod *, pod_free)

void roster_done(Roster *r) {
        RosterPod *pod, *next;

        HASH_ITER(hh, r->pods, pod, next) {
                HASH_DELETE(hh, r->pods, pod);
                pod_free(pod);
        }
        for (size_t i = 0; i < ROSTER_TOMBSTONES; i++)
                free(r->tombstones[i]);
        ledger_free(r->ledger);
        arena_done(&r->arena);
        free(r->node_name);
        *r = (Roster){0};
}

RosterPod *roster_find(const Roster *r, Str uid) {
        RosterPod *pod;

        HASH_FIND(hh, r->pods, uid.data, uid.len, pod);
        return pod;
}

RosterPod *roster_find_name(const Roster *r, Str namespace_, Str name) {
        RosterPod *found = NULL;

        /* After a forced deletion the old pod and a new one of the same name may both be here. The
         * kubelet then means the one that still holds something. */
        for (RosterPod *pod = r->pods; pod; pod = pod->hh.next)
                if (str_eq(str_from(pod->name), name) && str_eq(str_from(pod->namespace_), namespace_) &&
                    (!found || pod->grant))
                        found = pod;
        return found;
}

/* ---- one pod, from its object ---- */

static const PodContainer *container_of(const Pod *object, ContainerKind kind, uint32_t index) {
        for (size_t i = 0; i < object->n_containers; i++) {
                const PodContainer *c = &object->containers[i];

                if ((c->kind == CONTAINER_MAIN) == (kind == CONTAINER_MAIN) && c->index == index)
                        return c;
        }
        return NULL;
}

static int take_compute(RosterContainer *to, const PodContainer *from) {
        Fault fault = FAULT_NULL;

        to->compute.weight = 1;
        if (!from || compute_request(from, &to->compute, &fault) == 0)
                return 0;
        to->compute_fault = strdup(fault.text);
        return to->compute_fault ? 0 : -ENOMEM;
}

/* "volumeMounts[0].mountPath: "/etc" must not be ..." */
static int take_cover(RosterContainer *to, const PodContainer *from) {
        Buf text = BUF_NULL;

        if (!from || from->cover.field == GATE_COVER_NONE)
                return 0;
        gate_cover_format_field(&from->cover, &text);
        buf_append_str(&text, STR(": "));
        gate_cover_format_rule(&from->cover, &text);
        to->gate_cover = buf_take(&text);
        return to->gate_cover ? 0 : -ENOMEM;
}

static int take_request(RosterPod *pod, const Pod *object, const Request *request) {
        pod->containers = calloc(request->n_containers, sizeof *pod->containers);
        pod->request = *request;
        pod->request.containers = calloc(request->n_containers, sizeof *request->containers);
        if (!pod->containers || !pod->request.containers)
                return -ENOMEM;
        memcpy(pod->request.containers, request->containers,
               request->n_containers * sizeof *request->containers);
        for (; pod->n_containers < request->n_containers; pod->n_containers++) {
                const RequestContainer *from = &request->containers[pod->n_containers];
                const PodContainer *named = container_of(object, from->kind, from->index);
                RosterContainer *to = &pod->containers[pod->n_containers];

                *to = (RosterContainer){.name = str_dup(named ? named->name : STR("")),
                                        .kind = from->kind,
                                        .index = from->index,
                                        .mem = from->mem,
                                        .core = from->core,
                                        .not_isolated = named && named->not_isolated};
                if (!to->name || take_compute(to, named) < 0 || take_cover(to, named) < 0) {
                        free(to->name);
                        free(to->compute_fault);
                        return -ENOMEM;
                }
        }
        return 0;
}

/* "containerd://0123" */
static int take_id(RosterId *to, const ContainerId *from) {
        const char *id = memmem(from->id.data, from->id.len, "://", 3);
        size_t n = id ? from->id.len - (size_t) (id + 3 - from->id.data) : 0;

        to->id = malloc(n + 1 + from->name.len + 1);
        if (!to->id)
                return -ENOMEM;
        if (n > 0)
                memcpy(to->id, id + 3, n);
        to->id[n] = '\0';
        if (from->name.len > 0)
                memcpy(to->id + n + 1, from->name.data, from->name.len);
        to->id[n + 1 + from->name.len] = '\0';
        to->name = to->id + n + 1;
        return 0;
}

static int take_ids(RosterPod *pod, const Pod *object) {
        if (object->n_ids == 0)
                return 0;
        pod->ids = calloc(object->n_ids, sizeof *pod->ids);
        if (!pod->ids)
                return -ENOMEM;
        for (; pod->n_ids < object->n_ids; pod->n_ids++)
                if (take_id(&pod->ids[pod->n_ids], &object->ids[pod->n_ids]) < 0)
                        return -ENOMEM;
        return 0;
}

static int take_refusal(RosterPod *pod, const Refusal *refusal) {
        Buf text = BUF_NULL;

        refusal_format(refusal, &text);
        pod->refusal = buf_take(&text);
        return pod->refusal ? 0 : -ENOMEM;
}

/* No scheduler places a static pod. Its placement is the one that this node gave it
 * (start_verifier_recall), never what its manifest says. */
static int take_grant(RosterPod *pod, Roster *r, const Pod *object) {
        Fault fault = FAULT_NULL;
        Pod known = *object;
        GrantSpec spec;
        int e;

        if (!str_is_empty(known.annotations.mirror))
                known.annotations = (PodAnnotations){.mirror = known.annotations.mirror};
        e = pod_grant_spec(&known, &r->arena, &spec, &fault);
        if (fault.text[0] != '\0')
                log_warning("annotation passed over pod=%s/%s: %s", pod->namespace_, pod->name, fault.text);
        if (e != 0)
                return e < 0 ? e : 0;
        spec.uid = str_from(pod->uid);
        pod->placed = spec.n_slices > 0 && spec.pending_mem == 0;
        pod->assigned = str_eq(object->annotations.assigned, STR("true"));
        return grant_new(r->ledger, &spec, &pod->grant);
}

static int take_names(RosterPod *pod, const Pod *object) {
        pod->uid = str_dup(str_is_empty(object->annotations.mirror) ? object->meta.uid
                                                                    : object->annotations.mirror);
        pod->api_uid = str_dup(object->meta.uid);
        pod->namespace_ = str_dup(object->meta.namespace_);
        pod->name = str_dup(object->meta.name);
        for (size_t i = 0; i < object->n_containers; i++)
                pod->other_devices |= object->containers[i].other_devices;
        return pod->uid && pod->api_uid && pod->namespace_ && pod->name ? 0 : -ENOMEM;
}

static uint64_t number_of(Str text) {
        uint64_t number = 0;

        return str_to_u64(text, &number) ? number : 0;
}

static int take_keys(RosterPod *pod, const Pod *object) {
        const PodAnnotations *a = &object->annotations;
#define TEXT(member, key) a->member,
        const Str texts[] = {POD_SYSTEM_KEYS(TEXT)};
#undef TEXT

        for (size_t i = 0; i < POD_SYSTEM_KEYS_COUNT; i++) {
                pod->keys[i] = str_is_empty(texts[i]) ? NULL : str_dup(texts[i]);
                if (!pod->keys[i] && !str_is_empty(texts[i]))
                        return -ENOMEM;
        }
        pod->assume = number_of(a->assume_time);
        if (pod->assume == 0)
                pod->assume = number_of(a->old_assume_time);
        pod->version = number_of(object->meta.resource_version);
        return 0;
}

static int take_resize(RosterPod *pod, const Pod *object) {
        const Str texts[] = {object->annotations.resize_mem, object->annotations.resize_core};

        pod->terminating = object->meta.terminating;
        for (size_t i = 0; i < ELEMENTSOF(pod->resize); i++) {
                pod->resize[i] = str_is_empty(texts[i]) ? NULL : str_dup(texts[i]);
                if (!pod->resize[i] && !str_is_empty(texts[i]))
                        return -ENOMEM;
        }
        return 0;
}

/* On how many cards the first of the pod's containers is placed. */
static uint32_t number_of_cards(const Grant *grant) {
        const Slice *slices;
        uint32_t cards = 0;
        size_t n;

        slices = grant_slices(grant, &n);
        for (size_t i = 0; i < n; i++)
                cards += slices[i].kind == slices[0].kind && slices[i].container == slices[0].container;
        return cards;
}

/* Reads the request. What a user wrote into LABEL_POD_COUNT after the Binding has no effect (see
 * keep_request()), also after a restart of the agent. So a placed pod has as many cards as its
 * placement. */
static int read_request(Roster *r, const Pod *object, const RosterPod *pod, Request *ret,
                        Refusal *ret_refusal) {
        int asked = request_amounts_from_pod(object, &r->arena, ret, ret_refusal), again;
        Pod placed = *object;
        char *label;
        Request request;
        Refusal refusal;

        if (asked < 0 || !pod->placed || str_is_empty(object->gpu_count_label) ||
            (asked == 0 && ret->cards == number_of_cards(pod->grant)))
                return asked;
        label = arena_new(&r->arena, char, LABEL_SIZE);
        if (!label)
                return -ENOMEM;
        (void) snprintf(label, LABEL_SIZE, "%u", number_of_cards(pod->grant));
        placed.gpu_count_label = str_from(label);
        again = request_amounts_from_pod(&placed, &r->arena, &request, &refusal);
        if (again != 0)
                return again < 0 ? again : asked; /* by a placement that its limits do not allow */
        *ret = request;
        return 0;
}

static int make_pod(Roster *r, const Pod *object, RosterPod **ret) {
        _cleanup_(pod_freep) RosterPod *pod = calloc(1, sizeof *pod);
        Request request;
        Refusal refusal;
        int asked, e;

        if (!pod)
                return -ENOMEM;
        e = take_names(pod, object);
        if (e == 0)
                e = take_grant(pod, r, object);
        asked = e < 0 ? e : read_request(r, object, pod, &request, &refusal);
        e = asked < 0 ? asked : 0;
        if (e == 0 && asked == 0)
                e = take_request(pod, object, &request);
        if (e == 0 && asked != REQUEST_E_NONE)
                e = take_ids(pod, object);
        if (e == 0 && asked == REQUEST_E_REFUSED)
                e = take_refusal(pod, &refusal);
        if (e == 0)
                e = take_keys(pod, object);
        if (e == 0)
                e = take_resize(pod, object);
        if (e < 0)
                return e;
        pod->generation = r->generation;
        *ret = TAKE_PTR(pod);
        return 0;
}

/* ---- adding and dropping pods ---- */

/* A UID is never used again. But the reply to a GET may arrive after the watch has reported the
 * deletion, and a list may come from a server that is behind. Without the tombstone such an object
 * would count as alive until the next list. */
static void add_tombstone(Roster *r, RosterPod *pod) {
        char **place = &r->tombstones[r->n_tombstones++ % ROSTER_TOMBSTONES];

        free(*place);
        *place = TAKE_PTR(pod->api_uid);
}

static bool has_tombstone(const Roster *r, Str api_uid) {
        for (size_t i = 0; i < ROSTER_TOMBSTONES && r->tombstones[i]; i++)
                if (str_eq(str_from(r->tombstones[i]), api_uid))
                        return true;
        return false;
}

static void drop_pod(Roster *r, RosterPod *pod) {
        char *uid = TAKE_PTR(pod->uid); /* on_pod is called when the pod is gone from the roster */

        add_tombstone(r, pod);
        HASH_DELETE(hh, r->pods, pod);
        pod_free(pod);
        if (r->on_pod)
                r->on_pod(r->userdata, str_from(uid), NULL);
        free(uid);
}

/* Of a bound pod only LABEL_POD_COUNT can change what it requests: it has its cards, so what a user
 * writes there later has no effect. */
static void keep_request(RosterPod *old, RosterPod *new) {
        RosterPod later = *new;

        if (old->refusal)
                return;
        new->containers = old->containers;
        new->n_containers = old->n_containers;
        new->request = old->request;
        new->refusal = old->refusal;
        old->containers = later.containers;
        old->n_containers = later.n_containers;
        old->request = later.request;
        old->refusal = later.refusal;
}

/* Keeps what is known of the pod, above all its placement. Every object of a list counts as newest,
 * whatever its version. */
static void keep_known(const Roster *r, RosterPod *old, RosterPod *new) {
        if (!r->listing)
                new->written = old->written;
        new->resize_status = TAKE_PTR(old->resize_status);
        if (!old->placed || !old->grant || !new->grant)
                return;
        grant_free(new->grant);
        new->grant = TAKE_PTR(old->grant);
        new->placed = true;
        keep_request(old, new);
        if (old->assume > 0)
                new->assume = old->assume;
}

static bool is_same_object(const RosterPod *pod, Str api_uid, Str namespace_, Str name) {
        return str_eq(str_from(pod->api_uid), api_uid) ||
               (str_eq(str_from(pod->name), name) && str_eq(str_from(pod->namespace_), namespace_));
}

static int put_pod(Roster *r, RosterPod *pod) {
        RosterPod *old = roster_find(r, str_from(pod->uid));

        if (old &&
            is_same_object(old, str_from(pod->api_uid), str_from(pod->namespace_), str_from(pod->name)))
                keep_known(r, old, pod);
        if (old) {
                HASH_DELETE(hh, r->pods, old);
                pod_free(old);
        }
        HASH_ADD_KEYPTR(hh, r->pods, pod->uid, strlen(pod->uid), pod);
        if (!hash_added(pod, hh)) {
                pod_free(pod);
                return -ENOMEM;
        }
        if (r->on_pod)
                r->on_pod(r->userdata, str_from(pod->uid), pod);
        return 0;
}

/* Whether the object's mirror annotation names the UID of another known pod. Users can write that
 * annotation where no admission checks it, but a UID belongs to one pod. The mirror of a static pod
 * that was created again has the same name. */
static bool is_impostor(const RosterPod *known, const Pod *object) {
        const ObjectMeta *m = &object->meta;

        return known && !str_eq(m->uid, str_from(known->uid)) &&
               !is_same_object(known, m->uid, m->namespace_, m->name);
}

/* Whether a newer object of the pod is known: the watch may bring one before the reply to a GET. In
 * a list every object counts as newest. */
static bool is_outdated(const Roster *r, const RosterPod *known, const Pod *object) {
        uint64_t version = number_of(object->meta.resource_version);

        return known && !r->listing && version > 0 && version < known->version &&
               str_eq(str_from(known->api_uid), object->meta.uid);
}

static int take_object(Roster *r, ReflectorEvent event, const Pod *object) {
        Str uid = str_is_empty(object->annotations.mirror) ? object->meta.uid : object->annotations.mirror;
        RosterPod *pod = roster_find(r, uid);
        int e;

        /* The mirror of a static pod can be deleted and created again while the pod runs. */
        if (event == REFLECTOR_DELETED) {
                if (pod && str_eq(str_from(pod->api_uid), object->meta.uid))
                        drop_pod(r, pod);
                return 0;
        }
        if (has_tombstone(r, object->meta.uid) || is_outdated(r, pod, object))
                return 0;
        if (is_impostor(pod, object)) {
                log_warning("passed over pod=" STR_FMT "/" STR_FMT ": its annotation " ANNOTATION_MIRROR
                            " names the UID of pod %s/%s",
                            STR_ARG(object->meta.namespace_), STR_ARG(object->meta.name), pod->namespace_,
                            pod->name);
                return 0;
        }
        e = make_pod(r, object, &pod);
        return e < 0 ? e : put_pod(r, pod);
}

enum { NAME_MAX_LEN = 253 };

/* Whether a UID can be used as a file name. */
static bool is_uid(Str uid) {
        return uid.len > 0 && uid.len <= NAME_MAX_LEN && !memchr(uid.data, '/', uid.len) &&
               !memchr(uid.data, '\0', uid.len) && uid.data[0] != '.';
}

static bool is_sound(const Pod *object) {
        const ObjectMeta *meta = &object->meta;

        return is_uid(meta->uid) &&
               (str_is_empty(object->annotations.mirror) || is_uid(object->annotations.mirror)) &&
               meta->name.len > 0 && meta->name.len <= NAME_MAX_LEN && meta->namespace_.len <= NAME_MAX_LEN;
}

int roster_pod(Roster *r, ReflectorEvent event, Str text) {
        Fault fault = FAULT_NULL;
        Pod object;
        int e;

        arena_reset(&r->arena);
        e = pod_decode(text, &r->arena, &object, &fault);
        if (e == 0 && !is_sound(&object))
                e = fault_set(&fault, OBJECT_E_MALFORMED,
                              "a pod without name or UID, or with longer ones than %d", NAME_MAX_LEN);
        if (e == 0 && !str_eq(object.node_name, str_from(r->node_name)))
                return 0; /* the server ignores field selectors */
        if (e == 0)
                e = take_object(r, event, &object);
        if (e != 0)
                r->incomplete = true; /* a pod that is missing in the roster is not gone */
        if (e <= 0)
                return e;
        r->malformed++;
        log_warning("passed over a pod: %s", fault.text);
        return 0;
}

void roster_list_begin(Roster *r) {
        r->generation++;
        r->listing = true;
        r->incomplete = false;
}

void roster_list_end(Roster *r) {
        RosterPod *pod, *next;

        r->listing = false;
        r->synced = true;
        if (r->incomplete) {
                log_warning(
                        "nothing was dropped after the list of pods, because not all of it could be read");
                return;
        }
        HASH_ITER(hh, r->pods, pod, next)
        if (pod->generation != r->generation)
                drop_pod(r, pod);
}

int roster_node(Roster *r, const Node *node, Fault *fault) {
        int e = ledger_node_set(r->ledger, node, fault);

        if (e >= 0 && !str_is_empty(node->annotations.cards))
                r->has_cards |= e == 0 || ledger_node_n_cards(roster_ledger_node(r)) > 0;
        return e;
}

LedgerNode *roster_ledger_node(const Roster *r) {
        return ledger_node_find(r->ledger, str_from(r->node_name));
}

/* ---- what a pod has, or is to have ---- */

int roster_place(Roster *r, RosterPod *pod, const Slice *slices, size_t n) {
        GrantSpec spec = {
                .namespace_ = str_from(pod->namespace_),
                .name = str_from(pod->name),
                .uid = str_from(pod->uid),
                .node = str_from(r->node_name),
                .slices = slices,
                .n_slices = n,
                .has_core = pod->request.core > 0,
                .app = pod->request.app,
        };
        Grant *grant;
        int e;

        e = grant_new(r->ledger, &spec, &grant);
        if (e < 0)
                return e;
        grant_free(pod->grant);
        pod->grant = grant;
        pod->placed = true;
        return 0;
}

const char *roster_container_name(const RosterPod *pod, const char *id) {
        for (size_t i = 0; id[0] != '\0' && i < pod->n_ids; i++)
                if (strcmp(pod->ids[i].id, id) == 0)
                        return pod->ids[i].name;
        return NULL;
}

bool roster_is_not_isolated(const RosterPod *pod, const char *container) {
        for (size_t i = 0; i < pod->n_containers; i++)
                if (strcmp(pod->containers[i].name, container) == 0)
                        return pod->containers[i].not_isolated;
        return false;
}

uint32_t roster_pod_units(const RosterPod *pod) {
        uint64_t all = 0, init = 0;

        for (size_t i = 0; i < pod->n_containers; i++) {
                uint64_t units = roster_asks(pod, &pod->containers[i], DEVICE_MEM);

                if (pod->containers[i].kind != CONTAINER_INIT)
                        all += units;
                else if (units > init)
                        init = units;
        }
        all = all > 0 ? all : init;
        return all > UINT32_MAX ? UINT32_MAX : (uint32_t) all;
}

int32_t roster_growth(const Roster *r, const RosterPod *pod, const char *container, uint32_t card) {
        const LedgerNode *n = roster_ledger_node(r);

        for (size_t i = 0; n && i < pod->n_containers; i++) {
                const RosterContainer *c = &pod->containers[i];

                if (c->kind == CONTAINER_MAIN && strcmp(c->name, container) == 0)
                        return ledger_growth_of(n, str_from(pod->uid), c->index, card).mem;
        }
        return 0;
}

uint32_t roster_asks(const RosterPod *pod, const RosterContainer *c, DeviceKind kind) {
        uint64_t n = kind == DEVICE_MEM ? (uint64_t) c->mem * pod->request.cards : c->core;

        return n > UINT32_MAX ? UINT32_MAX : (uint32_t) n;
}

static int compare_shares(const void *a, const void *b) {
        const CardShare *x = a, *y = b;

        return (x->card > y->card) - (x->card < y->card);
}

/* Returns the grant's amounts, which equal the limits. If they differ, because the node placed the
 * pod itself, the limit is divided evenly over the cards: the kubelet counts by the limits
 * alone. */
size_t roster_shares(const RosterPod *pod, const RosterContainer *c, DeviceKind kind, CardShare *ret) {
        uint32_t asked = roster_asks(pod, c, kind);
        const Slice *slices;
        uint64_t sum = 0;
        size_t n_slices, n = 0;

        if (!pod->grant || !pod->placed)
                return 0;
        slices = grant_slices(pod->grant, &n_slices);
        for (size_t i = 0; i < n_slices && n <= CARD_INDEX_MAX; i++) {
                if (slices[i].container != c->index ||
                    (slices[i].kind == CONTAINER_MAIN) != (c->kind == CONTAINER_MAIN))
                        continue;
                ret[n] = (CardShare){slices[i].card, kind == DEVICE_MEM ? slices[i].mem : slices[i].core};
                sum += ret[n++].count;
        }
        if (n == 0)
                return 0;
        qsort(ret, n, sizeof *ret, compare_shares);
        if (sum == asked)
                return n;
        if (asked % n != 0)
                return 0;
        for (size_t i = 0; i < n; i++)
                ret[i].count = asked / (uint32_t) n;
        return n;
}
