/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/question/policy_filter.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/log.h"
#include "share/refusal_reason.h"
#include "wire/pod_profile.h"

/* Bytes of names in a reason, which has at most REFUSAL_REASON_MAX. */
enum { NAME_SHOWN = 24, KEY_SHOWN = 40 };

/* When a pod that was refused because of other pods' notes, or for preemption, is woken. */
#define WAKE_SOON (POLICY_NOTE_LASTS + USEC_PER_SEC)

#define SAY_AGAIN (60 * USEC_PER_SEC) /* least time between two warnings about one policy */

typedef struct Choosing {
        PolicyTable *table;
        Policy *policy;
        PolicyPod *known; /* NULL: the watch does not know the pod under this policy */
        PolicyGroup *group;
        Str lacking; /* a key of matchLabelKeys that the pod lacks */
        int64_t *amounts;
        PolicyUnitState *states;
        PolicyAsker asker;
        bool nominated;
        usec_t now;
        Arena *arena;
        PolicyChoice choice;
} Choosing;

/* ---- which pods ---- */

static uint64_t waited_of(PolicyPod *known, const PolicyMember *m) {
        PolicyPod unknown = {0};

        return policy_table_waited(known ? known : &unknown, m);
}

static int read_preemption(Choosing *c, Str pod_text) {
        PodProfile profile;
        int r;

        if (!c->policy->spec.preempts_before_next || !c->known)
                return 0;
        r = pod_profile_decode(pod_text, c->arena, &profile, NULL);
        if (r < 0)
                return r;
        c->asker.may_preempt = r == 0 && !profile.never_preempts && profile.priority > 0;
        c->asker.preempted = c->known->preempted;
        return 0;
}

static int prepare_choice(Choosing *c, const CandidatesPod *pod, const PolicyMember *m) {
        const Policy *p = c->policy;
        int r;

        c->known = policy_table_find(c->table, pod->args->pod.meta.uid);
        if (c->known && c->known->policy != p)
                c->known = NULL;
        if (c->known)
                c->known->asked = true;
        c->now = pod->now;
        c->nominated = m->nominated;
        c->asker.waited = waited_of(c->known, m);
        c->states = arena_new(pod->arena, PolicyUnitState, p->spec.n_units);
        c->amounts = arena_new(pod->arena, int64_t, p->n_resources + 1);
        if (!c->states || !c->amounts)
                return -ENOMEM;
        (void) policy_table_group_of(p, &m->labels, pod->arena, &c->group, &c->lacking);
        r = policy_table_amounts_of(p, pod->args->pod_text, pod->arena, c->amounts);
        return r < 0 ? r : read_preemption(c, pod->args->pod_text);
}

static int takes_pod(void *userdata, const CandidatesPod *pod, void **ret_state) {
        PolicyTable *t = userdata;
        PolicyMember m;
        Policy *p, *other;
        Choosing *c;
        int r;

        if (!policy_table_has(t, pod->args->pod.meta.namespace_))
                return 0;
        r = policy_member_decode(pod->args->pod_text, pod->arena, &m, NULL);
        if (r != 0)
                return r < 0 ? r : 0;
        p = policy_table_of(t, pod->args->pod.meta.namespace_, &m.labels, &other);
        if (!p)
                return 0;
        policy_table_know_scheduler(t, pod->args->pod.scheduler_name);
        c = arena_new(pod->arena, Choosing, 1);
        if (!c)
                return -ENOMEM;
        c->table = t;
        c->policy = p;
        c->arena = pod->arena;
        *ret_state = c;
        r = prepare_choice(c, pod, &m);
        return r < 0 ? r : 1;
}

/* ---- reasons ---- */

_printf_(2, 3) static const char *say_reason(Choosing *c, const char *format, ...) {
        char text[REFUSAL_REASON_MAX + 1];
        va_list args;
        Str copy;

        va_start(args, format);
        (void) vsnprintf(text, sizeof text, format, args);
        va_end(args);
        copy = arena_str(c->arena, str_from(text));
        return copy.data ? copy.data : "a ResourcePolicy keeps the pod off";
}

