/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/census.h"

#include <errno.h>
#include <stdio.h>

int census_init(Census *c) {
        c->usage = calloc(CARD_USAGE_MAX, sizeof *c->usage);
        c->uses = calloc(CARD_USAGE_MAX, sizeof *c->uses);
        return c->usage && c->uses ? 0 : -ENOMEM;
}

void census_done(Census *c) {
        free(c->usage);
        free(c->uses);
}

void census_forget(Census *c) {
        c->n_usage = c->n_totals = c->n_uses = c->n_spans = 0;
        c->cut = c->uses_cut = false;
}

static void take_process(Census *c, const ProbeReport *r) {
        CardUsage *u;

        if (!c->usage || c->n_usage == CARD_USAGE_MAX) {
                c->cut = true;
                return;
        }
        u = &c->usage[c->n_usage++];
        u->pid = r->number;
        u->bytes = r->value;
        memcpy(u->uuid, r->uuid, sizeof u->uuid);
}

static bool has_total(const Census *c, const char *uuid) {
        for (size_t i = 0; i < c->n_totals; i++)
                if (strcmp(c->totals[i].uuid, uuid) == 0)
                        return true;
        return false;
}

static void take_total(Census *c, const ProbeReport *r) {
        if (c->n_totals == CARDS_MAX || has_total(c, r->uuid))
                return;
        memcpy(c->totals[c->n_totals].uuid, r->uuid, sizeof r->uuid);
        c->totals[c->n_totals++].used = r->value;
}

static void take_use(Census *c, const ProbeReport *r) {
        CardUse *u;

        if (!c->usage || c->n_uses == CARD_USAGE_MAX) {
                c->uses_cut = true;
                return;
        }
        u = &c->uses[c->n_uses++];
        u->pid = r->number;
        u->nsec = r->value;
        memcpy(u->uuid, r->uuid, sizeof u->uuid);
}

static void take_span(Census *c, const ProbeReport *r) {
        CardSpan *span;

        for (size_t i = 0; i < c->n_spans; i++)
                if (strcmp(c->spans[i].uuid, r->uuid) == 0)
                        return;
        if (c->n_spans == CARDS_MAX)
                return;
        span = &c->spans[c->n_spans++];
        span->nsec = r->value;
        memcpy(span->uuid, r->uuid, sizeof span->uuid);
        (void) snprintf(span->untold, sizeof span->untold, "%.*s", (int) sizeof span->untold - 1, r->text);
}

void census_take(Census *c, const ProbeReport *r) {
        if (r->kind == REPORT_PROCESS)
                take_process(c, r);
        else if (r->kind == REPORT_TOTAL)
                take_total(c, r);
        else if (r->kind == REPORT_USE)
                take_use(c, r);
        else if (r->kind == REPORT_SPAN)
                take_span(c, r);
}

bool census_end(Census *c, const ProbeReport *r, CardCensus *ret) {
        *ret = (CardCensus){.usage = c->usage,
                            .n = c->n_usage,
                            .totals = c->totals,
                            .n_totals = c->cut ? 0 : c->n_totals,
                            .asked = r->value,
                            .untold = r->text,
                            .uses = c->uses,
                            .n_uses = c->n_uses,
                            .spans = c->spans,
                            .n_spans = c->uses_cut ? 0 : c->n_spans};
        if (c->cut) {
                (void) snprintf(c->untold, sizeof c->untold, "the cards have more than %d processes together",
                                CARD_USAGE_MAX);
                ret->untold = c->untold;
        }
        census_forget(c);
        return c->usage != NULL;
}
