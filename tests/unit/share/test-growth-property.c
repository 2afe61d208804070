/* SPDX-License-Identifier: Apache-2.0 */

/* A node whose slices grow and shrink, in random steps. Pods are placed, wish, run and end. The
 * containers of a pod start one by one, and may have another size before they start. Slices below
 * their limits leave the rest to slices that grow, and have it again by a permit of the leader. The
 * leading scheduler reserves, reads the node and writes a permit. The agent accepts, shrinks and
 * gives back. Watches lag, answers are lost, patches arrive late. Leaders begin again with what the
 * API has, and agents with their records, or with the pages of the slices.
 *
 * The oracle looks at what processes hold or may hold at once: never more than the card has, and
 * never more than their slice is charged with. Where no other program places pods, also the charges
 * of a card are within its size, and no pod is placed on what a slice has given up. */

#include "making.h"
#include "random.h"
#include "share/growth.h"
#include "share/ledger-internal.h"
#include "share/ledger_card.h"
#include "share/ledger_growth.h"
#include "thorough.h"
#include "wire/json_write.h"

enum { CARDS = 2, UNITS = 16, PODS = 8, CONTAINERS = 2, TEXT = 4096, HISTORY = 64, PATCHES = 64 };

typedef struct ModelContainer {
        int32_t limit, wish; /* wish: above the limit, or below it */
        bool started;        /* it has processes */
        int32_t above;       /* of the record; negative: below the limit */
        int32_t permit;      /* of the record */
        int32_t held;        /* by the processes */
} ModelContainer;

/* A pod, from its binding until its last process has ended. */
typedef struct ModelPod {
        char uid[16]; /* "": the place is free */
        uint32_t card;
        ModelContainer containers[CONTAINERS];
        size_t n;
        bool in_api;       /* the object is there; with processes only: deleted by force */
        bool saved;        /* the agent has a record of it: one of its containers has started */
        bool leader_knows; /* the watch of pods has shown the binding, or the end */
        Grant *grant;      /* the leader's */
} ModelPod;

typedef struct Patch {
        uint64_t version; /* of the node object that the writer read */
        char text[TEXT];
        int writer;
} Patch;

enum { LEADER, AGENT, FORMER };

typedef struct World {
        Random random;
        bool alone; /* no other program places pods, and no pod is deleted by force */
        bool loses; /* the node's annotation is lost at times */
        char node[HISTORY][TEXT];
        uint64_t version; /* of the newest node object; the others are kept for the watches */
        uint64_t serial;  /* the largest ever; the clock of an agent is ahead of it */
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
        size_t n_grown, n_shrunk, n_refused, n_conflicts, n_waits, n_settled, n_early, n_returned, n_resting,
                n_lost;
} World;

static uint32_t pick(World *w, uint32_t below) {
        return random_below(&w->random, below);
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

static uint64_t serial_of(const char *text) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Growth g;

        ASSERT_OK(growth_read(str_from(text), &arena, &g, NULL));
        return g.serial;
}

