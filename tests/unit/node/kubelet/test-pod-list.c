/* SPDX-License-Identifier: Apache-2.0 */

/* protobuf-c makes the messages from the published definitions. */

#include "node/kubelet/allocatable.h"
#include "node/kubelet/pod_resources.h"
#include "test.h"
#include "wire/proto/podresources.pb-c.h"

#define PREFIX STR("aliyun.com/")

static char *text(const char *s) {
        return (char *) (uintptr_t) s; /* protobuf-c lacks const; packing only reads */
}

/* ---- the other call ---- */

static void counts_allocatable_devices(void) {
        static const uint8_t two[] = "\x0a\x19\x0a\x12"
                                     "aliyun.com/gpu-mem"
                                     "\x12\x03"
                                     "0-0"
                                     "\x0a\x19\x0a\x12"
                                     "aliyun.com/gpu-mem"
                                     "\x12\x03"
                                     "0-1"
                                     "\x0a\x0b\x0a\x05"
                                     "a.b/c"
                                     "\x12\x02"
                                     "x0"
                                     "\x10\x05";
        Str message = {(const char *) two, sizeof two - 1};
        Fault fault = FAULT_NULL;
        size_t n = 7;

        ASSERT_OK(allocatable_count(message, STR("aliyun.com/gpu-mem"), &n, &fault));
        ASSERT_INT(n, 2);
        ASSERT_OK(allocatable_count(message, STR("a.b/c"), &n, &fault));
        ASSERT_INT(n, 1);
        ASSERT_OK(allocatable_count((Str){0}, STR("a.b/c"), &n, &fault));
        ASSERT_INT(n, 0);
        n = 7;
        for (size_t cut = 1; cut < 27; cut++)
                ASSERT_INT(allocatable_count((Str){message.data, cut}, STR("a.b/c"), &n, &fault),
                           ALLOCATABLE_E_MALFORMED);
        ASSERT_INT(n, 7);
}

/* ---- building ---- */

typedef struct Builder {
        Arena arena;
        V1__ListPodResourcesResponse list;
        V1__PodResources *pod;
        V1__ContainerResources *container;
} Builder;

static void add(Builder *b, void ***list, size_t *n, void *element) {
        void **longer = arena_new(&b->arena, void *, *n + 1);

        ASSERT_TRUE(longer);
        if (*n > 0)
                memcpy(longer, *list, *n * sizeof(void *));
        longer[(*n)++] = element;
        *list = longer;
}

static void builder_begin(Builder *b) {
        *b = (Builder){.arena = ARENA_NULL};
        v1__list_pod_resources_response__init(&b->list);
}

static void builder_pod(Builder *b, const char *namespace, const char *name) {
        b->pod = arena_new(&b->arena, V1__PodResources, 1);
        v1__pod_resources__init(b->pod);
        b->pod->namespace_ = text(namespace);
        b->pod->name = text(name);
        add(b, (void ***) &b->list.pod_resources, &b->list.n_pod_resources, b->pod);
}

static void builder_container(Builder *b, const char *name) {
        b->container = arena_new(&b->arena, V1__ContainerResources, 1);
        v1__container_resources__init(b->container);
        b->container->name = text(name);
        add(b, (void ***) &b->pod->containers, &b->pod->n_containers, b->container);
}

/* One entry with n IDs and the NUMA node that the kubelet writes. */
static void builder_devices(Builder *b, const char *resource, const char *const *ids, size_t n) {
        V1__ContainerDevices *d = arena_new(&b->arena, V1__ContainerDevices, 1);
        V1__NUMANode *node = arena_new(&b->arena, V1__NUMANode, 1);
        V1__NUMANode **nodes = arena_new(&b->arena, V1__NUMANode *, 1);

        v1__container_devices__init(d);
        v1__numanode__init(node);
        d->resource_name = text(resource);
        d->device_ids = (char **) (uintptr_t) ids;
        d->n_device_ids = n;
        d->topology = arena_new(&b->arena, V1__TopologyInfo, 1);
        v1__topology_info__init(d->topology);
        node->id = 1;
        nodes[0] = node;
        d->topology->nodes = nodes;
        d->topology->n_nodes = 1;
        add(b, (void ***) &b->container->devices, &b->container->n_devices, d);
}

