/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Requests for limits that the child has not answered, in the order in which they were sent. */

#include "base/clock.h"
#include "gpu/cards/probe_report.h"

enum { LIMIT_QUEUE_MAX = 128 };

typedef struct LimitWaiting {
        uint32_t request;
        CardLimitDone done;
        void *userdata;
        usec_t due;
} LimitWaiting;

typedef struct LimitQueue {
        LimitWaiting waiting[LIMIT_QUEUE_MAX];
        size_t n;
        uint32_t last; /* number of the last request */
} LimitQueue;

/* Adds a request. Returns 0, or -EAGAIN when LIMIT_QUEUE_MAX requests wait. */
int limit_queue_add(LimitQueue *q, CardLimitDone done, void *userdata, usec_t due, uint32_t *ret_request);
void limit_queue_cancel(LimitQueue *q, uint32_t request);

/* Passes the answer to its request; an answer to no waiting request is dropped. r: of kind
 * LIMIT. */
void limit_queue_take(LimitQueue *q, const ProbeReport *r);
/* Answers all requests with CARD_LIMIT_NO_ANSWER: the child has ended. */
void limit_queue_fail(LimitQueue *q);
/* Deadline of the oldest request; 0: none waits. */
usec_t limit_queue_due(const LimitQueue *q);
void limit_queue_extend(LimitQueue *q, usec_t due); /* sets the deadline of all requests to `due` */
