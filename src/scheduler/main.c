/* SPDX-License-Identifier: Apache-2.0 */

/* The verb `aliquot scheduler`: reads the options, builds the objects, runs the loop. */

#include <errno.h>
#include <malloc.h>
#include <signal.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/options.h"
#include "net/http/http_listen.h"
#include "scheduler/question/best.h"
#include "scheduler/scheduler.h"
#include "scheduler/webhook/webhook.h"

#define LISTEN_DEFAULT    "127.0.0.1:12345"
#define NAMESPACE_DEFAULT "kube-system"
#define WEBHOOK_SERVICE   "aliquot-webhook"
#define RELEASE_MAX       (2 * USEC_PER_SEC) /* longest wait for giving the lease back */
#define DRAIN             (5 * USEC_PER_SEC) /* how long a pod goes on answering after the signal */

enum { EXIT_BROKEN = 3 };
enum { KEPT_BUFFER = 8 << 20 };
/* Limit of open files: the connections of extender and webhook (scheduler.c, webhook/webhook.c),
 * and about a hundred others. */
enum { FILES = 8192 };
typedef struct Options {
        const char *kubeconfig;
        bool no_election, insecure_listen;
        SchedulerOptions scheduler;
} Options;

typedef struct End {
        Scheduler *scheduler;
        bool in_pod, begun;
} End;

/* Whether s is a DNS label. Namespace and name must be, as in Kubernetes: they become part of
 * URLs. */
static bool is_label(Str s) {
        for (size_t i = 0; i < s.len; i++)
                if (!((s.data[i] >= 'a' && s.data[i] <= 'z') || (s.data[i] >= '0' && s.data[i] <= '9') ||
                      (s.data[i] == '-' && i > 0 && i + 1 < s.len)))
                        return false;
        return s.len > 0 && s.len <= 63;
}

/* Splits "NAMESPACE/NAME" in place; text is an element of argv. */
static int split_name(const char *text, const char **ret_namespace, const char **ret_name, Fault *fault) {
        char *slash = (char *) strchr(text, '/');

        if (!slash || !is_label((Str){text, (size_t) (slash - text)}) || !is_label(str_from(slash + 1)))
                return fault_set(fault, 1, "must be NAMESPACE/NAME");
        *slash = '\0';
        *ret_namespace = text;
        *ret_name = slash + 1;
        return 0;
}

static int take_service(void *options, const Option *option, const char *text, Fault *fault) {
        Options *o = options;

        return split_name(text, &o->scheduler.webhook_namespace, &o->scheduler.webhook_service, fault);
}

static int take_lease(void *options, const Option *option, const char *text, Fault *fault) {
        Options *o = options;

        return split_name(text, &o->scheduler.kube_scheduler_namespace, &o->scheduler.kube_scheduler_lease,
                          fault);
}

static int take_default(void *options, const Option *option, const char *text, Fault *fault) {
        Options *o = options;

        return node_defaults_set(&o->scheduler.defaults, (NodeKey) option->key, text, fault);
}

static int take_filter_best(void *options, const Option *option, const char *text, Fault *fault) {
        Options *o = options;
        uint32_t n;

        if (!str_to_u32(str_from(text), &n) || (n != 0 && (n < BEST_KEPT || n > BEST_MAX)))
                return fault_set(fault, 1, "must be 0, or a number from %d to %d", BEST_KEPT, BEST_MAX);
        o->scheduler.filter_best = n;
        return 0;
}

