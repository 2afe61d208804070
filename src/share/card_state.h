/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Why new slices are kept from a card, as the page, `kubectl inspect cgpu` and GET /inspect say it.
 * If there are several reasons, all name the first one in card_state_of(), and so does --why
 * (card_lack.h). */

#include <stdbool.h>

#include "base/str.h"

typedef enum CardState { /* the page's script has these numbers */
                         CARD_STATE_HEALTHY,
                         CARD_STATE_FENCED,    /* by a ConfigMap */
                         CARD_STATE_UNHEALTHY, /* reported by the node's agent */
                         CARD_STATE_GONE,      /* a grant names it, but the node has no such card */
                         CARD_STATE_CORDONED,  /* by an annotation of the node */
} CardState;

/* The state of a card that the node has. */
static inline CardState card_state_of(bool fenced, bool cordoned, bool healthy) {
        if (fenced)
                return CARD_STATE_FENCED;
        if (cordoned)
                return CARD_STATE_CORDONED;
        return healthy ? CARD_STATE_HEALTHY : CARD_STATE_UNHEALTHY;
}

/* "fenced", "unhealthy" or "cordoned"; empty for other states. */
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
