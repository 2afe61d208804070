/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/watch_decoder.h"

#include <errno.h>

#include "base/buf.h"
#include "test.h"

/* The decoder's output, one line per event. */
typedef struct Log {
        Buf text;
        int stop_at; /* type at which the sink returns -ESTALE; -1: none */
} Log;

static int on_event(void *userdata, const WatchEvent *e) {
        static const char *const names[] = {"listed",   "added", "modified", "deleted",
                                            "bookmark", "error", "too long"};
        Log *log = userdata;

        buf_appendf(&log->text, "%s v=" STR_FMT " o=" STR_FMT, names[e->type], STR_ARG(e->resource_version),
                    STR_ARG(e->object));
        if (e->type == WATCH_ERROR)
                buf_appendf(&log->text, " %d " STR_FMT " " STR_FMT " %d", (int) e->status.code,
                            STR_ARG(e->status.reason), STR_ARG(e->status.message),
                            (int) e->status.retry_after_sec);
        buf_append_char(&log->text, '\n');
        return (int) e->type == log->stop_at ? -ESTALE : 0;
}

/* In pieces of every size, with the same result. */
static void assert_decodes(WatchKind kind, const char *text, int expected, const char *events,
                           const char *words) {
        for (size_t step = 1; step <= strlen(text) + 1; step += step < 8 ? 1 : 7) {
                _cleanup_(watch_decoder_freep) WatchDecoder *d = NULL;
                Log log = {.stop_at = WATCH_ERROR};
                Fault fault = FAULT_NULL;
                int r = 0;

                ASSERT_OK(watch_decoder_new(kind, 200, on_event, &log, &d));
                for (size_t at = 0; at < strlen(text) && r == 0; at += step) {
                        size_t left = strlen(text) - at;
                        r = watch_decoder_feed(d, (Str){text + at, left < step ? left : step}, &fault);
                }
                if (r == 0)
                        r = watch_decoder_finish(d, &fault);
                ASSERT_INT(r, expected);
                ASSERT_STR(buf_str(&log.text), str_from(events));
                ASSERT_CONTAINS(fault.text, words);
                if (kind == WATCH_KIND_LIST && r == 0)
                        ASSERT_STR(watch_decoder_resource_version(d), STR("12"));
                buf_done(&log.text);
        }
}

static void decodes_a_watch(void) {
        assert_decodes(
                WATCH_KIND_WATCH,
                "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"7\"}}}"
                "\n"
                "{\"object\":{\"spec\":{},\"metadata\":{\"resourceVersion\":\"8\"}},\"type\":\"MODIFIED\"}\n"
                "{\"type\":\"DELETED\",\"object\":{}}\n"
                "{\"type\":\"NEWER\",\"object\":{}}\n"
                "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\"}}}\n",
                0,
                "added v=7 o={\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"7\"}}\n"
                "modified v=8 o={\"spec\":{},\"metadata\":{\"resourceVersion\":\"8\"}}\n"
                "deleted v= o={}\n"
                "bookmark v=9 o={\"metadata\":{\"resourceVersion\":\"9\"}}\n",
                "");
        assert_decodes(WATCH_KIND_WATCH, "", 0, "", "");
}

static void an_error_is_a_status(void) {
        assert_decodes(
                WATCH_KIND_WATCH,
                "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\","
                "\"message\":\"too old\",\"details\":{\"retryAfterSeconds\":3}}}\n{}",
                -ESTALE, "error v= o= 410 Expired too old 3\n", "");
        assert_decodes(WATCH_KIND_WATCH, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Pod\"}}",
                       WATCH_E_MALFORMED, "", "without Status");
}

static void decodes_a_list(void) {
        assert_decodes(WATCH_KIND_LIST,
                       "{\"kind\":\"PodList\",\"items\":[{\"a\":1},{\"b\":2}],"
                       "\"metadata\":{\"resourceVersion\":\"12\",\"continue\":\"x\"}}",
                       0, "listed v= o={\"a\":1}\nlisted v= o={\"b\":2}\n", "");
        assert_decodes(WATCH_KIND_LIST, "{\"metadata\":{\"resourceVersion\":\"12\"},\"items\":null}", 0, "",
                       "");
}

static void refuses_what_is_neither(void) {
        assert_decodes(WATCH_KIND_WATCH, "{\"type\":\"ADDED\"}", WATCH_E_MALFORMED, "",
                       "an event without object");
        assert_decodes(WATCH_KIND_WATCH, "{\"type\":\"ADDED\",\"object\":[]}", WATCH_E_MALFORMED, "",
                       "without object");
        assert_decodes(WATCH_KIND_WATCH, "{\"type\":7,\"object\":{}}", WATCH_E_MALFORMED, "",
                       "type: not a string");
        assert_decodes(WATCH_KIND_WATCH,
                       "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":7}}}",
                       WATCH_E_MALFORMED, "", "metadata.resourceVersion: not a string");
        assert_decodes(WATCH_KIND_WATCH, "{\"type\":\"ADDED\",\"obj", WATCH_E_MALFORMED, "",
                       "ends too early");
        assert_decodes(WATCH_KIND_WATCH, "<html>", WATCH_E_MALFORMED, "", "a JSON value is expected");
        assert_decodes(WATCH_KIND_LIST, "[]", WATCH_E_MALFORMED, "", "the { of a list");
        assert_decodes(WATCH_KIND_LIST, "{\"items\":[]}", WATCH_E_MALFORMED, "",
                       "without metadata.resourceVersion");
        assert_decodes(WATCH_KIND_LIST, "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[{}",
                       WATCH_E_MALFORMED, "listed v= o={}\n", "ends too early");
}

/* One object over the limit (200 bytes here) leaves a gap, and the version of the next one
 * counts. */
static void a_huge_object_is_passed_over(void) {
        _cleanup_buf_ Buf text = BUF_NULL;

        buf_append_str(
                &text,
                STR("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"7\",\"x\":\""));
        for (int i = 0; i < 500; i++)
                buf_append_char(&text, '}');
        buf_append_str(
                &text,
                STR("\"}}}\n{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"8\"}}}"));
        assert_decodes(WATCH_KIND_WATCH, text.data, 0,
                       "too long v= o=\nbookmark v=8 o={\"metadata\":{\"resourceVersion\":\"8\"}}\n", "");
}

static void a_long_version_is_refused(void) {
        char text[512];

        (void) snprintf(text, sizeof text,
                        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"%0*d\"}}}",
                        WATCH_MAX_VERSION + 1, 0);
        assert_decodes(WATCH_KIND_WATCH, text, WATCH_E_MALFORMED, "", "longer than 128 bytes");
        (void) snprintf(text, sizeof text, "{\"metadata\":{\"resourceVersion\":\"%0*d\"},\"items\":[]}",
                        WATCH_MAX_VERSION + 1, 0);
        assert_decodes(WATCH_KIND_LIST, text, WATCH_E_MALFORMED, "", "longer than 128 bytes");
}

int main(void) {
        return TEST_MAIN(TEST(decodes_a_watch), TEST(an_error_is_a_status), TEST(decodes_a_list),
                         TEST(refuses_what_is_neither), TEST(a_huge_object_is_passed_over),
                         TEST(a_long_version_is_refused));
}
