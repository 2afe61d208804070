/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The extender as an object in an event loop. It has a view of the cluster that follows the API
 * server, the ledger made from it, and the HTTP server that kube-scheduler calls. Optionally it has
 * the admission webhook. */

#include <systemd/sd-event.h>

#include "base/fault.h"
#include "kube/config.h"
#include "share/node_defaults.h"

typedef struct Scheduler Scheduler;

typedef struct SchedulerOptions {
        const KubeConfig *config;       /* outlives the scheduler */
        const char *listen;             /* "ADDR:PORT" */
        const char *tls_cert, *tls_key; /* files; both or neither */
        const char *read_listen;        /* "ADDR:PORT" of what only reads; NULL: `listen` alone */
        bool leader_election;
        /* Of a kube-scheduler on this host, which decides in place of an election; NULL: none. */
        const char *kube_scheduler_namespace, *kube_scheduler_lease;
        bool evict_for_cards;   /* the evictor (evictor.h) */
        bool by_fragment;       /* NODE_ORDER_FRAGMENTATION, else NODE_ORDER_BINPACK (share/node_order.h) */
        bool gangs;             /* gangs (assembler.h) */
        bool grow;              /* slices beyond their limits (grower.h) */
        uint32_t filter_best;   /* so many nodes filter answers at most (filter.c); 0: all */
        bool spare_idle_cards;  /* pods that ask for nothing go to other nodes (prioritize.c) */
        const char *identity;   /* of the Lease; NULL: host name and pid */
        const char *namespace_; /* of the Lease and of the pod; NULL: kube-system */

        const char *page_listen;               /* "127.0.0.1:PORT"; NULL: no page (page_server.h) */
        const char *page_hosts, *page_cluster; /* as in PageServerOptions */

        const char *webhook_listen;                      /* "ADDR:PORT"; NULL: no webhook */
        const char *webhook_namespace, *webhook_service; /* of its Service */
        const char *webhook_tls_cert, *webhook_tls_key;  /* files; NULL: kept in a Secret */
        /* Users with the right to write system keys of pods, besides aliquot's accounts; commas
         * between them. NULL: none */
        const char *system_accounts;
        bool keeps_nodes;      /* webhook: ReviewRules */
        bool runtime_devices;  /* the node agents run with --device-access=runtime */
        NodeDefaults defaults; /* settings of nodes without the annotation */
} SchedulerOptions;            /* the texts outlive the scheduler */

/* 0, or negative errno with a fault for people. */
int scheduler_new(sd_event *event, const SchedulerOptions *options, Scheduler **ret, Fault *fault);
Scheduler *scheduler_free(Scheduler *s);
uint16_t scheduler_port(const Scheduler *s);
uint16_t scheduler_read_port(const Scheduler *s);    /* 0: none */
uint16_t scheduler_webhook_port(const Scheduler *s); /* 0: none */
uint16_t scheduler_page_port(const Scheduler *s);    /* 0: none */

/* Whether /readyz answers 200: the view is in sync, and the webhook, if there is one, has a
 * certificate. */
bool scheduler_is_ready(const Scheduler *s);

/* Stops binding, leaves the election, and gives the lease back. done is called when that is known
 * or has failed. Returns 0, 1 when there is no lease to give (done is not called then), or negative
 * errno. */
int scheduler_release(Scheduler *s, void (*done)(void *userdata), void *userdata);

/* The verb `aliquot scheduler`. Returns the exit code. */
int scheduler_main(int argc, char **argv);

DEFINE_CLEANUP(Scheduler *, scheduler_free)
