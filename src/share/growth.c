/* SPDX-License-Identifier: Apache-2.0 */
#include "share/growth.h"

#include <errno.h>
#include <stddef.h>

#include "wire/annotation.h"
#include "wire/json_field.h"
#include "wire/json_write.h"
#include "wire/resize_keys.h"

enum { MEM_MAX = 1 << 20, CORE_MAX = 100 }; /* the most units and percent of one card */

/* ---- reading ---- */

typedef struct EntryText {
        Str uid;
        int64_t container, card, mem, core, less_mem, less_core;
} EntryText;

static const JsonField entry_fields[] = {
        JSON_FIELD(EntryText, uid, "uid", json_field_str),
        JSON_FIELD(EntryText, container, "container", json_field_i64),
        JSON_FIELD(EntryText, card, "card", json_field_i64),
        JSON_FIELD(EntryText, mem, "mem", json_field_i64),
        JSON_FIELD(EntryText, core, "core", json_field_i64),
        JSON_FIELD(EntryText, less_mem, "lessMem", json_field_i64),
        JSON_FIELD(EntryText, less_core, "lessCore", json_field_i64),
};

static bool is_within(int64_t value, int64_t most) {
        return value >= 0 && value <= most;
}

/* Whether the amounts are valid; an entry is above the limit or below it. */
static bool is_amount(int64_t more, int64_t less, int64_t most) {
        return is_within(more, most) && is_within(less, most) && (more == 0 || less == 0);
}

/* Makes room for one more entry. The array doubles when n is a power of two, so the copies of n
 * entries total at most 2 n. */
static bool has_room(Growth *g, Arena *arena) {
        GrowthEntry *list;

        if (g->n > 0 && (g->n & (g->n - 1)) != 0)
                return true;
        list = arena_new(arena, GrowthEntry, g->n > 0 ? 2 * g->n : 1);
        if (!list)
                return false;
        if (g->n > 0)
                memcpy(list, g->list, g->n * sizeof *list);
        g->list = list;
        return true;
}

static void add_entry(JsonReader *r, const EntryText *text, Arena *arena, Growth *g) {
        GrowthEntry e = {
                .uid = text->uid, .container = (uint32_t) text->container, .card = (uint32_t) text->card};

        if (str_is_empty(e.uid) || e.uid.len > UINT16_MAX || !is_within(text->container, UINT16_MAX) ||
            !is_within(text->card, CARD_INDEX_MAX) || !is_amount(text->mem, text->less_mem, MEM_MAX) ||
            !is_amount(text->core, text->less_core, CORE_MAX))
                json_fault(r, "an entry has no uid, or a number that it cannot have");
        else if (growth_find(g, e.uid, e.container, e.card))
                json_fault(r, "two entries of one slice");
        else if (g->n == GROWTH_MAX)
                json_fault(r, "more than 1024 entries");
        else if (!has_room(g, arena))
                json_no_memory(r);
        else {
                e.size = (GrowthSize){(int32_t) (text->mem - text->less_mem),
                                      (int32_t) (text->core - text->less_core)};
                g->list[g->n++] = e;
        }
}

static void read_slices(JsonReader *r, Arena *arena, void *ret_growth) {
        JSON_EACH_ELEMENT(r) {
                EntryText text = {.container = -1, .card = -1};

                json_field_decode(r, arena, entry_fields, ELEMENTSOF(entry_fields), &text);
                if (!json_failed(r))
                        add_entry(r, &text, arena, ret_growth);
        }
}

static void read_serial(JsonReader *r, Arena *arena, void *ret) {
        json_u64(r, ret);
}

static const JsonField growth_fields[] = {
        JSON_FIELD(Growth, serial, "serial", read_serial),
        JSON_NESTED("slices", read_slices),
};

