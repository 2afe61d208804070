/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Slices of pods whose object is gone while their processes still run, as after a deletion by
 * force. The agent lists such slices in an annotation of its node, and they are charged as grants
 * that belong to the node:
 *
 *     [{"pod":"NAMESPACE/NAME","uid":"...","allocation":{"0":{"1":4}},"core":{"0":{"1":30}}}]
 *
 * allocation and core have the shape of the pod's own annotations. While the pod of that UID has a
 * grant of its own on the node, the entry is suspended, so that one process is not charged
 * twice. */

#include "share/ledger.h"

/* Called for each entry of the annotation; the spec points into annotation and arena. Its slices
 * are those of main containers. */
typedef int (*HeldEntry)(void *userdata, const GrantSpec *spec, Fault *fault);

/* Reads the annotation. Returns 0, -ENOMEM, LEDGER_E_NODE with a fault, or the first result of the
 * callback that is not 0. */
int held_each(Str annotation, Arena *arena, HeldEntry entry, void *userdata, Fault *fault);

/* A list that is read but not yet in force. Reading it can fail, replacing the old one cannot. */
typedef struct HeldList {
        Grant *first;
} HeldList;

/* Reads a list for held_replace(). Returns 0; -ENOMEM; or LEDGER_E_NODE with a fault. On errors
 * *ret is unchanged. On success the cards that the list names exist on the node. */
int held_read(Str annotation, LedgerNode *n, HeldList *ret, Fault *fault);
void held_list_done(HeldList *list);

/* Puts the list into force in place of the earlier one; *list is empty afterwards. */
void held_replace(LedgerNode *n, HeldList *list);

/* The pod has got a grant of its own, or has it no longer: suspends or resumes its entries. */
void held_suspend(LedgerNode *n, Str uid);
void held_resume(LedgerNode *n, Str uid);
