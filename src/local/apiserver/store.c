/* SPDX-License-Identifier: Apache-2.0 */
#include "local/apiserver/store.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

#include "local/apiserver/store-internal.h"
#include "wire/json.h"

enum {
        HISTORY_DEFAULT = 65536,
        /* a watch takes one: enough for an agent on each node of a large cluster */
        CONNECTIONS_MAX = 8192,
};

static int on_pump(sd_event_source *source, void *userdata) {
        store_streams_pump(userdata);
        return 0;
}

/* Streams are read once per turn of the loop, so that simultaneous changes are sent together. */
void store_touch(Store *s) {
        if (s->streams)
                /* fails only for NULL */
                (void) sd_event_source_set_enabled(s->pump, SD_EVENT_ONESHOT);
}

static int store_listen(Store *s, const char *address, Fault *fault) {
        HttpServerOptions options = {
                .listen = address,
                .name = "store",
                .max_body = STORE_BODY_MAX,
                .max_connections = CONNECTIONS_MAX,
        };

        return http_server_new(s->event, &options, store_handle, s, &s->server, fault);
}

/* Keeps the address with the port in use, so that the store can return there after
 * store_vanish(). */
static int store_remember_address(Store *s, const char *address) {
        const char *colon = strrchr(address, ':');
        int host = colon ? (int) (colon - address) : 0;

        if (asprintf(&s->listen, "%.*s:%u", host, address, (unsigned) http_server_port(s->server)) < 0) {
                s->listen = NULL;
                return -ENOMEM;
        }
        if (asprintf(&s->url, "http://%s%s", host > 0 ? "" : "127.0.0.1", s->listen) < 0) {
                s->url = NULL;
                return -ENOMEM;
        }
        return 0;
}

int store_new(sd_event *event, const StoreOptions *options, Store **ret, Fault *fault) {
        const char *address = options && options->listen ? options->listen : "127.0.0.1:0";
        size_t history = options && options->history > 0 ? options->history : HISTORY_DEFAULT;
        _cleanup_(store_freep) Store *s = calloc(1, sizeof *s);
        uint64_t seed;
        int r;

        if (!s)
                return -ENOMEM;
        if (getrandom(&seed, sizeof seed, 0) != sizeof seed)
                return -EIO;
        s->event = sd_event_ref(event);
        r = store_api_init(&s->api, history, seed);
        if (r < 0)
                return r;
        r = sd_event_add_defer(event, &s->pump, on_pump, s);
        if (r >= 0)
                r = sd_event_source_set_enabled(s->pump, SD_EVENT_OFF);
        if (r < 0)
                return r;
        r = store_listen(s, address, fault);
        if (r >= 0)
                r = store_remember_address(s, address);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

Store *store_free(Store *s) {
        if (!s)
                return NULL;
        http_server_free(s->server); /* closes all streams and delayed requests */
        sd_event_source_disable_unref(s->pump);
        store_api_done(&s->api);
        store_faults_done(&s->faults);
        sd_event_unref(s->event);
        free(s->listen);
        free(s->url);
        free(s);
        return NULL;
}

const char *store_url(const Store *s) {
        return s->url;
}

/* ---- objects, from this process ---- */

static int result_of(const StoreReply *reply, Fault *fault) {
        switch (reply->status) {
        case 201:
                return 0;
        case 409:
                return fault_set(fault, STORE_E_EXISTS, "%s", reply->message.text);
        case 404:
                return fault_set(fault, STORE_E_NOT_FOUND, "%s", reply->message.text);
        case 500:
                return -ENOMEM;
        default:
                return fault_set(fault, STORE_E_INVALID, "%s", reply->message.text);
        }
}

static int apply_one(Store *s, Str manifest, Fault *fault) {
        StoreReply reply = STORE_REPLY_NULL;
        int r;

        store_answer_apply(&s->api, manifest, &reply);
        r = result_of(&reply, fault);
        buf_done(&reply.body);
        return r;
}

/* Applies the members of a List in order, up to the first that is refused. The caller has admitted
 * the text. */
static int apply_items(Store *s, Str list, Fault *fault) {
        Str items = store_member(list, "items"), item;
        JsonReader r;
        int result = 0;
        size_t i = 0;

        if (!store_is_null(items) && items.data[0] != '[')
                return fault_set(fault, STORE_E_INVALID, "List: items: must be an array");
        json_init(&r, str_is_empty(items) ? STR("[]") : items);
        (void) json_array_begin(&r);
        for (; result == 0 && json_array_next(&r); i++) {
                item = (Str){NULL, 0};
                json_raw(&r, &item);
                result = apply_one(s, item, fault);
                if (result != 0)
                        (void) fault_wrap(fault, result, "List: items[%zu]", i);
        }
        return result;
}

/* Whether the kind is List, or that of a collection's GET: PodList, NodeList. */
static bool is_list(Str kind) {
        return kind.len >= 4 && str_eq((Str){kind.data + kind.len - 4, 4}, STR("List"));
}

int store_apply(Store *s, Str manifest_json, Fault *fault) {
        _cleanup_buf_ Buf admitted = BUF_NULL;
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Str kind;
        int r;

        r = store_admit(manifest_json, &admitted, fault);
        if (r != 0)
                return r < 0 ? r : STORE_E_INVALID;
        s->api.now = clock_realtime_nsec() / UINT64_C(1000000000);
        kind = store_string(store_member(buf_str(&admitted), "kind"), &arena);
        r = is_list(kind) ? apply_items(s, buf_str(&admitted), fault)
                          : apply_one(s, buf_str(&admitted), fault);
        store_touch(s);
        return r;
}

int store_each(Store *s, const char *resource, int (*each)(void *userdata, Str object), void *userdata) {
        uint64_t now = store_version(s->api.objects);
        int r = 0;

        for (size_t i = 0; i < STORE_N_KINDS; i++) {
                if (!str_eq(store_kinds[i].plural, str_from(resource)))
                        continue;
                for (StoreEntry *e = store_seek(s->api.objects, &store_kinds[i], STR("")); e && r == 0;
                     e = e->next[0]) {
                        const StoreVersion *v = store_at(e, now);

                        if (v)
                                r = each(userdata, v->text);
                }
                return r;
        }
        return -ENOENT;
}

/* ---- injected faults ---- */

int store_inject(Store *s, const StoreFault *fault) {
        return store_faults_add(&s->faults, fault);
}

int store_vanish(Store *s, bool gone) {
        if (gone)
                s->server = http_server_free(s->server);
        else if (!s->server)
                return store_listen(s, s->listen, NULL);
        return 0;
}

void store_forget_history(Store *s) {
        store_objects_forget(s->api.objects);
}
