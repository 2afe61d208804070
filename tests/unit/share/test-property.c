/* SPDX-License-Identifier: Apache-2.0 */

/* Random operations. After each one every sum is recomputed, and every answer of placement is
 * compared with an oracle that looks at each grant of each node. Then the whole ledger is rebuilt
 * from the objects alone: pods and nodes with their annotations. */

#include "making.h"
#include "random.h"
#include "share/card_lack.h"
#include "share/ledger-internal.h"
#include "share/pod_grant.h"
#include "share/pod_grant_write.h"
#include "share/refusal_format.h"

enum { NODES = 6, GRANTS = 300, CONTAINERS = 4 };

typedef struct World {
        Ledger *ledger;
        Arena arena; /* of the request's choice of cards */
        Random random;
        Grant *grants[GRANTS];
        size_t n;
        char objects[NODES][1024]; /* the last node object; "" when it is gone */
        const char *modes[NODES];
} World;

static uint32_t pick(World *w, uint32_t below) {
        return random_below(&w->random, below);
}

static void name_node(char name[static 8], uint32_t i) {
        (void) snprintf(name, 8, "n%u", i);
}

/* ---- nodes ---- */

static const char *const shapes[] = {
        "\"x\":\"\"}" EQUAL(60, 4),
        "\"x\":\"\"}" EQUAL(30, 2),
        "\"x\":\"\"}" EQUAL(15, 1),
        "\"aliquot.dev/gpu-mem-unit\":\"128MiB\"}" EQUAL(240, 2),
        "\"aliquot.dev/cards\":\"[{\\\"index\\\":1,\\\"units\\\":22},{\\\"index\\\":3,\\\"units\\\":7},"
        "{\\\"index\\\":4,\\\"units\\\":40,\\\"healthy\\\":false}]\"}}}",
        "\"aliquot.dev/cards\":\"[{\\\"index\\\":0,\\\"units\\\":40,\\\"model\\\":\\\"Tesla "
        "V100\\\",\\\"uuid\\\":"
        "\\\"GPU-e\\\"},{\\\"index\\\":1,\\\"units\\\":40,\\\"model\\\":\\\"NVIDIA "
        "A100\\\",\\\"uuid\\\":\\\"GPU-f\\\"}]\"}"
        "}}",
        "\"aliquot.dev/cards\":\"[{\\\"index\\\":0,\\\"units\\\":22,\\\"model\\\":\\\"NVIDIA A100-SXM4\\\","
        "\\\"uuid\\\":\\\"GPU-a\\\"},{\\\"index\\\":1,\\\"units\\\":30,\\\"model\\\":\\\"Tesla "
        "V100\\\",\\\"uuid\\\":"
        "\\\"GPU-b\\\"},{\\\"index\\\":2,\\\"units\\\":30,\\\"uuid\\\":\\\"GPU-c\\\"},{\\\"index\\\":5,"
        "\\\"units\\\":12,"
        "\\\"model\\\":\\\"NVIDIA A10\\\",\\\"uuid\\\":\\\"GPU-d\\\"}]\"}}}",
        "\"aliquot.dev/allow-mixed\":\"true\",\"aliquot.dev/max-pods-per-card\":\"3\"}" EQUAL(45, 3),
        "\"aliquot.dev/mode-in-force\":\"core_mem\",\"aliquot.dev/gpu-mem-unit-in-force\":\"GiB\"}" EQUAL(60,
                                                                                                          4),
        "\"aliquot.dev/mode-in-force\":\"core_mem\",\"aliquot.dev/change-pending\":\"mode core_mem -> "
        "cgpu\"}" EQUAL(60, 4),
        "\"aliquot.dev/allow-mixed\":\"yes\",\"aliquot.dev/max-pods-per-card\":\"20 \","
        "\"aliquot.dev/gpu-mem-unit\":\"128Mi\",\"aliquot.dev/cards\":\"[{]\"}" EQUAL(many, 3),
};

