/* SPDX-License-Identifier: Apache-2.0 */

/* The verb `aliquot node`: options, objects, loop. */

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/file.h"
#include "base/log.h"
#include "base/options.h"
#include "gpu/cards/simulated_cards.h"
#include "node/agent.h"
#include "node/arbiter.h"
#include "node/supervise.h"

#define KUBELET_DIR "/var/lib/kubelet"
#define STATE_DIR   "/var/lib/aliquot"
#define CDI_DIR     "/var/run/cdi"
#define CGROUP_ROOT "/sys/fs/cgroup"

enum { EXIT_BROKEN = 3 };
enum { SLICES_MIB = 64, SLICES_MIB_MAX = 65536 };
/* The agent keeps two descriptors per slice page, the arbiter three. The limit stays within what a
 * child can close where it must close one by one (slicedir/file_lease.c, arbiter/respawn.c). */
enum { FILES = 4096 };
enum { HUNG = 10, HUNG_MAX = 86400 }; /* s */
enum { CENSUS_MAX = 3600000 };        /* ms */
typedef struct Options {
        const char *kubeconfig;
        AgentOptions agent;
        NodeArbiter arbiter;
        uint32_t policy, census; /* a number up to COMPUTE_NUMBER_MAX; ms, 0: the default */
        bool runtime;            /* device access by the nvidia runtime */
        bool no_supervisor;
} Options;

static int take_unit(void *options, const Option *option, const char *text, Fault *fault) {
        Options *o = options;

        return memory_unit_parse(str_from(text), &o->agent.unit) == 0
                       ? 0
                       : fault_set(fault, 1, "must be GiB, MiB or a whole number of them");
}

static int take_default(void *options, const Option *option, const char *text, Fault *fault) {
        Options *o = options;

        return node_defaults_set(&o->agent.defaults, (NodeKey) option->key, text, fault);
}

static int take_simulate(void *options, const Option *option, const char *text, Fault *fault) {
        CardList cards = {0};
        Options *o = options;
        int r;

        r = cards_simulate(str_from(text), STR(""), &cards, fault);
        card_list_done(&cards);
        o->agent.simulate = text;
        return r;
}

static int take_simulate_dir(void *options, const Option *option, const char *text, Fault *fault) {
        Options *o = options;

        o->agent.simulate_dir = text;
        return text[0] == '/' ? 0 : fault_set(fault, 1, "must be a path from the root");
}

