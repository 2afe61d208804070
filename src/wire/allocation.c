/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/allocation.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "wire/annotation.h"
#include "wire/json.h"

/* The API server accepts 256 KiB of annotations per object, which is room for forty thousand
 * entries. A pod has dozens. */
enum { ALLOCATION_MAX_ENTRIES = 4096 };

/* The list while it is read. Its final size is not known in advance, and the arena cannot free. */
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

/* Reads a number, or the same digits in quotes: older schedulers wrote them so. */
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

        JSON_EACH_MEMBER(r, &key) {
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

/* Sorts the entries, refuses a (container, card) that stands twice, and drops amounts of 0. */
static int entries_sort(EntryList *list, Fault *fault) {
        size_t kept = 0;

        if (list->n > 0)
                qsort(list->entries, list->n, sizeof *list->entries, entry_compare);
        for (size_t i = 1; i < list->n; i++)
                if (entry_compare(&list->entries[i - 1], &list->entries[i]) == 0)
                        return fault_set(fault, ALLOCATION_E_MALFORMED, "container %u has card %u twice",
                                         list->entries[i].container, list->entries[i].card);
        for (size_t i = 0; i < list->n; i++)
                if (list->entries[i].amount > 0)
                        list->entries[kept++] = list->entries[i];
        list->n = kept;
        return 0;
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
                return k == JSON_E_MALFORMED ? ALLOCATION_E_MALFORMED : k;
        k = entries_sort(&list, fault);
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
