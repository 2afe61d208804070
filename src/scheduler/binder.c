/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/binder.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>

#include "base/log.h"
#include "share/placement.h"
#include "share/pod_grant_write.h"
#include "share/refusal_format.h"

enum { BINDS_OPEN_MAX = 4096 };

#define CONFIRM_DEFAULT (1 * USEC_PER_SEC)
#define BACKOFF_BASE    (100 * USEC_PER_MSEC)
#define BACKOFF_CAP     (10 * USEC_PER_SEC)

typedef enum BindState { BIND_NEW, BIND_FETCHING, BIND_POSTED, BIND_ASKING, BIND_WAITING } BindState;

struct Bind {
        Binder *binder;
        Bind *next, **link;
        BindState state;
        Str namespace_, name, uid, node; /* in `texts` */
        ViewPod *pod;                    /* stays while pod->bind is set */
        BinderDone done;                 /* NULL: answered */
        void *userdata;
        KubeCall *call;
        sd_event_source *timer;
        /* Assume time; tells the annotations of this bind from those of another. */
        uint64_t assume_time;
        unsigned attempt;  /* of GETs */
        bool conflict;     /* the Binding was answered with 409: this one was not carried out */
        bool unbound_once; /* seen not bound after a lost answer */
        Fault fault;       /* why the Binding failed */
        char texts[];
};

struct Binder {
        BinderOptions options;
        Bind *open;
        size_t n_open;
};

static const char *const state_names[] = {[BIND_NEW] = "new",
                                          [BIND_FETCHING] = "fetching",
                                          [BIND_POSTED] = "posted",
                                          [BIND_ASKING] = "asking",
                                          [BIND_WAITING] = "waiting"};

int binder_new(const BinderOptions *options, Binder **ret) {
        Binder *b = calloc(1, sizeof *b);

        if (!b)
                return -ENOMEM;
        b->options = *options;
        if (b->options.confirm == 0)
                b->options.confirm = CONFIRM_DEFAULT;
        *ret = b;
        return 0;
}

size_t binder_n_open(const Binder *b) {
        return b->n_open;
}

/* ---- a bind's beginning and end ---- */

static Str put_text(char **at, Str s) {
        Str copy = {*at, s.len};

        memcpy(*at, s.data, s.len);
        *at += s.len + 1;
        return copy;
}

static Bind *bind_new(Binder *b, const BindingArgs *a, ViewPod *pod) {
        Bind *bind = calloc(1, sizeof *bind + a->namespace_.len + a->name.len + a->uid.len + a->node.len + 4);
        char *at;

        if (!bind)
                return NULL;
        at = bind->texts;
        bind->namespace_ = put_text(&at, a->namespace_);
        bind->name = put_text(&at, a->name);
        bind->uid = put_text(&at, a->uid);
        bind->node = put_text(&at, a->node);
        bind->binder = b;
        bind->pod = pod;
        pod->bind = bind;
        bind->next = b->open;
        bind->link = &b->open;
        if (bind->next)
                bind->next->link = &bind->next;
        b->open = bind;
        b->n_open++;
        return bind;
}

static void bind_free(Bind *bind) {
        *bind->link = bind->next;
        if (bind->next)
                bind->next->link = bind->link;
        bind->binder->n_open--;
        bind->pod->bind = NULL;
        view_pod_drop_if_unused(bind->binder->options.view, bind->pod);
        kube_call_free(bind->call);
        sd_event_source_disable_unref(bind->timer);
        free(bind);
}

Binder *binder_free(Binder *b) {
        if (!b)
                return NULL;
        while (b->open)
                bind_free(b->open);
        free(b);
        return NULL;
}

static void bind_set_state(Bind *bind, BindState state) {
        log_debug("bind pod=" STR_FMT "/" STR_FMT " node=" STR_FMT " %s -> %s", STR_ARG(bind->namespace_),
                  STR_ARG(bind->name), STR_ARG(bind->node), state_names[bind->state], state_names[state]);
        bind->state = state;
}

