/* SPDX-License-Identifier: Apache-2.0 */

/* Any text as a pod: its field managers are read or refused with a sentence. */

#include <assert.h>

#include "node/allocate/field_managers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Str text = {(const char *) data, size};
        Fault fault = FAULT_NULL;
        FieldManager found = {0};
        int r = field_managers_last(text, UINT32_MAX, STR("aliquot"), &arena, &found, &fault);

        assert(r == 0 || (r == FIELD_MANAGERS_E_MALFORMED && fault.text[0] != '\0'));
        assert(r == 0 || found.name.len == 0);
        assert(found.owns || !str_eq(found.name, STR("aliquot")));
        return 0;
}