/* A held slice. Its UID may be that of a pod with a grant. */
static void write_held(World *w, Buf *out) {
        buf_append_str(out, STR("\"aliquot.dev/held-slices\":\"["));
        for (uint32_t i = pick(w, 3); i > 0; i--) {
                Grant *g = w->n > 0 ? w->grants[pick(w, (uint32_t) w->n)] : NULL;
                Str uid = g && pick(w, 2) == 0 ? grant_uid(g) : STR("ghost");

                buf_appendf(out,
                            "{\\\"uid\\\":\\\"" STR_FMT
                            "\\\",\\\"allocation\\\":{\\\"0\\\":{\\\"%u\\\":%u}}}%s",
                            STR_ARG(uid), pick(w, 6), 1 + pick(w, 5), i > 1 ? "," : "");
        }
        buf_append_str(out, STR("]\","));
}

/* Keys that do not decode keep the earlier value, and hide no other key. */
static void tell_node(Ledger *l, const char *name, const char *mode, const char *placement,
                      const char *members) {
        Fault fault = FAULT_NULL;
        int r = try_node(l, name, mode, placement, members, &fault);

        ASSERT_TRUE(r == 0 || (r == LEDGER_E_NODE && fault.text[0] != '\0'));
}

static void random_node(World *w) {
        static const char *const modes[] = {"share",    "cgpu",    "core_mem", "core_mem",
                                            "core_mem", "default", "",         "core-mem"};
        static const char *const placements[] = {"", "spread", "Spread"}, *const cordons[] = {"0", "1,2",
                                                                                              "x"};
        _cleanup_buf_ Buf members = BUF_NULL;
        uint32_t i = pick(w, NODES - 1);
        char name[8];

        buf_append_str(&members, STR(",\"annotations\":{"));
        if (pick(w, 3) == 0)
                write_held(w, &members);
        if (pick(w, 4) == 0)
                buf_appendf(&members, "\"aliquot.dev/cordon-cards\":\"%s\",",
                            cordons[pick(w, ELEMENTSOF(cordons))]);
        buf_append_str(&members, str_from(shapes[pick(w, ELEMENTSOF(shapes))]));
        ASSERT_TRUE(members.len < sizeof w->objects[i]);
        memcpy(w->objects[i], members.data, members.len + 1);
        w->modes[i] = modes[pick(w, ELEMENTSOF(modes))];
        name_node(name, i);
        tell_node(w->ledger, name, w->modes[i], placements[pick(w, ELEMENTSOF(placements))], members.data);
}

static void random_removal(World *w) {
        uint32_t i = pick(w, NODES - 1);
        char name[8];

        name_node(name, i);
        w->objects[i][0] = '\0';
        ledger_node_remove(w->ledger, str_from(name));
}

static void random_fence(World *w) {
        uint32_t cards[] = {pick(w, 5), pick(w, 5)};
        char name[8];

        name_node(name, pick(w, NODES));
        ASSERT_OK(ledger_node_set_fenced(w->ledger, str_from(name), cards, pick(w, 3)));
}

/* ---- which cards a request chose ---- */

static bool named(const char *model, const char *part) {
        return strcasestr(model, part) != NULL;
}

static bool any_card(const char *model, const char *uuid) {
        return true;
}

static bool an_a100(const char *model, const char *uuid) {
        return named(model, "a100");
}

static bool neither_a100_nor_v100(const char *model, const char *uuid) {
        return model[0] != '\0' && !named(model, "a100") && !named(model, "v100");
}

static bool an_a10_that_is_no_a100(const char *model, const char *uuid) {
        return named(model, "a10") && !named(model, "a100");
}

static bool one_of_two_uuids(const char *model, const char *uuid) {
        return strcmp(uuid, "GPU-a") == 0 || strcmp(uuid, "GPU-c") == 0;
}

static bool nvidia_but_one(const char *model, const char *uuid) {
        return named(model, "nvidia") && uuid[0] != '\0' && strcmp(uuid, "GPU-d") != 0;
}

typedef struct OracleChoice {
        PodAnnotations keys;
        bool (*takes)(const char *model, const char *uuid);
} OracleChoice;

