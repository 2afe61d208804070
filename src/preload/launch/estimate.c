/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/estimate.h"

#include <stddef.h>

#include "preload/launch/tunables.h"

/* One measurement moves the average by 1/AVERAGE_PART. */
enum { AVERAGE_PART = 4, MOST_GROWTH = 2 };

static uint64_t mixed(uintptr_t function, uint64_t blocks) {
        uint64_t k =
                (uint64_t) function * UINT64_C(0x9E3779B97F4A7C15) ^ blocks * UINT64_C(0xC2B2AE3D27D4EB4F);

        k ^= k >> 29;
        k *= UINT64_C(0xBF58476D1CE4E5B9);
        k ^= k >> 32;
        return k | 1; /* 0 marks a free entry */
}

static Estimate *init_entry(Estimate *e, uint64_t key) {
        atomic_store_explicit(&e->nsec, 0, memory_order_relaxed);
        atomic_store_explicit(&e->key, key, memory_order_relaxed);
        return e;
}

Estimate *estimate_find(Estimates *t, uintptr_t function, uint64_t blocks) {
        uint64_t key = mixed(function, blocks), at = key >> 8, there;
        Estimate *e;

        for (unsigned i = 0; i < ESTIMATE_WAYS; i++) {
                e = &t->of[(at + i) & (ESTIMATES - 1)];
                there = atomic_load_explicit(&e->key, memory_order_relaxed);
                if (there == key)
                        return e;
                if (there == 0)
                        return init_entry(e, key);
        }
        at += atomic_fetch_add_explicit(&t->n_replaced, 1, memory_order_relaxed) % ESTIMATE_WAYS;
        return init_entry(&t->of[at & (ESTIMATES - 1)], key);
}

uint64_t estimate_nsec(const Estimate *e) {
        uint64_t nsec = atomic_load_explicit(&e->nsec, memory_order_relaxed);

        return nsec != 0 ? nsec : ESTIMATE_COLD_NS;
}

bool estimate_is_cold(const Estimate *e) {
        return atomic_load_explicit(&e->nsec, memory_order_relaxed) == 0;
}

static void set(Estimate *e, uint64_t nsec) {
        atomic_store_explicit(&e->nsec, nsec > 0 ? nsec : 1, memory_order_relaxed);
}

typedef struct Sums {
        uint64_t known;      /* the estimate of all measured launches, ns */
        uint64_t cold, warm; /* unmeasured launches; measured ones */
} Sums;

static Sums sums_of(const EstimateShare *shares, unsigned n) {
        Sums s = {0};

        for (unsigned i = 0; i < n; i++) {
                if (estimate_is_cold(shares[i].of)) {
                        s.cold += shares[i].launches;
                } else {
                        s.known += estimate_nsec(shares[i].of) * shares[i].launches;
                        s.warm += shares[i].launches;
                }
        }
        return s;
}

/* The time of one unmeasured launch: what the measured ones leave, or if they leave nothing, the
 * same share for all launches. */
static uint64_t first_time(const Sums *s, uint64_t nsec) {
        return nsec > s->known ? (nsec - s->known) / s->cold : nsec / (s->cold + s->warm);
}

/* The new average after a short time, which is not believed if it is far above the old one. */
static uint64_t average(uint64_t old, uint64_t each) {
        uint64_t next = each > old ? old + (each - old + AVERAGE_PART - 1) / AVERAGE_PART
                                   : old - (old - each) / AVERAGE_PART;

        return next < MOST_GROWTH * old ? next : MOST_GROWTH * old;
}

void estimate_learn(const EstimateShare *shares, unsigned n, uint64_t nsec, bool is_long) {
        const Sums s = sums_of(shares, n);
        uint64_t old, each;

        for (unsigned i = 0; i < n; i++) {
                old = atomic_load_explicit(&shares[i].of->nsec, memory_order_relaxed);
                if (old == 0 && s.cold > 0) {
                        set(shares[i].of, first_time(&s, nsec));
                } else if (old > 0 && s.cold == 0 && s.known > 0) {
                        each = (uint64_t) ((double) old * ((double) nsec / (double) s.known));
                        set(shares[i].of, is_long ? each : average(old, each));
                }
        }
}
