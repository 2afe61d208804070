/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/writer.h"

#include <errno.h>

#include "base/log.h"

/* later failures do not lengthen the pause, which has reached its cap */
enum { ATTEMPTS_COUNTED = 16 };

void writer_done(Writer *w) {
        w->call = kube_call_free(w->call);
        w->timer = sd_event_source_disable_unref(w->timer);
        w->attempt = 0;
        w->paused = w->poked = false;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        Writer *w = userdata;

        w->paused = false;
        writer_poke(w);
        return 0;
}

int writer_wake(Writer *w, usec_t delay) {
        if (w->paused)
                return 0;
        if (!w->timer && sd_event_add_time_relative(kube_client_event(w->client), &w->timer, CLOCK_BOOTTIME,
                                                    delay, 0, on_timer, w) < 0)
                return -ENOMEM;
        (void) sd_event_source_set_time_relative(w->timer, delay); /* fail only for a dead source */
        (void) sd_event_source_set_enabled(w->timer, SD_EVENT_ONESHOT);
        return 0;
}

void writer_pause(Writer *w, usec_t delay) {
        w->paused = writer_wake(w, delay) == 0;
        if (!w->paused)
                log_error("out of memory: an object of the API server is put right with its next change");
}

static void back_off(Writer *w, usec_t retry_after) {
        const WriterRule *rule = w->rule;

        writer_pause(w, rule->base / 4 + kube_backoff(w->attempt, rule->base, rule->cap, retry_after));
        w->attempt += w->attempt < ATTEMPTS_COUNTED;
}

static void reconcile(Writer *w) {
        w->poked = false;
        if (w->rule->reconcile(w->userdata) < 0)
                back_off(w, 0);
}

void writer_poke(Writer *w) {
        w->poked = true;
        if (!w->call && !w->paused)
                reconcile(w);
}

void writer_answer(void *userdata, const KubeReply *reply) {
        bool written = reply->outcome == KUBE_DONE && reply->status / 100 == 2;
        Writer *w = userdata;
        WriterNext next;

        w->call = NULL;
        next = w->rule->on_answer(w->userdata, reply, written);
        if (next == WRITER_PAUSE) {
                back_off(w, reply->retry_after);
                return;
        }
        w->attempt = 0;
        if (next == WRITER_RECONCILE || w->poked)
                reconcile(w);
}
