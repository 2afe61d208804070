/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* After a Binding without an answer, or with an error that may hide a success: asks the API server
 * by quorum GETs whether the pod is bound. */

#include "scheduler/bind/binder.h"

/* Sends one GET, for which the bind has a turn (bind_post.h). Its answer ends the bind, or queues
 * the next GET after a delay. Out of memory: bind_leave(). */
void bind_confirm(Bind *bind);
