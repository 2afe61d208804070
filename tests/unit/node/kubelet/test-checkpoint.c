/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>

#include "base/buf.h"
#include "node/kubelet/checkpoint.h"
#include "test.h"

#define PREFIX STR("aliyun.com/")

/* As written by kubelet 1.36, with other IDs. */
static const char sample[] =
        "{\"Data\":{\"PodDeviceEntries\":["
        "{\"PodUID\":\"77a3218c-5bd1-4b52-9d7e-2c86d8f1a001\",\"ContainerName\":\"c\","
        "\"ResourceName\":\"aliyun.com/gpu-mem\",\"DeviceIDs\":{\"-1\":[\"3-10\",\"3-11\"]},"
        "\"AllocResp\":\"Cg0KA0ZPTxIGYmFyPT0=\"},"
        "{\"PodUID\":\"77a3218c-5bd1-4b52-9d7e-2c86d8f1a001\",\"ContainerName\":\"c\","
        "\"ResourceName\":\"example.com/other\",\"DeviceIDs\":{\"0\":[\"x\"]},\"AllocResp\":null},"
        "{\"PodUID\":\"0f\",\"ContainerName\":\"ini\",\"ResourceName\":\"aliyun.com/gpu-core.percentage\","
        "\"DeviceIDs\":{\"0\":[\"0C-1\"],\"1\":[\"1C-1\",\"1C_2\"]},\"AllocResp\":\"\"}],"
        "\"RegisteredDevices\":{\"aliyun.com/gpu-mem\":[\"0-0\",\"0-1\"]}},\"Checksum\":1742113923}";

static Checkpoint decoded(const char *json, Arena *arena) {
        Fault fault = FAULT_NULL;
        Checkpoint c;
        int r = checkpoint_decode(str_from(json), PREFIX, arena, &c, &fault);

        if (r != 0)
                TEST_FAIL_("%s: %s", json, fault.text);
        return c;
}

static void assert_refused(const char *json, const char *why) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Checkpoint c = {.n = 42};
        Fault fault = FAULT_NULL;

        ASSERT_INT(checkpoint_decode(str_from(json), PREFIX, &arena, &c, &fault), CHECKPOINT_E_MALFORMED);
        ASSERT_CONTAINS(fault.text, why);
        ASSERT_INT(c.n, 42);
}

static void reads_entries(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Checkpoint c = decoded(sample, &arena);

        ASSERT_INT(c.n, 2);
        ASSERT_STR(c.entries[0].pod_uid, STR("77a3218c-5bd1-4b52-9d7e-2c86d8f1a001"));
        ASSERT_STR(c.entries[0].container, STR("c"));
        ASSERT_STR(c.entries[0].resource, STR("aliyun.com/gpu-mem"));
        ASSERT_INT(c.entries[0].n, 2);
        ASSERT_STR(c.entries[0].ids[0], STR("3-10"));
        ASSERT_STR(c.entries[0].ids[1], STR("3-11"));
        ASSERT_STR(c.entries[1].container, STR("ini"));
        ASSERT_INT(c.entries[1].n, 3); /* of both NUMA nodes */
        ASSERT_STR(c.entries[1].ids[2], STR("1C_2"));
}

static void reads_the_old_form(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Checkpoint c = decoded("{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"u\",\"ContainerName\":\"c\","
                               "\"ResourceName\":\"aliyun.com/gpu-mem\",\"DeviceIDs\":[\"a\",\"b\"]}]}}",
                               &arena);

        ASSERT_INT(c.n, 1);
        ASSERT_INT(c.entries[0].n, 2);
        ASSERT_STR(c.entries[0].ids[1], STR("b"));
}

static void members_may_have_any_order(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Checkpoint c =
                decoded("{\"Checksum\":1,\"Data\":{\"PodDeviceEntries\":[{\"DeviceIDs\":{\"-1\":[\"a\"]},"
                        "\"ResourceName\":\"x.com/y\",\"ContainerName\":\"c\",\"PodUID\":\"u\"},"
                        "{\"DeviceIDs\":{\"-1\":[\"\\u0062\"]},\"ResourceName\":\"aliyun.com/y\","
                        "\"ContainerName\":\"c\",\"PodUID\":\"u\"}]}}",
                        &arena);

        ASSERT_INT(c.n, 1);
        ASSERT_INT(c.entries[0].n, 1);
        ASSERT_STR(c.entries[0].ids[0], STR("b"));
}

