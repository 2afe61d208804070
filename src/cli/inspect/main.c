/* SPDX-License-Identifier: Apache-2.0 */

/* kubectl-inspect-cgpu: kubectl finds it on PATH and runs it for `kubectl inspect cgpu`. Exit
 * status:
 *     0  done
 *     1  the answer is no: no such node, kubectl failed, objects had to be left out
 *     2  wrong usage, or a FILE that cannot be read or is no List
 *     3  an internal error */

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "base/file.h"
#include "base/message.h"
#include "base/options.h"
#include "cli/inspect/cluster_read.h"
#include "cli/inspect/complain.h"
#include "cli/inspect/report.h"
#include "cli/inspect/why.h"

static const char *const views[] = {
        [REPORT_TABLE] = "table", [REPORT_CARDS] = "cards", [REPORT_JSON] = "json"};
static const char *const colours[] = {
        [COLOUR_AUTO] = "auto", [COLOUR_ALWAYS] = "always", [COLOUR_NEVER] = "never"};

typedef struct Options {
        ReportOptions report;
        Cluster cluster;
        Str why;               /* a pod; empty: a report is printed */
        const char *scheduler; /* for why.h */
        bool has_view;
} Options;

/* One list, for getopt_long and for --help. Options with OPTION_KUBECTL are passed to kubectl. */
enum {
        OPTION_FROM = 256,
        OPTION_COLOUR,
        OPTION_USED,
        OPTION_WHY,
        OPTION_SCHEDULER,
        OPTION_VERSION,
        OPTION_KUBECTL
};
static const struct {
        const char *name, *value, *help;
        int key;
} option_list[] = {
        {"details", NULL, "also list the pods that hold slices", 'd'},
        {"namespace", "NAME", "count pods of this namespace only", 'n'},
        {"output", "FORMAT", "cards (default on a terminal), table (default\nelsewhere) or json", 'o'},
        {"used", NULL, "also show what processes hold of each card, as the\nnode agents tell it",
         OPTION_USED},
        {"watch", NULL, "read again every 2 seconds, until Ctrl-C", 'w'},
        {"color", "WHEN", "auto (default), always or never", OPTION_COLOUR},
        {"from", "FILE", "read FILE (- for standard input), made by\nkubectl get nodes,pods -A -o json",
         OPTION_FROM},
        {"why", "NAMESPACE/POD", "say what keeps a pending pod off each card", OPTION_WHY},
        {"scheduler", "WHERE", "for --why: NAMESPACE/SERVICE:PORT or URL, by default\n" WHY_SCHEDULER,
         OPTION_SCHEDULER},
        {"help", NULL, "this text", 'h'},
        {"version", NULL, "print the version", OPTION_VERSION},
        {"kubeconfig", "FILE", "handed on to kubectl, as the following ones are", OPTION_KUBECTL},
        {"context", "NAME", "", OPTION_KUBECTL},
        {"cluster", "NAME", "", OPTION_KUBECTL},
        {"user", "NAME", "", OPTION_KUBECTL},
        {"server", "URL", "", OPTION_KUBECTL},
        {"token", "TOKEN", "", OPTION_KUBECTL},
        {"as", "NAME", "", OPTION_KUBECTL},
        {"as-group", "NAME", "", OPTION_KUBECTL},
        {"request-timeout", "TIME", "", OPTION_KUBECTL},
};

static void print_help(void) {
        puts("Usage: kubectl inspect cgpu [-dw] [-n NAMESPACE] [-o cards|table|json] [NODE] [--from FILE]\n"
             "       kubectl inspect cgpu --why NAMESPACE/POD\n"
             "Shows which pods hold how much of which GPU.\n");
        for (size_t i = 0; i < ELEMENTSOF(option_list); i++) {
                const char *value = option_list[i].value, *help = option_list[i].help,
                           *line = strchr(help, '\n');
                int key = option_list[i].key, n = line ? (int) (line - help) : (int) strlen(help), width;

                width = printf(key < 256 ? "  -%c, " : "      ", key);
                width += printf("--%s%s%s", option_list[i].name, value ? " " : "", value ? value : "");
                if (n > 0)
                        printf("%*s%.*s", width < 30 ? 30 - width : 1, "", n, help);
                putchar('\n');
                if (line)
                        printf("%30s%s\n", "", line + 1);
        }
        puts("\nExit status: 0 done, 1 the answer is no, as no such node, or kubectl failed, 2 wrong usage "
             "or\n"
             "FILE, 3 something broke.");
}

/* Keeps the flag as one word, --name=value, so that no value can be taken for an option. It lives
 * as long as argv. */
static int keep_kubectl_flag(Options *o, const char *name, const char *value) {
        char *flag;
        size_t size = strlen(name) + strlen(value) + sizeof "--=";

        if (o->cluster.n_kubectl_flags == KUBECTL_MAX_FLAGS)
                return complain_usage("too many options for kubectl: --", name);
        flag = malloc(size);
        if (!flag)
                return complain_no_memory();
        (void) snprintf(flag, size, "--%s=%s", name, value);
        o->cluster.kubectl_flags[o->cluster.n_kubectl_flags++] = flag;
        return 0;
}

static void options_done(Options *o) {
        for (size_t i = 0; i < o->cluster.n_kubectl_flags; i++)
                free((void *) o->cluster.kubectl_flags[i]);
}

/* Returns the index of the name, or -1. */
static int find_name(const char *const *names, size_t n, const char *name) {
        for (size_t i = 0; i < n; i++)
                if (names[i] && strcmp(names[i], name) == 0)
                        return (int) i;
        return -1;
}

