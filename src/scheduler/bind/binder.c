/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/bind/binder.h"

#include <errno.h>

#include "scheduler/bind/bind_cards.h"
#include "scheduler/bind/bind_post.h"
#include "scheduler/bind/binds-internal.h"
#include "share/pod_grant_write.h"

enum { BINDS_OPEN_MAX = 4096 };

#define CONFIRM_DEFAULT (1 * USEC_PER_SEC)

int binder_new(SchedulerContext *context, usec_t confirm, Binder **ret) {
        Binder *b = calloc(1, sizeof *b);

        if (!b)
                return -ENOMEM;
        b->context = context;
        context->binder = b;
        b->queue_end = &b->queue;
        b->confirm = confirm > 0 ? confirm : CONFIRM_DEFAULT;
        *ret = b;
        return 0;
}

size_t binder_n_open(const Binder *b) {
        return b->n_open;
}

void binder_when_idle(Binder *b, void (*idle)(void *userdata), void *userdata) {
        b->idle = idle;
        b->idle_userdata = userdata;
}

Binder *binder_free(Binder *b) {
        if (!b)
                return NULL;
        b->idle = NULL;
        while (b->open)
                bind_free(b->open);
        b->context->binder = NULL;
        free(b);
        return NULL;
}

/* ---- pods that the view does not know ---- */

/* The node that the pod is bound to; empty: none. The watch may have brought a grant after the API
 * server wrote this answer. */
static Str node_of(const Bind *bind, const Pod *pod) {
        const Grant *grant = bind->pod->grant;

        return str_is_empty(pod->node_name) && grant ? ledger_node_name(grant_node(grant)) : pod->node_name;
}

static void bind_fetched(Bind *bind, const Pod *pod, Str object) {
        View *v = bind->binder->context->view;
        Refusal refusal = {0};
        Request request = {0};
        Str node;
        int r;

        r = view_pod_set(v, pod, REFLECTOR_MODIFIED);
        if (r == 0)
                r = view_pod_set_text(v, pod, object, REFLECTOR_MODIFIED);
        if (r == 0)
                r = request_from_pod(pod, &v->arena, &request, &refusal);
        node = node_of(bind, pod);
        bind->pod->carried = pod_system_keys(pod);
        if (r < 0)
                bind_fail(bind, METRICS_BIND_REJECTED, "out of memory");
        else if (!str_is_empty(node) && str_eq(node, bind->node))
                bind_succeed(bind, METRICS_BIND_ALREADY);
        else if (!str_is_empty(node))
                bind_failf(bind, METRICS_BIND_ELSEWHERE,
                           POD_FMT " has been bound to node " STR_FMT " already", POD_ARG(bind),
                           STR_ARG(node));
        else if (pod->meta.terminating)
                bind_failf(bind, METRICS_BIND_REFUSED, POD_FMT " is being deleted", POD_ARG(bind));
        else if (r == REQUEST_E_REFUSED)
                bind_cards_refuse(bind, &refusal, "");
        else if (r == REQUEST_E_NONE)
                bind_cards_none(bind);
        else
                bind_cards_choose(bind, &request);
}

static void on_fetched(void *userdata, const KubeReply *reply) {
        Bind *bind = userdata;
        Arena *arena = &bind->binder->context->view->arena;
        Fault fault = FAULT_NULL;
        Pod pod;
        int r;

        bind->call = NULL;
        if (bind->pod->gone || (reply->outcome == KUBE_DONE && reply->status == 404)) {
                bind_failf(bind, METRICS_BIND_REFUSED, POD_FMT " is gone", POD_ARG(bind));
                return;
        }
        if (!bind_is_success(reply)) {
                bind_fail(bind, METRICS_BIND_REJECTED, reply->fault.text);
                return;
        }
        arena_reset(arena);
        r = pod_decode(reply->body, arena, &pod, &fault);
        if (r != 0)
                bind_fail(bind, METRICS_BIND_REJECTED, r > 0 ? fault.text : "out of memory");
        else if (!str_eq(pod.meta.uid, bind->uid))
                bind_failf(bind, METRICS_BIND_REFUSED,
                           POD_FMT " with UID " STR_FMT " is gone, another one has its name", POD_ARG(bind),
                           STR_ARG(bind->uid));
        else
                bind_fetched(bind, &pod, reply->body);
}

static void bind_fetch(Bind *bind) {
        bind_set_state(bind, BIND_FETCHING);
        if (kube_get_pod(bind->binder->context->client, bind->namespace_, bind->name, on_fetched, bind,
                         &bind->call) < 0)
                bind_fail(bind, METRICS_BIND_REJECTED, "out of memory");
}

