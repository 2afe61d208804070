/* SPDX-License-Identifier: Apache-2.0 */

/* aliquot-sample: a program that uses a card as CUDA programs do, through the driver API, for samples and for a first look at a node. It is
 * built without CUDA, and asks libc for nothing that an image might lack. */

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sample/cuda.h"

enum { EXIT_DONE, EXIT_CUDA, EXIT_USAGE };

enum { OPTION_MEM = 1, OPTION_HELP };

static const char usage[] =
        "Usage: aliquot-sample --gpu-mem-mib M [-- COMMAND...]\n"
        "\n"
        "  --gpu-mem-mib M   allocate M MiB on the first card, and print what CUDA says of its memory\n"
        "  COMMAND           run while the memory is held\n"
        "\n"
        "Exit status: 0, or the command's; 1 when CUDA refuses something, which is printed with its name and "
        "number; 2 for wrong "
        "usage.\n";

static const struct option options[] = {
        {"gpu-mem-mib", required_argument, NULL, OPTION_MEM},
        {"help", no_argument, NULL, OPTION_HELP},
        {NULL, 0, NULL, 0},
};

static int take_mib(const char *text, unsigned long *ret) {
        char *end = NULL;

        *ret = strtoul(text, &end, 10);
        if (text[0] >= '0' && text[0] <= '9' && *end == '\0' && *ret > 0 && *ret < 1UL << 40)
                return 0;
        (void) fprintf(stderr, "aliquot-sample: --gpu-mem-mib %s: must be a whole number of MiB\n", text);
        return EXIT_USAGE;
}

static int run_command(char **command) {
        int status;
        pid_t pid;

        (void) fflush(stdout); /* what is printed stands before what the command prints */
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

static int run(unsigned long mib, char **command) {
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

int main(int argc, char **argv) {
        unsigned long mib = 0;
        int option, r = 0;

        while (r == 0 && (option = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
                if (option == OPTION_HELP || option == 'h') {
                        (void) fputs(usage, stdout);
                        return fflush(stdout) == 0 ? EXIT_DONE : EXIT_CUDA;
                }
                r = option == OPTION_MEM ? take_mib(optarg, &mib) : EXIT_USAGE; /* getopt has said why */
        }
        if (r == 0 && mib == 0) {
                (void) fputs("aliquot-sample: --gpu-mem-mib is missing\n", stderr);
                r = EXIT_USAGE;
        }
        if (r == 0)
                r = run(mib, argv + optind);
        return fflush(stdout) == 0 ? r : EXIT_CUDA;
}