static void write_node(World *w, const char *text) {
        uint64_t serial = serial_of(text);

        w->version++;
        w->serial = w->serial > serial ? w->serial : serial;
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

static void lose_annotation(World *w) {
        if (w->loses)
                write_node(w, "");
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
        Slice slices[CONTAINERS];
        const GrantSpec spec = {.namespace_ = STR("default"),
                                .name = str_from(pod->uid),
                                .uid = str_from(pod->uid),
                                .node = STR("n"),
                                .slices = slices,
                                .n_slices = pod->n};
        Grant *g;

        for (uint32_t i = 0; i < pod->n; i++)
                slices[i] = (Slice){.container = (uint16_t) i,
                                    .card = pod->card,
                                    .mem = (uint32_t) pod->containers[i].limit};
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
                        if (w->alone || pick(w, 2) > 0)
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

static int32_t limit_of(const ModelPod *pod) {
        int32_t sum = 0;

        for (size_t i = 0; i < pod->n; i++)
                sum += pod->containers[i].limit;
        return sum;
}

/* limit: of the pod; it has two containers where it can be divided. */
static ModelPod *bind_pod(World *w, uint32_t card, int32_t limit) {
        ModelPod *pod = any_pod(w);

        if (pod->uid[0])
                return NULL;
        *pod = (ModelPod){.card = card, .in_api = true, .n = limit > 1 ? 1 + pick(w, CONTAINERS) : 1};
        pod->containers[0].limit = pod->n > 1 ? 1 + (int32_t) pick(w, (uint32_t) limit - 1) : limit;
        pod->containers[1].limit = limit - pod->containers[0].limit;
        (void) snprintf(pod->uid, sizeof pod->uid, "u%u", w->n_pods_ever++);
        return pod;
}

/* Limits of a card, and what the API permits above them. */
static int32_t taken_from_new_pods(const World *w, uint32_t card) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        int32_t sum = 0;
        Growth api;

        ASSERT_OK(growth_read(str_from(node_at(w, w->version)), &arena, &api, NULL));
        for (size_t i = 0; i < PODS; i++)
                sum += w->pods[i].in_api && w->pods[i].card == card ? limit_of(&w->pods[i]) : 0;
        for (size_t i = 0; i < api.n; i++)
                sum += api.list[i].card == card ? growth_excess(api.list[i].size).mem : 0;
        return sum;
}

static void leader_places(World *w) {
        uint32_t card = pick(w, CARDS), limit = 1 + pick(w, 8);
        const LedgerNode *n = leader_node(w);
        ModelPod *pod;

        if (ledger_card_free(n, ledger_card_find(n, card)) < limit)
                return;
        pod = bind_pod(w, card, (int32_t) limit);
        if (!pod)
                return;
        ASSERT_TRUE(!w->alone || taken_from_new_pods(w, card) <= UNITS);
        pod->grant = grant_of(w->leader.ledger, pod);
        pod->leader_knows = true;
}

/* A scheduler that counts limits alone. The kubelet refuses a pod without devices. */
static void other_scheduler_places(World *w) {
        uint32_t card = pick(w, CARDS);
        int32_t sum = 0;

        if (w->alone || pick(w, 2) > 0)
                return;
        for (size_t i = 0; i < PODS; i++)
                sum += w->pods[i].in_api && w->pods[i].card == card ? limit_of(&w->pods[i]) : 0;
        if (sum < UNITS)
                (void) bind_pod(w, card, 1 + (int32_t) pick(w, 4) % (UNITS - sum));
}

/* All that the pod asks for, or nothing. */
static int reserve(World *w, const ModelPod *pod) {
        LedgerNode *n = leader_node(w);
        Fault fault = FAULT_NULL;
        int r = 0;

        for (uint32_t i = 0; r == 0 && i < pod->n; i++) {
                const GrowthEntry e = {.uid = str_from(pod->uid),
                                       .container = i,
                                       .card = pod->card,
                                       .size.mem = pod->containers[i].wish};

                if (e.size.mem > ledger_growth_of(n, e.uid, i, e.card).mem)
                        r = ledger_growth_reserve(n, &e, &fault);
        }
        if (r != 0)
                ledger_growth_release(n, str_from(pod->uid));
        return r;
}

static void leader_reserves(World *w) {
        ModelPod *pod = any_pod(w);
        const LedgerNode *n = leader_node(w);
        bool wants = false;
        int r;

        for (uint32_t i = 0; i < pod->n; i++)
                wants |= pod->containers[i].wish > ledger_growth_of(n, str_from(pod->uid), i, pod->card).mem;
        if (!wants || !pod->grant || w->leader.growing[0] || ledger_growth_serial(n) == 0 ||
            ledger_growth_is_reserved(n, str_from(pod->uid)))
                return;
        r = reserve(w, pod);
        w->n_refused += r != 0;
        if (r == 0)
                memcpy(w->leader.growing, pod->uid, sizeof pod->uid);
}

/* Returns whether an entry was lower than what is reserved. */
static bool raise_entries(const World *w, const ModelPod *pod, Arena *arena, Growth *g) {
        bool raised = false;

        for (uint32_t i = 0; pod && pod->in_api && i < pod->n; i++) {
                GrowthEntry e = {.uid = str_from(pod->uid), .container = i, .card = pod->card};
                const GrowthEntry *there = growth_find(g, e.uid, i, e.card);

                e.size = ledger_growth_reserved(leader_node(w), e.uid, i, e.card);
                if (e.size.mem <= (there ? there->size.mem : 0))
                        continue;
                ASSERT_OK(growth_raise(g, arena, &e));
                raised = true;
        }
        return raised;
}

/* Reads the newest object. The permit may be there from an earlier patch with a lost answer. */
static void leader_writes(World *w) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf text = BUF_NULL;
        Str uid = str_from(w->leader.growing);
        Growth g;

        if (!w->leader.growing[0] || w->leader.sent)
                return;
        ASSERT_OK(growth_read(str_from(node_at(w, w->version)), &arena, &g, NULL));
        if (g.serial == 0 || !raise_entries(w, pod_of(w, uid), &arena, &g)) {
                /* Of a pod that is gone, an earlier patch may arrive yet. After the annotation was
                 * lost, none can. */
                ledger_growth_settle(leader_node(w), uid, g.serial);
                w->leader.growing[0] = '\0';
                return;
        }
        g.serial++;
        growth_write(&g, &text);
        send(w, LEADER, w->version, buf_str(&text));
        w->leader.sent = true;
}

