/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pods on their way to a node. kube-scheduler binds one pod while it filters for the next one:
 * between our ranking of nodes and the bind that follows, the ledger does not know where the pod
 * goes. Without that knowledge binpack sends the next pods to the same node. When its last card is
 * full, their binds are refused and wait for a retry, a second or more.
 *
 * Prioritize therefore remembers to which node it sent a pod, for as long as that takes. It ranks
 * nodes that would not hold all pods on their way behind the others. This is advice alone: filter
 * does not read it, and a wrong promise costs an order, never a slice. */

#include <stddef.h>

#include "base/clock.h"
#include "share/placement.h"

enum {
        /* Pods on their way at once; more than kube-scheduler has. */
        PROMISES_MAX = 64,
        PROMISE_USEC = 2 * 1000 * 1000, /* the time for a bind to come */
        PROMISE_TEXT_MAX = 255,         /* longer UIDs and node names are not remembered */
        PROMISE_REQUEST_MAX = 512,      /* bytes; larger requests are not remembered */
};

typedef struct Promise {
        usec_t until; /* when it ends; 0: the slot is free */
        uint8_t uid_len, node_len;
        char uid[PROMISE_TEXT_MAX], node[PROMISE_TEXT_MAX];
        const Request *request; /* in the bytes below */
        _Alignas(max_align_t) char bytes[PROMISE_REQUEST_MAX];
} Promise;

typedef struct Promises {
        Promise slots[PROMISES_MAX];
        size_t next; /* the slot that is overwritten next */
} Promises;

/* Notes that the pod is on its way to this node. Replaces an earlier promise to it. */
void promises_make(Promises *p, Str uid, Str node, const Request *request, usec_t now);

/* Forgets the pod: the ledger has it now, or its bind was refused. */
void promises_drop(Promises *p, Str uid);

/* Forgets the pods that have a grant by now. */
struct View;
void promises_drop_bound(Promises *p, const struct View *view);

/* Whether the node would still hold the request after all other pods that are on their way to
 * it. */
bool promises_leave_room(const Promises *p, const LedgerNode *node, const Request *request, Str uid,
                         usec_t now);
