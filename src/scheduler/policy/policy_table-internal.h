/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the parts of policy_table.c share: policy_table_groups.c counts pods by unit and group,
 * and knows the units of nodes; policy_table_pods.c keeps the pods and their notes. policy_table.c
 * has the policies. */

#include "scheduler/policy/policy_table.h"

/* ---- groups ---- */

/* Appends the group's key: the values of matchLabelKeys, each behind its length; never empty. False
 * when the pod lacks one of the labels; *ret_lacking is its key. */
bool policy_table_group_key(const Policy *p, const StringMap *labels, Buf *out, Str *ret_lacking);
PolicyGroup *policy_table_group_ensure(Policy *p, Str key); /* NULL: out of memory */
void policy_table_group_free(Policy *p, PolicyGroup *g);

/* Whether the pod counts against max and maxResources; from filter's answer on it may. */
bool policy_table_does_count(const PolicyPod *pod);

/* Add the pod to the sums of its unit and group, and subtract what was added. */
void policy_table_charge(PolicyPod *pod);
void policy_table_discharge(PolicyPod *pod);

/* ---- pods ---- */

void policy_table_pod_drop(PolicyTable *t, PolicyPod *pod);

/* A Binding that was under way when the pod's policy went or changed. It is forgotten when it has
 * failed, or when the table has the pod again. */
typedef struct PolicyOpen {
        UT_hash_handle hh; /* by uid */
        Str uid;
        char *node;          /* in the same allocation, behind uid */
        bool bound;          /* it has succeeded */
        uint32_t generation; /* when bound: of the last list of pods begun by then, which may lag */
} PolicyOpen;

/* Remembers the node of the pod's Binding while its policy changes. If memory is out, the pod
 * counts only after its Binding has ended. */
void policy_table_open_add(PolicyTable *t, const PolicyPod *pod);
