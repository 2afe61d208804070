/* SPDX-License-Identifier: Apache-2.0 */

/* protobuf-c reads what plugin_message writes, and the other way round. */

#include "node/kubelet/plugin_message.h"
#include "test.h"
#include "wire/proto/deviceplugin.pb-c.h"

static const uint8_t *bytes_of(const Buf *b) {
        return (const uint8_t *) (b->data ? b->data : "");
}

static void registers(void) {
        _cleanup_buf_ Buf b = BUF_NULL;
        V1beta1__RegisterRequest *m;

        plugin_message_put_register(&b, STR("aliquot-gpu-mem.sock"), STR("aliyun.com/gpu-mem"));
        m = v1beta1__register_request__unpack(NULL, b.len, bytes_of(&b));
        ASSERT_TRUE(m);
        ASSERT_TEXT(m->version, "v1beta1");
        ASSERT_TEXT(m->endpoint, "aliquot-gpu-mem.sock");
        ASSERT_TEXT(m->resource_name, "aliyun.com/gpu-mem");
        ASSERT_TRUE(m->options->pre_start_required && m->options->get_preferred_allocation_available);
        v1beta1__register_request__free_unpacked(m, NULL);
}

static void lists_devices(void) {
        static const PluginDevice devices[] = {
                {"0-1", true},
                {"0-2", false},
                {"123456789012345", true},
        };
        _cleanup_buf_ Buf b = BUF_NULL;
        V1beta1__ListAndWatchResponse *m;

        plugin_message_put_devices(&b, devices, ELEMENTSOF(devices));
        ASSERT_INT(plugin_message_size(devices, ELEMENTSOF(devices)), b.len);
        m = v1beta1__list_and_watch_response__unpack(NULL, b.len, bytes_of(&b));
        ASSERT_TRUE(m);
        ASSERT_INT(m->n_devices, ELEMENTSOF(devices));
        for (size_t i = 0; i < m->n_devices; i++) {
                ASSERT_TEXT(m->devices[i]->id, devices[i].id);
                ASSERT_TEXT(m->devices[i]->health, devices[i].healthy ? "Healthy" : "Unhealthy");
                ASSERT_TRUE(m->devices[i]->topology == NULL);
        }
        ASSERT_INT(v1beta1__list_and_watch_response__get_packed_size(m), b.len); /* the size is exact */
        v1beta1__list_and_watch_response__free_unpacked(m, NULL);
}

/* A list that a kubelet accepted, and one that it refused: 13 bytes and the ID for each device. */
static void the_limit_is_the_kubelets(void) {
        _cleanup_free_ PluginDevice *devices = calloc(221000, sizeof *devices);

        for (size_t i = 0; i < 221000; i++) {
                devices[i] = (PluginDevice){.healthy = true};
                (void) snprintf(devices[i].id, sizeof devices[i].id, "%06zu", i);
        }
        ASSERT_INT(plugin_message_size(devices, 1), 13 + 6);
        ASSERT_INT(plugin_message_size(devices, 220000), 220000 * 19);
        ASSERT_TRUE(plugin_message_size(devices, 220000) <= PLUGIN_MESSAGE_MAX);
        ASSERT_FALSE(plugin_message_size(devices, 221000) <= PLUGIN_MESSAGE_MAX);
        ASSERT_INT(plugin_message_size(devices, 0), 0);
        ASSERT_TRUE(PLUGIN_MESSAGE_MAX / (13 + 1) < PLUGIN_IDS_MAX); /* the limit of IDs in a request */
}

/* ---- requests ---- */

static int decode(PluginRequestKind kind, const ProtobufCMessage *m, PluginRequest *ret, Fault *fault) {
        size_t n = protobuf_c_message_get_packed_size(m);
        _cleanup_free_ uint8_t *bytes = malloc(n + 1);
        int r;

        ASSERT_INT(protobuf_c_message_pack(m, bytes), n);
        r = plugin_message_decode_request(kind, (Str){(const char *) bytes, n}, ret, fault);
        if (r == 0)
                /* the IDs are views: compared while the message exists */
                for (size_t i = 0; i < ret->n_ids; i++)
                        ASSERT_STR(ret->ids[i], STR("0-1"));
        return r;
}

