/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/card_source.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "gpu/cards/card_table.h"
#include "gpu/cards/census.h"
#include "gpu/cards/child.h"
#include "gpu/cards/limit_queue.h"
#include "gpu/cards/nvml.h"
#include "gpu/cards/probe_report.h"

enum {
        /* killed children that have not ended; beyond this no child is started */
        DYING_MAX = 4,
        REPORTS_PER_TURN = 64, /* records per turn; then other sources of the loop run */
        /* while a card is in trouble, every tenth scan begins a new session, which may find it
         * again */
        FRESH_EVERY = 10,
        BACKOFF_STEPS = 60,
};

#define REAP_FIRST (1 * USEC_PER_MSEC)
#define REAP_MAX   (5 * USEC_PER_SEC)
#define TURN_MIN   (1 * USEC_PER_MSEC)
#define TURN_MAX   (1 * USEC_PER_SEC)

typedef enum SourceState {
        SOURCE_WAITING, /* no child: the timer starts one */
        SOURCE_ASKING,  /* the timer is the deadline of the answer */
        SOURCE_IDLE,    /* the timer starts the next scan */
} SourceState;

typedef struct Dying {
        pid_t pid;
        bool by_itself; /* we did not kill it, so its exit status is worth reporting */
} Dying;

struct CardSource {
        sd_event *event;
        CardSourceHandler handler;
        void *userdata;
        CardSourceOptions o; /* only the durations are set */
        ProbeOptions probe;
        char *library, *host_root, *ctl;

        SourceState state;
        CardChild child; /* none while WAITING */
        sd_event_source *io, *timer, *reaper, *once, *limits_timer;
        usec_t backoff, reap_pause;
        Dying dying[DYING_MAX];
        size_t n_dying;

        uint32_t request, scans_until_fresh;
        uint64_t session_base; /* number of sessions that earlier children had */
        uint64_t session;
        bool ready;        /* the current request: the library is initialised */
        bool fresh, again; /* the next scan needs a new session; begin it when this scan ends */
        CardScan scan;     /* cards received so far */
        CardTable known;
        CardFences fences; /* as last passed to on_fences */
        Census census;     /* without buffers when there is no on_usage */
        LimitQueue limits;
        uint64_t limits_session; /* session of the last call of on_session */

        CardList published;
        bool has_published, told_deaf, conf_compute, told_conf_compute;
        uint32_t told_total;
        char driver[NVML_TEXT_SIZE]; /* the version passed to on_driver; "": none */
        bool lockless;               /* passed to on_driver: its files cannot be locked */
        char told[sizeof((Fault *) NULL)->text];
};

static void start_child(CardSource *s);

/* --- telling ---------------------------------------------------------------------------------- */

static void report_trouble(CardSource *s, const char *format, ...) _printf_(2, 3);

static void report_trouble(CardSource *s, const char *format, ...) {
        Fault fault = FAULT_NULL;
        va_list args;

        va_start(args, format);
        /* the text is cut when it is too long */
        (void) vsnprintf(fault.text, sizeof fault.text, format, args);
        va_end(args);
        if (strcmp(fault.text, s->told) == 0)
                return;
        memcpy(s->told, fault.text, sizeof s->told);
        s->handler.on_trouble(s->userdata, &fault);
}

static void publish_list(CardSource *s) {
        CardList list;

        if (card_table_list(&s->known, &list) < 0) {
                report_trouble(s, "out of memory: the list of cards stays as it was");
                return;
        }
        if (s->has_published && card_list_eq(&list, &s->published)) {
                card_list_done(&list);
                return;
        }
        card_list_done(&s->published);
        s->published = list;
        s->has_published = true;
        s->handler.on_cards(s->userdata, &s->published);
}

static void publish_fences(CardSource *s) {
        CardFences now;

        if (!s->handler.on_fences)
                return;
        card_table_fences(&s->known, clock_monotonic_usec(),
                          clock_realtime_nsec() / NSEC_PER_USEC / USEC_PER_MSEC, &now);
        if (card_fences_near(&now, &s->fences))
                return;
        s->fences = now;
        s->handler.on_fences(s->userdata, &s->fences);
}

