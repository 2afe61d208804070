/* SPDX-License-Identifier: Apache-2.0 */

/* `aliquot-sim`: a driver without cards, for programs that need one. */

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>

#include "base/file.h"
#include "base/message.h"
#include "gpu/cards/simulated_cards.h"
#include "sim/memory_limits.h"
#include "sim/meters.h"
#include "sim/serve.h"

enum { EXIT_DONE, EXIT_ANSWER_NO, EXIT_USAGE, EXIT_BROKEN };

enum {
        KEY_CARDS = 0x100,
        KEY_CGROUPS,
        KEY_DIR,
        KEY_DMEM,
        KEY_DRIVER,
        KEY_FOREGROUND,
        KEY_MEMORY_LIMITS,
        KEY_METERS,
        KEY_NAME,
        KEY_NO_LOCKS,
        KEY_RESERVED,
        KEY_SLICE,
        KEY_STATUS,
        KEY_VERSION
};

typedef struct Options {
        const char *cards, *dir, *driver, *name, *status, *meters, *limits, *cgroups, *dmem;
        uint32_t reserved_mib, slice_usec;
        bool foreground, no_locks;
} Options;

static const struct argp_option options_table[] = {
        {"cards", KEY_CARDS, "CARDS", 0,
         "what there is: 4xTesla-V100-SXM2-16GB:16160MiB, groups separated by commas", 0},
        {"cgroups", KEY_CGROUPS, "DIR", 0,
         "where the tree of cgroup v2 is mounted, for --memory-limits (default /sys/fs/cgroup)", 0},
        {"dir", KEY_DIR, "DIR", 0,
         "a directory, made when it is missing, where nvidiactl, nvidia0... will be", 0},
        {"dmem", KEY_DMEM, "DIR", 0,
         "where the files of the dmem controller stand, at the paths of the cgroups (default /sys/fs/cgroup)",
         0},
        {"driver", KEY_DRIVER, "VERSION", 0,
         "the driver's version, whose answers are given as far as they are known (default " SIM_VERSION
         ", or " SIM_VERSION_OLD_CARDS " where a card is a V100 or older)",
         0},
        {"foreground", KEY_FOREGROUND, NULL, 0, "do not go to the background when it is mounted", 0},
        {"memory-limits", KEY_MEMORY_LIMITS, "KIND[,WORD...]", 0,
         "which account of memory by cgroup the driver keeps from 615 on: none, misc or dmem; orphans: "
         "also of clients whose process has ended; forget: until the last file of a card is closed; "
         "reuse: a new cgroup inherits the limit of a removed one",
         0},
        {"meters", KEY_METERS, "DIR", 0,
         "print as JSON what the engines of the cards that are mounted there have done, and end", 0},
        {"name", KEY_NAME, "NODE", 0,
         "the node's name, which the cards' UUIDs are made from (default: localhost)", 0},
        {"no-locks", KEY_NO_LOCKS, NULL, 0, "its files cannot be locked, as those of gVisor", 0},
        {"reserved", KEY_RESERVED, "MIB", 0, "what the driver keeps of each card for itself (default 0)", 0},
        {"slice", KEY_SLICE, "US", 0,
         "how long a process has a card before the next one that has work (default 1000)", 0},
        {"status", KEY_STATUS, "DIR", 0,
         "print as JSON who holds what of the cards that are mounted there, and end", 0},
        {"version", KEY_VERSION, NULL, 0, "print the version", 0},
        {0},
};

