/* SPDX-License-Identifier: Apache-2.0 */
#include "share/refusal.h"

#include "base/quantity.h"
#include "share/memory_unit.h"

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

bool refusal_has_cards(RefusalCode code) {
        return refusal_is_for_cards(code) || code == REFUSAL_CARD_TOO_SMALL ||
               code == REFUSAL_CARDS_TOO_FEW || code == REFUSAL_UNHEALTHY;
}

bool refusal_is_in_bytes(const Refusal *r, uint64_t *ret_units) {
        uint64_t bytes, unit = (uint64_t) (r->unit_mib > 0 ? r->unit_mib : MEMORY_UNIT_GIB.mib) << 20;
        Str text = r->text;

        if ((r->code != REFUSAL_RANGE && r->code != REFUSAL_MALFORMED) || r->core > 0)
                return false;
        if (text.len > 0 && text.data[text.len - 1] == 'B') /* Kubernetes has no suffix GiB */
                text.len--;
        if (text.len < 2 || !strchr("iMGT", text.data[text.len - 1]) || quantity_parse(text, &bytes) != 0 ||
            bytes < unit / 1024)
                return false;
        *ret_units = bytes / unit + (bytes % unit > 0);
        return true;
}
