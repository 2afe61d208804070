/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The HTTP server of the extender (docs/reference/reference.md). Its paths are under
 * /gpushare-scheduler. Probes and Prometheus also find theirs at the root. */

#include "net/http/http_server.h"
#include "scheduler/bind/binder.h"
#include "scheduler/verbs/verbs.h"
#include "scheduler/webhook/webhook.h"

typedef struct Extender {
        SchedulerContext *context; /* these outlive it */
        /* Why this replica does not lead, a sentence without a full stop; NULL: none. */
        const char *(*why_not_leading)(void *userdata);
        /* kube-scheduler asks a replica that does not lead; NULL: not told. */
        void (*on_asked)(void *userdata);
        char why_not[1280];
        /* Whether pods were listed since this replica leads; NULL: always. */
        const bool *fresh;
        /* Asked by /readyz: NULL, or the line of the answer. NULL: always ready. */
        const char *(*why_not_ready)(void *userdata);
        usec_t (*heard)(void *userdata, ViewKind kind);    /* as in MetricsState */
        void (*write_listeners)(void *userdata, Buf *out); /* their metrics; NULL: none */
        void *userdata;
        const WebhookCounts *webhook; /* for /metrics; NULL: none */
        Buf out;
} Extender;

void extender_done(Extender *e);

/* Everything but bind, without a socket: the answer is appended to *out. Returns the HTTP status;
 * *ret_type is its content type, *ret_allow the methods of a 405 (else NULL). */
unsigned extender_answer(Extender *e, const HttpRequest *request, Buf *out, const char **ret_type,
                         const char **ret_allow);

/* NULL, or why a bind is refused before anything is looked at. The text is valid until the next
 * call. */
const char *extender_may_not_bind(Extender *e);

/* HttpHandlers; userdata: the Extender. The servers must be freed before the binder. The second one
 * knows no path that kube-scheduler posts to: it binds nothing, and changes nothing. */
void extender_handle(void *userdata, HttpExchange *x, const HttpRequest *request);
void extender_handle_reads(void *userdata, HttpExchange *x, const HttpRequest *request);
