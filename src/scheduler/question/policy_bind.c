/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/question/policy_bind.h"

#include <errno.h>
#include <stdlib.h>

#include "scheduler/policy/policy_mark.h"
#include "scheduler/question/policy_filter.h"

enum { NAME_SHOWN = 24 };

/* Whether the unit of the node, *ret_unit, takes the pod now. Returns 0, or POLICY_E_REFUSED with a
 * fault. */
static int check(PolicyTable *t, PolicyPod *pod, Str node, usec_t now, size_t *ret_unit, Fault *fault) {
        const Policy *p = pod->policy;
        PolicyUnitState states[POLICY_UNITS_MAX];
        char count[64];
        size_t k;

        k = policy_table_unit_of(p, directory_find(t->directory, node));
        if (k == p->spec.n_units)
                return fault_set(fault, POLICY_E_REFUSED, "node(s) are in no unit of policy %.*s",
                                 STR_CUT(p->spec.meta.name, NAME_SHOWN));
        policy_table_place(t, pod, POLICY_POD_PENDING, p->spec.n_units, now);
        policy_table_count(p, pod->group, pod->amounts, states);
        *ret_unit = k;
        if (!policy_choice_is_full(&p->spec.units[k], &states[k]))
                return 0;
        policy_filter_say_count(p, k, &states[k], count, sizeof count);
        return fault_set(fault, POLICY_E_REFUSED, "unit %zu of policy %.*s is full%s", k + 1,
                         STR_CUT(p->spec.meta.name, NAME_SHOWN), count);
}

UnitHooks policy_bind_hooks(PolicyTable *t) {
        return (UnitHooks){.userdata = t,
                           .may_preempt = policy_filter_may_preempt,
                           .bind_begin = policy_bind_begin,
                           .bind_end = policy_bind_end};
}

int policy_bind_begin(void *userdata, Str namespace_, Str uid, Str node, usec_t now, Buf *annotations,
                      Buf *labels, Fault *fault) {
        PolicyTable *t = userdata;
        PolicyPod *pod = policy_table_find(t, uid);
        const Policy *unready;
        size_t unit;
        char *copy;
        int r;

        if (pod && pod->state == POLICY_POD_BOUND)
                return 0;
        unready = policy_table_unready(t, namespace_);
        if (unready)
                return fault_set(fault, POLICY_E_REFUSED,
                                 "policy %.*s has changed, its pods are being counted",
                                 STR_CUT(unready->spec.meta.name, NAME_SHOWN));
        if (!pod)
                return 0;
        policy_table_settle(t, now);
        pod->obeys = true;
        r = check(t, pod, node, now, &unit, fault);
        if (r != 0)
                return r;
        policy_mark_annotations(&pod->policy->spec, unit, &pod->mark, annotations);
        policy_mark_labels(&pod->policy->spec, unit, labels);
        copy = str_dup(node);
        if (!copy || buf_result(annotations) < 0 || buf_result(labels) < 0) {
                free(copy);
                return -ENOMEM;
        }
        free(pod->node);
        pod->node = copy;
        policy_table_place(t, pod, POLICY_POD_BINDING, unit, now);
        return 0;
}

static void bound_now(PolicyTable *t, PolicyPod *pod, Str node, uint32_t generation) {
        char *copy = str_dup(node);

        if (!copy)
                return; /* the pod's own object will tell */
        free(pod->node);
        pod->node = copy;
        pod->waits = false;
        pod->generation = generation;
        policy_table_place(t, pod, POLICY_POD_BOUND,
                           policy_table_unit_of(pod->policy, directory_find(t->directory, node)), 0);
}

void policy_bind_end(void *userdata, Str uid, Str node, bool bound, uint32_t generation) {
        PolicyTable *t = userdata;
        PolicyPod *pod = policy_table_find(t, uid);

        if (bound && !pod)
                policy_table_keep_open(t, uid, generation);
        else
                policy_table_close(t, uid);
        if (!pod || pod->state == POLICY_POD_BOUND)
                return;
        if (!bound) {
                if (pod->state == POLICY_POD_BINDING)
                        policy_table_place(t, pod, POLICY_POD_PENDING, pod->policy->spec.n_units, 0);
                return;
        }
        if (pod->state == POLICY_POD_BINDING) {
                pod->mark.placed = true; /* the Binding wrote the mark and the labels */
                pod->labelled |= pod->unit < pod->policy->spec.n_units ? UINT64_C(1) << pod->unit : 0;
        }
        bound_now(t, pod, node, generation);
}

void policy_bind_patch(const PolicyPod *pod, Buf *out) {
        const PolicySpec *s = &pod->policy->spec;
        bool labelled;

        if (!pod->obeys || pod->state != POLICY_POD_BOUND || pod->terminating || pod->unit >= s->n_units)
                return;
        labelled = (pod->labelled >> pod->unit & 1) != 0;
        policy_mark_patch(s, pod->unit, &pod->mark, pod->mark.placed && !labelled, pod->uid, out);
}