#define NAME(c) STR_CUT((c)->policy->spec.meta.name, NAME_SHOWN)

void policy_filter_say_count(const Policy *p, size_t unit, const PolicyUnitState *state, char *ret,
                             size_t size) {
        const PolicyUnit *u = &p->spec.units[unit];

        if (state->over_amount && !(u->has_max && state->pods >= u->max))
                (void) snprintf(ret, size, ": %u pods, and maxResources is reached", state->pods);
        else if (u->has_max)
                (void) snprintf(ret, size, ": %u of max %u pods", state->pods, u->max);
        else
                (void) snprintf(ret, size, ": %u pods", state->pods);
}

static const char *say_full(Choosing *c, size_t unit) {
        char count[64];

        policy_filter_say_count(c->policy, unit, &c->states[unit], count, sizeof count);
        return say_reason(c, "unit %zu of policy %.*s is full%s", unit + 1, NAME(c), count);
}

static const char *say_waits(Choosing *c) {
        size_t k = c->choice.unit;
        char count[64];

        policy_filter_say_count(c->policy, k, &c->states[k], count, sizeof count);
        if (c->policy->spec.next == POLICY_NEXT_LACK_AND_NO_TERMINATING)
                return say_reason(c, "waits in unit %zu of policy %.*s%s, one is terminating", k + 1, NAME(c),
                                  count);
        return say_reason(c, "waits in unit %zu of policy %.*s%s, no room", k + 1, NAME(c), count);
}

/* ---- refusing ---- */

static void refuse_candidate(Candidate *n, const char *reason) {
        if (!refusal_is_final(n->refusal.code))
                n->refusal = (Refusal){.code = REFUSAL_POLICY, .rule = reason};
}

static void refuse_all(Candidate *first, const char *reason) {
        for (Candidate *n = first; n; n = n->next)
                refuse_candidate(n, reason);
}

static size_t unit_of(const Choosing *c, const Candidate *n) {
        return policy_table_unit_of(c->policy, n->is.node);
}

/* Refuses the nodes outside of the chosen unit. Nodes of that unit, or of any unit that is not full
 * for POLICY_NONE, keep the answer of their cards. */
static void refuse_others(Choosing *c, Candidate *first) {
        const PolicySpec *s = &c->policy->spec;
        const char **reasons = arena_new(c->arena, const char *, s->n_units + 1);

        for (Candidate *n = first; n; n = n->next) {
                size_t k = unit_of(c, n);
                bool full = k < s->n_units && policy_choice_is_full(&s->units[k], &c->states[k]);
                const char *reason = reasons ? reasons[k] : NULL;

                if (k == c->choice.unit || (c->choice.verdict == POLICY_NONE && k < s->n_units && !full))
                        continue;
                if (!reason)
                        reason =
                                k == s->n_units
                                        ? say_reason(c, "node(s) are in no unit of policy %.*s", NAME(c))
                                : full ? say_full(c, k)
                                       : say_reason(c, "node(s) are in another unit of policy %.*s", NAME(c));
                if (reasons)
                        reasons[k] = reason;
                refuse_candidate(n, reason);
        }
}

/* Refuses the nodes in no unit. refuse_others() passes over them for POLICY_NONE, because its unit
 * is n_units, too. */
static void refuse_without_unit(Choosing *c, Candidate *first) {
        const char *reason = NULL;

        for (Candidate *n = first; n; n = n->next)
                if (unit_of(c, n) == c->policy->spec.n_units) {
                        if (!reason)
                                reason = say_reason(c, "node(s) are in no unit of policy %.*s", NAME(c));
                        refuse_candidate(n, reason);
                }
}

/* ---- what is remembered ---- */

static void remember_wait(Choosing *c, const char *why) {
        PolicyPod *known = c->known;
        Policy *p = c->policy;

        if (strcmp(p->why, why) != 0) {
                (void) snprintf(p->why, sizeof p->why, "%s", why);
                p->version++;
        }
        if (!known)
                return;
        p->version += !known->waits;
        known->waits = true;
        known->wake = c->choice.wait > 0 ? c->now + (c->choice.wait + 1) * USEC_PER_SEC : 0;
        /* The note of another pod may expire without a Binding, and nothing else would wake this
         * pod. */
        if (c->choice.verdict == POLICY_PREEMPTS || p->n_notes > 0)
                known->wake = c->now + WAKE_SOON;
}

