/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Gathers the facts: files first, then the driver, then kubelet and API server together. */

#include "base/clock.h"
#include "cli/doctor/facts.h"

typedef enum Scope {
        SCOPE_MACHINE = 1, /* driver, kernel, slices */
        SCOPE_NODE = 2,    /* kubelet, container runtime, node agent */
        SCOPE_CLUSTER = 4, /* what the API server reports */
} Scope;

typedef struct GatherOptions {
        unsigned scopes; /* bits of Scope; 0: those that are found here */
        const char *root;
        /* directory of a simulated driver; NULL: the driver is real */
        const char *simulate_dir;
        const char *kubeconfig, *context, *server; /* each may be NULL */
        usec_t timeout;                            /* time limit of each query */
} GatherOptions;

/* Sets *ret_scopes to those that were looked at. What cannot be read or asked becomes a fact that
 * says why. Returns 0 or negative errno. */
int gather_facts(const GatherOptions *options, unsigned *ret_scopes, Facts *ret);
