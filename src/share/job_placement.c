/* SPDX-License-Identifier: Apache-2.0 */
#include "share/job_placement.h"

#include <errno.h>

#include "share/card_set.h"
#include "share/ledger-internal.h"

uint32_t job_placement_room(const LedgerNode *node, const Request *request, uint32_t most) {
        Request many = *request;
        Refusal refusal;
        uint32_t pods = 0;

        while (pods < most && (pods + 1) * request->cards <= node->n_cards) {
                many.cards = (pods + 1) * request->cards;
                if (placement_check(node, &many, &refusal) != 0)
                        break;
                pods++;
        }
        return pods;
}

/* The slices of `all` that are on the cards of this set, copied to `at`. */
static Placement part_of(const Placement *all, uint32_t set, Slice *at) {
        Placement part = {.slices = at};

        for (size_t i = 0; i < all->n_slices; i++)
                if (set >> all->slices[i].card & 1)
                        part.slices[part.n_slices++] = all->slices[i];
        return part;
}

/* Divides the cards by their links. Nodes with links have only indexes below CARD_LINKS_MAX. */
static int divide(const CardLinks *links, const Placement *all, uint32_t pods, unsigned k, Arena *arena,
                  Placement *ret) {
        Slice *at = arena_new(arena, Slice, all->n_slices);
        uint32_t left = 0;

        if (!at)
                return -ENOMEM;
        for (size_t i = 0; i < all->n_slices; i++)
                left |= UINT32_C(1) << all->slices[i].card;
        for (uint32_t i = 0; i < pods; i++) {
                uint32_t set = card_set_choose(links, 0, left, k);

                ret[i] = part_of(all, set, at);
                at += ret[i].n_slices;
                left &= ~set;
        }
        return 0;
}

int job_placement_choose(const LedgerNode *node, const Request *request, uint32_t pods, Arena *arena,
                         Placement *ret) {
        Request many = *request;
        Refusal refusal;
        Placement all;
        int r;

        many.cards = pods * request->cards;
        r = placement_choose_cards(node, &many, arena, &all, &refusal);
        if (r != 0)
                return r;
        if (node->now.links)
                return divide(node->now.links, &all, pods, request->cards, arena, ret);
        for (uint32_t i = 0; i < pods; i++)
                ret[i] = (Placement){.slices = all.slices + i * (all.n_slices / pods),
                                     .n_slices = all.n_slices / pods};
        return 0;
}
