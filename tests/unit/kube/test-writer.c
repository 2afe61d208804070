/* SPDX-License-Identifier: Apache-2.0 */

/* A writer that keeps a number in the annotation of a pod, against the local API server. */

#include "kube/writer.h"

#include <errno.h>

#include "store_fixture.h"

#define POD "/api/v1/namespaces/default/pods/a"

typedef struct Number {
        Writer writer;
        Fixture f;
        bool may_write, no_memory, takes_no_answer;
        unsigned desired, observed, sent, written, refused;
} Number;

static int send_number(void *userdata) {
        char patch[96];
        Number *n = userdata;

        ASSERT_TRUE(!n->writer.call && !n->writer.paused);
        if (n->no_memory) {
                n->no_memory = false;
                return -ENOMEM;
        }
        if (n->desired == n->observed || !n->may_write)
                return 0;
        n->sent = n->desired;
        (void) snprintf(patch, sizeof patch, "{\"metadata\":{\"annotations\":{\"n\":\"%u\"}}}", n->sent);
        return kube_merge_patch(n->f.client, POD, "", str_from(patch), STR(""), writer_answer, &n->writer,
                                &n->writer.call);
}

static WriterNext on_written(void *userdata, const KubeReply *reply, bool written) {
        Number *n = userdata;

        n->written += written;
        n->refused += !written;
        if (!written)
                return WRITER_PAUSE;
        if (n->takes_no_answer)
                return WRITER_REST;
        n->observed = n->sent;
        return WRITER_RECONCILE;
}

/* Long enough that pokes come within the pause. */
static const WriterRule rule = {.base = 40 * USEC_PER_MSEC,
                                .cap = 80 * USEC_PER_MSEC,
                                .reconcile = send_number,
                                .on_answer = on_written};

static void begin(Number *n) {
        *n = (Number){.may_write = true};
        fixture_begin(&n->f, 0);
        apply_pod(&n->f, "a");
        n->writer = (Writer){.rule = &rule, .client = n->f.client, .userdata = n};
}

static void end(Number *n) {
        writer_done(&n->writer);
        fixture_end(&n->f);
}

static void desire(Number *n, unsigned desired) {
        n->desired = desired;
        writer_poke(&n->writer);
}

static void inject(Number *n, StoreFaultKind kind, unsigned status) {
        ASSERT_OK(store_inject(
                n->f.store,
                &(StoreFault){
                        .kind = kind, .count = 1, .method = "PATCH", .status = status, .delay_usec = 1}));
}

static void check_stored(Number *n, const char *text) {
        Answer a = {0};

        ASSERT_OK(kube_get_pod(n->f.client, STR("default"), STR("a"), on_answer, &a, NULL));
        TURN_UNTIL(&n->f, a.n > 0);
        ASSERT_CONTAINS(a.body, text);
}

/* ---- cases ---- */

/* Each number is written once more than it was refused, whatever the refusal is. */
static void every_second_write_fails(void) {
        static const struct {
                StoreFaultKind kind;
                unsigned status;
        } faults[] = {{STORE_FAULT_STATUS, 409}, {STORE_FAULT_STATUS, 429}, {STORE_FAULT_STATUS, 503},
                      {STORE_FAULT_STATUS, 404}, {STORE_FAULT_CUT, 0},      {STORE_FAULT_LOSE_ANSWER, 0}};
        Number n;

        begin(&n);
        for (unsigned i = 0; i < ELEMENTSOF(faults); i++) {
                inject(&n, faults[i].kind, faults[i].status);
                desire(&n, i + 1);
                TURN_UNTIL(&n.f, n.observed == i + 1);
                ASSERT_INT(n.refused, i + 1);
                ASSERT_INT(n.written, i + 1);
                ASSERT_INT(n.writer.attempt, 0);
        }
        check_stored(&n, "\"n\":\"6\"");
        end(&n);
}

/* send_number() asserts that none is in flight and no pause runs. The last number is written. */
static void changes_wait_for_the_answer_and_the_pause(void) {
        Number n;

        begin(&n);
        desire(&n, 1);
        desire(&n, 2);
        ASSERT_INT(n.sent, 1);
        TURN_UNTIL(&n.f, n.observed == 2);
        ASSERT_INT(n.written, 2);
        inject(&n, STORE_FAULT_STATUS, 409);
        desire(&n, 3);
        TURN_UNTIL(&n.f, n.refused == 1);
        for (unsigned i = 4; i < 100; i++)
                desire(&n, i);
        ASSERT_TRUE(!n.writer.call);
        TURN_UNTIL(&n.f, n.observed == 99);
        ASSERT_INT(n.written, 3);
        end(&n);
}

