/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reads the nodes and pods of a report, from a file or through kubectl, and prints what went wrong
 * on standard error. */

#include "cli/inspect/inspect.h"
#include "cli/inspect/kubectl.h"

typedef struct Cluster {
        const char *from; /* a file, "-" for standard input; NULL: kubectl */
        Str node;         /* ask for this node only; empty: all */
        Str namespace_;   /* ask for pods of this namespace only; empty: all */
        bool cached;      /* the API server may answer from its cache: cheap, and a moment old */
        bool used;        /* also ask the node agents what processes hold */
        bool quiet;       /* objects that do not decode are counted and not named */
        const char *kubectl_flags[KUBECTL_MAX_FLAGS];
        size_t n_kubectl_flags;
} Cluster;

/* Returns 0; an exit status, when there is nothing to report; or a negated one for the end of the
 * program after an incomplete report. */
int cluster_read(const Cluster *c, Inspect *inspect);
