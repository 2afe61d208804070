/* SPDX-License-Identifier: Apache-2.0 */

/* Random gangs on a small cluster, with a kube-scheduler that asks as the real one does. It assumes
 * a pod, binds it in the background, and has cpu to count. Some pods ask for more cpu than a node
 * has. Pods are deleted, Bindings fail, and the
 * leader and kube-scheduler are killed. After each step one gang assembles at most, and only its
 * members are held, for one attempt at most. When nothing happens any more, no gang is between 0
 * and min without a reason. A gang that has the cluster for itself, and enough members that fit, is
 * whole after a while. When all pods are gone, the ledger is empty. */

#include "gang-kit.h"
#include "random.h"
#include "share/ledger_check.h"
#include "share/placement.h"
#include "thorough.h"

enum { NODES = 4, CARDS = 2, UNITS = 10, CPUS = 7, PODS = 24, GANGS = 4, STEPS = 4000 };

#define STEP (200 * USEC_PER_MSEC)

typedef enum PodState { GONE, PENDING, ASSUMED, BOUND } PodState;

typedef struct ModelPod {
        PodState state;
        char uid[16];
        unsigned gang, mem;
        bool gated, posted;
        bool huge;     /* asks for more cpu than a node has */
        unsigned node; /* when assumed or bound */
        usec_t retry;  /* kube-scheduler's backoff */
        usec_t since;  /* held since */
        const char *message;
        Grant *grant;
} ModelPod;

typedef struct Model {
        Random random;
        Ledger *ledger;
        Gangs gs;
        usec_t now;
        ModelPod pods[PODS];
        unsigned made, min[GANGS];
        bool calm; /* nothing fails or ends any more */
        unsigned satisfied;
} Model;

static const char *const gang_names[GANGS] = {"g0", "g1", "g2", "g3"};

static unsigned below(Model *m, unsigned n) {
        return random_below(&m->random, n);
}

static ModelPod *pod_of(Model *m, Str uid) {
        for (size_t i = 0; i < PODS; i++)
                if (m->pods[i].state != GONE && str_eq(str_from(m->pods[i].uid), uid))
                        return &m->pods[i];
        return NULL;
}

static void watch(Model *m, const ModelPod *p) {
        char min[8];

        (void) snprintf(min, sizeof min, "%u", m->min[p->gang]);
        kit_put(&m->gs, m->now, .name = p->uid, .gang = gang_names[p->gang], .min = min, .mem = p->mem,
                .gated = p->gated, .bound = p->state == BOUND, .message = p->message, .where = p->gang + 1);
}

/* ---- the API server and kube-scheduler ---- */

static void forget(Model *m, ModelPod *p) {
        p->grant = grant_free(p->grant);
        p->posted = false;
        p->state = PENDING;
        p->retry = m->now + USEC_PER_SEC + below(m, 3) * USEC_PER_SEC;
}

static Str node_name(const Model *m, unsigned node) {
        char name[4] = {'n', (char) ('0' + node), '\0', '\0'};

        return ledger_node_name(ledger_node_find(m->ledger, str_from(name)));
}

/* The reservation that the binder makes: on the cards of the plan, or on any. */
static bool reserve(Model *m, ModelPod *p) {
        const Grant *place = gangs_place(&m->gs, str_from(p->uid));
        RequestContainer container = {.mem = p->mem};
        Request request = {.mem = p->mem, .cards = 1, .containers = &container, .n_containers = 1};
        LedgerNode *node = ledger_node_find(m->ledger, node_name(m, p->node));
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Placement placement = {0};
        Slice copy;
        Refusal refusal;
        size_t n;

        if (place && grant_node(place) == node) {
                copy = *grant_slices(place, &n);
                placement = (Placement){&copy, n};
                gangs_drop_place(&m->gs, str_from(p->uid));
        } else if (placement_choose_cards(node, &request, &arena, &placement, &refusal) != 0)
                return false;
        ASSERT_OK(grant_new(m->ledger,
                            &(GrantSpec){.namespace_ = STR("default"),
                                         .name = str_from(p->uid),
                                         .uid = str_from(p->uid),
                                         .node = ledger_node_name(node),
                                         .slices = placement.slices,
                                         .n_slices = placement.n_slices},
                            &p->grant));
        return true;
}

static void post(Model *m, ModelPod *p) {
        if (p->mem > 0 && !reserve(m, p)) {
                forget(m, p);
                gangs_bind_ended(&m->gs, str_from(p->uid), false, m->now);
                return;
        }
        p->posted = true;
}

