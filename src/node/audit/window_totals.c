/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/window_totals.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"

enum { KEY_SIZE = SLICEDIR_ID_SIZE + 16 };

typedef struct WindowPage {
        UT_hash_handle hh;
        char key[KEY_SIZE]; /* ID/N */
        char id[SLICEDIR_ID_SIZE], uuid[SLICE_UUID];
        TenantPolicy policy;
        uint64_t total, nsec; /* ns granted: ever, by the page; in this window */
        bool exists;          /* it was there at the last reading */
        bool own;             /* it is of the slices in question */
} WindowPage;

typedef struct WindowCard {
        UT_hash_handle hh;
        char uuid[SLICE_UUID];
        uint64_t seen; /* the newest SliceSchedule.seen of its pages */
        bool away;     /* the arbiter was away in this window */
} WindowCard;

void window_totals_done(WindowTotals *w) {
        WindowPage *p, *next_page;
        WindowCard *c, *next_card;

        HASH_ITER(hh, w->pages, p, next_page) {
                HASH_DELETE(hh, w->pages, p);
                free(p);
        }
        HASH_ITER(hh, w->cards, c, next_card) {
                HASH_DELETE(hh, w->cards, c);
                free(c);
        }
}

/* ---- reading ---- */

static WindowCard *card_of(WindowTotals *w, const char *uuid) {
        WindowCard *c;

        HASH_FIND_STR(w->cards, uuid, c);
        if (c)
                return c;
        c = calloc(1, sizeof *c);
        if (!c)
                return NULL;
        memcpy(c->uuid, uuid, strnlen(uuid, SLICE_UUID - 1));
        HASH_ADD_STR(w->cards, uuid, c);
        if (!hash_added(c, hh)) {
                free(c);
                return NULL;
        }
        return c;
}

static WindowPage *page_of(WindowTotals *w, const char *id, uint32_t number, uint64_t total) {
        char key[KEY_SIZE];
        WindowPage *p;

        (void) snprintf(key, sizeof key, "%s/%u", id, number);
        HASH_FIND_STR(w->pages, key, p);
        if (p)
                return p;
        p = calloc(1, sizeof *p);
        if (!p)
                return NULL;
        memcpy(p->key, key, sizeof key);
        (void) snprintf(p->id, sizeof p->id, "%s", id);
        p->total = total;
        HASH_ADD_STR(w->pages, key, p);
        if (!hash_added(p, hh)) {
                free(p);
                return NULL;
        }
        return p;
}

/* The policy that the arbiter derives from the page. */
static TenantPolicy policy_of(const SliceLimits *l) {
        CardCompute compute = slice_files_compute(l);
        ComputeRequest request = slice_files_request(l);

        return tenant_policy(&compute, &request);
}

/* Adds the time that a page was granted since the last reading. A page made anew, for the next
 * start of its container, begins at 0. */
static void take_page(WindowTotals *w, const char *id, uint32_t number, const SliceLimits *l) {
        uint64_t total = atomic_load_explicit(&l->schedule.granted, memory_order_relaxed);
        uint64_t seen = atomic_load_explicit(&l->schedule.seen, memory_order_relaxed);
        WindowPage *p = page_of(w, id, number, w->begun ? 0 : total);
        WindowCard *c = card_of(w, l->uuid);

        if (!p || !c)
                return;
        memcpy(p->uuid, l->uuid, sizeof p->uuid);
        p->policy = policy_of(l);
        p->nsec += total >= p->total ? total - p->total : total;
        p->total = total;
        p->exists = true;
        c->seen = seen > c->seen ? seen : c->seen;
}

