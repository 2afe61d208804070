/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/pod_profile.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/quantity.h"
#include "wire/json_field.h"

/* What is requested of one resource, while containers are read in the order of the text. */
typedef struct Sum {
        Str name;
        /* peak: the largest sum of an init container and the sidecars before it. */
        int64_t main, sidecars, peak;
        int64_t pod, overhead; /* amounts of spec.resources and of spec.overhead */
        bool has_pod;
} Sum;

typedef struct Draft {
        PodProfile profile;
        Str start, policy;
        size_t labels_room;
        Sum sums[POD_PROFILE_RESOURCES_MAX];
        size_t n_sums;
} Draft;

/* ---- quantities ---- */

static bool add_amount(int64_t *sum, int64_t amount) {
        return !__builtin_add_overflow(*sum, amount, sum);
}

static Sum *sum_of(Draft *d, Str name) {
        for (size_t i = 0; i < d->n_sums; i++)
                if (str_eq(d->sums[i].name, name))
                        return &d->sums[i];
        if (d->n_sums == POD_PROFILE_RESOURCES_MAX)
                return NULL;
        d->sums[d->n_sums] = (Sum){.name = name};
        return &d->sums[d->n_sums++];
}

static void read_amount(JsonReader *r, Arena *arena, Str *ret) {
        if (json_peek(r) == JSON_NUMBER)
                json_raw(r, ret);
        else
                json_string(r, arena, ret);
}

/* Hands each resource of a ResourceList to `take`. */
static void read_list(JsonReader *r, Arena *arena, Draft *d, void (*take)(Draft *d, Sum *s, int64_t milli)) {
        Str key;

        JSON_EACH_MEMBER(r, &key) {
                Str text = {NULL, 0};
                int64_t milli = 0;
                Sum *sum;

                read_amount(r, arena, &text);
                if (json_failed(r))
                        return;
                sum = sum_of(d, json_plain_key(key, arena));
                if (sum && quantity_parse_milli(text, &milli))
                        take(d, sum, milli);
                else
                        d->profile.requests_unknown = true;
        }
}

static void take_main(Draft *d, Sum *s, int64_t milli) {
        d->profile.requests_unknown |= !add_amount(&s->main, milli);
}

static void take_sidecar(Draft *d, Sum *s, int64_t milli) {
        d->profile.requests_unknown |= !add_amount(&s->sidecars, milli);
        s->peak = s->peak > s->sidecars ? s->peak : s->sidecars;
}

static void take_init(Draft *d, Sum *s, int64_t milli) {
        d->profile.requests_unknown |= !add_amount(&milli, s->sidecars);
        s->peak = s->peak > milli ? s->peak : milli;
}

static void take_pod(Draft *d, Sum *s, int64_t milli) {
        s->pod = milli;
        s->has_pod = true;
}

static void take_overhead(Draft *d, Sum *s, int64_t milli) {
        s->overhead = milli;
}

/* ---- containers ---- */

typedef struct ContainerDraft {
        Draft *draft;
        Str requests, restart_policy;
        bool claims;
} ContainerDraft;

static const JsonField port_fields[] = {{STR("hostPort"), json_field_i64, 0}};

static void read_ports(JsonReader *r, Arena *arena, void *ret) {
        ContainerDraft *c = ret;

        JSON_EACH_ELEMENT(r) {
                int64_t port = 0;

                json_field_decode(r, arena, port_fields, ELEMENTSOF(port_fields), &port);
                c->draft->profile.holds_more |= port != 0;
        }
}

static const JsonField resources_fields[] = {
        JSON_FIELD(ContainerDraft, requests, "requests", json_field_raw),
        JSON_FIELD(ContainerDraft, claims, "claims", json_field_present),
};
JSON_DECODER(read_resources, resources_fields)

static const JsonField container_fields[] = {
        JSON_FIELD(ContainerDraft, restart_policy, "restartPolicy", json_field_str),
        JSON_NESTED("resources", read_resources),
        JSON_NESTED("ports", read_ports),
};

