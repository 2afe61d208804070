/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/lease_term.h"

#include "random.h"
#include "test.h"
#include "thorough.h"

#define SEC  USEC_PER_SEC
#define UUID "_11112222-3333-4444-5555-666677778888"

static Lease lease_of(const char *holder, const char *renewed) {
        return (Lease){.holder = str_from(holder),
                       .duration_sec = 15,
                       .acquire_time = STR("2026-11-29T12:00:00.000000Z"),
                       .renew_time = str_from(renewed)};
}

/* One read: sent at `sent`, ended at `now`. renewal: a second of the time of day; -1: no Lease.
 * transitions: how many holders followed another one so far. */
static LeaseTermState read_next(LeaseTerm *t, const char *holder, int renewal, int64_t transitions,
                                usec_t sent, usec_t now) {
        char time[32];
        Lease lease;

        (void) snprintf(time, sizeof time, "2026-11-29T12:%02d:%02d.000000Z", renewal / 60 % 60,
                        renewal % 60);
        lease = lease_of(holder, time);
        lease.transitions = transitions;
        ASSERT_OK(lease_term_read(t, renewal < 0 ? NULL : &lease, sent, now));
        return lease_term_state(t, now);
}

static LeaseTermState read_at(LeaseTerm *t, const char *holder, int renewal, usec_t sent, usec_t now) {
        return read_next(t, holder, renewal, 0, sent, now);
}

static void leads_from_a_renewal_that_was_seen(void) {
        LeaseTerm t = {.prefix = STR("a_")};

        ASSERT_INT(lease_term_state(&t, 0), LEASE_TERM_UNREAD);
        /* When the first record was written is not known. */
        ASSERT_INT(read_at(&t, "a" UUID, 0, 100 * SEC, 101 * SEC), LEASE_TERM_STALE);
        ASSERT_INT(read_at(&t, "a" UUID, 0, 102 * SEC, 103 * SEC), LEASE_TERM_STALE);
        ASSERT_INT(read_at(&t, "a" UUID, 2, 104 * SEC, 105 * SEC), LEASE_TERM_LEADING);
        /* It counts from the moment when the last read of the older record was sent. */
        ASSERT_INT(lease_term_state(&t, 112 * SEC - 1), LEASE_TERM_LEADING);
        ASSERT_INT(lease_term_state(&t, 112 * SEC), LEASE_TERM_STALE);
        ASSERT_INT(read_at(&t, "a" UUID, 2, 111 * SEC, 111 * SEC), LEASE_TERM_LEADING);
        ASSERT_INT(lease_term_state(&t, 112 * SEC), LEASE_TERM_STALE);
        /* Another kube-scheduler of the same host goes on. */
        ASSERT_INT(read_at(&t, "a" UUID, 12, 115 * SEC, 115 * SEC), LEASE_TERM_LEADING);
        lease_term_done(&t);
}

/* Gives the term to a reader that begins at `now`. Returns what lease_term_parse() says. */
static int hand_over(LeaseTerm *t, usec_t now) {
        _cleanup_buf_ Buf text = BUF_NULL;

        lease_term_write(t, &text);
        lease_term_done(t);
        return lease_term_parse(t, buf_str(&text), now);
}

static void goes_on_with_the_term_of_another_reader(void) {
        LeaseTerm t = {.prefix = STR("a_")};

        (void) read_at(&t, "", -1, 99 * SEC, 99 * SEC);
        ASSERT_INT(hand_over(&t, 99 * SEC), 0);
        ASSERT_INT(lease_term_state(&t, 99 * SEC), LEASE_TERM_UNREAD);
        (void) read_at(&t, "a" UUID, 0, 100 * SEC, 101 * SEC);
        ASSERT_INT(hand_over(&t, 101 * SEC), 0);
        ASSERT_INT(lease_term_state(&t, 101 * SEC), LEASE_TERM_UNREAD);
        /* A read of the same record makes it no longer, */
        ASSERT_INT(read_at(&t, "a" UUID, 0, 102 * SEC, 102 * SEC), LEASE_TERM_LEADING);
        ASSERT_INT(t.expiry, 109 * SEC);
        /* and a renewal counts from the last read of the earlier record. */
        ASSERT_INT(hand_over(&t, 103 * SEC), 0);
        ASSERT_INT(read_at(&t, "a" UUID, 2, 105 * SEC, 105 * SEC), LEASE_TERM_LEADING);
        ASSERT_INT(t.expiry, 112 * SEC);
        ASSERT_INT(hand_over(&t, 113 * SEC), 0);
        ASSERT_INT(read_at(&t, "a" UUID, 14, 116 * SEC, 116 * SEC), LEASE_TERM_STALE);
        lease_term_done(&t);
}

