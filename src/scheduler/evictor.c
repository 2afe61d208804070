/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/evictor.h"

#include <errno.h>
#include <stdarg.h>

#include "base/log.h"
#include "kube/status.h"
#include "scheduler/gang/gangs.h"
#include "scheduler/unsettled.h"

#define STEP_EVERY   (250 * USEC_PER_MSEC)
#define STEP_NEXT    (2 * USEC_PER_MSEC) /* between two waiters: requests are answered then */
#define BACKOFF_BASE (10 * USEC_PER_SEC)
#define BACKOFF_CAP  (300 * USEC_PER_SEC)
#define PLAN_AGAIN   (1 * USEC_PER_SEC) /* the next look at a pod that waits for a gang */

/* Of the search for victims, over all nodes of all waiters that are due together. */
enum { SEARCH_STEPS = 1 << 18 };

typedef enum EvictorState { EVICTOR_IDLE, EVICTOR_EVICTING, EVICTOR_DRAINING, EVICTOR_KEEPING } EvictorState;

static const char *const state_names[] = {[EVICTOR_IDLE] = "idle",
                                          [EVICTOR_EVICTING] = "evicting",
                                          [EVICTOR_DRAINING] = "draining",
                                          [EVICTOR_KEEPING] = "keeping"};

typedef struct Evicted {
        Str namespace_, name, uid;
} Evicted;

/* Copies of what one try needs, in its arena. */
typedef struct Try {
        Arena arena;
        Str namespace_, name, uid, node;
        int64_t priority;
        Evicted *victims;
        size_t n, next;
        usec_t until;   /* in draining and keeping */
        usec_t drained; /* draining ends here at the latest */
        char cards[64]; /* for people: "gpu1", "gpu0, gpu2" */
} Try;

struct Evictor {
        EvictorOptions options;
        EvictorState state;
        Waiters waiters;
        Try try;
        KubeCall *call;
        sd_event_source *timer;
        usec_t now;     /* of the last look */
        usec_t ended;   /* the last try */
        usec_t resume;  /* a pod waits for a gang: until then no other one gets a try */
        uint64_t steps; /* left of SEARCH_STEPS */
        bool more;      /* waiters are due that have not been looked at */
};

static void set_state(Evictor *e, EvictorState state, const char *why) {
        log_info("evictor pod=" STR_FMT "/" STR_FMT " node=" STR_FMT " %s -> %s: %s",
                 STR_ARG(e->try.namespace_), STR_ARG(e->try.name), STR_ARG(e->try.node),
                 state_names[e->state], state_names[state], why);
        e->state = state;
}

const char *evictor_state(const Evictor *e) {
        return state_names[e->state];
}

Waiters *evictor_waiters(Evictor *e) {
        return &e->waiters;
}

/* ---- telling ---- */

_printf_(5, 6) static void tell(Evictor *e, const Evicted *pod, const char *type, const char *reason,
                                const char *format, ...) {
        char note[1024];
        va_list args;

        va_start(args, format);
        if (vsnprintf(note, sizeof note, format, args) < 0)
                note[0] = '\0';
        va_end(args);
        if (e->options.recorder)
                kube_event(e->options.recorder, &(KubeEvent){.kind = "Pod",
                                                             .namespace_ = pod->namespace_,
                                                             .name = pod->name,
                                                             .uid = pod->uid,
                                                             .type = type,
                                                             .reason = reason,
                                                             .note = note});
}

static Evicted preemptor(const Evictor *e) {
        return (Evicted){e->try.namespace_, e->try.name, e->try.uid};
}

/* ---- the end of a try ---- */

static void try_end(Evictor *e, const char *why) {
        e->call = kube_call_free(e->call);
        hold_end(&e->options.view->hold);
        set_state(e, EVICTOR_IDLE, why);
        e->ended = e->now;
        arena_done(&e->try.arena);
        e->try = (Try){0};
}

/* The pod waits longer for its next try. The delay is at least a second, because the jitter of a
 * back-off may be near 0. */