static const OracleChoice choices[] = {
        {{.mirror = {NULL, 0}}, any_card},
        {{.gpu_type = STR("a100")}, an_a100},
        {{.nouse_gputype = STR("A100, V100")}, neither_a100_nor_v100},
        {{.gpu_type = STR("A10,!a100")}, an_a10_that_is_no_a100},
        {{.use_gpuuuid = STR("GPU-a,,GPU-c")}, one_of_two_uuids},
        {{.include_gpu_type = STR("NVIDIA"), .nouse_gpuuuid = STR("GPU-d")}, nvidia_but_one},
};

static const OracleChoice *chosen_cards = choices; /* those of the request that is asked about */

static bool oracle_takes(const LedgerNode *n, const LedgerCard *c) {
        char model[64] = "", uuid[64] = "";

        for (size_t i = 0; i < n->now.n_cards; i++)
                if (n->now.cards[i].index == c->index) {
                        (void) snprintf(model, sizeof model, STR_FMT, STR_ARG(n->now.cards[i].model));
                        (void) snprintf(uuid, sizeof uuid, STR_FMT, STR_ARG(n->now.cards[i].uuid));
                }
        return chosen_cards->takes(model, uuid);
}

/* ---- the oracle: from the grants, without a sum of the ledger's ---- */

typedef struct OracleCard {
        uint64_t mem, core;
        uint32_t pods, replicas;
} OracleCard;

typedef struct OracleNode {
        uint64_t used, total, pending, pending_core;
        uint32_t n_pending, replicas, with_core, without;
} OracleNode;

static void ask_grants(const Grant *list, const Request *r, OracleNode *o) {
        for (const Grant *g = list; g; g = grant_next(g)) {
                o->pending += g->pending;
                o->pending_core += g->pending_core;
                o->n_pending += g->pending > 0;
                o->with_core += g->has_core;
                o->without += !g->has_core;
                o->replicas += g->app > 0 && g->app == r->app;
        }
}

static OracleCard ask_card(const LedgerNode *n, uint32_t card, const Request *r) {
        const Grant *const lists[] = {ledger_node_grants(n), ledger_node_held(n)};
        OracleCard o = {0};

        for (size_t k = 0; k < 2; k++)
                for (const Grant *g = lists[k]; g; g = grant_next(g)) {
                        uint32_t mem = grant_mem_on_card(g, card), core = grant_core_on_card(g, card);

                        o.mem += mem;
                        o.core += core;
                        o.pods += mem > 0 || core > 0;
                        o.replicas += mem > 0 && g->app > 0 && g->app == r->app;
                }
        return o;
}

static OracleNode ask_node(const LedgerNode *n, const Request *r) {
        OracleNode o = {0};

        ask_grants(ledger_node_grants(n), r, &o);
        ask_grants(ledger_node_held(n), r, &o);
        for (size_t i = 0; i < n->n_cards; i++) {
                o.used += ask_card(n, n->cards[i].index, r).mem;
                o.total += n->cards[i].units;
        }
        return o;
}

static bool oracle_card_fits(const LedgerNode *n, const OracleNode *o, const LedgerCard *c,
                             const Request *r) {
        OracleCard card = ask_card(n, c->index, r);

        return oracle_takes(n, c) && c->healthy && card.mem + o->pending + r->mem <= c->units &&
               card.core + o->pending_core + r->core <= 100 &&
               (n->now.max_pods == 0 || card.pods + o->n_pending < n->now.max_pods);
}

/* Cards that fit; *ret_used: how many of them are in use. */
static uint32_t oracle_count(const LedgerNode *n, const OracleNode *o, const Request *r, uint32_t *ret_used) {
        uint32_t count = 0;

        *ret_used = 0;
        for (size_t i = 0; i < n->n_cards; i++)
                if (oracle_card_fits(n, o, &n->cards[i], r)) {
                        count++;
                        *ret_used += o->n_pending > 0 || ask_card(n, n->cards[i].index, r).pods > 0;
                }
        return count;
}

