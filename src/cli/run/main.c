/* SPDX-License-Identifier: Apache-2.0 */

/* aliquot-run: runs a command in a slice of a card, on one machine and without Kubernetes. It needs
 * libc only, because a GPU machine often has nothing else. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arbiter/respawn.h"
#include "base/file.h"
#include "base/message.h"
#include "base/options.h"
#include "base/selinux.h"
#include "cli/run/cdi_file.h"
#include "cli/run/command.h"
#include "cli/run/gate_probe.h"
#include "cli/run/programs.h"
#include "cli/run/size_options.h"
#include "gpu/cards/simulated_cards.h"
#include "slice/container_paths.h"

enum { EXIT_NO_SLICE = 125, NAMES = 1000 };

typedef struct Options {
        SizeOptions size; /* must be the first member (size_options.h) */
        uint32_t cards;
        const char *slicedir, *simulate;
        const char *cdi, *cdi_dir;
        char **command;
} Options;

static int take_cdi(void *options, const Option *option, const char *text, Fault *fault) {
        Options *o = options;

        o->cdi = text;
        return cdi_file_is_name(text) ? 0
                                      : fault_set(fault, 1,
                                                  "must be letters, digits, _ and -, first a letter, last a "
                                                  "letter or digit, 63 characters at most");
}

static const Option option_list[] = {
        SIZE_OPTIONS("percent of each card's compute, in steps of 5: 40 or 40%"),
        {"gpu-count", "N", "so many cards, each with that much (default 1)",
         OPTION_TO_NUMBER(Options, cards, 1, SLICEDIR_CARDS_MAX)},
        {"gpu", "CARD", "this card: its index or UUID", OPTION_TO_TEXT(Options, size.request.only)},
        {"simulate", "CARDS", "on simulated cards: 2xTesla-V100-SXM2-16GB:16160MiB",
         OPTION_TO_TEXT(Options, simulate)},
        {"cdi", "NAME",
         "the slice is called NAME, and is for containers with the CDI device aliquot.dev/slice=NAME, which "
         "the command starts",
         OPTION_TO_CALL(take_cdi)},
        {"cdi-dir", "DIR", "where the device's file is written (default " CDI_FILE_DIR ")",
         OPTION_TO_TEXT(Options, cdi_dir)},
        {"slices", "DIR", "where slices are counted (default " SLICEDIR_DEFAULT ")",
         OPTION_TO_TEXT(Options, slicedir)},
};

static const OptionsTable table = {
        .program = "aliquot run",
        .usage = "--gpu-mem N [OPTION...] -- COMMAND...",
        .about = "Takes a slice of a card, runs the command in it, and gives the slice back.",
        .end = "Exit status: the command's; 125 when the slice could not be had, 126 when the command cannot "
               "be run, 127 when it is not there, 2 for wrong usage.",
        .options = option_list,
        .n = ELEMENTSOF(option_list),
        .takes_words = true,
};

/* Checks the cards before anything is started. Lack of memory is left to the simulator, which
 * reports it. */
static int check_simulated(const char *cards) {
        _cleanup_(card_list_done) CardList made = {0};
        Fault fault = FAULT_NULL;

        return cards && cards_simulate(str_from(cards), STR(""), &made, &fault) > 0
                       ? options_wrong(&table, "--simulate: %s", fault.text)
                       : OPTIONS_GO;
}

static int read_options(int argc, char **argv, Options *o) {
        int r = options_parse(&table, argc, argv, o, &o->command);

        if (r != OPTIONS_GO)
                return r;
        if (!size_options_has_mem(&o->size))
                return options_wrong(&table, "--gpu-mem is missing");
        r = size_options_finish(&table, &o->size);
        if (r != OPTIONS_GO)
                return r;
        if (!o->command[0])
                return options_wrong(&table, "there is no command");
        if (o->cdi && o->simulate)
                return options_wrong(&table,
                                     "--cdi goes with cards that others see, too: those of the driver, or "
                                     "of an aliquot-sim that ALIQUOT_SIM_DIR names");
        r = check_simulated(o->simulate);
        o->size.request.cards = o->cards;
        return r;
}

