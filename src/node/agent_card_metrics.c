/* SPDX-License-Identifier: Apache-2.0 */

/* The metrics of cards. Names that begin with DCGM_CUSTOM are those of ACK's exporter. */

#include "base/metric_text.h"
#include "node/agent-internal.h"
#include "slice/visible.h"

#define MIB_BYTES (UINT64_C(1) << 20)

void agent_metrics_card_labels(const Agent *a, const MachineCard *c, Buf *out) {
        char text[24];

        buf_append_char(out, '{');
        metric_text_label(out, "UUID", c->uuid);
        (void) snprintf(text, sizeof text, "nvidia%u", c->minor);
        metric_text_label(out, "device", text);
        (void) snprintf(text, sizeof text, "%u", c->index);
        metric_text_label(out, "gpu", text);
        metric_text_label(out, "modelName", c->model);
        metric_text_label(out, "NodeName", a->o.node_name);
}

/* ---- what is known of a card ---- */

enum { MODE_NONE = 0, MODE_ALONE = 1, MODE_SHARE = 2 };

typedef struct CardSums {
        uint32_t units;      /* units of the whole card; 0: the node does not offer it */
        uint64_t used, core; /* units, percent */
} CardSums;

static CardSums sums_of(const Agent *a, uint32_t card) {
        const LedgerNode *node = roster_ledger_node(&a->roster);
        const LedgerCard *cards = node ? ledger_node_cards(node) : NULL;
        const CardInfo *info = inventory_card(&a->inventory, card);
        CardSums s = {.units = info ? info->units : 0};

        for (size_t i = 0; node && i < ledger_node_n_cards(node); i++)
                if (cards[i].index == card) {
                        LedgerUse shown = ledger_node_shown(node, &cards[i]);

                        s.used = shown.mem;
                        s.core = shown.core;
                }
        return s;
}

static uint32_t count_slices(const Agent *a, uint32_t card) {
        uint32_t n = 0;

        for (const Record *record = a->records.by_uid; record; record = record->hh.next)
                for (size_t i = 0; i < record->n_containers; i++)
                        n += agent_metrics_shows(a, record, &record->containers[i]) &&
                             device_set_count(&record->containers[i].given[DEVICE_MEM], card) > 0;
        return n;
}

static uint32_t fence_of(const Agent *a, const char *uuid) {
        for (size_t i = 0; i < a->cards.fences.n; i++)
                if (strcmp(a->cards.fences.list[i].uuid, uuid) == 0)
                        return a->cards.fences.list[i].xid;
        return 0;
}

/* ---- values of the metrics, one function each ---- */

/* Each writes the value of one card; false: it is not known, and there is no series. */
typedef bool (*CardValue)(const Agent *a, const MachineCard *c, Buf *out);

static bool put_number(Buf *out, uint64_t value) {
        buf_appendf(out, "%llu", (unsigned long long) value);
        return true;
}

static bool put_ratio(Buf *out, uint64_t part, uint64_t whole) {
        buf_appendf(out, "%.6g", whole > 0 ? (double) part / (double) whole : 0.0);
        return true;
}

static bool put_mode(const Agent *a, const MachineCard *c, Buf *out) {
        int used = share_mode_has_whole(a->node.config.mode) ? MODE_ALONE : MODE_SHARE;
        bool holds = share_mode_is_served(a->node.config.mode) && sums_of(a, c->index).used > 0;

        return put_number(out, (uint64_t) (holds ? used : MODE_NONE));
}

static bool put_total_mib(const Agent *a, const MachineCard *c, Buf *out) {
        (void) a;
        return put_number(out, c->mib);
}

static bool put_allocated_ratio(const Agent *a, const MachineCard *c, Buf *out) {
        CardSums s = sums_of(a, c->index);

        return inventory_card(&a->inventory, c->index) && put_ratio(out, s.used, s.units);
}

static bool put_total(const Agent *a, const MachineCard *c, Buf *out) {
        (void) a;
        return put_number(out, c->mib * MIB_BYTES);
}

static bool put_allocated(const Agent *a, const MachineCard *c, Buf *out) {
        CardSums s = sums_of(a, c->index);
        uint64_t mib = c->mib;

        if (s.used < s.units)
                mib = visible_mib(c->mib, (uint32_t) s.used, s.units);
        return s.units > 0 && put_number(out, s.used > 0 ? mib * MIB_BYTES : 0);
}

