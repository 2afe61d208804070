/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A client of one API server, from the event loop: libcurl's multi interface joined to sd-event.
 * Connections are kept and shared; nothing blocks. Freeing a call cancels it, and its `done` is
 * then never called. Any callback may make calls, cancel calls (its own too) and free
 * the client. */

#include <systemd/sd-event.h>

#include "base/clock.h"
#include "kube/config.h"
#include "kube/reply.h"

typedef struct KubeClient KubeClient;
typedef struct KubeCall KubeCall;

typedef struct KubeRequest {
        const char *method;       /* GET, POST, PUT, PATCH, DELETE */
        const char *path;         /* with query, already escaped: /api/v1/pods?limit=500 */
        const char *content_type; /* of the body; NULL: application/json */
        Str body;                 /* copied */
        usec_t timeout;           /* of the whole call; 0: 30 s; KUBE_NO_TIMEOUT: none (watch) */
        /* ends the call as KUBE_UNKNOWN when no byte comes for so long; 0: none. For watches */
        usec_t idle_timeout;

        /* Receives the body of a 2xx answer in pieces; the first call has no bytes. Nonzero ends
         * the call as KUBE_UNKNOWN; the reader keeps its own reason. */
        int (*on_data)(void *userdata, Str bytes);
} KubeRequest;

typedef void (*KubeDone)(void *userdata, const KubeReply *reply);

#define KUBE_NO_TIMEOUT UINT64_MAX

enum {
        /* of an answer that is not streamed; a longer one is KUBE_UNKNOWN */
        KUBE_MAX_BODY = 32 * 1024 * 1024,
        /* connections at once; further calls wait, within their timeout */
        KUBE_MAX_CONNECTIONS = 64,
};

/* config outlives the client. Returns 0 or negative errno */
int kube_client_new(sd_event *event, const KubeConfig *config, KubeClient **ret);
KubeClient *kube_client_free(KubeClient *c); /* cancels every call */
sd_event *kube_client_event(const KubeClient *c);

/* Starts a call. Returns 0 or -ENOMEM; every other outcome comes through `done`, never before this
 * returns. *ret may be freed to cancel, also inside its own callback. It is not set to NULL when
 * the call ends: it is freed after `done`. ret may be NULL. */
int kube_call(KubeClient *c, const KubeRequest *request, KubeDone done, void *userdata, KubeCall **ret);
KubeCall *kube_call_free(KubeCall *call);
