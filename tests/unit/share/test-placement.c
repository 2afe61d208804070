/* SPDX-License-Identifier: Apache-2.0 */

/* The ledger and placement together: the examples of the contract, the boundary of each rule, and random
 * operations with every sum recomputed and the whole ledger rebuilt from annotations after each step. */

#include "share/allocation.h"
#include "share/placement.h"
#include "test.h"
#include "wire/json_write.h"

/* ---- making things ---- */

static void set_node(Ledger *l, const char *name, const char *mode, const char *placement,
                     const char *members) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf json = BUF_NULL;
        Fault fault = FAULT_NULL;
        Node node;

        buf_appendf(&json,
                    "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"ack.node.gpu.schedule\":\"%s\",\"ack.node."
                    "gpu.placement\":\"%s\"}%s",
                    name, mode, placement, members);
        ASSERT_OK(node_decode(buf_str(&json), &arena, &node, &fault));
        if (ledger_node_set(l, &node, &fault) != 0)
                TEST_FAIL_("%s", fault.text);
        ASSERT_TRUE(ledger_check(l));
}

#define EQUAL(mem, count)                                                                                    \
        "},\"status\":{\"allocatable\":{\"aliyun.com/gpu-mem\":\"" #mem                                      \
        "\",\"aliyun.com/gpu-count\":\"" #count "\"}}}"

static Request simple(RequestContainer *c, uint32_t mem, uint32_t core) {
        *c = (RequestContainer){.kind = CONTAINER_MAIN, .mem = mem, .core = core};
        return (Request){.mem = mem, .core = core, .cards = 1, .containers = c, .n_containers = 1};
}

static unsigned next_uid;

static Grant *grant(Ledger *l, const LedgerNode *n, const Placement *p, const Request *r) {
        char uid[32];
        GrantSpec spec = {
                .namespace_ = STR("default"),
                .node = ledger_node_name(n),
                .slices = p->slices,
                .n_slices = p->n_slices,
                .has_core = r->core > 0,
                .app = r->app,
        };
        Grant *g;

        (void) snprintf(uid, sizeof uid, "uid-%u", next_uid++);
        spec.name = spec.uid = str_from(uid);
        ASSERT_OK(grant_new(l, &spec, &g));
        ASSERT_TRUE(ledger_check(l));
        return g;
}

/* Places on this node; NULL and the words of the refusal when it does not fit. */
static Grant *place(Ledger *l, const char *node, const Request *r, char words[static 512]) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        LedgerNode *n = ledger_node_find(l, str_from(node));
        Refusal refusal;
        Placement p;

        words[0] = '\0';
        if (placement_choose_cards(n, r, &arena, &p, &refusal) != 0) {
                _cleanup_buf_ Buf text = BUF_NULL;

                refusal_format(&refusal, &text);
                (void) snprintf(words, 512, "%s", text.data);
                return NULL;
        }
        return grant(l, n, &p, r);
}

static uint64_t used(const Ledger *l, const char *node, size_t card) {
        return ledger_node_cards(ledger_node_find(l, str_from(node)))[card].used;
}

/* ---- by hand ---- */

static void binpack_fills_a_card_and_spread_takes_another(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c2, c3;
        Request two = simple(&c2, 2, 0), three = simple(&c3, 3, 0);
        char words[512];

        ASSERT_OK(ledger_new(&l));
        set_node(l, "bin", "share", "", EQUAL(30, 2));
        set_node(l, "spr", "share", "spread", EQUAL(30, 2));
        (void) place(l, "bin", &two, words);
        (void) place(l, "bin", &three, words);
        (void) place(l, "spr", &two, words);
        (void) place(l, "spr", &three, words);
        ASSERT_INT(used(l, "bin", 0), 5);
        ASSERT_INT(used(l, "bin", 1), 0);
        ASSERT_INT(used(l, "spr", 0), 2);
        ASSERT_INT(used(l, "spr", 1), 3);
}

