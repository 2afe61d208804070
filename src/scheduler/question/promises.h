/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pods on their way to a node. kube-scheduler binds one pod while it filters for the next one:
 * between our ranking of nodes and the bind that follows, the ledger does not know where the pod
 * goes. Binpack would then send the next pods to the same node. When its last card is full, their
 * binds are refused and retried a second or more later.
 *
 * So prioritize remembers for PROMISE_USEC to which node it sent a pod, and ranks nodes that would
 * not hold all pods on their way behind the others. This is only advice: filter does not read it,
 * and a wrong promise costs a better order but no slice. */

#include <stddef.h>

#include "base/clock.h"
#include "share/placement.h"

enum {
        /* The most pods on their way at once; kube-scheduler has fewer. */
        PROMISES_MAX = 64,
        PROMISE_USEC = 2 * 1000 * 1000, /* how long a bind may take to come */
        PROMISE_TEXT_MAX = 255,         /* longer UIDs and node names are not remembered */
        PROMISE_REQUEST_MAX = 512,      /* bytes; larger requests are not remembered */
};

typedef struct Promise {
        usec_t until; /* end of the promise; 0: the slot is free */
        uint8_t uid_len, node_len;
        char uid[PROMISE_TEXT_MAX], node[PROMISE_TEXT_MAX];
        const Request *request; /* stored in `bytes` */
        _Alignas(max_align_t) char bytes[PROMISE_REQUEST_MAX];
} Promise;

typedef struct Promises {
        Promise slots[PROMISES_MAX];
        size_t next; /* the slot that is overwritten next */
} Promises;

/* Remembers that the pod is on its way to this node, and forgets an earlier promise to it. */
void promises_make(Promises *p, Str uid, Str node, const Request *request, usec_t now);

/* Forgets the pods that have a grant by now. */
struct View;
void promises_drop_bound(Promises *p, const struct View *view);

/* Whether the node would still hold the request when all other pods on their way to it have
 * come. */
bool promises_leave_room(const Promises *p, const LedgerNode *node, const Request *request, Str uid,
                         usec_t now);
