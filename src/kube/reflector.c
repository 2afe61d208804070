/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/reflector.h"

#include <errno.h>

#include "kube/reflector-internal.h"
#include "wire/json_stream.h"
#include "wire/json_table.h"

/* One call at a time, in four states:
 *
 *     LISTING --- last page ---> WATCHING --- cut, timeout, error ---> WAITING --> WATCHING again, at the last version
 *        ^                           |                                    |
 *        +---------------------------+------------- 410 Gone -------------+
 *
 * A list that breaks off waits and begins again from its first page; so does one whose continue token has expired. */

enum {
        PAGE_DEFAULT = 500,
        OBJECT_DEFAULT = 8 * 1024 * 1024,
        WATCH_SECONDS_MIN =
                300, /* client-go asks for 5 to 10 minutes as well, so that watches do not all end at once */
        WATCH_IDLE_SLACK = 60,
};

#define BACKOFF_BASE (200 * USEC_PER_MSEC)
#define BACKOFF_CAP  (30 * USEC_PER_SEC)

static usec_t backoff_cap = BACKOFF_CAP;

void reflector_set_backoff_cap(usec_t cap) {
        backoff_cap = cap;
}

static int on_again(sd_event_source *source, uint64_t usec, void *userdata);

static void trouble(Reflector *r, const Fault *fault) {
        if (r->handler.on_trouble)
                r->handler.on_trouble(r->userdata, fault);
}

static void set_state(Reflector *r, ReflectorState state) {
        r->state = state;
}

/* Tries again after a while: the list from its start, or the watch where it was. */
static void wait_then(Reflector *r, bool list, usec_t retry_after) {
        usec_t delay = kube_backoff(r->attempt++, BACKOFF_BASE < backoff_cap ? BACKOFF_BASE : backoff_cap,
                                    backoff_cap, retry_after);

        r->relist = r->relist || list;
        set_state(r, REFLECTOR_WAITING);
        if (sd_event_source_set_time_relative(r->timer, delay) < 0 ||
            sd_event_source_set_enabled(r->timer, SD_EVENT_ONESHOT) < 0) {
                Fault fault;
                (void) fault_set(&fault, 0, "%s: the event loop takes no timer", r->path);
                trouble(r, &fault);
        }
}

/* ---- values of a list ---- */

typedef struct ListMeta {
        Str resource_version, next;
} ListMeta;

static const JsonField list_meta_fields[] = {
        JSON_FIELD(ListMeta, resource_version, "resourceVersion", json_field_str),
        JSON_FIELD(ListMeta, next, "continue", json_field_str),
};

static int replace_text(char **text, Str value) {
        char *copy = str_dup(value);

        if (!copy)
                return -ENOMEM;
        free(*text);
        *text = copy;
        return 0;
}

static int take_list_meta(Reflector *r, Str value, Fault *fault) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        ListMeta meta = {0};
        JsonReader reader;
        int q;

        json_init(&reader, value);
        json_decode(&reader, &arena, list_meta_fields, ELEMENTSOF(list_meta_fields), &meta);
        q = json_finish(&reader, fault);
        if (q == 0)
                q = replace_text(&r->version, meta.resource_version);
        if (q == 0)
                q = replace_text(&r->next_page, meta.next);
        return q;
}

static int on_list_value(void *userdata, Str member, Str value, Fault *fault) {
        Reflector *r = userdata;

        if (json_key_is(member, "items")) {
                r->handler.on_object(r->userdata, REFLECTOR_LISTED, value);
                return 0;
        }
        return json_key_is(member, "metadata") ? take_list_meta(r, value, fault) : 0;
}

/* ---- values of a watch ---- */

typedef struct WatchEvent {
        Str type, object;
} WatchEvent;

static const JsonField watch_fields[] = {
        JSON_FIELD(WatchEvent, type, "type", json_field_str),
        JSON_FIELD(WatchEvent, object, "object", json_field_raw),
};

/* Of any object: its version; of a Status: its code and words. */
typedef struct WatchObject {
        Str resource_version, message;
        int64_t code;
} WatchObject;

static const JsonField watch_meta_fields[] = {
        JSON_FIELD(WatchObject, resource_version, "resourceVersion", json_field_str),
};