static void put_off(Evictor *e, Waiter *w, usec_t retry_after) {
        w->due = e->now + USEC_PER_SEC + kube_backoff(w->attempt++, BACKOFF_BASE, BACKOFF_CAP, retry_after);
}

static void try_put_off(Evictor *e, const char *why, usec_t retry_after) {
        Waiter *w = waiters_find(&e->waiters, e->try.uid);

        if (w)
                put_off(e, w, retry_after);
        try_end(e, why);
}

static void try_done(Evictor *e, const char *why) {
        waiters_drop(&e->waiters, e->try.uid);
        try_end(e, why);
}

/* ---- does the pod wait ---- */

typedef enum Wait { WAIT_YES, WAIT_BINDING, WAIT_BOUND, WAIT_GONE } Wait;

static Wait wait_of(const View *v, Str uid) {
        const ViewPod *pod = view_pod_find(v, uid);

        if (pod && pod->bind)
                return WAIT_BINDING;
        if (pod && pod->grant)
                return WAIT_BOUND;
        return pod && pod->request ? WAIT_YES : WAIT_GONE;
}

/* Ends the try when no more pods must go for it. */
static bool is_pointless(Evictor *e) {
        switch (wait_of(e->options.view, e->try.uid)) {
        case WAIT_GONE:
                try_done(e, "the pod is gone");
                return true;
        case WAIT_BOUND:
                try_done(e, "the pod is bound");
                return true;
        case WAIT_BINDING:
                try_put_off(e, "the pod is being bound", 0);
                return true;
        default:
                break;
        }
        if (!e->options.view->hold.grant)
                try_put_off(e, "the hold is lost", 0);
        return e->state == EVICTOR_IDLE;
}

/* ---- evicting ---- */

static void evict_next(Evictor *e);

static bool is_success(const KubeReply *reply) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        KubeStatus status;

        if (reply->outcome != KUBE_DONE || reply->status < 200 || reply->status >= 300)
                return false;
        return !kube_status_decode(reply->body, &arena, &status) || status.code < 400;
}

static void on_accepted(Evictor *e, const Evicted *victim) {
        tell(e, victim, "Normal", "Preempted",
             "Preempted by pod " STR_FMT "/" STR_FMT " of priority %lld, which gets %s of node " STR_FMT,
             STR_ARG(e->try.namespace_), STR_ARG(e->try.name), (long long) e->try.priority, e->try.cards,
             STR_ARG(e->try.node));
        log_info("evicted pod=" STR_FMT "/" STR_FMT " node=" STR_FMT " for=" STR_FMT "/" STR_FMT,
                 STR_ARG(victim->namespace_), STR_ARG(victim->name), STR_ARG(e->try.node),
                 STR_ARG(e->try.namespace_), STR_ARG(e->try.name));
}

static void on_refused(Evictor *e, const Evicted *victim, const KubeReply *reply) {
        Evicted pod = preemptor(e);
        bool by_budget = reply->outcome == KUBE_DONE && reply->status == 429;

        e->options.metrics->evictions[by_budget ? METRICS_EVICTION_REFUSED : METRICS_EVICTION_FAILED]++;
        tell(e, &pod, "Warning", "PreemptionRefused",
             "%s of node " STR_FMT " cannot be freed: eviction of pod " STR_FMT "/" STR_FMT ": %s",
             e->try.cards, STR_ARG(e->try.node), STR_ARG(victim->namespace_), STR_ARG(victim->name),
             reply->fault.text[0] ? reply->fault.text : "more than one PodDisruptionBudget selects it");
        try_put_off(e, by_budget ? "a PodDisruptionBudget refuses" : "an eviction failed",
                    reply->retry_after);
}

/* The API server answers 409 when the name belongs to a pod of another UID. It also does when the
 * pod is still there and its budget was changed at the same time. The watch decides which. */
