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

#include "arbiter/card_step.h"
#include "arbiter/leased.h"
#include "arbiter/window.h"
#include "base/clock.h"
#include "slicedir/slicedir.h"

#define LOCK "arbiter"

enum { DAEMON_CARDS = JOINED_CARDS, DAEMON_TENANTS = 1024, EVENTS = 64 };

typedef struct DaemonTenant { /* a tenant and its slice */
        ArbiterTenant base;
        char id[SLICEDIR_ID_SIZE];
        uint32_t number; /* of the slice's card directory: ID/NUMBER */
        uint32_t card;
        bool muted, seen;
} DaemonTenant;

typedef struct DaemonCard {
        ArbiterCard base;
        char uuid[SLICE_UUID];
} DaemonCard;

typedef struct Daemon {
        const DaemonOptions *options;
        Slicedir slicedir;
        int lock, inotify, epoll;
        Leased leased;
        DaemonCard *cards[DAEMON_CARDS];
        DaemonTenant *tenants[DAEMON_TENANTS];
        uint32_t n_tenants;
        Joined joined;
        uint64_t next_scan, next_heartbeat;
        bool rescan_soon;
} Daemon;

static uint64_t now_nsec(void) {
        return clock_nsec(CLOCK_MONOTONIC);
}

/* ---- cards and tenants ---- */

/* Index of the card's engine, which is created if needed; -1: no room or no memory. */
static int find_card(Daemon *d, const char *uuid, uint64_t now) {
        int free_slot = -1;

        for (int i = 0; i < DAEMON_CARDS; i++) {
                if (d->cards[i] && strcmp(d->cards[i]->uuid, uuid) == 0)
                        return i;
                if (!d->cards[i] && free_slot < 0)
                        free_slot = i;
        }
        if (free_slot < 0)
                return -1;
        d->cards[free_slot] = calloc(1, sizeof(DaemonCard));
        if (!d->cards[free_slot])
                return -1;
        (void) snprintf(d->cards[free_slot]->uuid, SLICE_UUID, "%s", uuid);
        engine_init(&d->cards[free_slot]->base.engine, now);
        if (d->options->overrun_limit > 0)
                d->cards[free_slot]->base.engine.overrun_limit = d->options->overrun_limit;
        d->cards[free_slot]->base.next = now;
        return free_slot;
}

static void remove_tenant(Daemon *d, uint32_t at) {
        DaemonTenant *p = d->tenants[at];
        DaemonCard *card = d->cards[p->card];

        card_step_remove(&card->base, &p->base);
        card->base.next = 0;
        if (card->base.n == 0) {
                free(card);
                d->cards[p->card] = NULL;
        }
        slice_channel_done(&p->base.channel);
        free(p);
        d->tenants[at] = d->tenants[--d->n_tenants];
}

/* Without the counters file the tenant's reports cannot be read. */
static void request_counters(Daemon *d, const DaemonTenant *p, int directory) {
        if (p->base.channel.counters < 0)
                leased_request(&d->leased, directory, "counters");
}

static void watch_doorbell(Daemon *d, DaemonTenant *p) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = p};

        if (p->base.channel.doorbell >= 0 && !p->muted &&
            epoll_ctl(d->epoll, EPOLL_CTL_ADD, p->base.channel.doorbell, &event) < 0 && errno != EEXIST) {
                (void) close(p->base.channel.doorbell);
                p->base.channel.doorbell = -1; /* without it the rows are read at intervals only */
        }
}

static uint32_t *set_of(const Daemon *d, const DaemonTenant *p) {
        return &d->cards[p->card]->base.engine.tenants[p->base.tenant].set;
}

static uint32_t unused_set(const Daemon *d) {
        bool used[JOINED_SETS + 1] = {false};
        uint32_t set = 1;

        for (uint32_t i = 0; i < d->n_tenants; i++)
                used[*set_of(d, d->tenants[i])] = true;
        while (set <= JOINED_SETS && used[set])
                set++;
        return set <= JOINED_SETS ? set : 0; /* 0: none free; its cards are not joined */
}

/* The slices of one container on several cards are a set. */
static void join_set(const Daemon *d, const DaemonTenant *p) {
        for (uint32_t i = 0; i < d->n_tenants; i++) {
                const DaemonTenant *o = d->tenants[i];

                if (o->card == p->card || strcmp(o->id, p->id) != 0)
                        continue;
                if (*set_of(d, o) == 0)
                        *set_of(d, o) = unused_set(d);
                *set_of(d, p) = *set_of(d, o);
        }
}

static bool add_to_card(Daemon *d, DaemonTenant *p, uint64_t now) {
        int card = find_card(d, p->base.channel.uuid, now);

        if (card < 0 || !card_step_add(&d->cards[card]->base, &p->base, now))
                return false;
        p->card = (uint32_t) card;
        join_set(d, p);
        watch_doorbell(d, p);
        return true;
}