static void the_last_unit_fits_and_one_more_does_not(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c;
        Request r = simple(&c, 14, 0);
        char words[512];
        Grant *g;

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "cgpu", "", EQUAL(15, 1));
        g = place(l, "n", &r, words);
        r = simple(&c, 2, 0);
        ASSERT_TRUE(!place(l, "n", &r, words));
        ASSERT_TEXT(words, "no card has 2 of gpu-mem free: gpu0 1 of 15");
        r = simple(&c, 1, 0);
        ASSERT_TRUE(place(l, "n", &r, words) != NULL);
        ASSERT_TRUE(!place(l, "n", &r, words));
        (void) grant_free(g);
        ASSERT_INT(used(l, "n", 0), 1);
        r = simple(&c, 16, 0);
        ASSERT_TRUE(!place(l, "n", &r, words));
        ASSERT_TEXT(words, "16 of gpu-mem is more than any card of the node has, the largest has 15");
}

static void compute_needs_its_mode_and_never_mixes(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c, cc;
        Request mem = simple(&c, 2, 0), core = simple(&cc, 2, 30);
        char words[512];
        Grant *g;

        ASSERT_OK(ledger_new(&l));
        set_node(l, "cgpu", "cgpu", "", EQUAL(60, 4));
        set_node(l, "cm", "core_mem", "", EQUAL(15, 1));
        ASSERT_TRUE(!place(l, "cgpu", &core, words));
        ASSERT_TEXT(words, "the node's mode is cgpu, compute percent needs core_mem");
        for (int i = 0; i < 3; i++)
                ASSERT_TRUE(place(l, "cm", &core, words) != NULL);
        ASSERT_TRUE(!place(l, "cm", &core, words));
        ASSERT_TEXT(words, "no card has 2 of gpu-mem and 30 % of compute free: gpu0 9 of 15 and 10 %");
        ASSERT_TRUE(!place(l, "cm", &mem, words));
        ASSERT_CONTAINS(words, "takes none with memory alone");
        while ((g = ledger_node_grants(ledger_node_find(l, STR("cm")))))
                (void) grant_free(g);
        ASSERT_TRUE(place(l, "cm", &mem, words) != NULL);
        ASSERT_TRUE(!place(l, "cm", &core, words));
        ASSERT_CONTAINS(words, "takes none with compute percent");
}

static void cards_of_different_sizes_are_each_counted(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c;
        Request r = simple(&c, 20, 0);
        char words[512];

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "cgpu", "",
                 ",\"annotations\":{\"aliquot.dev/"
                 "cards\":\"[{\\\"index\\\":0,\\\"units\\\":15},{\\\"index\\\":1,\\\"units\\\":22},"
                 "{\\\"index\\\":2,\\\"units\\\":80,\\\"healthy\\\":false}]\"}}}");
        ASSERT_TRUE(place(l, "n", &r, words) != NULL);
        ASSERT_INT(used(l, "n", 1), 20);
        ASSERT_TRUE(!place(l, "n", &r, words));
        ASSERT_TEXT(words, "no card has 20 of gpu-mem free: gpu0 15 of 15, gpu1 2 of 22, gpu2 unhealthy");
        r = simple(&c, 3, 0);
        ASSERT_TRUE(place(l, "n", &r, words) != NULL); /* the used card has 2 left: the untouched one it is */
        ASSERT_INT(used(l, "n", 0), 3);
        ASSERT_OK(ledger_node_set_fenced(l, STR("n"), (const uint32_t[]){0, 1}, 2));
        ASSERT_TRUE(!place(l, "n", &r, words));
        ASSERT_TEXT(words, "every card of the node is unhealthy");
        ASSERT_OK(ledger_node_set_fenced(l, STR("n"), NULL, 0));
        ASSERT_TRUE(place(l, "n", &r, words) != NULL);
}

static void several_cards_take_the_same_each(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c;
        Request r = simple(&c, 2, 0);
        char words[512];
        size_t n;
        Grant *g;

        r.cards = 4;
        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "share", "", EQUAL(60, 4));
        g = place(l, "n", &r, words);
        ASSERT_TRUE(g != NULL);
        (void) grant_slices(g, &n);
        ASSERT_INT(n, 4);
        for (size_t i = 0; i < 4; i++)
                ASSERT_INT(used(l, "n", i), 2);
        r.cards = 5;
        ASSERT_TRUE(!place(l, "n", &r, words));
        ASSERT_TEXT(words, "the pod wants 5 cards, the node has 4");
        r.cards = 4;
        r.mem = c.mem = 14;
        ASSERT_TRUE(!place(l, "n", &r, words));
        ASSERT_TEXT(words, "fewer than 4 cards have 14 of gpu-mem free: gpu0 13 of 15, gpu1 13 of 15, gpu2 "
                           "13 of 15, gpu3 13 of 15");
}