static void take_slice(WindowTotals *w, const Slicedir *slices, const char *id) {
        for (uint32_t number = 0; number < SLICEDIR_CARDS_MAX; number++) {
                _cleanup_close_ int directory = -1;
                char path[KEY_SIZE];
                SliceLimits limits;

                (void) snprintf(path, sizeof path, "%s/%u", id, number);
                directory = openat(slices->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
                if (directory < 0)
                        return; /* cards are numbered from 0 on */
                if (slice_files_read_limits(directory, &limits) == 0)
                        take_page(w, id, number, &limits);
        }
}

/* Drops pages that are gone, unless they have time of this window. The next page of that name
 * begins at 0. */
static void drop_gone(WindowTotals *w) {
        WindowPage *p, *next;

        HASH_ITER(hh, w->pages, p, next) {
                if (!p->exists)
                        p->total = 0;
                if (p->exists || p->nsec > 0)
                        continue;
                HASH_DELETE(hh, w->pages, p);
                free(p);
        }
}

void window_totals_read(WindowTotals *w, const Slicedir *slices, uint64_t now) {
        int fd = slices->fd < 0 ? -1 : openat(slices->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
        const struct dirent *entry;

        if (!entries && fd >= 0)
                (void) close(fd);
        for (WindowPage *p = w->pages; p; p = p->hh.next)
                p->exists = false;
        for (WindowCard *c = w->cards; c; c = c->hh.next)
                c->seen = 0;
        while (entries && (entry = readdir(entries)))
                if (entry->d_name[0] != '.' && strlen(entry->d_name) < SLICEDIR_ID_SIZE &&
                    (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN))
                        take_slice(w, slices, entry->d_name);
        for (WindowCard *c = w->cards; c; c = c->hh.next)
                c->away |= now > c->seen && now - c->seen > SCHED_STALE_NSEC;
        if (entries) { /* else nothing is known, and no page counts as gone */
                (void) closedir(entries);
                drop_gone(w);
        }
        w->begun = true;
}

void window_totals_begin(WindowTotals *w, const char *uuid) {
        WindowCard *c;

        for (WindowPage *p = w->pages; p; p = p->hh.next)
                if (strcmp(p->uuid, uuid) == 0)
                        p->nsec = 0;
        HASH_FIND_STR(w->cards, uuid, c);
        if (c)
                c->away = false;
}

/* ---- sums ---- */

static bool is_shared(const WindowPage *p) {
        return p->policy.gated && p->policy.conserving;
}

bool window_totals_has_shared(const WindowTotals *w) {
        for (const WindowPage *p = w->pages; p; p = p->hh.next)
                if (p->exists && is_shared(p))
                        return true;
        return false;
}

/* Marks the pages of these slices. False: there are none, or one has no shared windows. */
static bool mark_pages(WindowTotals *w, const char *uuid, const char (*ids)[SLICEDIR_ID_SIZE], size_t n) {
        bool any = false;

        for (WindowPage *p = w->pages; p; p = p->hh.next) {
                p->own = false;
                for (size_t i = 0; i < n && strcmp(p->uuid, uuid) == 0; i++)
                        p->own |= strcmp(p->id, ids[i]) == 0;
                if (p->own && !is_shared(p))
                        return false;
                any |= p->own;
        }
        return any;
}

/* The part of the card, in ppm, that the marked slices have when all want it. Caps and high
 * priority are served before weights. */
static uint32_t floor_of(const WindowTotals *w, const char *uuid) {
        uint64_t weights = 0, own = 0, rates = 0, own_rates = 0, left;

        for (const WindowPage *p = w->pages; p; p = p->hh.next) {
                if (!p->exists || !p->policy.gated || strcmp(p->uuid, uuid) != 0)
                        continue;
                if (p->policy.conserving && !p->policy.high) {
                        weights += p->policy.weight;
                        own += p->own ? p->policy.weight : 0;
                } else if (p->own)
                        own_rates += p->policy.rate;
                else
                        rates += p->policy.rate;
        }
        left = rates + own_rates < POLICY_PPM ? POLICY_PPM - rates - own_rates : 0;
        left = own_rates + (weights > 0 ? left * own / weights : 0);
        return left < POLICY_PPM ? (uint32_t) left : POLICY_PPM;
}

bool window_totals_of(WindowTotals *w, const char *uuid, const char (*ids)[SLICEDIR_ID_SIZE], size_t n,
                      WindowSum *ret) {
        const WindowCard *c;

        HASH_FIND_STR(w->cards, uuid, c);
        if (!c || c->away || !mark_pages(w, uuid, ids, n))
                return false;
        *ret = (WindowSum){.floor = floor_of(w, uuid)};
        for (const WindowPage *p = w->pages; p; p = p->hh.next)
                if (strcmp(p->uuid, uuid) == 0)
                        *(p->own ? &ret->own : &ret->others) += p->nsec;
        return true;
}
