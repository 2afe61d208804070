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
        TenantPolicy terms;
        uint64_t total, nsec; /* as the page says; of this window */
        bool now;             /* it is there */
        bool own;             /* it is asked about */
} WindowPage;

typedef struct WindowCard {
        UT_hash_handle hh;
        char uuid[SLICE_UUID];
        uint64_t seen; /* of any page, the newest */
        bool away;     /* the arbiter was, once in this window */
} WindowCard;

void window_totals_done(WindowTotals *g) {
        WindowPage *p, *next_page;
        WindowCard *c, *next_card;

        HASH_ITER(hh, g->pages, p, next_page) {
                HASH_DELETE(hh, g->pages, p);
                free(p);
        }
        HASH_ITER(hh, g->cards, c, next_card) {
                HASH_DELETE(hh, g->cards, c);
                free(c);
        }
}

/* ---- reading ---- */

static WindowCard *card_of(WindowTotals *g, const char *uuid) {
        WindowCard *c;

        HASH_FIND_STR(g->cards, uuid, c);
        if (c)
                return c;
        c = calloc(1, sizeof *c);
        if (!c)
                return NULL;
        memcpy(c->uuid, uuid, strnlen(uuid, SLICE_UUID - 1));
        HASH_ADD_STR(g->cards, uuid, c);
        if (!hash_added(c, hh)) {
                free(c);
                return NULL;
        }
        return c;
}

static WindowPage *page_of(WindowTotals *g, const char *id, uint32_t number, uint64_t total) {
        char key[KEY_SIZE];
        WindowPage *p;

        (void) snprintf(key, sizeof key, "%s/%u", id, number);
        HASH_FIND_STR(g->pages, key, p);
        if (p)
                return p;
        p = calloc(1, sizeof *p);
        if (!p)
                return NULL;
        memcpy(p->key, key, sizeof key);
        (void) snprintf(p->id, sizeof p->id, "%s", id);
        p->total = total;
        HASH_ADD_STR(g->pages, key, p);
        if (!hash_added(p, hh)) {
                free(p);
                return NULL;
        }
        return p;
}

/* As the arbiter understands it. */
static TenantPolicy terms_of(const SliceLimits *l) {
        CardCompute compute = slice_files_compute(l);
        ComputeRequest request = slice_files_request(l);

        return tenant_policy(&compute, &request);
}

/* A page that was made anew, for the container's next start, begins at 0. */
static void take_page(WindowTotals *g, const char *id, uint32_t number, const SliceLimits *l) {
        uint64_t total = atomic_load_explicit(&l->schedule.granted, memory_order_relaxed);
        uint64_t seen = atomic_load_explicit(&l->schedule.seen, memory_order_relaxed);
        WindowPage *p = page_of(g, id, number, g->begun ? 0 : total);
        WindowCard *c = card_of(g, l->uuid);

        if (!p || !c)
                return;
        memcpy(p->uuid, l->uuid, sizeof p->uuid);
        p->terms = terms_of(l);
        p->nsec += total >= p->total ? total - p->total : total;
        p->total = total;
        p->now = true;
        c->seen = seen > c->seen ? seen : c->seen;
}

