/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/reflector.h"

#include <errno.h>
#include <inttypes.h>

#include "kube/escape.h"
#include "kube/random.h"
#include "kube/watch_decoder.h"

/* When a call has ended, two questions decide what is next. Does the server still know our
 * resourceVersion? Then the watch continues from it, else a list begins. Was the end a failure?
 * Then a wait comes first, longer each time. */

enum {
        PAGE_DEFAULT = 500,
        MAX_OBJECT_DEFAULT = 8 * 1024 * 1024, /* etcd accepts 1.5 MiB by default */
        LIST_TIMEOUT_SEC = 120,
        LIST_IDLE_SEC = 30,
        /* the shortest timeout asked of a watch; spread, so that not all end together */
        WATCH_MIN_SEC = 300,
        WATCH_MAX_SEC = 600,
        BACKOFF_MSEC = 500,
        BACKOFF_CAP_SEC = 30,
        IDLE_SEC = 150,
        /* a watch that ends sooner without an event has failed, whatever its status */
        SHORT_WATCH_SEC = 1,
};

typedef enum ReflectorState {
        REFLECTOR_LISTING,
        REFLECTOR_WATCHING,
        REFLECTOR_WAITING_TO_LIST,
        REFLECTOR_WAITING_TO_WATCH,
} ReflectorState;

/* What the sink returns to stop its decoder; distinct from the decoder's own positive results. */
enum { SINK_FREED = 100, SINK_EXPIRED, SINK_ERROR };

struct Reflector {
        KubeClient *client;
        char *path, *selector;
        ReflectorOptions options; /* defaults filled in */
        ReflectorHandler handler;
        void *userdata;

        ReflectorState state;
        KubeCall *call;
        WatchDecoder *decoder;
        sd_event_source *timer;
        Buf version;   /* resourceVersion from which the watch continues */
        Buf continue_; /* continue token of the list in progress */
        bool begun;    /* on_list_begin was called for it */
        bool listed;   /* the view is complete */
        bool behind;   /* the watch broke, and no new one is established */
        usec_t heard;  /* the last event, bookmark or page of a list */

        /* of the current call */
        usec_t began;
        uint64_t n_events;
        int verdict; /* result of the decoder */
        Fault fault;
        usec_t retry_after;

        unsigned attempt; /* failures in a row */
        unsigned expired; /* watches in a row that expired before their first event */

        unsigned depth; /* calls of handlers on the stack */
        bool doomed;
};

static void list_page(Reflector *r);
static void watch_objects(Reflector *r);

/* ---- the end of a reflector ---- */

static void destroy_reflector(Reflector *r) {
        (void) kube_call_free(r->call);        /* always NULL */
        (void) watch_decoder_free(r->decoder); /* always NULL */
        sd_event_source_disable_unref(r->timer);
        buf_done(&r->version);
        buf_done(&r->continue_);
        free(r->path);
        free(r->selector);
        free(r);
}

static void enter_callback(Reflector *r) {
        r->depth++;
}

static void leave_callback(Reflector *r) {
        if (--r->depth == 0 && r->doomed)
                destroy_reflector(r);
}

Reflector *reflector_free(Reflector *r) {
        if (!r)
                return NULL;
        if (r->depth == 0) {
                destroy_reflector(r);
                return NULL;
        }
        /* The client may be gone when the callback returns. */
        r->doomed = true;
        r->call = kube_call_free(r->call);
        r->timer = sd_event_source_disable_unref(r->timer);
        return NULL;
}

bool reflector_in_sync(const Reflector *r) {
        return r->listed && !r->behind;
}

usec_t reflector_heard(const Reflector *r) {
        return r->heard;
}

/* ---- failures ---- */

static void report_trouble(Reflector *r, const Fault *fault) {
        if (!r->doomed && r->handler.on_trouble)
                r->handler.on_trouble(r->userdata, fault);
}

static void wait_to(Reflector *r, ReflectorState state) {
        usec_t wait = kube_backoff(r->attempt, r->options.backoff, r->options.backoff_cap, r->retry_after);

        r->attempt++;
        r->state = state;
        /* fails only for a dead source */
        if (sd_event_source_set_time_relative(r->timer, wait) >= 0)
                (void) sd_event_source_set_enabled(r->timer, SD_EVENT_ONESHOT);
}

static void fail_into(Reflector *r, ReflectorState next, const Fault *fault) {
        r->behind = true;
        report_trouble(r, fault);
        if (!r->doomed)
                wait_to(r, next);
}

