/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/binder.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>

#include "base/log.h"
#include "scheduler/job_cards.h"
#include "scheduler/policy_bind.h"
#include "share/placement.h"
#include "share/pod_grant_write.h"
#include "share/refusal_format.h"
#include "share/refusal_reason.h"

enum {
        BINDS_OPEN_MAX = 4096,
        /* Bindings, and GETs after lost answers, under way at once; the others wait for their turn.
         * Together with watches, Events and single calls they are fewer than the client's
         * connections (KUBE_MAX_CONNECTIONS), so that the time of a call does not pass while it
         * waits for one. */
        TURNS_MAX = 32,
        DNS_NAME_MAX = 253, /* longest name of a node (apimachinery, DNS1123SubdomainMaxLength) */
};

#define CONFIRM_DEFAULT (1 * USEC_PER_SEC)
#define BACKOFF_BASE    (100 * USEC_PER_MSEC)
#define BACKOFF_CAP     (10 * USEC_PER_SEC)

typedef enum BindState {
        BIND_NEW,
        BIND_HELD,
        BIND_FETCHING,
        BIND_QUEUED,
        BIND_POSTED,
        BIND_ASKING,
        BIND_WAITING,
        BIND_ASK_QUEUED
} BindState;

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
        Bind *queue_next;  /* of BIND_QUEUED and BIND_ASK_QUEUED */
        Buf annotations;   /* until the Binding is sent */
        Buf labels;        /* by a ResourcePolicy */
        Buf more;          /* its annotations, from the time when the pod is counted */
        bool counted;      /* in its unit, until policy_bind_end() */
        bool has_turn;     /* one of TURNS_MAX: a Binding with the GET after it, or a later GET */
        Buf placed;        /* the cards, in words; empty: the pod has no share */
        char texts[];
};

struct Binder {
        BinderOptions options;
        Bind *open;
        size_t n_open, n_turns;
        Bind *queue, **queue_end; /* in the order of their coming */
};

static const char *const state_names[] = {[BIND_NEW] = "new",           [BIND_HELD] = "held",
                                          [BIND_FETCHING] = "fetching", [BIND_QUEUED] = "queued",
                                          [BIND_POSTED] = "posted",     [BIND_ASKING] = "asking",
                                          [BIND_WAITING] = "waiting",   [BIND_ASK_QUEUED] = "ask-queued"};

