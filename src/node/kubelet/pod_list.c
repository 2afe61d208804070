/* SPDX-License-Identifier: Apache-2.0 */
#include "node/kubelet/pod_list.h"

#include <assert.h>
#include <errno.h>

#include "node/kubelet/proto.h"

/* k8s.io/kubelet/pkg/apis/podresources/v1: ListPodResourcesResponse. Each level is read twice, to
 * count and then to fill. So the arena holds exactly the result, and a message cannot make it
 * allocate a multiple of that. */

enum {
        PODS_MAX = 16 * 1024, /* a node runs some hundreds */
        CONTAINERS_MAX = 64 * 1024,
        IDS_MAX = 600 * 1000, /* two resources with the longest list that a kubelet accepts */
        RESOURCES_MAX = 32,   /* of one container, with the prefix */
};

/* Field numbers. */
enum {
        RESPONSE_PODS = 1,
        POD_NAME = 1,
        POD_NAMESPACE = 2,
        POD_CONTAINERS = 3,
        CONTAINER_NAME = 1,
        CONTAINER_DEVICES = 2,
        DEVICES_RESOURCE = 1,
        DEVICES_IDS = 2,
};

typedef struct Decoder {
        Arena *arena;
        Str prefix;
        const char *fault; /* static; NULL while all is well */
        bool no_memory;
        size_t n_containers, n_ids;
} Decoder;

static bool refuse_list(Decoder *d, const char *fault) {
        if (!d->fault)
                d->fault = fault;
        return false;
}

static bool out_of_memory(Decoder *d) {
        d->no_memory = true;
        return refuse_list(d, "out of memory");
}

/* Counts the fields of that number. */
static size_t count_fields(Str message, uint32_t number) {
        ProtoReader r = proto_reader(message);
        ProtoField field;
        size_t n = 0;

        while (proto_next(&r, &field))
                n += field.number == number;
        return n;
}

static HeldDevices *held_get(HeldDevices *held, size_t *n, Str resource) {
        for (size_t i = *n; i-- > 0;) /* entries of one resource are neighbours */
                if (str_eq(held[i].resource, resource))
                        return &held[i];
        if (*n == RESOURCES_MAX)
                return NULL;
        held[*n] = (HeldDevices){.resource = resource};
        return &held[(*n)++];
}

static bool devices_resource(Decoder *d, Str message, Str *ret) {
        ProtoReader r = proto_reader(message);
        ProtoField field;

        *ret = (Str){0};
        while (proto_next(&r, &field))
                if (field.number == DEVICES_RESOURCE)
                        (void) proto_bytes(&r, &field, ret); /* a fault is kept in the reader */
        return r.fault ? refuse_list(d, r.fault) : true;
}

static bool devices_fill(Decoder *d, Str message, HeldDevices *held) {
        ProtoReader r = proto_reader(message);
        ProtoField field;
        Str id;

        while (proto_next(&r, &field)) {
                if (field.number != DEVICES_IDS || !proto_bytes(&r, &field, &id))
                        continue;
                if (str_is_empty(id))
                        return refuse_list(d, "an empty device ID");
                assert(held && held->ids); /* both were counted */
                held->ids[held->n++] = id;
        }
        return r.fault ? refuse_list(d, r.fault) : true;
}

/* Finds the next ContainerDevices whose resource has the prefix. */
static bool next_devices(Decoder *d, ProtoReader *container, Str *ret, Str *ret_resource) {
        ProtoField field;

        while (!d->fault && proto_next(container, &field))
                if (field.number == CONTAINER_DEVICES && proto_bytes(container, &field, ret) &&
                    devices_resource(d, *ret, ret_resource) && str_has_prefix(*ret_resource, d->prefix))
                        return true;
        return container->fault ? refuse_list(d, container->fault) : false;
}

static bool count_devices(Decoder *d, Str message, HeldDevices *held, size_t *n) {
        ProtoReader r = proto_reader(message);
        Str devices, resource;

        while (next_devices(d, &r, &devices, &resource)) {
                HeldDevices *h = held_get(held, n, resource);
                size_t more = count_fields(devices, DEVICES_IDS);

                if (!h)
                        return refuse_list(d, "more than 32 resources of one container");
                if (more > IDS_MAX - d->n_ids)
                        return refuse_list(d, "more than 600000 device IDs");
                d->n_ids += more;
                h->n += more;
        }
        return !d->fault;
}

