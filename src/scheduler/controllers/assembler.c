/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/controllers/assembler.h"

#include <errno.h>

#include "base/log.h"
#include "base/told.h"
#include "kube/escape.h"
#include "scheduler/policy/policy_table.h"
#include "scheduler/webhook/verdict.h"
#include "wire/annotation.h"
#include "wire/json_write.h"
#include "wire/pod_gang.h"

/* Time between two looks at the gangs, while one waits or is placed. */
#define LOOK_EVERY (200 * USEC_PER_MSEC)
/* Time between two warnings about refused patches. */
#define WARN_EVERY (60 * USEC_PER_SEC)

enum {
        WAKES_MAX = 4096, /* patches at once; further members are woken a little later */
        /* Sent at once: more would wait for connections while their time-out runs. */
        WAKES_SENT_MAX = 12,
};

/* A patch that wakes one member. */
typedef struct Wake {
        Assembler *assembler;
        KubeCall *call; /* NULL: not sent yet */
        char *uid, *path, *patch;
        struct Wake *next, **link;
} Wake;

struct Assembler {
        SchedulerContext *context;
        Gangs gangs;
        sd_event_source *timer;
        Wake *wakes, **wakes_end; /* first come, first served */
        size_t n_wakes, n_sent;
        Told warned;
};

/* ---- time ---- */

static void look_after(Assembler *a, usec_t delay) {
        (void) sd_event_source_set_time_relative(a->timer, delay); /* cannot fail for a live source */
        (void) sd_event_source_set_enabled(a->timer, SD_EVENT_ONESHOT);
}

static void look_soon(Assembler *a) {
        if (a->gangs.leading)
                look_after(a, 0);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Assembler *a = userdata;
        const char *why_not = scheduler_context_may_not_act(a->context);

        if (why_not || gangs_step(&a->gangs, clock_monotonic_usec()))
                look_after(a, LOOK_EVERY);
        return 0;
}

/* ---- waking ---- */

static void wake_free(Wake *w) {
        Assembler *a = w->assembler;

        kube_call_free(w->call);
        *w->link = w->next;
        if (w->next)
                w->next->link = w->link;
        else
                a->wakes_end = w->link;
        a->n_wakes--;
        free(w->uid);
        free(w->path);
        free(w->patch);
        free(w);
}

/* Ends the patch and tells the gang, which wakes the member again if the patch failed. */
static void wake_end(Wake *w, bool good) {
        Assembler *a = w->assembler;

        gangs_woken(&a->gangs, str_from(w->uid), good, clock_monotonic_usec());
        wake_free(w);
        if (!good)
                look_soon(a);
}

static void on_woken(void *userdata, const KubeReply *reply);

static void send_wakes(Assembler *a) {
        for (Wake *w = a->wakes, *next; w && a->n_sent < WAKES_SENT_MAX; w = next) {
                next = w->next;
                if (w->call)
                        continue;
                if (kube_merge_patch(a->context->client, w->path, "", str_from(w->patch), STR(""), on_woken,
                                     w, &w->call) < 0)
                        wake_end(w, false);
                else
                        a->n_sent++;
        }
}

static void on_woken(void *userdata, const KubeReply *reply) {
        Wake *w = userdata;
        Assembler *a = w->assembler;
        bool good = reply->outcome == KUBE_DONE && (reply->status / 100 == 2 || reply->status == 404);

        w->call = NULL;
        a->n_sent--;
        if (!good && told_is_news(&a->warned, STR(""), clock_monotonic_usec(), WARN_EVERY))
                log_warning("a member of a gang could not be woken: %s", reply->fault.text);
        wake_end(w, good);
        send_wakes(a);
}

/* The UID makes the patch fail with 409 (rest.BeforeUpdate) when another pod has the name. Our gate
 * is the member's only one, so the whole list goes. The kick has another text each time: a patch
 * that changes nothing causes no watch event. */
static void write_patch(const GangMember *m, Buf *out) {
        JsonWriter w;

        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_object(&w, "metadata");
        json_write_text(&w, "uid", m->uid);
        if (!m->gated) {
                char kick[24];

                (void) snprintf(kick, sizeof kick, "%llu", (unsigned long long) clock_realtime_nsec());
                json_write_object(&w, "annotations");
                json_write_text(&w, ANNOTATION_KICK, kick);
                json_write_object_end(&w);
        }
        json_write_object_end(&w);
        if (m->gated) {
                json_write_object(&w, "spec");
                json_write_null(&w, "schedulingGates");
                json_write_object_end(&w);
        }
        json_write_object_end(&w);
}