static bool oracle_fits(const LedgerNode *n, const Request *r) {
        OracleNode o = ask_node(n, r);
        uint32_t used;

        if (!n->described || !share_mode_has_memory(ledger_node_mode(n)) || n->now.change_pending[0] != '\0')
                return false;
        if (r->core > 0 && ledger_node_mode(n) != SHARE_MODE_CORE_MEM)
                return false;
        if (!n->now.allow_mixed && (r->core > 0 ? o.without : o.with_core) > 0)
                return false;
        return oracle_count(n, &o, r, &used) >= r->cards;
}

/* The rank of a node: the amount that its policy avoids, then how far it is from the preferred one.
 * Smaller is better. */
typedef struct OracleRank {
        uint32_t avoided;
        double far;
} OracleRank;

static OracleRank oracle_rank(const LedgerNode *n, const Request *r) {
        OracleNode o = ask_node(n, r);
        double fill = o.used >= o.total ? 1 : (double) o.used / (double) o.total;
        uint32_t used;

        if (ledger_node_policy(n) == PLACEMENT_SPREAD)
                return (OracleRank){o.replicas, fill};
        (void) oracle_count(n, &o, r, &used);
        return (OracleRank){used >= r->cards ? 0 : r->cards - used, 1 - fill};
}

static bool no_worse(OracleRank a, OracleRank b) {
        return a.avoided < b.avoided || (a.avoided == b.avoided && a.far <= b.far + 1e-6);
}

/* ---- placement against it ---- */

static const LedgerCard *find_card(const LedgerNode *n, uint32_t index) {
        for (size_t i = 0; i < ledger_node_n_cards(n); i++)
                if (ledger_node_cards(n)[i].index == index)
                        return &ledger_node_cards(n)[i];
        return NULL;
}

static bool is_chosen(const Placement *p, uint32_t card) {
        for (size_t i = 0; i < p->n_slices; i++)
                if (p->slices[i].card == card)
                        return true;
        return false;
}

/* Whether the policy prefers card a to card b. */
static bool rather(const LedgerNode *n, const Request *r, const OracleNode *o, const LedgerCard *a,
                   const LedgerCard *b) {
        OracleCard x = ask_card(n, a->index, r), y = ask_card(n, b->index, r);
        bool a_used = x.pods > 0 || o->n_pending > 0, b_used = y.pods > 0 || o->n_pending > 0;

        if (ledger_node_policy(n) == PLACEMENT_BINPACK)
                return a_used != b_used ? a_used : a->units - x.mem < b->units - y.mem;
        if (x.replicas != y.replicas)
                return x.replicas < y.replicas;
        return (double) x.mem / a->units < (double) y.mem / b->units - 1e-5;
}

static void check_placement(const LedgerNode *n, const Request *r, const Placement *p) {
        OracleNode o = ask_node(n, r);

        ASSERT_INT(p->n_slices, r->cards * r->n_containers);
        for (size_t i = 0; i < p->n_slices; i++) {
                const LedgerCard *c = find_card(n, p->slices[i].card);

                ASSERT_TRUE(c && oracle_card_fits(n, &o, c, r));
                for (size_t k = 0; k < n->n_cards; k++)
                        if (!is_chosen(p, n->cards[k].index) && oracle_card_fits(n, &o, &n->cards[k], r))
                                ASSERT_FALSE(rather(n, r, &o, &n->cards[k], c));
        }
}

/* A node refuses for its cards exactly when too few of them lack nothing. */
static void check_lacks(const LedgerNode *n, const Request *r, bool fits, const Refusal *refusal) {
        uint32_t ready = 0;

        for (size_t i = 0; i < n->n_cards; i++) {
                CardLack lack = card_lack_of(n, &n->cards[i], r);

                ready += card_lack_is_none(&lack) && n->cards[i].units > 0;
                ASSERT_INT(card_lack_distance(&lack, r) == 0, card_lack_is_none(&lack));
        }
        if (fits)
                ASSERT_TRUE(ready >= r->cards);
        else if (refusal_has_cards(refusal->code))
                ASSERT_TRUE(ready < r->cards);
}

