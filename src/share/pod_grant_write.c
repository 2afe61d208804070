/* SPDX-License-Identifier: Apache-2.0 */
#include "share/pod_grant_write.h"

#include "share/demand.h"
#include "wire/allocation.h"
#include "wire/annotation.h"
#include "wire/json_write.h"
#include "wire/pod.h"
#include "wire/topology_keys.h"

static int compare_entries(const void *a, const void *b) {
        const AllocationEntry *x = a, *y = b;

        if (x->container != y->container)
                return x->container < y->container ? -1 : 1;
        return (x->card > y->card) - (x->card < y->card);
}

typedef enum Form { FORM_MEM, FORM_CORE, FORM_INIT } Form;

/* The JSON object, and the bit set of the keys of POD_SYSTEM_KEYS in it. */
typedef struct Writer {
        JsonWriter json;
        uint32_t written;
} Writer;

static void mark_key(Writer *w, const char *key) {
        for (size_t i = 0; i < POD_SYSTEM_KEYS_COUNT; i++)
                if (str_eq(pod_system_key_names[i], str_from(key)))
                        w->written |= UINT32_C(1) << i;
}

static void write_text(Writer *w, const char *key, Str value) {
        mark_key(w, key);
        json_write_str(&w->json, key, value);
}

static void write_allocation(Writer *w, const char *key, const Slice *slices, size_t n, Form form,
                             AllocationEntry *entries) {
        _cleanup_buf_ Buf text = BUF_NULL;
        size_t used = 0;

        for (size_t i = 0; i < n; i++) {
                uint32_t amount = form == FORM_CORE ? slices[i].core : slices[i].mem;

                if ((slices[i].kind != CONTAINER_MAIN) == (form == FORM_INIT) && amount > 0)
                        entries[used++] = (AllocationEntry){slices[i].container, slices[i].card, amount};
        }
        if (used == 0 && form != FORM_MEM)
                return;
        qsort(entries, used, sizeof *entries, compare_entries);
        allocation_format(entries, used, &text);
        if (buf_result(&text) < 0)
                w->json.out->broken = true;
        write_text(w, key, buf_str(&text));
}

static void write_number(Writer *w, const char *key, uint64_t value) {
        char text[24];

        (void) snprintf(text, sizeof text, "%llu", (unsigned long long) value);
        write_text(w, key, str_from(text));
}

static uint32_t card_units_of(const LedgerNode *node, uint32_t card) {
        const LedgerCard *cards = ledger_node_cards(node);

        for (size_t i = 0; i < ledger_node_n_cards(node); i++)
                if (cards[i].index == card)
                        return cards[i].units;
        return 0;
}

static void write_older(Writer *w, const Slice *slices, size_t n, const LedgerNode *node, bool assigned,
                        uint64_t assume_time_nsec) {
        Demand init = {0}, all = {0};

        for (size_t i = 0; i < n; i++) {
                if (slices[i].card != slices[0].card)
                        return; /* the older annotations have one index only */
                demand_add(slices[i].kind == CONTAINER_INIT ? &init : &all, slices[i].kind, slices[i].mem);
        }
        write_number(w, ANNOTATION_OLD_IDX, slices[0].card);
        write_number(w, ANNOTATION_OLD_DEV, card_units_of(node, slices[0].card));
        write_number(w, ANNOTATION_OLD_POD,
                     demand_total(&all) > 0 ? demand_total(&all) : demand_total(&init));
        write_text(w, ANNOTATION_OLD_ASSIGNED, assigned ? STR("true") : STR("false"));
        write_number(w, ANNOTATION_OLD_ASSUME_TIME, assume_time_nsec);
}

static void write_cards(Writer *w, const char *key, const bool cards[static CARD_INDEX_MAX + 1]) {
        _cleanup_buf_ Buf list = BUF_NULL;

        for (unsigned i = 0; i <= CARD_INDEX_MAX; i++)
                if (cards[i])
                        buf_appendf(&list, "%s%u", list.len > 0 ? "," : "", i);
        if (buf_result(&list) < 0)
                w->json.out->broken = true;
        json_write_str(&w->json, key, buf_str(&list));
}

/* Writes the cards of a pod of whole cards under ACK's keys: its own, and those of its whole job on
 * this node. */
static void write_group(Writer *w, const Slice *slices, size_t n, const bool *job) {
        bool cards[CARD_INDEX_MAX + 1] = {0};

        for (size_t i = 0; i < n; i++)
                cards[slices[i].card] = true;
        write_cards(w, ANNOTATION_GPU_GROUP, cards);
        for (unsigned i = 0; i <= CARD_INDEX_MAX && job; i++)
                cards[i] |= job[i];
        write_cards(w, ANNOTATION_GPU_VISIBLE, cards);
}

static void empty_others(Writer *w, uint32_t carried) {
        for (size_t i = 0; i < POD_SYSTEM_KEYS_COUNT; i++)
                if ((carried & ~w->written) >> i & 1)
                        json_write_text(&w->json, pod_system_key_names[i].data, "");
}

static void write_all(const Slice *slices, size_t n_slices, const LedgerNode *node, bool assigned,
                      uint64_t assume_time_nsec, uint32_t carried, const bool *job, Buf *out) {
        _cleanup_free_ AllocationEntry *entries = calloc(n_slices > 0 ? n_slices : 1, sizeof *entries);
        Writer w = {.written = 0};

        if (!entries) {
                out->broken = true;
                return;
        }
        json_write_init(&w.json, out);
        json_write_object(&w.json, NULL);
        if (n_slices > 0) {
                write_allocation(&w, ANNOTATION_ALLOCATION, slices, n_slices, FORM_MEM, entries);
                write_allocation(&w, ANNOTATION_CORE, slices, n_slices, FORM_CORE, entries);
                write_allocation(&w, ANNOTATION_INIT_ALLOCATION, slices, n_slices, FORM_INIT, entries);
                write_text(&w, ANNOTATION_ASSIGNED, assigned ? STR("true") : STR("false"));
                write_number(&w, ANNOTATION_ASSUME_TIME, assume_time_nsec);
                if (share_mode_has_whole(ledger_node_mode(node)))
                        write_group(&w, slices, n_slices, job);
                else
                        write_older(&w, slices, n_slices, node, assigned, assume_time_nsec);
        }
        empty_others(&w, carried);
        json_write_object_end(&w.json);
}

void pod_grant_write(const Slice *slices, size_t n_slices, const LedgerNode *node, bool assigned,
                     uint64_t assume_time_nsec, uint32_t carried, Buf *out) {
        write_all(slices, n_slices, node, assigned, assume_time_nsec, carried, NULL, out);
}

void pod_grant_write_of_job(const Slice *slices, size_t n_slices, const LedgerNode *node,
                            uint64_t assume_time_nsec, uint32_t carried,
                            const bool job[static CARD_INDEX_MAX + 1], Buf *out) {
        write_all(slices, n_slices, node, false, assume_time_nsec, carried, job, out);
}