static const Option option_list[] = {
        {"kubeconfig", "FILE",
         "how to reach the cluster (default: KUBECONFIG, then the pod's service account)",
         OPTION_TO_TEXT(Options, kubeconfig)},
        {"node-name", "N", "the node that this is, as the cluster calls it (required)",
         OPTION_TO_TEXT(Options, agent.node_name)},
        {"kubelet-dir", "DIR", "the kubelet's directory (default " KUBELET_DIR ")",
         OPTION_TO_TEXT(Options, agent.kubelet_dir)},
        {"state-dir", "DIR", "what was given out is kept here (default " STATE_DIR ")",
         OPTION_TO_TEXT(Options, agent.state_dir)},
        {"cdi-dir", "DIR", "where the CDI specification is written (default " CDI_DIR ")",
         OPTION_TO_TEXT(Options, agent.cdi_dir)},
        {"cgroup-root", "DIR", "where the cgroup tree is mounted (default " CGROUP_ROOT ")",
         OPTION_TO_TEXT(Options, agent.cgroup_root)},
        {"host-root", "DIR", "where the host's root is seen, for the driver's files (default /)",
         OPTION_TO_TEXT(Options, agent.host_root)},
        {"metrics-listen", "ADDR:PORT", "serve /metrics, /healthz and /readyz (default: not)",
         OPTION_TO_TEXT(Options, agent.metrics_listen)},
        {"simulate", "CARDS", "offer these cards and ask no driver, as 4xTesla-V100-SXM2-16GB:16160MiB",
         OPTION_TO_CALL(take_simulate)},
        {"simulate-dir", "DIR",
         "the driver is a simulated one: aliquot-sim is mounted there, and on the host as well",
         OPTION_TO_CALL(take_simulate_dir)},
        {"gpu-mem-unit", "UNIT", "unit of aliyun.com/gpu-mem: GiB (default), 128MiB...",
         OPTION_TO_CALL(take_unit)},
        {"device-access", "cdi|runtime",
         "how a container gets its card: by CDI (default), or by NVIDIA_VISIBLE_DEVICES and the nvidia "
         "runtime",
         OPTION_TO_CHOICE(Options, runtime)},
        {"nvml", "FILE", "the NVML library (default libnvidia-ml.so.1)", OPTION_TO_TEXT(Options, agent.nvml)},
        {"slices-dir", "DIR", "slice pages are made here (default " SLICEDIR_DEFAULT ")",
         OPTION_TO_TEXT(Options, agent.slices)},
        {"slices-size", "MIB",
         "of the tmpfs that is mounted there, so that containers cannot fill /run (default 64; 0: none, and "
         "none for each slice)",
         OPTION_TO_NUMBER(Options, agent.slices_mib, 0, SLICES_MIB_MAX)},
        {"library", "FILE",
         "libaliquot.so for isolated containers (default: beside this program, or ../lib/aliquot)",
         OPTION_TO_TEXT(Options, agent.library)},
        {"keep-nvidia-plugin-off", NULL,
         "by a label of the GPU Operator, and share no card before that plugin is gone",
         OPTION_TO_FLAG(Options, agent.keeps_nvidia_off)},
        {"grow-beyond-limits", NULL,
         "let running slices grow beyond the limits of their pods, as the scheduler permits; it needs the "
         "same",
         OPTION_TO_FLAG(Options, agent.grows)},
        {"ignore-cgpu-disable", NULL, "isolate containers that say CGPU_DISABLE, too",
         OPTION_TO_FLAG(Options, agent.ignores_disable)},
        {"say-refusals", NULL,
         "a process of an isolated container that is refused memory says so on its standard error, once",
         OPTION_TO_FLAG(Options, agent.says_refusals)},
        {"on-excess", "report|kill",
         "what becomes of a container that holds more than its slice: an Event (default), or its processes "
         "are killed, too",
         OPTION_TO_CHOICE(Options, agent.kills_excess)},
        {"on-compute-excess", "report|kill",
         "what becomes of a container that has more of a card's time than its share: an Event (default), or "
         "its processes are killed, too",
         OPTION_TO_CHOICE(Options, agent.kills_overuse)},
        {"hung-kernel", "SECONDS",
         "how long a kernel may run beyond its container's window until it is told of (default 10)",
         OPTION_TO_NUMBER(Options, agent.hung, 1, HUNG_MAX)},
        {"on-hung-kernel", "report|kill",
         "what becomes of the container of such a kernel: an Event (default), or its processes are killed, "
         "too",
         OPTION_TO_CHOICE(Options, agent.kills_hung)},
        {"policy", "0..5",
         "compute on a cgpu node: 0 fair share, 1 preemptive, 2 weighted, 3 fixed percentage, 4 soft, 5 "
         "native (default)",
         OPTION_TO_NUMBER(Options, policy, 0, COMPUTE_NUMBER_MAX)},
        {"max-inst", "N",
         "places on a card under policy 0, where the node's annotation says none (default 20)",
         OPTION_TO_CALL(take_default), .key = NODE_KEY_MAX_INST},
        {"prio-ratio", "PERCENT",
         "most of a card's time for its high-priority containers, 20 to 99, where the node's annotation says "
         "none",
         OPTION_TO_CALL(take_default), .key = NODE_KEY_PRIO_RATIO},
        {"max-pods-per-card", "N",
         "where the node's annotation says none (default: 20 on isolated nodes; 0: no ceiling); the "
         "scheduler needs the same",
         OPTION_TO_CALL(take_default), .key = NODE_KEY_MAX_PODS},
        {"allow-mixed", "true|false",
         "pods with and without compute percent on one node, where its annotation does not say; the "
         "scheduler needs the same",
         OPTION_TO_CALL(take_default), .key = NODE_KEY_ALLOW_MIXED},
        {"place-while-changing", "true|false",
         "place new slices while a change of mode waits, where the node's annotation does not say (default "
         "false)",
         OPTION_TO_CALL(take_default), .key = NODE_KEY_PLACE_WHILE_CHANGING},
        {"memory-isolation", "auto|preload|both",
         "whether the driver limits memory of pods, too, where the node's annotation does not say (default "
         "auto, which is preload: the library alone)",
         OPTION_TO_CALL(take_default), .key = NODE_KEY_MEMORY_ISOLATION},
        {"known-drivers-only", NULL,
         "isolate nothing with a driver that is newer than those this version knows",
         OPTION_TO_FLAG(Options, agent.known_drivers)},
        {"census", "MS", "how often the driver is asked what processes hold (default 1000)",
         OPTION_TO_NUMBER(Options, census, 1, CENSUS_MAX)},
        {"proc", "DIR", "where the host's processes are seen (default /proc)",
         OPTION_TO_TEXT(Options, agent.proc)},
        {"no-supervisor", NULL, "do not start the agent again when it was killed",
         OPTION_TO_FLAG(Options, no_supervisor)},
        OPTIONS_LOG,
};

