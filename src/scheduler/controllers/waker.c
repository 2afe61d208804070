/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/controllers/waker.h"

#include <errno.h>
#include <inttypes.h>

#include "base/log.h"
#include "kube/api.h"
#include "kube/escape.h"
#include "wire/annotation.h"
#include "wire/json_write.h"

#define SOON (50 * USEC_PER_MSEC) /* from the first news: several cards of a node may become free together */
#define TURN (1 * USEC_PER_SEC)

typedef struct Kick {
        Waker *waker;
        KubeCall *call; /* NULL: the slot is free */
        char *uid;
        bool settled; /* woken because a gang settled, not for room */
} Kick;

typedef struct RoomyNode {
        char *name;
        usec_t came; /* when it last got more room */
        usec_t due;  /* when it is considered next */
} RoomyNode;

struct Waker {
        SchedulerContext *context;
        RoomyNode nodes[WAKER_NODES];
        size_t n_nodes;
        Kick kicks[WAKER_BURST];
        size_t n_kicks;
        sd_event_source *timer;
        usec_t next; /* time of the next turn; 0: none */
        usec_t patience;
        usec_t ended;     /* when a pod ended last */
        usec_t ended_due; /* when pods that were not asked about since are woken; 0: never */
        bool settled;     /* the pods that wait for a gang are to be woken */
        bool told;        /* a warning has said that pods cannot be woken */
};

static void arm_timer(Waker *w, usec_t delay) {
        usec_t next = clock_monotonic_usec() + delay;

        if (w->next != 0 && w->next <= next)
                return;
        if (sd_event_source_set_time_relative(w->timer, delay) >= 0 &&
            sd_event_source_set_enabled(w->timer, SD_EVENT_ONESHOT) >= 0)
                w->next = next;
}

/* A full list ignores further nodes. */
void waker_room(Waker *w, Str node) {
        RoomyNode roomy = {.came = clock_monotonic_usec()};
        size_t i = 0;

        if (scheduler_context_may_not_act(w->context) || !w->context->pending.by_uid)
                return;
        while (i < w->n_nodes && !str_eq(str_from(w->nodes[i].name), node))
                i++;
        if (i == WAKER_NODES)
                return;
        roomy.name = i < w->n_nodes ? w->nodes[i].name : str_dup(node);
        if (!roomy.name)
                return;
        w->nodes[i] = roomy;
        w->n_nodes += i == w->n_nodes;
        arm_timer(w, SOON);
}

void waker_settled(Waker *w) {
        if (scheduler_context_may_not_act(w->context) || !w->context->pending.by_uid)
                return;
        w->settled = true;
        arm_timer(w, SOON);
}

void waker_pod_ended(Waker *w) {
        if (scheduler_context_may_not_act(w->context) || !w->context->pending.by_uid)
                return;
        w->ended = clock_monotonic_usec();
        if (w->ended_due == 0)
                w->ended_due = w->ended + w->patience;
        arm_timer(w, w->ended_due - w->ended);
}

static void on_room(void *userdata, Str node) {
        waker_room(userdata, node);
}

static void on_settled(void *userdata) {
        waker_settled(userdata);
}

static void drop_node(Waker *w, size_t i) {
        free(w->nodes[i].name);
        w->nodes[i] = w->nodes[--w->n_nodes];
}

/* ---- one pod ---- */

static void kick_end(Kick *k) {
        k->waker->n_kicks--;
        k->call = NULL;
        free(TAKE_PTR(k->uid));
}

static void on_kicked(void *userdata, const KubeReply *reply) {
        Kick *k = userdata;
        Waker *w = k->waker;
        PendingPod *pod = pending_find(&w->context->pending, str_from(k->uid));
        bool good = reply->outcome == KUBE_DONE && reply->status / 100 == 2;

        /* Tries once more in the next turn. 409: another client wrote the pod meanwhile, or the
         * name now belongs to another pod. */
        if (pod && pod->refused &&
            (kube_reply_is_transient(reply) ||
             (reply->status == 409 && view_pod_find(w->context->view, pod->uid)))) {
                if (k->settled)
                        w->settled = pod->waits_for_plan = true;
                else {
                        pod->woken = 0;
                        w->ended_due = clock_monotonic_usec() + TURN; /* if it was woken for that */
                }
                arm_timer(w, TURN);
        }
        if (!good && !w->told && !(reply->outcome == KUBE_DONE && reply->status == 404))
                log_warning("a waiting pod could not be woken: %s", reply->fault.text);
        w->told = !good;
        kick_end(k);
}