static void bind_answer(Bind *bind, const char *error) {
        BinderDone done = bind->done;

        bind->done = NULL;
        if (done)
                done(bind->userdata, error);
}

void binder_abandon(Bind *bind) {
        bind->done = NULL;
}

static void bind_write_event(Bind *bind, const char *error) {
        KubeEvent event = {
                .kind = "Pod",
                .namespace_ = bind->namespace_,
                .name = bind->name,
                .uid = bind->uid,
                .type = "Warning",
                .reason = "FailedBinding",
                .note = error,
        };

        if (bind->binder->options.recorder)
                kube_event(bind->binder->options.recorder, &event);
}

static void bind_succeed(Bind *bind, MetricsBind outcome) {
        View *v = bind->binder->options.view;
        ViewPod *pod = bind->pod;

        if (pod->reserved) {
                /* A list that was begun before the bind may lack this pod, or have it unbound: it
                 * must not be dropped at the end of that list. */
                pod->generation = v->kinds[VIEW_PODS].generation;
                pod->reserved = false;
                free(pod->request);
                pod->request = NULL;
        }
        log_info("bound pod=" STR_FMT "/" STR_FMT " node=" STR_FMT, STR_ARG(bind->namespace_),
                 STR_ARG(bind->name), STR_ARG(bind->node));
        bind->binder->options.metrics->binds[outcome]++;
        bind_answer(bind, "");
        bind_free(bind);
}

/* Gives the reservation back, unless the pod's own object has replaced it already. */
static void bind_fail(Bind *bind, MetricsBind outcome, const char *error) {
        ViewPod *pod = bind->pod;

        if (pod->reserved) {
                pod->grant = grant_free(pod->grant);
                pod->reserved = false;
        }
        log_info("not bound pod=" STR_FMT "/" STR_FMT " node=" STR_FMT ": %s", STR_ARG(bind->namespace_),
                 STR_ARG(bind->name), STR_ARG(bind->node), error);
        bind->binder->options.metrics->binds[outcome]++;
        bind_write_event(bind, error);
        bind_answer(bind, error);
        bind_free(bind);
}

/* When no GET can be sent for want of memory, the reservation counts as the grant until the next
 * list. */
static void bind_leave(Bind *bind) {
        bind->pod->generation = bind->binder->options.view->kinds[VIEW_PODS].generation;
        bind->pod->reserved = false;
        bind_answer(bind, "out of memory; the next list of pods will tell whether the pod was bound");
        bind_free(bind);
}

_printf_(3, 4) static void bind_failf(Bind *bind, MetricsBind outcome, const char *format, ...) {
        char text[sizeof((Fault *) NULL)->text];
        va_list args;

        va_start(args, format);
        if (vsnprintf(text, sizeof text, format, args) < 0)
                text[0] = '\0';
        va_end(args);
        bind_fail(bind, outcome, text);
}

#define POD_FMT       "pod " STR_FMT "/" STR_FMT
#define POD_ARG(bind) STR_ARG((bind)->namespace_), STR_ARG((bind)->name)

/* ---- asking what became of it ---- */

static void bind_ask(Bind *bind);

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        bind_ask(userdata);
        return 0;
}

static void bind_wait(Bind *bind, usec_t delay) {
        sd_event *event = kube_client_event(bind->binder->options.client);

        bind->timer = sd_event_source_disable_unref(bind->timer);
        /* Accuracy of an eighth. The default of sd-event, for 0, is a quarter of a second. */
        if (sd_event_add_time_relative(event, &bind->timer, CLOCK_MONOTONIC, delay, delay / 8 + 1, on_timer,
                                       bind) < 0) {
                bind_leave(bind);
                return;
        }
        bind_set_state(bind, BIND_WAITING);
}

/* The pod is not bound. After a lost answer that may be too early, because the API server may still
 * be writing: a second GET a little later decides. */
