/* SPDX-License-Identifier: Apache-2.0 */

/* aliquot-run: a command in a slice of a card, on one machine and without Kubernetes. It needs libc
 * only, because a GPU machine often has nothing else. */

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arbiter/respawn.h"
#include "base/file.h"
#include "base/quantity.h"
#include "cli/run/command.h"
#include "cli/run/gate_probe.h"
#include "cli/run/programs.h"
#include "slice/container_paths.h"

enum { EXIT_USAGE = 2, EXIT_NO_SLICE = 125, NAMES = 1000 };

typedef struct Options {
        SliceRequest request;
        const char *unit, *slicedir, *simulate;
        char **command;
} Options;

static const char usage[] =
        "Usage: aliquot run [OPTION...] --gpu-mem N -- COMMAND...\n"
        "\n"
        "  --gpu-mem N         memory of each card, in units\n"
        "  --gpu-mem-unit U    the unit: GiB (default), 128MiB...\n"
        "  --gpu-core P        percent of each card's compute, in steps of 5\n"
        "  --gpu-count N       so many cards, each with that much; default 1\n"
        "  --gpu CARD          this card: its index or UUID\n"
        "  --simulate CARDS    on simulated cards: 2xTesla-V100-SXM2-16GB:16160MiB\n"
        "  --board DIR         where slices are counted; default " SLICEDIR_DEFAULT "\n"
        "\n"
        "Exit status: the command's; 125 when the slice could not be had, 126 when the command cannot be "
        "run, 127 when it is not\n"
        "there, 2 for wrong usage.\n";

static int wrong(const char *option, const char *value, const char *rule) {
        (void) fprintf(stderr, "aliquot run: --%s %s: %s\n", option, value, rule);
        return EXIT_USAGE;
}

static int take_number(const char *option, const char *value, uint64_t low, uint64_t high, uint64_t *ret) {
        char rule[96];

        /* plain digits only: 2Gi units, cards or percent is never meant */
        if (value[strspn(value, "0123456789")] == '\0' && quantity_parse(str_from(value), ret) == 0 &&
            *ret >= low && *ret <= high)
                return 0;
        (void) snprintf(rule, sizeof rule, "must be a whole number from %llu to %llu",
                        (unsigned long long) low, (unsigned long long) high);
        return wrong(option, value, rule);
}

enum {
        OPTION_MEM = 1,
        OPTION_UNIT,
        OPTION_CORE,
        OPTION_COUNT,
        OPTION_GPU,
        OPTION_SIMULATE,
        OPTION_BOARD,
        OPTION_HELP
};

static const struct option options[] = {
        {"gpu-mem", required_argument, NULL, OPTION_MEM},
        {"gpu-mem-unit", required_argument, NULL, OPTION_UNIT},
        {"gpu-core", required_argument, NULL, OPTION_CORE},
        {"gpu-count", required_argument, NULL, OPTION_COUNT},
        {"gpu", required_argument, NULL, OPTION_GPU},
        {"simulate", required_argument, NULL, OPTION_SIMULATE},
        {"board", required_argument, NULL, OPTION_BOARD},
        {"help", no_argument, NULL, OPTION_HELP},
        {NULL, 0, NULL, 0},
};

static int take_core(Options *o, const char *value) {
        uint64_t n = 0;
        int r = take_number("gpu-core", value, 0, 100, &n);

        if (r == 0 && n % 5 != 0)
                r = wrong("gpu-core", value, "must be a multiple of 5");
        o->request.core = (uint32_t) n;
        return r;
}

static int take_option(Options *o, int option) {
        uint64_t n = 0;
        int r = 0;

        switch (option) {
        case OPTION_MEM:
                return take_number("gpu-mem", optarg, 1, UINT32_MAX, &o->request.mem);
        case OPTION_UNIT:
                o->unit = optarg;
                o->request.unit_mib = slicing_unit(optarg);
                return o->request.unit_mib > 0
                               ? 0
                               : wrong("gpu-mem-unit", optarg, "must be GiB, MiB or a multiple like 128MiB");
        case OPTION_CORE:
                return take_core(o, optarg);
        case OPTION_COUNT:
                r = take_number("gpu-count", optarg, 1, SLICEDIR_CARDS_MAX, &n);
                o->request.cards = (uint32_t) n;
                return r;
        case OPTION_GPU:
                o->request.only = optarg;
                return 0;
        case OPTION_SIMULATE:
                o->simulate = optarg;
                return 0;
        case OPTION_BOARD:
                o->slicedir = optarg;
                return 0;
        default:
                return EXIT_USAGE; /* getopt has printed why */
        }
}

