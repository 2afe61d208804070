/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* meta/v1 Status: the API server's refusal, as the body of an answer or as the object of an ERROR
 * event. */

#include "base/arena.h"
#include "base/fault.h"

typedef struct KubeStatus {
        int64_t code;            /* HTTP status, 0 when absent */
        Str reason, message;     /* views of the text, or of the arena */
        int64_t retry_after_sec; /* details.retryAfterSeconds, 0 when absent */
} KubeStatus;

/* Returns false, and leaves *ret unchanged, when the text is not a Status object (a proxy answers
 * in HTML). */
bool kube_status_decode(Str json, Arena *arena, KubeStatus *ret);