static bool is_gone(const Evictor *e, const Evicted *victim, const KubeReply *reply) {
        const ViewPod *pod = view_pod_find(e->options.view, victim->uid);

        if (reply->outcome != KUBE_DONE)
                return false;
        return reply->status == 404 || (reply->status == 409 && !(pod && pod->grant));
}

static void on_evicted(void *userdata, const KubeReply *reply) {
        Evictor *e = userdata;
        const Evicted *victim = &e->try.victims[e->try.next];
        bool gone = is_gone(e, victim, reply);

        e->call = NULL;
        if (!is_success(reply) && !gone) {
                on_refused(e, victim, reply);
                return;
        }
        if (!gone)
                on_accepted(e, victim);
        e->options.metrics->evictions[METRICS_EVICTION_DONE]++;
        e->try.next++;
        evict_next(e);
}

static const char *why_not(const Evictor *e) {
        return e->options.may_not_act ? e->options.may_not_act(e->options.userdata) : NULL;
}

static void evict_next(Evictor *e) {
        const Evicted *victim = &e->try.victims[e->try.next];
        const char *why = why_not(e);

        if (why) {
                try_end(e, why);
                return;
        }
        if (is_pointless(e))
                return;
        if (e->try.next == e->try.n) {
                e->try.until = e->try.drained = e->now + EVICTOR_DRAIN;
                set_state(e, EVICTOR_DRAINING, "all victims are told to go");
                return;
        }
        if (kube_evict(e->options.client, victim->namespace_, victim->name, victim->uid, on_evicted, e,
                       &e->call) < 0)
                try_put_off(e, "out of memory", 0);
}

/* ---- which pod, which node ---- */

typedef struct Plan {
        LedgerNode *node;
        VictimChoice choice;
        bool fits;        /* fits on some node already: kube-scheduler will find it */
        bool blocked;     /* would fit on some node, but for a PodDisruptionBudget */
        bool unsettled;   /* victims would do when the cards of gangs are settled (unsettled.h) */
        VictimCost later; /* the cheapest of those */
} Plan;

static bool is_nominated_to(const View *v, Str node) {
        for (const Profile *p = v->profiles.nominated; p; p = p->hh.next)
                if (str_eq(p->is.nominated_node, node))
                        return true;
        return false;
}

static bool is_nominated(const View *v, Str uid) {
        const Profile *p;

        HASH_FIND(hh, v->profiles.nominated, uid.data, uid.len, p);
        return p != NULL;
}

/* 0 or -ENOMEM. */
static int consider_unsettled(Evictor *e, const VictimQuestion *q, Arena *arena, Plan *plan) {
        VictimCost cost;
        int r = unsettled_cost(e->options.view, q, arena, &cost);

        if (r == 0 && cost.violations == 0 &&
            (!plan->unsettled || victim_cost_compare(&cost, &plan->later) < 0)) {
                plan->unsettled = true;
                plan->later = cost;
        }
        return r < 0 ? r : 0;
}

/* 0 or -ENOMEM. */
static int consider_node(Evictor *e, const Waiter *w, const Request *request, Str name, Arena *arena,
                         Plan *plan) {
        View *v = e->options.view;
        DirectoryNode *node = directory_find(v->directory, name);
        VictimQuestion q = {.profiles = &v->profiles,
                            .budgets = &v->budgets,
                            .request = request,
                            .priority = w->priority,
                            .by_eviction = true,
                            .steps = &e->steps};
        VictimChoice choice;
        Refusal refusal;
        int r;

        if (!node || is_nominated_to(v, name))
                return 0;
        q.node = node->ledger_node;
        if (placement_check(q.node, request, &refusal) == 0) {
                plan->fits = true;
                return 0;
        }
        if (!refusal_is_for_cards(refusal.code))
                return 0;
        r = consider_unsettled(e, &q, arena, plan);
        if (r < 0)
                return r;
        r = victims_choose(&q, arena, &choice);
        plan->blocked |= r == VICTIMS_E_BUDGETS;
        if (r != 0 || choice.n == 0) /* no set helps, or it fits when deleted pods are gone */
                return r < 0 ? r : 0;
        if (choice.cost.violations > 0)
                plan->blocked = true;
        else if (!plan->node || victim_cost_compare(&choice.cost, &plan->choice.cost) < 0) {
                plan->node = node->ledger_node;
                plan->choice = choice;
        }
        return 0;
}

