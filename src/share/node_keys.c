/* SPDX-License-Identifier: Apache-2.0 */
#include "share/node_keys.h"

#include "share/fault_join.h"
#include "wire/annotation.h"
#include "wire/json_field.h"
#include "wire/key_typo.h"

enum { SHOWN = 64 }; /* bytes of a value and of a list of cards in a sentence */

/* What is in force if no good value was seen, in words; NULL: the caller passes it. */
static const char *const otherwise[] = {
        [NODE_KEY_MODE] = NULL,
        [NODE_KEY_PLACEMENT] = "binpack",
        [NODE_KEY_UNIT] = NULL,
        [NODE_KEY_POLICY] = "the agent's --policy",
        [NODE_KEY_MAX_INST] = "the policy's default",
        [NODE_KEY_PRIO_RATIO] = "the policy's default",
        [NODE_KEY_MAX_PODS] = "",
        [NODE_KEY_ALLOW_MIXED] = "false",
        [NODE_KEY_PLACE_WHILE_CHANGING] = "false",
        [NODE_KEY_UNIT_CHANGE] = "refusing a change while slices are held",
        [NODE_KEY_CORDON] = "no cordon",
        [NODE_KEY_MEMORY_ISOLATION] = "the agent's --memory-isolation",
};

static void remember_text(NodeKeys *k, NodeKey key, Str text) {
        size_t n = text.len < sizeof k->good[key] ? text.len : 0; /* a longer text is not good */

        if (n > 0)
                memcpy(k->good[key], text.data, n);
        k->good[key][n] = '\0';
}

void node_keys_recall(NodeKeys *k, NodeKey key, Str value) {
        if (node_key_is_good(key, value))
                remember_text(k, key, value);
}

static void keep_text(NodeKeys *k, int key, const Fault *said) {
        if (strcmp(said->text, k->wrong[key].text) != 0)
                k->changed |= UINT32_C(1) << key;
        k->wrong[key] = *said;
}

static void check_key(NodeKeys *k, NodeKey key, Str text, const char *in_force) {
        Fault said = FAULT_NULL;

        if (node_key_is_good(key, text))
                remember_text(k, key, text);
        else
                node_key_complain(key, text,
                                  key != NODE_KEY_MAX_PODS && otherwise[key] && k->good[key][0] ? k->good[key]
                                                                                                : in_force,
                                  &said);
        keep_text(k, (int) key, &said);
}

/* Whether the cordon is well-formed but names cards that the node does not have. Then its text is
 * kept. */
static bool check_cordon(NodeKeys *k, const Node *node, const CardIndexes *present) {
        Str text = node->annotations.cordon_cards;
        _cleanup_buf_ Buf absent = BUF_NULL;
        CardIndexes missing;
        Fault said = FAULT_NULL;

        if (!card_indexes_take(&k->cordon, text) || !present)
                return false;
        missing = card_indexes_without(&k->cordon, present);
        if (card_indexes_is_empty(&missing))
                return false;
        remember_text(k, NODE_KEY_CORDON, text);
        card_indexes_format(&missing, &absent);
        (void) fault_set(&said, 0,
                         "annotation " ANNOTATION_CORDON_CARDS " is \"%.*s\", must be %s: the node has no "
                         "%.*s; what it says of other cards is in force",
                         STR_CUT(text, SHOWN), node_key_rule(NODE_KEY_CORDON),
                         STR_CUT(buf_str(&absent), SHOWN));
        keep_text(k, NODE_KEY_CORDON, &said);
        return true;
}

static void write_max_pods(const NodeKeys *k, const char *mode, char ret[static NODE_KEY_MAX_PODS_TEXT]) {
        uint32_t max = 0;

        if (!str_to_u32(str_from(k->good[NODE_KEY_MAX_PODS]), &max))
                max = node_key_max_pods_default(share_mode_from_label(str_from(mode)));
        node_key_max_pods_words(max, ret);
}

