/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Chooses the cards of a bind by what the ledger holds now, or takes them from the plan of the
 * pod's gang, and reserves them by a grant. Each function goes on to bind_post(), or ends the
 * bind. */

#include "scheduler/bind/binder.h"
#include "share/refusal.h"
#include "share/request.h"

/* request: that of the bind's pod. The bind ends with an error when the node is not known, its
 * cards do not suffice, or memory does not. */
void bind_cards_choose(Bind *bind, const Request *request);

/* For a pod without a share: nothing is reserved, and the Binding only empties the system keys that
 * the pod carries. */
void bind_cards_none(Bind *bind);

/* Ends the bind with this refusal. kube-scheduler is told the reason as filter words it; log and
 * Event also name the cards. `before` is put in front of both texts. */
void bind_cards_refuse(Bind *bind, const Refusal *refusal, const char *before);