static int make_plan(Evictor *e, const Waiter *w, const Request *request, Arena *arena, Plan *plan) {
        Str rest = buf_str(&w->nodes);
        int r = 0;

        while (r == 0 && !plan->fits && !str_is_empty(rest))
                r = consider_node(e, w, request, str_split(&rest, '\n'), arena, plan);
        return r;
}

/* ---- the beginning of a try ---- */

static int copy_victim(Try *t, const Profile *p) {
        Evicted *victim = &t->victims[t->n++];

        victim->namespace_ = arena_str(&t->arena, p->namespace_);
        victim->name = arena_str(&t->arena, p->name);
        victim->uid = arena_str(&t->arena, p->uid);
        return victim->namespace_.data && victim->name.data && victim->uid.data ? 0 : -ENOMEM;
}

/* Pods with a PodDisruptionBudget first: when their eviction is refused, no other pod has been
 * evicted in vain. */
static int copy_victims(Try *t, const Budgets *budgets, const VictimChoice *choice) {
        const Budget *found[BUDGETS_OF_A_POD_MAX];
        int r = 0;

        /* One more, that is never evicted. */
        t->victims = arena_new(&t->arena, Evicted, choice->n + 1);
        if (!t->victims)
                return -ENOMEM;
        for (int pass = 0; pass < 2; pass++)
                for (size_t i = 0; r == 0 && i < choice->n; i++)
                        if ((budgets_of(budgets, choice->pods[i], found) > 0) == (pass == 0))
                                r = copy_victim(t, choice->pods[i]);
        return r;
}

static void name_cards(Try *t, const Placement *placement) {
        size_t len = 0;

        for (size_t i = 0; i < placement->n_slices && len < sizeof t->cards; i++)
                if (i == 0 || placement->slices[i].card != placement->slices[i - 1].card)
                        len += (size_t) snprintf(t->cards + len, sizeof t->cards - len, "%sgpu%u",
                                                 len > 0 ? ", " : "", placement->slices[i].card);
}

static int copy_try(Try *t, const Budgets *budgets, const Waiter *w, const Plan *plan) {
        t->namespace_ = arena_str(&t->arena, str_from(w->namespace_));
        t->name = arena_str(&t->arena, str_from(w->name));
        t->uid = arena_str(&t->arena, str_from(w->uid));
        t->node = arena_str(&t->arena, ledger_node_name(plan->node));
        if (!t->namespace_.data || !t->name.data || !t->uid.data || !t->node.data)
                return -ENOMEM;
        t->priority = w->priority;
        name_cards(t, &plan->choice.placement);
        return copy_victims(t, budgets, &plan->choice);
}

static int hold_cards(Evictor *e, const Request *request, const Placement *placement) {
        View *v = e->options.view;
        HoldSpec spec = {.namespace_ = e->try.namespace_,
                         .name = e->try.name,
                         .uid = e->try.uid,
                         .node = e->try.node,
                         .priority = e->try.priority,
                         .has_core = request->core > 0,
                         .whole = request->whole,
                         .cpu = request->cpu};

        return hold_begin(&v->hold, v->ledger, &spec, placement);
}

static void report_plan(Evictor *e) {
        _cleanup_buf_ Buf victims = BUF_NULL;
        Evicted pod = preemptor(e);

        for (size_t i = 0; i < e->try.n; i++)
                buf_appendf(&victims, "%s" STR_FMT "/" STR_FMT, i > 0 ? ", " : "",
                            STR_ARG(e->try.victims[i].namespace_), STR_ARG(e->try.victims[i].name));
        if (buf_result(&victims) == 0)
                tell(e, &pod, "Normal", "Preempting", "%s of node " STR_FMT " is freed by evicting %s",
                     e->try.cards, STR_ARG(e->try.node), victims.data);
}

