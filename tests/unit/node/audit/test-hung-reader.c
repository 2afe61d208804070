/* SPDX-License-Identifier: Apache-2.0 */
#include "node/audit/hung_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "test.h"

static void lines_are_parsed(void) {
        static const char *const bad[] = {"",
                                          "hung",
                                          "hung x s GPU-a d/p/c",
                                          "hung -1 s GPU-a d/p/c",
                                          "hang 1 s GPU-a d/p/c",
                                          "still- 1 s GPU-a d/p/c",
                                          "still-still-hung 1 s GPU-a d/p/c",
                                          "hung 1 s  d/p/c",
                                          "hung 1 s GPU-a d/p",
                                          "hung 1 s GPU-a d//c",
                                          "hung 1 s GPU-a /p/c",
                                          "hung 1 s GPU-a run-4711"};
        HungKernel k;

        ASSERT_TRUE(hung_reader_parse(STR("hung 12000000000 gpu0-2-ab GPU-a d/p/c"), &k));
        ASSERT_INT(k.nsec, 12000000000);
        ASSERT_STR(k.uuid, STR("GPU-a"));
        ASSERT_STR(k.namespace_, STR("d"));
        ASSERT_STR(k.pod, STR("p"));
        ASSERT_STR(k.container, STR("c"));
        ASSERT_FALSE(k.part || k.again);
        ASSERT_TRUE(str_eq(k.slice, STR("gpu0-2-ab")));
        ASSERT_TRUE(hung_reader_parse(STR("part 1 s GPU-a d/p/c"), &k) && k.part && !k.again);
        ASSERT_TRUE(hung_reader_parse(STR("still-hung 1 s GPU-a d/p/c"), &k) && !k.part && k.again);
        ASSERT_TRUE(hung_reader_parse(STR("still-part 1 s GPU-a d/p/c"), &k) && k.part && k.again);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                ASSERT_FALSE(hung_reader_parse(str_from(bad[i]), &k));
}

static char containers[256];

static void on_kernel(void *userdata, const HungKernel *k) {
        size_t n = strlen(containers);

        (void) snprintf(containers + n, sizeof containers - n, "%.*s;", STR_ARG(k->container));
}

static void send_text(sd_event *event, int fd, const char *text) {
        ASSERT_INT(write(fd, text, strlen(text)), strlen(text));
        ASSERT_TRUE(sd_event_run(event, UINT64_MAX) > 0);
}

/* Lines come in pieces, several at once, and with malformed ones in between. */
static void pieces_are_joined(void) {
        static char long_[4096];
        sd_event *event;
        int ends[2];
        HungReader *h;

        ASSERT_TRUE(sd_event_new(&event) >= 0);
        ASSERT_OK(pipe2(ends, O_NONBLOCK | O_CLOEXEC));
        ASSERT_OK(hung_reader_new(event, ends[0], on_kernel, NULL, &h));
        send_text(event, ends[1], "hung 1 s GPU-a d/p/");
        ASSERT_TEXT(containers, "");
        send_text(event, ends[1], "one\nhung 2 s GPU-a d/p/two\nnonsense\nhung 3");
        ASSERT_TEXT(containers, "one;two;");
        send_text(event, ends[1], " s GPU-a d/p/three\n");
        send_text(event, ends[1], "still-hung 9 s GPU-a d/p/three\n");
        ASSERT_TEXT(containers, "one;two;three;three;"); /* the same kernel */
        containers[strlen("one;two;three;")] = '\0';
        ASSERT_TEXT(containers, "one;two;three;");
        ASSERT_INT(hung_reader_count(h), 4);
        memset(long_, 'x', sizeof long_ - 1);
        send_text(event, ends[1], long_);
        send_text(event, ends[1], "x");
        send_text(event, ends[1],
                  "\nhung 4 s GPU-a d/p/four\n"); /* the rest of that line counts as one, too */
        ASSERT_TEXT(containers, "one;two;three;four;");
        ASSERT_OK(close(ends[1]));
        ASSERT_TRUE(sd_event_run(event, UINT64_MAX) > 0); /* end of file: the reader stops */
        ASSERT_INT(sd_event_run(event, 0), 0);
        hung_reader_free(h);
        ASSERT_OK(close(ends[0]));
        ASSERT_OK(hung_reader_new(event, -1, on_kernel, NULL, &h));
        ASSERT_INT(hung_reader_count(h), 0);
        hung_reader_free(h);
        sd_event_unref(event);
}

int main(void) {
        return TEST_MAIN(TEST(lines_are_parsed), TEST(pieces_are_joined));
}
