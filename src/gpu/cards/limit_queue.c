/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/cards/limit_queue.h"

#include <errno.h>
#include <stdio.h>

int limit_queue_add(LimitQueue *q, CardLimitDone done, void *userdata, usec_t due, uint32_t *ret_request) {
        if (q->n == LIMIT_QUEUE_MAX)
                return -EAGAIN;
        if (++q->last == 0)
                q->last = 1; /* 0 is no request */
        q->waiting[q->n++] =
                (LimitWaiting){.request = q->last, .done = done, .userdata = userdata, .due = due};
        *ret_request = q->last;
        return 0;
}

static LimitWaiting take_at(LimitQueue *q, size_t at) {
        LimitWaiting w = q->waiting[at];

        memmove(&q->waiting[at], &q->waiting[at + 1], (q->n - at - 1) * sizeof *q->waiting);
        q->n--;
        return w;
}

/* If the answer comes later, limit_queue_take() drops it. */
void limit_queue_cancel(LimitQueue *q, uint32_t request) {
        for (size_t i = 0; i < q->n; i++)
                if (q->waiting[i].request == request) {
                        (void) take_at(q, i);
                        return;
                }
}

static void answer(const LimitWaiting *w, const CardLimitAnswer *a) {
        w->done(w->userdata, a);
}

void limit_queue_take(LimitQueue *q, const ProbeReport *r) {
        CardLimitAnswer a = {.code = r->number, .hard = r->value, .used = r->used};
        size_t at = 0;
        LimitWaiting w;

        while (at < q->n && q->waiting[at].request != r->request)
                at++;
        if (at == q->n)
                return;
        memcpy(a.text, r->text, sizeof a.text);
        w = take_at(q, at);
        answer(&w, &a);
}

/* Only requests of before are answered: a callback may add others. */
void limit_queue_fail(LimitQueue *q) {
        CardLimitAnswer a = {.code = CARD_LIMIT_NO_ANSWER};

        (void) snprintf(a.text, sizeof a.text, "the driver does not answer");
        for (size_t n = q->n; n > 0 && q->n > 0; n--) {
                LimitWaiting w = take_at(q, 0);

                answer(&w, &a);
        }
}

usec_t limit_queue_due(const LimitQueue *q) {
        return q->n > 0 ? q->waiting[0].due : 0;
}

void limit_queue_extend(LimitQueue *q, usec_t due) {
        for (size_t i = 0; i < q->n; i++)
                q->waiting[i].due = due;
}
