/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/page/page_viewers.h"

#include <assert.h>
#include <errno.h>

#include "base/log.h"
#include "net/http/http_stream.h"

#define ROUND_EVERY (1 * USEC_PER_SEC)

enum {
        BEHIND_MAX = 64 << 10, /* unread bytes beyond which a viewer gets no more differences */
        SLOW_ROUNDS_MAX = 15,  /* rounds in a row in which a viewer had unread bytes; then it is dropped */
        /* rounds without a difference; then an event shows both sides that the other is there */
        QUIET_ROUNDS_MAX = 15,
};

typedef struct Viewer {
        PageViewers *viewers;
        HttpStream *stream; /* NULL: the place is free */
        bool stale;         /* a difference was left out: send the whole state next */
        unsigned slow;      /* rounds in a row with unread bytes */
} Viewer;

struct PageViewers {
        PageState *state;
        sd_event_source *timer, *steps;
        Viewer list[PAGE_VIEWERS_MAX];
        size_t n;
        bool told;      /* a round has ended since the first viewer came */
        bool in_round;  /* page_state_step() has more to do */
        unsigned quiet; /* rounds in a row without a difference */
};

static void on_closed(void *userdata) {
        Viewer *viewer = userdata;
        PageViewers *v = viewer->viewers;

        *viewer = (Viewer){.viewers = v};
        if (--v->n > 0)
                return;
        /* these fail only for sources that do not exist */
        (void) sd_event_source_set_enabled(v->timer, SD_EVENT_OFF);
        (void) sd_event_source_set_enabled(v->steps, SD_EVENT_OFF);
        v->in_round = v->told = false;
        page_state_clear(v->state);
}

static void drop_viewer(Viewer *viewer, const char *why) {
        log_info("page: a viewer is dropped: %s", why);
        http_stream_abort(TAKE_PTR(viewer->stream));
        on_closed(viewer);
}

static void send_text(Viewer *viewer, Str text) {
        if (http_stream_write(viewer->stream, text) < 0)
                drop_viewer(viewer, "out of memory");
}

static void send_whole(Viewer *viewer) {
        _cleanup_buf_ Buf out = BUF_NULL;

        page_state_whole(viewer->viewers->state, &out);
        if (buf_result(&out) < 0) {
                drop_viewer(viewer, "out of memory");
                return;
        }
        viewer->stale = false;
        send_text(viewer, buf_str(&out));
}

/* Sends the viewer what it lacks. difference: "" when nothing changed. */
static void tell_viewer(Viewer *viewer, Str difference) {
        size_t unread = http_stream_unread(viewer->stream);

        viewer->slow = unread > 0 ? viewer->slow + 1 : 0;
        viewer->stale |= unread > BEHIND_MAX && !str_is_empty(difference);
        if (viewer->slow > SLOW_ROUNDS_MAX)
                drop_viewer(viewer, "it does not read");
        else if (viewer->stale && unread == 0)
                send_whole(viewer);
        else if (!viewer->stale && !str_is_empty(difference))
                send_text(viewer, difference);
}

static void tell_all(PageViewers *v) {
        _cleanup_buf_ Buf difference = BUF_NULL;

        page_state_difference(v->state, &difference);
        if (buf_result(&difference) < 0) { /* all viewers miss this difference */
                buf_done(&difference);
                for (size_t i = 0; i < PAGE_VIEWERS_MAX; i++)
                        v->list[i].stale = true;
        }
        v->told = true;
        v->quiet = difference.len > 0 ? 0 : v->quiet + 1;
        if (v->quiet >= QUIET_ROUNDS_MAX) {
                v->quiet = 0;
                buf_append_str(&difference, STR("event: alive\ndata: {}\n\n"));
        }
        for (size_t i = 0; i < PAGE_VIEWERS_MAX; i++)
                if (v->list[i].stream)
                        tell_viewer(&v->list[i], buf_str(&difference));
}

static int round_begin(PageViewers *v) {
        v->in_round = true;
        page_state_begin(v->state);
        return sd_event_source_set_enabled(v->steps, SD_EVENT_ON);
}

/* One step of the round, when nothing else in the loop is ready (idle priority). */
static int on_step(sd_event_source *source, void *userdata) {
        PageViewers *v = userdata;
        int r;

        if (page_state_step(v->state))
                return 0;
        v->in_round = false;
        r = sd_event_source_set_enabled(v->steps, SD_EVENT_OFF);
        tell_all(v);
        return r;
}

static int timer_set(PageViewers *v) {
        int r = sd_event_source_set_time_relative(v->timer, ROUND_EVERY);

        return r < 0 ? r : sd_event_source_set_enabled(v->timer, SD_EVENT_ONESHOT);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        PageViewers *v = userdata;
        int r = timer_set(v);

        if (r < 0 || v->in_round)
                return r;
        return round_begin(v);
}

int page_viewers_new(sd_event *event, PageState *state, PageViewers **ret) {
        _cleanup_free_ PageViewers *v = calloc(1, sizeof *v);
        int r;

        if (!v)
                return -ENOMEM;
        v->state = state;
        for (size_t i = 0; i < PAGE_VIEWERS_MAX; i++)
                v->list[i].viewers = v;
        r = sd_event_add_time_relative(event, &v->timer, CLOCK_MONOTONIC, ROUND_EVERY, 0, on_timer, v);
        if (r >= 0)
                r = sd_event_source_set_enabled(v->timer, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_defer(event, &v->steps, on_step, v);
        if (r >= 0)
                r = sd_event_source_set_enabled(v->steps, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_source_set_priority(v->steps, SD_EVENT_PRIORITY_IDLE);
        if (r < 0) {
                sd_event_source_disable_unref(v->timer);
                sd_event_source_disable_unref(v->steps);
                return r;
        }
        *ret = TAKE_PTR(v);
        return 0;
}

PageViewers *page_viewers_free(PageViewers *v) {
        if (!v)
                return NULL;
        assert(v->n == 0);
        sd_event_source_disable_unref(v->timer);
        sd_event_source_disable_unref(v->steps);
        free(v);
        return NULL;
}

bool page_viewers_is_full(const PageViewers *v) {
        return v->n == PAGE_VIEWERS_MAX;
}

/* The first viewer begins the rounds. A later one gets the state as told so far, or waits for the
 * first round with the others. */
void page_viewers_add(PageViewers *v, HttpExchange *x) {
        Viewer *viewer = v->list;
        HttpStream *stream;

        while (viewer->stream)
                viewer++;
        stream = http_stream_begin(x, 200, "text/event-stream", on_closed, viewer);
        if (!stream)
                return;
        *viewer = (Viewer){.viewers = v, .stream = stream, .stale = true};
        if (v->n++ > 0) {
                if (v->told)
                        send_whole(viewer);
                return;
        }
        v->quiet = 0;
        if (timer_set(v) < 0 || round_begin(v) < 0)
                drop_viewer(viewer, "the event loop is broken");
}
