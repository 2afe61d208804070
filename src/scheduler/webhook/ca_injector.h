/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Sees to it that the API servers trust us: the caBundle of each webhook that points to our
 * Service, in the two webhook configurations called `aliquot`, is ours. The leader writes it, again
 * whenever somebody overwrites it, with the resourceVersion as a condition; everybody watches
 * whether it is in place. Nothing else in the configurations is touched.
 *
 * Where there is no bundle at all, and some seconds later there is still none, nobody leads: of an
 * installation whose Leases were left by an earlier one, for 15 s. Then anybody writes it, which
 * can be no step back: all have it from one Secret, and what is there already only the leader
 * replaces, because a follower may be behind. */

#include "base/fault.h"
#include "kube/client.h"

#define CA_INJECTOR_NAME "aliquot" /* of both configurations */

typedef struct CaInjector CaInjector;

typedef struct CaInjectorOptions {
        KubeClient *client; /* these outlive the injector */
        const char *service_namespace, *service_name;
        usec_t settled_after; /* how long the bundle must have stood before it counts as known; 0: 5 min */
        void (*on_news)(void *userdata, const char *what);
        void (*on_trouble)(void *userdata, const Fault *fault);
        void *userdata;
} CaInjectorOptions;

/* 0 or -ENOMEM; nothing is called before this returns. */
int ca_injector_new(const CaInjectorOptions *options, CaInjector **ret);
CaInjector *ca_injector_free(CaInjector *i); /* before its client */

void ca_injector_set_leading(CaInjector *i, bool leading);
int ca_injector_set_bundle(CaInjector *i, const char *pem); /* 0 or -ENOMEM */

/* Every configuration that exists has carried the present bundle for that long. API servers follow
 * the configurations by a watch, which is a matter of milliseconds. */
bool ca_injector_is_settled(const CaInjector *i);

DEFINE_CLEANUP(CaInjector *, ca_injector_free)
