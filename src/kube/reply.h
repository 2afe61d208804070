/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kube/client.h"
#include "kube/status.h"

/* The outcome of a call as the transport saw it. kube_reply_init() makes the reply from it without
 * any I/O. */
typedef struct KubeTransfer {
        const char *method, *path;
        bool answered;      /* a complete answer came */
        bool sent;          /* bytes of the request were handed to a connection */
        unsigned status;    /* HTTP status, 0 when no head arrived */
        usec_t retry_after; /* from the header */
        const char *error;  /* the transport's message, when not answered */
        Str body;
} KubeTransfer;

/* ret->body and ret->reason are views of transfer and arena. */
void kube_reply_init(KubeReply *ret, const KubeTransfer *transfer, Arena *arena);
