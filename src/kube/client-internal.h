/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What client.c and call.c share. client.c owns the loop: sockets, timer, start and end of calls.
 * call.c owns one request: its curl handle, its bytes, its result. */

#include <curl/curl.h>

#include "base/buf.h"
#include "kube/client.h"
#include "kube/token.h"

enum {
        KUBE_POOL = 16, /* idle curl handles that are kept: each holds a receive buffer of 16 KiB */
        KUBE_MAX_HEADERS = 256 * 1024,
};

struct KubeClient {
        sd_event *event;
        const KubeConfig *config;
        CURLM *multi;
        sd_event_source *timer; /* fires at curl's next deadline */
        /* runs curl when its deadline is now, which saves arming the timer */
        sd_event_source *soon;
        KubeCall *calls;
        CURL *pool[KUBE_POOL];
        size_t n_pool;

        /* the server's URL; under tls_server_name the host is the name that the certificate
         * carries, */
        char *url;
        /* ...this is the Host header... */
        char *host_header;
        /* ...and this is CURLOPT_CONNECT_TO, the real address; both NULL otherwise */
        char *connect_to;
        bool local; /* the server is on this machine: no proxy is used */

        KubeToken token;

        /* calls of curl on the stack; unless 0, no handle may be added or removed */
        unsigned in_curl;
        /* callbacks of ours on the stack; unless 0, the client must not be destroyed */
        unsigned in_event;
        bool unsettled; /* calls were made or cancelled while curl was on the stack */
        bool doomed;    /* the client was freed inside a callback */
};

typedef enum CallState {
        CALL_WAITING,   /* to be handed to curl once curl is off the stack */
        CALL_STARTED,   /* curl has the handle */
        CALL_FINISHED,  /* its `done` is being called; it is freed afterwards */
        CALL_CANCELLED, /* it is freed once curl is off the stack */
} CallState;

struct KubeCall {
        KubeClient *client;
        KubeCall *next, **link;
        CallState state;
        CURL *easy;
        struct curl_slist *headers, *connect_to;
        char method[8];
        char *path, *content_type;
        Buf request;
        usec_t timeout, idle_timeout;
        int (*on_data)(void *userdata, Str bytes);
        KubeDone done;
        void *userdata;

        sd_event_source *idle;
        usec_t heard;        /* arrival of the last byte */
        unsigned n_sendings; /* attempts of curl to write the request */
        bool sent_again;     /* it was repeated with a newer token, which happens once at most */
        bool streams;        /* a 2xx head arrived, on_data takes the body */
        size_t header_bytes;
        const char *stopped; /* why we ended it, static text */
        Buf body;
        char error[CURL_ERROR_SIZE];
};

/* In call.c: makes a call with its curl handle and links it into the client; curl does not have it
 * yet. Returns 0 or -ENOMEM. */
int kube_call_new(KubeClient *c, const KubeRequest *request, KubeDone done, void *userdata, KubeCall **ret);
void kube_call_destroy(KubeCall *call);

/* In call.c: takes the call out of curl's hands and tells `done` the reply, unless the call is sent
 * once more with a newer token. */
void kube_call_finish(KubeCall *call, CURLcode result);

/* Hands the call to curl, or marks it to be handed over once curl is off the stack. Returns 0 or
 * -ENOMEM; the call then stays with the caller. */
int kube_client_start(KubeClient *c, KubeCall *call);

/* Takes a curl handle from the pool or makes one; NULL when out of memory. Gives a handle back that
 * curl no longer uses. */
CURL *kube_client_take_handle(KubeClient *c);
void kube_client_give_handle(KubeClient *c, CURL *easy);

/* Stand around every callback of the loop. When the outermost callback leaves, calls and clients
 * that were freed inside it are destroyed. */
void kube_client_enter(KubeClient *c);
void kube_client_leave(KubeClient *c);