/* ---- the agent ---- */

static int32_t held_above(const ModelContainer *c) {
        return c->started ? c->held - c->limit : INT32_MIN;
}

/* What its processes may hold, above the limit. One that has not started holds nothing of it. */
static int32_t used_above(const ModelContainer *c) {
        return c->above > held_above(c) ? c->above : held_above(c);
}

static int32_t excess(int32_t size) {
        return size > 0 ? size : 0;
}

/* What may be held on the card by containers that have started, and by those whose pages will have
 * a size above their limits when they start. */
static int32_t in_use(const World *w, uint32_t card) {
        int32_t sum = 0;

        for (size_t i = 0; i < PODS; i++)
                for (size_t k = 0; w->pods[i].card == card && k < w->pods[i].n; k++) {
                        const ModelContainer *c = &w->pods[i].containers[k];

                        sum += c->started ? c->limit + used_above(c) : excess(c->above);
                }
        return sum;
}

/* The agent lets no container start with devices that another one has. */
static int32_t devices_in_use(const World *w, uint32_t card) {
        int32_t sum = 0;

        for (size_t i = 0; i < PODS; i++)
                for (size_t k = 0; w->pods[i].card == card && k < w->pods[i].n; k++)
                        sum += w->pods[i].containers[k].started ? w->pods[i].containers[k].limit : 0;
        return sum;
}

/* Whether a slice of the card has or holds more than its limit. */
static bool any_is_above(const World *w, uint32_t card) {
        for (size_t i = 0; i < PODS; i++)
                for (size_t k = 0; w->pods[i].card == card && k < w->pods[i].n; k++)
                        if (used_above(&w->pods[i].containers[k]) > 0)
                                return true;
        return false;
}

static GrowthUse use_of(const ModelPod *pod, uint32_t container) {
        const ModelContainer *c = pod && container < pod->n ? &pod->containers[container] : NULL;

        return (GrowthUse){.in_force.mem = c ? c->above : 0,
                           .wanted.mem = c && pod->in_api ? c->wish : 0,
                           .held.mem = c ? held_above(c) : 0,
                           .held.core = INT32_MIN,
                           .permit.mem = c ? c->permit : 0};
}

static Growth agent_growth(const World *w, Arena *arena) {
        Growth g;

        ASSERT_OK(growth_read(str_from(node_at(w, w->agent.seen)), arena, &g, NULL));
        return g;
}

static bool is_mine(const World *w) {
        return strcmp(w->agent.mine, node_at(w, w->agent.seen)) == 0;
}

/* slice_resize_look(): record and page, or the record alone of a container that has not started. */
static void agent_resizes(World *w) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Growth g = agent_growth(w, &arena);
        ModelPod *pod = any_pod(w);
        uint32_t k = pick(w, CONTAINERS);
        int32_t before, start;
        ModelContainer *c = &pod->containers[k];
        GrowthUse use = use_of(pod, k);
        const GrowthEntry *e = growth_find(&g, str_from(pod->uid), k, pod->card);
        GrowthSize permit = e ? e->size : (GrowthSize){0, 0};

        if (!pod->saved || !pod->in_api || k >= pod->n)
                return;
        if (use.wanted.mem < c->above) {
                c->above = use.wanted.mem;
                w->n_shrunk++;
        } else if (growth_may_take(permit, &use) && is_mine(w)) {
                before = c->above;
                c->above = growth_smaller(permit, use.wanted).mem;
                start = c->started ? 0 : c->limit - excess(-c->above);
                if (in_use(w, pod->card) + start > UNITS && (c->above > 0 || any_is_above(w, pod->card))) {
                        c->above = before;
                        return;
                }
                w->n_returned += before < 0;
                w->n_grown += c->above > 0;
                w->n_early += !c->started;
                c->permit = c->above > c->permit ? c->above : c->permit;
        }
}

/* Entries for what the records have and permit: the annotation may be lost, or not have it yet. */
static void add_records(World *w, Growth *g, Arena *arena) {
        for (size_t i = 0; i < PODS; i++)
                for (uint32_t k = 0; w->pods[i].saved && k < w->pods[i].n; k++)
                        if (w->pods[i].containers[k].permit > 0 || w->pods[i].containers[k].above != 0)
                                ASSERT_OK(growth_ensure(g, arena, str_from(w->pods[i].uid), k,
                                                        w->pods[i].card));
}

