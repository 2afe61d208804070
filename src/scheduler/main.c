/* SPDX-License-Identifier: Apache-2.0 */

/* The verb `aliquot scheduler`: options, objects, loop. */

#include <argp.h>
#include <errno.h>
#include <malloc.h>
#include <signal.h>

#include "base/clock.h"
#include "base/log.h"
#include "scheduler/scheduler.h"
#include "scheduler/webhook/webhook.h"

#define LISTEN_DEFAULT    "127.0.0.1:12345"
#define NAMESPACE_DEFAULT "kube-system"
#define WEBHOOK_SERVICE   "aliquot-webhook"
#define RELEASE_MAX       (2 * USEC_PER_SEC) /* for the lease to be given back at a clean end */
#define DRAIN             (5 * USEC_PER_SEC) /* goes on answering, in a pod */

enum { EXIT_USAGE = 2, EXIT_BROKEN = 3 };
enum { KEPT_BUFFER = 8 << 20 };
enum {
        KEY_KUBECONFIG = 256,
        KEY_LISTEN,
        KEY_TLS_CERT,
        KEY_TLS_KEY,
        KEY_NO_LEADER_ELECTION,
        KEY_EVICT_FOR_CARDS,
        KEY_WEBHOOK_LISTEN,
        KEY_WEBHOOK_SERVICE,
        KEY_WEBHOOK_TLS_CERT,
        KEY_WEBHOOK_TLS_KEY,
        KEY_SYSTEM_ACCOUNTS,
        KEY_DEVICE_ACCESS,
        KEY_MAX_PODS,
        KEY_ALLOW_MIXED,
};

static const struct argp_option option_table[] = {
        {"kubeconfig", KEY_KUBECONFIG, "FILE", 0,
         "how to reach the cluster (default: KUBECONFIG, then the pod's service account)", 0},
        {"listen", KEY_LISTEN, "ADDR:PORT", 0,
         "where kube-scheduler calls us (default " LISTEN_DEFAULT "; :PORT is every address)", 0},
        {"tls-cert", KEY_TLS_CERT, "FILE", 0, "serve HTTPS with this certificate (PEM)", 0},
        {"tls-key", KEY_TLS_KEY, "FILE", 0, "and this key (PEM)", 0},
        {"no-leader-election", KEY_NO_LEADER_ELECTION, NULL, 0,
         "bind without a Lease: there is one replica only", 0},
        {"evict-for-cards", KEY_EVICT_FOR_CARDS, NULL, 0,
         "evict pods of lower priority where a node has room for a pod and none of its cards has", 0},
        {"webhook-listen", KEY_WEBHOOK_LISTEN, "ADDR:PORT", 0,
         "serve the admission webhook here, by HTTPS (default: no webhook)", 0},
        {"webhook-service", KEY_WEBHOOK_SERVICE, "NAMESPACE/NAME", 0,
         "the Service that the API server calls it by (default: " WEBHOOK_SERVICE " in our own namespace)",
         0},
        {"webhook-tls-cert", KEY_WEBHOOK_TLS_CERT, "FILE", 0,
         "with this certificate (PEM; default: one of its own, kept in Secret " WEBHOOK_SECRET ")", 0},
        {"webhook-tls-key", KEY_WEBHOOK_TLS_KEY, "FILE", 0, "and this key (PEM)", 0},
        {"system-accounts", KEY_SYSTEM_ACCOUNTS, "USER,...", 0,
         "users that may change the annotations that hold a pod's allocation, besides the service accounts "
         "of aliquot and the group "
         "system:masters",
         0},
        {"device-access", KEY_DEVICE_ACCESS, "cdi|runtime", 0,
         "how the node agents give a container its cards (default cdi); with runtime the webhook refuses "
         "pods that set "
         "NVIDIA_VISIBLE_DEVICES themselves",
         0},
        {"max-pods-per-card", KEY_MAX_PODS, "N", 0,
         "on nodes whose annotation says none (default: 20 on isolated nodes; 0: no ceiling); the node "
         "agents need the same",
         0},
        {"allow-mixed", KEY_ALLOW_MIXED, "true|false", 0,
         "pods with and without compute percent on one node, where its annotation does not say; the node "
         "agents need the same",
         0},
        {"verbose", 'v', NULL, 0, "log every step", 0},
        {0},
};