/* ---- the slice ---- */

typedef struct Taken {
        char id[SLICEDIR_ID_SIZE];
        const HostCard *cards[SLICEDIR_CARDS_MAX];
        int owner;
} Taken;

/* Writes the request as the user wrote it, for the message of a refusal. The default unit is not
 * written. */
static void write_asked(const SizeOptions *size, char ret[static SLICE_ASKED]) {
        bool unit = size->units > 0 && strcmp(size->unit, "GiB") != 0;

        (void) snprintf(ret, SLICE_ASKED, "--gpu-mem %s%s%s", size->mem, unit ? " --gpu-mem-unit " : "",
                        unit ? size->unit : "");
}

/* Returns standard error as a file, so that the library can tell it from data that a program writes
 * (preload/memory/gate.h). */
static SliceFile own_log(void) {
        SliceFile log = {.rdev = 0};
        struct stat st;

        if (fstat(STDERR_FILENO, &st) == 0)
                log = (SliceFile){.dev = st.st_dev, .ino = st.st_ino};
        return log;
}

static void describe_slice(const Options *o, const HostCards *m, const HostCard *card, const char *id,
                           SliceSpec *ret) {
        *ret = (SliceSpec){
                .limit = slicing_visible_bytes(card->bytes, o->size.request.mem, o->size.request.unit_mib),
                .card_bytes = card->bytes,
                .group_bytes = SLICE_GROUP_BYTES,
                .card = card->index,
                .flags = SLICE_FLAG_SAY,
                .log = own_log(),
                .request = {.percent = o->size.request.core},
                .uuid = card->uuid,
                .container = id,
                .ctl = m->ctl,
                .device = card->device,
                .uvm = m->uvm,
        };
        write_asked(&o->size, ret->asked);
}

/* Creates a slice with a name of its own. Another owner may have our number: a process in another
 * pid namespace, or one left from an earlier run. Such owners are alive, because counting the
 * slices removed the dead ones. */
static int create_numbered(Slicedir *b, const char *owner, const SliceSpec *specs, uint32_t n, Taken *ret,
                           Fault *fault) {
        int r = -EEXIST;

        for (unsigned i = 1; r == -EEXIST && i <= NAMES; i++) {
                (void) snprintf(ret->id, sizeof ret->id, i == 1 ? "run-%ld" : "run-%ld-%u", (long) getpid(),
                                i);
                r = slicedir_create(b, ret->id, owner, specs, n, &ret->owner, fault);
        }
        return r;
}

static int create_named(Slicedir *b, const char *name, const char *owner, const SliceSpec *specs, uint32_t n,
                        Taken *ret, Fault *fault) {
        int r;

        (void) snprintf(ret->id, sizeof ret->id, "%s", name);
        r = slicedir_create(b, ret->id, owner, specs, n, &ret->owner, fault);
        return r == -EEXIST
                       ? fault_set(fault, r,
                                   "there is a slice with the name %s in %s already; `aliquot smi` lists "
                                   "it",
                                   name, b->path)
                       : r;
}

/* Warns of memory that no slice counts. Another user may hold it, or a program that started without
 * the library. */
static void warn_of_outside(const HostCard *card, uint64_t limit) {
        uint64_t outside = host_cards_outside(card), left = card->bytes - card->taken;

        left = left > outside ? left - outside : 0;
        if (left < limit)
                message_write(
                        "aliquot run: processes outside of slices hold %llu MiB of gpu%u; of the %llu MiB "
                        "of this slice %llu are free now",
                        (unsigned long long) (outside >> 20), card->index, (unsigned long long) (limit >> 20),
                        (unsigned long long) (left >> 20));
}

