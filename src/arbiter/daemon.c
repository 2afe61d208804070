/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/daemon.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "arbiter/leased.h"
#include "arbiter/overrun_report.h"
#include "arbiter/slice_channel.h"
#include "arbiter/tunables.h"
#include "base/clock.h"
#include "slicedir/slicedir.h"

#define LOCK "arbiter"

enum { DAEMON_CARDS = 32, DAEMON_TENANTS = 1024, EVENTS = 64 };

typedef struct DaemonTenant { /* a tenant, and which slice it is */
        SliceChannel channel;
        char id[SLICEDIR_ID_SIZE];
        uint32_t number; /* of its directory */
        uint32_t card, tenant;
        bool rung, muted, seen;
        bool needs_sweep; /* it has rung, and nobody that we know has work: all rows are to be read, SWEEP_RUNG_NS after the last time */
} DaemonTenant;

typedef struct Card {
        char uuid[SLICE_UUID];
        Engine engine;
        uint64_t next; /* when it wants to be called */
        uint32_t n;
} Card;

typedef struct Daemon {
        const DaemonOptions *options;
        Slicedir slicedir;
        int lock, inotify, epoll;
        Leased leased;
        Card *cards[DAEMON_CARDS];
        DaemonTenant *tenants[DAEMON_TENANTS];
        uint32_t n_tenants;
        uint64_t next_scan, next_heartbeat;
        bool settling;
} Daemon;

static uint64_t now_nsec(void) {
        return clock_nsec(CLOCK_MONOTONIC);
}

static uint64_t min_u64(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

/* ---- cards and tenants ---- */

static int find_card(Daemon *d, const char *uuid, uint64_t now) {
        int room = -1;

        for (int i = 0; i < DAEMON_CARDS; i++) {
                if (d->cards[i] && strcmp(d->cards[i]->uuid, uuid) == 0)
                        return i;
                if (!d->cards[i] && room < 0)
                        room = i;
        }
        if (room < 0)
                return -1;
        d->cards[room] = calloc(1, sizeof(Card));
        if (!d->cards[room])
                return -1;
        (void) snprintf(d->cards[room]->uuid, SLICE_UUID, "%s", uuid);
        engine_init(&d->cards[room]->engine, now);
        if (d->options->overrun_limit > 0)
                d->cards[room]->engine.overrun_limit = d->options->overrun_limit;
        d->cards[room]->next = now;
        return room;
}

static void remove_tenant(Daemon *d, uint32_t at) {
        DaemonTenant *p = d->tenants[at];
        Card *card = d->cards[p->card];

        engine_remove(&card->engine, p->tenant);
        card->next = 0;
        if (--card->n == 0) {
                free(card);
                d->cards[p->card] = NULL;
        }
        slice_channel_done(&p->channel);
        free(p);
        d->tenants[at] = d->tenants[--d->n_tenants];
}

/* Whose counters are not open is never heard. */
static void ask_counters(Daemon *d, const DaemonTenant *p, int directory) {
        if (p->channel.counters < 0)
                leased_ask(&d->leased, directory, "counters");
}

static void watch_doorbell(Daemon *d, DaemonTenant *p) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = p};

        if (p->channel.doorbell >= 0 && !p->muted &&
            epoll_ctl(d->epoll, EPOLL_CTL_ADD, p->channel.doorbell, &event) < 0 && errno != EEXIST) {
                (void) close(p->channel.doorbell);
                p->channel.doorbell = -1; /* it is looked at now and then */
        }
}

/* Sums of an arbiter before us. */
static void take_over(EngineWindow *ret, const SliceSchedule *window) {
        ret->granted = atomic_load_explicit(&window->granted, memory_order_relaxed);
        ret->used = atomic_load_explicit(&window->used, memory_order_relaxed);
}