static void the_ceiling_of_pods_holds_on_isolated_nodes_only(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c;
        Request r = simple(&c, 1, 0);
        char words[512];

        ASSERT_OK(ledger_new(&l));
        set_node(l, "cgpu", "cgpu", "", EQUAL(80, 1));
        set_node(l, "share", "share", "", EQUAL(80, 1));
        for (int i = 0; i < 20; i++) {
                ASSERT_TRUE(place(l, "cgpu", &r, words) != NULL);
                ASSERT_TRUE(place(l, "share", &r, words) != NULL);
        }
        ASSERT_TRUE(place(l, "share", &r, words) != NULL);
        ASSERT_TRUE(!place(l, "cgpu", &r, words));
        ASSERT_TEXT(words, "the cards with room have reached 20 pods per card; free: gpu0 60 of 80 (full)");
}

static void whole_cards_stay_whole_across_nodes(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer cs, cb;
        Request small = simple(&cs, 5, 0), big = simple(&cb, 15, 0);
        char words[512];

        ASSERT_OK(ledger_new(&l));
        set_node(l, "a", "share", "", EQUAL(30, 2));
        set_node(l, "b", "share", "", EQUAL(30, 2));
        (void) place(l, "b", &small, words);
        ASSERT_STR(ledger_node_name(placement_choose_node(l, &small)), STR("b"));
        /* a is fuller now, but only an untouched card of it would do. */
        (void) place(l, "a", &big, words);
        ASSERT_STR(ledger_node_name(placement_choose_node(l, &small)), STR("b"));
        ASSERT_STR(ledger_node_name(placement_choose_node(l, &big)),
                   STR("a")); /* the fuller one, both must be broken into */
}

static void a_change_of_mode_waits_for_the_last_slice(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c;
        Request r = simple(&c, 5, 0);
        char words[512];
        Grant *g;

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "cgpu", "", EQUAL(15, 1));
        g = place(l, "n", &r, words);
        set_node(l, "n", "share", "", EQUAL(15, 1));
        ASSERT_INT(ledger_node_mode(ledger_node_find(l, STR("n"))), SHARE_MODE_CGPU);
        set_node(l, "n", "cgpu", "",
                 ",\"annotations\":{\"aliquot.dev/gpu-mem-unit\":\"128MiB\"}" EQUAL(120, 1));
        ASSERT_INT(ledger_node_unit(ledger_node_find(l, STR("n"))).mib, 1024);
        ASSERT_INT(ledger_node_cards(ledger_node_find(l, STR("n")))[0].units, 15);
        (void) grant_free(g);
        ASSERT_INT(ledger_node_unit(ledger_node_find(l, STR("n"))).mib, 128);
        ASSERT_INT(ledger_node_cards(ledger_node_find(l, STR("n")))[0].units, 120);
        set_node(l, "n", "", "", EQUAL(15, 1)); /* the label is gone: it stays what it is */
        ASSERT_INT(ledger_node_mode(ledger_node_find(l, STR("n"))), SHARE_MODE_CGPU);
}

static void the_truth_may_exceed_the_card(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        static const Slice slices[] = {{.card = 7, .mem = 9}, {.card = 0, .mem = UINT32_MAX}};
        GrantSpec spec = {.namespace_ = STR("d"),
                          .name = STR("x"),
                          .uid = STR("u"),
                          .node = STR("n"),
                          .slices = slices,
                          .n_slices = 2};
        Grant *a, *b;

        ASSERT_OK(ledger_new(&l));
        ASSERT_OK(grant_new(l, &spec, &a)); /* before anybody told of the node */
        ASSERT_TRUE(ledger_check(l));
        set_node(l, "n", "share", "", EQUAL(15, 1));
        ASSERT_OK(grant_new(l, &spec, &b));
        ASSERT_TRUE(ledger_check(l));
        ASSERT_TRUE(used(l, "n", 0) == UINT64_C(2) * UINT32_MAX);
        ASSERT_INT(ledger_node_n_cards(ledger_node_find(l, STR("n"))), 2);
        ledger_node_remove(l, STR("n"));
        ASSERT_TRUE(ledger_check(l));
        (void) grant_free(a);
        (void) grant_free(b);
        ASSERT_INT(ledger_n_nodes(l), 0);
}

