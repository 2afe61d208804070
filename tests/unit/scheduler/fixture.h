/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Small clusters as texts, fed into a view. */

#include "scheduler/view/view.h"
#include "share/ledger_check.h"
#include "test.h"

static inline void feed(View *v, ViewKind kind, ReflectorEvent event, const char *json) {
        ASSERT_OK(view_object(v, kind, event, str_from(json)));
        ASSERT_TRUE(ledger_check(v->ledger));
}

/* members: more members of metadata, beginning with a comma, such as `,"annotations":{...}`. */
static inline const char *node_json(const char *name, const char *mode, unsigned mem, unsigned cards,
                                    const char *members) {
        static char text[8][2048];
        static unsigned turn;
        char *at = text[turn++ % 8];

        (void) snprintf(
                at, sizeof text[0],
                "{\"metadata\":{\"name\":\"%s\",\"uid\":\"uid-%s\",\"labels\":{\"ack.node.gpu.schedule\":"
                "\"%s\"}%s},\"status\":{\"allocatable\":{\"aliyun.com/gpu-mem\":\"%u\",\"aliyun.com/"
                "gpu-count\":\"%u\",\"aliyun.com/gpu-core.percentage\":\"%u\"}}}",
                name, name, mode, members, mem, cards, strcmp(mode, "core_mem") == 0 ? cards * 100 : 0);
        return at;
}

typedef struct PodText {
        const char *name, *uid;    /* uid: "uid-NAME" when NULL */
        const char *node;          /* NULL: not bound */
        const char *mem, *core;    /* gpu-mem, percent; NULL: no share */
        const char *allocation;    /* current annotation, escaped for JSON */
        const char *annotations;   /* more annotations, beginning with a comma */
        const char *phase, *state; /* "Running" and "running" when NULL */
        const char *assume_time;
        bool terminating;
        int priority;
        const char *labels, *requests;          /* members of metadata.labels, of the container's requests */
        const char *spec;                       /* more members of spec, each with a comma behind it */
        const char *start, *nominated, *status; /* startTime, nominatedNodeName, more members as in spec */
} PodText;

static inline const char *pod_json_(PodText p) {
        static char text[8][4096];
        static unsigned turn;
        char *at = text[turn++ % 8], *end = at + sizeof text[0], *w = at;

#define ADD(...) w += snprintf(w, (size_t) (end - w), __VA_ARGS__)
        ADD("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\",\"uid\":\"%s%s\",\"annotations\":{"
            "\"x\":\"y\"",
            p.name, p.uid ? "" : "uid-", p.uid ? p.uid : p.name);
        if (p.allocation)
                ADD(",\"scheduler.framework.gpushare.allocation\":\"%s\"", p.allocation);
        if (p.assume_time)
                ADD(",\"scheduler.framework.gpushare.assume-time\":\"%s\"", p.assume_time);
        ADD("%s", p.annotations ? p.annotations : "");
        ADD("},\"labels\":{%s}%s},\"spec\":{%s", p.labels ? p.labels : "",
            p.terminating ? ",\"deletionTimestamp\":\"2026-11-21T00:00:00Z\"" : "", p.spec ? p.spec : "");
        if (p.priority)
                ADD("\"priority\":%d,", p.priority);
        if (p.node)
                ADD("\"nodeName\":\"%s\",", p.node);
        ADD("\"containers\":[{\"name\":\"main\",\"resources\":{\"requests\":{%s},\"limits\":{\"cpu\":\"1\"",
            p.requests ? p.requests : "");
        if (p.mem)
                ADD(",\"aliyun.com/gpu-mem\":\"%s\"", p.mem);
        if (p.core)
                ADD(",\"aliyun.com/gpu-core.percentage\":\"%s\"", p.core);
        ADD("}}}]},\"status\":{%s", p.status ? p.status : "");
        ADD("\"startTime\":\"%s\",\"nominatedNodeName\":\"%s\",", p.start ? p.start : "",
            p.nominated ? p.nominated : "");
        ADD("\"phase\":\"%s\",\"containerStatuses\":[{\"state\":{\"%s\":{}}}]}}",
            p.phase ? p.phase : "Running", p.state ? p.state : "running");
#undef ADD
        return at;
}
#define pod_json(...) pod_json_((PodText){__VA_ARGS__})

static inline const LedgerCard *card_of(const View *v, const char *node, size_t card) {
        LedgerNode *n = ledger_node_find(v->ledger, str_from(node));

        ASSERT_TRUE(n && card < ledger_node_n_cards(n));
        return &ledger_node_cards(n)[card];
}

#define ASSERT_USED(v, node, card, units) ASSERT_INT(card_of(v, node, card)->used, units)

/* Every sum of one ledger, as a text to compare. */
static inline char *sums_of(const Ledger *l) {
        Buf out = BUF_NULL;
        _cleanup_free_ Str *lines = calloc(ledger_n_nodes(l) + 1, sizeof *lines);
        size_t n = ledger_n_nodes(l);

        for (size_t i = 0; i < n; i++) {
                const LedgerNode *node = ledger_node_at(l, i);
                Buf line = BUF_NULL;

                buf_appendf(&line, STR_FMT " pending %u cpu %llu", STR_ARG(ledger_node_name(node)),
                            ledger_node_pending(node), (unsigned long long) ledger_node_cpu(node));
                for (size_t k = 0; k < ledger_node_n_cards(node); k++) {
                        const LedgerCard *c = &ledger_node_cards(node)[k];
                        if (c->units > 0 || c->pods > 0) /* named once, by a former grant */
                                buf_appendf(&line, " gpu%u %llu/%u %llu%% %u pods", c->index,
                                            (unsigned long long) c->used, c->units,
                                            (unsigned long long) c->core_used, c->pods);
                }
                size_t at = i;
                for (; at > 0 && str_compare(buf_str(&line), lines[at - 1]) < 0; at--)
                        lines[at] = lines[at - 1];
                lines[at] = buf_str(&line);
        }
        for (size_t i = 0; i < n; i++) {
                buf_appendf(&out, STR_FMT "\n", STR_ARG(lines[i]));
                free((char *) (uintptr_t) lines[i].data);
        }
        return buf_take(&out);
}
