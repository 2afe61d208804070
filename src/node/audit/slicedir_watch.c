/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/slicedir_watch.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "gpu/cards/card_list.h"

#define TURN       (1 * USEC_PER_SEC)
#define TOLD_AGAIN (60 * USEC_PER_SEC)

enum {
        FOREIGN_EVERY = 10 /* looks: whose they are costs more than how large they are */,
        KEY_SIZE = SLICEDIR_ID_SIZE + 16
};

/* What was told of, so that it is not told again and again. */
typedef struct Told {
        UT_hash_handle hh;
        char key[KEY_SIZE]; /* ID, or ID/N of one that has grown */
        usec_t at;          /* of one that has grown; 0: of a foreign one, */
        bool seen;          /* at the last look */
} Told;

typedef struct ForeignCard {
        char uuid[SLICE_UUID];
        uint64_t bytes;
} ForeignCard;

struct SlicedirWatch {
        SlicedirWatchOptions o;
        sd_event_source *timer;
        Told *told;
        ForeignCard cards[CARDS_MAX];
        size_t n_cards;
        uint64_t grown;
        unsigned looks;
};

static Told *told_of(SlicedirWatch *w, const char *key, bool *ret_first) {
        Told *t;

        HASH_FIND(hh, w->told, key, strlen(key), t);
        *ret_first = t == NULL;
        if (t)
                return t;
        t = calloc(1, sizeof *t);
        if (!t)
                return NULL; /* told of at another look */
        (void) snprintf(t->key, sizeof t->key, "%s", key);
        HASH_ADD_KEYPTR(hh, w->told, t->key, strlen(t->key), t);
        if (hash_added(t, hh))
                return t;
        free(t);
        return NULL;
}

static void forget(SlicedirWatch *w, Told *t) {
        HASH_DELETE(hh, w->told, t);
        free(t);
}

/* ---- what has grown ---- */

static void on_grown(void *userdata, const SlicedirGrown *grown) {
        SlicedirWatch *w = userdata;
        char key[KEY_SIZE];
        bool first;
        Told *t;

        (void) snprintf(key, sizeof key, "%s/%u", grown->id, grown->number);
        w->grown++;
        t = told_of(w, key, &first);
        if (!t || !first)
                return;
        t->at = clock_monotonic_usec();
        w->o.on_grown(w->o.userdata, grown);
}

/* ---- whose they are ---- */

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
        bool first = false, told = true;
        Told *t;

        if (strncmp(slice->owner, SLICEDIR_AGENT, strlen(SLICEDIR_AGENT)) == 0)
                return 0;
        t = told_of(w, slice->id, &first);
        if (t)
                t->seen = true;
        for (uint32_t i = 0; i < slice->n_cards; i++) {
                const SliceLimits *l = &slice->cards[i].limits;
                ForeignSlice foreign = {slice->id, slice->owner, l->card, l->uuid, l->limit};

                add_card(w, &foreign);
                if (t && first)
                        told &= w->o.on_foreign(w->o.userdata, &foreign);
        }
        if (!told)
                forget(w, t);
        return 0;
}

static void look_whose(SlicedirWatch *w) {
        Told *t, *next;

        w->n_cards = 0;
        HASH_ITER(hh, w->told, t, next)
        t->seen = false;
        if (slicedir_each(w->o.board, on_slice, w) < 0)
                return; /* nothing is known, and nothing forgotten */
        HASH_ITER(hh, w->told, t, next)
        if (t->at == 0 && !t->seen)
                forget(w, t);
}

/* ---- in turns ---- */

static void forget_old(SlicedirWatch *w) {
        usec_t now = clock_monotonic_usec();
        Told *t, *next;

        HASH_ITER(hh, w->told, t, next)
        if (t->at > 0 && now - t->at > TOLD_AGAIN)
                forget(w, t);
}

static int on_turn(sd_event_source *source, uint64_t usec, void *userdata) {
        SlicedirWatch *w = userdata;

        if (w->o.board->fd >= 0) { /* one that cannot be read is told of when it is needed */
                forget_old(w);
                (void) slicedir_trim(w->o.board, on_grown, w);
                if (w->looks++ % FOREIGN_EVERY == 0)
                        look_whose(w);
        }
        (void) sd_event_source_set_time(source, clock_monotonic_usec() + w->o.turn);
        (void) sd_event_source_set_enabled(source, SD_EVENT_ONESHOT); /* both fail for NULL alone */
        return 0;
}

int slicedir_watch_new(const SlicedirWatchOptions *options, SlicedirWatch **ret) {
        _cleanup_(slicedir_watch_freep) SlicedirWatch *w = calloc(1, sizeof *w);
        int r;

        if (!w)
                return -ENOMEM;
        w->o = *options;
        if (w->o.turn == 0)
                w->o.turn = TURN;
        r = sd_event_add_time_relative(w->o.event, &w->timer, CLOCK_MONOTONIC, w->o.turn, 0, on_turn, w);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(w);
        return 0;
}

SlicedirWatch *slicedir_watch_free(SlicedirWatch *w) {
        Told *t, *next;

        if (!w)
                return NULL;
        HASH_ITER(hh, w->told, t, next)
        forget(w, t);
        sd_event_source_disable_unref(w->timer);
        free(w);
        return NULL;
}

uint64_t slicedir_watch_grown(const SlicedirWatch *w) {
        return w->grown;
}

uint64_t slicedir_watch_foreign(const SlicedirWatch *w, const char *uuid) {
        for (size_t i = 0; i < w->n_cards; i++)
                if (strcmp(w->cards[i].uuid, uuid) == 0)
                        return w->cards[i].bytes;
        return 0;
}
