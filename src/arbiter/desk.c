/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/desk.h"

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
#include "arbiter/seat.h"
#include "base/clock.h"
#include "slicedir/slicedir.h"

#define LOCK  "arbiter"
#define BEAT  UINT64_C(100000000) /* ns: so often everybody is told that we are here */
#define SWEEP UINT64_C(100000000) /* ns: so often all rows are read, for bells that were lost */
#define ROUND                                                                                                \
        UINT64_C(250000000) /* ns: the same where somebody's work is known: that one has windows already */
#define FRESH                                                                                                \
        UINT64_C(                                                                                            \
                20000000) /* ns: with a bell, rows of processes that we do not know are looked for, not more often */
#define DOUBT  UINT64_C(5000000)    /* ns: so often it is asked who of those that do not answer lives */
#define CENSUS UINT64_C(1000000000) /* ns: and all others */
#define RESCAN UINT64_C(1000000000) /* ns: so often the board is read for what inotify does not tell */
#define SETTLE UINT64_C(10000000)   /* ns: a slice is made of several files */

enum { DESK_CARDS = 32, DESK_SEATS = 1024, EVENTS = 64 };

typedef struct Placed { /* a seat, and where it belongs */
        Seat seat;
        char id[SLICEDIR_ID_SIZE];
        uint32_t number; /* of its directory */
        uint32_t card, tenant;
        bool rung, muted, seen;
        bool sweeps; /* it has rung, and nobody that we know has work: all rows are to be read, FRESH after the last time */
} Placed;

typedef struct Card {
        char uuid[SLICE_UUID];
        Engine engine;
        uint64_t next; /* when it wants to be called */
        uint32_t n;
} Card;

typedef struct Desk {
        const DeskOptions *options;
        Slicedir board;
        int lock, inotify, epoll;
        Leased leased;
        Card *cards[DESK_CARDS];
        Placed *seats[DESK_SEATS];
        uint32_t n_seats;
        uint64_t scan, beat;
        bool settling;
} Desk;

static uint64_t now_nsec(void) {
        return clock_nsec(CLOCK_MONOTONIC);
}

static uint64_t min_u64(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

/* ---- cards and seats ---- */

static int find_card(Desk *d, const char *uuid, uint64_t now) {
        int room = -1;

        for (int i = 0; i < DESK_CARDS; i++) {
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
        if (d->options->patience > 0)
                d->cards[room]->engine.hung = d->options->patience;
        d->cards[room]->next = now;
        return room;
}

static void leave(Desk *d, uint32_t at) {
        Placed *p = d->seats[at];
        Card *card = d->cards[p->card];

        engine_remove(&card->engine, p->tenant);
        card->next = 0;
        if (--card->n == 0) {
                free(card);
                d->cards[p->card] = NULL;
        }
        seat_done(&p->seat);
        free(p);
        d->seats[at] = d->seats[--d->n_seats];
}

/* Whose counters are not open is never heard. */
static void ask_counters(Desk *d, const Placed *p, int directory) {
        if (p->seat.counters < 0)
                leased_ask(&d->leased, directory, "counters");
}

static void listen_to(Desk *d, Placed *p) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = p};

        if (p->seat.bell >= 0 && !p->muted && epoll_ctl(d->epoll, EPOLL_CTL_ADD, p->seat.bell, &event) < 0 &&
            errno != EEXIST) {
                (void) close(p->seat.bell);
                p->seat.bell = -1; /* it is looked at now and then */
        }
}

/* Sums of an arbiter before us. */
static void take_over(EngineTurn *ret, const SliceSchedule *turn) {
        ret->granted = atomic_load_explicit(&turn->granted, memory_order_relaxed);
        ret->used = atomic_load_explicit(&turn->used, memory_order_relaxed);
}

/* Whatever window an arbiter before us has opened is waited for. */
static bool sit_down(Desk *d, Placed *p, uint64_t now) {
        Terms terms = policy_terms(&p->seat.wish);
        const SliceSchedule *turn = &p->seat.limits->schedule;
        int card = find_card(d, p->seat.uuid, now), tenant;
        EngineSays says;

        if (card < 0)
                return false;
        p->seat.turn.number = atomic_load_explicit(&turn->window, memory_order_relaxed) >> 1;
        tenant = engine_add(&d->cards[card]->engine, now, &terms, p->seat.turn.number,
                            atomic_load_explicit(&turn->seen, memory_order_relaxed) != 0);
        if (tenant < 0)
                return false;
        p->card = (uint32_t) card;
        p->tenant = (uint32_t) tenant;
        take_over(&d->cards[card]->engine.tenants[tenant].turn, turn);
        d->cards[card]->n++;
        d->cards[card]->next = 0;
        listen_to(d, p);
        seat_read(&p->seat, now, true, true, &says);
        engine_says(&d->cards[card]->engine, now, p->tenant, &says);
        return true;
}

