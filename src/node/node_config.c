/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node_config.h"

#include <errno.h>
#include <stddef.h>

#include "wire/json_field.h"
#include "wire/json_write.h"

void node_config_init(NodeConfig *t, MemoryUnit unit) {
        *t = (NodeConfig){
                .mode = SHARE_MODE_NONE, .unit = unit, .wanted_mode = SHARE_MODE_NONE, .wanted_unit = unit};
}

/* The mode in force stays when the label is deleted, and for a value that is no mode
 * (docs/reference.md). */
static ShareMode mode_of(const NodeConfig *t, Str label) {
        ShareMode mode = share_mode_from_label(label);

        return mode == SHARE_MODE_NONE || mode == SHARE_MODE_UNKNOWN ? t->mode : mode;
}

void node_config_request(NodeConfig *t, const NodeConfigRequest *wish) {
        t->wanted_mode = mode_of(t, wish->label);
        t->place_while_changing = wish->place_while_changing;
        t->drain = wish->drain;
        t->unit_by_user = !str_is_empty(wish->unit) && !str_eq(wish->unit, str_from(t->published_unit));
        if (!t->unit_by_user)
                t->wanted_unit = wish->configured;
        else if (memory_unit_parse(wish->unit, &t->wanted_unit) != 0)
                t->wanted_unit = t->unit;
}

bool node_config_is_pending(const NodeConfig *t) {
        return t->wanted_mode != t->mode || t->wanted_unit.mib != t->unit.mib;
}

bool node_config_apply(NodeConfig *t, bool slices_are_held) {
        /* In no mode, or in a unit that was never offered, this agent has given out no slice. Pods
         * that hold slices then come from another agent, or from before the state directory was
         * lost. A node that offers nothing would wait for them for ever. */
        if ((slices_are_held && t->mode != SHARE_MODE_NONE && t->offered) || !node_config_is_pending(t))
                return false;
        t->offered = t->offered && t->unit.mib == t->wanted_unit.mib;
        t->mode = t->wanted_mode;
        t->unit = t->wanted_unit;
        return true;
}

void node_config_write_blocking(const NodeConfig *t, Buf *out) {
        bool mode = t->wanted_mode != t->mode && !t->place_while_changing;

        if (mode)
                buf_appendf(out, "mode %s -> %s", share_mode_to_string(t->mode),
                            share_mode_to_string(t->wanted_mode));
        if (t->wanted_unit.mib == t->unit.mib || !t->drain)
                return;
        buf_append_str(out, mode ? STR(", gpu-mem-unit ") : STR("gpu-mem-unit "));
        memory_unit_format(t->unit, out);
        buf_append_str(out, STR(" -> "));
        memory_unit_format(t->wanted_unit, out);
}

/* ---- on disk ---- */

void node_config_write(const NodeConfig *t, Buf *out) {
        _cleanup_buf_ Buf unit = BUF_NULL;
        JsonWriter w;

        memory_unit_format(t->unit, &unit);
        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_text(&w, "mode", share_mode_to_string(t->mode));
        json_write_str(&w, "unit", buf_str(&unit));
        json_write_text(&w, "saidUnit", t->published_unit);
        json_write_bool(&w, "offered", t->offered);
        json_write_object_end(&w);
        out->broken |= unit.broken;
}

typedef struct NodeConfigText {
        Str mode, unit, said;
        bool offered;
} NodeConfigText;

static const JsonField node_config_fields[] = {
        JSON_FIELD(NodeConfigText, mode, "mode", json_field_str),
        JSON_FIELD(NodeConfigText, unit, "unit", json_field_str),
        JSON_FIELD(NodeConfigText, said, "saidUnit", json_field_str),
        JSON_FIELD(NodeConfigText, offered, "offered", json_field_bool),
};

int node_config_read(Str json, NodeConfig *ret, Fault *fault) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        NodeConfigText text = {.offered = true}; /* older agents wrote no member, and offered every unit */
        NodeConfig t;
        JsonReader r;
        int e;

        json_init(&r, json);
        json_field_decode(&r, &arena, node_config_fields, ELEMENTSOF(node_config_fields), &text);
        e = json_finish(&r, fault);
        if (e != 0)
                return e < 0 ? e : NODE_CONFIG_E_MALFORMED;
        node_config_init(&t, MEMORY_UNIT_GIB);
        if (memory_unit_parse(text.unit, &t.unit) != 0 || text.said.len >= sizeof t.published_unit)
                return fault_set(fault, NODE_CONFIG_E_MALFORMED, "unit \"%.*s\" is none",
                                 (int) (text.unit.len < 64 ? text.unit.len : 64), text.unit.data);
        /* An agent may have written "none" or "unknown", which are no values of the label. */
        t.mode = share_mode_from_label(text.mode);
        if (t.mode == SHARE_MODE_UNKNOWN)
                t.mode = SHARE_MODE_NONE;
        t.offered = text.offered;
        t.wanted_mode = t.mode;
        t.wanted_unit = t.unit;
        if (text.said.len > 0)
                memcpy(t.published_unit, text.said.data, text.said.len);
        t.published_unit[text.said.len] = '\0';
        *ret = t;
        return 0;
}
