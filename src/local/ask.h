/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A call whose answer is waited for: the caller reads as straight-line code, and while it waits the
 * loop serves the store and the scheduler, which live in the same process. */

#include "base/buf.h"
#include "kube/client.h"
#include "local/tree.h"

typedef struct Ask {
        bool done, transient; /* transient: worth another attempt */
        KubeOutcome outcome;
        unsigned status; /* HTTP status when KUBE_DONE */
        usec_t retry_after;
        Buf body;
        Fault fault; /* "" when the answer is 2xx */
} Ask;

#define ASK_NULL ((Ask){0})

/* Both take an Ask in its null state; ask_done is the `done` of a call begun with &ask as userdata.
 * Return 0 when there is an outcome, or negative errno. */
void ask_done(void *userdata, const KubeReply *reply);
int ask_wait(Ask *a, sd_event *event);
int ask_call(Ask *a, KubeClient *client, const KubeRequest *request);

static inline bool ask_is_ok(const Ask *a) {
        return a->outcome == KUBE_DONE && a->status / 100 == 2;
}

void ask_clear(Ask *a);

/* What may be carried out twice is tried again, with back-off, while the trouble looks passing
 * (429, 5xx, no answer). Return 0, ASK_E_REFUSED when the server's answer is another one than 2xx,
 * or negative errno, both with a fault. */
enum { ASK_E_REFUSED = 1 };
int ask_get(KubeClient *client, const char *path, json_t **ret, Fault *fault);
int ask_patch(KubeClient *client, const char *path, const json_t *merge_patch, Fault *fault);

/* Lets the loop run for a while. */
int ask_pause(sd_event *event, usec_t duration);

#define _cleanup_ask_ _cleanup_(ask_clear)
