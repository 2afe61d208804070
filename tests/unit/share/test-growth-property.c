/* SPDX-License-Identifier: Apache-2.0 */

/* A node whose slices grow and shrink, in random steps. Pods are placed, wish, run and end. The
 * leading scheduler reserves, reads the node and writes a permit. The agent accepts, shrinks and
 * gives back. Watches lag, answers are lost, patches arrive late. Leaders begin again with what the
 * API has, and agents with their records.
 *
 * The oracle looks at what processes hold or may hold at once: never more than the card has. Where
 * no other program places pods, also the limits and permits of a card are within its size. */

#include "making.h"
#include "share/growth.h"
#include "share/ledger-internal.h"
#include "share/ledger_card.h"
#include "share/ledger_growth.h"
#include "wire/json_write.h"

enum { CARDS = 2, UNITS = 16, PODS = 8, TEXT = 2048, HISTORY = 64, PATCHES = 64, NONE = -1 };

/* A pod, from its binding until its last process has ended. */
typedef struct ModelPod {
        char uid[16]; /* "": the place is free */
        uint32_t card, limit;
        uint32_t wish;        /* above the limit */
        bool in_api;          /* the object is there; with processes only: deleted by force */
        bool started, saved;  /* it has processes; the agent has a record of it */
        uint32_t above, held; /* of the record; by the processes */
        bool leader_knows;    /* the watch of pods has shown the binding, or the end */
        Grant *grant;         /* the leader's */
} ModelPod;

typedef struct Patch {
        uint64_t version; /* of the node object that the writer read */
        char text[TEXT];
        int writer;
} Patch;

enum { LEADER, AGENT, FORMER };

typedef struct World {
        uint64_t random;
        bool alone; /* no other program places pods, and no pod is deleted by force */
        char node[HISTORY][TEXT];
        uint64_t version; /* of the newest node object; the others are kept for the watches */
        ModelPod pods[PODS];
        unsigned n_pods_ever;
        Patch patches[PATCHES];
        size_t n_patches;
        struct {
                Ledger *ledger;
                uint64_t seen;
                char growing[16]; /* the pod with a reservation that is not answered; "": none */
                bool sent;
        } leader;
        struct {
                uint64_t seen;
                char mine[TEXT];
                bool sent;
        } agent;
        size_t n_grown, n_shrunk, n_refused, n_conflicts, n_waits, n_settled;
} World;

static uint32_t pick(World *w, uint32_t below) {
        w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (uint32_t) (w->random >> 33) % below;
}

static const char *node_at(const World *w, uint64_t version) {
        return w->node[version % HISTORY];
}

static ModelPod *any_pod(World *w) {
        return &w->pods[pick(w, PODS)];
}

static ModelPod *pod_of(World *w, Str uid) {
        for (size_t i = 0; i < PODS; i++)
                if (w->pods[i].uid[0] && str_eq(str_from(w->pods[i].uid), uid))
                        return &w->pods[i];
        return NULL;
}

/* ---- the API server ---- */

static void write_node(World *w, const char *text) {
        w->version++;
        (void) snprintf(w->node[w->version % HISTORY], TEXT, "%s", text);
        /* A watch that lags too far behind lists again. */
        if (w->leader.seen + HISTORY / 2 < w->version)
                w->leader.seen = w->version - 1;
        if (w->agent.seen + HISTORY / 2 < w->version)
                w->agent.seen = w->version - 1;
}

static void send(World *w, int writer, uint64_t version, Str text) {
        Patch *p = &w->patches[w->n_patches];

        if (w->n_patches == PATCHES)
                return; /* lost before it arrived */
        w->n_patches++;
        *p = (Patch){.version = version, .writer = writer};
        ASSERT_TRUE(text.len < TEXT);
        memcpy(p->text, text.data, text.len);
}

static uint64_t serial_of(const char *text) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Growth g;

        ASSERT_OK(growth_read(str_from(text), &arena, &g, NULL));
        return g.serial;
}

static LedgerNode *leader_node(const World *w) {
        return ledger_node_find(w->leader.ledger, STR("n"));
}

