/* SPDX-License-Identifier: Apache-2.0 */
#include "node/kubelet/pod_resources.h"

#include <errno.h>
#include <stdlib.h>

#include "net/grpc/rpc_client.h"

/* A List answers only callers that asked before it began, because a caller may already know what
 * the kubelet did after the snapshot. So at most one List is under way, for the callers in `sent`;
 * later ones wait for the next. When it fails temporarily its callers wait too, and the next List
 * is for all. */

#define LIST_METHOD "/v1.PodResourcesLister/List"

/* The kubelet's rate limit gives one token each 10 ms to all clients together (its
 * apis/grpc/ratelimit.go: 100/s, burst 10). */
#define LIMITED_DELAY_MIN (5 * USEC_PER_MSEC)
#define LIMITED_DELAY_MAX (40 * USEC_PER_MSEC)
#define UNAVAILABLE_DELAY (20 * USEC_PER_MSEC)
#define TIMER_ACCURACY    USEC_PER_MSEC
#define DEFAULT_TIMEOUT   (10 * USEC_PER_SEC)

enum { MESSAGE_MAX = 16 * 1024 * 1024 };

struct PodResourcesCall {
        PodResources *list;
        PodResourcesCall *next, **link; /* in its queue */
        sd_event_source *deadline;
        usec_t expires;
        PodResourcesDone done;
        void *userdata;
        bool delivering;
};

typedef struct Queue {
        PodResourcesCall *first, **end;
} Queue;

struct PodResources {
        sd_event *event;
        RpcClient *client;
        RpcRequest *flight;    /* the List under way */
        sd_event_source *wait; /* for the next List; enabled while it waits */
        usec_t delay;          /* last delay after "rate limit" */
        char *prefix;
        Queue waiting, sent, answered; /* answered: their callbacks are being called */
        PodResourcesCounters counters;
        Fault why; /* of the latest List */
        bool delivering, freed;
};

/* ---- queues ---- */

static void queue_init(Queue *q) {
        *q = (Queue){.end = &q->first};
}

static void queue_append(Queue *q, PodResourcesCall *c) {
        c->next = NULL;
        c->link = q->end;
        *q->end = c;
        q->end = &c->next;
}

static Queue *queue_of(PodResourcesCall *c) {
        PodResources *p = c->list;

        if (p->waiting.end == &c->next)
                return &p->waiting;
        return p->sent.end == &c->next ? &p->sent : &p->answered;
}

static void queue_remove(PodResourcesCall *c) {
        if (c->next)
                c->next->link = c->link;
        else
                queue_of(c)->end = c->link;
        *c->link = c->next;
        c->next = NULL;
        c->link = NULL;
}

static void queue_move(Queue *from, Queue *to) {
        while (from->first) {
                PodResourcesCall *c = from->first;

                queue_remove(c);
                queue_append(to, c);
        }
}

/* ---- answers ---- */

static void call_destroy(PodResourcesCall *c) {
        sd_event_source_disable_unref(c->deadline);
        free(c);
}

PodResourcesCall *pod_resources_call_free(PodResourcesCall *c) {
        if (!c || c->delivering) /* freed behind its own `done` */
                return NULL;
        queue_remove(c);
        call_destroy(c);
        return NULL;
}

static void call_deliver(PodResourcesCall *c, const PodList *list, const Fault *fault) {
        queue_remove(c);
        c->delivering = true;
        c->done(c->userdata, list, fault);
        call_destroy(c);
}

/* `done` may ask again, free calls, and free the object. */
static void deliver_list(PodResources *p, const PodList *list, const Fault *fault) {
        p->delivering = true;
        while (p->answered.first)
                call_deliver(p->answered.first, list, fault);
        p->delivering = false;
}

static bool finish_freed(PodResources *p) {
        if (!p->freed)
                return false;
        free(p);
        return true;
}

static void deliver_fault(PodResources *p, const Fault *fault) {
        const Fault copy = *fault; /* p->why may change during the callbacks */

        p->counters.failed++;
        queue_move(&p->sent, &p->answered);
        deliver_list(p, NULL, &copy);
}

static int on_deadline(sd_event_source *source, uint64_t now, void *userdata) {
        PodResourcesCall *c = userdata;
        PodResources *p = c->list;
        Fault fault = FAULT_NULL;

        (void) fault_set(&fault, 0, "PodResources List: no answer in time%s%s",
                         p->why.text[0] ? "; before that: " : "", p->why.text);
        queue_remove(c);
        queue_append(&p->answered, c);
        deliver_list(p, NULL, &fault);
        (void) finish_freed(p);
        return 0;
}

/* ---- a List ---- */

static void begin_list(PodResources *p);

static void begin_later(PodResources *p, usec_t delay) {
        queue_move(&p->waiting, &p->sent);
        queue_move(&p->sent, &p->waiting); /* those of the List first: they are older */
        (void) sd_event_source_set_time_relative(p->wait, delay);
        (void) sd_event_source_set_enabled(p->wait, SD_EVENT_ONESHOT); /* cannot fail for a live loop */
}

static int on_wait(sd_event_source *source, uint64_t now, void *userdata) {
        PodResources *p = userdata;

        begin_list(p);
        (void) finish_freed(p);
        return 0;
}

/* The pause after "rate limit". It grows, and is random, so that clients which were refused
 * together do not return together. */
