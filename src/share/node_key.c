/* SPDX-License-Identifier: Apache-2.0 */
#include "share/node_key.h"

#include <stdio.h>

#include <stddef.h>

#include "share/card_indexes.h"
#include "share/memory_unit.h"
#include "share/mode.h"
#include "share/placement_policy.h"
#include "slice/compute_policy.h"
#include "wire/annotation.h"

enum { RATIO_MIN = 20, RATIO_MAX = 99 };

static bool is_mode(Str text) {
        return share_mode_from_label(text) != SHARE_MODE_UNKNOWN;
}

static bool is_placement(Str text) {
        PlacementPolicy policy;

        return placement_policy_parse(text, &policy);
}

static bool is_unit(Str text) {
        MemoryUnit unit;

        return memory_unit_parse(text, &unit) == 0;
}

static bool is_number(Str text, uint32_t low, uint32_t high) {
        uint32_t n;

        return str_to_u32(text, &n) && n >= low && n <= high;
}

static bool is_policy(Str text) {
        return is_number(text, 0, COMPUTE_NUMBER_MAX);
}

static bool is_max_inst(Str text) {
        return is_number(text, 1, COMPUTE_INSTANCES_MAX);
}

static bool is_ratio(Str text) {
        return is_number(text, RATIO_MIN, RATIO_MAX);
}

static bool is_max_pods(Str text) {
        return is_number(text, 0, UINT32_MAX);
}

static bool is_switch(Str text) {
        return str_eq(text, STR("true")) || str_eq(text, STR("false"));
}

static bool is_unit_change(Str text) {
        return str_eq(text, STR("drain"));
}

static bool is_memory_isolation(Str text) {
        return str_eq(text, STR("auto")) || str_eq(text, STR("preload")) || str_eq(text, STR("both"));
}

static bool is_cordon(Str text) {
        CardIndexes cards;

        return card_indexes_parse(text, &cards);
}

#define LABEL(member)      "label", offsetof(Node, member)
#define ANNOTATION(member) "annotation", offsetof(Node, annotations.member)

static const struct {
        const char *name, *kind;
        size_t offset; /* of its Str in Node */
        bool (*is_good)(Str text);
        const char *rule;
} keys[] = {
        [NODE_KEY_MODE] = {LABEL_SCHEDULE, LABEL(mode), is_mode,
                           "share, cgpu, core_mem, default, disabled, topology, mps or mig"},
        [NODE_KEY_PLACEMENT] = {LABEL_PLACEMENT, LABEL(placement), is_placement, "binpack or spread"},
        [NODE_KEY_UNIT] = {ANNOTATION_UNIT, ANNOTATION(unit), is_unit,
                           "GiB, MiB or a whole number of them, as 128MiB"},
        [NODE_KEY_POLICY] = {ANNOTATION_POLICY, ANNOTATION(policy), is_policy, "0 to 5"},
        [NODE_KEY_MAX_INST] = {ANNOTATION_MAX_INST, ANNOTATION(max_inst), is_max_inst,
                               "a whole number from 1 to 100"},
        [NODE_KEY_PRIO_RATIO] = {ANNOTATION_PRIO_RATIO, ANNOTATION(prio_ratio), is_ratio,
                                 "a percentage from 20 to 99"},
        [NODE_KEY_MAX_PODS] = {ANNOTATION_MAX_PODS, ANNOTATION(max_pods), is_max_pods,
                               "a whole number, 0 for no ceiling"},
        [NODE_KEY_ALLOW_MIXED] = {ANNOTATION_ALLOW_MIXED, ANNOTATION(allow_mixed), is_switch,
                                  "true or false"},
        [NODE_KEY_PLACE_WHILE_CHANGING] = {ANNOTATION_PLACE_WHILE_CHANGING, ANNOTATION(place_while_changing),
                                           is_switch, "true or false"},
        [NODE_KEY_UNIT_CHANGE] = {ANNOTATION_UNIT_CHANGE, ANNOTATION(unit_change), is_unit_change,
                                  "drain, or absent"},
        [NODE_KEY_CORDON] = {ANNOTATION_CORDON_CARDS, ANNOTATION(cordon_cards), is_cordon,
                             "indexes of cards from 0 to 255 with commas between them, as 2,3, in at "
                             "most 127 characters"},
        [NODE_KEY_MEMORY_ISOLATION] = {ANNOTATION_MEMORY_ISOLATION, ANNOTATION(memory_isolation),
                                       is_memory_isolation,
                                       "auto, preload or both (there is no isolation by the driver alone)"},
};

const char *node_key_kind(NodeKey key) {
        return keys[key].kind;
}

const char *node_key_name(NodeKey key) {
        return keys[key].name;
}

const char *node_key_rule(NodeKey key) {
        return keys[key].rule;
}

bool node_key_is_good(NodeKey key, Str value) {
        return str_is_empty(value) || keys[key].is_good(value);
}

Str node_key_get(const Node *node, NodeKey key) {
        return *(const Str *) ((const char *) node + keys[key].offset);
}

void node_key_set(Node *node, NodeKey key, Str value) {
        *(Str *) ((char *) node + keys[key].offset) = value;
}

enum { SHOWN = 64, MAX_PODS_ISOLATED = 20 /* ACK's ceiling on isolated nodes */ };

void node_key_complain(NodeKey key, Str value, const char *in_force, Fault *ret) {
        (void) fault_set(ret, 0, "%s %s is \"%.*s\", must be %s; %s stays in force", node_key_kind(key),
                         node_key_name(key), STR_CUT(value, SHOWN), node_key_rule(key), in_force);
}

uint32_t node_key_max_pods_default(ShareMode mode) {
        return share_mode_is_isolated(mode) ? MAX_PODS_ISOLATED : 0;
}

void node_key_max_pods_words(uint32_t max, char ret[static NODE_KEY_MAX_PODS_TEXT]) {
        if (max == 0)
                (void) snprintf(ret, NODE_KEY_MAX_PODS_TEXT, "no ceiling");
        else
                (void) snprintf(ret, NODE_KEY_MAX_PODS_TEXT, "%u pod%s per card", max, max == 1 ? "" : "s");
}
