/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/inspect/feed.h"
#include "test.h"

#define NODE                                                                                                 \
        "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"},\"status\":{\"allocatable\":{\"aliyun.com/"        \
        "gpu-mem\":\"8\"}}}"
#define POD                                                                                                  \
        "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"namespace\":\"d\"},\"spec\":{\"nodeName\":\"n\","  \
        "\"containers\":["                                                                                   \
        "{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"3\"}}}]}}"
#define TYPELESS_POD                                                                                         \
        "{\"metadata\":{\"name\":\"p\",\"namespace\":\"d\"},\"spec\":{\"nodeName\":\"n\",\"containers\":["   \
        "{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"3\"}}}]}}"

typedef struct Fixture {
        Inspect *inspect;
        Feed feed;
        Fault fault, warning;
        unsigned warnings;
} Fixture;

static void warn(void *userdata, const char *text) {
        Fixture *f = userdata;

        f->warnings++;
        (void) fault_set(&f->warning, 0, "%s", text);
}

static void fixture_init(Fixture *f, Str only) {
        *f = (Fixture){0};
        ASSERT_OK(inspect_new(&f->inspect));
        f->feed = (Feed){
                .inspect = f->inspect, .source = "file.json", .only = only, .warn = warn, .userdata = f};
        ASSERT_OK(feed_init(&f->feed));
}

static void fixture_done(Fixture *f) {
        feed_done(&f->feed);
        f->inspect = inspect_free(f->inspect);
}

static int feed_all(Fixture *f, Str text, size_t piece) {
        for (size_t at = 0; at < text.len; at += piece) {
                Str part = {text.data + at, text.len - at < piece ? text.len - at : piece};
                int r = feed_bytes(&f->feed, part, &f->fault);

                if (r != 0)
                        return r;
        }
        return feed_end(&f->feed, &f->fault);
}

static void check_sum(Fixture *f, const char *sum) {
        _cleanup_buf_ Buf out = BUF_NULL;

        ASSERT_OK(inspect_print_summary(f->inspect, STR(""), &out, NULL));
        ASSERT_CONTAINS(out.data, sum);
}

static void reads_pieces_of_any_size(void) {
        Str text =
                STR("{\"apiVersion\":\"v1\",\"items\":[" NODE "," POD "],\"kind\":\"List\",\"metadata\":{}}");

        for (size_t piece = 1; piece <= text.len; piece++) {
                _cleanup_(fixture_done) Fixture f;

                fixture_init(&f, STR(""));
                ASSERT_OK(feed_all(&f, text, piece));
                ASSERT_INT(f.feed.n_items, 2);
                check_sum(&f, "\n3/8 (37%)\n");
        }
}

static void every_cut_is_told(void) {
        Str text = STR("{\"kind\":\"List\",\"items\":[" NODE "," POD "]}");

        for (size_t cut = 0; cut < text.len; cut++) {
                _cleanup_(fixture_done) Fixture f;

                fixture_init(&f, STR(""));
                ASSERT_INT(feed_all(&f, (Str){text.data, cut}, 7), FEED_E_MALFORMED);
                ASSERT_CONTAINS(f.fault.text, "file.json: ");
                ASSERT_TRUE(f.feed.at_end);
        }
}

static void typed_lists_and_a_wanted_kind(void) {
        Str text = STR("{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"items\":[" TYPELESS_POD "]}");
        _cleanup_(fixture_done) Fixture f;
        Fixture g;

        fixture_init(&f, STR("Pod"));
        ASSERT_OK(feed_all(&f, text, 10));
        f.feed.only = STR("Node");
        ASSERT_INT(f.feed.n_items, 1);

        fixture_init(&g, STR("Node")); /* a mixed list where only nodes are wanted */
        ASSERT_OK(feed_all(&g, STR("{\"items\":[" POD "," NODE "],\"kind\":\"List\"}"), 9));
        check_sum(&g, "\n0/8 (0%)\n");
        fixture_done(&g);
}

static void refuse(Str text, const char *needle) {
        _cleanup_(fixture_done) Fixture f;

        fixture_init(&f, STR(""));
        ASSERT_INT(feed_all(&f, text, 3), FEED_E_MALFORMED);
        ASSERT_CONTAINS(f.fault.text, "file.json: ");
        ASSERT_CONTAINS(f.fault.text, needle);
}

static void refuses_what_is_no_list(void) {
        refuse(STR(""), "");
        refuse(STR("[]"), "");
        refuse(STR("hello"), "");
        refuse(STR("{}"), "neither kind nor items");
        refuse(STR(NODE), "kind is \"Node\", must be a List");
        refuse(STR("{\"kind\":7,\"items\":[]}"), "kind");
        refuse(STR("{\"kind\":\"List\",\"items\":[]}x"), "");
}

static void counts_what_is_left_out(void) {
        _cleanup_(fixture_done) Fixture f;

        fixture_init(&f, STR(""));
        ASSERT_OK(feed_all(
                &f, STR("{\"kind\":\"List\",\"items\":[" NODE ",{\"kind\":\"Pod\",\"spec\":7}," POD ",{}]}"),
                11));
        ASSERT_INT(f.feed.n_left_out, 2);
        ASSERT_INT(f.warnings, 2);
        ASSERT_TEXT(f.warning.text, "file.json: items[3]: an object without kind");
        check_sum(&f, "\n3/8 (37%)\n");
}

int main(void) {
        return TEST_MAIN(TEST(reads_pieces_of_any_size), TEST(every_cut_is_told),
                         TEST(typed_lists_and_a_wanted_kind), TEST(refuses_what_is_no_list),
                         TEST(counts_what_is_left_out));
}
