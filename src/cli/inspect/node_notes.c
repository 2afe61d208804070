/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/inspect/node_notes.h"

#include <errno.h>
#include <stdio.h>

#include "base/buf.h"
#include "share/growth.h"
#include "wire/node.h"
#include "wire/object-internal.h"

/* Prefixes of the types of Aliquot's conditions (docs/reference/reference.md). */
static const Str condition_prefixes[] = {STR("GPUShare"), STR("GPUFence")};

typedef struct Notes {
        InspectNote list[INSPECT_NOTES_MAX];
        size_t n;
        bool unschedulable, pending_said;
} Notes;

static void add_note(Notes *notes, Str type, Str message) {
        if (notes->n < INSPECT_NOTES_MAX)
                notes->list[notes->n++] = (InspectNote){type, message, false};
}

/* Adds a note for a node where the driver limits memory, too (wire/node.h). */
static void add_isolation(Notes *notes, const ObjectCondition *c) {
        if (!str_eq(c->type, STR(CONDITION_MEMORY_LIMITS)) ||
            !str_eq(c->reason, STR(CONDITION_REASON_LIMITED)) || notes->n == INSPECT_NOTES_MAX)
                return;
        notes->list[notes->n++] = (InspectNote){STR("MemoryIsolation"), c->message, true};
}

static bool is_ours(Str type) {
        for (size_t i = 0; i < ELEMENTSOF(condition_prefixes); i++)
                if (str_has_prefix(type, condition_prefixes[i]))
                        return true;
        return false;
}

static void read_conditions(JsonReader *r, Arena *arena, void *ret) {
        Notes *notes = ret;
        ObjectCondition c;

        if (!json_array_begin(r))
                return;
        while (object_next_condition(r, arena, &c)) {
                bool is_true = str_eq(c.status, STR("True"));

                if (is_true && is_ours(c.type))
                        add_note(notes, c.type, c.message);
                if (!is_true)
                        add_isolation(notes, &c);
                if (!is_true && str_eq(c.type, STR("Ready")))
                        add_note(notes, STR("NotReady"), c.message);
                notes->pending_said |= is_true && str_eq(c.type, STR("GPUShareChangePending"));
        }
}

static const JsonField status_fields[] = {JSON_NESTED("conditions", read_conditions)};
JSON_DECODER(read_status, status_fields)

static const JsonField spec_fields[] = {JSON_FIELD(Notes, unschedulable, "unschedulable", json_field_bool)};
JSON_DECODER(read_spec, spec_fields)

static const JsonField node_fields[] = {JSON_NESTED("spec", read_spec), JSON_NESTED("status", read_status)};

typedef struct Held {
        Str pod;
} Held;

static const JsonField held_fields[] = {JSON_FIELD(Held, pod, "pod", json_field_str)};

/* Adds a note about slices of deleted pods. The scheduler counts them, but these pods are not in
 * the report. */
static int add_held(Notes *notes, Str annotation, Arena *arena) {
        _cleanup_buf_ Buf text = BUF_NULL;
        JsonReader r;
        size_t n = 0;
        Str copy;

        json_init(&r, annotation);
        if (!json_array_begin(&r))
                return 0;
        while (json_array_next(&r)) {
                Held held = {0};

                json_field_decode(&r, arena, held_fields, ELEMENTSOF(held_fields), &held);
                buf_append_str(&text, n++ > 0 ? STR(", ") : STR("processes of deleted pods hold slices: "));
                buf_append_str(&text, held.pod);
        }
        if (json_finish(&r, NULL) != 0 || n == 0)
                return 0;
        copy = arena_str(arena, buf_str(&text));
        if (text.broken || !copy.data)
                return -ENOMEM;
        add_note(notes, STR("SlicesHeld"), copy);
        return 0;
}

/* Adds a note about growth beyond limits. No pod of the report has these amounts, but the sums of
 * the cards include them. */
static int add_grown(Notes *notes, Str annotation, Arena *arena) {
        unsigned long long mem = 0, core = 0;
        Growth growth;
        char text[128];
        Str copy;
        int r = growth_read(annotation, arena, &growth, NULL);

        if (r < 0)
                return r;
        for (size_t i = 0; i < growth.n; i++) {
                GrowthSize more = growth_excess(growth.list[i].size);

                mem += (unsigned long long) more.mem;
                core += (unsigned long long) more.core;
        }
        if (mem == 0 && core == 0)
                return 0;
        (void) snprintf(text, sizeof text,
                        "the sums include %llu of gpu-mem and %llu percent of gpu-core above limits of pods",
                        mem, core);
        copy = arena_str(arena, str_from(text));
        if (!copy.data)
                return -ENOMEM;
        add_note(notes, STR("SlicesGrown"), copy);
        return 0;
}

static int keep_notes(const Notes *notes, Arena *arena, InspectNode *ret) {
        if (notes->n == 0)
                return 0;
        ret->notes = arena_new(arena, InspectNote, notes->n);
        if (!ret->notes)
                return -ENOMEM;
        for (size_t i = 0; i < notes->n; i++) {
                InspectNote note = {arena_str(arena, notes->list[i].type),
                                    arena_str(arena, notes->list[i].message), notes->list[i].detail};

                if (!note.type.data || !note.message.data)
                        return -ENOMEM;
                ret->notes[ret->n_notes++] = note;
        }
        return 0;
}

int node_notes_read(Str object, const Node *node, Arena *scratch, Arena *arena, InspectNode *ret) {
        Notes notes = {.n = 0};
        int status = json_field_read(object, scratch, node_fields, ELEMENTSOF(node_fields), &notes, NULL);

        if (status < 0)
                return status;
        if (status > 0)
                notes = (Notes){.n = 0};
        if (notes.unschedulable)
                add_note(&notes, STR("SchedulingDisabled"), STR("the node takes no new pods"));
        if (!str_is_empty(node->annotations.change_pending) && !notes.pending_said)
                add_note(&notes, STR("GPUShareChangePending"), node->annotations.change_pending);
        if (!str_is_empty(node->annotations.held_slices))
                status = add_held(&notes, node->annotations.held_slices, scratch);
        if (status >= 0 && !str_is_empty(node->annotations.growth))
                status = add_grown(&notes, node->annotations.growth, scratch);
        return status < 0 ? status : keep_notes(&notes, arena, ret);
}
