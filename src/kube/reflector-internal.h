/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <curl/curl.h>

#include "kube/reflector.h"
#include "wire/json_stream.h"

typedef enum ReflectorState { REFLECTOR_WAITING, REFLECTOR_LISTING, REFLECTOR_WATCHING } ReflectorState;

struct Reflector {
        KubeClient *client;
        ReflectorHandler handler;
        void *userdata;
        char *path, *selector;
        unsigned page;
        size_t max_object;
        ReflectorState state;
        KubeCall *call;
        sd_event_source *timer;
        JsonStream *stream;
        int stream_result;
        Fault stream_fault;
        char *version;   /* where to watch from */
        char *next_page; /* continue token of the list */
        unsigned attempt;
        bool synced, relist;
        bool heard; /* something came on this watch */
};

/* Tests shorten the wait between attempts. */
void reflector_set_backoff_cap(usec_t cap);
