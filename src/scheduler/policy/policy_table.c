/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policy/policy_table-internal.h"

#include <errno.h>
#include <stdlib.h>

#include "scheduler/webhook/verdict.h"

typedef struct PolicyNamespace {
        UT_hash_handle hh;
        Policy *first;
        size_t name_len;
        char name[];
} PolicyNamespace;

enum { POLICY_RESOURCES_MAX = 64 };

int policy_table_new(Directory *directory, PolicyTable **ret) {
        PolicyTable *t = calloc(1, sizeof *t);

        if (!t)
                return -ENOMEM;
        t->directory = directory;
        policy_table_know_scheduler(t, STR(VERDICT_SCHEDULER));
        *ret = t;
        return 0;
}

/* ---- policies ---- */

static void unlink_policy(PolicyTable *t, Policy *p) {
        Str name = p->spec.meta.namespace_;
        PolicyNamespace *n;

        t->report_next = t->report_next == p ? p->hh.next : t->report_next;
        HASH_DELETE(hh, t->policies, p);
        node_labels_unwant(&t->keys, &p->spec);
        HASH_FIND(hh, t->namespaces, name.data, name.len, n);
        if (!n)
                return;
        for (Policy **at = &n->first; *at; at = &(*at)->next)
                if (*at == p) {
                        *at = p->next;
                        break;
                }
        if (n->first)
                return;
        HASH_DELETE(hh, t->namespaces, n);
        free(n);
}

static void policy_free(Policy *p) {
        PolicyGroup *g, *next;

        HASH_ITER(hh, p->groups, g, next)
        policy_table_group_free(p, g);
        free(p->terminating);
        free(p->placed);
        free(p->nodes);
        free(p->report);
        arena_done(&p->arena);
        free(p);
}

/* Remembers a waiting pod when its policy goes. Out of memory: kube-scheduler retries it by itself
 * after at most five minutes (podMaxInUnschedulablePodsDuration). */
static void orphan_add(PolicyTable *t, const PolicyPod *pod) {
        PolicyOrphan *o = malloc(sizeof *o + pod->namespace_.len + pod->name.len);
        char *at;

        if (!o)
                return;
        at = (char *) (o + 1);
        o->namespace_ = str_put(&at, pod->namespace_);
        o->name = str_put(&at, pod->name);
        o->next = t->orphans;
        t->orphans = o;
}

/* Drops the policy with its pods; the list that follows finds them again. A bind that is under way
 * goes on, and its pod counts by its object. */
static void drop_policy(PolicyTable *t, Policy *p) {
        PolicyPod *pod, *next;

        HASH_ITER(hh, t->pods, pod, next) {
                if (pod->policy != p)
                        continue;
                if (pod->waits)
                        orphan_add(t, pod);
                if (pod->state == POLICY_POD_BINDING)
                        policy_table_open_add(t, pod);
                policy_table_pod_drop(t, pod);
        }
        unlink_policy(t, p);
        policy_free(p);
}

static bool comes_before(const Policy *a, const Policy *b) {
        if (a->spec.created != b->spec.created)
                return a->spec.created < b->spec.created;
        return str_compare(a->spec.meta.name, b->spec.meta.name) < 0;
}

static int link_into_namespace(PolicyTable *t, Policy *p) {
        Str name = p->spec.meta.namespace_;
        PolicyNamespace *n;
        Policy **at;

        HASH_FIND(hh, t->namespaces, name.data, name.len, n);
        if (!n) {
                n = calloc(1, sizeof *n + name.len + 1);
                if (!n)
                        return -ENOMEM;
                if (name.len > 0)
                        memcpy(n->name, name.data, name.len);
                n->name_len = name.len;
                HASH_ADD_KEYPTR(hh, t->namespaces, n->name, n->name_len, n);
                if (!hash_added(n, hh)) {
                        free(n);
                        return -ENOMEM;
                }
        }
        at = &n->first;
        while (*at && comes_before(*at, p))
                at = &(*at)->next;
        p->next = *at;
        *at = p;
        HASH_ADD_KEYPTR(hh, t->policies, p->key.data, p->key.len, p);
        if (hash_added(p, hh))
                return 0;
        *at = p->next;
        if (!n->first) {
                HASH_DELETE(hh, t->namespaces, n);
                free(n);
        }
        return -ENOMEM;
}

static int link_policy(PolicyTable *t, Policy *p) {
        int r = node_labels_want(&t->keys, &p->spec);

        if (r < 0)
                return r;
        r = link_into_namespace(t, p);
        if (r < 0)
                node_labels_unwant(&t->keys, &p->spec);
        return r;
}

static Str key_of(const ObjectMeta *meta, Arena *arena) {
        size_t n = meta->namespace_.len;
        char *key = arena_alloc(arena, n + 1 + meta->name.len, 1);

        if (!key)
                return (Str){NULL, 0};
        if (n > 0)
                memcpy(key, meta->namespace_.data, n);
        key[n] = '/';
        memcpy(key + n + 1, meta->name.data, meta->name.len);
        return (Str){key, n + 1 + meta->name.len};
}

/* Collects the resources that the units limit, each once. Returns 0 or -ENOMEM. */
static int name_resources(Policy *p) {
        p->resources = arena_new(&p->arena, Str, POLICY_RESOURCES_MAX);
        if (!p->resources)
                return -ENOMEM;
        for (size_t k = 0; k < p->spec.n_units; k++)
                for (size_t i = 0; i < p->spec.units[k].n_max_amounts; i++) {
                        Str name = p->spec.units[k].max_amounts[i].name;
                        size_t at = 0;

                        while (at < p->n_resources && !str_eq(p->resources[at], name))
                                at++;
                        if (at == p->n_resources && at < POLICY_RESOURCES_MAX)
                                p->resources[p->n_resources++] = name;
                }
        return 0;
}