static void check_node(const LedgerNode *n, const Request *r, const LedgerNode *chosen, Arena *arena) {
        bool fits = oracle_fits(n, r);
        Refusal refusal;
        Placement p;

        ASSERT_INT(placement_check(n, r, &refusal) == 0, fits);
        ASSERT_INT(placement_choose_cards(n, r, arena, &p, &refusal) == 0, fits);
        ASSERT_INT(placement_check_without(n, r, NULL, 0, &refusal) == 0, fits);
        ASSERT_TRUE(chosen || !fits);
        check_lacks(n, r, fits, &refusal);
        if (fits) {
                check_placement(n, r, &p);
                ASSERT_TRUE(placement_rank(chosen, r) <= placement_rank(n, r));
                ASSERT_TRUE(no_worse(oracle_rank(chosen, r), oracle_rank(n, r)));
        } else {
                _cleanup_buf_ Buf words = BUF_NULL;

                refusal_format(&refusal, &words);
                ASSERT_TRUE(words.len > 0 && !refusal_is_final(refusal.code));
        }
}

static Request random_request(World *w, RequestContainer c[static CONTAINERS]) {
        static const ContainerKind kinds[] = {CONTAINER_INIT, CONTAINER_SIDECAR, CONTAINER_MAIN,
                                              CONTAINER_MAIN};
        size_t first = pick(w, CONTAINERS), last = first + pick(w, (uint32_t) (CONTAINERS - first));
        Request r = {.cards = 1 + pick(w, 3), .containers = c, .app = pick(w, 5)};
        bool core = r.cards == 1 && pick(w, 2) == 0;
        uint32_t standing[2] = {0}, peak[2] = {0};

        for (size_t i = first; i <= last; i++) {
                uint32_t ask[2] = {1 + pick(w, 5), core ? 5 + 5 * pick(w, 4) : 0};

                c[r.n_containers++] = (RequestContainer){
                        .kind = kinds[i], .index = (uint32_t) (i % 2), .mem = ask[0], .core = ask[1]};
                for (size_t k = 0; k < 2; k++)
                        if (kinds[i] == CONTAINER_INIT)
                                peak[k] = ask[k];
                        else
                                standing[k] += ask[k];
        }
        r.mem = peak[0] > standing[0] ? peak[0] : standing[0];
        r.core = peak[1] > standing[1] ? peak[1] : standing[1];
        chosen_cards = &choices[pick(w, 2) == 0 ? 0 : pick(w, ELEMENTSOF(choices))];
        arena_reset(&w->arena);
        r.choice = choose(&w->arena, chosen_cards->keys);
        return r;
}

static void random_placement(World *w) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        RequestContainer c[CONTAINERS];
        Request r = random_request(w, c);
        LedgerNode *chosen = placement_choose_node(w->ledger, &r);
        Refusal refusal;
        Placement p;

        for (size_t i = 0; i < ledger_n_nodes(w->ledger); i++)
                check_node(ledger_node_at(w->ledger, i), &r, chosen, &arena);
        if (!chosen || w->n == GRANTS)
                return;
        ASSERT_OK(placement_choose_cards(chosen, &r, &arena, &p, &refusal));
        w->grants[w->n++] = give(w->ledger, chosen, &p, &r);
}

/* placement_check_without() has the same answer as after freeing the grant. */
static void random_what_if(World *w) {
        RequestContainer c[CONTAINERS];
        Request r = random_request(w, c);
        Grant *gone = w->n > 0 ? w->grants[w->n - 1] : NULL;
        LedgerNode *n = gone ? grant_node(gone) : NULL;
        Refusal refusal;
        int answer;
        char name[8];

        /* The node must outlive its grant, and no held slice may be resumed. */
        if (!gone || !n->described || n->dormant)
                return;
        answer = placement_check_without(n, &r, (const Grant *const *) &gone, 1, &refusal);
        (void) snprintf(name, sizeof name, STR_FMT, STR_ARG(ledger_node_name(n)));
        (void) grant_free(gone);
        w->n--;
        ASSERT_INT(placement_check(ledger_node_find(w->ledger, str_from(name)), &r, &refusal), answer);
}

