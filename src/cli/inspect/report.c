/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/inspect/report.h"

#include <errno.h>
#include <string.h>

#include "cli/inspect/complain.h"
#include "cli/inspect/usage_read.h"

enum { WATCH_SECONDS = 2 };

typedef struct Report {
        const ReportOptions *options;
        const Cluster *cluster;
        TerminalFrames frames;
} Report;

static ReportView view_of(const ReportOptions *o, const Terminal *t) {
        if (o->view == REPORT_AUTO)
                return t->is_terminal ? REPORT_CARDS : REPORT_TABLE;
        return o->view;
}

static int print(const Report *r, ReportView view, const Terminal *t, Inspect *inspect, Buf *out,
                 Fault *fault) {
        const ReportOptions *o = r->options;
        const InspectScreen screen = {.width = t->width,
                                      .height = o->watch && t->height > 0 ? t->height - 1 : 0,
                                      .utf8 = t->utf8,
                                      .colour = t->colour,
                                      .details = o->details};

        switch (view) {
        case REPORT_CARDS:
                return inspect_print_cards(inspect, r->cluster->node, &screen, out, fault);
        case REPORT_JSON:
                return inspect_print_json(inspect, r->cluster->node, out, fault);
        case REPORT_AUTO:
        case REPORT_TABLE:
        default:
                return (o->details ? inspect_print_details : inspect_print_summary)(inspect, r->cluster->node,
                                                                                    out, fault);
        }
}

/* Prints to standard error, because the table has no place for it and other programs read the
 * table. */
static void print_differences(const Report *r, Inspect *inspect) {
        size_t n;

        if (inspect_count_differences(inspect, r->cluster->node, &n, NULL) == 0 && n > 0)
                (void) fprintf(
                        stderr,
                        "%zu %s annotations that differ from the limits, which are what counts: see -d\n", n,
                        n == 1 ? "pod has" : "pods have");
}

static int write_out(Report *r, ReportView view, const Terminal *t, const Buf *out) {
        Terminal shown = *t;
        Fault fault = FAULT_NULL;
        int n;

        /* Lines of the other views may be wider than the terminal, so these views do not overwrite
         * the last report. */
        shown.is_terminal &= view == REPORT_CARDS && r->options->watch;
        r->frames.between = view == REPORT_JSON ? "" : "\n";
        n = terminal_show(&r->frames, &shown, out->data, out->len);
        if (n == 0)
                return 0;
        return complain(EXIT_BROKEN, &fault, fault_set(&fault, n, "standard output: %s", strerror(-n)));
}

static int report(Report *r, Inspect *inspect) {
        const Terminal t = terminal_look(r->options->colour);
        ReportView view = view_of(r->options, &t);
        _cleanup_buf_ Buf out = BUF_NULL;
        Fault fault = FAULT_NULL;
        int status;

        status = print(r, view, &t, inspect, &out, &fault);
        if (status != 0)
                return complain(status < 0 ? EXIT_BROKEN : EXIT_NO, &fault, status);
        status = write_out(r, view, &t, &out);
        if (status == 0 && view == REPORT_TABLE && !r->options->details && !r->options->watch)
                print_differences(r, inspect);
        return status;
}

/* Returns an exit status; negated when objects are missing from the report. */
static int read_and_report(Report *r, const Cluster *c) {
        _cleanup_(inspect_freep) Inspect *inspect = NULL;
        int status, printed;

        if (inspect_new(&inspect) < 0)
                return complain_no_memory();
        inspect_set_namespace(inspect, c->namespace_);
        status = cluster_read(c, inspect);
        if (status <= 0 && c->used) {
                int missing = usage_read(c, inspect);

                status = missing != 0 ? missing : status;
        }
        if (status > 0)
                return status;
        do
                printed = report(r, inspect);
        while (printed == 0 && r->options->watch && terminal_wait(WATCH_SECONDS));
        if (r->options->watch && terminal_is_gone())
                return EXIT_BROKEN;
        return printed != 0 ? printed : status;
}

/* Repeats the report. Later readings of the cluster may fail: the message stays on the terminal,
 * and the next report is drawn below it. */
static int watch(Report *r) {
        Cluster again = *r->cluster;
        int status;

        again.cached = true;
        status = read_and_report(r, &again);
        if (status > 0)
                return status;
        again.quiet = true;
        while (status != EXIT_BROKEN) {
                status = read_and_report(r, &again);
                if (status <= 0)
                        continue;
                r->frames.n_lines = 0;
                (void) terminal_wait(WATCH_SECONDS);
                if (terminal_is_gone())
                        return EXIT_BROKEN;
        }
        return status;
}

int report_run(const ReportOptions *o, const Cluster *c) {
        Report r = {.options = o, .cluster = c};
        int status;

        if (o->watch)
                terminal_frames_begin();
        status = o->watch ? watch(&r) : read_and_report(&r, c);

        terminal_frames_done(&r.frames);
        return status < 0 ? -status : status;
}
