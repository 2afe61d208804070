/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One API server, spoken to from the event loop: libcurl's multi interface joined to sd-event.
 * Connections are kept and shared; nothing blocks. A call is an object: freeing it cancels it, and
 * its reply is then never called. Any callback may make calls, cancel calls (its own too) and free
 * the client. */

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "kube/config.h"

typedef struct KubeClient KubeClient;
typedef struct KubeCall KubeCall;

/* The line between the last two is drawn at the first byte handed to a connection: before it the
 * server cannot have acted, behind it nobody here knows. Only a GET is ever repeated by itself,
 * when a kept connection turns out to be dead; anything else is then KUBE_UNKNOWN, because it might
 * be carried out twice. */
typedef enum KubeOutcome {
        KUBE_DONE,     /* the server answered; see status */
        KUBE_NOT_SENT, /* no connection: the server cannot have acted on it */
        KUBE_UNKNOWN,  /* sent, but the answer never came (timeout, reset): it may have been carried out */
} KubeOutcome;

typedef struct KubeReply {
        KubeOutcome outcome;
        unsigned status;    /* HTTP status when KUBE_DONE */
        Str body;           /* complete, valid during the callback; empty when on_data took it */
        usec_t retry_after; /* from Retry-After, 0 when absent */
        const char *
                reason; /* `reason` of a Status object ("Conflict", "AlreadyExists", "Expired"), "" when none */
        Fault fault;    /* for people: what failed, with method and path; "" when the status is 2xx */
} KubeReply;

typedef struct KubeRequest {
        const char *method;       /* GET, POST, PUT, PATCH, DELETE */
        const char *path;         /* with query, already escaped: /api/v1/pods?limit=500 */
        const char *content_type; /* of the body; NULL: application/json */
        Str body;                 /* copied */
        usec_t timeout;           /* whole call; 0: 30 s; KUBE_NO_TIMEOUT: none (watch) */
        usec_t idle_timeout; /* no byte for so long ends the call as KUBE_UNKNOWN; 0: none. Watches set it */

        /* Streams the body of a 2xx answer. Called once with no bytes when such an answer begins.
         * Nonzero ends the call, and `done` says KUBE_UNKNOWN: what the reader found is the
         * reader's to remember. */
        int (*on_data)(void *userdata, Str bytes);
} KubeRequest;

typedef void (*KubeDone)(void *userdata, const KubeReply *reply);

#define KUBE_NO_TIMEOUT UINT64_MAX

enum {
        KUBE_MAX_BODY =
                32 * 1024 * 1024,  /* of one answer that is not streamed; a longer one is KUBE_UNKNOWN */
        KUBE_MAX_CONNECTIONS = 64, /* calls beyond wait for one, within their timeout */
};

int kube_client_new(sd_event *event, const KubeConfig *config,
                    KubeClient **ret);       /* config outlives the client */
KubeClient *kube_client_free(KubeClient *c); /* cancels every call */
sd_event *kube_client_event(const KubeClient *c);

/* 0 or -ENOMEM; everything else comes through `done`, never before this returns. *ret may be freed
 * to cancel, also inside its own callback, and is NULL-ed by nobody: it dies by itself after
 * `done`. ret may be NULL for fire and forget. */
int kube_call(KubeClient *c, const KubeRequest *request, KubeDone done, void *userdata, KubeCall **ret);
KubeCall *kube_call_free(KubeCall *call);

/* Is this answer worth trying again (429, 5xx, no answer), and when: Retry-After, else exponential
 * with full jitter. attempt counts from 0; never more than `cap`. */
bool kube_reply_is_transient(const KubeReply *reply);
usec_t kube_backoff(unsigned attempt, usec_t base, usec_t cap, usec_t retry_after);

DEFINE_CLEANUP(KubeClient *, kube_client_free)
DEFINE_CLEANUP(KubeCall *, kube_call_free)