/* A patch with another UID is refused, so that another pod of this name is left alone. The
 * annotation has another text each time: a patch that changes nothing wakes no pod. */
static void write_patch(const PendingPod *pod, Buf *out) {
        char now[24];
        JsonWriter w;

        (void) snprintf(now, sizeof now, "%" PRIu64, clock_realtime_nsec());
        json_write_init(&w, out);
        json_write_object(&w, NULL);
        json_write_object(&w, "metadata");
        json_write_str(&w, "uid", pod->uid);
        json_write_object(&w, "annotations");
        json_write_text(&w, ANNOTATION_KICK, now);
        json_write_object_end(&w);
        json_write_object_end(&w);
        json_write_object_end(&w);
}

static Kick *kick_new(Waker *w, Str uid) {
        for (size_t i = 0; i < WAKER_BURST; i++)
                if (!w->kicks[i].call) {
                        w->kicks[i].uid = str_dup(uid);
                        return w->kicks[i].uid ? &w->kicks[i] : NULL;
                }
        return NULL;
}

static bool kick_pod(Waker *w, const PendingPod *pod, bool settled) {
        _cleanup_buf_ Buf path = BUF_NULL, patch = BUF_NULL;
        Kick *k = kick_new(w, pod->uid);

        if (!k)
                return false;
        kube_pod_path(&path, pod->namespace_, pod->name);
        write_patch(pod, &patch);
        if (buf_result(&path) < 0 || buf_result(&patch) < 0 ||
            kube_merge_patch(w->context->client, path.data, "", buf_str(&patch), STR(""), on_kicked, k,
                             &k->call) < 0) {
                free(TAKE_PTR(k->uid));
                return false;
        }
        k->settled = settled;
        w->n_kicks++;
        log_debug("woke pod=" STR_FMT "/" STR_FMT, STR_ARG(pod->namespace_), STR_ARG(pod->name));
        return true;
}

/* ---- one turn ---- */

static bool fits_node(const Waker *w, const ViewPod *pod, Str uid, const LedgerNode *node) {
        const View *v = w->context->view;
        HoldAsker asker = {.uid = uid, .priority = pod->priority};
        Refusal refusal;

        return hold_check(&v->hold, &asker, node, pod->request, &refusal) == 0;
}

/* Wakes pods that fit on the node. Returns when the node is looked at again; 0: no pod is left that
 * fits and was not woken since the room came. */
static usec_t wake_for(Waker *w, const LedgerNode *node, const RoomyNode *roomy, usec_t now) {
        PendingPod *pod, *next;
        usec_t again = 0;

        HASH_ITER(hh, w->context->pending.by_uid, pod, next) {
                const ViewPod *known = view_pod_find(w->context->view, pod->uid);
                usec_t due = pod->woken != 0 ? pod->woken + WAKER_AGAIN : 0;

                if (w->n_kicks == WAKER_BURST)
                        return now;
                if (!known || !known->request) {
                        if (!pod->waits_for_plan) /* a pod without cards waits for no room */
                                pending_forget(&w->context->pending, pod);
                        continue;
                }
                if (!pod->refused || pod->woken >= roomy->came || (due > now && again != 0 && due >= again) ||
                    !fits_node(w, known, pod->uid, node))
                        continue;
                again = due > now ? due : now;
                if (due <= now && kick_pod(w, pod, false))
                        pod->woken = now;
        }
        return again;
}