static void try_begin(Evictor *e, Waiter *w, const Request *request, const Plan *plan) {
        if (copy_try(&e->try, &e->options.view->budgets, w, plan) < 0 ||
            hold_cards(e, request, &plan->choice.placement) < 0) {
                log_error("out of memory: no card is freed for pod %s/%s now", w->namespace_, w->name);
                arena_done(&e->try.arena);
                e->try = (Try){0};
                put_off(e, w, 0);
                return;
        }
        set_state(e, EVICTOR_EVICTING, e->try.cards);
        report_plan(e);
        evict_next(e);
}

/* Whether the pod still waits, not for victims that kube-scheduler chose, and may preempt. Takes
 * over the priority from the watch. */
static const Request *request_of(const View *v, Waiter *w) {
        Str uid = str_from(w->uid);
        const ViewPod *pod = view_pod_find(v, uid);

        if (wait_of(v, uid) != WAIT_YES || is_nominated(v, uid) || pod->priority == INT64_MIN ||
            pod->never_preempts)
                return NULL;
        w->priority = pod->priority;
        return pod->request;
}

/* Whether the decision waits for the gang that is being placed. */
static bool waits_for_gang(Evictor *e, const Waiter *w, const Plan *plan) {
        if (!plan->unsettled || (plan->node && victim_cost_compare(&plan->later, &plan->choice.cost) >= 0) ||
            !unsettled_may_wait(view_pod_find(e->options.view, str_from(w->uid)), e->now))
                return false;
        e->resume = e->now + PLAN_AGAIN;
        return true;
}

static void look_at(Evictor *e, Waiter *w) {
        const Request *request = request_of(e->options.view, w);
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Plan plan = {0};
        bool pointless = !request || make_plan(e, w, request, &arena, &plan) < 0 || plan.fits;

        if (!pointless && waits_for_gang(e, w, &plan))
                return;
        if (pointless || (!plan.node && !plan.blocked)) {
                /* The next filter call notes it again. */
                waiters_rest(&e->waiters, str_from(w->uid));
                return;
        }
        if (plan.node) {
                try_begin(e, w, request, &plan);
                return;
        }
        tell(e,
             &(Evicted){.namespace_ = str_from(w->namespace_),
                        .name = str_from(w->name),
                        .uid = str_from(w->uid)},
             "Warning", "PreemptionRefused",
             "no card can be freed: every set of pods that would do violates a PodDisruptionBudget");
        put_off(e, w, 0);
}

/* The number of tries is kept as long as the pod may need another one. */
static void forget_served(Evictor *e) {
        for (size_t i = 0; i < WAITERS_MAX; i++) {
                Str uid = str_from(e->waiters.slots[i].uid);

                if (e->waiters.slots[i].due > 0 && wait_of(e->options.view, uid) >= WAIT_BOUND)
                        waiters_drop(&e->waiters, uid);
        }
}

/* One waiter in one step, because requests to the extender wait for this thread. */
static void step_idle(Evictor *e) {
        Waiter *w;

        forget_served(e);
        if (!e->more)
                e->steps = SEARCH_STEPS;
        w = e->now < e->resume ? NULL : waiters_next(&e->waiters, e->now, e->ended);
        if (w)
                look_at(e, w);
        e->more = e->state == EVICTOR_IDLE && e->now >= e->resume &&
                  waiters_next(&e->waiters, e->now, e->ended);
}

/* ---- draining and keeping ---- */

/* Whether processes of a pod that is gone still hold its slices: the agent names them on the
 * node. */
static bool is_held(const LedgerNode *node, Str uid) {
        for (const Grant *g = node ? ledger_node_held(node) : NULL; g; g = grant_next(g))
                if (str_eq(grant_uid(g), uid))
                        return true;
        return false;
}

