/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/slicedir_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/told.h"
#include "gpu/cards/card_list.h"

#define PERIOD          (1 * USEC_PER_SEC)
#define REPORT_INTERVAL (60 * USEC_PER_SEC)
/* Longer, because refusals go on: allocators try again with less. */
#define REFUSED_INTERVAL (10 * REPORT_INTERVAL)

enum {
        /* every tenth look: reading the owners costs more than reading the sizes */
        FOREIGN_EVERY = 10,
        KEY_SIZE = SLICEDIR_ID_SIZE + 48
};

/* What was reported, so that it is not reported again at once. */
typedef struct Reported {
        UT_hash_handle hh;
        char key[KEY_SIZE]; /* ID of a foreign slice; that of write_key() of another one */
        usec_t at;          /* when a grown or rewritten file was reported; 0: a foreign slice */
        bool seen;          /* the foreign slice was there at the last look */
} Reported;

/* The counters of a slice's card, as they were at the last look. */
typedef struct WatchedCounters {
        UT_hash_handle hh;
        char key[KEY_SIZE]; /* as write_key() makes it */
        SliceSequences sequences;
        uint64_t refused; /* refusals that were reported, or are from before the watch */
        Told told;        /* when refusals were last reported */
        bool seen;        /* the counters were there at this look */
        bool rowless;     /* reported */
} WatchedCounters;

typedef struct ForeignCard {
        char uuid[SLICE_UUID];
        uint64_t bytes;
} ForeignCard;

struct SlicedirWatch {
        SlicedirWatchOptions o;
        sd_event_source *timer;
        Reported *reported;
        WatchedCounters *counters;
        ForeignCard cards[CARDS_MAX];
        size_t n_cards;
        uint64_t grown, rewritten;
        unsigned looks;
};

static Reported *reported_of(SlicedirWatch *w, const char *key, bool *ret_first) {
        Reported *t;

        HASH_FIND(hh, w->reported, key, strlen(key), t);
        *ret_first = t == NULL;
        if (t)
                return t;
        t = calloc(1, sizeof *t);
        if (!t)
                return NULL; /* out of memory: reported at a later look */
        (void) snprintf(t->key, sizeof t->key, "%s", key);
        HASH_ADD_KEYPTR(hh, w->reported, t->key, strlen(t->key), t);
        if (hash_added(t, hh))
                return t;
        free(t);
        return NULL;
}

static void forget_report(SlicedirWatch *w, Reported *t) {
        HASH_DELETE(hh, w->reported, t);
        free(t);
}

/* Makes ID/N/SLICE, with `end` behind it. SLICE tells the slice from the next one of its name,
 * which the next holder of its devices gets. The directory of that one is made anew; even the
 * numbers of its inodes may be the same. A restart of the container keeps the directory. */
static void write_key(const SlicedirCard *card, const char *end, char ret[static KEY_SIZE]) {
        struct statx st = {0};

        (void) statx(card->dir, "", AT_EMPTY_PATH, STATX_BTIME, &st); /* on failure the owner tells */
        (void) snprintf(ret, KEY_SIZE, "%s/%u/%llx%s", card->id, card->number,
                        (unsigned long long) str_hash64(str_from(card->owner),
                                                        (uint64_t) st.stx_btime.tv_sec * 1000000000 +
                                                                st.stx_btime.tv_nsec),
                        end);
}

/* ---- files that have grown ---- */

static void on_grown(void *userdata, const SlicedirCard *grown) {
        SlicedirWatch *w = userdata;
        char key[KEY_SIZE];
        bool first;
        Reported *t;

        write_key(grown, "", key);
        w->grown++;
        t = reported_of(w, key, &first);
        if (!t || !first)
                return;
        t->at = clock_monotonic_usec();
        w->o.on_grown(w->o.userdata, grown);
}

/* ---- counters that were written back ---- */

static WatchedCounters *counters_of(SlicedirWatch *w, const char *key) {
        WatchedCounters *c;

        HASH_FIND(hh, w->counters, key, strlen(key), c);
        if (c || !(c = calloc(1, sizeof *c)))
                return c;
        (void) snprintf(c->key, sizeof c->key, "%s", key);
        HASH_ADD_KEYPTR(hh, w->counters, c->key, strlen(c->key), c);
        if (hash_added(c, hh))
                return c;
        free(c);
        return NULL;
}

/* Reports new refusals. A count that goes down belongs to the container's next start, or the
 * container wrote it. */
static void compare_refused(SlicedirWatch *w, const SlicedirCard *card, WatchedCounters *c) {
        if (w->looks == 0 || c->sequences.refused < c->refused)
                c->refused = c->sequences.refused;
        if (c->sequences.refused == c->refused ||
            !told_is_news(&c->told, STR(""), clock_monotonic_usec(), REFUSED_INTERVAL))
                return;
        c->refused = c->sequences.refused;
        w->o.on_refused(w->o.userdata, card, c->refused);
}