/* 0, or the exit status plus one when there is nothing more to do. */
static int take_options(int argc, char **argv, Options *o) {
        int option, r = 0;

        argv[0] = (char *) "aliquot run"; /* the name in getopt's messages */
        while (r == 0 && (option = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
                if (option == OPTION_HELP || option == 'h') {
                        (void) fputs(usage, stdout);
                        return fflush(stdout) == 0 ? 1 : 4;
                }
                r = take_option(o, option);
        }
        if (r == 0 && o->request.mem == 0) {
                (void) fputs("aliquot run: --gpu-mem is missing\n", stderr);
                r = EXIT_USAGE;
        }
        if (r == 0 && optind >= argc) {
                (void) fputs("aliquot run: there is no command\n", stderr);
                r = EXIT_USAGE;
        }
        o->command = argv + optind;
        return r == 0 ? 0 : r + 1;
}

/* ---- the slice ---- */

typedef struct Taken {
        char id[SLICEDIR_ID_SIZE];
        const HostCard *cards[SLICEDIR_CARDS_MAX];
        int owner;
} Taken;

static void describe(const Options *o, const HostCards *m, const HostCard *card, const char *id,
                     SliceSpec *ret) {
        *ret = (SliceSpec){
                .limit = slicing_visible_bytes(card->bytes, o->request.mem, o->request.unit_mib),
                .card_bytes = card->bytes,
                .group_bytes = SLICE_GROUP_BYTES,
                .card = card->index,
                .request = {.percent = o->request.core},
                .uuid = card->uuid,
                .container = id,
                .ctl = m->ctl,
                .device = card->device,
                .uvm = m->uvm,
        };
}

/* Another owner may have our number: a process in another pid namespace, or one left from an
 * earlier run. Such owners are alive, because counting the slices removed the dead ones. */
static int create_named(Slicedir *b, const char *owner, const SliceSpec *specs, uint32_t n, Taken *ret,
                        Fault *fault) {
        int r = -EEXIST;

        for (unsigned i = 1; r == -EEXIST && i <= NAMES; i++) {
                (void) snprintf(ret->id, sizeof ret->id, i == 1 ? "run-%ld" : "run-%ld-%u", (long) getpid(),
                                i);
                r = slicedir_create(b, ret->id, owner, specs, n, &ret->owner, fault);
        }
        return r;
}

static int create_slices(const Options *o, HostCards *m, Slicedir *b, Taken *ret, Fault *fault) {
        SliceSpec specs[SLICEDIR_CARDS_MAX];
        uint32_t chosen[SLICEDIR_CARDS_MAX];
        char owner[SLICEDIR_OWNER_SIZE];
        int r;

        r = slicing_choose(m, &o->request, chosen, fault);
        if (r != 0)
                return r;
        (void) snprintf(owner, sizeof owner, "run %ld %s", (long) getpid(), o->command[0]);
        owner[strcspn(owner, "\n")] = '\0';
        for (uint32_t i = 0; i < o->request.cards; i++) {
                ret->cards[i] = &m->cards[chosen[i]];
                describe(o, m, ret->cards[i], ret->id, &specs[i]); /* the name follows later */
        }
        return create_named(b, owner, specs, o->request.cards, ret, fault);
}

/* A user without root has a slice directory of its own. It sees root's directory but cannot lock
 * it, so two runs that start at the same moment may not see each other. Directories of other users
 * are not counted. */
static int count(const Options *o, HostCards *m, Slicedir *b) {
        _cleanup_(slicedir_done) Slicedir roots = SLICEDIR_NULL;
        int r = host_cards_count_slices(m, b);

        if (r < 0 || o->slicedir || geteuid() == 0 ||
            slicedir_open(&roots, SLICEDIR_DEFAULT, false, NULL) < 0)
                return r;
        return host_cards_count_slices(m, &roots);
}

static int take(const Options *o, HostCards *m, Slicedir *b, Taken *ret, Fault *fault) {
        int r;

        r = slicedir_lock(b, fault);
        if (r < 0)
                return r;
        r = count(o, m, b);
        if (r < 0)
                r = fault_set(fault, r, "cannot read the slice directory: %s", strerror(-r));
        else
                r = create_slices(o, m, b, ret, fault);
        slicedir_unlock(b);
        return r;
}

static void release(Slicedir *b, Taken *t) {
        Fault ignored = FAULT_NULL;

        (void) close(t->owner);
        if (slicedir_lock(b, &ignored) < 0)
                return; /* the next run finds that the slice has no owner */
        /* processes that the command left behind may still hold it */
        slicedir_remove_dead(b, t->id);
        slicedir_unlock(b);
}

/* Every run with a compute limit starts an arbiter. One of them serves the slice directory, and the
 * others wait for its end. -1: no arbiter. */
static int start_arbiter(const Options *o, const Slicedir *b, pid_t *ret_pid) {
        int stop = -1, r = o->request.core > 0 ? respawn_daemon(b->path, &stop) : -ENOENT;

        *ret_pid = r > 0 ? r : 0;
        return stop;
}

static void end_arbiter(int stop, pid_t pid) {
        if (stop < 0)
                return;
        (void) close(stop);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                ;
}

static int no_slice(const Fault *fault) {
        (void) fprintf(stderr, "aliquot run: %s\n", fault->text);
        return EXIT_NO_SLICE;
}

/* The command may change its directory, and the gate accepts only absolute paths. */
static int make_absolute(Slicedir *b, Fault *fault) {
        char path[SLICEDIR_PATH_SIZE];

        if (!realpath(b->path, path))
                return fault_set(fault, -errno, "cannot resolve %s: %s", b->path, strerror(errno));
        (void) snprintf(b->path, sizeof b->path, "%s", path);
        return 0;
}

/* Refuses to run inside a slice: the outer gate would count the inner slice's memory, or not see it
 * at all. */
static int is_inside(Fault *fault) {
        const char *slices = slice_container_pages();

        if (!slices)
                slices = secure_getenv("ALIQUOT_SLICES");
        return slices && slices[0]
                       ? fault_set(fault, -EBUSY,
                                   "this is in a slice already (%s), and there are none within one", slices)
                       : 0;
}

/* The library knows by locks how long memory of the card lives, and refuses memory without them. */
static int check_locks(const char *devices, Fault *fault) {
        char path[LOCATE_PATH + sizeof "/nvidiactl"];
        int r;

        (void) snprintf(path, sizeof path, "%s/nvidiactl", devices);
        r = file_check_locks(path);
        return r == -ENOLCK || r == -EINVAL
                       ? fault_set(fault, r,
                                   "%s cannot be locked (as in gVisor), so memory cannot be counted", path)
                       : 0; /* reading the cards reports files that are missing */
}

static int run(const Options *o, const Programs *programs) {
        _cleanup_(slicedir_done) Slicedir slicedir = SLICEDIR_NULL;
        _cleanup_free_ char *slices = NULL;
        Fault fault = FAULT_NULL;
        HostCards machine;
        Taken taken;
        pid_t arbiter;
        int r, stop;

        r = slicedir_open(&slicedir, o->slicedir, true, &fault);
        if (r == 0)
                r = make_absolute(&slicedir, &fault);
        if (r == 0)
                r = check_locks(programs->devices, &fault);
        if (r == 0)
                r = host_cards_read(programs->devices, programs->nvml, &machine, &fault);
        if (r == 0)
                r = take(o, &machine, &slicedir, &taken, &fault);
        if (r != 0)
                return no_slice(&fault);
        if (asprintf(&slices, "%s/%s", slicedir.path, taken.id) < 0)
                return no_slice(&(Fault){.text = "out of memory"});
        stop = start_arbiter(o, &slicedir, &arbiter);
        r = command_run(&(Command){.gate = programs->gate,
                                   .slices = slices,
                                   .devices = programs->devices,
                                   .owner = taken.owner,
                                   .request = &o->request,
                                   .unit = o->unit,
                                   .cards = taken.cards,
                                   .n_cards = o->request.cards,
                                   .command = o->command},
                        &fault);
        end_arbiter(stop, arbiter);
        release(&slicedir, &taken);
        return r < 0 ? no_slice(&fault) : r;
}

int main(int argc, char **argv) {
        Options o = {.request = {.unit_mib = 1024, .cards = 1}, .unit = "GiB"};
        _cleanup_(programs_done) Programs programs = PROGRAMS_NULL;
        Fault fault = FAULT_NULL;
        int r;

        if (file_hold_standard() < 0)
                return EXIT_NO_SLICE;
        if (gate_probe_main(argc, argv, &r))
                return r;
        r = take_options(argc, argv, &o);
        if (r != 0)
                return r - 1;
        if (is_inside(&fault) != 0 || programs_find(o.simulate, &programs, &fault) != 0)
                return no_slice(&fault);
        return run(&o, &programs);
}
