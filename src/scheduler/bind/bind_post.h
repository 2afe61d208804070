/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The queue of calls to the API server: Bindings, and GETs after lost answers. Some are under way
 * at a time, each has a turn; the others wait in the order of their coming. A Binding keeps its
 * turn for the first GET after it. */

#include "scheduler/bind/binder.h"

/* Queues the Binding with these annotations, a JSON object or empty; they are copied, and those of
 * a ResourcePolicy are added. It may be sent at once. The bind may end, and be freed. */
void bind_post(Bind *bind, Str annotations);

/* Counts the pod in its unit of a ResourcePolicy, once. A member of a gang is counted when its Bind
 * is held: no other member is posted before it is known that this one has a slot. False: the bind
 * has ended, because the unit is full or for want of memory. */
bool bind_post_count(Bind *bind);

/* Queues a GET after a lost answer. It may be sent at once, and the bind may end and be freed. */
void bind_post_queue_get(Bind *bind);

/* Takes a bind that ends out of the queue, and gives back its turn. */
void bind_post_unqueue(Bind *bind);

/* Gives back the bind's turn, if it has one. bind_post_queued() then sends what waits for it. */
void bind_post_end_turn(Bind *bind);
void bind_post_queued(Binder *b);
