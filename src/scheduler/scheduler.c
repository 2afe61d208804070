/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/scheduler.h"

#include <errno.h>
#include <limits.h>

#include "base/file.h"
#include "base/log.h"
#include "kube/elector.h"
#include "scheduler/extender.h"
#include "scheduler/follower.h"

/* Names of the Deployment that runs us, and of what it writes. */
#define COMPONENT       "aliquot-scheduler"
#define LEASE_NAME      "aliquot-scheduler"
#define LEASE_NAMESPACE "kube-system"
#define REASON_UNSERVED "GPUShareModeNotServed"

enum {
        PEM_MAX = 1 << 20,
        /* Nodes instead of NodeNames, 5,000 of them at 10 KiB, or the victims of a preemption with all their pods. */
        BODY_MAX = 64 << 20,
        CONNECTIONS_MAX = 512,
};

struct Scheduler {
        KubeClient *client;
        View *view;
        Metrics metrics;
        KubeEventRecorder *recorder;
        Binder *binder;
        Extender extender;
        HttpServer *server;
        Follower *follower;
        Elector *elector;
        char identity[HOST_NAME_MAX + 32];
};

static void on_unserved_mode(void *userdata, const Node *node, ShareMode mode) {
        Scheduler *s = userdata;
        Fault note = FAULT_NULL;

        (void) fault_set(&note, 0,
                         "label " LABEL_SCHEDULE
                         " is \"%s\", a mode that is not served: the node's cards are not shared",
                         share_mode_to_string(mode));
        if (s->extender.leading)
                kube_event(s->recorder, &(KubeEvent){.kind = "Node",
                                                     .name = node->meta.name,
                                                     .uid = node->meta.uid,
                                                     .type = "Warning",
                                                     .reason = REASON_UNSERVED,
                                                     .note = note.text});
}

static void on_leading(void *userdata, bool leading) {
        Scheduler *s = userdata;

        log_info("leading=%s identity=%s", leading ? "true" : "false", s->identity);
        if (leading) {
                view_forget_told(s->view);
                if (follower_list_again(s->follower) < 0) {
                        log_error("out of memory: cannot list pods, and so not bind");
                        return;
                }
        }
        s->extender.leading = leading;
}

/* ---- building ---- */

static int read_pem(const char *path, Buf *into, Fault *fault) {
        int r;

        if (!path)
                return 0;
        r = file_read(path, PEM_MAX, into);
        return r < 0 ? fault_set(fault, r, "cannot read %s: %s", path, strerror(-r)) : 0;
}

static int serve(Scheduler *s, sd_event *event, const SchedulerOptions *o, Fault *fault) {
        _cleanup_buf_ Buf cert = BUF_NULL, key = BUF_NULL;
        HttpServerOptions options = {
                .listen = o->listen, .max_body = BODY_MAX, .max_connections = CONNECTIONS_MAX};
        int r;

        r = read_pem(o->tls_cert, &cert, fault);
        if (r < 0)
                return r;
        r = read_pem(o->tls_key, &key, fault);
        if (r < 0)
                return r;
        options.tls_cert = o->tls_cert ? cert.data : NULL;
        options.tls_key = o->tls_key ? key.data : NULL;
        s->extender.view = s->view;
        s->extender.metrics = &s->metrics;
        s->extender.binder = s->binder;
        return http_server_new(event, &options, extender_handle, &s->extender, &s->server, fault);
}

static int follow(Scheduler *s) {
        int r;

        s->view->on_unserved_mode = on_unserved_mode;
        s->view->userdata = s;
        r = follower_new(s->client, s->view, &s->follower);
        if (r < 0)
                return r;
        s->extender.fresh = follower_fresh(s->follower);
        return 0;
}

static int elect(Scheduler *s, const SchedulerOptions *o) {
        ElectorOptions options = {
                .namespace_ = o->namespace_ ? o->namespace_ : LEASE_NAMESPACE,
                .name = LEASE_NAME,
                .identity = s->identity,
        };
        char host[HOST_NAME_MAX + 1] = "localhost";

        if (!o->leader_election) {
                s->extender.leading = true;
                return 0;
        }
        (void) gethostname(host,
                           sizeof host - 1); /* the pid tells replicas on one host apart, the host the rest */
        if (o->identity)
                (void) snprintf(s->identity, sizeof s->identity, "%s", o->identity);
        else
                (void) snprintf(s->identity, sizeof s->identity, "%s_%d", host, (int) getpid());
        return elector_new(s->client, &options, on_leading, s, &s->elector);
}

static const char *may_not_bind(void *userdata) {
        const Scheduler *s = userdata;

        return extender_may_not_bind(&s->extender);
}

static int build(Scheduler *s, sd_event *event, const SchedulerOptions *o, Fault *fault) {
        BinderOptions binder;
        int r;

        r = kube_client_new(event, o->config, &s->client);
        if (r == 0)
                r = view_new(&s->view);
        if (r == 0)
                r = kube_event_recorder_new(s->client, COMPONENT, &s->recorder);
        if (r < 0)
                return r;
        binder = (BinderOptions){
                .client = s->client,
                .view = s->view,
                .metrics = &s->metrics,
                .recorder = s->recorder,
                .may_not_bind = may_not_bind,
                .userdata = s,
        };
        r = binder_new(&binder, &s->binder);
        if (r == 0)
                r = serve(s, event, o, fault);
        if (r == 0)
                r = follow(s);
        return r < 0 ? r : elect(s, o);
}

int scheduler_new(sd_event *event, const SchedulerOptions *options, Scheduler **ret, Fault *fault) {
        _cleanup_(scheduler_freep) Scheduler *s = calloc(1, sizeof *s);
        Fault said = FAULT_NULL;
        int r;

        if (!s)
                return fault_set(fault, -ENOMEM, "out of memory");
        r = build(s, event, options, &said);
        if (r < 0)
                return fault_set(fault, r, "%s", said.text[0] ? said.text : strerror(-r));
        *ret = TAKE_PTR(s);
        return 0;
}

Scheduler *scheduler_free(Scheduler *s) {
        if (!s)
                return NULL;
        elector_free(s->elector);
        follower_free(s->follower);
        http_server_free(s->server); /* cuts open exchanges, which lets go of their binds */
        binder_free(s->binder);
        extender_done(&s->extender);
        kube_event_recorder_free(s->recorder);
        view_free(s->view);
        kube_client_free(s->client);
        free(s);
        return NULL;
}

uint16_t scheduler_port(const Scheduler *s) {
        return http_server_port(s->server);
}

bool scheduler_is_ready(const Scheduler *s) {
        return view_in_sync(s->view);
}

int scheduler_release(Scheduler *s, void (*done)(void *userdata), void *userdata) {
        s->extender.leading = false;
        return s->elector && elector_is_leading(s->elector) ? elector_release(s->elector, done, userdata) : 1;
}