static void pending_pods_are_counted_on_every_card(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        GrantSpec spec = {.namespace_ = STR("d"),
                          .name = STR("x"),
                          .uid = STR("u"),
                          .node = STR("n"),
                          .pending_mem = 10};
        RequestContainer c;
        Request r = simple(&c, 6, 0);
        char words[512];
        Grant *g;

        ASSERT_OK(ledger_new(&l));
        set_node(l, "n", "share", "", EQUAL(30, 2));
        ASSERT_OK(grant_new(l, &spec, &g));
        ASSERT_TRUE(!place(l, "n", &r, words));
        ASSERT_TEXT(words, "no card has 6 of gpu-mem free: gpu0 5 of 15, gpu1 5 of 15");
        (void) grant_free(g);
        ASSERT_TRUE(place(l, "n", &r, words) != NULL);
}

static void replicas_are_spread_over_cards_and_nodes(void) {
        _cleanup_(ledger_freep) Ledger *l = NULL;
        RequestContainer c, co;
        Request r = simple(&c, 2, 0), other = simple(&co, 9, 0);
        char words[512];

        r.app = 77;
        ASSERT_OK(ledger_new(&l));
        set_node(l, "a", "share", "spread", EQUAL(30, 2));
        set_node(l, "b", "share", "spread", EQUAL(30, 2));
        (void) place(l, "a", &r, words);
        (void) place(l, "b", &other, words);
        /* b is fuller, but has no replica. */
        ASSERT_STR(ledger_node_name(placement_choose_node(l, &r)), STR("b"));
        (void) place(l, "b", &r, words);
        ASSERT_INT(used(l, "b", 1), 2);
        (void) place(l, "b", &r, words); /* card 0 is fuller, but has no replica */
        ASSERT_INT(used(l, "b", 0), 11);
}

/* ---- at random ---- */

typedef struct World {
        Ledger *ledger;
        uint64_t random;
        Grant *grants[400];
        size_t n;
} World;

static uint32_t pick(World *w, uint32_t below) {
        w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t) (w->random >> 33) % below;
}

static void random_node(World *w) {
        static const char *const names[] = {"n0", "n1", "n2", "n3", "n4"};
        static const char *const modes[] = {"share", "cgpu", "core_mem", "core_mem", "default"};
        static const char *const placements[] = {"", "spread"};
        static const char *const members[] = {
                EQUAL(60, 4),
                EQUAL(30, 2),
                EQUAL(15, 1),
                ",\"annotations\":{\"aliquot.dev/gpu-mem-unit\":\"128MiB\"}" EQUAL(240, 2),
                ",\"annotations\":{\"aliquot.dev/"
                "cards\":\"[{\\\"index\\\":1,\\\"units\\\":22},{\\\"index\\\":3,\\\"units\\\":7}]\"}}}",
                ",\"annotations\":{\"aliquot.dev/allow-mixed\":\"true\",\"aliquot.dev/"
                "max-pods-per-card\":\"3\"}" EQUAL(45, 3),
        };

        set_node(w->ledger, names[pick(w, 5)], modes[pick(w, 5)], placements[pick(w, 2)],
                 members[pick(w, 6)]);
}

/* Every rule that placement promises, checked from the ledger's sums after it chose. */
static void check_promises(const LedgerNode *n, const Request *r, const Placement *p) {
        for (size_t i = 0; i < p->n_slices; i++) {
                const LedgerCard *c = NULL;

                for (size_t k = 0; k < ledger_node_n_cards(n); k++)
                        if (ledger_node_cards(n)[k].index == p->slices[i].card)
                                c = &ledger_node_cards(n)[k];
                ASSERT_TRUE(c && c->healthy);
                ASSERT_TRUE(c->used + ledger_node_pending(n) + r->mem <= c->units);
                ASSERT_TRUE(c->core_used + r->core <= 100);
        }
        ASSERT_INT(p->n_slices, r->cards * r->n_containers);
}

