/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Checks every minute whether the cluster serves ResourcePolicies. Without their CRD a watch of
 * them would only fail. */

#include "kube/client.h"

#define POLICY_GROUP_PATH "/apis/scheduling.alibabacloud.com/v1alpha1"
#define POLICY_RESOURCE   "resourcepolicies"

typedef struct PolicyProbe PolicyProbe;

/* on_known: called after the first answer, and whenever it changes. Returns 0 or -ENOMEM. */
int policy_probe_new(KubeClient *client, void (*on_known)(void *userdata, bool served), void *userdata,
                     PolicyProbe **ret);
PolicyProbe *policy_probe_free(PolicyProbe *p); /* before its client */

DEFINE_CLEANUP(PolicyProbe *, policy_probe_free)