static void decode_watch_meta(JsonReader *r, Arena *arena, void *into) {
        json_decode(r, arena, watch_meta_fields, ELEMENTSOF(watch_meta_fields), into);
}

static const JsonField watch_object_fields[] = {
        {STR("metadata"), decode_watch_meta, 0},
        JSON_FIELD(WatchObject, message, "message", json_field_str),
        JSON_FIELD(WatchObject, code, "code", json_field_i64),
};

static bool event_of(Str type, ReflectorEvent *ret) {
        static const struct {
                Str type;
                ReflectorEvent event;
        } events[] = {{STR("ADDED"), REFLECTOR_ADDED},
                      {STR("MODIFIED"), REFLECTOR_MODIFIED},
                      {STR("DELETED"), REFLECTOR_DELETED}};

        for (size_t i = 0; i < ELEMENTSOF(events); i++)
                if (str_eq(type, events[i].type)) {
                        *ret = events[i].event;
                        return true;
                }
        return false;
}

static int on_watch_value(void *userdata, Str member, Str value, Fault *fault) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Reflector *r = userdata;
        WatchEvent event = {0};
        WatchObject object = {0};
        ReflectorEvent what;
        JsonReader reader;
        int q;

        json_init(&reader, value);
        json_decode(&reader, &arena, watch_fields, ELEMENTSOF(watch_fields), &event);
        q = json_finish(&reader, fault);
        if (q != 0)
                return q;
        json_init(&reader, event.object);
        json_decode(&reader, &arena, watch_object_fields, ELEMENTSOF(watch_object_fields), &object);
        q = json_finish(&reader, fault);
        if (q != 0)
                return q;
        if (str_eq(event.type, STR("ERROR"))) {
                /* 410: what we would resume from is forgotten. Anything else: the list is as good a cure. */
                r->relist = true;
                return fault_set(fault, -ESTALE, "%s: the watch ended: %lld " STR_FMT, r->path,
                                 (long long) object.code, STR_ARG(object.message));
        }
        if (event_of(event.type, &what))
                r->handler.on_object(r->userdata, what, event.object);
        r->attempt = 0;
        r->heard = true;
        return str_is_empty(object.resource_version) ? 0 : replace_text(&r->version, object.resource_version);
}

/* ---- calls ---- */

static int on_data(void *userdata, Str bytes) {
        Reflector *r = userdata;

        r->stream_result = json_stream_feed(r->stream, bytes, &r->stream_fault);
        return r->stream_result;
}

static int begin_call(Reflector *r, char *path, usec_t timeout, usec_t idle, KubeDone done) {
        KubeRequest request = {
                .method = "GET",
                .path = path,
                .timeout = timeout,
                .idle_timeout = idle,
                .on_data = on_data,
        };
        bool list = r->state == REFLECTOR_LISTING;
        int q;

        r->stream = json_stream_free(r->stream);
        r->stream_result = 0;
        r->stream_fault = FAULT_NULL;
        r->heard = false;
        q = json_stream_new(list ? JSON_STREAM_LIST : JSON_STREAM_VALUES, r->max_object,
                            list ? on_list_value : on_watch_value, r, &r->stream);
        if (q == 0)
                q = kube_call(r->client, &request, done, r, &r->call);
        free(path);
        return q;
}

static void begin_watch(Reflector *r);
static void begin_page(Reflector *r);

static void begin_list(Reflector *r) {
        r->relist = false;
        r->synced = false;
        free(r->next_page);
        r->next_page = NULL;
        r->handler.on_list_begin(r->userdata);
        begin_page(r);
}

static void report(Reflector *r, const KubeReply *reply) {
        const Fault *fault = r->stream_fault.text[0] ? &r->stream_fault : &reply->fault;

        if (fault->text[0])
                trouble(r, fault);
}

static void on_page(void *userdata, const KubeReply *reply) {
        Reflector *r = userdata;
        Fault fault = FAULT_NULL;

        r->call = NULL;
        if (reply->outcome == KUBE_DONE && reply->status == 200 && r->stream_result == 0 &&
            json_stream_finish(r->stream, &fault) == 0 && r->version) {
                if (r->next_page && r->next_page[0]) {
                        begin_page(r);
                        return;
                }
                r->attempt = 0;
                r->synced = true;
                r->handler.on_list_end(r->userdata);
                begin_watch(r);
                return;
        }
        if (fault.text[0])
                trouble(r, &fault);
        else
                report(r, reply);
        wait_then(r, true, reply->retry_after);
}

