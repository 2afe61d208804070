/* SPDX-License-Identifier: Apache-2.0 */

/* Any text as a pod, as a node and as the kind that it names. An accepted one is JSON, within the
 * limits, and every view in it can be read. A refusal has a sentence and leaves the result
 * alone. */

#include <assert.h>

#include "wire/allocation.h"
#include "wire/annotation.h"
#include "wire/json.h"
#include "wire/node.h"
#include "wire/pod.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_json(Str text) {
        JsonReader r;

        json_init(&r, text);
        json_skip(&r);
        return json_finish(&r, NULL) == 0;
}

static void assert_answer(int r, const Fault *fault, Str text) {
        assert(r == 0 || r == OBJECT_E_MALFORMED);
        assert(r == 0 ? is_json(text) : fault->text[0] != '\0');
}

static void touch(Str s) {
        assert(s.len == 0 || str_hash64(s, 0) != 1);
}

static void check_pod(const Pod *pod, Arena *arena) {
        Allocation a;

        touch(pod->meta.name);
        touch(pod->meta.controller_uid);
        touch(pod->node_name);
        assert(pod->n_containers <= 2 * (CONTAINER_INDEX_MAX + 1));
        for (size_t i = 0; i < pod->n_containers; i++) {
                const PodContainer *c = &pod->containers[i];

                touch(c->name);
                touch(c->gpu_mem.text);
                assert(c->gpu_mem.present || c->gpu_mem.text.len == 0);
        }
        /* It must not crash. */
        (void) allocation_parse(pod->annotations.allocation, arena, &a, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Str text = {(const char *) data, size}, kind = {NULL, 0};
        Fault fault = FAULT_NULL;
        Pod pod = {.n_containers = 77};
        Node node = {.meta.terminating = true};
        int r;

        r = pod_decode(text, &arena, &pod, &fault);
        assert_answer(r, &fault, text);
        if (r == 0)
                check_pod(&pod, &arena);
        else
                assert(pod.n_containers == 77);
        fault = FAULT_NULL;
        r = node_decode(text, &arena, &node, &fault);
        assert_answer(r, &fault, text);
        touch(node.internal_ip);
        touch(node.allocatable_mem);
        r = object_kind(text, &arena, &kind, NULL);
        assert(r == 0 || r == OBJECT_E_MALFORMED);
        touch(kind);
        return 0;
}