/* A holder that was seen to live, and that is written over while no reader runs. */
static void another_reader_waits_as_well(void) {
        LeaseTerm t = {.prefix = STR("a_")};

        (void) read_at(&t, "b" UUID, 0, 100 * SEC, 100 * SEC);
        (void) read_at(&t, "b" UUID, 2, 102 * SEC, 102 * SEC);
        ASSERT_INT(hand_over(&t, 103 * SEC), 0);
        ASSERT_INT(read_at(&t, "a" UUID, 3, 104 * SEC, 104 * SEC), LEASE_TERM_TOO_SOON);
        ASSERT_INT(hand_over(&t, 105 * SEC), 0);
        ASSERT_INT(read_at(&t, "a" UUID, 6, 106 * SEC, 106 * SEC), LEASE_TERM_TOO_SOON);
        ASSERT_INT(t.from, 114 * SEC);
        ASSERT_INT(read_at(&t, "b" UUID, 7, 107 * SEC, 107 * SEC), LEASE_TERM_FOREIGN);
        ASSERT_INT(hand_over(&t, 108 * SEC), 0);
        ASSERT_INT(read_at(&t, "b" UUID, 7, 109 * SEC, 109 * SEC), LEASE_TERM_FOREIGN);
        /* A Binding of that one may be under way, also where the reader restarts. */
        ASSERT_INT(read_at(&t, "", 8, 110 * SEC, 110 * SEC), LEASE_TERM_FREE);
        ASSERT_INT(hand_over(&t, 110 * SEC), 0);
        ASSERT_INT(read_at(&t, "a" UUID, 9, 111 * SEC, 111 * SEC), LEASE_TERM_TOO_SOON);
        ASSERT_INT(t.from, 114 * SEC);
        lease_term_done(&t);
}

static void takes_no_other_text(void) {
        static const char *const rows[] = {
                "",
                "\n",
                "1 2 3 4 9 0\na",
                "1 2 3 4 9 0 5\nab", /* a holder that is cut short */
                "1 2 3 4 9 0 5",
                "1 2 3 4 9 0 1 6\na",
                "1 2 3 4 9 0 -1\na",
                "1 2 3 4 9 2 1\na",
                "x 2 3 4 9 0 1\na",
                "51000000 2 3 4 9 0 1\na", /* read later than now */
                "1 51000000 3 4 9 0 1\na",
                "1 2 61000000 4 9 0 1\na", /* longer than any term */
                "1 2 3 61000000 9 0 1\na",
                "1 2 3 18446744073709551615 9 0 1\na",
                "1 2 3 18446744073709551616 9 0 1\na",
        };
        LeaseTerm t = {.prefix = STR("a_")};

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                ASSERT_INT(lease_term_parse(&t, str_from(rows[i]), 50 * SEC), LEASE_E_MALFORMED);
                ASSERT_INT(lease_term_state(&t, 50 * SEC), LEASE_TERM_UNREAD);
        }
        ASSERT_OK(lease_term_parse(&t, STR("50000000 50000000 60000000 60000000 9 1 3\na\nbc"), 50 * SEC));
        ASSERT_INT(lease_term_state(&t, 50 * SEC), LEASE_TERM_UNREAD);
        ASSERT_STR(buf_str(&t.holder), STR("a\nb"));
        ASSERT_STR(buf_str(&t.record), STR("c"));
        ASSERT_TRUE(t.stranger);
        lease_term_done(&t);
}