static void random_placement(World *w) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        RequestContainer c[3];
        Request r = {
                .cards = 1 + pick(w, 3), .containers = c, .n_containers = 1 + pick(w, 3), .app = pick(w, 4)};
        bool core = r.cards == 1 && pick(w, 2) == 0;
        LedgerNode *chosen;
        Refusal refusal;
        Placement p;

        for (size_t i = 0; i < r.n_containers; i++) {
                c[i] = (RequestContainer){.kind = CONTAINER_MAIN,
                                          .index = (uint32_t) i,
                                          .mem = 1 + pick(w, 5),
                                          .core = core ? 5 + 5 * pick(w, 6) : 0};
                r.mem += c[i].mem;
                r.core += c[i].core;
        }
        chosen = placement_choose_node(w->ledger, &r);
        for (size_t i = 0; i < ledger_n_nodes(w->ledger); i++) {
                LedgerNode *n = ledger_node_at(w->ledger, i);
                bool fits = placement_check(n, &r, &refusal) == 0;

                ASSERT_INT(placement_choose_cards(n, &r, &arena, &p, &refusal) == 0, fits);
                ASSERT_TRUE(chosen || !fits);
                if (fits) {
                        check_promises(n, &r, &p);
                        ASSERT_TRUE(placement_rank(chosen, &r) <= placement_rank(n, &r));
                } else {
                        _cleanup_buf_ Buf words = BUF_NULL;
                        refusal_format(&refusal, &words);
                        ASSERT_TRUE(words.len > 0);
                }
        }
        if (!chosen || w->n == ELEMENTSOF(w->grants))
                return;
        ASSERT_OK(placement_choose_cards(chosen, &r, &arena, &p, &refusal));
        w->grants[w->n++] = grant(w->ledger, chosen, &p, &r);
}

/* What an annotation may claim, true or not. */
static void random_claim(World *w) {
        char node[8], uid[32];
        Slice slices[4];
        GrantSpec spec = {.namespace_ = STR("other"), .slices = slices, .n_slices = pick(w, 5)};

        if (w->n == ELEMENTSOF(w->grants))
                return;
        (void) snprintf(node, sizeof node, "n%u", pick(w, 7));
        (void) snprintf(uid, sizeof uid, "uid-%u", next_uid++);
        for (size_t i = 0; i < spec.n_slices; i++)
                slices[i] = (Slice){
                        .card = pick(w, 9), .mem = 1 + pick(w, 40), .core = 0, .container = (uint16_t) i};
        spec.pending_mem = spec.n_slices == 0 ? 1 + pick(w, 9) : 0;
        spec.node = str_from(node);
        spec.name = spec.uid = str_from(uid);
        ASSERT_OK(grant_new(w->ledger, &spec, &w->grants[w->n++]));
}

static void random_free(World *w) {
        size_t i;

        if (w->n == 0)
                return;
        i = pick(w, (uint32_t) w->n);
        (void) grant_free(w->grants[i]);
        w->grants[i] = w->grants[--w->n];
}

/* A pod object as the API server would hold it for this grant. */
static void pod_of(const Grant *g, Buf *out) {
        _cleanup_buf_ Buf annotations = BUF_NULL;
        size_t n;
        const Slice *slices = grant_slices(g, &n);
        uint32_t mem = grant_pending(g);
        Str node = ledger_node_name(grant_node(g));

        if (n > 0)
                grant_annotations_write(slices, n, grant_node(g), true, 1, &annotations);
        else
                buf_append_str(&annotations, STR("{}"));
        buf_appendf(out,
                    "{\"metadata\":{\"name\":\"" STR_FMT "\",\"namespace\":\"" STR_FMT "\",\"uid\":\"" STR_FMT
                    "\",\"annotations\":" STR_FMT "},\"spec\":{\"nodeName\":\"" STR_FMT "\",\"containers\":[",
                    STR_ARG(grant_name(g)), STR_ARG(grant_namespace(g)), STR_ARG(grant_uid(g)),
                    STR_ARG(buf_str(&annotations)), STR_ARG(node));
        for (size_t i = 0; i < 4; i++) {
                for (size_t k = 0; k < n && n > 0; k++)
                        if (slices[k].container == i)
                                mem = slices[k].mem;
                buf_appendf(
                        out,
                        "%s{\"name\":\"c%zu\",\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"%u\"}}}",
                        i ? "," : "", i, n == 0 && i > 0 ? 0 : mem);
        }
        buf_appendf(out, "]},\"status\":{\"phase\":\"Running\"}}");
}

