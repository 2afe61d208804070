/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/uvm_call.h"

#include <errno.h>

#include "preload/memory/managed.h"

enum { GPUS_FEW = 32 /* length of a list of cards before 550 */ };

size_t uvm_call_copy_in(const UvmCall *u, uint8_t *to, size_t n) {
        size_t done = 0, least = 1;

        while (done < n && least > 0) {
                uint64_t from = u->argument + done;
                size_t piece = 4096 - (size_t) (from & 4095);

                piece = piece < n - done ? piece : n - done;
                least = usermem_read_some(to + done, from, piece);
                done += least;
        }
        return done;
}

long uvm_call_answer(const UvmCall *u, size_t at, uint32_t status) {
        return usermem_write(u->argument + at, &status, sizeof status) < 0 ? -EFAULT : 0;
}

/* Finds the length of the list, which depends on the release. A call without addresses does
 * nothing, and shows where the driver writes its status. */
uint32_t uvm_call_gpus(const UvmCall *u) {
        uint32_t gpus = atomic_load_explicit(&u->g->maps.gpus, memory_order_relaxed);
        uint8_t params[sizeof(UvmMapExternal)] __attribute__((aligned(8))) = {0};
        const size_t at = offsetof(UvmMapExternal, status);

        if (gpus != 0)
                return gpus;
        put32(params + at, UVM_NO_ANSWER);
        put32(params + at - uvm_call_shorter(GPUS_FEW), UVM_NO_ANSWER);
        if (gate_driver(u->fd, UVM_MAP_EXTERNAL_CMD, params) < 0)
                return 0;
        if (get32(params + at) != UVM_NO_ANSWER)
                gpus = UVM_GPUS_MAX;
        else if (get32(params + at - uvm_call_shorter(GPUS_FEW)) != UVM_NO_ANSWER)
                gpus = GPUS_FEW;
        atomic_store_explicit(&u->g->maps.gpus, gpus, memory_order_relaxed);
        return gpus;
}

uint8_t uvm_call_card(const UvmCall *u, const uint8_t *uuid) {
        int card = gate_card_by_uuid(u->g, uuid);

        return card >= 0 ? (uint8_t) card : UINT8_MAX;
}

void uvm_call_end_part(const UvmCall *u, uint64_t base, uint64_t length, uint32_t gpus, uint32_t now) {
        if (u->key != 0)
                uvm_file_end(u->g, &(UvmEnd){.key = u->key,
                                             .start = base,
                                             .end = base + length,
                                             .kinds = 1u << UVM_NOTE_MAP,
                                             .gpus = gpus,
                                             .now = now});
}
