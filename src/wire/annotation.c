/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/annotation.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "wire/json_table.h"
#include "wire/json_write.h"

/* The API server takes 256 KiB of annotations per object: room for forty thousand entries where a
 * pod has dozens. */
enum { ALLOCATION_MAX_ENTRIES = 4096 };

/* The list while it is read: entries are found one by one, and the arena cannot give back. */
typedef struct EntryList {
        AllocationEntry *entries;
        size_t n, room;
} EntryList;

static bool entry_add(JsonReader *r, Arena *arena, EntryList *list, AllocationEntry entry) {
        if (list->n == ALLOCATION_MAX_ENTRIES) {
                json_fault(r, "more entries than any pod has");
                return false;
        }
        if (list->n == list->room) {
                size_t room = list->room > 0 ? 4 * list->room : 16;
                AllocationEntry *bigger = arena_new(arena, AllocationEntry, room);

                if (!bigger) {
                        json_no_memory(r);
                        return false;
                }
                if (list->n > 0)
                        memcpy(bigger, list->entries, list->n * sizeof *bigger);
                list->entries = bigger;
                list->room = room;
        }
        list->entries[list->n++] = entry;
        return true;
}

static bool index_from_key(JsonReader *r, Str key, uint32_t max, uint32_t *ret) {
        if (str_to_u32(key, ret) && *ret <= max)
                return true;
        json_fault(r, "this key is not an index");
        return false;
}

/* A number, or the same digits in quotes: older schedulers wrote them so. */
static void read_amount(JsonReader *r, Arena *arena, uint32_t *ret) {
        uint64_t amount = UINT64_MAX;
        Str digits;

        if (json_peek(r) == JSON_STRING) {
                digits = (Str){NULL, 0};
                json_string(r, arena, &digits);
                if (!str_to_u64(digits, &amount))
                        json_fault(r, "not a whole number");
        } else
                json_u64(r, &amount);
        if (amount > UINT32_MAX)
                json_fault(r, "out of range"); /* null, too, is no amount */
        else
                *ret = (uint32_t) amount;
}

static void read_container(JsonReader *r, Arena *arena, uint32_t container, EntryList *list) {
        Str key;

        if (!json_object_begin(r))
                return;
        while (json_object_next(r, &key)) {
                AllocationEntry e = {.container = container};

                if (!index_from_key(r, key, CARD_INDEX_MAX, &e.card))
                        return;
                read_amount(r, arena, &e.amount);
                if (json_failed(r) || !entry_add(r, arena, list, e))
                        return;
        }
}

static int entry_compare(const void *a, const void *b) {
        const AllocationEntry *x = a, *y = b;

        if (x->container != y->container)
                return x->container < y->container ? -1 : 1;
        return (x->card > y->card) - (x->card < y->card);
}

/* Sorted, each (container, card) once, nothing that amounts to nothing. */
static int entries_settle(EntryList *list, Fault *fault) {
        size_t kept = 0;

        if (list->n > 0)
                qsort(list->entries, list->n, sizeof *list->entries, entry_compare);
        for (size_t i = 1; i < list->n; i++)
                if (entry_compare(&list->entries[i - 1], &list->entries[i]) == 0)
                        return fault_set(fault, ANNOTATION_E_MALFORMED, "container %u has card %u twice",
                                         list->entries[i].container, list->entries[i].card);
        for (size_t i = 0; i < list->n; i++)
                if (list->entries[i].amount > 0)
                        list->entries[kept++] = list->entries[i];
        list->n = kept;
        return 0;
}

static int annotation_result(int r) {
        return r == JSON_E_MALFORMED ? ANNOTATION_E_MALFORMED : r;
}

int allocation_parse(Str text, Arena *arena, Allocation *ret, Fault *fault) {
        EntryList list = {0};
        JsonReader r;
        Str key;
        int k;

        json_init(&r, text);
        if (json_object_begin(&r))
                while (json_object_next(&r, &key)) {
                        uint32_t container;

                        if (!index_from_key(&r, key, CONTAINER_INDEX_MAX, &container))
                                break;
                        read_container(&r, arena, container, &list);
                }
        k = json_finish(&r, fault);
        if (k != 0)
                return annotation_result(k);
        k = entries_settle(&list, fault);
        if (k != 0)
                return k;
        *ret = (Allocation){.entries = list.entries, .n_entries = list.n};
        return 0;
}

