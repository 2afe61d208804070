/* SPDX-License-Identifier: Apache-2.0 */
#include "share/compute.h"

#include <string.h>

#include "share/node_key.h"
#include "wire/annotation.h"

enum { SHOWN = 64 };

/* Appends one sentence to those that the fault has. */
static void complain(Fault *fault, const char *what, const char *name, Str text, const char *rule) {
        Fault before = fault ? *fault : FAULT_NULL;

        (void) fault_set(fault, 0, "%s%s%s %s is \"%.*s\", must be %s", before.text,
                         before.text[0] ? "; " : "", what, name, STR_CUT(text, SHOWN), rule);
}

/* ---- nodes ---- */

/* Reads the value of a key into *ret. Returns false if the key is not set. If its value breaks the
 * key's rule: false, *bad is set, and the fault gets a sentence. */
static bool read_number(NodeKey key, Str text, uint32_t *ret, bool *bad, Fault *fault) {
        if (str_is_empty(text))
                return false;
        if (node_key_is_good(key, text) && str_to_u32(text, ret))
                return true;
        complain(fault, "annotation", node_key_name(key), text, node_key_rule(key));
        *bad = true;
        return false;
}

static bool yields(ComputePolicy policy, bool annotated) {
        return policy == COMPUTE_PREEMPTIVE || (policy == COMPUTE_NATIVE && !annotated);
}

static void set_policy(CardCompute *c, ComputePolicy policy, bool annotated) {
        c->policy = policy;
        c->yields = yields(policy, annotated);
}

CardCompute compute_configured(ComputePolicy policy) {
        CardCompute c = {.policy = COMPUTE_UNSET};

        set_policy(&c, policy, false);
        return c;
}

int compute_update(CardCompute *c, const NodeAnnotations *annotations, ComputePolicy configured,
                   Fault *fault) {
        bool bad[3] = {false, false, false};
        uint32_t number;

        if (read_number(NODE_KEY_POLICY, annotations->policy, &number, &bad[0], fault))
                set_policy(c, compute_policy_from_number(number), true);
        else if (!bad[0])
                set_policy(c, configured, false);
        if (!read_number(NODE_KEY_MAX_INST, annotations->max_inst, &c->max_inst, &bad[1], fault) && !bad[1])
                c->max_inst = 0;
        if (!read_number(NODE_KEY_PRIO_RATIO, annotations->prio_ratio, &c->prio_ratio, &bad[2], fault) &&
            !bad[2])
                c->prio_ratio = 0;
        return bad[0] || bad[1] || bad[2] ? COMPUTE_E_NODE : 0;
}

/* Without an arbiter each container's gate divides the card by itself, and needs the number of
 * instances. */
CardCompute compute_for_mode(const CardCompute *node, ShareMode mode) {
        CardCompute c = *node;

        if (share_mode_has_core(mode)) {
                c.policy = COMPUTE_FIXED;
                c.yields = false;
        }
        if (c.policy == COMPUTE_FAIR && c.max_inst == 0)
                c.max_inst = COMPUTE_INSTANCES;
        return c;
}

/* ---- containers ---- */

/* Whether the variable has a text to read. A value from elsewhere sets *bad, and the fault gets a
 * sentence. */
static bool is_said(const EnvironmentText *v, const char *name, Fault *fault, bool *bad) {
        Fault before = fault ? *fault : FAULT_NULL;

        if (v->elsewhere) {
                (void) fault_set(fault, 0, "%s%s%s comes from elsewhere (valueFrom), which is not read",
                                 before.text, before.text[0] ? "; " : "", name);
                *bad = true;
        }
        return !v->elsewhere && !str_is_empty(v->text);
}

/* Complains of a CGPU_DISABLE that is no switch: the container stays isolated, and its user should
 * know. */
static void check_disable(const PodContainer *c, Fault *fault, bool *bad) {
        Str text = c->disable.text;

        if (!is_said(&c->disable, ENVIRONMENT_DISABLE, fault, bad) || c->not_isolated ||
            str_eq(text, STR("false")) || str_eq(text, STR("0")))
                return;
        complain(fault, "environment", ENVIRONMENT_DISABLE, text, "true, 1, false or 0");
        *bad = true;
}

int compute_request(const PodContainer *c, ComputeRequest *ret, Fault *fault) {
        ComputeRequest ask = {.weight = 1};
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
        check_disable(c, fault, &bad);
        *ret = ask;
        return bad ? COMPUTE_E_REQUEST : 0;
}