static void bind_is_unbound(Bind *bind) {
        if (bind->conflict || bind->unbound_once) {
                bind_fail(bind, METRICS_BIND_REJECTED, bind->fault.text);
                return;
        }
        bind->unbound_once = true;
        bind_answer(bind, bind->fault.text);
        bind_wait(bind, bind->binder->options.confirm);
}

static bool is_ours(const Bind *bind, const Pod *pod) {
        uint64_t time;

        if (!str_eq(pod->node_name, bind->node))
                return false;
        return bind->assume_time == 0 /* a pod without a share */ ||
               (str_to_u64(pod->annotations.assume_time, &time) && time == bind->assume_time);
}

/* Hands the pod's object to the view, and ends the bind by what it says. False when the view has no
 * memory for it. */
static bool bind_is_bound(Bind *bind, const Pod *pod) {
        bool ours = is_ours(bind, pod);

        if (view_pod_set(bind->binder->options.view, pod, REFLECTOR_MODIFIED) < 0)
                return false;
        if (ours)
                bind_succeed(bind, METRICS_BIND_BOUND);
        else
                bind_failf(bind, METRICS_BIND_ELSEWHERE,
                           POD_FMT " has been bound to node " STR_FMT " by somebody else", POD_ARG(bind),
                           STR_ARG(pod->node_name));
        return true;
}

static void bind_ask_later(Bind *bind, const KubeReply *reply) {
        char error[sizeof((Fault *) NULL)->text + 256];

        (void) snprintf(error, sizeof error,
                        "it is not known yet whether " POD_FMT " was bound to node " STR_FMT ": %s",
                        POD_ARG(bind), STR_ARG(bind->node), reply->fault.text);
        bind_answer(bind, error);
        bind_wait(bind, kube_backoff(bind->attempt++, BACKOFF_BASE, BACKOFF_CAP, reply->retry_after));
}

static bool is_success(const KubeReply *reply) {
        return reply->outcome == KUBE_DONE && reply->status >= 200 && reply->status < 300;
}

static void on_asked(void *userdata, const KubeReply *reply) {
        Bind *bind = userdata;
        Arena *arena = &bind->binder->options.view->arena;
        Fault fault = FAULT_NULL;
        Pod pod;

        bind->call = NULL;
        if (reply->outcome == KUBE_DONE && reply->status == 404) {
                bind_failf(bind, METRICS_BIND_REJECTED, POD_FMT " is gone", POD_ARG(bind));
                return;
        }
        arena_reset(arena);
        if (!is_success(reply) || pod_decode(reply->body, arena, &pod, &fault) != 0)
                bind_ask_later(bind, reply);
        else if (!str_eq(pod.meta.uid, bind->uid))
                bind_failf(bind, METRICS_BIND_REJECTED, POD_FMT " is gone, another one has its name",
                           POD_ARG(bind));
        else if (str_is_empty(pod.node_name))
                bind_is_unbound(bind);
        else if (!bind_is_bound(bind, &pod))
                bind_ask_later(bind, reply);
}

static void bind_ask(Bind *bind) {
        bind_set_state(bind, BIND_ASKING);
        if (kube_get_pod(bind->binder->options.client, bind->namespace_, bind->name, on_asked, bind,
                         &bind->call) < 0)
                bind_leave(bind);
}

/* ---- the Binding ---- */

static void on_posted(void *userdata, const KubeReply *reply) {
        Bind *bind = userdata;
        bool heard = reply->outcome == KUBE_DONE;

        bind->call = NULL;
        bind->fault = reply->fault;
        if (is_success(reply)) {
                bind_succeed(bind, METRICS_BIND_BOUND);
                return;
        }
        /* A 4xx is answered before anything is written. 409 may mean that an earlier Binding of
         * this bind was carried out and its answer lost. 5xx may also come after the write
         * (time-outs of etcd). */
        if (reply->outcome == KUBE_NOT_SENT || (heard && reply->status < 500 && reply->status != 409)) {
                bind_fail(bind, METRICS_BIND_REJECTED, reply->fault.text);
                return;
        }
        bind->conflict = heard && reply->status == 409;
        if (!bind->conflict)
                bind->binder->options.metrics->binds[METRICS_BIND_UNKNOWN]++;
        bind_ask(bind);
}