/* An answer may be lost: the writer learns what became of its patch from the object alone. */
static void answer_leader(World *w, const char *text) {
        if (!w->leader.sent)
                return;
        w->leader.sent = false;
        if (!text || pick(w, 4) == 0)
                return;
        ledger_growth_settle(leader_node(w), str_from(w->leader.growing), serial_of(text));
        w->leader.growing[0] = '\0';
}

static void deliver(World *w) {
        Patch p;
        size_t i;
        bool taken;

        if (w->n_patches == 0)
                return;
        i = pick(w, (uint32_t) w->n_patches);
        p = w->patches[i];
        w->patches[i] = w->patches[--w->n_patches];
        taken = p.version == w->version;
        if (taken)
                write_node(w, p.text);
        w->n_conflicts += !taken;
        if (p.writer == LEADER)
                answer_leader(w, taken ? p.text : NULL);
        if (p.writer == AGENT)
                w->agent.sent = false;
}

/* Another key of the node, as its kubelet writes it. */
static void write_other_key(World *w) {
        char same[TEXT];

        (void) snprintf(same, sizeof same, "%s", node_at(w, w->version));
        write_node(w, same);
}

/* ---- the leader ---- */

static void set_node_object(Ledger *l, const char *growth) {
        _cleanup_buf_ Buf members = BUF_NULL, text = BUF_NULL;

        json_write_quoted(&text, str_from(growth));
        buf_appendf(&members, ",\"annotations\":{\"aliquot.dev/grown-slices\":" STR_FMT "}" EQUAL(32, 2),
                    STR_ARG(buf_str(&text)));
        set_node(l, "n", "core_mem", "", members.data);
}

static Grant *grant_of(Ledger *l, const ModelPod *pod) {
        const Slice slice = {.card = pod->card, .mem = pod->limit};
        const GrantSpec spec = {.namespace_ = STR("default"),
                                .name = str_from(pod->uid),
                                .uid = str_from(pod->uid),
                                .node = STR("n"),
                                .slices = &slice,
                                .n_slices = 1};
        Grant *g;

        ASSERT_OK(grant_new(l, &spec, &g));
        return g;
}

/* A new leader knows what the API has, and nothing else. A patch of the former one may arrive
 * later, but for those of a world that is alone: the client gave them up before. */
static void lead_again(World *w) {
        for (size_t i = 0; i < PODS; i++)
                w->pods[i].grant = grant_free(w->pods[i].grant);
        (void) ledger_free(w->leader.ledger);
        for (size_t i = w->n_patches; i-- > 0;)
                if (w->patches[i].writer == LEADER) {
                        w->patches[i].writer = FORMER;
                        if (w->alone)
                                w->patches[i] = w->patches[--w->n_patches];
                }
        w->leader.growing[0] = '\0';
        w->leader.sent = false;
        w->leader.seen = w->version;
        ASSERT_OK(ledger_new(&w->leader.ledger));
        set_node_object(w->leader.ledger, node_at(w, w->version));
        for (size_t i = 0; i < PODS; i++)
                if (w->pods[i].in_api) {
                        w->pods[i].grant = grant_of(w->leader.ledger, &w->pods[i]);
                        w->pods[i].leader_knows = true;
                }
}

static void leader_sees_node(World *w) {
        if (w->leader.seen == w->version)
                return;
        w->leader.seen++;
        set_node_object(w->leader.ledger, node_at(w, w->leader.seen));
}

static void leader_sees_pod(World *w) {
        ModelPod *pod = any_pod(w);

        if (!pod->uid[0] || pod->leader_knows)
                return;
        pod->leader_knows = true;
        if (pod->in_api && !pod->grant)
                pod->grant = grant_of(w->leader.ledger, pod);
        if (!pod->in_api)
                pod->grant = grant_free(pod->grant);
}

static ModelPod *bind_pod(World *w, uint32_t card, uint32_t limit) {
        ModelPod *pod = any_pod(w);

        if (pod->uid[0])
                return NULL;
        *pod = (ModelPod){.card = card, .limit = limit, .in_api = true};
        (void) snprintf(pod->uid, sizeof pod->uid, "u%u", w->n_pods_ever++);
        return pod;
}

static void leader_places(World *w) {
        uint32_t card = pick(w, CARDS), limit = 1 + pick(w, 5);
        const LedgerNode *n = leader_node(w);
        ModelPod *pod;

        if (ledger_card_free(n, ledger_card_find(n, card)) < limit)
                return;
        pod = bind_pod(w, card, limit);
        if (!pod)
                return;
        pod->grant = grant_of(w->leader.ledger, pod);
        pod->leader_knows = true;
}

