/* SPDX-License-Identifier: Apache-2.0 */
#include "preload/memory/rewrite.h"
#include "test.h"

enum { MIB = 1 << 20 };

static const RewriteView view = {.limit = UINT64_C(2154) * MIB, .used = UINT64_C(337) * MIB};

static void totals_are_the_limit(void) {
        static const uint32_t indices[] = {0x07, 0x08, 0x09, 0x0A, 0x20, 0x33};

        for (size_t i = 0; i < sizeof indices / sizeof *indices; i++) {
                ASSERT_INT(rewrite_fb(&view, indices[i], 16160 * 1024), 2154 * 1024);
                ASSERT_INT(rewrite_fb(&view, indices[i], 1000), 1000);
        }
}

static void free_is_limit_less_used(void) {
        RewriteView full = {.limit = 100 * MIB, .used = 101 * MIB};

        ASSERT_INT(rewrite_fb(&view, 0x16, 16000 * 1024), (2154 - 337) * 1024);
        ASSERT_INT(rewrite_fb(&view, 0x12, 16000 * 1024), (2154 - 337) * 1024);
        ASSERT_INT(rewrite_fb(&view, 0x34, 16000 * 1024), (2154 - 337) * 1024);
        ASSERT_INT(rewrite_fb(&view, 0x16, 500), 500); /* the card itself has no more */
        ASSERT_INT(rewrite_fb(&full, 0x16, 16000 * 1024), 0);
}

static void other_indices_stay(void) {
        for (uint32_t index = 0; index < 0x3C; index++)
                if (index != 0x07 && index != 0x08 && index != 0x09 && index != 0x0A && index != 0x20 &&
                    index != 0x16 && index != 0x12 && index != 0x33 && index != 0x34)
                        ASSERT_INT(rewrite_fb(&view, index, 0xFFFFFFFF), 0xFFFFFFFF);
}

/* What an index from 0x3C on means is the exact version's. */
static void indices_that_move(void) {
        enum { LEFT = (2154 - 337) * 1024 };
        static const struct {
                const char *version;
                uint32_t index, shown;
        } answers[] = {
                {"595.99.02", 0x3C, LEFT},   {"595.99.02", 0x44, LEFT},
                {"595.71.05", 0x3C, LEFT},   {"610.57.04", 0x3C, UINT32_MAX},
                {"610.57.04", 0x3D, LEFT},   {"610.57.0", 0x3C, LEFT},
                {"610.57.04.1", 0x3C, LEFT}, {"610.57", 0x3C, LEFT},
                {"615.71.09", 0x44, LEFT},   {"620.70.06", 0x3C, LEFT},
                {"620.70.06", 0x7F, LEFT},   {"", 0x3C, LEFT},
                {NULL, 0x3C, LEFT},          {NULL, UINT32_MAX, LEFT},
                {NULL, 0x3B, UINT32_MAX},    {"615.71.09", 0x16, LEFT},
                {NULL, 0x07, 2154 * 1024},
        };

        for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
                RewriteView v = view;

                v.version = answers[i].version;
                ASSERT_INT(rewrite_fb(&v, answers[i].index, UINT32_MAX), answers[i].shown);
                ASSERT_INT(rewrite_fb(&v, answers[i].index, 0), 0);
                ASSERT_TRUE(rewrite_fb_needs_version(answers[i].index) == (answers[i].index > 0x3B));
        }
}

static void halves_have_half_of_the_slice(void) {
        const uint64_t limit = view.limit, left = view.limit - view.used;
        const uint64_t shown[] = {limit, left, limit / 2, limit / 2, left / 2, left / 2};

        for (uint32_t at = 0; at < 6; at++) {
                ASSERT_INT(rewrite_ugpu(&view, at, UINT64_C(80) << 30), shown[at]);
                ASSERT_INT(rewrite_ugpu(&view, at, 4096), 4096);
        }
}

