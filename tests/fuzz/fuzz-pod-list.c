/* SPDX-License-Identifier: Apache-2.0 */

/* Any bytes as an answer of PodResources: an accepted one is complete and within its limits. */

#include <assert.h>

#include "node/kubelet/allocatable.h"
#include "node/kubelet/pod_resources.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t check_container(const ListedContainer *c, uint64_t sum) {
        assert(c->name.len > 0);
        for (size_t i = 0; i < c->n_devices; i++) {
                assert(str_has_prefix(c->devices[i].resource, STR("aliyun.com/")));
                for (size_t k = 0; k < i; k++)
                        /* Merged. */
                        assert(!str_eq(c->devices[k].resource, c->devices[i].resource));
                for (size_t k = 0; k < c->devices[i].n; k++) {
                        assert(c->devices[i].ids[k].len > 0);
                        sum = str_hash64(c->devices[i].ids[k], sum); /* every byte can be read */
                }
        }
        return sum;
}

static void check_allocatable(Str message) {
        Fault fault = FAULT_NULL;
        size_t n = SIZE_MAX;
        int r = allocatable_count(message, STR("aliyun.com/gpu-mem"), &n, &fault);

        assert(r == 0 ? n <= message.len
                      : r == ALLOCATABLE_E_MALFORMED && n == SIZE_MAX && fault.text[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Fault fault = FAULT_NULL;
        uint64_t sum = 0;
        PodList list;
        int r;

        r = pod_list_decode((Str){(const char *) data, size}, STR("aliyun.com/"), &arena, &list, &fault);
        assert(r == 0 || (r == PODLIST_E_MALFORMED && fault.text[0] != '\0'));
        for (size_t i = 0; r == 0 && i < list.n; i++) {
                assert(list.pods[i].name.len > 0 && list.pods[i].namespace_.len > 0);
                for (size_t k = 0; k < list.pods[i].n_containers; k++)
                        sum = check_container(&list.pods[i].containers[k], sum);
        }
        check_allocatable((Str){(const char *) data, size});
        __asm__ volatile("" : : "r"(sum));
        return 0;
}