void allocation_format(const AllocationEntry *entries, size_t n_entries, Buf *out) {
        buf_append_char(out, '{');
        for (size_t i = 0; i < n_entries; i++) {
                bool first = i == 0 || entries[i].container != entries[i - 1].container;

                if (first)
                        buf_appendf(out, "%s\"%u\":{", i > 0 ? "}," : "", entries[i].container);
                buf_appendf(out, "%s\"%u\":%u", first ? "" : ",", entries[i].card, entries[i].amount);
        }
        buf_append_str(out, n_entries > 0 ? STR("}}") : STR("}"));
}

/* ---- cards ---- */

/* A card as the text has it; -1: not said. */
typedef struct CardText {
        int64_t index, units, mib, numa;
        bool healthy;
        Str uuid, model;
} CardText;

static const JsonField card_fields[] = {
        JSON_FIELD(CardText, index, "index", json_field_i64),
        JSON_FIELD(CardText, uuid, "uuid", json_field_str),
        JSON_FIELD(CardText, model, "model", json_field_str),
        JSON_FIELD(CardText, units, "units", json_field_i64),
        JSON_FIELD(CardText, mib, "mib", json_field_i64),
        JSON_FIELD(CardText, numa, "numa", json_field_i64),
        JSON_FIELD(CardText, healthy, "healthy", json_field_bool),
};

static void read_card(JsonReader *r, Arena *arena, CardInfo *ret) {
        CardText c = {.index = -1, .units = -1, .mib = 0, .numa = -1, .healthy = true};

        if (json_peek(r) != JSON_OBJECT) {
                json_fault(r, "not an object");
                return;
        }
        json_decode(r, arena, card_fields, ELEMENTSOF(card_fields), &c);
        if (c.index < 0 || c.index > CARD_INDEX_MAX)
                json_fault(r, "a card needs an index from 0 to 255");
        else if (c.units < 0 || c.units > UINT32_MAX)
                json_fault(r, "a card needs its units, a number from 0 to 4294967295");
        else if (c.mib < 0 || c.mib > UINT32_MAX)
                json_fault(r, "the card's mib is out of range");
        else if (c.numa < -1 || c.numa > INT32_MAX)
                json_fault(r, "the card's numa node is out of range");
        else
                *ret = (CardInfo){.index = (uint32_t) c.index,
                                  .units = (uint32_t) c.units,
                                  .mib = (uint32_t) c.mib,
                                  .numa = (int32_t) c.numa,
                                  .healthy = c.healthy,
                                  .uuid = c.uuid,
                                  .model = c.model};
}

static int card_compare(const void *a, const void *b) {
        const CardInfo *x = a, *y = b;

        return (x->index > y->index) - (x->index < y->index);
}

int cards_parse(Str text, Arena *arena, CardInfo **ret, size_t *ret_n, Fault *fault) {
        CardInfo *cards = arena_new(arena, CardInfo, CARD_INDEX_MAX + 1);
        JsonReader r;
        size_t n = 0;
        int k;

        if (!cards)
                return -ENOMEM;
        json_init(&r, text);
        if (json_array_begin(&r))
                while (json_array_next(&r)) {
                        if (n > CARD_INDEX_MAX) {
                                json_fault(&r, "more than 256 cards");
                                break;
                        }
                        read_card(&r, arena, &cards[n++]);
                }
        k = json_finish(&r, fault);
        if (k != 0)
                return annotation_result(k);
        if (n > 0)
                qsort(cards, n, sizeof *cards, card_compare);
        for (size_t i = 1; i < n; i++)
                if (cards[i - 1].index == cards[i].index)
                        return fault_set(fault, ANNOTATION_E_MALFORMED, "card %u is listed twice",
                                         cards[i].index);
        *ret = cards;
        *ret_n = n;
        return 0;
}

void cards_format(const CardInfo *cards, size_t n, Buf *out) {
        JsonWriter w;

        json_write_init(&w, out);
        json_write_array(&w, NULL);
        for (const CardInfo *c = cards; c < cards + n; c++) {
                json_write_object(&w, NULL);
                json_write_u64(&w, "index", c->index);
                if (c->uuid.len > 0)
                        json_write_str(&w, "uuid", c->uuid);
                if (c->model.len > 0)
                        json_write_str(&w, "model", c->model);
                json_write_u64(&w, "units", c->units);
                if (c->mib > 0)
                        json_write_u64(&w, "mib", c->mib);
                if (c->numa >= 0)
                        json_write_i64(&w, "numa", c->numa);
                json_write_bool(&w, "healthy", c->healthy);
                json_write_object_end(&w);
        }
        json_write_array_end(&w);
}
