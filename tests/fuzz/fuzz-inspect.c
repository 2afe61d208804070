/* SPDX-License-Identifier: Apache-2.0 */

/* Any text as a List, in pieces of a size that the text decides. The rows that were read before a
 * fault can be printed in all forms. Tables have printable ASCII only, no row for a terminal is
 * wider than it, and the JSON is JSON. */

#include <assert.h>

#include "cli/inspect/feed.h"
#include "wire/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect_words(void *userdata, const char *text) {
        assert(text[0] != '\0');
        ++*(size_t *) userdata;
}

static int feed_all(Feed *feed, Str text, size_t piece, Fault *fault) {
        while (text.len > 0) {
                Str part = {text.data, text.len < piece ? text.len : piece};
                int r = feed_bytes(feed, part, fault);

                if (r != 0)
                        return r;
                text.data += part.len;
                text.len -= part.len;
        }
        return feed_end(feed, fault);
}

static void check_table(int r, const Buf *out) {
        assert(r == 0 && out->len > 0);
        for (size_t i = 0; i < out->len; i++)
                assert(out->data[i] == '\n' || (out->data[i] >= ' ' && out->data[i] <= '~'));
}

static void check_cards(Inspect *i, size_t width) {
        const InspectScreen screen = {.width = width, .height = width / 4, .details = width % 2 == 0};
        _cleanup_buf_ Buf out = BUF_NULL;
        size_t column = 0;

        check_table(inspect_print_cards(i, STR(""), &screen, &out, NULL), &out);
        for (size_t k = 0; k < out.len; k++) {
                column = out.data[k] == '\n' ? 0 : column + 1;
                assert(column <= width);
        }
}

static void check_reports(Inspect *i) {
        _cleanup_buf_ Buf summary = BUF_NULL, details = BUF_NULL, json = BUF_NULL;
        JsonReader r;

        check_table(inspect_print_summary(i, STR(""), &summary, NULL), &summary);
        check_table(inspect_print_details(i, STR(""), &details, NULL), &details);
        assert(inspect_print_json(i, STR(""), &json, NULL) == 0);
        json_init(&r, buf_str(&json));
        json_skip(&r);
        assert(json_finish(&r, NULL) == 0);
        for (size_t width = 20; width < 160; width += 23)
                check_cards(i, width);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(inspect_freep) Inspect *inspect = NULL;
        _cleanup_(feed_done) Feed feed = {0};
        size_t warnings = 0, piece = size > 0 ? (size_t) data[size - 1] + 1 : 1;
        Fault fault = FAULT_NULL;
        int r;

        if (inspect_new(&inspect) < 0)
                return 0;
        feed = (Feed){.inspect = inspect, .source = "input", .warn = expect_words, .userdata = &warnings};
        if (feed_init(&feed) < 0)
                return 0;
        r = feed_all(&feed, (Str){(const char *) data, size}, piece, &fault);
        assert(r == 0 || (r == FEED_E_MALFORMED && fault.text[0] != '\0'));
        assert(warnings >= feed.n_left_out);
        check_reports(inspect);
        return 0;
}
