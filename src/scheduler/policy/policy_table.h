/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The ResourcePolicies of the cluster, the labels of nodes that their units select by, and the pods
 * that they select, counted by unit. It has no sockets: the view feeds it what the watch says, and
 * filter and bind tell it what they decided. Nothing of pods and nodes is kept while there is no
 * policy. Therefore, when a policy comes or changes, the owner lists pods and nodes again, and the
 * policy is not ready until then.
 *
 * A pod counts in a unit
 *   - from filter's answer on, for POLICY_NOTE_LASTS: it is on its way (NOTED);
 *   - while its Binding is under way (BINDING);
 *   - by its own object (BOUND). Pods of a unit with podLabels or podAnnotations count when they
 *     carry these, or the annotation that the Binding wrote.
 * Pods whose scheduler does not ask us do not obey: they neither count nor are they patched. The
 * annotation alone says nothing, because a user may have written it where no webhook saw it. */

#include "scheduler/policy/policy_pod.h"
#include "wire/pod.h"

int policy_table_new(Directory *directory, PolicyTable **ret); /* 0 or -ENOMEM */
PolicyTable *policy_table_free(PolicyTable *t);

/* ---- from the watch ---- */

/* One ResourcePolicy. *ret_list: set when pods and nodes must be listed again. 0,
 * POLICY_E_MALFORMED with a fault, or -ENOMEM. */
typedef struct PolicyGenerations {
        uint32_t policies, pods, nodes; /* of the lists that were begun last */
} PolicyGenerations;
int policy_table_set(PolicyTable *t, Str object, bool deleted, const PolicyGenerations *at, bool *ret_list,
                     Fault *fault);
size_t policy_table_sweep(PolicyTable *t, uint32_t generation, bool *ret_list);

/* One pod, `object` is its text. listed: it is an element of a list. 0 or -ENOMEM. */
int policy_table_pod(PolicyTable *t, const Pod *pod, Str object, bool listed, uint32_t generation,
                     Arena *arena);
void policy_table_pod_gone(PolicyTable *t, Str uid);
/* all: every object of the list was read, so that pods that were not in it are gone. */
void policy_table_pods_listed(PolicyTable *t, uint32_t generation, bool all);

/* One node; keeps the labels that a unit selects by. 0 or -ENOMEM. */
int policy_table_node(PolicyTable *t, DirectoryNode *node, Str object, Arena *arena);
void policy_table_node_gone(PolicyTable *t, DirectoryNode *node);
void policy_table_nodes_listed(PolicyTable *t, uint32_t generation);

/* ---- for filter and bind ---- */

/* Ends the notes that are too old, and counts anew where nodes have changed. Before the others. */
void policy_table_settle(PolicyTable *t, usec_t now);

bool policy_table_has(const PolicyTable *t, Str namespace_); /* a policy */

/* A scheduler asks about a pod of a policy: its pods obey from now on. */
void policy_table_know_scheduler(PolicyTable *t, Str name);

/* The policy in force that applies to a pod with these labels: of several the oldest, then the
 * first by name. *ret_other: the next of them, or NULL. */
Policy *policy_table_of(const PolicyTable *t, Str namespace_, const StringMap *labels, Policy **ret_other);
bool policy_table_is_ready(const PolicyTable *t, const Policy *p);

/* A policy of the namespace that is in force and not ready, or NULL. */
const Policy *policy_table_unready(const PolicyTable *t, Str namespace_);

bool policy_table_all_ready(const PolicyTable *t);

/* Whether pods and nodes have been listed since each policy came. Then the pods that wait are to be
 * woken once: sets `wake` of those of policies that have become ready. */
bool policy_table_wake_ready(PolicyTable *t);

PolicyPod *policy_table_find(const PolicyTable *t, Str uid);

/* The unit of a node; n_units: none. node: may be NULL. */
size_t policy_table_unit_of(const Policy *p, const DirectoryNode *node);

/* *ret_group: of the values of these labels, NULL when no pod has them. False, with *ret_lacking,
 * when one of matchLabelKeys is missing. -ENOMEM counts as no pod. */
bool policy_table_group_of(const Policy *p, const StringMap *labels, Arena *arena, PolicyGroup **ret_group,
                           Str *ret_lacking);

/* Seconds since the first failed attempt of the pod; 0: none has failed. m: of the object of the
 * pod as it is now. The API server writes PodScheduled=False, without a time, into a new pod with a
 * scheduling gate. The time stays as it is when kube-scheduler changes the reason alone. The table
 * remembers when that was. */
uint64_t policy_table_waited(PolicyPod *pod, const PolicyMember *m);

/* The Binding of the pod has ended; it is not open any more. */
void policy_table_close(PolicyTable *t, Str uid);

/* Puts the pod into a unit (n_units: none) in that state. */
void policy_table_place(PolicyTable *t, PolicyPod *pod, PolicyPodState state, size_t unit, usec_t now);

/* The pod does not go where filter's answer had it, and counts in no unit. A pod that is being
 * bound, or is bound, is left as it is. */
void policy_table_drop_note(PolicyTable *t, Str uid);

/* What a pod requests of the resources of the policy, in thousandths. 0 or -ENOMEM; an object that
 * does not decode requests nothing. */
int policy_table_amounts_of(const Policy *p, Str object, Arena *arena, int64_t *ret);

/* What the units hold for a pod of this group that needs `amounts` (by resource of the policy). */
void policy_table_count(const Policy *p, const PolicyGroup *group, const int64_t *amounts,
                        PolicyUnitState *ret);

/* Compares the counts with a count from the beginning; for tests. */
bool policy_table_check(PolicyTable *t);

DEFINE_CLEANUP(PolicyTable *, policy_table_free)
