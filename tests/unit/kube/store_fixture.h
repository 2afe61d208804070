/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The client and the local store in one loop. */

#include <stdarg.h>

#include "kube/api.h"
#include "kube/client.h"
#include "local/apiserver/store.h"
#include "test.h"

typedef struct Fixture {
        sd_event *event;
        Store *store;
        KubeConfig *config;
        KubeClient *client;
} Fixture;

static inline void fixture_begin(Fixture *f, size_t history) {
        StoreOptions options = {.history = history};
        Fault fault = FAULT_NULL;

        *f = (Fixture){0};
        ASSERT_OK(sd_event_new(&f->event));
        ASSERT_OK(store_new(f->event, &options, &f->store, &fault));
        ASSERT_OK(kube_config_for_server(store_url(f->store), &f->config));
        ASSERT_OK(kube_client_new(f->event, f->config, &f->client));
}

static inline void fixture_end(Fixture *f) {
        f->client = kube_client_free(f->client);
        f->config = kube_config_free(f->config);
        f->store = store_free(f->store);
        f->event = sd_event_unref(f->event);
}

/* Turns the loop until the condition holds; the test fails after 100 s. */
#define TURN_UNTIL(f, condition)                                                                             \
        do {                                                                                                 \
                usec_t end_ = clock_monotonic_usec() + 100 * USEC_PER_SEC;                                   \
                while (!(condition)) {                                                                       \
                        if (clock_monotonic_usec() > end_)                                                   \
                                TEST_FAIL_("never came true: %s", #condition);                               \
                        ASSERT_TRUE(sd_event_run((f)->event, 100000) >= 0);                                  \
                }                                                                                            \
        } while (0)

_printf_(2, 3) static inline void apply(Fixture *f, const char *format, ...) {
        char text[4096];
        Fault fault = FAULT_NULL;
        va_list args;

        va_start(args, format);
        (void) vsnprintf(text, sizeof text, format, args);
        va_end(args);
        if (store_apply(f->store, str_from(text), &fault) != 0)
                TEST_FAIL_("%s", fault.text);
}

static inline void apply_pod(Fixture *f, const char *name) {
        apply(f,
              "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\"},\"spec\":{"
              "\"containers\":["
              "{\"name\":\"main\",\"image\":\"i\"}]}}",
              name);
}

static inline void apply_node(Fixture *f, const char *name) {
        apply(f, "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"%s\"}}", name);
}

/* What a call answered, kept for the test to look at. */
typedef struct Answer {
        unsigned n;
        KubeOutcome outcome;
        unsigned status;
        usec_t retry_after;
        char reason[64], body[8192];
        Fault fault;
} Answer;

static inline void on_answer(void *userdata, const KubeReply *reply) {
        Answer *a = userdata;

        a->n++;
        a->outcome = reply->outcome;
        a->status = reply->status;
        a->retry_after = reply->retry_after;
        a->fault = reply->fault;
        (void) snprintf(a->reason, sizeof a->reason, "%s", reply->reason);
        (void) snprintf(a->body, sizeof a->body, STR_FMT, STR_ARG(reply->body));
}