static int create_slices(const Options *o, HostCards *m, Slicedir *b, Taken *ret, Fault *fault) {
        SliceSpec specs[SLICEDIR_CARDS_MAX];
        uint32_t chosen[SLICEDIR_CARDS_MAX];
        char owner[SLICEDIR_OWNER_SIZE];
        int r;

        r = slicing_choose(m, &o->size.request, chosen, fault);
        if (r != 0)
                return r;
        (void) snprintf(owner, sizeof owner, SLICEDIR_RUN "%ld %s", (long) getpid(), o->command[0]);
        owner[strcspn(owner, "\n")] = '\0';
        for (uint32_t i = 0; i < o->size.request.cards; i++) {
                ret->cards[i] = &m->cards[chosen[i]];
                describe_slice(o, m, ret->cards[i], ret->id, &specs[i]); /* ret->id is filled in later */
        }
        r = o->cdi ? create_named(b, o->cdi, owner, specs, o->size.request.cards, ret, fault)
                   : create_numbered(b, owner, specs, o->size.request.cards, ret, fault);
        for (uint32_t i = 0; i < o->size.request.cards && r == 0; i++)
                warn_of_outside(ret->cards[i], specs[i].limit);
        return r;
}

/* Counts what slices reserve of the cards. A user without root has a slice directory of its own. It
 * sees root's directory but cannot lock it, so two runs that start at the same moment may not see
 * each other. Directories of other users are not counted. */
static int count_slices(const Options *o, HostCards *m, Slicedir *b) {
        _cleanup_(slicedir_done) Slicedir roots = SLICEDIR_NULL;
        int r = host_cards_count_slices(m, b, NULL);

        if (r < 0 || o->slicedir || geteuid() == 0 ||
            slicedir_open(&roots, SLICEDIR_DEFAULT, false, NULL) < 0)
                return r;
        return host_cards_count_slices(m, &roots, NULL);
}

static int take_slices(const Options *o, HostCards *m, Slicedir *b, Taken *ret, Fault *fault) {
        int r;

        r = slicedir_lock(b, fault);
        if (r < 0)
                return r;
        r = count_slices(o, m, b);
        if (r < 0)
                r = fault_set(fault, r, "cannot read the slice directory: %s", strerror(-r));
        else
                r = create_slices(o, m, b, ret, fault);
        slicedir_unlock(b);
        return r;
}

static void release_slices(Slicedir *b, Taken *t) {
        Fault ignored = FAULT_NULL;

        (void) close(t->owner);
        if (slicedir_lock(b, &ignored) < 0)
                return; /* the next run finds that the slice has no owner */
        /* processes that the command left behind may still hold it */
        slicedir_remove_dead(b, t->id);
        slicedir_unlock(b);
}

/* Starts an arbiter if compute is limited. One arbiter serves the slice directory, and the others
 * wait for its end. Returns the descriptor that ends it; -1: there is none. */
static int start_arbiter(const Options *o, const Slicedir *b, pid_t *ret_pid) {
        int stop = -1, r = o->size.request.core > 0 ? respawn_daemon(b->path, -1, 0, &stop) : -ENOENT;

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
        message_write("aliquot run: %s", fault->text);
        return EXIT_NO_SLICE;
}

/* Makes the path absolute: the command may change its directory, and the library accepts no other
 * paths. */
static int make_absolute(Slicedir *b, Fault *fault) {
        char path[SLICEDIR_PATH_SIZE];

        if (!realpath(b->path, path))
                return fault_set(fault, -errno, "cannot resolve %s: %s", b->path, strerror(errno));
        (void) snprintf(b->path, sizeof b->path, "%s", path);
        return 0;
}

/* Opens the slice directory. Makes the last folder of --slices, but none above it, so that a path
 * with a typo is refused. */
static int open_slicedir(const char *path, Slicedir *ret, Fault *fault) {
        const char *slash = path ? strrchr(path, '/') : NULL;
        char above[SLICEDIR_PATH_SIZE];

        if (slash && slash > path) {
                (void) snprintf(above, sizeof above, "%.*s", (int) (slash - path), path);
                if (access(above, F_OK) < 0)
                        return fault_set(fault, -errno, "--slices %s: cannot look at %s: %s", path, above,
                                         strerror(errno));
        }
        return slicedir_open(ret, path, true, fault);
}

