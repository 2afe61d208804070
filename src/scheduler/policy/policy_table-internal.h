/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the parts of policy_table.c share: policy_table_groups.c counts pods by unit and group,
 * and knows the units of nodes; policy_table_pods.c keeps the pods and their notes. policy_table.c
 * has the policies. */

#include "scheduler/policy/policy_table.h"

/* ---- groups ---- */

/* The values of matchLabelKeys, each behind its length. Never empty. False when one is missing. */
bool policy_table_group_key(const Policy *p, const StringMap *labels, Buf *out, Str *ret_lacking);
PolicyGroup *policy_table_group_ensure(Policy *p, Str key); /* NULL: out of memory */
void policy_table_group_free(Policy *p, PolicyGroup *g);

/* Whether the pod counts against max and maxResources. One that is on its way does. */
bool policy_table_does_count(const PolicyPod *pod);

/* Adds the pod to its unit and group, as it is now; and takes out what was added. */
void policy_table_charge(PolicyPod *pod);
void policy_table_discharge(PolicyPod *pod);

/* ---- pods ---- */

void policy_table_pod_drop(PolicyTable *t, PolicyPod *pod);

/* Keeps where the Binding of the pod goes while its policy changes. Without memory the pod counts
 * from the end of its Binding on. */
void policy_table_open_add(PolicyTable *t, const PolicyPod *pod);
