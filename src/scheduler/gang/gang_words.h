/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Sentences that say why a gang is not satisfied, for an Event, a condition or /gangs. */

#include "scheduler/gang/gang_table.h"

enum { GANG_WORDS_MAX = REFUSAL_REASON_MAX + 1, GANG_WORDS_MEMBER = 30 /* bytes of a member's name */ };

/* Writes "gang NAME" and the formatted text to out, which has GANG_WORDS_MAX bytes. Non-ASCII
 * characters and '%' become '?'. */
_printf_(3, 4) void gang_words_say(const Gang *g, char *out, const char *format, ...);

/* Writes the reason by the gang's state and members; "" when it is satisfied. why has
 * GANG_WORDS_MAX bytes. */
void gang_words_explain(const Gang *g, char *why);