typedef struct Options {
        const char *kubeconfig;
        SchedulerOptions scheduler;
} Options;

typedef struct End {
        Scheduler *scheduler;
        bool in_pod, begun;
} End;

/* Both are DNS labels, as in Kubernetes, and become part of names and paths. */
static bool is_label(Str s) {
        for (size_t i = 0; i < s.len; i++)
                if (!((s.data[i] >= 'a' && s.data[i] <= 'z') || (s.data[i] >= '0' && s.data[i] <= '9') ||
                      (s.data[i] == '-' && i > 0 && i + 1 < s.len)))
                        return false;
        return s.len > 0 && s.len <= 63;
}

static error_t parse_service(Options *o, char *text, struct argp_state *state) {
        char *slash = strchr(text, '/');

        if (!slash || !is_label((Str){text, (size_t) (slash - text)}) || !is_label(str_from(slash + 1))) {
                argp_error(state, "--webhook-service is \"%s\", must be NAMESPACE/NAME", text);
                return EINVAL;
        }
        *slash = '\0';
        o->scheduler.webhook_namespace = text;
        o->scheduler.webhook_service = slash + 1;
        return 0;
}

static void parse_access(const char *text, Options *o, struct argp_state *state) {
        o->scheduler.runtime_devices = strcmp(text, "runtime") == 0;
        if (!o->scheduler.runtime_devices && strcmp(text, "cdi") != 0)
                argp_error(state, "--device-access is \"%s\", must be cdi or runtime", text);
}

static void parse_default(NodeKey setting, const char *text, Options *o, struct argp_state *state) {
        Fault fault = FAULT_NULL;

        if (node_defaults_set(&o->scheduler.defaults, setting, text, &fault) != 0)
                argp_error(state, "%s", fault.text);
}

static error_t parse_option(int key, char *text, struct argp_state *state) {
        Options *o = state->input;

        switch (key) {
        case KEY_KUBECONFIG:
                o->kubeconfig = text;
                return 0;
        case KEY_LISTEN:
                o->scheduler.listen = text;
                return 0;
        case KEY_TLS_CERT:
                o->scheduler.tls_cert = text;
                return 0;
        case KEY_TLS_KEY:
                o->scheduler.tls_key = text;
                return 0;
        case KEY_NO_LEADER_ELECTION:
                o->scheduler.leader_election = false;
                return 0;
        case KEY_EVICT_FOR_CARDS:
                o->scheduler.evict_for_cards = true;
                return 0;
        case KEY_WEBHOOK_LISTEN:
                o->scheduler.webhook_listen = text;
                return 0;
        case KEY_WEBHOOK_SERVICE:
                return parse_service(o, text, state);
        case KEY_WEBHOOK_TLS_CERT:
                o->scheduler.webhook_tls_cert = text;
                return 0;
        case KEY_WEBHOOK_TLS_KEY:
                o->scheduler.webhook_tls_key = text;
                return 0;
        case KEY_SYSTEM_ACCOUNTS:
                o->scheduler.system_accounts = text;
                return 0;
        case KEY_DEVICE_ACCESS:
                parse_access(text, o, state);
                return 0;
        case KEY_MAX_PODS:
                parse_default(NODE_KEY_MAX_PODS, text, o, state);
                return 0;
        case KEY_ALLOW_MIXED:
                parse_default(NODE_KEY_ALLOW_MIXED, text, o, state);
                return 0;
        case 'v':
                log_set_level(LOG_LEVEL_DEBUG);
                return 0;
        case ARGP_KEY_ARG:
                argp_error(state, "unexpected argument \"%s\"", text);
                return EINVAL;
        case ARGP_KEY_END:
                if (!o->scheduler.tls_cert != !o->scheduler.tls_key)
                        argp_error(state, "--tls-cert and --tls-key go together");
                if (!o->scheduler.webhook_tls_cert != !o->scheduler.webhook_tls_key)
                        argp_error(state, "--webhook-tls-cert and --webhook-tls-key go together");
                return 0;
        default:
                return ARGP_ERR_UNKNOWN;
        }
}