static void bind_go_on(Bind *bind) {
        if (bind->pod->request)
                bind_cards_choose(bind, bind->pod->request);
        else if (bind->pod->asks_nothing)
                bind_cards_none(bind);
        else
                bind_fetch(bind);
}

/* ---- members of gangs ---- */

static Bind *find_held(Binder *b, Str uid) {
        const ViewPod *pod = view_pod_find(b->context->view, uid);

        return pod && pod->bind && pod->bind->state == BIND_HELD ? pod->bind : NULL;
}

void binder_release(Binder *b, Str uid) {
        Bind *bind = find_held(b, uid);

        if (bind)
                bind_go_on(bind);
        else
                b->context->peers.ended(b->context->peers.userdata, uid, false);
}

void binder_give_back(Binder *b, Str uid, const char *why) {
        Bind *bind = find_held(b, uid);

        if (bind)
                bind_answer_only(bind, why);
        else
                b->context->peers.ended(b->context->peers.userdata, uid, false);
}

/* ---- the request ---- */

/* A pod with a grant is bound: kube-scheduler repeats an earlier request, or comes too late. */
static void answer_bound(Binder *b, const BindingArgs *a, const ViewPod *pod, BinderDone done,
                         void *userdata) {
        Str node = ledger_node_name(grant_node(pod->grant));
        Fault fault = FAULT_NULL;

        if (str_eq(node, a->node)) {
                b->context->metrics->binds[METRICS_BIND_ALREADY]++;
                done(userdata, "");
                return;
        }
        b->context->metrics->binds[METRICS_BIND_ELSEWHERE]++;
        (void) fault_set(&fault, 0, POD_FMT " has been bound to node " STR_FMT " already", POD_ARG(a),
                         STR_ARG(node));
        done(userdata, fault.text);
}

/* Whether the pod's gang lets it go on to its Binding. If not, the bind has been answered, or is
 * held until the gang releases it. */
static bool ask_peers(Bind *bind) {
        const PeerHooks *peers = &bind->binder->context->peers;
        usec_t now = clock_monotonic_usec();
        char why[FEATURE_HOOKS_WHY_MAX];

        switch (peers->userdata ? peers->ask(peers->userdata, bind->uid, bind->node, now, why) : PEER_GO) {
        case PEER_HOLD:
                if (!bind_post_count(bind))
                        return false;
                bind_set_state(bind, BIND_HELD);
                peers->held(peers->userdata, bind->uid, now);
                return false;
        case PEER_REFUSE:
                bind_answer_only(bind, why);
                return false;
        default:
                return true;
        }
}

static bool answer_at_once(Binder *b, const BindingArgs *a, const ViewPod *pod, BinderDone done,
                           void *userdata) {
        Fault fault = FAULT_NULL;

        if (pod && pod->bind) {
                const Bind *other = pod->bind;

                b->context->metrics->binds[METRICS_BIND_REFUSED]++;
                (void) fault_set(&fault, 0,
                                 POD_FMT " is being bound to node " STR_FMT ", whose outcome is still open",
                                 POD_ARG(a), STR_ARG(other->node));
                done(userdata, fault.text);
                return true;
        }
        if (pod && pod->grant) {
                answer_bound(b, a, pod, done, userdata);
                return true;
        }
        if (b->n_open >= BINDS_OPEN_MAX) {
                b->context->metrics->binds[METRICS_BIND_REFUSED]++;
                done(userdata, "too many binds are under way");
                return true;
        }
        return false;
}

void binder_bind(Binder *b, const BindingArgs *args, BinderDone done, void *userdata, Bind **ret) {
        ViewPod *pod = view_pod_find(b->context->view, args->uid);
        Bind *bind;

        *ret = NULL;
        if (answer_at_once(b, args, pod, done, userdata))
                return;
        pod = view_pod_ensure(b->context->view, args->uid);
        bind = pod ? bind_new(b, args, pod) : NULL;
        if (!bind) {
                if (pod)
                        view_pod_drop_if_unused(b->context->view, pod);
                done(userdata, "out of memory");
                return;
        }
        bind->done = done;
        bind->userdata = userdata;
        if (ask_peers(bind))
                bind_go_on(bind);
        /* The bind may have ended, and be freed, by now. */
        pod = view_pod_find(b->context->view, args->uid);
        *ret = pod ? pod->bind : NULL;
}

/* kube-scheduler that does not wait any more has forgotten the pod, and gives its cpu to others. So
 * a Binding that is not sent yet is given up. */
void binder_abandon(Bind *bind) {
        bind->done = NULL;
        if (bind->state == BIND_QUEUED || bind->state == BIND_FETCHING)
                bind_fail(bind, METRICS_BIND_REFUSED, "kube-scheduler did not wait for the Binding's turn");
        else if (bind->state == BIND_HELD)
                bind_answer_only(bind, "kube-scheduler did not wait for the other members of the gang");
}
