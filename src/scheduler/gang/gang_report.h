/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The gangs as GET /gangs and /metrics show them. */

#include "scheduler/gang/gangs.h"

/* Appends a JSON array of all gangs, sorted by namespace/name. */
void gang_report_list(const Gangs *gs, usec_t now, Buf *out);
void gang_report_metrics(const Gangs *gs, Buf *out);
