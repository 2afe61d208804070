/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The victims on one node, by UID, in ExtenderPreemptionArgs and in the answer. A list lives as
 * long as the arena that it was read into. */

#include "base/arena.h"
#include "wire/json.h"
#include "wire/json_write.h"

typedef struct VictimList {
        Str *uids;   /* in their order; each once after victim_list_unique() */
        Str *sorted; /* the same, sorted for victim_list_has() */
        size_t n, room;
        int64_t violations; /* NumPDBViolations */
} VictimList;

/* Reads one value of NodeNameToVictims or NodeNameToMetaVictims into an empty list. What is wrong
 * with it, also more victims than a node runs, becomes the fault of the reader. */
void victim_list_read(JsonReader *r, Arena *arena, VictimList *v);

/* Removes repeated UIDs, keeping the first of each, and fills `sorted`. Returns 0 or -ENOMEM. */
int victim_list_unique(VictimList *v, Arena *arena);

bool victim_list_has(const VictimList *v, Str uid);

/* The same for an array of UIDs. */
void victim_list_sort_uids(Str *uids, size_t n);
bool victim_list_has_uid(const Str *sorted, size_t n, Str uid);

/* Writes a MetaVictims as the member `name`, which is a node, of NodeNameToMetaVictims. */
void victim_list_write(JsonWriter *w, Str name, const VictimList *v);