int growth_read(Str text, Arena *arena, Growth *ret, Fault *fault) {
        Growth g = {.serial = 0};
        JsonReader reader;
        int r;

        *ret = g;
        if (str_is_empty(text))
                return 0;
        json_init(&reader, text);
        json_field_decode(&reader, arena, growth_fields, ELEMENTSOF(growth_fields), &g);
        if (!json_failed(&reader) && (g.serial == 0 || g.serial > INT64_MAX))
                json_fault(&reader, "serial must be a number from 1");
        r = json_finish(&reader, fault);
        if (r == 0)
                *ret = g;
        return r > 0 ? fault_wrap(fault, GROWTH_E_MALFORMED, "annotation %s", ANNOTATION_GROWTH) : r;
}

/* ---- writing ---- */

static void write_size(JsonWriter *w, GrowthSize size) {
        GrowthSize more = growth_excess(size);

        json_write_u64(w, "mem", (uint64_t) more.mem);
        json_write_u64(w, "core", (uint64_t) more.core);
        if (size.mem < 0)
                json_write_u64(w, "lessMem", (uint64_t) - (int64_t) size.mem);
        if (size.core < 0)
                json_write_u64(w, "lessCore", (uint64_t) - (int64_t) size.core);
}

void growth_write(const Growth *g, Buf *out) {
        JsonWriter w;

        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_u64(&w, "serial", g->serial);
        json_write_array(&w, "slices");
        for (size_t i = 0; i < g->n; i++) {
                const GrowthEntry *e = &g->list[i];

                if (e->size.mem == 0 && e->size.core == 0)
                        continue;
                json_write_object(&w, NULL);
                json_write_str(&w, "uid", e->uid);
                json_write_u64(&w, "container", e->container);
                json_write_u64(&w, "card", e->card);
                write_size(&w, e->size);
                json_write_object_end(&w);
        }
        json_write_array_end(&w);
        json_write_object_end(&w);
}

GrowthEntry *growth_find(const Growth *g, Str uid, uint32_t container, uint32_t card) {
        for (size_t i = 0; i < g->n; i++) {
                GrowthEntry *e = &g->list[i];

                if (e->container == container && e->card == card && str_eq(e->uid, uid))
                        return e;
        }
        return NULL;
}

int growth_ensure(Growth *g, Arena *arena, Str uid, uint32_t container, uint32_t card) {
        if (growth_find(g, uid, container, card))
                return 0;
        if (g->n == GROWTH_MAX)
                return -E2BIG;
        if (!has_room(g, arena))
                return -ENOMEM;
        g->list[g->n++] = (GrowthEntry){.uid = uid, .container = container, .card = card};
        return 0;
}

int growth_raise(Growth *g, Arena *arena, const GrowthEntry *entry) {
        int r = growth_ensure(g, arena, entry->uid, entry->container, entry->card);
        GrowthEntry *e = growth_find(g, entry->uid, entry->container, entry->card);

        if (e)
                e->size = growth_larger(e->size, entry->size);
        return r;
}

/* ---- what the agent makes of an entry ---- */

/* The record's permit for one amount. If the entry is below the limit, the agent wrote that, and no
 * record permits more. */
static int32_t permitted_size(int32_t entry, int32_t permit) {
        return entry < 0 && entry < permit ? entry : permit;
}

GrowthSize growth_keep(GrowthSize entry, const GrowthUse *use) {
        const GrowthSize permit = {permitted_size(entry.mem, use->permit.mem),
                                   permitted_size(entry.core, use->permit.core)};
        GrowthSize kept = growth_smaller(entry, growth_larger(use->wanted, use->held));

        return growth_larger(growth_permit(permit, use), kept);
}

GrowthSize growth_permit(GrowthSize entry, const GrowthUse *use) {
        return growth_larger(use->in_force, growth_smaller(entry, use->held));
}

bool growth_may_take(GrowthSize entry, const GrowthUse *use) {
        GrowthSize take = growth_smaller(entry, use->wanted);

        return take.mem > use->in_force.mem || take.core > use->in_force.core;
}
