/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/scheduler.h"

#include <errno.h>
#include <limits.h>

#include "base/log.h"
#include "kube/elector.h"
#include "kube/lease_follower.h"
#include "kube/server_version.h"
#include "net/http/reload.h"
#include "scheduler/controllers/assembler.h"
#include "scheduler/controllers/evictor.h"
#include "scheduler/controllers/grower.h"
#include "scheduler/controllers/node_status.h"
#include "scheduler/controllers/policy_keeper.h"
#include "scheduler/controllers/waker.h"
#include "scheduler/extender.h"
#include "scheduler/page/page_server.h"
#include "scheduler/question/policy_bind.h"
#include "scheduler/question/policy_filter.h"
#include "scheduler/view/follower.h"
#include "scheduler/webhook/webhook.h"
#include "wire/node.h"
#include "wire/pod.h"

/* Names of our Deployment and Lease, and the reasons of our Events. */
#define COMPONENT       "aliquot-scheduler"
#define LEASE_NAME      "aliquot-scheduler"
#define LEASE_NAMESPACE "kube-system"

enum {
        /* The largest requests: Nodes instead of NodeNames, 5,000 of them at 10 KiB, or the victims
         * of a preemption with all their pods. */
        BODY_MAX = 64 << 20,
        /* As many Binds may be held (binder.c), each on a connection of its own. Connections that
         * wait for an answer do not count for CONNECTIONS_OF_ADDRESS: all come from
         * kube-scheduler's address. */
        CONNECTIONS_MAX = 4096,
        CONNECTIONS_OF_ADDRESS = 2048,
        READ_BODY_MAX = 4096, /* bytes; these requests are GETs without a body */
        READ_CONNECTIONS_MAX = 256,
        MINOR_WITH_GATES = 27, /* the first minor version of Kubernetes with scheduling gates by default */
};

struct Scheduler {
        SchedulerContext context;
        Metrics metrics;
        NodeStatus *node_status;
        PolicyKeeper *policy_keeper;
        Evictor *evictor; /* NULL: off */
        Grower *grower;   /* NULL: off */
        Waker *waker;
        Assembler *assembler; /* NULL: gangs are off */
        Extender extender;
        HttpServer *server;
        HttpServer *read_server; /* NULL: not served */
        HttpReload *reload;      /* reloads its certificate; NULL: it has none */
        Webhook *webhook;        /* NULL: not served */
        PageServer *page;        /* NULL: not served */
        Follower *follower;
        Elector *elector;     /* NULL: no election of its own */
        LeaseFollower *lease; /* of the kube-scheduler on this host; NULL: not followed */
        bool has_gates;       /* the API server has scheduling gates */

        /* of scheduler_release(); NULL: it was not called */
        void (*released)(void *userdata);
        void *released_userdata;

        char identity[HOST_NAME_MAX + 32];
};

static void on_report(void *userdata, const ViewReport *report) {
        Scheduler *s = userdata;

        if (s->context.leading)
                kube_event_warn(s->context.recorder, report->kind, report->about, report->reason,
                                report->note);
}

static void on_node(void *userdata, const Node *node) {
        Scheduler *s = userdata;

        node_status_node(s->node_status, node);
        if (s->assembler)
                assembler_node(s->assembler);
        if (s->grower)
                grower_node(s->grower, node->meta.name);
}

static void on_node_gone(void *userdata, Str name) {
        Scheduler *s = userdata;

        node_status_gone(s->node_status, name);
        if (s->assembler)
                assembler_node(s->assembler);
}

static void on_fences(void *userdata, Str node, const char *text) {
        Scheduler *s = userdata;

        node_status_fences(s->node_status, node, text);
        if (s->assembler)
                assembler_node(s->assembler);
}

/* Whether the lease is still valid by the clock. After a freeze of the process, requests may be
 * read before the timer that ends the leadership. */
static bool lease_runs(void *userdata) {
        const Scheduler *s = userdata;

        return (!s->elector || elector_is_leading(s->elector)) &&
               (!s->lease || lease_follower_is_leading(s->lease));
}

