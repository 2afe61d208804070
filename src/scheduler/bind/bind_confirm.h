/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* After a Binding whose answer is lost, or may hide a success: asks the API server by quorum GETs
 * whether the pod is bound. */

#include "scheduler/bind/binder.h"

/* Sends one GET, for which the bind has a turn. Its answer ends the bind, or the next GET is queued
 * after a delay. Without memory for it the bind ends, and is freed. */
void bind_confirm(Bind *bind);