static void begin_page(Reflector *r) {
        _cleanup_free_ char *token = r->next_page ? curl_easy_escape(NULL, r->next_page, 0) : NULL;
        char *path;

        set_state(r, REFLECTOR_LISTING);
        if (asprintf(&path, "%s?limit=%u%s%s%s%s", r->path, r->page, token && token[0] ? "&continue=" : "",
                     token ? token : "", r->selector ? "&" : "", r->selector ? r->selector : "") < 0 ||
            begin_call(r, path, 0, 0, on_page) < 0)
                wait_then(r, true, 0);
}

static void on_watch_end(void *userdata, const KubeReply *reply) {
        Reflector *r = userdata;

        r->call = NULL;
        /* A watch that ran its time ends with 200 and no remark. A line that was cut is read again on resume. One that
         * ends before anything was heard may end so at once again: it waits. */
        if (reply->outcome == KUBE_DONE && reply->status == 410)
                r->relist = true;
        if (reply->outcome == KUBE_DONE && reply->status == 200 && r->stream_result == 0) {
                if (!r->relist && r->heard && json_stream_finish(r->stream, NULL) == 0) {
                        begin_watch(r);
                        return;
                }
        } else
                report(r, reply);
        if (r->stream_result > 0)
                r->relist = true; /* bytes that are no watch: do not read them again */
        wait_then(r, r->relist, reply->retry_after);
}

static void begin_watch(Reflector *r) {
        unsigned seconds =
                WATCH_SECONDS_MIN + (unsigned) (clock_nsec(CLOCK_MONOTONIC) / 1000 % WATCH_SECONDS_MIN);
        char *path;

        set_state(r, REFLECTOR_WATCHING);
        if (asprintf(&path, "%s?watch=true&allowWatchBookmarks=true&resourceVersion=%s&timeoutSeconds=%u%s%s",
                     r->path, r->version, seconds, r->selector ? "&" : "",
                     r->selector ? r->selector : "") < 0 ||
            begin_call(r, path, UINT64_MAX, (seconds + WATCH_IDLE_SLACK) * USEC_PER_SEC, on_watch_end) < 0)
                wait_then(r, false, 0);
}

static int on_again(sd_event_source *source, uint64_t usec, void *userdata) {
        Reflector *r = userdata;

        if (r->relist || !r->synced)
                begin_list(r);
        else
                begin_watch(r);
        return 0;
}

/* ---- life ---- */

int reflector_new(KubeClient *client, const ReflectorOptions *options, const ReflectorHandler *handler,
                  void *userdata, Reflector **ret) {
        _cleanup_(reflector_freep) Reflector *r = calloc(1, sizeof *r);
        int q;

        if (!r)
                return -ENOMEM;
        r->client = client;
        r->handler = *handler;
        r->userdata = userdata;
        r->page = options->page ? options->page : PAGE_DEFAULT;
        r->max_object = options->max_object ? options->max_object : OBJECT_DEFAULT;
        r->path = str_dup(str_from(options->path));
        r->selector = options->selector ? str_dup(str_from(options->selector)) : NULL;
        if (!r->path || (options->selector && !r->selector))
                return -ENOMEM;
        /* Also the first list starts from the loop, so that the owner has its pointer before it is called. */
        q = sd_event_add_time_relative(kube_client_event(client), &r->timer, CLOCK_MONOTONIC, 0, 1, on_again,
                                       r);
        if (q < 0)
                return q;
        *ret = TAKE_PTR(r);
        return 0;
}

Reflector *reflector_free(Reflector *r) {
        if (!r)
                return NULL;
        kube_call_free(r->call);
        sd_event_source_disable_unref(r->timer);
        json_stream_free(r->stream);
        free(r->path);
        free(r->selector);
        free(r->version);
        free(r->next_page);
        free(r);
        return NULL;
}

bool reflector_in_sync(const Reflector *r) {
        return r->synced;
}