/* Whatever window an arbiter before us has opened is waited for. */
static bool add_to_engine(Daemon *d, DaemonTenant *p, uint64_t now) {
        TenantPolicy policy = tenant_policy(&p->channel.compute, &p->channel.request);
        const SliceSchedule *window = &p->channel.limits->schedule;
        int card = find_card(d, p->channel.uuid, now), tenant;
        TenantReport report;

        if (card < 0)
                return false;
        p->channel.window.number = atomic_load_explicit(&window->window, memory_order_relaxed) >> 1;
        tenant = engine_add(&d->cards[card]->engine, now, &policy, p->channel.window.number,
                            atomic_load_explicit(&window->seen, memory_order_relaxed) != 0);
        if (tenant < 0)
                return false;
        p->card = (uint32_t) card;
        p->tenant = (uint32_t) tenant;
        take_over(&d->cards[card]->engine.tenants[tenant].window, window);
        d->cards[card]->n++;
        d->cards[card]->next = 0;
        watch_doorbell(d, p);
        slice_channel_read(&p->channel, now, true, true, &report);
        engine_report(&d->cards[card]->engine, now, p->tenant, &report);
        return true;
}

static void add_tenant(Daemon *d, int directory, const char *id, uint32_t number, uint64_t now) {
        DaemonTenant *p = d->n_tenants < DAEMON_TENANTS ? calloc(1, sizeof *p) : NULL;
        int r;

        if (!p)
                return;
        r = slice_channel_open(directory, &p->channel);
        if (r != 0) {
                if (r == -EAGAIN)
                        leased_ask(&d->leased, directory, "limits");
                d->settling = true; /* half made, or none of ours */
                free(p);
                return;
        }
        ask_counters(d, p, directory);
        (void) snprintf(p->id, sizeof p->id, "%s", id);
        p->number = number;
        p->seen = true;
        if (!add_to_engine(d, p, now)) {
                slice_channel_done(&p->channel);
                free(p);
                return;
        }
        d->tenants[d->n_tenants++] = p;
}

/* ---- the slice directory ---- */

static int find_tenant(const Daemon *d, const char *id, uint32_t number) {
        for (uint32_t i = 0; i < d->n_tenants; i++)
                if (d->tenants[i]->number == number && strcmp(d->tenants[i]->id, id) == 0)
                        return (int) i;
        return -1;
}

