/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Work that is late, and that others wait for no longer: it goes on beside their windows, and
 * nobody can say who had the card. What it costs is reckoned when it has ended. Times are ns. */

#include "arbiter/engine_helpers.h"

void overrun_begin(EngineTenant *t, uint64_t now);
void overrun_note_working(EngineTenant *t); /* at each step: with so many processes */

/* Behind a window of it; moves: it is tied, and launched something. */
void overrun_resume(EngineTenant *t, bool moves);

/* Of all who are overdue, passed until now; taken: somebody has a window, and uses it. */
void overrun_advance(Engine *e, uint64_t passed, uint64_t now, bool taken);

/* Its work has ended: it pays, and others get back what they paid for it. */
void overrun_end(Engine *e, EngineTenant *t, uint64_t now);
