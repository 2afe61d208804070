/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/node.h"

#include <stddef.h>

#include "base/cleanup.h"
#include "wire/annotation.h"
#include "wire/object-internal.h"
#include "wire/resize_keys.h"

static const JsonField node_annotation_fields[] = {
        JSON_FIELD(Node, annotations.cards, ANNOTATION_CARDS, json_field_str),
        JSON_FIELD(Node, annotations.unit, ANNOTATION_UNIT, json_field_str),
        JSON_FIELD(Node, annotations.policy, ANNOTATION_POLICY, json_field_str),
        JSON_FIELD(Node, annotations.max_inst, ANNOTATION_MAX_INST, json_field_str),
        JSON_FIELD(Node, annotations.prio_ratio, ANNOTATION_PRIO_RATIO, json_field_str),
        JSON_FIELD(Node, annotations.max_pods, ANNOTATION_MAX_PODS, json_field_str),
        JSON_FIELD(Node, annotations.allow_mixed, ANNOTATION_ALLOW_MIXED, json_field_str),
        JSON_FIELD(Node, annotations.held_slices, ANNOTATION_HELD_SLICES, json_field_str),
        JSON_FIELD(Node, annotations.simulated_cards, ANNOTATION_SIMULATED_CARDS, json_field_str),
        JSON_FIELD(Node, annotations.mode_in_force, ANNOTATION_MODE_IN_FORCE, json_field_str),
        JSON_FIELD(Node, annotations.unit_in_force, ANNOTATION_UNIT_IN_FORCE, json_field_str),
        JSON_FIELD(Node, annotations.change_pending, ANNOTATION_CHANGE_PENDING, json_field_str),
        JSON_FIELD(Node, annotations.place_while_changing, ANNOTATION_PLACE_WHILE_CHANGING, json_field_str),
        JSON_FIELD(Node, annotations.unit_change, ANNOTATION_UNIT_CHANGE, json_field_str),
        JSON_FIELD(Node, annotations.growth, ANNOTATION_GROWTH, json_field_str),
        JSON_FIELD(Node, annotations.cordon_cards, ANNOTATION_CORDON_CARDS, json_field_str),
        JSON_FIELD(Node, annotations.memory_isolation, ANNOTATION_MEMORY_ISOLATION, json_field_str),
};
JSON_DECODER(read_node_annotations, node_annotation_fields)

static const JsonField node_label_fields[] = {
        JSON_FIELD(Node, mode, LABEL_SCHEDULE, json_field_str),
        JSON_FIELD(Node, placement, LABEL_PLACEMENT, json_field_str),
        JSON_FIELD(Node, holds_slices, LABEL_HOLDS_SLICES, json_field_str),
        JSON_FIELD(Node, nvidia_plugin, LABEL_NVIDIA_PLUGIN, json_field_str),
        JSON_FIELD(Node, card_name, LABEL_CARD_NAME, json_field_str),
        JSON_FIELD(Node, card_mem, LABEL_CARD_MEM, json_field_str),
        JSON_FIELD(Node, card_count, LABEL_CARD_COUNT, json_field_str),
};
JSON_DECODER(read_node_labels, node_label_fields)

static const JsonField node_metadata_fields[] = {
        OBJECT_META_FIELDS(Node),
        JSON_NESTED("annotations", read_node_annotations),
        JSON_NESTED("labels", read_node_labels),
};
JSON_DECODER(read_node_metadata, node_metadata_fields)

static const JsonField allocatable_fields[] = {
        JSON_FIELD(Node, allocatable_mem, RESOURCE_GPU_MEM, object_read_amount),
        JSON_FIELD(Node, allocatable_count, RESOURCE_GPU_COUNT, object_read_amount),
        JSON_FIELD(Node, allocatable_core, RESOURCE_GPU_CORE, object_read_amount),
        JSON_FIELD(Node, allocatable_whole, RESOURCE_GPU, object_read_amount),
        JSON_FIELD(Node, allocatable_cpu, "cpu", object_read_amount),
};
JSON_DECODER(read_allocatable, allocatable_fields)

typedef struct NodeAddress {
        Str type, address;
} NodeAddress;

static const JsonField address_fields[] = {
        JSON_FIELD(NodeAddress, type, "type", json_field_str),
        JSON_FIELD(NodeAddress, address, "address", json_field_str),
};

static void read_addresses(JsonReader *r, Arena *arena, void *ret_str) {
        Str *internal_ip = ret_str;

        JSON_EACH_ELEMENT(r) {
                NodeAddress a = {0};

                json_field_decode(r, arena, address_fields, ELEMENTSOF(address_fields), &a);
                if (internal_ip->len == 0 && str_eq(a.type, STR("InternalIP")))
                        *internal_ip = a.address;
        }
}

static void read_conditions(JsonReader *r, Arena *arena, void *ret) {
        Node *node = ret;
        ObjectCondition c;

        if (!json_array_begin(r))
                return;
        while (object_next_condition(r, arena, &c)) {
                if (str_eq(c.type, STR(CONDITION_FENCES))) {
                        node->fences_status = c.status;
                        node->fences_message = c.message;
                } else if (str_eq(c.type, STR(CONDITION_MEMORY_LIMITS))) {
                        node->limits_status = c.status;
                        node->limits_reason = c.reason;
                        node->limits_message = c.message;
                }
        }
}

static const JsonField node_status_fields[] = {
        JSON_NESTED("allocatable", read_allocatable),
        JSON_NESTED("conditions", read_conditions),
        JSON_FIELD(Node, internal_ip, "addresses", read_addresses),
};
JSON_DECODER(read_node_status, node_status_fields)

static const JsonField node_fields[] = {
        JSON_NESTED("metadata", read_node_metadata),
        JSON_NESTED("status", read_node_status),
};

int node_decode(Str json, Arena *arena, Node *ret, Fault *fault) {
        JsonReader reader;
        Node n = {0};
        int r;

        json_init(&reader, json);
        object_read(&reader, arena, node_fields, ELEMENTSOF(node_fields), &n);
        r = json_finish(&reader, fault);
        if (r != 0)
                return object_result(r, "node", &n.meta, fault);
        *ret = n;
        return 0;
}
