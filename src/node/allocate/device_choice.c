/* SPDX-License-Identifier: Apache-2.0 */
#include "node/allocate/device_choice.h"

#include <errno.h>

/* Devices are taken in this order. */
typedef enum Rank { RANK_MUST, RANK_FREE, RANK_HELD, RANKS_ } Rank;

/* Whether the device is of this rank. is_held is called as rarely as possible: a card may have a
 * hundred thousand devices. */
static bool has_rank(const DeviceChoice *choice, DeviceId id, Rank rank) {
        bool is_must = device_set_has(choice->must_include, id);

        if (rank == RANK_MUST || is_must)
                return rank == RANK_MUST && is_must;
        return (choice->is_held && choice->is_held(choice->userdata, choice->kind, id)) ==
               (rank == RANK_HELD);
}

/* The part of the sorted set that is on one card. */
static void slice_of(const DeviceSet *s, uint32_t card, size_t *ret_from, size_t *ret_to) {
        size_t at = 0, from = 0;
        uint32_t at_card, count;

        while (device_set_next_card(s, &at, &at_card, &count)) {
                if (at_card == card) {
                        *ret_from = from;
                        *ret_to = at;
                        return;
                }
                from = at;
        }
        *ret_from = *ret_to = 0;
}

static void take(const DeviceChoice *choice, const CardShare *share, DeviceSet *into) {
        uint32_t wanted = share->count;
        size_t from, to;

        slice_of(choice->available, share->card, &from, &to);
        for (int rank = 0; rank < RANKS_ && wanted > 0; rank++)
                for (size_t i = from; i < to && wanted > 0; i++) {
                        DeviceId id = choice->available->ids[i];

                        if (!has_rank(choice, id, (Rank) rank))
                                continue;
                        into->ids[into->n++] = id;
                        wanted--;
                }
}

static int compare(const void *a, const void *b) {
        const DeviceId *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

int device_choice_make(const DeviceChoice *choice, DeviceSet *ret, Fault *fault) {
        _cleanup_devices_ DeviceSet chosen = DEVICE_SET_NULL;
        size_t wanted = 0;

        for (size_t i = 0; i < choice->n_shares; i++)
                wanted += choice->shares[i].count;
        chosen.ids = calloc(wanted > 0 ? wanted : 1, sizeof *chosen.ids);
        if (!chosen.ids)
                return -ENOMEM;
        for (size_t i = 0; i < choice->n_shares; i++) {
                size_t before = chosen.n;

                take(choice, &choice->shares[i], &chosen);
                if (chosen.n - before == choice->shares[i].count)
                        continue;
                return fault_set(fault, DEVICE_CHOICE_E_SHORT,
                                 "gpu%u has %zu of %s free, the pod's place is %u there",
                                 choice->shares[i].card, chosen.n - before, device_resource(choice->kind),
                                 choice->shares[i].count);
        }
        qsort(chosen.ids, chosen.n, sizeof *chosen.ids, compare);
        *ret = chosen;
        chosen = DEVICE_SET_NULL;
        return 0;
}
