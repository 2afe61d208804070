/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A cluster in one process: an API server (the store), the scheduler with its extender, nodes, and
 * what the controllers and kubelets of a cluster would do. Everything that a real cluster does over
 * HTTP goes over HTTP here too, so that the programs under it cannot tell the difference.
 *
 * Its use is a sequence: new, apply, settle, and then any of the print functions. */

#include "base/buf.h"
#include "base/fault.h"
#include "local/apiserver/store.h"
#include "local/manifests.h"
#include "local/runner.h"

typedef struct Cluster Cluster;

enum { CLUSTER_E_INVALID = 1 };

int cluster_new(Cluster **ret, Fault *fault);
Cluster *cluster_free(Cluster *c);

/* Puts the objects into the store, workloads with their pods. Kinds that the store does not serve
 * are passed over; a line about each goes to *notes. Returns 0, CLUSTER_E_INVALID with a fault that
 * names file, document, object and rule, or negative errno. */
int cluster_apply(Cluster *c, const Manifests *manifests, Buf *notes, Fault *fault);

/* Until each pod is placed or unschedulable: pods that name a node go there, the others through the
 * scheduling queue, by priority and then in the order of their creation. Each is tried once:
 * nothing gives back in between what could make another attempt end differently. */
int cluster_schedule(Cluster *c, Fault *fault);

size_t cluster_n_refused(const Cluster *c);
void cluster_print_refused(const Cluster *c,
                           Buf *out); /* `NAMESPACE/NAME: reason`, in the order they were tried */

/* The summary of `kubectl inspect cgpu`. Objects that could not be counted: a line each in
 * *notes. */
int cluster_print_summary(Cluster *c, Buf *out, Buf *notes);

/* What `kubectl get RESOURCES -A -o json` would print: a List. resources: "nodes", "nodes,pods".
 * CLUSTER_E_INVALID for a resource that the store does not serve. */
int cluster_print_objects(Cluster *c, const char *resources, Buf *out, Fault *fault);

/* Its API server, where tests put faults. */
Store *cluster_store(Cluster *c);

/* Runs the containers of the placed pods and prints their logs (local/runner.h). */
int cluster_print_logs(Cluster *c, const RunnerOptions *options, Buf *out, Buf *notes);

DEFINE_CLEANUP(Cluster *, cluster_free)
