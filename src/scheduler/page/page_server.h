/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The HTTP server of the page for people: what the scheduler knows of the cluster, read-only, from
 * memory. It has its own port, because the extender's port lets its callers bind pods.
 *
 *     GET /            the page; its script and style are /page.js and /page.css
 *     GET /events      the state, then each difference, as server-sent events (page_state.h)
 *     GET /node/NAME   the slices of one node (page_rows.h)
 *     GET /use/NAME    what the node's agent measures, as lines of its metrics (page_use.h)
 *     GET /why/UID     what keeps a waiting pod off each card, as text (verb_why.c)
 *
 * There is no login: any process that reaches the port can read it, so it listens on the loopback
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
        const char *namespace_;    /* namespace of the node agents */
        const char *listen;        /* "127.0.0.1:PORT" or "[::1]:PORT" */
        const char *hosts;         /* as in page_host_is_ours() */
        const char *cluster;       /* its name, for people; NULL: none is shown */
} PageServerOptions;

/* Returns 0; -EINVAL with a fault when `listen` is no loopback address or `hosts` are no names; or
 * what http_server_new() returns. For -ENOMEM the fault may be unset. */
int page_server_new(const PageServerOptions *options, PageServer **ret, Fault *fault);
PageServer *page_server_free(PageServer *p);
const HttpServer *page_server_listener(const PageServer *p); /* for its port and metrics */

/* A pod came, changed or went, and the view has taken it over. */
void page_server_pod(PageServer *p, const Pod *pod);
/* The view has completed a list of pods. */
void page_server_listed(PageServer *p);

DEFINE_CLEANUP(PageServer *, page_server_free)
