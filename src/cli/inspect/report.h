/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reads the cluster and prints the report, once or again and again. */

#include "base/terminal.h"
#include "cli/inspect/cluster_read.h"

typedef enum ReportView {
        REPORT_AUTO, /* cards on a terminal, else the table */
        REPORT_TABLE,
        REPORT_CARDS,
        REPORT_JSON,
} ReportView;

typedef struct ReportOptions {
        ReportView view;
        ColourMode colour;
        bool details, watch;
} ReportOptions;

/* Runs the report and returns the exit status. A watch ends only by a signal, or when its first
 * reading fails or its output cannot be written. */
int report_run(const ReportOptions *o, const Cluster *c);
