/* SPDX-License-Identifier: Apache-2.0 */
#include "share/compute.h"

#include <string.h>

#include "share/node_key.h"
#include "wire/annotation.h"

enum { SHOWN = 64 };

/* One sentence of several: what was said before comes first. */
static void complain(Fault *fault, const char *what, const char *name, Str text, const char *rule) {
        Fault before = fault ? *fault : FAULT_NULL;

        (void) fault_set(fault, 0, "%s%s%s %s is \"%.*s\", must be %s", before.text,
                         before.text[0] ? "; " : "", what, name, (int) (text.len < SHOWN ? text.len : SHOWN),
                         text.data, rule);
}

/* ---- nodes ---- */

/* true: the value is good. false: there is none, and *bad stays, or it breaks the key's rule. */
static bool read_number(NodeKey key, Str text, uint32_t *ret, bool *bad, Fault *fault) {
        if (str_is_empty(text))
                return false;
        if (node_key_is_good(key, text) && str_to_u32(text, ret))
                return true;
        complain(fault, "annotation", node_key_name(key), text, node_key_rule(key));
        *bad = true;
        return false;
}

int compute_terms_want(ComputeTerms *t, const NodeAnnotations *annotations, uint32_t configured,
                       Fault *fault) {
        bool bad[3] = {false, false, false};

        if (read_number(NODE_KEY_POLICY, annotations->policy, &t->policy, &bad[0], fault))
                t->users_policy = true;
        else if (!bad[0]) {
                t->users_policy = false;
                t->policy = configured;
        }
        if (!read_number(NODE_KEY_MAX_INST, annotations->max_inst, &t->max_inst, &bad[1], fault) && !bad[1])
                t->max_inst = 0;
        if (!read_number(NODE_KEY_PRIO_RATIO, annotations->prio_ratio, &t->prio_ratio, &bad[2], fault) &&
            !bad[2])
                t->prio_ratio = 0;
        return bad[0] || bad[1] || bad[2] ? COMPUTE_E_TERMS : 0;
}

/* Without an arbiter a gate divides by itself, and must be told by how many. */
ComputeRule compute_rule(const ComputeTerms *t, ShareMode mode) {
        ComputeRule rule = {.policy = t->policy, .max_inst = t->max_inst, .prio_ratio = t->prio_ratio};

        if (share_mode_has_core(mode))
                rule.policy = COMPUTE_FIXED;
        else
                rule.yields =
                        t->policy == COMPUTE_PREEMPTIVE || (t->policy == COMPUTE_NATIVE && !t->users_policy);
        if (rule.policy == COMPUTE_FAIR && rule.max_inst == 0)
                rule.max_inst = COMPUTE_INSTANCES;
        return rule;
}

/* ---- containers ---- */

/* false: there is nothing to be read. */
static bool is_said(const EnvironmentText *v, const char *name, Fault *fault, bool *bad) {
        Fault before = fault ? *fault : FAULT_NULL;

        if (v->elsewhere) {
                (void) fault_set(fault, 0, "%s%s%s comes from elsewhere (valueFrom), which is not read",
                                 before.text, before.text[0] ? "; " : "", name);
                *bad = true;
        }
        return !v->elsewhere && !str_is_empty(v->text);
}

int compute_ask(const PodContainer *c, ComputeAsk *ret, Fault *fault) {
        ComputeAsk ask = {.weight = 1};
        bool bad = false;
        uint32_t n;

        if (is_said(&c->weight, ENVIRONMENT_WEIGHT, fault, &bad)) {
                if (str_to_u32(c->weight.text, &n) && n >= 1 && n <= COMPUTE_WEIGHT_MAX)
                        ask.weight = n;
                else {
                        complain(fault, "environment", ENVIRONMENT_WEIGHT, c->weight.text,
                                 "a whole number from 1 to 10000");
                        bad = true;
                }
        }
        if (is_said(&c->high_priority, ENVIRONMENT_HIGH_PRIORITY, fault, &bad)) {
                ask.high_priority = str_eq(c->high_priority.text, STR("1"));
                if (!ask.high_priority && !str_eq(c->high_priority.text, STR("0"))) {
                        complain(fault, "environment", ENVIRONMENT_HIGH_PRIORITY, c->high_priority.text,
                                 "0 or 1");
                        bad = true;
                }
        }
        *ret = ask;
        return bad ? COMPUTE_E_ASK : 0;
}
