/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/policy/policy_table-internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "wire/pod_profile.h"

/* ---- schedulers that ask ---- */

static bool is_known_scheduler(const PolicyTable *t, uint64_t hash) {
        for (size_t i = 0; i < t->n_schedulers; i++)
                if (t->schedulers[i] == hash)
                        return true;
        return false;
}

void policy_table_know_scheduler(PolicyTable *t, Str name) {
        uint64_t hash = str_hash64(name, 0);

        if (is_known_scheduler(t, hash) || t->n_schedulers == POLICY_SCHEDULERS_MAX)
                return;
        t->schedulers[t->n_schedulers++] = hash;
        for (PolicyPod *pod = t->pods; pod; pod = pod->hh.next) {
                if (pod->obeys || pod->scheduler != hash)
                        continue;
                policy_table_discharge(pod);
                pod->obeys = true;
                policy_table_charge(pod);
                pod->policy->version++;
        }
}

/* ---- notes ---- */

static void notes_drop(PolicyTable *t, PolicyPod *pod) {
        if (pod->before)
                pod->before->after = pod->after;
        else
                t->notes = pod->after;
        if (pod->after)
                pod->after->before = pod->before;
        else
                t->notes_end = pod->before;
        pod->before = pod->after = NULL;
        pod->policy->n_notes--;
}

static void notes_add(PolicyTable *t, PolicyPod *pod) {
        pod->before = t->notes_end;
        pod->after = NULL;
        if (pod->before)
                pod->before->after = pod;
        else
                t->notes = pod;
        t->notes_end = pod;
        pod->policy->n_notes++;
}

/* Takes the pod out of the counts and of the notes. Counts that are stale stay consistent, because
 * the pod leaves the unit that it was added to. */
static void leave_unit(PolicyTable *t, PolicyPod *pod) {
        policy_table_discharge(pod);
        if (pod->state == POLICY_POD_NOTED)
                notes_drop(t, pod);
}

void policy_table_place(PolicyTable *t, PolicyPod *pod, PolicyPodState state, size_t unit, usec_t now) {
        leave_unit(t, pod);
        pod->state = state;
        pod->unit = unit;
        pod->until = now + POLICY_NOTE_LASTS;
        if (state == POLICY_POD_NOTED)
                notes_add(t, pod);
        policy_table_charge(pod);
        pod->policy->version++;
}

void policy_table_drop_note(PolicyTable *t, Str uid) {
        PolicyPod *pod = policy_table_find(t, uid);

        if (pod && pod->state == POLICY_POD_NOTED)
                policy_table_place(t, pod, POLICY_POD_PENDING, pod->policy->spec.n_units, 0);
}

/* ---- pods ---- */

PolicyPod *policy_table_find(const PolicyTable *t, Str uid) {
        PolicyPod *pod;

        HASH_FIND(hh, t->pods, uid.data, uid.len, pod);
        return pod;
}

void policy_table_pod_drop(PolicyTable *t, PolicyPod *pod) {
        leave_unit(t, pod);
        pod->policy->version++;
        t->kick_next = t->kick_next == pod ? pod->hh.next : t->kick_next;
        t->patch_next = t->patch_next == pod ? pod->hh.next : t->patch_next;
        assert(t->pods); /* tells the analyzer that the table is not empty */
        HASH_DELETE(hh, t->pods, pod);
        if (pod->group && --pod->group->n_members == 0)
                policy_table_group_free(pod->policy, pod->group);
        free(pod->node);
        free(pod);
}

static PolicyOpen *open_find(const PolicyTable *t, Str uid) {
        PolicyOpen *o;

        HASH_FIND(hh, t->opens, uid.data, uid.len, o);
        return o;
}

void policy_table_close(PolicyTable *t, Str uid) {
        PolicyOpen *o = open_find(t, uid);

        if (!o)
                return;
        HASH_DELETE(hh, t->opens, o);
        free(o);
}

void policy_table_pod_gone(PolicyTable *t, Str uid) {
        PolicyPod *pod = policy_table_find(t, uid);
        const PolicyOpen *o = open_find(t, uid);

        if (pod)
                policy_table_pod_drop(t, pod);
        if (o && o->bound)
                policy_table_close(t, uid);
}

void policy_table_keep_open(PolicyTable *t, Str uid, uint32_t generation) {
        PolicyOpen *o = open_find(t, uid);

        if (!o)
                return;
        o->bound = true;
        o->generation = generation;
}

