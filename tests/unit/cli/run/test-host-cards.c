/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/host_cards.h"

#include <stdio.h>
#include <unistd.h>

#include "scratch.h"
#include "slice/slice.h"
#include "test.h"

#define MIB (UINT64_C(1) << 20)

static char home[64];

static Slicedir open_slices(void) {
        Fault fault = FAULT_NULL;
        char path[128];
        Slicedir d;

        (void) snprintf(home, sizeof home, "/tmp/aliquot-host-cards-XXXXXX");
        scratch_make(home);
        (void) snprintf(path, sizeof path, "%s/slices", home);
        ASSERT_OK(slicedir_open(&d, path, true, &fault));
        return d;
}

static HostCards count(Slicedir *d, const char *except) {
        HostCards m = {.cards = {{.uuid = "GPU-a"}, {.uuid = "GPU-b"}}, .n = 2};
        Fault fault = FAULT_NULL;

        ASSERT_OK(slicedir_lock(d, &fault));
        ASSERT_OK(host_cards_count_slices(&m, d, except));
        slicedir_unlock(d);
        return m;
}

/* What a pod's slice may grow back to is not free for a slice of `aliquot run`. */
static void a_pod_keeps_what_it_was_granted(void) {
        const SliceSpec spec = {.limit = 8 * MIB,
                                .granted = 8 * MIB,
                                .card_bytes = 16 * MIB,
                                .granted_percent = 60,
                                .request.percent = 60,
                                .uuid = "GPU-b",
                                .container = "d/a/main"};
        Fault fault = FAULT_NULL;
        Slicedir d = open_slices();
        HostCards m;

        ASSERT_OK(slicedir_update(&d, "pod", "agent d/a/main", &spec, 1, &fault));
        for (uint32_t mib = 8; mib > 0; mib -= 4) {
                ASSERT_OK(slicedir_resize(&d, "pod", 0, mib * MIB, 5 * mib, &fault));
                m = count(&d, NULL);
                ASSERT_TRUE(m.cards[0].taken == 0 && m.cards[1].taken == 8 * MIB);
                ASSERT_INT(m.cards[1].core_taken, 60);
        }
        ASSERT_INT(count(&d, "pod").cards[1].taken, 0);
        slicedir_done(&d);
        scratch_remove(home);
}

/* Of a slice of `aliquot run` only the size in force counts, or more where it holds more. */
static void other_slices_have_their_size(void) {
        const SliceSpec spec = {.limit = 8 * MIB,
                                .card_bytes = 16 * MIB,
                                .request.percent = 60,
                                .uuid = "GPU-a",
                                .container = "run"};
        Fault fault = FAULT_NULL;
        Slicedir d = open_slices();
        int owner = -1;
        HostCards m;

        ASSERT_OK(slicedir_lock(&d, &fault));
        ASSERT_OK(slicedir_create(&d, "run-1", "run 1 x", &spec, 1, &owner, &fault));
        slicedir_unlock(&d);
        ASSERT_OK(slicedir_resize(&d, "run-1", 0, 2 * MIB, 20, &fault));
        m = count(&d, NULL);
        ASSERT_TRUE(m.cards[0].taken == 2 * MIB && m.cards[0].core_taken == 20);
        ASSERT_OK(close(owner));
        ASSERT_INT(count(&d, NULL).cards[0].taken, 0);
        slicedir_done(&d);
        scratch_remove(home);
}

/* A process that was killed holds nothing, also while its row is not reaped yet. */
static void the_dead_hold_nothing(void) {
        const SliceSpec spec = {
                .limit = 8 * MIB, .card_bytes = 16 * MIB, .uuid = "GPU-a", .container = "run"};
        Fault fault = FAULT_NULL;
        Slicedir d = open_slices();
        int owner = -1;
        char path[160];
        SliceUser user;
        HostCards m;

        ASSERT_OK(slicedir_lock(&d, &fault));
        ASSERT_OK(slicedir_create(&d, "run-1", "run 1 x", &spec, 1, &owner, &fault));
        slicedir_unlock(&d);
        (void) snprintf(path, sizeof path, "%s/slices/run-1/0", home);
        ASSERT_OK(slice_open(path, &user));
        ASSERT_OK(slice_reserve(&user, 6 * MIB));
        ASSERT_OK(slicedir_resize(&d, "run-1", 0, 2 * MIB, 0, &fault));
        m = count(&d, NULL);
        ASSERT_TRUE(m.cards[0].taken == 6 * MIB && m.cards[0].held == 6 * MIB);
        slice_close(&user); /* as the end of the process */
        m = count(&d, NULL);
        ASSERT_TRUE(m.cards[0].taken == 2 * MIB && m.cards[0].held == 0);
        ASSERT_OK(close(owner));
        slicedir_done(&d);
        scratch_remove(home);
}

int main(void) {
        return TEST_MAIN(TEST(a_pod_keeps_what_it_was_granted), TEST(other_slices_have_their_size),
                         TEST(the_dead_hold_nothing));
}
