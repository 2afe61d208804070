/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What becomes of a window: opened, extended, closed, and in the end over and charged, or overdue.
 * i: its tenant's number. Times are ns. */

#include "arbiter/engine_helpers.h"

void window_open(Engine *e, uint32_t i, uint64_t now, bool contested);
void window_extend(Engine *e, uint32_t i, uint64_t now, bool contested);
void window_idle(Engine *e, EngineTenant *t, uint64_t now);       /* it has nothing to do in it */
void window_apply_idle(Engine *e, EngineTenant *t, uint64_t now); /* of rests that it did not ring for */
void window_close(Engine *e, uint32_t i, uint64_t now);
void window_late_report(Engine *e, uint32_t i,
                        uint64_t now);    /* it says of what it had used that it was more */
void window_renew(Engine *e, uint32_t i); /* its owner takes it for over, and it is not */

/* Whatever is still to be said of a window that is closed: over, or overdue. */
void window_step(Engine *e, uint32_t i, uint64_t now);

/* Who is let go has no window, only work. Who is held again may have work on the card that nobody
 * has counted: the others wait for it as for the end of a window. */
void window_reset(Engine *e, uint32_t i);
