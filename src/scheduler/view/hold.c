/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/view/hold.h"

#include <errno.h>
#include <stdlib.h>

int hold_begin(Hold *h, Ledger *ledger, const HoldSpec *spec, const Placement *placement) {
        GrantSpec grant = {
                .namespace_ = spec->namespace_,
                .name = spec->name,
                /* No UID: the pod's own grant has it, and both may be there for a moment. */
                .node = spec->node,
                .slices = placement->slices,
                .n_slices = placement->n_slices,
                .has_core = spec->has_core,
                .whole = spec->whole,
                .cpu = spec->cpu,
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
        h->grant = made;
        h->uid = uid;
        h->priority = spec->priority;
        return 0;
}

void hold_end(Hold *h) {
        if (h->grant && h->on_room)
                h->on_room(h->userdata, ledger_node_name(grant_node(h->grant)));
        h->grant = grant_free(h->grant);
        free(TAKE_PTR(h->uid));
}

static bool is_for(const Hold *h, const HoldAsker *asker) {
        return h->grant && str_eq(asker->uid, str_from(h->uid));
}

bool hold_yields_to(const Hold *h, const HoldAsker *asker, const LedgerNode *node) {
        return h->grant && grant_node(h->grant) == node &&
               (is_for(h, asker) || asker->priority > h->priority);
}

int hold_check(const Hold *h, const HoldAsker *asker, const LedgerNode *node, const Request *request,
               Refusal *ret) {
        const Grant *gone = h->grant;

        if (!hold_yields_to(h, asker, node))
                return placement_check(node, request, ret);
        return placement_check_without(node, request, &gone, 1, ret);
}

int hold_choose_cards(Hold *h, const HoldAsker *asker, const LedgerNode *node, const Request *request,
                      Arena *arena, Placement *ret, Refusal *ret_refusal) {
        _cleanup_(placement_trial_freep) PlacementTrial *trial = NULL;
        bool yields = hold_yields_to(h, asker, node);
        int r = 1;

        if (!yields || !is_for(h, asker)) /* another pod first tries the cards that are not held */
                r = placement_choose_cards(node, request, arena, ret, ret_refusal);
        if (r <= 0 || !yields)
                return r;
        r = placement_trial_new(node, &trial);
        if (r < 0)
                return r;
        placement_trial_take(trial, h->grant);
        r = placement_trial_choose_cards(trial, request, arena, ret, ret_refusal);
        if (r == 0)
                hold_end(h);
        return r;
}
