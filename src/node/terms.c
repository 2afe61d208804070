/* SPDX-License-Identifier: Apache-2.0 */
#include "node/terms.h"

#include <errno.h>
#include <stddef.h>

#include "wire/json_field.h"
#include "wire/json_write.h"

void terms_init(Terms *t, MemoryUnit unit) {
        *t = (Terms){
                .mode = SHARE_MODE_NONE, .unit = unit, .wanted_mode = SHARE_MODE_NONE, .wanted_unit = unit};
}

/* "Deleting the label does not mean exclusive mode", and a value that CONTRACT section 1 does not
 * list means nothing. */
static ShareMode mode_of(const Terms *t, Str label) {
        ShareMode mode = share_mode_from_label(label);

        return mode == SHARE_MODE_NONE || mode == SHARE_MODE_UNKNOWN ? t->mode : mode;
}

void terms_want(Terms *t, const TermsWish *wish) {
        t->wanted_mode = mode_of(t, wish->label);
        t->place_while_changing = wish->place_while_changing;
        t->drain = wish->drain;
        t->users_unit = !str_is_empty(wish->unit) && !str_eq(wish->unit, str_from(t->said_unit));
        if (!t->users_unit)
                t->wanted_unit = wish->configured;
        else if (memory_unit_parse(wish->unit, &t->wanted_unit) != 0)
                t->wanted_unit = t->unit;
}

bool terms_pending(const Terms *t) {
        return t->wanted_mode != t->mode || t->wanted_unit.mib != t->unit.mib;
}

bool terms_settle(Terms *t, bool slices_are_held) {
        /* In no mode, or in a unit that was never offered, this agent gave out no slice. Pods that
         * hold some come from before the state directory was lost, or from another agent: a node
         * that offers nothing would wait for them for ever. */
        if ((slices_are_held && t->mode != SHARE_MODE_NONE && t->offered) || !terms_pending(t))
                return false;
        t->offered = t->offered && t->unit.mib == t->wanted_unit.mib;
        t->mode = t->wanted_mode;
        t->unit = t->wanted_unit;
        return true;
}

void terms_write_stopping(const Terms *t, Buf *out) {
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

void terms_write(const Terms *t, Buf *out) {
        _cleanup_buf_ Buf unit = BUF_NULL;
        JsonWriter w;

        memory_unit_format(t->unit, &unit);
        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_text(&w, "mode", share_mode_to_string(t->mode));
        json_write_str(&w, "unit", buf_str(&unit));
        json_write_text(&w, "saidUnit", t->said_unit);
        json_write_bool(&w, "offered", t->offered);
        json_write_object_end(&w);
        out->broken |= unit.broken;
}

typedef struct TermsText {
        Str mode, unit, said;
        bool offered;
} TermsText;

static const JsonField terms_fields[] = {
        JSON_FIELD(TermsText, mode, "mode", json_field_str),
        JSON_FIELD(TermsText, unit, "unit", json_field_str),
        JSON_FIELD(TermsText, said, "saidUnit", json_field_str),
        JSON_FIELD(TermsText, offered, "offered", json_field_bool),
};

int terms_read(Str json, Terms *ret, Fault *fault) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        TermsText text = {
                .offered =
                        true}; /* a file without this member was written by an agent that offered every unit */
        Terms t;
        JsonReader r;
        int e;

        json_init(&r, json);
        json_field_decode(&r, &arena, terms_fields, ELEMENTSOF(terms_fields), &text);
        e = json_finish(&r, fault);
        if (e != 0)
                return e < 0 ? e : TERMS_E_MALFORMED;
        terms_init(&t, MEMORY_UNIT_GIB);
        if (memory_unit_parse(text.unit, &t.unit) != 0 || text.said.len >= sizeof t.said_unit)
                return fault_set(fault, TERMS_E_MALFORMED, "unit \"%.*s\" is none",
                                 (int) (text.unit.len < 64 ? text.unit.len : 64), text.unit.data);
        /* Neither "none" nor "unknown", which an agent may have written, is a label's value. */
        t.mode = share_mode_from_label(text.mode);
        if (t.mode == SHARE_MODE_UNKNOWN)
                t.mode = SHARE_MODE_NONE;
        t.offered = text.offered;
        t.wanted_mode = t.mode;
        t.wanted_unit = t.unit;
        if (text.said.len > 0)
                memcpy(t.said_unit, text.said.data, text.said.len);
        t.said_unit[text.said.len] = '\0';
        *ret = t;
        return 0;
}