static void on_policies(void *userdata) {
        Scheduler *s = userdata;

        follower_list_soon(s->follower);
        policy_keeper_poke(s->policy_keeper);
}

static void on_pod(void *userdata, const Pod *pod, Str object, ReflectorEvent event) {
        Scheduler *s = userdata;

        pending_pod(&s->context.pending, s->context.view, pod, event);
        if (!str_is_empty(pod->node_name) && (event == REFLECTOR_DELETED || pod_is_terminal(pod)))
                waker_pod_ended(s->waker);
        if (s->assembler)
                assembler_pod(s->assembler, pod, object, event);
        if (s->page)
                page_server_pod(s->page, pod);
        if (s->grower)
                grower_pod(s->grower, pod);
}

static void on_list_begin(void *userdata, ViewKind kind) {
        Scheduler *s = userdata;

        if (s->assembler)
                assembler_list_begin(s->assembler, kind);
}

static void on_list_end(void *userdata, ViewKind kind, bool complete) {
        Scheduler *s = userdata;

        if (s->assembler)
                assembler_list_end(s->assembler, kind, complete);
        if (kind == VIEW_PODS) {
                pending_listed(&s->context.pending, s->context.view);
                waker_pod_ended(s->waker); /* perhaps: the list has no object of it */
        }
        if (s->page && kind == VIEW_PODS)
                page_server_listed(s->page);
        if (kind == VIEW_CONFIGMAPS)
                node_status_write_all(s->node_status);
}

static void publish_leading(Scheduler *s, bool leading) {
        if (s->webhook)
                webhook_set_leading(s->webhook, leading);
}

static void set_leading(Scheduler *s, bool leading) {
        s->context.leading = leading;
        if (s->assembler)
                assembler_set_leading(s->assembler, leading);
}

static void on_leading(void *userdata, bool leading) {
        Scheduler *s = userdata;

        if (s->released)
                return;
        log_info("leading=%s identity=%s", leading ? "true" : "false", s->identity);
        publish_leading(s, leading);
        if (leading) {
                view_forget_reports(s->context.view);
                if (follower_list_again(s->follower) < 0) {
                        log_error("out of memory: cannot list pods, and so not bind");
                        return;
                }
        }
        set_leading(s, leading);
        if (leading)
                node_status_write_all(s->node_status);
}

/* ---- building ---- */

static void on_news(void *userdata, const char *what) {
        log_info("%s", what);
}

static void on_trouble(void *userdata, const Fault *fault) {
        log_warning("%s", fault->text);
}

static usec_t when_heard(void *userdata, ViewKind kind) {
        const Scheduler *s = userdata;

        return s->follower ? follower_heard(s->follower, kind) : 0;
}

static void on_limit(void *userdata, const char *text) {
        log_warning("%s", text);
}

static void write_listeners(void *userdata, Buf *out) {
        const Scheduler *s = userdata;
        const HttpServer *servers[] = {
                s->server,
                s->webhook ? webhook_server(s->webhook) : NULL,
                s->page ? page_server_listener(s->page) : NULL,
                s->read_server,
        };

        http_server_write_closed(servers, ELEMENTSOF(servers), "aliquot_scheduler_connections_closed_total",
                                 out);
}

static int serve_extender(Scheduler *s, sd_event *event, const SchedulerOptions *o, Fault *fault) {
        HttpServerOptions options = {.listen = o->listen,
                                     .name = "extender",
                                     .max_body = BODY_MAX,
                                     .max_connections = CONNECTIONS_MAX,
                                     .max_of_address = CONNECTIONS_OF_ADDRESS,
                                     .on_limit = on_limit,
                                     .tls = o->tls_cert != NULL};
        HttpReloadOptions files = {
                .cert = o->tls_cert, .key = o->tls_key, .on_news = on_news, .on_trouble = on_trouble};
        int r;

        s->extender.heard = when_heard;
        s->extender.write_listeners = write_listeners;
        s->extender.userdata = s;
        s->context.filter_best = o->filter_best;
        s->context.spare_idle_cards = o->spare_idle_cards;
        r = http_server_new(event, &options, extender_handle, &s->extender, &s->server, fault);
        if (r < 0 || !o->tls_cert)
                return r;
        files.server = s->server;
        r = http_reload_new(event, &files, &s->reload, fault);
        return r > 0 ? -EINVAL : r;
}

