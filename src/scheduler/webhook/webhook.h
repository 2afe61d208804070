/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The admission webhook as an object in an event loop. It has an HTTPS server, which answers
 *
 *     POST /gpushare-scheduler/webhook/mutate     pods that are created
 *     POST /gpushare-scheduler/webhook/validate   pods and workloads, created and updated;
 *                                                 pods/status, updated
 *
 * and its certificate. The certificate comes from files, which are followed, or from a Secret that
 * the webhook keeps itself (cert_rotate.h). It then keeps the caBundle of the webhook
 * configurations equal to it (ca_injector.h). */

#include "kube/event.h"
#include "net/http/http_server.h"
#include "scheduler/webhook/review.h"

#define WEBHOOK_SECRET "aliquot-webhook-tls" /* in the Service's namespace */

typedef struct Webhook Webhook;

typedef struct WebhookOptions {
        sd_event *event;
        KubeClient *client; /* outlives the webhook; not used with files */
        const char *listen;
        /* The Service by which the API server calls it. */
        const char *service_namespace, *service_name;
        const char *tls_cert, *tls_key; /* files; both or neither */
        KubeEventRecorder *recorder;    /* outlives it; not used with files */
        ReviewRules rules;              /* its texts outlive the webhook */
} WebhookOptions;

typedef struct WebhookCounts {
        uint64_t verdicts[REVIEW_VERDICTS_];
        uint64_t malformed;
        int64_t certificate_end; /* seconds since 1970; 0 while there is none */
        int64_t authority_end;   /* of the CA in the Secret, likewise */
} WebhookCounts;

/* Returns 0, or negative errno with a fault; the fault may be unset for -ENOMEM. */
int webhook_new(const WebhookOptions *options, Webhook **ret, Fault *fault);
Webhook *webhook_free(Webhook *w); /* before its client */

/* The leader renews the certificate and writes the caBundle. */
void webhook_set_leading(Webhook *w, bool leading);

/* The process ends soon: every answer closes its connection, and idle ones are closed, so that the
 * API server calls the other replicas. */
void webhook_drain(Webhook *w);

const HttpServer *webhook_server(const Webhook *w); /* for its port and metrics */
/* Why the API servers cannot call it yet, a line; NULL: they can. */
const char *webhook_why_not_ready(const Webhook *w);
const WebhookCounts *webhook_counts(const Webhook *w);

DEFINE_CLEANUP(Webhook *, webhook_free)