static error_t check_options(const Options *o, struct argp_state *state) {
        if (!o->status && !o->meters && (!o->cards || !o->dir))
                argp_error(state, "--cards and --dir, or --status, or --meters, must be given");
        return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state) {
        Options *o = state->input;

        switch (key) {
        case KEY_CARDS:
                o->cards = arg;
                return 0;
        case KEY_CGROUPS:
                o->cgroups = arg;
                return 0;
        case KEY_DMEM:
                o->dmem = arg;
                return 0;
        case KEY_MEMORY_LIMITS:
                o->limits = arg;
                return 0;
        case KEY_DIR:
                o->dir = arg;
                return 0;
        case KEY_DRIVER:
                o->driver = arg;
                return 0;
        case KEY_FOREGROUND:
                o->foreground = true;
                return 0;
        case KEY_METERS:
                o->meters = arg;
                return 0;
        case KEY_NAME:
                o->name = arg;
                return 0;
        case KEY_NO_LOCKS:
                o->no_locks = true;
                return 0;
        case KEY_RESERVED:
                if (!str_to_u32(str_from(arg), &o->reserved_mib))
                        argp_error(state, "--reserved is \"%s\", must be a number of MiB", arg);
                return 0;
        case KEY_SLICE:
                if (!str_to_u32(str_from(arg), &o->slice_usec) || o->slice_usec == 0)
                        argp_error(state, "--slice is \"%s\", must be a number of microseconds", arg);
                return 0;
        case KEY_STATUS:
                o->status = arg;
                return 0;
        case KEY_VERSION:
                (void) printf("aliquot-sim %s (built with %s)\n", ALIQUOT_VERSION, __VERSION__);
                exit(fflush(stdout) == 0 ? EXIT_DONE : EXIT_BROKEN);
        case ARGP_KEY_ARG:
                argp_error(state, "unexpected argument \"%s\"", arg);
                return 0;
        case ARGP_KEY_END:
                return check_options(o, state);
        default:
                return ARGP_ERR_UNKNOWN;
        }
}

static const struct argp parser = {
        .options = options_table,
        .parser = parse_option,
        .doc = "Stands in for NVIDIA's kernel driver where there is none: system calls of any process on the "
               "files in DIR "
               "are answered as the driver would.\v"
               "Prints \"ready\" when its files can be used; SIGTERM unmounts it and ends. Needs FUSE and "
               "the right "
               "to mount: root, "
               "or root of a user namespace. Exit status: 0 done, 2 for wrong usage, 3 when something broke.",
};

static int say(int status, const char *text) {
        (void) fprintf(stderr, "aliquot-sim: %s\n", text);
        return status;
}

static int read_status(const char *dir, Buf *ret) {
        _cleanup_buf_ Buf path = BUF_NULL;
        int r;

        buf_appendf(&path, "%s/status", dir);
        r = buf_result(&path);
        return r == 0 ? file_read(path.data, 1 << 30, ret) : r;
}

static int print(const char *dir, int (*read)(const char *dir, Buf *ret)) {
        _cleanup_buf_ Buf text = BUF_NULL;
        int r = read(dir, &text);

        if (r < 0) {
                (void) fprintf(stderr, "aliquot-sim: %s: %s\n", dir,
                               r == -ENOENT ? "no aliquot-sim is mounted there" : strerror(-r));
                return EXIT_BROKEN;
        }
        if (fwrite(text.data, 1, text.len, stdout) != text.len || fflush(stdout) != 0)
                return say(EXIT_BROKEN, strerror(errno));
        return EXIT_DONE;
}

/* The process that started this one continues on this word, and opens the files at once. A server
 * that cannot send it ends. The number is valid: it is a child that was not waited for, or still
 * the parent. */
static _Noreturn void announce(const SimServer *server, pid_t serving, bool child, const char *dir) {
        int r = sim_server_look(server, dir);

        if (r == 0 && (puts("ready") < 0 || fflush(stdout) != 0))
                r = -errno;
        if (r == 0)
                _exit(EXIT_DONE);
        if (!child || getppid() == serving)
                (void) kill(serving, SIGTERM); /* it may have ended already */
        (void) fprintf(stderr, "aliquot-sim: %s: %s\n", dir, strerror(-r));
        _exit(EXIT_BROKEN);
}

/* A server in the background has no terminal and keeps none open. */
static int leave_terminal(void) {
        _cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);

        if (null < 0)
                return -errno;
        (void) setsid(); /* cannot fail: a child is not a group leader */
        if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0)
                return -errno;
        return 0;
}

/* Two processes: one serves, and the other reports when the files are there. In the background, the
 * child serves. */