static void bind_post(Bind *bind, Str annotations) {
        KubeBinding binding = {
                .namespace_ = bind->namespace_,
                .name = bind->name,
                .uid = bind->uid,
                .node = bind->node,
                .annotations = annotations,
        };
        const BinderOptions *o = &bind->binder->options;
        const char *why_not = o->may_not_bind ? o->may_not_bind(o->userdata) : NULL;

        if (why_not) {
                bind_fail(bind, METRICS_BIND_REFUSED, why_not);
                return;
        }
        bind_set_state(bind, BIND_POSTED);
        if (kube_bind(bind->binder->options.client, &binding, on_posted, bind, &bind->call) < 0)
                bind_fail(bind, METRICS_BIND_REJECTED, "out of memory");
}

/* A pod without a share gets no annotations; system keys that it carries are emptied. */
static void bind_without_slices(Bind *bind, const Pod *pod) {
        _cleanup_buf_ Buf annotations = BUF_NULL;

        pod_grant_write(NULL, 0, NULL, false, 0, pod_system_keys(pod), &annotations);
        if (buf_result(&annotations) < 0)
                bind_fail(bind, METRICS_BIND_REJECTED, "out of memory");
        else
                bind_post(bind, buf_str(&annotations));
}

/* ---- placing ---- */

static void bind_refuse(Bind *bind, const Refusal *refusal) {
        _cleanup_buf_ Buf text = BUF_NULL;

        bind->binder->options.metrics->refusals[refusal->code]++;
        buf_appendf(&text, "node " STR_FMT ": ", STR_ARG(bind->node));
        refusal_format(refusal, &text);
        bind_fail(bind, METRICS_BIND_REFUSED, buf_result(&text) == 0 ? text.data : "out of memory");
}

static int bind_reserve(Bind *bind, const Request *request, const Placement *p) {
        GrantSpec spec = {
                .namespace_ = bind->namespace_,
                .name = bind->name,
                .uid = bind->uid,
                .node = bind->node,
                .slices = p->slices,
                .n_slices = p->n_slices,
                .has_core = request->core > 0,
                .app = request->app,
        };
        int r;

        assert(!bind->pod->grant); /* or nothing would free the earlier one */
        r = grant_new(bind->binder->options.view->ledger, &spec, &bind->pod->grant);
        bind->pod->reserved = r == 0;
        return r;
}

static void bind_choose_cards(Bind *bind, const Request *request) {
        View *v = bind->binder->options.view;
        DirectoryNode *node = directory_find(v->directory, bind->node);
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf annotations = BUF_NULL;
        Refusal refusal = {.code = REFUSAL_NODE_UNKNOWN};
        HoldAsker asker = {.uid = bind->uid, .priority = view_pod_priority(v, bind->uid)};
        Placement placement = {0};
        int r = PLACEMENT_E_REFUSED;

        if (node)
                r = hold_choose_cards(&v->hold, &asker, node->ledger_node, request, &arena, &placement,
                                      &refusal);
        if (r == PLACEMENT_E_REFUSED) {
                bind_refuse(bind, &refusal);
                return;
        }
        bind->assume_time = clock_realtime_nsec();
        if (r == 0)
                r = bind_reserve(bind, request, &placement);
        if (r == 0) {
                pod_grant_write(placement.slices, placement.n_slices, node->ledger_node, false,
                                bind->assume_time, bind->pod->carried, &annotations);
                r = buf_result(&annotations);
        }
        if (r < 0)
                bind_fail(bind, METRICS_BIND_REJECTED, "out of memory");
        else
                bind_post(bind, buf_str(&annotations));
}

/* ---- pods that the view does not know ---- */

static void bind_refuse_request(Bind *bind, const Refusal *refusal) {
        _cleanup_buf_ Buf text = BUF_NULL;

        bind->binder->options.metrics->refusals[refusal->code]++;
        refusal_format(refusal, &text);
        bind_fail(bind, METRICS_BIND_REFUSED, buf_result(&text) == 0 ? text.data : "out of memory");
}

