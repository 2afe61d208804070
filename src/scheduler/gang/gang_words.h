/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Why a gang is not satisfied, in words for people: of an Event, a condition or /gangs. */

#include "scheduler/gang/gang_table.h"

enum { GANG_WORDS_MAX = REFUSAL_REASON_MAX + 1, GANG_WORDS_MEMBER = 30 /* shown of its name */ };

/* "gang NAME" and this text. *out has GANG_WORDS_MAX bytes. */
_printf_(3, 4) void gang_words_say(const Gang *g, char *out, const char *format, ...);

/* By its state and its members; empty when it is satisfied. *why as above. */
void gang_words_explain(const Gang *g, char *why);