static void an_empty_list_is_valid(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;

        ASSERT_INT(decoded("{\"Data\":{\"PodDeviceEntries\":null,\"RegisteredDevices\":{}},\"Checksum\":0}",
                           &arena)
                           .n,
                   0);
        ASSERT_INT(decoded("{\"Data\":{\"PodDeviceEntries\":[]}}", &arena).n, 0);
        ASSERT_INT(decoded("{\"Data\":{}}", &arena).n, 0);
}

static void refuses_other_texts(void) {
        assert_refused("", "");
        assert_refused("null", "no member \"Data\"");
        assert_refused("{}", "no member \"Data\"");
        assert_refused("[]", "not an object");
        assert_refused("{\"Data\":[]}", "Data: not an object");
        assert_refused("{\"Data\":{\"PodDeviceEntries\":{}}}", "not an array");
        assert_refused("{\"Data\":{\"PodDeviceEntries\":[{}]}}",
                       "an entry without pod UID, container or resource");
        assert_refused("{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":1}]}}",
                       "PodDeviceEntries[0].PodUID: not a string");
        assert_refused("{\"Data\":{\"PodDeviceEntries\":[{\"DeviceIDs\":{\"-1\":[1]}}]}}", "not a string");
        assert_refused("{\"Data\":{\"PodDeviceEntries\":[{\"DeviceIDs\":{\"-1\":[\"\"]}}]}}",
                       "an empty device ID");
        assert_refused("{\"Data\":{\"PodDeviceEntries\":[{\"DeviceIDs\":\"a\"}]}}", "not an object");
        assert_refused("{\"Data\":{}}x", "");
}

static void every_truncation_is_malformed(void) {
        for (size_t len = 0; len < sizeof sample - 1; len++) {
                _cleanup_arena_ Arena arena = ARENA_NULL;
                Checkpoint c;

                ASSERT_INT(checkpoint_decode((Str){sample, len}, PREFIX, &arena, &c, NULL),
                           CHECKPOINT_E_MALFORMED);
        }
}

static void write_entries(Buf *b, size_t entries, size_t ids) {
        buf_append_str(b, STR("{\"Data\":{\"PodDeviceEntries\":["));
        for (size_t i = 0; i < entries; i++) {
                buf_appendf(b,
                            "%s{\"PodUID\":\"u%zu\",\"ContainerName\":\"c\",\"ResourceName\":\"aliyun.com/"
                            "gpu-mem\","
                            "\"DeviceIDs\":{\"-1\":[",
                            i > 0 ? "," : "", i);
                for (size_t k = 0; k < ids; k++)
                        buf_append_str(b, k > 0 ? STR(",\"0-1\"") : STR("\"0-1\""));
                buf_append_str(b, STR("]}}"));
        }
        buf_append_str(b, STR("]}}"));
        ASSERT_OK(buf_result(b));
}

static int decode_entries(size_t entries, size_t ids, Fault *fault) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf b = BUF_NULL;
        Checkpoint c;
        int r;

        write_entries(&b, entries, ids);
        r = checkpoint_decode(buf_str(&b), PREFIX, &arena, &c, fault);
        if (r == 0)
                ASSERT_INT(c.n, entries);
        return r;
}

static void a_checkpoint_beyond_a_limit_is_malformed(void) {
        Fault fault = FAULT_NULL;

        ASSERT_OK(decode_entries(2, 500000, &fault));
        ASSERT_INT(decode_entries(2, 500001, &fault), CHECKPOINT_E_MALFORMED);
        ASSERT_CONTAINS(fault.text, "more than 1000000 device IDs");
        ASSERT_OK(decode_entries(65536, 1, &fault));
        ASSERT_INT(decode_entries(65537, 1, &fault), CHECKPOINT_E_MALFORMED);
        ASSERT_CONTAINS(fault.text, "more than 65536 entries");
}

