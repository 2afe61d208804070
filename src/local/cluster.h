/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A cluster in one process: an API server (the store), the scheduler with its extender, nodes, and
 * what the controllers and kubelets of a cluster do. Everything that uses HTTP in a real cluster
 * uses it here, so the programs see no difference.
 *
 * Call in this order: new, apply, schedule, any of the print functions, and serve. */

#include "base/buf.h"
#include "base/fault.h"
#include "cli/inspect/inspect.h"
#include "local/apiserver/store.h"
#include "local/manifests.h"
#include "local/runner.h"

typedef struct Cluster Cluster;

enum { CLUSTER_E_INVALID = 1 };

int cluster_new(Cluster **ret, Fault *fault);
Cluster *cluster_free(Cluster *c);

/* Puts the objects into the store, workloads with their pods. Kinds that the store does not serve
 * are skipped, with a line in *notes. So are objects that it refuses: the line names file,
 * document, object and rule. Returns 0 or negative errno with a fault. */
int cluster_apply(Cluster *c, const Manifests *manifests, Buf *notes, Fault *fault);
size_t cluster_n_invalid(const Cluster *c); /* objects that were refused */

/* Places every pod or finds it unschedulable. Pods that name a node go there; the others pass the
 * scheduling queue, by priority and then in order of creation. Each is tried once, because nothing
 * is released that could change the result. Returns 0 or negative errno with a fault. */
int cluster_schedule(Cluster *c, Fault *fault);

/* Has the scheduler serve its page at this address (page_server.h). Call it before
 * cluster_schedule(). The text outlives the cluster. */
void cluster_offer_page(Cluster *c, const char *listen);
uint16_t cluster_page_port(const Cluster *c); /* 0: none */
/* port of the scheduler's metrics, on 127.0.0.1; 0: none */
uint16_t cluster_metrics_port(const Cluster *c);

/* Serves the page until SIGINT or SIGTERM. Both stay blocked afterwards, and SIGPIPE ignored.
 * Returns 0 or negative errno. */
int cluster_serve(Cluster *c);

size_t cluster_n_refused(const Cluster *c);
/* Appends a line `NAMESPACE/NAME: reason` for each pod that was not placed or not admitted, in the
 * order of the attempts. Incomplete gangs follow. */
void cluster_print_refused(const Cluster *c, Buf *out);

/* Prints the summary of `kubectl inspect cgpu`. screen: as on a terminal; NULL: the table of older
 * tools. Each object that could not be counted gets a line in *notes. */
int cluster_print_summary(Cluster *c, const InspectScreen *screen, Buf *out, Buf *notes);

/* Prints which pod has which cards (local/pod_cards.h). screen: as above. */
int cluster_print_placements(Cluster *c, const InspectScreen *screen, Buf *out);

/* Prints a List, as `kubectl get RESOURCES -A -o json` does. resources: "nodes", "nodes,pods". A
 * resource without objects gets a line in *notes. CLUSTER_E_INVALID for a resource that the store
 * does not serve. */
int cluster_print_objects(Cluster *c, const char *resources, Buf *out, Buf *notes, Fault *fault);

/* The cluster's API server, for tests that inject faults. */
Store *cluster_store(Cluster *c);

/* Runs the containers of the placed pods and prints their logs (local/runner.h). */
int cluster_print_logs(Cluster *c, const RunnerOptions *options, Buf *out, Buf *notes);

DEFINE_CLEANUP(Cluster *, cluster_free)
