/* SPDX-License-Identifier: Apache-2.0 */

/* The verb `aliquot node`: options, objects, loop. */

#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/log.h"
#include "gpu/cards/simulated_cards.h"
#include "node/agent.h"
#include "node/arbiter.h"
#include "node/supervise.h"

#define KUBELET_DIR "/var/lib/kubelet"
#define STATE_DIR   "/var/lib/aliquot"
#define CDI_DIR     "/var/run/cdi"
#define CGROUP_ROOT "/sys/fs/cgroup"

enum { EXIT_USAGE = 2, EXIT_BROKEN = 3 };
enum { SLICES_MIB = 64, SLICES_MIB_MAX = 65536 };
enum { FILES = 4096 };
enum { HUNG = 10, HUNG_MAX = 86400 }; /* s */
enum {
        KEY_KUBECONFIG = 256,
        KEY_NODE_NAME,
        KEY_KUBELET_DIR,
        KEY_STATE_DIR,
        KEY_CDI_DIR,
        KEY_CGROUP_ROOT,
        KEY_HOST_ROOT,
        KEY_METRICS,
        KEY_SIMULATE,
        KEY_SIMULATE_DIR,
        KEY_UNIT,
        KEY_ACCESS,
        KEY_NVML,
        KEY_SLICES,
        KEY_SLICES_SIZE,
        KEY_GATE,
        KEY_IGNORE_DISABLE,
        KEY_ON_EXCESS,
        KEY_ON_OVERUSE,
        KEY_ON_HUNG,
        KEY_HUNG,
        KEY_POLICY,
        KEY_KNOWN_DRIVERS,
        KEY_CENSUS,
        KEY_PROC,
        KEY_NO_SUPERVISOR,
        KEY_DEFAULTS, /* one key for each NodeKey */
        KEY_DEFAULTS_END = KEY_DEFAULTS + NODE_KEYS_ - 1,
};

static const struct argp_option option_table[] = {
        {"kubeconfig", KEY_KUBECONFIG, "FILE", 0,
         "how to reach the cluster (default: KUBECONFIG, then the pod's service account)", 0},
        {"node-name", KEY_NODE_NAME, "N", 0, "the node that this is, as the cluster calls it (required)", 0},
        {"kubelet-dir", KEY_KUBELET_DIR, "DIR", 0, "the kubelet's directory (default " KUBELET_DIR ")", 0},
        {"state-dir", KEY_STATE_DIR, "DIR", 0, "what was given out is kept here (default " STATE_DIR ")", 0},
        {"cdi-dir", KEY_CDI_DIR, "DIR", 0, "where the CDI specification is written (default " CDI_DIR ")", 0},
        {"cgroup-root", KEY_CGROUP_ROOT, "DIR", 0,
         "where the cgroup tree is mounted (default " CGROUP_ROOT ")", 0},
        {"host-root", KEY_HOST_ROOT, "DIR", 0,
         "where the host's root is seen, for the driver's files (default /)", 0},
        {"metrics-listen", KEY_METRICS, "ADDR:PORT", 0, "serve /metrics, /healthz and /readyz (default: not)",
         0},
        {"simulate", KEY_SIMULATE, "CARDS", 0,
         "offer these cards and ask no driver, as 4xTesla-V100-SXM2-16GB:16160MiB", 0},
        {"simulate-dir", KEY_SIMULATE_DIR, "DIR", 0,
         "the driver is a simulated one: aliquot-sim is mounted there, and on the host as well", 0},
        {"gpu-mem-unit", KEY_UNIT, "UNIT", 0, "unit of aliyun.com/gpu-mem: GiB (default), 128MiB...", 0},
        {"device-access", KEY_ACCESS, "cdi|runtime", 0,
         "how a container gets its card: by CDI (default), or by NVIDIA_VISIBLE_DEVICES and the nvidia "
         "runtime",
         0},
        {"nvml", KEY_NVML, "FILE", 0, "the NVML library (default libnvidia-ml.so.1)", 0},
        {"slices-dir", KEY_SLICES, "DIR", 0, "slice pages are made here (default " SLICEDIR_DEFAULT ")", 0},
        {"slices-size", KEY_SLICES_SIZE, "MIB", 0,
         "of the tmpfs that is mounted there, so that containers cannot fill /run (default 64; 0: none, and "
         "none "
         "for each slice)",
         0},
        {"gate", KEY_GATE, "FILE", 0,
         "libaliquot.so for isolated containers (default: beside this program, or ../lib/aliquot)", 0},
        {"ignore-cgpu-disable", KEY_IGNORE_DISABLE, NULL, 0, "isolate containers that say CGPU_DISABLE, too",
         0},
        {"on-excess", KEY_ON_EXCESS, "report|kill", 0,
         "what becomes of a container that holds more than its slice: an Event (default), or its processes "
         "are "
         "killed, too",
         0},
        {"on-compute-excess", KEY_ON_OVERUSE, "report|kill", 0,
         "what becomes of a container that has more of a card's time than its share: an Event (default), or "
         "its "
         "processes are killed, too",
         0},
        {"hung-kernel", KEY_HUNG, "SECONDS", 0,
         "how long a kernel may run beyond its container's window until it is told of (default 10)", 0},
        {"on-hung-kernel", KEY_ON_HUNG, "report|kill", 0,
         "what becomes of the container of such a kernel: an Event (default), or its processes are killed, "
         "too",
         0},
        {"policy", KEY_POLICY, "0..5", 0,
         "compute on a cgpu node: 0 fair share, 1 preemptive, 2 weighted, 3 fixed percentage, 4 soft, 5 "
         "native (default)",
         0},
        {"max-inst", KEY_DEFAULTS + NODE_KEY_MAX_INST, "N", 0,
         "places on a card under policy 0, where the node's annotation says none (default 20)", 0},
        {"prio-ratio", KEY_DEFAULTS + NODE_KEY_PRIO_RATIO, "PERCENT", 0,
         "most of a card's time for its high-priority containers, 20 to 99, where the node's annotation says "
         "none",
         0},
        {"max-pods-per-card", KEY_DEFAULTS + NODE_KEY_MAX_PODS, "N", 0,
         "where the node's annotation says none (default: 20 on isolated nodes; 0: no ceiling); the "
         "scheduler needs the same",
         0},
        {"allow-mixed", KEY_DEFAULTS + NODE_KEY_ALLOW_MIXED, "true|false", 0,
         "pods with and without compute percent on one node, where its annotation does not say; the "
         "scheduler needs the same",
         0},
        {"place-while-changing", KEY_DEFAULTS + NODE_KEY_PLACE_WHILE_CHANGING, "true|false", 0,
         "place new slices while a change of mode waits, where the node's annotation does not say (default "
         "false)",
         0},
        {"known-drivers-only", KEY_KNOWN_DRIVERS, NULL, 0,
         "isolate nothing with a driver that is newer than those this version knows", 0},
        {"census", KEY_CENSUS, "MS", 0, "how often the driver is asked what processes hold (default 1000)",
         0},
        {"proc", KEY_PROC, "DIR", 0, "where the host's processes are seen (default /proc)", 0},
        {"no-supervisor", KEY_NO_SUPERVISOR, NULL, 0, "do not start the agent again when it was killed", 0},
        {"verbose", 'v', NULL, 0, "log every step", 0},
        {0},
};

