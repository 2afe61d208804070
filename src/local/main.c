/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/log.h"
#include "base/options.h"
#include "base/terminal.h"
#include "local/cluster.h"
#include "local/local.h"
#include "scheduler/page/page_host.h"

enum { EXIT_DONE, EXIT_ANSWER_NO, EXIT_USAGE, EXIT_BROKEN };

typedef struct Options {
        bool once, logs, ignores_disable, has_view, cards;
        const char *get, *page;
        uint32_t logs_timeout; /* seconds */
        const char **files;
        size_t n_files;
} Options;

static int take_file(void *options, const Option *option, const char *text, Fault *fault) {
        Options *o = options;

        o->files[o->n_files++] = text;
        return 0;
}

static int take_view(void *options, const Option *option, const char *text, Fault *fault) {
        Options *o = options;

        o->has_view = true;
        o->cards = strcmp(text, "cards") == 0;
        return o->cards || strcmp(text, "table") == 0 ? 0 : fault_set(fault, 1, "must be cards or table");
}

static const Option option_list[] = {
        {"filename", "FILE",
         "manifests to apply, YAML or JSON, also List; a directory: each .yaml, .yml and .json file in it; - "
         "is standard input; may be repeated",
         OPTION_TO_CALL(take_file), .letter = 'f'},
        {"once", NULL, "wait until each pod is placed or unschedulable, print the summary, and end",
         OPTION_TO_FLAG(Options, once)},
        {"output", "cards|table",
         "the summary: a row per card, which fits the terminal and is the default on one, or a row per node",
         OPTION_TO_CALL(take_view), .letter = 'o'},
        {"page", "ADDR:PORT",
         "then serve the scheduler's page here until SIGINT or SIGTERM: 127.0.0.1:PORT or [::1]:PORT",
         OPTION_TO_TEXT(Options, page)},
        {"logs", NULL,
         "then run the containers as isolated processes of this machine, on the simulated cards of their "
         "nodes, and print what each of them got and said",
         OPTION_TO_FLAG(Options, logs)},
        {"logs-timeout", "SECONDS", "stop commands that run longer (default 10)",
         OPTION_TO_NUMBER(Options, logs_timeout, 1, 3600)},
        {"ignore-cgpu-disable", NULL,
         "with --logs: hold containers to their slices that say CGPU_DISABLE, too",
         OPTION_TO_FLAG(Options, ignores_disable)},
        {"get", "RESOURCES",
         "instead of the summary print these objects as `kubectl get RESOURCES -A -o json` would: nodes,pods",
         OPTION_TO_TEXT(Options, get)},
};

static const OptionsTable table = {
        .program = "aliquot local",
        .usage = "{--once | --page ADDR:PORT} -f FILE... [OPTION...]",
        .about = "A cluster in this process: applies manifests, places their pods on shared GPUs as a real "
                 "cluster with Aliquot would, and says which pod has what. Nodes get their cards from the "
                 "annotation "
                 "aliquot.dev/simulated-cards, as 4xTesla-V100-SXM2-16GB:16160MiB.",
        .end = "Exit status: 0 when all pods were placed, 1 when some were not, 2 for wrong usage or a "
               "manifest that is malformed or refused, 3 when something broke.",
        .options = option_list,
        .n = ELEMENTSOF(option_list),
};

static int read_options(int argc, char **argv, Options *o) {
        int r = options_parse(&table, argc, argv, o, NULL);
        Fault fault = FAULT_NULL;

        if (r != OPTIONS_GO)
                return r;
        if (o->once == !!o->page)
                return options_wrong(&table, "one of --once and --page is needed, and not both");
        if (o->page && page_host_check_listen(o->page, &fault) < 0)
                return options_wrong(&table, "%s", fault.text);
        return o->n_files > 0 ? OPTIONS_GO : options_wrong(&table, "no manifests: -f FILE is missing");
}

/* Prints a line on standard error. Control characters are replaced: text of manifests is unchecked
 * and must not control the terminal. */
static void put_error(Str text) {
        size_t clean = 0; /* begin of the characters that are not printed yet */

        for (size_t i = 0; text.data && i <= text.len; i++) {
                unsigned char c = i < text.len ? (unsigned char) text.data[i] : '\0';

                if ((c >= ' ' || c == '\n') && c != 0x7f)
                        continue;
                (void) fwrite(text.data + clean, 1, i - clean,
                              stderr); /* a failure cannot be reported elsewhere */
                if (i < text.len)
                        (void) fputc('?', stderr);
                clean = i + 1;
        }
}

