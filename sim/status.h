/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* All cards and clients with what they hold, as JSON: the file `status`, which the real driver does
 * not have. */

#include "base/buf.h"
#include "sim/sim.h"

void sim_status_write(const Sim *s, Buf *out);