/* Where the pod is bound. The watch may have brought a grant after the answer was written. */
static Str node_of(const Bind *bind, const Pod *pod) {
        const Grant *grant = bind->pod->grant;

        return str_is_empty(pod->node_name) && grant ? ledger_node_name(grant_node(grant)) : pod->node_name;
}

static void bind_fetched(Bind *bind, const Pod *pod) {
        View *v = bind->binder->options.view;
        Refusal refusal = {0};
        Request request = {0};
        Str node;
        int r;

        r = view_pod_set(v, pod, REFLECTOR_MODIFIED);
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
                bind_refuse_request(bind, &refusal);
        else if (r == REQUEST_E_NONE)
                bind_without_slices(bind, pod);
        else
                bind_choose_cards(bind, &request);
}

static void on_fetched(void *userdata, const KubeReply *reply) {
        Bind *bind = userdata;
        Arena *arena = &bind->binder->options.view->arena;
        Fault fault = FAULT_NULL;
        Pod pod;
        int r;

        bind->call = NULL;
        if (reply->outcome == KUBE_DONE && reply->status == 404) {
                bind_failf(bind, METRICS_BIND_REFUSED, POD_FMT " is gone", POD_ARG(bind));
                return;
        }
        if (!is_success(reply)) {
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
                bind_fetched(bind, &pod);
}

static void bind_fetch(Bind *bind) {
        bind_set_state(bind, BIND_FETCHING);
        if (kube_get_pod(bind->binder->options.client, bind->namespace_, bind->name, on_fetched, bind,
                         &bind->call) < 0)
                bind_fail(bind, METRICS_BIND_REJECTED, "out of memory");
}

/* ---- the request ---- */

/* A pod with a grant is bound: this request repeats an earlier one, or comes too late. */
static void answer_bound(Binder *b, const BindingArgs *a, const ViewPod *pod, BinderDone done,
                         void *userdata) {
        Str node = ledger_node_name(grant_node(pod->grant));
        Fault fault = FAULT_NULL;

        if (str_eq(node, a->node)) {
                b->options.metrics->binds[METRICS_BIND_ALREADY]++;
                done(userdata, "");
                return;
        }
        b->options.metrics->binds[METRICS_BIND_ELSEWHERE]++;
        (void) fault_set(&fault, 0, POD_FMT " has been bound to node " STR_FMT " already", POD_ARG(a),
                         STR_ARG(node));
        done(userdata, fault.text);
}

static bool answer_at_once(Binder *b, const BindingArgs *a, const ViewPod *pod, BinderDone done,
                           void *userdata) {
        Fault fault = FAULT_NULL;

        if (pod && pod->bind) {
                const Bind *other = pod->bind;

                b->options.metrics->binds[METRICS_BIND_REFUSED]++;
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
                b->options.metrics->binds[METRICS_BIND_REFUSED]++;
                done(userdata, "too many binds are under way");
                return true;
        }
        return false;
}

void binder_bind(Binder *b, const BindingArgs *args, BinderDone done, void *userdata, Bind **ret) {
        ViewPod *pod = view_pod_find(b->options.view, args->uid);
        size_t open_before = b->n_open;
        Bind *bind;

        *ret = NULL;
        if (answer_at_once(b, args, pod, done, userdata))
                return;
        pod = view_pod_ensure(b->options.view, args->uid);
        bind = pod ? bind_new(b, args, pod) : NULL;
        if (!bind) {
                if (pod)
                        view_pod_drop_if_unused(b->options.view, pod);
                done(userdata, "out of memory");
                return;
        }
        bind->done = done;
        bind->userdata = userdata;
        if (pod->request)
                bind_choose_cards(bind, pod->request);
        else
                bind_fetch(bind);
        /* The bind may have ended, and be freed, by now. */
        *ret = b->n_open > open_before ? bind : NULL;
}
