/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/log.h"
#include "node/allocate/device_choice.h"
#include "node/allocate/resolver-internal.h"
#include "share/placement.h"
#include "wire/annotation.h"

/* From the answer for one resource of a pod until the kubelet asks for its other one. It writes its
 * checkpoint to the disk in between, which may take seconds. */
#define UNKNOWN_POD_TTL (10 * USEC_PER_SEC)

void resolver_refuse(PreferredCall *call, const RosterPod *pod, const char *why) {
        Fault fault = FAULT_NULL;

        (void) fault_set(&fault, 0, "%s", why);
        if (pod)
                (void) fault_wrap(&fault, 0, "pod %s/%s", pod->namespace_, pod->name);
        log_warning("refused %s: %s", inventory_resource(call->resolver->node->inventory, call->kind),
                    fault.text);
        call->resolver->counters.refused++;
        pending_admission_end(&call->resolver->pending);
        rpc_fail(call->rpc, RPC_FAILED_PRECONDITION, fault.text);
        resolver_call_free(call);
}

static void answer_call(PreferredCall *call, const DeviceSet *chosen) {
        char(*texts)[DEVICE_TEXT_MAX] = calloc(chosen->n > 0 ? chosen->n : 1, sizeof *texts);
        Str *ids = calloc(chosen->n > 0 ? chosen->n : 1, sizeof *ids);

        if (texts && ids) {
                for (size_t i = 0; i < chosen->n; i++) {
                        device_format(chosen->ids[i], call->kind, texts[i]);
                        ids[i] = str_from(texts[i]);
                }
                plugin_answer_preferred(call->rpc, ids, chosen->n);
        } else
                rpc_fail(call->rpc, RPC_RESOURCE_EXHAUSTED, "out of memory");
        free(texts);
        free(ids);
        resolver_call_free(call);
}

static bool is_held(void *userdata, DeviceKind kind, DeviceId id) {
        const PreferredCall *call = userdata;
        const Resolver *r = call->resolver;
        DeviceSet one = {&id, 1};

        return records_holder(r->node->records, kind, &one, pending_admission_uid(&r->pending)) != NULL;
}

static int choose_devices(PreferredCall *call, const CardShare *shares, size_t n, DeviceSet *ret,
                          Fault *fault) {
        DeviceChoice choice = {
                .kind = call->kind,
                .available = &call->available,
                .must_include = &call->must_include,
                .shares = shares,
                .n_shares = n,
                .is_held = is_held,
                .userdata = call,
        };

        return device_choice_make(&choice, ret, fault);
}

/* ---- a known container ---- */

/* Chooses the container's devices on the pod's cards, and remembers them for Allocate. 0,
 * DEVICE_CHOICE_E_SHORT with a fault, or -ENOMEM. */
static int choose_on_cards(PreferredCall *call, const RosterPod *pod, const RosterContainer *c,
                           bool with_other, DeviceSet *ret, Fault *fault) {
        PendingAdmission *pending = &call->resolver->pending;
        CardShare shares[CARD_INDEX_MAX + 1];
        size_t n;
        int r;

        r = pending_admission_begin(pending, pod, c, call->kind, with_other);
        n = roster_shares(pod, c, call->kind, shares);
        if (r == 0 && n == 0)
                r = fault_set(fault, DEVICE_CHOICE_E_SHORT,
                              "container %s: %u of %s do not divide into the cards of the pod's annotations",
                              c->name, call->size,
                              inventory_resource(call->resolver->node->inventory, call->kind));
        if (r == 0)
                r = choose_devices(call, shares, n, ret, fault);
        if (r == 0)
                r = pending_admission_offer(pending, call->kind, ret);
        return r;
}

void resolver_settle(PreferredCall *call, RosterPod *pod, const RosterContainer *c, bool with_other,
                     const ListedPod *listed) {
        _cleanup_devices_ DeviceSet chosen = DEVICE_SET_NULL;
        _cleanup_buf_ Buf why = BUF_NULL;
        Fault fault = FAULT_NULL;
        int r = 0;

        if (!pod->placed && !call->resolver->node->roster->has_cards) {
                resolver_settle_unknown(
                        call); /* no card's size is known: PreStart places it by its devices */
                return;
        }
        if (!pod->placed)
                r = resolver_place(call, pod, listed, &why);
        else if (listed)
                r = resolver_move_if_impossible(call, pod, c, listed);
        if (r != 0) {
                resolver_refuse(call, pod,
                                r < 0      ? "out of memory"
                                : why.data ? why.data
                                           : "no card has room");
                return;
        }
        r = choose_on_cards(call, pod, c, with_other, &chosen, &fault);
        if (r != 0) {
                resolver_refuse(call, pod, r < 0 ? "out of memory" : fault.text);
                return;
        }
        call->resolver->counters.settled++;
        answer_call(call, &chosen);
}

/* ---- a container that is not known ---- */

static bool card_of_last_unknown(const PreferredCall *call, uint32_t *ret) {
        const UnknownPod *last = &call->resolver->unknown;
        uint32_t card, count;
        size_t at = 0;

        while (last->kind != call->kind && call->began < last->until &&
               device_set_next_card(&call->available, &at, &card, &count))
                if (card == last->card && count >= call->size) {
                        *ret = card;
                        return true;
                }
        return false;
}

static bool card_by_ledger(const PreferredCall *call, uint32_t *ret) {
        _cleanup_(placement_trial_freep) PlacementTrial *trial = NULL;
        RequestContainer one = {.mem = call->size};
        Request request = {.mem = one.mem, .cards = 1, .containers = &one, .n_containers = 1};
        LedgerNode *node = roster_ledger_node(call->resolver->node->roster);
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Placement placement;
        Refusal refusal;

        if (call->kind != DEVICE_MEM || !node || resolver_begin_trial(call, node, true, &trial) < 0 ||
            placement_trial_choose_cards(trial, &request, &arena, &placement, &refusal) != 0)
                return false;
        *ret = placement.slices[0].card;
        return true;
}

/* Chooses a card for a pod that is not known: that of its other resource, else the ledger's choice
 * for this amount. Failing both, the card with the fewest devices left that are enough. */
static bool card_for_unknown(const PreferredCall *call, uint32_t *ret) {
        uint32_t card, count, least = UINT32_MAX;
        size_t at = 0;

        if (card_of_last_unknown(call, ret) || card_by_ledger(call, ret))
                return true;
        while (device_set_next_card(&call->available, &at, &card, &count))
                if (count >= call->size && count < least) {
                        least = count;
                        *ret = card;
                }
        return least != UINT32_MAX;
}

void resolver_settle_unknown(PreferredCall *call) {
        _cleanup_devices_ DeviceSet chosen = DEVICE_SET_NULL;
        Resolver *r = call->resolver;
        Fault fault = FAULT_NULL;
        CardShare share = {0, call->size};

        r->counters.unknown++;
        pending_admission_end(&r->pending);
        if (!card_for_unknown(call, &share.card)) {
                resolver_refuse(call, NULL,
                                "the pod is not known from the API server, and no card has room for it");
                return;
        }
        if (choose_devices(call, &share, 1, &chosen, &fault) != 0) {
                resolver_refuse(call, NULL, fault.text[0] ? fault.text : "out of memory");
                return;
        }
        r->unknown = (UnknownPod){call->kind, share.card, clock_monotonic_usec() + UNKNOWN_POD_TTL};
        log_warning("a pod that is not known well enough asks for %u of %s: it gets gpu%u", call->size,
                    inventory_resource(call->resolver->node->inventory, call->kind), share.card);
        answer_call(call, &chosen);
}
