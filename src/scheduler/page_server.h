/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The page for people: what the scheduler knows of the cluster, read-only, from memory. It has
 * ports of its own, because the extender's port binds pods for its callers.
 *
 *     GET /            the page; its script and style are /page.js and /page.css
 *     GET /events      the state, then each difference, as server-sent events (page_state.h)
 *     GET /node/NAME   the slices of one node (page_rows.h)
 *     GET /use/NAME    what the node's agent measures, as lines of its metrics (page_use.h)
 *     GET /why/UID     what keeps a waiting pod off each card, as text (verb_why.c)
 *
 * On the loopback there is no login: whoever reaches the port reads it. On the port that may be
 * elsewhere, the API server decides by a token (page_access.h). Nothing in it is secret, and no
 * request changes anything. */

#include <systemd/sd-event.h>

#include "base/fault.h"
#include "kube/client.h"
#include "scheduler/gang/gangs.h"
#include "scheduler/view.h"

typedef struct PageServer PageServer;

typedef struct PageServerOptions {
        sd_event *event;
        KubeClient *client;     /* these outlive it */
        const char *namespace_; /* of the nodes' agents */
        const char *listen;     /* "127.0.0.1:PORT" or "[::1]:PORT"; NULL: not without a login */
        /* "ADDR:PORT" for HTTPS with a login; NULL: none. It needs config, which outlives it, and
         * the files of a certificate. */
        const char *secure_listen;
        const KubeConfig *config;
        const char *tls_cert, *tls_key;
        void (*on_news)(void *userdata, const char *what); /* as in net/http/reload.h */
        void (*on_trouble)(void *userdata, const Fault *fault);
        View *view;
        const bool *leading; /* whether this replica binds */
        const Gangs *gangs;  /* NULL: gangs are off */
} PageServerOptions;

/* 0, or negative errno with a fault: -EINVAL for a `listen` that is not of the loopback or a
 * certificate that cannot be used, and what http_server_new() returns. */
int page_server_new(const PageServerOptions *options, PageServer **ret, Fault *fault);
PageServer *page_server_free(PageServer *p);
uint16_t page_server_port(const PageServer *p);        /* 0: none */
uint16_t page_server_secure_port(const PageServer *p); /* 0: none */

/* A pod came, changed or went, and the view has it already. */
void page_server_pod(PageServer *p, const Pod *pod);
/* The view has a complete list of the pods. */
void page_server_listed(PageServer *p);

DEFINE_CLEANUP(PageServer *, page_server_free)
