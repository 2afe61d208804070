/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The node that is nearest to taking a pod, with its reason. The cards that come nearest to what it
 * asks for, among nodes that refuse it for their cards. The Event on the pod that names both: the
 * reasons of filter name no card, because equal reasons must be equal. */

#include "kube/event.h"
#include "scheduler/view/view.h"
#include "share/card_lack.h"
#include "share/refusal_reason.h"

enum { NEAREST_MAX = 5 };

typedef struct NearestCard {
        const LedgerNode *node;
        const LedgerCard *card;
        CardLack lack;
        uint64_t distance; /* of the card, or of its node where that is farther */
} NearestCard;

typedef struct Nearest {
        Str node; /* the nearest; of equal ones the first by name. Empty: no node was refused */
        uint64_t distance;
        RefusalReason reason;           /* of that node */
        NearestCard cards[NEAREST_MAX]; /* the nearest first; equal ones by node and card */
        size_t n;
} Nearest;

/* Looks at a node that does not take the request. name: a view. node: NULL where the ledger has
 * none. True: it is the nearest so far. */
bool nearest_add(Nearest *n, Str name, const LedgerNode *node, const Request *request,
                 const Refusal *refusal);

/* Between two Events about one pod, and the most Events of all pods in one minute. A pending pod is
 * asked about each time that another pod ends, and each time its cards may differ. */
#define NEAREST_EVENT_REST (60 * USEC_PER_SEC)
enum { NEAREST_EVENTS_PER_MINUTE = 120 };

typedef struct NearestEvents {
        KubeEventRecorder *recorder;
        usec_t minute; /* when the minute began that is counted */
        unsigned n;
} NearestEvents;

/* Writes an Event about a pod that no node takes and that the watch knows. It does when the text
 * has changed since the last one about this pod, and the rates allow. The API server keeps one such
 * Event for a pod: the text is replaced. */
struct FilterResult;
struct PendingPod;
void nearest_tell(NearestEvents *e, const View *v, struct PendingPod *pod, const struct FilterResult *result,
                  usec_t now);
