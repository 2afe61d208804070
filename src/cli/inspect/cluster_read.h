/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reads the nodes and pods of a report, from a file or through kubectl, and prints what went wrong
 * on standard error. */

#include "cli/inspect/inspect.h"
#include "cli/inspect/kubectl.h"

typedef struct Cluster {
        const char *from; /* a file, "-" for standard input; NULL: kubectl */
        Str node;         /* only this node is requested; empty: all */
        Str namespace_;   /* only pods of this namespace are requested; empty: all */
        bool cached;      /* the API server may answer from its cache: cheap, and a moment old */
        bool used;        /* the node agents are also asked what processes hold */
        bool quiet;       /* objects that do not decode are counted and not named */
        const char *kubectl_flags[KUBECTL_MAX_FLAGS];
        size_t n_kubectl_flags;
} Cluster;

/* Reads the cluster into inspect. Returns 0; an exit status, when there is nothing to report; or a
 * negated exit status, when the report is incomplete. The program prints it and then exits so. */
int cluster_read(const Cluster *c, Inspect *inspect);