static void loads_files(void) {
        char dir[] = "/tmp/aliquot-checkpoint-XXXXXX", path[64];
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Fault fault = FAULT_NULL;
        Checkpoint c;
        int fd;

        ASSERT_TRUE(mkdtemp(dir) != NULL);
        (void) snprintf(path, sizeof path, "%s/f", dir);
        ASSERT_INT(checkpoint_load(path, PREFIX, &arena, &c, &fault), CHECKPOINT_E_NONE);
        ASSERT_CONTAINS(fault.text, path);
        ASSERT_TRUE(checkpoint_load(dir, PREFIX, &arena, &c, &fault) < 0);
        fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ASSERT_INT(write(fd, sample, sizeof sample - 1), sizeof sample - 1);
        ASSERT_OK(checkpoint_load(path, PREFIX, &arena, &c, &fault));
        ASSERT_STR(c.entries[1].container, STR("ini"));
        ASSERT_OK(ftruncate(fd, 100));
        ASSERT_INT(checkpoint_load(path, PREFIX, &arena, &c, &fault), CHECKPOINT_E_MALFORMED);
        ASSERT_CONTAINS(fault.text, path);
        ASSERT_OK(ftruncate(fd, 64 * 1024 * 1024 + 1)); /* a hole */
        ASSERT_TRUE(checkpoint_load(path, PREFIX, &arena, &c, &fault) < 0);
        ASSERT_OK(close(fd));
        ASSERT_OK(unlink(path));
        ASSERT_OK(rmdir(dir));
}

/* Replaces the file as the kubelet does: a new file and a rename. */
static void replace_file(const char *dir, const char *path, const char *text, size_t size) {
        char draft[64];
        int fd;

        (void) snprintf(draft, sizeof draft, "%s/draft", dir);
        fd = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        ASSERT_INT(write(fd, text, size), size);
        ASSERT_OK(close(fd));
        ASSERT_OK(rename(draft, path));
}

static void reads_only_a_changed_file_again(void) {
        char dir[] = "/tmp/aliquot-checkpoint-XXXXXX", path[64];
        static const char other[] =
                "{\"Data\":{\"PodDeviceEntries\":null,\"RegisteredDevices\":{}},\"Checksum\":1}";
        const Checkpoint *first, *second;
        CheckpointFile file = {.path = path, .prefix = PREFIX};
        Fault fault = FAULT_NULL;

        ASSERT_TRUE(mkdtemp(dir) != NULL);
        (void) snprintf(path, sizeof path, "%s/f", dir);
        ASSERT_INT(checkpoint_file_look(&file, &first, &fault), CHECKPOINT_E_NONE);
        replace_file(dir, path, sample, sizeof sample - 1);
        ASSERT_OK(checkpoint_file_look(&file, &first, &fault));
        ASSERT_STR(first->entries[1].container, STR("ini"));
        first->entries[1].container = STR("seen");
        ASSERT_OK(checkpoint_file_look(&file, &second, &fault));
        ASSERT_STR(second->entries[1].container, STR("seen"));
        replace_file(dir, path, sample, sizeof sample - 1);
        ASSERT_OK(checkpoint_file_look(&file, &second, &fault));
        ASSERT_STR(second->entries[1].container, STR("ini"));
        replace_file(dir, path, other, sizeof other - 1);
        ASSERT_OK(checkpoint_file_look(&file, &second, &fault));
        ASSERT_INT(second->n, 0);
        checkpoint_file_done(&file);
        ASSERT_OK(checkpoint_file_look(&file, &second, &fault));
        ASSERT_OK(unlink(path));
        ASSERT_INT(checkpoint_file_look(&file, &second, &fault), CHECKPOINT_E_NONE);
        ASSERT_OK(rmdir(dir));
}

int main(void) {
        return TEST_MAIN(TEST(reads_entries), TEST(reads_the_old_form), TEST(members_may_have_any_order),
                         TEST(an_empty_list_is_valid), TEST(refuses_other_texts),
                         TEST(every_truncation_is_malformed), TEST(a_checkpoint_beyond_a_limit_is_malformed),
                         TEST(loads_files), TEST(reads_only_a_changed_file_again));
}