static void on_wake(void *userdata, const GangMember *m) {
        Assembler *a = userdata;
        _cleanup_buf_ Buf path = BUF_NULL, patch = BUF_NULL;
        Wake *w = a->n_wakes < WAKES_MAX ? calloc(1, sizeof *w) : NULL;

        if (!w) {
                gangs_woken(&a->gangs, str_from(m->uid), false, clock_monotonic_usec());
                return;
        }
        w->assembler = a;
        w->link = a->wakes_end;
        *a->wakes_end = w;
        a->wakes_end = &w->next;
        a->n_wakes++;
        kube_pod_path(&path, str_from(m->gang->namespace_), str_from(m->name));
        write_patch(m, &patch);
        w->uid = strdup(m->uid);
        w->path = buf_take(&path);
        w->patch = buf_take(&patch);
        if (!w->uid || !w->path || !w->patch) {
                gangs_woken(&a->gangs, str_from(m->uid), false, clock_monotonic_usec());
                wake_free(w);
        } else
                send_wakes(a);
}

/* ---- the other hooks ---- */

static void on_release(void *userdata, Str uid) {
        Assembler *a = userdata;

        binder_release(a->context->binder, uid);
}

static void on_give_back(void *userdata, Str uid, const char *why) {
        Assembler *a = userdata;

        binder_give_back(a->context->binder, uid, why);
}

static void on_tell(void *userdata, const GangMember *m, const char *reason, const char *note) {
        Assembler *a = userdata;

        kube_event(a->context->recorder, &(KubeEvent){.kind = "Pod",
                                                      .namespace_ = str_from(m->gang->namespace_),
                                                      .name = str_from(m->name),
                                                      .uid = str_from(m->uid),
                                                      .type = "Normal",
                                                      .reason = reason,
                                                      .note = note,
                                                      .replaces = true});
}

/* A gang has given a planned place on the node back. The waker listens to these hooks of the
 * view. */
static void on_room(void *userdata, Str node) {
        const View *v = ((Assembler *) userdata)->context->view;

        if (v->hold.on_room)
                v->hold.on_room(v->hold.userdata, node);
        if (v->on_settled)
                v->on_settled(v->settled_userdata);
}

static void on_settled(void *userdata) {
        const View *v = ((Assembler *) userdata)->context->view;

        if (v->on_settled)
                v->on_settled(v->settled_userdata);
}

/* ---- the watch ---- */

/* Whether no node can ever take the pod. *ret: its request, or NULL if it asks for no card. */
static bool read_request(const Pod *pod, Arena *arena, Request *request, const Request **ret) {
        Refusal refusal;
        int r = request_from_pod(pod, arena, request, &refusal);

        *ret = r == 0 ? request : NULL;
        return r == REQUEST_E_REFUSED;
}

static void leave_gang(Assembler *a, Str uid, usec_t now) {
        if (!gang_table_find(&a->gangs.table, uid))
                return;
        gangs_pod_gone(&a->gangs, uid, now);
        look_soon(a);
}

/* False: the pod is no member. A pod without the gang's name, taken away later, has the gate that
 * it got as a member. It counts to a gang without name and min-available, for which the gate
 * goes. */
static bool read_gang(const Pod *pod, Str object, Arena *arena, PodGang *ret) {
        if ((!pod->names_gang && !pod->has_gates) || pod_gang_decode(object, arena, ret, NULL) != 0)
                return false;
        if (pod->names_gang && !str_is_empty(ret->name))
                return true;
        ret->name = STR("");
        ret->min = STR("");
        return ret->gated;
}

void assembler_pod(Assembler *a, const Pod *pod, Str object, ReflectorEvent event) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        usec_t now = clock_monotonic_usec();
        Request request;
        PodGang said;
        GangPod p;

        if (event == REFLECTOR_DELETED || !read_gang(pod, object, &arena, &said)) {
                leave_gang(a, pod->meta.uid, now);
                return;
        }
        p = (GangPod){.namespace_ = pod->meta.namespace_,
                      .name = pod->meta.name,
                      .uid = pod->meta.uid,
                      .gang = said.name,
                      .min = said.min,
                      .created = pod->meta.creation_timestamp,
                      .message = said.unschedulable ? said.message : STR(""),
                      .scheduler = pod->scheduler_name,
                      .where = said.where,
                      .priority = said.priority,
                      .gated = said.gated,
                      .gated_else = said.gated_else,
                      .bound = !str_is_empty(pod->node_name),
                      .ended = pod_is_terminal(pod),
                      .terminating = pod->meta.terminating};
        p.impossible = read_request(pod, &arena, &request, &p.request);
        if (gangs_pod(&a->gangs, &p, now) < 0)
                log_error("out of memory: pod " STR_FMT "/" STR_FMT " is missing in its gang",
                          STR_ARG(p.namespace_), STR_ARG(p.name));
        look_soon(a);
}