static uint64_t units_to_preempt_in(const Choosing *c) {
        const PolicySpec *s = &c->policy->spec;
        uint64_t units = 0;

        if (c->choice.verdict == POLICY_PREEMPTS || c->choice.verdict == POLICY_OPEN)
                return UINT64_C(1) << c->choice.unit;
        if (c->choice.verdict == POLICY_WAITS)
                return 0;
        for (size_t k = 0; k < s->n_units; k++)
                if (!policy_choice_is_full(&s->units[k], &c->states[k]))
                        units |= UINT64_C(1) << k;
        return units;
}

static void remember_why(Choosing *c, const char *why) {
        PolicyPod *known = c->known;

        if (c->choice.verdict != POLICY_OPEN)
                remember_wait(c, why);
        if (!known || known->state == POLICY_POD_BOUND || known->state == POLICY_POD_BINDING)
                return;
        known->preempts_in = units_to_preempt_in(c);
        if (c->choice.verdict == POLICY_PREEMPTS)
                known->preempted = (uint8_t) (c->choice.unit + 1);
        if (c->choice.verdict == POLICY_OPEN) {
                known->waits = false;
                known->wake = 0;
        }
        policy_table_place(
                c->table, known, c->choice.verdict == POLICY_OPEN ? POLICY_POD_NOTED : POLICY_POD_PENDING,
                c->choice.verdict == POLICY_OPEN ? c->choice.unit : c->policy->spec.n_units, c->now);
}

/* ---- choosing ---- */

/* Counts the pods and the rooms of the units. The pod's own note is taken back first, so that it
 * does not keep the pod out. */
static void look_at_nodes(Choosing *c, const Candidate *first) {
        Policy *p = c->policy;

        if (c->known && c->known->state == POLICY_POD_NOTED)
                policy_table_place(c->table, c->known, POLICY_POD_PENDING, p->spec.n_units, c->now);
        policy_table_count(p, c->group, c->amounts, c->states);
        for (size_t k = 0; k < p->spec.n_units; k++)
                c->states[k].has_nodes = p->nodes[k] > 0;
        for (const Candidate *n = first; n; n = n->next) {
                size_t k = unit_of(c, n);

                if (k < p->spec.n_units && n->refusal.code == REFUSAL_NONE)
                        c->states[k].has_room = true;
        }
}

/* Whether to refuse the nominated node, offered alone, because an earlier unit may have room. After
 * the refusal kube-scheduler offers all nodes in the same cycle (schedule_one.go,
 * findNodesThatFitPod). */
static bool is_a_hint(Choosing *c, const Candidate *first) {
        bool earlier = false;

        if (!c->nominated || !c->known || !first || first->next || c->choice.verdict != POLICY_OPEN)
                return false;
        for (size_t k = 0; k < c->choice.unit; k++)
                earlier |= c->states[k].has_nodes &&
                           !policy_choice_is_full(&c->policy->spec.units[k], &c->states[k]);
        if (!earlier || (c->known->hint_refused > 0 && c->now < c->known->hint_refused + POLICY_NOTE_LASTS))
                return false;
        c->known->hint_refused = c->now;
        return true;
}

/* Whether so many offered nodes may be the sample at which kube-scheduler stops, for some
 * percentageOfNodesToScore below 100 (numFeasibleNodesToFind, schedule_one.go). Another number of
 * nodes is what its own filters left. */
static bool is_a_sample(size_t offered, size_t nodes) {
        enum { FEWEST = 100 };

        if (offered <= FEWEST || offered >= nodes)
                return offered == FEWEST && offered < nodes;
        for (size_t percent = 1; percent < 100; percent++)
                if (nodes * percent / 100 == offered)
                        return true;
        return false;
}

/* The first unit before the chosen one that is not full and has nodes that were not offered;
 * n_units: none. */