/* The page was made anew under the same name, for a container's next start. */
static bool is_replaced(const DaemonTenant *p, int directory) {
        struct stat st;

        return fstatat(directory, "limits", &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_dev != p->channel.dev ||
               st.st_ino != p->channel.ino;
}

static void scan_channel(Daemon *d, int directory, const char *id, uint32_t number, uint64_t now) {
        int at = find_tenant(d, id, number);
        DaemonTenant *p;

        if (at >= 0 && is_replaced(d->tenants[at], directory)) {
                remove_tenant(d, (uint32_t) at);
                at = -1;
        }
        if (at < 0) {
                add_tenant(d, directory, id, number, now);
                return;
        }
        p = d->tenants[at];
        p->seen = true;
        slice_channel_open_missing(&p->channel, directory);
        ask_counters(d, p, directory);
        watch_doorbell(d, p);
        if (slice_channel_policy_changed(&p->channel)) {
                TenantPolicy policy = tenant_policy(&p->channel.compute, &p->channel.request);

                engine_set_policy(&d->cards[p->card]->engine, p->tenant, &policy);
                d->cards[p->card]->next = 0;
        }
}

static void scan_slice(Daemon *d, const char *id, uint64_t now) {
        for (uint32_t number = 0; number < SLICEDIR_CARDS_MAX; number++) {
                char path[SLICEDIR_ID_SIZE + 16];
                _cleanup_close_ int directory = -1;

                (void) snprintf(path, sizeof path, "%s/%u", id, number);
                directory = openat(d->slicedir.fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
                if (directory < 0)
                        return; /* they are numbered from 0 on */
                scan_channel(d, directory, id, number, now);
        }
}

static void scan(Daemon *d, uint64_t now) {
        int fd = openat(d->slicedir.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
        const struct dirent *entry;

        if (!entries) {
                if (fd >= 0)
                        (void) close(fd);
                return;
        }
        d->settling = false;
        for (uint32_t i = 0; i < d->n_tenants; i++)
                d->tenants[i]->seen = false;
        while ((entry = readdir(entries)))
                if (entry->d_name[0] != '.' && strlen(entry->d_name) < SLICEDIR_ID_SIZE &&
                    (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN))
                        scan_slice(d, entry->d_name, now);
        (void) closedir(entries);
        for (uint32_t i = d->n_tenants; i > 0; i--)
                if (!d->tenants[i - 1]->seen)
                        remove_tenant(d, i - 1);
        leased_settle(&d->leased);
        d->next_scan = now + (d->settling ? 10 * SCAN_DELAY_NS : RESCAN_NS);
}

static bool is_moved(const Slicedir *b) {
        struct stat here, there;

        return fstat(b->fd, &here) < 0 || stat(b->path, &there) < 0 || here.st_dev != there.st_dev ||
               here.st_ino != there.st_ino;
}

/* ---- a card's step ---- */

/* Who was not to ring is not silent before he has been looked at. */
static bool needs_liveness_check(const EngineTenant *t, const SliceChannel *s, uint64_t now, bool looked) {
        bool silent = (t->state == ENGINE_CLOSING && now > t->window.closes + LIVENESS_SILENT_NS &&
                       (looked || !t->window.no_notify)) ||
                      t->state == ENGINE_OVERRUN || t->n_empty > 0;

        return now - s->liveness_at >= (silent ? LIVENESS_SILENT_NS : LIVENESS_ALL_NS);
}

static uint64_t sweep_after(const DaemonTenant *p, const EngineTenant *t) {
        if (p->rung || p->needs_sweep)
                return SWEEP_RUNG_NS;
        return t->report.want_since != 0 ? SWEEP_BUSY_NS : SWEEP_IDLE_NS;
}

static void read_report(Daemon *d, DaemonTenant *p, uint64_t now) {
        Engine *e = &d->cards[p->card]->engine;
        const EngineTenant *t = &e->tenants[p->tenant];
        bool all = now - p->channel.swept_at >= sweep_after(p, t);
        TenantReport report;

        if (!p->rung && !all && !engine_needs_report(e, p->tenant, now))
                return;
        slice_channel_read(&p->channel, now, all, needs_liveness_check(t, &p->channel, now, false), &report);
        if (!report.drained && needs_liveness_check(t, &p->channel, now, true))
                slice_channel_read(&p->channel, now, false, true, &report);
        p->needs_sweep = !all && (p->rung || p->needs_sweep) && report.want_since == 0;
        p->rung = false;
        engine_report(e, now, p->tenant, &report);
}

static bool has_changed(const EngineWindow *a, const EngineWindow *b) {
        return a->gated != b->gated || a->open != b->open || a->number != b->number ||
               a->no_notify != b->no_notify || a->sole != b->sole ||
               (a->open && (a->closes != b->closes || a->depth != b->depth));
}

/* Of who writes his rests down one that began or ended just now, before he was told that he is not
 * alone any more, is to be seen. */
static bool must_reread(const SliceChannel *s, const EngineWindow *window) {
        return s->window.open && s->window.sole && !(window->open && window->sole);
}

/* Those that close before the one that opens: no two pages ever say that their window is open. That
 * we are here is said with every beat, and on the way to one that comes late. */
static void write_windows_of(Daemon *d, uint32_t card, uint64_t now, bool open) {
        uint64_t old = now >= d->next_heartbeat ? HEARTBEAT_NS / 2 : HEARTBEAT_NS * 3 / 2;

        for (uint32_t i = 0; i < d->n_tenants; i++) {
                DaemonTenant *p = d->tenants[i];
                const EngineWindow *window = &d->cards[card]->engine.tenants[p->tenant].window;

                if (p->card != card || window->open != open ||
                    (!has_changed(window, &p->channel.window) && now - p->channel.written_at < old))
                        continue;
                if (must_reread(&p->channel, window))
                        p->rung = true;
                slice_channel_write(&p->channel, window, now);
        }
}

static void write_windows(Daemon *d, uint32_t card, uint64_t now) {
        write_windows_of(d, card, now, false);
        write_windows_of(d, card, now, true);
}

static void report_overruns(Daemon *d, uint32_t card, uint64_t now) {
        OverrunReport event;

        while (overrun_report_next(&d->cards[card]->engine, &event))
                for (uint32_t i = 0; i < d->n_tenants; i++) {
                        const DaemonTenant *p = d->tenants[i];

                        if (p->card == card && p->tenant == event.tenant && d->options->on_overrun)
                                d->options->on_overrun(
                                        d->options->userdata,
                                        &(DaemonOverrun){.slice = p->id,
                                                         .container = slice_channel_is_whole(&p->channel)
                                                                              ? p->channel.limits->container
                                                                              : "",
                                                         .uuid = p->channel.uuid,
                                                         .nsec = now - event.since,
                                                         .partial = event.partial,
                                                         .repeated = event.repeated});
                }
}

static void step_card(Daemon *d, uint32_t card, uint64_t now) {
        for (uint32_t i = 0; i < d->n_tenants; i++)
                if (d->tenants[i]->card == card)
                        read_report(d, d->tenants[i], now);
        d->cards[card]->next = engine_step(&d->cards[card]->engine, now);
        for (uint32_t i = 0; i < d->n_tenants; i++)
                if (d->tenants[i]->card == card && d->tenants[i]->needs_sweep)
                        d->cards[card]->next = min_u64(d->cards[card]->next,
                                                       d->tenants[i]->channel.swept_at + SWEEP_RUNG_NS);
        write_windows(d, card, now);
        for (uint32_t i = 0; i < d->n_tenants; i++)
                if (d->tenants[i]->card == card && d->tenants[i]->rung)
                        d->cards[card]->next = now;
        report_overruns(d, card, now);
}

/* ---- the loop ---- */

/* One that rings without end is not heard until its period is over; its card's own times go on. */
static void on_doorbell(Daemon *d, DaemonTenant *p, uint64_t now) {
        p->rung = true;
        d->cards[p->card]->next = 0;
        if (!slice_channel_drain_doorbell(&p->channel, now)) {
                (void) epoll_ctl(d->epoll, EPOLL_CTL_DEL, p->channel.doorbell, NULL);
                p->muted = true;
        }
}

static void unmute(Daemon *d, uint64_t now) {
        for (uint32_t i = 0; i < d->n_tenants; i++)
                if (d->tenants[i]->muted && now - d->tenants[i]->channel.period_since >= DOORBELL_PERIOD_NS) {
                        d->tenants[i]->muted = false;
                        watch_doorbell(d, d->tenants[i]);
                }
}

static void drain(int inotify) {
        char bytes[4096];

        while (read(inotify, bytes, sizeof bytes) > 0)
                ;
}

static uint64_t next_of(const Daemon *d) {
        uint64_t next = min_u64(d->next_scan, d->next_heartbeat);

        for (uint32_t i = 0; i < DAEMON_CARDS; i++)
                if (d->cards[i])
                        next = min_u64(next, d->cards[i]->next);
        for (uint32_t i = 0; i < d->n_tenants; i++)
                if (d->tenants[i]->muted)
                        next = min_u64(next, d->tenants[i]->channel.period_since + DOORBELL_PERIOD_NS);
        return next;
}

/* One call, where the kernel has it (5.11). */
static int wait_events(const Daemon *d, struct epoll_event events[EVENTS], const struct timespec *ts) {
        long n = syscall(SYS_epoll_pwait2, d->epoll, events, EVENTS, ts, NULL, 0);
        struct pollfd fd = {.fd = d->epoll, .events = POLLIN};

        if (n >= 0 || errno == EINTR)
                return (int) n;
        return ppoll(&fd, 1, ts, NULL) > 0 ? epoll_wait(d->epoll, events, EVENTS, 0) : 0;
}

/* Returns whether it goes on. */
static bool sleep_until(Daemon *d, uint64_t next) {
        struct epoll_event events[EVENTS];
        uint64_t now = now_nsec(), wait = next > now ? next - now : 0;
        struct timespec ts = {.tv_sec = (time_t) (wait / 1000000000), .tv_nsec = (long) (wait % 1000000000)};
        int n = wait_events(d, events, &ts);
        bool goes_on = true;

        now = n > 0 ? now_nsec() : now;
        for (int i = 0; i < n; i++) {
                if (events[i].data.ptr == &d->options) {
                        goes_on = false;
                } else if (events[i].data.ptr == &d->inotify) {
                        drain(d->inotify);
                        d->next_scan = min_u64(d->next_scan, now + SCAN_DELAY_NS);
                } else {
                        on_doorbell(d, events[i].data.ptr, now);
                }
        }
        return goes_on;
}

static int loop(Daemon *d) {
        do {
                uint64_t now = now_nsec();

                if (now >= d->next_scan) {
                        if (is_moved(&d->slicedir))
                                return DAEMON_E_MOVED;
                        scan(d, now);
                }
                unmute(d, now);
                for (uint32_t i = 0; i < DAEMON_CARDS; i++)
                        if (d->cards[i] && (now >= d->cards[i]->next || now >= d->next_heartbeat))
                                step_card(d, i, now);
                if (now >= d->next_heartbeat)
                        d->next_heartbeat = now + HEARTBEAT_NS;
        } while (sleep_until(d, next_of(d)));
        return 0;
}

/* ---- beginning and end ---- */

/* 0, 1: told to stop before, negative errno. */
static int wait_for_lock(Daemon *d) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

        d->lock = openat(d->slicedir.fd, LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (d->lock < 0)
                return -errno;
        while (fcntl(d->lock, F_OFD_SETLK, &lock) < 0) {
                struct pollfd stop = {.fd = d->options->stop, .events = POLLIN};

                if (errno != EAGAIN && errno != EACCES)
                        return -errno;
                if (poll(&stop, 1, (int) (HEARTBEAT_NS / 1000000)) > 0)
                        return 1;
                if (is_moved(&d->slicedir))
                        return DAEMON_E_MOVED + 1;
        }
        return 0;
}

static void done(Daemon *d) {
        while (d->n_tenants > 0)
                remove_tenant(d, d->n_tenants - 1);
        leased_done(&d->leased);
        for (size_t i = 0; i < 3; i++) {
                int fd = i == 0 ? d->lock : i == 1 ? d->inotify : d->epoll;

                if (fd >= 0)
                        (void) close(fd);
        }
        slicedir_done(&d->slicedir);
}

/* data.ptr tells the source: the end, the slice directory, or a tenant. */
static int open_events(Daemon *d, Fault *fault) {
        struct epoll_event stop = {.events = EPOLLIN, .data.ptr = &d->options},
                           slicedir = {.events = EPOLLIN, .data.ptr = &d->inotify};

        d->epoll = epoll_create1(EPOLL_CLOEXEC);
        if (d->epoll < 0 || epoll_ctl(d->epoll, EPOLL_CTL_ADD, d->options->stop, &stop) < 0)
                return fault_set(fault, -errno, "cannot make an epoll: %s", strerror(errno));
        d->inotify = inotify_init1(IN_CLOEXEC |
                                   IN_NONBLOCK); /* without it the slice directory is read now and then */
        if (d->inotify < 0)
                return 0;
        (void) inotify_add_watch(d->inotify, d->slicedir.path, IN_CREATE | IN_DELETE | IN_MOVE | IN_ATTRIB);
        (void) epoll_ctl(d->epoll, EPOLL_CTL_ADD, d->inotify, &slicedir);
        return 0;
}

static int run(Daemon *d, Fault *fault) {
        int r = slicedir_open(&d->slicedir, d->options->slicedir, false, fault);

        if (r < 0)
                return r;
        r = wait_for_lock(d);
        if (r < 0)
                return fault_set(fault, r, "cannot lock %s/" LOCK ": %s", d->slicedir.path, strerror(-r));
        if (r > 0)
                return r - 1;
        r = open_events(d, fault);
        if (r < 0)
                return r;
        (void) prctl(PR_SET_TIMERSLACK, 1UL); /* ns: windows are opened to the microsecond */
        return loop(d);
}

int daemon_run(const DaemonOptions *options, Fault *fault) {
        Daemon *d = calloc(1, sizeof *d);
        int r;

        if (!d)
                return fault_set(fault, -ENOMEM, "out of memory");
        *d = (Daemon){.options = options, .slicedir = SLICEDIR_NULL, .lock = -1, .inotify = -1, .epoll = -1};
        r = run(d, fault);
        done(d);
        free(d);
        return r;
}