static void enter(Desk *d, int directory, const char *id, uint32_t number, uint64_t now) {
        Placed *p = d->n_seats < DESK_SEATS ? calloc(1, sizeof *p) : NULL;
        int r;

        if (!p)
                return;
        r = seat_open(directory, &p->seat);
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
        if (!sit_down(d, p, now)) {
                seat_done(&p->seat);
                free(p);
                return;
        }
        d->seats[d->n_seats++] = p;
}

/* ---- the board ---- */

static int find_seat(const Desk *d, const char *id, uint32_t number) {
        for (uint32_t i = 0; i < d->n_seats; i++)
                if (d->seats[i]->number == number && strcmp(d->seats[i]->id, id) == 0)
                        return (int) i;
        return -1;
}

/* The page was made anew under the same name, for a container's next start. */
static bool is_replaced(const Placed *p, int directory) {
        struct stat st;

        return fstatat(directory, "limits", &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_dev != p->seat.dev ||
               st.st_ino != p->seat.ino;
}

static void scan_seat(Desk *d, int directory, const char *id, uint32_t number, uint64_t now) {
        int at = find_seat(d, id, number);
        Placed *p;

        if (at >= 0 && is_replaced(d->seats[at], directory)) {
                leave(d, (uint32_t) at);
                at = -1;
        }
        if (at < 0) {
                enter(d, directory, id, number, now);
                return;
        }
        p = d->seats[at];
        p->seen = true;
        seat_open_rest(&p->seat, directory);
        ask_counters(d, p, directory);
        listen_to(d, p);
        if (seat_wishes(&p->seat)) {
                Terms terms = policy_terms(&p->seat.wish);

                engine_set(&d->cards[p->card]->engine, p->tenant, &terms);
                d->cards[p->card]->next = 0;
        }
}

static void scan_slice(Desk *d, const char *id, uint64_t now) {
        for (uint32_t number = 0; number < SLICEDIR_CARDS_MAX; number++) {
                char path[SLICEDIR_ID_SIZE + 16];
                _cleanup_close_ int directory = -1;

                (void) snprintf(path, sizeof path, "%s/%u", id, number);
                directory = openat(d->board.fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
                if (directory < 0)
                        return; /* they are numbered from 0 on */
                scan_seat(d, directory, id, number, now);
        }
}

static void scan(Desk *d, uint64_t now) {
        int fd = openat(d->board.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
        const struct dirent *entry;

        if (!entries) {
                if (fd >= 0)
                        (void) close(fd);
                return;
        }
        d->settling = false;
        for (uint32_t i = 0; i < d->n_seats; i++)
                d->seats[i]->seen = false;
        while ((entry = readdir(entries)))
                if (entry->d_name[0] != '.' && strlen(entry->d_name) < SLICEDIR_ID_SIZE &&
                    (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN))
                        scan_slice(d, entry->d_name, now);
        (void) closedir(entries);
        for (uint32_t i = d->n_seats; i > 0; i--)
                if (!d->seats[i - 1]->seen)
                        leave(d, i - 1);
        leased_settle(&d->leased);
        d->scan = now + (d->settling ? 10 * SETTLE : RESCAN);
}

static bool is_moved(const Slicedir *b) {
        struct stat here, there;

        return fstat(b->fd, &here) < 0 || stat(b->path, &there) < 0 || here.st_dev != there.st_dev ||
               here.st_ino != there.st_ino;
}

/* ---- a card's step ---- */

/* Who was not to ring is not silent before he has been looked at. */
static bool is_doubtful(const EngineTenant *t, const Seat *s, uint64_t now, bool looked) {
        bool silent =
                (t->state == ENGINE_CLOSING && now > t->turn.closes + DOUBT && (looked || !t->turn.quiet)) ||
                t->state == ENGINE_OVERDUE || t->empty > 0;

        return now - s->questioned >= (silent ? DOUBT : CENSUS);
}

static uint64_t sweep_after(const Placed *p, const EngineTenant *t) {
        if (p->rung || p->sweeps)
                return FRESH;
        return t->says.wants != 0 ? ROUND : SWEEP;
}

static void look(Desk *d, Placed *p, uint64_t now) {
        Engine *e = &d->cards[p->card]->engine;
        const EngineTenant *t = &e->tenants[p->tenant];
        bool all = now - p->seat.swept >= sweep_after(p, t);
        EngineSays says;

        if (!p->rung && !all && !engine_looks(e, p->tenant, now))
                return;
        seat_read(&p->seat, now, all, is_doubtful(t, &p->seat, now, false), &says);
        if (!says.drained && is_doubtful(t, &p->seat, now, true))
                seat_read(&p->seat, now, false, true, &says);
        p->sweeps = !all && (p->rung || p->sweeps) && says.wants == 0;
        p->rung = false;
        engine_says(e, now, p->tenant, &says);
}

static bool is_news(const EngineTurn *a, const EngineTurn *b) {
        return a->gated != b->gated || a->open != b->open || a->number != b->number || a->quiet != b->quiet ||
               a->alone != b->alone || (a->open && (a->closes != b->closes || a->depth != b->depth));
}

/* Of who writes his rests down one that began or ended just now, before he was told that he is not
 * alone any more, is to be seen. */
static bool is_to_be_seen(const Seat *s, const EngineTurn *turn) {
        return s->turn.open && s->turn.alone && !(turn->open && turn->alone);
}

/* Those that close before the one that opens: no two pages ever say that their window is open. That
 * we are here is said with every beat, and on the way to one that comes late. */
static void tell_those(Desk *d, uint32_t card, uint64_t now, bool open) {
        uint64_t old = now >= d->beat ? BEAT / 2 : BEAT * 3 / 2;

        for (uint32_t i = 0; i < d->n_seats; i++) {
                Placed *p = d->seats[i];
                const EngineTurn *turn = &d->cards[card]->engine.tenants[p->tenant].turn;

                if (p->card != card || turn->open != open ||
                    (!is_news(turn, &p->seat.turn) && now - p->seat.written < old))
                        continue;
                if (is_to_be_seen(&p->seat, turn))
                        p->rung = true;
                seat_write(&p->seat, turn, now);
        }
}

static void tell(Desk *d, uint32_t card, uint64_t now) {
        tell_those(d, card, now, false);
        tell_those(d, card, now, true);
}

static void report(Desk *d, uint32_t card, uint64_t now) {
        EngineEvent event;

        while (engine_event(&d->cards[card]->engine, &event))
                for (uint32_t i = 0; i < d->n_seats; i++) {
                        const Placed *p = d->seats[i];

                        if (p->card == card && p->tenant == event.tenant && d->options->hung)
                                d->options->hung(
                                        d->options->userdata,
                                        &(DeskKernel){.slice = p->id,
                                                      .container = seat_is_whole(&p->seat)
                                                                           ? p->seat.limits->container
                                                                           : "",
                                                      .uuid = p->seat.uuid,
                                                      .nsec = now - event.since,
                                                      .part = event.part,
                                                      .again = event.again});
                }
}

static void step_card(Desk *d, uint32_t card, uint64_t now) {
        for (uint32_t i = 0; i < d->n_seats; i++)
                if (d->seats[i]->card == card)
                        look(d, d->seats[i], now);
        d->cards[card]->next = engine_step(&d->cards[card]->engine, now);
        for (uint32_t i = 0; i < d->n_seats; i++)
                if (d->seats[i]->card == card && d->seats[i]->sweeps)
                        d->cards[card]->next = min_u64(d->cards[card]->next, d->seats[i]->seat.swept + FRESH);
        tell(d, card, now);
        for (uint32_t i = 0; i < d->n_seats; i++)
                if (d->seats[i]->card == card && d->seats[i]->rung)
                        d->cards[card]->next = now;
        report(d, card, now);
}

/* ---- the loop ---- */

/* One that rings without end is not heard until its period is over; its card's own times go on. */
static void hear(Desk *d, Placed *p, uint64_t now) {
        p->rung = true;
        d->cards[p->card]->next = 0;
        if (!seat_hear(&p->seat, now)) {
                (void) epoll_ctl(d->epoll, EPOLL_CTL_DEL, p->seat.bell, NULL);
                p->muted = true;
        }
}

static void unmute(Desk *d, uint64_t now) {
        for (uint32_t i = 0; i < d->n_seats; i++)
                if (d->seats[i]->muted && now - d->seats[i]->seat.heard_from >= SEAT_PERIOD) {
                        d->seats[i]->muted = false;
                        listen_to(d, d->seats[i]);
                }
}

static void drain(int inotify) {
        char bytes[4096];

        while (read(inotify, bytes, sizeof bytes) > 0)
                ;
}

static uint64_t next_of(const Desk *d) {
        uint64_t next = min_u64(d->scan, d->beat);

        for (uint32_t i = 0; i < DESK_CARDS; i++)
                if (d->cards[i])
                        next = min_u64(next, d->cards[i]->next);
        for (uint32_t i = 0; i < d->n_seats; i++)
                if (d->seats[i]->muted)
                        next = min_u64(next, d->seats[i]->seat.heard_from + SEAT_PERIOD);
        return next;
}

/* One call, where the kernel has it (5.11). */
static int wait_events(const Desk *d, struct epoll_event events[EVENTS], const struct timespec *ts) {
        long n = syscall(SYS_epoll_pwait2, d->epoll, events, EVENTS, ts, NULL, 0);
        struct pollfd fd = {.fd = d->epoll, .events = POLLIN};

        if (n >= 0 || errno == EINTR)
                return (int) n;
        return ppoll(&fd, 1, ts, NULL) > 0 ? epoll_wait(d->epoll, events, EVENTS, 0) : 0;
}

/* Returns whether it goes on. */
static bool sleep_until(Desk *d, uint64_t next) {
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
                        d->scan = min_u64(d->scan, now + SETTLE);
                } else {
                        hear(d, events[i].data.ptr, now);
                }
        }
        return goes_on;
}

static int loop(Desk *d) {
        do {
                uint64_t now = now_nsec();

                if (now >= d->scan) {
                        if (is_moved(&d->board))
                                return DESK_E_MOVED;
                        scan(d, now);
                }
                unmute(d, now);
                for (uint32_t i = 0; i < DESK_CARDS; i++)
                        if (d->cards[i] && (now >= d->cards[i]->next || now >= d->beat))
                                step_card(d, i, now);
                if (now >= d->beat)
                        d->beat = now + BEAT;
        } while (sleep_until(d, next_of(d)));
        return 0;
}

/* ---- beginning and end ---- */

/* 0, 1: told to stop before, negative errno. */
static int wait_for_lock(Desk *d) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

        d->lock = openat(d->board.fd, LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (d->lock < 0)
                return -errno;
        while (fcntl(d->lock, F_OFD_SETLK, &lock) < 0) {
                struct pollfd stop = {.fd = d->options->stop, .events = POLLIN};

                if (errno != EAGAIN && errno != EACCES)
                        return -errno;
                if (poll(&stop, 1, (int) (BEAT / 1000000)) > 0)
                        return 1;
                if (is_moved(&d->board))
                        return DESK_E_MOVED + 1;
        }
        return 0;
}

static void done(Desk *d) {
        while (d->n_seats > 0)
                leave(d, d->n_seats - 1);
        leased_done(&d->leased);
        for (size_t i = 0; i < 3; i++) {
                int fd = i == 0 ? d->lock : i == 1 ? d->inotify : d->epoll;

                if (fd >= 0)
                        (void) close(fd);
        }
        slicedir_done(&d->board);
}

/* What is told apart by its address: the end, the board, or a seat. */
static int open_events(Desk *d, Fault *fault) {
        struct epoll_event stop = {.events = EPOLLIN, .data.ptr = &d->options},
                           board = {.events = EPOLLIN, .data.ptr = &d->inotify};

        d->epoll = epoll_create1(EPOLL_CLOEXEC);
        if (d->epoll < 0 || epoll_ctl(d->epoll, EPOLL_CTL_ADD, d->options->stop, &stop) < 0)
                return fault_set(fault, -errno, "cannot make an epoll: %s", strerror(errno));
        d->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK); /* without it the board is read now and then */
        if (d->inotify < 0)
                return 0;
        (void) inotify_add_watch(d->inotify, d->board.path, IN_CREATE | IN_DELETE | IN_MOVE | IN_ATTRIB);
        (void) epoll_ctl(d->epoll, EPOLL_CTL_ADD, d->inotify, &board);
        return 0;
}

static int run(Desk *d, Fault *fault) {
        int r = slicedir_open(&d->board, d->options->board, false, fault);

        if (r < 0)
                return r;
        r = wait_for_lock(d);
        if (r < 0)
                return fault_set(fault, r, "cannot lock %s/" LOCK ": %s", d->board.path, strerror(-r));
        if (r > 0)
                return r - 1;
        r = open_events(d, fault);
        if (r < 0)
                return r;
        (void) prctl(PR_SET_TIMERSLACK, 1UL); /* ns: windows are opened to the microsecond */
        return loop(d);
}

int desk_run(const DeskOptions *options, Fault *fault) {
        Desk *d = calloc(1, sizeof *d);
        int r;

        if (!d)
                return fault_set(fault, -ENOMEM, "out of memory");
        *d = (Desk){.options = options, .board = SLICEDIR_NULL, .lock = -1, .inotify = -1, .epoll = -1};
        r = run(d, fault);
        done(d);
        free(d);
        return r;
}