void assembler_node(Assembler *a) {
        gangs_nodes_changed(&a->gangs);
}

void assembler_list_begin(Assembler *a, ViewKind kind) {
        if (kind == VIEW_PODS)
                gangs_list_begin(&a->gangs);
}

void assembler_list_end(Assembler *a, ViewKind kind, bool complete) {
        if (kind == VIEW_PODS && complete)
                gangs_list_end(&a->gangs, clock_monotonic_usec());
        look_soon(a);
}

void assembler_set_leading(Assembler *a, bool leading) {
        gangs_set_leading(&a->gangs, leading, clock_monotonic_usec());
        look_soon(a);
}

/* ---- filter ---- */

typedef struct Question {
        GangsPod pod;
        usec_t now;
        Arena *arena;
} Question;

static int takes_pod(void *userdata, const CandidatesPod *pod, void **ret_state) {
        Assembler *a = userdata;
        const Pod *object = &pod->args->pod;
        PodGang said;
        Question *q;
        int r;

        if (!a->gangs.leading)
                return 0;
        gangs_active(&a->gangs, pod->now);
        gangs_know_scheduler(&a->gangs, object->scheduler_name, pod->now);
        if (!object->names_gang)
                return 0;
        r = pod_gang_decode(pod->args->pod_text, pod->arena, &said, NULL);
        if (r != 0 || str_is_empty(said.name))
                return r < 0 ? r : 0;
        q = arena_new(pod->arena, Question, 1);
        if (!q)
                return -ENOMEM;
        *q = (Question){.pod = {.uid = object->meta.uid,
                                .namespace_ = object->meta.namespace_,
                                .gang = said.name,
                                .min = said.min},
                        .now = pod->now,
                        .arena = pod->arena};
        *ret_state = q;
        return 1;
}

/* Whether no node can ever take the pod: that reason is kept. */
static bool is_final(const Candidate *c) {
        return refusal_is_final(c->refusal.code);
}

/* Lists the candidate nodes for the plan of the gang. A node of a unit that the ResourcePolicy
 * closes to this member stays, marked `barred`: members fill the units in order, so another one may
 * get it. */
static size_t list_nodes(const Assembler *a, const Question *q, const Candidate *first, GangsNode *nodes) {
        const PolicyPod *known = policy_table_find(a->context->view->policies, q->pod.uid);
        size_t n = 0;

        for (const Candidate *c = first; c; c = c->next, n++) {
                bool barred = c->refusal.code == REFUSAL_POLICY;
                bool serves =
                        c->is.node && (!barred || (known && policy_table_unit_of(known->policy, c->is.node) <
                                                                    known->policy->spec.n_units));

                nodes[n] = (GangsNode){.node = serves ? c->is.node->ledger_node : NULL, .barred = barred};
        }
        return n;
}

static void refuse_candidate(Candidate *c, const char *rule) {
        c->refusal = (Refusal){.code = REFUSAL_GANG, .rule = rule};
}

static int choose_candidates(void *userdata, void *state, Candidate *first) {
        Assembler *a = userdata;
        Question *q = state;
        char *why = arena_alloc(q->arena, GANGS_WHY_MAX, 1);
        GangsNode *nodes;
        size_t n = 0;
        GangsVerdict v;

        for (const Candidate *c = first; c; c = c->next)
                n++;
        nodes = arena_new(q->arena, GangsNode, n + 1);
        if (!nodes || !why)
                return -ENOMEM;
        if (!first || is_final(first))
                return 0;
        v = gangs_filter(&a->gangs, &q->pod, nodes, list_nodes(a, q, first, nodes), q->now, why);
        look_soon(a);
        if (v == GANGS_REFUSE)
                policy_table_drop_note(a->context->view->policies, q->pod.uid);
        n = 0;
        for (Candidate *c = first; c && v != GANGS_FREE; c = c->next, n++)
                if (v == GANGS_REFUSE)
                        refuse_candidate(c, why);
                else if (nodes[n].take)
                        c->refusal.code = REFUSAL_NONE;
                else
                        refuse_candidate(c, "gang: the member has its place on another node");
        return 0;
}

/* shared: a ResourcePolicy chooses among the nodes first, and the gang may exchange places
 * afterwards. So a place that the member may get by such an exchange counts as well. */
static const Grant *place_on(void *userdata, void *state, const LedgerNode *node, bool shared) {
        const Assembler *a = userdata;
        const Question *q = state;
        const Grant *place;

        if (shared)
                return gangs_place_on(&a->gangs, q->pod.uid, node);
        place = gangs_place(&a->gangs, q->pod.uid);
        return place && grant_node(place) == node ? place : NULL;
}