static Str builder_message(Builder *b) {
        size_t n = v1__list_pod_resources_response__get_packed_size(&b->list);
        uint8_t *bytes = arena_new(&b->arena, uint8_t, n);

        ASSERT_INT(v1__list_pod_resources_response__pack(&b->list, bytes), n);
        return (Str){(const char *) bytes, n};
}

static int builder_decode(Builder *b, PodList *ret, Fault *fault) {
        return pod_list_decode(builder_message(b), PREFIX, &b->arena, ret, fault);
}

/* ---- tests ---- */

static const char *const some[] = {"0-1", "0-2", "3-10"};

/* The kubelet writes one entry per ID. */
static void merges_entries(void) {
        Builder b;
        PodList list;

        builder_begin(&b);
        builder_pod(&b, "team", "first");
        builder_container(&b, "main");
        builder_devices(&b, "aliyun.com/gpu-mem", &some[0], 1);
        builder_devices(&b, "aliyun.com/gpu-core.percentage", &some[2], 1);
        builder_devices(&b, "aliyun.com/gpu-mem", &some[1], 1);
        builder_devices(&b, "example.com/other", some, 3);
        builder_container(&b, "side");
        builder_pod(&b, "default", "second");
        ASSERT_OK(builder_decode(&b, &list, NULL));
        ASSERT_INT(list.n, 2);
        ASSERT_STR(list.pods[0].namespace_, STR("team"));
        ASSERT_STR(list.pods[0].name, STR("first"));
        ASSERT_INT(list.pods[0].n_containers, 2);
        ASSERT_STR(list.pods[0].containers[0].name, STR("main"));
        ASSERT_INT(list.pods[0].containers[0].n_devices, 2);
        ASSERT_STR(list.pods[0].containers[0].devices[0].resource, STR("aliyun.com/gpu-mem"));
        ASSERT_INT(list.pods[0].containers[0].devices[0].n, 2);
        ASSERT_STR(list.pods[0].containers[0].devices[0].ids[1], STR("0-2"));
        ASSERT_STR(list.pods[0].containers[0].devices[1].ids[0], STR("3-10"));
        ASSERT_INT(list.pods[0].containers[1].n_devices, 0); /* a container during its admission has none */
        ASSERT_INT(list.pods[1].n_containers, 0);
        arena_done(&b.arena);
}

static void an_empty_list_is_valid(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        PodList list = {.n = 42};

        ASSERT_OK(pod_list_decode((Str){0}, PREFIX, &arena, &list, NULL));
        ASSERT_INT(list.n, 0);
}

/* cpu_ids, memory, dynamic_resources: fields 3 to 5 of a container. */
static void ignores_other_fields(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        PodList list;

        ASSERT_OK(pod_list_decode(STR("\x0a\x17\x0a\x01p\x12\x01n\x1a\x0f\x0a\x01"
                                      "c\x1a\x02\x01\x02\x22\x02\x0a\x00\x2a\x02\x0a\x00"),
                                  PREFIX, &arena, &list, NULL));
        ASSERT_INT(list.n, 1);
        ASSERT_STR(list.pods[0].containers[0].name, STR("c"));
}

static void assert_refused(Str message, const char *why) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        PodList list = {.n = 42};
        Fault fault = FAULT_NULL;

        ASSERT_INT(pod_list_decode(message, PREFIX, &arena, &list, &fault), PODLIST_E_MALFORMED);
        ASSERT_CONTAINS(fault.text, why);
        ASSERT_INT(list.n, 42);
}

