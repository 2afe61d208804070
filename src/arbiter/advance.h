/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What passes between two steps: who earned tokens meanwhile, what was granted, whose the card was,
 * and who woke or fell asleep. Times are ns. */

#include "arbiter/engine_helpers.h"

void advance_time(Engine *e, uint64_t now); /* since the last step */
void advance_absence(
        Engine *e,
        uint64_t
                now); /* the same where nobody looked for so long that the gates kept to their percentages alone */
