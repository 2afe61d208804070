/* SPDX-License-Identifier: Apache-2.0 */
#include "node/publish/event_reasons.h"

#include <string.h>

EventReason *event_reasons_entry(EventReasons *r, const char *reason) {
        EventReason *e;

        for (size_t i = 0; i < EVENT_REASONS_MAX; i++)
                if (r->entries[i].reason && strcmp(r->entries[i].reason, reason) == 0)
                        return &r->entries[i];
        e = &r->entries[r->n_added++ % EVENT_REASONS_MAX];
        *e = (EventReason){.reason = reason};
        return e;
}