static void refuses_other_texts(void) {
        assert_refused(STR("\x0a\x00"), "a pod without name or namespace");
        assert_refused(STR("\x0a\x03\x0a\x01p"), "a pod without name or namespace");
        assert_refused(STR("\x0a\x08\x0a\x01p\x12\x01n\x1a\x00"), "a container without a name");
        assert_refused(STR("\x08\x01"), "wrong type");
        assert_refused(STR("\x0a\x05\x08\x01\x12\x01n"), "wrong type");
        assert_refused(STR("\x0a"), "cut off");
        assert_refused(STR("PRI * HTTP/2.0"), "");
}

static void every_truncation_is_refused_or_shorter(void) {
        Builder b;
        PodList list;
        Str whole;

        builder_begin(&b);
        builder_pod(&b, "team", "first");
        builder_container(&b, "main");
        builder_devices(&b, "aliyun.com/gpu-mem", some, 3);
        whole = builder_message(&b);
        for (size_t len = 1; len < whole.len; len++)
                ASSERT_INT(pod_list_decode((Str){whole.data, len}, PREFIX, &b.arena, &list, NULL),
                           PODLIST_E_MALFORMED);
        arena_done(&b.arena);
}

static int decode_resources(unsigned n, Fault *fault) {
        Builder b;
        PodList list;
        int r;

        builder_begin(&b);
        builder_pod(&b, "n", "p");
        builder_container(&b, "c");
        for (unsigned i = 0; i < n; i++) {
                char *name = arena_new(&b.arena, char, 32);

                (void) snprintf(name, 32, "aliyun.com/r%u", i);
                builder_devices(&b, name, some, 1);
        }
        r = builder_decode(&b, &list, fault);
        arena_done(&b.arena);
        return r;
}

static int decode_ids(size_t n, Fault *fault) {
        Builder b;
        PodList list;
        const char **ids;
        int r;

        builder_begin(&b);
        ids = arena_new(&b.arena, const char *, n);
        for (size_t i = 0; i < n; i++)
                ids[i] = "x";
        builder_pod(&b, "n", "p");
        builder_container(&b, "c");
        builder_devices(&b, "aliyun.com/gpu-mem", ids, n);
        r = builder_decode(&b, &list, fault);
        if (r == 0)
                ASSERT_INT(list.pods[0].containers[0].devices[0].n, n);
        arena_done(&b.arena);
        return r;
}

static void a_list_beyond_a_limit_is_refused(void) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Fault fault = FAULT_NULL;
        char *pods = arena_new(&arena, char, 2 * 16385);

        ASSERT_OK(decode_resources(32, &fault));
        ASSERT_INT(decode_resources(33, &fault), PODLIST_E_MALFORMED);
        ASSERT_CONTAINS(fault.text, "more than 32 resources");
        ASSERT_OK(decode_ids(600000, &fault));
        ASSERT_INT(decode_ids(600001, &fault), PODLIST_E_MALFORMED);
        ASSERT_CONTAINS(fault.text, "more than 600000 device IDs");
        for (size_t i = 0; i < 16385; i++)
                pods[2 * i] = '\x0a';
        assert_refused((Str){pods, 2 * 16384}, "a pod without name");
        assert_refused((Str){pods, 2 * 16385}, "more than 16384 pods");
}

static void empty_ids_are_refused(void) {
        static const char *const empty[] = {""};
        Fault fault = FAULT_NULL;
        PodList list;
        Builder b;

        builder_begin(&b);
        builder_pod(&b, "n", "p");
        builder_container(&b, "c");
        builder_devices(&b, "aliyun.com/gpu-mem", empty, 1);
        ASSERT_INT(builder_decode(&b, &list, &fault), PODLIST_E_MALFORMED);
        ASSERT_CONTAINS(fault.text, "an empty device ID");
        arena_done(&b.arena);
}

int main(void) {
        return TEST_MAIN(TEST(merges_entries), TEST(an_empty_list_is_valid), TEST(ignores_other_fields),
                         TEST(refuses_other_texts), TEST(every_truncation_is_refused_or_shorter),
                         TEST(a_list_beyond_a_limit_is_refused), TEST(empty_ids_are_refused),
                         TEST(counts_allocatable_devices));
}
