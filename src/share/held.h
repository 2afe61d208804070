/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Slices of the dead: a pod object may be gone while its processes still run (deletion by force). The agent lists such
 * slices in an annotation of its node, and they are charged as grants that belong to the node:
 *     [{"pod":"NAMESPACE/NAME","uid":"...","allocation":{"0":{"1":4}},"core":{"0":{"1":30}}}]
 * allocation and core have the shape of the pod's own annotations. While the pod of that UID has a grant of its own on
 * the node, the entry sleeps: one process is charged once. */

#include "share/ledger.h"

/* Made first and taken over later, because taking over cannot fail. */
typedef struct HeldList {
        Grant *first;
} HeldList;

/* 0; LEDGER_E_NODE with a fault, and *ret stays as it is; or -ENOMEM. The cards that the list names
 * exist on the node afterwards. */
int held_read(Str annotation, LedgerNode *n, HeldList *ret, Fault *fault);
void held_list_done(HeldList *list);

void held_replace(LedgerNode *n, HeldList *list); /* the list is empty then */
void held_suspend(LedgerNode *n, Str uid);        /* this pod has a grant of its own now */
void held_resume(LedgerNode *n, Str uid);         /* and now it has not */