static void on_card(void *userdata, const SlicedirCard *card) {
        SlicedirWatch *w = userdata;
        bool behind = false, first;
        WatchedCounters *c;
        char key[KEY_SIZE];
        Reported *t;

        write_key(card, "", key);
        c = counters_of(w, key);
        if (!c)
                return; /* out of memory: it is compared at a later look */
        c->seen = true;
        if (slice_files_read_sequences(card->dir, &c->sequences, &behind) != 0)
                return;
        if (c->sequences.rowless > 0 && !c->rowless)
                w->o.on_rowless(w->o.userdata, card);
        c->rowless |= c->sequences.rowless > 0;
        compare_refused(w, card, c);
        if (!behind)
                return;
        w->rewritten++;
        write_key(card, "/back", key);
        t = reported_of(w, key, &first);
        if (!t || !first)
                return;
        t->at = clock_monotonic_usec();
        w->o.on_rewritten(w->o.userdata, card);
}

/* Forgets counters that were not there at the last look. all: every one. */
static void forget_counters(SlicedirWatch *w, bool all) {
        WatchedCounters *c, *next;

        HASH_ITER(hh, w->counters, c, next) {
                if (c->seen && !all)
                        continue;
                HASH_DELETE(hh, w->counters, c);
                free(c);
        }
}

static void look_at_counters(SlicedirWatch *w) {
        for (WatchedCounters *c = w->counters; c; c = c->hh.next)
                c->seen = false;
        if (slicedir_each_card(w->o.slicedir, on_card, w) == 0)
                forget_counters(w, false);
}

/* ---- foreign slices ---- */

static void add_card(SlicedirWatch *w, const ForeignSlice *foreign) {
        for (size_t i = 0; i < w->n_cards; i++)
                if (strcmp(w->cards[i].uuid, foreign->uuid) == 0) {
                        w->cards[i].bytes += foreign->bytes;
                        return;
                }
        if (w->n_cards == CARDS_MAX)
                return;
        (void) snprintf(w->cards[w->n_cards].uuid, SLICE_UUID, "%s", foreign->uuid);
        w->cards[w->n_cards++].bytes = foreign->bytes;
}

static int on_slice(void *userdata, const SlicedirEntry *slice) {
        SlicedirWatch *w = userdata;
        bool first = false, reported = true;
        Reported *t;

        if (strncmp(slice->owner, SLICEDIR_AGENT, strlen(SLICEDIR_AGENT)) == 0)
                return 0;
        t = reported_of(w, slice->id, &first);
        if (t)
                t->seen = true;
        for (uint32_t i = 0; i < slice->n_cards; i++) {
                const SliceLimits *l = &slice->cards[i].limits;
                ForeignSlice foreign = {slice->id, slice->owner, l->card, l->uuid, l->limit};

                add_card(w, &foreign);
                if (t && first)
                        reported &= w->o.on_foreign(w->o.userdata, &foreign);
        }
        if (!reported)
                forget_report(w, t);
        return 0;
}

static void look_for_foreign(SlicedirWatch *w) {
        Reported *t, *next;

        w->n_cards = 0;
        HASH_ITER(hh, w->reported, t, next)
        t->seen = false;
        if (slicedir_each(w->o.slicedir, on_slice, w) < 0)
                return; /* nothing is known, so nothing is forgotten */
        HASH_ITER(hh, w->reported, t, next)
        if (t->at == 0 && !t->seen)
                forget_report(w, t);
}

/* ---- each period ---- */

static void forget_old(SlicedirWatch *w) {
        usec_t now = clock_monotonic_usec();
        Reported *t, *next;

        HASH_ITER(hh, w->reported, t, next)
        if (t->at > 0 && now - t->at > REPORT_INTERVAL)
                forget_report(w, t);
}

static int on_period(sd_event_source *source, uint64_t usec, void *userdata) {
        SlicedirWatch *w = userdata;

        if (w->o.slicedir->fd >= 0) { /* where it cannot be opened, isolation reports it */
                forget_old(w);
                (void) slicedir_trim(w->o.slicedir, on_grown, w);
                look_at_counters(w);
                if (w->looks++ % FOREIGN_EVERY == 0)
                        look_for_foreign(w);
        }
        (void) sd_event_source_set_time(source, clock_monotonic_usec() + w->o.period);
        (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT); /* both fail for NULL alone */
        return 0;
}

int slicedir_watch_new(const SlicedirWatchOptions *options, SlicedirWatch **ret) {
        _cleanup_(slicedir_watch_freep) SlicedirWatch *w = calloc(1, sizeof *w);
        int r;

        if (!w)
                return -ENOMEM;
        w->o = *options;
        if (w->o.period == 0)
                w->o.period = PERIOD;
        r = sd_event_add_time_relative(w->o.event, &w->timer, CLOCK_MONOTONIC, w->o.period, 0, on_period, w);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(w);
        return 0;
}

SlicedirWatch *slicedir_watch_free(SlicedirWatch *w) {
        if (!w)
                return NULL;
        while (w->reported)
                forget_report(w, w->reported);
        forget_counters(w, true);
        sd_event_source_disable_unref(w->timer);
        free(w);
        return NULL;
}

uint64_t slicedir_watch_grown(const SlicedirWatch *w) {
        return w->grown;
}

uint64_t slicedir_watch_rewritten(const SlicedirWatch *w) {
        return w->rewritten;
}

uint64_t slicedir_watch_foreign(const SlicedirWatch *w, const char *uuid) {
        for (size_t i = 0; i < w->n_cards; i++)
                if (strcmp(w->cards[i].uuid, uuid) == 0)
                        return w->cards[i].bytes;
        return 0;
}