static void on_release(void *userdata, Str uid) {
        post(userdata, pod_of(userdata, uid));
}

static void on_give_back(void *userdata, Str uid, const char *why) {
        Model *m = userdata;
        ModelPod *p = pod_of(m, uid);

        ASSERT_TRUE(why[0] != '\0' && strlen(why) <= REFUSAL_REASON_MAX);
        if (p) {
                ASSERT_INT(p->state, ASSUMED);
                ASSERT_FALSE(p->posted);
                forget(m, p);
        }
        gangs_bind_ended(&m->gs, uid, false, m->now);
}

static void on_wake(void *userdata, const GangMember *member) {
        Model *m = userdata;
        ModelPod *p = pod_of(m, str_from(member->uid));

        bool good = m->calm || below(m, 8) > 0;

        if (good) {
                p->gated = false;
                p->retry = 0;
        }
        gangs_woken(&m->gs, str_from(member->uid), good, m->now);
}

static void on_tell(void *userdata, const GangMember *m, const char *reason, const char *note) {
        ASSERT_TRUE(strlen(note) <= REFUSAL_REASON_MAX);
}

static unsigned cpus_free(const Model *m, unsigned node) {
        unsigned used = 0;

        for (size_t i = 0; i < PODS; i++)
                used += m->pods[i].state >= ASSUMED && m->pods[i].node == node;
        return used < CPUS ? CPUS - used : 0;
}

/* The nodes that its own filters leave. */
static size_t offered(Model *m, GangsNode *nodes, unsigned *which) {
        size_t n = 0;

        for (unsigned i = 0; i < NODES; i++) {
                if (cpus_free(m, i) == 0)
                        continue;
                which[n] = i;
                nodes[n++] = (GangsNode){.node = ledger_node_find(m->ledger, node_name(m, i))};
        }
        return n;
}

static void unschedulable(Model *m, ModelPod *p, const char *message) {
        p->message = message;
        p->retry = m->now + 5 * USEC_PER_SEC;
        watch(m, p);
}

static bool fits(const ModelPod *p, const LedgerNode *n) {
        RequestContainer container = {.mem = p->mem};
        Request request = {.mem = p->mem, .cards = 1, .containers = &container, .n_containers = 1};
        Refusal refusal;

        return p->mem == 0 || placement_check(n, &request, &refusal) == 0;
}

static void bind_pod(Model *m, ModelPod *p) {
        char why[GANGS_WHY_MAX] = "";

        switch (gangs_bind(&m->gs, str_from(p->uid), node_name(m, p->node), m->now, why)) {
        case GANGS_HOLD:
                p->since = m->now;
                gangs_held(&m->gs, str_from(p->uid), m->now);
                break;
        case GANGS_REFUSE:
                ASSERT_TRUE(why[0] != '\0');
                forget(m, p);
                break;
        default:
                post(m, p);
        }
}

static const char *const no_cpu[] = {
        "0/4 nodes are available: 4 Insufficient cpu.",
        "0/4 nodes are available: 1 node(s) had untolerated taint, 3 Insufficient cpu.",
};

static void schedule(Model *m, ModelPod *p) {
        GangsPod question = {str_from(p->uid), STR("default"), str_from(gang_names[p->gang]), STR("9")};
        char why[GANGS_WHY_MAX] = "";
        unsigned which[NODES], at = NODES;
        GangsNode nodes[NODES];
        size_t n = offered(m, nodes, which);
        GangsVerdict v;

        if (n == 0 || p->huge) {
                /* The words change, so that each attempt sees a new condition. */
                unschedulable(m, p, p->message != no_cpu[0] ? no_cpu[0] : no_cpu[1]);
                return;
        }
        v = gangs_filter(&m->gs, &question, nodes, n, m->now, why);
        for (size_t i = 0; i < n && v != GANGS_REFUSE; i++)
                if (v == GANGS_TAKE ? nodes[i].take : fits(p, nodes[i].node))
                        at = which[i];
        if (at == NODES) {
                ASSERT_TRUE(v != GANGS_TAKE);
                unschedulable(m, p, "0/4 nodes are available: 4 gang waits.");
                return;
        }
        p->state = ASSUMED;
        p->node = at;
        bind_pod(m, p);
}

