/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The queue of calls to the API server: Bindings, and GETs after lost answers. A limited number,
 * each of which has a turn, is under way at a time; the others wait, first come first served. A
 * Binding keeps its turn for the first GET after it. */

#include "scheduler/bind/binder.h"

/* Queues the Binding with these annotations, a JSON object or empty; they are copied, and those of
 * a ResourcePolicy are added. It may be sent at once. The bind may end, and be freed. */
void bind_post(Bind *bind, Str annotations);

/* Counts the pod in its unit of a ResourcePolicy, unless that has been done. A member of a gang is
 * counted before its Bind is held, so that no member is posted while another one has no slot.
 * False: the bind has ended, because the unit is full or memory is out. */
bool bind_post_count(Bind *bind);

/* Queues a GET after a lost answer. It may be sent at once, and the bind may end and be freed. */
void bind_post_queue_get(Bind *bind);

/* Takes a bind that ends out of the queue, and gives back its turn. */
void bind_post_unqueue(Bind *bind);

/* Gives back the bind's turn, if it has one. */
void bind_post_end_turn(Bind *bind);
/* Sends the calls at the head of the queue while turns are free. */
void bind_post_queued(Binder *b);
