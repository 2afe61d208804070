/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What /gangs and /metrics show of the gangs. */

#include "scheduler/gang/gangs.h"

/* A JSON array, by namespace and name. */
void gang_report_list(const Gangs *gs, usec_t now, Buf *out);
void gang_report_metrics(const Gangs *gs, Buf *out);
