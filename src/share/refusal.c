/* SPDX-License-Identifier: Apache-2.0 */
#include "share/refusal.h"

const char *refusal_label(RefusalCode code) {
        static const char *const labels[] = {[REFUSAL_NONE] = "none",
#define X(name, label) [REFUSAL_##name] = label,
                                             REFUSAL_LIST(X)
#undef X
        };

        return code < REFUSAL_MAX_ ? labels[code] : "none";
}

bool refusal_is_final(RefusalCode code) {
        return code != REFUSAL_NONE && code < REFUSAL_NODE_UNKNOWN;
}

bool refusal_may_pass(RefusalCode code) {
        return code == REFUSAL_NODE_MIXED || code == REFUSAL_NO_ROOM || code == REFUSAL_PODS_PER_CARD;
}