static void knows_whose_lease_it_is(void) {
        static const struct {
                const char *holder;
                LeaseTermState state;
        } rows[] = {{"", LEASE_TERM_FREE},
                    {"a", LEASE_TERM_FOREIGN},
                    {"a_", LEASE_TERM_FOREIGN},
                    {"a_1234", LEASE_TERM_FOREIGN}, /* an elector of the same host */
                    {"a_111122223333-4444-5555-66667777-8888", LEASE_TERM_FOREIGN},
                    {"ab" UUID, LEASE_TERM_FOREIGN},
                    {"b" UUID, LEASE_TERM_FOREIGN},
                    {" a" UUID, LEASE_TERM_FOREIGN},
                    {"a" UUID "9", LEASE_TERM_FOREIGN},
                    {"a" UUID, LEASE_TERM_LEADING}};

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                LeaseTerm t = {.prefix = STR("a_")};

                ASSERT_INT(read_at(&t, "", -1, SEC, SEC), LEASE_TERM_ABSENT);
                ASSERT_INT(read_at(&t, rows[i].holder, 1, 2 * SEC, 2 * SEC), rows[i].state);
                ASSERT_INT(read_at(&t, "", -1, 3 * SEC, 3 * SEC), LEASE_TERM_ABSENT);
                lease_term_done(&t);
        }
}

/* A Lease that changes its holder by hand while the earlier holder lives. */
static void waits_for_a_holder_that_may_still_act(void) {
        LeaseTerm t = {.prefix = STR("a_")};

        ASSERT_INT(read_at(&t, "b" UUID, 0, 100 * SEC, 100 * SEC), LEASE_TERM_FOREIGN);
        ASSERT_INT(read_at(&t, "b" UUID, 2, 102 * SEC, 102 * SEC), LEASE_TERM_FOREIGN);
        ASSERT_INT(read_at(&t, "a" UUID, 3, 103 * SEC, 103 * SEC), LEASE_TERM_TOO_SOON);
        for (int s = 5; s < 13; s += 2) {
                usec_t now = (usec_t) (100 + s) * SEC;

                ASSERT_INT(read_at(&t, "a" UUID, s, now, now), LEASE_TERM_TOO_SOON);
        }
        ASSERT_INT(lease_term_state(&t, 113 * SEC - 1), LEASE_TERM_TOO_SOON);
        ASSERT_INT(lease_term_state(&t, 113 * SEC), LEASE_TERM_LEADING);
        lease_term_done(&t);
}

/* The reader of the earlier holder may have a Binding under way, which takes 4 s at most. */
static void waits_for_bindings_where_a_lease_was_given_back(void) {
        LeaseTerm t = {.prefix = STR("a_")};

        ASSERT_INT(read_at(&t, "", 0, 100 * SEC, 100 * SEC), LEASE_TERM_FREE); /* it had any holder before */
        ASSERT_INT(read_at(&t, "a" UUID, 1, 101 * SEC, 101 * SEC), LEASE_TERM_TOO_SOON);
        ASSERT_INT(lease_term_state(&t, 104 * SEC), LEASE_TERM_LEADING);
        ASSERT_INT(read_at(&t, "", 5, 105 * SEC, 105 * SEC), LEASE_TERM_FREE); /* our own */
        ASSERT_INT(read_at(&t, "a" UUID, 6, 106 * SEC, 106 * SEC), LEASE_TERM_LEADING);
        ASSERT_INT(read_at(&t, "b" UUID, 7, 107 * SEC, 107 * SEC), LEASE_TERM_FOREIGN);
        ASSERT_INT(read_at(&t, "", 8, 108 * SEC, 109 * SEC), LEASE_TERM_FREE);
        ASSERT_INT(read_at(&t, "", 8, 110 * SEC, 110 * SEC), LEASE_TERM_FREE);
        ASSERT_INT(read_at(&t, "a" UUID, 10, 111 * SEC, 111 * SEC), LEASE_TERM_TOO_SOON);
        ASSERT_INT(read_at(&t, "a" UUID, 12, 112 * SEC, 112 * SEC), LEASE_TERM_TOO_SOON);
        ASSERT_INT(lease_term_state(&t, 113 * SEC - 1), LEASE_TERM_TOO_SOON);
        ASSERT_INT(lease_term_state(&t, 113 * SEC), LEASE_TERM_LEADING);
        ASSERT_INT(read_at(&t, "b" UUID, 14, 114 * SEC, 114 * SEC), LEASE_TERM_FOREIGN);
        ASSERT_INT(read_at(&t, "", 15, 115 * SEC, 115 * SEC), LEASE_TERM_FREE);
        ASSERT_INT(read_at(&t, "a" UUID, 20, 120 * SEC, 120 * SEC), LEASE_TERM_LEADING);
        lease_term_done(&t);
}

