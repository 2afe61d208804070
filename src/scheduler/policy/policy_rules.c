/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policy/policy_spec-internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/quantity.h"
#include "base/timestamp.h"
#include "scheduler/policy/label_syntax.h"
#include "scheduler/policy/policy_time.h"
#include "share/fault_join.h"
#include "wire/annotation.h"
#include "wire/pod.h"

#define TIMEOUT_DEFAULT (UINT64_C(15) * 60)

void policy_spec_complain(Fault *list, const char *format, ...) {
        Fault why = FAULT_NULL;
        va_list args;

        va_start(args, format);
        (void) vsnprintf(why.text, sizeof why.text, format, args);
        va_end(args);
        fault_join(list, &why);
}

/* ---- keys ---- */

static bool ends_domain(Str domain, Str end) {
        if (domain.len < end.len || memcmp(domain.data + domain.len - end.len, end.data, end.len) != 0)
                return false;
        return domain.len == end.len || domain.data[domain.len - end.len - 1] == '.';
}

bool policy_spec_key_is_reserved(Str key) {
        static const Str domains[] = {STR("kubernetes.io"), STR("k8s.io"), STR("aliquot.dev")};
        const char *slash = key.len > 0 ? memchr(key.data, '/', key.len) : NULL;
        Str domain = {key.data, slash ? (size_t) (slash - key.data) : 0};

        for (size_t i = 0; i < ELEMENTSOF(domains); i++)
                if (ends_domain(domain, domains[i]))
                        return true;
        for (size_t i = 0; i < POD_SYSTEM_KEYS_COUNT; i++)
                if (str_eq(key, pod_system_key_names[i]))
                        return true;
        return str_eq(key, STR(LABEL_POD_COUNT));
}

static void judge_keys(PolicyDraft *d, size_t at, const char *field, const StringMap *map) {
        for (size_t i = 0; i < map->n; i++)
                if (policy_spec_key_is_reserved(map->pairs[i].key))
                        policy_spec_complain(
                                &d->spec.wrong,
                                "spec.units[%zu].%s has the key %.*s, which belongs to Kubernetes or to "
                                "aliquot",
                                at, field, STR_CUT(map->pairs[i].key, POLICY_SHOWN));
}

/* A key that the API server refuses would make each Binding fail. path: of the map,
 * "spec.selector". */
static void judge_key(PolicyDraft *d, const char *path, Str key, bool good) {
        if (!good)
                policy_spec_complain(&d->spec.wrong, "%s has the key \"%.*s\", " LABEL_SYNTAX_KEY_RULE, path,
                                     STR_CUT(key, POLICY_SHOWN));
}

static void judge_label_syntax(PolicyDraft *d, const char *path, const StringMap *map) {
        for (size_t i = 0; i < map->n; i++) {
                const StringPair *p = &map->pairs[i];

                judge_key(d, path, p->key, label_syntax_is_key(p->key));
                if (!label_syntax_is_value(p->value))
                        policy_spec_complain(&d->spec.wrong, "%s[%.*s] is \"%.*s\", " LABEL_SYNTAX_VALUE_RULE,
                                             path, STR_CUT(p->key, POLICY_SHOWN),
                                             STR_CUT(p->value, POLICY_SHOWN));
        }
}

static void judge_group_keys(PolicyDraft *d) {
        for (size_t i = 0; i < d->spec.n_group_keys; i++)
                judge_key(d, "spec.matchLabelKeys", d->spec.group_keys[i],
                          label_syntax_is_key(d->spec.group_keys[i]));
}

/* ---- one value of spec ---- */

/* The index of the text in names; n: it is none of them. */
static size_t find_choice(Str text, const char *const *names, size_t n) {
        size_t i = 0;

        while (i < n && !str_eq(text, str_from(names[i])))
                i++;
        return i;
}

static void judge_strategy(PolicyDraft *d) {
        if (!str_is_empty(d->strategy) && !str_eq(d->strategy, STR("prefer")))
                policy_spec_complain(&d->spec.wrong, "spec.strategy is \"%.*s\", must be prefer",
                                     STR_CUT(d->strategy, POLICY_SHOWN));
}

static void judge_preempt(PolicyDraft *d) {
        static const char *const names[] = {"", "AfterAllUnits", "BeforeNextUnit"};
        size_t i = find_choice(d->preempt, names, ELEMENTSOF(names));

        if (i == ELEMENTSOF(names))
                policy_spec_complain(
                        &d->spec.wrong,
                        "spec.preemptPolicy is \"%.*s\", must be AfterAllUnits or BeforeNextUnit",
                        STR_CUT(d->preempt, POLICY_SHOWN));
        d->spec.preempts_before_next = i == 2;
}