/* Each refusal counts for the length of the next pause, and a success ends the count. */
static void pauses_grow(void) {
        Number n;

        begin(&n);
        for (unsigned i = 0; i < 18; i++)
                inject(&n, STORE_FAULT_STATUS, 500);
        desire(&n, 1);
        for (unsigned i = 1; i <= 18; i++) {
                TURN_UNTIL(&n.f, n.refused == i);
                ASSERT_INT(n.writer.attempt, i < 16 ? i : 16);
                ASSERT_TRUE(n.writer.paused);
        }
        TURN_UNTIL(&n.f, n.observed == 1);
        ASSERT_INT(n.writer.attempt, 0);
        end(&n);
}

static void only_a_leader_writes(void) {
        Number n;

        begin(&n);
        inject(&n, STORE_FAULT_STATUS, 429);
        desire(&n, 1);
        TURN_UNTIL(&n.f, n.refused == 1);
        n.may_write = false; /* lost during the pause */
        TURN_UNTIL(&n.f, !n.writer.paused);
        ASSERT_TRUE(!n.writer.call);
        n.may_write = true;
        writer_poke(&n.writer);
        TURN_UNTIL(&n.f, n.observed == 1);
        ASSERT_INT(n.written, 1);
        end(&n);
}

/* An owner that learns of its write by the watch alone: a change meanwhile counts, and else a wake
 * ends the waiting. */
static void rests_until_poked(void) {
        Number n;

        begin(&n);
        n.takes_no_answer = true;
        desire(&n, 1);
        TURN_UNTIL(&n.f, n.written == 1);
        ASSERT_TRUE(!n.writer.call && !n.writer.paused);
        desire(&n, 2);
        desire(&n, 3);
        TURN_UNTIL(&n.f, n.sent == 3);
        TURN_UNTIL(&n.f, n.written == 3);
        ASSERT_TRUE(!n.writer.call);
        ASSERT_OK(writer_wake(&n.writer, 1));
        TURN_UNTIL(&n.f, n.written == 4);
        end(&n);
}

static void a_pause_outlasts_a_wake(void) {
        Number n;

        begin(&n);
        inject(&n, STORE_FAULT_STATUS, 429);
        ASSERT_OK(writer_wake(&n.writer, 3600 * USEC_PER_SEC));
        desire(&n, 1);
        TURN_UNTIL(&n.f, n.refused == 1);
        ASSERT_OK(writer_wake(&n.writer, 0));
        ASSERT_TRUE(n.writer.paused);
        TURN_UNTIL(&n.f, n.observed == 1);
        end(&n);
}

static void no_memory_is_a_pause(void) {
        Number n;

        begin(&n);
        n.no_memory = true;
        desire(&n, 1);
        ASSERT_TRUE(n.writer.paused);
        TURN_UNTIL(&n.f, n.observed == 1);
        end(&n);
}

/* And begins anew: for an object that was deleted and comes again. */
static void ends_in_flight_and_in_a_pause(void) {
        Number n;

        begin(&n);
        inject(&n, STORE_FAULT_STATUS, 409);
        desire(&n, 2);
        TURN_UNTIL(&n.f, n.refused == 1);
        ASSERT_TRUE(n.writer.paused);
        writer_done(&n.writer);
        desire(&n, 3);
        ASSERT_TRUE(n.writer.call);
        TURN_UNTIL(&n.f, n.observed == 3);
        ASSERT_INT(n.written, 1);
        desire(&n, 4);
        ASSERT_TRUE(n.writer.call);
        end(&n);
        ASSERT_INT(n.written + n.refused, 2);
}

int main(void) {
        return TEST_MAIN(TEST(every_second_write_fails), TEST(changes_wait_for_the_answer_and_the_pause),
                         TEST(pauses_grow), TEST(only_a_leader_writes), TEST(rests_until_poked),
                         TEST(a_pause_outlasts_a_wake), TEST(no_memory_is_a_pause),
                         TEST(ends_in_flight_and_in_a_pause));
}
