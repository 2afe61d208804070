/* SPDX-License-Identifier: Apache-2.0 */
#include "arbiter/account.h"

enum { CLOCK_SCALE = 16 }; /* 18 years of one card fit, and weights to 10,000 still divide a quantum well */

static int64_t per_weight(const Terms *terms, int64_t ns) {
        return ns * CLOCK_SCALE / (int64_t) (terms->weight > 0 ? terms->weight : 1);
}

static int64_t share_of(const Terms *terms, int64_t ns) {
        return ns * (int64_t) terms->rate / POLICY_PPM;
}

void account_init(Account *a, const Terms *terms, int64_t now) {
        *a = (Account){.balance = ACCOUNT_BURST, .clock = now - per_weight(terms, ACCOUNT_BURST)};
}

void account_convert(Account *a, const Terms *terms, int64_t now) {
        int64_t debt = a->balance < 0 ? -a->balance : 0;

        if (a->balance > 0)
                a->balance = 0;
        a->arrears = 0;
        a->clock = now + per_weight(terms, debt);
}

void account_weigh_anew(Account *a, const Terms *before, const Terms *after, int64_t now) {
        int64_t old = before->weight > 0 ? before->weight : 1, most = per_weight(before, ACCOUNT_MOST);
        int64_t ahead = a->clock - now < -most ? -most : a->clock - now; /* who has slept for days */

        a->clock = now + per_weight(after, ahead * old / CLOCK_SCALE);
}

static int64_t earned(Account *a, const Terms *terms, uint64_t ns) {
        uint64_t product = ns * terms->rate + a->fraction;

        a->fraction = product % POLICY_PPM;
        return (int64_t) (product / POLICY_PPM);
}

/* What is there already is never cut by filling. */
static int64_t fill(int64_t amount, int64_t more, int64_t ceiling) {
        if (amount >= ceiling)
                return amount;
        return amount + more > ceiling ? ceiling : amount + more;
}

/* The same time for all, so that all lose alike where windows have gaps; and never less than makes
 * a window. */
static int64_t ceiling(const Terms *terms) {
        int64_t most = share_of(terms, ACCOUNT_LAG);

        return most > ACCOUNT_BURST * 3 / 2 ? most : ACCOUNT_BURST * 3 / 2;
}

void account_pass(Account *a, const Terms *terms, uint64_t ns, AccountTime how) {
        int64_t more = earned(a, terms, ns), owed;

        switch (how) {
        case ACCOUNT_STALLED: /* debts first */
                owed = a->balance < 0 ? (-a->balance < more ? -a->balance : more) : 0;
                a->balance += owed;
                a->arrears = fill(a->arrears, more - owed, share_of(terms, ACCOUNT_DEBT));
                return;
        case ACCOUNT_WANTS:
                a->balance = fill(a->balance, more, ceiling(terms));
                return;
        default:
                a->arrears = 0;
                a->balance =
                        a->balance > ACCOUNT_BURST ? ACCOUNT_BURST : fill(a->balance, more, ACCOUNT_BURST);
        }
}

void account_wake(Account *a, const Terms *terms, int64_t now) {
        int64_t begin = now - per_weight(terms, ACCOUNT_BURST);

        if (a->clock < begin)
                a->clock = begin;
}

/* Who is conserving has no debt but his clock: what others left him is nobody's loss. */
static int64_t floor_of(const Terms *terms) {
        return terms->conserving ? -ACCOUNT_DEBT : -ACCOUNT_MOST;
}

static void pay(Account *a, const Terms *terms, int64_t ns) {
        int64_t first = a->balance > 0 ? (a->balance < ns ? a->balance : ns) : 0, second;

        a->balance -= first;
        ns -= first;
        second = a->arrears < ns ? a->arrears : ns;
        a->arrears -= second;
        a->balance -= ns - second;
        if (a->balance < floor_of(terms))
                a->balance = floor_of(terms);
}

void account_charge(Account *a, const Terms *terms, int64_t ns, int64_t now) {
        int64_t most = now + per_weight(terms, ACCOUNT_MOST);

        if (ns >= 0)
                pay(a, terms, ns);
        else
                a->balance -= ns;
        a->clock += per_weight(terms, ns);
        if (a->clock > most)
                a->clock = most;
}

void account_refund(Account *a, const Terms *terms, int64_t ns) {
        a->arrears = fill(a->arrears, ns, share_of(terms, ACCOUNT_DEBT));
        a->clock -= per_weight(terms, ns);
}

int64_t account_tokens(const Account *a) {
        return a->balance + a->arrears;
}

int64_t account_lag(const Account *a, const Terms *terms) {
        return a->balance * POLICY_PPM / (int64_t) (terms->rate > 0 ? terms->rate : 1) + a->arrears;
}

int64_t account_clock_after(const Account *a, const Terms *terms, uint64_t ns) {
        return a->clock + per_weight(terms, (int64_t) ns);
}