static void begin_again(Reflector *r) {
        buf_clear(&r->continue_);
        r->begun = false;
        r->listed = false;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Reflector *r = userdata;

        enter_callback(r);
        if (r->state == REFLECTOR_WAITING_TO_LIST)
                list_page(r);
        else
                watch_objects(r);
        leave_callback(r);
        return 0;
}

/* ---- calls ---- */

static int on_data(void *userdata, Str bytes) {
        Reflector *r = userdata;
        int verdict = SINK_FREED;

        enter_callback(r);
        if (r->state == REFLECTOR_WATCHING)
                /* the server accepted the version and sends what follows it */
                r->behind = false;
        verdict = r->verdict = watch_decoder_feed(r->decoder, bytes, &r->fault);
        leave_callback(r); /* r may be gone */
        return verdict;
}

/* ---- lists ---- */

static int too_long(Reflector *r) {
        Fault fault;

        if (r->handler.on_passed_over)
                r->handler.on_passed_over(r->userdata);
        (void) fault_set(&fault, 0, "GET %s: an object of more than %zu bytes is passed over", r->path,
                         r->options.max_object);
        report_trouble(r, &fault);
        return r->doomed ? SINK_FREED : 0;
}

static int on_listed(void *userdata, const WatchEvent *event) {
        Reflector *r = userdata;

        r->n_events++;
        if (event->type == WATCH_TOO_LONG)
                return too_long(r);
        r->handler.on_object(r->userdata, REFLECTOR_LISTED, event->object);
        return r->doomed ? SINK_FREED : 0;
}

static void list_finished(Reflector *r) {
        begin_again(r); /* the list starts over */
        r->listed = true;
        r->behind = false;
        /* a server that expires every version at once must not make us list in a loop */
        r->attempt = r->expired;
        r->handler.on_list_end(r->userdata);
        if (!r->doomed)
                watch_objects(r);
}

static void page_finished(Reflector *r) {
        Str next = watch_decoder_continue(r->decoder);

        r->heard = clock_monotonic_usec();
        buf_clear(&r->version);
        buf_append_str(&r->version, watch_decoder_resource_version(r->decoder));
        buf_clear(&r->continue_);
        buf_append_str(&r->continue_, next);
        if (buf_result(&r->version) < 0 || buf_result(&r->continue_) < 0) {
                begin_again(r);
                wait_to(r, REFLECTOR_WAITING_TO_LIST);
        } else if (next.len > 0)
                list_page(r);
        else
                list_finished(r);
}

/* Handles a failed page. A later one that delivered nothing may be requested again. Otherwise, or
 * when its token is refused (410: compacted meanwhile), the list starts over. */
static void page_failed(Reflector *r, const KubeReply *reply) {
        if (r->continue_.len == 0 || r->n_events > 0 || !kube_reply_is_transient(reply))
                begin_again(r);
        fail_into(r, REFLECTOR_WAITING_TO_LIST, &reply->fault);
}

static void explain_fault(Reflector *r, const char *verb) {
        if (r->verdict < 0)
                (void) fault_set(&r->fault, 0, "%s", strerror(-r->verdict));
        (void) fault_wrap(&r->fault, 0, "%s %s", verb, r->path);
}

/* Reports a page that the decoder or the sink refused. The list starts over after a wait. */
static void page_refused(Reflector *r) {
        explain_fault(r, "list");
        begin_again(r);
        fail_into(r, REFLECTOR_WAITING_TO_LIST, &r->fault);
}

static bool is_success(const KubeReply *reply) {
        return reply->outcome == KUBE_DONE && reply->status >= 200 && reply->status <= 299;
}

static void on_page(void *userdata, const KubeReply *reply) {
        Reflector *r = userdata;

        enter_callback(r);
        r->call = NULL;
        r->retry_after = reply->retry_after;
        if (r->verdict == 0 && is_success(reply))
                r->verdict = watch_decoder_finish(r->decoder, &r->fault);
        if (r->verdict != 0)
                page_refused(r);
        else if (is_success(reply))
                page_finished(r);
        else
                page_failed(r, reply);
        leave_callback(r);
}

/* ---- watches ---- */

static ReflectorEvent event_of(WatchType type) {
        return type == WATCH_ADDED      ? REFLECTOR_ADDED
               : type == WATCH_MODIFIED ? REFLECTOR_MODIFIED
                                        : REFLECTOR_DELETED;
}

/* Takes {"type":"ERROR"}, the last line of a watch: a status that the head could no longer
 * carry. */
