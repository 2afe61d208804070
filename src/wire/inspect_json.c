/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/inspect_json.h"

void inspect_json_begin(JsonWriter *w, Buf *out) {
        json_write_init(w, out);
        json_write_object(w, NULL);
        json_write_array(w, "nodes");
}

static void write_sums(JsonWriter *w, const InspectJsonSums *sums) {
        json_write_u64(w, "totalGPU", sums->total_mem);
        json_write_u64(w, "usedGPU", sums->used_mem);
        if (sums->total_core == 0 && sums->used_core == 0)
                return;
        json_write_u64(w, "totalCore", sums->total_core);
        json_write_u64(w, "usedCore", sums->used_core);
}

void inspect_json_node(JsonWriter *w, Str name, const InspectJsonSums *sums) {
        json_write_object(w, NULL);
        json_write_str(w, "name", name);
        write_sums(w, sums);
}

void inspect_json_pending(JsonWriter *w, uint64_t mem, uint64_t core) {
        json_write_object(w, "pending");
        json_write_u64(w, "usedGPU", mem);
        if (core > 0)
                json_write_u64(w, "usedCore", core);
        json_write_array(w, "pods");
}

void inspect_json_pending_end(JsonWriter *w) {
        json_write_array_end(w);
        json_write_object_end(w);
}

void inspect_json_cards(JsonWriter *w) {
        json_write_array(w, "devs");
}

void inspect_json_card(JsonWriter *w, uint32_t index, const InspectJsonSums *sums, Str health) {
        json_write_object(w, NULL);
        json_write_u64(w, "id", index);
        write_sums(w, sums);
        if (!str_is_empty(health))
                json_write_str(w, "health", health);
        json_write_array(w, "pods");
}

static void pod_begin(JsonWriter *w, Str namespace_, Str name, uint64_t mem, uint64_t core) {
        json_write_object(w, NULL);
        json_write_str(w, "name", name);
        json_write_str(w, "namespace", namespace_);
        json_write_u64(w, "usedGPU", mem);
        if (core > 0)
                json_write_u64(w, "usedCore", core);
}

void inspect_json_pod(JsonWriter *w, Str namespace_, Str name, uint64_t mem, uint64_t core) {
        pod_begin(w, namespace_, name, mem, core);
        json_write_object_end(w);
}

void inspect_json_resized_pod(JsonWriter *w, Str namespace_, Str name, const InspectJsonSize *limit,
                              const InspectJsonSize *in_force) {
        pod_begin(w, namespace_, name, limit->mem, limit->core);
        json_write_u64(w, "inForceGPU", in_force->mem);
        if (limit->core > 0)
                json_write_u64(w, "inForceCore", in_force->core);
        json_write_object_end(w);
}

void inspect_json_deleted_pod(JsonWriter *w, Str namespace_, Str name, uint64_t mem, uint64_t core) {
        pod_begin(w, namespace_, name, mem, core);
        json_write_bool(w, "deleted", true);
        json_write_object_end(w);
}

void inspect_json_card_end(JsonWriter *w) {
        json_write_array_end(w);
        json_write_object_end(w);
}

void inspect_json_cards_end(JsonWriter *w) {
        json_write_array_end(w);
}

void inspect_json_node_end(JsonWriter *w) {
        json_write_object_end(w);
}

void inspect_json_end(JsonWriter *w) {
        json_write_array_end(w);
        json_write_object_end(w);
}
