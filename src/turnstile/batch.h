/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Between account.c, which has the sums, and batch.c, which has the events. */

#include "turnstile/account.h"

/* in_flight becomes used, as estimated. */
void account_settle(Account *a, uint32_t card, uint64_t nsec);
/* What was measured is so much more (or less) than what was settled. */
void account_correct(Account *a, uint32_t card, int64_t nsec);
/* in_flight that came to nothing. */
void account_return(Account *a, uint32_t card, uint64_t nsec);

void account_wake(Account *a, uint32_t card); /* who waits for something to be over */
Account *account_known(void);                 /* for the driver's thread */

/* The context is about to end: what it had is charged as estimated, our events and our stream go. */
void batches_end(Account *a, Context *c);
void batches_end_stream(Account *a, Context *c, CuHandle stream);
