/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A synchronous call of the API server. While the caller waits, the loop serves the store and the
 * scheduler, which run in the same process. */

#include "base/buf.h"
#include "kube/client.h"
#include "local/tree.h"

typedef struct SyncCall {
        bool done, transient; /* transient: worth another attempt */
        KubeOutcome outcome;
        unsigned status; /* HTTP status when KUBE_DONE */
        usec_t retry_after;
        Buf body;
        Fault fault; /* "" when the answer is 2xx */
} SyncCall;

#define SYNC_CALL_NULL ((SyncCall){0})

/* sync_call_run() makes a call and waits for its end. sync_call_wait() waits for a call that was
 * begun with sync_call_done() and this SyncCall. The SyncCall begins null. Return 0 when there is
 * an outcome, or negative errno. */
void sync_call_done(void *userdata, const KubeReply *reply);
int sync_call_wait(SyncCall *a, sd_event *event);
int sync_call_run(SyncCall *a, KubeClient *client, const KubeRequest *request);

static inline bool sync_call_is_ok(const SyncCall *a) {
        return a->outcome == KUBE_DONE && a->status / 100 == 2;
}

void sync_call_clear(SyncCall *a);

/* Requests that may be carried out twice. They are repeated, with back-off, on transient errors
 * (429, 5xx, no answer). Return 0, SYNC_CALL_E_REFUSED with a fault for another status, -EIO with a
 * fault after the last attempt, or other negative errno. */
enum { SYNC_CALL_E_REFUSED = 1 };
int sync_call_get(KubeClient *client, const char *path, json_t **ret, Fault *fault);
int sync_call_patch(KubeClient *client, const char *path, const json_t *merge_patch, Fault *fault);

/* Lets the loop run for a while. */
int sync_call_pause(sd_event *event, usec_t duration);

#define _cleanup_sync_call_ _cleanup_(sync_call_clear)