/* A scheduler that counts limits alone. The kubelet refuses a pod without devices. */
static void other_scheduler_places(World *w) {
        uint32_t card = pick(w, CARDS), sum = 0;

        for (size_t i = 0; i < PODS; i++)
                sum += w->pods[i].in_api && w->pods[i].card == card ? w->pods[i].limit : 0;
        if (sum < UNITS)
                (void) bind_pod(w, card, 1 + pick(w, 4) % (UNITS - sum));
}

static void leader_reserves(World *w) {
        ModelPod *pod = any_pod(w);
        GrowthEntry e = {.uid = str_from(pod->uid), .card = pod->card, .size = {.mem = pod->wish}};
        LedgerNode *n = leader_node(w);
        Fault fault = FAULT_NULL;
        int r;

        if (!pod->grant || w->leader.growing[0] || ledger_growth_serial(n) == 0 ||
            ledger_growth_is_reserved(n, e.uid) || pod->wish <= ledger_growth_of(n, e.uid, 0, e.card).mem)
                return;
        r = ledger_growth_reserve(n, &e, &fault);
        w->n_refused += r != 0;
        if (r == 0)
                memcpy(w->leader.growing, pod->uid, sizeof pod->uid);
}

/* Reads the newest object. The permit may be there from an earlier patch with a lost answer. */
static void leader_writes(World *w) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf text = BUF_NULL;
        Str uid = str_from(w->leader.growing);
        ModelPod *pod = pod_of(w, uid);
        GrowthSize reserved;
        GrowthEntry *there;
        Growth g;

        if (!w->leader.growing[0] || w->leader.sent)
                return;
        for (uint32_t card = 0; card < CARDS; card++) {
                reserved = ledger_growth_of(leader_node(w), uid, 0, card);
                if (reserved.mem == 0)
                        continue;
                ASSERT_OK(growth_read(str_from(node_at(w, w->version)), &arena, &g, NULL));
                there = growth_find(&g, uid, 0, card);
                if (!pod || !pod->in_api || (there && there->size.mem >= reserved.mem)) {
                        /* A pod that is gone: an earlier patch may arrive yet, if it was sent. */
                        ledger_growth_settle(leader_node(w), uid, g.serial);
                        w->leader.growing[0] = '\0';
                        return;
                }
                g.serial++;
                ASSERT_OK(
                        growth_raise(&g, &arena, &(GrowthEntry){.uid = uid, .card = card, .size = reserved}));
                growth_write(&g, &text);
                send(w, LEADER, w->version, buf_str(&text));
                w->leader.sent = true;
                return;
        }
        w->leader.growing[0] = '\0';
}

/* ---- the agent ---- */

static uint32_t held_above(const ModelPod *pod) {
        return pod->started && pod->held > pod->limit ? pod->held - pod->limit : 0;
}

/* What may be held on the card by containers that have started. */
static uint32_t in_use(const World *w, uint32_t card) {
        uint32_t sum = 0;

        for (size_t i = 0; i < PODS; i++) {
                const ModelPod *pod = &w->pods[i];
                uint32_t above = pod->above > held_above(pod) ? pod->above : held_above(pod);

                if (pod->started && pod->card == card)
                        sum += pod->limit + above;
        }
        return sum;
}

static GrowthUse use_of(const ModelPod *pod) {
        return (GrowthUse){.in_force.mem = pod ? pod->above : 0,
                           .wanted.mem = pod && pod->in_api ? pod->wish : 0,
                           .held.mem = pod ? held_above(pod) : 0};
}

static Growth agent_growth(const World *w, Arena *arena) {
        Growth g;

        ASSERT_OK(growth_read(str_from(node_at(w, w->agent.seen)), arena, &g, NULL));
        return g;
}

