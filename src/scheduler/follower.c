/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/follower.h"

#include <errno.h>

#include "base/log.h"

typedef struct Stream {
        Follower *follower;
        ViewKind kind;
        Reflector *reflector;
        sd_event_source *again; /* an object was lost for want of memory: list again soon */
        bool fresh;             /* listed since it was last begun */
} Stream;

struct Follower {
        KubeClient *client;
        View *view;
        Stream streams[VIEW_KINDS_];
        bool fresh;
};

#define LIST_AGAIN_AFTER (1 * USEC_PER_SEC)

static const ReflectorOptions stream_options[] = {
        [VIEW_NODES] = {.path = "/api/v1/nodes"},
        [VIEW_PODS] = {.path = "/api/v1/pods"},
        [VIEW_CONFIGMAPS] = {.path = "/api/v1/namespaces/kube-system/configmaps"},
        [VIEW_BUDGETS] = {.path = "/apis/policy/v1/poddisruptionbudgets"},
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

        view_list_begin(s->follower->view, s->kind);
}

static void on_object(void *userdata, ReflectorEvent event, Str object) {
        Stream *s = userdata;

        if (view_object(s->follower->view, s->kind, event, object) < 0)
                stream_list_later(s);
}

static void on_list_end(void *userdata) {
        Stream *s = userdata;
        Follower *f = s->follower;

        view_list_end(f->view, s->kind);
        s->fresh = true;
        f->fresh = f->streams[VIEW_NODES].fresh && f->streams[VIEW_PODS].fresh;
}

static void on_trouble(void *userdata, const Fault *fault) {
        Stream *s = userdata;

        view_trouble(s->follower->view, s->kind, fault);
}

static const ReflectorHandler stream_handler = {
        .on_list_begin = on_list_begin,
        .on_object = on_object,
        .on_list_end = on_list_end,
        .on_trouble = on_trouble,
};

static int stream_start(Stream *s) {
        s->reflector = reflector_free(s->reflector);
        s->fresh = false;
        return reflector_new(s->follower->client, &stream_options[s->kind], &stream_handler, s,
                             &s->reflector);
}

int follower_list_again(Follower *f) {
        int r;

        f->fresh = false;
        r = stream_start(&f->streams[VIEW_NODES]);
        return r < 0 ? r : stream_start(&f->streams[VIEW_PODS]);
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
                r = stream_start(s);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(f);
        return 0;
}

Follower *follower_free(Follower *f) {
        if (!f)
                return NULL;
        for (int kind = 0; kind < VIEW_KINDS_; kind++) {
                reflector_free(f->streams[kind].reflector);
                sd_event_source_disable_unref(f->streams[kind].again);
        }
        free(f);
        return NULL;
}
