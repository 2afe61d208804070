/* SPDX-License-Identifier: Apache-2.0 */

/* Any text as a checkpoint: an accepted one is complete, of our resources, and points into the text
 * or the arena. */

#include <assert.h>

#include "node/kubelet/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Str text = {(const char *) data, size};
        Fault fault = FAULT_NULL;
        Checkpoint c;
        int r = checkpoint_decode(text, STR("aliyun.com/"), &arena, &c, &fault);
        uint64_t sum = 0;

        assert(r == 0 || (r == CHECKPOINT_E_MALFORMED && fault.text[0] != '\0'));
        for (size_t i = 0; r == 0 && i < c.n; i++) {
                const CheckpointEntry *e = &c.entries[i];

                assert(e->pod_uid.len > 0 && e->container.len > 0);
                assert(str_has_prefix(e->resource, STR("aliyun.com/")));
                sum = str_hash64(e->pod_uid, str_hash64(e->container, sum));
                for (size_t k = 0; k < e->n; k++) {
                        assert(e->ids[k].len > 0);
                        sum = str_hash64(e->ids[k], sum); /* every byte can be read */
                }
        }
        __asm__ volatile("" : : "r"(sum));
        return 0;
}
