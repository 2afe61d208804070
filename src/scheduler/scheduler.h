/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The extender as an object in an event loop. It has a view of the cluster that follows the API
 * server, the ledger made from it, and the HTTP server that kube-scheduler calls. Admission webhook
 * and page are optional. */

#include <systemd/sd-event.h>

#include "base/fault.h"
#include "kube/config.h"
#include "share/node_defaults.h"

typedef struct Scheduler Scheduler;

typedef struct SchedulerOptions {
        const KubeConfig *config;       /* outlives the scheduler */
        const char *listen;             /* "ADDR:PORT" of the extender */
        const char *tls_cert, *tls_key; /* files; both or neither */
        /* "ADDR:PORT" for requests that only read; NULL: they come to `listen` alone */
        const char *read_listen;
        bool leader_election;
        /* Namespace and name of the Lease of the kube-scheduler on this host: this replica leads
         * while that one holds it, in place of an election of ours. NULL: there is none. */
        const char *kube_scheduler_namespace, *kube_scheduler_lease;
        const char *lease_file; /* keeps what was read of it over a restart (kube/lease_follower.h) */
        bool evict_for_cards;   /* the evictor (evictor.h) */
        bool by_fragment;       /* NODE_ORDER_FRAGMENTATION, else NODE_ORDER_BINPACK (share/node_order.h) */
        bool gangs;             /* place gangs as a whole (assembler.h) */
        bool grow;              /* let slices grow beyond their limits (grower.h) */
        uint32_t filter_best;   /* the most nodes that filter answers (filter.c); 0: all */
        /* pods without a request for cards go to nodes without an idle card, if any
         * (prioritize.c) */
        bool spare_idle_cards;
        const char *identity;   /* holderIdentity in the Lease; NULL: host name and pid */
        const char *namespace_; /* namespace of the Lease and of the pod; NULL: kube-system */

        const char *page_listen;               /* "127.0.0.1:PORT"; NULL: no page (page_server.h) */
        const char *page_hosts, *page_cluster; /* as in PageServerOptions */

        const char *webhook_listen;                      /* "ADDR:PORT"; NULL: no webhook */
        const char *webhook_namespace, *webhook_service; /* of the Service by which the API server calls it */
        /* files; NULL: the certificate is kept in a Secret */
        const char *webhook_tls_cert, *webhook_tls_key;
        /* User names that may write system keys of pods, besides Aliquot's accounts, separated by
         * commas. NULL: none. */
        const char *system_accounts;
        bool keeps_nodes;      /* webhook: as in ReviewRules */
        bool runtime_devices;  /* the node agents run with --device-access=runtime */
        NodeDefaults defaults; /* for nodes without the annotation */
} SchedulerOptions;            /* all texts outlive the scheduler */

/* Returns 0, or negative errno with a fault. */
int scheduler_new(sd_event *event, const SchedulerOptions *options, Scheduler **ret, Fault *fault);
Scheduler *scheduler_free(Scheduler *s);
uint16_t scheduler_port(const Scheduler *s);
uint16_t scheduler_read_port(const Scheduler *s);    /* 0: not served */
uint16_t scheduler_webhook_port(const Scheduler *s); /* 0: not served */
uint16_t scheduler_page_port(const Scheduler *s);    /* 0: not served */

/* Whether /readyz answers 200: the view is in sync, and the webhook, if there is one, has a
 * certificate. */
bool scheduler_is_ready(const Scheduler *s);

/* Stops binding, leaves the election, and gives the lease back once no bind is open. done is called
 * when that has succeeded or failed. Returns 0; 1 when there is no lease to give back (done is not
 * called then); or negative errno. */
int scheduler_release(Scheduler *s, void (*done)(void *userdata), void *userdata);

/* The verb `aliquot scheduler`. Returns the exit code. */
int scheduler_main(int argc, char **argv);

DEFINE_CLEANUP(Scheduler *, scheduler_free)
