/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <curl/curl.h>
#include <sys/epoll.h>

#include "base/buf.h"
#include "kube/client.h"
#include "kube/token.h"

struct KubeCall {
        KubeClient *client;
        KubeCall *next, **link;
        CURL *easy;
        struct curl_slist *headers;
        char *method, *path, *request_body;
        Buf body;
        KubeDone done;
        void *userdata;
        int (*on_data)(void *userdata, Str bytes);
        usec_t retry_after;
        bool added, cancelled, finishing, too_long;
        char error[CURL_ERROR_SIZE];
};

struct KubeClient {
        sd_event *event;
        const KubeConfig *config;
        CURLM *multi;
        sd_event_source *timer;
        KubeCall *calls;
        KubeToken token;
        char *base; /* scheme, host and port of every URL */
        struct curl_slist *connect_to;
        unsigned busy; /* inside callbacks: what is freed now dies afterwards */
        bool in_curl;  /* inside curl: no handle may be added or removed */
        bool behind;   /* calls wait to be added or destroyed */
        bool freed;
};

void call_destroy(KubeCall *call);
void client_destroy(KubeClient *c);
