/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>

#include "local/apiserver/watch.h"
#include "wire/json.h"

#include "../unit/local/apiserver/call.h"

/* Lines of requests: METHOD URL BODY; `strategic` in the query says the kind of a patch. For all of
 * them versions only grow, a refusal changes nothing, and an answer is JSON. A watch that follows
 * gets every version, or is told that it is too late. */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_json(Str text) {
        JsonReader r;

        json_init(&r, text);
        json_skip(&r);
        assert(json_finish(&r, NULL) == 0);
}

static void read_watch(StoreWatch *w, Buf *events) {
        Str rest;

        buf_clear(events);
        store_watch_read(w, events, 1 << 20);
        rest = buf_str(events);
        while (rest.len > 0)
                check_json(str_split(&rest, '\n'));
        if (w->ended) {
                w->ended = false;
                w->position = store_version(w->objects);
        }
        assert(w->position == store_version(w->objects));
}

static void one_request(StoreApi *api, Str line) {
        StoreReply reply = STORE_REPLY_NULL;
        char method[8], url[512];
        uint64_t before = store_version(api->objects);
        StoreQuery query;
        StoreCall call;
        StoreRoute route;

        store_query_copy(method, sizeof method, str_split(&line, ' '));
        store_query_copy(url, sizeof url, str_split(&line, ' '));
        call = store_call(&query, method, url, line);
        if (store_query(&call, "strategic"))
                call.content_type = "application/strategic-merge-patch+json";
        if (store_is_watch(&call, &route)) {
                StoreWatch watch;

                if (store_watch_init(&watch, api, &route, &call, &reply)) {
                        _cleanup_buf_ Buf events = BUF_NULL;

                        store_watch_read(&watch, &events, 1 << 20);
                        store_watch_bookmark(&watch, &events);
                }
                store_watch_done(&watch);
        } else {
                store_answer(api, &call, &reply);
                assert(reply.status >= 200 && reply.status < 600);
                if (reply.body.len > 0 && reply.body.data[0] == '{')
                        check_json(buf_str(&reply.body));
        }
        assert(store_version(api->objects) <= before + 1);
        assert(reply.status < 300 || store_version(api->objects) == before);
        buf_done(&reply.body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Str rest = {(const char *) data, size};
        _cleanup_buf_ Buf events = BUF_NULL;
        StoreReply reply = STORE_REPLY_NULL;
        StoreQuery query;
        StoreCall call;
        StoreRoute route;
        StoreWatch watch;
        StoreApi api;

        if (size > 65536 || store_api_init(&api, 8, 1) < 0)
                return 0;
        api.now = 1700000000;
        call = store_call(&query, "GET", "/api/v1/pods?watch=1&fieldSelector=spec.nodeName=", STR(""));
        assert(store_is_watch(&call, &route) && store_watch_init(&watch, &api, &route, &call, &reply));
        while (rest.len > 0) {
                one_request(&api, str_split(&rest, '\n'));
                read_watch(&watch, &events);
        }
        store_watch_done(&watch);
        store_api_done(&api);
        return 0;
}
