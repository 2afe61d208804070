/* SPDX-License-Identifier: Apache-2.0 */

/* Policies of compute in pages of running slices: which pages are written, and on which card a
 * weight counts. */

#include "slicedir/slice_policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "test.h"

static Slicedir slices;
static Fault fault;
static char path[128];

static void begin(void) {
        (void) snprintf(path, sizeof path, "/tmp/aliquot-policy-XXXXXX");
        ASSERT_TRUE(mkdtemp(path) != NULL);
        ASSERT_OK(slicedir_open(&slices, path, true, &fault));
}

static void end(void) {
        static const char *const ids[] = {"one", "two", "three", "open"};

        for (size_t i = 0; i < ELEMENTSOF(ids); i++)
                slicedir_remove(&slices, ids[i]);
        slicedir_done(&slices);
        ASSERT_OK(rmdir(path));
}

/* A container of the agent with slices of one or two cards. */
static void put(const char *id, const char *first, const char *second, uint32_t weight, bool high) {
        SliceSpec specs[2] = {{.uuid = first,
                               .container = id,
                               .compute.policy = COMPUTE_NATIVE,
                               .request = {.weight = weight, .high_priority = high}},
                              {.uuid = second,
                               .container = id,
                               .compute.policy = COMPUTE_NATIVE,
                               .card = 1,
                               .request = {.weight = weight, .high_priority = high}}};

        ASSERT_OK(
                slicedir_update(&slices, id, SLICEDIR_AGENT "default/a/main", specs, second ? 2 : 1, &fault));
}

typedef struct Want {
        const char *id;
        uint32_t number;
        SliceLimits limits;
} Want;

static int take(void *userdata, const SlicedirEntry *slice) {
        Want *want = userdata;

        if (strcmp(slice->id, want->id) == 0 && want->number < slice->n_cards)
                want->limits = slice->cards[want->number].limits;
        return 0;
}

static SliceLimits page(const char *id, uint32_t number) {
        Want want = {.id = id, .number = number};

        ASSERT_OK(slicedir_each(&slices, take, &want));
        return want.limits;
}

static void say(ComputePolicy policy, bool yields, const char *uuid) {
        const CardCompute p = {.policy = policy, .max_inst = 4, .prio_ratio = 50, .yields = yields};

        ASSERT_OK(slice_policy_apply(&slices, &p, uuid, &fault));
}

static void all_pages_of_the_agent(void) {
        SliceSpec spec = {.uuid = "GPU-a", .container = "x", .compute.policy = COMPUTE_FIXED};
        int owner;

        begin();
        put("one", "GPU-a", "GPU-b", 1, false);
        put("two", "GPU-b", NULL, 1, false);
        ASSERT_OK(slicedir_create(&slices, "three", "run 1 x", &spec, 1, &owner, &fault));
        say(COMPUTE_FAIR, true, NULL);
        ASSERT_INT(page("one", 0).policy, 1);
        ASSERT_INT(page("one", 1).policy, 1);
        ASSERT_INT(page("two", 0).policy, 1);
        ASSERT_INT(page("two", 0).max_inst, 4);
        ASSERT_INT(page("two", 0).prio_ratio, 50);
        ASSERT_INT(page("three", 0).policy, 4); /* a slice of `aliquot run` */
        say(COMPUTE_SOFT, true, "GPU-b");
        ASSERT_INT(page("one", 0).policy, 1);
        ASSERT_INT(page("one", 1).policy, 5);
        ASSERT_INT(page("two", 0).policy, 5);
        ASSERT_OK(close(owner));
        end();
}

static void a_weight_counts_on_its_cards(void) {
        begin();
        put("one", "GPU-a", "GPU-b", 1, false);
        put("two", "GPU-b", NULL, 3, false);
        put("three", "GPU-c", NULL, 1, true);
        say(COMPUTE_NATIVE, true, NULL);
        ASSERT_INT(page("one", 0).policy, 6);
        ASSERT_INT(page("one", 1).policy, COMPUTE_WEIGHTED);
        ASSERT_INT(page("two", 0).policy, COMPUTE_WEIGHTED);
        ASSERT_INT(page("three", 0).policy, COMPUTE_WEIGHTED);
        slicedir_remove(&slices, "two");
        say(COMPUTE_NATIVE, true, NULL); /* its weight counts no longer */
        ASSERT_INT(page("one", 1).policy, 6);
        put("two", "GPU-b", NULL, 3, false);
        say(COMPUTE_NATIVE, false, NULL); /* the node's policy does not yield */
        ASSERT_INT(page("one", 1).policy, 6);
        ASSERT_INT(page("two", 0).policy, 6);
        end();
}

static void the_weight_of_an_open_slice_does_not_count(void) {
        SliceSpec open = {.uuid = "GPU-a", .container = "x", .request.weight = 9, .flags = SLICE_FLAG_OPEN};

        begin();
        put("one", "GPU-a", NULL, 1, false);
        ASSERT_OK(slicedir_update(&slices, "open", SLICEDIR_AGENT "x", &open, 1, &fault));
        say(COMPUTE_NATIVE, true, NULL);
        ASSERT_INT(page("one", 0).policy, 6);
        end();
}

static void bad_pages_are_skipped(void) {
        const CardCompute p = {.policy = COMPUTE_PREEMPTIVE};
        char page_path[SLICEDIR_PATH_SIZE + 32];

        begin();
        put("one", "GPU-a", "GPU-b", 1, false);
        (void) snprintf(page_path, sizeof page_path, "%s/one/0/limits", slices.path);
        ASSERT_OK(truncate(page_path, 100));
        /* Not a page, so it belongs to no agent. */
        ASSERT_OK(slice_policy_apply(&slices, &p, NULL, &fault));
        /* The first good page that is found is the second one. */
        ASSERT_INT(page("one", 0).policy, 2);
        end();
}

int main(void) {
        return TEST_MAIN(TEST(all_pages_of_the_agent), TEST(a_weight_counts_on_its_cards),
                         TEST(the_weight_of_an_open_slice_does_not_count), TEST(bad_pages_are_skipped));
}
