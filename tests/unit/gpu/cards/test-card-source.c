/* SPDX-License-Identifier: Apache-2.0 */

/* The object itself: the order of its callbacks, and that it can be freed at any moment. Behaviour
 * of drivers is tested in tests/blackbox/cards.py. */

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "gpu/cards/card_source.h"
#include "gpu/cards/child.h"
#include "gpu/cards/simulated_cards.h"
#include "test.h"

typedef struct Heard {
        unsigned lists, troubles;
        size_t cards;
        char last[sizeof((Fault *) NULL)->text];
        CardSource *rescan; /* from within the handler, once */
} Heard;

static const char *library;

static void on_cards(void *userdata, const CardList *cards) {
        Heard *h = userdata;

        h->lists++;
        h->cards = cards->n;
        if (h->rescan)
                card_source_rescan(h->rescan);
        h->rescan = NULL;
}

static void on_trouble(void *userdata, const Fault *fault) {
        Heard *h = userdata;

        h->troubles++;
        (void) snprintf(h->last, sizeof h->last, "%s", fault->text);
}

static const CardSourceHandler handler = {on_cards, on_trouble};

static CardSource *source(sd_event *event, const CardSourceOptions *o, Heard *h) {
        CardSource *s;

        *h = (Heard){0};
        ASSERT_OK(card_source_new(event, o, &handler, h, &s));
        ASSERT_INT(h->lists + h->troubles, 0); /* no callback before new() has returned */
        return s;
}

static sd_event *loop(void) {
        sd_event *event;

        ASSERT_TRUE(sd_event_new(&event) >= 0);
        return event;
}

static void run_until(sd_event *event, const unsigned *count, unsigned value) {
        usec_t end = clock_monotonic_usec() + 300 * USEC_PER_SEC;

        while (*count < value) {
                ASSERT_TRUE(sd_event_run(event, USEC_PER_SEC) >= 0);
                ASSERT_TRUE(clock_monotonic_usec() < end);
        }
}

static void run_some(sd_event *event, int turns) {
        for (int i = 0; i < turns; i++)
                ASSERT_TRUE(sd_event_run(event, 0) >= 0);
}

/* Reaps the child, which init does for the agent: nothing may stay behind. */
static void bury_children(void) {
        while (waitpid(-1, NULL, 0) > 0)
                ;
        ASSERT_INT(errno, ECHILD);
}

static void simulated_cards_come_once_and_from_the_loop(void) {
        _cleanup_(card_list_done) CardList l = {0};
        sd_event *event = loop();
        CardSource *s;
        Heard h;

        ASSERT_OK(cards_simulate(STR("2xA:1GiB"), STR("n"), &l, NULL));
        s = source(event, &(CardSourceOptions){.simulated = &l}, &h);
        card_list_done(&l); /* it has a copy */
        run_some(event, 3);
        ASSERT_INT(h.lists, 1);
        ASSERT_INT(h.cards, 2);
        card_source_rescan(s);
        run_some(event, 3);
        ASSERT_INT(h.lists, 1);
        ASSERT_INT(waitpid(-1, NULL, WNOHANG), -1); /* no child */
        card_source_free(s);
        /* an empty list is a list, too */
        s = source(event, &(CardSourceOptions){.simulated = &l}, &h);
        run_some(event, 3);
        ASSERT_INT(h.lists, 1);
        ASSERT_INT(h.cards, 0);
        card_source_free(s);
        sd_event_unref(event);
}

static void the_same_trouble_is_told_once(void) {
        CardSourceOptions o = {.library = "/proc/self/absent/nvml", .backoff = USEC_PER_MSEC};
        sd_event *event = loop();
        CardSource *s;
        Heard h;

        s = source(event, &o, &h);
        run_until(event, &h.troubles, 1);
        ASSERT_CONTAINS(h.last, "no NVIDIA driver: /proc/self/absent/nvml");
        for (int i = 0; i < 5; i++) { /* it tries again and has nothing new to report */
                card_source_rescan(s);
                ASSERT_TRUE(sd_event_run(event, USEC_PER_SEC / 10) >= 0);
        }
        ASSERT_INT(h.troubles, 1);
        ASSERT_INT(h.lists, 0);
        card_source_free(s);
        sd_event_unref(event);
        bury_children();
}

static void a_handler_may_ask_for_a_scan(void) {
        CardSourceOptions o = {.library = library};
        sd_event *event = loop();
        CardSource *s;
        Heard h;

        s = source(event, &o, &h);
        h.rescan = s;
        run_until(event, &h.lists, 1);
        run_some(event, 20);
        ASSERT_INT(h.troubles, 0);
        card_source_free(s);
        sd_event_unref(event);
        bury_children();
}

static void it_can_be_freed_at_any_moment(void) {
        for (int turns = 0; turns < 20; turns++) {
                CardSourceOptions o = {.library = turns % 3 == 0 ? "/proc/self/absent" : library,
                                       .backoff = USEC_PER_MSEC,
                                       .rescan = USEC_PER_MSEC};
                sd_event *event = loop();
                CardSource *s;
                Heard h;

                s = source(event, &o, &h);
                for (int i = 0; i < turns; i++)
                        ASSERT_TRUE(sd_event_run(event, USEC_PER_MSEC) >= 0);
                card_source_free(s);
                run_some(event, 3);
                sd_event_unref(event);
                bury_children();
        }
        ASSERT_TRUE(!card_source_free(NULL));
}

static void a_child_ends_when_its_socket_does(void) {
        ProbeOptions o = {.library = library, .host_root = "", .turn = USEC_PER_SEC};
        CardChild c;
        int status;

        ASSERT_OK(card_child_start(&o, &c));
        ASSERT_FALSE(card_child_reap(c.pid, &status));
        (void) close(c.fd);
        ASSERT_INT(waitpid(c.pid, &status, 0), c.pid);
        ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        ASSERT_TRUE(card_child_reap(c.pid, &status)); /* it was reaped elsewhere */
        ASSERT_INT(status, -1);
}

int main(int argc, char **argv) {
        library = argc > 1 ? argv[1] : "libnvidia-ml.so.1";
        return TEST_MAIN(TEST(simulated_cards_come_once_and_from_the_loop),
                         TEST(the_same_trouble_is_told_once), TEST(a_handler_may_ask_for_a_scan),
                         TEST(it_can_be_freed_at_any_moment), TEST(a_child_ends_when_its_socket_does));
}