int binder_new(const BinderOptions *options, Binder **ret) {
        Binder *b = calloc(1, sizeof *b);

        if (!b)
                return -ENOMEM;
        b->options = *options;
        b->queue_end = &b->queue;
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
        Str copy = str_put(at, s);

        *at += 1; /* its NUL */
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

static void queue_remove(Binder *b, const Bind *bind) {
        Bind **at = &b->queue;

        while (*at != bind)
                at = &(*at)->queue_next;
        *at = bind->queue_next;
        if (!*at)
                b->queue_end = at;
}

static void take_turn(Bind *bind) {
        bind->binder->n_turns++;
        bind->has_turn = true;
}

static void end_turn(Bind *bind) {
        bind->binder->n_turns -= bind->has_turn;
        bind->has_turn = false;
}

static void bind_free(Bind *bind) {
        end_turn(bind);
        if (bind->state == BIND_QUEUED || bind->state == BIND_ASK_QUEUED)
                queue_remove(bind->binder, bind);
        *bind->link = bind->next;
        if (bind->next)
                bind->next->link = bind->link;
        bind->binder->n_open--;
        bind->pod->bind = NULL;
        view_pod_drop_if_unused(bind->binder->options.view, bind->pod);
        kube_call_free(bind->call);
        sd_event_source_disable_unref(bind->timer);
        buf_done(&bind->placed);
        buf_done(&bind->annotations);
        buf_done(&bind->labels);
        buf_done(&bind->more);
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

/* The gang of the pod, if it has one, hears how the bind ended. */
static void tell_gang(const Bind *bind, bool bound) {
        Gangs *gangs = bind->binder->options.gangs;

        if (gangs)
                gangs_bind_ended(gangs, bind->uid, bound, clock_monotonic_usec());
}

static void bind_write_event(Bind *bind, const char *type, const char *reason, const char *note) {
        KubeEvent event = {
                .kind = "Pod",
                .namespace_ = bind->namespace_,
                .name = bind->name,
                .uid = bind->uid,
                .type = type,
                .reason = reason,
                .note = note,
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
                pod->bound_at = outcome == METRICS_BIND_BOUND ? clock_monotonic_usec() : 0;
        } else if (pod->grant && outcome == METRICS_BIND_BOUND)
                histogram_observe(&v->stats.lag, 0); /* the watch was faster */
        pod->asks_nothing = false;
        policy_bind_end(v->policies, bind->uid, bind->node, true, v->kinds[VIEW_PODS].generation);
        log_info("bound pod=" STR_FMT "/" STR_FMT " node=" STR_FMT, STR_ARG(bind->namespace_),
                 STR_ARG(bind->name), STR_ARG(bind->node));
        bind->binder->options.metrics->binds[outcome]++;
        if (bind->placed.len > 0 && buf_result(&bind->placed) == 0)
                bind_write_event(bind, "Normal", "GPUAssigned", bind->placed.data);
        bind_answer(bind, "");
        tell_gang(bind, true);
        bind_free(bind);
}

/* Gives the reservation back, unless the pod's own object has replaced it already. answer: what
 * kube-scheduler is told. */
static void bind_fail_as(Bind *bind, MetricsBind outcome, const char *error, const char *answer) {
        ViewPod *pod = bind->pod;

        if (pod->reserved) {
                pod->grant = grant_free(pod->grant);
                pod->reserved = false;
                view_pod_settle(bind->binder->options.view, pod);
        }
        policy_bind_end(bind->binder->options.view->policies, bind->uid, bind->node, false, 0);
        log_info("not bound pod=" STR_FMT "/" STR_FMT " node=" STR_FMT ": %s", STR_ARG(bind->namespace_),
                 STR_ARG(bind->name), STR_ARG(bind->node), error);
        bind->binder->options.metrics->binds[outcome]++;
        bind_write_event(bind, "Warning", "FailedBinding", error);
        bind_answer(bind, answer);
        tell_gang(bind, false);
        bind_free(bind);
}

static void bind_fail(Bind *bind, MetricsBind outcome, const char *error) {
        bind_fail_as(bind, outcome, error, error);
}

/* Without an Event: kube-scheduler writes one with the answer, and the gang tells the rest. */
static void bind_answer_only(Bind *bind, const char *why) {
        log_info("not bound pod=" STR_FMT "/" STR_FMT " node=" STR_FMT ": %s", STR_ARG(bind->namespace_),
                 STR_ARG(bind->name), STR_ARG(bind->node), why);
        bind->binder->options.metrics->binds[METRICS_BIND_REFUSED]++;
        policy_bind_end(bind->binder->options.view->policies, bind->uid, bind->node, false, 0);
        bind_answer(bind, why);
        tell_gang(bind, false);
        bind_free(bind);
}

/* kube-scheduler has forgotten a pod when it does not wait any more, and gives its cpu to others: a
 * Binding that is not sent yet is given up. */
void binder_abandon(Bind *bind) {
        bind->done = NULL;
        if (bind->state == BIND_QUEUED || bind->state == BIND_FETCHING)
                bind_fail(bind, METRICS_BIND_REFUSED, "kube-scheduler did not wait for the Binding's turn");
        else if (bind->state == BIND_HELD)
                bind_answer_only(bind, "kube-scheduler did not wait for the other members of the gang");
}

/* When no GET can be sent for want of memory, the reservation counts as the grant until the next
 * list. */
static void bind_leave(Bind *bind) {
        bind->pod->generation = bind->binder->options.view->kinds[VIEW_PODS].generation;
        bind->pod->reserved = false;
        policy_bind_end(bind->binder->options.view->policies, bind->uid, bind->node, true,
                        bind->pod->generation);
        bind_answer(bind, "out of memory; the next list of pods will tell whether the pod was bound");
        tell_gang(bind, false);
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

static void bind_queue(Bind *bind, BindState state);

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        bind_queue(userdata, BIND_ASK_QUEUED);
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

static void judge_asked(Bind *bind, const KubeReply *reply) {
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

static void post_queued(Binder *b);

/* The turn ends here: an API server that answers nothing gets no new Bindings beside these GETs. */
static void on_asked(void *userdata, const KubeReply *reply) {
        Bind *bind = userdata;
        Binder *b = bind->binder;

        end_turn(bind);
        judge_asked(bind, reply);
        post_queued(b);
}

static void bind_ask(Bind *bind) {
        bind_set_state(bind, BIND_ASKING);
        if (kube_get_pod(bind->binder->options.client, bind->namespace_, bind->name, on_asked, bind,
                         &bind->call) < 0)
                bind_leave(bind);
}

/* ---- the Binding ---- */

static void bind_judge(Bind *bind, const KubeReply *reply) {
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

static void on_posted(void *userdata, const KubeReply *reply) {
        Bind *bind = userdata;
        Binder *b = bind->binder;

        bind_judge(bind, reply);
        post_queued(b);
}

/* bind: not in the queue any more. */
static void bind_send(Bind *bind) {
        KubeBinding binding = {
                .namespace_ = bind->namespace_,
                .name = bind->name,
                .uid = bind->uid,
                .node = bind->node,
                .annotations = buf_str(&bind->annotations),
                .labels = buf_str(&bind->labels),
        };
        const BinderOptions *o = &bind->binder->options;
        const char *why_not = o->may_not_bind ? o->may_not_bind(o->userdata) : NULL;

        if (why_not) {
                bind_fail(bind, METRICS_BIND_REFUSED, why_not);
                return;
        }
        if (kube_bind(o->client, &binding, on_posted, bind, &bind->call) < 0) {
                bind_fail(bind, METRICS_BIND_REJECTED, "out of memory");
                return;
        }
        take_turn(bind);
}

static void post_queued(Binder *b) {
        while (b->queue && b->n_turns < TURNS_MAX) {
                Bind *bind = b->queue;

                queue_remove(b, bind);
                if (bind->state == BIND_ASK_QUEUED) {
                        take_turn(bind);
                        bind_ask(bind);
                } else {
                        bind_set_state(bind, BIND_POSTED);
                        bind_send(bind);
                }
        }
}

/* state: BIND_QUEUED or BIND_ASK_QUEUED. It may be sent at once, and be freed. */
static void bind_queue(Bind *bind, BindState state) {
        Binder *b = bind->binder;

        bind_set_state(bind, state);
        bind->queue_next = NULL;
        *b->queue_end = bind;
        b->queue_end = &bind->queue_next;
        post_queued(b);
}

/* Counts the pod in its unit of a ResourcePolicy. A member of a gang is counted when its Bind is
 * held: no other member is posted before it is known that this one has a slot. False: the bind has
 * ended. */
static bool bind_count(Bind *bind) {
        const BinderOptions *o = &bind->binder->options;
        Fault why = FAULT_NULL;
        int r;

        if (bind->counted)
                return true;
        r = policy_bind_begin(o->view->policies, bind->uid, bind->node, clock_monotonic_usec(), &bind->more,
                              &bind->labels, &why);
        bind->counted = r == 0;
        if (r == POLICY_E_REFUSED) {
                o->metrics->refusals[REFUSAL_POLICY]++;
                bind_fail(bind, METRICS_BIND_REFUSED, why.text);
        } else if (r < 0)
                bind_fail(bind, METRICS_BIND_REJECTED, "out of memory");
        return r == 0;
}

/* Adds what a ResourcePolicy writes to the annotations, a JSON object. */
static void add_policy_annotations(Bind *bind) {
        Buf *all = &bind->annotations;
        const Buf *more = &bind->more;

        if (more->len == 0 || all->len == 0)
                return;
        all->len--; /* the brace that ends it */
        buf_append(all, more->data + (all->len == 1), more->len - (all->len == 1));
        buf_append_char(all, '}');
}

static void bind_post(Bind *bind, Str annotations) {
        buf_clear(&bind->annotations);
        buf_append_str(&bind->annotations, annotations);
        if (!bind_count(bind))
                return;
        add_policy_annotations(bind);
        if (buf_result(&bind->annotations) < 0) {
                bind_fail(bind, METRICS_BIND_REJECTED, "out of memory");
                return;
        }
        bind_queue(bind, BIND_QUEUED);
}

/* A pod without a share gets no annotations; system keys that it carries are emptied. */
static void bind_without_slices(Bind *bind) {
        _cleanup_buf_ Buf annotations = BUF_NULL;

        pod_grant_write(NULL, 0, NULL, false, 0, bind->pod->carried, &annotations);
        if (buf_result(&annotations) < 0)
                bind_fail(bind, METRICS_BIND_REJECTED, "out of memory");
        else
                bind_post(bind, buf_str(&annotations));
}

/* ---- placing ---- */

/* The Event and the log have the cards of the node; the answer has the reason of filter. */
static void bind_refuse(Bind *bind, const Refusal *refusal, const char *before) {
        _cleanup_buf_ Buf text = BUF_NULL, answer = BUF_NULL;
        RefusalReason reason;

        bind->binder->options.metrics->refusals[refusal->code]++;
        buf_append_str(&text, str_from(before));
        buf_append_str(&answer, str_from(before));
        refusal_format(refusal, &text);
        refusal_reason(refusal, &reason);
        buf_append_str(&answer, refusal_reason_str(&reason));
        if (buf_result(&text) < 0 || buf_result(&answer) < 0)
                bind_fail(bind, METRICS_BIND_REFUSED, "out of memory");
        else
                bind_fail_as(bind, METRICS_BIND_REFUSED, text.data, answer.data);
}

static void bind_refuse_on_node(Bind *bind, const Refusal *refusal) {
        char before[sizeof "node : " + DNS_NAME_MAX];

        (void) snprintf(before, sizeof before, "node %.*s: ", STR_CUT(bind->node, DNS_NAME_MAX));
        bind_refuse(bind, refusal, before);
}

/* `3 GiB and 30 percent of gpu0 on gpu-worker-01`; with several cards `8 GiB of each of gpu0, gpu1
 * on gpu-worker-01`. Slices stand by card. */
static void bind_note_place(Bind *bind, const Request *request, const Placement *p, const LedgerNode *node) {
        Buf *out = &bind->placed;

        buf_clear(out);
        memory_unit_format_amount(request->mem, ledger_node_unit(node), out);
        if (request->core > 0)
                buf_appendf(out, " and %u percent", request->core);
        buf_append_str(out, request->cards > 1 ? STR(" of each of ") : STR(" of "));
        for (size_t i = 0; i < p->n_slices; i++)
                if (i == 0 || p->slices[i].card != p->slices[i - 1].card)
                        buf_appendf(out, "%sgpu%u", i > 0 ? ", " : "", p->slices[i].card);
        buf_appendf(out, " on " STR_FMT, STR_ARG(bind->node));
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
                .whole = request->whole,
                .app = request->app,
                .cpu = request->cpu,
        };
        int r;

        assert(!bind->pod->grant); /* or nothing would free the earlier one */
        r = grant_new(bind->binder->options.view->ledger, &spec, &bind->pod->grant);
        bind->pod->reserved = r == 0;
        return r;
}

/* The cards that the plan of the gang has for the pod on this node; they are free from now on, and
 * the caller charges them at once. Returns 1 without a plan, 0 or -ENOMEM. */
static int take_place(const Bind *bind, Arena *arena, Placement *ret) {
        Gangs *gangs = bind->binder->options.gangs;
        const Grant *place = gangs ? gangs_place(gangs, bind->uid) : NULL;
        const Slice *slices;

        if (!place || !str_eq(ledger_node_name(grant_node(place)), bind->node))
                return 1;
        slices = grant_slices(place, &ret->n_slices);
        ret->slices = arena_new(arena, Slice, ret->n_slices);
        if (!ret->slices)
                return -ENOMEM;
        memcpy(ret->slices, slices, ret->n_slices * sizeof *slices);
        gangs_drop_place(gangs, bind->uid);
        return 0;
}

static int write_annotations(const Bind *bind, const Placement *p, const LedgerNode *node, Buf *out) {
        bool job[CARD_INDEX_MAX + 1] = {0};

        job_cards(bind->binder->options.view, bind->binder->options.gangs, bind->uid, node, job);
        pod_grant_write_of_job(p->slices, p->n_slices, node, bind->assume_time, bind->pod->carried, job, out);
        return buf_result(out);
}

static void bind_choose_cards(Bind *bind, const Request *request) {
        View *v = bind->binder->options.view;
        DirectoryNode *node = directory_find(v->directory, bind->node);
        _cleanup_arena_ Arena arena = ARENA_NULL;
        _cleanup_buf_ Buf annotations = BUF_NULL;
        Refusal refusal = {.code = REFUSAL_NODE_UNKNOWN};
        HoldAsker asker = {.uid = bind->uid, .priority = view_pod_priority(v, bind->uid)};
        Placement placement = {0};
        int r = node ? take_place(bind, &arena, &placement) : PLACEMENT_E_REFUSED;
        bool planned = r == 0;

        if (node && r > 0)
                r = hold_choose_cards(&v->hold, &asker, node->ledger_node, request, &arena, &placement,
                                      &refusal);
        if (r == PLACEMENT_E_REFUSED) {
                bind_refuse_on_node(bind, &refusal);
                return;
        }
        if (r == 0)
                bind_note_place(bind, request, &placement, node->ledger_node);
        bind->assume_time = clock_realtime_nsec();
        if (r == 0)
                r = bind_reserve(bind, request, &placement);
        if (r == 0 && planned)
                view_pod_take_plan(v, bind->pod);
        if (r == 0)
                r = write_annotations(bind, &placement, node->ledger_node, &annotations);
        if (r < 0)
                bind_fail(bind, METRICS_BIND_REJECTED, "out of memory");
        else
                bind_post(bind, buf_str(&annotations));
}

/* ---- pods that the view does not know ---- */

/* Where the pod is bound. The watch may have brought a grant after the answer was written. */
static Str node_of(const Bind *bind, const Pod *pod) {
        const Grant *grant = bind->pod->grant;

        return str_is_empty(pod->node_name) && grant ? ledger_node_name(grant_node(grant)) : pod->node_name;
}

static void bind_fetched(Bind *bind, const Pod *pod, Str object) {
        View *v = bind->binder->options.view;
        Refusal refusal = {0};
        Request request = {0};
        Str node;
        int r;

        r = view_pod_set(v, pod, REFLECTOR_MODIFIED);
        if (r == 0)
                r = view_pod_set_policy(v, pod, object, REFLECTOR_MODIFIED);
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
                bind_refuse(bind, &refusal, "");
        else if (r == REQUEST_E_NONE)
                bind_without_slices(bind);
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
                bind_fetched(bind, &pod, reply->body);
}

static void bind_fetch(Bind *bind) {
        bind_set_state(bind, BIND_FETCHING);
        if (kube_get_pod(bind->binder->options.client, bind->namespace_, bind->name, on_fetched, bind,
                         &bind->call) < 0)
                bind_fail(bind, METRICS_BIND_REJECTED, "out of memory");
}

static void bind_go_on(Bind *bind) {
        if (bind->pod->request)
                bind_choose_cards(bind, bind->pod->request);
        else if (bind->pod->asks_nothing)
                bind_without_slices(bind);
        else
                bind_fetch(bind);
}

/* ---- members of gangs ---- */

static Bind *find_held(Binder *b, Str uid) {
        const ViewPod *pod = view_pod_find(b->options.view, uid);

        return pod && pod->bind && pod->bind->state == BIND_HELD ? pod->bind : NULL;
}

void binder_release(Binder *b, Str uid) {
        Bind *bind = find_held(b, uid);

        if (bind)
                bind_go_on(bind);
        else if (b->options.gangs)
                gangs_bind_ended(b->options.gangs, uid, false, clock_monotonic_usec());
}

void binder_give_back(Binder *b, Str uid, const char *why) {
        Bind *bind = find_held(b, uid);

        if (bind)
                bind_answer_only(bind, why);
        else if (b->options.gangs)
                gangs_bind_ended(b->options.gangs, uid, false, clock_monotonic_usec());
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

/* Whether the gang lets the pod go on to its Binding; otherwise it is answered, or held. */
static bool ask_gang(Bind *bind) {
        Gangs *gangs = bind->binder->options.gangs;
        usec_t now = clock_monotonic_usec();
        char why[GANGS_WHY_MAX];

        switch (gangs ? gangs_bind(gangs, bind->uid, bind->node, now, why) : GANGS_FREE) {
        case GANGS_HOLD:
                if (!bind_count(bind))
                        return false;
                bind_set_state(bind, BIND_HELD);
                gangs_held(gangs, bind->uid, now);
                return false;
        case GANGS_REFUSE:
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
        if (ask_gang(bind))
                bind_go_on(bind);
        /* The bind may have ended, and be freed, by now. */
        pod = view_pod_find(b->options.view, args->uid);
        *ret = pod ? pod->bind : NULL;
}
