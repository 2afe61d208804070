/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/limit_queue.h"
#include "test.h"

#include <errno.h>

static LimitQueue queue;
static uint32_t answers[8], n;
static CardLimitAnswer last;

static void on_answer(void *userdata, const CardLimitAnswer *a) {
        answers[n++] = *(const uint32_t *) userdata;
        last = *a;
}

static uint32_t add(uint32_t *name, usec_t due) {
        uint32_t request = 0;

        ASSERT_OK(limit_queue_add(&queue, on_answer, name, due, &request));
        return request;
}

static void passes_answers_on(void) {
        uint32_t a = 1, b = 2, c = 3, first, second, third;
        ProbeReport r = {.kind = REPORT_LIMIT, .number = 3, .value = 7, .used = 5, .text = "no"};

        queue = (LimitQueue){.n = 0};
        n = 0;
        ASSERT_INT(limit_queue_due(&queue), 0);
        first = add(&a, 10);
        second = add(&b, 20);
        third = add(&c, 30);
        ASSERT_INT(limit_queue_due(&queue), 10);
        r.request = second;
        limit_queue_take(&queue, &r);
        limit_queue_take(&queue, &r); /* nothing waits for it any more */
        ASSERT_INT(n, 1);
        ASSERT_INT(answers[0], b);
        ASSERT_INT(last.code, 3);
        ASSERT_INT(last.hard, 7);
        ASSERT_INT(last.used, 5);
        ASSERT_TEXT(last.text, "no");
        limit_queue_cancel(&queue, first);
        r.request = first;
        limit_queue_take(&queue, &r);
        ASSERT_INT(n, 1);
        ASSERT_INT(limit_queue_due(&queue), 30);
        limit_queue_extend(&queue, 40);
        ASSERT_INT(limit_queue_due(&queue), 40);
        limit_queue_fail(&queue);
        ASSERT_INT(answers[1], c);
        ASSERT_INT(last.code, CARD_LIMIT_NO_ANSWER);
        ASSERT_INT(queue.n, 0);
        ASSERT_TRUE(third > second);
}

/* 0 is the number of no request. */
static void numbers_begin_again(void) {
        uint32_t a = 1;

        queue = (LimitQueue){.last = UINT32_MAX - 1};
        ASSERT_TRUE(add(&a, 1) == UINT32_MAX);
        ASSERT_INT(add(&a, 1), 1);
}

static void has_an_end(void) {
        uint32_t name = 1, request;

        queue = (LimitQueue){.n = 0};
        for (int i = 0; i < LIMIT_QUEUE_MAX; i++)
                (void) add(&name, 1);
        ASSERT_INT(limit_queue_add(&queue, on_answer, &name, 1, &request), -EAGAIN);
}

int main(void) {
        passes_answers_on();
        numbers_begin_again();
        has_an_end();
        return 0;
}
