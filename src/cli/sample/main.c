/* SPDX-License-Identifier: Apache-2.0 */

/* aliquot-sample: uses a card as CUDA programs do, through the driver API, for samples and for a
 * first look at a node. It is built without CUDA and needs only functions of libc that every image
 * has. */

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/sample/crew.h"
#include "cli/sample/cuda.h"

enum { EXIT_DONE, EXIT_CUDA, EXIT_USAGE };

enum { OPTION_MEM = 1, OPTION_SECONDS, OPTION_KERNEL, OPTION_PROCESSES, OPTION_HELP };

enum { SECONDS_MAX = 1000000, KERNEL_MAX = 10000000, PROCESSES_MAX = 64 };

static const char usage[] =
        "Usage: aliquot-sample --gpu-mem-mib M [-- COMMAND...]\n"
        "       aliquot-sample --seconds S [--kernel-us K] [--processes N] [--gpu-mem-mib M]\n"
        "\n"
        "  --gpu-mem-mib M   allocate M MiB on the first card, and print what CUDA says of its memory\n"
        "  COMMAND           run while the memory is held\n"
        "  --seconds S       let the card work for S seconds, in blocks of a tenth of a second of its time,\n"
        "                    and print a line for each; alone and without a limit, ten in a second\n"
        "  --kernel-us K     by kernels of K microseconds: 1000 unless given\n"
        "  --processes N     in N processes at once\n"
        "\n"
        "Exit status: 0, or the command's; 1 when CUDA refuses something, which is printed with its name and "
        "number; 2 for wrong "
        "usage.\n";

static const struct option options[] = {
        {"gpu-mem-mib", required_argument, NULL, OPTION_MEM},
        {"seconds", required_argument, NULL, OPTION_SECONDS},
        {"kernel-us", required_argument, NULL, OPTION_KERNEL},
        {"processes", required_argument, NULL, OPTION_PROCESSES},
        {"help", no_argument, NULL, OPTION_HELP},
        {NULL, 0, NULL, 0},
};

static int take_number(const char *name, const char *text, unsigned long max, unsigned long *ret) {
        char *end = NULL;

        *ret = strtoul(text, &end, 10);
        if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && *ret > 0 && *ret <= max)
                return 0;
        (void) fprintf(stderr, "aliquot-sample: --%s %s: must be a whole number from 1 to %lu\n", name, text,
                       max);
        return EXIT_USAGE;
}

static int take_seconds(const char *text, double *ret) {
        char *end = NULL;

        *ret = strtod(text, &end);
        if (((text[0] >= '0' && text[0] <= '9') || text[0] == '.') && *end == '\0' && *ret > 0 &&
            *ret <= SECONDS_MAX)
                return 0;
        (void) fprintf(stderr, "aliquot-sample: --seconds %s: must be a number above 0, at most %d\n", text,
                       SECONDS_MAX);
        return EXIT_USAGE;
}

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

static int hold(unsigned long mib, char **command) {
        Cuda cuda;
        int r;

        r = cuda_open(&cuda);
        if (r == 0)
                r = cuda_allocate(&cuda, mib);
        if (r == 0)
                r = cuda_print_memory(&cuda);
        if (r != 0)
                return EXIT_CUDA;
        return command[0] ? run_command(command) : EXIT_DONE;
}

typedef struct Options {
        CrewOrder order; /* seconds 0: no work */
        bool works;      /* an option of the work was given */
} Options;

/* Returns 0, or the exit status plus one when there is nothing more to do. */
static int take_option(Options *o, int option) {
        unsigned long n = 0;
        int r;

        switch (option) {
        case OPTION_MEM:
                r = take_number("gpu-mem-mib", optarg, 1UL << 40, &o->order.mib);
                break;
        case OPTION_SECONDS:
                r = take_seconds(optarg, &o->order.seconds);
                break;
        case OPTION_KERNEL:
                r = take_number("kernel-us", optarg, KERNEL_MAX, &n);
                o->order.kernel_us = (unsigned) n;
                o->works = true;
                break;
        case OPTION_PROCESSES:
                r = take_number("processes", optarg, PROCESSES_MAX, &n);
                o->order.processes = (unsigned) n;
                o->works = true;
                break;
        case OPTION_HELP:
        case 'h':
                (void) fputs(usage, stdout);
                return fflush(stdout) == 0 ? EXIT_DONE + 1 : EXIT_CUDA + 1;
        default:
                r = EXIT_USAGE; /* getopt has printed why */
        }
        return r == 0 ? 0 : r + 1;
}

static int wrong(const char *words) {
        (void) fprintf(stderr, "aliquot-sample: %s\n", words);
        return EXIT_USAGE + 1;
}

static int check(const Options *o, char **command) {
        if (o->order.seconds <= 0 && o->works)
                return wrong("--seconds is missing");
        if (o->order.seconds <= 0 && o->order.mib == 0)
                return wrong("--gpu-mem-mib or --seconds is missing");
        return o->order.seconds > 0 && command[0] ? wrong("a command goes with --gpu-mem-mib alone") : 0;
}

int main(int argc, char **argv) {
        Options o = {.order = {.processes = 1, .kernel_us = 1000}};
        int option, r = 0;

        while (r == 0 && (option = getopt_long(argc, argv, "+h", options, NULL)) != -1)
                r = take_option(&o, option);
        if (r == 0)
                r = check(&o, argv + optind);
        if (r != 0)
                return r - 1;
        r = o.order.seconds > 0 ? crew_run(&o.order) : hold(o.order.mib, argv + optind);
        return fflush(stdout) == 0 ? r : EXIT_CUDA;
}
