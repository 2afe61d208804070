/* SPDX-License-Identifier: Apache-2.0 */

/* Every allocation of this room fails once, one at a time. Each time the result is -ENOMEM, the
 * output is untouched, and nothing leaks (the leak sanitizer checks). The linker replaces malloc by
 * these functions. */

#include "failing.h"

#include <errno.h>

#include "samples.h"
#include "wire/allocation.h"
#include "wire/card_info.h"
#include "wire/json_stream.h"
#include "wire/pod.h"

/* Runs `attempt` with its first, second, ... allocation failing, until it succeeds. */
static void fail_each(int (*attempt)(Str text), Str text) {
        unsigned n = 0;

        for (;;) {
                int r;

                countdown = ++n;
                r = attempt(text);
                if (countdown > 0)
                        break;
                ASSERT_INT(r, -ENOMEM);
        }
        countdown = 0;
        ASSERT_TRUE(n > 1); /* it did allocate */
}

static int decode_pod(Str text) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Pod pod = {.n_containers = 77};
        int r = pod_decode(text, &arena, &pod, NULL);

        ASSERT_TRUE(r == 0 || pod.n_containers == 77);
        return r;
}

static int parse_allocation(Str text) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        Allocation a = {.n_entries = 77};
        int r = allocation_parse(text, &arena, &a, NULL);

        ASSERT_TRUE(r == 0 || a.n_entries == 77);
        return r;
}

static int parse_cards(Str text) {
        _cleanup_arena_ Arena arena = ARENA_NULL;
        CardInfo *cards;
        size_t n = 77;
        int r = card_info_parse(text, &arena, &cards, &n, NULL);

        ASSERT_TRUE(r == 0 || n == 77);
        return r;
}

static int on_value(void *userdata, Str member, Str value, Fault *fault) {
        return 0;
}

static int stream_list(Str text) {
        _cleanup_(json_stream_freep) JsonStream *s = NULL;
        int r = json_stream_new(JSON_STREAM_LIST, 1 << 20, on_value, NULL, &s);

        for (; r == 0 && text.len > 0; text.data++, text.len--)
                r = json_stream_feed(s, (Str){text.data, 1}, NULL);
        return r == 0 ? json_stream_finish(s, NULL) : r;
}

static void pods(void) {
        _cleanup_buf_ Buf text = BUF_NULL;

        buf_appendf(&text, "{\"spec\":{\"initContainers\":[{}],\"containers\":[");
        for (unsigned i = 0; i < 200; i++)
                buf_appendf(&text, "%s{\"name\":\"c\\u0041%u\"}", i > 0 ? "," : "", i);
        buf_appendf(&text, "]}}");
        fail_each(decode_pod, buf_str(&text));
        fail_each(decode_pod, str_from(sample_pod));
}

static void allocations(void) {
        _cleanup_buf_ Buf text = BUF_NULL;
        AllocationEntry entries[2000];

        for (uint32_t i = 0; i < ELEMENTSOF(entries); i++)
                entries[i] = (AllocationEntry){.container = i / 16, .card = i % 16, .amount = 1};
        allocation_format(entries, ELEMENTSOF(entries), &text);
        fail_each(parse_allocation, buf_str(&text));
}

static void cards(void) {
        fail_each(parse_cards, STR("[{\"index\":0,\"units\":1,\"model\":\"\\u0041\"}]"));
}

static void streams(void) {
        _cleanup_buf_ Buf text = BUF_NULL;

        buf_appendf(&text, "{\"metadata\":{},\"items\":[%s,%s]}", sample_pod, sample_pod);
        fail_each(stream_list, buf_str(&text));
}

int main(void) {
        return TEST_MAIN(TEST(pods), TEST(allocations), TEST(cards), TEST(streams));
}
