/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What GET /inspect answers and `kubectl inspect cgpu -o json` prints. One writer for both, called
 * node by node, card by card, pod by pod, in the order of the functions below:
 *
 *     {"nodes":[{"name","totalGPU","usedGPU","devs":[{"id","totalGPU","usedGPU","pods":[{"name","namespace",
 *     "usedGPU"}]}]}]}
 *
 * Members beyond that stand only where there is something to say: "totalCore" and "usedCore"
 * (percent) on nodes with compute, and in a node "pending":{"usedGPU","pods"} for pods that have no
 * card yet; usedGPU of the node includes it. */

#include "wire/json_write.h"

typedef struct InspectJsonSums {
        uint64_t total_mem, used_mem; /* units */
        uint64_t total_core, used_core;
} InspectJsonSums;

void inspect_json_begin(JsonWriter *w, Buf *out);
void inspect_json_node(JsonWriter *w, Str name, const InspectJsonSums *sums);
void inspect_json_pending(JsonWriter *w, uint64_t mem, uint64_t core); /* optional; its pods follow */
void inspect_json_pending_end(JsonWriter *w);
void inspect_json_cards(JsonWriter *w); /* always, also when there are none */
void inspect_json_card(JsonWriter *w, uint32_t index, const InspectJsonSums *sums);
void inspect_json_pod(JsonWriter *w, Str namespace_, Str name, uint64_t mem, uint64_t core);
void inspect_json_card_end(JsonWriter *w);
void inspect_json_cards_end(JsonWriter *w); /* members of the node's own may follow */
void inspect_json_node_end(JsonWriter *w);
void inspect_json_end(JsonWriter *w);