static void lower_permit(ModelPod *pod, const GrowthEntry *e) {
        GrowthUse use = use_of(pod, e->container);

        if (pod && e->container < pod->n)
                pod->containers[e->container].permit = excess(growth_permit(e->size, &use).mem);
}

static void agent_writes(World *w) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf text = BUF_NULL;
        Growth g = agent_growth(w, &arena);
        bool takes = false, differs = g.serial == 0;

        add_records(w, &g, &arena);
        for (size_t i = 0; i < g.n; i++) {
                ModelPod *pod = pod_of(w, g.list[i].uid);
                GrowthUse use = use_of(pod, g.list[i].container);
                GrowthSize keep =
                        g.serial == 0 ? growth_permit(use.permit, &use) : growth_keep(g.list[i].size, &use);

                takes |= growth_may_take(keep, &use);
                differs |= !growth_is_same(keep, g.list[i].size);
                g.list[i].size = keep;
                lower_permit(pod, &g.list[i]);
        }
        if (!differs && (!takes || is_mine(w)))
                return;
        g.serial = g.serial > 0 ? g.serial + 1 : w->serial + 1;
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

/* The agent begins again without the record of a pod with running containers: their pages have the
 * size in force, and no permit is known. Not beside a lost annotation: then nothing says what
 * processes were permitted to hold. */
static void agent_loses_record(World *w) {
        ModelPod *pod = any_pod(w);

        if (w->loses || !pod->in_api || pod->n == 0)
                return;
        for (size_t i = 0; i < pod->n; i++)
                if (!pod->containers[i].started)
                        return;
        agent_again(w);
        for (size_t i = 0; i < pod->n; i++) {
                w->n_lost += pod->containers[i].above != 0;
                pod->containers[i].permit = 0;
        }
}

/* PreStart: what others may hold leaves room for the limit, and for the size above it. */
static void container_starts(World *w) {
        ModelPod *pod = any_pod(w);
        const ModelContainer *c;
        uint32_t k = pick(w, CONTAINERS);

        if (!pod->in_api || k >= pod->n || pod->containers[k].started || (pod->saved && pick(w, 8) > 0))
                return; /* its image is pulled */
        c = &pod->containers[k];
        if (devices_in_use(w, pod->card) + c->limit > UNITS ||
            (in_use(w, pod->card) + c->limit + (c->above < 0 ? c->above : 0) > UNITS &&
             any_is_above(w, pod->card))) {
                ASSERT_FALSE(w->alone); /* the ledger gave it this room */
                w->n_waits++;
                return;
        }
        pod->containers[k].started = pod->saved = true;
}

/* ---- processes and users ---- */

static void process_allocates(World *w) {
        ModelContainer *c = &any_pod(w)->containers[pick(w, CONTAINERS)];
        int32_t size = c->limit + c->above,
                to = (int32_t) pick(w, (uint32_t) (size > c->held ? size : c->held) + 1);

        if (c->started && (to <= c->held || to <= size))
                c->held = to;
}

static void forget_if_gone(ModelPod *pod) {
        if (!pod->in_api && !pod->saved && pod->leader_knows && !pod->grant)
                *pod = (ModelPod){.n = 0};
}

static void pod_ends(World *w) {
        ModelPod *pod = any_pod(w);

        if (!pod->uid[0] || pick(w, 10) > 0)
                return;
        if (pod->in_api && pod->saved && !w->alone && pick(w, 4) == 0) {
                pod->in_api = pod->leader_knows = false; /* by force: the processes run on */
                return;
        }
        if (pod->in_api)
                pod->leader_knows = false;
        pod->in_api = pod->saved = false;
        memset(pod->containers, 0, sizeof pod->containers);
        pod->n = 0;
}

static void user_wishes(World *w) {
        ModelPod *pod = any_pod(w);
        ModelContainer *c;

        if (!pod->in_api)
                return;
        c = &pod->containers[pick(w, (uint32_t) pod->n)];
        if (pick(w, 3) == 0)
                c->wish = -(int32_t) pick(w, (uint32_t) c->limit);
        else
                c->wish = (int32_t) (pick(w, 8) == 0 ? pick(w, UNITS) : pick(w, 4));
}

/* ---- the oracle ---- */

