/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/launch/duty.h"

#include "preload/launch/peers.h"
#include "preload/launch/tunables.h"

enum { PERCENT = 100 };

static void count_peers(ProcessUsage *m, const SliceUser *slice, uint64_t now) {
        uint64_t counted = atomic_load(&m->counted);

        if (counted != 0 && now - counted < PEERS_COUNT_NS)
                return;
        if (atomic_compare_exchange_strong(&m->counted, &counted, now))
                atomic_store(&m->peers, peers_count(slice));
}

/* Credit of more than one period (DUTY_PERIOD_NS) is dropped. */
void duty_fill(ProcessUsage *m, const SliceUser *slice, uint32_t percent, uint64_t now) {
        uint64_t filled = atomic_load(&m->filled), passed = now - filled, peers;
        int64_t full, balance, next;

        if (filled != 0 && (now < filled || passed < DUTY_FILL_NS))
                return;
        count_peers(m, slice, now);
        peers = atomic_load(&m->peers);
        peers = peers > 0 ? peers : 1;
        full = (int64_t) (DUTY_PERIOD_NS * percent / PERCENT / peers);
        if (!atomic_compare_exchange_strong(&m->filled, &filled, now))
                return;
        balance = atomic_load(&m->balance);
        if (filled == 0) { /* the arbiter has settled older debts */
                atomic_store(&m->balance, 0);
                return;
        }
        passed = passed < MAX_DUTY_FILL_NS ? passed : MAX_DUTY_FILL_NS;
        do {
                next = balance + (int64_t) (passed * percent / PERCENT / peers);
                next = next < full ? next : full;
        } while (!atomic_compare_exchange_weak(&m->balance, &balance, next));
}

bool duty_take(ProcessUsage *m, uint64_t nsec) {
        int64_t balance = atomic_load(&m->balance);

        do
                if (balance <= 0)
                        return false;
        while (!atomic_compare_exchange_weak(&m->balance, &balance, balance - (int64_t) nsec));
        return true;
}

uint64_t duty_until(ProcessUsage *m, uint32_t percent) {
        int64_t balance = atomic_load(&m->balance);

        return balance < 0 && percent > 0 ? (uint64_t) -balance * PERCENT / percent : 0;
}