typedef struct Options {
        const char *kubeconfig;
        AgentOptions agent;
        NodeArbiter arbiter;
        bool no_supervisor;
} Options;

static error_t parse_paths(int key, const char *text, Options *o) {
        switch (key) {
        case KEY_KUBECONFIG:
                o->kubeconfig = text;
                return 0;
        case KEY_KUBELET_DIR:
                o->agent.kubelet_dir = text;
                return 0;
        case KEY_STATE_DIR:
                o->agent.state_dir = text;
                return 0;
        case KEY_CDI_DIR:
                o->agent.cdi_dir = text;
                return 0;
        case KEY_CGROUP_ROOT:
                o->agent.cgroup_root = text;
                return 0;
        case KEY_HOST_ROOT:
                o->agent.host_root = text;
                return 0;
        case KEY_NVML:
                o->agent.nvml = text;
                return 0;
        case KEY_SLICES:
                o->agent.slices = text;
                return 0;
        case KEY_PROC:
                o->agent.proc = text;
                return 0;
        case KEY_GATE:
                o->agent.gate = text;
                return 0;
        default:
                return ARGP_ERR_UNKNOWN;
        }
}

static void parse_unit(const char *text, Options *o, struct argp_state *state) {
        if (memory_unit_parse(str_from(text), &o->agent.unit) != 0)
                argp_error(state, "--gpu-mem-unit is \"%s\", must be GiB, MiB or a whole number of them",
                           text);
}

static void parse_access(const char *text, Options *o, struct argp_state *state) {
        if (strcmp(text, "cdi") == 0)
                o->agent.access = DEVICE_ACCESS_CDI;
        else if (strcmp(text, "runtime") == 0)
                o->agent.access = DEVICE_ACCESS_RUNTIME;
        else
                argp_error(state, "--device-access is \"%s\", must be cdi or runtime", text);
}

static void parse_policy(const char *text, Options *o, struct argp_state *state) {
        uint32_t number;

        if (!str_to_u32(str_from(text), &number) || number > COMPUTE_NUMBER_MAX)
                argp_error(state, "--policy is \"%s\", must be 0 to 5", text);
        o->agent.policy = compute_policy_from_number(number);
}

