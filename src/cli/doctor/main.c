/* SPDX-License-Identifier: Apache-2.0 */

/* The verb `aliquot doctor`: options, facts, checks, report. */

#include "cli/doctor/main.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/options.h"
#include "cli/doctor/diagnosis.h"

enum { TIMEOUT = 3, TIMEOUT_MAX = 300 }; /* s */

typedef struct Options {
        GatherOptions gather;
        uint32_t timeout;
        bool json;
} Options;

static int take_folder(void *options, const Option *option, const char *value, Fault *fault) {
        Options *o = options;

        (void) option;
        if (value[0] != '/')
                return fault_set(fault, -EINVAL, "must be a path from the root");
        if (strlen(value) > 200)
                return fault_set(fault, -EINVAL, "must have at most 200 letters");
        o->gather.root = value;
        return 0;
}

static int take_server(void *options, const Option *option, const char *value, Fault *fault) {
        Options *o = options;

        (void) option;
        if (strncmp(value, "http://", 7) != 0)
                return fault_set(fault, -EINVAL, "must be the URL of kubectl proxy: http://127.0.0.1:8001");
        o->gather.server = value;
        return 0;
}

static const Option option_list[] = {
        {"output", "text|json", "form of the report (default text)", OPTION_TO_CHOICE(Options, json),
         .letter = 'o'},
        {"root", "DIR", "where the host's root is seen: /host in the node agent's pod (default /)",
         OPTION_TO_CALL(take_folder)},
        {"kubeconfig", "FILE",
         "how to reach the cluster (default: KUBECONFIG, then the pod's service account, then "
         "~/.kube/config)",
         OPTION_TO_TEXT(Options, gather.kubeconfig)},
        {"context", "NAME", "context of the kubeconfig (default: the current one)",
         OPTION_TO_TEXT(Options, gather.context)},
        {"server", "URL", "a `kubectl proxy`, for logins that need a plugin: http://127.0.0.1:8001",
         OPTION_TO_CALL(take_server)},
        {"timeout", "SECONDS", "limit of each question (default 3)",
         OPTION_TO_NUMBER(Options, timeout, 1, TIMEOUT_MAX)},
};

static const OptionsTable table = {
        .program = "aliquot doctor",
        .usage = "[OPTION...] [machine|node|cluster]...",
        .about = "Checks a machine with cards, a node of a cluster, and the cluster: what is wrong, why, and "
                 "the "
                 "command that mends it. Without a word it checks what it finds here. It changes nothing.",
        .end = "Exit status: 0 nothing is wrong, 1 a check FAILs, 2 wrong usage, 3 broken, 4 warnings only. "
               "Checks "
               "that are skipped count as none of these.",
        .options = option_list,
        .n = ELEMENTSOF(option_list),
        .takes_words = true,
};

/* Takes words up to the next option. Returns OPTIONS_GO or an exit status. */
static int take_scopes(char ***words, unsigned *ret) {
        static const struct {
                const char *name;
                Scope scope;
        } names[] = {{"machine", SCOPE_MACHINE}, {"node", SCOPE_NODE}, {"cluster", SCOPE_CLUSTER}};

        for (bool first = true; **words && (first || ***words != '-'); (*words)++, first = false) {
                size_t i = 0;

                while (i < ELEMENTSOF(names) && strcmp(**words, names[i].name) != 0)
                        i++;
                if (i == ELEMENTSOF(names))
                        return options_wrong(&table,
                                             "\"%s\" is nothing to check, must be machine, node or cluster",
                                             **words);
                *ret |= names[i].scope;
        }
        return OPTIONS_GO;
}

/* Parses the options, which may stand before the words and behind them. */
static int take_all(int argc, char **argv, Options *o) {
        char **end = argv + argc, **words = argv;
        int r;

        do {
                r = options_parse(&table, (int) (end - words), words, o, &words);
                if (r == OPTIONS_GO)
                        r = take_scopes(&words, &o->gather.scopes);
                if (r != OPTIONS_GO || !*words)
                        return r;
                words--; /* options_parse() skips the first word */
        } while (true);
}

static int run(const Options *o) {
        _cleanup_facts_ Facts facts = {.now = 0};
        unsigned scopes = 0;
        int r = gather_facts(&o->gather, &scopes, &facts);

        if (r == 0)
                r = diagnosis_print(&facts, scopes, o->json);
        if (r < 0)
                (void) fprintf(stderr, "aliquot doctor: %s\n", strerror(-r));
        return r < 0 ? OPTIONS_EXIT_BROKEN : r;
}

int doctor_main(int argc, char **argv) {
        Options o = {.gather = {.root = "/"}, .timeout = TIMEOUT};
        int r = take_all(argc, argv, &o);

        if (r != OPTIONS_GO)
                return r;
        if (o.gather.server && (o.gather.kubeconfig || o.gather.context))
                return options_wrong(&table, "--server goes with neither --kubeconfig nor --context");
        /* the variable that the simulator's libraries use */
        o.gather.simulate_dir = secure_getenv("ALIQUOT_SIM_DIR");
        if (o.gather.simulate_dir && !o.gather.simulate_dir[0])
                o.gather.simulate_dir = NULL;
        log_set_level(LOG_LEVEL_ERROR); /* the report says what is wrong */
        o.gather.timeout = o.timeout * USEC_PER_SEC;
        return run(&o);
}