static int policy_make(Str object, Policy **ret, Fault *fault) {
        Policy *p = calloc(1, sizeof *p);
        Str copy;
        int r = -ENOMEM;

        if (!p)
                return -ENOMEM;
        copy = arena_str(&p->arena, object);
        if (copy.data)
                r = policy_spec_decode(copy, &p->arena, &p->spec, fault);
        if (r == 0)
                r = name_resources(p);
        if (r == 0) {
                p->key = key_of(&p->spec.meta, &p->arena);
                p->terminating = calloc(p->spec.n_units + 1, sizeof *p->terminating);
                p->placed = calloc(p->spec.n_units + 1, sizeof *p->placed);
                p->nodes = calloc(p->spec.n_units + 1, sizeof *p->nodes);
                r = p->key.data && p->terminating && p->placed && p->nodes ? 0 : -ENOMEM;
        }
        if (r != 0) {
                policy_free(p);
                return r;
        }
        *ret = p;
        return 0;
}

static Policy *find_policy(const PolicyTable *t, Str key) {
        Policy *p;

        HASH_FIND(hh, t->policies, key.data, key.len, p);
        return p;
}

int policy_table_set(PolicyTable *t, Str object, bool deleted, const PolicyGenerations *at, bool *ret_list,
                     Fault *fault) {
        Policy *p = NULL, *old;
        int r;

        r = policy_make(object, &p, fault);
        if (r != 0)
                return r;
        old = find_policy(t, p->key);
        if (old && !deleted && old->spec.identity == p->spec.identity) {
                old->generation = at->policies; /* only its status has changed */
                policy_free(p);
                return 0;
        }
        *ret_list = true;
        if (old)
                drop_policy(t, old);
        if (deleted) {
                policy_free(p);
                return 0;
        }
        p->generation = at->policies;
        p->listed_pods = at->pods;
        p->listed_nodes = at->nodes;
        r = link_policy(t, p);
        if (r < 0)
                policy_free(p);
        t->stale = true;
        return r;
}

size_t policy_table_sweep(PolicyTable *t, uint32_t generation, bool *ret_list) {
        Policy *p, *next;
        size_t dropped = 0;

        HASH_ITER(hh, t->policies, p, next) {
                if (p->generation == generation)
                        continue;
                drop_policy(t, p);
                dropped++;
        }
        *ret_list |= dropped > 0;
        return dropped;
}

bool policy_table_has(const PolicyTable *t, Str namespace_) {
        PolicyNamespace *n = NULL;

        HASH_FIND(hh, t->namespaces, namespace_.data, namespace_.len, n);
        return n != NULL;
}

Policy *policy_table_of(const PolicyTable *t, Str namespace_, const StringMap *labels, Policy **ret_other) {
        PolicyNamespace *n = NULL;
        Policy *found = NULL;

        *ret_other = NULL;
        HASH_FIND(hh, t->namespaces, namespace_.data, namespace_.len, n);
        for (Policy *p = n ? n->first : NULL; p; p = p->next) {
                if (p->spec.wrong.text[0] != '\0' || !string_map_has_all(labels, &p->spec.selector))
                        continue;
                if (found) {
                        *ret_other = p;
                        break;
                }
                found = p;
        }
        return found;
}

/* Lists must have been begun after the policy came: an earlier one may have passed over its
 * pods. */
bool policy_table_is_ready(const PolicyTable *t, const Policy *p) {
        return t->pods_listed > p->listed_pods && t->nodes_listed > p->listed_nodes;
}

const Policy *policy_table_unready(const PolicyTable *t, Str namespace_) {
        PolicyNamespace *n = NULL;

        HASH_FIND(hh, t->namespaces, namespace_.data, namespace_.len, n);
        for (const Policy *p = n ? n->first : NULL; p; p = p->next)
                if (p->spec.wrong.text[0] == '\0' && !policy_table_is_ready(t, p))
                        return p;
        return NULL;
}

bool policy_table_all_ready(const PolicyTable *t) {
        for (const Policy *p = t->policies; p; p = p->hh.next)
                if (!policy_table_is_ready(t, p))
                        return false;
        return true;
}

bool policy_table_wake_ready(PolicyTable *t) {
        bool all = true;

        for (Policy *p = t->policies; p; p = p->hh.next) {
                bool ready = policy_table_is_ready(t, p);

                all &= ready;
                if (!ready || p->was_ready)
                        continue;
                p->was_ready = true;
                p->version++;
                for (PolicyPod *pod = t->pods; pod; pod = pod->hh.next)
                        if (pod->policy == p && pod->obeys && pod->state == POLICY_POD_PENDING)
                                pod->wake = 1;
        }
        return all;
}

PolicyTable *policy_table_free(PolicyTable *t) {
        Policy *p, *next;

        if (!t)
                return NULL;
        for (size_t i = 0; i < directory_size(t->directory); i++)
                policy_table_node_gone(t, directory_at(t->directory, i));
        HASH_ITER(hh, t->policies, p, next)
        drop_policy(t, p);
        while (t->opens)
                policy_table_close(t, t->opens->uid);
        while (t->orphans) {
                PolicyOrphan *o = t->orphans;

                t->orphans = o->next;
                free(o);
        }
        free(t);
        return NULL;
}