static size_t unit_with_more(const Choosing *c, const Candidate *first) {
        const Policy *p = c->policy;
        size_t *offered = arena_new(c->arena, size_t, p->spec.n_units + 1);
        size_t end = c->choice.unit + (c->choice.verdict == POLICY_WAITS);

        if (!offered)
                return p->spec.n_units;
        memset(offered, 0, (p->spec.n_units + 1) * sizeof *offered);
        for (; first; first = first->next)
                offered[unit_of(c, first)]++;
        for (size_t k = 0; k < end; k++)
                if (offered[k] < p->nodes[k] && !policy_choice_is_full(&p->spec.units[k], &c->states[k]))
                        return k;
        return p->spec.n_units;
}

static void report_sample(Choosing *c, const Candidate *first) {
        size_t n = 0, nodes = directory_size(c->table->directory), unit;
        Policy *p = c->policy;

        if (p->told_sample > 0 && c->now < p->told_sample + SAY_AGAIN)
                return;
        for (const Candidate *at = first; at; at = at->next)
                n++;
        if (!is_a_sample(n, nodes))
                return;
        unit = unit_with_more(c, first);
        if (unit == p->spec.n_units)
                return;
        p->told_sample = c->now;
        log_warning("policy=" STR_FMT " kube-scheduler offers %zu of %zu nodes, and unit %zu has others: set "
                    "percentageOfNodesToScore to 100, or a later unit may open while an earlier one has room",
                    STR_ARG(p->key), n, nodes, unit + 1);
}

static int choose_unit(void *userdata, void *state, Candidate *first) {
        PolicyTable *t = userdata;
        Choosing *c = state;
        const char *why = NULL;

        policy_table_settle(t, c->now);
        c->choice = (PolicyChoice){.verdict = POLICY_WAITS, .unit = c->policy->spec.n_units};
        if (!policy_table_is_ready(t, c->policy))
                why = say_reason(c, "policy %.*s has changed, its pods are being counted", NAME(c));
        else if (!str_is_empty(c->lacking))
                why = say_reason(c, "policy %.*s needs label %.*s, which the pod lacks", NAME(c),
                                 STR_CUT(c->lacking, KEY_SHOWN));
        if (why) {
                refuse_all(first, why);
                remember_why(c, why);
                return 0;
        }
        look_at_nodes(c, first);
        c->choice = policy_choice_make(&c->policy->spec, c->states, &c->asker);
        report_sample(c, first);
        if (is_a_hint(c, first)) {
                c->choice.verdict = POLICY_WAITS;
                why = say_reason(c, "an earlier unit of policy %.*s may have room", NAME(c));
        } else if (c->choice.verdict == POLICY_WAITS)
                why = say_waits(c);
        if (c->choice.verdict == POLICY_WAITS)
                refuse_all(first, why);
        else
                refuse_others(c, first);
        if (c->choice.verdict == POLICY_NONE)
                refuse_without_unit(c, first);
        remember_why(c, why ? why : say_reason(c, "no unit of policy %.*s has room", NAME(c)));
        return 0;
}

Chooser policy_filter_chooser(PolicyTable *t) {
        return (Chooser){.takes = takes_pod, .choose = choose_unit, .userdata = t};
}

/* Whether the unit is full besides the pod. Its own note does not keep it out. */
static bool is_full_for(const PolicyPod *pod, size_t unit) {
        const Policy *p = pod->policy;
        PolicyUnitState states[POLICY_UNITS_MAX];

        if (pod->counted && pod->unit == unit)
                return false;
        policy_table_count(p, pod->group, pod->amounts, states);
        return policy_choice_is_full(&p->spec.units[unit], &states[unit]);
}

bool policy_filter_may_preempt(void *userdata, Str uid, const DirectoryNode *node) {
        const PolicyPod *pod = policy_table_find(userdata, uid);
        size_t unit;

        if (!pod)
                return true;
        unit = policy_table_unit_of(pod->policy, node);
        return unit < pod->policy->spec.n_units && (pod->preempts_in >> unit & 1) != 0 &&
               !is_full_for(pod, unit);
}