static int divide(const Options *o, const SimServer *server) {
        const pid_t self = getpid();
        pid_t pid;

        if (o->foreground &&
            signal(SIGCHLD, SIG_IGN) == SIG_ERR) /* no process waits for the one that reported it */
                return -errno;
        pid = fork();
        if (pid < 0)
                return -errno;
        if ((pid == 0) == o->foreground)
                announce(server, pid == 0 ? self : pid, pid == 0, o->dir);
        return o->foreground ? 0 : leave_terminal();
}

static int serve(const Options *o, Sim *sim, const SimMemoryLimits *limits) {
        _cleanup_(sim_server_freep) SimServer *server = NULL;
        SimServerOptions options = {SIM_PACE_DEFAULT, o->no_locks,
                                    limits->account.kind != SIM_LIMITS_NONE ? limits->cgroups : NULL};
        Fault fault = FAULT_NULL;
        int r;

        options.pace.slice_nsec = (uint64_t) o->slice_usec * 1000;
        if (sim_server_new(sim, o->dir, &options, &server, &fault) < 0)
                return say(EXIT_BROKEN, fault.text);
        r = divide(o, server);
        if (r == 0)
                r = sim_server_run(server);
        if (r < 0)
                (void) fprintf(stderr, "aliquot-sim: %s: %s\n", o->dir, strerror(-r));
        return r < 0 ? EXIT_BROKEN : EXIT_DONE;
}

/* The loop of the server takes the signals that end it. */
static int block_signals(void) {
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGTERM);
        (void) sigaddset(&set, SIGINT);
        (void) sigaddset(&set, SIGHUP);
        if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        return 0;
}

static void warn_of_old_cards(const SimRelease *release, const CardList *cards) {
        const char *model = sim_release_cannot_drive(release, cards);

        if (model)
                (void) fprintf(stderr,
                               "aliquot-sim: no driver %s serves a %s: %d is the last branch for cards "
                               "before Turing\n",
                               release->version, model, SIM_BRANCH_OLD_CARDS);
}

static int start(const Options *o) {
        _cleanup_(card_list_done) CardList cards = {0};
        Fault fault = FAULT_NULL;
        SimRelease release = {.facts = NULL};
        SimMemoryLimits limits;
        Sim sim;
        int r;

        r = cards_simulate(str_from(o->cards), str_from(o->name), &cards, &fault);
        if (r > 0)
                return say(EXIT_USAGE, fault.text);
        if (o->driver && sim_release_parse(o->driver, &release, &fault) != 0)
                return say(EXIT_USAGE, fault.text);
        if (sim_memory_limits_parse(o->limits, o->cgroups, o->dmem, &limits) < 0)
                return say(EXIT_USAGE, "--memory-limits must be a list such as misc,reuse");
        if (r == 0)
                r = sim_init(&sim, &cards, (uint64_t) o->reserved_mib << 20);
        if (r == -E2BIG)
                return say(EXIT_USAGE, "a driver has at most 32 cards");
        if (r == -ERANGE)
                return say(EXIT_USAGE, "--reserved is more than a card has");
        if (r < 0)
                return say(EXIT_BROKEN, strerror(-r));
        if (o->driver) {
                warn_of_old_cards(&release, &cards);
                sim.release = release;
        }
        sim.account.o = limits.account;
        r = serve(o, &sim, &limits);
        sim_done(&sim);
        return r;
}

int main(int argc, char **argv) {
        Options o = {.name = "localhost", .slice_usec = 1000};

        if (file_hold_standard() < 0)
                return EXIT_BROKEN;
        message_guard();
        argp_err_exit_status = EXIT_USAGE;
        if (argp_parse(&parser, argc, argv, 0, NULL, &o) != 0)
                return EXIT_USAGE;
        if (o.status)
                return print(o.status, read_status);
        if (o.meters)
                return print(o.meters, sim_meters_write);
        if (block_signals() < 0)
                return say(EXIT_BROKEN, strerror(errno));
        return start(&o);
}