void node_keys_check(NodeKeys *k, const Node *node, const char *mode, const char *unit,
                     const CardIndexes *present) {
        char max_pods[NODE_KEY_MAX_PODS_TEXT];
        _cleanup_buf_ Buf cordon = BUF_NULL;

        write_max_pods(k, mode, max_pods);
        k->changed = 0;
        for (int key = 0; key < NODE_KEYS_; key++) {
                const char *in_force = otherwise[key];

                if (key == NODE_KEY_MAX_PODS)
                        in_force = max_pods;
                if (key == NODE_KEY_CORDON && check_cordon(k, node, present))
                        continue;
                if (key == NODE_KEY_CORDON && !card_indexes_is_empty(&k->cordon)) {
                        buf_append_str(&cordon, STR("the cordon of "));
                        card_indexes_format(&k->cordon, &cordon);
                        in_force = buf_result(&cordon) == 0 ? cordon.data : "the cordon";
                }
                if (!in_force)
                        in_force = key == NODE_KEY_MODE ? mode : unit;
                check_key(k, (NodeKey) key, node_key_get(node, (NodeKey) key), in_force);
        }
}

/* ---- misspelt names ---- */

/* The key that was meant; -1: the name is known, or close to none. Labels and annotations are
 * searched together, because a key may have been set as the other kind. */
static int key_meant(const char *kind, Str name) {
        int meant = -1;
        unsigned least = KEY_TYPO_NONE;

        for (int key = 0; key < NODE_KEYS_; key++) {
                unsigned d = key_typo_distance(name, node_key_name((NodeKey) key));

                if (str_eq(name, str_from(node_key_name((NodeKey) key))) &&
                    strcmp(kind, node_key_kind((NodeKey) key)) == 0)
                        return -1;
                meant = d < least ? key : meant;
                least = d < least ? d : least;
        }
        return meant;
}

static void check_names(JsonReader *r, const char *kind, Fault *said) {
        Str name;

        JSON_EACH_MEMBER(r, &name) {
                int key = key_meant(kind, name);
                Fault more = FAULT_NULL;

                json_skip(r);
                if (key < 0)
                        continue;
                key_typo_complain(kind, name, node_key_kind((NodeKey) key), node_key_name((NodeKey) key),
                                  &more);
                fault_join(said, &more);
        }
}

static void read_labels(JsonReader *r, Arena *arena, void *ret_fault) {
        check_names(r, "label", ret_fault);
}

static void read_annotations(JsonReader *r, Arena *arena, void *ret_fault) {
        check_names(r, "annotation", ret_fault);
}

static const JsonField metadata_fields[] = {
        JSON_NESTED("labels", read_labels),
        JSON_NESTED("annotations", read_annotations),
};
JSON_DECODER(read_metadata, metadata_fields)

static const JsonField node_fields[] = {JSON_NESTED("metadata", read_metadata)};

void node_keys_check_names(NodeKeys *k, Str node) {
        Fault said = FAULT_NULL;

        if (json_field_read(node, NULL, node_fields, ELEMENTSOF(node_fields), &said, NULL) == 0)
                keep_text(k, NODE_KEYS_, &said);
}

/* ---- what holds ---- */

void node_keys_apply_good(const NodeKeys *k, Node *node) {
        for (int key = 0; key < NODE_KEYS_; key++)
                if (k->wrong[key].text[0] != '\0' && (key != NODE_KEY_CORDON || k->good[key][0] != '\0'))
                        node_key_set(node, (NodeKey) key, str_from(k->good[key]));
}

void node_keys_write_wrong(const NodeKeys *k, Buf *out) {
        for (int key = 0; key <= NODE_KEYS_; key++)
                if (k->wrong[key].text[0] != '\0')
                        buf_appendf(out, "%s%s", out->len > 0 ? "; " : "", k->wrong[key].text);
}

bool node_keys_place_while_changing(const NodeKeys *k) {
        return strcmp(k->good[NODE_KEY_PLACE_WHILE_CHANGING], "true") == 0;
}

bool node_keys_drain(const NodeKeys *k) {
        return strcmp(k->good[NODE_KEY_UNIT_CHANGE], "drain") == 0;
}

bool node_keys_limits_memory(const NodeKeys *k, const char *fallback) {
        const char *good = k->good[NODE_KEY_MEMORY_ISOLATION];

        return strcmp(good[0] != '\0' || !fallback ? good : fallback, "both") == 0;
}
