/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/controllers/evictor.h"

#include <errno.h>
#include <stdarg.h>

#include "base/log.h"
#include "kube/status.h"
#include "scheduler/controllers/evictor_try.h"
#include "scheduler/gang/gangs.h"

#define STEP_EVERY   (250 * USEC_PER_MSEC)
#define STEP_NEXT    (2 * USEC_PER_MSEC) /* between two pods, so that requests are answered meanwhile */
#define BACKOFF_BASE (10 * USEC_PER_SEC)
#define BACKOFF_CAP  (300 * USEC_PER_SEC)
#define PLAN_AGAIN   (1 * USEC_PER_SEC) /* until the next look at a pod that waits for a gang */

/* The most steps of the search for victims, for all pods that are due together. */
enum { SEARCH_STEPS = 1 << 18 };

typedef enum EvictorState { EVICTOR_IDLE, EVICTOR_EVICTING, EVICTOR_DRAINING, EVICTOR_KEEPING } EvictorState;

static const char *const state_names[] = {[EVICTOR_IDLE] = "idle",
                                          [EVICTOR_EVICTING] = "evicting",
                                          [EVICTOR_DRAINING] = "draining",
                                          [EVICTOR_KEEPING] = "keeping"};

struct Evictor {
        SchedulerContext *context;
        EvictorState state;
        EvictorTry try;
        KubeCall *call;
        sd_event_source *timer;
        usec_t now;     /* time of the last evictor_step() */
        usec_t ended;   /* when the last try ended */
        usec_t resume;  /* a pod waits for a gang: until this time no other pod gets a try */
        uint64_t steps; /* left of SEARCH_STEPS for the pods that are due */
        bool more;      /* a due pod has not been considered yet */
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

/* ---- telling ---- */

_printf_(5, 6) static void tell_pod(Evictor *e, const EvictorPod *pod, const char *type, const char *reason,
                                    const char *format, ...) {
        char note[1024];
        va_list args;

        va_start(args, format);
        if (vsnprintf(note, sizeof note, format, args) < 0)
                note[0] = '\0';
        va_end(args);
        if (e->context->recorder)
                kube_event(e->context->recorder, &(KubeEvent){.kind = "Pod",
                                                              .namespace_ = pod->namespace_,
                                                              .name = pod->name,
                                                              .uid = pod->uid,
                                                              .type = type,
                                                              .reason = reason,
                                                              .note = note});
}

static EvictorPod preemptor_of(const Evictor *e) {
        return (EvictorPod){e->try.namespace_, e->try.name, e->try.uid};
}

/* ---- the end of a try ---- */

static void try_end(Evictor *e, const char *why) {
        e->call = kube_call_free(e->call);
        hold_end(&e->context->view->hold);
        set_state(e, EVICTOR_IDLE, why);
        e->ended = e->now;
        evictor_try_done(&e->try);
}

/* The pod waits longer for its next try. The delay is at least a second, because the jitter of a
 * back-off may be near 0. */
static void put_off(Evictor *e, PendingPod *w, usec_t retry_after) {
        w->due = e->now + USEC_PER_SEC + kube_backoff(w->attempt++, BACKOFF_BASE, BACKOFF_CAP, retry_after);
}

static void try_put_off(Evictor *e, const char *why, usec_t retry_after) {
        PendingPod *w = pending_find(&e->context->pending, e->try.uid);

        if (w && w->due > 0)
                put_off(e, w, retry_after);
        try_end(e, why);
}

static void try_done(Evictor *e, const char *why) {
        PendingPod *w = pending_find(&e->context->pending, e->try.uid);

        if (w)
                pending_forget(&e->context->pending, w);
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

/* Ends the try when the pod is gone, bound or being bound, or the hold is lost. Returns whether it
 * did. */
static bool is_pointless(Evictor *e) {
        switch (wait_of(e->context->view, e->try.uid)) {
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
        if (!e->context->view->hold.grant)
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

static void on_accepted(Evictor *e, const EvictorPod *victim) {
        tell_pod(e, victim, "Normal", "Preempted",
                 "Preempted by pod " STR_FMT "/" STR_FMT " of priority %lld, which gets %s of node " STR_FMT,
                 STR_ARG(e->try.namespace_), STR_ARG(e->try.name), (long long) e->try.priority, e->try.cards,
                 STR_ARG(e->try.node));
        log_info("evicted pod=" STR_FMT "/" STR_FMT " node=" STR_FMT " for=" STR_FMT "/" STR_FMT,
                 STR_ARG(victim->namespace_), STR_ARG(victim->name), STR_ARG(e->try.node),
                 STR_ARG(e->try.namespace_), STR_ARG(e->try.name));
}

static void on_refused(Evictor *e, const EvictorPod *victim, const KubeReply *reply) {
        EvictorPod pod = preemptor_of(e);
        bool by_budget = reply->outcome == KUBE_DONE && reply->status == 429;

        e->context->metrics->evictions[by_budget ? METRICS_EVICTION_REFUSED : METRICS_EVICTION_FAILED]++;
        tell_pod(e, &pod, "Warning", "PreemptionRefused",
                 "%s of node " STR_FMT " cannot be freed: eviction of pod " STR_FMT "/" STR_FMT ": %s",
                 e->try.cards, STR_ARG(e->try.node), STR_ARG(victim->namespace_), STR_ARG(victim->name),
                 reply->fault.text[0] ? reply->fault.text : "more than one PodDisruptionBudget selects it");
        try_put_off(e, by_budget ? "a PodDisruptionBudget refuses" : "an eviction failed",
                    reply->retry_after);
}

/* The API server answers 409 when the name belongs to a pod of another UID. It also does when the
 * pod is still there and its budget was changed at the same time. The watch decides which. */
static bool is_gone(const Evictor *e, const EvictorPod *victim, const KubeReply *reply) {
        const ViewPod *pod = view_pod_find(e->context->view, victim->uid);

        if (reply->outcome != KUBE_DONE)
                return false;
        return reply->status == 404 || (reply->status == 409 && !(pod && pod->grant));
}

static void on_evicted(void *userdata, const KubeReply *reply) {
        Evictor *e = userdata;
        const EvictorPod *victim = &e->try.victims[e->try.next];
        bool gone = is_gone(e, victim, reply);

        e->call = NULL;
        if (!is_success(reply) && !gone) {
                on_refused(e, victim, reply);
                return;
        }
        if (!gone)
                on_accepted(e, victim);
        e->context->metrics->evictions[METRICS_EVICTION_DONE]++;
        e->try.next++;
        evict_next(e);
}

static const char *why_not(const Evictor *e) {
        return scheduler_context_may_not_act(e->context);
}

static void evict_next(Evictor *e) {
        const EvictorPod *victim = &e->try.victims[e->try.next];
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
        if (kube_evict(e->context->client, victim->namespace_, victim->name, victim->uid, on_evicted, e,
                       &e->call) < 0)
                try_put_off(e, "out of memory", 0);
}

/* ---- the beginning of a try ---- */

static int hold_cards(Evictor *e, const Request *request, const Placement *placement) {
        View *v = e->context->view;
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
        EvictorPod pod = preemptor_of(e);

        for (size_t i = 0; i < e->try.n; i++)
                buf_appendf(&victims, "%s" STR_FMT "/" STR_FMT, i > 0 ? ", " : "",
                            STR_ARG(e->try.victims[i].namespace_), STR_ARG(e->try.victims[i].name));
        if (buf_result(&victims) == 0)
                tell_pod(e, &pod, "Normal", "Preempting", "%s of node " STR_FMT " is freed by evicting %s",
                         e->try.cards, STR_ARG(e->try.node), victims.data);
}

static void try_begin(Evictor *e, PendingPod *w, const Request *request, const EvictorPlan *plan) {
        if (evictor_try_copy(&e->try, &e->context->view->budgets, w, plan) < 0 ||
            hold_cards(e, request, &plan->choice.placement) < 0) {
                log_error("out of memory: no card is freed for pod " STR_FMT "/" STR_FMT " now",
                          STR_ARG(w->namespace_), STR_ARG(w->name));
                evictor_try_done(&e->try);
                put_off(e, w, 0);
                return;
        }
        set_state(e, EVICTOR_EVICTING, e->try.cards);
        report_plan(e);
        evict_next(e);
}

/* ---- which pod ---- */

static bool is_nominated(const View *v, Str uid) {
        const Profile *p;

        HASH_FIND(hh, v->profiles.nominated, uid.data, uid.len, p);
        return p != NULL;
}

/* The request of a pod that still waits, is not nominated to a node and may preempt; else NULL.
 * Takes over the priority from the watch. */
static const Request *request_of(const View *v, PendingPod *w) {
        const ViewPod *pod = view_pod_find(v, w->uid);

        if (wait_of(v, w->uid) != WAIT_YES || is_nominated(v, w->uid) || pod->priority == INT64_MIN ||
            pod->never_preempts)
                return NULL;
        w->priority = pod->priority;
        return pod->request;
}

/* Whether to put the decision off until the gang's planned cards are settled. */
static bool waits_for_gang(Evictor *e, PendingPod *w, const EvictorPlan *plan) {
        if (!unsettled_is_cheaper(&plan->later, plan->node ? &plan->choice.cost : NULL) ||
            !unsettled_may_wait(w, e->now))
                return false;
        e->resume = e->now + PLAN_AGAIN;
        return true;
}

static void look_at(Evictor *e, PendingPod *w) {
        const Request *request = request_of(e->context->view, w);
        _cleanup_arena_ Arena arena = ARENA_NULL;
        EvictorPlan plan = {0};
        bool pointless = !request ||
                         evictor_plan_make(e->context->view, w, request, &e->steps, &arena, &plan) < 0 ||
                         plan.fits;

        if (!pointless && waits_for_gang(e, w, &plan))
                return;
        if (pointless || (!plan.node && !plan.blocked)) {
                /* until the next filter call notes its nodes again */
                buf_clear(&w->nodes);
                return;
        }
        if (plan.node) {
                try_begin(e, w, request, &plan);
                return;
        }
        tell_pod(e, &(EvictorPod){w->namespace_, w->name, w->uid}, "Warning", "PreemptionRefused",
                 "no card can be freed: every set of pods that would do violates a PodDisruptionBudget");
        put_off(e, w, 0);
}

/* Considers one pod per step, because requests to the extender wait for this thread. */
static void step_idle(Evictor *e) {
        PendingPod *w;

        if (!e->more)
                e->steps = SEARCH_STEPS;
        w = e->now < e->resume ? NULL : pending_next(&e->context->pending, e->now, e->ended);
        if (w)
                look_at(e, w);
        e->more = e->state == EVICTOR_IDLE && e->now >= e->resume &&
                  pending_next(&e->context->pending, e->now, e->ended);
}

/* ---- draining and keeping ---- */

/* The hold ended when the pod was to be bound, but the Binding failed. Holds cards of the node
 * again, if they are still free. */
static void hold_again(Evictor *e, const Request *request) {
        DirectoryNode *node = directory_find(e->context->view->directory, e->try.node);
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Placement placement;
        Refusal refusal;

        if (!node || placement_choose_cards(node->ledger_node, request, &arena, &placement, &refusal) != 0 ||
            hold_cards(e, request, &placement) < 0)
                try_put_off(e, "the hold is lost", 0);
}

/* Changes between draining and keeping. The agent may report slices of a victim as held after the
 * pod's object is gone. kube-scheduler may have asked about the pod before the watch showed the
 * end, so the waker hears of the room. */
static void step_drain(Evictor *e) {
        bool drained = evictor_try_is_drained(&e->try, e->context->view);
        const Hold *hold = &e->context->view->hold;

        if (e->state == EVICTOR_DRAINING && drained) {
                e->try.until = e->now + EVICTOR_KEEP;
                set_state(e, EVICTOR_KEEPING, "the victims are gone");
                if (hold->on_room)
                        hold->on_room(hold->userdata, e->try.node);
        } else if (e->state == EVICTOR_KEEPING && !drained) {
                e->try.until = e->try.drained;
                set_state(e, EVICTOR_DRAINING, "processes of a victim still hold its slices");
        }
}

static void step_waiting(Evictor *e) {
        View *v = e->context->view;
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
                pending_clear_tries(&e->context->pending);
                if (e->state != EVICTOR_IDLE)
                        try_end(e, why);
        }
        if (e->state == EVICTOR_DRAINING || e->state == EVICTOR_KEEPING)
                step_waiting(e);
        if (e->state == EVICTOR_IDLE)
                step_idle(e);
        return e->state != EVICTOR_IDLE || pending_any(&e->context->pending);
}

/* ---- the timer ---- */

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata);

static void arm_timer(Evictor *e) {
        if (!e->timer)
                (void) sd_event_add_time_relative(kube_client_event(e->context->client), &e->timer,
                                                  CLOCK_MONOTONIC, e->more ? STEP_NEXT : STEP_EVERY,
                                                  e->more ? STEP_NEXT : STEP_EVERY / 8, on_timer, e);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Evictor *e = userdata;

        e->timer = sd_event_source_disable_unref(e->timer);
        if (evictor_step(e, clock_monotonic_usec()))
                arm_timer(e);
        return 0;
}

static void on_news(void *userdata) {
        arm_timer(userdata);
}

int evictor_new(SchedulerContext *context, Evictor **ret) {
        Evictor *e = calloc(1, sizeof *e);

        if (!e)
                return -ENOMEM;
        e->context = context;
        context->pending.on_news = on_news;
        context->pending.userdata = e;
        *ret = e;
        return 0;
}

Evictor *evictor_free(Evictor *e) {
        if (!e)
                return NULL;
        if (e->state != EVICTOR_IDLE)
                try_end(e, "the scheduler ends");
        pending_clear_tries(&e->context->pending);
        e->context->pending.on_news = NULL;
        sd_event_source_disable_unref(e->timer);
        free(e);
        return NULL;
}
