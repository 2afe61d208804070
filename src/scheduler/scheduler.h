/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The extender of CONTRACT section 9 as an object in an event loop: a view of the cluster that follows the API
 * server, the ledger made from it, and the HTTP face that kube-scheduler calls. */

#include <systemd/sd-event.h>

#include "base/fault.h"
#include "kube/config.h"

typedef struct Scheduler Scheduler;

typedef struct SchedulerOptions {
        const KubeConfig *config;       /* outlives the scheduler */
        const char *listen;             /* "ADDR:PORT" */
        const char *tls_cert, *tls_key; /* files; both or neither */
        bool leader_election;
        const char *identity;   /* of the Lease; NULL: host name and pid */
        const char *namespace_; /* of the Lease; NULL: kube-system */
} SchedulerOptions;

/* 0, or negative errno with a fault for people. */
int scheduler_new(sd_event *event, const SchedulerOptions *options, Scheduler **ret, Fault *fault);
Scheduler *scheduler_free(Scheduler *s);
uint16_t scheduler_port(const Scheduler *s);
bool scheduler_is_ready(const Scheduler *s); /* what /readyz answers: the view is in sync */

/* Stops binding and gives the lease to whoever wants it; done is called when that is known or has failed. Returns 0, 1
 * when there is nothing to give (done is not called then), or negative errno. */
int scheduler_release(Scheduler *s, void (*done)(void *userdata), void *userdata);

/* The verb `aliquot scheduler`. Returns the exit code. */
int scheduler_main(int argc, char **argv);

DEFINE_CLEANUP(Scheduler *, scheduler_free)
