/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metric_text.h"

#include <math.h>
#include <stddef.h>

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

static void rows_of_a_table(void) {
        struct {
                uint64_t number, percent, nsec;
                double ratio;
        } v = {7, 105, 1500000, 1.0 / 3};
        const MetricRow rows[] = {{"a", "gauge", "A.", 0, METRIC_NUMBER},
                                  {"b", "gauge", "B.", offsetof(typeof(v), percent), METRIC_PERCENT},
                                  {"c", "gauge", "C.", offsetof(typeof(v), nsec), METRIC_NSEC},
                                  {"d", "gauge", "D.", offsetof(typeof(v), ratio), METRIC_RATIO}};
        _cleanup_buf_ Buf out = BUF_NULL;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                ASSERT_TRUE(metric_text_known(&rows[i], &v));
                metric_text_value(&out, &rows[i], &v);
        }
        ASSERT_STR(buf_str(&out), STR("7\n1.05\n0.001500\n0.333333\n"));
        v.number = v.percent = v.nsec = METRIC_UNKNOWN;
        v.ratio = NAN;
        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                ASSERT_FALSE(metric_text_known(&rows[i], &v));
}

int main(void) {
        return TEST_MAIN(TEST(labels_are_escaped), TEST(numbers), TEST(buckets_are_sums),
                         TEST(rows_of_a_table));
}
