/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kube/client.h"
#include "kube/status.h"

/* What became of a call, as the transport saw it; from this and the body the reply is made, without
 * any I/O. */
typedef struct KubeTransfer {
        const char *method, *path;
        bool answered;      /* a complete answer came */
        bool sent;          /* bytes of the request were handed to a connection */
        unsigned status;    /* HTTP status, 0 when not even the head came */
        usec_t retry_after; /* from the header */
        const char *error;  /* in the transport's words, when not answered */
        Str body;
} KubeTransfer;

/* ret->body and ret->reason are views of transfer and arena. */
void kube_reply_init(KubeReply *ret, const KubeTransfer *transfer, Arena *arena);