/* The text of a ResourceList that was skipped while its container was read. */
static void read_raw_list(JsonReader *r, Arena *arena, Draft *d, Str text,
                          void (*take)(Draft *d, Sum *s, int64_t milli)) {
        JsonReader inner;
        int k;

        if (str_is_empty(text))
                return;
        json_init(&inner, text);
        read_list(&inner, arena, d, take);
        k = json_finish(&inner, NULL);
        if (k < 0)
                json_no_memory(r);
        else if (k > 0)
                json_fault(r, "not a list of resources");
}

static void read_containers(JsonReader *r, Arena *arena, Draft *d, bool init) {
        JSON_EACH_ELEMENT(r) {
                ContainerDraft c = {.draft = d};

                json_field_decode(r, arena, container_fields, ELEMENTSOF(container_fields), &c);
                if (json_failed(r))
                        return;
                d->profile.holds_more |= c.claims;
                read_raw_list(r, arena, d, c.requests,
                              !init                                     ? take_main
                              : str_eq(c.restart_policy, STR("Always")) ? take_sidecar
                                                                        : take_init);
        }
}

static void read_main(JsonReader *r, Arena *arena, void *ret) {
        read_containers(r, arena, ret, false);
}

static void read_init(JsonReader *r, Arena *arena, void *ret) {
        read_containers(r, arena, ret, true);
}

/* ---- the rest of the specification ---- */

static void read_pod_resources(JsonReader *r, Arena *arena, void *ret) {
        ContainerDraft c = {.draft = ret};

        json_field_decode(r, arena, resources_fields, ELEMENTSOF(resources_fields), &c);
        if (!json_failed(r))
                read_raw_list(r, arena, ret, c.requests, take_pod);
}

static void read_overhead(JsonReader *r, Arena *arena, void *ret) {
        read_list(r, arena, ret, take_overhead);
}

static bool is_plain_volume(Str key) {
        static const char *const plain[] = {"name",      "configMap",   "secret",   "emptyDir",
                                            "projected", "downwardAPI", "hostPath", "image"};

        for (size_t i = 0; i < ELEMENTSOF(plain); i++)
                if (json_key_is(key, plain[i]))
                        return true;
        return false;
}

static void read_volumes(JsonReader *r, Arena *arena, void *ret) {
        Draft *d = ret;
        Str key;

        if (!json_array_begin(r))
                return;
        while (json_array_next(r)) {
                if (!json_object_begin(r))
                        return;
                while (json_object_next(r, &key)) {
                        d->profile.holds_more |= !is_plain_volume(key) && json_peek(r) != JSON_NULL;
                        json_skip(r);
                }
        }
}

static void read_affinity(JsonReader *r, Arena *arena, void *ret) {
        Draft *d = ret;
        Str key;

        JSON_EACH_MEMBER(r, &key) {
                d->profile.affine |= !json_key_is(key, "nodeAffinity") && json_peek(r) != JSON_NULL;
                json_skip(r);
        }
}

static void read_present(JsonReader *r, bool *ret) {
        bool any = false;

        if (!json_array_begin(r))
                return;
        while (json_array_next(r)) {
                any = true;
                json_skip(r);
        }
        *ret |= any;
}

static void read_constraints(JsonReader *r, Arena *arena, void *ret) {
        read_present(r, &((Draft *) ret)->profile.affine);
}

static void read_claims(JsonReader *r, Arena *arena, void *ret) {
        read_present(r, &((Draft *) ret)->profile.holds_more);
}

static const JsonField spec_fields[] = {
        JSON_FIELD(Draft, profile.priority, "priority", json_field_i64),
        JSON_FIELD(Draft, policy, "preemptionPolicy", json_field_str),
        JSON_NESTED("containers", read_main),
        JSON_NESTED("initContainers", read_init),
        JSON_NESTED("resources", read_pod_resources),
        JSON_NESTED("overhead", read_overhead),
        JSON_NESTED("volumes", read_volumes),
        JSON_NESTED("affinity", read_affinity),
        JSON_NESTED("topologySpreadConstraints", read_constraints),
        JSON_NESTED("resourceClaims", read_claims),
};
JSON_DECODER(read_spec, spec_fields)

/* ---- metadata and status ---- */

