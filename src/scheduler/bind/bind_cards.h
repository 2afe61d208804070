/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The cards of a bind. They are chosen by what the ledger holds now, or taken from the plan of the
 * pod's gang, and reserved by a grant. Each function goes on to bind_post(), or ends the bind. */

#include "scheduler/bind/binder.h"
#include "share/refusal.h"
#include "share/request.h"

/* request: of the bind's pod. The bind ends when the node has no such cards, or is not known. */
void bind_cards_choose(Bind *bind, const Request *request);

/* For a pod without a share: it gets no annotations. System keys that it carries are emptied. */
void bind_cards_none(Bind *bind);

/* Ends the bind. kube-scheduler is told filter's form of the reason, log and Event name the cards.
 * before: put in front of both. */
void bind_cards_refuse(Bind *bind, const Refusal *refusal, const char *before);
