/* SPDX-License-Identifier: Apache-2.0 */
#include <argp.h>
#include <errno.h>

#include "base/log.h"
#include "local/cluster.h"
#include "local/local.h"

enum { EXIT_DONE, EXIT_ANSWER_NO, EXIT_USAGE, EXIT_BROKEN };

enum { KEY_ONCE = 0x100, KEY_LOGS, KEY_LOGS_TIMEOUT, KEY_GET, KEY_IGNORE_DISABLE };

typedef struct Options {
        bool once, logs, ignores_disable;
        const char *get;
        uint32_t logs_timeout; /* seconds */
        const char **files;
        size_t n_files;
} Options;

static const struct argp_option options_table[] = {
        {"filename", 'f', "FILE", 0,
         "manifests to apply, YAML or JSON, also List; - is standard input; may be repeated", 0},
        {"once", KEY_ONCE, NULL, 0,
         "wait until each pod is placed or unschedulable, print the summary, and end", 0},
        {"logs", KEY_LOGS, NULL, 0,
         "then run the containers as isolated processes of this machine, on the simulated cards of their "
         "nodes, "
         "and print what each of them got and said",
         0},
        {"logs-timeout", KEY_LOGS_TIMEOUT, "SECONDS", 0, "stop commands that run longer (default 2)", 0},
        {"ignore-cgpu-disable", KEY_IGNORE_DISABLE, NULL, 0,
         "with --logs: hold containers to their slices that say CGPU_DISABLE, too", 0},
        {"get", KEY_GET, "RESOURCES", 0,
         "instead of the summary print these objects as `kubectl get RESOURCES -A -o json` would: nodes,pods",
         0},
        {0},
};

static error_t parse_timeout(const char *arg, struct argp_state *state, Options *o) {
        if (!str_to_u32(str_from(arg), &o->logs_timeout) || o->logs_timeout == 0 || o->logs_timeout > 3600)
                argp_error(state, "--logs-timeout is \"%s\", must be a number of seconds from 1 to 3600",
                           arg);
        return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state) {
        Options *o = state->input;

        switch (key) {
        case 'f':
                o->files[o->n_files++] = arg;
                return 0;
        case KEY_ONCE:
                o->once = true;
                return 0;
        case KEY_LOGS:
                o->logs = true;
                return 0;
        case KEY_LOGS_TIMEOUT:
                return parse_timeout(arg, state, o);
        case KEY_IGNORE_DISABLE:
                o->ignores_disable = true;
                return 0;
        case KEY_GET:
                o->get = arg;
                return 0;
        case ARGP_KEY_ARG:
                argp_error(state, "unexpected argument \"%s\"", arg);
                return 0;
        case ARGP_KEY_END:
                if (!o->once)
                        argp_error(state, "--once is missing: a cluster that stays up is not there yet");
                else if (o->n_files == 0)
                        argp_error(state, "no manifests: -f FILE is missing");
                return 0;
        default:
                return ARGP_ERR_UNKNOWN;
        }
}

static const struct argp parser = {
        .options = options_table,
        .parser = parse_option,
        .doc = "A cluster in this process: applies manifests, places their pods on shared GPUs as a real "
               "cluster with "
               "Aliquot would, and says who has what.\v"
               "Nodes get their cards from the annotation aliquot.dev/simulated-cards, as "
               "4xTesla-V100-SXM2-16GB:16160MiB. "
               "Exit status: 0 when all pods were placed, 1 when some were not, 2 for wrong usage or a "
               "manifest that "
               "cannot be applied, 3 when something broke.",
};

/* Prints a line on standard error. Control characters are replaced: text of manifests is unchecked
 * and must not control the terminal. */
static void put_error(Str text) {
        size_t clean = 0; /* begin of the characters that are not printed yet */

        for (size_t i = 0; text.data && i <= text.len; i++) {
                char c = i < text.len ? text.data[i] : '\0';

                if ((c < 0 || c >= ' ' || c == '\n') && c != 0x7f)
                        continue;
                (void) fwrite(text.data + clean, 1, i - clean,
                              stderr); /* a failure cannot be reported elsewhere */
                if (i < text.len)
                        (void) fputc('?', stderr);
                clean = i + 1;
        }
}

static int report(int status, const Fault *fault, int r) {
        (void) fputs("aliquot local: ", stderr);
        put_error(str_from(*fault->text ? fault->text : strerror(-r)));
        (void) fputc('\n', stderr);
        return status;
}

/* A negative errno is an internal error; a small positive result is about the input. */
static int report_result(const Fault *fault, int r) {
        return report(r < 0 ? EXIT_BROKEN : EXIT_USAGE, fault, r);
}

/* The exit status tells when standard output is incomplete: a full disk must not look
 * like success. */
static int write_output(const Buf *text) {
        if (text->len > 0 && fwrite(text->data, 1, text->len, stdout) != text->len)
                return -errno;
        return fflush(stdout) != 0 ? -errno : 0;
}

static int print_state(Cluster *c, const Options *o, Buf *out, Buf *notes, Fault *fault) {
        return o->get ? cluster_print_objects(c, o->get, out, fault) : cluster_print_summary(c, out, notes);
}

static int run(const Options *o, const Manifests *manifests) {
        _cleanup_(cluster_freep) Cluster *c = NULL;
        _cleanup_buf_ Buf out = BUF_NULL, notes = BUF_NULL;
        Fault fault = FAULT_NULL;
        int r;

        r = cluster_new(&c, &fault);
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
        if (o->logs) {
                buf_clear(&out);
                buf_clear(&notes);
                r = cluster_print_logs(c,
                                       &(RunnerOptions){.timeout = o->logs_timeout * USEC_PER_SEC,
                                                        .ignores_disable = o->ignores_disable},
                                       &out, &notes);
                put_error(buf_str(&notes));
                if (r == 0)
                        r = write_output(&out);
        }
        if (r < 0)
                return report(EXIT_BROKEN, &fault, r);
        return cluster_n_refused(c) > 0 ? EXIT_ANSWER_NO : EXIT_DONE;
}

int local_main(int argc, char **argv) {
        _cleanup_free_ const char **files = calloc((size_t) argc + 1, sizeof *files);
        _cleanup_(manifests_done) Manifests manifests = MANIFESTS_NULL;
        Options o = {.logs_timeout = 2, .files = files};
        Fault fault = FAULT_NULL;

        if (!files)
                return report(EXIT_BROKEN, &fault, -ENOMEM);
        /* standard error has a line per refused pod, not the scheduler's log */
        log_set_level(LOG_LEVEL_ERROR);
        argp_err_exit_status = EXIT_USAGE;
        argv[0] = (char[]){"aliquot local"}; /* the name in usage messages */
        if (argp_parse(&parser, argc, argv, 0, NULL, &o) != 0)
                return EXIT_USAGE;
        for (size_t i = 0; i < o.n_files; i++) {
                int r = manifests_load(&manifests, files[i], &fault);

                if (r != 0)
                        return report_result(&fault, r);
        }
        return run(&o, &manifests);
}
