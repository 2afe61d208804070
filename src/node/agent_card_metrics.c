/* SPDX-License-Identifier: Apache-2.0 */

/* The metrics of cards. Names that begin with DCGM_CUSTOM are those of ACK's exporter. */

#include <math.h>
#include <stddef.h>

#include "base/metric_text.h"
#include "node/agent-internal.h"
#include "slice/visible.h"

#define MIB_BYTES (UINT64_C(1) << 20)

void agent_metrics_card_labels(const Agent *a, const MachineCard *c, Buf *out) {
        char text[24] = "";

        buf_append_char(out, '{');
        metric_text_label(out, "UUID", c->uuid);
        if (c->minor != CARD_MINOR_UNKNOWN)
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

/* ---- the values ---- */

/* One card's values; what is not known is METRIC_UNKNOWN, or NAN. */
typedef struct CardValues {
        double allocated_ratio, core_ratio;
        uint64_t mode, total_mib, total, allocated, used, slices, healthy, fence, cordoned;
        uint64_t unaccounted, unaccounted_excess, foreign;
} CardValues;

static uint64_t mode_of(const Agent *a, const CardSums *s) {
        if (!share_mode_is_served(a->node.config.mode) || s->used == 0)
                return MODE_NONE;
        return share_mode_has_whole(a->node.config.mode) ? MODE_ALONE : MODE_SHARE;
}

static double ratio_of(uint64_t part, uint64_t whole) {
        return whole > 0 ? (double) part / (double) whole : 0;
}

static uint64_t allocated_bytes(const MachineCard *c, const CardSums *s) {
        if (s->units == 0)
                return METRIC_UNKNOWN;
        if (s->used == 0)
                return 0;
        return MIB_BYTES * (s->used < s->units ? visible_mib(c->mib, (uint32_t) s->used, s->units) : c->mib);
}

static CardValues values_of(const Agent *a, const MachineCard *c) {
        CardSums s = sums_of(a, c->index);
        const MemoryAudit *audit = a->audit.memory;
        CardValues v = {
                .mode = mode_of(a, &s),
                .total_mib = c->mib,
                .allocated_ratio = inventory_card(&a->inventory, c->index) ? ratio_of(s.used, s.units) : NAN,
                .total = c->mib * MIB_BYTES,
                .allocated = allocated_bytes(c, &s),
                .core_ratio = ratio_of(s.core, 100),
                .slices = count_slices(a, c->index),
                .healthy = c->healthy,
                .fence = fence_of(a, c->uuid),
                .cordoned = card_indexes_has(&a->node.cordon.cards, c->index),
                .foreign = slicedir_watch_foreign(a->audit.slicedir, c->uuid),
        };
        bool is_fresh = agent_metrics_has_census(a);

        if (!is_fresh || !memory_audit_card_used(audit, c->index, &v.used))
                v.used = METRIC_UNKNOWN;
        if (!is_fresh || !memory_audit_unaccounted(audit, c->index, &v.unaccounted))
                v.unaccounted = v.unaccounted_excess = METRIC_UNKNOWN;
        else if (memory_audit_unaccounted_lasts(audit, c->index))
                v.unaccounted_excess = v.unaccounted;
        return v;
}

static const MetricRow card_metrics[] = {
        {"DCGM_CUSTOM_ALLOCATE_MODE", "gauge",
         "How the card is used: 0 by no pod, 1 by one pod alone, 2 by slices.", offsetof(CardValues, mode)},
        {"DCGM_CUSTOM_DEV_FB_TOTAL", "gauge", "Memory of the card in MiB.", offsetof(CardValues, total_mib)},
        {"DCGM_CUSTOM_DEV_FB_ALLOCATED", "gauge", "Part of the card's memory that pods hold, 0 to 1.",
         offsetof(CardValues, allocated_ratio), METRIC_RATIO},
        {"aliquot_node_card_memory_bytes", "gauge", "Memory of the card.", offsetof(CardValues, total)},
        {"aliquot_node_card_memory_allocated_bytes", "gauge", "Memory of the card that pods hold as slices.",
         offsetof(CardValues, allocated)},
        {"aliquot_node_card_memory_used_bytes", "gauge", "Memory of the card in use, by the driver.",
         offsetof(CardValues, used)},
        {"aliquot_node_card_compute_allocated_ratio", "gauge",
         "Part of the card's time that pods hold as their share, 0 to 1.", offsetof(CardValues, core_ratio),
         METRIC_RATIO},
        {"aliquot_node_card_slices", "gauge", "Containers that hold a slice of the card.",
         offsetof(CardValues, slices)},
        {"aliquot_node_card_healthy", "gauge",
         "1 when the node agent offers the card, 0 when it is out of service.",
         offsetof(CardValues, healthy)},
        {"aliquot_node_card_fence_xid", "gauge", "The XID that keeps the card out of service; 0: none does.",
         offsetof(CardValues, fence)},
        {"aliquot_node_card_cordoned", "gauge",
         "1 when an annotation of the Node keeps new pods from the card.", offsetof(CardValues, cordoned)},
        {"aliquot_node_unaccounted_bytes", "gauge",
         "Memory of the card in use that no pod's process holds, without the driver's reserve.",
         offsetof(CardValues, unaccounted)},
        {"aliquot_node_unaccounted_excess_bytes", "gauge",
         "The same while it is more than the audit tolerates, else 0.",
         offsetof(CardValues, unaccounted_excess)},
        {"aliquot_node_foreign_slices_bytes", "gauge",
         "Memory of the card that slices of aliquot run may use on this node.",
         offsetof(CardValues, foreign)},
};

void agent_metrics_cards(const Agent *a, Buf *out) {
        const CardList *list = &a->cards.list;
        CardValues *values = calloc(list->n + 1, sizeof *values);

        out->broken |= !values;
        for (size_t i = 0; values && i < list->n; i++)
                values[i] = values_of(a, &list->cards[i]);
        for (size_t m = 0; values && m < ELEMENTSOF(card_metrics); m++) {
                const MetricRow *row = &card_metrics[m];

                metric_text_head(out, row->name, row->type, row->help);
                for (size_t i = 0; i < list->n; i++) {
                        if (!metric_text_known(row, &values[i]))
                                continue;
                        buf_append_str(out, str_from(row->name));
                        agent_metrics_card_labels(a, &list->cards[i], out);
                        buf_append_str(out, STR("} "));
                        metric_text_value(out, row, &values[i]);
                }
        }
        free(values);
}