/* slice_resize_look(): record and page. */
static void agent_resizes(World *w) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Growth g = agent_growth(w, &arena);
        ModelPod *pod = any_pod(w);
        GrowthUse use = use_of(pod);
        const GrowthEntry *e = growth_find(&g, str_from(pod->uid), 0, pod->card);

        if (!pod->started || !pod->in_api)
                return;
        if (use.wanted.mem < pod->above) {
                pod->above = use.wanted.mem;
                w->n_shrunk++;
        } else if (e && growth_may_take(e->size, &use) &&
                   strcmp(w->agent.mine, node_at(w, w->agent.seen)) == 0) {
                uint32_t to = growth_smaller(e->size, use.wanted).mem;

                if (in_use(w, pod->card) + to - pod->above > UNITS)
                        return;
                pod->above = to;
                w->n_grown++;
        }
}

static void agent_writes(World *w) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf text = BUF_NULL;
        Growth g = agent_growth(w, &arena);
        bool takes = false, differs = g.serial == 0;

        for (size_t i = 0; i < PODS; i++)
                if (w->pods[i].saved && w->pods[i].above > 0)
                        ASSERT_OK(growth_raise(
                                &g, &arena,
                                &(GrowthEntry){.uid = str_from(w->pods[i].uid), .card = w->pods[i].card}));
        for (size_t i = 0; i < g.n; i++) {
                GrowthUse use = use_of(pod_of(w, g.list[i].uid));
                GrowthSize keep = growth_keep(g.list[i].size, &use);

                takes |= growth_may_take(keep, &use);
                differs |= !growth_is_same(keep, g.list[i].size);
                g.list[i].size = keep;
        }
        if (!differs && (!takes || strcmp(w->agent.mine, node_at(w, w->agent.seen)) == 0))
                return;
        g.serial++;
        growth_write(&g, &text);
        (void) snprintf(w->agent.mine, TEXT, STR_FMT, STR_ARG(buf_str(&text)));
        if (w->agent.sent)
                return; /* one call at a time; what it says is made again from the next object */
        send(w, AGENT, w->agent.seen, buf_str(&text));
        w->agent.sent = true;
}

static void agent_again(World *w) {
        w->agent.mine[0] = '\0';
        w->agent.sent = false;
        w->agent.seen = w->version;
        for (size_t i = 0; i < w->n_patches; i++)
                if (w->patches[i].writer == AGENT)
                        w->patches[i].writer = FORMER;
}

/* PreStart: what others may hold leaves room for the limit. */
static void container_starts(World *w) {
        ModelPod *pod = any_pod(w);

        if (!pod->in_api || pod->started)
                return;
        if (in_use(w, pod->card) + pod->limit + pod->above > UNITS) {
                ASSERT_FALSE(w->alone); /* the ledger gave it this room */
                w->n_waits++;
                return;
        }
        pod->started = pod->saved = true;
}

/* ---- processes and users ---- */

static void process_allocates(World *w) {
        ModelPod *pod = any_pod(w);
        uint32_t size = pod->limit + pod->above, to = pick(w, (size > pod->held ? size : pod->held) + 1);

        if (pod->started && (to <= pod->held || to <= size))
                pod->held = to;
}

static void forget_if_gone(ModelPod *pod) {
        if (!pod->in_api && !pod->started && pod->leader_knows && !pod->grant)
                *pod = (ModelPod){.limit = 0};
}

static void pod_ends(World *w) {
        ModelPod *pod = any_pod(w);

        if (!pod->uid[0] || pick(w, 3) > 0)
                return;
        if (pod->in_api && pod->started && !w->alone && pick(w, 4) == 0) {
                pod->in_api = pod->leader_knows = false; /* by force: the processes run on */
                return;
        }
        if (pod->in_api)
                pod->leader_knows = false;
        pod->in_api = pod->started = pod->saved = false;
        pod->above = pod->held = 0;
}

static void user_wishes(World *w) {
        ModelPod *pod = any_pod(w);

        if (pod->in_api)
                pod->wish = pick(w, 4) == 0 ? pick(w, UNITS) : pick(w, 6);
}

/* ---- the oracle ---- */

