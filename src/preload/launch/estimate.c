/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/estimate.h"

#include <stddef.h>

#include "preload/launch/tunables.h"

/* SURPRISE is the weight of a surprise, of which each other measurement takes 1 off. Above it the
 * length varies. One measurement moves the average by 1/AVERAGE_PART. More than OUTLIER times the
 * average is an outlier: the launching thread may have been delayed. */
enum { SURPRISE = 256, SURPRISES_MAX = 16 * SURPRISE, AVERAGE_PART = 4, OUTLIER = 4 };

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
        atomic_store_explicit(&e->outlier, 0, memory_order_relaxed);
        atomic_store_explicit(&e->steady, 0, memory_order_relaxed);
        atomic_store_explicit(&e->surprises, 0, memory_order_relaxed);
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
        return init_entry(&t->of[(at + (key >> 40) % ESTIMATE_WAYS) & (ESTIMATES - 1)], key);
}

uint64_t estimate_nsec(const Estimate *e) {
        uint64_t nsec = atomic_load_explicit(&e->nsec, memory_order_relaxed);

        return nsec != 0 ? nsec : ESTIMATE_COLD_NS;
}

bool estimate_is_cold(const Estimate *e) {
        return atomic_load_explicit(&e->nsec, memory_order_relaxed) == 0;
}

uint64_t estimate_newest(const Estimate *e) {
        uint64_t odd = atomic_load_explicit(&e->outlier, memory_order_relaxed), nsec = estimate_nsec(e);

        return odd > nsec ? odd : nsec;
}

bool estimate_is_uncertain(const Estimate *e) {
        return estimate_is_cold(e) || estimate_newest(e) > estimate_nsec(e);
}

/* Longer than estimated by a factor and an amount that matter. */
static bool is_surprise(uint64_t supposed, uint64_t nsec) {
        return nsec / OUTLIER > supposed && nsec - supposed >= MIN_SURPRISE_NS;
}

bool estimate_varies(const Estimate *e) {
        return atomic_load_explicit(&e->surprises, memory_order_relaxed) > SURPRISE;
}

uint32_t estimate_max_launches(const Estimate *e) {
        uint32_t steady = atomic_load_explicit(&e->steady, memory_order_relaxed);

        return (uint32_t) ESTIMATE_FEW << (estimate_varies(e) && steady > 1 ? 1 : steady);
}

bool estimate_is_new(const Estimate *e) {
        return atomic_load_explicit(&e->steady, memory_order_relaxed) < ESTIMATE_STEADY;
}

/* Concurrent measurements may lose an update. */
static void note_surprise(Estimate *e, bool surprise) {
        uint32_t n = atomic_load_explicit(&e->surprises, memory_order_relaxed),
                 steady = atomic_load_explicit(&e->steady, memory_order_relaxed);

        n = surprise ? n + SURPRISE : n - (n > 0);
        atomic_store_explicit(&e->surprises, n < SURPRISES_MAX ? n : SURPRISES_MAX, memory_order_relaxed);
        steady = surprise ? 0 : steady + (steady < ESTIMATE_STEADY);
        atomic_store_explicit(&e->steady, steady, memory_order_relaxed);
}

static void set(Estimate *e, uint64_t nsec) {
        atomic_store_explicit(&e->nsec, nsec > 0 ? nsec : 1, memory_order_relaxed);
}

/* The estimate of all measured launches, ns; *ret_cold: the number of unmeasured ones. */
static uint64_t known_sum(const EstimateShare *shares, unsigned n, uint64_t *ret_cold) {
        uint64_t known = 0;

        *ret_cold = 0;
        for (unsigned i = 0; i < n; i++)
                if (estimate_is_cold(shares[i].of))
                        *ret_cold += shares[i].launches;
                else
                        known += estimate_nsec(shares[i].of) * shares[i].launches;
        return known;
}

/* One outlier may be chance: the launching thread was delayed. Two on the same side are a new
 * length; the one nearer to the average is taken. */
static bool is_new_length(Estimate *e, uint64_t old, uint64_t each) {
        uint64_t odd = atomic_load_explicit(&e->outlier, memory_order_relaxed);
        bool longer = each / OUTLIER > old, shorter = old / OUTLIER > each;

        atomic_store_explicit(&e->outlier, longer || shorter ? each : 0, memory_order_relaxed);
        if (odd == 0 || !((longer && odd > old) || (shorter && odd < old)))
                return false;
        atomic_store_explicit(&e->outlier, 0, memory_order_relaxed);
        set(e, (longer && odd < each) || (shorter && odd > each) ? odd : each);
        return true;
}

void estimate_learn(const EstimateShare *shares, unsigned n, uint64_t nsec, bool own) {
        uint64_t cold, known = known_sum(shares, n, &cold), each, old;

        for (unsigned i = 0; i < n; i++) {
                if (estimate_is_cold(shares[i].of)) {
                        if (cold == 0)
                                continue; /* the entry was replaced in between */
                        set(shares[i].of, nsec > known ? (nsec - known) / cold : 1);
                        note_surprise(shares[i].of, false);
                        continue;
                }
                if (cold > 0 || known == 0)
                        continue;
                old = estimate_nsec(shares[i].of);
                each = (uint64_t) ((double) old * ((double) nsec / (double) known));
                note_surprise(shares[i].of, own && is_surprise(old, each));
                if (own && is_new_length(shares[i].of, old, each > 0 ? each : 1))
                        continue;
                each = each / OUTLIER < old ? each : old * OUTLIER;
                set(shares[i].of, each > old ? old + (each - old + AVERAGE_PART - 1) / AVERAGE_PART
                                             : old - (old - each) / AVERAGE_PART);
        }
}
