/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The account of one tenant on one card: how much time of the card it may still use, in ns. Pure.
 * The engine adds elapsed time (account_advance()) and subtracts charges (account_charge()).
 *
 * A tenant with a cap has a token bucket that fills at its rate. Charges empty it. A negative
 * balance is a debt, and no window opens until it is paid, so the mean converges to the rate
 * whatever the kernel length. Bounds:
 *   credit   of an idle tenant at most ACCOUNT_BURST_NS: enough for a window, and no savings.
 *   debt     is time of the card that passed: a tenant of 10 % that ran 500 ms waits 4.5 s. Work
 *            that was not reported is charged at most ACCOUNT_DEBT_NS per process.
 *   arrears  time lost while an overlong kernel of another tenant held the card. They fill apart
 *            from the bucket and are usable while that tenant pays its debt.
 *
 * A work-conserving tenant has a virtual clock: charged time divided by weight. The smallest clock
 * is next. A tenant that was idle restarts near the clock of the card. */

#include "arbiter/tenant_policy.h"
#include "arbiter/tunables.h"

typedef struct Account {
        int64_t balance, arrears; /* ns */
        uint64_t fraction;        /* ns * ppm: earnings below 1 ns */
        int64_t clock;            /* virtual clock: ns * 16 / weight */
} Account;

typedef enum AccountTime {
        ACCOUNT_IDLE,   /* no work */
        ACCOUNT_WANTS,  /* has work */
        ACCOUNT_STALLED /* has work, but another tenant's kernel runs beyond its window */
} AccountTime;

/* Starts with the credit of an idle tenant. now: the virtual clock of the card for the tenant's
 * priority, here and below. */
void account_init(Account *a, const TenantPolicy *policy, int64_t now);

/* The tenant changed between cap and work-conserving, or changed priority or weight. A negative
 * balance stays. Credit, arrears, and how far it was ahead by weight are dropped. */
void account_set_rank(Account *a, const TenantPolicy *policy, int64_t now);

/* ns have passed on the card: earns tokens at the tenant's rate, up to the bound for `how`. */
void account_advance(Account *a, const TenantPolicy *policy, uint64_t ns, AccountTime how);

/* The tenant has work again after it was idle: limits how far its virtual clock is behind. */
void account_wake(Account *a, const TenantPolicy *policy, int64_t now);

/* Charges ns of card time. Negative: refunds an earlier charge that was too high. */
void account_charge(Account *a, const TenantPolicy *policy, int64_t ns, int64_t now);

/* The tenant was charged ns that another tenant used: they are added to the arrears. */
void account_refund(Account *a, const TenantPolicy *policy, int64_t ns);

/* Returns balance plus arrears, in ns of card time. */
int64_t account_tokens(const Account *a);
int64_t account_lag(
        const Account *a,
        const TenantPolicy
                *policy); /* ns of waiting time that the tenant is behind its rate; negative: ahead */
