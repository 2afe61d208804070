/* SPDX-License-Identifier: Apache-2.0 */
#include "local/apiserver/store-internal.h"

#include <errno.h>

/* Turns exchanges into calls and replies into answers, and applies injected faults. */

static const char *query_of_exchange(void *userdata, const char *name) {
        return http_query(userdata, name);
}

static void send_reply(HttpExchange *x, const StoreReply *reply) {
        http_respond(x, reply->status, "application/json", buf_str(&reply->body));
}

static void carry_out(Store *s, HttpExchange *x, const HttpRequest *request, bool lose_answer) {
        StoreReply reply = STORE_REPLY_NULL;
        StoreCall call = {
                .method = request->method,
                .path = request->path,
                .content_type = request->content_type,
                .body = request->body,
                .query = query_of_exchange,
                .userdata = x,
        };
        uint64_t before = store_version(s->api.objects);
        StoreRoute route;
        StoreWatch watch;

        s->api.now = clock_realtime_nsec() / UINT64_C(1000000000);
        if (!store_is_watch(&call, &route)) {
                store_answer(&s->api, &call, &reply);
                if (store_version(s->api.objects) != before)
                        store_touch(s);
        } else if (store_watch_init(&watch, &s->api, &route, &call, &reply)) {
                if (!lose_answer) {
                        store_stream_new(s, x, request->path, &watch);
                        return;
                }
                store_watch_done(&watch);
        } else {
                store_watch_done(&watch);
        }
        if (lose_answer)
                http_exchange_cut(x);
        else
                send_reply(x, &reply);
        buf_done(&reply.body);
}

/* ---- delays ---- */

struct StoreDelayed {
        Store *store;
        StoreDelayed *next, **link;
        HttpExchange *exchange;
        HttpRequest request;
        sd_event_source *timer;
};

static void delayed_free(StoreDelayed *d) {
        *d->link = d->next;
        if (d->next)
                d->next->link = d->link;
        sd_event_source_disable_unref(d->timer);
        free(d);
}

static void on_delayed_closed(void *userdata) {
        delayed_free(userdata);
}

static int on_delay_over(sd_event_source *source, uint64_t usec, void *userdata) {
        StoreDelayed *d = userdata;
        HttpRequest request = d->request;
        HttpExchange *x = d->exchange;
        Store *s = d->store;

        http_exchange_on_close(x, NULL, NULL);
        delayed_free(d);
        carry_out(s, x, &request, false);
        return 0;
}

static void delay_answer(Store *s, HttpExchange *x, const HttpRequest *request, uint64_t usec) {
        StoreDelayed *d = calloc(1, sizeof *d);

        if (!d) {
                http_exchange_cut(x);
                return;
        }
        *d = (StoreDelayed){
                .store = s, .next = s->delayed, .link = &s->delayed, .exchange = x, .request = *request};
        if (d->next)
                d->next->link = &d->next;
        s->delayed = d;
        if (sd_event_add_time_relative(s->event, &d->timer, CLOCK_MONOTONIC, usec, 1, on_delay_over, d) < 0) {
                delayed_free(d);
                http_exchange_cut(x);
                return;
        }
        http_exchange_on_close(x, on_delayed_closed, d);
}

/* ---- faults ---- */

static const char *reason_of(unsigned status) {
        static const struct {
                unsigned status;
                const char *reason;
        } reasons[] = {
                {400, "BadRequest"},    {401, "Unauthorized"},
                {403, "Forbidden"},     {404, "NotFound"},
                {409, "Conflict"},      {410, "Expired"},
                {422, "Invalid"},       {429, "TooManyRequests"},
                {500, "InternalError"}, {503, "ServiceUnavailable"},
                {504, "Timeout"},
        };

        for (size_t i = 0; i < ELEMENTSOF(reasons); i++)
                if (reasons[i].status == status)
                        return reasons[i].reason;
        return "";
}

static void respond_fault(HttpExchange *x, const StoreFault *fault) {
        StoreReply reply = STORE_REPLY_NULL;
        char seconds[16];

        store_refuse(&reply, fault->status, reason_of(fault->status), NULL, STR(""), "injected fault");
        if (fault->retry_after > 0) {
                (void) snprintf(seconds, sizeof seconds, "%u", fault->retry_after);
                http_respond_header(x, "Retry-After", seconds);
        }
        send_reply(x, &reply);
        buf_done(&reply.body);
}

void store_handle(void *userdata, HttpExchange *x, const HttpRequest *request) {
        Store *s = userdata;
        StoreFault fault;

        if (!store_faults_take(&s->faults, request->method, request->path, false, &fault)) {
                carry_out(s, x, request, false);
                return;
        }
        switch (fault.kind) {
        case STORE_FAULT_STATUS:
                respond_fault(x, &fault);
                break;
        case STORE_FAULT_LOSE_ANSWER:
                carry_out(s, x, request, true);
                break;
        case STORE_FAULT_DELAY:
                delay_answer(s, x, request, fault.delay_usec);
                break;
        case STORE_FAULT_CUT:
        case STORE_FAULT_CUT_WATCH:
        default:
                http_exchange_cut(x);
                break;
        }
}
