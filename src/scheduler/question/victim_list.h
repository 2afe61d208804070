/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The victims on one node by UID, as they stand in ExtenderPreemptionArgs and in the answer to it.
 * A list lives as long as the arena that it was read into. */

#include "base/arena.h"
#include "wire/json.h"
#include "wire/json_write.h"

typedef struct VictimList {
        Str *uids;   /* each once */
        Str *sorted; /* the same, for victim_list_has() */
        size_t n, room;
        int64_t violations; /* NumPDBViolations */
} VictimList;

/* Reads one value of NodeNameToVictims or NodeNameToMetaVictims into an empty list. What is wrong
 * with it, also more victims than a node runs, becomes the fault of the reader. */
void victim_list_read(JsonReader *r, Arena *arena, VictimList *v);

/* Keeps the first one of equal UIDs, in their order, and fills `sorted`. 0 or -ENOMEM. */
int victim_list_unique(VictimList *v, Arena *arena);

bool victim_list_has(const VictimList *v, Str uid);

/* The same for UIDs that are in no list. */
void victim_list_sort_uids(Str *uids, size_t n);
bool victim_list_has_uid(const Str *sorted, size_t n, Str uid);

/* Writes the MetaVictims of the node with this name, as a member of NodeNameToMetaVictims. */
void victim_list_write(JsonWriter *w, Str name, const VictimList *v);