static int serve_reads(Scheduler *s, sd_event *event, const SchedulerOptions *o, Fault *fault) {
        HttpServerOptions options = {.listen = o->read_listen,
                                     .name = "reads",
                                     .max_body = READ_BODY_MAX,
                                     .max_connections = READ_CONNECTIONS_MAX,
                                     .on_limit = on_limit};

        if (!o->read_listen)
                return 0;
        return http_server_new(event, &options, extender_handle_reads, &s->extender, &s->read_server, fault);
}

static const char *why_not_ready(void *userdata) {
        const Scheduler *s = userdata;

        return s->webhook ? webhook_why_not_ready(s->webhook) : NULL;
}

/* Until the webhook has its certificate, and API servers can trust it, the replica is not ready:
 * they call any ready replica, and the TLS handshake would fail. */
static int serve_webhook(Scheduler *s, sd_event *event, const SchedulerOptions *o, Fault *fault) {
        WebhookOptions options = {
                .event = event,
                .client = s->context.client,
                .recorder = s->context.recorder,
                .listen = o->webhook_listen,
                .service_namespace = o->webhook_namespace,
                .service_name = o->webhook_service,
                .tls_cert = o->webhook_tls_cert,
                .tls_key = o->webhook_tls_key,
                .rules = {.accounts = str_from(o->system_accounts),
                          .namespace_ = str_from(o->namespace_),
                          .runtime_devices = o->runtime_devices,
                          .has_gates = o->gangs ? &s->has_gates : NULL,
                          .keeps_nodes = o->keeps_nodes,
                          .ledger = s->context.view->ledger},
        };
        int r;

        if (!o->webhook_listen)
                return 0;
        r = webhook_new(&options, &s->webhook, fault);
        if (r < 0)
                return r;
        s->extender.why_not_ready = why_not_ready;
        s->extender.webhook = webhook_counts(s->webhook);
        return 0;
}

static const char *lease_namespace(const SchedulerOptions *o) {
        return o->namespace_ ? o->namespace_ : LEASE_NAMESPACE;
}

static int serve_page(Scheduler *s, sd_event *event, const SchedulerOptions *o, Fault *fault) {
        PageServerOptions options = {
                .event = event,
                .context = &s->context,
                .namespace_ = lease_namespace(o),
                .listen = o->page_listen,
                .hosts = o->page_hosts,
                .cluster = o->page_cluster,
        };

        return o->page_listen ? page_server_new(&options, &s->page, fault) : 0;
}

static int follow_cluster(Scheduler *s) {
        int r;

        s->context.view->on_report = on_report;
        s->context.view->on_node = on_node;
        s->context.view->on_node_gone = on_node_gone;
        s->context.view->on_pod = on_pod;
        s->context.view->on_list_begin = on_list_begin;
        s->context.view->on_list_end = on_list_end;
        s->context.view->on_policies = on_policies;
        s->context.view->userdata = s;
        s->context.view->fences.on_judged = on_fences;
        s->context.view->fences.userdata = s;
        r = follower_new(s->context.client, s->context.view, &s->follower);
        if (r < 0)
                return r;
        s->extender.fresh = follower_fresh(s->follower);
        return 0;
}

static const char *why_not_leading(void *userdata) {
        const Scheduler *s = userdata;

        return lease_follower_why_not(s->lease);
}

static void on_asked(void *userdata) {
        const Scheduler *s = userdata;

        lease_follower_look(s->lease);
}