static bool decode_devices(Decoder *d, Str message, ListedContainer *ret) {
        HeldDevices held[RESOURCES_MAX];
        ProtoReader r = proto_reader(message);
        Str devices, resource;
        size_t n = 0;

        if (!count_devices(d, message, held, &n))
                return false;
        ret->devices = arena_new(d->arena, HeldDevices, n);
        if (!ret->devices)
                return out_of_memory(d);
        for (size_t i = 0; i < n; i++) {
                ret->devices[i] = (HeldDevices){.resource = held[i].resource,
                                                .ids = arena_new(d->arena, Str, held[i].n)};
                if (!ret->devices[i].ids)
                        return out_of_memory(d);
        }
        ret->n_devices = n;
        while (next_devices(d, &r, &devices, &resource))
                if (!devices_fill(d, devices, held_get(ret->devices, &n, resource)))
                        return false;
        return !d->fault;
}

static bool decode_container(Decoder *d, Str message, ListedContainer *ret) {
        ProtoReader r = proto_reader(message);
        ProtoField field;

        while (proto_next(&r, &field))
                if (field.number == CONTAINER_NAME)
                        (void) proto_bytes(&r, &field, &ret->name);
        if (r.fault)
                return refuse_list(d, r.fault);
        if (str_is_empty(ret->name))
                return refuse_list(d, "a container without a name");
        return decode_devices(d, message, ret);
}

static bool decode_containers(Decoder *d, Str message, ListedPod *ret) {
        ProtoReader r = proto_reader(message);
        size_t n = count_fields(message, POD_CONTAINERS);
        ProtoField field;
        Str container;

        if (n > CONTAINERS_MAX - d->n_containers)
                return refuse_list(d, "more than 65536 containers");
        d->n_containers += n;
        ret->containers = arena_new(d->arena, ListedContainer, n);
        if (!ret->containers)
                return out_of_memory(d);
        while (proto_next(&r, &field))
                if (field.number == POD_CONTAINERS && proto_bytes(&r, &field, &container) &&
                    !decode_container(d, container, &ret->containers[ret->n_containers++]))
                        return false;
        return r.fault ? refuse_list(d, r.fault) : true;
}

static bool decode_pod(Decoder *d, Str message, ListedPod *ret) {
        ProtoReader r = proto_reader(message);
        ProtoField field;

        while (proto_next(&r, &field))
                if (field.number == POD_NAME)
                        (void) proto_bytes(&r, &field, &ret->name);
                else if (field.number == POD_NAMESPACE)
                        (void) proto_bytes(&r, &field, &ret->namespace_);
        if (r.fault)
                return refuse_list(d, r.fault);
        if (str_is_empty(ret->name) || str_is_empty(ret->namespace_))
                return refuse_list(d, "a pod without name or namespace");
        return decode_containers(d, message, ret);
}

static bool decode_pods(Decoder *d, Str message, PodList *ret) {
        ProtoReader r = proto_reader(message);
        size_t n = count_fields(message, RESPONSE_PODS);
        ProtoField field;
        Str pod;

        if (n > PODS_MAX)
                return refuse_list(d, "more than 16384 pods");
        ret->pods = arena_new(d->arena, ListedPod, n);
        if (!ret->pods)
                return out_of_memory(d);
        while (proto_next(&r, &field))
                if (field.number == RESPONSE_PODS && proto_bytes(&r, &field, &pod) &&
                    !decode_pod(d, pod, &ret->pods[ret->n++]))
                        return false;
        return r.fault ? refuse_list(d, r.fault) : true;
}

int pod_list_decode(Str message, Str prefix, Arena *arena, PodList *ret, Fault *fault) {
        Decoder d = {.arena = arena, .prefix = prefix};
        PodList list = {0};

        if (decode_pods(&d, message, &list)) {
                *ret = list;
                return 0;
        }
        if (d.no_memory)
                return fault_set(fault, -ENOMEM, "out of memory");
        return fault_set(fault, PODLIST_E_MALFORMED, "PodResources List: malformed message: %s", d.fault);
}
