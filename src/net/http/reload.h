/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A server's certificate from two files, which are read again every ten seconds: whoever renews
 * them (cert-manager, a Secret mounted by the kubelet, which swaps links of whole folders) need not
 * tell us, and there is no way of doing it that would go unnoticed. Two small files cost nothing
 * beside that. A pair that does not fit together, as in the middle of a renewal, changes
 * nothing. */

#include "base/clock.h"
#include "net/http/http_server.h"

typedef struct HttpReload HttpReload;

typedef struct HttpReloadOptions {
        HttpServer *server; /* outlives the reload; made with TLS */
        const char *cert, *key;
        usec_t interval;                                   /* 0: 10 s */
        void (*on_news)(void *userdata, const char *what); /* another certificate is served; may be NULL */
        /* Said once for each state of the files that cannot be used; may be NULL. */
        void (*on_trouble)(void *userdata, const Fault *fault);
        void *userdata;
} HttpReloadOptions;

/* The files must be good now: 0; HTTP_E_CERTIFICATE, or the negative errno of reading one, with a
 * fault; -ENOMEM. */
int http_reload_new(sd_event *event, const HttpReloadOptions *options, HttpReload **ret, Fault *fault);
HttpReload *http_reload_free(HttpReload *r);

DEFINE_CLEANUP(HttpReload *, http_reload_free)
