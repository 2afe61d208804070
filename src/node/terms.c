/* SPDX-License-Identifier: Apache-2.0 */
#include "node/terms.h"

#include <errno.h>
#include <stddef.h>

#include "wire/json_table.h"
#include "wire/json_write.h"

void terms_init(Terms *t, MemoryUnit unit) {
        *t = (Terms){
                .mode = SHARE_MODE_NONE, .unit = unit, .wanted_mode = SHARE_MODE_NONE, .wanted_unit = unit};
}

/* "Deleting the label does not mean exclusive mode": a node that shared goes on as before. */
static ShareMode mode_of(const Terms *t, Str label) {
        return str_is_empty(label) ? t->mode : share_mode_from_label(label);
}

int terms_want(Terms *t, Str label, Str unit_annotation, MemoryUnit configured, Fault *fault) {
        t->wanted_mode = mode_of(t, label);
        t->users_unit = !str_is_empty(unit_annotation) && !str_eq(unit_annotation, str_from(t->said_unit));
        if (!t->users_unit) {
                t->wanted_unit = configured;
                return 0;
        }
        if (memory_unit_parse(unit_annotation, &t->wanted_unit) == 0)
                return 0;
        t->wanted_unit = t->unit;
        return fault_set(
                fault, TERMS_E_UNIT,
                "annotation aliquot.dev/gpu-mem-unit is \"%.*s\", must be GiB, MiB or a whole number of them",
                (int) (unit_annotation.len < 64 ? unit_annotation.len : 64), unit_annotation.data);
}

bool terms_pending(const Terms *t) {
        return t->wanted_mode != t->mode || t->wanted_unit.mib != t->unit.mib;
}

bool terms_settle(Terms *t, bool slices_are_held) {
        /* No slice is held in no mode: pods that hold some come from before the state directory was lost, or from another
         * agent, and stay on a node that offers nothing for ever if they are waited for. */
        if ((slices_are_held && t->mode != SHARE_MODE_NONE) || !terms_pending(t))
                return false;
        t->mode = t->wanted_mode;
        t->unit = t->wanted_unit;
        return true;
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
        json_write_object_end(&w);
        out->broken |= unit.broken;
}

typedef struct TermsText {
        Str mode, unit, said;
} TermsText;

static const JsonField terms_fields[] = {
        JSON_FIELD(TermsText, mode, "mode", json_field_str),
        JSON_FIELD(TermsText, unit, "unit", json_field_str),
        JSON_FIELD(TermsText, said, "saidUnit", json_field_str),
};

int terms_read(Str json, Terms *ret, Fault *fault) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        TermsText text = {0};
        Terms t;
        JsonReader r;
        int e;

        json_init(&r, json);
        json_decode(&r, &arena, terms_fields, ELEMENTSOF(terms_fields), &text);
        e = json_finish(&r, fault);
        if (e != 0)
                return e < 0 ? e : TERMS_E_MALFORMED;
        terms_init(&t, MEMORY_UNIT_GIB);
        if (memory_unit_parse(text.unit, &t.unit) != 0 || text.said.len >= sizeof t.said_unit)
                return fault_set(fault, TERMS_E_MALFORMED, "unit \"%.*s\" is none",
                                 (int) (text.unit.len < 64 ? text.unit.len : 64), text.unit.data);
        /* "none" is no label's value, and means what it says. */
        t.mode = str_eq(text.mode, STR("none")) ? SHARE_MODE_NONE : share_mode_from_label(text.mode);
        t.wanted_mode = t.mode;
        t.wanted_unit = t.unit;
        if (text.said.len > 0)
                memcpy(t.said_unit, text.said.data, text.said.len);
        t.said_unit[text.said.len] = '\0';
        *ret = t;
        return 0;
}
