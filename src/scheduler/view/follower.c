/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/view/follower.h"

#include <errno.h>

#include "base/log.h"
#include "scheduler/view/policy_probe.h"

typedef struct Stream {
        Follower *follower;
        ViewKind kind;
        Reflector *reflector;
        sd_event_source *again; /* an object was lost for want of memory: list again soon */
        bool fresh;             /* a list has been completed since the reflector was last started */
} Stream;

struct Follower {
        KubeClient *client;
        View *view;
        Stream streams[VIEW_KINDS_];
        PolicyProbe *probe;
        sd_event_source *soon;
        bool once_more; /* list once more when the list under way has ended */
        usec_t began;   /* when the last list of pods began */
        usec_t took;
        bool fresh;
};

#define LIST_AGAIN_AFTER (1 * USEC_PER_SEC)
#define LIST_SOON        (200 * USEC_PER_MSEC) /* several policies often change together */
#define LIST_PAUSE_MAX   (30 * USEC_PER_SEC)
#define LIST_PAUSE       4 /* factor of the time that a list takes, because policies may change at any rate */

static const ReflectorOptions stream_options[] = {
        [VIEW_NODES] = {.path = "/api/v1/nodes"},
        [VIEW_PODS] = {.path = "/api/v1/pods"},
        [VIEW_CONFIGMAPS] = {.path = "/api/v1/namespaces/kube-system/configmaps"},
        [VIEW_BUDGETS] = {.path = "/apis/policy/v1/poddisruptionbudgets"},
        [VIEW_POLICIES] = {.path = POLICY_GROUP_PATH "/" POLICY_RESOURCE},
};

static int stream_start(Stream *s);

static int on_again(sd_event_source *source, uint64_t usec, void *userdata) {
        Stream *s = userdata;

        s->again = sd_event_source_disable_unref(s->again);
        if (stream_start(s) < 0)
                log_error("out of memory: %s is not followed any more", stream_options[s->kind].path);
        return 0;
}

static void stream_list_later(Stream *s) {
        sd_event *event = kube_client_event(s->follower->client);

        log_error("out of memory: %s is listed again", stream_options[s->kind].path);
        if (!s->again)
                (void) sd_event_add_time_relative(event, &s->again, CLOCK_MONOTONIC, LIST_AGAIN_AFTER, 0,
                                                  on_again, s);
}

static void on_list_begin(void *userdata) {
        Stream *s = userdata;

        if (s->kind == VIEW_PODS)
                s->follower->began = clock_monotonic_usec();
        view_list_begin(s->follower->view, s->kind);
}

static void on_object(void *userdata, ReflectorEvent event, Str object) {
        Stream *s = userdata;

        if (view_object(s->follower->view, s->kind, event, object) < 0)
                stream_list_later(s);
}

static bool is_listing(const Follower *f) {
        return f->view->kinds[VIEW_NODES].listing || f->view->kinds[VIEW_PODS].listing;
}

static void on_list_end(void *userdata) {
        Stream *s = userdata;
        Follower *f = s->follower;

        view_list_end(f->view, s->kind);
        s->fresh = true;
        f->fresh = f->streams[VIEW_NODES].fresh && f->streams[VIEW_PODS].fresh;
        if (s->kind == VIEW_PODS)
                f->took = clock_monotonic_usec() - f->began;
        if (f->once_more && !is_listing(f)) {
                f->once_more = false;
                follower_list_soon(f);
        }
}

static void on_trouble(void *userdata, const Fault *fault) {
        Stream *s = userdata;

        view_trouble(s->follower->view, s->kind, fault);
}

static void on_passed_over(void *userdata) {
        Stream *s = userdata;

        view_passed_over(s->follower->view, s->kind);
}

static const ReflectorHandler stream_handler = {
        .on_list_begin = on_list_begin,
        .on_object = on_object,
        .on_list_end = on_list_end,
        .on_trouble = on_trouble,
        .on_passed_over = on_passed_over,
};

static int stream_start(Stream *s) {
        s->reflector = reflector_free(s->reflector);
        return reflector_new(s->follower->client, &stream_options[s->kind], &stream_handler, s,
                             &s->reflector);
}

int follower_list_again(Follower *f) {
        int r;

        f->fresh = f->streams[VIEW_NODES].fresh = f->streams[VIEW_PODS].fresh = false;
        r = stream_start(&f->streams[VIEW_NODES]);
        return r < 0 ? r : stream_start(&f->streams[VIEW_PODS]);
}

static int on_soon(sd_event_source *source, uint64_t usec, void *userdata) {
        Follower *f = userdata;

        f->soon = sd_event_source_disable_unref(f->soon);
        if (is_listing(f)) { /* a list that is cut again and again never ends */
                f->once_more = true;
                return 0;
        }
        if (stream_start(&f->streams[VIEW_NODES]) < 0)
                stream_list_later(&f->streams[VIEW_NODES]);
        if (stream_start(&f->streams[VIEW_PODS]) < 0)
                stream_list_later(&f->streams[VIEW_PODS]);
        return 0;
}

void follower_list_soon(Follower *f) {
        usec_t pause = LIST_PAUSE * f->took;

        pause = pause < LIST_SOON ? LIST_SOON : pause > LIST_PAUSE_MAX ? LIST_PAUSE_MAX : pause;
        if (!f->soon && sd_event_add_time_relative(kube_client_event(f->client), &f->soon, CLOCK_MONOTONIC,
                                                   pause, 0, on_soon, f) < 0)
                log_error("out of memory: the pods of resourcepolicies are not counted");
}

/* Follows ResourcePolicies, or, when they are not served any more, drops them by an empty list. */
static void on_policies_known(void *userdata, bool served) {
        Follower *f = userdata;
        Stream *s = &f->streams[VIEW_POLICIES];

        if (served) {
                if (stream_start(s) < 0)
                        stream_list_later(s);
                return;
        }
        s->reflector = reflector_free(s->reflector);
        view_list_begin(f->view, VIEW_POLICIES);
        view_list_end(f->view, VIEW_POLICIES);
}

usec_t follower_heard(const Follower *f, ViewKind kind) {
        const Reflector *r = f->streams[kind].reflector;

        return r ? reflector_heard(r) : 0;
}

const bool *follower_fresh(const Follower *f) {
        return &f->fresh;
}

int follower_new(KubeClient *client, View *view, Follower **ret) {
        _cleanup_(follower_freep) Follower *f = calloc(1, sizeof *f);

        if (!f)
                return -ENOMEM;
        f->client = client;
        f->view = view;
        for (int kind = 0; kind < VIEW_KINDS_; kind++) {
                Stream *s = &f->streams[kind];
                int r;

                s->follower = f;
                s->kind = (ViewKind) kind;
                r = kind == VIEW_POLICIES ? policy_probe_new(client, on_policies_known, f, &f->probe)
                                          : stream_start(s);
                if (r < 0)
                        return r;
        }
        view->policies_awaited = true;
        *ret = TAKE_PTR(f);
        return 0;
}

Follower *follower_free(Follower *f) {
        if (!f)
                return NULL;
        policy_probe_free(f->probe);
        sd_event_source_disable_unref(f->soon);
        for (int kind = 0; kind < VIEW_KINDS_; kind++) {
                reflector_free(f->streams[kind].reflector);
                sd_event_source_disable_unref(f->streams[kind].again);
        }
        free(f);
        return NULL;
}
