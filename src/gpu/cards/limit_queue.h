/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The limits that the child was asked for and has not answered, in the order of the requests. */

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

/* 0, or -EAGAIN when too many wait. */
int limit_queue_add(LimitQueue *q, CardLimitDone done, void *userdata, usec_t due, uint32_t *ret_request);
void limit_queue_cancel(LimitQueue *q, uint32_t request);

/* Passes the answer on; one that nothing waits for is dropped. r: of kind LIMIT. */
void limit_queue_take(LimitQueue *q, const ProbeReport *r);
void limit_queue_fail(LimitQueue *q);               /* the child is gone: no request gets an answer */
usec_t limit_queue_due(const LimitQueue *q);        /* when the first answer is late; 0: none waits */
void limit_queue_extend(LimitQueue *q, usec_t due); /* that time is due from now on */