static const struct argp parser = {
        .options = option_table,
        .parser = parse_option,
        .doc = "The scheduler extender: tells kube-scheduler which nodes and cards have room, and binds pods "
               "to them. And the admission webhook, which gives pods their scheduler and refuses what can "
               "never run.",
};

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

/* A clean end gives the lease back, so that the next leader need not wait until it expires.
 * Kubernetes signals a pod and tells all nodes to use other pods at the same moment. Calls arrive
 * until the nodes have heard of it, so that the process goes on answering. A second signal ends it
 * at once. */
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

        if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || sigemptyset(&set) < 0 || sigaddset(&set, SIGTERM) < 0 ||
            sigaddset(&set, SIGINT) < 0 || sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        r = sd_event_add_signal(event, NULL, SIGTERM, on_signal, end);
        return r < 0 ? r : sd_event_add_signal(event, NULL, SIGINT, on_signal, end);
}

static int broken(const char *what) {
        (void) fprintf(stderr, "aliquot scheduler: %s\n", what);
        return EXIT_BROKEN;
}

/* The manifest sets these from the downward API. Without them the process runs in no pod, and takes
 * the usual namespace. */
static void read_downward_api(SchedulerOptions *o) {
        const char *pod = getenv("POD_NAME"), *namespace_ = getenv("POD_NAMESPACE");

        o->namespace_ = namespace_ && *namespace_ ? namespace_ : NAMESPACE_DEFAULT;
        o->pod = pod && *pod ? pod : NULL;
        if (o->webhook_service)
                return;
        o->webhook_namespace = o->namespace_;
        o->webhook_service = WEBHOOK_SERVICE;
}

static void log_ports(const Scheduler *s, const KubeConfig *config) {
        log_info("listening port=%u server=%s", scheduler_port(s), config->server);
        if (scheduler_webhook_port(s) > 0)
                log_info("webhook listening port=%u", scheduler_webhook_port(s));
}

static int run(Options *o) {
        _cleanup_(kube_config_freep) KubeConfig *config = NULL;
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        _cleanup_(scheduler_freep) Scheduler *scheduler = NULL;
        Fault fault = FAULT_NULL;
        End end = {0};
        int r;

        r = kube_config_load(o->kubeconfig, NULL, &config, &fault);
        if (r != 0)
                return broken(fault.text[0] ? fault.text : strerror(r < 0 ? -r : EINVAL));
        r = sd_event_new(&event);
        if (r < 0)
                return broken(strerror(-r));
        o->scheduler.config = config;
        read_downward_api(&o->scheduler);
        r = scheduler_new(event, &o->scheduler, &scheduler, &fault);
        if (r < 0)
                return broken(fault.text);
        end = (End){.scheduler = scheduler, .in_pod = o->scheduler.pod != NULL};
        r = catch_signals(event, &end);
        if (r < 0)
                return broken(strerror(-r));
        log_ports(scheduler, config);
        r = sd_event_loop(event);
        return r < 0 ? broken(strerror(-r)) : 0;
}

/* The names of a large cluster are 100 KB in each request and each answer. By default glibc gives
 * such a buffer back to the kernel each time, and takes page faults again for the next one. */
static void keep_memory(void) {
        (void) mallopt(M_MMAP_THRESHOLD, KEPT_BUFFER); /* tuning: nothing depends on it */
        (void) mallopt(M_TRIM_THRESHOLD, 2 * KEPT_BUFFER);
}

int scheduler_main(int argc, char **argv) {
        Options o = {.scheduler = {.listen = LISTEN_DEFAULT, .leader_election = true}};

        keep_memory();
        argp_err_exit_status = EXIT_USAGE;
        if (argp_parse(&parser, argc, argv, 0, NULL, &o) != 0)
                return EXIT_USAGE;
        return run(&o);
}