/* Another holder came and gave the Lease back between two reads, or before the first one. */
static void waits_for_bindings_of_a_holder_it_did_not_see(void) {
        static const char other[] = "a_99992222-3333-4444-5555-666677778888";
        LeaseTerm t = {.prefix = STR("a_")};

        ASSERT_INT(read_next(&t, "a" UUID, 0, 5, 100 * SEC, 100 * SEC), LEASE_TERM_STALE);
        ASSERT_INT(read_next(&t, "a" UUID, 2, 5, 102 * SEC, 102 * SEC), LEASE_TERM_TOO_SOON);
        ASSERT_INT(t.from, 104 * SEC);
        for (unsigned later = 0; later < 2; later++) {
                usec_t now = (later ? 130 : 106) * SEC;

                for (int64_t n = 6; n <= 7; n++) {
                        bool waits = n == 7;

                        lease_term_done(&t);
                        (void) read_next(&t, "a" UUID, 0, 5, 100 * SEC, 100 * SEC);
                        ASSERT_INT(read_next(&t, "a" UUID, 5, 5, 105 * SEC, 105 * SEC), LEASE_TERM_LEADING);
                        ASSERT_INT(hand_over(&t, now), 0);
                        if (later)
                                (void) read_next(&t, other, 28, n, now, now);
                        ASSERT_INT(read_next(&t, other, 30, n, now, now),
                                   waits ? LEASE_TERM_TOO_SOON : LEASE_TERM_LEADING);
                        ASSERT_INT(lease_term_state(&t, now + 4 * SEC), LEASE_TERM_LEADING);
                }
        }
        lease_term_done(&t);
        (void) read_next(&t, "a" UUID, 0, 5, 100 * SEC, 100 * SEC);
        ASSERT_INT(hand_over(&t, 101 * SEC), 0);
        ASSERT_INT(read_next(&t, "", 1, 6, 101 * SEC, 101 * SEC), LEASE_TERM_FREE);
        ASSERT_INT(read_next(&t, other, 2, 7, 102 * SEC, 102 * SEC), LEASE_TERM_TOO_SOON);
        ASSERT_INT(t.from, 105 * SEC);
        /* Another kube-scheduler of ours does not end the wait. */
        ASSERT_INT(read_next(&t, "", 2, 7, 103 * SEC, 103 * SEC), LEASE_TERM_FREE);
        ASSERT_INT(read_next(&t, "a" UUID, 3, 8, 104 * SEC, 104 * SEC), LEASE_TERM_TOO_SOON);
        ASSERT_INT(t.from, 105 * SEC);
        /* The Lease was removed: the next holder begins with 0. */
        ASSERT_INT(read_at(&t, "", -1, 110 * SEC, 110 * SEC), LEASE_TERM_ABSENT);
        ASSERT_INT(read_next(&t, "a" UUID, 11, 0, 111 * SEC, 111 * SEC), LEASE_TERM_LEADING);
        /* No read saw that it was given back. */
        ASSERT_INT(read_next(&t, "b" UUID, 12, 1, 112 * SEC, 112 * SEC), LEASE_TERM_FOREIGN);
        ASSERT_INT(read_next(&t, "a" UUID, 13, 2, 113 * SEC, 113 * SEC), LEASE_TERM_TOO_SOON);
        ASSERT_INT(t.from, 117 * SEC);
        lease_term_done(&t);
}