static usec_t limited_delay(PodResources *p) {
        p->delay = p->delay == 0 ? LIMITED_DELAY_MIN : 2 * p->delay;
        if (p->delay > LIMITED_DELAY_MAX)
                p->delay = LIMITED_DELAY_MAX;
        return p->delay + (usec_t) random() % p->delay;
}

static void take_message(PodResources *p, Str message) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Fault fault = FAULT_NULL;
        PodList list;

        p->why = FAULT_NULL;
        p->delay = 0;
        if (pod_list_decode(message, str_from(p->prefix), &arena, &list, &fault) != 0) {
                deliver_fault(p, &fault);
                return;
        }
        queue_move(&p->sent, &p->answered);
        deliver_list(p, &list, NULL);
}

static void on_reply(void *userdata, const RpcReply *reply) {
        PodResources *p = userdata;

        p->flight = NULL;
        if (reply->status != RPC_OK)
                p->why = reply->fault;
        switch (reply->status) {
        case RPC_OK:
                take_message(p, reply->message);
                break;
        case RPC_RESOURCE_EXHAUSTED: /* "rejected by rate limit" */
                p->counters.limited++;
                begin_later(p, limited_delay(p));
                return;
        case RPC_UNAVAILABLE: /* the kubelet is restarting */
                begin_later(p, UNAVAILABLE_DELAY);
                return;
        default:
                deliver_fault(p, &reply->fault);
        }
        if (!finish_freed(p) && p->waiting.first && !p->flight)
                begin_list(p);
}

/* The timeout of a List: the latest deadline of its callers. */
static usec_t sent_timeout(const PodResources *p) {
        usec_t now, end = 0;

        (void) sd_event_now(p->event, CLOCK_MONOTONIC, &now); /* that clock is known */
        for (const PodResourcesCall *c = p->sent.first; c; c = c->next)
                end = c->expires > end ? c->expires : end;
        return end > now ? end - now : 1;
}

static void begin_list(PodResources *p) {
        int r;

        if (!p->waiting.first)
                return;
        queue_move(&p->waiting, &p->sent);
        (void) sd_event_source_set_enabled(p->wait, SD_EVENT_OFF);
        p->counters.lists++;
        r = rpc_call(p->client, LIST_METHOD, (Str){0}, sent_timeout(p), on_reply, p, &p->flight);
        if (r < 0) { /* out of memory: tried again from the loop */
                (void) fault_set(&p->why, r, "PodResources List: %s", strerror(-r));
                begin_later(p, UNAVAILABLE_DELAY);
        }
}

/* ---- the interface ---- */

int pod_resources_list(PodResources *p, usec_t timeout, PodResourcesDone done, void *userdata,
                       PodResourcesCall **ret) {
        PodResourcesCall *c = calloc(1, sizeof *c);
        usec_t now;
        int r;

        if (!c)
                return -ENOMEM;
        (void) sd_event_now(p->event, CLOCK_MONOTONIC, &now); /* that clock is known */
        *c = (PodResourcesCall){.list = p,
                                .expires = now + (timeout > 0 ? timeout : DEFAULT_TIMEOUT),
                                .done = done,
                                .userdata = userdata};
        r = sd_event_add_time(p->event, &c->deadline, CLOCK_MONOTONIC, c->expires, TIMER_ACCURACY,
                              on_deadline, c);
        if (r >= 0)
                r = sd_event_source_set_priority(c->deadline, POD_RESOURCES_DEADLINE_PRIORITY);
        if (r < 0) {
                call_destroy(c);
                return r;
        }
        queue_append(&p->waiting, c);
        if (!p->flight && sd_event_source_get_enabled(p->wait, NULL) == 0)
                begin_list(p);
        if (ret)
                *ret = c;
        return 0;
}

int pod_resources_new(sd_event *event, const char *socket, Str prefix, PodResources **ret) {
        _cleanup_(pod_resources_freep) PodResources *p = calloc(1, sizeof *p);
        RpcClientOptions options = {.path = socket, .max_message = MESSAGE_MAX};
        int r;

        if (!p)
                return -ENOMEM;
        p->event = sd_event_ref(event);
        p->prefix = str_dup(prefix);
        queue_init(&p->waiting);
        queue_init(&p->sent);
        queue_init(&p->answered);
        if (!p->prefix)
                return -ENOMEM;
        r = rpc_client_new(event, &options, &p->client);
        if (r < 0)
                return r;
        r = sd_event_add_time(event, &p->wait, CLOCK_MONOTONIC, 0, TIMER_ACCURACY, on_wait, p);
        if (r < 0)
                return r;
        (void) sd_event_source_set_enabled(p->wait, SD_EVENT_OFF);
        *ret = TAKE_PTR(p);
        return 0;
}

PodResources *pod_resources_free(PodResources *p) {
        if (!p || p->freed)
                return NULL;
        p->freed = true;
        queue_move(&p->waiting, &p->answered);
        queue_move(&p->sent, &p->answered);
        while (p->answered.first)
                pod_resources_call_free(p->answered.first);
        p->client = rpc_client_free(p->client);
        p->wait = sd_event_source_disable_unref(p->wait);
        p->event = sd_event_unref(p->event);
        free(TAKE_PTR(p->prefix));
        if (!p->delivering)
                free(p);
        return NULL;
}

PodResourcesCounters pod_resources_counters(const PodResources *p) {
        return p->counters;
}
