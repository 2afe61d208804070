/* SPDX-License-Identifier: Apache-2.0 */
#include "node/publish/node_config.h"

#include <errno.h>
#include <stddef.h>

#include "wire/json_field.h"
#include "wire/json_write.h"

void node_config_init(NodeConfig *c, MemoryUnit unit) {
        *c = (NodeConfig){
                .mode = SHARE_MODE_NONE, .unit = unit, .wanted_mode = SHARE_MODE_NONE, .wanted_unit = unit};
}

/* The mode that the label asks for: the mode in force when the label is absent, or its value is no
 * mode (docs/reference/reference.md). */
static ShareMode mode_of(const NodeConfig *c, Str label) {
        ShareMode mode = share_mode_from_label(label);

        return mode == SHARE_MODE_NONE || mode == SHARE_MODE_UNKNOWN ? c->mode : mode;
}

void node_config_request(NodeConfig *c, const NodeConfigRequest *request) {
        c->wanted_mode = mode_of(c, request->label);
        c->place_while_changing = request->place_while_changing;
        c->drain = request->drain;
        if (str_eq(request->unit, str_from(c->published_unit)))
                c->replaced_unit[0] = '\0';
        c->unit_by_user = !str_is_empty(request->unit) &&
                          !str_eq(request->unit, str_from(c->published_unit)) &&
                          !str_eq(request->unit, str_from(c->replaced_unit));
        (void) snprintf(c->seen_unit, sizeof c->seen_unit, "%.*s",
                        STR_CUT(request->unit, c->unit_by_user ? 0 : sizeof c->seen_unit - 1));
        if (!c->unit_by_user)
                c->wanted_unit = request->configured;
        else if (memory_unit_parse(request->unit, &c->wanted_unit) != 0)
                c->wanted_unit = c->unit;
}

void node_config_publish_unit(NodeConfig *c, const char *unit) {
        if (strcmp(c->published_unit, unit) != 0)
                memcpy(c->replaced_unit, c->published_unit, sizeof c->replaced_unit);
        (void) snprintf(c->published_unit, sizeof c->published_unit, "%s", unit);
}

bool node_config_is_pending(const NodeConfig *c) {
        return c->wanted_mode != c->mode || c->wanted_unit.mib != c->unit.mib;
}

bool node_config_apply(NodeConfig *c, bool slices_are_held) {
        /* In no mode, or in a unit that was never offered, this agent has given out no slice. Pods
         * that hold slices then come from another agent, or from before the state directory was
         * lost. A node that offers nothing would wait for them for ever. */
        if ((slices_are_held && c->mode != SHARE_MODE_NONE && c->offered) || !node_config_is_pending(c))
                return false;
        c->offered = c->offered && c->unit.mib == c->wanted_unit.mib;
        c->mode = c->wanted_mode;
        c->unit = c->wanted_unit;
        return true;
}

void node_config_write_blocking(const NodeConfig *c, Buf *out) {
        bool mode = c->wanted_mode != c->mode && !c->place_while_changing;

        if (mode)
                buf_appendf(out, "mode %s -> %s", share_mode_to_string(c->mode),
                            share_mode_to_string(c->wanted_mode));
        if (c->wanted_unit.mib == c->unit.mib || !c->drain)
                return;
        buf_append_str(out, mode ? STR(", gpu-mem-unit ") : STR("gpu-mem-unit "));
        memory_unit_format(c->unit, out);
        buf_append_str(out, STR(" -> "));
        memory_unit_format(c->wanted_unit, out);
}

/* ---- on disk ---- */

void node_config_write(const NodeConfig *c, Buf *out) {
        _cleanup_buf_ Buf unit = BUF_NULL;
        JsonWriter w;

        memory_unit_format(c->unit, &unit);
        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_text(&w, "mode", share_mode_to_string(c->mode));
        json_write_str(&w, "unit", buf_str(&unit));
        json_write_text(&w, "saidUnit", c->published_unit);
        json_write_bool(&w, "offered", c->offered);
        json_write_text(&w, "memoryIsolation", c->memory_isolation);
        json_write_object_end(&w);
        out->broken |= unit.broken;
}

typedef struct NodeConfigText {
        Str mode, unit, said, memory_isolation;
        bool offered;
} NodeConfigText;

static const JsonField node_config_fields[] = {
        JSON_FIELD(NodeConfigText, mode, "mode", json_field_str),
        JSON_FIELD(NodeConfigText, unit, "unit", json_field_str),
        JSON_FIELD(NodeConfigText, said, "saidUnit", json_field_str),
        JSON_FIELD(NodeConfigText, offered, "offered", json_field_bool),
        JSON_FIELD(NodeConfigText, memory_isolation, "memoryIsolation", json_field_str),
};

int node_config_read(Str json, NodeConfig *ret, Fault *fault) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        NodeConfigText text = {0};
        NodeConfig c;
        int e = json_field_read(json, &arena, node_config_fields, ELEMENTSOF(node_config_fields), &text,
                                fault);

        if (e != 0)
                return e < 0 ? e : NODE_CONFIG_E_MALFORMED;
        node_config_init(&c, MEMORY_UNIT_GIB);
        if (memory_unit_parse(text.unit, &c.unit) != 0 || text.said.len >= sizeof c.published_unit)
                return fault_set(fault, NODE_CONFIG_E_MALFORMED, "unit \"%.*s\" is none",
                                 STR_CUT(text.unit, 64));
        /* An agent may have written "none" or "unknown", which are no values of the label. */
        c.mode = share_mode_from_label(text.mode);
        if (c.mode == SHARE_MODE_UNKNOWN)
                c.mode = SHARE_MODE_NONE;
        c.offered = text.offered;
        (void) snprintf(c.memory_isolation, sizeof c.memory_isolation, "%.*s",
                        STR_CUT(text.memory_isolation, sizeof c.memory_isolation - 1));
        c.wanted_mode = c.mode;
        c.wanted_unit = c.unit;
        if (text.said.len > 0)
                memcpy(c.published_unit, text.said.data, text.said.len);
        c.published_unit[text.said.len] = '\0';
        *ret = c;
        return 0;
}
