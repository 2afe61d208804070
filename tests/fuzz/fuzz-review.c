/* SPDX-License-Identifier: Apache-2.0 */

/* Any text as a review, by both tasks. The answer is JSON with the UID of the request, or the text
 * is no review. A refusal has a sentence. The first task refuses nothing and the second patches
 * nothing. The same text gets the same answer again. */

#include <assert.h>
#include <errno.h>

#include "scheduler/webhook/review.h"
#include "wire/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void assert_json(const Buf *out) {
        JsonReader r;

        json_init(&r, buf_str(out));
        json_skip(&r);
        assert(json_finish(&r, NULL) == 0);
}

static void ask(ReviewTask task, Str body) {
        _cleanup_buf_ Buf out = BUF_NULL, again = BUF_NULL;
        ReviewVerdict verdict = REVIEW_VERDICTS_, same = REVIEW_VERDICTS_;
        Fault fault = FAULT_NULL;
        ReviewRules rules = {.accounts = STR("a,b"), .runtime_devices = true};
        int r = review_answer(task, &rules, body, &out, &verdict, &fault);

        assert(review_answer(task, &rules, body, &again, &same, NULL) == r);
        assert(same == verdict && str_eq(buf_str(&out), buf_str(&again)));
        if (r == REVIEW_E_MALFORMED) {
                assert(fault.text[0] != '\0' && out.len == 0 && verdict == REVIEW_VERDICTS_);
                return;
        }
        assert(r == 0);
        assert_json(&out);
        assert(verdict == (task == REVIEW_MUTATE ? REVIEW_PATCHED : REVIEW_REFUSED) ||
               verdict == REVIEW_ALLOWED);
        assert((strstr(out.data, "\"allowed\":false") != NULL) >= (verdict == REVIEW_REFUSED));
        assert(verdict != REVIEW_REFUSED || !strstr(out.data, "\"message\":\"\""));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Str body = {(const char *) data, size};

        ask(REVIEW_MUTATE, body);
        ask(REVIEW_VALIDATE, body);
        return 0;
}
