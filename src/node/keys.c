/* SPDX-License-Identifier: Apache-2.0 */
#include "node/keys.h"

#include <stddef.h>

#include "share/compute.h"
#include "share/mode.h"
#include "share/unit.h"

enum { SHOWN = 64 }; /* bytes of a wrong value */
enum { RATIO_MIN = 20, RATIO_MAX = 99 };

/* ---- rules ---- */

static bool is_mode(Str text) {
        return share_mode_from_label(text) != SHARE_MODE_UNKNOWN;
}

static bool is_placement(Str text) {
        return str_eq(text, STR("binpack")) || str_eq(text, STR("spread"));
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
        return is_number(text, 0, COMPUTE_POLICY_MAX);
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

static const struct {
        const char *what, *name;
        size_t offset; /* of its Str in Node */
        bool (*is_good)(Str text);
        const char *rule;
        const char *otherwise; /* in force by default; NULL: the caller says it */
} rules[] = {
        [NODE_KEY_MODE] = {"label", LABEL_SCHEDULE, offsetof(Node, mode), is_mode,
                           "share, cgpu, core_mem, default, disabled, topology, mps or mig", NULL},
        [NODE_KEY_PLACEMENT] = {"label", LABEL_PLACEMENT, offsetof(Node, placement), is_placement,
                                "binpack or spread", "binpack"},
        [NODE_KEY_UNIT] = {"annotation", ANNOTATION_UNIT, offsetof(Node, annotations.unit), is_unit,
                           "GiB, MiB or a whole number of them, as 128MiB", NULL},
        [NODE_KEY_POLICY] = {"annotation", ANNOTATION_POLICY, offsetof(Node, annotations.policy), is_policy,
                             "0 to 5", "the agent's --policy"},
        [NODE_KEY_MAX_INST] = {"annotation", ANNOTATION_MAX_INST, offsetof(Node, annotations.max_inst),
                               is_max_inst, "a whole number from 1 to 100", "the policy's default"},
        [NODE_KEY_PRIO_RATIO] = {"annotation", ANNOTATION_PRIO_RATIO, offsetof(Node, annotations.prio_ratio),
                                 is_ratio, "a percentage from 20 to 99", "the policy's default"},
        [NODE_KEY_MAX_PODS] = {"annotation", ANNOTATION_MAX_PODS, offsetof(Node, annotations.max_pods),
                               is_max_pods, "a whole number, 0 for no ceiling", "the mode's default"},
        [NODE_KEY_ALLOW_MIXED] = {"annotation", ANNOTATION_ALLOW_MIXED,
                                  offsetof(Node, annotations.allow_mixed), is_switch, "true or false",
                                  "false"},
        [NODE_KEY_PLACE_WHILE_CHANGING] = {"annotation", ANNOTATION_PLACE_WHILE_CHANGING,
                                           offsetof(Node, annotations.place_while_changing), is_switch,
                                           "true or false", "false"},
        [NODE_KEY_UNIT_CHANGE] = {"annotation", ANNOTATION_UNIT_CHANGE,
                                  offsetof(Node, annotations.unit_change), is_unit_change, "drain, or absent",
                                  "refusing a change while slices are held"},
};

/* ---- judging ---- */

static void remember(NodeKeys *k, int key, Str text) {
        size_t n = text.len < sizeof k->good[key] ? text.len : 0; /* good values are shorter */

        if (n > 0)
                memcpy(k->good[key], text.data, n);
        k->good[key][n] = '\0';
}

static void check(NodeKeys *k, int key, Str text, const char *in_force) {
        Fault said = FAULT_NULL;

        if (str_is_empty(text) || rules[key].is_good(text))
                remember(k, key, text);
        else
                (void) fault_set(&said, 0, "%s %s is \"%.*s\", must be %s; %s stays in force",
                                 rules[key].what, rules[key].name,
                                 (int) (text.len < SHOWN ? text.len : SHOWN), text.data, rules[key].rule,
                                 rules[key].otherwise && k->good[key][0] ? k->good[key] : in_force);
        if (strcmp(said.text, k->wrong[key].text) != 0)
                k->changed |= UINT32_C(1) << key;
        k->wrong[key] = said;
}

void keys_check(NodeKeys *k, const Node *node, const char *mode, const char *unit) {
        k->changed = 0;
        for (int key = 0; key < NODE_KEYS_; key++) {
                const char *in_force = rules[key].otherwise;

                if (!in_force)
                        in_force = key == NODE_KEY_MODE ? mode : unit;
                check(k, key, *(const Str *) ((const char *) node + rules[key].offset), in_force);
        }
}

void keys_write_wrong(const NodeKeys *k, Buf *out) {
        for (int key = 0; key < NODE_KEYS_; key++)
                if (k->wrong[key].text[0] != '\0')
                        buf_appendf(out, "%s%s", out->len > 0 ? "; " : "", k->wrong[key].text);
}

bool keys_place_while_changing(const NodeKeys *k) {
        return strcmp(k->good[NODE_KEY_PLACE_WHILE_CHANGING], "true") == 0;
}

bool keys_drain(const NodeKeys *k) {
        return strcmp(k->good[NODE_KEY_UNIT_CHANGE], "drain") == 0;
}