static const OptionsTable table = {
        .program = "aliquot node",
        .usage = "--node-name N [OPTION...]",
        .about = "The node agent: offers this machine's cards to the kubelet in slices, and gives each "
                 "container the slice that its pod was promised.",
        .end = "Exit status: 0 ended by a signal, 2 wrong usage, 3 something broke.",
        .options = option_list,
        .n = ELEMENTSOF(option_list),
};

static int read_options(int argc, char **argv, Options *o) {
        int r = options_parse(&table, argc, argv, o, NULL);

        if (r != OPTIONS_GO)
                return r;
        if (!o->agent.node_name || o->agent.node_name[0] == '\0')
                return options_wrong(&table, "--node-name is required");
        if (o->agent.simulate && o->agent.simulate_dir)
                return options_wrong(&table,
                                     "--simulate and --simulate-dir: the cards are those of one of them");
        o->agent.policy = compute_policy_from_number(o->policy);
        o->agent.census = o->census * USEC_PER_MSEC;
        o->agent.access = o->runtime ? DEVICE_ACCESS_RUNTIME : DEVICE_ACCESS_CDI;
        return OPTIONS_GO;
}

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

        if (sigemptyset(&set) < 0 || sigaddset(&set, SIGTERM) < 0 || sigaddset(&set, SIGINT) < 0 ||
            sigaddset(&set, SIGCHLD) < 0 || sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        r = sd_event_add_signal(event, NULL, SIGTERM, on_signal, a);
        return r < 0 ? r : sd_event_add_signal(event, NULL, SIGINT, on_signal, a);
}

static int log_broken(const char *what) {
        log_error("%s", what);
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

static int run_agent(void *userdata) {
        _cleanup_(kube_config_freep) KubeConfig *config = NULL;
        _cleanup_(sd_event_unrefp) sd_event *event = NULL;
        _cleanup_(agent_freep) Agent *agent = NULL;
        Options *o = userdata;
        Fault fault = FAULT_NULL;
        int r;

        r = kube_config_load(o->kubeconfig, NULL, &config, &fault);
        if (r != 0)
                return log_broken(fault.text[0] ? fault.text : strerror(r < 0 ? -r : EINVAL));
        r = block_child_signal();
        if (r == 0)
                r = sd_event_new(&event);
        if (r < 0)
                return log_broken(strerror(-r));
        o->agent.config = config;
        r = agent_new(event, &o->agent, &agent, &fault);
        if (r < 0)
                return log_broken(fault.text);
        r = watch_arbiter(event, o);
        if (r == 0)
                r = catch_signals(event, agent);
        if (r < 0)
                return log_broken(strerror(-r));
        log_info("serving node=%s server=%s", o->agent.node_name, config->server);
        r = sd_event_loop(event);
        return r < 0 ? log_broken(strerror(-r)) : 0;
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
                               .unit = MEMORY_UNIT_GIB},
                     .policy = COMPUTE_NUMBER_MAX};
        int r;

        r = read_options(argc, argv, &o);
        if (r != OPTIONS_GO)
                return r;
        (void) signal(SIGPIPE, SIG_IGN); /* the reader of the log may end before the first line */
        log_info("aliquot node begins version=%s node=%s", ALIQUOT_VERSION, o.agent.node_name);
        file_raise_limit(FILES);
        node_arbiter_start(&o.arbiter, o.agent.slices, UINT64_C(1000000000) * o.agent.hung);
        o.agent.arbiter = o.arbiter.hear;
        supervise_on_other_child(on_ended);
        return o.no_supervisor ? run_agent(&o) : supervise(run_agent, &o);
}