/* An annotation, true or not. */
static void random_claim(World *w) {
        static unsigned next;
        Slice slices[4];
        GrantSpec spec = {
                .namespace_ = STR("other"), .slices = slices, .n_slices = pick(w, 5), .app = pick(w, 3)};
        char node[8], uid[32];

        if (w->n == GRANTS)
                return;
        name_node(node, pick(w, NODES));
        (void) snprintf(uid, sizeof uid, "claim-%u", next++);
        for (size_t i = 0; i < spec.n_slices; i++)
                slices[i] = (Slice){.card = pick(w, 9), .mem = 1 + pick(w, 40), .container = (uint16_t) i};
        if (spec.n_slices == 0 || pick(w, 3) == 0) {
                spec.pending_mem = 1 + pick(w, 4);
                spec.pending_core = pick(w, 3) * 10;
                spec.has_core = spec.pending_core > 0;
        }
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

/* ---- the rebuild ---- */

/* The limits of one container: what it holds, over all cards. */
static void write_container(const Grant *g, bool init, uint32_t index, const char *policy, Buf *out) {
        uint64_t mem = 0, core = 0;
        const Slice *slices;
        size_t n;

        slices = grant_slices(g, &n);
        for (size_t i = 0; i < n; i++)
                if (slices[i].container == index && (slices[i].kind != CONTAINER_MAIN) == init) {
                        mem += slices[i].mem;
                        core += slices[i].core;
                }
        if (g->pending > 0 && !init && index == 4) { /* which no annotation names */
                mem = g->pending;
                core = g->pending_core;
        }
        buf_appendf(out, "%s{\"name\":\"c%u\"%s,\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"%llu\"",
                    index > 0 ? "," : "", index, policy, (unsigned long long) mem);
        if (core > 0)
                buf_appendf(out, ",\"aliyun.com/gpu-core.percentage\":\"%llu\"", (unsigned long long) core);
        buf_append_str(out, STR("}}}"));
}

/* The pod object of this grant. The amounts in its annotations are arbitrary, because the limits
 * count. */
static void write_pod(World *w, const Grant *g, Buf *out) {
        _cleanup_buf_ Buf annotations = BUF_NULL;
        Slice said[64];
        const Slice *slices;
        bool forged = pick(w, 3) == 0;
        size_t n;

        slices = grant_slices(g, &n);
        ASSERT_TRUE(n <= ELEMENTSOF(said));
        for (size_t i = 0; i < n; i++) {
                said[i] = slices[i];
                if (forged)
                        said[i].mem = 1 + pick(w, 100);
                if (forged)
                        said[i].core = pick(w, 100);
        }
        pod_grant_write(said, n, grant_node(g), true, 1, 0, &annotations);
        buf_appendf(out,
                    "{\"metadata\":{\"name\":\"" STR_FMT "\",\"namespace\":\"" STR_FMT "\",\"uid\":\"" STR_FMT
                    "\",\"annotations\":" STR_FMT "},\"spec\":{\"nodeName\":\"" STR_FMT
                    "\",\"initContainers\":[",
                    STR_ARG(grant_name(g)), STR_ARG(grant_namespace(g)), STR_ARG(grant_uid(g)),
                    STR_ARG(buf_str(&annotations)), STR_ARG(ledger_node_name(grant_node(g))));
        write_container(g, true, 0, "", out);
        write_container(g, true, 1, ",\"restartPolicy\":\"Always\"", out);
        buf_append_str(out, STR("],\"containers\":["));
        for (uint32_t i = 0; i < 5; i++)
                write_container(g, false, i, "", out);
        buf_append_str(out, STR("]},\"status\":{\"phase\":\"Running\"}}"));
}

static void rebuild_grant(World *w, Ledger *again, const Grant *g) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf json = BUF_NULL;
        Fault fault = FAULT_NULL;
        GrantSpec spec;
        Grant *copy;
        Pod pod;

        write_pod(w, g, &json);
        ASSERT_OK(pod_decode(buf_str(&json), &arena, &pod, &fault));
        ASSERT_OK(pod_grant_spec(&pod, &arena, &spec, &fault));
        ASSERT_TEXT(fault.text, "");
        ASSERT_INT(spec.has_core, g->has_core);
        ASSERT_OK(grant_new(again, &spec, &copy));
}

