/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Keeps the caBundle of each webhook that points to our Service, in the two webhook configurations
 * named `aliquot`, equal to ours, so that the API servers trust our certificate. The leader writes
 * it, and writes it again when another client overwrites it, on condition of the resourceVersion.
 * Every replica watches whether it is there. Nothing else in the configurations is touched.
 *
 * If a webhook has no bundle at all for some seconds, there may be no leader: an earlier
 * installation may have left its Leases, which expire after 15 s. Then every replica may write the
 * bundle; all have it from one Secret. A bundle that is there is replaced only by the leader,
 * because a follower may be behind. */

#include "base/fault.h"
#include "kube/client.h"

#define CA_INJECTOR_NAME "aliquot" /* the name of both configurations */

typedef struct CaInjector CaInjector;

typedef struct CaInjectorOptions {
        KubeClient *client; /* these outlive the injector */
        const char *service_namespace, *service_name;
} CaInjectorOptions;

/* Returns 0 or -ENOMEM; no callback is called before it returns. */
int ca_injector_new(const CaInjectorOptions *options, CaInjector **ret);
CaInjector *ca_injector_free(CaInjector *i); /* before its client */

/* Whether a webhook of ours has no bundle, so that no API server trusts our certificate. Also true
 * until both configurations were read; one that is absent or cannot be read counts as complete. */
bool ca_injector_lacks_bundle(const CaInjector *i);

void ca_injector_set_leading(CaInjector *i, bool leading);
int ca_injector_set_bundle(CaInjector *i, const char *pem); /* 0 or -ENOMEM */

DEFINE_CLEANUP(CaInjector *, ca_injector_free)
