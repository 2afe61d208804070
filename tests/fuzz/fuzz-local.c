/* SPDX-License-Identifier: Apache-2.0 */
/* Any object as a workload, a node and a pod. Manifests of users arrive here, and the API server
 * validates them only in parts. No text may crash the program, and a refusal has a sentence. */

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "local/pod_environment.h"
#include "local/predicates.h"
#include "local/simulated_node.h"
#include "local/workload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Large counts are legal, and would be all that the fuzzer measures. */
static bool is_small(const json_t *object) {
        static const char *const counts[] = {"replicas", "parallelism", "completions"};

        for (size_t i = 0; i < ELEMENTSOF(counts); i++)
                if (json_integer_value(tree_at(object, "spec", counts[i], NULL)) > 64)
                        return false;
        return true;
}

static void as_workload(json_t *object) {
        const char *kind = tree_text(object, "kind", NULL);
        _cleanup_json_ json_t *pods = json_array(), *nodes = json_pack("[O]", object);
        Fault fault = FAULT_NULL;
        int r;

        if (!kind || !tree_text(object, "apiVersion", NULL) ||
            !workload_is(tree_text(object, "apiVersion", NULL), kind) || !is_small(object) ||
            !json_is_object(json_object_get(object, "metadata")))
                return;
        r = workload_expand(object, nodes, pods, &fault);
        assert(r <= 0 || *fault.text);
}

static void as_node(json_t *object) {
        Fault fault = FAULT_NULL;
        int r;

        r = simulated_node_complete(object, &fault);
        assert(r <= 0 || *fault.text);
}

static void as_pod(json_t *object) {
        _cleanup_json_ json_t *used = json_object();
        _cleanup_variables_ Variables v = VARIABLES_NULL;
        _cleanup_buf_ Buf text = BUF_NULL;
        BoundPod place = {object, object};
        bool passed;

        (void) predicates_is_managed(object);
        (void) predicates_charge(used, object);
        passed = predicates_pass(object, object, used, &text);
        assert(passed == (text.len == 0));
        if (tree_text(object, "metadata", "name", NULL))
                (void) pod_environment_make(&place,
                                            json_array_get(tree_at(object, "spec", "containers", NULL), 0),
                                            CONTAINER_MAIN, 0, &v, &text);
        pod_environment_print(&v, &text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_json_ json_t *object = json_loadb((const char *) data, size, 0, NULL);

        if (!json_is_object(object))
                return 0;
        as_pod(object);
        as_workload(object);
        as_node(object);
        return 0;
}
