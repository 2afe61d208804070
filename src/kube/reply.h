/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How a call ended, and what the server answered. */

#include "base/arena.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/str.h"
#include "kube/status.h"

/* Whether the server can have acted. Until the first byte is handed to a connection it cannot have
 * acted (NOT_SENT); after that the outcome is open (UNKNOWN). Only a GET is repeated, when a kept
 * connection turns out to be dead. Other requests might then be carried out twice, so they end as
 * KUBE_UNKNOWN. */
typedef enum KubeOutcome {
        KUBE_DONE,     /* the server answered; see status */
        KUBE_NOT_SENT, /* no connection: the server cannot have acted on it */
        /* sent, but no answer (timeout, reset): it may have been carried out */
        KUBE_UNKNOWN,
} KubeOutcome;

typedef struct KubeReply {
        KubeOutcome outcome;
        unsigned status;    /* HTTP status when KUBE_DONE */
        Str body;           /* complete, valid during the callback; empty when on_data took it */
        usec_t retry_after; /* from Retry-After, else from the Status object; 0: from neither */
        int64_t date;       /* from Date, in seconds since 1970; 0 when absent */
        /* `reason` of a Status object ("Conflict", "Expired"), "" when none */
        const char *reason;
        /* the error with method and path; "" when the status is 2xx */
        Fault fault;
} KubeReply;

/* The outcome of a call as the transport saw it. kube_reply_init() makes the reply from it without
 * any I/O. */
typedef struct KubeTransfer {
        const char *method, *path;
        bool answered;      /* a complete answer came */
        bool sent;          /* bytes of the request were handed to a connection */
        unsigned status;    /* HTTP status, 0 when no head arrived */
        usec_t retry_after; /* from Retry-After */
        int64_t date;       /* from Date, in seconds since 1970 */
        const char *error;  /* the transport's message, when not answered */
        Str body;
} KubeTransfer;

/* ret->body and ret->reason are views of transfer and arena. */
void kube_reply_init(KubeReply *ret, const KubeTransfer *transfer, Arena *arena);

/* Whether an answer is worth another attempt (429, 5xx, no answer), and when: Retry-After, else
 * exponential with full jitter. attempt counts from 0; the result is at most `cap`. */
bool kube_reply_is_transient(const KubeReply *reply);
usec_t kube_backoff(unsigned attempt, usec_t base, usec_t cap, usec_t retry_after);