static void takes_over_at_once_what_has_run_out(void) {
        LeaseTerm t = {.prefix = STR("a_")};

        (void) read_at(&t, "b" UUID, 0, 100 * SEC, 100 * SEC);
        for (usec_t s = 101; s <= 115; s++)
                ASSERT_INT(read_at(&t, "b" UUID, 0, s * SEC, s * SEC), LEASE_TERM_FOREIGN);
        ASSERT_INT(read_at(&t, "a" UUID, 15, 116 * SEC, 116 * SEC), LEASE_TERM_LEADING);
        ASSERT_INT(read_at(&t, "b" UUID, 16, 117 * SEC, 117 * SEC), LEASE_TERM_FOREIGN);
        lease_term_done(&t);
}

/* A candidate compares times by the second, and nothing outside of the record. */
static void other_changes_are_no_renewal(void) {
        LeaseTerm t = {.prefix = STR("a_")};
        Lease lease = lease_of("a" UUID, "2026-11-29T12:00:00.100000Z");

        (void) read_at(&t, "", -1, SEC, SEC);
        ASSERT_OK(lease_term_read(&t, &lease, 2 * SEC, 2 * SEC));
        lease.renew_time = STR("2026-11-29T12:00:00.900000Z");
        lease.resource_version = STR("7");
        lease.metadata = STR("{}");
        ASSERT_OK(lease_term_read(&t, &lease, 3 * SEC, 3 * SEC));
        ASSERT_INT(lease_term_state(&t, 11 * SEC - 1), LEASE_TERM_LEADING);
        ASSERT_INT(lease_term_state(&t, 11 * SEC), LEASE_TERM_STALE);
        lease_term_done(&t);
}

static void a_shorter_lease_counts_less(void) {
        static const struct {
                int64_t duration;
                usec_t term;
        } rows[] = {{-1, 0}, {0, 0}, {1, SEC * 2 / 3}, {3, 2 * SEC}, {15, 10 * SEC}, {INT64_MAX, 10 * SEC}};

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                LeaseTerm t = {.prefix = STR("a_")};
                Lease lease = lease_of("a" UUID, "2026-11-29T12:00:00Z");

                lease.duration_sec = rows[i].duration;
                (void) read_at(&t, "", -1, SEC, SEC);
                ASSERT_OK(lease_term_read(&t, &lease, SEC, SEC));
                ASSERT_INT(t.expiry, SEC + rows[i].term);
                lease_term_done(&t);
        }
}

/* ---- a model: two pods, each with a kube-scheduler and a reader ---- */

enum { TICK = 50000, /* microseconds */ PODS = 2, IDENTITY = 48 };

typedef struct Record {
        char holder[IDENTITY];
        int64_t seconds; /* of its renewTime */
        int64_t transitions;
        unsigned version;
} Record;

/* A request: the server acts on it at one time, and the answer is there at a later one. */
typedef struct Trip {
        bool under_way, done;
        usec_t sent, at_server, answered;
        Record seen;
} Trip;

typedef struct Pod {
        char name;
        unsigned lives; /* of its kube-scheduler, each with an identity of its own */
        Record observed;
        usec_t observed_at, renewed, next;
        bool leads, writing;
        Trip kube, reader;
        usec_t read_next;
        LeaseTerm term;
        unsigned known; /* the version that its reader has seen last */
        usec_t binding; /* until then a Binding of its reader may be under way */
        /* The version by which its kube-scheduler gave the Lease back, and asks no more; 0: the
         * reader knows. */
        unsigned gave_back;
} Pod;

typedef struct Model {
        Random random;
        usec_t now;
        Record record;
        Pod pods[PODS];
        unsigned led, edits;
        usec_t edited;
} Model;

static bool is_edited(const Model *m) {
        return m->edits > 0 && m->now <= m->edited + 20 * SEC;
}

