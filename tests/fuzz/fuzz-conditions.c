/* SPDX-License-Identifier: Apache-2.0 */

/* Any text as a Node object: its conditions are read or refused with a sentence. */

#include <assert.h>

#include "node/publish/conditions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        ObjectCondition found[CONDITIONS_] = {0};
        Fault fault = FAULT_NULL;
        int r = conditions_read((Str){(const char *) data, size}, &arena, found, &fault);

        assert(r == 0 || (r == CONDITIONS_E_MALFORMED && fault.text[0] != '\0'));
        return 0;
}