void policy_table_open_add(PolicyTable *t, const PolicyPod *pod) {
        size_t node = strlen(pod->node) + 1;
        PolicyOpen *o = calloc(1, sizeof *o + pod->uid.len + node);
        char *at;

        if (!o)
                return;
        at = (char *) (o + 1);
        o->uid = str_put(&at, pod->uid);
        memcpy(at, pod->node, node);
        o->node = at;
        HASH_ADD_KEYPTR(hh, t->opens, o->uid.data, o->uid.len, o);
        if (!hash_added(o, hh))
                free(o);
}

/* Restores the state of a pod if its Binding began under another policy. A list that began after
 * the Binding succeeded says itself where the pod is. Returns 0 or -ENOMEM. */
static int pod_reopen(PolicyTable *t, PolicyPod *pod, uint32_t generation) {
        const PolicyOpen *o = open_find(t, pod->uid);
        PolicyPodState state;

        if (!o)
                return 0;
        if (o->bound && o->generation != generation) {
                policy_table_close(t, pod->uid);
                return 0;
        }
        free(pod->node);
        pod->node = strdup(o->node);
        if (!pod->node)
                return -ENOMEM;
        state = o->bound ? POLICY_POD_BOUND : POLICY_POD_BINDING;
        pod->mark.placed |= o->bound; /* the Binding wrote the mark */
        policy_table_close(t, pod->uid);
        policy_table_place(
                t, pod, state,
                policy_table_unit_of(pod->policy, directory_find(t->directory, str_from(pod->node))), 0);
        return 0;
}

static PolicyPod *pod_new(PolicyTable *t, Policy *p, const ObjectMeta *meta) {
        size_t amounts = p->n_resources * sizeof(int64_t);
        PolicyPod *pod =
                calloc(1, sizeof *pod + amounts + meta->uid.len + meta->namespace_.len + meta->name.len + 1);
        char *at;

        if (!pod)
                return NULL;
        at = (char *) (pod + 1) + amounts;
        pod->uid = str_put(&at, meta->uid);
        pod->namespace_ = str_put(&at, meta->namespace_);
        pod->name = str_put(&at, meta->name);
        pod->policy = p;
        pod->unit = p->spec.n_units;
        HASH_ADD_KEYPTR(hh, t->pods, pod->uid.data, pod->uid.len, pod);
        if (!hash_added(pod, hh)) {
                free(pod);
                return NULL;
        }
        return pod;
}

int policy_table_amounts_of(const Policy *p, Str object, Arena *arena, int64_t *ret) {
        PodProfile profile;
        int r;

        memset(ret, 0, p->n_resources * sizeof *ret);
        if (p->n_resources == 0)
                return 0;
        r = pod_profile_decode(object, arena, &profile, NULL);
        if (r != 0)
                return r < 0 ? r : 0;
        for (size_t k = 0; k < p->n_resources; k++)
                for (size_t i = 0; i < profile.n_requests; i++)
                        if (str_eq(profile.requests[i].name, p->resources[k]))
                                ret[k] = profile.requests[i].milli;
        return 0;
}

static int pod_set_group(PolicyPod *pod, const StringMap *labels) {
        _cleanup_buf_ Buf key = BUF_NULL;
        PolicyGroup *old = pod->group;
        Str lacking;

        pod->group = NULL;
        if (policy_table_group_key(pod->policy, labels, &key, &lacking)) {
                if (buf_result(&key) == 0)
                        pod->group = policy_table_group_ensure(pod->policy, buf_str(&key));
                if (!pod->group) {
                        pod->group = old;
                        return -ENOMEM;
                }
                pod->group->n_members++;
        }
        if (old && --old->n_members == 0)
                policy_table_group_free(pod->policy, old);
        return 0;
}

static void pod_set_marks(PolicyPod *pod, const PolicyMember *m) {
        const PolicySpec *s = &pod->policy->spec;

        pod->carries = pod->labelled = 0;
        for (size_t k = 0; k < s->n_units; k++) {
                bool labelled = string_map_has_all(&m->labels, &s->units[k].labels);

                pod->labelled |= (uint64_t) labelled << k;
                if (labelled && string_map_has_all(&m->annotations, &s->units[k].annotations))
                        pod->carries |= UINT64_C(1) << k;
        }
        policy_mark_read(s, m, &pod->mark);
        pod->previous = m->scheduled && m->since < s->created;
}

/* Whether the object is older than what is known. nodeName never vanishes, so an object without it
 * shows the pod before it was bound. Only a list that began after the bind may contradict. */
static bool is_old(const PolicyPod *pod, Str node, bool listed, uint32_t generation) {
        return pod->state == POLICY_POD_BOUND && str_is_empty(node) &&
               !(listed && pod->generation != generation);
}

