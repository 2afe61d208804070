/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Kernels that do not end, and whom to tell of: engine_next_overrun(). */

#include "arbiter/engine-internal.h"

/* At each step: while one that was told of lasts, others may be waiting for it, and are not blamed
 * for that time. now: ns. */
void overrun_report_update(Engine *e, uint64_t now);
