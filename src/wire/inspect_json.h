/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes the JSON that GET /inspect answers and `kubectl inspect cgpu -o json` prints. It is called
 * node by node, card by card, pod by pod, in the order of the functions below:
 *
 *     {"nodes":[{"name","totalGPU","usedGPU","devs":[
 *         {"id","totalGPU","usedGPU","pods":[{"name","namespace","usedGPU"}]}]}]}
 *
 * Nodes and cards with compute also have "totalCore" and "usedCore" (percent); pods and "pending"
 * with compute have "usedCore". A node with pods that have no card yet also has
 * "pending":{"usedGPU","pods"}; usedGPU of the node includes it. A card that takes no new slices
 * also has "health". A resized pod also has "inForceGPU", and with compute "inForceCore". */

#include "wire/json_write.h"

typedef struct InspectJsonSums {
        uint64_t total_mem, used_mem; /* units of gpu-mem */
        uint64_t total_core, used_core;
} InspectJsonSums;

/* What a pod has of a card: memory in units of gpu-mem, and compute in percent. */
typedef struct InspectJsonSize {
        uint64_t mem, core;
} InspectJsonSize;

void inspect_json_begin(JsonWriter *w, Buf *out);
void inspect_json_node(JsonWriter *w, Str name, const InspectJsonSums *sums);
/* Optional. The pods that have no card yet follow. */
void inspect_json_pending(JsonWriter *w, uint64_t mem, uint64_t core);
void inspect_json_pending_end(JsonWriter *w);
void inspect_json_cards(JsonWriter *w); /* needed also for a node without cards */
/* health: why the card takes no new slices, as share/card_state.h words it; empty: no such
 * member. */
void inspect_json_card(JsonWriter *w, uint32_t index, const InspectJsonSums *sums, Str health);
void inspect_json_pod(JsonWriter *w, Str namespace_, Str name, uint64_t mem, uint64_t core);
/* A pod whose slice has another size than its limit. */
void inspect_json_resized_pod(JsonWriter *w, Str namespace_, Str name, const InspectJsonSize *limit,
                              const InspectJsonSize *in_force);
/* Slices that processes of a deleted pod still hold: "deleted" is true. */
void inspect_json_deleted_pod(JsonWriter *w, Str namespace_, Str name, uint64_t mem, uint64_t core);
void inspect_json_card_end(JsonWriter *w);
void inspect_json_cards_end(JsonWriter *w); /* further members of the node may follow */
void inspect_json_node_end(JsonWriter *w);
void inspect_json_end(JsonWriter *w);
