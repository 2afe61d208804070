/* SPDX-License-Identifier: Apache-2.0 */

/* `aliquot VERB ...`: the daemons are verbs of one program, each in its own room. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "local/local.h"
#include "node/agent.h"
#include "scheduler/scheduler.h"

enum { EXIT_USAGE = 2, EXIT_BROKEN = 3 };

/* aliquot-run and aliquot-smi are programs of their own, because they also run without this one.
 * They are found beside it. */
static int exec_program(const char *program, char **argv) {
        char path[4096];
        ssize_t n = readlink("/proc/self/exe", path, sizeof path - 32);

        path[n > 0 ? n : 0] = '\0';
        if (strrchr(path, '/'))
                (void) snprintf(strrchr(path, '/') + 1, 32, "%s", program);
        (void) execv(path, argv);
        (void) execvp(program, argv);
        (void) fprintf(stderr, "aliquot: cannot run %s: %s\n", program, strerror(errno));
        return EXIT_BROKEN;
}

static int run_main(int argc, char **argv) {
        return exec_program("aliquot-run", argv);
}

static int smi_main(int argc, char **argv) {
        return exec_program("aliquot-smi", argv);
}

static const struct {
        const char *name;
        int (*main)(int argc, char **argv);
        const char *summary;
} verbs[] = {
        {"local", local_main, "a cluster in this process: apply manifests, place pods, show who got what"},
        {"node", node_main, "the agent that offers this machine's cards to the kubelet, slice by slice"},
        {"run", run_main, "a command in a slice of a card, on one machine and without Kubernetes"},
        {"scheduler", scheduler_main,
         "the extender that kube-scheduler asks where GPU pods fit, and binds them"},
        {"smi", smi_main, "the slices of this machine: who has what, and what is used"},
};

static void print_usage(FILE *out) {
        (void) fputs("Usage: aliquot VERB [OPTION...]\n\n", out);
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                (void) fprintf(out, "  %-10s %s\n", verbs[i].name, verbs[i].summary);
        (void) fputs(
                "\n`aliquot VERB --help` tells the options of a verb; `aliquot --version` the version.\n",
                out);
}

/* Output that was not written is a failure. */
static int check_output(void) {
        return fflush(stdout) == 0 ? 0 : EXIT_BROKEN;
}

int main(int argc, char **argv) {
        const char *verb = argc > 1 ? argv[1] : "";

        if (file_hold_standard() < 0)
                return EXIT_BROKEN;
        if (strcmp(verb, "--version") == 0) {
                (void) printf("aliquot %s (built with %s)\n", ALIQUOT_VERSION, __VERSION__);
                return check_output();
        }
        if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0) {
                print_usage(stdout);
                return check_output();
        }
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                if (strcmp(verb, verbs[i].name) == 0)
                        return verbs[i].main(argc - 1, argv + 1);
        if (verb[0])
                (void) fprintf(stderr, "aliquot: no such verb: \"%s\"\n", verb);
        print_usage(stderr);
        return EXIT_USAGE;
}
