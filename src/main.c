/* SPDX-License-Identifier: Apache-2.0 */

/* `aliquot VERB ...`: the daemons are verbs of one program, each in its own room. */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/message.h"
#include "base/options.h"
#include "cli/convert/main.h"
#include "cli/doctor/main.h"
#include "local/local.h"
#include "node/agent.h"
#include "scheduler/scheduler.h"

enum { EXIT_BROKEN = 3 };

/* aliquot-resize, aliquot-run and aliquot-smi are programs of their own, because they also run
 * without this one. They are found beside it. */
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

static int resize_main(int argc, char **argv) {
        return exec_program("aliquot-resize", argv);
}

static int run_main(int argc, char **argv) {
        return exec_program("aliquot-run", argv);
}

static int smi_main(int argc, char **argv) {
        return exec_program("aliquot-smi", argv);
}

typedef struct Verb {
        const char *name;
        int (*main)(int argc, char **argv); /* NULL: answered here */
        const char *summary;
} Verb;

static const Verb verbs[] = {
        {"convert", convert_main, "manifests of HAMi or vgpu-manager, rewritten to our resources"},
        {"doctor", doctor_main, "what is wrong with this machine, node or cluster, and what mends it"},
        {"local", local_main, "a cluster in this process: apply manifests, place pods, show who got what"},
        {"node", node_main, "the agent that offers this machine's cards to the kubelet, slice by slice"},
        {"resize", resize_main, "another size for a slice of `aliquot run`, while its command runs"},
        {"run", run_main, "a command in a slice of a card, on one machine and without Kubernetes"},
        {"scheduler", scheduler_main,
         "the extender that kube-scheduler asks where GPU pods fit, and binds them"},
        {"smi", smi_main, "the slices of this machine: who has what, and what is used"},
        {"help", NULL, "this text, or the options of a verb: aliquot help VERB"},
        {"version", NULL, "the version"},
};

static int print_usage(void) {
        (void) fputs("Usage: aliquot VERB [OPTION...]\n\n", stdout);
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                (void) printf("  %-10s %s\n", verbs[i].name, verbs[i].summary);
        (void) fputs("\n`aliquot VERB --help` prints the options of a verb.\n", stdout);
        return fflush(stdout) == 0 ? 0 : EXIT_BROKEN;
}

static const Verb *find_verb(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(verbs); i++)
                if (strcmp(name, verbs[i].name) == 0)
                        return &verbs[i];
        return NULL;
}

static int no_verb(const char *name) {
        static const OptionsTable table = {.program = "aliquot"};
        const char *meant = options_closest(name, verbs, ELEMENTSOF(verbs), sizeof verbs[0]);

        if (!name[0])
                return options_wrong(&table, "a verb is missing");
        return meant ? options_wrong(&table, "%s: no such verb; did you mean %s?", name, meant)
                     : options_wrong(&table, "%s: no such verb", name);
}

static int help_main(int argc, char **argv) {
        const Verb *verb = argc > 1 ? find_verb(argv[1]) : NULL;

        if (argc > 1 && !verb)
                return no_verb(argv[1]);
        return verb && verb->main ? verb->main(2, (char *[]){argv[1], (char *) "--help", NULL})
                                  : print_usage();
}

/* The verb, which may also be written as an option: --help, -h, --version. */
static const Verb *named_verb(const char *word) {
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
                return find_verb("help");
        return find_verb(strcmp(word, "--version") == 0 ? "version" : word);
}

int main(int argc, char **argv) {
        const char *word = argc > 1 ? argv[1] : "";
        const Verb *verb = named_verb(word);

        if (file_hold_standard() < 0)
                return EXIT_BROKEN;
        message_guard();
        if (!verb)
                return no_verb(word);
        if (verb->main)
                return verb->main(argc - 1, argv + 1);
        return strcmp(verb->name, "help") == 0 ? help_main(argc - 1, argv + 1)
                                               : options_print_version("aliquot");
}
