/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between client.c (the loop: which sockets, which timer, whose turn) and call.c (one request: its
 * curl handle, its bytes, its verdict). */

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
        sd_event_source *timer; /* curl's next deadline */
        sd_event_source *soon;  /* the same, when it is now: no timer needs to be armed for it */
        KubeCall *calls;
        CURL *pool[KUBE_POOL];
        size_t n_pool;

        char *url;         /* the server, or in its place the name that its certificate must carry... */
        char *host_header; /* ...then the name that it is called by... */
        char *connect_to;  /* ...and where curl goes instead; both NULL otherwise */
        bool local;        /* on this machine: never through a proxy */

        KubeToken token;

        unsigned in_curl;  /* curl is on the stack: no handle may be added or removed */
        unsigned in_event; /* and so are we: the client may not go away */
        bool unsettled;    /* calls were made or cancelled while curl was on the stack */
        bool doomed;       /* freed meanwhile */
};

typedef enum CallState {
        CALL_WAITING,   /* for curl to be off the stack */
        CALL_STARTED,   /* in curl's hands */
        CALL_FINISHED,  /* its reply is being told; dies behind that */
        CALL_CANCELLED, /* dies when curl is off the stack */
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
        usec_t heard;        /* when the last byte came */
        unsigned n_sendings; /* how often curl was about to write the request */
        bool sent_again;     /* with a newer token: once is enough */
        bool streams;        /* a 2xx head came, on_data takes the rest */
        size_t header_bytes;
        const char *stopped; /* why we ended it ourselves, static text */
        Buf body;
        char error[CURL_ERROR_SIZE];
};

/* A call with its curl handle, linked into the client, not yet in curl's hands. 0 or -ENOMEM. */
int call_new(KubeClient *c, const KubeRequest *request, KubeDone done, void *userdata, KubeCall **ret);
void call_destroy(KubeCall *call);

/* Ends it: takes it from curl and tells the reply, unless it goes round once more with a newer
 * token. */
void call_finish(KubeCall *call, CURLcode result);

/* Hands the call to curl, or remembers to. 0 or -ENOMEM; the caller says what becomes of it
 * then. */
int client_start(KubeClient *c, KubeCall *call);

/* A curl handle from the pool or a new one, NULL when out of memory; and back, out of curl's
 * hands. */
CURL *client_take_handle(KubeClient *c);
void client_give_handle(KubeClient *c, CURL *easy);

/* Around everything that the loop calls: behind the outermost one, whoever was freed inside is
 * gone. */
void client_enter(KubeClient *c);
void client_leave(KubeClient *c);
