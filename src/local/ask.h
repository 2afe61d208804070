/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A call whose answer is waited for: the caller reads as straight-line code, and while it waits the loop serves the
 * store and the scheduler, which live in the same process. */

#include "base/buf.h"
#include "kube/client.h"

typedef struct Ask {
        bool done;
        KubeOutcome outcome;
        unsigned status; /* HTTP status when KUBE_DONE */
        Buf body;
        Fault fault; /* "" when the answer is 2xx */
} Ask;

#define ASK_NULL ((Ask){0})

/* Both take an Ask in its null state; ask_done is the `done` of a call begun with &ask as userdata. Return 0 when there
 * is an outcome, or negative errno. */
void ask_done(void *userdata, const KubeReply *reply);
int ask_wait(Ask *a, sd_event *event);
int ask_call(Ask *a, KubeClient *client, const KubeRequest *request);

static inline bool ask_is_ok(const Ask *a) {
        return a->outcome == KUBE_DONE && a->status / 100 == 2;
}

static inline void ask_clear(Ask *a) {
        buf_done(&a->body);
        *a = ASK_NULL;
}

#define _cleanup_ask_ _cleanup_(ask_clear)