static void check(World *w) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        int32_t charged[CARDS] = {0}, may_hold[CARDS] = {0};
        Growth api;

        ASSERT_OK(growth_read(str_from(node_at(w, w->version)), &arena, &api, NULL));
        for (size_t i = 0; i < PODS; i++) {
                const ModelPod *pod = &w->pods[i];

                charged[pod->card] += pod->in_api ? limit_of(pod) : 0;
                for (uint32_t k = 0; k < pod->n; k++) {
                        const ModelContainer *c = &pod->containers[k];
                        const GrowthEntry *e = growth_find(&api, str_from(pod->uid), k, pod->card);

                        /* What is in force or held is charged in the API. */
                        ASSERT_TRUE(w->loses || (e ? e->size.mem : 0) >= used_above(c));
                        may_hold[pod->card] += c->started ? c->limit + used_above(c) : 0;
                }
        }
        for (size_t i = 0; i < api.n; i++) {
                const ModelPod *pod = pod_of(w, api.list[i].uid);

                if (api.list[i].size.mem > 0 || (pod && pod->in_api))
                        charged[api.list[i].card] += api.list[i].size.mem;
        }
        for (uint32_t card = 0; card < CARDS; card++) {
                ASSERT_TRUE(may_hold[card] <= UNITS);
                ASSERT_TRUE(!w->alone || charged[card] <= UNITS);
                w->n_resting += w->alone && taken_from_new_pods(w, card) > UNITS;
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
                agent_writes(w);
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
                ASSERT_INT(ledger_growth_freed(leader_node(w), (uint32_t) card).mem,
                           ledger_growth_freed(ledger_node_find(again, STR("n")), (uint32_t) card).mem);
        }
}

static void rare_step(World *w) {
        static void (*const steps[])(World *) = {lead_again, agent_again,     write_other_key,
                                                 settle,     lose_annotation, agent_loses_record};

        if (pick(w, 8) == 0)
                steps[pick(w, ELEMENTSOF(steps))](w);
}

static void agent_sees(World *w) {
        w->agent.seen += w->agent.seen < w->version;
}

static void forget(World *w) {
        forget_if_gone(any_pod(w));
}

/* Returns how many starts had to wait. */
static size_t run(uint64_t seed, bool alone, bool loses) {
        static void (*const steps[])(World *) = {
                deliver,
                deliver,
                leader_sees_node,
                leader_sees_node,
                leader_sees_pod,
                leader_places,
                leader_reserves,
                leader_reserves,
                leader_writes,
                leader_writes,
                agent_sees,
                agent_sees,
                agent_resizes,
                agent_resizes,
                agent_resizes,
                agent_writes,
                container_starts,
                process_allocates,
                process_allocates,
                process_allocates,
                pod_ends,
                user_wishes,
                forget,
                rare_step,
                other_scheduler_places,
        };
        World w = {.random = {seed}, .alone = alone, .loses = loses};

        write_node(&w, "{\"serial\":1,\"slices\":[]}");
        lead_again(&w);
        agent_again(&w);
        for (int i = 0; i < 40000; i++) {
                steps[pick(&w, ELEMENTSOF(steps))](&w);
                check(&w);
        }
        ASSERT_TRUE(w.n_grown > 10 && w.n_shrunk > 10 && w.n_refused > 10 && w.n_conflicts > 10 &&
                    w.n_settled > 10 && w.n_early > 5 && w.n_returned > 10 && (!alone || w.n_resting > 100) &&
                    (loses || w.n_lost > 1));
        for (size_t i = 0; i < PODS; i++)
                (void) grant_free(w.pods[i].grant);
        (void) ledger_free(w.leader.ledger);
        return w.n_waits;
}

static void charges_of_a_card_are_within_its_size(void) {
        for (uint64_t seed = 1; seed <= few_or_all(2, 5); seed++)
                ASSERT_INT(run(seed, true, false), 0);
}

static void processes_never_get_more_than_the_card_beside_other_schedulers(void) {
        size_t n_waits = 0;

        for (uint64_t seed = 101; seed <= 100 + few_or_all(5, 20); seed++)
                n_waits += run(seed, false, false);
        ASSERT_TRUE(n_waits > 10);
}

/* The ledger has no reservation too many after it. */
static void an_annotation_that_is_lost_is_made_good(void) {
        for (uint64_t seed = 201; seed <= 200 + few_or_all(2, 5); seed++)
                (void) run(seed, false, true);
}

int main(void) {
        return TEST_MAIN(TEST(charges_of_a_card_are_within_its_size),
                         TEST(processes_never_get_more_than_the_card_beside_other_schedulers),
                         TEST(an_annotation_that_is_lost_is_made_good));
}
