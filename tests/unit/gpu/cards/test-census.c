/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/census.h"

#include "test.h"

static const ProbeReport end = {.kind = REPORT_CENSUS};

static void take(Census *c, unsigned kind, const char *uuid, uint32_t pid) {
        ProbeReport r = {.kind = kind, .number = pid, .value = 1 << 20};

        (void) snprintf(r.uuid, sizeof r.uuid, "%s", uuid);
        census_take(c, &r);
}

/* Half of them on each of two cards. */
static void take_all(Census *c, unsigned kind, uint32_t n) {
        for (uint32_t i = 0; i < n; i++)
                take(c, kind, i % 2 == 0 ? "GPU-0" : "GPU-1", 1000 + i);
}

static void as_many_as_there_is_room_for(void) {
        _cleanup_(census_done) Census c = {0};
        CardCensus all;

        ASSERT_OK(census_init(&c));
        take_all(&c, REPORT_PROCESS, CARD_USAGE_MAX);
        take(&c, REPORT_TOTAL, "GPU-0", 0);
        take(&c, REPORT_TOTAL, "GPU-1", 0);
        ASSERT_TRUE(census_end(&c, &end, &all));
        ASSERT_INT(all.n, CARD_USAGE_MAX);
        ASSERT_INT(all.n_totals, 2);
        ASSERT_TEXT(all.untold, "");
}

/* The first ones are known; no card has a total, because the others' part of it is not known. */
static void one_more_than_that(void) {
        _cleanup_(census_done) Census c = {0};
        CardCensus all;

        ASSERT_OK(census_init(&c));
        take_all(&c, REPORT_PROCESS, CARD_USAGE_MAX + 1);
        take(&c, REPORT_TOTAL, "GPU-0", 0);
        take(&c, REPORT_TOTAL, "GPU-1", 0);
        ASSERT_TRUE(census_end(&c, &end, &all));
        ASSERT_INT(all.n, CARD_USAGE_MAX);
        ASSERT_INT(all.usage[CARD_USAGE_MAX - 1].pid, 1000 + CARD_USAGE_MAX - 1);
        ASSERT_INT(all.n_totals, 0);
        ASSERT_TEXT(all.untold, "the cards have more than 4096 processes together");
        take_all(&c, REPORT_PROCESS, 2); /* the next census is complete */
        take(&c, REPORT_TOTAL, "GPU-0", 0);
        ASSERT_TRUE(census_end(&c, &end, &all));
        ASSERT_INT(all.n, 2);
        ASSERT_INT(all.n_totals, 1);
        ASSERT_TEXT(all.untold, "");
}

static void one_more_that_uses_a_card(void) {
        _cleanup_(census_done) Census c = {0};
        CardCensus all;

        ASSERT_OK(census_init(&c));
        take_all(&c, REPORT_USE, CARD_USAGE_MAX + 1);
        take(&c, REPORT_SPAN, "GPU-0", 0);
        ASSERT_TRUE(census_end(&c, &end, &all));
        ASSERT_INT(all.n_uses, CARD_USAGE_MAX);
        ASSERT_INT(all.n_spans, 0);
}

int main(void) {
        return TEST_MAIN(TEST(as_many_as_there_is_room_for), TEST(one_more_than_that),
                         TEST(one_more_that_uses_a_card));
}
