/* SPDX-License-Identifier: Apache-2.0 */

/* What is told of the next slice of a name. */

#include "node/audit/slicedir_watch.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "scratch.h"
#include "slice/page.h"

#define ID "gpu0-1-0000000000000001"

static char home[64];
static Slicedir slices = SLICEDIR_NULL;
static unsigned grown, rewritten, rowless, refused;

static void on_grown(void *userdata, const SlicedirCard *card) {
        grown++;
}

static void on_rewritten(void *userdata, const SlicedirCard *card) {
        rewritten++;
}

static void on_rowless(void *userdata, const SlicedirCard *card) {
        rowless++;
}

static void on_refused(void *userdata, const SlicedirCard *card, uint64_t n) {
        ASSERT_INT(n, 3);
        refused++;
}

static bool on_foreign(void *userdata, const ForeignSlice *foreign) {
        return true;
}

static void make_slice(const char *owner) {
        SliceSpec spec = {.limit = 1 << 30, .card_bytes = 1 << 30, .uuid = "GPU-0", .container = "d/a/main"};
        Fault fault = FAULT_NULL;

        ASSERT_OK(slicedir_update(&slices, ID, owner, &spec, 1, &fault));
}

/* Processes of the container were refused memory, had no row, and wrote beyond the counters. */
static void misuse_slice(void) {
        const uint64_t three = 3;
        char path[128];
        int fd;

        (void) snprintf(path, sizeof path, "%s/slices/" ID "/0/counters", home);
        fd = open(path, O_RDWR | O_CLOEXEC);
        ASSERT_TRUE(fd >= 0);
        ASSERT_INT(pwrite(fd, &three, sizeof three, offsetof(SliceCounters, refused)), sizeof three);
        ASSERT_INT(pwrite(fd, &three, sizeof three, offsetof(SliceCounters, rowless)), sizeof three);
        ASSERT_OK(ftruncate(fd, 8 << 20));
        (void) close(fd);
}

static void look(sd_event *event, const SlicedirWatch *w) {
        uint64_t before = slicedir_watch_grown(w);

        while (slicedir_watch_grown(w) == before)
                ASSERT_TRUE(sd_event_run(event, UINT64_MAX) >= 0);
}

/* The pod that gets its devices has its slice at once. The owner's text is the same where the pods
 * have the same name. */
static void the_next_slice_of_a_name_is_told_of(void) {
        SlicedirWatchOptions options = {.slicedir = &slices,
                                        .period = USEC_PER_MSEC,
                                        .on_grown = on_grown,
                                        .on_rewritten = on_rewritten,
                                        .on_rowless = on_rowless,
                                        .on_refused = on_refused,
                                        .on_foreign = on_foreign};
        SlicedirWatch *w;

        ASSERT_TRUE(sd_event_new(&options.event) >= 0);
        ASSERT_OK(slicedir_watch_new(&options, &w));
        ASSERT_TRUE(sd_event_run(options.event, UINT64_MAX) >= 0); /* the first look, at no slice */
        for (unsigned n = 1; n <= 3; n++) {
                make_slice(n < 3 ? SLICEDIR_AGENT "d/a/main" : SLICEDIR_AGENT "d/b/main");
                misuse_slice();
                look(options.event, w);
                ASSERT_INT(grown, n);
                ASSERT_INT(rowless, n);
                ASSERT_INT(refused, n);
                make_slice(n < 3 ? SLICEDIR_AGENT "d/a/main" : SLICEDIR_AGENT "d/b/main");
                misuse_slice(); /* after a restart of the container, which is told of already */
                look(options.event, w);
                ASSERT_INT(grown, n);
                ASSERT_INT(rowless, n);
                ASSERT_INT(refused, n);
                slicedir_remove(&slices, ID);
        }
        ASSERT_INT(rewritten, 0);
        slicedir_watch_free(w);
        sd_event_unref(options.event);
}

int main(void) {
        Fault fault = FAULT_NULL;
        char path[96];

        (void) snprintf(home, sizeof home, "/tmp/aliquot-watch-XXXXXX");
        scratch_make(home);
        (void) snprintf(path, sizeof path, "%s/slices", home);
        ASSERT_OK(slicedir_open(&slices, path, true, &fault));
        return TEST_MAIN(TEST(the_next_slice_of_a_name_is_told_of));
}