static void judge_next(PolicyDraft *d) {
        static const char *const names[] = {
                "",
                "LackResourceOrExceedMax",
                "ExceedMax",
                "LackResourceAndNoTerminating",
                "LackResourceAndNoterminating", /* the vendor's documents have both */
                "TimeoutOrExceedMax",
        };
        static const PolicyNext values[] = {
                POLICY_NEXT_LACK_OR_MAX,
                POLICY_NEXT_LACK_OR_MAX,
                POLICY_NEXT_MAX,
                POLICY_NEXT_LACK_AND_NO_TERMINATING,
                POLICY_NEXT_LACK_AND_NO_TERMINATING,
                POLICY_NEXT_TIMEOUT_OR_MAX,
        };
        PolicySpec *s = &d->spec;
        size_t i = find_choice(d->next, names, ELEMENTSOF(names));

        if (i == ELEMENTSOF(names)) {
                policy_spec_complain(
                        &s->wrong,
                        "spec.whenTryNextUnits.policy is \"%.*s\", must be LackResourceOrExceedMax, "
                        "ExceedMax, LackResourceAndNoTerminating or TimeoutOrExceedMax",
                        STR_CUT(d->next, POLICY_SHOWN));
                return;
        }
        s->next = values[i];
        s->timeout = TIMEOUT_DEFAULT;
        if (!str_is_empty(d->timeout) && !policy_time_duration(d->timeout, &s->timeout))
                policy_spec_complain(
                        &s->wrong,
                        "spec.whenTryNextUnits.timeout is \"%.*s\", must be a duration of at most a year, "
                        "such as 15m",
                        STR_CUT(d->timeout, POLICY_SHOWN));
        if (!str_is_empty(d->timeout) && s->next != POLICY_NEXT_TIMEOUT_OR_MAX)
                policy_spec_complain(
                        &s->ignored,
                        "spec.whenTryNextUnits.timeout has an effect with TimeoutOrExceedMax alone");
}

/* ---- units ---- */

/* Reads the quantities of maxResources. Returns 0 or -ENOMEM. */
static int judge_amounts(PolicyDraft *d, size_t at, PolicyUnit *u) {
        const StringMap *map = &d->units[at].amounts;

        u->max_amounts = arena_new(d->arena, PolicyAmount, map->n + 1);
        if (!u->max_amounts)
                return -ENOMEM;
        for (size_t i = 0; i < map->n; i++) {
                PolicyAmount *a = &u->max_amounts[u->n_max_amounts];

                a->name = map->pairs[i].key;
                if (quantity_parse_milli(map->pairs[i].value, &a->milli))
                        u->n_max_amounts++;
                else
                        policy_spec_complain(
                                &d->spec.wrong,
                                "spec.units[%zu].maxResources[%.*s] is \"%.*s\", must be a quantity", at,
                                STR_CUT(a->name, POLICY_SHOWN), STR_CUT(map->pairs[i].value, POLICY_SHOWN));
        }
        return 0;
}

static void judge_written_syntax(PolicyDraft *d, size_t at, const PolicyUnit *u) {
        char path[64];

        (void) snprintf(path, sizeof path, "spec.units[%zu].podLabels", at);
        judge_label_syntax(d, path, &u->labels);
        (void) snprintf(path, sizeof path, "spec.units[%zu].podAnnotations", at);
        for (size_t i = 0; i < u->annotations.n; i++)
                judge_key(d, path, u->annotations.pairs[i].key,
                          label_syntax_is_annotation_key(u->annotations.pairs[i].key));
}

/* Copies podLabels, except for the label that makes pods wait, and judges them and podAnnotations.
 * Returns 0 or -ENOMEM. */
static int judge_labels(PolicyDraft *d, size_t at, PolicyUnit *u) {
        const StringMap *map = &d->units[at].labels;

        u->labels.pairs = arena_new(d->arena, StringPair, map->n + 1);
        if (!u->labels.pairs)
                return -ENOMEM;
        for (size_t i = 0; i < map->n; i++)
                if (str_eq(map->pairs[i].key, STR(POLICY_LABEL_WAITS)))
                        u->waits = str_eq(map->pairs[i].value, STR("true"));
                else
                        u->labels.pairs[u->labels.n++] = map->pairs[i];
        judge_keys(d, at, "podLabels", &u->labels);
        judge_keys(d, at, "podAnnotations", &u->annotations);
        judge_written_syntax(d, at, u);
        return 0;
}

