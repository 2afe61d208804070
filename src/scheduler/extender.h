/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The HTTP face: CONTRACT section 9. Paths stand under /gpushare-scheduler; what probes and
 * Prometheus ask for is answered at the root as well, where they look for it. */

#include "net/http/http_server.h"
#include "scheduler/binder.h"
#include "scheduler/verbs.h"
#include "scheduler/webhook/webhook.h"

typedef struct Extender {
        View *view; /* these outlive it */
        Metrics *metrics;
        Binder *binder;
        bool leading;                                 /* we may bind, as far as the election goes */
        const bool *fresh;                            /* pods have been listed since then; NULL: always */
        const char *(*why_not_ready)(void *userdata); /* a line, or NULL; asked by /readyz. NULL: nobody */
        void *userdata;
        const WebhookCounts *webhook; /* for /metrics; NULL: none */
        Waiters *waiters;             /* the evictor's; NULL: it is off */
        Promises promises;
        Buf out;
} Extender;

void extender_done(Extender *e);

/* Everything but bind, without a socket: the answer is appended to *out. Returns the HTTP status;
 * *ret_type is its content type, *ret_allow the methods of a 405 (else NULL). */
unsigned extender_answer(Extender *e, const HttpRequest *request, Buf *out, const char **ret_type,
                         const char **ret_allow);

/* Is a bind refused from the start: NULL, or why. */
const char *extender_may_not_bind(const Extender *e);

/* An HttpHandler; userdata: the Extender. The server must be freed before the binder. */
void extender_handle(void *userdata, HttpExchange *x, const HttpRequest *request);