static int follow_lease(Scheduler *s, const SchedulerOptions *o) {
        LeaseFollowerOptions options = {
                .namespace_ = o->kube_scheduler_namespace,
                .name = o->kube_scheduler_lease,
                .host = s->identity,
                .file = o->lease_file,
        };
        int r = lease_follower_new(s->context.client, &options, on_leading, s, &s->lease);

        if (r < 0)
                return r;
        s->extender.why_not_leading = why_not_leading;
        s->extender.on_asked = on_asked;
        return 0;
}

static int elect_leader(Scheduler *s, const SchedulerOptions *o) {
        ElectorOptions options = {
                .namespace_ = lease_namespace(o),
                .name = LEASE_NAME,
                .identity = s->identity,
        };
        char host[HOST_NAME_MAX + 1] = "localhost";

        if (!o->leader_election) {
                set_leading(s, true);
                publish_leading(s, true);
                return 0;
        }
        (void) gethostname(host, sizeof host - 1);
        if (o->kube_scheduler_lease) {
                (void) snprintf(s->identity, sizeof s->identity, "%s", o->identity ? o->identity : host);
                return follow_lease(s, o);
        }
        if (o->identity)
                (void) snprintf(s->identity, sizeof s->identity, "%s", o->identity);
        else /* the pid tells replicas of one host apart */
                (void) snprintf(s->identity, sizeof s->identity, "%s_%d", host, (int) getpid());
        return elector_new(s->context.client, &options, on_leading, s, &s->elector);
}

static const char *may_not_bind(void *userdata) {
        Scheduler *s = userdata;

        if (s->context.leading && !lease_runs(s))
                return "this replica's lease has run out, and it does not bind";
        return extender_may_not_bind(&s->extender);
}

static void on_version(void *userdata, const KubeReply *reply) {
        Scheduler *s = userdata;
        Fault line = FAULT_NULL;

        log_write(server_version_judge(reply, &line) ? LOG_LEVEL_WARNING : LOG_LEVEL_INFO, "%s", line.text);
        /* If the version is unknown, gates are used: an API server without them drops the field. */
        s->has_gates = server_version_minor(reply) == 0 || server_version_minor(reply) >= MINOR_WITH_GATES;
        if (s->assembler && !s->has_gates)
                log_warning("gangs: scheduling gates need Kubernetes 1.%d; members wait without a gate",
                            MINOR_WITH_GATES);
}

static int build_parts(Scheduler *s, sd_event *event, const SchedulerOptions *o, Fault *fault) {
        int r;

        s->extender.context = &s->context;
        s->context.metrics = &s->metrics;
        s->context.lease_runs = lease_runs;
        s->context.may_not_act = may_not_bind;
        s->context.userdata = s;
        r = kube_client_new(event, o->config, &s->context.client);
        if (r == 0)
                r = server_version_ask(s->context.client, on_version, s);
        if (r == 0)
                r = view_new(&s->context.view);
        if (r == 0)
                r = kube_event_recorder_new(s->context.client, COMPONENT, &s->context.recorder);
        if (r == 0)
                r = node_status_new(&s->context, &s->node_status);
        if (r == 0)
                r = policy_keeper_new(&s->context, &s->policy_keeper);
        if (r < 0)
                return r;
        s->context.view->defaults = o->defaults;
        if (o->by_fragment)
                ledger_set_order(s->context.view->ledger, NODE_ORDER_FRAGMENTATION);
        s->context.choosers[s->context.n_choosers++] = policy_filter_chooser(s->context.view->policies);
        s->context.units = policy_bind_hooks(s->context.view->policies);
        s->context.view->groups_pods = o->gangs;
        if (o->gangs) /* after the policies' chooser: the gang plans on the nodes that the policies leave */
                r = assembler_new(&s->context, &s->assembler);
        if (r == 0)
                r = binder_new(&s->context, 0, &s->context.binder);
        if (r == 0 && o->evict_for_cards)
                r = evictor_new(&s->context, &s->evictor);
        if (r == 0 && o->grow)
                r = grower_new(&(GrowerOptions){.context = &s->context}, &s->grower);
        if (r == 0)
                r = waker_new(&s->context, WAKER_PATIENCE, &s->waker);
        if (r == 0)
                r = serve_extender(s, event, o, fault);
        if (r == 0)
                r = serve_reads(s, event, o, fault);
        if (r == 0)
                r = serve_webhook(s, event, o, fault);
        if (r == 0)
                r = serve_page(s, event, o, fault);
        if (r == 0)
                r = follow_cluster(s);
        return r < 0 ? r : elect_leader(s, o);
}