static void parse_hung(const char *text, Options *o, struct argp_state *state) {
        if (!str_to_u32(str_from(text), &o->agent.hung) || o->agent.hung == 0 || o->agent.hung > HUNG_MAX)
                argp_error(state, "--hung-kernel is \"%s\", must be seconds, 1 to %d", text, HUNG_MAX);
}

static void parse_default(NodeKey setting, const char *text, Options *o, struct argp_state *state) {
        Fault fault = FAULT_NULL;

        if (node_defaults_set(&o->agent.defaults, setting, text, &fault) != 0)
                argp_error(state, "%s", fault.text);
}

/* Returns true for "kill". */
static bool parse_reaction(const char *option, const char *text, struct argp_state *state) {
        if (strcmp(text, "report") != 0 && strcmp(text, "kill") != 0)
                argp_error(state, "--%s is \"%s\", must be report or kill", option, text);
        return strcmp(text, "kill") == 0;
}

static void check_simulate(const char *text, Options *o, struct argp_state *state) {
        CardList cards = {0};
        Fault fault = FAULT_NULL;

        if (cards_simulate(str_from(text), STR(""), &cards, &fault) != 0)
                argp_error(state, "--simulate: %s", fault.text);
        card_list_done(&cards);
        o->agent.simulate = text;
}

static void parse_slices_size(const char *text, Options *o, struct argp_state *state) {
        uint64_t mib;

        if (!str_to_u64(str_from(text), &mib) || mib > SLICES_MIB_MAX)
                argp_error(state, "--slices-size is \"%s\", must be MiB, 0 to %d", text, SLICES_MIB_MAX);
        o->agent.slices_mib = (uint32_t) mib;
}

static error_t parse_option(int key, char *text, struct argp_state *state) {
        Options *o = state->input;

        switch (key) {
        case KEY_NODE_NAME:
                o->agent.node_name = text;
                return 0;
        case KEY_METRICS:
                o->agent.metrics_listen = text;
                return 0;
        case KEY_SIMULATE:
                check_simulate(text, o, state);
                return 0;
        case KEY_SIMULATE_DIR:
                if (text[0] != '/')
                        argp_error(state, "--simulate-dir is \"%s\", must be a path from the root", text);
                o->agent.simulate_dir = text;
                return 0;
        case KEY_UNIT:
                parse_unit(text, o, state);
                return 0;
        case KEY_SLICES_SIZE:
                parse_slices_size(text, o, state);
                return 0;
        case KEY_ACCESS:
                parse_access(text, o, state);
                return 0;
        case KEY_IGNORE_DISABLE:
                o->agent.ignores_disable = true;
                return 0;
        case KEY_ON_EXCESS:
                o->agent.kills_excess = parse_reaction("on-excess", text, state);
                return 0;
        case KEY_ON_OVERUSE:
                o->agent.kills_overuse = parse_reaction("on-compute-excess", text, state);
                return 0;
        case KEY_ON_HUNG:
                o->agent.kills_hung = parse_reaction("on-hung-kernel", text, state);
                return 0;
        case KEY_HUNG:
                parse_hung(text, o, state);
                return 0;
        case KEY_KNOWN_DRIVERS:
                o->agent.known_drivers = true;
                return 0;
        case KEY_CENSUS:
                if (!str_to_u64(str_from(text), &o->agent.census) || o->agent.census == 0 ||
                    o->agent.census > 3600000)
                        argp_error(state, "--census is \"%s\", must be milliseconds, 1 to 3600000", text);
                o->agent.census *= USEC_PER_MSEC;
                return 0;
        case KEY_POLICY:
                parse_policy(text, o, state);
                return 0;
        case KEY_NO_SUPERVISOR:
                o->no_supervisor = true;
                return 0;
        case KEY_DEFAULTS ... KEY_DEFAULTS_END:
                parse_default((NodeKey) (key - KEY_DEFAULTS), text, o, state);
                return 0;
        case 'v':
                log_set_level(LOG_LEVEL_DEBUG);
                return 0;
        case ARGP_KEY_ARG:
                argp_error(state, "unexpected argument \"%s\"", text);
                return EINVAL;
        case ARGP_KEY_END:
                if (!o->agent.node_name || o->agent.node_name[0] == '\0')
                        argp_error(state, "--node-name is required");
                if (o->agent.simulate && o->agent.simulate_dir)
                        argp_error(state,
                                   "--simulate and --simulate-dir: the cards are those of one of them");
                return 0;
        default:
                return parse_paths(key, text, o);
        }
}

static const struct argp parser = {
        .options = option_table,
        .parser = parse_option,
        .doc = "The node agent: offers this machine's cards to the kubelet in slices, and gives each "
               "container the slice "
               "that its pod was promised.",
};

