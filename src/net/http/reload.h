/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Keeps a server's certificate equal to two files, which are read again every ten seconds. This
 * works for every kind of renewal: cert-manager, or a Secret mounted by the kubelet, which swaps
 * links of whole folders. A pair that does not match, as in the middle of a renewal, changes
 * nothing. */

#include "base/clock.h"
#include "net/http/http_server.h"

typedef struct HttpReload HttpReload;

typedef struct HttpReloadOptions {
        HttpServer *server; /* outlives the reload; made with TLS */
        const char *cert, *key;
        usec_t interval; /* 0: 10 s */
        /* The server has a new certificate, from the file `what`. May be NULL. */
        void (*on_news)(void *userdata, const char *what);
        /* Called once for each state of the files that cannot be used; may be NULL. */
        void (*on_trouble)(void *userdata, const Fault *fault);
        void *userdata;
} HttpReloadOptions;

/* The files must be valid now. Returns 0, -ENOMEM, or with a fault HTTP_E_CERTIFICATE or the
 * negative errno of reading a file. */
int http_reload_new(sd_event *event, const HttpReloadOptions *options, HttpReload **ret, Fault *fault);
HttpReload *http_reload_free(HttpReload *r);

DEFINE_CLEANUP(HttpReload *, http_reload_free)