static char **same_ids(size_t n) {
        static char id[] = "0-1";
        char **ids = calloc(n + 1, sizeof *ids);

        ASSERT_TRUE(ids);
        for (size_t i = 0; i < n; i++)
                ids[i] = id;
        return ids;
}

static int decode_preferred(size_t available, size_t must_include, int32_t size, PluginRequest *ret,
                            Fault *fault) {
        V1beta1__PreferredAllocationRequest m = V1BETA1__PREFERRED_ALLOCATION_REQUEST__INIT;
        V1beta1__ContainerPreferredAllocationRequest
                c = V1BETA1__CONTAINER_PREFERRED_ALLOCATION_REQUEST__INIT,
                *list[] = {&c};
        _cleanup_(cleanup_freep) char **ids = same_ids(available > must_include ? available : must_include);

        m.n_container_requests = 1;
        m.container_requests = list;
        c.n_available_deviceids = available;
        c.available_deviceids = ids;
        c.n_must_include_deviceids = must_include;
        c.must_include_deviceids = ids;
        c.allocation_size = size;
        return decode(PLUGIN_REQUEST_PREFERRED, &m.base, ret, fault);
}

static void reads_preferred(void) {
        PluginRequest request = PLUGIN_REQUEST_NULL;
        Fault fault = FAULT_NULL;

        ASSERT_OK(decode_preferred(5, 2, 3, &request, &fault));
        ASSERT_INT(request.n_ids, 5);
        ASSERT_INT(request.n_must_include, 2);
        ASSERT_INT(request.size, 3);
        plugin_message_request_done(&request);
        ASSERT_INT(decode_preferred(5, 2, 0, &request, &fault), PLUGIN_REQUEST_E_REFUSED);
        ASSERT_TEXT(fault.text, "allocation size 0: must be positive");
        ASSERT_INT(decode_preferred(5, 2, -7, &request, &fault), PLUGIN_REQUEST_E_REFUSED);
        ASSERT_TEXT(fault.text, "allocation size -7: must be positive");
        ASSERT_OK(decode_preferred(300000, 0, 1, &request, &fault));
        plugin_message_request_done(&request);
        ASSERT_INT(decode_preferred(300001, 0, 1, &request, &fault), PLUGIN_REQUEST_E_REFUSED);
        ASSERT_CONTAINS(fault.text, "300001 available device IDs: at most 300000 can exist");
        ASSERT_INT(decode_preferred(1, 300001, 1, &request, &fault), PLUGIN_REQUEST_E_REFUSED);
        ASSERT_CONTAINS(fault.text, "300001 device IDs to include");
}

static int decode_allocate(size_t containers, size_t n, PluginRequest *ret, Fault *fault) {
        V1beta1__AllocateRequest m = V1BETA1__ALLOCATE_REQUEST__INIT;
        V1beta1__ContainerAllocateRequest c = V1BETA1__CONTAINER_ALLOCATE_REQUEST__INIT, *list[] = {&c, &c};
        _cleanup_(cleanup_freep) char **ids = same_ids(n);

        m.n_container_requests = containers;
        m.container_requests = list;
        c.n_devices_ids = n;
        c.devices_ids = ids;
        return decode(PLUGIN_REQUEST_ALLOCATE, &m.base, ret, fault);
}

