/* SPDX-License-Identifier: Apache-2.0 */
#include "local/apiserver/store-internal.h"

#include "net/http/http_stream.h"

/* Events are sent in pieces: a stream is filled up to STREAM_ROOM, and again when that is sent. */

enum {
        STREAM_ROOM = 256 * 1024,
        BOOKMARK_SEC = 60, /* the API server's interval */
        TIMEOUT_DEFAULT_SEC = 3600,
        TIMEOUT_MAX_SEC = 24 * 3600,
        TIMER_SLACK_USEC = 10000,
};

struct StoreStream {
        Store *store;
        StoreStream *next, **link;
        HttpStream *http;
        StoreWatch watch;
        char *path; /* the request's path, to match faults */
        sd_event_source *timeout, *bookmark;
};

static void stream_free(StoreStream *t) {
        *t->link = t->next;
        if (t->next)
                t->next->link = t->link;
        sd_event_source_disable_unref(t->timeout);
        sd_event_source_disable_unref(t->bookmark);
        store_watch_done(&t->watch);
        free(t->path);
        free(t);
}

static void on_stream_closed(void *userdata) {
        stream_free(userdata);
}

static void stream_cut(StoreStream *t) {
        http_stream_cut(t->http);
        stream_free(t);
}

/* Sends half a line and closes the connection, as a crash of the server would. */
static void stream_cut_in_line(StoreStream *t, Str lines) {
        const char *end = memchr(lines.data, '\n', lines.len);
        size_t n = end ? (size_t) (end - lines.data) / 2 : lines.len / 2;

        /* the connection is cut in either case */
        (void) http_stream_write(t->http, (Str){lines.data, n});
        stream_cut(t);
}

static void stream_send(StoreStream *t, Buf *out) {
        StoreFault fault;

        if (out->len == 0 && !t->watch.ended)
                return;
        if (out->len > 0 && store_faults_take(&t->store->faults, "GET", t->path, true, &fault)) {
                stream_cut_in_line(t, buf_str(out));
                return;
        }
        if (buf_result(out) < 0 || http_stream_write(t->http, buf_str(out)) < 0) {
                stream_cut(t);
                return;
        }
        if (t->watch.ended) {
                http_stream_end(t->http);
                stream_free(t);
        }
}

static void stream_pump(StoreStream *t) {
        _cleanup_buf_ Buf out = BUF_NULL;
        size_t queued = http_stream_queued(t->http);

        if (queued >= STREAM_ROOM)
                return; /* on_drain calls this again */
        store_watch_read(&t->watch, &out, STREAM_ROOM - queued);
        stream_send(t, &out);
}

static void on_drain(void *userdata) {
        stream_pump(userdata);
}

void store_streams_pump(Store *s) {
        StoreStream *next;

        for (StoreStream *t = s->streams; t; t = next) {
                next = t->next;
                stream_pump(t);
        }
}

static int on_bookmark(sd_event_source *source, uint64_t usec, void *userdata) {
        _cleanup_buf_ Buf out = BUF_NULL;
        StoreStream *t = userdata;
        int r;

        r = sd_event_source_set_time_relative(source, BOOKMARK_SEC * USEC_PER_SEC);
        if (r >= 0)
                r = sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        store_watch_bookmark(&t->watch, &out);
        if (buf_result(&out) == 0 && out.len > 0)
                (void) http_stream_write(t->http, buf_str(&out)); /* a lost bookmark does no harm */
        return r;
}

/* The client's timeout has passed: sends the remaining events, a bookmark to resume from, and a
 * clean end. */
static int on_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        _cleanup_buf_ Buf out = BUF_NULL;
        StoreStream *t = userdata;

        store_watch_read(&t->watch, &out, STREAM_ROOM);
        store_watch_bookmark(&t->watch, &out);
        t->watch.ended = true;
        stream_send(t, &out);
        return 0;
}

static int stream_start_timers(StoreStream *t) {
        uint64_t seconds = t->watch.timeout;
        int r;

        if (seconds == 0)
                seconds = TIMEOUT_DEFAULT_SEC;
        if (seconds > TIMEOUT_MAX_SEC)
                seconds = TIMEOUT_MAX_SEC;
        r = sd_event_add_time_relative(t->store->event, &t->timeout, CLOCK_MONOTONIC, seconds * USEC_PER_SEC,
                                       TIMER_SLACK_USEC, on_timeout, t);
        if (r < 0 || !t->watch.bookmarks)
                return r;
        return sd_event_add_time_relative(t->store->event, &t->bookmark, CLOCK_MONOTONIC,
                                          BOOKMARK_SEC * USEC_PER_SEC, TIMER_SLACK_USEC, on_bookmark, t);
}

void store_stream_new(Store *s, HttpExchange *x, const char *path, StoreWatch *watch) {
        StoreStream *t = calloc(1, sizeof *t);

        if (!t) {
                store_watch_done(watch);
                http_exchange_cut(x);
                return;
        }
        t->store = s;
        t->watch = *watch;
        t->link = &s->streams;
        t->next = s->streams;
        if (t->next)
                t->next->link = &t->next;
        s->streams = t;
        t->path = str_dup(str_from(path));
        if (!t->path || stream_start_timers(t) < 0) {
                http_exchange_cut(x);
                stream_free(t);
                return;
        }
        t->http = http_stream_begin(x, 200, "application/json", on_stream_closed, t);
        if (!t->http) {
                stream_free(t);
                return;
        }
        http_stream_on_drain(t->http, on_drain);
        stream_pump(t);
}
