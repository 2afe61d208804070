/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/account.h"

enum {
        CLOCK_SCALE = 16
}; /* an int64_t holds 18 years of a card, and a weight of 10,000 still divides a quantum */

static int64_t per_weight(const TenantPolicy *policy, int64_t ns) {
        return ns * CLOCK_SCALE / (int64_t) (policy->weight > 0 ? policy->weight : 1);
}

static int64_t share_of(const TenantPolicy *policy, int64_t ns) {
        return ns * (int64_t) policy->rate / POLICY_PPM;
}

void account_init(Account *a, const TenantPolicy *policy, int64_t now) {
        *a = (Account){.balance = ACCOUNT_BURST_NS, .clock = now - per_weight(policy, ACCOUNT_BURST_NS)};
}

void account_set_rank(Account *a, const TenantPolicy *policy, int64_t now) {
        int64_t debt = a->balance < 0 ? -a->balance : 0;

        if (a->balance > 0)
                a->balance = 0;
        a->arrears = 0;
        a->clock = now + per_weight(policy, debt);
}

/* Tokens for ns of time, ns; the remainder below 1 ns is kept in a->fraction. */
static int64_t earned(Account *a, const TenantPolicy *policy, uint64_t ns) {
        uint64_t product = ns * policy->rate + a->fraction;

        a->fraction = product % POLICY_PPM;
        return (int64_t) (product / POLICY_PPM);
}

/* Adds up to the ceiling. An amount above the ceiling stays as it is. */
static int64_t fill(int64_t amount, int64_t more, int64_t ceiling) {
        if (amount >= ceiling)
                return amount;
        return amount + more > ceiling ? ceiling : amount + more;
}

/* The most credit of a tenant with work: the same waiting time for each rate, so gaps between
 * windows cost all tenants alike; at least enough for a window. */
static int64_t ceiling(const TenantPolicy *policy) {
        int64_t most = share_of(policy, ACCOUNT_CREDIT_NS);

        return most > ACCOUNT_BURST_NS * 3 / 2 ? most : ACCOUNT_BURST_NS * 3 / 2;
}

void account_advance(Account *a, const TenantPolicy *policy, uint64_t ns, AccountTime how) {
        int64_t more = earned(a, policy, ns), owed;

        switch (how) {
        case ACCOUNT_STALLED: /* pays a debt first, the rest becomes arrears */
                owed = a->balance < 0 ? (-a->balance < more ? -a->balance : more) : 0;
                a->balance += owed;
                a->arrears = fill(a->arrears, more - owed, share_of(policy, ACCOUNT_DEBT_NS));
                return;
        case ACCOUNT_WANTS:
                a->balance = fill(a->balance, more, ceiling(policy));
                return;
        default:
                a->arrears = 0;
                a->balance = a->balance > ACCOUNT_BURST_NS ? ACCOUNT_BURST_NS
                                                           : fill(a->balance, more, ACCOUNT_BURST_NS);
        }
}

void account_wake(Account *a, const TenantPolicy *policy, int64_t now) {
        int64_t begin = now - per_weight(policy, ACCOUNT_BURST_NS);

        if (a->clock < begin)
                a->clock = begin;
}

/* The largest debt, as a balance. It is smaller for a work-conserving tenant: it used time that no
 * other tenant wanted. */
static int64_t floor_of(const TenantPolicy *policy) {
        return policy->conserving ? -ACCOUNT_DEBT_NS : -ACCOUNT_TOTAL_NS;
}

/* Takes ns from the credit, then from the arrears; the rest becomes debt. */
static void pay(Account *a, const TenantPolicy *policy, int64_t ns) {
        int64_t first = a->balance > 0 ? (a->balance < ns ? a->balance : ns) : 0, second;

        a->balance -= first;
        ns -= first;
        second = a->arrears < ns ? a->arrears : ns;
        a->arrears -= second;
        a->balance -= ns - second;
        if (a->balance < floor_of(policy))
                a->balance = floor_of(policy);
}

void account_charge(Account *a, const TenantPolicy *policy, int64_t ns, int64_t now) {
        int64_t most = now + per_weight(policy, ACCOUNT_TOTAL_NS);

        if (ns >= 0)
                pay(a, policy, ns);
        else
                a->balance -= ns;
        a->clock += per_weight(policy, ns);
        if (a->clock > most)
                a->clock = most;
}

void account_refund(Account *a, const TenantPolicy *policy, int64_t ns) {
        a->arrears = fill(a->arrears, ns, share_of(policy, ACCOUNT_DEBT_NS));
        a->clock -= per_weight(policy, ns);
}

int64_t account_tokens(const Account *a) {
        return a->balance + a->arrears;
}

int64_t account_lag(const Account *a, const TenantPolicy *policy) {
        return a->balance * POLICY_PPM / (int64_t) (policy->rate > 0 ? policy->rate : 1) + a->arrears;
}