static void identity_of(const Pod *p, char ret[IDENTITY]) {
        (void) snprintf(ret, IDENTITY, "%c_%08u-2222-3333-4444-555566667777", p->name, p->lives);
}

static void send_trip(Model *m, Trip *t) {
        usec_t slow = random_below(&m->random, 20) == 0 ? 4 * SEC : 200000;

        *t = (Trip){.under_way = true, .sent = m->now};
        t->at_server = m->now + random_below(&m->random, slow);
        t->answered = t->at_server + random_below(&m->random, slow);
}

/* transitions: 1 for a holder that follows another one. */
static void store(Model *m, const char *holder, int transitions) {
        (void) snprintf(m->record.holder, sizeof m->record.holder, "%s", holder);
        m->record.seconds = (int64_t) (m->now / SEC);
        m->record.transitions += transitions;
        m->record.version++;
}

/* It gives the Lease back, or is killed. After an edit by hand, giving back would be the second
 * change. */
static void end_kube(Model *m, Pod *p, bool gives_back) {
        char own[IDENTITY];

        identity_of(p, own);
        if (gives_back && !is_edited(m) && strcmp(m->record.holder, own) == 0) {
                store(m, "", 0);
                p->gave_back = m->record.version;
        }
        p->lives++;
        p->leads = p->writing = false;
        p->kube.under_way = false;
        p->observed_at = m->now;
        p->observed = (Record){{0}};
        p->next = m->now + random_below(&m->random, 3 * SEC);
}

/* client-go: reads the Lease, then writes it with the version that was read. A candidate waits
 * until it has seen the record unchanged for a lease; a leader ends when it cannot renew. */
static void step_kube(Model *m, Pod *p) {
        char own[IDENTITY];

        identity_of(p, own);
        if (p->leads && m->now >= p->renewed + 10 * SEC)
                end_kube(m, p, false);
        if (p->kube.under_way && !p->kube.done && m->now >= p->kube.at_server) {
                p->kube.done = true;
                if (p->writing && m->record.version == p->observed.version)
                        store(m, own, strcmp(m->record.holder, own) != 0);
                p->kube.seen = m->record;
        }
        if (p->kube.under_way && m->now >= p->kube.answered) {
                bool wrote = p->writing && strcmp(p->kube.seen.holder, own) == 0;

                p->kube.under_way = false;
                p->next = m->now + 2 * SEC;
                if (strcmp(p->observed.holder, p->kube.seen.holder) != 0 ||
                    p->observed.seconds != p->kube.seen.seconds)
                        p->observed_at = m->now;
                p->observed = p->kube.seen;
                if (wrote) {
                        p->leads = true;
                        p->renewed = p->kube.sent;
                } else if (!p->writing &&
                           (strcmp(p->observed.holder, own) == 0 || p->observed.holder[0] == '\0' ||
                            m->now >= p->observed_at + 15 * SEC)) {
                        p->writing = true;
                        send_trip(m, &p->kube);
                        return;
                }
                p->writing = false;
        }
        if (!p->kube.under_way && m->now >= p->next)
                send_trip(m, &p->kube);
}

/* Another reader takes its place, now and then much later, or without the file. */
static void restart_reader(Model *m, Pod *p) {
        unsigned kind = random_below(&m->random, 8);

        p->reader.under_way = false;
        p->read_next = m->now + random_below(&m->random, (kind < 2 ? 60 : 6) * SEC);
        if (kind == 7 && !is_edited(m)) {
                lease_term_done(&p->term);
                p->known = 0;
        } else
                ASSERT_OK(hand_over(&p->term, m->now));
}

