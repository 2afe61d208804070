/* SPDX-License-Identifier: Apache-2.0 */

/* Each allocation of our code fails once. The result must be -ENOMEM without any change, and the
 * leak sanitizer must find no leak. The linker replaces malloc and its kin; allocations inside libc
 * and libsystemd do not fail. */

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failing.h"
#include "node/kubelet/checkpoint.h"
#include "node/kubelet/plugin.h"
#include "node/kubelet/pod_resources.h"

static int decode_checkpoint(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Checkpoint c = {.n = 77};
        int r = checkpoint_decode(
                STR("{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"u\",\"ContainerName\":\"\\u0063\","
                    "\"ResourceName\":\"aliyun.com/x\",\"DeviceIDs\":{\"-1\":[\"a\",\"b\"]}}]}}"),
                STR("aliyun.com/"), &arena, &c, NULL);

        ASSERT_INT(c.n, r == 0 ? 1 : 77);
        return r;
}

static int decode_list(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        PodList list = {.n = 77};
        int r = pod_list_decode(STR("\x0a\x1f\x0a\x01p\x12\x01n\x1a\x17\x0a\x01"
                                    "c\x12\x12\x0a\x0c"
                                    "aliyun.com/x\x12\x02id"),
                                STR("aliyun.com/"), &arena, &list, NULL);

        ASSERT_INT(list.n, r == 0 ? 1 : 77);
        return r;
}

static int decode_request(void) {
        PluginRequest request = {.size = 77};
        int r = plugin_message_decode_request(PLUGIN_REQUEST_PREFERRED,
                                              STR("\x0a\x0c\x0a\x03"
                                                  "0-1\x12\x03"
                                                  "0-1\x18\x01"),
                                              &request, NULL);

        ASSERT_INT(request.size, r == 0 ? 1 : 77);
        if (r == 0)
                plugin_message_request_done(&request);
        return r;
}

static void decoders(void) {
        failing_each(decode_checkpoint);
        failing_each(decode_list);
        failing_each(decode_request);
}

static sd_event *event;
static char directory[40];

static int make_plugin(void) {
        static const PluginDevice device = {"0-1", true};
        static const PluginHandler handler = {0};
        PluginOptions options = {
                .kubelet_dir = directory, .resource = "aliyun.com/gpu-mem", .endpoint = "a.sock"};
        _cleanup_(plugin_freep) Plugin *p = NULL;
        Fault fault = FAULT_NULL;
        int r = plugin_new(event, &options, &handler, NULL, &p, &fault);

        if (r < 0) {
                ASSERT_TRUE(!p && fault.text[0]);
                return r;
        }
        return plugin_set_devices(p, &device, 1);
}

static void never(void *userdata, const PodList *list, const Fault *fault) {
        ASSERT_TRUE(false);
}

static int make_resources(void) {
        _cleanup_(pod_resources_freep) PodResources *p = NULL;
        int r = pod_resources_new(event, directory, STR("aliyun.com/"), &p);

        if (r < 0) {
                ASSERT_TRUE(!p);
                return r;
        }
        r = pod_resources_list(p, 0, never, NULL, NULL);
        if (r == 0 && countdown == 0)
                return -ENOMEM; /* the List failed to begin: it is repeated from the loop */
        return r;
}

static void objects(void) {
        char plugins[64];

        (void) snprintf(directory, sizeof directory, "/tmp/aliquot-no-memory-XXXXXX");
        ASSERT_TRUE(mkdtemp(directory) != NULL);
        (void) snprintf(plugins, sizeof plugins, "%s/device-plugins", directory);
        ASSERT_OK(mkdir(plugins, 0700));
        ASSERT_TRUE(sd_event_new(&event) >= 0);
        failing_each(make_plugin);
        failing_each(make_resources);
        event = sd_event_unref(event);
        ASSERT_OK(rmdir(plugins)); /* no socket is left */
        ASSERT_OK(rmdir(directory));
}

int main(void) {
        return TEST_MAIN(TEST(decoders), TEST(objects));
}