static int judge_resource(PolicyDraft *d, size_t at, PolicyUnit *u) {
        static const char *const names[] = {"", "ecs", "elastic", "eci", "acs"};
        static const StringPair virtual_node = {.key = STR("type"), .value = STR("virtual-kubelet")};
        size_t i = find_choice(u->resource, names, ELEMENTSOF(names));
        bool is_virtual = i >= 3;

        if (i == 0)
                u->resource = STR("ecs");
        if (i == ELEMENTSOF(names))
                policy_spec_complain(&d->spec.wrong,
                                     "spec.units[%zu].resource is \"%.*s\", must be ecs, eci, elastic or acs",
                                     at, STR_CUT(u->resource, POLICY_SHOWN));
        if (u->selects.n > 0)
                return 0;
        u->any_node = !is_virtual;
        if (!is_virtual)
                return 0;
        u->selects.pairs = arena_new(d->arena, StringPair, 1);
        if (!u->selects.pairs)
                return -ENOMEM;
        u->selects.pairs[u->selects.n++] = virtual_node;
        return 0;
}

/* Complains about a map that is too large, and empties it: units are searched by it even while the
 * policy is not in force. */
static void judge_size(PolicyDraft *d, const char *path, const char *field, StringMap *map) {
        if (map->n <= POLICY_PAIRS_MAX)
                return;
        policy_spec_complain(&d->spec.wrong, "%s.%s has %zu keys, must have at most %d", path, field, map->n,
                             POLICY_PAIRS_MAX);
        map->n = 0;
}

static void judge_sizes(PolicyDraft *d, size_t at) {
        PolicyUnitDraft *u = &d->units[at];
        char path[40];

        (void) snprintf(path, sizeof path, "spec.units[%zu]", at);
        judge_size(d, path, "nodeSelector", &u->selects);
        judge_size(d, path, "maxResources", &u->amounts);
        judge_size(d, path, "podLabels", &u->labels);
        judge_size(d, path, "podAnnotations", &u->annotations);
}

static int judge_unit(PolicyDraft *d, size_t at) {
        const PolicyUnitDraft *draft = &d->units[at];
        PolicyUnit *u = &d->spec.units[at];
        int r;

        judge_sizes(d, at);
        *u = (PolicyUnit){.resource = draft->resource,
                          .selects = draft->selects,
                          .has_max = draft->has_max,
                          .annotations = draft->annotations};
        if (draft->has_max && (draft->max < 0 || draft->max > INT32_MAX))
                policy_spec_complain(&d->spec.wrong, "spec.units[%zu].max is %lld, must be from 0 to %d", at,
                                     (long long) draft->max, INT32_MAX);
        else
                u->max = (uint32_t) draft->max;
        r = judge_amounts(d, at, u);
        if (r == 0)
                r = judge_labels(d, at, u);
        return r == 0 ? judge_resource(d, at, u) : r;
}

/* ---- all units together ---- */

/* Notes units that never get a node, because an earlier unit selects all of theirs. */
static void judge_shadows(PolicyDraft *d) {
        PolicySpec *s = &d->spec;

        for (size_t k = 1; k < s->n_units; k++)
                for (size_t i = 0; i < k; i++)
                        if (!s->units[i].any_node &&
                            string_map_has_all(&s->units[k].selects, &s->units[i].selects)) {
                                policy_spec_complain(
                                        &s->ignored,
                                        "spec.units[%zu] never gets a node: units[%zu] selects all of its "
                                        "nodes, and comes before it",
                                        k, i);
                                break;
                        }
}

static bool counts_up(const PolicySpec *s) {
        for (size_t i = 0; i < s->n_units; i++)
                if (s->units[i].has_max || s->units[i].n_max_amounts > 0)
                        return true;
        return false;
}

static void judge_counting(PolicyDraft *d) {
        PolicySpec *s = &d->spec;

        if (counts_up(s))
                return;
        if (s->n_group_keys > 0)
                policy_spec_complain(&s->ignored,
                                     "spec.matchLabelKeys has an effect with max or maxResources alone");
        if (s->ignores_previous)
                policy_spec_complain(&s->ignored,
                                     "spec.ignorePreviousPod has an effect with max or maxResources alone");
}

int policy_spec_judge(PolicyDraft *d) {
        PolicySpec *s = &d->spec;

        judge_strategy(d);
        judge_preempt(d);
        judge_next(d);
        judge_size(d, "spec", "selector", &s->selector);
        judge_label_syntax(d, "spec.selector", &s->selector);
        judge_group_keys(d);
        if (s->n_units == 0)
                policy_spec_complain(&s->wrong, "spec.units is empty, must have from 1 to %d units",
                                     POLICY_UNITS_MAX);
        s->units = arena_new(d->arena, PolicyUnit, s->n_units + 1);
        if (!s->units)
                return -ENOMEM;
        for (size_t i = 0; i < s->n_units; i++) {
                int r = judge_unit(d, i);

                if (r < 0)
                        return r;
        }
        judge_shadows(d);
        judge_counting(d);
        s->created = timestamp_read(s->meta.creation_timestamp);
        s->identity = str_hash64(d->spec_text, str_hash64(s->meta.uid, 0));
        return 0;
}