/* Puts the pod into the unit of this node, or into none if it is empty. Returns 0 or -ENOMEM. */
static int pod_set_place(PolicyTable *t, PolicyPod *pod, Str node) {
        char *copy;

        if (str_is_empty(node)) {
                if (pod->state == POLICY_POD_BOUND)
                        policy_table_place(t, pod, POLICY_POD_PENDING, pod->policy->spec.n_units, 0);
                return 0;
        }
        copy = str_dup(node);
        if (!copy)
                return -ENOMEM;
        free(pod->node);
        pod->node = copy;
        pod->waits = false;
        policy_table_place(t, pod, POLICY_POD_BOUND,
                           policy_table_unit_of(pod->policy, directory_find(t->directory, node)), 0);
        return 0;
}

uint64_t policy_table_waited(PolicyPod *pod, const PolicyMember *m) {
        uint64_t now = clock_realtime_nsec() / UINT64_C(1000000000), since;

        if (m->failed && (pod->gated || (m->since == 0 && pod->since == 0)))
                pod->since = now;
        pod->gated = m->gated;
        since = m->since > pod->since ? m->since : pod->since;
        return m->failed && now > since ? now - since : 0;
}

/* Wakes a pod if an attempt failed before the watch showed it: filter could not remember it, so
 * nothing else would wake it. */
static void wake_unasked(PolicyPod *pod, const PolicyMember *m) {
        if (!pod->obeys || pod->state != POLICY_POD_PENDING || pod->asked || !m->failed)
                return;
        pod->asked = true;
        if (pod->wake == 0)
                pod->wake = 1;
}

static int pod_set(PolicyTable *t, Policy *p, const Pod *pod, Str object, bool listed, uint32_t generation,
                   const PolicyMember *m, Arena *arena) {
        PolicyPod *known = policy_table_find(t, pod->meta.uid);
        int r;

        if (known && known->policy != p) {
                policy_table_pod_drop(t, known);
                known = NULL;
        }
        if (known && is_old(known, pod->node_name, listed, generation)) {
                known->generation = generation;
                return 0;
        }
        if (!known) {
                known = pod_new(t, p, &pod->meta);
                if (!known)
                        return -ENOMEM;
                known->generation = generation;
        }
        policy_table_discharge(known);
        r = policy_table_amounts_of(p, object, arena, known->amounts);
        if (r == 0)
                r = pod_set_group(known, &m->labels);
        pod_set_marks(known, m);
        known->scheduler = str_hash64(pod->scheduler_name, 0);
        known->obeys |= is_known_scheduler(t, known->scheduler);
        known->terminating = pod->meta.terminating;
        policy_table_charge(known);
        if (r == 0)
                r = pod_reopen(t, known, generation);
        if (r == 0 && !is_old(known, pod->node_name, listed, generation))
                r = pod_set_place(t, known, pod->node_name);
        (void) policy_table_waited(known, m);
        wake_unasked(known, m);
        known->generation = generation;
        return r;
}

/* Reports pods that wait; pods that are bound stay where they are. */
static void tell_overlap(PolicyTable *t, PolicyPod *pod, const Policy *other) {
        if (pod->overlap_told || !t->on_overlap || pod->state == POLICY_POD_BOUND)
                return;
        pod->overlap_told = true;
        t->on_overlap(t->userdata, pod, other);
}

int policy_table_pod(PolicyTable *t, const Pod *pod, Str object, bool listed, uint32_t generation,
                     Arena *arena) {
        Policy *p = NULL, *other;
        PolicyMember m;
        int r;

        if (!policy_table_has(t, pod->meta.namespace_) || pod_is_terminal(pod)) {
                policy_table_pod_gone(t, pod->meta.uid);
                return 0;
        }
        r = policy_member_decode(object, arena, &m, NULL);
        if (r < 0)
                return r;
        if (r == 0)
                p = policy_table_of(t, pod->meta.namespace_, &m.labels, &other);
        if (!p) {
                policy_table_pod_gone(t, pod->meta.uid);
                return 0;
        }
        r = pod_set(t, p, pod, object, listed, generation, &m, arena);
        if (r == 0 && other)
                tell_overlap(t, policy_table_find(t, pod->meta.uid), other);
        return r;
}

void policy_table_pods_listed(PolicyTable *t, uint32_t generation, bool all) {
        PolicyPod *pod, *next;
        PolicyOpen *o, *more;

        t->pods_listed = generation;
        HASH_ITER(hh, t->pods, pod, next)
        if (all && pod->generation != generation && pod->state != POLICY_POD_BINDING)
                policy_table_pod_drop(t, pod);
        HASH_ITER(hh, t->opens, o, more)
        if (o->bound && o->generation != generation)
                policy_table_close(t, o->uid);
}
