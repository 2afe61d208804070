/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The page for people: what the scheduler knows of the cluster, read-only, from memory. It has
 * a port of its own, because the extender's port binds pods for its callers.
 *
 *     GET /            the page; its script and style are /page.js and /page.css
 *     GET /events      the state, then each difference, as server-sent events (page_state.h)
 *     GET /node/NAME   the slices of one node (page_rows.h)
 *     GET /use/NAME    what the node's agent measures, as lines of its metrics (page_use.h)
 *     GET /why/UID     what keeps a waiting pod off each card, as text (verb_why.c)
 *
 * There is no login: each process that reaches the port reads it, so it listens on the loopback
 * alone. A program beside it may log users in and forward their requests (docs/operate/page.md).
 * Nothing in it is secret, and no request changes anything. */

#include <systemd/sd-event.h>

#include "base/fault.h"
#include "net/http/http_server.h"
#include "scheduler/verbs/verbs.h"

typedef struct PageServer PageServer;

typedef struct PageServerOptions {
        sd_event *event;
        SchedulerContext *context; /* these outlive it */
        const char *namespace_;    /* of the nodes' agents */
        const char *listen;        /* "127.0.0.1:PORT" or "[::1]:PORT" */
        const char *hosts;         /* as in page_host_is_ours() */
        const char *cluster;       /* its name, for people; NULL: none is shown */
} PageServerOptions;

/* 0, or negative errno with a fault: -EINVAL for a `listen` that is not of the loopback or hosts
 * that are no names, and what http_server_new() returns. */
int page_server_new(const PageServerOptions *options, PageServer **ret, Fault *fault);
PageServer *page_server_free(PageServer *p);
const HttpServer *page_server_listener(const PageServer *p); /* for its port and metrics */

/* A pod came, changed or went, and the view has it already. */
void page_server_pod(PageServer *p, const Pod *pod);
/* The view has a complete list of the pods. */
void page_server_listed(PageServer *p);

DEFINE_CLEANUP(PageServer *, page_server_free)
