/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/gang/gang_words.h"

#include <stdarg.h>
#include <stdio.h>

#include "wire/pod_gang.h"
#include "wire/topology_keys.h"

/* bytes of the gang's name that are shown, because a reason has only REFUSAL_REASON_MAX */
enum { NAME_SHOWN = 40 };

void gang_words_say(const Gang *g, char *out, const char *format, ...) {
        int n = snprintf(out, GANG_WORDS_MAX, "gang %.*s", STR_CUT(str_from(g->name), NAME_SHOWN));
        va_list args;

        va_start(args, format);
        if (n > 0 && n < GANG_WORDS_MAX)
                (void) vsnprintf(out + n, (size_t) (GANG_WORDS_MAX - n), format, args);
        va_end(args);
        /* kube-scheduler uses the text as a printf format, and names may come from annotations. */
        for (char *c = out; *c != '\0'; c++)
                if (*c < ' ' || *c > '~' || *c == '%')
                        *c = '?';
}

static void explain_members(const Gang *g, char *why) {
        const GangCount *c = &g->count;
        uint32_t have = gang_table_n_bound(g) + c->ready - c->released;

        if (c->elsewhere > 0)
                gang_words_say(g, why, ": %u of %u members; %u name another scheduler", have, c->min,
                               c->elsewhere);
        else if (c->gated_else > 0)
                gang_words_say(g, why, ": %u of %u members; %u have another gate", have, c->min,
                               c->gated_else);
        else if (c->impossible > 0)
                gang_words_say(g, why, ": %u of %u members; no node can take %u", have, c->min,
                               c->impossible);
        else if (g->state == GANG_REPAIR)
                gang_words_say(g, why, " waits for members: %u of %u, %u are bound", have, c->min, c->bound);
        else
                gang_words_say(g, why, " waits for members: %u of %u", have, c->min);
}

static void explain_repair(const Gang *g, char *why) {
        uint32_t bound = gang_table_n_bound(g);

        gang_words_say(g, why, ": %u of %u bound, %s; %u more go first", bound, g->count.min,
                       g->refused != 0 ? "a Binding was refused" : "an attempt was cut off",
                       g->count.min - bound);
}

void gang_words_explain(const Gang *g, char *why) {
        const GangCount *c = &g->count;

        why[0] = '\0';
        if (g->state == GANG_SATISFIED)
                return;
        if (c->min_wrong)
                gang_words_say(g, why, ": %s must be a number from 1 to %d",
                               str_has_prefix(str_from(g->name), STR(LABEL_TOPOLOGY_JOB "/"))
                                       ? LABEL_TOPOLOGY_REPLICAS
                                       : "min-available",
                               POD_GANG_MIN_MAX);
        else if (gang_table_is_contradictory(g))
                gang_words_say(g, why, ": members have priorities %lld and %lld, must be equal",
                               (long long) c->priority_low, (long long) c->priority_high);
        else if (g->state == GANG_ASSEMBLING)
                gang_words_say(g, why, " is being placed: %u of %u", gang_table_n_bound(g) + c->held, c->min);
        else if (!gang_table_has_enough(g))
                explain_members(g, why);
        else if (g->state == GANG_BACKOFF || g->too_large)
                (void) snprintf(why, GANG_WORDS_MAX, "%s", g->why);
        else if (g->state == GANG_REPAIR)
                explain_repair(g, why);
        else
                gang_words_say(g, why, " waits for its turn");
}