/* Refuses to run inside a slice: the outer slice would count the inner one's memory, or not see it
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

/* Checks for locks, by which the library knows how long memory of the card lives. Without them it
 * refuses memory. */
static int check_locks(const char *devices, Fault *fault) {
        char path[LOCATE_PATH + sizeof "/nvidiactl"];
        int r;

        (void) snprintf(path, sizeof path, "%s/nvidiactl", devices);
        r = file_check_locks(path);
        return r == -ENOLCK || r == -EINVAL
                       ? fault_set(fault, r,
                                   "%s cannot be locked (as in gVisor), so memory cannot be counted", path)
                       : 0; /* host_cards_read() reports files that are missing */
}

static int run_command(const Options *o, const Programs *programs, Slicedir *b, const Command *c,
                       Fault *fault) {
        CdiFile cdi = {.path = ""};
        int r = 0, stop;
        pid_t arbiter;

        if (o->cdi)
                r = cdi_file_write(o->cdi_dir ? o->cdi_dir : CDI_FILE_DIR, o->cdi, c, b, programs->nvml, &cdi,
                                   fault);
        if (r < 0)
                return r;
        stop = start_arbiter(o, b, &arbiter);
        r = command_run(c, fault);
        end_arbiter(stop, arbiter);
        cdi_file_remove(&cdi);
        return r;
}

static int run_in_slice(const Options *o, const Programs *programs, Slicedir *slicedir) {
        _cleanup_free_ char *slices = NULL;
        Fault fault = FAULT_NULL;
        HostCards machine;
        Taken taken;
        int r;

        r = check_locks(programs->devices, &fault);
        if (r == 0)
                r = host_cards_read(programs->devices, programs->nvml, &machine, &fault);
        /* the slice gets a tmpfs, which limits what a container writes */
        slicedir->proc = o->cdi ? "/proc" : NULL;
        slicedir->labels = o->cdi && selinux_is_on("/proc");
        if (r == 0)
                r = take_slices(o, &machine, slicedir, &taken, &fault);
        if (r != 0)
                return no_slice(&fault);
        if (asprintf(&slices, "%s/%s", slicedir->path, taken.id) < 0)
                return no_slice(&(Fault){.text = "out of memory"});
        r = run_command(o, programs, slicedir,
                        &(Command){.gate = programs->gate,
                                   .outside = o->cdi != NULL,
                                   .slices = slices,
                                   .devices = programs->devices,
                                   .owner = taken.owner,
                                   .request = &o->size.request,
                                   .unit = o->size.unit,
                                   .cards = taken.cards,
                                   .n_cards = o->size.request.cards,
                                   .command = o->command},
                        &fault);
        release_slices(slicedir, &taken);
        return r < 0 ? no_slice(&fault) : r;
}

int main(int argc, char **argv) {
        Options o = {.cards = 1};
        _cleanup_(slicedir_done) Slicedir slicedir = SLICEDIR_NULL;
        _cleanup_(programs_done) Programs programs = PROGRAMS_NULL;
        Fault fault = FAULT_NULL;
        int r;

        if (file_hold_standard() < 0)
                return EXIT_NO_SLICE;
        message_guard();
        if (gate_probe_main(argc, argv, &r))
                return r;
        r = read_options(argc, argv, &o);
        if (r != OPTIONS_GO)
                return r;
        if (is_inside(&fault) != 0 || open_slicedir(o.slicedir, &slicedir, &fault) != 0 ||
            make_absolute(&slicedir, &fault) != 0 ||
            programs_find(o.simulate, &slicedir, &programs, &fault) != 0)
                return no_slice(&fault);
        return run_in_slice(&o, &programs, &slicedir);
}