/* Wakes the pods that wait for a gang. Returns false when some are left for the next turn. */
static bool wake_waiting_for_gangs(Waker *w) {
        PendingPod *pod, *next;

        HASH_ITER(hh, w->context->pending.by_uid, pod, next) {
                if (!pod->waits_for_plan)
                        continue;
                if (w->n_kicks == WAKER_BURST)
                        return false;
                pod->waits_for_plan = !kick_pod(w, pod, true);
                if (pod->waits_for_plan)
                        return false;
        }
        return true;
}

/* kube-scheduler asked about these pods before our watch showed the end of another one, and not
 * since. Returns false when some are left for the next turn. */
static bool wake_unasked(Waker *w, usec_t now) {
        const View *v = w->context->view;
        PendingPod *pod, *next;

        HASH_ITER(hh, w->context->pending.by_uid, pod, next) {
                const ViewPod *known = view_pod_find(v, pod->uid);

                if (!pod->refused || pod->seen > w->ended || pod->woken > pod->seen || !known ||
                    !known->request || !placement_choose_node(v->ledger, known->request))
                        continue;
                if (w->n_kicks == WAKER_BURST || !kick_pod(w, pod, false))
                        return false;
                pod->woken = now;
        }
        return true;
}

/* One turn; it wakes pods for a gang, or unasked ones, only when the answers of the turn before are
 * in. */
static int on_turn(sd_event_source *source, uint64_t usec, void *userdata) {
        Waker *w = userdata;
        bool leads = !scheduler_context_may_not_act(w->context);
        usec_t now = clock_monotonic_usec();

        w->next = 0;
        if (w->settled && w->n_kicks == 0)
                w->settled = leads && !wake_waiting_for_gangs(w);
        if (w->ended_due != 0 && w->ended_due <= now && w->n_kicks == 0 && (!leads || wake_unasked(w, now)))
                w->ended_due = 0;
        for (size_t i = w->n_kicks > 0 ? 0 : w->n_nodes; i-- > 0;) {
                RoomyNode *roomy = &w->nodes[i];
                const LedgerNode *node =
                        leads ? ledger_node_find(w->context->view->ledger, str_from(roomy->name)) : NULL;

                if (roomy->due > now)
                        continue;
                roomy->due = node ? wake_for(w, node, roomy, now) : 0;
                if (roomy->due == 0)
                        drop_node(w, i);
        }
        if (w->n_nodes > 0 || w->settled)
                arm_timer(w, TURN);
        if (w->ended_due != 0)
                arm_timer(w, w->ended_due > now ? w->ended_due - now : TURN);
        return 0;
}

/* ---- beginning and end ---- */

int waker_new(SchedulerContext *context, usec_t patience, Waker **ret) {
        _cleanup_(waker_freep) Waker *w = calloc(1, sizeof *w);
        int r;

        if (!w)
                return -ENOMEM;
        w->context = context;
        w->patience = patience;
        for (size_t i = 0; i < WAKER_BURST; i++)
                w->kicks[i].waker = w;
        r = sd_event_add_time_relative(kube_client_event(context->client), &w->timer, CLOCK_MONOTONIC, 0, 1,
                                       on_turn, w);
        if (r >= 0)
                r = sd_event_source_set_enabled(w->timer, SD_EVENT_OFF);
        if (r < 0)
                return r;
        context->view->fences.on_room = on_room;
        context->view->fences.room_userdata = w;
        context->view->hold.on_room = on_room;
        context->view->hold.userdata = w;
        context->view->on_settled = on_settled;
        context->view->settled_userdata = w;
        *ret = TAKE_PTR(w);
        return 0;
}

Waker *waker_free(Waker *w) {
        if (!w)
                return NULL;
        w->context->view->fences.on_room = NULL;
        w->context->view->hold.on_room = NULL;
        w->context->view->on_settled = NULL;
        for (size_t i = 0; i < WAKER_BURST; i++) {
                kube_call_free(w->kicks[i].call);
                free(w->kicks[i].uid);
        }
        while (w->n_nodes > 0)
                drop_node(w, 0);
        sd_event_source_disable_unref(w->timer);
        free(w);
        return NULL;
}
