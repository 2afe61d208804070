/* SPDX-License-Identifier: Apache-2.0 */

/* Golden bytes, written by hand from the field numbers of k8s.io/kubelet. An encoder with a wrong
 * number would still agree with its decoder. */

#include "test.h"
#include "wire/proto/deviceplugin.pb-c.h"
#include "wire/proto/podresources.pb-c.h"

static void assert_packed(const ProtobufCMessage *m, Str expected) {
        uint8_t bytes[256];
        size_t n = protobuf_c_message_get_packed_size(m);

        ASSERT_TRUE(n <= sizeof bytes);
        ASSERT_INT(protobuf_c_message_pack(m, bytes), n);
        ASSERT_STR(((Str){(const char *) bytes, n}), expected);
}

static char *text(const char *s) {
        return (char *) (uintptr_t) s; /* protobuf-c knows no const; packing only reads */
}

static void registers(void) {
        V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
        V1beta1__RegisterRequest request = V1BETA1__REGISTER_REQUEST__INIT;

        options.pre_start_required = 1;
        options.get_preferred_allocation_available = 1;
        request.version = text("v1beta1");
        request.endpoint = text("s");
        request.resource_name = text("a/b");
        request.options = &options;
        assert_packed(&request.base, STR("\x0a\x07v1beta1\x12\x01s\x1a\x03"
                                         "a/b\x22\x04\x08\x01\x10\x01"));
}

static void lists_devices(void) {
        V1beta1__NUMANode node = V1BETA1__NUMANODE__INIT, *nodes[] = {&node};
        V1beta1__TopologyInfo topology = V1BETA1__TOPOLOGY_INFO__INIT;
        V1beta1__Device device = V1BETA1__DEVICE__INIT, *devices[] = {&device};
        V1beta1__ListAndWatchResponse response = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;

        node.id = 1;
        topology.n_nodes = 1;
        topology.nodes = nodes;
        device.id = text("0-1");
        device.health = text("Healthy");
        device.topology = &topology;
        response.n_devices = 1;
        response.devices = devices;
        assert_packed(&response.base, STR("\x0a\x14\x0a\x03"
                                          "0-1\x12\x07Healthy\x1a\x04\x0a\x02\x08\x01"));
}

static void allocates(void) {
        V1beta1__ContainerAllocateResponse__EnvsEntry
                env = V1BETA1__CONTAINER_ALLOCATE_RESPONSE__ENVS_ENTRY__INIT,
                *envs[] = {&env};
        V1beta1__ContainerAllocateResponse__AnnotationsEntry
                annotation = V1BETA1__CONTAINER_ALLOCATE_RESPONSE__ANNOTATIONS_ENTRY__INIT,
                *annotations[] = {&annotation};
        V1beta1__Mount mount = V1BETA1__MOUNT__INIT, *mounts[] = {&mount};
        V1beta1__DeviceSpec device = V1BETA1__DEVICE_SPEC__INIT, *devices[] = {&device};
        V1beta1__CDIDevice cdi = V1BETA1__CDIDEVICE__INIT, *cdis[] = {&cdi};
        V1beta1__ContainerAllocateResponse container = V1BETA1__CONTAINER_ALLOCATE_RESPONSE__INIT;

        env.key = text("K");
        env.value = text("v");
        annotation.key = text("a");
        annotation.value = text("b");
        mount.container_path = text("/c");
        mount.host_path = text("/h");
        mount.read_only = 1;
        device.container_path = text("/x");
        device.host_path = text("/y");
        device.permissions = text("rw");
        cdi.name = text("n");
        container.n_envs = container.n_annotations = container.n_mounts = container.n_devices =
                container.n_cdi_devices = 1;
        container.envs = envs;
        container.annotations = annotations;
        container.mounts = mounts;
        container.devices = devices;
        container.cdi_devices = cdis;
        assert_packed(&container.base, STR("\x0a\x06\x0a\x01K\x12\x01v"
                                           "\x12\x0a\x0a\x02/c\x12\x02/h\x18\x01"
                                           "\x1a\x0c\x0a\x02/x\x12\x02/y\x1a\x02rw"
                                           "\x22\x06\x0a\x01"
                                           "a\x12\x01"
                                           "b"
                                           "\x2a\x03\x0a\x01n"));
}

static void prefers(void) {
        static const char wire[] = "\x0a\x0f\x0a\x03"
                                   "0-1\x0a\x03"
                                   "0-2\x12\x01"
                                   "a\x18\x02";
        V1beta1__PreferredAllocationRequest *request =
                v1beta1__preferred_allocation_request__unpack(NULL, sizeof wire - 1, (const uint8_t *) wire);

        ASSERT_TRUE(request != NULL);
        ASSERT_INT(request->n_container_requests, 1);
        ASSERT_INT(request->container_requests[0]->n_available_deviceids, 2);
        ASSERT_TEXT(request->container_requests[0]->available_deviceids[1], "0-2");
        ASSERT_INT(request->container_requests[0]->n_must_include_deviceids, 1);
        ASSERT_INT(request->container_requests[0]->allocation_size, 2);
        v1beta1__preferred_allocation_request__free_unpacked(request, NULL);
}

/* cpu_ids (3, packed), memory (4) and dynamic_resources (5) of a container are not used. */
static void skips_what_it_does_not_know(void) {
        static const char wire[] = "\x0a\x24\x0a\x01p\x12\x02ns\x1a\x1b\x0a\x01"
                                   "c\x1a\x02\x01\x02\x22\x02\x10\x05\x2a\x03\x12\x01x\x12\x09\x0a\x03"
                                   "r/a\x12\x02#1";
        V1__ListPodResourcesResponse *list =
                v1__list_pod_resources_response__unpack(NULL, sizeof wire - 1, (const uint8_t *) wire);
        const V1__ContainerResources *container;

        ASSERT_TRUE(list != NULL);
        ASSERT_INT(list->n_pod_resources, 1);
        ASSERT_TEXT(list->pod_resources[0]->name, "p");
        ASSERT_TEXT(list->pod_resources[0]->namespace_, "ns");
        container = list->pod_resources[0]->containers[0];
        ASSERT_TEXT(container->name, "c");
        ASSERT_INT(container->n_devices, 1);
        ASSERT_TEXT(container->devices[0]->resource_name, "r/a");
        ASSERT_TEXT(container->devices[0]->device_ids[0], "#1");
        v1__list_pod_resources_response__free_unpacked(list, NULL);
}

int main(void) {
        return TEST_MAIN(TEST(registers), TEST(lists_devices), TEST(allocates), TEST(prefers),
                         TEST(skips_what_it_does_not_know));
}
