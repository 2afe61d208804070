/* SPDX-License-Identifier: Apache-2.0 */

/* Any text as the object of a node and of a pod: its request, its placement, and its grant by its
 * annotations. A refusal has a sentence and changes nothing, a placement fits, and every sum is
 * right and ends at 0. */

#include <assert.h>
#include <errno.h>

#include "../unit/share/ledger_check.h"
#include "base/quantity.h"
#include "share/placement.h"
#include "share/pod_grant.h"
#include "share/refusal_format.h"
#include "wire/annotation.h"
#include "wire/node.h"
#include "wire/pod.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_refusal(const Refusal *refusal, bool final) {
        _cleanup_buf_ Buf words = BUF_NULL;

        refusal_format(refusal, &words);
        assert(words.len > 0 && refusal_is_final(refusal->code) == final);
        assert(refusal_label(refusal->code)[0] != '\0');
}

static void check_request(const Request *r) {
        assert(r->mem > 0 && r->cards >= 1 && r->core <= 100 && r->core % 5 == 0);
        assert(r->core == 0 || r->cards == 1);
        assert(r->n_containers >= 1 && r->n_containers <= REQUEST_MAX_CONTAINERS);
        for (size_t i = 0; i < r->n_containers; i++)
                assert(r->containers[i].mem > 0 && r->containers[i].mem <= r->mem);
}

static void check_place(Ledger *l, const LedgerNode *n, const Request *r, Arena *arena) {
        GrantSpec spec = {
                .name = STR("x"), .uid = STR("x"), .node = ledger_node_name(n), .has_core = r->core > 0};
        const LedgerCard *cards;
        Refusal refusal;
        Placement p;
        Grant *g;

        if (placement_choose_cards(n, r, arena, &p, &refusal) != 0) {
                check_refusal(&refusal, false);
                assert(placement_check(n, r, &refusal) == PLACEMENT_E_REFUSED);
                return;
        }
        assert(placement_check(n, r, &refusal) == 0 && placement_choose_node(l, r));
        spec.slices = p.slices;
        spec.n_slices = p.n_slices;
        assert(grant_new(l, &spec, &g) == 0 && ledger_check(l));
        cards = ledger_node_cards(n);
        for (size_t i = 0; i < ledger_node_n_cards(n); i++)
                if (grant_mem_on_card(g, cards[i].index) > 0)
                        assert(cards[i].used <= cards[i].units && cards[i].core_used <= 100 &&
                               cards[i].healthy);
        (void) grant_free(g);
        assert(ledger_check(l));
}

static uint64_t limit_of(const PodContainer *c) {
        uint64_t value = 0;

        if (c->gpu_mem.present && quantity_parse(c->gpu_mem.text, &value) != 0)
                return 0;
        return value < UINT32_MAX ? value : UINT32_MAX;
}

/* Whatever the annotations say, a pod holds no more than its limits. */
static void check_spec(const Pod *pod, const GrantSpec *spec) {
        uint64_t limits = 0, held = spec->pending_mem;

        for (size_t i = 0; i < pod->n_containers; i++)
                limits += limit_of(&pod->containers[i]);
        for (size_t i = 0; i < spec->n_slices; i++) {
                assert(spec->slices[i].mem > 0 && spec->slices[i].card <= CARD_INDEX_MAX);
                held += spec->slices[i].mem;
        }
        assert(held > 0 && held <= limits);
}

static Grant *charge(Ledger *l, Pod *pod, Arena *arena) {
        Fault fault = FAULT_NULL;
        GrantSpec spec;
        Grant *g = NULL;
        int r, differs;

        pod->node_name = STR("n"); /* as if it were bound */
        r = pod_grant_spec(pod, arena, &spec, &fault);
        assert(r == 0 || r == POD_GRANT_E_NONE);
        differs = pod_grant_compare(pod, arena, &fault);
        assert(differs == 0 || (differs == POD_GRANT_E_DIFFERS && fault.text[0] != '\0'));
        if (r == 0) {
                check_spec(pod, &spec);
                r = grant_new(l, &spec, &g);
                assert(r == 0 || r == -E2BIG);
        }
        assert(ledger_check(l));
        return g;
}

static void check_pod(Ledger *l, Pod *pod, Arena *arena) {
        Request request;
        Refusal refusal;
        Grant *g;
        int r;

        r = request_from_pod(pod, arena, &request, &refusal);
        if (r == REQUEST_E_REFUSED)
                check_refusal(&refusal, true);
        if (r == 0) {
                check_request(&request);
                for (size_t i = 0; i < ledger_n_nodes(l); i++)
                        check_place(l, ledger_node_at(l, i), &request, arena);
        }
        g = charge(l, pod, arena);
        for (size_t i = 0; i < ledger_n_nodes(l) && r == 0; i++)
                check_place(l, ledger_node_at(l, i), &request, arena);
        (void) grant_free(g);
        assert(ledger_check(l));
}

static void add_steady_nodes(Ledger *l) {
        static const Node nodes[] = {
                {.meta.name = STR("share"),
                 .mode = STR("share"),
                 .allocatable_mem = STR("60"),
                 .allocatable_count = STR("4")},
                {.meta.name = STR("core"),
                 .mode = STR("core_mem"),
                 .placement = STR("spread"),
                 .allocatable_mem = STR("64k")},
        };

        for (size_t i = 0; i < ELEMENTSOF(nodes); i++)
                assert(ledger_node_set(l, &nodes[i], NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Str text = {(const char *) data, size};
        Fault fault = FAULT_NULL;
        Node node;
        Pod pod;
        int r;

        assert(ledger_new(&l) == 0);
        add_steady_nodes(l);
        if (node_decode(text, &arena, &node, NULL) == 0) {
                node.meta.name = STR("n");
                r = ledger_node_set(l, &node, &fault);
                assert(r == 0 || (r == LEDGER_E_NODE && fault.text[0] != '\0'));
                assert(ledger_check(l));
        }
        if (pod_decode(text, &arena, &pod, NULL) == 0)
                check_pod(l, &pod, &arena);
        ledger_node_remove(l, STR("n"));
        assert(ledger_check(l));
        return 0;
}
