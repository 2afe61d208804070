/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The HTTP server of the extender (docs/reference/reference.md). Its paths are under
 * /gpushare-scheduler. Probes and Prometheus also find theirs at the root. */

#include "net/http/http_server.h"
#include "scheduler/bind/binder.h"
#include "scheduler/verbs/verbs.h"
#include "scheduler/webhook/webhook.h"

typedef struct Extender {
        SchedulerContext *context; /* outlives the extender */
        /* Why this replica does not lead, as a sentence without a full stop. NULL: no reason is
         * given. */
        const char *(*why_not_leading)(void *userdata);
        /* Called when kube-scheduler asks a replica that does not lead; may be NULL. */
        void (*on_asked)(void *userdata);
        /* Buffer of extender_may_not_bind(). */
        char why_not[1280];
        /* Whether a list of pods has been completed since this replica began to lead; NULL:
         * always. */
        const bool *fresh;
        /* Whether /readyz answers 200: NULL, or the line that it answers instead. The hook is NULL
         * when nothing can keep the replica from being ready. */
        const char *(*why_not_ready)(void *userdata);
        usec_t (*heard)(void *userdata, ViewKind kind);    /* as in MetricsState */
        void (*write_listeners)(void *userdata, Buf *out); /* appends the HTTP servers' metrics; NULL: none */
        void *userdata;
        const WebhookCounts *webhook; /* for /metrics; NULL: none */
        Buf out;
} Extender;

void extender_done(Extender *e);

/* Answers every request but bind, without a socket; appends the answer to *out. Returns the HTTP
 * status. *ret_type: content type. *ret_allow: the methods for the header Allow of a 405, else
 * NULL. */
unsigned extender_answer(Extender *e, const HttpRequest *request, Buf *out, const char **ret_type,
                         const char **ret_allow);

/* NULL, or why this replica binds no pod now. The text is valid until the next call. */
const char *extender_may_not_bind(Extender *e);

/* HttpHandlers; userdata: the Extender. The servers must be freed before the binder.
 * extender_handle_reads() answers 404 for all that kube-scheduler posts: it binds and changes
 * nothing. */
void extender_handle(void *userdata, HttpExchange *x, const HttpRequest *request);
void extender_handle_reads(void *userdata, HttpExchange *x, const HttpRequest *request);
