/* SPDX-License-Identifier: Apache-2.0 */
#include "share/refusal.h"

const char *refusal_label(RefusalCode code) {
        static const char *const labels[] = {[REFUSAL_NONE] = "none",
#define X(name, label, kind) [REFUSAL_##name] = label,
                                             REFUSAL_LIST(X)
#undef X
        };

        return code < REFUSAL_MAX_ ? labels[code] : "none";
}

static RefusalKind kind_of(RefusalCode code) {
        static const RefusalKind kinds[] = {[REFUSAL_NONE] = REFUSAL_KIND_NODE,
#define X(name, label, kind) [REFUSAL_##name] = REFUSAL_KIND_##kind,
                                            REFUSAL_LIST(X)
#undef X
        };

        return code < REFUSAL_MAX_ ? kinds[code] : REFUSAL_KIND_NODE;
}

bool refusal_is_final(RefusalCode code) {
        return kind_of(code) == REFUSAL_KIND_FINAL;
}

bool refusal_may_pass(RefusalCode code) {
        return kind_of(code) == REFUSAL_KIND_PODS || kind_of(code) == REFUSAL_KIND_CARDS;
}

bool refusal_is_for_cards(RefusalCode code) {
        return kind_of(code) == REFUSAL_KIND_CARDS;
}
