/* SPDX-License-Identifier: Apache-2.0 */

/* Any text as a pod for its profile. An accepted one is within the limits and every view in it can
 * be read. A refusal has a sentence and leaves the result alone. */

#include <assert.h>

#include "wire/pod_preference.h"
#include "wire/pod_profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void touch(Str s) {
        assert(s.len == 0 || str_hash64(s, 0) != 1);
}

static void check(const PodProfile *p) {
        assert(p->n_labels <= POD_PROFILE_LABELS_MAX && p->n_requests <= POD_PROFILE_RESOURCES_MAX);
        assert(p->start >= 0);
        touch(p->nominated_node);
        for (size_t i = 0; i < p->n_labels; i++) {
                touch(p->labels[i].key);
                touch(p->labels[i].value);
        }
        for (size_t i = 0; i < p->n_requests; i++) {
                touch(p->requests[i].name);
                assert(p->requests[i].milli > 0);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        PodProfile profile = {.n_labels = 7777};
        PodPreference preference = {.prefers = true};
        Fault fault = FAULT_NULL;
        int r;

        r = pod_profile_decode((Str){(const char *) data, size}, &arena, &profile, &fault);
        assert(r == 0 || r == OBJECT_E_MALFORMED);
        if (r == 0)
                check(&profile);
        else
                assert(profile.n_labels == 7777 && fault.text[0] != '\0');

        fault = FAULT_NULL;
        r = pod_preference_decode((Str){(const char *) data, size}, &arena, &preference, &fault);
        assert(r == 0 || r == OBJECT_E_MALFORMED);
        assert(r == 0 || (preference.prefers && fault.text[0] != '\0'));
        return 0;
}
