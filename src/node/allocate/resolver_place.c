/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/log.h"
#include "node/allocate/resolver-internal.h"
#include "share/placement.h"
#include "share/refusal_format.h"
#include "wire/annotation.h"

static uint32_t count_available(const PreferredCall *call, uint32_t card) {
        uint32_t at_card, count;
        size_t at = 0;

        while (device_set_next_card(&call->available, &at, &at_card, &count))
                if (at_card == card)
                        return count;
        return 0;
}

/* Whether no container of the pod has devices yet. The kubelet's List says so of listed containers,
 * and must_include of init containers. The records alone do not: an agent that was killed during an
 * admission has lost the record of what it gave. */
static bool was_given_nothing(const PreferredCall *call, const RosterPod *pod, const ListedPod *listed) {
        const Record *record = records_find(call->resolver->node->records, str_from(pod->uid));

        if (call->must_include.n > 0)
                return false;
        for (size_t i = 0; listed && i < listed->n_containers; i++)
                if (listed->containers[i].n_devices > 0)
                        return false;
        for (size_t i = 0; record && i < record->n_containers; i++)
                for (int kind = 0; kind < DEVICE_KINDS_; kind++)
                        if (record->containers[i].given[kind].n > 0)
                                return false;
        return true;
}

int resolver_begin_trial(const PreferredCall *call, const LedgerNode *node, bool capped,
                         PlacementTrial **ret) {
        int r = placement_trial_new(node, ret);

        if (r < 0)
                return r;
        placement_trial_take_pending(*ret);
        for (size_t i = 0; capped && i < ledger_node_n_cards(node); i++) {
                uint32_t card = ledger_node_cards(node)[i].index, available = count_available(call, card);

                placement_trial_cap(*ret, card, call->kind == DEVICE_MEM ? available : UINT32_MAX,
                                    call->kind == DEVICE_CORE ? available : UINT32_MAX);
        }
        return 0;
}

/* Gives the pod cards by the node's own ledger. 0, PLACEMENT_E_REFUSED with a sentence, or negative
 * errno; on failure the pod has no grant any more. */
static int choose_cards(const PreferredCall *call, RosterPod *pod, const ListedPod *listed, Buf *ret_why) {
        _cleanup_(placement_trial_freep) PlacementTrial *trial = NULL;
        Roster *roster = call->resolver->node->roster;
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Placement placement;
        LedgerNode *node;
        Refusal refusal;
        int r;

        pod->grant = grant_free(pod->grant); /* the pod's own old slices must not refuse it */
        /* looked up only now: the ledger may drop a node with its last grant */
        node = roster_ledger_node(roster);
        if (!node) {
                buf_append_str(ret_why, STR("the node has no cards"));
                return PLACEMENT_E_REFUSED;
        }
        /* The cap would close the card to a pod that has devices there itself. */
        r = resolver_begin_trial(call, node, was_given_nothing(call, pod, listed), &trial);
        if (r == 0)
                r = placement_trial_choose_cards(trial, &pod->request, &arena, &placement, &refusal);
        if (r > 0) {
                refusal.node = placement_trial_node(trial);
                refusal_format(&refusal, ret_why);
        }
        return r == 0 ? roster_place(roster, pod, placement.slices, placement.n_slices) : r;
}

int resolver_place(PreferredCall *call, RosterPod *pod, const ListedPod *listed, Buf *ret_why) {
        int r = choose_cards(call, pod, listed, ret_why);

        if (r != 0)
                return r;
        call->resolver->counters.placed++;
        log_info("placed pod=%s/%s, which came without a place", pod->namespace_, pod->name);
        pod_patcher_place(call->resolver->node->pod_patcher, pod);
        return 0;
}

/* ---- cards that are impossible ---- */

/* Whether the cards of its annotations exist and have room for the whole pod, counting only devices
 * that the kubelet has given to no other pod. */
static bool is_possible(const PreferredCall *call, const RosterPod *pod, const RosterContainer *c,
                        Fault *why) {
        const Inventory *inventory = call->resolver->node->inventory;
        CardShare shares[CARD_INDEX_MAX + 1];
        size_t n = roster_shares(pod, c, call->kind, shares);

        if (n == 0) {
                (void) fault_set(why, 0, "%u of %s do not divide into its cards", call->size,
                                 inventory_resource(call->resolver->node->inventory, call->kind));
                return false;
        }
        for (size_t i = 0; i < n; i++) {
                uint32_t card = shares[i].card, free = count_available(call, card),
                         needed = call->kind == DEVICE_MEM ? grant_mem_on_card(pod->grant, card)
                                                           : grant_core_on_card(pod->grant, card);

                if (!inventory_card(inventory, card)) {
                        (void) fault_set(why, 0, "gpu%u is no card of this node", card);
                        return false;
                }
                if (free >= needed)
                        continue;
                (void) fault_set(why, 0, "gpu%u has %u of %s free, the pod needs %u there", card, free,
                                 inventory_resource(call->resolver->node->inventory, call->kind), needed);
                return false;
        }
        return true;
}

static void report_moved(const PreferredCall *call, const RosterPod *pod, const Fault *why) {
        const ResolverOptions *o = &call->resolver->o;
        _cleanup_buf_ Buf cards = BUF_NULL;
        Fault note = FAULT_NULL;
        const Slice *slices;
        size_t n;

        slices = grant_slices(pod->grant, &n);
        for (size_t i = 0; i < n; i++)
                if (i == 0 || slices[i].card != slices[i - 1].card)
                        buf_appendf(&cards, "%sgpu%u", i > 0 ? ", " : "", slices[i].card);
        (void) fault_set(&note, 0,
                         "the place of its annotations is not possible: %s; it is placed anew, on " STR_FMT,
                         why->text, STR_ARG(buf_str(&cards)));
        if (o->on_moved)
                o->on_moved(o->userdata, pod, &note);
}

static int move_pod(PreferredCall *call, RosterPod *pod, const ListedPod *listed, const Fault *why) {
        _cleanup_buf_ Buf refused = BUF_NULL;
        _cleanup_free_ Slice *before = NULL;
        const Slice *slices;
        size_t n;
        int r;

        slices = grant_slices(pod->grant, &n);
        before = calloc(n + 1, sizeof *before);
        if (!before)
                return -ENOMEM;
        if (n > 0)
                memcpy(before, slices, n * sizeof *before);
        r = choose_cards(call, pod, listed, &refused);
        if (r != 0)
                return roster_place(call->resolver->node->roster, pod, before, n);
        call->resolver->counters.moved++;
        report_moved(call, pod, why);
        pod_patcher_place(call->resolver->node->pod_patcher, pod);
        return 0;
}

bool resolver_must_move(const PreferredCall *call, const RosterPod *pod, const RosterContainer *c,
                        const ListedPod *listed, Fault *ret_why) {
        return was_given_nothing(call, pod, listed) && !is_possible(call, pod, c, ret_why);
}

int resolver_move_if_impossible(PreferredCall *call, RosterPod *pod, const RosterContainer *c,
                                const ListedPod *listed) {
        Fault why = FAULT_NULL;

        return resolver_must_move(call, pod, c, listed, &why) ? move_pod(call, pod, listed, &why) : 0;
}