static void reads_allocate(void) {
        PluginRequest request = PLUGIN_REQUEST_NULL;
        Fault fault = FAULT_NULL;

        ASSERT_OK(decode_allocate(1, 5, &request, &fault));
        ASSERT_INT(request.n_ids, 5);
        plugin_message_request_done(&request);
        ASSERT_INT(decode_allocate(0, 5, &request, &fault), PLUGIN_REQUEST_E_REFUSED);
        ASSERT_TEXT(fault.text, "a request for 0 containers: must be for one");
        ASSERT_INT(decode_allocate(2, 5, &request, &fault), PLUGIN_REQUEST_E_REFUSED);
        ASSERT_TEXT(fault.text, "a request for 2 containers: must be for one");
        ASSERT_INT(decode_allocate(1, 0, &request, &fault), PLUGIN_REQUEST_E_REFUSED);
        ASSERT_TEXT(fault.text, "a request without device IDs");
        ASSERT_INT(decode_allocate(1, 300001, &request, &fault), PLUGIN_REQUEST_E_REFUSED);
}

static void reads_prestart(void) {
        V1beta1__PreStartContainerRequest m = V1BETA1__PRE_START_CONTAINER_REQUEST__INIT;
        _cleanup_(cleanup_freep) char **ids = same_ids(3);
        PluginRequest request = PLUGIN_REQUEST_NULL;
        Fault fault = FAULT_NULL;

        m.n_devices_ids = 3;
        m.devices_ids = ids;
        ASSERT_OK(decode(PLUGIN_REQUEST_PRESTART, &m.base, &request, &fault));
        ASSERT_INT(request.n_ids, 3);
        plugin_message_request_done(&request);
        m.n_devices_ids = 0;
        ASSERT_INT(decode(PLUGIN_REQUEST_PRESTART, &m.base, &request, &fault), PLUGIN_REQUEST_E_REFUSED);
}

static void assert_refused(PluginRequestKind kind, Str message, const char *why) {
        PluginRequest request = {.size = 42};
        Fault fault = FAULT_NULL;

        ASSERT_INT(plugin_message_decode_request(kind, message, &request, &fault), PLUGIN_REQUEST_E_REFUSED);
        ASSERT_CONTAINS(fault.text, why);
        ASSERT_INT(request.size, 42);
        ASSERT_TRUE(!request.ids);
}

static void refuses_hostile_requests(void) {
        assert_refused(PLUGIN_REQUEST_PRESTART, STR("\x0a\x00"), "an empty device ID");
        assert_refused(PLUGIN_REQUEST_PRESTART, STR("\x0a\x7f"), "it is cut off");
        assert_refused(PLUGIN_REQUEST_PRESTART, STR("\x08\x01"), "the wrong type");
        assert_refused(PLUGIN_REQUEST_ALLOCATE, STR("\x08\x01"), "the wrong type");
        assert_refused(PLUGIN_REQUEST_ALLOCATE, STR("\x0a\x02\x0a\x05"), "it is cut off");
        assert_refused(PLUGIN_REQUEST_PREFERRED, STR("\x0a\x02\x1a\x00"), "the wrong type");
        assert_refused(PLUGIN_REQUEST_PREFERRED, STR("\x0a\x06\x18\xff\xff\xff\xff\x0f"),
                       "does not fit into 32 bits");
        assert_refused(PLUGIN_REQUEST_PREFERRED, (Str){0}, "0 containers");
}

/* A zero byte does not end an ID. */
static void keeps_bytes(void) {
        PluginRequest request = PLUGIN_REQUEST_NULL;

        ASSERT_OK(plugin_message_decode_request(PLUGIN_REQUEST_PRESTART,
                                                STR("\x0a\x05"
                                                    "0-1\0x"),
                                                &request, NULL));
        ASSERT_STR(request.ids[0], STR("0-1\0x"));
        plugin_message_request_done(&request);
}

int main(void) {
        return TEST_MAIN(TEST(registers), TEST(lists_devices), TEST(the_limit_is_the_kubelets),
                         TEST(reads_preferred), TEST(reads_allocate), TEST(reads_prestart),
                         TEST(refuses_hostile_requests), TEST(keeps_bytes));
}