static void add_tenant(Daemon *d, int directory, const char *id, uint32_t number, uint64_t now) {
        DaemonTenant *p = d->n_tenants < DAEMON_TENANTS ? calloc(1, sizeof *p) : NULL;
        int r;

        if (!p)
                return;
        r = slice_channel_open(directory, &p->base.channel);
        if (r != 0) {
                if (r == -EAGAIN)
                        leased_request(&d->leased, directory, "limits");
                d->rescan_soon = true; /* incomplete, or not a slice: scan again soon */
                free(p);
                return;
        }
        request_counters(d, p, directory);
        (void) snprintf(p->id, sizeof p->id, "%s", id);
        p->number = number;
        p->seen = true;
        if (!add_to_card(d, p, now)) {
                slice_channel_done(&p->base.channel);
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

/* Whether the page is another file than the open one: the container was started again. */
static bool is_replaced(const DaemonTenant *p, int directory) {
        struct stat st;

        return fstatat(directory, "limits", &st, AT_SYMLINK_NOFOLLOW) < 0 ||
               st.st_dev != p->base.channel.dev || st.st_ino != p->base.channel.ino;
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
        slice_channel_open_missing(&p->base.channel, directory);
        request_counters(d, p, directory);
        watch_doorbell(d, p);
        if (slice_channel_policy_changed(&p->base.channel)) {
                TenantPolicy policy = tenant_policy(&p->base.channel.compute, &p->base.channel.request);

                engine_set_policy(&d->cards[p->card]->base.engine, p->base.tenant, &policy);
                d->cards[p->card]->base.next = 0;
        }
}

static void scan_slice(Daemon *d, const char *id, uint64_t now) {
        for (uint32_t number = 0; number < SLICEDIR_CARDS_MAX; number++) {
                char path[SLICEDIR_ID_SIZE + 16];
                _cleanup_close_ int directory = -1;

                (void) snprintf(path, sizeof path, "%s/%u", id, number);
                directory = openat(d->slicedir.fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
                if (directory < 0)
                        return; /* cards are numbered from 0 without gaps */
                scan_channel(d, directory, id, number, now);
        }
}

static void scan_slices(Daemon *d, uint64_t now) {
        int fd = openat(d->slicedir.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
        const struct dirent *entry;

        if (!entries) {
                if (fd >= 0)
                        (void) close(fd);
                return;
        }
        d->rescan_soon = false;
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
        leased_end_unrequested(&d->leased);
        d->next_scan = now + (d->rescan_soon ? 10 * SCAN_DELAY_NS : RESCAN_NS);
}

static bool is_moved(const Slicedir *b) {
        struct stat here, there;

        return fstat(b->fd, &here) < 0 || stat(b->path, &there) < 0 || here.st_dev != there.st_dev ||
               here.st_ino != there.st_ino;
}

/* ---- a card's step ---- */

static void report_overruns(Daemon *d, uint32_t card, uint64_t now) {
        OverrunReport event;

        while (overrun_report_next(&d->cards[card]->base.engine, &event))
                for (uint32_t i = 0; i < d->n_tenants; i++) {
                        const DaemonTenant *p = d->tenants[i];

                        if (p->card == card && p->base.tenant == event.tenant && d->options->on_overrun)
                                d->options->on_overrun(
                                        d->options->userdata,
                                        &(DaemonOverrun){.slice = p->id,
                                                         .container =
                                                                 slice_channel_is_whole(&p->base.channel)
                                                                         ? p->base.channel.limits->container
                                                                         : "",
                                                         .uuid = p->base.channel.uuid,
                                                         .nsec = now - event.since,
                                                         .partial = event.partial,
                                                         .repeated = event.repeated});
                }
}

static void step_cards(Daemon *d, uint64_t now) {
        ArbiterCard *cards[DAEMON_CARDS];
        uint32_t number[DAEMON_CARDS], n = 0;
        bool stepped[DAEMON_CARDS];

        for (uint32_t i = 0; i < DAEMON_CARDS; i++)
                if (d->cards[i]) {
                        number[n] = i;
                        cards[n++] = &d->cards[i]->base;
                }
        card_step_all(cards, n, &d->joined, now, now >= d->next_heartbeat, stepped);
        for (uint32_t k = 0; k < n; k++)
                if (stepped[k])
                        report_overruns(d, number[k], now);
}

/* ---- the loop ---- */

/* A doorbell that rings too often is ignored until its period is over; the card is still stepped
 * when due. */
static void on_doorbell(Daemon *d, DaemonTenant *p, uint64_t now) {
        p->base.rung = true;
        d->cards[p->card]->base.next = 0;
        if (!slice_channel_drain_doorbell(&p->base.channel, now)) {
                (void) epoll_ctl(d->epoll, EPOLL_CTL_DEL, p->base.channel.doorbell, NULL);
                p->muted = true;
        }
}

static void unmute_doorbells(Daemon *d, uint64_t now) {
        for (uint32_t i = 0; i < d->n_tenants; i++)
                if (d->tenants[i]->muted &&
                    now - d->tenants[i]->base.channel.period_since >= DOORBELL_PERIOD_NS) {
                        d->tenants[i]->muted = false;
                        watch_doorbell(d, d->tenants[i]);
                }
}

static void drain_inotify(int inotify) {
        char bytes[4096];

        while (read(inotify, bytes, sizeof bytes) > 0)
                ;
}

static uint64_t next_of(const Daemon *d) {
        uint64_t next = min_u64(min_u64(d->next_scan, d->next_heartbeat), d->joined.next);

        for (uint32_t i = 0; i < DAEMON_CARDS; i++)
                if (d->cards[i])
                        next = min_u64(next, d->cards[i]->base.next);
        for (uint32_t i = 0; i < d->n_tenants; i++)
                if (d->tenants[i]->muted)
                        next = min_u64(next, d->tenants[i]->base.channel.period_since + DOORBELL_PERIOD_NS);
        return next;
}

/* epoll_pwait2() needs Linux 5.11; older kernels: ppoll() and epoll_wait(). */
static int wait_events(const Daemon *d, struct epoll_event events[EVENTS], const struct timespec *ts) {
        long n = syscall(SYS_epoll_pwait2, d->epoll, events, EVENTS, ts, NULL, 0);
        struct pollfd fd = {.fd = d->epoll, .events = POLLIN};

        if (n >= 0 || errno == EINTR)
                return (int) n;
        return ppoll(&fd, 1, ts, NULL) > 0 ? epoll_wait(d->epoll, events, EVENTS, 0) : 0;
}

/* Handles events until `next`, ns. False: the daemon is told to stop. */
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
                        drain_inotify(d->inotify);
                        d->next_scan = min_u64(d->next_scan, now + SCAN_DELAY_NS);
                } else {
                        on_doorbell(d, events[i].data.ptr, now);
                }
        }
        return goes_on;
}

static int serve_tenants(Daemon *d) {
        do {
                uint64_t now = now_nsec();

                if (now >= d->next_scan) {
                        if (is_moved(&d->slicedir))
                                return DAEMON_E_MOVED;
                        scan_slices(d, now);
                }
                unmute_doorbells(d, now);
                step_cards(d, now);
                if (now >= d->next_heartbeat)
                        d->next_heartbeat = now + HEARTBEAT_NS;
        } while (sleep_until(d, next_of(d)));
        return 0;
}

/* ---- beginning and end ---- */

/* Takes the lock on the slice directory. 0; 1: told to stop; DAEMON_E_MOVED + 1; negative errno. */
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

static void release_all(Daemon *d) {
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

/* data.ptr names the source: the stop descriptor, the slice directory, or a tenant. */
static int open_events(Daemon *d, Fault *fault) {
        struct epoll_event stop = {.events = EPOLLIN, .data.ptr = &d->options},
                           slicedir = {.events = EPOLLIN, .data.ptr = &d->inotify};

        d->epoll = epoll_create1(EPOLL_CLOEXEC);
        if (d->epoll < 0 || epoll_ctl(d->epoll, EPOLL_CTL_ADD, d->options->stop, &stop) < 0)
                return fault_set(fault, -errno, "cannot make an epoll: %s", strerror(errno));
        d->inotify = inotify_init1(
                IN_CLOEXEC | IN_NONBLOCK); /* without inotify the slice directory is read at intervals only */
        if (d->inotify < 0)
                return 0;
        (void) inotify_add_watch(d->inotify, d->slicedir.path, IN_CREATE | IN_DELETE | IN_MOVE | IN_ATTRIB);
        (void) epoll_ctl(d->epoll, EPOLL_CTL_ADD, d->inotify, &slicedir);
        return 0;
}

static int run_locked(Daemon *d, Fault *fault) {
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
        (void) prctl(PR_SET_TIMERSLACK, 1UL); /* ns: windows open with a precision of 1 us */
        return serve_tenants(d);
}

int daemon_run(const DaemonOptions *options, Fault *fault) {
        Daemon *d = calloc(1, sizeof *d);
        int r;

        if (!d)
                return fault_set(fault, -ENOMEM, "out of memory");
        *d = (Daemon){.options = options, .slicedir = SLICEDIR_NULL, .lock = -1, .inotify = -1, .epoll = -1};
        r = run_locked(d, fault);
        release_all(d);
        free(d);
        return r;
}