/* No word says more than the slice, wherever a driver puts what. */
static void statistics_are_the_slice_s(void) {
        ASSERT_INT(rewrite_stats(&view, 0, UINT64_MAX), UINT64_MAX); /* a version */
        for (uint32_t at = 1; at < 6; at++)
                ASSERT_INT(rewrite_stats(&view, at, UINT64_C(80) << 30), view.limit);
        ASSERT_INT(rewrite_stats(&view, 6, UINT64_C(80) << 30), view.limit - view.used);
        for (uint32_t at = 7; at < 9728 / 8; at++)
                ASSERT_INT(rewrite_stats(&view, at, UINT64_C(80) << 30), view.used);
        ASSERT_INT(rewrite_stats(&view, 8, 3), 3);
}

static void regions_end_at_the_limit(void) {
        RmFbRegions r = {.n = 3};
        RewriteView small = {.limit = 100};

        for (uint64_t i = 0; i < 3; i++)
                r.regions[i] = (RmFbRegion){.base = i * 1000, .limit = i * 1000 + 79, .reserved = 500};
        rewrite_regions(&small, &r, sizeof r);
        ASSERT_INT(r.n, 2);
        ASSERT_INT(r.regions[0].limit, 79);
        ASSERT_INT(r.regions[0].reserved, 80);
        ASSERT_INT(r.regions[1].limit, 1019);
        ASSERT_INT(r.regions[1].reserved, 20);
        ASSERT_INT(r.regions[2].limit, 0);
}

/* Drivers before 580: a region has 48 bytes. */
static void older_regions(void) {
        enum { OLD = 48, SIZE = 8 + 16 * OLD };
        uint64_t words[SIZE / 8] = {3}, *region = words + 1;
        RewriteView small = {.limit = 100};

        for (uint64_t i = 0; i < 3; i++, region += OLD / 8) {
                region[0] = i * 1000;
                region[1] = i * 1000 + 79;
                region[2] = 500;
                region[5] = i + 1; /* flags */
        }
        rewrite_regions(&small, words, SIZE);
        ASSERT_INT(words[0], 2);
        ASSERT_INT(words[1 + 1], 79);
        ASSERT_INT(words[1 + 2], 80);
        ASSERT_INT(words[1 + 5], 1);
        ASSERT_INT(words[1 + OLD / 8 + 1], 1019);
        ASSERT_INT(words[1 + OLD / 8 + 5], 2);
        for (size_t i = 0; i < OLD / 8; i++)
                ASSERT_INT(words[1 + 2 * OLD / 8 + i], 0);
}

/* Wrong counts and limits, in a buffer of exactly the given size. */
static void invalid_regions(void) {
        for (uint32_t n = 0; n <= 8 + 2 * sizeof(RmFbRegion); n++) {
                uint8_t *p = malloc(n > 0 ? n : 1);

                if (!p)
                        abort();
                memset(p, 0xFF, n);
                rewrite_regions(&view, p, n);
                free(p);
        }
}

static void heap_and_limit(void) {
        RmHeap h = {.total = UINT64_C(16160) * MIB, .free = UINT64_C(16000) * MIB};
        RmAllocMemory m = {.limit = UINT64_C(16160) * MIB - 1};
        RewriteView nothing = {.limit = 0};

        rewrite_heap(&view, &h);
        ASSERT_INT(h.total, view.limit);
        ASSERT_INT(h.free, view.limit - view.used);
        rewrite_limit(&view, &m);
        ASSERT_INT(m.limit, view.limit - 1);
        rewrite_limit(&nothing, &m);
        ASSERT_INT(m.limit, 0);
}

int main(void) {
        return TEST_MAIN(TEST(totals_are_the_limit), TEST(free_is_limit_less_used), TEST(other_indices_stay),
                         TEST(indices_that_move), TEST(halves_have_half_of_the_slice),
                         TEST(statistics_are_the_slice_s), TEST(regions_end_at_the_limit),
                         TEST(older_regions), TEST(invalid_regions), TEST(heap_and_limit));
}