static const Option option_list[] = {
        {"kubeconfig", "FILE",
         "how to reach the cluster (default: KUBECONFIG, then the pod's service account)",
         OPTION_TO_TEXT(Options, kubeconfig)},
        {"listen", "ADDR:PORT",
         "where kube-scheduler calls us, an address of the loopback (default " LISTEN_DEFAULT ")",
         OPTION_TO_TEXT(Options, scheduler.listen)},
        {"insecure-listen", NULL,
         "--listen may be an address that others reach: whatever reaches it can have pods bound to any node, "
         "also with --tls-cert",
         OPTION_TO_FLAG(Options, insecure_listen)},
        {"tls-cert", "FILE", "serve HTTPS with this certificate (PEM)",
         OPTION_TO_TEXT(Options, scheduler.tls_cert)},
        {"tls-key", "FILE", "and this key (PEM)", OPTION_TO_TEXT(Options, scheduler.tls_key)},
        {"read-listen", "ADDR:PORT",
         "serve what only reads here as well, by HTTP: probes, metrics, inspect, why and gangs, and nothing "
         "that binds (default: at --listen alone)",
         OPTION_TO_TEXT(Options, scheduler.read_listen)},
        {"kube-scheduler-lease", "NAMESPACE/NAME",
         "lead while the kube-scheduler of the same host name holds this Lease, in place of an election",
         OPTION_TO_CALL(take_lease)},
        {"lease-file", "FILE",
         "keep here what was read of that Lease, so that this program leads at once after a restart; on a "
         "volume of this pod alone",
         OPTION_TO_TEXT(Options, scheduler.lease_file)},
        {"no-leader-election", NULL, "bind without a Lease: there is one replica only",
         OPTION_TO_FLAG(Options, no_election)},
        {"evict-for-cards", NULL,
         "evict pods of lower priority where a node has room for a pod and none of its cards has",
         OPTION_TO_FLAG(Options, scheduler.evict_for_cards)},
        {"grow-beyond-limits", NULL,
         "let running slices grow beyond the limits of their pods where their card has room; the node agents "
         "need the same",
         OPTION_TO_FLAG(Options, scheduler.grow)},
        {"gangs", NULL,
         "place all members of a gang or none; needs a kube-scheduler that asks about every pod",
         OPTION_TO_FLAG(Options, scheduler.gangs)},
        {"filter-best", "N",
         "answer at most so many nodes to filter, the best (default 0: all; else 32 to 1000)",
         OPTION_TO_CALL(take_filter_best)},
        {"spare-idle-cards", NULL,
         "send pods that ask for none of our resources to nodes without an idle card, where there are any",
         OPTION_TO_FLAG(Options, scheduler.spare_idle_cards)},
        {"node-order", "binpack|fragmentation",
         "which node a pod goes to, of those with the placement binpack: the fullest, or that whose free "
         "cards stay most useful to pods like those that run (default binpack)",
         OPTION_TO_CHOICE(Options, scheduler.by_fragment)},
        {"page", "ADDR:PORT",
         "serve a page for people here, read-only and without a login: 127.0.0.1:PORT or [::1]:PORT "
         "(default: no page)",
         OPTION_TO_TEXT(Options, scheduler.page_listen)},
        {"page-hosts", "NAME,...",
         "names that the page may be asked for by, besides localhost: of a program that logs users in",
         OPTION_TO_TEXT(Options, scheduler.page_hosts)},
        {"page-cluster", "NAME",
         "the cluster's name, which the page shows, to tell pages of several clusters apart (default: none)",
         OPTION_TO_TEXT(Options, scheduler.page_cluster)},
        {"webhook-listen", "ADDR:PORT", "serve the admission webhook here, by HTTPS (default: no webhook)",
         OPTION_TO_TEXT(Options, scheduler.webhook_listen)},
        {"webhook-service", "NAMESPACE/NAME",
         "the Service that the API server calls it by (default: " WEBHOOK_SERVICE " in our own namespace)",
         OPTION_TO_CALL(take_service)},
        {"webhook-tls-cert", "FILE",
         "with this certificate (PEM; default: one of its own, kept in Secret " WEBHOOK_SECRET ")",
         OPTION_TO_TEXT(Options, scheduler.webhook_tls_cert)},
        {"webhook-tls-key", "FILE", "and this key (PEM)", OPTION_TO_TEXT(Options, scheduler.webhook_tls_key)},
        {"system-accounts", "USER,...",
         "users that may change the annotations that hold a pod's allocation, besides the service accounts "
         "of aliquot and the group system:masters",
         OPTION_TO_TEXT(Options, scheduler.system_accounts)},
        {"not-safe-to-evict", NULL,
         "the webhook gives pods with a share the annotation that keeps the cluster autoscaler from "
         "evicting them",
         OPTION_TO_FLAG(Options, scheduler.keeps_nodes)},
        {"device-access", "cdi|runtime",
         "how the node agents give a container its cards (default cdi); with runtime the webhook refuses "
         "pods that set NVIDIA_VISIBLE_DEVICES themselves",
         OPTION_TO_CHOICE(Options, scheduler.runtime_devices)},
        {"max-pods-per-card", "N",
         "on nodes whose annotation says none (default: 20 on isolated nodes; 0: no ceiling); the node "
         "agents need the same",
         OPTION_TO_CALL(take_default), .key = NODE_KEY_MAX_PODS},
        {"allow-mixed", "true|false",
         "pods with and without compute percent on one node, where its annotation does not say; the node "
         "agents need the same",
         OPTION_TO_CALL(take_default), .key = NODE_KEY_ALLOW_MIXED},
        OPTIONS_LOG,
};

