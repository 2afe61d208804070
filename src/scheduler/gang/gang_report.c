/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/gang/gang_report.h"

#include "base/metric_text.h"
#include "wire/json_write.h"

static int by_key(const Gang *a, const Gang *b) {
        return strcmp(a->key, b->key);
}

static void write_gang(JsonWriter *w, const Gang *g, usec_t now) {
        const GangCount *c = &g->count;
        char why[GANGS_WHY_MAX];

        gang_words_explain(g, why);
        json_write_object(w, NULL);
        json_write_text(w, "namespace", g->namespace_);
        json_write_text(w, "name", g->name);
        json_write_text(w, "state", gang_table_state_name(g->state));
        json_write_u64(w, "minAvailable", c->min);
        json_write_u64(w, "members", c->living);
        json_write_u64(w, "ready", c->ready);
        json_write_u64(w, "held", c->held);
        json_write_u64(w, "bound", c->bound);
        json_write_u64(w, "ended", c->ended);
        json_write_u64(w, "attempts", g->attempt);
        json_write_u64(w, "failures", g->failures);
        json_write_u64(w, "seconds", (now - g->since) / USEC_PER_SEC);
        json_write_text(w, "reason", why);
        json_write_object_end(w);
}

void gang_report_list(const Gangs *gs, usec_t now, Buf *out) {
        Gang *gangs = gs->table.gangs, *g, *next;
        JsonWriter w;

        HASH_SORT(gangs, by_key);
        json_write_init(&w, out);
        json_write_array(&w, NULL);
        HASH_ITER(hh, gangs, g, next)
        write_gang(&w, g, now);
        json_write_array_end(&w);
}

void gang_report_metrics(const Gangs *gs, Buf *out) {
        uint64_t states[GANG_STATES_] = {0};
        Gang *g, *next;

        HASH_ITER(hh, gs->table.gangs, g, next)
        states[g->state]++;
        metric_text_head(out, "aliquot_scheduler_gangs", "gauge", "Gangs by state.");
        for (int i = 0; i < GANG_STATES_; i++)
                buf_appendf(out, "aliquot_scheduler_gangs{state=\"%s\"} %llu\n",
                            gang_table_state_name((GangState) i), (unsigned long long) states[i]);
        metric_text_head(out, "aliquot_scheduler_gang_attempts_total", "counter",
                         "Attempts to place a gang, by their end.");
        buf_appendf(out,
                    "aliquot_scheduler_gang_attempts_total{outcome=\"satisfied\"} %llu\n"
                    "aliquot_scheduler_gang_attempts_total{outcome=\"failed\"} %llu\n",
                    (unsigned long long) gs->attempts_satisfied, (unsigned long long) gs->attempts_failed);
        metric_text_head(out, "aliquot_scheduler_gang_held_seconds_total", "counter",
                         "How long Binds of members were held, all of them added up.");
        buf_append_str(out, STR("aliquot_scheduler_gang_held_seconds_total "));
        metric_text_seconds(out, gs->held_usec);
}
