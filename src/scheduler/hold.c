/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/hold.h"

#include <errno.h>
#include <stdlib.h>

int hold_begin(Hold *h, Ledger *ledger, const HoldSpec *spec, const Placement *place) {
        GrantSpec grant = {
                .namespace_ = spec->namespace_,
                .name = spec->name,
                .node = spec->node, /* no UID: the pod's own grant has it, and both may be there for a moment */
                .slices = place->slices,
                .n_slices = place->n_slices,
                .has_core = spec->has_core,
        };
        char *uid = str_dup(spec->uid);
        Grant *made;
        int r;

        if (!uid)
                return -ENOMEM;
        r = grant_new(ledger, &grant, &made);
        if (r < 0) {
                free(uid);
                return r;
        }
        hold_end(h);
        *h = (Hold){.grant = made, .uid = uid};
        return 0;
}

void hold_end(Hold *h) {
        (void) grant_free(h->grant);
        free(h->uid);
        *h = (Hold){0};
}

bool hold_is_for(const Hold *h, Str uid, const LedgerNode *node) {
        return h->grant && grant_node(h->grant) == node && str_eq(uid, str_from(h->uid));
}

int hold_check(const Hold *h, Str uid, const LedgerNode *node, const Request *request, Refusal *ret) {
        const Grant *gone = h->grant;

        if (!hold_is_for(h, uid, node))
                return placement_check(node, request, ret);
        return placement_check_without(node, request, &gone, 1, ret);
}

int hold_choose_cards(Hold *h, Str uid, const LedgerNode *node, const Request *request, Arena *arena,
                      Placement *ret, Refusal *ret_refusal) {
        _cleanup_(placement_trial_freep) PlacementTrial *trial = NULL;
        int r;

        if (!hold_is_for(h, uid, node))
                return placement_choose_cards(node, request, arena, ret, ret_refusal);
        r = placement_trial_new(node, &trial);
        if (r < 0)
                return r;
        placement_trial_take(trial, h->grant);
        r = placement_trial_choose_cards(trial, request, arena, ret, ret_refusal);
        if (r == 0)
                hold_end(h);
        return r;
}
