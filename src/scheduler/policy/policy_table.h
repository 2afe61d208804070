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

/* Takes over one ResourcePolicy, or drops it when deleted. *ret_list: set when pods and nodes must
 * be listed again. Returns 0, POLICY_E_MALFORMED with a fault, or -ENOMEM. */
typedef struct PolicyGenerations {
        uint32_t policies, pods, nodes; /* numbers of the lists that were begun last */
} PolicyGenerations;
int policy_table_set(PolicyTable *t, Str object, bool deleted, const PolicyGenerations *at, bool *ret_list,
                     Fault *fault);
size_t policy_table_sweep(PolicyTable *t, uint32_t generation, bool *ret_list);

/* Takes over one pod; `object` is its text. listed: it is an element of a list. Returns 0 or
 * -ENOMEM. */
int policy_table_pod(PolicyTable *t, const Pod *pod, Str object, bool listed, uint32_t generation,
                     Arena *arena);
void policy_table_pod_gone(PolicyTable *t, Str uid);
/* A list of pods has ended. all: every object in it was read, so pods that it did not have are
 * gone. */
void policy_table_pods_listed(PolicyTable *t, uint32_t generation, bool all);

/* Takes over one node: keeps the labels that units select by. Returns 0 or -ENOMEM. */
int policy_table_node(PolicyTable *t, DirectoryNode *node, Str object, Arena *arena);
void policy_table_node_gone(PolicyTable *t, DirectoryNode *node);
void policy_table_nodes_listed(PolicyTable *t, uint32_t generation);

/* ---- for filter and bind ---- */

/* Ends notes that have expired, and recounts if nodes have changed. To be called before the
 * functions below. */
void policy_table_settle(PolicyTable *t, usec_t now);

bool policy_table_has(const PolicyTable *t, Str namespace_); /* whether the namespace has a policy */

/* A scheduler asks about a pod of a policy: pods that name it obey policies from now on. */
void policy_table_know_scheduler(PolicyTable *t, Str name);

/* The policy in force that selects a pod with these labels; of several the oldest, then the first
 * by name. *ret_other: the second one, or NULL. */
Policy *policy_table_of(const PolicyTable *t, Str namespace_, const StringMap *labels, Policy **ret_other);
bool policy_table_is_ready(const PolicyTable *t, const Policy *p);

/* A policy of the namespace that is in force and not ready, or NULL. */
const Policy *policy_table_unready(const PolicyTable *t, Str namespace_);

bool policy_table_all_ready(const PolicyTable *t);

/* Makes the waiting pods of policies that have just become ready due to be woken (sets `wake`),
 * once. Returns whether all policies are ready. */
bool policy_table_wake_ready(PolicyTable *t);

PolicyPod *policy_table_find(const PolicyTable *t, Str uid);

/* The index of the node's unit; n_units: none. node may be NULL. */
size_t policy_table_unit_of(const Policy *p, const DirectoryNode *node);

/* *ret_group: the group of pods with these labels; NULL when it has no pods, or memory is out.
 * False when one of matchLabelKeys is missing: *ret_lacking. */
bool policy_table_group_of(const Policy *p, const StringMap *labels, Arena *arena, PolicyGroup **ret_group,
                           Str *ret_lacking);

/* Seconds since the first failed attempt to schedule the pod; 0: none has failed. m: the pod's
 * object now. The API server writes PodScheduled=False without a time into a new pod with a
 * scheduling gate, and kube-scheduler keeps the time when it changes the reason alone. So the table
 * remembers when that was. */
uint64_t policy_table_waited(PolicyPod *pod, const PolicyMember *m);

/* The Binding of the pod has ended: forgets its PolicyOpen, or keeps it for a pod that is bound and
 * not in the table now. generation: of the last list of pods that was begun. */
void policy_table_close(PolicyTable *t, Str uid);
void policy_table_keep_open(PolicyTable *t, Str uid, uint32_t generation);

/* Puts the pod into this unit (n_units: none) and state, and updates all counts. */
void policy_table_place(PolicyTable *t, PolicyPod *pod, PolicyPodState state, size_t unit, usec_t now);

/* The pod will not go where filter's answer sent it: it counts in no unit. Does nothing to a pod
 * that is bound or being bound. */
void policy_table_drop_note(PolicyTable *t, Str uid);

/* What a pod requests of each resource of the policy, in thousandths. ret has n_resources elements;
 * zeros if the object does not decode. Returns 0 or -ENOMEM. */
int policy_table_amounts_of(const Policy *p, Str object, Arena *arena, int64_t *ret);

/* Fills ret[k] for each unit k of the policy: pods of the group there, whether `amounts` (by
 * resource of the policy) more would exceed maxResources, whether one is terminating. group NULL:
 * no pods. has_nodes and has_room stay false. */
void policy_table_count(const Policy *p, const PolicyGroup *group, const int64_t *amounts,
                        PolicyUnitState *ret);

DEFINE_CLEANUP(PolicyTable *, policy_table_free)