static bool put_used(const Agent *a, const MachineCard *c, Buf *out) {
        uint64_t bytes;

        return agent_metrics_has_census(a) && memory_audit_card_used(a->audit.memory, c->index, &bytes) &&
               put_number(out, bytes);
}

static bool put_core(const Agent *a, const MachineCard *c, Buf *out) {
        return put_ratio(out, sums_of(a, c->index).core, 100);
}

static bool put_slices(const Agent *a, const MachineCard *c, Buf *out) {
        return put_number(out, count_slices(a, c->index));
}

static bool put_healthy(const Agent *a, const MachineCard *c, Buf *out) {
        (void) a;
        return put_number(out, c->healthy);
}

static bool put_fence(const Agent *a, const MachineCard *c, Buf *out) {
        return put_number(out, fence_of(a, c->uuid));
}

static bool put_cordoned(const Agent *a, const MachineCard *c, Buf *out) {
        return put_number(out, card_indexes_has(&a->node.cordon.cards, c->index));
}

static bool put_unaccounted(const Agent *a, const MachineCard *c, Buf *out) {
        uint64_t bytes;

        return agent_metrics_has_census(a) && memory_audit_unaccounted(a->audit.memory, c->index, &bytes) &&
               put_number(out, bytes);
}

static bool put_unaccounted_excess(const Agent *a, const MachineCard *c, Buf *out) {
        uint64_t bytes;

        return agent_metrics_has_census(a) && memory_audit_unaccounted(a->audit.memory, c->index, &bytes) &&
               put_number(out, memory_audit_unaccounted_lasts(a->audit.memory, c->index) ? bytes : 0);
}

static bool put_foreign(const Agent *a, const MachineCard *c, Buf *out) {
        return put_number(out, slicedir_watch_foreign(a->audit.slicedir, c->uuid));
}

static const struct {
        const char *name, *help;
        CardValue value;
} card_metrics[] = {
        {"DCGM_CUSTOM_ALLOCATE_MODE", "How the card is used: 0 by no pod, 1 by one pod alone, 2 by slices.",
         put_mode},
        {"DCGM_CUSTOM_DEV_FB_TOTAL", "Memory of the card in MiB.", put_total_mib},
        {"DCGM_CUSTOM_DEV_FB_ALLOCATED", "Part of the card's memory that pods hold, 0 to 1.",
         put_allocated_ratio},
        {"aliquot_node_card_memory_bytes", "Memory of the card.", put_total},
        {"aliquot_node_card_memory_allocated_bytes", "Memory of the card that pods hold as slices.",
         put_allocated},
        {"aliquot_node_card_memory_used_bytes", "Memory of the card in use, by the driver.", put_used},
        {"aliquot_node_card_compute_allocated_ratio",
         "Part of the card's time that pods hold as their share, 0 to 1.", put_core},
        {"aliquot_node_card_slices", "Containers that hold a slice of the card.", put_slices},
        {"aliquot_node_card_healthy", "1 when the node agent offers the card, 0 when it is out of service.",
         put_healthy},
        {"aliquot_node_card_fence_xid", "The XID that keeps the card out of service; 0: none does.",
         put_fence},
        {"aliquot_node_card_cordoned", "1 when an annotation of the Node keeps new pods from the card.",
         put_cordoned},
        {"aliquot_node_unaccounted_bytes",
         "Memory of the card in use that no pod's process holds, without the driver's reserve.",
         put_unaccounted},
        {"aliquot_node_unaccounted_excess_bytes",
         "The same while it is more than the audit tolerates, else 0.", put_unaccounted_excess},
        {"aliquot_node_foreign_slices_bytes",
         "Memory of the card that slices of aliquot run may use on this node.", put_foreign},
};

void agent_metrics_cards(const Agent *a, Buf *out) {
        _cleanup_buf_ Buf value = BUF_NULL;

        for (size_t m = 0; m < ELEMENTSOF(card_metrics); m++) {
                metric_text_head(out, card_metrics[m].name, "gauge", card_metrics[m].help);
                for (size_t i = 0; i < a->cards.list.n; i++) {
                        const MachineCard *c = &a->cards.list.cards[i];

                        buf_clear(&value);
                        if (!card_metrics[m].value(a, c, &value))
                                continue;
                        buf_append_str(out, str_from(card_metrics[m].name));
                        agent_metrics_card_labels(a, c, out);
                        buf_append_str(out, STR("} "));
                        buf_append_str(out, buf_str(&value));
                        buf_append_char(out, '\n');
                }
        }
        out->broken |= buf_result(&value) < 0;
}