static bool reserve_label(JsonReader *r, Arena *arena, Draft *d) {
        PodProfile *p = &d->profile;
        size_t room = d->labels_room > 0 ? 2 * d->labels_room : 8;
        PodLabel *labels;

        if (p->n_labels < d->labels_room)
                return true;
        labels = arena_new(arena, PodLabel, room);
        if (!labels) {
                json_no_memory(r);
                return false;
        }
        if (p->n_labels > 0)
                memcpy(labels, p->labels, p->n_labels * sizeof *labels);
        p->labels = labels;
        d->labels_room = room;
        return true;
}

static void read_labels(JsonReader *r, Arena *arena, void *ret) {
        Draft *d = ret;
        Str key;

        d->profile.n_labels = 0;
        JSON_EACH_MEMBER(r, &key) {
                PodLabel label = {.key = json_plain_key(key, arena)};

                json_string(r, arena, &label.value);
                if (d->profile.n_labels == POD_PROFILE_LABELS_MAX)
                        d->profile.labels_cut = true;
                else if (reserve_label(r, arena, d))
                        d->profile.labels[d->profile.n_labels++] = label;
                else
                        return;
        }
}

static const JsonField metadata_fields[] = {JSON_NESTED("labels", read_labels)};
JSON_DECODER(read_metadata, metadata_fields)

static const JsonField status_fields[] = {
        JSON_FIELD(Draft, start, "startTime", json_field_str),
        JSON_FIELD(Draft, profile.nominated_node, "nominatedNodeName", json_field_str),
};
JSON_DECODER(read_status, status_fields)

static const JsonField pod_fields[] = {
        JSON_NESTED("metadata", read_metadata),
        JSON_NESTED("spec", read_spec),
        JSON_NESTED("status", read_status),
};

/* ---- the whole pod ---- */

/* metav1.Time is RFC 3339 in UTC, whole seconds: its digits in order compare like the times. A pod
 * that the kubelet has not started has none, and counts as started now (GetPodStartTime of
 * kube-scheduler). */
static int64_t start_of(Str text) {
        int64_t digits = 0;
        size_t n = 0;

        for (size_t i = 0; i < text.len && n < 14; i++)
                if (text.data[i] >= '0' && text.data[i] <= '9') {
                        digits = digits * 10 + (text.data[i] - '0');
                        n++;
                }
        return n == 14 ? digits : POD_PROFILE_NOT_STARTED;
}

static bool total_of(const Sum *s, int64_t *ret) {
        int64_t steady = s->sidecars, total;

        if (!add_amount(&steady, s->main))
                return false;
        total = s->has_pod ? s->pod : steady > s->peak ? steady : s->peak;
        if (!add_amount(&total, s->overhead))
                return false;
        *ret = total;
        return true;
}

static int finish_draft(Draft *d, Arena *arena) {
        PodProfile *p = &d->profile;

        p->start = start_of(d->start);
        p->never_preempts = str_eq(d->policy, STR("Never"));
        p->requests = arena_new(arena, PodResource, d->n_sums + 1);
        if (!p->requests)
                return -ENOMEM;
        for (size_t i = 0; i < d->n_sums; i++) {
                PodResource resource = {.name = d->sums[i].name};

                if (!total_of(&d->sums[i], &resource.milli))
                        p->requests_unknown = true;
                else if (resource.milli > 0)
                        p->requests[p->n_requests++] = resource;
        }
        return 0;
}

int pod_profile_decode(Str json, Arena *arena, PodProfile *ret, Fault *fault) {
        Draft *d = arena_new(arena, Draft, 1);
        JsonReader reader;
        int r;

        if (!d)
                return -ENOMEM;
        json_init(&reader, json);
        if (json_peek(&reader) == JSON_NULL)
                json_fault(&reader, "not an object");
        else
                json_field_decode(&reader, arena, pod_fields, ELEMENTSOF(pod_fields), d);
        r = json_finish(&reader, fault);
        if (r != 0)
                return r > 0 ? fault_wrap(fault, OBJECT_E_MALFORMED, "pod") : r;
        r = finish_draft(d, arena);
        if (r < 0)
                return r;
        *ret = d->profile;
        return 0;
}