static bool is_drained(const Evictor *e) {
        const LedgerNode *node = ledger_node_find(e->options.view->ledger, e->try.node);

        for (size_t i = 0; i < e->try.n; i++) {
                Str uid = e->try.victims[i].uid;
                const ViewPod *pod = view_pod_find(e->options.view, uid);

                if ((pod && pod->grant && grant_node(pod->grant) == node) || is_held(node, uid))
                        return false;
        }
        return true;
}

/* The hold ended with a Binding that failed. The cards are held again, if they are still free. */
static void hold_again(Evictor *e, const Request *request) {
        DirectoryNode *node = directory_find(e->options.view->directory, e->try.node);
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Placement placement;
        Refusal refusal;

        if (!node || placement_choose_cards(node->ledger_node, request, &arena, &placement, &refusal) != 0 ||
            hold_cards(e, request, &placement) < 0)
                try_put_off(e, "the hold is lost", 0);
}

/* The agent may report slices of a victim as held after its pod is gone. The state then goes back
 * to draining. */
static void step_drain(Evictor *e) {
        bool drained = is_drained(e);

        if (e->state == EVICTOR_DRAINING && drained) {
                e->try.until = e->now + EVICTOR_KEEP;
                set_state(e, EVICTOR_KEEPING, "the victims are gone");
        } else if (e->state == EVICTOR_KEEPING && !drained) {
                e->try.until = e->try.drained;
                set_state(e, EVICTOR_DRAINING, "processes of a victim still hold its slices");
        }
}

static void step_waiting(Evictor *e) {
        View *v = e->options.view;
        Wait wait = wait_of(v, e->try.uid);

        if (wait == WAIT_GONE)
                try_done(e, "the pod is gone");
        else if (wait == WAIT_BINDING)
                return; /* the end of the bind decides */
        else if (wait == WAIT_BOUND)
                try_done(e, "the pod is bound");
        else if (e->now >= e->try.until)
                try_put_off(e, "time is up", 0);
        else if (!v->hold.grant)
                hold_again(e, view_pod_find(v, e->try.uid)->request);
        else
                step_drain(e);
}

bool evictor_step(Evictor *e, usec_t now) {
        const char *why = why_not(e);

        e->now = now;
        if (why) {
                waiters_clear(&e->waiters);
                if (e->state != EVICTOR_IDLE)
                        try_end(e, why);
        }
        if (e->state == EVICTOR_DRAINING || e->state == EVICTOR_KEEPING)
                step_waiting(e);
        if (e->state == EVICTOR_IDLE)
                step_idle(e);
        return e->state != EVICTOR_IDLE || waiters_any(&e->waiters);
}

/* ---- the timer ---- */

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata);

static void arm(Evictor *e) {
        if (!e->timer)
                (void) sd_event_add_time_relative(kube_client_event(e->options.client), &e->timer,
                                                  CLOCK_MONOTONIC, e->more ? STEP_NEXT : STEP_EVERY,
                                                  e->more ? STEP_NEXT : STEP_EVERY / 8, on_timer, e);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Evictor *e = userdata;

        e->timer = sd_event_source_disable_unref(e->timer);
        if (evictor_step(e, clock_monotonic_usec()))
                arm(e);
        return 0;
}

static void on_news(void *userdata) {
        arm(userdata);
}

int evictor_new(const EvictorOptions *options, Evictor **ret) {
        Evictor *e = calloc(1, sizeof *e);

        if (!e)
                return -ENOMEM;
        e->options = *options;
        e->waiters.on_news = on_news;
        e->waiters.userdata = e;
        *ret = e;
        return 0;
}

Evictor *evictor_free(Evictor *e) {
        if (!e)
                return NULL;
        if (e->state != EVICTOR_IDLE)
                try_end(e, "the scheduler ends");
        waiters_clear(&e->waiters);
        sd_event_source_disable_unref(e->timer);
        free(e);
        return NULL;
}