static void on_stopped(void *userdata) {
        (void) sd_event_exit(userdata, 0);
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *info, void *userdata) {
        log_info("ending signal=%u", info->ssi_signo);
        agent_stop(userdata, on_stopped, sd_event_source_get_event(source));
        return 0;
}

static int catch_signals(sd_event *event, Agent *a) {
        sigset_t set;
        int r;

        if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || sigemptyset(&set) < 0 || sigaddset(&set, SIGTERM) < 0 ||
            sigaddset(&set, SIGINT) < 0 || sigaddset(&set, SIGCHLD) < 0 ||
            sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        r = sd_event_add_signal(event, NULL, SIGTERM, on_signal, a);
        return r < 0 ? r : sd_event_add_signal(event, NULL, SIGINT, on_signal, a);
}

static int broken(const char *what) {
        (void) fprintf(stderr, "aliquot node: %s\n", what);
        return EXIT_BROKEN;
}

static int block_child_signal(void) {
        sigset_t set;

        /* sd-event requires that SIGCHLD is blocked before it watches the first child. */
        return sigemptyset(&set) < 0 || sigaddset(&set, SIGCHLD) < 0 || sigprocmask(SIG_BLOCK, &set, NULL) < 0
                       ? -errno
                       : 0;
}

/* Without a supervisor the event loop watches the arbiter, and watches it again after each
 * restart. */
static int on_arbiter(sd_event_source *source, const siginfo_t *info, void *userdata);
static int watch_arbiter(sd_event *event, Options *o) {
        if (!o->no_supervisor || o->arbiter.pid < 1)
                return 0;
        return sd_event_add_child(event, NULL, o->arbiter.pid, WEXITED, on_arbiter, o);
}

static int on_arbiter(sd_event_source *source, const siginfo_t *info, void *userdata) {
        Options *o = userdata;

        node_arbiter_ended(&o->arbiter, info->si_pid);
        if (watch_arbiter(sd_event_source_get_event(source), o) < 0)
                log_error("the arbiter of compute is not looked after any more");
        return 0;
}

static int run(void *userdata) {
        _cleanup_(kube_config_freep) KubeConfig *config = NULL;
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        _cleanup_(agent_freep) Agent *agent = NULL;
        Options *o = userdata;
        Fault fault = FAULT_NULL;
        int r;

        r = kube_config_load(o->kubeconfig, NULL, &config, &fault);
        if (r != 0)
                return broken(fault.text[0] ? fault.text : strerror(r < 0 ? -r : EINVAL));
        r = block_child_signal();
        if (r == 0)
                r = sd_event_new(&event);
        if (r < 0)
                return broken(strerror(-r));
        o->agent.config = config;
        r = agent_new(event, &o->agent, &agent, &fault);
        if (r < 0)
                return broken(fault.text);
        r = watch_arbiter(event, o);
        if (r == 0)
                r = catch_signals(event, agent);
        if (r < 0)
                return broken(strerror(-r));
        log_info("serving node=%s server=%s", o->agent.node_name, config->server);
        r = sd_event_loop(event);
        return r < 0 ? broken(strerror(-r)) : 0;
}

/* The agent keeps two descriptors per slice page, the arbiter three, and systemd gives services
 * 1,024. The limit stays within what a child can close where it must close one by one
 * (slicedir/file_lease.c, arbiter/respawn.c). */
static void allow_files(void) {
        struct rlimit files;

        if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < FILES) {
                files.rlim_cur = files.rlim_max < FILES ? files.rlim_max : FILES;
                (void) setrlimit(RLIMIT_NOFILE, &files);
        }
}

static void on_ended(void *userdata, pid_t pid) {
        Options *o = userdata;

        node_arbiter_ended(&o->arbiter, pid);
}

int node_main(int argc, char **argv) {
        Options o = {.agent = {.kubelet_dir = KUBELET_DIR,
                               .state_dir = STATE_DIR,
                               .cdi_dir = CDI_DIR,
                               .cgroup_root = CGROUP_ROOT,
                               .slices = SLICEDIR_DEFAULT,
                               .slices_mib = SLICES_MIB,
                               .host_root = "/",
                               .hung = HUNG,
                               .policy = COMPUTE_NATIVE,
                               .unit = MEMORY_UNIT_GIB}};

        argp_err_exit_status = EXIT_USAGE;
        if (argp_parse(&parser, argc, argv, 0, NULL, &o) != 0)
                return EXIT_USAGE;
        allow_files();
        node_arbiter_start(&o.arbiter, o.agent.slices, UINT64_C(1000000000) * o.agent.hung);
        o.agent.arbiter = o.arbiter.hear;
        supervise_on_other_child(on_ended);
        return o.no_supervisor ? run(&o) : supervise(run, &o);
}
