/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The cards for several pods of a job together, so that the links between the pods count, too. All
 * pods have the same request for whole cards. Pure, as placement.h. */

#include "share/placement.h"

/* How many pods of this request have room on the node now, at most `most`. */
uint32_t job_placement_room(const LedgerNode *node, const Request *request, uint32_t most);

/* The cards for `pods` of them, which have room: the best set of cards for all of the pods, divided
 * into the best set for each. ret: so many placements. 0, PLACEMENT_E_REFUSED or -ENOMEM. */
int job_placement_choose(const LedgerNode *node, const Request *request, uint32_t pods, Arena *arena,
                         Placement *ret);
