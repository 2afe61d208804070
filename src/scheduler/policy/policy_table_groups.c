/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policy/policy_table-internal.h"

#include <errno.h>
#include <stdlib.h>

/* ---- groups ---- */

void policy_table_group_free(Policy *p, PolicyGroup *g) {
        HASH_DELETE(hh, p->groups, g);
        free(g->pods);
        free(g->used);
        free(g);
}

static PolicyGroup *group_find(const Policy *p, Str key) {
        PolicyGroup *g;

        HASH_FIND(hh, p->groups, key.data, key.len, g);
        return g;
}

PolicyGroup *policy_table_group_ensure(Policy *p, Str key) {
        PolicyGroup *g = group_find(p, key);

        if (g)
                return g;
        g = calloc(1, sizeof *g + key.len);
        if (!g)
                return NULL;
        g->pods = calloc(p->spec.n_units, sizeof *g->pods);
        g->used = calloc(p->spec.n_units * p->n_resources + 1, sizeof *g->used);
        if (key.len > 0)
                memcpy(g->key, key.data, key.len);
        g->key_len = key.len;
        if (g->pods && g->used)
                HASH_ADD_KEYPTR(hh, p->groups, g->key, g->key_len, g);
        if (g->pods && g->used && hash_added(g, hh))
                return g;
        free(g->pods);
        free(g->used);
        free(g);
        return NULL;
}

bool policy_table_group_key(const Policy *p, const StringMap *labels, Buf *out, Str *ret_lacking) {
        buf_append_char(out, ':');
        for (size_t i = 0; i < p->spec.n_group_keys; i++) {
                const StringPair *pair = string_map_find(labels, p->spec.group_keys[i]);

                if (!pair) {
                        *ret_lacking = p->spec.group_keys[i];
                        return false;
                }
                buf_append_u64(out, pair->value.len);
                buf_append_char(out, ':');
                buf_append_str(out, pair->value);
        }
        return true;
}

bool policy_table_group_of(const Policy *p, const StringMap *labels, Arena *arena, PolicyGroup **ret_group,
                           Str *ret_lacking) {
        _cleanup_buf_ Buf key = BUF_NULL;

        *ret_group = NULL;
        if (!policy_table_group_key(p, labels, &key, ret_lacking))
                return false;
        if (buf_result(&key) == 0)
                *ret_group = group_find(p, buf_str(&key));
        return true;
}

/* ---- counting ---- */

bool policy_table_does_count(const PolicyPod *pod) {
        const PolicySpec *s = &pod->policy->spec;

        if (!pod->obeys || !pod->group || pod->unit >= s->n_units || pod->state == POLICY_POD_PENDING)
                return false;
        if (pod->terminating && s->ignores_terminating)
                return false;
        if (pod->state != POLICY_POD_BOUND)
                return true;
        if (pod->previous && s->ignores_previous)
                return false;
        return pod->mark.placed || (pod->carries >> pod->unit & 1) != 0;
}

static void add_amounts(PolicyPod *pod, int64_t sign) {
        const Policy *p = pod->policy;
        PolicySum *used = pod->group->used + pod->unit * p->n_resources;

        for (size_t i = 0; i < p->n_resources; i++)
                used[i] += (PolicySum) sign * pod->amounts[i];
}

void policy_table_charge(PolicyPod *pod) {
        Policy *p = pod->policy;

        if (!pod->obeys || pod->unit >= p->spec.n_units)
                return;
        pod->summed = pod->state == POLICY_POD_BOUND || pod->state == POLICY_POD_BINDING;
        if (pod->summed) {
                p->placed[pod->unit]++;
                p->terminating[pod->unit] += pod->terminating;
        }
        pod->counted = policy_table_does_count(pod);
        if (!pod->counted)
                return;
        pod->group->pods[pod->unit]++;
        add_amounts(pod, 1);
}

void policy_table_discharge(PolicyPod *pod) {
        Policy *p = pod->policy;

        if (pod->summed) {
                p->placed[pod->unit]--;
                p->terminating[pod->unit] -= pod->terminating;
        }
        if (pod->counted) {
                pod->group->pods[pod->unit]--;
                add_amounts(pod, -1);
        }
        pod->summed = pod->counted = false;
}

static bool is_over(const PolicyUnit *unit, const Policy *p, const PolicySum *used, const int64_t *amounts) {
        for (size_t i = 0; i < unit->n_max_amounts; i++)
                for (size_t k = 0; k < p->n_resources; k++)
                        if (str_eq(unit->max_amounts[i].name, p->resources[k]) &&
                            (used ? used[k] : 0) + amounts[k] > unit->max_amounts[i].milli)
                                return true;
        return false;
}

void policy_table_count(const Policy *p, const PolicyGroup *group, const int64_t *amounts,
                        PolicyUnitState *ret) {
        for (size_t k = 0; k < p->spec.n_units; k++)
                ret[k] = (PolicyUnitState){
                        .pods = group ? group->pods[k] : 0,
                        .over_amount = is_over(&p->spec.units[k], p,
                                               group ? group->used + k * p->n_resources : NULL, amounts),
                        .terminating = p->terminating[k] > 0,
                };
}

/* ---- nodes ---- */

size_t policy_table_unit_of(const Policy *p, const DirectoryNode *node) {
        return node ? node_labels_unit(&p->spec, node->labels) : p->spec.n_units;
}

int policy_table_node(PolicyTable *t, DirectoryNode *node, Str object, Arena *arena) {
        NodeLabels *labels;
        PolicyMember m = {0};
        int r;

        if (!t->policies) {
                policy_table_node_gone(t, node);
                return 0;
        }
        r = policy_member_decode(object, arena, &m, NULL);
        if (r < 0)
                return r;
        labels = node_labels_new(&t->keys, &m.labels);
        if (!labels)
                return -ENOMEM;
        t->stale |= !node_labels_are_equal(node->labels, labels);
        free(node->labels);
        node->labels = labels;
        return 0;
}

void policy_table_node_gone(PolicyTable *t, DirectoryNode *node) {
        t->stale |= t->policies != NULL;
        free(node->labels);
        node->labels = NULL;
}

/* Counts the pods and the nodes of all units anew. */
static void recount_all(PolicyTable *t) {
        for (Policy *p = t->policies; p; p = p->hh.next) {
                memset(p->nodes, 0, (p->spec.n_units + 1) * sizeof *p->nodes);
                for (size_t i = 0; i < directory_size(t->directory); i++)
                        p->nodes[policy_table_unit_of(p, directory_at(t->directory, i))]++;
                p->version++;
        }
        for (PolicyPod *pod = t->pods; pod; pod = pod->hh.next) {
                if (pod->state != POLICY_POD_BOUND && pod->state != POLICY_POD_BINDING)
                        continue;
                policy_table_discharge(pod);
                pod->unit =
                        policy_table_unit_of(pod->policy, directory_find(t->directory, str_from(pod->node)));
                policy_table_charge(pod);
        }
        t->stale = false;
}

void policy_table_settle(PolicyTable *t, usec_t now) {
        while (t->notes && t->notes->until <= now) {
                policy_table_place(t, t->notes, POLICY_POD_PENDING, t->notes->policy->spec.n_units, now);
                t->notes_expired++;
        }
        if (t->stale)
                recount_all(t);
}

void policy_table_nodes_listed(PolicyTable *t, uint32_t generation) {
        t->nodes_listed = generation;
        t->stale |= t->policies != NULL;
}
