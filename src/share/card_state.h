/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What keeps new slices from a card, as the page, `kubectl inspect cgpu` and GET /inspect name it.
 * Where several things do, --why names the same one (card_lack.h). */

#include <stdbool.h>

#include "base/str.h"

typedef enum CardState { /* the page's script has these numbers */
                         CARD_STATE_HEALTHY,
                         CARD_STATE_FENCED,    /* by a ConfigMap */
                         CARD_STATE_UNHEALTHY, /* by the node's agent */
                         CARD_STATE_GONE,      /* named by a pod, and the node has no such card */
                         CARD_STATE_CORDONED,  /* by an annotation of the node */
} CardState;

/* Of a card that the node has. */
static inline CardState card_state_of(bool fenced, bool cordoned, bool healthy) {
        if (fenced)
                return CARD_STATE_FENCED;
        if (cordoned)
                return CARD_STATE_CORDONED;
        return healthy ? CARD_STATE_HEALTHY : CARD_STATE_UNHEALTHY;
}

/* "fenced"; empty for a card that is healthy, or not there. */
static inline Str card_state_text(CardState state) {
        switch (state) {
        case CARD_STATE_FENCED:
                return STR("fenced");
        case CARD_STATE_UNHEALTHY:
                return STR("unhealthy");
        case CARD_STATE_CORDONED:
                return STR("cordoned");
        case CARD_STATE_HEALTHY:
        case CARD_STATE_GONE:
                break;
        }
        return STR("");
}
