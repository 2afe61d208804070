/* SPDX-License-Identifier: Apache-2.0 */
#include "share/held.h"

#include <errno.h>

#include "share/ledger-internal.h"
#include "share/ledger_card.h"
#include "wire/allocation.h"
#include "wire/annotation.h"
#include "wire/json_field.h"

enum { HELD_MAX = 1024 }; /* entries; the annotation has room for a few thousand */

typedef struct HeldText {
        Str pod, uid, allocation, core;
} HeldText;

static const JsonField held_fields[] = {
        JSON_FIELD(HeldText, pod, "pod", json_field_str),
        JSON_FIELD(HeldText, uid, "uid", json_field_str),
        JSON_FIELD(HeldText, allocation, "allocation", json_field_raw),
        JSON_FIELD(HeldText, core, "core", json_field_raw),
};

static Slice *slice_on(Slice *slices, size_t n, const AllocationEntry *e) {
        for (size_t i = 0; i < n; i++)
                if (slices[i].container == e->container && slices[i].card == e->card)
                        return &slices[i];
        return NULL;
}

/* Makes one slice per container and card from the two annotations. Returns 0 or -ENOMEM. */
static int merge_slices(const Allocation *mem, const Allocation *core, Arena *arena, GrantSpec *spec) {
        Slice *slices = arena_new(arena, Slice, mem->n_entries + core->n_entries);
        size_t n = 0;

        if (!slices)
                return -ENOMEM;
        for (size_t i = 0; i < mem->n_entries; i++) {
                const AllocationEntry *e = &mem->entries[i];
                slices[n++] =
                        (Slice){.card = e->card, .mem = e->amount, .container = (uint16_t) e->container};
        }
        for (size_t i = 0; i < core->n_entries; i++) {
                const AllocationEntry *e = &core->entries[i];
                Slice *s = slice_on(slices, mem->n_entries, e);

                if (!s) {
                        s = &slices[n++];
                        *s = (Slice){.card = e->card, .container = (uint16_t) e->container};
                }
                s->core = e->amount;
        }
        spec->slices = slices;
        spec->n_slices = n;
        spec->has_core = core->n_entries > 0;
        return 0;
}

static int read_spec(const HeldText *text, Arena *arena, GrantSpec *ret, Fault *fault) {
        Allocation mem = {0}, core = {0};
        GrantSpec spec = {.name = text->pod, .uid = text->uid};
        int r = 0;

        if (str_is_empty(text->uid))
                return fault_set(fault, LEDGER_E_NODE, "an entry has no uid");
        spec.namespace_ = str_split(&spec.name, '/');
        if (!str_is_empty(text->allocation))
                r = allocation_parse(text->allocation, arena, &mem, fault);
        if (r == 0 && !str_is_empty(text->core))
                r = allocation_parse(text->core, arena, &core, fault);
        if (r == 0)
                r = merge_slices(&mem, &core, arena, &spec);
        if (r == 0)
                *ret = spec;
        return r > 0 ? fault_wrap(fault, LEDGER_E_NODE, "uid " STR_FMT, STR_ARG(text->uid)) : r;
}

static int read_entries(JsonReader *reader, Arena *arena, HeldEntry entry, void *userdata, Fault *fault) {
        size_t count = 0;
        int r = 0;

        if (!json_array_begin(reader))
                return 0;
        while (r == 0 && json_array_next(reader)) {
                HeldText text = {0};
                GrantSpec spec;

                if (count++ == HELD_MAX) {
                        json_fault(reader, "more than 1024 entries");
                        return 0;
                }
                json_field_decode(reader, arena, held_fields, ELEMENTSOF(held_fields), &text);
                if (json_failed(reader))
                        continue;
                r = read_spec(&text, arena, &spec, fault);
                if (r == 0)
                        r = entry(userdata, &spec, fault);
        }
        return r;
}

int held_each(Str annotation, Arena *arena, HeldEntry entry, void *userdata, Fault *fault) {
        JsonReader reader;
        int r;

        if (str_is_empty(annotation))
                return 0;
        json_init(&reader, annotation);
        r = read_entries(&reader, arena, entry, userdata, fault);
        if (r == 0) {
                r = json_finish(&reader, fault);
                r = r == JSON_E_MALFORMED ? LEDGER_E_NODE : r;
        }
        return r > 0 ? fault_wrap(fault, r, "annotation %s", ANNOTATION_HELD_SLICES) : r;
}

typedef struct Reading {
        LedgerNode *node;
        HeldList list;
} Reading;

static int add_entry(void *userdata, const GrantSpec *spec, Fault *fault) {
        Reading *reading = userdata;
        Grant *g;
        int r = grant_build(spec, &g);

        if (r != 0)
                return r == -E2BIG ? fault_set(fault, LEDGER_E_NODE, "an entry has a text over 65535 bytes")
                                   : r;
        g->is_held = true;
        grant_link(g, reading->node, &reading->list.first);
        return grant_reserve_cards(reading->node, g);
}

int held_read(Str annotation, LedgerNode *n, HeldList *ret, Fault *fault) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Reading reading = {.node = n};
        int r;

        if (str_is_empty(annotation))
                return 0;
        r = held_each(annotation, &arena, add_entry, &reading, fault);
        if (r != 0) {
                held_list_done(&reading.list);
                return r;
        }
        *ret = reading.list;
        if (ret->first)
                ret->first->link = &ret->first;
        return 0;
}

void held_list_done(HeldList *list) {
        while (list->first) {
                Grant *g = list->first;

                grant_unlink(g);
                free(g);
        }
}

static bool has_own_grant(const LedgerNode *n, Str uid) {
        for (const Grant *g = n->grants; g; g = g->next)
                if (str_eq(grant_uid(g), uid))
                        return true;
        return false;
}

void held_replace(LedgerNode *n, HeldList *list) {
        HeldList old = {n->held}, slept = {n->dormant};

        for (Grant *g = n->held; g; g = g->next)
                grant_discharge(g);
        if (old.first)
                old.first->link = &old.first;
        if (slept.first)
                slept.first->link = &slept.first;
        n->held = n->dormant = NULL;
        while (list->first) {
                Grant *g = list->first;

                grant_unlink(g);
                if (has_own_grant(n, grant_uid(g)))
                        grant_link(g, n, &n->dormant);
                else {
                        grant_link(g, n, &n->held);
                        grant_charge(g);
                }
        }
        held_list_done(&old);
        held_list_done(&slept);
}

void held_suspend(LedgerNode *n, Str uid) {
        for (Grant *g = n->held, *next; g; g = next) {
                next = g->next;
                if (!str_eq(grant_uid(g), uid))
                        continue;
                grant_discharge(g);
                grant_unlink(g);
                grant_link(g, n, &n->dormant);
        }
}

void held_resume(LedgerNode *n, Str uid) {
        if (!n->dormant || has_own_grant(n, uid))
                return;
        for (Grant *g = n->dormant, *next; g; g = next) {
                next = g->next;
                if (!str_eq(grant_uid(g), uid))
                        continue;
                grant_unlink(g);
                grant_link(g, n, &n->held);
                grant_charge(g);
        }
}