int scheduler_new(sd_event *event, const SchedulerOptions *options, Scheduler **ret, Fault *fault) {
        _cleanup_(scheduler_freep) Scheduler *s = calloc(1, sizeof *s);
        Fault said = FAULT_NULL;
        int r;

        if (!s)
                return fault_set(fault, -ENOMEM, "out of memory");
        r = build_parts(s, event, options, &said);
        if (r < 0)
                return fault_set(fault, r, "%s", said.text[0] ? said.text : strerror(-r));
        *ret = TAKE_PTR(s);
        return 0;
}

Scheduler *scheduler_free(Scheduler *s) {
        if (!s)
                return NULL;
        s->elector = elector_free(s->elector);
        lease_follower_free(s->lease);
        follower_free(s->follower);
        page_server_free(s->page);
        webhook_free(s->webhook);
        http_reload_free(s->reload);
        http_server_free(s->read_server);
        http_server_free(s->server); /* closes open exchanges, which abandons their binds */
        evictor_free(s->evictor);
        grower_free(s->grower);
        waker_free(s->waker);
        binder_free(s->context.binder);
        extender_done(&s->extender);
        pending_done(&s->context.pending);
        assembler_free(s->assembler);
        policy_keeper_free(s->policy_keeper);
        view_free(s->context.view);
        node_status_free(s->node_status);
        kube_event_recorder_free(s->context.recorder);
        kube_client_free(s->context.client);
        free(s);
        return NULL;
}

uint16_t scheduler_port(const Scheduler *s) {
        return http_server_port(s->server);
}

uint16_t scheduler_read_port(const Scheduler *s) {
        return s->read_server ? http_server_port(s->read_server) : 0;
}

uint16_t scheduler_webhook_port(const Scheduler *s) {
        return s->webhook ? http_server_port(webhook_server(s->webhook)) : 0;
}

uint16_t scheduler_page_port(const Scheduler *s) {
        return s->page ? http_server_port(page_server_listener(s->page)) : 0;
}

bool scheduler_is_ready(const Scheduler *s) {
        return view_in_sync(s->context.view) && policy_table_all_ready(s->context.view->policies) &&
               !why_not_ready((void *) (uintptr_t) s);
}

static void on_binds_ended(void *userdata) {
        const Scheduler *s = userdata;

        if (s->elector && elector_release(s->elector, s->released, s->released_userdata) != 0)
                s->released(s->released_userdata);
}

/* The next leader lists the pods as soon as it has the Lease, so the Lease is kept until no Binding
 * is under way. */
int scheduler_release(Scheduler *s, void (*done)(void *userdata), void *userdata) {
        /* The kube-scheduler on this host gives its Lease back by itself. */
        s->lease = lease_follower_free(s->lease);
        s->extender.why_not_leading = NULL;
        s->extender.on_asked = NULL;
        set_leading(s, false);
        publish_leading(s, false);
        http_server_keep_alive(s->server, false);
        if (s->read_server)
                http_server_keep_alive(s->read_server, false);
        if (s->webhook)
                webhook_drain(s->webhook);
        if (!s->elector)
                return 1;
        s->released = done;
        s->released_userdata = userdata;
        if (binder_n_open(s->context.binder) == 0)
                return elector_release(s->elector, done, userdata);
        binder_when_idle(s->context.binder, on_binds_ended, s);
        return 0;
}