static void answer_binding(Model *m, ModelPod *p) {
        bool good = m->calm || below(m, 8) > 0;

        p->posted = false;
        if (good)
                p->state = BOUND;
        else
                forget(m, p);
        gangs_bind_ended(&m->gs, str_from(p->uid), good, m->now);
        watch(m, p);
}

/* ---- what happens ---- */

static void create(Model *m) {
        unsigned gang = below(m, GANGS);

        for (size_t i = 0; i < PODS; i++)
                if (m->pods[i].state == GONE) {
                        ModelPod *p = &m->pods[i];

                        *p = (ModelPod){.state = PENDING,
                                        .gang = gang,
                                        .mem = below(m, 4) > 0 ? 3 + below(m, 8) : 0,
                                        .gated = below(m, 2) > 0,
                                        .huge = below(m, 6) == 0};
                        (void) snprintf(p->uid, sizeof p->uid, "p%u", m->made++);
                        watch(m, p);
                        return;
                }
}

static void end_pod(Model *m, ModelPod *p) {
        bool held = p->state == ASSUMED && !p->posted;

        p->grant = grant_free(p->grant);
        if (held) /* kube-scheduler forgets it, and its connection is closed */
                gangs_bind_ended(&m->gs, str_from(p->uid), false, m->now);
        gangs_pod_gone(&m->gs, str_from(p->uid), m->now);
        p->state = GONE;
}

static void init_gangs(Model *m) {
        gangs_init(&m->gs, m->ledger,
                   &(GangsHooks){.release = on_release,
                                 .give_back = on_give_back,
                                 .wake = on_wake,
                                 .tell = on_tell,
                                 .userdata = m});
        gangs_know_scheduler(&m->gs, STR("ours"), m->now);
        gangs_list_begin(&m->gs);
        for (size_t i = 0; i < PODS; i++)
                if (m->pods[i].state != GONE)
                        watch(m, &m->pods[i]);
        gangs_list_end(&m->gs, m->now);
        gangs_set_leading(&m->gs, true, m->now);
}

/* Binds that the API server has not answered end one way or the other. */
static void kill_leader(Model *m) {
        m->satisfied += (unsigned) m->gs.attempts_satisfied;
        gangs_done(&m->gs);
        for (size_t i = 0; i < PODS; i++) {
                ModelPod *p = &m->pods[i];

                if (p->state == ASSUMED && p->posted && below(m, 2) > 0) {
                        p->state = BOUND;
                        p->posted = false;
                } else if (p->state == ASSUMED)
                        forget(m, p);
        }
        init_gangs(m);
}

static void kill_kube_scheduler(Model *m) {
        for (size_t i = 0; i < PODS; i++) {
                ModelPod *p = &m->pods[i];

                if (p->state == ASSUMED && !p->posted) {
                        forget(m, p);
                        gangs_bind_ended(&m->gs, str_from(p->uid), false, m->now);
                }
        }
}

static void random_event(Model *m) {
        ModelPod *p = &m->pods[below(m, PODS)];
        unsigned what = below(m, 1000);

        if (what < 120)
                create(m);
        else if (what < 150 && p->state != GONE)
                end_pod(m, p);
        else if (what < 155)
                kill_leader(m);
        else if (what < 160)
                kill_kube_scheduler(m);
        else if (what < 165) {
                gangs_set_leading(&m->gs, false, m->now);
                gangs_set_leading(&m->gs, true, m->now);
        }
}

static void check(Model *m) {
        unsigned assembling = 0;
        Gang *g, *next;

        HASH_ITER(hh, m->gs.table.gangs, g, next) {
                assembling += g->state == GANG_ASSEMBLING;
                ASSERT_TRUE((g->state == GANG_ASSEMBLING) == (m->gs.assembling == g));
                for (const GangMember *x = g->members; x; x = x->next) {
                        const ModelPod *p = pod_of(m, str_from(x->uid));

                        ASSERT_TRUE(!x->held || g->state == GANG_ASSEMBLING);
                        ASSERT_TRUE(!x->held || (p->state == ASSUMED && !p->posted));
                        ASSERT_TRUE(!x->held || m->now <= p->since + GANGS_ATTEMPT + STEP);
                        ASSERT_TRUE(!x->place || g->state == GANG_ASSEMBLING || g->state == GANG_SATISFIED);
                }
        }
        ASSERT_TRUE(assembling <= 1);
        for (size_t i = 0; i < PODS; i++) /* a held Bind is one that the gang knows of */
                if (m->pods[i].state == ASSUMED && !m->pods[i].posted)
                        ASSERT_TRUE(gangs_is_unbound(&m->gs, str_from(m->pods[i].uid)));
        ASSERT_TRUE(ledger_check(m->ledger));
}

