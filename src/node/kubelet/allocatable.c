/* SPDX-License-Identifier: Apache-2.0 */
#include "node/kubelet/allocatable.h"

#include "node/kubelet/proto.h"

/* Field numbers: AllocatableResourcesResponse, ContainerDevices. */
enum { RESPONSE_DEVICES = 1, DEVICES_RESOURCE = 1, DEVICES_IDS = 2 };

/* Counts the devices of one entry, usually one. */
static const char *count_entry(Str message, Str resource, size_t *n) {
        ProtoReader r = proto_reader(message);
        Str name = {0};
        ProtoField field;
        size_t ids = 0;

        while (proto_next(&r, &field))
                if (field.number == DEVICES_RESOURCE)
                        (void) proto_bytes(&r, &field, &name);
                else
                        ids += field.number == DEVICES_IDS;
        if (!r.fault && str_eq(name, resource))
                *n += ids;
        return r.fault;
}

int allocatable_count(Str message, Str resource, size_t *ret, Fault *fault) {
        ProtoReader r = proto_reader(message);
        const char *why = NULL;
        ProtoField field;
        size_t n = 0;
        Str entry;

        while (!why && proto_next(&r, &field))
                if (field.number == RESPONSE_DEVICES && proto_bytes(&r, &field, &entry))
                        why = count_entry(entry, resource, &n);
        why = why ? why : r.fault;
        if (why)
                return fault_set(fault, ALLOCATABLE_E_MALFORMED,
                                 "PodResources GetAllocatableResources: malformed message: %s", why);
        *ret = n;
        return 0;
}