static int on_error(Reflector *r, const KubeStatus *status) {
        bool gone = status->code == 410 || str_eq(status->reason, STR("Expired")) ||
                    str_eq(status->reason, STR("Gone"));

        if (status->retry_after_sec > 0 && status->retry_after_sec < 3600)
                r->retry_after = (usec_t) status->retry_after_sec * USEC_PER_SEC;
        return fault_set(&r->fault, gone ? SINK_EXPIRED : SINK_ERROR, "watch %s: %" PRId64 " %.*s: %.*s",
                         r->path, status->code, STR_CUT(status->reason, 64), STR_CUT(status->message, 256));
}

static int on_event(void *userdata, const WatchEvent *event) {
        Reflector *r = userdata;

        if (event->type == WATCH_ERROR)
                return on_error(r, &event->status);
        r->n_events++;
        r->heard = clock_monotonic_usec();
        r->expired = 0;
        if (event->type == WATCH_TOO_LONG)
                return too_long(r);
        if (event->type != WATCH_BOOKMARK)
                r->handler.on_object(r->userdata, event_of(event->type), event->object);
        if (r->doomed)
                return SINK_FREED;
        if (event->resource_version.len == 0)
                return 0;
        buf_clear(&r->version);
        buf_append_str(&r->version, event->resource_version);
        return buf_result(&r->version);
}

static void version_expired(Reflector *r, const Fault *fault) {
        if (r->n_events == 0)
                r->expired++;
        begin_again(r);
        fail_into(r, REFLECTOR_WAITING_TO_LIST, fault);
}

/* Whether only a list can resolve the refusal: the resourceVersion is no longer valid. 504 is "too
 * large resource version": the server was restored from a backup. */
static bool wants_list(const KubeReply *reply) {
        if (reply->outcome != KUBE_DONE)
                return false;
        switch (reply->status) {
        case 401:
        case 403:
        case 408:
        case 429:
                return false;
        case 504:
                return true;
        default:
                return reply->status >= 400 && reply->status <= 499;
        }
}

/* Handles the end of a watch with well-formed text. */
static void watch_ended(Reflector *r) {
        usec_t lived = clock_monotonic_usec() - r->began;
        Fault fault;

        if (r->n_events > 0 || lived >= SHORT_WATCH_SEC * USEC_PER_SEC) {
                watch_objects(r);
                return;
        }
        (void) fault_set(&fault, 0, "watch %s: ended at once", r->path);
        fail_into(r, REFLECTOR_WAITING_TO_WATCH, &fault);
}

static void watch_failed(Reflector *r, const KubeReply *reply) {
        if (wants_list(reply))
                version_expired(r, &reply->fault);
        else
                fail_into(r, REFLECTOR_WAITING_TO_WATCH, &reply->fault);
}

/* Whether an ERROR may come again with each watch from our resourceVersion: it was the first line
 * after another failure, and names no time to wait. An event that the server cannot read, for one,
 * is in the way of all later ones (client-go lists after each ERROR but 429). */
static bool is_stuck(const Reflector *r) {
        return r->n_events == 0 && r->attempt > 0 && r->retry_after == 0;
}

/* Handles a watch that the decoder stopped: its reason counts more than the outcome of the call. */
static void watch_stopped(Reflector *r) {
        if (r->verdict == SINK_ERROR && !is_stuck(r))
                fail_into(r, REFLECTOR_WAITING_TO_WATCH, &r->fault);
        else if (r->verdict == SINK_EXPIRED || r->verdict == SINK_ERROR)
                version_expired(r, &r->fault);
        else {
                explain_fault(r, "watch");
                version_expired(r, &r->fault); /* a resumed watch would fail at the same object */
        }
}

static void on_watch_done(void *userdata, const KubeReply *reply) {
        Reflector *r = userdata;

        enter_callback(r);
        r->call = NULL;
        r->retry_after = r->retry_after > 0 ? r->retry_after : reply->retry_after;
        if (r->n_events > 0 || clock_monotonic_usec() - r->began > r->options.backoff_cap)
                r->attempt = 0;
        if (r->verdict != 0)
                watch_stopped(r);
        else if (!is_success(reply))
                watch_failed(r, reply);
        else if (watch_decoder_finish(r->decoder, &r->fault) == 0)
                watch_ended(r);
        else {
                explain_fault(r, "watch");
                fail_into(r, REFLECTOR_WAITING_TO_WATCH, &r->fault);
        }
        leave_callback(r);
}