static const OptionsTable table = {
        .program = "aliquot scheduler",
        .usage = "[OPTION...]",
        .about = "The scheduler extender: tells kube-scheduler which nodes and cards have room, and binds "
                 "pods "
                 "to them. And the admission webhook, which gives pods their scheduler and refuses what can "
                 "never run.",
        .end = "Exit status: 0 ended by a signal, 2 wrong usage, 3 something broke.",
        .options = option_list,
        .n = ELEMENTSOF(option_list),
};

static int read_options(int argc, char **argv, Options *o) {
        int r = options_parse(&table, argc, argv, o, NULL);

        if (r != OPTIONS_GO)
                return r;
        if (!o->scheduler.tls_cert != !o->scheduler.tls_key)
                return options_wrong(&table, "--tls-cert and --tls-key go together");
        if (!o->scheduler.webhook_tls_cert != !o->scheduler.webhook_tls_key)
                return options_wrong(&table, "--webhook-tls-cert and --webhook-tls-key go together");
        if (o->scheduler.page_hosts && !o->scheduler.page_listen)
                return options_wrong(&table, "--page-hosts needs --page");
        if (o->scheduler.page_cluster && !o->scheduler.page_listen)
                return options_wrong(&table, "--page-cluster needs --page");
        if (!o->insecure_listen && !http_listen_is_loopback(o->scheduler.listen))
                return options_wrong(&table,
                                     "--listen is \"%s\", must be 127.0.0.1:PORT or [::1]:PORT: whatever "
                                     "reaches another address can have pods bound to any node, which "
                                     "--insecure-listen permits",
                                     o->scheduler.listen);
        if (o->no_election && o->scheduler.kube_scheduler_lease)
                return options_wrong(&table,
                                     "--no-leader-election and --kube-scheduler-lease exclude each other");
        if (o->scheduler.lease_file && !o->scheduler.kube_scheduler_lease)
                return options_wrong(&table, "--lease-file needs --kube-scheduler-lease");
        o->scheduler.leader_election = !o->no_election;
        return OPTIONS_GO;
}

static void on_released(void *userdata) {
        (void) sd_event_exit(userdata, 0);
}

static void on_released_in_pod(void *userdata) {
        /* on_time() ends the loop */
}

static int on_time(sd_event_source *source, uint64_t usec, void *userdata) {
        /* A lease that was not given back expires by itself. */
        return sd_event_exit(sd_event_source_get_event(source), 0);
}

/* Ends the process cleanly: gives the lease back, so that the next leader need not wait until it
 * expires. Kubernetes signals a pod and removes it from its Services at the same moment. Calls go
 * on arriving until all nodes know, so a pod answers for a while. A second signal ends it at
 * once. */