static bool step_reader(Model *m, Pod *p) {
        Trip *t = &p->reader;

        if (t->under_way && !t->done && m->now >= t->at_server) {
                t->done = true;
                t->seen = m->record;
        }
        if (t->under_way && m->now >= t->answered) {
                t->under_way = false;
                p->read_next = m->now + (random_below(&m->random, 30) == 0 ? 8 * SEC : SEC);
                p->gave_back = t->seen.version < p->gave_back ? p->gave_back : 0;
                p->known = t->seen.version;
                (void) read_next(&p->term, t->seen.holder, (int) (t->seen.seconds % 3600),
                                 t->seen.transitions, t->sent, m->now);
        }
        if (!t->under_way && m->now >= p->read_next)
                send_trip(m, t);
        if (lease_term_state(&p->term, m->now) != LEASE_TERM_LEADING)
                return false;
        if (p->leads) /* and asks for a Binding */
                p->binding = m->now + LEASE_BINDING_SEC * SEC;
        return true;
}

/* By hand: to any identity, of either pod or of none. Two changes that a reader sees as one may be
 * what an election would have written, and are not tried. */
static void edit(Model *m) {
        Pod *p = &m->pods[random_below(&m->random, PODS)];
        char holder[IDENTITY] = "c" UUID;

        for (int i = 0; i < PODS; i++)
                if (m->pods[i].known != m->record.version)
                        return;
        if (random_below(&m->random, 4) > 0)
                identity_of(p, holder);
        store(m, holder, 0);
        m->edits++;
        m->edited = m->now;
}

/* Whether a reader leads while a Binding of the other pod may be under way. After an edit by hand
 * it may. */
static bool leads_too_soon(const Model *m, const bool leads[PODS]) {
        return m->now > m->edited + 20 * SEC &&
               ((leads[0] && m->pods[1].binding > m->now) || (leads[1] && m->pods[0].binding > m->now));
}

/* Returns the number of edits. */
static unsigned run_model(uint64_t seed) {
        Model m = {.random = {.state = seed}};

        store(&m, "c" UUID, 0);
        for (int i = 0; i < PODS; i++) {
                m.pods[i].name = (char) ('a' + i);
                m.pods[i].term.prefix = i == 0 ? STR("a_") : STR("b_");
        }
        for (m.now = SEC; m.now < 600 * SEC; m.now += TICK) {
                unsigned leading = 0;
                bool leads[PODS];

                for (int i = 0; i < PODS; i++) {
                        step_kube(&m, &m.pods[i]);
                        leads[i] = step_reader(&m, &m.pods[i]) && m.pods[i].gave_back == 0;
                        leading += leads[i];
                        if (random_below(&m.random, 1200) == 0) /* once a minute */
                                end_kube(&m, &m.pods[i], random_below(&m.random, 2));
                        if (random_below(&m.random, 800) == 0)
                                restart_reader(&m, &m.pods[i]);
                }
                if (random_below(&m.random, 1200) == 0)
                        edit(&m);
                if (leading > 1)
                        TEST_FAIL_("seed %llu: both lead at %llu", (unsigned long long) seed,
                                   (unsigned long long) m.now);
                if (leads_too_soon(&m, leads))
                        TEST_FAIL_("seed %llu: leads beside a Binding of the other at %llu",
                                   (unsigned long long) seed, (unsigned long long) m.now);
                m.led += leading;
        }
        ASSERT_TRUE(m.led > 0);
        for (int i = 0; i < PODS; i++)
                lease_term_done(&m.pods[i].term);
        return m.edits;
}

static void two_never_lead(void) {
        unsigned edits = 0;

        for (unsigned seed = 1; seed <= few_or_all(100, 3000); seed++)
                edits += run_model(seed);
        ASSERT_TRUE(edits > 0);
}

int main(void) {
        return TEST_MAIN(TEST(leads_from_a_renewal_that_was_seen),
                         TEST(goes_on_with_the_term_of_another_reader), TEST(another_reader_waits_as_well),
                         TEST(takes_no_other_text), TEST(knows_whose_lease_it_is),
                         TEST(waits_for_a_holder_that_may_still_act),
                         TEST(waits_for_bindings_where_a_lease_was_given_back),

                         TEST(waits_for_bindings_of_a_holder_it_did_not_see),
                         TEST(takes_over_at_once_what_has_run_out), TEST(other_changes_are_no_renewal),
                         TEST(a_shorter_lease_counts_less), TEST(two_never_lead));
}
