/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a tenant has coming to it, in ns of the card. Pure.
 *
 * A tenant with a cap has a bucket that fills at its rate. What it uses is taken out, more than is in it is debt, and no window opens before
 * the debt is paid; so the mean goes to the rate, however long a kernel was. Three bounds:
 *   credit   of an idle tenant: ACCOUNT_BURST_NS, so that it may begin at once, and cannot save up.
 *   debt     none but the card's time: only time that passed is charged. A tenant of 10 % that ran 500 ms owes 4.5 s of
 *            waiting, which is what 10 % means. Work that was not measured is charged ACCOUNT_DEBT_NS at most per process that had some
 *            on the card: the longest kernel that is not yet one that hangs. What runs longer is reported.
 *   arrears  what it could not have because another one's kernel would not end. It fills apart from the bucket, so that it is paid
 *            back when that other one waits off its debt, and does not count as credit in ordinary times.
 *
 * A work-conserving tenant has a clock of its own, which advances by what it uses over its weight; the one
 * that is most behind is next. A debt is to be ahead; to have been idle is to begin where the
 * others are. */

#include "arbiter/tenant_policy.h"
#include "arbiter/tunables.h"

typedef struct Account {
        int64_t balance, arrears; /* ns */
        uint64_t fraction;        /* ns * ppm below one ns */
        int64_t clock;            /* ns * 16 / weight; of its rank */
} Account;

typedef enum AccountTime {
        ACCOUNT_IDLE,   /* it wants nothing */
        ACCOUNT_WANTS,  /* it has work */
        ACCOUNT_STALLED /* it has work, and the card is held by a kernel that outlives its window */
} AccountTime;

/* The newest: begins with the credit of an idle one. now: the clock of the card. */
void account_init(Account *a, const TenantPolicy *policy, int64_t now);

/* It was conserving and is not any more, or the other way round, or is of another rank now. What it
 * owes stays, what it has coming to it does not. */
void account_set_rank(Account *a, const TenantPolicy *policy, int64_t now);

/* Its weight is another one: it stays ahead, or behind, by as many ns of the card. */
void account_set_weight(Account *a, const TenantPolicy *before, const TenantPolicy *after, int64_t now);

void account_advance(Account *a, const TenantPolicy *policy, uint64_t ns, AccountTime how);

/* It wakes after having been idle. */
void account_wake(Account *a, const TenantPolicy *policy, int64_t now);

/* ns may be below zero: what was charged too much. */
void account_charge(Account *a, const TenantPolicy *policy, int64_t ns, int64_t now);

/* What it was charged and another one has had: into the arrears. */
void account_refund(Account *a, const TenantPolicy *policy, int64_t ns);

int64_t account_tokens(const Account *a);
int64_t account_lag(const Account *a,
                    const TenantPolicy *policy); /* ns of waiting that it is behind; below zero: ahead */