static void set_timer(CardSource *s, SourceState state, usec_t after) {
        s->state = state;
        /* Both fail only for a source that does not exist. */
        (void) sd_event_source_set_time(s->timer, clock_monotonic_usec() + after);
        (void) sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
}

/* --- the end of a child ----------------------------------------------------------------------- */

static void report_child_end(CardSource *s, int status) {
        if (status == -1)
                report_trouble(s, "the process that asks the driver has ended");
        else if (WIFSIGNALED(status))
                report_trouble(s, "the process that asks the driver was ended by signal %d (%s)",
                               WTERMSIG(status), strsignal(WTERMSIG(status)));
        else
                report_trouble(s, "the process that asks the driver ended by itself with status %d",
                               WEXITSTATUS(status));
}

static void reap_children(CardSource *s) {
        size_t kept = 0;

        for (size_t i = 0; i < s->n_dying; i++) {
                int status;

                if (!card_child_reap(s->dying[i].pid, &status))
                        s->dying[kept++] = s->dying[i];
                else if (s->dying[i].by_itself)
                        report_child_end(s, status);
        }
        s->n_dying = kept;
}

static int on_reap(sd_event_source *source, uint64_t usec, void *userdata) {
        CardSource *s = userdata;

        reap_children(s);
        if (s->n_dying == 0)
                return 0;
        s->reap_pause = s->reap_pause * 2 < REAP_MAX ? s->reap_pause * 2 : REAP_MAX;
        (void) sd_event_source_set_time(source, clock_monotonic_usec() + s->reap_pause);
        /* fails only for NULL */
        (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        return 0;
}

static void wait_for_end(CardSource *s, bool by_itself) {
        s->dying[s->n_dying++] = (Dying){s->child.pid, by_itself};
        s->reap_pause = REAP_FIRST;
        (void) sd_event_source_set_time(s->reaper, clock_monotonic_usec() + s->reap_pause);
        (void) sd_event_source_set_enabled(s->reaper, SD_EVENT_ONESHOT);
}

static void back_off(CardSource *s) {
        usec_t most = s->o.backoff * BACKOFF_STEPS;

        s->backoff = s->backoff == 0 ? s->o.backoff : s->backoff * 2;
        s->backoff = s->backoff < most ? s->backoff : most;
        set_timer(s, SOURCE_WAITING, s->backoff);
}

/* Ends the child, which is not used any more; the timer starts another one. */
static void drop_child(CardSource *s, bool by_itself) {
        s->io = sd_event_source_disable_unref(s->io);
        census_forget(&s->census); /* an incomplete census is dropped */
        card_child_kill(&s->child);
        wait_for_end(s, by_itself);
        s->session_base = s->session;
        back_off(s);
        limit_queue_fail(&s->limits);
}

/* --- requests --------------------------------------------------------------------------------- */

static void request_scan(CardSource *s) {
        ProbeRequest q = {.request = ++s->request, .fresh = s->fresh};

        s->fresh = s->again = s->ready = false;
        s->scan.n = 0;
        set_timer(s, SOURCE_ASKING, s->o.deadline);
        /* send() fails only when the child has ended, which the socket will report. */
        (void) send(s->child.fd, &q, sizeof q, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Arms the timer for the oldest request that waits. Its deadline begins when it is sent, also
 * behind others. It begins again where it passes during a scan, which has a deadline of its own. */
static void watch_limits(CardSource *s) {
        usec_t due = limit_queue_due(&s->limits);

        (void) sd_event_source_set_enabled(s->limits_timer, due > 0 ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
        if (due > 0) /* both fail only for a source that does not exist */
                (void) sd_event_source_set_time(s->limits_timer, due);
}

static int on_limits_late(sd_event_source *source, uint64_t usec, void *userdata) {
        CardSource *s = userdata;

        if (limit_queue_due(&s->limits) == 0)
                return 0;
        if (s->state == SOURCE_ASKING) {
                limit_queue_extend(&s->limits, clock_monotonic_usec() + s->o.deadline);
                watch_limits(s);
                return 0;
        }
        report_trouble(s, "the driver hangs: no answer about a memory limit");
        if (s->io)
                drop_child(s, false);
        return 0;
}

static void report_hung(CardSource *s) {
        double seconds = (double) s->o.deadline / (double) USEC_PER_SEC;

        if (!s->ready)
                report_trouble(s, "the driver hangs: no answer within %g s from its initialisation", seconds);
        else
                report_trouble(s, "the driver hangs: no answer within %g s about card %zu", seconds,
                               s->scan.n);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        CardSource *s = userdata;

        switch (s->state) {
        case SOURCE_WAITING:
                start_child(s);
                break;
        case SOURCE_ASKING:
                report_hung(s);
                drop_child(s, false);
                break;
        case SOURCE_IDLE:
                request_scan(s);
                break;
        }
        return 0;
}

/* --- answers ---------------------------------------------------------------------------------- */

/* A new session looks for a broken card at once, and after that only from time to time. On a driver
 * without persistence mode each new session sets up every other card anew. */
static void plan_next(CardSource *s) {
        if (!card_table_has_trouble(&s->known))
                s->scans_until_fresh = 1;
        else if (--s->scans_until_fresh == 0) {
                s->scans_until_fresh = FRESH_EVERY;
                s->fresh = true;
        }
        set_timer(s, SOURCE_IDLE, s->again ? 0 : s->o.rescan);
}

static void end_scan(CardSource *s, const ProbeReport *r) {
        s->scan.session = s->session;
        card_table_scan(&s->known, &s->scan, clock_monotonic_usec());
        s->backoff = 0;
        s->told[0] = '\0';
        if (r->number > CARDS_MAX && r->number != s->told_total)
                report_trouble(s, "the driver has %u cards; the first %d are used", r->number, CARDS_MAX);
        s->told_total = r->number;
        if (r->text[0] != '\0' && !s->told_deaf) {
                s->told_deaf = true;
                report_trouble(s,
                               "the driver tells of no XIDs (%s): a card counts as broken only when it does "
                               "not answer",
                               r->text);
        }
        if (s->conf_compute && !s->told_conf_compute) {
                s->told_conf_compute = true;
                report_trouble(s, "confidential computing is on: slices have not been tried with it");
        }
        plan_next(s);
        publish_fences(s);
        publish_list(s);
        if (s->handler.on_session && s->limits_session != s->session) {
                s->limits_session = s->session;
                s->handler.on_session(s->userdata);
        }
}

/* An unrequested report triggers a scan, which reads the details. */
static void look_again(CardSource *s) {
        if (s->state == SOURCE_IDLE)
                set_timer(s, SOURCE_IDLE, 0);
}

/* An XID that fences nothing causes no scan: a tenant could make us scan without end. */
static void take_xid(CardSource *s, const ProbeReport *r) {
        if (!card_table_xid(&s->known, r->uuid, r->value, s->session, clock_monotonic_usec()))
                return;
        publish_fences(s);
        publish_list(s); /* known cards have been published before */
        look_again(s);
}

static void take_census(CardSource *s, const ProbeReport *r) {
        CardCensus census;

        if (!census_end(&s->census, r, &census))
                return;
        census.came = clock_nsec(CLOCK_BOOTTIME) / NSEC_PER_USEC;
        s->handler.on_usage(s->userdata, &census);
}

static void take_ready(CardSource *s, const ProbeReport *r) {
        bool same = r->text[0] == '\0' || strncmp(r->text, s->driver, sizeof s->driver - 1) == 0;

        s->ready = true;
        s->conf_compute = r->value == 1;
        if (same && s->lockless == (r->number != 0))
                return;
        s->lockless = r->number != 0;
        if (!same)
                (void) snprintf(s->driver, sizeof s->driver, "%.*s", (int) sizeof s->driver - 1, r->text);
        if (s->handler.on_driver)
                s->handler.on_driver(s->userdata, s->driver, !s->lockless);
}

/* Adds the links to the card with that NVML index in this scan; false: there is none. */
static bool take_links(CardSource *s, const ProbeReport *r) {
        for (size_t i = 0; i < s->scan.n; i++)
                if (s->scan.seen[i].index == r->position) {
                        probe_report_links(r, &s->scan.seen[i]);
                        return true;
                }
        return false;
}

static bool take_answer(CardSource *s, const ProbeReport *r) {
        if (s->state != SOURCE_ASKING || r->request != s->request)
                return false;
        switch (r->kind) {
        case REPORT_CARD:
                if (s->scan.n == CARDS_MAX)
                        return false;
                probe_report_card(r, &s->scan.seen[s->scan.n++]);
                break;
        case REPORT_LINKS:
                if (!take_links(s, r))
                        return false;
                break;
        case REPORT_END:
                end_scan(s, r);
                return true;
        case REPORT_FAILED:
                report_trouble(s, "%s", r->text);
                /* a new process has neither an old library nor an old error */
                drop_child(s, false);
                return true;
        default: /* READY */
                take_ready(s, r);
                break;
        }
        set_timer(s, SOURCE_ASKING, s->o.deadline);
        return true;
}

static bool take_report(CardSource *s, const void *bytes, size_t n) {
        ProbeReport r;

        if (probe_report_read(bytes, n, &r) != 0)
                return false;
        s->session = s->session_base + r.session;
        if (r.kind == REPORT_XID)
                take_xid(s, &r);
        else if (r.kind == REPORT_ALARM)
                look_again(s);
        else if (r.kind == REPORT_LIMIT) {
                limit_queue_take(&s->limits, &r);
                watch_limits(s);
        } else if (r.kind == REPORT_PROCESS || r.kind == REPORT_TOTAL || r.kind == REPORT_USE ||
                   r.kind == REPORT_SPAN)
                census_take(&s->census, &r);
        else if (r.kind == REPORT_CENSUS)
                take_census(s, &r);
        else
                return take_answer(s, &r);
        return true;
}

static int on_report(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        CardSource *s = userdata;

        for (int i = 0; i < REPORTS_PER_TURN && s->io; i++) {
                /* one byte more than valid, to detect longer records */
                char bytes[sizeof(ProbeReport) + 1];
                ssize_t n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);

                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        return 0;
                if (n <= 0) {
                        drop_child(s, true);
                } else if (!take_report(s, bytes, (size_t) n)) {
                        report_trouble(s, "the process that asks the driver talks nonsense");
                        drop_child(s, false);
                }
        }
        return 0;
}

static void start_child(CardSource *s) {
        int r;

        reap_children(s);
        if (s->n_dying == DYING_MAX) {
                report_trouble(s, "the driver hangs: %d processes cannot be ended, and no more are started",
                               DYING_MAX);
                back_off(s);
                return;
        }
        r = card_child_start(&s->probe, &s->child);
        if (r < 0) {
                report_trouble(s, "no process to ask the driver: %s", strerror(-r));
                back_off(s);
                return;
        }
        r = sd_event_add_io(s->event, &s->io, s->child.fd, EPOLLIN, on_report, s);
        if (r < 0) {
                report_trouble(s, "no process to ask the driver: %s", strerror(-r));
                drop_child(s, false);
                return;
        }
        request_scan(s);
}

/* --- the object ------------------------------------------------------------------------------- */

static int on_simulated(sd_event_source *source, void *userdata) {
        CardSource *s = userdata;

        s->handler.on_cards(s->userdata, &s->published);
        return 0;
}

static void set_options(CardSource *s, const CardSourceOptions *o) {
        s->o.deadline = o->deadline > 0 ? o->deadline : 10 * USEC_PER_SEC;
        s->o.rescan = o->rescan > 0 ? o->rescan : 30 * USEC_PER_SEC;
        s->o.backoff = o->backoff > 0 ? o->backoff : USEC_PER_SEC;
        s->o.quiet = o->quiet > 0 ? o->quiet : 600 * USEC_PER_SEC;
        s->probe.library = s->library;
        s->probe.host_root = s->host_root;
        s->probe.ctl = s->ctl;
        if (s->census.usage)
                s->probe.census = o->census > TURN_MIN ? o->census : USEC_PER_SEC;
        s->probe.turn = s->o.rescan < TURN_MAX ? s->o.rescan : TURN_MAX;
        s->probe.turn = s->probe.turn > TURN_MIN ? s->probe.turn : TURN_MIN;
        s->scans_until_fresh = FRESH_EVERY; /* the first session is a new one */
        card_table_init(&s->known, s->o.quiet, o->known);
        if (!o->fences)
                return;
        s->fences = *o->fences;
        card_table_restore(&s->known, o->fences, clock_monotonic_usec(),
                           clock_realtime_nsec() / NSEC_PER_USEC / USEC_PER_MSEC);
}

static int copy_texts(CardSource *s, const CardSourceOptions *o) {
        Str root = str_from(o->host_root);

        while (root.len > 0 && root.data[root.len - 1] == '/')
                root.len--;
        s->host_root = str_dup(root);
        if (o->library)
                s->library = str_dup(str_from(o->library));
        s->ctl = str_dup(str_from(o->ctl ? o->ctl : "/dev/nvidiactl"));
        return s->host_root && s->ctl && (s->library || !o->library) ? 0 : -ENOMEM;
}

static int add_sources(CardSource *s) {
        int r;

        r = sd_event_add_time(s->event, &s->timer, CLOCK_MONOTONIC, 0, USEC_PER_MSEC, on_timer, s);
        if (r >= 0)
                r = sd_event_add_time(s->event, &s->reaper, CLOCK_MONOTONIC, 0, USEC_PER_MSEC, on_reap, s);
        if (r >= 0)
                r = sd_event_source_set_enabled(s->reaper, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_time(s->event, &s->limits_timer, CLOCK_MONOTONIC, 0, USEC_PER_MSEC,
                                      on_limits_late, s);
        if (r >= 0)
                r = sd_event_source_set_enabled(s->limits_timer, SD_EVENT_OFF);
        return r < 0 ? r : 0;
}

int card_source_new(sd_event *event, const CardSourceOptions *options, const CardSourceHandler *handler,
                    void *userdata, CardSource **ret) {
        _cleanup_(card_source_freep) CardSource *s = calloc(1, sizeof *s);
        int r;

        if (!s)
                return -ENOMEM;
        s->event = sd_event_ref(event);
        s->handler = *handler;
        s->userdata = userdata;
        s->child.fd = -1;
        r = copy_texts(s, options);
        if (r < 0)
                return r;
        if (handler->on_usage && !options->simulated)
                r = census_init(&s->census);
        if (r < 0)
                return r;
        set_options(s, options);
        if (options->simulated) {
                r = card_list_copy(options->simulated, &s->published);
                if (r == 0)
                        r = sd_event_add_defer(event, &s->once, on_simulated, s);
        } else {
                r = add_sources(s); /* the timer is due at once, in WAITING */
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

CardSource *card_source_free(CardSource *s) {
        int status;

        if (!s)
                return NULL;
        if (s->io) {
                sd_event_source_disable_unref(s->io);
                card_child_kill(&s->child);
                /* if it has not ended yet, init reaps it after the agent */
                (void) card_child_reap(s->child.pid, &status);
        }
        reap_children(s);
        sd_event_source_disable_unref(s->timer);
        sd_event_source_disable_unref(s->reaper);
        sd_event_source_disable_unref(s->once);
        sd_event_source_disable_unref(s->limits_timer);
        sd_event_unref(s->event);
        card_list_done(&s->published);
        census_done(&s->census);
        free(s->library);
        free(s->host_root);
        free(s->ctl);
        free(s);
        return NULL;
}

/* ---- limits ---- */

int card_source_limit(CardSource *s, const CardLimit *limit, CardLimitDone done, void *userdata,
                      uint32_t *ret_request) {
        ProbeRequest q = {.limit = *limit};
        int r;

        if (!card_source_is_ready(s))
                return -EAGAIN;
        r = limit_queue_add(&s->limits, done, userdata, clock_monotonic_usec() + s->o.deadline, &q.request);
        if (r < 0)
                return r;
        if (send(s->child.fd, &q, sizeof q, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
                limit_queue_cancel(&s->limits, q.request);
                /* the socket's buffer is full; if the child has ended, the socket reports it */
                return -EAGAIN;
        }
        watch_limits(s);
        *ret_request = q.request;
        return 0;
}

bool card_source_is_ready(const CardSource *s) {
        return s->io && s->limits_session > 0 && s->limits_session == s->session;
}

void card_source_cancel_limit(CardSource *s, uint32_t request) {
        limit_queue_cancel(&s->limits, request);
}

void card_source_rescan(CardSource *s) {
        if (s->once)
                return;
        s->fresh = s->again = true;
        if (s->state != SOURCE_ASKING)
                set_timer(s, s->state, 0);
}
