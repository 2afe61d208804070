/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Kernels that do not end, and the reports of them. */

#include "arbiter/engine_state.h"

/* At each step: while one that was told of lasts, others may be waiting for it, and are not blamed
 * for that time. now: ns. */
void overrun_report_update(Engine *e, uint64_t now);

typedef struct OverrunReport {
        uint32_t tenant;
        uint64_t since;         /* its window closed then, and its work has not ended */
        bool partial, repeated; /* others of its processes go on; told before, and lasts */
} OverrunReport;

/* Kernels that have run for longer than e->overrun_limit, and each e->overrun_limit that they last. Of several the
 * one that has run longest; another's time counts from when that one is gone, because until then it
 * may have waited for it. False: there is none. */
bool overrun_report_next(Engine *e, OverrunReport *ret);