/* ---- requests ---- */

/* Makes the decoder for a list or a watch. False: out of memory; a timer tries again. */
static bool prepare_decoder(Reflector *r, WatchKind kind) {
        r->decoder = watch_decoder_free(r->decoder);
        r->began = clock_monotonic_usec();
        r->n_events = 0;
        r->verdict = 0;
        r->retry_after = 0;
        r->fault = FAULT_NULL;
        return watch_decoder_new(kind, r->options.max_object, kind == WATCH_KIND_LIST ? on_listed : on_event,
                                 r, &r->decoder) == 0;
}

static bool start_request(Reflector *r, Buf *path, usec_t timeout, usec_t idle, KubeDone done) {
        KubeRequest request = {.method = "GET", .timeout = timeout, .idle_timeout = idle, .on_data = on_data};

        if (r->selector)
                buf_appendf(path, "&%s", r->selector);
        if (buf_result(path) < 0)
                return false;
        request.path = path->data;
        return kube_call(r->client, &request, done, r, &r->call) == 0;
}

/* The list begins before it is asked for: what the owner writes from here on may be newer than the
 * answer. */
static bool begin_list(Reflector *r) {
        r->state = REFLECTOR_LISTING;
        if (!r->begun) {
                r->begun = true;
                r->handler.on_list_begin(r->userdata);
        }
        return !r->doomed;
}

static void list_page(Reflector *r) {
        _cleanup_buf_ Buf path = BUF_NULL;

        if (!begin_list(r))
                return;
        buf_appendf(&path, "%s?limit=%u", r->path, r->options.page);
        if (r->continue_.len > 0) {
                buf_append_str(&path, STR("&continue="));
                kube_url_escape(&path, buf_str(&r->continue_));
        }
        if (!prepare_decoder(r, WATCH_KIND_LIST) ||
            !start_request(r, &path, LIST_TIMEOUT_SEC * USEC_PER_SEC, LIST_IDLE_SEC * USEC_PER_SEC, on_page))
                wait_to(r, REFLECTOR_WAITING_TO_LIST);
}

static void watch_objects(Reflector *r) {
        _cleanup_buf_ Buf path = BUF_NULL;
        uint64_t seconds = WATCH_MIN_SEC + random_up_to(WATCH_MAX_SEC - WATCH_MIN_SEC);

        r->state = REFLECTOR_WATCHING;
        buf_appendf(&path,
                    "%s?watch=true&allowWatchBookmarks=true&timeoutSeconds=%" PRIu64 "&resourceVersion=",
                    r->path, seconds);
        kube_url_escape(&path, buf_str(&r->version));
        if (!prepare_decoder(r, WATCH_KIND_WATCH) ||
            !start_request(r, &path, KUBE_NO_TIMEOUT, r->options.idle, on_watch_done))
                wait_to(r, REFLECTOR_WAITING_TO_WATCH);
}

static ReflectorOptions with_defaults(const ReflectorOptions *options) {
        ReflectorOptions o = *options;

        if (o.page == 0)
                o.page = PAGE_DEFAULT;
        if (o.max_object == 0)
                o.max_object = MAX_OBJECT_DEFAULT;
        if (o.backoff == 0)
                o.backoff = BACKOFF_MSEC * USEC_PER_MSEC;
        if (o.backoff_cap == 0)
                o.backoff_cap = BACKOFF_CAP_SEC * USEC_PER_SEC;
        if (o.idle == 0)
                o.idle = IDLE_SEC * USEC_PER_SEC;
        return o;
}

int reflector_new(KubeClient *client, const ReflectorOptions *options, const ReflectorHandler *handler,
                  void *userdata, Reflector **ret) {
        _cleanup_(reflector_freep) Reflector *r = calloc(1, sizeof *r);
        int k;

        if (!r)
                return -ENOMEM;
        r->client = client;
        r->options = with_defaults(options);
        r->handler = *handler;
        r->userdata = userdata;
        r->path = str_dup(str_from(options->path));
        r->selector = options->selector ? str_dup(str_from(options->selector)) : NULL;
        if (!r->path || (options->selector && !r->selector))
                return -ENOMEM;
        k = sd_event_add_time(kube_client_event(client), &r->timer, CLOCK_MONOTONIC, 0, 1, on_timer, r);
        if (k < 0)
                return -ENOMEM;
        r->state = REFLECTOR_WAITING_TO_LIST; /* the timer is due at once */
        *ret = TAKE_PTR(r);
        return 0;
}