/* A second ledger from the annotations alone has the same sums on every card. */
static void check_rebuild(const World *w) {
        _cleanup_(ledger_freep) Ledger *again = NULL;

        ASSERT_OK(ledger_new(&again));
        for (size_t i = 0; i < w->n; i++) {
                _cleanup_arena_ Arena arena = ARENA_NULL;
                _cleanup_buf_ Buf json = BUF_NULL;
                Fault fault = FAULT_NULL;
                GrantSpec spec;
                Grant *g;
                Pod pod;

                pod_of(w->grants[i], &json);
                ASSERT_OK(pod_decode(buf_str(&json), &arena, &pod, &fault));
                ASSERT_OK(grant_spec_from_pod(&pod, &arena, &spec, &fault));
                ASSERT_TEXT(fault.text, "");
                ASSERT_OK(grant_new(again, &spec, &g));
        }
        ASSERT_TRUE(ledger_check(again));
        for (size_t i = 0; i < ledger_n_nodes(w->ledger); i++) {
                const LedgerNode *a = ledger_node_at(w->ledger, i),
                                 *b = ledger_node_find(again, ledger_node_name(a));

                if (!b) {
                        ASSERT_TRUE(!ledger_node_grants(a));
                        continue;
                }
                ASSERT_INT(ledger_node_pending(a), ledger_node_pending(b));
                for (size_t k = 0; k < ledger_node_n_cards(a); k++) {
                        const LedgerCard *x = &ledger_node_cards(a)[k], *y = NULL;

                        for (size_t m = 0; m < ledger_node_n_cards(b); m++)
                                if (ledger_node_cards(b)[m].index == x->index)
                                        y = &ledger_node_cards(b)[m];
                        ASSERT_INT(x->used, y ? y->used : 0);
                        ASSERT_INT(x->core_used, y ? y->core_used : 0);
                        ASSERT_INT(x->pods, y ? y->pods : 0);
                }
        }
}

static void random_operations_keep_every_sum(void) {
        for (uint64_t seed = 1; seed <= 20; seed++) {
                World w = {.random = seed};

                ASSERT_OK(ledger_new(&w.ledger));
                for (int step = 0; step < 1500; step++) {
                        uint32_t what = pick(&w, 100);

                        if (what < 55)
                                random_placement(&w);
                        else if (what < 60)
                                random_claim(&w);
                        else if (what < 90)
                                random_free(&w);
                        else if (what < 98)
                                random_node(&w);
                        else
                                ledger_node_remove(w.ledger, what == 98 ? STR("n1") : STR("n4"));
                        ASSERT_TRUE(ledger_check(w.ledger));
                        if (step % 10 == 0)
                                check_rebuild(&w);
                }
                while (w.n > 0)
                        random_free(&w);
                for (size_t i = 0; i < ledger_n_nodes(w.ledger); i++)
                        for (size_t k = 0; k < ledger_node_n_cards(ledger_node_at(w.ledger, i)); k++)
                                ASSERT_INT(ledger_node_cards(ledger_node_at(w.ledger, i))[k].used, 0);
                (void) ledger_free(w.ledger);
        }
}

int main(void) {
        return TEST_MAIN(
                TEST(binpack_fills_a_card_and_spread_takes_another),
                TEST(the_last_unit_fits_and_one_more_does_not), TEST(compute_needs_its_mode_and_never_mixes),
                TEST(cards_of_different_sizes_are_each_counted), TEST(several_cards_take_the_same_each),
                TEST(the_ceiling_of_pods_holds_on_isolated_nodes_only),
                TEST(whole_cards_stay_whole_across_nodes), TEST(a_change_of_mode_waits_for_the_last_slice),
                TEST(the_truth_may_exceed_the_card), TEST(pending_pods_are_counted_on_every_card),
                TEST(replicas_are_spread_over_cards_and_nodes), TEST(random_operations_keep_every_sum));
}