static void step(Model *m) {
        m->now += STEP;
        if (!m->calm)
                random_event(m);
        for (unsigned i = 0, from = m->calm ? 0 : below(m, PODS); i < PODS; i++) {
                ModelPod *p = &m->pods[(from + i) % PODS];

                if (p->state == PENDING && !p->gated && m->now >= p->retry)
                        schedule(m, p);
                else if (p->state == ASSUMED && p->posted && below(m, 2) > 0)
                        answer_binding(m, p);
        }
        (void) gangs_step(&m->gs, m->now);
        check(m);
}

/* A gang that is partly bound is being repaired, or was whole and has lost members since. */
static void check_at_rest(const Model *m) {
        Gang *g, *next;

        HASH_ITER(hh, m->gs.table.gangs, g, next) {
                const GangCount *c = &g->count;

                ASSERT_INT(c->released, 0);
                if (c->bound > 0 && c->bound < c->min)
                        ASSERT_TRUE(g->state == GANG_REPAIR || g->state == GANG_BACKOFF ||
                                    g->state == GANG_ASSEMBLING || g->whole);
                if (g->state == GANG_SATISFIED)
                        ASSERT_TRUE(c->bound >= c->min || g->whole);
        }
}

/* Alone each member that fits has a card and cpu. Whether the gang was not whole before. */
static bool check_alone(Model *m, unsigned gang) {
        Str name = str_from(gang_names[gang]);
        unsigned fit = 0, cards = 0;
        const Gang *g;
        bool waited;

        for (size_t i = 0; i < PODS; i++) {
                ModelPod *p = &m->pods[i];

                if (p->state != GONE && p->gang != gang)
                        end_pod(m, p);
                fit += p->state != GONE && !p->huge;
                cards += p->state != GONE && !p->huge && p->mem > 0;
        }
        g = gang_table_find_gang(&m->gs.table, STR("default"), name);
        if (!g || fit < m->min[gang] || cards > NODES * CARDS)
                return false;
        waited = g->state != GANG_SATISFIED;
        for (unsigned i = 0; i < STEPS; i++)
                step(m);
        ASSERT_INT(g->state, GANG_SATISFIED);
        return waited;
}

static unsigned run(unsigned seed, unsigned *waited) {
        Model m = {.random = {seed}, .now = 1000 * USEC_PER_SEC};
        unsigned satisfied;

        ASSERT_OK(ledger_new(&m.ledger));
        for (unsigned i = 0; i < NODES; i++) {
                char name[4] = {'n', (char) ('0' + i), '\0', '\0'};

                kit_node(m.ledger, name, CARDS, UNITS);
        }
        for (unsigned i = 0; i < GANGS; i++)
                m.min[i] = 2 + below(&m, 4);
        init_gangs(&m);
        for (unsigned i = 0; i < STEPS; i++)
                step(&m);
        m.calm = true;
        for (unsigned i = 0; i < STEPS; i++)
                step(&m);
        check_at_rest(&m);
        *waited += check_alone(&m, seed % GANGS);
        satisfied = m.satisfied + (unsigned) m.gs.attempts_satisfied;
        for (size_t i = 0; i < PODS; i++)
                if (m.pods[i].state != GONE)
                        end_pod(&m, &m.pods[i]);
        ASSERT_TRUE(!m.gs.table.gangs && !m.gs.assembling);
        for (size_t i = 0; i < ledger_n_nodes(m.ledger); i++)
                for (size_t k = 0; k < CARDS; k++)
                        ASSERT_INT(ledger_node_cards(ledger_node_at(m.ledger, i))[k].used, 0);
        gangs_done(&m.gs);
        ledger_free(m.ledger);
        return satisfied;
}

static void random_gangs_are_whole_or_none(void) {
        unsigned satisfied = 0, waited = 0, seeds = few_or_all(15, 60);

        for (unsigned seed = 1; seed <= seeds; seed++)
                satisfied += run(seed, &waited);
        ASSERT_TRUE(satisfied > 5 * seeds); /* the model gets there at all */
        ASSERT_TRUE(waited > 0);
}

int main(void) {
        log_set_level(LOG_LEVEL_WARNING);
        return TEST_MAIN(TEST(random_gangs_are_whole_or_none));
}