static int report_fault(int status, const Fault *fault, int r) {
        (void) fputs("aliquot local: ", stderr);
        put_error(str_from(*fault->text ? fault->text : strerror(-r)));
        (void) fputc('\n', stderr);
        return status;
}

/* Reports a failure and returns the exit status: a negative errno is an internal error, a small
 * positive result is about the input. */
static int report_result(const Fault *fault, int r) {
        return report_fault(r < 0 ? EXIT_BROKEN : EXIT_USAGE, fault, r);
}

/* Writes standard output. A failure shows in the exit status: a full disk must not look like
 * success. */
static int write_output(const Buf *text) {
        if (text->len > 0 && fwrite(text->data, 1, text->len, stdout) != text->len)
                return -errno;
        return fflush(stdout) != 0 ? -errno : 0;
}

static int print_state(Cluster *c, const Options *o, Buf *out, Buf *notes, Fault *fault) {
        const Terminal t = terminal_look(COLOUR_AUTO);
        const InspectScreen fitting = {.width = t.width, .utf8 = t.utf8, .colour = t.colour};
        const InspectScreen *screen = (o->has_view ? o->cards : t.is_terminal) ? &fitting : NULL;
        int r;

        if (o->get)
                return cluster_print_objects(c, o->get, out, notes, fault);
        r = cluster_print_summary(c, screen, out, notes);
        return r < 0 ? r : cluster_print_placements(c, screen, out);
}

static int print_logs(Cluster *c, const Options *o) {
        _cleanup_buf_ Buf out = BUF_NULL, notes = BUF_NULL;
        RunnerOptions options = {.timeout = o->logs_timeout * USEC_PER_SEC,
                                 .ignores_disable = o->ignores_disable};
        int r;

        r = cluster_print_logs(c, &options, &out, &notes);
        put_error(buf_str(&notes));
        return r == 0 ? write_output(&out) : r;
}

/* Prints the page's address, with the host as the user wrote it and the port in use, and serves the
 * page. */
static int serve_page(Cluster *c, const char *listen) {
        int host = (int) (strrchr(listen, ':') - listen);

        if (fprintf(stderr,
                    "aliquot local: metrics at http://127.0.0.1:%u/metrics\n"
                    "aliquot local: page at http://%.*s:%u/ until SIGINT or SIGTERM\n",
                    cluster_metrics_port(c), host, listen, cluster_page_port(c)) < 0)
                return -errno;
        return cluster_serve(c);
}

static int run_cluster(const Options *o, const Manifests *manifests) {
        _cleanup_(cluster_freep) Cluster *c = NULL;
        _cleanup_buf_ Buf out = BUF_NULL, notes = BUF_NULL;
        Fault fault = FAULT_NULL;
        int r;

        r = cluster_new(&c, &fault);
        if (r == 0)
                cluster_offer_page(c, o->page);
        if (r == 0)
                r = cluster_apply(c, manifests, &notes, &fault);
        if (r == 0)
                r = cluster_schedule(c, &fault);
        if (r == 0)
                r = print_state(c, o, &out, &notes, &fault);
        if (r == 0)
                r = write_output(&out);
        cluster_print_refused(c, &notes);
        put_error(buf_str(&notes));
        if (r != 0)
                return report_result(&fault, r);
        if (o->logs)
                r = print_logs(c, o);
        if (r == 0 && o->page)
                r = serve_page(c, o->page);
        if (r < 0)
                return report_fault(EXIT_BROKEN, &fault, r);
        if (cluster_n_invalid(c) > 0)
                return EXIT_USAGE;
        return cluster_n_refused(c) > 0 ? EXIT_ANSWER_NO : EXIT_DONE;
}

int local_main(int argc, char **argv) {
        _cleanup_free_ const char **files = calloc((size_t) argc + 1, sizeof *files);
        _cleanup_(manifests_done) Manifests manifests = MANIFESTS_NULL;
        Options o = {.logs_timeout = 10, .files = files};
        Fault fault = FAULT_NULL;
        int r;

        if (!files)
                return report_fault(EXIT_BROKEN, &fault, -ENOMEM);
        /* standard error has a line per refused pod, not the scheduler's log */
        log_set_level(LOG_LEVEL_ERROR);
        r = read_options(argc, argv, &o);
        if (r != OPTIONS_GO)
                return r;
        for (size_t i = 0; i < o.n_files; i++) {
                r = manifests_load(&manifests, files[i], &fault);
                if (r != 0)
                        return report_result(&fault, r);
        }
        return run_cluster(&o, &manifests);
}