/* ---- preempt ---- */

static int plan_nodes(void *userdata, Arena *arena, PlanNodes *ret) {
        return plan_nodes_of(&((Assembler *) userdata)->gangs, arena, ret);
}

static bool is_waiting(void *userdata, Str uid) {
        const Assembler *a = userdata;

        return a->gangs.leading && gangs_waits(&a->gangs, uid);
}

static bool is_unbound(void *userdata, Str uid) {
        const Assembler *a = userdata;

        return a->gangs.leading && gangs_is_unbound(&a->gangs, uid);
}

/* ---- bind ---- */

static PeerVerdict ask_bind(void *userdata, Str uid, Str node, usec_t now, char *why) {
        GangsVerdict v = gangs_bind(&((Assembler *) userdata)->gangs, uid, node, now, why);

        return v == GANGS_HOLD ? PEER_HOLD : v == GANGS_REFUSE ? PEER_REFUSE : PEER_GO;
}

static void on_held(void *userdata, Str uid, usec_t now) {
        gangs_held(&((Assembler *) userdata)->gangs, uid, now);
}

static void on_bind_ended(void *userdata, Str uid, bool bound) {
        gangs_bind_ended(&((Assembler *) userdata)->gangs, uid, bound, clock_monotonic_usec());
}

static int take_place(void *userdata, Str uid, Str node, Arena *arena, Placement *ret) {
        Assembler *a = userdata;
        const Grant *place = gangs_place(&a->gangs, uid);
        const Slice *slices;

        if (!place || !str_eq(ledger_node_name(grant_node(place)), node))
                return 1;
        slices = grant_slices(place, &ret->n_slices);
        ret->slices = arena_new(arena, Slice, ret->n_slices);
        if (!ret->slices)
                return -ENOMEM;
        memcpy(ret->slices, slices, ret->n_slices * sizeof *slices);
        gangs_drop_place(&a->gangs, uid);
        return 0;
}

static const Grant *grant_of(const View *v, const GangMember *m) {
        const ViewPod *pod = view_pod_find(v, str_from(m->uid));

        return pod && pod->grant ? pod->grant : m->place;
}

static void mark_cards(void *userdata, Str uid, const LedgerNode *node, bool ret[static CARD_INDEX_MAX + 1]) {
        const Assembler *a = userdata;
        const GangMember *self = gang_table_find(&a->gangs.table, uid);

        for (const GangMember *m = self ? self->gang->members : NULL; m; m = m->next) {
                const Grant *g = grant_of(a->context->view, m);
                const Slice *slices;
                size_t n;

                if (!g || grant_node(g) != node)
                        continue;
                slices = grant_slices(g, &n);
                for (size_t i = 0; i < n; i++)
                        ret[slices[i].card] = true;
        }
}

/* ---- beginning and end ---- */

int assembler_new(SchedulerContext *context, Assembler **ret) {
        _cleanup_(assembler_freep) Assembler *a = calloc(1, sizeof *a);
        int r;

        if (!a)
                return -ENOMEM;
        a->context = context;
        a->wakes_end = &a->wakes;
        gangs_init(&a->gangs, context->view->ledger,
                   &(GangsHooks){.release = on_release,
                                 .give_back = on_give_back,
                                 .wake = on_wake,
                                 .tell = on_tell,
                                 .on_room = on_room,
                                 .on_settled = on_settled,
                                 .userdata = a});
        gangs_know_scheduler(&a->gangs, STR(VERDICT_SCHEDULER), 0);
        r = sd_event_add_time_relative(kube_client_event(context->client), &a->timer, CLOCK_MONOTONIC,
                                       LOOK_EVERY, LOOK_EVERY / 8, on_timer, a);
        if (r < 0)
                return r;
        context->gangs = &a->gangs;
        context->choosers[context->n_choosers++] = (Chooser){
                .takes = takes_pod, .choose = choose_candidates, .place_on = place_on, .userdata = a};
        context->peers = (PeerHooks){.userdata = a,
                                     .plan = plan_nodes,
                                     .waits = is_waiting,
                                     .is_unbound = is_unbound,
                                     .ask = ask_bind,
                                     .held = on_held,
                                     .ended = on_bind_ended,
                                     .take_place = take_place,
                                     .mark_cards = mark_cards};
        *ret = TAKE_PTR(a);
        return 0;
}

Assembler *assembler_free(Assembler *a) {
        if (!a)
                return NULL;
        while (a->wakes)
                wake_free(a->wakes);
        sd_event_source_disable_unref(a->timer);
        gangs_done(&a->gangs);
        free(a);
        return NULL;
}
