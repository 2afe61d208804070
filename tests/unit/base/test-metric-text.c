/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metric_text.h"
#include "test.h"

static void labels_are_escaped(void) {
        _cleanup_buf_ Buf out = BUF_NULL;

        buf_append_str(&out, STR("m{"));
        metric_text_label(&out, "a", "x\"y\\z\nw");
        metric_text_label(&out, "b", "");
        ASSERT_STR(buf_str(&out), STR("m{a=\"x\\\"y\\\\z\\nw\",b=\"\""));
}

static void numbers(void) {
        _cleanup_buf_ Buf out = BUF_NULL;

        metric_text_number(&out, "m", "counter", "What.", UINT64_MAX);
        metric_text_seconds(&out, 1000001);
        ASSERT_STR(buf_str(&out),
                   STR("# HELP m What.\n# TYPE m counter\nm 18446744073709551615\n1.000001\n"));
}

static void buckets_are_sums(void) {
        _cleanup_buf_ Buf out = BUF_NULL;
        Histogram h = {.count = 0};

        histogram_observe(&h, 0);
        histogram_observe(&h, 50);
        histogram_observe(&h, 51);
        histogram_observe(&h, 5 * USEC_PER_SEC);
        histogram_observe(&h, 5 * USEC_PER_SEC + 1);
        metric_text_histogram(&out, "m", "l", "v", &h);
        ASSERT_CONTAINS(out.data, "m_bucket{l=\"v\",le=\"0.00005\"} 2\nm_bucket{l=\"v\",le=\"0.0001\"} 3\n");
        ASSERT_CONTAINS(out.data, "m_bucket{l=\"v\",le=\"1\"} 3\nm_bucket{l=\"v\",le=\"5\"} 4\n"
                                  "m_bucket{l=\"v\",le=\"+Inf\"} 5\nm_sum{l=\"v\"} 10.000102\n"
                                  "m_count{l=\"v\"} 5\n");
}

int main(void) {
        return TEST_MAIN(TEST(labels_are_escaped), TEST(numbers), TEST(buckets_are_sums));
}
