/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The short text of a refusal, for kube-scheduler. kube-scheduler counts equal reasons, writes the
 * count before each, and hands the result to Eventf() as a format (pkg/scheduler, FitError.Error
 * and handleSchedulingFailure). Therefore a reason
 *   - is equal for equal cases: the amounts of the node's cards are not in it (refusal_format.h);
 *   - begins with a letter, so that the count is not read as part of an amount;
 *   - has no percent sign;
 *   - has at most REFUSAL_REASON_MAX bytes: the API server refuses an Event over 1,024. */

#include "base/buf.h"
#include "share/refusal.h"

enum { REFUSAL_REASON_MAX = 100 };

typedef struct RefusalReason {
        size_t len;
        char text[REFUSAL_REASON_MAX + 1]; /* NUL-terminated */
} RefusalReason;

/* Writes the reason, as `no card has 60 GiB of gpu-mem free`. Memory is in the node's unit. Long
 * names and values of the pod are shortened. Empty for REFUSAL_NONE. */
void refusal_reason(const Refusal *refusal, RefusalReason *ret);

static inline Str refusal_reason_str(const RefusalReason *reason) {
        return (Str){reason->text, reason->len};
}

/* Appends the text for an answer to kube-scheduler: each percent sign becomes " percent". */
void refusal_reason_escape(const char *text, Buf *out);
