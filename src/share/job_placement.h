/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Chooses cards for several pods of a job together, so that the links between the pods count, too.
 * All pods have the same request for whole cards. Pure, as placement.h. */

#include "share/placement.h"

/* For how many pods of this request, up to `most`, the node has room now. */
uint32_t job_placement_room(const LedgerNode *node, const Request *request, uint32_t most);

/* Chooses the cards for `pods` pods, for which there is room: the best set of cards for all of
 * them, divided into the best set for each. ret has `pods` placements. Returns 0,
 * PLACEMENT_E_REFUSED or -ENOMEM. */
int job_placement_choose(const LedgerNode *node, const Request *request, uint32_t pods, Arena *arena,
                         Placement *ret);
