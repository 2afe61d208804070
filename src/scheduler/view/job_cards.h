/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/gang/gangs.h"
#include "scheduler/view/view.h"
#include "wire/annotation.h"

/* Marks the cards of the node that the members of the pod's gang have, or have planned, by card
 * index. gangs may be NULL; a pod without a gang marks none. */
void job_cards(const View *v, const Gangs *gangs, Str uid, const LedgerNode *node,
               bool ret[static CARD_INDEX_MAX + 1]);
