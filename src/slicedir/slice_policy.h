/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which policy of compute the agent's slices say, while their containers run. A policy is a card's:
 * where the node's own gives way (`yields`), a container that says a weight above 1, or that it
 * comes first, has all slices of its card weighted as long as it has its slice. Slices of `aliquot
 * run` are its own affair. libc only. */

#include "slicedir/slicedir.h"

/* Says it in the agent's slices of this card, or of all when uuid is NULL. Pages that cannot be
 * written are passed over. 0, negative errno when the board cannot be read, or what the last page
 * that was passed over was about, as slice_files_set_compute() returns it; all with a fault. */
int slice_policy_apply(Slicedir *b, const CardCompute *policy, const char *uuid, Fault *fault);