static void take_slice(WindowTotals *g, const Slicedir *board, const char *id) {
        for (uint32_t number = 0; number < SLICEDIR_CARDS_MAX; number++) {
                _cleanup_close_ int directory = -1;
                char path[KEY_SIZE];
                SliceLimits limits;

                (void) snprintf(path, sizeof path, "%s/%u", id, number);
                directory = openat(board->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
                if (directory < 0)
                        return; /* they are numbered from 0 on */
                if (slice_files_read_limits(directory, &limits) == 0)
                        take_page(g, id, number, &limits);
        }
}

/* What is gone had what it had of this window. */
static void drop_gone(WindowTotals *g) {
        WindowPage *p, *next;

        HASH_ITER(hh, g->pages, p, next) {
                if (p->now || p->nsec > 0)
                        continue;
                HASH_DELETE(hh, g->pages, p);
                free(p);
        }
}

void window_totals_read(WindowTotals *g, const Slicedir *board, uint64_t now) {
        int fd = board->fd < 0 ? -1 : openat(board->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
        const struct dirent *entry;

        if (!entries && fd >= 0)
                (void) close(fd);
        for (WindowPage *p = g->pages; p; p = p->hh.next)
                p->now = false;
        for (WindowCard *c = g->cards; c; c = c->hh.next)
                c->seen = 0;
        while (entries && (entry = readdir(entries)))
                if (entry->d_name[0] != '.' && strlen(entry->d_name) < SLICEDIR_ID_SIZE &&
                    (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN))
                        take_slice(g, board, entry->d_name);
        if (entries)
                (void) closedir(entries);
        for (WindowCard *c = g->cards; c; c = c->hh.next)
                c->away |= now > c->seen && now - c->seen > SCHED_STALE_NSEC;
        drop_gone(g);
        g->begun = true;
}

void window_totals_begin(WindowTotals *g, const char *uuid) {
        WindowCard *c;

        for (WindowPage *p = g->pages; p; p = p->hh.next)
                if (strcmp(p->uuid, uuid) == 0)
                        p->nsec = 0;
        HASH_FIND_STR(g->cards, uuid, c);
        if (c)
                c->away = false;
}

/* ---- sums ---- */

static bool is_shared(const WindowPage *p) {
        return p->terms.gated && p->terms.conserving;
}

bool window_totals_has_shared(const WindowTotals *g) {
        for (const WindowPage *p = g->pages; p; p = p->hh.next)
                if (p->now && is_shared(p))
                        return true;
        return false;
}

/* Which of the pages are meant. False: nobody can say what they may have. */
static bool mark(WindowTotals *g, const char *uuid, const char (*ids)[SLICEDIR_ID_SIZE], size_t n) {
        bool any = false;

        for (WindowPage *p = g->pages; p; p = p->hh.next) {
                p->own = false;
                for (size_t i = 0; i < n && strcmp(p->uuid, uuid) == 0; i++)
                        p->own |= strcmp(p->id, ids[i]) == 0;
                if (p->own && !is_shared(p))
                        return false;
                any |= p->own;
        }
        return any;
}

/* Caps, and who comes first, are served before weights. */
static uint32_t floor_of(const WindowTotals *g, const char *uuid) {
        uint64_t weights = 0, own = 0, rates = 0, own_rates = 0, left;

        for (const WindowPage *p = g->pages; p; p = p->hh.next) {
                if (!p->now || !p->terms.gated || strcmp(p->uuid, uuid) != 0)
                        continue;
                if (p->terms.conserving && !p->terms.high) {
                        weights += p->terms.weight;
                        own += p->own ? p->terms.weight : 0;
                } else if (p->own)
                        own_rates += p->terms.rate;
                else
                        rates += p->terms.rate;
        }
        left = rates + own_rates < POLICY_PPM ? POLICY_PPM - rates - own_rates : 0;
        left = own_rates + (weights > 0 ? left * own / weights : 0);
        return left < POLICY_PPM ? (uint32_t) left : POLICY_PPM;
}

bool window_totals_of(WindowTotals *g, const char *uuid, const char (*ids)[SLICEDIR_ID_SIZE], size_t n,
                      WindowSum *ret) {
        const WindowCard *c;

        HASH_FIND_STR(g->cards, uuid, c);
        if (!c || c->away || !mark(g, uuid, ids, n))
                return false;
        *ret = (WindowSum){.floor = floor_of(g, uuid)};
        for (const WindowPage *p = g->pages; p; p = p->hh.next)
                if (strcmp(p->uuid, uuid) == 0)
                        *(p->own ? &ret->own : &ret->others) += p->nsec;
        return true;
}