static void check(World *w) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        uint32_t promised[CARDS] = {0};
        Growth api;

        ASSERT_OK(growth_read(str_from(node_at(w, w->version)), &arena, &api, NULL));
        for (size_t i = 0; i < PODS; i++) {
                const ModelPod *pod = &w->pods[i];
                const GrowthEntry *e = growth_find(&api, str_from(pod->uid), 0, pod->card);

                promised[pod->card] += pod->in_api ? pod->limit : 0;
                /* What is in force or held above the limit stands in the API. */
                ASSERT_TRUE(pod->above == 0 || (e && e->size.mem >= pod->above));
                ASSERT_TRUE(held_above(pod) == 0 || (e && e->size.mem >= held_above(pod)));
        }
        for (size_t i = 0; i < api.n; i++)
                promised[api.list[i].card] += api.list[i].size.mem;
        for (uint32_t card = 0; card < CARDS; card++) {
                ASSERT_TRUE(in_use(w, card) <= UNITS);
                ASSERT_TRUE(!w->alone || promised[card] <= UNITS);
        }
        ASSERT_TRUE(ledger_check(w->leader.ledger));
}

/* Once everything has arrived, the leader's sums are those of a ledger that is made of the API. */
static void settle(World *w) {
        _cleanup_(ledger_freep) Ledger *again = NULL;

        for (int i = 0; i < 400; i++) {
                deliver(w);
                leader_sees_node(w);
                leader_sees_pod(w);
                leader_writes(w);
                w->agent.seen = w->version;
        }
        if (w->n_patches > 0 || w->leader.growing[0] || w->leader.seen != w->version)
                return;
        for (size_t i = 0; i < PODS; i++)
                if (w->pods[i].uid[0] && !w->pods[i].leader_knows)
                        return;
        w->n_settled++;
        ASSERT_OK(ledger_new(&again));
        set_node_object(again, node_at(w, w->version));
        for (size_t i = 0; i < PODS; i++)
                if (w->pods[i].in_api)
                        (void) grant_of(again, &w->pods[i]);
        for (size_t card = 0; card < CARDS; card++) {
                ASSERT_INT(leader_node(w)->cards[card].used, card_at(again, "n", card)->used);
                ASSERT_INT(leader_node(w)->cards[card].pods, card_at(again, "n", card)->pods);
        }
}

static void other_step(World *w) {
        if (w->alone)
                return;
        other_scheduler_places(w);
}

static void rare_step(World *w) {
        static void (*const steps[])(World *) = {lead_again, agent_again, write_other_key, settle,
                                                 other_step};

        if (pick(w, 8) == 0)
                steps[pick(w, ELEMENTSOF(steps))](w);
}

static void agent_sees(World *w) {
        w->agent.seen += w->agent.seen < w->version;
}

static void forget(World *w) {
        forget_if_gone(any_pod(w));
}

static void run(uint64_t seed, bool alone) {
        static void (*const steps[])(World *) = {
                deliver,           deliver,          leader_sees_node,  leader_sees_node,
                leader_sees_pod,   leader_places,    leader_reserves,   leader_reserves,
                leader_writes,     leader_writes,    agent_sees,        agent_sees,
                agent_resizes,     agent_resizes,    agent_resizes,     agent_writes,
                container_starts,  container_starts, process_allocates, process_allocates,
                process_allocates, pod_ends,         user_wishes,       forget,
                rare_step,
        };
        World w = {.random = seed, .alone = alone};

        write_node(&w, "{\"serial\":1,\"slices\":[]}");
        lead_again(&w);
        agent_again(&w);
        for (int i = 0; i < 40000; i++) {
                steps[pick(&w, ELEMENTSOF(steps))](&w);
                check(&w);
        }
        ASSERT_TRUE(w.n_grown > 10 && w.n_shrunk > 10 && w.n_refused > 10 && w.n_conflicts > 10 &&
                    w.n_settled > 10);
        ASSERT_TRUE(alone || w.n_waits > 0);
        for (size_t i = 0; i < PODS; i++)
                (void) grant_free(w.pods[i].grant);
        (void) ledger_free(w.leader.ledger);
}

static void limits_and_permits_of_a_card_are_within_its_size(void) {
        for (uint64_t seed = 1; seed <= 10; seed++)
                run(seed, true);
}

static void processes_never_get_more_than_the_card_beside_other_schedulers(void) {
        for (uint64_t seed = 101; seed <= 110; seed++)
                run(seed, false);
}

int main(void) {
        return TEST_MAIN(TEST(limits_and_permits_of_a_card_are_within_its_size),
                         TEST(processes_never_get_more_than_the_card_beside_other_schedulers));
}
