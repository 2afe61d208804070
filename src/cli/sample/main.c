/* SPDX-License-Identifier: Apache-2.0 */

/* aliquot-sample: uses a card as CUDA programs do, through the driver API, for samples and for a
 * first look at a node. It is built without CUDA and needs only functions of libc that every image
 * has. */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/message.h"
#include "base/options.h"
#include "cli/sample/crew.h"
#include "cli/sample/cuda.h"

enum { EXIT_DONE, EXIT_CUDA };

enum { SECONDS_MAX = 1000000, KERNEL_MAX = 10000000, PROCESSES_MAX = 64, MIB_MAX = 1 << 30 };

typedef struct Options {
        CrewOrder order;                    /* order.seconds 0: no work */
        uint32_t mib, kernel_us, processes; /* kernel_us and processes 0: not given */
        uint32_t copy_mib;                  /* 0: no copies */
        bool refused;
} Options;

static int take_seconds(void *options, const Option *option, const char *text, Fault *fault) {
        Options *o = options;
        char *end = NULL;

        o->order.seconds = strtod(text, &end);
        if (((text[0] >= '0' && text[0] <= '9') || text[0] == '.') && *end == '\0' && o->order.seconds > 0 &&
            o->order.seconds <= SECONDS_MAX)
                return 0;
        return fault_set(fault, 1, "must be a number above 0, at most %d", SECONDS_MAX);
}

static const Option option_list[] = {
        {"gpu-mem-mib", "M", "allocate M MiB on the first card, and print what CUDA says of its memory",
         OPTION_TO_NUMBER(Options, mib, 1, MIB_MAX)},
        {"refused", NULL, "with --gpu-mem-mib: succeed when CUDA is out of memory, and fail when it is not",
         OPTION_TO_FLAG(Options, refused)},
        {"seconds", "S",
         "let the card work for S seconds, in blocks of a tenth of a second of its time, and print a line "
         "for "
         "each; alone and without a limit, ten in a second",
         OPTION_TO_CALL(take_seconds)},
        {"copy-mib", "M",
         "copy M MiB to the card, ten times or for S seconds, and print a line with the time of each: a "
         "limit "
         "of compute delays copies, too",
         OPTION_TO_NUMBER(Options, copy_mib, 1, MIB_MAX)},
        {"kernel-us", "K", "by kernels of K microseconds (default 1000)",
         OPTION_TO_NUMBER(Options, kernel_us, 1, KERNEL_MAX)},
        {"processes", "N", "in N processes at once (default 1)",
         OPTION_TO_NUMBER(Options, processes, 1, PROCESSES_MAX)},
};

static const OptionsTable table = {
        .program = "aliquot-sample",
        .usage = "--gpu-mem-mib M [-- COMMAND...] | OPTION...",
        .about = "Uses a card as CUDA programs do: holds memory, while COMMAND runs, or lets the card work.",
        .end = "Exit status: 0, or the command's; 1 when CUDA refuses something, which is printed with its "
               "name and number; 2 for wrong usage.",
        .options = option_list,
        .n = sizeof option_list / sizeof option_list[0],
        .takes_words = true,
};

static int run_command(char **command) {
        int status;
        pid_t pid;

        (void) fflush(stdout); /* so that this output comes before the command's */
        pid = fork();
        if (pid == 0) {
                (void) execvp(command[0], command);
                perror(command[0]);
                _exit(127);
        }
        if (pid < 0 || waitpid(pid, &status, 0) < 0) {
                perror("aliquot-sample");
                return EXIT_CUDA;
        }
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int hold(const Options *o, char **command) {
        Cuda cuda;
        int r;

        r = cuda_open(&cuda);
        if (r == 0)
                r = cuda_allocate(&cuda, o->order.mib);
        if (o->refused && r == 0)
                (void) fprintf(stderr, "aliquot-sample: %lu MiB were not refused\n", o->order.mib);
        if (o->refused)
                return r == CUDA_OUT_OF_MEMORY ? EXIT_DONE : EXIT_CUDA;
        if (r == 0)
                r = cuda_print_memory(&cuda);
        if (r != 0)
                return EXIT_CUDA;
        return command[0] ? run_command(command) : EXIT_DONE;
}

static int copy(const Options *o) {
        Cuda cuda;
        int r = cuda_open(&cuda);

        if (r == 0)
                r = cuda_print_copies(&cuda, o->copy_mib, o->order.seconds);
        return r == 0 ? EXIT_DONE : EXIT_CUDA;
}

static int check(Options *o, char **command) {
        if (o->copy_mib > 0 &&
            (o->mib > 0 || o->refused || o->kernel_us > 0 || o->processes > 0 || command[0]))
                return options_wrong(&table, "--copy-mib goes with --seconds alone");
        if (o->order.seconds <= 0 && (o->kernel_us > 0 || o->processes > 0))
                return options_wrong(&table, "--seconds is missing");
        if (o->order.seconds <= 0 && o->mib == 0 && o->copy_mib == 0)
                return options_wrong(&table, "--gpu-mem-mib or --seconds is missing");
        if (o->refused && (o->order.seconds > 0 || command[0]))
                return options_wrong(&table, "--refused goes with --gpu-mem-mib alone");
        if (o->order.seconds > 0 && command[0])
                return options_wrong(&table, "a command goes with --gpu-mem-mib alone");
        o->order.mib = o->mib;
        o->order.kernel_us = o->kernel_us > 0 ? o->kernel_us : 1000;
        o->order.processes = o->processes > 0 ? o->processes : 1;
        return OPTIONS_GO;
}

int main(int argc, char **argv) {
        Options o = {.mib = 0};
        char **command;
        int r;

        message_guard();
        r = options_parse(&table, argc, argv, &o, &command);
        if (r == OPTIONS_GO)
                r = check(&o, command);
        if (r != OPTIONS_GO)
                return r;
        r = o.copy_mib > 0 ? copy(&o) : o.order.seconds > 0 ? crew_run(&o.order) : hold(&o, command);
        return fflush(stdout) == 0 ? r : EXIT_CUDA;
}