/* Reads the namespace, which becomes a part of the path of requests. Its name is a DNS label (RFC
 * 1123). Returns as parse_option(). */
static int parse_namespace(Options *o, const char *name) {
        size_t length = strlen(name);

        if (length == 0 || length > 63 || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != length)
                return complain_usage("-n takes a namespace (lower-case letters, digits and '-'), not ",
                                      name);
        o->cluster.namespace_ = str_from(name);
        return -1;
}

/* Returns -1 to go on, otherwise the exit status. */
static int parse_option(Options *o, int key, int index) {
        int r;

        switch (key) {
        case 'd':
                o->report.details = true;
                return -1;
        case 'n':
                return parse_namespace(o, optarg);
        case 'o':
                r = find_name(views, ELEMENTSOF(views), optarg);
                o->report.view = (ReportView) r;
                o->has_view = true;
                return r >= 0 ? -1 : complain_usage("-o takes cards, table or json, not ", optarg);
        case 'w':
                o->report.watch = true;
                return -1;
        case OPTION_USED:
                o->cluster.used = true;
                return -1;
        case OPTION_COLOUR:
                r = find_name(colours, ELEMENTSOF(colours), optarg);
                o->report.colour = (ColourMode) r;
                return r >= 0 ? -1 : complain_usage("--color takes auto, always or never, not ", optarg);
        case 'h':
                print_help();
                return 0;
        case OPTION_FROM:
                o->cluster.from = optarg;
                return -1;
        case OPTION_WHY:
                o->why = str_from(optarg);
                return str_is_empty(o->why)
                               ? complain_usage("--why takes NAMESPACE/POD, not an empty text", "")
                               : -1;
        case OPTION_SCHEDULER:
                o->scheduler = optarg;
                return -1;
        case OPTION_VERSION:
                puts("kubectl-inspect-cgpu " ALIQUOT_VERSION);
                return 0;
        case OPTION_KUBECTL:
                r = keep_kubectl_flag(o, option_list[index].name, optarg);
                return r == 0 ? -1 : r;
        default:
                return EXIT_USAGE; /* getopt_long() returns nothing else */
        }
}

/* Reports an option that getopt_long() has refused. key: ':' where a value is missing, otherwise
 * '?'. */
static int wrong_option(int key, const char *word) {
        char name[STR_MISSPELLING_MAX + 1], text[sizeof name + 64];
        const char letter[] = {'-', (char) optopt, '\0'}, *meant;
        bool is_long = strncmp(word, "--", 2) == 0;

        if (key == ':')
                return complain_usage("a value is missing after ", is_long ? word : letter);
        if (!is_long)
                return complain_usage("no such option: ", letter);
        (void) snprintf(name, sizeof name, "%.*s", (int) strcspn(word + 2, "="), word + 2);
        meant = options_closest(name, option_list, ELEMENTSOF(option_list), sizeof *option_list);
        if (optopt != 0)
                return complain_usage("this option takes no value: ", word);
        (void) snprintf(text, sizeof text, "--%s: no such option%s%s%s", name,
                        meant ? "; did you mean --" : "", meant ? meant : "", meant ? "?" : "");
        return complain_usage(text, "");
}

/* Refuses options that --why does not use. Returns as parse_option(). */
static int check_why(const Options *o) {
        const struct {
                const char *name;
                bool given;
        } others[] = {{"-o", o->has_view},
                      {"-w", o->report.watch},
                      {"-d", o->report.details},
                      {"--used", o->cluster.used}};

        if (o->why.len == 0)
                return o->scheduler ? complain_usage("--scheduler goes with --why alone", "") : -1;
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                if (others[i].given)
                        return complain_usage("--why does not go with ", others[i].name);
        return -1;
}

static int parse_options(Options *o, int argc, char **argv) {
        struct option longs[ELEMENTSOF(option_list) + 1] = {{0}};
        int key, index = 0, r;

        for (size_t i = 0; i < ELEMENTSOF(option_list); i++)
                longs[i] = (struct option){option_list[i].name,
                                           option_list[i].value ? required_argument : no_argument, NULL,
                                           option_list[i].key};
        opterr = 0;
        while ((key = getopt_long(argc, argv, ":dn:o:wh", longs, &index)) != -1) {
                r = key == '?' || key == ':' ? wrong_option(key, argv[optind - 1])
                                             : parse_option(o, key, index);
                if (r >= 0)
                        return r;
        }
        if (argc - optind > 1)
                return complain_usage("one NODE at most, then came ", argv[optind + 1]);
        if (argc - optind == 1 && argv[optind][0] == '\0')
                return complain_usage("NODE is empty", "");
        if (argc - optind == 1)
                o->cluster.node = str_from(argv[optind]);
        if (o->why.len > 0 && (o->cluster.from || argc > optind))
                return complain_usage("--why goes with neither --from nor NODE", "");
        if (o->cluster.used && o->cluster.from)
                return complain_usage("--used asks the node agents, and --from asks no cluster", "");
        if (o->report.watch && o->cluster.from && strcmp(o->cluster.from, "-") == 0)
                return complain_usage("-w cannot read standard input again", "");
        return check_why(o);
}

int main(int argc, char **argv) {
        _cleanup_(options_done) Options o = {.report = {.details = false}};
        int status;

        if (file_hold_standard() < 0)
                return EXIT_BROKEN;
        message_guard();
        status = parse_options(&o, argc, argv);
        if (status >= 0)
                return status;
        return o.why.len > 0 ? why_run(&o.cluster, o.why, o.scheduler) : report_run(&o.report, &o.cluster);
}