static void compare_nodes(const LedgerNode *a, const LedgerNode *b) {
        ASSERT_INT(a->pending, b->pending);
        ASSERT_INT(a->pending_core, b->pending_core);
        ASSERT_INT(a->n_charged, b->n_charged);
        ASSERT_INT(a->n_with_core, b->n_with_core);
        for (size_t i = 0; i < a->n_cards; i++) {
                const LedgerCard *x = &a->cards[i], *y = find_card(b, x->index);

                ASSERT_INT(x->used, y ? y->used : 0);
                ASSERT_INT(x->core_used, y ? y->core_used : 0);
                ASSERT_INT(x->pods, y ? y->pods : 0);
        }
}

/* Lists come in any order: pods before their nodes, or after them. */
static void check_rebuild(World *w) {
        _cleanup_(ledger_freep) Ledger *again = NULL;
        bool pods_first = pick(w, 2) == 0;
        char name[8];

        ASSERT_OK(ledger_new(&again));
        for (size_t i = 0; i < w->n && pods_first; i++)
                rebuild_grant(w, again, w->grants[i]);
        for (uint32_t i = 0; i < NODES; i++) {
                name_node(name, i);
                if (w->objects[i][0] != '\0')
                        tell_node(again, name, w->modes[i], "", w->objects[i]);
        }
        for (size_t i = w->n; i > 0 && !pods_first; i--)
                rebuild_grant(w, again, w->grants[i - 1]);
        ASSERT_TRUE(ledger_check(again));
        for (size_t i = 0; i < ledger_n_nodes(w->ledger); i++) {
                const LedgerNode *a = ledger_node_at(w->ledger, i),
                                 *b = ledger_node_find(again, ledger_node_name(a));

                if (b)
                        compare_nodes(a, b);
                else
                        ASSERT_INT(a->n_charged, 0);
        }
}

/* ---- all of it ---- */

static void step(World *w) {
        uint32_t what = pick(w, 100);

        if (what < 50)
                random_placement(w);
        else if (what < 54)
                random_claim(w);
        else if (what < 60)
                random_what_if(w);
        else if (what < 88)
                random_free(w);
        else if (what < 96)
                random_node(w);
        else if (what < 98)
                random_fence(w);
        else
                random_removal(w);
        ASSERT_TRUE(ledger_check(w->ledger));
}

static void run_world(uint64_t seed, int steps, int rebuild_every) {
        World w = {.random = {seed}};

        ASSERT_OK(ledger_new(&w.ledger));
        for (int i = 0; i < steps; i++) {
                step(&w);
                if (i % rebuild_every == 0)
                        check_rebuild(&w);
        }
        while (w.n > 0)
                random_free(&w);
        for (size_t i = 0; i < ledger_n_nodes(w.ledger); i++) {
                const LedgerNode *n = ledger_node_at(w.ledger, i);

                for (size_t k = 0; k < ledger_node_n_cards(n) && !ledger_node_held(n); k++)
                        ASSERT_INT(ledger_node_cards(n)[k].used, 0);
        }
        arena_done(&w.arena);
        (void) ledger_free(w.ledger);
}

static void a_rebuild_after_every_step_has_the_same_sums(void) {
        for (uint64_t seed = 1000; seed < 1004; seed++)
                run_world(seed, 400, 1);
}

static void random_operations_keep_every_sum(void) {
        for (uint64_t seed = 1; seed <= 16; seed++)
                run_world(seed, 1500, 10);
}

int main(void) {
        return TEST_MAIN(TEST(a_rebuild_after_every_step_has_the_same_sums),
                         TEST(random_operations_keep_every_sum));
}