static int on_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata) {
        sd_event *event = sd_event_source_get_event(source);
        End *end = userdata;
        int r;

        log_info("ending signal=%u", info->ssi_signo);
        if (end->begun)
                return sd_event_exit(event, 0);
        end->begun = true;
        r = scheduler_release(end->scheduler, end->in_pod ? on_released_in_pod : on_released, event);
        if (r != 0 && !end->in_pod)
                return sd_event_exit(event, 0);
        return sd_event_add_time_relative(event, NULL, CLOCK_MONOTONIC, end->in_pod ? DRAIN : RELEASE_MAX, 0,
                                          on_time, NULL);
}

static int catch_signals(sd_event *event, End *end) {
        sigset_t set;
        int r;

        if (sigemptyset(&set) < 0 || sigaddset(&set, SIGTERM) < 0 || sigaddset(&set, SIGINT) < 0 ||
            sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        r = sd_event_add_signal(event, NULL, SIGTERM, on_signal, end);
        return r < 0 ? r : sd_event_add_signal(event, NULL, SIGINT, on_signal, end);
}

static int log_broken(const char *what) {
        log_error("%s", what);
        return EXIT_BROKEN;
}

static bool is_in_pod(void) {
        const char *pod = getenv("POD_NAME");

        return pod && *pod;
}

/* Takes the namespace from the environment, which the manifest fills by the downward API. Outside
 * of a pod the default holds. */
static void read_downward_api(SchedulerOptions *o) {
        const char *namespace_ = getenv("POD_NAMESPACE");

        o->namespace_ = namespace_ && *namespace_ ? namespace_ : NAMESPACE_DEFAULT;
        if (o->webhook_service)
                return;
        o->webhook_namespace = o->namespace_;
        o->webhook_service = WEBHOOK_SERVICE;
}

static void log_ports(const Scheduler *s, const KubeConfig *config) {
        log_info("listening port=%u server=%s", scheduler_port(s), config->server);
        if (scheduler_read_port(s) > 0)
                log_info("reads listening port=%u", scheduler_read_port(s));
        if (scheduler_webhook_port(s) > 0)
                log_info("webhook listening port=%u", scheduler_webhook_port(s));
        if (scheduler_page_port(s) > 0)
                log_info("page listening port=%u", scheduler_page_port(s));
}

static int run_scheduler(Options *o) {
        _cleanup_(kube_config_freep) KubeConfig *config = NULL;
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        _cleanup_(scheduler_freep) Scheduler *scheduler = NULL;
        Fault fault = FAULT_NULL;
        End end = {0};
        int r;

        r = kube_config_load(o->kubeconfig, NULL, &config, &fault);
        if (r != 0)
                return log_broken(fault.text[0] ? fault.text : strerror(r < 0 ? -r : EINVAL));
        r = sd_event_new(&event);
        if (r < 0)
                return log_broken(strerror(-r));
        o->scheduler.config = config;
        read_downward_api(&o->scheduler);
        r = scheduler_new(event, &o->scheduler, &scheduler, &fault);
        if (r < 0)
                return log_broken(fault.text);
        end = (End){.scheduler = scheduler, .in_pod = is_in_pod()};
        r = catch_signals(event, &end);
        if (r < 0)
                return log_broken(strerror(-r));
        log_ports(scheduler, config);
        r = sd_event_loop(event);
        return r < 0 ? log_broken(strerror(-r)) : 0;
}

/* Makes glibc keep freed buffers. The names of a large cluster take 100 KB in each request and each
 * answer. By default such a buffer is unmapped each time, and the next one costs page faults. */
static void keep_memory(void) {
        (void) mallopt(M_MMAP_THRESHOLD, KEPT_BUFFER); /* tuning alone: a failure does no harm */
        (void) mallopt(M_TRIM_THRESHOLD, 2 * KEPT_BUFFER);
}

int scheduler_main(int argc, char **argv) {
        Options o = {.scheduler = {.listen = LISTEN_DEFAULT}};
        int r;

        keep_memory();
        file_raise_limit(FILES);
        r = read_options(argc, argv, &o);
        if (r != OPTIONS_GO)
                return r;
        (void) signal(SIGPIPE, SIG_IGN); /* standard error may be a pipe that is closed already */
        log_info("aliquot scheduler begins version=%s", ALIQUOT_VERSION);
        return run_scheduler(&o);
}
