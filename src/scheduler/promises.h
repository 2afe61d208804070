/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* kube-scheduler binds one pod while it filters for the next: between our ranking of nodes and the
 * bind that follows, a pod is on its way to the node we ranked first, and the ledger does not know.
 * Without a word about that, binpack sends the next pods to the same node, and when its last card
 * fills up their binds are refused and wait for a retry, a second or more. So prioritize remembers
 * where it sent whom, for as long as the way takes, and ranks nodes that would not hold what is on
 * its way to them behind the others. It is advice alone: filter stays a pure question about what is
 * true, and a promise that is wrong costs an order, never a slice. */

#include "base/clock.h"
#include "share/placement.h"

enum {
        PROMISES_MAX = 64,              /* on their way at once; more than kube-scheduler has */
        PROMISE_USEC = 2 * 1000 * 1000, /* a bind that has not come by then will not */
        PROMISE_TEXT_MAX = 255,         /* longer UIDs and node names are not remembered */
        PROMISE_CONTAINERS_MAX = 8,     /* nor are pods of more containers */
};

typedef struct Promise {
        usec_t until; /* 0: free */
        uint8_t uid_len, node_len;
        char uid[PROMISE_TEXT_MAX], node[PROMISE_TEXT_MAX];
        Request request;
        RequestContainer containers[PROMISE_CONTAINERS_MAX];
} Promise;

typedef struct Promises {
        Promise slots[PROMISES_MAX];
        size_t next; /* the oldest goes first */
} Promises;

/* The pod is on its way to this node; replaces what was promised to it before. */
void promises_make(Promises *p, Str uid, Str node, const Request *request, usec_t now);

/* The ledger knows of it now, or it will never come. */
void promises_drop(Promises *p, Str uid);

/* Drops those whose pods hold something by now. */
struct View;
void promises_settle(Promises *p, const struct View *view);

/* Would the node still hold the request after all other pods that are on their way to it? */
bool promises_leave_room(const Promises *p, const LedgerNode *node, const Request *request, Str uid,
                         usec_t now);
